"""Scikit-learn's LDA, fitted to planted topics, in the scores of topics."""

import itertools

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation

from bnp_models.baselines.sklearn_lda import sklearn_mixture
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import Mixtures
from bnp_models.scores.coherence import npmi
from bnp_models.scores.held_out import document_completion, document_topics, left_to_right
from bnp_models.testing.statistics import one_sample

PLANTED = np.array([[0.4, 0.3, 0.2, 0.05, 0.03, 0.02], [0.02, 0.03, 0.05, 0.2, 0.3, 0.4]])
VOCABULARY = ("cat", "dog", "bird", "moon", "sun", "star")


def make_corpus(seed, num_docs):
    """Documents that are mostly about one of two topics."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet([0.3, 0.3], num_docs)
    docs = [rng.choice(6, 40, p=p @ PLANTED).tolist() for p in share]
    return Corpus.from_ids(docs, vocabulary=VOCABULARY)


@pytest.fixture(scope="module")
def fitted():
    lda = LatentDirichletAllocation(2, doc_topic_prior=0.3, random_state=0, max_iter=50)
    return lda.fit(make_corpus(0, 150).to_counts())


@pytest.fixture(scope="module")
def mixture(fitted):
    return sklearn_mixture(fitted, VOCABULARY)


def test_topics_are_the_planted_ones(mixture):
    phi = mixture.phi[0, 0].T
    order = np.argsort(-phi[:, 0])
    np.testing.assert_allclose(phi[order], PLANTED, atol=0.05)
    np.testing.assert_allclose(phi.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(mixture.weights, [[[0.3, 0.3]]], rtol=1e-6)


def test_new_documents_have_the_shares_that_scikit_learn_gives_them(fitted, mixture):
    new = make_corpus(1, 30)
    (theta,) = document_topics(mixture, new, num_sweeps=400, num_kept=350)
    np.testing.assert_allclose(theta, fitted.transform(new.to_counts()), atol=0.06)


def test_evidence_is_exact(mixture):
    """Against the sum over all topics of a short document."""
    document, alpha, exact = [0, 3, 5], 0.3, 0.0
    phi = mixture.phi[0, 0].astype(np.float64)
    for z in itertools.product(range(2), repeat=3):
        counts, p = np.zeros(2), 1.0
        for n, (v, k) in enumerate(zip(document, z, strict=True)):
            p *= (counts[k] + alpha) / (n + 2 * alpha) * phi[v, k]
            counts[k] += 1
        exact += p
    copies = Corpus.from_ids([document] * 3000, vocabulary=VOCABULARY)
    score = left_to_right(mixture, copies, num_particles=2)
    one_sample("evidence", {"p": np.exp(score.doc_log_prob)}, {"p": exact}).check()


def test_completion_and_coherence_tell_good_topics_from_bad_ones(fitted, mixture):
    new = make_corpus(2, 60)
    halves = new.halves(0)
    mixed = Mixtures(*mixture[:4])._replace(
        phi=np.repeat(mixture.phi.mean(-1, keepdims=True), 2, axis=-1)
    )
    good, bad = (document_completion(m, *halves) for m in (mixture, mixed))
    assert good.perplexity < bad.perplexity - 0.3
    twice = document_completion([mixture, mixture], *halves)  # seeds would be given as a list
    assert twice.settings["num_states"] == 2
    words = np.argsort(-mixture.phi[0, 0], axis=0)[:3].T
    across = np.array([[0, 3, 5], [1, 4, 5]])
    assert npmi(words, new, top=3).min() > npmi(across, new, top=3).max()


def test_bad_input(fitted):
    with pytest.raises(ValueError, match=r"fitted must be a fitted .*: call fit\(corpus.to_counts"):
        sklearn_mixture(LatentDirichletAllocation(2))
    with pytest.raises(
        ValueError, match="vocabulary must name the 6 words that were fitted, got 1"
    ):
        sklearn_mixture(fitted, ["cat"])
    mixture = sklearn_mixture(fitted, VOCABULARY)
    other = Corpus.from_ids([[0]], vocabulary=["a", *VOCABULARY[1:]])
    with pytest.raises(ValueError, match="corpus has another vocabulary than the model: word 0"):
        left_to_right(mixture, other)
