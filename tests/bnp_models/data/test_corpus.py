"""The corpus: what it refuses, what it keeps, and what JAX sees of it."""

import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from bnp_models.data.corpus import Corpus
from bnp_models.data.documents import Names

TEXTS = ["The cat saw the dog.", "Dogs and cats", "", "A dog: saw!", "fish swim"]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_texts(
        TEXTS,
        groups=["land", "land", "sea", "land", "sea"],
        authors=[["Ann"], ["Bob", "Ann"], ["Cid"], ["Ann"], ["Bob"]],
        labels=[0.5, -1.0, 2.0, 0.0, 3.5],
        doc_names=list("pqrst"),
    )


@pytest.fixture
def long_corpus() -> Corpus:
    """Forty documents of 0 to 39 tokens in three groups of unequal size."""
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 30, size=n) for n in range(40)]
    groups = ["a"] * 20 + ["b"] * 15 + ["c"] * 5
    return Corpus.from_ids(docs, 30, groups=groups, labels=range(40))


def as_dict(corpus):
    fields = (field.name for field in dataclasses.fields(corpus))
    return {name: getattr(corpus, name) for name in fields}


def test_texts_keep_the_order_of_their_words(corpus):
    assert [corpus.words(d) for d in range(5)] == [
        ["cat", "saw", "dog"],
        ["dogs", "cats"],
        [],
        ["dog", "saw"],
        ["fish", "swim"],
    ]
    assert corpus.vocabulary == ("cat", "cats", "dog", "dogs", "fish", "saw", "swim")
    assert corpus.document(3).tolist() == [2, 5]
    np.testing.assert_array_equal(corpus.doc, [0, 0, 0, 1, 1, 3, 3, 4, 4])
    np.testing.assert_array_equal(corpus.doc_length, [3, 2, 0, 2, 2])
    np.testing.assert_array_equal(corpus.doc_ptr, [0, 3, 5, 5, 7, 9])
    np.testing.assert_array_equal(corpus.group, [0, 0, 1, 0, 1])
    np.testing.assert_array_equal(corpus.author_ptr, [0, 1, 3, 4, 5, 6])
    np.testing.assert_array_equal(corpus.author_idx, [0, 1, 0, 2, 0, 1])
    assert (corpus.num_docs, corpus.num_words, corpus.num_tokens) == (5, 7, 9)
    assert (corpus.group_names, corpus.num_groups) == (("land", "sea"), 2)
    assert (corpus.author_names, corpus.num_authors) == (("Ann", "Bob", "Cid"), 3)
    assert (corpus.doc_names, corpus.label_names) == (tuple("pqrst"), ())
    assert corpus.authors(1) == ["Bob", "Ann"]


def test_leaves_are_small_and_read_only(corpus):
    for name in ("doc", "word", "doc_length", "group", "author_ptr", "author_idx"):
        assert getattr(corpus, name).dtype == np.int32
    assert corpus.label.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        corpus.word[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpus.word = corpus.doc


def test_input_arrays_stay_writeable_and_apart():
    doc, word = np.zeros(2, np.int32), np.zeros(2, np.int32)
    corpus = Corpus.from_arrays(doc, word, num_words=2)
    word[:] = 1
    assert corpus.word.tolist() == [0, 0]


def test_repr_is_short(corpus):
    assert repr(corpus) == (
        "Corpus(5 documents, 9 tokens, 7 words, 2 groups, 3 authors, float32 labels)"
    )
    page = corpus._repr_html_()
    assert page.startswith("<b>Corpus</b><table><tr><th>documents</th><td>5</td></tr>")
    assert page.endswith("<tr><th>labels</th><td>float32</td></tr></table>")
    rows = [row.split("</th><td>")[::-1] for row in page.split("<tr><th>")[1:]]
    shown = ", ".join(f"{size.split('<')[0]} {name}" for size, name in rows)
    assert repr(corpus) == f"Corpus({shown})"
    assert repr(Corpus.from_ids([[0]], 1, labels=["x"])) == (
        "Corpus(1 documents, 1 tokens, 1 words, 1 labels)"
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_integers_of_any_width_are_accepted(dtype):
    wanted = Corpus.from_ids([[0, 1, 0], [2, 1]], 3)
    assert Corpus.from_ids([np.array([0, 1, 0], dtype), np.array([2, 1], dtype)], 3) == wanted
    doc, word = np.array([0, 0, 0, 1, 1], dtype), np.array([0, 1, 0, 2, 1], dtype)
    assert Corpus.from_arrays(doc, word, num_docs=dtype(2), num_words=dtype(3)) == wanted


def test_count_matrices_give_what_the_vectorizer_counted():
    vectorizer = CountVectorizer(token_pattern=r"\w")
    counts = scipy.sparse.csr_array(vectorizer.fit_transform(["b a b", "", "c"]))
    names = vectorizer.get_feature_names_out()
    sparse = Corpus.from_counts(counts, vocabulary=names)
    assert sparse.words(0) == ["a", "b", "b"]
    for other in (counts.toarray(), counts.astype(float), scipy.sparse.coo_array(counts)):
        assert Corpus.from_counts(other, vocabulary=names) == sparse
    np.testing.assert_array_equal(sparse.to_counts().toarray(), counts.toarray())
    assert sparse.to_counts().dtype == np.int32


def test_a_vectorizer_of_ones_own():
    vectorizer = CountVectorizer(ngram_range=(1, 2), stop_words=["the"])
    corpus = Corpus.from_texts(["The big cat", "cat big"], vectorizer=vectorizer)
    assert corpus.words(0) == ["big", "cat", "big cat"]
    fitted = Corpus.from_texts(["big big dog"], vectorizer=vectorizer)
    assert fitted.vocabulary == corpus.vocabulary
    assert fitted.words(0) == ["big", "big"]


def test_new_documents_in_an_old_vocabulary(corpus):
    new = Corpus.from_texts(["dog saw a bird", "cat"], vocabulary=corpus.vocabulary)
    assert new.vocabulary == corpus.vocabulary
    assert new.words(0) == ["dog", "saw"]


def test_text_options_reach_the_vectorizer():
    texts = ["One fish, two fish", "Red fish 9", "blue Moon"]
    corpus = Corpus.from_texts(
        texts, stop_words={"two"}, lowercase=False, min_df=1, max_df=1, token_pattern=r"\w+"
    )
    assert corpus.vocabulary == ("9", "Moon", "One", "Red", "blue")
    assert Corpus.from_texts(texts, stop_words=None, max_features=1).vocabulary == ("fish",)


def test_categories_are_numbered_in_sorted_order():
    docs = [[0], [0], [0]]
    corpus = Corpus.from_ids(docs, 1, groups=[2015, 1987, 2015], labels=["no", "yes", "no"])
    assert corpus.group_names == ("1987", "2015")
    np.testing.assert_array_equal(corpus.group, [1, 0, 1])
    assert corpus.label_names == ("no", "yes")
    np.testing.assert_array_equal(corpus.label, [0, 1, 0])
    test = Corpus.from_ids(
        docs, 1, groups=["2015"] * 3, group_names=corpus.group_names, labels=[1, 1, 0],
        label_names=corpus.label_names,
    )  # fmt: skip
    np.testing.assert_array_equal(test.group, [1, 1, 1])
    assert test.num_groups == 2
    assert test.label_names == ("no", "yes")


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [([1, 0, 3], np.int32), ([True, False, True], np.int32), ([0.5, 1, 2], np.float32)],
)
def test_numeric_labels_stay_numbers(labels, dtype):
    for given in (labels, np.array(labels), tuple(labels)):
        corpus = Corpus.from_ids([[0]] * 3, 1, labels=given)
        assert corpus.label.dtype == dtype
        np.testing.assert_array_equal(corpus.label, labels)
        assert corpus.label_names == ()


def test_array_containers_of_other_libraries():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"t": ["a dog", "a cat"], "g": ["x", "y"], "y": [1.5, 2.0]})
    corpus = Corpus.from_texts(frame["t"], groups=frame["g"], labels=frame["y"])
    assert corpus.group_names == ("x", "y")
    assert Corpus.from_ids([jnp.array([0, 1])], 2, labels=jnp.array([1])).num_tokens == 2


FIVE = [[0], [1], [], [0, 1], [1]]

BAD = {
    "texts is a string": (lambda: Corpus.from_texts("one text"), "texts must be a sequence"),
    "no texts": (lambda: Corpus.from_texts([]), "texts is empty; give at least one"),
    "text is None": (lambda: Corpus.from_texts(["a", None]), r"texts\[1\] is None \(NoneType\)"),
    "text is bytes": (lambda: Corpus.from_texts([b"a"]), r"texts\[0\] is b'a' \(bytes\)"),
    "only stop words": (lambda: Corpus.from_texts(["the", "and"]), "texts leave no vocabulary"),
    "words outside": (
        lambda: Corpus.from_texts(["dog"], vocabulary=["cat"]),
        "corpus is empty: 1 documents without a single token",
    ),
    "no stop list": (
        lambda: Corpus.from_texts(["dog"], stop_words=3),
        "stop_words must be a sequence of words, or 'english', got 3",
    ),
    "no vectorizer": (
        lambda: Corpus.from_texts(["dog"], vectorizer="count"),
        "vectorizer is 'count'; give a CountVectorizer",
    ),
    "hashing": (
        lambda: Corpus.from_texts(["dog"], vectorizer=HashingVectorizer()),
        "has no vocabulary; give a CountVectorizer",
    ),
    "vectorizer and vocabulary": (
        lambda: Corpus.from_texts(["dog"], vectorizer=CountVectorizer(), vocabulary=["dog"]),
        "vocabulary is given beside vectorizer",
    ),
    "vectorizer and option": (
        lambda: Corpus.from_texts(["dog"], vectorizer=CountVectorizer(), min_df=2),
        "min_df is given beside vectorizer",
    ),
    "no documents": (lambda: Corpus.from_ids([], 3), "docs is empty; give at least one"),
    "no tokens": (lambda: Corpus.from_ids([[], []], 3), "empty: 2 documents without a single"),
    "docs is a number": (lambda: Corpus.from_ids(3, 3), "docs must be a sequence of documents"),
    "id too large": (
        lambda: Corpus.from_ids([[0], [2, 3]], 3, doc_names=["x", "y"]),
        r"token 1 of document 1 \('y'\) is word 3, outside \[0, 3\); .* num_words",
    ),
    "id negative": (lambda: Corpus.from_ids([[0, -1]], 3), "token 1 of document 0 is word -1"),
    "id huge": (
        lambda: Corpus.from_ids([np.array([2**63], np.uint64)], 3),
        "token 0 of document 0 is word",
    ),
    "ids are floats": (lambda: Corpus.from_ids([[0.0]], 3), r"docs\[0\] has dtype float64"),
    "ids are bools": (lambda: Corpus.from_ids([[True]], 3), r"docs\[0\] has dtype bool"),
    "ids are nested": (lambda: Corpus.from_ids([[[0]]], 3), r"docs\[0\] has shape \(1, 1\)"),
    "ids are ragged": (lambda: Corpus.from_ids([[0, [1]]], 3), r"docs\[0\] is ragged"),
    "ids are words": (lambda: Corpus.from_ids([["a"]], 3), r"docs\[0\] has dtype <U1"),
    "no size": (lambda: Corpus.from_ids([[0]]), "num_words is missing; give num_words or a voc"),
    "size zero": (lambda: Corpus.from_ids([[0]], 0), "num_words must be an integer .*, got 0"),
    "size fractional": (lambda: Corpus.from_ids([[0]], 1.5), "num_words must be an integer .*1.5"),
    "vocabulary short": (
        lambda: Corpus.from_ids([[0]], 3, vocabulary=["a", "b"]),
        "vocabulary has 2 entries but there are 3 words",
    ),
    "vocabulary twice": (
        lambda: Corpus.from_ids([[0]], vocabulary=["a", "b", "a"]),
        "vocabulary has 'a' at 0 and again at 2",
    ),
    "vocabulary of numbers": (
        lambda: Corpus.from_ids([[0]], vocabulary=[1, 2]),
        r"vocabulary\[0\] is 1; give strings",
    ),
    "vocabulary is a string": (
        lambda: Corpus.from_ids([[0]], vocabulary="ab"),
        "vocabulary must be a sequence of strings, got 'ab'",
    ),
    "vocabulary with NUL": (
        lambda: Corpus.from_ids([[0]], vocabulary=["a\0"]),
        r"vocabulary\[0\] is 'a\\x00'; give strings, without NUL",
    ),
    "doc_names short": (
        lambda: Corpus.from_ids(FIVE, 2, doc_names=["x"]),
        "doc_names has 1 entries but there are 5 documents",
    ),
    "groups short": (
        lambda: Corpus.from_ids(FIVE, 2, groups=[0, 1]),
        "groups has 2 entries but there are 5 documents",
    ),
    "groups is a string": (
        lambda: Corpus.from_ids(FIVE, 2, groups="abcde"),
        "groups must be a sequence of one entry per document, got 'abcde'",
    ),
    "groups mixed": (
        lambda: Corpus.from_ids(FIVE, 2, groups=["a", "b", 1, "b", "a"]),
        "groups of document 2 is 1; give strings for all, none of them empty, or integers",
    ),
    "groups missing": (
        lambda: Corpus.from_ids(FIVE, 2, groups=[1, 2, float("nan"), 1, 2]),
        "groups of document 2 is nan",
    ),
    "group unknown": (
        lambda: Corpus.from_ids(FIVE, 2, groups=list("aabac"), group_names=["a", "b"]),
        "groups of document 4 is 'c', not in group_names; add it",
    ),
    "group outside": (
        lambda: Corpus.from_ids(FIVE, 2, groups=[0, 0, 2, 0, 0], group_names=["a", "b"]),
        r"groups of document 2 is 2, outside \[0, 2\); give positions in group_names",
    ),
    "group_names alone": (
        lambda: Corpus.from_ids(FIVE, 2, group_names=["a"]),
        "group_names is given but groups is None; give both",
    ),
    "group_names twice": (
        lambda: Corpus.from_ids(FIVE, 2, groups=[0] * 5, group_names=["a", "a"]),
        "group_names has 'a' at 0 and again at 1",
    ),
    "labels short": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0, 1]),
        "labels has 2 entries but there are 5 documents",
    ),
    "labels nan": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0.0, 1.0, np.nan, 0.0, 1.0]),
        "labels of document 2 is nan; give a finite number",
    ),
    "labels infinite in 32 bits": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0.0, 1e300, 0.0, 0.0, 1.0]),
        r"labels of document 1 is 1e\+300; give a finite number within 32 bits",
    ),
    "labels too large": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0, 2**31, 0, 0, 0]),
        "labels of document 1 is 2147483648",
    ),
    "labels None": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0, 1, 0, None, 0]),
        "labels of document 3 is None",
    ),
    "labels complex": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0, 1, 0, 1j, 0]),
        "labels of document 3 is 1j",
    ),
    "labels of two columns": (
        lambda: Corpus.from_ids(FIVE, 2, labels=np.zeros((5, 2))),
        r"labels of document 0 is \[0.0, 0.0\]",
    ),
    "labels mixed": (
        lambda: Corpus.from_ids(FIVE, 2, labels=["a", 1, "a", "b", "a"]),
        "labels of document 1 is 1; give strings for all",
    ),
    "label outside": (
        lambda: Corpus.from_ids(FIVE, 2, labels=[0, 1, 2, 0, 0], label_names=["no", "yes"]),
        r"labels of document 2 is 2, outside \[0, 2\)",
    ),
    "authors short": (
        lambda: Corpus.from_ids(FIVE, 2, authors=[["a"]]),
        "authors has 1 entries but there are 5 documents",
    ),
    "authors not in lists": (
        lambda: Corpus.from_ids(FIVE, 2, authors=["Ann"] * 5),
        "authors of document 0 are 'Ann'; give every document a list",
    ),
    "authors missing": (
        lambda: Corpus.from_ids(FIVE, 2, authors=[["a"], [], ["a"], ["a"], ["b"]]),
        "authors of document 1 are missing; give every document an author",
    ),
    "author twice": (
        lambda: Corpus.from_ids(FIVE, 2, authors=[["a"], ["a", "b", "a"], ["a"], ["a"], ["b"]]),
        "authors of document 1 have 'a' twice",
    ),
    "author outside": (
        lambda: Corpus.from_ids(
            FIVE,
            2,
            authors=[[0], [0, 2], [1], [1], [1]],
            author_names=["Ann", "Bob"],
            doc_names=list("pqrst"),
        ),
        r"authors of document 1 \('q'\) is 2, outside \[0, 2\); .* author_names",
    ),
    "counts negative": (
        lambda: Corpus.from_counts([[1, 0], [0, -2]]),
        r"counts\[1, 1\] is -2; give whole numbers",
    ),
    "counts fractional": (
        lambda: Corpus.from_counts(scipy.sparse.csr_array([[0.0, 1.5]])),
        r"counts\[0, 1\] is 1.5; give whole numbers",
    ),
    "counts nan": (lambda: Corpus.from_counts([[1.0, np.nan]]), r"counts\[0, 1\] is nan"),
    "counts flat": (lambda: Corpus.from_counts([1, 2]), r"counts has dtype int64 and shape \(2,\)"),
    "counts empty": (lambda: Corpus.from_counts(np.zeros((0, 3))), r"counts has .* shape \(0, 3\)"),
    "counts zero": (lambda: Corpus.from_counts(np.zeros((2, 3))), "corpus is empty: 2 documents"),
    "counts of strings": (lambda: Corpus.from_counts([["a"]]), "counts has dtype <U1"),
    "counts and words": (
        lambda: Corpus.from_counts([[1, 2]], vocabulary=["a"]),
        "vocabulary has 1 entries but there are 2 words",
    ),
    "doc unsorted": (
        lambda: Corpus.from_arrays([0, 1, 0], [0, 0, 0], num_words=1),
        r"doc is not sorted: doc\[2\] is 0, after 1; order the tokens",
    ),
    "doc negative": (
        lambda: Corpus.from_arrays([-1, 0], [0, 0], num_words=1),
        r"doc holds -1, outside \[0, 1\)",
    ),
    "doc too large": (
        lambda: Corpus.from_arrays([0, 2], [0, 0], num_words=1, num_docs=2),
        r"doc holds 2, outside \[0, 2\)",
    ),
    "doc and word": (
        lambda: Corpus.from_arrays([0, 0], [0], num_words=1),
        "doc has 2 entries and word has 1",
    ),
    "doc empty": (
        lambda: Corpus.from_arrays([], [], num_words=1),
        "doc is empty and num_docs is missing",
    ),
    "doc of floats": (
        lambda: Corpus.from_arrays([0.0], [0], num_words=1),
        "doc has dtype float64, its first entry is",
    ),
    "group ids with gaps": (
        lambda: Corpus.from_arrays([0, 1], [0, 0], num_words=1, group=[0, 7]),
        "group holds 7 but has 2 entries; number from 0 without gaps, or give group_names",
    ),
    "label of strings": (
        lambda: Corpus.from_arrays([0, 1], [0, 0], num_words=1, label=["a", "b"]),
        "label of document 0 is 'a'; give a finite number",
    ),
    "label names of fractions": (
        lambda: Corpus.from_arrays(
            [0], [0], num_words=1, label=[0.5], label_names=["no", "yes"]
        ),
        "label has dtype float64",
    ),
    "author_ptr alone": (
        lambda: Corpus.from_arrays([0], [0], num_words=1, author_ptr=[0, 1]),
        "author_ptr is given but author_idx is None",
    ),
    "author_ptr wrong": (
        lambda: Corpus.from_arrays([0], [0], num_words=1, author_ptr=[0, 2], author_idx=[0]),
        r"author_ptr is \[0 2\]; give 2 integers that rise from 0 to 1",
    ),
    "author_idx outside": (
        lambda: Corpus.from_arrays(
            [0],
            [0],
            num_words=1,
            author_ptr=[0, 1],
            author_idx=[3],
            author_names=["Ann"],
            doc_names=["x"],
        ),
        r"author_idx of document 0 \('x'\) is 3, outside \[0, 1\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused_by_name(case):
    build, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        build()


def test_documents_are_checked_before_any_text_is_read():
    class Never(CountVectorizer):
        def fit(self, raw_documents, y=None):
            raise AssertionError("read a text")

    with pytest.raises(ValueError, match="groups has 1 entries"):
        Corpus.from_texts(["a", "b"], groups=["x"], vectorizer=Never())


BAD_OPERATION = {
    "select outside": (lambda c: c.select([5]), r"docs holds 5, outside \[0, 5\)"),
    "select negative": (lambda c: c.select([-1]), r"docs holds -1, outside"),
    "select by a short mask": (lambda c: c.select([True]), r"docs has shape \(1,\); give 5 bool"),
    "select fractions": (lambda c: c.select([0.5]), "docs has dtype float64"),
    "select nothing": (lambda c: c.select([]), "docs is empty; give at least one document"),
    "select empty": (lambda c: c.select([2]), "no token is left"),
    "split all": (lambda c: c.train_test_split(5), "test_size is 5, 5 of 5 documents"),
    "split none": (lambda c: c.train_test_split(0.01), "test_size is 0.01, 0 of 5"),
    "split more": (lambda c: c.train_test_split(1.5), "test_size is 1.5"),
    "stratify": (
        lambda c: Corpus.from_ids([[0]] * 5, 1).train_test_split(2, stratify=True),
        "stratify is True but the corpus has no groups",
    ),
    "halves": (lambda c: c.prune(max_words=1).select([0]).halves(), "no document has two tokens"),
    "prune": (lambda c: c.prune(min_df=1.5), "min_df must be a number as an integer, or a share"),
    "prune all": (lambda c: c.prune(min_count=100), "no word is left by min_count=100"),
    "vocabulary": (lambda c: c.with_vocabulary(["x", "x"]), "vocabulary has 'x' at 0 and"),
    "other words": (lambda c: c.with_vocabulary(["x"]), "vocabulary has no word of the corpus"),
    "document": (lambda c: c.document(5), r"d must be an integer of at most 4, got 5"),
}


@pytest.mark.parametrize("case", BAD_OPERATION)
@pytest.mark.usefixtures("unchecked")
def test_bad_operations_are_refused_by_name(case, corpus):
    run, message = BAD_OPERATION[case]
    with pytest.raises(ValueError, match=message):
        run(corpus)


def test_save_and_load_give_equal_bits(corpus, tmp_path):
    path = tmp_path / "corpus.npz"
    corpus.save(path)
    loaded = Corpus.load(path)
    assert loaded == corpus
    assert loaded.digest == corpus.digest
    for name, value in as_dict(corpus).items():
        if isinstance(value, np.ndarray):
            other = getattr(loaded, name)
            assert (other.dtype, other.tobytes()) == (value.dtype, value.tobytes())
        else:
            assert getattr(loaded, name) == value
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.npz"]


@pytest.mark.parametrize(
    "other",
    [
        Corpus.from_ids([[1, 0], []], vocabulary=["ö", ""]),
        Corpus.from_ids([[0]], 2, labels=["x"], groups=["a"], group_names=["a", "empty"]),
        Corpus.from_ids([[0]], 1, labels=[3]),
    ],
)
def test_save_and_load_of_what_is_optional(other, tmp_path):
    other.save(tmp_path / "x")
    assert Corpus.load(str(tmp_path / "x")) == other


def test_a_failed_save_leaves_the_old_file(corpus, tmp_path, monkeypatch):
    path = tmp_path / "corpus.npz"
    corpus.save(path)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", fail)
        with pytest.raises(OSError, match="disk full"):
            corpus.select([0]).save(path)
    assert Corpus.load(path) == corpus
    assert len(list(tmp_path.iterdir())) == 1


def test_load_refuses_other_and_damaged_files(corpus, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"x.npz is no .npz file of plain arrays"):
        Corpus.load(path)
    np.savez(path, doc=[0])
    with pytest.raises(ValueError, match=r"x.npz was not written by Corpus.save"):
        Corpus.load(path)
    np.savez(path, doc=np.array([object()]))
    with pytest.raises(ValueError, match=r"no .npz file of plain arrays"):
        Corpus.load(path)
    corpus.save(path)
    with np.load(path) as file:
        content = dict(file)
    np.savez(path, **(content | {"word": content["word"][::-1]}))
    with pytest.raises(ValueError, match=r"x.npz is damaged"):
        Corpus.load(path)
    del content["word"]
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"x.npz lacks word"):
        Corpus.load(path)
    with pytest.raises(FileNotFoundError):
        Corpus.load(tmp_path / "absent.npz")


def test_digest_sees_everything(corpus):
    docs = [corpus.document(d) for d in range(5)]
    variants = [
        corpus,
        corpus.select([1, 0, 2, 3, 4]),
        Corpus.from_ids(docs, 7),
        Corpus.from_ids(docs, 8),
        Corpus.from_ids(docs, 7, groups=[0] * 5),
        Corpus.from_ids(docs, 7, labels=[0] * 5),
        Corpus.from_ids(docs, 7, labels=[0.0] * 5),
        Corpus.from_ids([docs[0][::-1], *docs[1:]], 7),
        Corpus.from_ids([*docs, []], 7),
    ]
    assert len({variant.digest for variant in variants}) == len(variants)
    assert len(set(variants)) == len(variants)
    assert all(len(variant.digest) == 64 for variant in variants)


@pytest.mark.slow
def test_digest_is_the_same_in_another_process():
    code = "from bnp_models import Corpus; print(Corpus.from_ids([[0, 1], [2]], 3).digest)"
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert other.stdout.strip() == Corpus.from_ids([[0, 1], [2]], 3).digest


def test_pickled_corpora_are_equal(corpus):
    assert pickle.loads(pickle.dumps(corpus)) == corpus


def test_names_compare_by_content():
    one, two = (Names(("a", "b"), ("0",)) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Names(("ab",), ("0",))
    assert one != Names(("a",), ("b", "0"))
    assert one != ("a", "b")


def test_jit_takes_and_returns_a_corpus(corpus):
    back = jax.jit(lambda corpus: corpus)(corpus)
    assert isinstance(back.word, jax.Array)
    assert back == corpus
    assert back.select([0, 1]).words(1) == ["dogs", "cats"]
    assert jax.device_put(corpus).halves(1)[0] == corpus.halves(1)[0]


def test_an_equal_corpus_does_not_retrace(corpus, tmp_path):
    traces = []

    @jax.jit
    def count(corpus):
        traces.append(corpus)
        return corpus.num_tokens + corpus.word.sum()

    count(corpus)
    corpus.save(tmp_path / "corpus.npz")
    count(Corpus.load(tmp_path / "corpus.npz"))
    count(pickle.loads(pickle.dumps(corpus)))
    assert len(traces) == 1
    count(corpus.select([1, 0, 2, 3, 4]))  # other names
    assert len(traces) == 2


def test_trees_may_hold_anything(corpus):
    sums = jax.vmap(lambda corpus: corpus.word.sum())(
        jax.tree.map(lambda x: jnp.stack([x, x + 1]), corpus)
    )
    assert sums.tolist() == [corpus.word.sum(), corpus.word.sum() + corpus.num_tokens]
    axes = jax.tree.map(lambda _: None, corpus)
    over = jax.vmap(lambda scale, corpus: scale * corpus.word.sum(), in_axes=(0, axes))
    assert over(jnp.arange(2), corpus).tolist() == [0, corpus.word.sum()]
    leaves, structure = jax.tree.flatten(corpus)
    assert len(leaves) == 7
    assert jax.tree.unflatten(structure, [object()] * 7).num_docs == 5
    assert "documents" in repr(jax.tree.map(lambda _: 0, corpus))
    assert "documents" in jax.tree.map(lambda _: 0, corpus)._repr_html_()
    assert jax.eval_shape(lambda corpus: corpus, corpus).word.shape == (9,)


PAIR = Corpus.from_ids([[0], [0]], 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Corpus.from_ids([[0]], vocabulary={"a", "b"}), "vocabulary .* the set a list"),
        (
            lambda: Corpus.from_ids([[0]], vocabulary={"a": 0}),
            "vocabulary must be .* make the dict a list in",
        ),
        (
            lambda: Corpus.from_texts(["ab"], vocabulary=frozenset({"ab"})),
            "vocabulary must be .* make the frozenset a list",
        ),
        (
            lambda: Corpus.from_texts({"ab", "cd"}),
            "texts must be .* make the set a list",
        ),
        (lambda: Corpus.from_ids([[0]], 1, groups={"a"}), "groups must be .* make the set a list"),
        (
            lambda: Corpus.from_texts(["ab"], token_pattern=""),
            "token_pattern must be a regular expression, as a string, got ''",
        ),
        (
            lambda: Corpus.from_texts(["ab"], token_pattern=r"\w*"),
            r"token_pattern must be a pattern that never matches an empty string, .* got '.*\*'",
        ),
        (
            lambda: Corpus.from_texts(["ab"], token_pattern="(a"),
            "token_pattern must be a regular expression, got .*: missing",
        ),
        (
            lambda: Corpus.from_ids([[0], [0]], 1, doc_names=["x", "x"]),
            "doc_names has 'x' at 0 and again at 1; give each one once",
        ),
        (
            lambda: Corpus.from_arrays([0, 1], [0, 0], num_words=1, doc_names=["x", "x"]),
            "has 'x' a",
        ),
        (
            lambda: inspect.unwrap(Corpus.train_test_split)(PAIR, 1, seed=None),  # pyright: ignore
            "seed must be an integer of at least 0, got None",
        ),
        (
            lambda: PAIR.halves(seed=-1),
            "seed must be an integer of at least 0, got -1",
        ),
        (lambda: PAIR.halves(seed=True), "seed must be an integer of at least 0, got True"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sets_where_the_order_does_not_count():
    corpus = Corpus.from_texts(["cat dog"], stop_words={"dog"}, authors=[{"b", "a", "c"}])
    assert corpus.vocabulary == ("cat",)
    assert corpus.authors(0) == ["a", "b", "c"]
    assert corpus.prune(stop_words={"bird"}) == corpus


def test_select_reorders_and_repeats(corpus):
    chosen = corpus.select([3, 1, 3])
    assert [chosen.words(d) for d in range(3)] == [corpus.words(d) for d in (3, 1, 3)]
    assert chosen.doc_names == ("s", "q", "s (2)")
    assert chosen.select([2, 0, 0, 0]).doc_names == ("s (2)", "s", "s (3)", "s (4)")
    assert [chosen.authors(d) for d in range(3)] == [["Ann"], ["Bob", "Ann"], ["Ann"]]
    np.testing.assert_array_equal(chosen.label, [0.0, -1.0, 0.0])
    assert (chosen.vocabulary, chosen.num_groups) == (corpus.vocabulary, 2)
    assert corpus.select(range(5)) == corpus
    assert corpus.select(corpus.doc_length > 2) == corpus.select([0])
    assert corpus.select(np.array([2, 4], np.uint8)).doc_length.tolist() == [0, 2]


def test_train_and_test_documents_are_the_whole(long_corpus):
    train, test = long_corpus.train_test_split(0.25, seed=3)
    assert (train.num_docs, test.num_docs) == (30, 10)
    names = {*train.doc_names, *test.doc_names}
    assert names == set(long_corpus.doc_names)
    for part in (train, test):
        rows = [int(name) for name in part.doc_names]
        assert rows == sorted(rows)
        assert part == long_corpus.select(rows)
    assert long_corpus.train_test_split(0.25, seed=3)[1] == test
    assert long_corpus.train_test_split(10, seed=3)[1] == test
    assert long_corpus.train_test_split(0.25, seed=4)[1] != test


@pytest.mark.parametrize(
    ("num_test", "sizes"), [(8, [4, 3, 1]), (10, [5, 4, 1]), (39, [19, 15, 5])]
)
def test_stratified_test_documents_keep_the_shares(long_corpus, num_test, sizes):
    for seed in range(5):
        train, test = long_corpus.train_test_split(num_test, seed=seed, stratify=True)
        assert np.bincount(test.group, minlength=3).tolist() == sizes
        assert train.num_docs == 40 - num_test


def test_halves_recombine(long_corpus):
    observed, heldout = long_corpus.halves(seed=1)
    assert observed.doc_names == heldout.doc_names == long_corpus.doc_names
    np.testing.assert_array_equal(observed.doc_length, (np.arange(40) + 1) // 2)
    np.testing.assert_array_equal(heldout.doc_length, np.arange(40) // 2)
    both = observed.to_counts() + heldout.to_counts()
    np.testing.assert_array_equal(both.toarray(), long_corpus.to_counts().toarray())
    assert long_corpus.halves(1)[0] == observed
    assert long_corpus.halves(2)[0] != observed
    np.testing.assert_array_equal(observed.label, long_corpus.label)


def test_halves_keep_the_order_and_are_fair():
    corpus = Corpus.from_ids([range(10)], 10)
    first = np.zeros(10)
    for seed in range(400):
        observed, heldout = corpus.halves(seed)
        assert (np.diff(observed.word) > 0).all()
        assert (np.diff(heldout.word) > 0).all()
        first[observed.word] += 1
    # Each count is binomial(400, 1/2), sd 10; |z| < 5 at ten places fails by chance once in 1e5.
    assert np.abs(first - 200).max() < 50


def test_prune_by_counts_and_documents():
    corpus = Corpus.from_ids([[0, 0, 0, 1], [1, 2], [3, 1]], vocabulary=list("abcd"))
    assert corpus.prune(min_count=2).vocabulary == ("a", "b")
    assert corpus.prune(max_count=2).vocabulary == ("c", "d")
    assert corpus.prune(min_df=2).vocabulary == ("b",)
    assert corpus.prune(min_df=0.5).vocabulary == ("b",)
    assert corpus.prune(max_df=0.5).vocabulary == ("a", "c", "d")
    assert corpus.prune(max_df=1).vocabulary == ("a", "c", "d")
    assert corpus.prune(max_words=2).vocabulary == ("a", "b")
    assert corpus.prune(max_words=2, stop_words=["a", "z"]).vocabulary == ("b", "c")
    pruned = corpus.prune(max_df=1, stop_words=["c"])
    assert [pruned.words(d) for d in range(3)] == [["a", "a", "a"], [], ["d"]]
    assert pruned.num_docs == 3
    assert corpus.prune() == corpus


def test_with_vocabulary_renumbers(corpus):
    other = corpus.with_vocabulary(["zebra", "saw", "dog"])
    assert other.num_words == 3
    assert other.words(0) == ["saw", "dog"]
    assert other.doc_length.tolist() == [2, 0, 0, 2, 0]


@pytest.mark.skipif("BNP_DATA" not in os.environ, reason="BNP_DATA names no folder of corpora")
def test_nips_conference_papers(tmp_path):
    from bnp_models.data.readers import read_npz

    path = Path(os.environ["BNP_DATA"]) / "nips12.npz"
    if not path.exists():
        pytest.skip(f"no {path}")
    corpus = read_npz(path, name="title", label="year")
    assert (corpus.num_docs, corpus.num_words, corpus.num_tokens) == (1740, 13649, 2301375)
    assert (corpus.num_authors, len(corpus.author_idx), corpus.num_groups) == (2037, 3990, 10)
    assert corpus.label.min() == 1987
    corpus.save(tmp_path / "nips.npz")
    assert Corpus.load(tmp_path / "nips.npz") == corpus
    observed, heldout = corpus.halves(0)
    assert observed.num_tokens + heldout.num_tokens == corpus.num_tokens
