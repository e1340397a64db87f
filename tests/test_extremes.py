"""Data of legal but extreme sizes: every state counts right, all numbers are finite.

Two sweeps from the start are enough: counts that overflow, weights that vanish and tables that are
too small show at once.
"""

import inspect
import os

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data.sources import MAX_COUNT

TOKENS = int(os.environ.get("BNP_TOKENS", "300_000"))  # tried with 2**20 as well
DOCS = int(os.environ.get("BNP_DOCS", "20_000"))  # tried with 200_000 as well
HOW = {"num_warmup": 1, "num_samples": 2, "keep_states": 2, "num_chains": 1, "progress": False}
ALL = (
    "LDA", "HDPLDA", "PitmanYorLDA", "IBPCompoundDirichlet", "AuthorTopicModel",
    "NonparametricAuthorTopicModel", "CrossCollectionLDA", "DifferentialTopicModel",
    "MultiTaskHDPLDA", "SparseTransferTopicModel", "MedLDA", "SupervisedLDA",
)  # fmt: skip
FINITE = ("LDA", "PitmanYorLDA", "AuthorTopicModel", "CrossCollectionLDA", "DifferentialTopicModel",
          "MedLDA", "SupervisedLDA")  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.optimised]  # a million tokens are soon swept then


def make_model(name, num_topics=3, **options):
    kind = getattr(bnp, name)
    finite = "num_topics" in inspect.signature(kind).parameters
    return kind(num_topics, **options) if finite else kind(**options)


def make_corpus(doc, word, num_words):
    """Return a corpus with two groups, two labels and two authors in turns."""
    num_docs = int(doc[-1]) + 1
    turns = np.arange(num_docs) % 2
    return bnp.Corpus.from_arrays(
        doc, word, num_words=num_words, group=turns, group_names=["a", "b"], label=turns,
        label_names=["no", "yes"], author_ptr=np.arange(num_docs + 1), author_idx=turns,
        author_names=["Ann", "Bob"],
    )  # fmt: skip


def check(fit, corpus):
    """Check the draws and the kept states of a fit."""
    for group in ("posterior", "sample_stats"):
        for name, values in getattr(fit.data, group).items():
            assert np.isfinite(np.asarray(values, np.float64)).all(), name
    z = fit.states["z"].to_numpy()
    assert z.shape[-1] == corpus.num_tokens
    assert (z >= 0).all()
    assert 0 < fit.topics()["prevalence"].sum() <= 1 + 1e-9
    new = fit.transform(corpus.select([0, 1]), num_sweeps=4, num_kept=2)
    assert np.isfinite(new).all(axis=None)
    assert (new.sum(axis=1) <= 1 + 1e-4).all(axis=None)


@pytest.mark.parametrize("name", ALL)
def test_many_tokens_of_one_word(name):
    groups = 2 if name == "DifferentialTopicModel" else 1  # whose tokens have ratios of their own
    doc = np.repeat([0, 1], groups * TOKENS // 2)
    corpus = make_corpus(doc, np.zeros(len(doc), int), 2)
    if name in ("PitmanYorLDA", "DifferentialTopicModel"):
        with pytest.raises(ValueError, match=r"leave the most frequent words out"):
            bnp.fit(make_model(name), corpus, **HOW)
    else:
        check(bnp.fit(make_model(name), corpus, **HOW), corpus)


@pytest.mark.parametrize("name", FINITE)
def test_more_topics_than_tokens(name):
    rng = np.random.default_rng(0)
    corpus = make_corpus(np.repeat(np.arange(5), 10), rng.integers(9, size=50), 9)
    check(bnp.fit(make_model(name, 1000), corpus, **HOW), corpus)


@pytest.mark.parametrize("name", ["LDA", "HDPLDA", "PitmanYorLDA"])  # all were tried
def test_half_a_million_words(name):
    rng = np.random.default_rng(0)
    corpus = make_corpus(np.repeat(np.arange(4), 500), rng.integers(500_000, size=2000), 500_000)
    check(bnp.fit(make_model(name), corpus, **HOW), corpus)


@pytest.mark.parametrize("name", ["LDA", "IBPCompoundDirichlet"])  # all were tried
def test_many_short_documents(name):
    rng = np.random.default_rng(0)
    doc = np.repeat(np.arange(DOCS), 3)
    corpus = make_corpus(doc, rng.integers(50, size=len(doc)), 50)
    check(bnp.fit(make_model(name), corpus, **HOW), corpus)


@pytest.mark.parametrize("name", ["PitmanYorLDA", "DifferentialTopicModel"])
def test_a_discount_near_one(name):
    rng = np.random.default_rng(0)
    corpus = make_corpus(np.repeat(np.arange(20), 100), rng.integers(60, size=2000), 60)
    check(bnp.fit(make_model(name, discount=0.99), corpus, **HOW), corpus)


@pytest.mark.parametrize("name", ["MedLDA", "SupervisedLDA"])
@pytest.mark.parametrize("response", ["binary", "one-vs-rest"])
def test_labels_that_the_words_separate(name, response):
    """With a power of 10,000, so that the weights grow and the scales of documents get tiny."""
    rng = np.random.default_rng(0)
    doc = np.repeat(np.arange(40), 30)
    corpus = make_corpus(doc, rng.integers(5, size=1200) + 5 * (doc % 2), 10)
    model = make_model(name, 2, c=1e4, response=response)
    fit = bnp.fit(model, corpus, **HOW | {"num_warmup": 30})
    weights = fit.topic_weights()[["weight", "weight_lower", "weight_upper"]]
    assert np.isfinite(weights).all(axis=None)
    assert (np.asarray(fit.predict(corpus)) == np.array(["no", "yes"])[corpus.label]).mean() > 0.9


ROWS = np.random.default_rng(0).normal(size=(30, 6))
COUNTS = np.random.default_rng(0).poisson(3.0, (30, 6))


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (np.where(np.arange(30)[:, None] < 5, 0.0, ROWS), {}),
        (np.where(np.arange(6) == 2, 7.5, ROWS), {}),
        (1e8 * ROWS, {"scale": True}),
        (1e8 + ROWS, {}),
        (np.where(np.arange(30)[:, None] < 5, 0, COUNTS), {}),
        (np.where(np.arange(6) == 2, 4, COUNTS), {}),
        (np.where(np.arange(6) == 2, MAX_COUNT, COUNTS), {}),
    ],
    ids=["empty rows", "constant column", "large", "large mean", "counts, empty rows",
         "counts, constant column", "counts, largest"],
)  # fmt: skip
def test_rows(values, options):
    kind = bnp.PoissonGammaFactorAnalysis if values.dtype == int else bnp.GaussianFactorAnalysis
    rows = bnp.Sources.from_arrays([values[:10], values[10:]])
    fit = bnp.fit(kind(**options), rows, **HOW | {"num_warmup": 10})
    for group in ("posterior", "sample_stats"):
        for name, found in getattr(fit.data, group).items():
            assert np.isfinite(np.asarray(found, np.float64)).all(), name
    assert np.isfinite(fit.reconstruct()).all(axis=None)
    assert np.isfinite(fit.predict(rows).log_prob)
    assert np.isfinite(fit.transform(rows)).all(axis=None)


def test_rows_that_float32_cannot_hold_are_refused_by_name():
    with pytest.raises(ValueError, match=r"arrays\[0\]\[0, 1\] is 1e\+39; give finite numbers"):
        bnp.Sources.from_arrays([[[0.0, 1e39]]])
    with pytest.raises(ValueError, match="counts are whole numbers from 0 to"):
        bnp.Sources.from_arrays([[[0, 2**20 + 1]]])
