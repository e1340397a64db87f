"""The writer of corpora: the corpus that `from_ids` makes, and nothing after an error."""

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data import storage
from bnp_models.data.corpus import Corpus

DOCS = [[0, 1, 0], [], [2, 1], [2]]
ABOUT = {
    "groups": ["b", "a", "b", "b"],
    "authors": [["Ann"], ["Bob", "Ann"], ["Cid"], ["Ann"]],
    "labels": [0.5, 1, 2, -3],
    "doc_names": ["w", "x", "y", "z"],
}
ROLES = {"groups": "group", "authors": "authors", "labels": "label", "doc_names": "name"}


def write(path, docs, about=None, **end):
    with bnp.CorpusWriter(path) as writer:
        for d, ids in enumerate(docs):
            writer.add(ids, **{ROLES[key]: values[d] for key, values in (about or {}).items()})
        return writer.finish(**end)


@pytest.fixture(params=[2, 2**20])
def chunks(request, monkeypatch):
    monkeypatch.setattr(storage, "CHUNK", request.param)


@pytest.mark.parametrize(
    "about",
    [{}, ABOUT, *({key: values} for key, values in ABOUT.items()),
     {"groups": [3, 1, 3, np.int64(2)], "labels": ["no", "yes", "no", "no"]},
     {"authors": [[3], {1, 2}, (1,), np.array([2])]}],
)  # fmt: skip
def test_the_corpus_is_that_of_from_ids(about, tmp_path, chunks):
    corpus = write(tmp_path / "x", DOCS, about, vocabulary=["cat", "dog", "emu"])
    expected = Corpus.from_ids(DOCS, vocabulary=["cat", "dog", "emu"], **about)
    assert corpus == expected
    assert corpus.is_mapped
    assert corpus.words(2) == ["emu", "dog"]
    assert Corpus.load(tmp_path / "x") == expected
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_names_fix_the_numbering(tmp_path):
    names = {"group_names": ["b", "a"], "label_names": ["l", "k"], "author_names": ["Bob", "Ann"]}
    about = {"groups": ["a", "b"], "labels": ["k", "k"], "authors": [["Ann"], ["Bob"]]}
    corpus = write(tmp_path / "x", DOCS[:2], about, num_words=2, **names)
    assert corpus == Corpus.from_ids(DOCS[:2], 2, **about, **names)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint32, np.int64, np.uint64])
def test_integers_of_any_width(dtype, tmp_path):
    docs = [np.array(ids, dtype) for ids in DOCS]
    assert write(tmp_path / "x", docs, num_words=3) == Corpus.from_ids(DOCS, 3)


def test_the_folder_is_there_when_the_block_is_over(tmp_path):
    path = tmp_path / "x"
    with bnp.CorpusWriter(path) as writer:
        writer.add([0])
        corpus = writer.finish(num_words=1)
        assert corpus.num_tokens == 1
        assert not path.exists()
        with pytest.raises(ValueError, match=r"the corpus of .*x is finished; make another writer"):
            writer.add([0])
    assert Corpus.load(path) == corpus
    assert corpus.document(0).tolist() == [0]
    with pytest.raises(ValueError, match=r"x is not open; use it as in `with CorpusWriter\(path\)"):
        writer.add([0])
    with pytest.raises(ValueError, match="x was used before; make a new one"):
        writer.__enter__()


@pytest.mark.parametrize("when", ["at once", "after add", "after finish"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_leaves_nothing(when, error, tmp_path):
    def block():
        with bnp.CorpusWriter(tmp_path / "x") as writer:
            if when != "at once":
                writer.add([0])
            if when == "after finish":
                writer.finish(num_words=1)
            raise error

    with pytest.raises(error):
        block()
    assert not any(tmp_path.iterdir())


def test_a_corpus_must_be_finished(tmp_path):
    with pytest.raises(ValueError, match=r"x ended without a corpus: call finish\(vocabulary=\.\."):
        with bnp.CorpusWriter(tmp_path / "x") as writer:
            writer.add([0])
    assert not any(tmp_path.iterdir())


def test_a_refused_document_is_not_added(tmp_path):
    with bnp.CorpusWriter(tmp_path / "x") as writer:
        writer.add([0], name="a")
        for wrong in ({"word_ids": [-1], "name": "b"}, {"word_ids": [7], "name": "a"}):
            with pytest.raises(ValueError, match=r"word_ids holds -1|name is 'a', as that of doc"):
                writer.add(**wrong)
        writer.add([1], name="b")
        corpus = writer.finish(num_words=2)
    assert corpus == Corpus.from_ids([[0], [1]], 2, doc_names=["a", "b"])


def test_finish_can_be_tried_again(tmp_path):
    with bnp.CorpusWriter(tmp_path / "x") as writer:
        writer.add([0, 2])
        with pytest.raises(ValueError, match="num_words has 2 words, but document 0 has word 2"):
            writer.finish(num_words=2)
        writer.add([1])
        corpus = writer.finish(num_words=3)
    assert corpus == Corpus.from_ids([[0, 2], [1]], 3)


BAD_DOCUMENTS = {
    "a string": (["01"], {}, "word_ids must be a sequence of word ids, got '01'"),
    "fractions": ([[0.5]], {}, "word_ids has dtype float64"),
    "negative": ([[0], [0, -1]], {}, r"word_ids holds -1, outside \[0, 2\*\*31\); number words"),
    "large": ([[2**31]], {}, "word_ids holds 2147483648, outside"),
    "very large": ([np.array([2**63], np.uint64)], {}, "word_ids holds 2147483648, outside"),
    "no document": ([], {}, "no document was added; call add once for each"),
    "no token": ([[], []], {}, "the corpus is empty: 2 documents without a single token"),
    "group is missing": (
        [[0], [0]], {"groups": ["a", None]},
        "group of document 1 is None, but the documents before have one; give it for all",
    ),
    "group is late": (
        [[0], [0]], {"groups": [None, "a"]},
        "group of document 1 is 'a', but the documents before have none",
    ),
    "groups mixed": ([[0], [0]], {"groups": ["a", 1]}, "groups of document 1 is 1; give"),
    "empty group": ([[0]], {"groups": [""]}, "groups of document 0 is ''; give strings"),
    "label": ([[0]], {"labels": [np.inf]}, "labels of document 0 is inf; give a finite n"),
    "large label": ([[0]], {"labels": [2**31]}, "labels of document 0 is 2147483648; give a"),
    "no author": ([[0]], {"authors": [[]]}, "authors of document 0 are missing; give"),
    "author twice": ([[0]], {"authors": [["a", "a"]]}, "authors of document 0 have 'a' twice"),
    "authors of two kinds": ([[0]], {"authors": [["a", 1]]}, "authors of document 0 is 1; give st"),
    "authors mixed": ([[0], [0]], {"authors": [["a"], [1]]}, "authors of document 1 is 1; give st"),
    "name twice": (
        [[0], [0], [0]], {"doc_names": ["a", "b", "a"]},
        "name is 'a', as that of document 0; give each document a name of its own",
    ),
    "name with NUL": ([[0]], {"doc_names": ["a\0"]}, r"name of document 0 is 'a\\x00'; give"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
@pytest.mark.usefixtures("unchecked")
def test_bad_documents_are_refused_by_name(case, tmp_path):
    docs, about, message = BAD_DOCUMENTS[case]
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "x", docs, about, num_words=3)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({}, "num_words is missing; give num_words or a vocabulary"),
        (
            {"num_words": 2},
            r"num_words has 2 words, but document 3 \('z'\) has word 2; number",
        ),
        ({"vocabulary": ["a", "b"]}, "vocabulary has 2 words, but document 3"),
        ({"vocabulary": ["a", "b", "a"]}, "vocabulary has 'a' at 0 and again at 2"),
        ({"vocabulary": ["a"], "num_words": 3}, "vocabulary has 1 entries but there are 3 words"),
        ({"num_words": 3, "group_names": ["b"]}, "groups of document 1 .* not in group_names; add"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_ends_are_refused_by_name(end, message, tmp_path, chunks):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "x", DOCS, ABOUT, **end)
    assert not any(tmp_path.iterdir())


def test_a_path_that_exists(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(ValueError, match=r"path is '.*x', which exists already: give another"):
        bnp.CorpusWriter(tmp_path / "x").__enter__()
    writer = bnp.CorpusWriter(tmp_path / "y").__enter__()
    writer.add([0])
    writer.finish(num_words=1)
    (tmp_path / "y").mkdir()
    with pytest.raises(ValueError, match=r"path is '.*y', which exists already"):
        writer.__exit__(None, None, None)
    assert {path.name for path in tmp_path.iterdir()} == {"x", "y"}


def test_there_is_a_limit_of_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr("bnp_models.data.checks.LIMIT", 6)
    with pytest.raises(ValueError, match="the corpus has 6 tokens; split the corpus"):
        write(tmp_path / "x", DOCS, num_words=3)
