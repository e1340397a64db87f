"""Made-up states of LDA, for the tests of tables: three topics, slots in changing order."""

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.alignment import TopicStates, align
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.mixtures import mixture_states

WORDS = ("ball", "goal", "team", "vote", "law", "party", "cell", "gene", "drug", "said", "unused")
HOMES = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1])  # the topic of each word; "said" has any
CHAINS, DRAWS, DOCS = 3, 4, 24
ALPHA, BETA = 0.3, 0.1


@pytest.fixture(scope="module")
def corpus():
    """Documents about one topic or two; document 5 is empty."""
    rng = np.random.default_rng(0)
    docs = []
    for d in range(DOCS):
        share = np.full(3, 0.1)
        share[d % 3] += 0.7
        topics = rng.choice(3, rng.poisson(30) if d != 5 else 0, p=share)
        words = 3 * topics + rng.integers(0, 3, len(topics))
        docs.append(np.where(rng.random(len(words)) < 0.4, 9, words).astype(int))
    return Corpus.from_ids(
        docs,
        vocabulary=WORDS,
        groups=[("sport", "politics", "science")[d % 3] for d in range(DOCS)],
        doc_names=[f"article {d}" for d in range(DOCS)],
    )


@pytest.fixture(scope="module")
def z(corpus):
    """Assignments [C, S, T] near the true ones; in chain 2 the slots are in another order."""
    rng = np.random.default_rng(1)
    word = np.asarray(corpus.word)
    z = np.where(HOMES[word] >= 0, HOMES[word], np.asarray(corpus.doc) % 3)
    z = np.tile(z, (CHAINS, DRAWS, 1))
    noise = rng.integers(0, 3, z.shape)
    z = np.where(rng.random(z.shape) < 0.05, noise, z)
    z[2] = np.array([3, 0, 2])[z[2]]
    return z.astype(np.uint8)


def make_states(z, corpus, **change):
    chains, draws, tokens = z.shape
    each = np.ones((chains, draws))
    recorded = {"z": z, "alpha": ALPHA * each, "beta": BETA * each, "draw": np.arange(draws)}
    mixtures = mixture_states(bnp.LDA(4), recorded, corpus)
    return TopicStates(
        mixtures,
        z.reshape(-1, tokens),
        np.repeat(np.arange(chains), draws),
        np.tile(np.arange(draws), chains),
        np.arange(chains * draws, 0.0, -1.0),
    )._replace(**change)


@pytest.fixture(scope="session")
def states_of():
    """Make states of LDA from assignments [C, S, T] and the corpus."""
    return make_states


@pytest.fixture(scope="module")
def states(z, corpus):
    return make_states(z, corpus)


@pytest.fixture(scope="module")
def numbered(states):
    return align(states)


@pytest.fixture(scope="module")
def plain(z, corpus, numbered):
    """The same states with slots in the order of the alignment, counted without the library."""
    number = np.asarray(numbered.number)
    renumbered = np.stack([number[s][row] for s, row in enumerate(z.reshape(-1, z.shape[2]))])
    assert renumbered.min() == 0
    assert renumbered.max() == 2
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    doc_topic = np.zeros((len(renumbered), DOCS, 3))
    word_topic = np.zeros((len(renumbered), len(WORDS), 3))
    for s, row in enumerate(renumbered):
        np.add.at(doc_topic[s], (doc, row), 1)
        np.add.at(word_topic[s], (word, row), 1)
    total = word_topic.sum(1, keepdims=True)
    phi = (word_topic + BETA) / (total + len(WORDS) * BETA)
    length = doc_topic.sum(2, keepdims=True)
    # four slots have prior weight, the empty one among them
    theta = (doc_topic + ALPHA) / (length + 4 * ALPHA)
    return {"doc_topic": doc_topic, "phi": phi, "theta": theta, "length": length}


@pytest.fixture(scope="session")
def fit_of():
    """Return a function that makes a fit of states, whose tables show all of them."""

    def make(states, corpus, alignment=None):
        fit = bnp.TopicFit(bnp.LDA(4), corpus, make_data({"posterior": {"beta": np.ones((1, 1))}}))
        numbers = align(states) if alignment is None else alignment
        vars(fit).update(topic_states=states, alignment=numbers, shown=fit)
        return fit

    return make
