"""NPMI against counts by hand and against gensim where the definitions coincide."""

import dataclasses
import itertools
import math
import sys
import types

import numpy as np
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.scores import coherence
from bnp_models.scores.coherence import npmi

DOCUMENTS = [[0, 1, 1], [0, 1, 2], [2, 3], [], [0, 4, 4, 4]]


def by_hand(topic, documents, window):
    """Mean NPMI of all pairs, by sets."""
    units = []
    for document in filter(None, documents):
        width = min(window or len(document), len(document))
        starts = range(len(document) - width + 1)
        units += [set(document[start : start + width]) for start in starts]
    values = []
    for i, j in itertools.combinations(topic, 2):
        p_i, p_j, p_ij = (
            sum(words <= unit for unit in units) / len(units) for words in ({i}, {j}, {i, j})
        )
        if p_ij in (0, 1):
            values.append(-1.0 if p_ij == 0 else 0.0)
        else:
            values.append(math.log(p_ij / (p_i * p_j)) / -math.log(p_ij))
    return np.mean(values)


def test_documents():
    corpus = Corpus.from_ids(DOCUMENTS, num_words=6)
    expected = math.log(0.5 / (0.75 * 0.5)) / -math.log(0.5)  # 0 in 3 of 4 documents, 1 in 2
    assert npmi([[0, 1]], corpus, top=2)[0] == pytest.approx(expected)
    # never together; always together where one occurs; a word that never occurs
    np.testing.assert_allclose(npmi([[1, 3], [3, 5]], corpus, top=2), [-1, -1])
    everywhere = Corpus.from_ids([[0, 1, 2], [1, 0], [0, 1]], num_words=3)
    assert npmi([[0, 1]], everywhere, top=2)[0] == 0
    together = Corpus.from_ids([[0, 1], [2], [2], [1, 0]], num_words=3)
    assert npmi([[0, 1]], together, top=2)[0] == pytest.approx(1)


@pytest.mark.parametrize("window", [None, 1, 2, 3, 5, 100])
@pytest.mark.parametrize("block", [1, 7, 1 << 21])
def test_against_sets(window, block, monkeypatch):
    monkeypatch.setattr(coherence, "_BLOCK", block)
    rng = np.random.default_rng(0)
    documents = [list(rng.integers(0, 12, n)) for n in rng.integers(0, 14, 40)]
    corpus = Corpus.from_ids(documents, num_words=12)
    topics = np.array([rng.permutation(12)[:6] for _ in range(4)])
    expected = [by_hand(topic[:5], documents, window) for topic in topics]
    np.testing.assert_allclose(npmi(topics, corpus, top=5, window=window), expected, rtol=1e-12)


@pytest.mark.parametrize("window", [None, 10])
def test_gensim_agrees(window):
    """Where the definitions coincide.

    Every pair occurs together, so that gensim's epsilon (1e-12) plays no part, and no word comes
    twice in a document: when the first of two leaves the window, gensim takes both as gone.
    """
    models = pytest.importorskip("gensim.models")
    dictionary = pytest.importorskip("gensim.corpora").Dictionary
    rng = np.random.default_rng(1)
    vocabulary = [f"w{v:02d}" for v in range(25)]
    texts = [list(rng.permutation(vocabulary)[: rng.integers(2, 26)]) for _ in range(200)]
    topics = [list(rng.permutation(vocabulary)[:6]) for _ in range(3)]
    model = models.CoherenceModel(
        topics=topics,
        texts=texts,
        dictionary=dictionary(texts),
        coherence="c_npmi",
        window_size=window or 1000,  # longer than any document: one window per document
        topn=6,
        processes=1,
    )
    word_ids = [[vocabulary.index(str(word)) for word in text] for text in texts]
    corpus = Corpus.from_ids(word_ids, vocabulary=vocabulary)
    ours = npmi(topics, corpus, top=6, window=window)
    np.testing.assert_allclose(ours, model.get_coherence_per_topic(), atol=1e-9)


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        ([[0, 1]], {"top": 1}, "top must be an integer of at least 2, got 1"),
        ([[0, 1]], {"top": 3}, r"topics\[0\] has 2 words, fewer than top=3"),
        ([[0, 1]], {"window": 0}, "window must be an integer of at least 1, got 0"),
        ([[0, 1], [2, 6]], {}, r"topics\[1\] has the word id 6.*\[0, 6\)"),
        ([[0, -1]], {}, "word id -1"),
        ([["0", "x"]], {}, "word 'x', which is not in the vocabulary"),
        ([[2, 2]], {}, "names a word twice"),
        ([], {}, "topics must have at least one entry"),
    ],
)
def test_bad_input(topics, options, message):
    with pytest.raises(ValueError, match=message):
        npmi(topics, Corpus.from_ids(DOCUMENTS, num_words=6), **({"top": 2} | options))


def test_empty_reference():
    corpus = Corpus.from_ids([[0]], num_words=2)
    none, length = np.zeros(0, np.int32), np.zeros(1, np.int32)
    corpus = dataclasses.replace(corpus, doc=none, word=none, doc_length=length)
    with pytest.raises(ValueError, match="reference has no tokens"):
        npmi([[0, 1]], corpus, top=2)


TEXTS = [list("abab"), list("abc"), list("cd"), list("aee"), list("dcdc")]


def lettered():
    words = "abcdef"
    docs = [[words.index(letter) for letter in text] for text in TEXTS]
    return Corpus.from_ids(docs, vocabulary=list(words))


class TestMeasures:
    def test_npmi_is_ours(self):
        topics = [[0, 1, 2], ["c", "d", "a"]]
        for window in (None, 2):
            found = coherence.coherence(topics, lettered(), top=3, window=window)
            np.testing.assert_array_equal(found, npmi(topics, lettered(), top=3, window=window))

    @pytest.mark.parametrize("measure", ["c_v", "u_mass", "c_uci"])
    def test_what_gensim_gets(self, measure, monkeypatch):
        """A stand-in for gensim shows the words of topics, texts and dictionary."""
        given = {}

        class Model:
            def __init__(self, **options):
                given.update(options)

            def get_coherence_per_topic(self):
                return [0.25, 0.5]

        corpora, models = types.ModuleType("gensim.corpora"), types.ModuleType("gensim.models")
        corpora.Dictionary, models.CoherenceModel = lambda texts: ("words of", texts), Model
        for name, module in {"gensim": types.ModuleType("gensim"), "gensim.corpora": corpora,
                             "gensim.models": models}.items():  # fmt: skip
            monkeypatch.setitem(sys.modules, name, module)
        found = coherence.coherence(
            [[0, 1, 2], ["c", "d", "a"]], lettered(), measure=measure, top=2
        )
        assert found.tolist() == [0.25, 0.5]
        assert given == {
            "topics": [["a", "b"], ["c", "d"]], "texts": TEXTS, "coherence": measure, "topn": 2,
            "dictionary": ("words of", [list("abcdef")]), "window_size": None, "processes": 1,
        }  # fmt: skip

    def test_u_mass_by_hand(self):
        """Mean of log((D_ij + eps) / D_j) over pairs with j before i; gensim's eps is 1e-12 D."""
        pytest.importorskip("gensim")
        (found,) = coherence.coherence([["a", "b", "c"]], lettered(), measure="u_mass", top=3)
        # b after a: 2 of 3 documents with a; c after a: 1 of 3; c after b: 1 of 2
        assert found == pytest.approx(np.mean(np.log([2 / 3, 1 / 3, 1 / 2])), abs=1e-6)
        for measure in ("c_v", "c_uci"):
            found = coherence.coherence(
                [["a", "b"], ["a", "f"]], lettered(), measure=measure, top=2
            )
            assert found.shape == (2,)
            assert np.isfinite(found[0])

    def test_gensim_is_missing(self, monkeypatch):
        for name in ("gensim", "gensim.corpora", "gensim.models"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=r"pip install gensim"):
            coherence.coherence([["a", "b"]], lettered(), measure="c_v", top=2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"measure": "pmi"}, r"measure must be one of \['c_uci', 'c_v', 'npmi', 'u_mass'\]"),
            ({"measure": "u_mass", "window": 3}, "window must be None for measure='u_mass', got 3"),
            ({"measure": "c_v", "top": 1}, "top must be an integer of at least 2, got 1"),
            ({"measure": "c_v", "window": 0}, "window must be an integer of at least 1, got 0"),
            ({"measure": "c_v", "top": 4}, r"topics\[0\] has 3 words, fewer than top=4"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            coherence.coherence([["a", "b", "c"]], lettered(), **{"top": 2, **options})
