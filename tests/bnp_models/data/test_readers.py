"""Readers: every format gives the corpus that was written, and errors name file and place."""

import csv
import gzip
import json

import numpy as np
import pytest

from bnp_models.data import readers
from bnp_models.data.corpus import Corpus
from bnp_models.data.readers import (
    from_gensim,
    guess_format,
    read_corpus,
    read_csv,
    read_folder,
    read_jsonl,
    read_ldac,
    read_lines,
    read_npz,
    read_uci,
    read_vocabulary,
)

WORDS = ("cat", "dog", "fish")
DOCS = [[0, 0, 1], [], [1, 2, 2]]
BAG = Corpus.from_ids(DOCS, vocabulary=WORDS)
RECORDS = [
    {"text": "dog cat dog", "group": "a", "authors": ["Ann", "Bob"], "label": 1.5, "name": "x"},
    {"text": "", "group": "b", "authors": ["Bob"], "label": 0, "name": "y"},
    {"text": "fish, dog", "group": "a", "authors": ["Cid"], "label": -2.0, "name": "z"},
]
TEXTS = Corpus.from_texts(
    [record["text"] for record in RECORDS],
    groups=["a", "b", "a"],
    authors=[record["authors"] for record in RECORDS],
    labels=[1.5, 0, -2.0],
    doc_names=["x", "y", "z"],
)


@pytest.fixture(params=["", ".gz"])
def write(request, tmp_path):
    """Write lines to a file, plain or compressed."""

    def write_lines(name, lines):
        path = tmp_path / (name + request.param)
        opener = gzip.open if request.param else open
        with opener(path, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return path

    return write_lines


def uci_lines():
    doc, word = np.nonzero(BAG.to_counts().toarray())
    counts = BAG.to_counts().toarray()[doc, word]
    entries = [f"{d + 1} {v + 1} {n}" for d, v, n in zip(doc, word, counts, strict=True)]
    return [str(BAG.num_docs), str(BAG.num_words), str(len(entries)), *entries]


LDAC = ["2 0:2 1:1", "0", "2 1:1 2:2"]


def test_uci(write):
    path = write("docword.pets.txt", uci_lines())
    assert read_uci(path, WORDS) == BAG
    assert read_uci(path).vocabulary == ("0", "1", "2")
    write("vocab.pets.txt", WORDS)
    assert read_uci(path) == BAG
    assert read_uci(path, groups=["a", "b", "a"]).group_names == ("a", "b")
    assert read_corpus(path) == BAG


def test_uci_takes_a_plain_vocabulary_beside_a_compressed_bag(tmp_path):
    with gzip.open(tmp_path / "docword.pets.txt.gz", "wt") as file:
        file.write("\n".join(uci_lines()))
    (tmp_path / "vocab.pets.txt").write_text("\n".join(WORDS))
    assert read_uci(tmp_path / "docword.pets.txt.gz") == BAG


def test_ldac(write):
    path = write("pets.ldac", LDAC)
    assert read_ldac(path, WORDS) == BAG
    assert read_ldac(path, write("words.txt", WORDS)) == BAG
    assert read_ldac(path, [*WORDS, "owl"]).num_words == 4
    assert read_corpus(path, vocabulary=WORDS) == BAG


def test_jsonl(write):
    lines = [json.dumps(record) for record in RECORDS]
    path = write("pets.jsonl", [*lines, ""])
    assert read_jsonl(path) == TEXTS
    assert read_corpus(path) == TEXTS
    assert read_jsonl(path, stop_words=["dog"]).vocabulary == ("cat", "fish")
    assert read_jsonl(path, authors="", label="").author_ptr is None


def test_jsonl_with_other_fields(write):
    fields = {"text": "body", "group": "venue", "authors": "by", "label": "year", "name": "id"}
    records = [{fields[key]: value for key, value in record.items()} for record in RECORDS]
    path = write("pets.jsonl", [json.dumps(record | {"title": "owl"}) for record in records])
    assert read_jsonl(path, **fields) == TEXTS
    both = read_jsonl(path, text=["title", "body"])
    assert both.words(0) == ["owl", "dog", "cat", "dog"]
    assert both.group is both.label is both.author_ptr is None


def test_jsonl_of_tokens(write):
    tokens = [[WORDS[v] for v in doc] for doc in DOCS]
    path = write("pets.jsonl", [json.dumps({"tokens": words, "label": "y"}) for words in tokens])
    corpus = read_jsonl(path)
    assert [corpus.words(d) for d in range(3)] == tokens
    assert corpus.label_names == ("y",)
    assert read_jsonl(path, vocabulary=["fish"]).doc_length.tolist() == [0, 0, 2]


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_csv(suffix, delimiter, tmp_path):
    path = tmp_path / f"pets.{suffix}"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        rows = csv.DictWriter(file, list(RECORDS[0]), delimiter=delimiter)
        rows.writeheader()
        for record in RECORDS:
            rows.writerow(record | {"authors": " ; ".join(record["authors"])})
    assert read_csv(path) == TEXTS
    assert read_corpus(path) == TEXTS


def test_csv_reads_long_and_quoted_fields_and_labels_by_kind(tmp_path):
    limit = csv.field_size_limit()
    path = tmp_path / "x.csv"
    path.write_text('text,label\n"one\ntwo",3\n' + "owl " * 50_000 + ",4\n")
    corpus = read_csv(path, stop_words=None)
    assert corpus.words(0) == ["one", "two"]
    assert corpus.num_tokens == 50_002
    assert corpus.label.dtype == np.int32
    assert csv.field_size_limit() == limit
    path.write_text("text,label\nowl,no\nowl,1\n")
    assert read_csv(path).label_names == ("1", "no")


@pytest.mark.parametrize(
    ("labels", "found"),
    [("1 2", [1, 2]), ("-1 +2", [-1, 2]), ("1 .5 1e-05", [1, 0.5, 1e-05]), ("0 0.0", [0, 0.0])],
)
def test_labels_of_csv_that_are_numbers(labels, found, write):
    path = write("x.csv", ["text,label", *(f"owl,{label}" for label in labels.split())])
    label = read_csv(path).label
    assert label.dtype == (np.int32 if isinstance(found[-1], int) else np.float32)
    np.testing.assert_array_equal(label, np.array(found, label.dtype))


@pytest.mark.parametrize("labels", ["NA US", "2019_01 2019_02", "007 8", "1_0", "٣", "1 no NA"])
def test_labels_of_csv_that_stay_texts(labels, write):
    labels = labels.split()
    path = write("x.csv", ["text,label", *(f"owl,{label}" for label in labels)])
    corpus = read_csv(path)
    assert [corpus.label_names[v] for v in corpus.label] == labels


@pytest.mark.parametrize("missing", ["NA", "nan", "", "inf"])
def test_labels_of_csv_that_are_missing_among_numbers(missing, write):
    path = write("x.csv", ["text,label", "owl,1", f"owl,{missing}"])
    with pytest.raises(ValueError, match=rf"labels of document 1 is '{missing}' where oth"):
        read_csv(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf8", "UTF-8", "utf-8-sig"])
def test_a_byte_order_mark_is_no_part_of_the_text(encoding, tmp_path):
    def write(name, *lines):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8-sig")
        return tmp_path / name

    words = write("vocab.x.txt", "owl", "cat")
    assert read_vocabulary(words) == ("owl", "cat")
    assert read_uci(write("docword.x.txt", "1", "2", "1", "1 1 1")).words(0) == ["owl"]
    assert read_ldac(write("x.ldac", "1 0:1"), words).words(0) == ["owl"]
    how = {"encoding": encoding, "token_pattern": r"\S+"}
    assert read_lines(write("x.txt", "owl"), **how).words(0) == ["owl"]
    assert read_jsonl(write("x.jsonl", '{"text": "owl"}'), **how).words(0) == ["owl"]
    table = write("x.csv", '"text","label"', '"owl, cat","a"')
    assert read_csv(table, **how).label_names == ("a",)


def test_lines(write):
    path = write("pets.txt", [record["text"] for record in RECORDS])
    assert read_lines(path) == Corpus.from_texts([record["text"] for record in RECORDS])
    assert read_corpus(path, stop_words=["dog"]).words(2) == ["fish"]


def test_folder(tmp_path):
    for record in RECORDS:
        (tmp_path / record["group"]).mkdir(exist_ok=True)
        (tmp_path / record["group"] / f"{record['name']}.txt").write_text(record["text"])
    (tmp_path / ".hidden.txt").write_text("owl")
    (tmp_path / "a" / "notes.md").write_text("owl")
    corpus = read_folder(tmp_path)
    assert corpus.doc_names == ("a/x.txt", "a/z.txt", "b/y.txt")
    assert corpus.group_names == ("a", "b")
    assert [corpus.words(d) for d in range(3)] == [["dog", "cat", "dog"], ["fish", "dog"], []]
    assert read_corpus(tmp_path) == corpus
    assert read_folder(tmp_path, groups=False).group is None
    assert read_folder(tmp_path, suffixes=None).doc_names[0] == "a/notes.md"
    (tmp_path / "loose.txt").write_text("owl")
    assert read_folder(tmp_path).group is None


def sparse_arrays():
    counts = BAG.to_counts().tocoo()
    doc, word = counts.coords
    sizes = {"n_docs": np.array(3), "n_words": np.array(3), "vocab": np.array(WORDS)}
    return {"doc": doc, "word": word, "count": counts.data, **sizes}


def test_npz(tmp_path):
    path = tmp_path / "pets.npz"
    more = {
        "group": np.array([1, 0, 1]),
        "group_names": np.array(["b", "a"]),
        "year": np.array([1999, 2001, 2000]),
        "kind": np.array([0, 0, 1]),
        "kind_names": np.array(["no", "yes"]),
        "title": np.array(["x", "y", "z"]),
        "split": np.array([0, 1, 0], np.int8),
        "split_names": np.array(["train", "test"]),
        "author_ptr": np.array([0, 2, 3, 4]),
        "author_idx": np.array([0, 1, 1, 2]),
        "author_names": np.array(["Ann", "Bob", "Cid"]),
    }
    np.savez(path, **sparse_arrays())
    assert read_npz(path) == BAG
    assert read_corpus(path) == BAG
    np.savez(path, **sparse_arrays(), **more)
    corpus = read_npz(path, label="year", name="title")
    about = {
        "authors": [["Ann", "Bob"], ["Bob"], ["Cid"]],
        "groups": ["a", "b", "a"],
        "group_names": ["b", "a"],
        "doc_names": list("xyz"),
    }
    assert corpus == Corpus.from_ids(DOCS, vocabulary=WORDS, labels=[1999, 2001, 2000], **about)
    assert read_npz(path, label="kind").label_names == ("no", "yes")
    assert read_npz(path, group="year").group_names == ("1999", "2000", "2001")
    for part in ("train", 0):
        assert read_npz(path, label="year", name="title", split=part) == corpus.select([0, 2])


def test_npz_reads_saved_corpora(tmp_path):
    TEXTS.save(tmp_path / "x.npz")
    assert read_corpus(tmp_path / "x.npz") == TEXTS
    with pytest.raises(ValueError, match="is a saved corpus, which has its own groups"):
        read_npz(tmp_path / "x.npz", label="year")


class Dictionary:
    """What the reader needs of gensim's class of the same name."""

    def __init__(self, token2id):
        self.token2id = token2id


def test_gensim():
    bow = [[(0, 2), (1, 1)], [], [(2, 2), (1, 1)]]
    ids = {word: v for v, word in enumerate(WORDS)}
    assert from_gensim(bow, Dictionary(ids)) == BAG
    assert from_gensim(bow, dict(enumerate(WORDS))) == BAG
    assert from_gensim(iter(bow)).vocabulary == ("0", "1", "2")
    assert from_gensim([[(7, 1)], [(3, 2.0)]], {7: "x", 3: "y"}).vocabulary == ("y", "x")
    corpus = from_gensim(bow, Dictionary(ids), author2doc={"Bob": [0, 1], "Ann": [2, 0]})
    assert [corpus.authors(d) for d in range(3)] == [["Bob", "Ann"], ["Bob"], ["Ann"]]


def test_gensim_itself():
    corpora = pytest.importorskip("gensim.corpora")
    texts = [[WORDS[v] for v in doc] for doc in DOCS]
    dictionary = corpora.Dictionary(texts)
    assert from_gensim([dictionary.doc2bow(text) for text in texts], dictionary) == BAG


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("docword.kos.txt.gz", "uci"),
        ("ap.dat", "ldac"),
        ("a.NDJSON", "jsonl"),
        ("a.tsv.gz", "csv"),
        ("a.txt", "lines"),
        ("a.npz", "npz"),
    ],
)
def test_formats_are_guessed(name, format):
    assert guess_format(name) == format
    assert format in readers.FORMATS


BAD_FILES = {
    "uci size": (
        "docword.x.txt",
        ["2", "three", "1"],
        read_uci,
        "three lines are .*'three'",
    ),
    "uci short": ("docword.x.txt", ["2"], read_uci, "the first three lines are .'2', '', ''"),
    "uci entry": (
        "docword.x.txt",
        ["2", "2", "1", "1 1"],
        read_uci,
        "is no entry .* give doc",
    ),
    "uci negative": (
        "docword.x.txt",
        ["2", "2", "1", "1 1 -1"],
        read_uci,
        "word 1, count -1",
    ),
    "uci from zero": (
        "docword.x.txt",
        ["2", "2", "1", "1 0 1"],
        read_uci,
        r"document 1, word 0, count 1.*in \[1, 2\], \[1, 2\]",
    ),
    "uci cut": ("docword.x.txt", ["2", "2", "2", "1 1 1"], read_uci, "2 entries ann"),
    "uci empty": ("docword.x.txt", ["2", "2", "0"], read_uci, "the corpus is empty: 2 documents"),
    "ldac pair": (
        "x.ldac",
        ["1 0:1", "1 a:1"],
        read_ldac,
        "document 1 is '1 a:1'; give",
    ),
    "ldac length": (
        "x.ldac",
        ["2 0:1"],
        read_ldac,
        "document 0 is '2 0:1'; give the number",
    ),
    "ldac blank": ("x.ldac", ["1 0:1", "", "1 0:1"], read_ldac, "document 1 is ''; give"),
    "vocabulary twice": (
        "v.txt",
        ["a", "b", "a"],
        read_vocabulary,
        "has 'a' at 0 and again at 2",
    ),
    "vocabulary blank": ("v.txt", ["a", "", "b"], read_vocabulary, "has a blank line, after ..a.."),
    "json": (
        "x.jsonl",
        ['{"text": "a"}', "{"],
        read_jsonl,
        "has the line '{', which is no JSON object",
    ),
    "json list": ("x.jsonl", ["[]"], read_jsonl, r"has the line \'\[\]\', which is no JSON object"),
    "no records": ("x.jsonl", [""], read_jsonl, "has no records; give a file with one"),
    "json without text": (
        "x.jsonl",
        ['{"body": "a", "id": 1}'],
        read_jsonl,
        "no text among 'body', 'id'; name the field that holds it with text=",
    ),
    "json field missing": (
        "x.jsonl",
        ['{"text": "a", "group": "g"}', "", '{"text": "b"}'],
        read_jsonl,
        "document 1 has no 'group' for group=; give some of 'text', or add it there",
    ),
    "json text": (
        "x.jsonl",
        ['{"text": "a"}', '{"text": null}'],
        read_jsonl,
        "text of document 1 must be a string, got None",
    ),
    "json label": (
        "x.jsonl",
        ['{"text": "a", "label": 1}', '{"text": "a", "label": NaN}'],
        read_jsonl,
        "labels of document 1 is nan; give a finite number",
    ),
    "json labels mixed": (
        "x.jsonl",
        ['{"text": "a", "label": 1}', '{"text": "a", "label": "b"}'],
        read_jsonl,
        "labels of document 1 is 'b'; give strings for all",
    ),
    "json authors": (
        "x.jsonl",
        ['{"text": "a", "authors": ["A"]}', '{"text": "a", "authors": []}'],
        read_jsonl,
        "authors of document 1 are missing; give",
    ),
    "json author twice": (
        "x.jsonl",
        ['{"text": "a", "authors": ["A", "A"]}'],
        read_jsonl,
        "authors of document 0 have 'A' twice",
    ),
    "only stop words": ("x.jsonl", ['{"text": "the"}'], read_jsonl, "leave no vocabulary"),
    "csv columns": (
        "x.csv",
        ["text,group", "a,b", "a,b,c"],
        read_csv,
        "row of 3 columns, .* where",
    ),
    "csv quote": ("x.csv", ["text", '"a'], read_csv, "no CSV .*; check quotes"),
    "csv label": (
        "x.csv",
        ["text,label", "a,1", "a,"],
        read_csv,
        "labels of document 1 is ''",
    ),
    "csv semicolons": (
        "x.csv",
        ["text;label", "a;b"],
        read_csv,
        "no text among 'text;label'; name .* with text=, or give delimiter=';' if that divides",
    ),
    "csv semicolons and commas": (
        "x.csv",
        ["text;label", "a, b;c"],
        read_csv,
        "row of 2 columns, .* where the first line has 1; .*, or give delimiter=';' if that",
    ),
    "csv semicolons and names": (
        "x.csv",
        ["text;label", "a;b"],
        lambda path: read_csv(path, text="text"),
        "document 0 has no 'text' for text=; give some of 'text;label', .* delimiter=';' if that",
    ),
    "tsv with commas": (
        "x.tsv",
        ["text,label", "a,b"],
        read_csv,
        "no text among 'text,label'; .*, or give delimiter=',' if that",
    ),
    "csv author": ("x.csv", ["text,authors", "a,;"], read_csv, "authors of document 0 are missing"),
    "csv text": ("x.csv", ["body", "a"], read_csv, "no text among 'body'"),
    "empty lines": ("x.txt", ["", ""], read_lines, "texts leave no vocabulary"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_errors_name_file_and_place(case, write):
    name, lines, read, message = BAD_FILES[case]
    path = write(name, lines)
    with pytest.raises(ValueError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


def test_errors_of_encoding_and_compression(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("Straße\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"x.txt is not utf-8 text .* encoding='latin-1'"):
        read_lines(path)
    assert read_lines(path, encoding="latin-1").vocabulary == ("straße",)
    path = tmp_path / "x.txt.gz"
    path.write_text("no gzip")
    with pytest.raises(ValueError, match=r"x.txt.gz is not a complete gzip file"):
        read_lines(path)
    path.write_bytes(gzip.compress(b"some words " * 100)[:-12])
    with pytest.raises(ValueError, match=r"x.txt.gz is not a complete gzip file"):
        read_lines(path)
    with pytest.raises(FileNotFoundError):
        read_lines(tmp_path / "absent.txt")


def test_errors_of_vocabularies(write):
    uci, words = write("docword.x.txt", uci_lines()), write("few.txt", ["a", "b"])
    with pytest.raises(ValueError, match=r"x.txt.* has 3 words but its vocabulary has 2"):
        read_uci(uci, words)
    with pytest.raises(ValueError, match=r"word 2 of document 2 is outside the vocabulary"):
        read_ldac(write("x.ldac", LDAC), words)


def test_errors_of_folders(tmp_path):
    with pytest.raises(ValueError, match="absent is not a folder"):
        read_folder(tmp_path / "absent")
    with pytest.raises(ValueError, match="has no files that end in"):
        read_folder(tmp_path)
    (tmp_path / "x.txt").write_text("owl")
    with pytest.raises(ValueError, match=r"x.txt is in no subfolder; move it"):
        read_folder(tmp_path, groups=True)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"count": None}, {}, "has no array 'count' for the counts; give one of doc, n_docs"),
        ({}, {"label": "year"}, "has no 'year' for label=; give some of "),
        ({"doc": [0, 0, 2, 3]}, {}, r"doc holds 0 to 3, outside \[0, 3\)"),
        ({"word": [0, 1, 1]}, {}, "doc, word and count have 4, 3 and 4 entries"),
        ({"count": [1, 1, -1, 1]}, {}, r"counts\[2, 1\] is -1"),
        ({"vocab": ["a", "b"]}, {}, "vocabulary has 2 entries but there are 3 words"),
        ({"group": [0, 1]}, {}, "groups has 2 entries but there are 3 documents"),
        ({"author_ptr": [0, 1, 1, 2], "author_idx": [0, 0]}, {}, "authors of document 1 are mis"),
        ({"author_idx": [0, 0]}, {}, "author_idx has no author_ptr"),
        (
            {"split": [0, 1, 0], "split_names": ["train", "test"]},
            {"split": "dev"},
            "split must be one of .*'train'.* got 'dev'",
        ),
    ],
)
def test_errors_of_npz_name_file_and_array(change, options, message, tmp_path):
    arrays = sparse_arrays() | {key: np.array(value) for key, value in change.items()}
    arrays = {key: value for key, value in arrays.items() if value.dtype != object}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=message) as error:
        read_npz(tmp_path / "x.npz", **options)
    assert "x.npz" in str(error.value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: from_gensim([]), "bow is empty"),
        (lambda: from_gensim([[]]), "bow has no words"),
        (lambda: from_gensim([[], [(3, 1)]], {0: "a"}), r"bow\[1\] has word 3, which is not in"),
        (lambda: from_gensim([[(0, 0.5)]], {0: "a"}), r"counts\[0, 0\] is 0.5; .* tf-idf"),
        (lambda: from_gensim([[("a", 1)]], {0: "a"}), "bow has dtype <U1"),
        (
            lambda: from_gensim([[(0, 1)]], {0: "a"}, author2doc={"Ann": [1]}),
            r"author2doc\['Ann'\] holds 1, outside \[0, 1\)",
        ),
        (
            lambda: from_gensim([[(0, 1)], [(0, 1)]], {0: "a"}, author2doc={"Ann": [1]}),
            "authors of document 0 are missing",
        ),
        (lambda: read_corpus("x.pdf"), "no format goes by .pdf; give format= one of npz"),
        (lambda: read_corpus("x.npz", "pdf"), "format must be one of .*'npz'.* got 'pdf'"),
    ],
)
def test_other_errors(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_columns_of_the_same_name(tmp_path):
    (tmp_path / "a.csv").write_text("text,text,,\nfirst,second,,\n")
    with pytest.raises(ValueError, match=r"a\.csv: the first line has 'text' at 0 and again at 1"):
        readers.read_csv(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("text,,\nwords,,\n")
    assert readers.read_csv(tmp_path / "b.csv").vocabulary == ("words",)


def test_documents_of_the_same_name(tmp_path):
    (tmp_path / "a.csv").write_text("text,name\nfirst,x\nsecond,x\n")
    with pytest.raises(ValueError, match=r"a\.csv: doc_names has 'x' at 0 and again at 1"):
        readers.read_csv(tmp_path / "a.csv")


def test_names_of_files_that_are_no_utf8(tmp_path):
    for group in ("caf\udce9", "tea"):
        (tmp_path / group).mkdir()
    for name in ("a\udce9.txt", "a\udcea.txt"):
        (tmp_path / "caf\udce9" / name).write_text("cat dog")
    (tmp_path / "tea" / "b.txt").write_text("moon")
    corpus = readers.read_folder(tmp_path)
    assert corpus.group_names == ("caf\ufffd", "tea")
    assert corpus.doc_names == ("caf\ufffd/a\ufffd.txt", "caf\ufffd/a\ufffd.txt (2)", "tea/b.txt")
    corpus.save(tmp_path / "corpus.npz")


def test_cut_emoji_in_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"text": "cat \\ud83d", "group": "g\\ud83d", "name": "n", "authors": ["\\ud83d"]}'
    )
    corpus = readers.read_jsonl(path)
    assert corpus.group_names == ("g\ufffd",)
    assert corpus.author_names == ("\ufffd",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"doc_names": ["a\udce9"]}, r"doc_names\[0\] is 'a\\udce9', which has half of a surrog"),
        ({"groups": ["a\udce9"]}, r"groups of document 0 is 'a\\udce9', which has half"),
        ({"labels": ["a\udce9"]}, r"labels of document 0 is 'a\\udce9', which has half"),
        ({"authors": [["a\udce9"]]}, r"authors of document 0 is 'a\\udce9', which has half"),
        ({"groups": [0], "group_names": ["a\udce9"]}, r"group_names\[0\] is 'a\\udce9', which"),
        ({"vocabulary": ["a\udce9"]}, r"vocabulary\[0\] is 'a\\udce9', which has half"),
        ({"token_pattern": "[^ ]+"}, r"the word 'b\\udce9' of the texts has half of a surrogate"),
    ],
)
def test_constructors_refuse_halves_of_surrogate_pairs(options, message):
    with pytest.raises(ValueError, match=message):
        Corpus.from_texts(["cat b\udce9"], **options)
