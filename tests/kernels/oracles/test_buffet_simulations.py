"""Draws given sizes have the exact law; numbers of atoms and moments have closed forms."""

import math

import numpy as np
import pytest

from bnp_models.testing import statistics, token_corpora
from bnp_models.testing.enumeration import gamma_rule, token_quantities
from oracles import buffet_posteriors, buffet_simulations

SIZE = 30_000
LOG_2 = math.log(2)


def as_rule(prior):
    return gamma_rule(*prior) if isinstance(prior, tuple) else prior


def quantities(draws):
    of_tokens = token_quantities(draws.z)
    return {
        "alpha": draws.alpha,
        "strength_0": draws.strength[:, 0],
        "stick_0": draws.sticks[:, 0],
        "topics": of_tokens["topics"][:, :3],  # too few draws have more
        "coassigned": of_tokens["coassigned"],
    }


def expected_means(prior, found):
    return {**prior.means(*found), "topics": prior.mean("topics")[:3]}


def check_numbers(draws):
    """Tokens number the topics by first appearance, and slots behind the topics are empty."""
    assert {len(x) for x in draws} == {SIZE}
    if draws.z.shape[1]:
        np.testing.assert_array_equal(token_corpora.first_appearance(draws.z), draws.z)
    np.testing.assert_array_equal(draws.sticks > 0, draws.strength > 0)
    shown = draws.sticks > 0
    assert (np.diff(1.0 * shown, axis=1) <= 0).all()  # no gaps
    return shown


# ---- against enumeration: with a single word the posterior is the prior given the sizes


@pytest.mark.parametrize(
    ("lengths", "alpha", "strength_shape"),
    [
        ((2, 1, 2), (2.0, 1.0), (5.0, 10.0)),
        ((3, 0, 2), 2.0, 1.5),
        ((1, 2, 0, 2), (2.0, 2.0), (3.0, 2.0)),
    ],
)
def test_focused_topics_against_enumeration(lengths, alpha, strength_shape):
    draws = buffet_simulations.focused_topics(
        np.random.default_rng(1), SIZE, lengths, alpha=alpha, strength_shape=strength_shape
    )
    used = np.arange(sum(lengths)) <= draws.z.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(check_numbers(draws), used)
    prior = buffet_posteriors.focused_topics(
        [[0] * n for n in lengths], 1, beta=1.0,
        alpha=as_rule(alpha), strength_shape=as_rule(strength_shape),
    )  # fmt: skip
    found = quantities(draws) | {
        "strength_shape": draws.strength_shape,
        "strength_sum": draws.strength.sum(axis=1),
    }
    statistics.one_sample("focused topics", found, expected_means(prior, found)).check()


@pytest.mark.parametrize(
    ("lengths", "group", "size_model", "options"),
    [
        ((2, 1, 2), (0, 0, 1), "task_nb", ((2.0, 1.0), 0.5, 5.0, 0.3)),
        ((2, 1, 2, 0, 1), (0, 1, 0, 2, 1), "task_nb", (1.5, 0.7, 2.0, 1.0)),
        ((2, 1, 2), (0, 0, 1), "none", ((2.0, 1.0), 0.5, 2.0, 0.3)),
        ((2, 1, 2, 0), (0, 0, 1, 2), "none", (2.0, 1.0, 1.0, 1.0)),
    ],
)
def test_switched_topics_against_enumeration(lengths, group, size_model, options):
    alpha, *others = options
    options = dict(
        zip(("epsilon", "strength_shape", "strength_scale"), others, strict=True),
        size_model=size_model,
    )
    doc = np.repeat(np.arange(len(lengths)), lengths)
    draws = buffet_simulations.switched_topics(
        np.random.default_rng(2), SIZE, doc, group, alpha=alpha, **options
    )
    shown = check_numbers(draws)
    np.testing.assert_array_equal(draws.on, draws.group_strength > 0)
    np.testing.assert_array_equal(draws.on.any(axis=1), shown)
    used = np.arange(shown.shape[1]) <= draws.z.max(axis=1, keepdims=True)
    assert shown[used].all()
    for t, d in enumerate(doc):  # topics with tokens are on in the tasks of the tokens
        assert draws.on[np.arange(SIZE), group[d], draws.z[:, t]].all()
    prior = buffet_posteriors.switched_topics(
        [[0] * n for n in lengths], group, 1, alpha=as_rule(alpha), beta=1.0, **options
    )
    found = quantities(draws) | {
        "group_strength_0": draws.group_strength[:, 0, 0],
        "num_on": (draws.on & used[:, None]).sum(axis=(1, 2)),
    }
    statistics.one_sample("switched topics", found, expected_means(prior, found)).check()


# ---- closed forms


def test_focused_topics_of_few_tokens():
    rng, shape = np.random.default_rng(3), 0.6
    draws = buffet_simulations.focused_topics(
        rng, SIZE, (1,), alpha=(2.0, 1.5), strength_shape=shape
    )
    found = quantities(draws)
    unused = 1 - (1 + LOG_2) ** -shape
    expected = {
        "alpha": 3 / (1.5 + unused),
        "strength_0": (shape + 1) / (1 + LOG_2),
        "stick_0": 1 / 2,
    }
    statistics.one_sample("one token", found, expected).check()
    # no token at all, and a prior that is a function
    draws = buffet_simulations.focused_topics(
        rng, SIZE, (0, 0), alpha=lambda rng, size: rng.gamma(2.0, 1 / 1.5, size),
        strength_shape=shape,
    )  # fmt: skip
    assert draws.z.shape == draws.sticks.shape == draws.strength.shape == (SIZE, 0)
    unused += (1 - (1 + 2 * LOG_2) ** -shape) / 2
    expected = {"alpha": 2 / (1.5 + unused)}
    statistics.one_sample("no tokens", {"alpha": draws.alpha}, expected).check()


def test_atoms_of_switched_topics():
    # without sizes and tokens: the process itself
    alpha, epsilon, shape, scale, num_groups = 2.5, 0.6, 1.5, 0.4, 3
    draws = buffet_simulations.switched_topics(
        np.random.default_rng(4), SIZE, np.zeros(0, int), range(num_groups), alpha=alpha,
        epsilon=epsilon, strength_shape=shape, strength_scale=scale, size_model="none",
    )  # fmt: skip
    shown = check_numbers(draws)
    atoms = shown.sum(axis=1)
    found = {
        "atoms": atoms,
        "atoms squared": atoms**2,
        "on": draws.on.sum(axis=2),
        "on in both": (draws.on[:, 0] & draws.on[:, 2]).sum(axis=1),
        "stick": draws.sticks.sum(axis=1),
        "strength": draws.strength.sum(axis=1),
        "group strength": draws.group_strength.sum(axis=2),
        "both group strengths": (draws.group_strength[:, 0] * draws.group_strength[:, 2]).sum(1),
    }
    off = 1 - epsilon
    number = alpha * sum((1 - off**j) / j for j in range(1, num_groups + 1))
    power = num_groups + 1
    expected = {
        "atoms": number,
        "atoms squared": number + number**2,
        "on": np.full(num_groups, alpha * epsilon),
        "on in both": alpha * epsilon**2 / 2,
        "stick": alpha * (1 - (1 - off**power) / (epsilon * power)),
        "strength": number * shape * scale,
        "group strength": np.full(num_groups, alpha * epsilon * shape * scale),
        "both group strengths": alpha * epsilon**2 / 2 * shape * (shape + 1) * scale**2,
    }
    statistics.one_sample("atoms", found, expected).check()


def test_task_without_tokens():
    epsilon, shape, scale = 0.7, 2.0, 1.5
    draws = buffet_simulations.switched_topics(
        np.random.default_rng(5), SIZE, np.zeros(0, int), (0,), alpha=(2.0, 1.0), epsilon=epsilon,
        strength_shape=shape, strength_scale=scale,
    )  # fmt: skip
    left = (1 + scale * math.log(1 + LOG_2)) ** -shape  # E (1 + log 2)^-strength
    alpha = 2 / (1 + epsilon * (1 - left))
    found = {"alpha": draws.alpha, "atoms": draws.on[:, 0].sum(axis=1)}
    statistics.one_sample(
        "no tokens", found, {"alpha": alpha, "atoms": alpha * epsilon * left}
    ).check()


def test_draws_depend_on_the_generator_only():
    def draw():
        rng = np.random.default_rng(6)
        return buffet_simulations.focused_topics(
            rng, 50, (2, 1), alpha=(2.0, 1.0), strength_shape=1.0
        )

    for one, other in zip(draw(), draw(), strict=True):
        np.testing.assert_array_equal(one, other)


# ---- bad input


def test_rare_sizes_are_refused():
    with pytest.raises(ValueError, match="too rare under the prior: 0 of 1000000 draws"):
        buffet_simulations.focused_topics(
            np.random.default_rng(7), 10, (30, 30), alpha=1e-9, strength_shape=1.0
        )


def test_unknown_size_model_is_refused():
    with pytest.raises(ValueError, match='size_model must be "task_nb" or "none", got \'poisson\''):
        buffet_simulations.switched_topics(
            np.random.default_rng(8), 1, np.zeros(1, int), (0,), alpha=1.0, epsilon=0.5,
            strength_shape=1.0, strength_scale=1.0, size_model="poisson",
        )  # fmt: skip
