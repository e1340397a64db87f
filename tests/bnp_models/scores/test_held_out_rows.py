"""Held-out scores of Poisson factor models: exact sums and integrals for rows of few factors."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

import bnp_models as bnp
from bnp_models.base.row_annealing import PoissonRows
from bnp_models.data.sources import Sources
from bnp_models.posterior.arviz_data import make_data
from bnp_models.scores.held_out_rows import (
    expected_shares,
    new_rows,
    predict_rows,
    row_completion,
    row_evidence,
)

STATE = PoissonRows(
    phi=np.array([[1.5, 0.2, 0.0], [0.1, 0.8, 2.0]], np.float32),
    pi=np.array([[0.3, 0.6], [0.9, 0.2]], np.float32),
    background=np.array([0.2, 0.5], np.float32),
    a_w=np.array([1.0, 2.0], np.float32),
    b_w=np.array([0.7, 1.5], np.float32),
)
ROWS = np.array([[0, 0, 0], [3, 0, 1], [1, 2, 6], [0, 4, 0]], np.int32)
SOURCE = np.array([0, 1, 0, 1], np.int32)


def exact(x, j, state, expectation=None, there=(True, True, True)):
    """Probability of a row (or E[f(w)] under prior times likelihood), by quadrature over w."""
    points, weights = np.polynomial.legendre.leggauss(120)
    u = (points + 1) / 2
    w = scipy.stats.gamma(state.a_w[j], scale=1 / state.b_w[j]).ppf(u)
    total = 0.0
    for z in itertools.product([0, 1], repeat=2):
        prior = np.prod([p if on else 1 - p for p, on in zip(state.pi[j], z, strict=True)])
        first, second = (w if on else np.zeros(1) for on in z)
        of_first, of_second = (weights / 2 if on else np.ones(1) for on in z)
        rate = (
            state.background[j]
            + first[:, None, None] * state.phi[0]
            + second[None, :, None] * state.phi[1]
        )
        likelihood = np.exp(scipy.stats.poisson.logpmf(x, rate).sum(axis=-1, where=there))
        if expectation is not None:
            likelihood = likelihood[..., None] * expectation(rate)
        total += prior * np.einsum("a,b,ab...->...", of_first, of_second, likelihood)
    return total


WIDER = STATE._replace(  # a free slot changes nothing
    phi=np.pad(STATE.phi, [(0, 1), (0, 0)]), pi=np.pad(STATE.pi, [(0, 0), (0, 1)])
)


def runs(num_temperatures, copies=2000):
    """Independent estimates of the probability of each row, [4, copies], and the true values."""
    found = row_evidence(
        np.random.default_rng(0),
        np.repeat(ROWS, copies, axis=0),
        WIDER,
        np.repeat(SOURCE, copies),
        num_temperatures=num_temperatures,
        num_particles=1,
    )
    wanted = [exact(x, j, STATE) for x, j in zip(ROWS, SOURCE, strict=True)]
    return np.exp(found).reshape(4, copies), np.array(wanted)


def test_evidence_is_unbiased_and_sharper_with_more_temperatures():
    spreads = []
    for num_temperatures in (3, 30):
        found, wanted = runs(num_temperatures)
        z = (found.mean(axis=1) - wanted) / (found.std(axis=1) / np.sqrt(2000))
        # |z| < 5 at eight places fails by chance once in 2e5 times
        assert np.abs(z).max() < 5
        spreads.append(found.std(axis=1) / wanted)
    assert (spreads[1] < 0.75 * spreads[0]).all()
    assert spreads[1].max() < 1.5


def test_missing_entries_are_integrated_out():
    there = np.array([[True, True, True], [True, False, True], [False, True, True], [False] * 3])
    copies, how = 1000, {"num_temperatures": 20, "num_particles": 1}
    found = row_evidence(
        np.random.default_rng(0),
        np.repeat(np.where(there, ROWS, 0), copies, axis=0),
        WIDER,
        np.repeat(SOURCE, copies),
        np.repeat(there, copies, axis=0),
        **how,
    )
    found = np.exp(found).reshape(4, copies)
    wanted = [exact(x, j, STATE, there=o) for x, j, o in zip(ROWS, SOURCE, there, strict=True)]
    z = (found.mean(axis=1) - wanted)[:3] / (found.std(axis=1)[:3] / np.sqrt(copies))
    # |z| < 5 at three places fails by chance once in 6e5 times
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(found[3], 1.0, rtol=1e-6)


def test_draws_from_the_prior_are_unbiased_and_those_given_the_row_count_it_twice():
    rows, source = np.repeat(ROWS, 500, axis=0), np.repeat(SOURCE, 500)
    found = {
        method: np.exp(
            row_evidence(
                np.random.default_rng(0), rows, WIDER, source,
                method=method, num_temperatures=40, num_particles=1,
            )
        ).reshape(4, 500)
        for method in ("prior", "eq32")
    }  # fmt: skip
    for x, j, prior, twice in zip(ROWS, SOURCE, found["prior"], found["eq32"], strict=True):
        once = exact(x, j, STATE)

        def likelihood(rate, x=x):
            return np.exp(scipy.stats.poisson.logpmf(x, rate).sum(axis=-1, keepdims=True))

        wanted = np.array([once, exact(x, j, STATE, likelihood)[0] / once])
        both = np.stack([prior, twice])
        z = (both.mean(axis=1) - wanted) / (both.std(axis=1) / np.sqrt(500))
        # eight places, once in 2e5
        assert np.abs(z).max() < 5


def test_expected_shares_are_those_of_the_posterior():
    copies = 400
    found = expected_shares(
        np.random.default_rng(1),
        np.repeat(ROWS, copies, axis=0),
        WIDER,
        np.repeat(SOURCE, copies),
        num_warmup=30,
        num_kept=30,
        num_particles=1,
    ).reshape(4, copies, 3)
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-5)
    for x, j, shares in zip(ROWS, SOURCE, found, strict=True):
        rate = exact(x, j, STATE, lambda rate: rate / rate.sum(axis=-1, keepdims=True))
        wanted = rate / exact(x, j, STATE)
        z = (shares.mean(axis=0) - wanted) / (shares.std(axis=0) / np.sqrt(copies))
        # twelve places, once in 1e5; runs are short, so this sees a start that is not forgotten
        assert np.abs(z).max() < 5


@pytest.fixture
def fit():
    """A fit with two chains of two states, in which two of three factors are in use."""
    sources = Sources.from_arrays([np.ones((3, 3), int), np.ones((2, 3), int)], names=["a", "b"])
    z = np.zeros((2, 2, 5, 3), np.uint8)
    z[..., 0, 0] = z[..., 3:, 2] = 1
    scale = np.arange(1.0, 5.0).reshape(2, 2, 1, 1)
    phi = np.array([[1.5, 0.2, 0.0], [9.0, 9, 9], [0.1, 0.8, 2.0]]) * scale
    states = {
        "z": z,
        "phi": phi,
        "beta": np.broadcast_to([0.5, 0.3, 0.2], (2, 2, 3)),
        "alpha": np.broadcast_to([2.0, 3.0], (2, 2, 2)),
        "background": np.broadcast_to([0.2, 0.5], (2, 2, 2)),
        "b_w": np.broadcast_to([0.7, 1.5], (2, 2, 2)),
    }
    dims = {
        "z": ("row", "factor"),
        "phi": ("factor", "feature"),
        "beta": ("factor",),
        "alpha": ("source",),
        "background": ("source",),
        "b_w": ("source",),
    }
    data = make_data({"states": states}, dims=dims)
    return SimpleNamespace(
        model=bnp.PoissonGammaFactorAnalysis(a_w=(1.0, 2.0)), dataset=sources, data=data
    )


def test_states_of_a_fit(fit):
    states = list(new_rows(fit))
    assert len(states) == 4
    for number, state in enumerate(states, 1):
        assert state.phi.shape == (8, 3)  # padded
        np.testing.assert_allclose(state.phi[:2], number * STATE.phi, rtol=1e-6)
        assert not state.phi[2:].any()
        assert not state.pi[:, 2:].any()
        np.testing.assert_allclose(state.background, [0.2, 0.5], rtol=1e-6)
        np.testing.assert_allclose(state.b_w, [0.7, 1.5], rtol=1e-6)


def test_probabilities_of_use_have_their_law(fit):
    pi = np.stack([state.pi[:, :2] for seed in range(100) for state in new_rows(fit, seed=seed)])
    # alpha beta + uses and alpha (1 - beta) + other rows, by source and factor
    on = np.array([[2 * 0.5 + 1, 2 * 0.2 + 0], [3 * 0.5 + 0, 3 * 0.2 + 2]])
    off = np.array([[2 * 0.5 + 2, 2 * 0.8 + 3], [3 * 0.5 + 2, 3 * 0.8 + 0]])
    for j, k in itertools.product(range(2), repeat=2):
        law = scipy.stats.beta(on[j, k], off[j, k])
        assert scipy.stats.kstest(pi[:, j, k], law.cdf).pvalue > 1e-6


def test_rows_of_a_fit(fit):
    test = Sources.from_arrays([[[0, 1, 9], [9, 1, 0]]], names=["b"])
    score = predict_rows(fit, test, num_temperatures=20, num_particles=2000)
    assert score.state_log_prob.shape == (4, 2)
    mean = np.log(np.exp(score.state_log_prob).mean(axis=0))
    np.testing.assert_allclose(score.row_log_prob, mean)
    assert score.log_prob == pytest.approx(mean.mean())
    joint = np.log(np.exp(score.state_log_prob.sum(axis=1)).mean()) / 2
    assert score.joint_log_prob == pytest.approx(joint)
    for state, found in zip(new_rows(fit), score.state_log_prob, strict=True):
        two = state._replace(phi=state.phi[:2], pi=state.pi[:, :2])
        wanted = [np.log(exact(x, 1, two)) for x in test.values]
        # at 20 temperatures one particle is off by less than 1.5 (relative sd), so 5 sd are 0.17
        np.testing.assert_allclose(found, wanted, atol=0.17)
    assert score.error_rows == pytest.approx(mean.std(ddof=1) / np.sqrt(2))
    assert np.isfinite([score.error_states, score.error_chains]).all()
    assert str(score).startswith(f"{score.log_prob:.2f} nats per row over 2 rows; standard errors")


def test_completion_is_between_its_bounds(fit):
    # what is left of a row whose words are those of the second factor, mostly one of them
    test = Sources.from_arrays([[[0, 40, 100]] * 4], names=["b"])
    perplexity = row_completion(fit, test)
    share = np.array([0, 40, 100]) / 140
    entropy = -(share[1:] * np.log(share[1:])).sum()
    assert np.exp(entropy) * 0.98 < perplexity < 2.2
    assert perplexity == row_completion(fit, test)


def test_bad_input_is_refused_by_name(fit):
    good = Sources.from_arrays([[[1, 2, 3]]], names=["a"])
    for test, options, message in (
        (
            Sources.from_arrays([[[1, 2]]], names=["a"]),
            {},
            "'2' is in those of the training data but not in feature_names of the new rows",
        ),
        (good.pooled("c"), {}, "source_names has 'c'"),
        (Sources.from_arrays([[[0.5] * 3]], names=["a"]), {}, "data must hold counts"),
        (
            good,
            {"method": "exact"},
            "method must be one of .*'ais', 'eq32', 'prior'.*, got 'exact'",
        ),
        (good, {"num_particles": 0}, "num_particles must be an integer of at least 1, got 0"),
        (good, {"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            predict_rows(fit, test, **options)
    with pytest.raises(ValueError, match="test has too few counts"):
        row_completion(fit, Sources.from_arrays([[[0] * 3]], names=["a"]))
    fit.data = make_data({"posterior": {"x": np.zeros((1, 2))}})
    with pytest.raises(ValueError, match="keep_states must be positive"):
        predict_rows(fit, good)
