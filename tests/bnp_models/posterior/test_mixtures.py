"""Mixtures that a model makes of its kept states, or that a user made; rows of groups by name."""

import numpy as np
import pytest

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw, SwitchedLaw
from bnp_models.base.topics import Topics, finite_topics
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import (
    Mixtures,
    MixtureStates,
    OneRow,
    check_words,
    document_rows,
    mixture_states,
    one_by_one,
)

WORD = np.array([0, 0, 2, 1])
CORPUS = Corpus.from_ids([[0, 0], [2, 1]], vocabulary=["a", "b", "c"])
Z = np.array([[[0, 1, 1, 0], [1, 1, 1, 1]], [[0, 0, 0, 0], [1, 0, 1, 0]]], np.uint8)
EACH = np.ones((2, 2))
STATES = {"z": Z, "alpha": 0.5 * EACH, "beta": [[0.1, 0.2], [0.3, 0.4]], "draw": [10, 20]}
MODEL = bnp.LDA(2)


def made(**changes):
    return mixture_states(MODEL, STATES | changes, CORPUS)


def test_each_state_is_what_the_model_says():
    states = made()
    assert len(states) == 4
    mixture = states[3]
    expected = finite_topics(Z[1, 1], WORD, num_words=3, num_topics=2, alpha=0.5, beta=0.4)
    np.testing.assert_array_equal(mixture.phi[0], expected.phi)
    np.testing.assert_array_equal(mixture.weights[0], expected.weights)
    assert (mixture.chain, mixture.draw) == (np.array([1]), np.array([20]))
    np.testing.assert_array_equal(states[-1].phi, mixture.phi)
    assert mixture.vocabulary == ("a", "b", "c")
    with pytest.raises(IndexError):
        states[4]


def test_states_of_a_rooted_model():
    root = {"root_weights": np.full((2, 2, 2), 0.4), "unused_weight": 0.2 * EACH}
    states = mixture_states(bnp.HDPLDA(), STATES | root | {"alpha": 2 * EACH}, CORPUS)
    np.testing.assert_allclose(states[2].weights, [[[0.8, 0.8, 0.4]]], rtol=1e-6)


def test_states_can_be_used_again_and_stacked():
    states = made()
    stacked = states.stack()
    assert stacked.phi.shape == (4, 1, 3, 2)
    assert stacked.vocabulary == ("a", "b", "c")
    np.testing.assert_array_equal(stacked.chain, [0, 0, 1, 1])
    np.testing.assert_array_equal(stacked.draw, [10, 20, 10, 20])
    for _ in range(2):
        parts = list(one_by_one(states))
        assert [len(part.phi) for part in parts] == [1, 1, 1, 1]
        np.testing.assert_array_equal(np.concatenate([p.phi for p in parts]), stacked.phi)
    np.testing.assert_array_equal(np.concatenate([p.phi for p in one_by_one(stacked)]), stacked.phi)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"z": Z[:, 0]}, r"states\['alpha'\] must have shape \[chain, draw, ...\] .* got \(2, 2\)"),
        ({"z": Z[:0]}, "with at least one chain and draw"),
        ({"beta": np.ones((2, 3))}, r"states\['beta'\] must have .* got \(2, 3\); record states"),
        ({"draw": [1, 2, 3]}, r"draw must have length 2, as the states have, got \(3,\)"),
    ],
)
def test_states_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_what_a_state_has_wrong_is_named_with_its_place():
    with pytest.raises(ValueError, match=r"alpha must be finite .* \(chain 1, draw 0\)"):
        made(alpha=np.array([[1, 1], [0.0, 1]]))[2]


PHI = np.full((1, 3, 2), 1 / 3)
PLAIN = Mixtures(PHI, DirichletLaw(np.ones((1, 2))), np.zeros(1, int), np.zeros(1, int))
GROUPED = Mixtures(
    np.array([[[[0.2], [0.8]], [[0.5], [0.5]]]]),
    DirichletLaw(np.array([[[1.0], [3.0]]])),
    np.zeros(1, int),
    np.zeros(1, int),
    row_names=("x", "y"),
)


def test_topics_without_rows_are_those_of_all_documents():
    (found,) = one_by_one(PLAIN)
    assert (found.phi.shape, found.weights.shape) == ((1, 1, 3, 2), (1, 1, 2))
    (again,) = one_by_one(found)
    np.testing.assert_array_equal(again.phi, found.phi)
    assert document_rows(found, CORPUS) is None


@pytest.mark.parametrize(
    ("mixture", "changes", "message"),
    [
        (PLAIN, {"phi": np.full((1, 2, 3), 0.5)}, "weights has shape"),
        (PLAIN, {"phi": np.full((1, 3, 2), 0.5)}, "must be a probability vector, .* 1.5"),
        (PLAIN, {"weights": np.zeros((1, 2))}, "not all zero, got 0.0..0.0"),
        (PLAIN, {"weights": np.array([[1.0, -1.0]])}, "not negative"),
        (PLAIN, {"phi": np.zeros((0, 3, 2)), "weights": np.zeros((0, 2))}, "holds no state"),
        (PLAIN, {"row_names": ("x", "y")}, r"must name the 1 rows of phi .* \('x', 'y'\)"),
        (GROUPED, {"row_names": None}, "row_names must name the 2 rows of phi .* got None"),
        (GROUPED, {"weights": np.array([[[1.0], [0.0]]])}, "not all zero, got 0.0..1.0"),
        (GROUPED, {"weights": np.ones((1, 1))}, r"weights has shape \(1, 1\), phi \(1, 2, 2, 1\)"),
        (GROUPED, {"weights": np.ones((1, 3, 1))}, "and the 3 rows of weights"),
    ],
)  # fmt: skip
def test_bad_mixtures(mixture, changes, message):
    if "weights" in changes:
        changes = {**changes, "law": DirichletLaw(changes["weights"])}
        del changes["weights"]
    with pytest.raises(ValueError, match=message):
        list(one_by_one(mixture._replace(**changes)))


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"one shape \[F, V, K\], got \(1, 3, 2\) and \(2, 2, 1\)"):
        list(one_by_one([PLAIN, GROUPED]))


def test_documents_find_their_row_by_the_name_of_their_group():
    corpus = Corpus.from_ids([[0], [1], [1]], num_words=2, groups=["y", "x", "y"])
    np.testing.assert_array_equal(document_rows(GROUPED, corpus), [1, 0, 1])
    unused = Corpus.from_ids([[0]], num_words=2, groups=["y"], group_names=["w", "y"])
    np.testing.assert_array_equal(document_rows(GROUPED, unused), [1])
    other = Corpus.from_ids([[0], [0]], num_words=2, groups=["x", "z"])
    with pytest.raises(
        ValueError, match=r"test has the group 'z', which the model has not: .* x, y"
    ):
        document_rows(GROUPED, other, "test")
    with pytest.raises(ValueError, match=r"corpus must have groups, .* out of x, y"):
        document_rows(GROUPED, Corpus.from_ids([[0]], num_words=2))


def test_one_row_is_a_mixture_for_all_documents():
    states = MixtureStates(
        lambda state: Topics(GROUPED.phi[0], DirichletLaw(state["weights"])),
        {"weights": np.broadcast_to(GROUPED.weights[0], (2, 1, 2, 1))},
        np.zeros(1, int),
        row_names=("x", "y"),
    )
    row = OneRow(states, "y")
    for _ in range(2):
        parts = list(row)
        assert [part.row_names for part in parts] == [None, None]
        np.testing.assert_array_equal(parts[1].phi, [[[[0.5], [0.5]]]])
        np.testing.assert_array_equal(parts[1].weights, [[[3.0]]])
    for mixtures, message in ((states, r"\(x, y\), got 'z'"), (PLAIN, "do not differ by group")):
        with pytest.raises(ValueError, match=f"group must be one of .*{message}"):
            list(OneRow(mixtures, "z"))


def test_weights_of_groups_share_the_topics_of_all():
    shared = GROUPED._replace(phi=GROUPED.phi[:, :1])
    (found,) = one_by_one(shared)
    assert (found.phi.shape, found.weights.shape) == ((1, 1, 2, 1), (1, 2, 1))
    corpus = Corpus.from_ids([[0], [1]], num_words=2, groups=["y", "x"])
    np.testing.assert_array_equal(document_rows(found, corpus), [1, 0])
    (row,) = OneRow(shared, "y")
    np.testing.assert_array_equal(row.phi, shared.phi)
    np.testing.assert_array_equal(row.weights, [[[3.0]]])


def test_a_used_up_iterator_is_refused():
    used = iter(made())
    list(used)
    with pytest.raises(ValueError, match="iterator can be used only once"):
        next(one_by_one(used))


def test_vocabularies():
    mixture = made()[0]
    check_words(mixture, Corpus.from_ids([[0]], vocabulary=["a", "b", "c"]))
    check_words(mixture, Corpus.from_ids([[0]], num_words=3))  # words without names
    with pytest.raises(ValueError, match="another vocabulary than the model: word 1 is 'x'"):
        check_words(mixture, Corpus.from_ids([[0]], vocabulary=["a", "x", "c"]))
    with pytest.raises(ValueError, match="test has 4 words, the model has 3"):
        check_words(mixture, Corpus.from_ids([[0]], num_words=4), "test")


def test_weights_of_topics_that_a_document_does_not_have():
    phi = np.full((2, 1, 3, 2), 1 / 3, np.float32)
    weights = np.array([[[1.0, 2.0]], [[3.0, 4.0]]])
    mixture = Mixtures(phi, SwitchedLaw(weights, weights / 2), np.zeros(2, int), np.arange(2))
    first, second = one_by_one(mixture)
    np.testing.assert_array_equal(first.law.weights_if_absent, [[[0.5, 1.0]]])
    np.testing.assert_array_equal(second.law.weights_if_absent, [[[1.5, 2.0]]])
    for bad in (-weights, 0 * weights, np.nan * weights):
        with pytest.raises(
            ValueError, match="weights_if_absent must be finite, not negative and not all zero"
        ):
            list(one_by_one(mixture._replace(law=SwitchedLaw(weights, bad))))


def test_states_with_such_weights_can_be_stacked():
    state = {
        "z": Z, "stick": 0.3 * np.ones((2, 2, 2)), "strength": np.full((2, 2, 2), 1.5),
        "alpha": EACH, "strength_shape": EACH, "beta": EACH, "draw": [10, 20],
    }  # fmt: skip
    states = mixture_states(bnp.IBPCompoundDirichlet(), state, CORPUS)
    stacked = states.stack()
    assert stacked.law.weights_if_absent.shape == stacked.weights.shape == (4, 1, 3)
    np.testing.assert_array_equal(
        stacked.law.weights_if_absent[2:3], states[2].law.weights_if_absent
    )


def test_topics_of_very_many_words_sum_to_one():
    """Also where sums of float32 would not: half a million words of one probability."""
    phi = np.full((1, 500_000, 2), 1 / 500_000, np.float32)
    zero = np.zeros(1, int)
    mixtures = Mixtures(phi, DirichletLaw(np.ones((1, 2), np.float32)), zero, zero)
    assert len(list(one_by_one(mixtures))) == 1
