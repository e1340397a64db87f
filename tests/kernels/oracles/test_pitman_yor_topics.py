"""The enumerator against printed posteriors that another program computed, and the simulator."""

import numpy as np
import pytest
from scipy import stats

from bnp_models.testing import enumeration
from oracles import pitman_yor_topics
from oracles.pitman_yor_topics import beta_rule, log_stirling, seat_tokens

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; seeds are fixed
DOCS = [[0, 0, 1], [0, 2, 2]]
# uniform base: fixed, b sampled, all sampled; the same with a Dirichlet base
PRINTED = {
    "01": [0.800366, 0.798103, 0.745367, 0.847892, 0.846810, 0.795516],
    "02": [0.726401, 0.726094, 0.680720, 0.700678, 0.700550, 0.656301],
    "03": [0.539698, 0.540823, 0.541305, 0.607145, 0.607735, 0.600133],
    "04": [0.410058, 0.416609, 0.440605, 0.325671, 0.329501, 0.370129],
    "23": [0.474008, 0.480367, 0.483754, 0.457888, 0.462016, 0.462952],
    "24": [0.397502, 0.409454, 0.443847, 0.293834, 0.301282, 0.367853],
    "34": [0.695905, 0.697158, 0.658818, 0.608631, 0.609685, 0.593721],
    "45": [0.809788, 0.807678, 0.753071, 0.883095, 0.881027, 0.820228],
    "topics": [1.860390, 1.855177, 1.869821, 1.915215, 1.912107, 1.908740],
    "tables": [4.964662, 5.030984, 5.295969, 4.985729, 5.046309, 5.295050],
    "tables of word 0": [2.304664, 2.348147, 2.517817, 2.330326, 2.371920, 2.526279],
    "tables of word 2": [1.659999, 1.682837, 1.778153, 1.655403, 1.674390, 1.768771],
    "evidence": [-6.989469, -6.987921, -6.902937, -7.468669, -7.468959, -7.320605],
    "next word": [(0.448543, 0.270179, 0.281277), (), (), (0.512524, 0.255349, 0.232127), (), ()],
    "concentration": [1.5, 2.114454, 2.084882, 1.5, 2.108073, 2.081344],
    "discount": [0.4, 0.4, 0.557711, 0.4, 0.4, 0.554773],
    "alpha": [0.5, 0.5, 1.005218, 0.5, 0.5, 1.014907],
    "beta": [0, 0, 0, 0.8, 0.8, 1.786862],
}
GROUPED = [[0, 0], [1], [0, 2]]
TRANSFORMS = np.array(
    [
        [[0.7, 0.2, 0.0], [0.3, 0.6, 0.3], [0.0, 0.2, 0.7]],
        [[0.5, 0.0, 0.1], [0.5, 0.9, 0.0], [0.0, 0.1, 0.9]],
    ]
)
# transforms given: fixed, b sampled, all sampled; the same with the identity
PRINTED_OF_GROUPS = {
    "01": [0.862232, 0.861559, 0.806330, 0.884101, 0.883783, 0.819162],
    "02": [0.387396, 0.386836, 0.413374, 0.292786, 0.293094, 0.353367],
    "03": [0.571899, 0.571755, 0.547499, 0.686926, 0.686910, 0.615186],
    "04": [0.401599, 0.400386, 0.430077, 0.452009, 0.450904, 0.473007],
    "23": [0.464304, 0.466459, 0.478884, 0.354246, 0.356036, 0.411113],
    "24": [0.515843, 0.518108, 0.509138, 0.457856, 0.459825, 0.464781],
    "34": [0.560067, 0.558896, 0.600325, 0.536115, 0.534765, 0.593060],
    "topics": [1.921740, 1.921354, 1.912557, 1.948499, 1.947874, 1.927658],
    "tables": [4.632892, 4.643574, 4.720730, 4.685199, 4.694515, 4.753597],
    "label 0": [2.568237, 2.579494, 2.590313, 2.685199, 2.694515, 2.753597],
    "label 1": [0.727341, 0.727431, 0.802636, 1.000000, 1.000000, 1.000000],
    "label 2": [1.337313, 1.336650, 1.327781, 1.000000, 1.000000, 1.000000],
    "evidence": [-6.217537, -6.221827, -6.203492, -5.971456, -5.974799, -5.876168],
    "next word": [(0.543532, 0.306688, 0.149781), (), (), (0.636169, 0.207174, 0.156657), (), ()],
    "concentration": [1.5, 2.041421, 2.035858, 1.5, 2.047055, 2.040588],
    "discount": [0.4, 0.4, 0.520963, 0.4, 0.4, 0.525180],
    "beta": [0.6, 0.6, 1.571264, 0.6, 0.6, 1.714225],
    "alphas": [(0.5, 0.8), (0.5, 0.8), (0.973663, 1.025581), (0.5, 0.8), (0.5, 0.8),
               (0.970429, 1.027411)],
}  # fmt: skip


def summary(posterior, num_tokens):
    means = posterior.means()
    first, second = np.triu_indices(num_tokens, 1)
    found = {f"{i}{j}": x for i, j, x in zip(first, second, means["coassigned"], strict=True)}
    return found | {
        "topics": means["topics"] @ np.arange(1, num_tokens + 1),
        "tables": means["tables"],
        "tables of word 0": means["word_tables"][0],
        "tables of word 2": means["word_tables"][2],
        "evidence": posterior.log_evidence,
        "next word": means.get("next_word", ()),
        "concentration": means["concentration"],
        "discount": means["discount"],
        "alpha": means["alpha"][0],
        "alphas": means["alpha"],
        "beta": means.get("beta", 0),
    } | {f"label {v}": x for v, x in enumerate(means.get("global_tables", ()))}  # fmt: skip


def settings(which, beta):
    gamma = enumeration.gamma_rule
    found = {"alpha": 0.5, "discount": 0.4, "concentration": 1.5, "beta": beta}
    if which > 0:
        found["concentration"] = gamma(2.0, 1.0)
    if which > 1:
        found |= {"alpha": gamma(2.0, 2.0), "discount": beta_rule(1.0, 1.0)}
        found["beta"] = None if beta is None else gamma(1.5, 1.0)
    return found


@pytest.mark.parametrize("column", range(6))
def test_printed_posteriors(column):
    options = settings(column % 3, None if column < 3 else 0.8)
    posterior = pitman_yor_topics.pitman_yor_topics(DOCS, 3, 2, **options)
    found = summary(posterior, 6)
    for name, printed in PRINTED.items():
        np.testing.assert_allclose(found[name], printed[column], atol=6e-7, err_msg=name)


@pytest.mark.parametrize("column", range(6))
def test_printed_posteriors_of_groups(column):
    """Those of the differential topic model, with fixed alphas .5 and .8 of the groups."""
    options = settings(column % 3, 0.6)
    if column % 3 < 2:
        options["alpha"] = [[0.5], [0.8]]
    posterior = pitman_yor_topics.pitman_yor_topics(
        GROUPED, 3, 2, group=[0, 0, 1], transforms=TRANSFORMS if column < 3 else None, **options
    )
    found = summary(posterior, 5)
    for name, printed in PRINTED_OF_GROUPS.items():
        np.testing.assert_allclose(found[name], printed[column], atol=6e-7, err_msg=name)


def test_without_a_discount_it_is_lda():
    b = 1.8
    one = pitman_yor_topics.pitman_yor_topics(DOCS, 3, 2, alpha=0.5, discount=0.0, concentration=b)
    lda = enumeration.finite_topics(DOCS, 3, 2, (0.5, 0.5), b / 3)
    np.testing.assert_allclose(one.log_joint, lda.log_joint, rtol=1e-12)


def test_beta_rule():
    rule = beta_rule(2.0, 3.5)
    weights = np.exp(rule.log_weights)
    law = stats.beta(2.0, 3.5)
    for power in range(1, 8):
        np.testing.assert_allclose(weights @ rule.nodes**power, law.moment(power), rtol=1e-10)


def test_numbers_without_a_discount():
    np.testing.assert_allclose(
        log_stirling(8, 0.0)[1:, 1:], enumeration.log_stirling(8)[1:, 1:], rtol=1e-12
    )


@pytest.mark.parametrize("column", ["uniform", "dirichlet", "groups"])
def test_simulator_against_enumerator(column):
    """Probabilities of a few words and tables, from both."""
    size, rng = 200_000, np.random.default_rng(0)
    group, transforms, beta = None, None, None
    if column != "uniform":
        beta = 0.6
    if column == "groups":
        group, transforms = np.array([0, 0, 1, 1]), TRANSFORMS
    z = np.zeros((size, 4), int)
    word, tables, _ = seat_tokens(
        rng, z, num_words=3, discount=np.full(size, 0.4), concentration=np.full((size, 1), 1.5),
        beta=None if beta is None else np.full(size, beta), group=group, transforms=transforms,
    )  # fmt: skip
    docs = [[0, 1, 0, 2], [0, 0, 0, 0], [2, 0, 2, 1]]
    for words in docs:
        exact = pitman_yor_topics.pitman_yor_topics(
            [words[:2], words[2:]], 3, 1, alpha=1.0, discount=0.4, concentration=1.5, beta=beta,
            group=None if group is None else [0, 1], transforms=transforms,
        )  # fmt: skip
        here = (word == words).all(axis=1)
        p = np.exp(exact.log_evidence)
        z_score = (here.mean() - p) / np.sqrt(p * (1 - p) / size)
        assert abs(z_score) < stats.norm.isf(P_VALUE / 2)
        of_here = tables[here].sum(axis=(1, 2, 3))
        difference = of_here.mean() - exact.mean("tables")
        assert abs(difference) <= 4.9 * of_here.std() / np.sqrt(here.sum())
