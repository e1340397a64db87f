"""The IBP compound Dirichlet model as users meet it."""

import numpy as np
import numpyro.distributions as dist
import pytest

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import SwitchedLaw
from bnp_models import testing
from bnp_models.posterior.mixtures import mixture_states
from bnp_models.scores.held_out import left_to_right
from bnp_models.testing import refusals

CORPUS = bnp.Corpus.from_ids([[0, 1, 0, 3], [], [2, 1, 1]], num_words=5)
PRIOR = dist.Gamma(2.0, 4.0)

CONTRACT = testing.Contract(
    model=bnp.IBPCompoundDirichlet,
    configurations=(
        bnp.IBPCompoundDirichlet(beta=PRIOR, max_topics=6),
        bnp.IBPCompoundDirichlet(),
        bnp.IBPCompoundDirichlet(strength_shape=dist.Gamma(2.0, 0.5)),
        bnp.IBPCompoundDirichlet(strength_shape=3.0, alpha=dist.Exponential(2.0), max_topics=7),
        bnp.IBPCompoundDirichlet(alpha=1.0, strength_shape=1.0, max_topics=8),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "strength_shape": (), "beta": (), "shares": (6,), "strength": (6,),
        "phi": (6, 5), "on": (3, 6), "rate": (3, 6), "doc_length": (3,), "z": (7,), "w": (7,),
    },
    dims={
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "stick": ("topic",), "strength": ("topic",),
    },
    refused=[
        ({"max_topics": 0}, "max_topics must be an integer of at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"strength_shape": 0.0}, "strength_shape must be positive"),
        ({"beta": np.nan}, "beta must be positive"),
        ({"alpha": dist.Gamma(np.ones(2), 1.0)}, "alpha must have a scalar prior"),
    ],
    options_refused=[*refusals.ROOTED_OPTIONS, ({"record": ("x",)}, "record must be one of")],
    data_refused=[([[0, 1]], "data must be a Corpus, got list")],
    no_update={"strength_shape": dist.LogNormal(0.0, 1.0)},
    options={"init_topics": 2},
    labels=("doc_length",),
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 5, 30) if d < 10 else rng.integers(5, 10, 30) for d in range(20)]
    corpus = bnp.Corpus.from_ids(docs, num_words=10)
    model = bnp.IBPCompoundDirichlet(beta=0.1, max_topics=40)
    return bnp.fit(
        model, corpus, num_warmup=60, num_samples=10, num_chains=1, progress=False, init_topics=2,
        schedule="sequential",
    )  # fmt: skip


def test_new_documents_get_topics(fit):
    """A document of the words of one topic, as long as others, is in this topic."""
    left, right = fit.topics()["words"].str.split(", ").str[0].astype(int).to_numpy()[:2] < 5
    assert left != right
    new = bnp.Corpus.from_ids([[0, 1, 2, 3, 4] * 6, [5, 7, 8, 9, 6] * 6], num_words=10)
    shares = fit.transform(new).to_numpy()
    assert (shares[[0, 1], [0, 1] if left else [1, 0]] > 0.7).all()
    assert (shares.sum(axis=1) <= 1 + 1e-5).all()  # the rest is that of new topics


def test_scores_that_need_a_dirichlet_law_are_refused(fit):
    new = bnp.Corpus.from_ids([[0, 1], [7]], num_words=10)
    for score in (fit.document_completion, fit.empirical_likelihood):
        with pytest.raises(ValueError, match="the lengths of documents are part of this model"):
            score(new)


def test_weights_of_new_documents():
    """The weights of one more document are ratios of its probabilities, for a single topic."""
    state = {
        "z": np.zeros(3, int), "stick": np.array([0.4, 0.0]), "strength": np.array([1.5, 0.0]),
        "alpha": 2.0, "strength_shape": 0.7, "beta": 0.5,
    }  # fmt: skip
    corpus = bnp.Corpus.from_ids([[0, 0], [1]], num_words=2)
    topics = bnp.IBPCompoundDirichlet(alpha=2.0).topics_of(state, corpus)
    on = 0.4 * 2**-1.5
    np.testing.assert_allclose(topics.weights[0, :2], [1.5, 0.0])
    assert isinstance(topics.law, SwitchedLaw)
    np.testing.assert_allclose(
        topics.law.weights_if_absent[0, :2], [1.5 * on / (0.6 + on), 0.0], rtol=1e-5
    )
    # a new topic: integrate the process of unused atoms with the factor of one token
    x, step = np.linspace(-16, 5, 2001, retstep=True)
    s, pi = np.exp(x)[:, None], (np.arange(400) + 0.5) / 400
    unused = 2.0 * s**0.7 * np.exp(-s) / 1.2980553326475577 * (1 - pi * (1 - 2**-s)) ** 2
    weight = unused * s * 2**-s * step / 400
    np.testing.assert_allclose(topics.law.weights_if_absent[0, 2], weight.sum(), rtol=1e-3)
    mean = (weight * s).sum() / weight.sum()
    np.testing.assert_allclose(topics.weights[0, 2], mean, rtol=1e-3)


def test_new_documents_have_a_score(fit):
    """Words of a topic are more probable in one document than words of two topics."""
    new = bnp.Corpus.from_ids([[0, 1, 2, 3, 4] * 6, [0, 1, 7, 8, 6] * 6], num_words=10)
    score = fit.left_to_right(new, num_particles=50)
    one, two = score.doc_log_prob / 30
    assert -np.log(5.5) < one < -np.log(4.5)
    assert two < one - 0.1
    assert "perplexity" in fit.evaluate("left_to_right", new)


def test_the_probabilities_of_words_sum_to_one():
    """Over all documents of two words, the scores are a distribution."""
    state = {
        "z": np.zeros((1, 1, 3), int), "stick": np.array([[[0.4, 0.0]]]),
        "strength": np.array([[[1.5, 0.0]]]), "alpha": np.full((1, 1), 2.0),
        "strength_shape": np.full((1, 1), 0.7), "beta": np.full((1, 1), 0.5), "draw": [0],
    }  # fmt: skip
    fitted = bnp.Corpus.from_ids([[0, 0], [1]], num_words=2)
    states = mixture_states(bnp.IBPCompoundDirichlet(), state, fitted)
    new = bnp.Corpus.from_ids([[v, w] for v in range(2) for w in range(2)], num_words=2)
    score = left_to_right(states, new, num_particles=2000)
    np.testing.assert_allclose(np.exp(score.doc_log_prob).sum(), 1, atol=0.01)
