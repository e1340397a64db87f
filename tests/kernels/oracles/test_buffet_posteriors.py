"""Exact posteriors of the two models with an Indian buffet process: tables, identities, limits."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

from bnp_models.testing.enumeration import gamma_rule
from oracles import buffet_posteriors, buffet_tilts

# ---- numbers of other programs, all digits of them

# pairs of tokens 01, 02, 03, 04, 12, 13, 14, 23, 24, 34
FOCUSED = [
    pytest.param(
        {"alpha": 2, "strength_shape": 1.5},
        {
            "coassigned": [
                0.586567, 0.359208, 0.359208, 0.264859, 0.236198, 0.236198, 0.365352, 0.808114,
                0.187674, 0.187674,
            ],
            "topics": [0.072438, 0.356843, 0.434330, 0.127408, 0.008982],
            "strength_0": 1.543745, "stick_0": 0.517495, "strength_sum": 3.811382,
            "alpha": 2, "strength_shape": 1.5, "log_evidence": -10.053309,
        },
        id="fixed",
    ),
    pytest.param(
        {"alpha": gamma_rule(2.0, 1.0), "strength_shape": gamma_rule(5.0, 10.0)},
        {
            "coassigned": [
                0.569811, 0.372848, 0.372848, 0.274009, 0.255048, 0.255048, 0.366243, 0.789553,
                0.206135, 0.206135,
            ],
            "topics": [0.097411, 0.327573, 0.398079, 0.158137, 0.018800],
            "strength_0": 1.077334, "stick_0": 0.546439, "strength_sum": 2.514084,
            "alpha": 2.975373, "strength_shape": 0.558337, "log_evidence": -10.456058,
        },
        id="sampled",
    ),
]  # fmt: skip
SWITCHED = [
    pytest.param(
        2,
        {
            "coassigned": [
                0.698480, 0.802670, 0.132338, 0.132338, 0.654059, 0.210062, 0.210062, 0.127092,
                0.127092, 0.896476,
            ],
            "topics": [0.084473, 0.589051, 0.289674, 0.035534, 0.001267],
            "strength_0": 1.683931, "stick_0": 0.501213, "group_strength_0": 2.125910,
            "alpha": 2, "log_evidence": -9.050058,
        },
        id="fixed",
    ),
    pytest.param(
        gamma_rule(2.0, 1.0),
        {
            "coassigned": [
                0.646294, 0.758248, 0.117581, 0.117581, 0.596209, 0.189514, 0.189514, 0.112886,
                0.112886, 0.866411,
            ],
            "topics": [0.073886, 0.513135, 0.338255, 0.069703, 0.005021],
            "strength_0": 1.675188, "stick_0": 0.498309, "group_strength_0": 2.092762,
            "alpha": 2.943258, "log_evidence": -9.131497,
        },
        id="sampled",
    ),
]  # fmt: skip


def assert_means(posterior, expected):
    for name, value in expected.items():
        found = posterior.log_evidence if name == "log_evidence" else posterior.mean(name)
        np.testing.assert_allclose(found, value, atol=6e-7, rtol=0, err_msg=name)


@pytest.mark.parametrize(("options", "expected"), FOCUSED)
def test_enumeration_of_focused_topics(options, expected):
    docs = [[0, 1], [0, 0], [1]]
    assert_means(buffet_posteriors.focused_topics(docs, 2, beta=0.5, **options), expected)


@pytest.mark.parametrize(("alpha", "expected"), SWITCHED)
def test_enumeration_of_switched_topics(alpha, expected):
    options = {"epsilon": 0.5, "strength_shape": 5, "strength_scale": 0.3, "beta": 0.5}
    docs = [[0, 1], [0], [1, 1]]
    found = buffet_posteriors.switched_topics(docs, [0, 0, 1], 2, alpha=alpha, **options)
    assert_means(found, expected)
    # the same tasks with other numbers
    docs = [docs[2], *docs[:2]]
    found = buffet_posteriors.switched_topics(docs, [0, 1, 1], 2, alpha=alpha, **options)
    np.testing.assert_allclose(found.mean("topics"), expected["topics"], atol=6e-7)


# ---- identities


def test_evidence_of_one_token():
    alpha, shape, rate = 1.7, 0.6, 1 + math.log(2)
    expected = alpha * shape * rate ** -(shape + 1) / 2 * math.exp(-alpha * (1 - rate**-shape))
    options = {"alpha": alpha, "strength_shape": shape, "beta": 1.0}
    found = buffet_posteriors.focused_topics([[0]], 1, **options)
    assert found.log_evidence == pytest.approx(math.log(expected), abs=1e-12)
    assert found.mean("strength_0") == pytest.approx((shape + 1) / rate, abs=1e-12)
    # an atom that no token of the second document takes: stick with weight 1 - pi q
    second = buffet_posteriors.focused_topics([[0], []], 1, **options)
    twice = 1 + 2 * math.log(2)
    both = (rate ** -(shape + 1) + twice ** -(shape + 1)) / 2
    unused = (1 - rate**-shape) + (1 - twice**-shape) / 2
    expected = math.log(alpha * shape * both / 2) - alpha * unused
    assert second.log_evidence == pytest.approx(expected, abs=1e-12)


# Fractions with R of about 80 cancel: their sum is smaller than each of them by about 1e5.
@pytest.mark.parametrize("strength", [(0.5, 2, 1e-10), (5, 0.3, 1e-10), (40, 2, 1e-7)])
@pytest.mark.parametrize("group", [[0, 0, 0, 2], [0, 0, 1, 2], [1, 0, 0, 2]])
def test_probabilities_of_all_assignments_sum_to_one(group, strength):
    # the only corpus with these lengths and one word; the last task has no words
    found = buffet_posteriors.switched_topics(
        [[0], [0, 0], [0], []], group, 1, alpha=gamma_rule(2.0, 1.0), epsilon=0.5, beta=1.0,
        strength_shape=strength[0], strength_scale=strength[1], size_model="none",
    )  # fmt: skip
    assert found.log_evidence == pytest.approx(0, abs=strength[2])
    for name, mean in found.means().items():
        assert np.isfinite(mean).all(), name


def test_probability_of_a_size_does_not_depend_on_its_documents():
    found = [
        buffet_posteriors.switched_topics(
            [*docs, [0]], [0] * len(docs) + [1], 1, alpha=1.3, epsilon=0.6, strength_shape=0.7,
            strength_scale=1.5, beta=1.0,
        )
        for docs in ([[0] * 4], [[0, 0], [0, 0]], [[0], [0], [0], [0]], [[0, 0, 0], [], [0]])
    ]  # fmt: skip
    np.testing.assert_allclose([p.log_evidence for p in found], found[0].log_evidence, atol=1e-12)
    # but the assignments depend on them
    assert found[1].mean("one_topic") < found[0].mean("one_topic") - 0.01


def test_one_document_and_equal_strengths_is_the_focused_model():
    # strengths with a small relative variance: their differences are of this order
    shape, variance, options = 0.8, 1e-5, {"alpha": 1.2, "beta": 0.4}
    docs = [[0, 1, 1, 0]]
    expected = buffet_posteriors.focused_topics(docs, 2, strength_shape=shape, **options)
    found = buffet_posteriors.switched_topics(
        docs, [0], 2, epsilon=1, strength_shape=1 / variance, strength_scale=shape * variance,
        **options,
    )  # fmt: skip
    np.testing.assert_allclose(found.log_joint, expected.log_joint, atol=10 * variance)
    strength = found.mean("group_strength_0")
    assert strength == pytest.approx(expected.mean("strength_0"), abs=10 * variance)
    assert found.mean("stick_0") == pytest.approx(expected.mean("stick_0"), abs=10 * variance)


# ---- tilts


def test_partial_fractions():
    multiplicities, zeros = (3, 1, 0, 2), (4, 5, 6)
    terms = buffet_tilts.partial_fractions(multiplicities, zeros)
    for r in (0.3, 2.0, 7.5):
        expected = math.prod(r + i for i in zeros)
        expected /= math.prod((r + j) ** m for j, m in enumerate(multiplicities))
        assert sum(c / (r + j) ** i for j, i, c in terms) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("lengths", [[], [0], [3], [2, 3, 0, 2], [1, 1, 1, 1]])
def test_tilts_of_a_task(lengths, sized):
    lengths = np.array(lengths, int)
    tilts = buffet_tilts.group_tilts(lengths, sized, 5.0, 1.0)
    for r in (0.6, 2.5):
        n = lengths.sum()
        expected = (gammaln(r) - gammaln(r + lengths)).sum()
        if sized:
            expected += gammaln(r + n) - gammaln(r) - r * math.log(2)
        logs = tilts.log_size + tilts.num_docs * tilts.log_rate
        terms = np.exp(logs - r * np.expm1(tilts.log_rate))
        assert terms.sum() == pytest.approx(math.exp(expected), rel=1e-9)


# ---- bad input


@pytest.mark.parametrize(
    ("docs", "group", "size_model", "message"),
    [
        ([[0], [0], [0]], [0, 1, 2], "none", "at most two tasks"),
        ([[]], [0], "none", "at least one word"),
        ([[0]], [0], "poisson", 'size_model must be "task_nb" or "none", got \'poisson\''),
    ],
)
def test_switched_topics_refuse(docs, group, size_model, message):
    with pytest.raises(ValueError, match=message):
        buffet_posteriors.switched_topics(
            docs, group, 1, alpha=1, epsilon=0.5, strength_shape=1, strength_scale=1, beta=1,
            size_model=size_model,
        )  # fmt: skip
