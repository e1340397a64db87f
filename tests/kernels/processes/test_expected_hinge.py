"""The loss of expected scores: its problem against another solver, its limits, its tilt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bnp_kernels.processes import expected_hinge

NUM_DOCS, NUM_TOPICS = 40, 4
RNG = np.random.default_rng(0)
SHARE = RNG.dirichlet(np.full(NUM_TOPICS, 0.5), NUM_DOCS).astype(np.float32)
NOISE = RNG.normal(size=NUM_DOCS)
SIGN = np.where(SHARE[:, 0] - SHARE[:, 1] + 0.3 * NOISE > 0, 1, -1).astype(np.float32)

solve = jax.jit(expected_hinge.solve_svm)


@pytest.mark.parametrize("cost", [0.02, 1.0, 30.0, 1000.0])
def test_another_solver_finds_the_same(cost):
    found = solve(SHARE, SIGN, cost, np.zeros(NUM_DOCS, np.float32))
    other = LinearSVC(
        loss="hinge", dual=True, fit_intercept=False, C=cost, tol=1e-8, max_iter=1_000_000
    )
    weights = other.fit(SHARE, SIGN).coef_[0]
    x, w = SHARE.astype(float), np.asarray(found.weights, float)

    def objective(w):
        return w @ w / 2 + cost * np.maximum(0, 1 - SIGN * (x @ w)).sum()

    alpha = np.asarray(found.alpha, float)
    assert (alpha >= 0).all()
    assert (alpha <= np.float32(cost)).all()
    of_dual = (alpha * SIGN) @ x
    gap = objective(w) - (alpha.sum() - of_dual @ of_dual / 2)
    assert 0 <= gap < 1e-3 * objective(w)
    np.testing.assert_allclose(found.gap, gap / objective(w), rtol=0.1, atol=1e-5)
    np.testing.assert_allclose(objective(w), objective(weights), rtol=1e-3)
    # the objective is strongly convex: the distance follows from the gap
    assert ((w - weights) ** 2).sum() <= 2.1 * (gap + 1e-6 * objective(w))


def test_the_gap_is_that_of_the_solution(monkeypatch):
    """The cost is too large for the steps that there are, and the gap says so."""
    monkeypatch.setattr(expected_hinge, "_MOST_STEPS", 10 * NUM_DOCS)
    cost = 1000.0
    found = jax.jit(lambda *args: expected_hinge.solve_svm(*args))(
        SHARE, SIGN, cost, np.zeros(NUM_DOCS, np.float32)
    )
    x, w, alpha = (np.asarray(a, float) for a in (SHARE, found.weights, found.alpha))
    objective = w @ w / 2 + cost * np.maximum(0, 1 - SIGN * (x @ w)).sum()
    gap = 1 - (alpha.sum() - w @ w / 2) / objective
    assert gap > 0.01
    np.testing.assert_allclose(found.gap, gap, rtol=1e-3)


def test_a_solution_is_solved_in_one_round():
    start = np.zeros(NUM_DOCS, np.float32)
    found = solve(SHARE, SIGN, 1.0, start)
    again = solve(SHARE, SIGN, 1.0, found.alpha)
    np.testing.assert_allclose(again.weights, found.weights, rtol=5e-2)
    assert again.gap <= found.gap
    idle = solve(SHARE, SIGN, 1.0, start, due=False)
    np.testing.assert_array_equal(idle.alpha, start)


def advance(sign, c, ell, variance, sweeps=expected_hinge.NUM_SWEEPS, shift=0.0):
    """Return state and weights after sweeps whose shares differ by `shift` from their mean."""
    expected = expected_hinge.init(NUM_DOCS, NUM_TOPICS)
    eta = jnp.zeros(NUM_TOPICS)
    for i in range(sweeps):
        share = SHARE + np.float32(shift if i % 2 else -shift)
        expected, eta = update(expected, eta, share, sign, c, ell, variance)
    return expected, eta


update = jax.jit(expected_hinge.update)


def test_the_weights_are_kept_until_they_are_solved_for():
    expected, eta = advance(SIGN, 1.0, 2.0, 3.0, sweeps=expected_hinge.NUM_SWEEPS - 1)
    np.testing.assert_array_equal(eta, 0)
    np.testing.assert_array_equal(expected.tau, 0)
    assert expected.gap == 1
    assert expected.num_sweeps == expected_hinge.NUM_SWEEPS - 1


@pytest.mark.parametrize(("c", "ell", "variance"), [(1.0, 2.0, 3.0), (4.0, 50.0, 1.0)])
def test_the_problem_after_ten_sweeps(c, ell, variance):
    """The weights minimise |mu|^2 / 2v + 2c sum max(0, ell - y mu.x), x the mean share."""
    expected, eta = advance(SIGN, c, ell, variance, shift=0.05)
    assert expected.gap < 1e-3
    assert expected.num_sweeps == 0
    np.testing.assert_array_equal(expected.share, 0)
    tau, x = np.asarray(expected.tau, float), SHARE.astype(float)
    assert (tau >= 0).all()
    assert (tau <= 2 * c * 1.00001).all()
    np.testing.assert_allclose(eta, variance * (tau * SIGN) @ x, rtol=1e-4, atol=1e-4 * ell)
    mu = np.asarray(eta, float)
    loss = 2 * c * np.maximum(0, ell - SIGN * (x @ mu)).sum()
    gap = mu @ mu / variance + loss - ell * tau.sum()
    assert gap < 1e-3 * (mu @ mu / (2 * variance) + loss)


def test_labels_flipped_flip_the_weights():
    expected, eta = advance(SIGN, 1.0, 2.0, 3.0)
    flipped, other = advance(-SIGN, 1.0, 2.0, 3.0)
    np.testing.assert_array_equal(other, -eta)
    np.testing.assert_array_equal(flipped.tau, expected.tau)


def test_chains_beside_each_other_solve_the_same():
    signs = np.stack([SIGN, -SIGN, np.roll(SIGN, 1)])
    start = np.zeros((3, NUM_DOCS), np.float32)
    together = jax.jit(jax.vmap(expected_hinge.solve_svm, (None, 0, None, 0)))
    found = together(SHARE, signs, 1.0, start)
    for i, sign in enumerate(signs):
        alone = solve(SHARE, sign, 1.0, start[i])
        np.testing.assert_array_equal(found.weights[i], alone.weights)


def test_factor_of_a_token():
    """It is exp(tau y mu.zbar) with the token in the topic, up to what topics share."""
    mu, n_d = np.array([0.5, -2.0, 3.0], np.float32), np.array([2.0, 0.0, 1.0], np.float32)
    found = expected_hinge.log_factor_of_token(jnp.array(n_d), (-1.5, 4), jnp.array(mu))
    expected = [-1.5 * mu @ (n_d + np.eye(3)[k]) / 4 for k in range(3)]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5)
