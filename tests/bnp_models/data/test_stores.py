"""Readers with `store`: the corpus is the one that they make without it, and it is mapped."""

import csv
import gzip
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import bnp_models as bnp
from bnp_models.cli.reading import read_again, read_data
from bnp_models.data import arguments, storage, text_files
from bnp_models.data.corpus import Corpus
from bnp_models.data.documents import encode_documents
from bnp_models.data.readers import (
    guess_format,
    read_corpus,
    read_csv,
    read_folder,
    read_jsonl,
    read_ldac,
    read_lines,
    read_sources,
    read_uci,
)
from bnp_models.data.storage import open_store
from bnp_models.data.texts import TOKEN_PATTERN

PATTERN = arguments.pattern("token_pattern", TOKEN_PATTERN)


@pytest.fixture(params=[5, 2**20])
def chunks(request, monkeypatch):
    monkeypatch.setattr(storage, "CHUNK", request.param)


def many_texts():
    """Texts with many words that are equally frequent, in an order that is not that of letters."""
    rng = np.random.default_rng(0)
    words = [f"{a}{b}" for a in "zyxmlkcba" for b in "qponfed"] + ["The", "und", "Straße"]
    return [" ".join(rng.choice(words, rng.integers(0, 12))) + "!" for _ in range(60)]


def same(found, expected):
    """Both in content and in what is not compared; the first one is mapped."""
    assert found.is_mapped
    assert found == expected
    assert found.tokenizer == expected.tokenizer
    return True


OPTIONS = {
    "none": {},
    "min_df": {"min_df": 7},
    "share": {"min_df": 0.08, "max_df": 0.2},
    "max_df": {"max_df": 8},
    "one": {"max_features": 1},
    "ties": {"max_features": 20},
    "all limits": {"max_features": 11, "min_df": 4, "max_df": 0.25},
    "more than there are": {"max_features": 10_000},
    "stop words": {"stop_words": ["zq", "The", "UND"]},
    "no stop words": {"stop_words": None, "lowercase": False},
    "pattern": {"token_pattern": r"\w", "min_df": 2},
    "vocabulary": {"vocabulary": ["xd", "zq", "never"], "min_df": 50, "max_features": 1},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_choose_the_words_of_the_vectorizer(name, tmp_path, chunks):
    options, texts = OPTIONS[name], many_texts()
    expected = Corpus.from_texts(texts, **options)
    how = {"stop_words": "english", "token_pattern": PATTERN} | options
    assert expected == Corpus.from_texts(texts, vectorizer=CountVectorizer(**how))
    assert same(Corpus.from_texts(iter(texts), store=tmp_path / "a", **options), expected)
    assert same(Corpus.from_texts(texts, store=str(tmp_path / "b"), **options), expected)
    assert same(Corpus.load(tmp_path / "a"), expected)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_equally_frequent_words_of_a_large_vocabulary(tmp_path):
    """The order of ties depends on how NumPy sorts: the same call gives the same order."""
    rng = np.random.default_rng(1)
    words = np.array([f"{a}{b}{c}" for a in "abcdefghijkl" for b in "mnopqrstu" for c in "vwxyz"])
    texts = [" ".join(rng.choice(words, 40)) for _ in range(50)]
    for limit in (3, 50, 200, 400):
        vectorizer = CountVectorizer(token_pattern=PATTERN, max_features=limit)
        expected = Corpus.from_texts(texts, vectorizer=vectorizer)
        options = {"stop_words": None, "max_features": limit}
        assert Corpus.from_texts(texts, **options) == expected
        assert Corpus.from_texts(iter(texts), store=tmp_path / str(limit), **options) == expected


def test_what_is_known_of_documents(tmp_path):
    texts = ["cat dog", "", "dog"]
    about = {
        "groups": ["b", "a", "b"], "authors": [["x"], ["y", "x"], ["y"]], "labels": [1, 0.5, 2],
        "doc_names": list("pqr"), "group_names": ["b", "a", "c"],
    }  # fmt: skip
    for number, given in enumerate((texts, iter(texts))):
        found = Corpus.from_texts(given, store=tmp_path / str(number), **about)
        assert same(found, Corpus.from_texts(texts, **about))


def test_a_fitted_vectorizer(tmp_path):
    texts = ["cat dog", "dog bird dog"]
    vectorizer = CountVectorizer(ngram_range=(1, 2)).fit(texts)
    found = Corpus.from_texts(iter(texts), vectorizer=vectorizer, store=tmp_path / "x")
    assert same(found, Corpus.from_texts(texts, vectorizer=vectorizer))


def never():
    raise AssertionError("a text was read")
    yield


REFUSED = {
    "vectorizer": (
        lambda x: Corpus.from_texts(never(), vectorizer=CountVectorizer(), store=x),
        r"vectorizer CountVectorizer\(\) has no vocabulary yet, and with store .*: fit it before",
    ),
    "keep_texts": (
        lambda x: Corpus.from_texts(never(), keep_texts=True, store=x),
        "keep_texts is True but store keeps no texts; leave one of them out",
    ),
    "groups": (lambda x: Corpus.from_texts(["a", "b"], groups=["x"], store=x), "groups has 1 ent"),
    "late groups": (
        lambda x: Corpus.from_texts(iter(["ab", "cd"]), groups=["x"], store=x),
        "groups has 1 entries but there are 2 documents",
    ),
    "a set": (lambda x: Corpus.from_texts({"ab"}, store=x), "make the set a list in the right"),
    "a number": (lambda x: Corpus.from_texts(3, store=x), "texts must be a sequence of strings"),
    "a number inside": (
        lambda x: Corpus.from_texts(iter(["ab", 3]), store=x),
        r"texts\[1\] is 3 \(int\); give a string",
    ),
    "none": (lambda x: Corpus.from_texts(iter([]), store=x), "texts is empty; give at least one"),
    "no word": (lambda x: Corpus.from_texts(iter(["the"]), store=x), "texts leave no vocabulary"),
    "rare words": (
        lambda x: Corpus.from_texts(["cat", "dog"], min_df=2, store=x),
        "texts leave no vocabulary .min_df=2 and max_df=1.0 keep none.; give more text",
    ),
    "limits": (
        lambda x: Corpus.from_texts(["cat", "dog"], min_df=2, max_df=1, store=x),
        "leave no vocabulary .max_df=1 is fewer documents than min_df=2.",
    ),
    "other words": (
        lambda x: Corpus.from_texts(["cat"], vocabulary=["dog"], store=x),
        "the corpus is empty: 1 documents without a single token",
    ),
    "no vocabulary": (lambda x: Corpus.from_texts(["cat"], vocabulary=[], store=x), "vocabulary i"),
    "new texts": (
        lambda x: Corpus.from_texts(["cat"]).read_texts(["cat"], store=x),
        "store=.* is not an option of from_texts",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("unchecked")
def test_is_refused_and_leaves_nothing(case, tmp_path):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call(tmp_path / "x")
    assert not any(tmp_path.iterdir())


def test_a_store_that_exists(tmp_path):
    with pytest.raises(ValueError, match=r"store is '.*', which exists already: give another"):
        Corpus.from_texts(never(), store=tmp_path)
    with pytest.raises(ValueError, match=r"store is '.*x/y', but .*x is no folder: make it first"):
        Corpus.from_texts(never(), store=tmp_path / "x" / "y")


RECORDS = [
    {"text": "dog cat dog", "group": "a", "authors": ["Ann", "Bob"], "label": 1.5, "name": "x"},
    {"text": "", "group": "b", "authors": ["Bob"], "label": 0, "name": "y"},
    {"text": "fish, dog", "group": "a", "authors": ["Cid"], "label": -2.0, "name": "z"},
]


@pytest.fixture
def files(tmp_path):
    """The records in every format of texts, by the function that reads it."""
    folder = tmp_path / "files"
    (folder / "texts" / "a").mkdir(parents=True)
    lines = [json.dumps(record) for record in RECORDS]
    (folder / "x.jsonl").write_text("\n".join(lines))
    with gzip.open(folder / "y.jsonl.gz", "wt") as file:
        file.write("\n\n".join(lines))
    words = [record | {"words": record["text"].split()} for record in RECORDS]
    (folder / "w.jsonl").write_text("\n".join(json.dumps(record) for record in words))
    with open(folder / "x.csv", "w", newline="") as file:
        rows = csv.DictWriter(file, list(RECORDS[0]))
        rows.writeheader()
        for record in RECORDS:
            rows.writerow(record | {"authors": "; ".join(record["authors"])})
            (folder / "texts" / "a" / f"{record['name']}.txt").write_text(record["text"])
    (folder / "x.txt").write_text("dog cat dog\n\nfish, dog\n")
    return folder


@pytest.mark.parametrize(
    ("read", "name", "options"),
    [
        (read_jsonl, "x.jsonl", {}),
        (read_jsonl, "y.jsonl.gz", {"min_df": 2}),
        (read_jsonl, "x.jsonl", {"text": ["name", "text"], "label": ""}),
        (read_jsonl, "w.jsonl", {"tokens": "words"}),
        (read_jsonl, "w.jsonl", {"tokens": "words", "vocabulary": ["dog", "emu"]}),
        (read_csv, "x.csv", {}),
        (read_csv, "x.csv", {"label": "name", "name": ""}),
        (read_lines, "x.txt", {"max_features": 2}),
        (read_folder, "texts", {"stop_words": ["fish"]}),
        (read_corpus, "x.csv", {"authors": ""}),
    ],
)
def test_files_of_texts(read, name, options, files, tmp_path, chunks):
    expected = read(files / name, **options)
    assert same(read(files / name, store=tmp_path / "x", **options), expected)
    assert same(read_corpus(tmp_path / "x"), expected)


def test_labels_of_tables_become_numbers(tmp_path):
    for number, (labels, dtype) in enumerate(((["1", "2"], "int32"), (["1.5", "2"], "float32"))):
        path = tmp_path / f"{number}.csv"
        path.write_text("text,label\n" + "".join(f"owl,{label}\n" for label in labels))
        assert read_csv(path, store=tmp_path / f"{number}").label.dtype == dtype


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_jsonl, "x.jsonl", '{"text": "a"}\n{', r"x\.jsonl has the line '{', which is no JSON"),
        (read_jsonl, "x.jsonl", '{"text": "owl", "name": 3}\n{"text": "owl", "name": null}',
         r"doc_names\[1\] is None; give strings"),
        (read_csv, "x.csv", "text,label\nowl,1\nowl,nan\n", "labels of document 1 is 'nan'"),
        (read_csv, "x.csv", "text,name\nowl,a\nowl,a\n", r"x\.csv: doc_names has 'a' at 0 and"),
        (read_lines, "texts", "the\n", "^texts: texts leave no vocabulary"),
        (read_lines, "x.txt", "", r"x\.txt: texts is empty"),
    ],
)  # fmt: skip
def test_errors_name_the_file_once(read, name, content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content)
    for options in ({}, {"store": "store"}):
        with pytest.raises(ValueError, match=message) as error:
            read(name, **options)
        assert f"{name}: {name}," not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def uci(path, rows, num_docs=40, num_words=9):
    lines = [num_docs, num_words, len(rows), *(" ".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(map(str, lines)) + "\n")
    return path


def rows_of_bags(ordered):
    rng = np.random.default_rng(2)
    rows = rng.integers((2, 1, 0), (38, 10, 4), (300, 3))  # words repeat, and counts of zero
    return rows[np.argsort(rows[:, 0], kind="stable")] if ordered else rows


class TestBags:
    @pytest.fixture(params=[10, 100, 2**20])
    def blocks(self, request, monkeypatch):
        monkeypatch.setattr(text_files, "BLOCK", request.param)

    @pytest.mark.parametrize("gap", [" ", "\t", "  "])
    def test_uci(self, tmp_path, blocks, gap):
        path = uci(tmp_path / "docword.x.txt", rows_of_bags(ordered=True))
        lines = path.read_text().replace(" ", gap)
        path.write_text(lines)
        expected = read_uci(path)
        counts = np.zeros((40, 9), int)
        np.add.at(counts, tuple((rows_of_bags(True)[:, :2] - 1).T), rows_of_bags(True)[:, 2])
        assert expected == Corpus.from_counts(counts)
        options = {"vocabulary": list("abcdefghi"), "groups": [f"{d % 3}" for d in range(40)]}
        assert same(read_uci(path, store=tmp_path / "a"), expected)
        found = read_uci(path, store=tmp_path / "b", **options)
        assert same(found, read_uci(path, **options))

    def test_ldac(self, tmp_path, blocks):
        path = tmp_path / "x.ldac"
        path.write_text("2 3:2 1:1\n0\n3 1:2 0:0 1:3\n" * 9 + "0\n")
        assert same(read_ldac(path, store=tmp_path / "a"), read_ldac(path))
        words = {"vocabulary": list("vwxyz"), "doc_names": [f"d{d}" for d in range(28)]}
        assert same(read_ldac(path, store=tmp_path / "b", **words), read_ldac(path, **words))

    def test_documents_out_of_order(self, tmp_path, blocks):
        path = uci(tmp_path / "docword.x.txt", [(1, 1, 1), (3, 1, 1), (3, 2, 1), (2, 1, 1)])
        message = r"x\.txt: document 2 comes after document 3; sort the lines by document, or le"
        with pytest.raises(ValueError, match=message):
            read_uci(path, store=tmp_path / "x")
        assert not (tmp_path / "x").exists()
        assert read_uci(path).doc_length.tolist()[:4] == [1, 1, 2, 0]

    @pytest.mark.parametrize("store", [None, "store"])
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("1 1", ""),
            ("1 1 1 1", ""),
            ("", ""),
            ("1 1 -1", "document 1, word 1, count -1"),
            ("1 1 1.5", ""),
            ("0 1 1", "document 0, word 1, count 1"),
            ("41 1 1", "document 41, word 1, count 1"),
            ("1 10 1", "document 1, word 10, count 1"),
            (f"1 {10**30} 1", ""),
            (f"2 1 {2**31}", "document 2, word 1, count 2147483648"),
        ],
    )
    def test_wrong_lines(self, line, message, store, tmp_path, blocks):
        path = uci(tmp_path / "docword.x.txt", [(1, 1, 1)] * 5)
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:5], line, *lines[5:]]))
        with pytest.raises(
            ValueError,
            match=rf"x\.txt: .* is no entry .*{message}.*give document",
        ):
            read_uci(path, store=store and tmp_path / store)
        assert [path.name for path in tmp_path.iterdir()] == ["docword.x.txt"]

    @pytest.mark.parametrize("pair", [f"{2**31}:1", f"0:{2**63}"])
    def test_pairs_that_are_too_large(self, pair, tmp_path):
        (tmp_path / "x.ldac").write_text(f"1 0:1\n1 {pair}\n")
        with pytest.raises(ValueError, match=rf"x\.ldac: word:count {pair} .* too large"):
            read_ldac(tmp_path / "x.ldac")

    @pytest.mark.parametrize(
        ("head", "message"),
        [
            ((10**12, 2, 1), "num_docs must be an integer of at most|num_docs is 1000000000000"),
            ((1, 10**12, 1), "num_words must be an integer of at most|num_words is 1000000000000"),
            ((0, 1, 0), "num_docs must be an integer of at least 1"),
            ((1, 1, 0), "the corpus is empty"),
            ((1, 1, 2), "2 entries announced but 1 found"),
        ],
    )
    def test_heads(self, head, message, tmp_path):
        path = tmp_path / "docword.x.txt"
        path.write_text("\n".join(map(str, head)) + "\n1 1 1" * (head[2] > 0) + "\n")
        with pytest.raises(ValueError, match=message) as error:
            read_uci(path, store=tmp_path / "x")
        assert str(error.value).count(str(path)) == 1
        assert not (tmp_path / "x").exists()


class TestFormat:
    def test_folders_are_recognised(self, tmp_path):
        corpus = Corpus.from_texts(["cat dog", "emu"], groups=["a", "b"], store=tmp_path / "x")
        assert guess_format(tmp_path / "x") == "mapped"
        assert guess_format(tmp_path) == "folder"
        assert read_corpus(tmp_path / "x").is_mapped
        assert read_corpus(str(tmp_path / "x"), "mapped") == corpus
        assert read_sources(tmp_path / "x") == bnp.Sources.from_corpus(corpus)
        with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
            read_corpus(tmp_path / "x", group="a")

    def test_the_command_line(self, tmp_path, capsys):
        (tmp_path / "x.txt").write_text("Cat dog\nCat\n")
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "a.txt").write_text("Cat emu")
        model, name = bnp.LDA(2), str(tmp_path / "2026")
        pairs = ["lowercase=no", f"store={name}"]
        corpus, reading = read_data(model, str(tmp_path / "x.txt"), read=pairs)
        assert corpus.is_mapped
        assert reading == {"format": "lines", "options": {"lowercase": False}, "ending": ".txt"}
        again, reading = read_data(model, name)
        assert again == corpus
        assert reading == {"format": "mapped", "options": {}, "ending": "mapped"}
        # a later folder of texts is one of texts, which are cut as those of the mapped corpus
        later = read_again(model, str(tmp_path / "texts"), "run", reading, corpus.tokenizer)
        assert later.vocabulary == ("Cat", "emu")

    def test_stores_of_the_command_line_are_paths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "x.ldac").write_text("1 0:1\n")
        corpus, reading = read_data(bnp.LDA(2), "x.ldac", read=["store=2026"])
        assert corpus.is_mapped
        assert (tmp_path / "2026" / "word.npy").exists()
        assert reading["options"] == {}


def test_preliminary_numbers_are_replaced_in_place(tmp_path, chunks):
    """In memory and in a file alike; documents may become empty, and be empty at both ends."""
    docs = [[], [3, 1, 3], [1], [], [0, 2, 0, 2, 2, 0, 3, 1], []]
    new_id = np.array([-1, 1, 0, -1])
    kept = [[int(new_id[v]) for v in ids if new_id[v] >= 0] for ids in docs]
    expected = Corpus.from_ids(kept, 2)
    for path in (None, tmp_path / "x"):
        with open_store(path) as tokens:
            for ids in docs[:3]:
                tokens.add(ids)
            for ids in docs[3:]:
                tokens.add(np.array(ids, np.int32), [len(ids)])
            assert (tokens.num_docs, tokens.num_tokens) == (6, 12)
            tokens.renumber(new_id)
            assert tokens.num_tokens == expected.num_tokens
            tokens.add([1])
            found = tokens.finish(("0", "1"), encode_documents(7))
        assert found.arrays["word"].tolist() == [*expected.word, 1]
        assert found.arrays["doc_length"].tolist() == [*expected.doc_length, 1]
        assert found.arrays["doc"].tolist() == [*expected.doc, 6]
