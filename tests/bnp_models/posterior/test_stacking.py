"""Weights of chains: known optima, exactness against a grid and scipy, invariances."""

import math

import numpy as np
import pytest
import scipy.optimize

from bnp_models.posterior.stacking import stack

CLOSE = 1 + 1e-7  # a concentration whose prior does not matter


def total(weights, log_prob):
    return np.logaddexp.reduce(log_prob + np.log(weights)[:, None], axis=0).sum()


def random_scores(seed, num_chains, num_units, spread):
    rng = np.random.default_rng(seed)
    better = rng.normal(0, 0.1 * spread, (num_chains, 1))
    return rng.normal(-7, spread, (num_chains, num_units)) + better


def test_two_units_that_two_chains_explain():
    """The derivative of log(w a + (1 - w) b) + log(w c + (1 - w) d) is zero at a known w."""
    (a, b), (c, d) = (0.9, 0.2), (0.3, 0.6)
    w = -((a - b) * d + (c - d) * b) / (2 * (a - b) * (c - d))
    assert 0.1 < w < 0.9
    found = stack(np.log([[a, c], [b, d]]), concentration=CLOSE)
    np.testing.assert_allclose(found, [w, 1 - w], atol=1e-6)


def test_chains_that_each_explain_some_units_alone():
    """Then the weights are the shares of units, moved by the prior as a Dirichlet mode is."""
    own = np.repeat([0, 1, 2], [5, 3, 2])
    log_prob = np.where(own == np.arange(3)[:, None], -2.0, -2000.0)
    counts = np.bincount(own)
    for concentration in (1.0001, 3.0):
        expected = (counts + concentration - 1) / (10 + 3 * (concentration - 1))
        found = stack(log_prob, concentration=concentration)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_units_of_a_mixture_give_back_its_shares():
    """Words of two unigram distributions mixed 0.7 to 0.3: within four standard errors."""
    rng = np.random.default_rng(1)
    words = np.array([[0.6, 0.3, 0.05, 0.05], [0.05, 0.1, 0.35, 0.5]])
    share, num_units = 0.7, 20_000
    p = share * words[0] + (1 - share) * words[1]
    drawn = rng.choice(4, num_units, p=p)
    information = ((words[0] - words[1]) ** 2 / p).sum()
    error = 1 / math.sqrt(num_units * information)
    found = stack(np.log(words[:, drawn]))
    assert found[0] == pytest.approx(share, abs=4 * error)


def test_a_chain_that_is_best_everywhere_gets_all():
    log_prob = random_scores(2, 3, 400, 0.01)
    log_prob[1] += 1
    found = stack(log_prob)
    assert found[1] > 1 - 1e-5
    assert (found > 0).all()


def test_equal_chains_get_equal_weights():
    one = random_scores(3, 1, 50, 2.0)
    np.testing.assert_allclose(stack(np.repeat(one, 4, axis=0)), 0.25, rtol=1e-9)
    other = random_scores(4, 1, 50, 2.0)
    found = stack(np.concatenate([one, other, one]))
    assert found[0] == pytest.approx(found[2], rel=1e-6)
    pair = stack(np.concatenate([one, other]))
    assert found[1] == pytest.approx(pair[1], abs=1e-4)


def test_against_a_grid():
    log_prob = random_scores(5, 2, 30, 1.0)
    grid = np.linspace(1e-5, 1 - 1e-5, 100_001)
    values = np.logaddexp(
        np.log(grid) + log_prob[0][:, None], np.log1p(-grid) + log_prob[1][:, None]
    )
    best = grid[values.sum(axis=0).argmax()]
    assert stack(log_prob, concentration=CLOSE)[0] == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize(("num_units", "spread"), [(40, 3.0), (3000, 0.3), (3000, 0.02)])
def test_against_scipy_and_the_conditions_of_the_optimum(num_units, spread):
    """At the optimum no chain is better, on average over units, than the mixture of them."""
    num_chains = 6
    log_prob = random_scores(6, num_chains, num_units, spread)
    found = stack(log_prob)
    mixed = np.logaddexp.reduce(log_prob + np.log(found)[:, None], axis=0)
    ratio = np.exp(log_prob - mixed).sum(axis=1)
    assert ratio.max() - num_units <= num_chains * 1e-4 + 1e-6 * num_units  # stated, and rounding
    prob = np.exp(log_prob - log_prob.max(axis=0))
    other = scipy.optimize.minimize(
        lambda w: -np.log(w @ prob).mean(),
        np.full(num_chains, 1 / num_chains),
        jac=lambda w: -(prob / (w @ prob)).mean(axis=1),
        bounds=[(1e-12, 1)] * num_chains,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    best = total(np.maximum(other.x, 1e-12) / other.x.sum(), log_prob)
    assert total(found, log_prob) >= best - num_chains * 1e-4 - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_never_worse_than_equal_weights_or_the_best_chain(seed):
    log_prob = random_scores(seed, 4, 200, 0.5)
    found = total(stack(log_prob), log_prob)
    allowed = 4 * 1e-4 + 1e-6
    assert found > total(np.full(4, 0.25), log_prob) - allowed
    assert found > log_prob.sum(axis=1).max() - allowed


def test_order_of_chains_and_units_and_level_do_not_matter():
    log_prob = random_scores(7, 4, 100, 1.0)
    found = stack(log_prob)
    chains, units = np.array([2, 0, 3, 1]), np.random.default_rng(0).permutation(100)
    np.testing.assert_allclose(stack(log_prob[chains]), found[chains], atol=1e-6)
    np.testing.assert_allclose(stack(log_prob[:, units]), found, atol=1e-6)
    level = np.linspace(-3000, -10, 100)  # documents of many tokens
    np.testing.assert_allclose(stack(log_prob + level), found, atol=1e-6)


def test_a_strong_prior_makes_weights_equal():
    log_prob = random_scores(8, 3, 20, 1.0)
    np.testing.assert_allclose(stack(log_prob, concentration=1e6), 1 / 3, atol=1e-4)


def test_many_units():
    """Sums over many units are rounded; the search must still end."""
    log_prob = random_scores(9, 2, 200_000, 0.001)
    assert stack(log_prob, concentration=CLOSE).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("log_prob", "concentration", "message"),
    [
        ([[0.0, -1.0]], 1.1, "log_prob must have two chains or more and at least one unit"),
        (np.zeros((2, 0)), 1.1, "log_prob must have two chains or more and at least one unit"),
        ([[0.0, np.nan], [0, 0]], 1.1, "log_prob must hold finite numbers"),
        ([[0.0, -np.inf], [0, 0]], 1.1, "log_prob must hold finite numbers"),
        ([[0.0], [1.0]], 1.0, "concentration must be a finite number above 1"),
    ],
)
def test_bad_input(log_prob, concentration, message):
    with pytest.raises(ValueError, match=message):
        stack(np.asarray(log_prob), concentration=concentration)
