"""The regression of labels: scores, likelihood, and the normal draw of the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.processes import label_regression
from bnp_kernels.processes.label_regression import Trials

RNG = np.random.default_rng(0)
NUM_DOCS, NUM_TOPICS, VARIANCE = 40, 3, 2.0
COUNTS = RNG.integers(0, 5, (NUM_DOCS, NUM_TOPICS)).astype(np.int32) + np.eye(3, dtype=np.int32)[0]
LENGTH = COUNTS.sum(axis=1)
SHARE = COUNTS / LENGTH[:, None]
WEIGHT = RNG.gamma(1.0, size=NUM_DOCS).astype(np.float32)
LINEAR = RNG.normal(size=NUM_DOCS).astype(np.float32)


def test_scores():
    eta = np.array([0.5, -2.0, 30.0], np.float32)
    found = label_regression.scores(jnp.asarray(COUNTS), jnp.asarray(LENGTH), jnp.asarray(eta))
    np.testing.assert_allclose(found, SHARE @ eta, rtol=1e-5)


def test_scores_of_a_token_are_those_of_the_document_with_it():
    eta = jnp.array([0.5, -2.0, 3.0])
    success, failure = 1.3, 0.4
    found = label_regression.log_label_of_token(
        jnp.asarray(COUNTS[0], jnp.float32), (success, failure, LENGTH[0] + 1), eta
    )
    for k in range(NUM_TOPICS):
        with_token = jnp.asarray(COUNTS[:1] + np.eye(NUM_TOPICS, dtype=np.int32)[k])
        score = label_regression.scores(with_token, with_token.sum(axis=1), eta)
        expected = label_regression.log_label(score, success, failure)
        np.testing.assert_allclose(found[k], expected[0], rtol=1e-5)


@pytest.mark.parametrize("score", [-200.0, -3.0, 0.0, 1e-3, 7.0, 200.0])
def test_log_label(score):
    for success, failure in ((256.0, 0.0), (0.0, 256.0), (2.5, 0.7)):
        found = label_regression.log_label(jnp.float32(score), success, failure)
        exact = -success * np.logaddexp(-score, 0) - failure * np.logaddexp(score, 0)
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-30)


def draw(rng_key):
    arrays = (jnp.asarray(x) for x in (COUNTS, LENGTH, WEIGHT, LINEAR))
    return label_regression.draw_normal(rng_key, *arrays, VARIANCE)


def test_law_of_the_weights():
    number = 20_000
    drawn = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), number)))
    covariance = np.linalg.inv(np.eye(NUM_TOPICS) / VARIANCE + (SHARE.T * WEIGHT) @ SHARE)
    mean = covariance @ SHARE.T @ LINEAR
    error = 5 * (np.diag(covariance) / number) ** 0.5
    assert (abs(drawn.mean(axis=0) - mean) < error).all()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert (abs(np.cov(drawn.T) - covariance) < 5 * scale * (2 / number) ** 0.5).all()


@pytest.mark.slow
def test_large_corpora_are_drawn_alike(monkeypatch):
    """Their sums over documents are matrix products."""
    small = draw(jax.random.key(1))
    monkeypatch.setattr(label_regression, "LARGE_TABLE", 1)
    keys = jax.random.split(jax.random.key(1), 1)
    np.testing.assert_allclose(draw(jax.random.key(1)), small, rtol=1e-4)
    large = jax.jit(jax.vmap(lambda key: draw(key)))(keys)  # chain by chain
    np.testing.assert_allclose(large[0], draw(keys[0]), rtol=1e-5)


def test_polya_gamma_weights_have_the_power_of_the_label():
    score = jnp.full(20_000, 1.5)
    trials = Trials(jnp.full(20_000, 3.0), jnp.full(20_000, 1.0))
    drawn = np.asarray(label_regression.draw_polya_gamma_weights(jax.random.key(2), score, trials))
    mean = 4 * np.tanh(0.75) / 3
    variance = 4 * (np.sinh(1.5) - 1.5) / (4 * 1.5**3 * np.cosh(0.75) ** 2)
    assert abs(drawn.mean() - mean) < 5 * (variance / 20_000) ** 0.5


def test_density_of_the_weights():
    eta = np.array([0.3, -1.0, 2.0], np.float32)
    exact = (-(eta**2) / 4 - np.log(2 * np.pi * 2) / 2).sum()
    found = label_regression.log_normal(jnp.asarray(eta), VARIANCE)
    np.testing.assert_allclose(found, exact, rtol=1e-6)
