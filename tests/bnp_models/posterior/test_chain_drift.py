"""The tests of movement and of separate places: false alarms and power, on simulated chains.

Rates are binomial: a bound is the stated rate plus four standard errors, so that a test fails by
chance less than once in 30,000 times.
"""

import numpy as np
import pytest

from bnp_models.posterior.chain_drift import FALSE_ALARMS, MIN_LENGTH, separation, trend


def chains(num_chains, num_draws, share, *, number=1, seed=0):
    """Autoregressive chains [C, S, number]; their autocorrelation time is a share of the run."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num_chains, num_draws, number))
    if np.isinf(share):
        return noise.cumsum(axis=1)
    rho = np.exp(-1 / (share * num_draws)) if share else 0.0
    x = noise.copy()
    for t in range(1, num_draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return x


def most(rate, number):
    return rate + 4 * np.sqrt(rate * (1 - rate) / number)


@pytest.mark.parametrize("num_chains", [1, 2, 4, 8])
@pytest.mark.parametrize("share", [0, 0.1, 1, np.inf])
@pytest.mark.parametrize("num_draws", [MIN_LENGTH, 20])
def test_chains_that_wander_are_seldom_said_to_rise(num_chains, num_draws, share):
    number = 500
    x = chains(num_chains, num_draws, share, number=number)
    alarms = np.mean([trend(x[:, :, i]).p_value < FALSE_ALARMS for i in range(number)])
    assert alarms <= most(0.01 if num_chains > 1 else 0.02, number)


def test_noise_on_slow_waves_is_no_trend():
    """The lag-one autocorrelation of such chains says nothing about their slow part."""
    number = 500
    x = chains(4, 50, 0.5, number=number) + chains(4, 50, 0, number=number, seed=1)
    alarms = np.mean([trend(x[:, :, i]).p_value < FALSE_ALARMS for i in range(number)])
    assert alarms <= most(0.01, number)


@pytest.mark.parametrize(
    "curve", [lambda u: u, lambda u: 1 - np.exp(-3 * u), lambda u: np.log1p(20 * u) / 3]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_twenty_draws_show_that_chains_rise(curve, sign):
    """By ten standard deviations, each from a place of its own and at its own speed."""
    rng = np.random.default_rng(3)
    speed = rng.uniform(0.7, 1.4, (4, 1))
    start = rng.normal(0, 10, (4, 1))
    noise = chains(4, 20, 0.05)[:, :, 0]
    x = start + sign * (20 * speed * curve(np.arange(20) / 20) + noise)
    found = trend(x)
    assert found.p_value < FALSE_ALARMS / 2
    assert (found.sign, found.num_against) == (sign, 0)


def test_one_chain_can_rise_and_opposite_ones_do_not():
    line = np.arange(100.0) / 4 + chains(1, 100, 0)[0, :, 0]
    assert trend(line[None]).p_value < FALSE_ALARMS
    both = trend(np.stack([line, -line]))
    assert both.p_value == 1
    assert trend(np.stack([line] * 4 + [-line])).num_against == 1  # one in five may
    assert trend(np.stack([line] * 4 + [-line])).p_value < FALSE_ALARMS
    assert trend(np.stack([line] * 3 + [-line])).p_value == 1


def test_constant_chains_go_nowhere_and_one_that_jumps_is_no_trend():
    assert trend(np.ones((4, 20))).p_value == 1
    assert trend(np.ones((1, 20), int)).p_value == 1
    x = np.full((4, 20), 7)
    x[0, 10:] = 8
    assert trend(x).p_value == 1
    x[:, 10:] = 8  # a number of topics that grows by one in all chains
    assert trend(x).p_value < FALSE_ALARMS


@pytest.mark.parametrize("num_chains", [2, 4, 8])
@pytest.mark.parametrize("num_draws", [MIN_LENGTH, 20, 100])
@pytest.mark.parametrize(("wander", "share", "rate"), [(True, 0.3, 0.01), (False, 0.05, 0.02)])
def test_chains_in_one_place_are_seldom_said_to_be_apart(
    num_chains, num_draws, wander, share, rate
):
    number = 2000
    for times in (0, share):
        x = chains(num_chains, num_draws, times, number=number)
        for draws in (x, np.exp(x)):
            alarms = (separation(draws, wander=wander) < FALSE_ALARMS).mean()
            assert alarms <= most(rate, number)


def test_chains_of_different_heights_or_spreads_are_apart():
    x = chains(4, 20, 0.05)[:, :, 0]
    assert separation(x) > 0.2
    for apart in (x + np.array([[0], [4], [8], [12]]), x * np.array([[1], [1], [1], [30]])):
        assert separation(apart) < FALSE_ALARMS
    height = np.array([[0], [2], [1], [0]])
    assert separation(x + height, wander=False) < FALSE_ALARMS < separation(x + height)


def test_many_quantities_are_judged_as_each_alone():
    x = chains(3, 12, 0.1, number=4) + np.arange(3)[:, None, None]
    alone = [separation(x[:, :, i]) for i in range(4)]
    np.testing.assert_allclose(separation(x), alone)


def test_constants():
    assert separation(np.full((4, 10), 0.1)) == 1
    assert separation(np.repeat([[7], [7], [8], [7]], 10, axis=1)) == 0
