"""New rows of Gaussian factor models: exact evidence and weights, by all uses of two factors."""

import itertools

import numpy as np
import pytest
import scipy.stats

from bnp_models.factor_evaluation import row_evidence
from bnp_models.gaussian_rows import GaussianRows, draw_rows

STATE = GaussianRows(  # the last slot is free
    phi=np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 1.5], [9.0, 9.0, 9.0]], np.float32),
    pi=np.array([[0.3, 0.6, 0.0], [0.9, 0.2, 0.0]], np.float32),
    sigma2_w=np.array([1.0, 2.5], np.float32),
    sigma2_n=np.array([0.5, 0.8], np.float32),
)
ROWS = np.array([[0.0, 0, 0], [2, 1, 0.5], [0.3, -2, 2], [-1, 0, 1]])
SOURCE = np.array([0, 1, 0, 1], np.int32)
COPIES = 4000


def uses(x, j, *, noise=1.0):
    """For each use of the two factors: its prior times likelihood, and E[w | z, x]."""
    s, omega = noise * float(STATE.sigma2_n[j]), float(STATE.sigma2_w[j])
    for z in itertools.product([0, 1], repeat=2):
        phi = STATE.phi[:2] * np.array(z)[:, None]
        prior = np.prod([p if on else 1 - p for p, on in zip(STATE.pi[j, :2], z, strict=True)])
        cov = s * np.eye(3) + omega * phi.T @ phi
        density = scipy.stats.multivariate_normal(np.zeros(3), cov).pdf(x)
        yield prior * density, omega * phi @ np.linalg.solve(cov, x)


def estimates(**how):
    """Independent estimates of the density of each row, [4, COPIES]."""
    rows, source = np.repeat(ROWS, COPIES, axis=0), np.repeat(SOURCE, COPIES)
    found = row_evidence(np.random.default_rng(0), rows, STATE, source, **how)
    return np.exp(found).reshape(4, COPIES)


def agree(found, wanted):
    """Compare the mean of copies with a number; |z| < 5 fails by chance once in 2e6 times."""
    z = (found.mean(axis=-1) - wanted) / (found.std(axis=-1) / np.sqrt(found.shape[-1]))
    return np.abs(z).max() < 5


@pytest.mark.parametrize(("method", "num_temperatures"), [("ais", 3), ("ais", 20), ("prior", 20)])
def test_evidence_is_unbiased(method, num_temperatures):
    wanted = [sum(p for p, _ in uses(x, j)) for x, j in zip(ROWS, SOURCE, strict=True)]
    found = estimates(method=method, num_temperatures=num_temperatures, num_particles=1)
    assert agree(found, np.array(wanted))


def test_draws_given_the_row_itself_count_it_twice():
    # E[likelihood | x] = E[likelihood^2] / E[likelihood]; a square has half the variance
    wanted = []
    for x, j in zip(ROWS, SOURCE, strict=True):
        square = (4 * np.pi * STATE.sigma2_n[j]) ** -1.5
        twice = square * sum(p for p, _ in uses(x, j, noise=0.5))
        wanted.append(twice / sum(p for p, _ in uses(x, j)))
    found = estimates(method="eq32", num_temperatures=60, num_particles=1)
    assert agree(found, np.array(wanted))


def test_weights_are_those_of_the_posterior():
    rows, source = np.repeat(ROWS, COPIES, axis=0), np.repeat(SOURCE, COPIES)
    powers = np.append(np.linspace(0, 1, 15, endpoint=False), np.ones(5))
    rng = np.random.default_rng(1)
    log_likelihood, found = draw_rows(
        rng, rows, STATE, source, powers, num_particles=1, wanted="weights"
    )
    assert log_likelihood.shape == (20, 1, 4 * COPIES)
    found = found.reshape(4, COPIES, 3)
    assert not found[..., 2].any()
    for x, j, weights in zip(ROWS, SOURCE, found, strict=True):
        parts = list(uses(x, j))
        wanted = sum(p * w for p, w in parts) / sum(p for p, _ in parts)
        assert agree(weights[:, :2].T, wanted)
