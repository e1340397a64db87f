"""DifferentialTopicModel as users meet it: the contract, kept states, options, associations."""

import json
import pickle

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers

import bnp_models as bnp
from bnp_models import testing
from bnp_models.base.model import from_description

CORPUS = bnp.Corpus.from_ids(
    [[0, 1, 0, 3], [], [2, 1, 1]], num_words=4, groups=["a", "b", "b"]
)  # fmt: skip
MATRIX = np.array([[0.7, 0.2, 0.0], [0.3, 0.5, 0.3], [0.0, 0.2, 0.7], [0.0, 0.1, 0.0]])
TRANSFORM = bnp.Transform.from_matrix(
    {"a": MATRIX, "b": MATRIX[::-1]},
    vocabulary=CORPUS.vocabulary,
    global_vocabulary=["x", "y", "z"],
)
OTHER = bnp.Transform.from_matrix(MATRIX, vocabulary=CORPUS.vocabulary)
PRIOR = dist.Gamma(2.0, 4.0)
DIFFERENTIAL = bnp.DifferentialTopicModel
CONTRACT = testing.Contract(
    model=DIFFERENTIAL,
    configurations=(
        DIFFERENTIAL(
            3, alpha=PRIOR, beta=PRIOR, discount=dist.Uniform(0.0, 1.0), max_tables=2,
        ),
        DIFFERENTIAL(3),
        DIFFERENTIAL(4),
        DIFFERENTIAL(3, discount=0.0),
        DIFFERENTIAL(3, discount=dist.Beta(2.0, 3.0)),
        DIFFERENTIAL(3, concentration=2.0),
        DIFFERENTIAL(3, max_tables=5),
    ),
    data=CORPUS,
    sites={
        "alpha": (2,), "beta": (), "discount": (), "concentration": (3,), "phi": (3, 4),
        "group_phi": (2, 3, 4), "theta": (3, 3), "z": (7,), "w": (7,),
    },
    dims={
        "alpha": ("group",), "z": ("token",), "phi": ("topic", "word"),
        "group_phi": ("group", "topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "group_tables": ("group", "topic"),
        "concentration": ("topic",), "opens": ("token",), "global_tables": ("word", "topic"),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": -1.0}, "alpha must be positive"),
        ({"num_topics": 2, "alpha": (0.1, 0.2)}, "alpha must be a positive number or a NumPyro"),
        ({"num_topics": 2, "beta": 0.0}, "beta must be positive"),
        ({"num_topics": 2, "transform": np.eye(4)}, r"transform must be a bnp_models\.Transform"),
        ({"num_topics": 2, "discount": 1.0}, "discount must be below 1, got 1.0"),
        ({"num_topics": 2, "discount": -0.1}, "discount must be .* at least 0, got -0.1"),
        ({"num_topics": 2, "concentration": 0.0}, "concentration must be positive"),
        ({"num_topics": 2, "max_tables": 0}, "max_tables must be an integer of at least 1"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"schedule": "sequential", "sampler": "crp"}, "sampler must be one of .* got 'crp'"),
        ({"sampler": "ss"}, "sampler='ss' needs schedule='sequential', got schedule='parallel'"),
        ({"schedule": "sequential", "approximation": "taylor"}, "approximation must be one of"),
        ({"approximation": "em"}, "approximation='em' needs schedule='sequential', got schedule="),
        (
            {"schedule": "sequential", "approximation": "em"},
            "approximation='em' needs a number for beta, got Gamma",
        ),
        ({"optimise": "alpha"}, "optimise must be a tuple of names, got the string 'alpha'"),
        ({"optimise": ("gamma",)}, "optimise must be one of"),
        ({"optimise": ("beta",)}, "optimise has 'beta', which has a prior: give beta as a number"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3, got 4"),
        ({"record": ("tables",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no groups: give every document one"),
    ],
    no_update={"num_topics": 2, "concentration": dist.LogNormal(0.0, 1.0)},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


# ---- the transform

WITH = DIFFERENTIAL(2, transform=TRANSFORM, beta=0.5)


def test_the_transform_is_part_of_the_description():
    described = json.loads(json.dumps(WITH.describe()))
    for twin in (from_description(described), pickle.loads(pickle.dumps(WITH))):
        assert twin == WITH
        assert hash(twin) == hash(WITH)
        assert twin.describe() == WITH.describe()
    assert DIFFERENTIAL(2, transform=OTHER, beta=0.5) != WITH
    assert DIFFERENTIAL(2, beta=0.5) != WITH


def test_a_transform_of_other_words_is_refused():
    small = bnp.Corpus.from_ids([[0, 1]], num_words=2, groups=["a"])
    with pytest.raises(ValueError, match="corpus has 2 words and the transform 4"):
        WITH.gibbs().init(jax.random.key(0), 0, None, (small,), {})


@pytest.mark.slow
def test_the_program_applies_the_transform():
    """With a large concentration the words of a group are the transformed common words."""
    model = DIFFERENTIAL(2, transform=TRANSFORM, beta=0.5, discount=0.1, concentration=1e5)
    trace = handlers.trace(handlers.seed(model, jax.random.key(3))).get_trace(CORPUS)
    phi, group_phi = (np.asarray(trace[name]["value"]) for name in ("phi", "group_phi"))
    assert phi.shape == (2, 3)
    np.testing.assert_allclose(group_phi[0], phi @ MATRIX.T, atol=0.02)
    np.testing.assert_allclose(group_phi[1], phi @ MATRIX[::-1].T, atol=0.02)


# ---- kept states

STATE = {
    "z": np.array([0, 0, 0, 1, 1, 0, 0]),
    "opens": np.array([True, True, True, True, True, True, False]),
    "alpha": np.array([0.5, 1.2], np.float32),
    "beta": np.float32(0.5),
    "discount": np.float32(0.25),
    "concentration": np.array([2.0, 3.0], np.float32),
}
CUSTOMERS = np.array([[[2, 1, 0, 0], [0, 0, 0, 1]], [[0, 2, 0, 0], [0, 0, 1, 0]]])
TABLES = np.array([[[2, 1, 0, 0], [0, 0, 0, 1]], [[0, 1, 0, 0], [0, 0, 1, 0]]])
OF_GLOBAL = np.array([[2, 0], [1, 1], [1, 1]])


def expected_topics(base):
    rest = np.array([[2.0], [3.0]]) + 0.25 * TABLES.sum(axis=2, keepdims=True)
    total = np.array([[2.0], [3.0]]) + CUSTOMERS.sum(axis=2, keepdims=True)
    return (CUSTOMERS - 0.25 * TABLES + rest * base) / total


def test_topics_of_a_kept_state():
    model = DIFFERENTIAL(2, beta=0.5)
    topics = model.topics_of(STATE, CORPUS)
    root = (TABLES.sum(axis=0) + 0.5) / np.array([[4 + 2.0], [2 + 2.0]])
    np.testing.assert_allclose(topics.phi.swapaxes(1, 2), expected_topics(root[None]), rtol=1e-6)
    np.testing.assert_allclose(topics.weights, [[0.5, 0.5], [1.2, 1.2]], rtol=1e-6)
    np.testing.assert_allclose(model.common_topics_of(STATE, CORPUS), root.T, rtol=1e-6)
    np.testing.assert_allclose(model.likeness_of(STATE, CORPUS), [2.0, 3.0])
    assert model.row_names(CORPUS) == ("a", "b")
    assert model.common_words(CORPUS) == CORPUS.vocabulary


def test_topics_of_a_kept_state_with_a_transform():
    topics = WITH.topics_of({**STATE, "global_tables": OF_GLOBAL}, CORPUS)
    root = (OF_GLOBAL.T + 0.5) / np.array([[4 + 1.5], [2 + 1.5]])
    base = np.stack([root @ MATRIX.T, root @ MATRIX[::-1].T])
    np.testing.assert_allclose(topics.phi.swapaxes(1, 2), expected_topics(base), rtol=1e-6)
    np.testing.assert_allclose(topics.phi.sum(axis=1), 1, rtol=1e-6)
    assert WITH.common_words(CORPUS) == ("x", "y", "z")


@pytest.mark.slow
def test_predictive_draws_have_the_mean_of_a_kept_state():
    state, size = {**STATE, "global_tables": OF_GLOBAL}, 2000
    rng = np.random.default_rng(0)
    corpus = bnp.Corpus.from_ids([[0], [1]], num_words=4, groups=["a", "b"])
    one = {**state, "z": np.array([0, 1]), "opens": np.array([True, True])}
    words = np.stack(
        [WITH.likelihood_given_state(rng, one, corpus).replicate(rng) for _ in range(size)]
    )
    topics = WITH.topics_of(one, corpus)
    theta = np.array([[1.5, 0.5], [1.2, 2.2]]) / np.array([[2.0], [3.4]])
    law = np.einsum("gk,gvk->gv", theta, topics.phi)
    found = (words[:, :, None] == np.arange(4)).mean(axis=0)
    error = np.sqrt(law * (1 - law) / size)
    assert (np.abs(found - law) < 4.5 * error + 1e-9).all()  # false alarm: 5e-5


# ---- fits

DOCS = [[0, 1, 0, 3], [2, 1, 1], [0, 0, 3], [2, 2, 1, 3]] * 3
SMALL = bnp.Corpus.from_ids(DOCS, num_words=4, groups=["a", "b"] * 6)


def fitted(model, **options):
    return bnp.fit(
        model, SMALL, num_warmup=5, num_samples=6, num_chains=2, seed=1, progress=False, **options
    )


@pytest.fixture(scope="module")
def with_transform():
    return fitted(WITH, record=("phi",))


def test_common_words_have_their_names(with_transform):
    phi = with_transform.data.posterior["phi"]
    assert phi.dims == ("chain", "draw", "topic", "global_word")
    assert list(phi.coords["global_word"].values) == ["x", "y", "z"]
    np.testing.assert_allclose(phi.sum("global_word"), 1, rtol=1e-5)


def test_associations_are_shares_of_tables(with_transform):
    table = with_transform.associations("x", num_words=4)
    assert list(table.columns) == ["group", "word", "strength", "tables"]
    np.testing.assert_allclose(table.groupby("group")["strength"].sum(), 1)
    words = SMALL.vocabulary
    for group, rows in (("a", (0, 1)), ("b", (2, 3))):  # where x has an entry in the matrix
        found = set(table["word"][table["group"] == group])
        assert found <= {words[v] for v in rows}
    every = sum(with_transform.associations(x, num_words=4)["tables"].sum() for x in "xyz")
    states = with_transform.mixtures
    opened = [np.asarray(states.state(s)["opens"]).sum() for s in range(len(states))]
    np.testing.assert_allclose(every, np.mean(opened), rtol=1e-5)
    by_topic = sum(with_transform.associations("x", k)["tables"].sum() for k in range(2))
    np.testing.assert_allclose(by_topic, table["tables"].sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("nothing",), "word is 'nothing', which is no global word"),
        (("x", 2), r"topic must be the number of a topic, from 0 to 1 as in topics\(\), got 2"),
    ],
)
def test_associations_refuse_what_is_not_there(with_transform, arguments, match):
    with pytest.raises(ValueError, match=match):
        with_transform.associations(*arguments)


@pytest.mark.slow
def test_associations_need_a_transform():
    with pytest.raises(ValueError, match="must be that of a DifferentialTopicModel with a trans"):
        fitted(DIFFERENTIAL(2)).associations("x")


@pytest.mark.slow
def test_what_is_optimised_is_recorded_and_said():
    fit = fitted(DIFFERENTIAL(2, alpha=0.3), optimise=("alpha", "beta"))
    alpha, beta = (np.asarray(fit.data.posterior[name]) for name in ("alpha", "beta"))
    assert alpha.shape == (2, 6, 2)
    assert (alpha > 0).all()
    assert len(np.unique(alpha)) > 2
    assert len(np.unique(beta)) > 2
    assert "Optimised, not sampled: alpha, beta." in fit.text()


@pytest.mark.slow
@pytest.mark.parametrize("transform", [None, TRANSFORM])
@pytest.mark.parametrize("approximation", ["variational", "em"])
def test_approximations_say_what_they_are(approximation, transform):
    model = DIFFERENTIAL(2, transform=transform, beta=0.5)
    fit = fitted(model, schedule="sequential", approximation=approximation)
    assert f"The sampler was not exact: approximation='{approximation}'." in fit.text()
    assert np.isfinite(np.asarray(fit.data.sample_stats["lp"])).all()
    np.testing.assert_allclose(fit.mixtures[0].phi.sum(axis=2), 1, rtol=1e-5)
