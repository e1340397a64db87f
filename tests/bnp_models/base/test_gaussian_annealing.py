"""New rows of Gaussian factor models: exact evidence and weights, by all uses of two factors."""

import itertools

import numpy as np
import pytest
import scipy.stats

from bnp_models.base.row_annealing import GaussianRows, draw_rows
from bnp_models.scores.held_out_rows import row_evidence

STATE = GaussianRows(  # the last slot is free
    phi=np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 1.5], [9.0, 9.0, 9.0]], np.float32),
    pi=np.array([[0.3, 0.6, 0.0], [0.9, 0.2, 0.0]], np.float32),
    sigma2_w=np.array([1.0, 2.5], np.float32),
    sigma2_n=np.array([0.5, 0.8], np.float32),
)
ROWS = np.array([[0.0, 0, 0], [2, 1, 0.5], [0.3, -2, 2], [-1, 0, 1]])
SOURCE = np.array([0, 1, 0, 1], np.int32)
COPIES = 4000


def uses(x, j, *, noise=1.0, there=(True, True, True)):
    """For each use of the two factors: its prior times likelihood, and E[w | z, x]."""
    s, omega = noise * float(STATE.sigma2_n[j]), float(STATE.sigma2_w[j])
    there = np.flatnonzero(there)
    x = x[there]
    for z in itertools.product([0, 1], repeat=2):
        phi = STATE.phi[:2, there] * np.array(z)[:, None]
        prior = np.prod([p if on else 1 - p for p, on in zip(STATE.pi[j, :2], z, strict=True)])
        cov = s * np.eye(len(x)) + omega * phi.T @ phi
        density = scipy.stats.multivariate_normal(np.zeros(len(x)), cov).pdf(x)
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


OBSERVED = np.array([[True, True, True], [True, False, True], [False, True, True], [False] * 3])


def test_missing_entries_are_integrated_out():
    """Rows with gaps, one without any entry; what stands in a gap does not matter."""
    rows, source = np.repeat(ROWS, COPIES, axis=0), np.repeat(SOURCE, COPIES)
    observed = np.repeat(OBSERVED, COPIES, axis=0)
    rows = np.where(observed, rows, 77.0)
    how = {"num_temperatures": 8, "num_particles": 1}
    found = row_evidence(np.random.default_rng(0), rows, STATE, source, observed, **how)
    parts = [
        list(uses(x, j, there=o)) if o.any() else [(1.0, np.zeros(2))]
        for x, j, o in zip(ROWS, SOURCE, OBSERVED, strict=True)
    ]
    wanted = np.array([sum(p for p, _ in of_row) for of_row in parts])
    found = np.exp(found).reshape(4, COPIES)
    assert agree(found[:3], wanted[:3])
    np.testing.assert_allclose(found[3], 1.0)
    powers = np.append(np.linspace(0, 1, 15, endpoint=False), np.ones(5))
    weights = draw_rows(
        np.random.default_rng(1), rows, STATE, source, powers,
        num_particles=1, wanted="weights", observed=observed,
    )[1].reshape(4, COPIES, 3)  # fmt: skip
    for of_row, drawn in zip(parts, weights, strict=True):
        assert agree(drawn[:, :2].T, sum(p * w for p, w in of_row) / sum(p for p, _ in of_row))


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
