"""Covariates of documents: which are taken, and that selections and files keep them exactly."""

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.data.storage import load_npz, save_data, write_sealed

UTC = datetime.UTC
LONG = 2**60 + 1
DOCS = [[0, 1], [1], [0], []]
COLUMNS: dict[str, Any] = {
    "year": [2001, 2002, 2003, 2004],
    "share": [1.5, None, np.nan, 2],
    "good": [True, False, True, True],
    "known": [True, None, False, pd.NA],
    "party": ["left", "Right", None, "left"],
    "size": pd.Categorical(["lo", "hi", None, "lo"], ["lo", "mid", "hi"], ordered=True),
    "day": [datetime.date(1500, 1, 1), None, datetime.datetime(2001, 2, 3, 4, tzinfo=UTC), pd.NaT],
    "month": np.array(["2001-01", "2002-03", "NaT", "2000-01"], "datetime64[M]"),
    "narrow": np.float32([1, 2, 3, np.nan]),
    "absent": [None] * 4,
    "no level": pd.Categorical([None] * 4),
}


def corpus_with(covariates, **options):
    return bnp.Corpus.from_ids(DOCS, num_words=2, covariates=covariates, **options)


@pytest.fixture(scope="module")
def corpus():
    return corpus_with(COLUMNS)


def kept(values):
    """Return the column that a corpus makes of these values."""
    return corpus_with({"x": values}).covariates["x"]


def test_kinds_of_columns(corpus):
    frame = corpus.covariates
    assert list(frame.columns) == list(COLUMNS)
    assert frame.index.tolist() == [0, 1, 2, 3]
    assert frame.dtypes.map(str).to_dict() == {
        "year": "int64", "share": "float64", "good": "bool", "known": "boolean",
        "party": "category", "size": "category", "day": "datetime64[us]", "month": "datetime64[s]",
        "narrow": "float32", "absent": "float64", "no level": "category",
    }  # fmt: skip
    assert frame["party"].cat.categories.tolist() == ["Right", "left"]
    assert not frame["party"].cat.ordered
    assert frame["size"].cat.categories.tolist() == ["lo", "mid", "hi"]
    assert frame["size"].cat.ordered
    assert frame["party"].isna().tolist() == [False, False, True, False]
    assert frame["known"].isna().tolist() == [False, True, False, True]
    assert frame["day"].tolist()[::2] == [pd.Timestamp("1500-01-01"), pd.Timestamp("2001-02-03 04")]
    assert frame["day"].isna().tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        (pd.array([1, 2, 3, 4], dtype="Int8"), "int8", [1, 2, 3, 4]),
        (pd.Series([1, 2, 3, 4], index=[3, 2, 1, 0]), "int64", [1, 2, 3, 4]),
        (np.array([1, 2, 3, 4], object), "int64", [1, 2, 3, 4]),
        (pd.arrays.SparseArray([0, 0, 1, 2]), "int64", [0, 0, 1, 2]),
        ([np.int32(1), np.float64(2), 3, 4], "float64", [1, 2, 3, 4]),
        ([2**70, 1, 2, 3], "float64", [2.0**70, 1, 2, 3]),
        (pd.array([True, False, True, True], dtype="boolean"), "bool", [True, False, True, True]),
        (pd.Series(list("abab"), dtype="string"), "category", list("abab")),
        (pd.cut([1, 2, 3, 4], [0, 2, 4]), "category", ["(0, 2]"] * 2 + ["(2, 4]"] * 2),
        (pd.Categorical([2, 1, 2, 1]), "category", ["2", "1", "2", "1"]),
        (
            pd.date_range("2001-01-01", periods=4, tz="Asia/Kolkata").as_unit("us"),
            "datetime64[us]",
            [pd.Timestamp(2001, 1, d) for d in (1, 2, 3, 4)],
        ),
        (
            pd.period_range("2001", "2004", freq="Y").to_series().to_numpy(),
            None,
            [pd.Timestamp(year, 1, 1) for year in range(2001, 2005)],
        ),
        (
            pd.period_range("2001", "2004", freq="Y"),
            None,
            [pd.Timestamp(year, 1, 1) for year in range(2001, 2005)],
        ),
    ],
    ids=[
        "Int8", "series", "objects", "sparse", "numbers of NumPy", "large", "boolean", "string",
        "intervals", "levels of numbers", "time zone", "list of periods", "periods",
    ],
)  # fmt: skip
def test_values_of_pandas_and_numpy(values, dtype, wanted):
    column = kept(values)
    assert column.tolist() == wanted
    assert dtype is None or str(column.dtype) == dtype
    assert column.dtype.kind in "biufOM"


def test_integers_with_missing_ones_are_floats():
    column = kept(pd.array([1, None, 3, 4], dtype="Int64"))
    assert (str(column.dtype), column.isna().tolist()) == ("float64", [False, True, False, False])


def test_digits_that_are_kept():
    for values in (
        [LONG, 2, 3, -LONG],
        pd.array([LONG, 1, 2, 3], dtype="Int64"),
        [2**64 - 1, 1, 2, 3],
        [2**60, 1.5, 2, 3],  # a float holds it exactly
        [str(LONG), None, "2", "3"],
    ):
        there = [x for x in list(values) if x is not None]
        assert kept(values).dropna().tolist() == there


def test_a_frame_counts_by_position():
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": list("abcd")}, index=[3, 2, 1, 0])
    found = corpus_with(frame).covariates
    assert found["x"].tolist() == [1, 2, 3, 4]
    assert found.index.tolist() == [0, 1, 2, 3]


def test_they_change_neither_digest_nor_equality(corpus):
    plain = bnp.Corpus.from_ids(DOCS, num_words=2)
    assert (plain, plain.digest, hash(plain)) == (corpus, corpus.digest, hash(corpus))
    assert plain.covariates.shape == (4, 0)
    assert corpus_with({}).names.covariates is None


def test_what_is_returned_is_a_copy(corpus):
    frame = corpus.covariates
    frame["year"] = 0
    frame.loc[0, "share"] = 9.0
    assert corpus.covariates["year"].tolist() == COLUMNS["year"]
    assert corpus.covariates["share"][0] == 1.5


def test_every_constructor_takes_them():
    x = {"x": [1, 2]}
    made = [
        bnp.Corpus.from_texts(["cat dog", "cat"], covariates=x),
        bnp.Corpus.from_ids([[0], [1]], num_words=2, covariates=x),
        bnp.Corpus.from_counts([[1, 0], [0, 1]], covariates=x),
        bnp.Corpus.from_arrays([0, 1], [0, 1], num_words=2, covariates=x),
        bnp.Corpus.from_texts(["cat"], covariates={}).read_texts(["cat", "cat cat"], covariates=x),
        bnp.data.readers.from_gensim([[(0, 1)], [(1, 2)]], covariates=x),
    ]
    for corpus in made:
        assert corpus.covariates["x"].tolist() == [1, 2]


def test_selections_keep_them_row_by_row(corpus):
    frame = corpus.covariates
    for docs in ([2, 0, 0], np.array([True, False, False, True])):
        rows = np.flatnonzero(docs) if isinstance(docs, np.ndarray) else docs
        wanted = frame.iloc[rows].reset_index(drop=True)
        pd.testing.assert_frame_equal(corpus.select(docs).covariates, wanted)
    big = bnp.Corpus.from_ids([[0, 1]] * 20, num_words=2, covariates={"d": range(20)})
    for part in big.train_test_split(6, seed=1):
        assert part.covariates["d"].tolist() == [int(name) for name in part.doc_names]


def test_what_keeps_all_documents_keeps_them(corpus):
    for same in (
        *corpus.halves(),
        corpus.prune(min_df=1),
        corpus.with_vocabulary(["1"]),
        corpus.with_labels([1, 2, 3, 4]),
    ):
        pd.testing.assert_frame_equal(same.covariates, corpus.covariates)


@pytest.mark.parametrize("mapped", [False, True])
def test_files_keep_them_exactly(corpus, tmp_path, mapped):
    path = tmp_path / "saved"
    corpus.save(path, mapped=mapped)
    loaded = bnp.Corpus.load(path)
    assert loaded == corpus
    pd.testing.assert_frame_equal(loaded.covariates, corpus.covariates, check_exact=True)
    plain = bnp.Corpus.from_ids(DOCS, num_words=2)
    plain.save(tmp_path / "plain", mapped=mapped)
    assert bnp.Corpus.load(tmp_path / "plain").names.covariates is None


def test_a_store_and_a_run_keep_them(corpus, tmp_path):
    stored = bnp.Corpus.from_texts(
        iter(["cat dog", "dog"]), covariates={"x": ["b", None]}, store=tmp_path / "store"
    )
    for found in (stored, bnp.Corpus.load(tmp_path / "store")):
        assert found.covariates["x"].tolist()[0] == "b"
    save_data(stored, tmp_path / "corpus.npz")
    other = bnp.Corpus.from_texts(
        iter(["cat dog", "dog"]), covariates={"y": [1, 2]}, store=tmp_path / "other"
    )
    save_data(other, tmp_path / "corpus.npz")  # the same digest, other covariates
    assert bnp.Corpus.load(tmp_path / "corpus").covariates["y"].tolist() == [1, 2]


def test_damaged_covariates_are_refused(corpus, tmp_path):
    corpus.save(tmp_path / "a.npz")
    content = load_npz(tmp_path / "a.npz")
    about = json.loads(str(content["covariates"]))
    wrong = [
        {"covariates": np.array("[")},
        {"covariates": np.array(json.dumps([{"name": "x"}] * 2))},
        {"covariates": np.array(json.dumps([{}]))},
        {"covariates_0": np.arange(3)},
        {"covariates_4": np.full(4, 7, np.int32)},  # a level that is not there
        {"covariates_0": np.array(["a", "b", "c", "d"], "S1")},
        {"covariates": np.array(json.dumps([*about, {"name": "more"}]))},
    ]
    for change in wrong:
        write_sealed(tmp_path / "b.npz", content | change)
        with pytest.raises(ValueError, match=r"b.npz has covariates that can't be read \(.*save"):
            bnp.Corpus.load(tmp_path / "b.npz")
    corpus.save(tmp_path / "mapped", mapped=True)
    (tmp_path / "mapped" / "covariates.npz").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"covariates.npz is damaged"):
        bnp.Corpus.load(tmp_path / "mapped")
    (tmp_path / "mapped" / "covariates.npz").unlink()
    with pytest.raises(ValueError, match=r"mapped lacks covariates.npz; make the folder again"):
        bnp.Corpus.load(tmp_path / "mapped")


BAD = {
    "list": ([1, 2], "covariates is of type list; give columns by name, as a dictionary or a"),
    "string": ("x", "covariates is of type str; give columns"),
    "number": ({"x": 1}, r"covariates\['x'\] must be a sequence of one entry per document"),
    "short": ({"x": [1, 2, 3]}, r"\['x'\] has 3 entries but there are 4 documents"),
    "short frame": (pd.DataFrame({"x": [1]}), "covariates has 1 rows but there are 4 documents"),
    "mixed": ({"x": [1, "b", 2, 3]}, r"\['x'\] holds 3 and 'b'; give numbers for all, booleans"),
    "numbers and booleans": ({"x": [1, True, 2, 3]}, r"holds 3 and True; give numbers for all"),
    "lists": ({"x": [[1], [2], [3], [4]]}, r"holds \[4\]; give numbers"),
    "complex": ({"x": [1j, 2, 3, 4]}, "give numbers for all"),
    "durations": ({"x": np.arange(4).astype("m8[s]")}, "got durations"),
    "set": ({"x": {1, 2, 3, 4}}, "whose order counts"),
    "masked": ({"x": np.ma.masked_equal([1, 2, 3, 4], 2)}, "has 1 masked entries"),
    "infinite": ({"x": [1, 2, 3, np.inf]}, r"\['x'\] of document 3 is inf; give finite numbers"),
    "too large": (
        {"x": [1, 2, 10**400, 3]},
        r"\['x'\] of document 2 is 10+\.\.\., whose last digits would be lost: .* Make all of them "
        "strings",
    ),
    "signalling": (
        {"x": [1, Decimal("sNaN"), 2, 3]},
        r"\['x'\] of document 1 is sNaN; give finite numbers, and NaN where one is missing",
    ),
    "digits": ({"x": [1, None, LONG, 3]}, rf"\['x'\] of document 2 is {LONG}, whose last digits"),
    "digits beside fractions": ({"x": [LONG, 1.5, 2, 3]}, rf"document 0 is {LONG}, whose last"),
    "digits of objects": (
        {"x": pd.Series([1, 2, np.nan, -LONG], dtype=object)},
        rf"document 3 is -{LONG}, whose last digits",
    ),
    "digits of Int64": (
        {"x": pd.array([1, None, 3, LONG], dtype="Int64")},
        rf"document 3 is {LONG}, whose last digits would be lost: beside missing entries",
    ),
    "digits of UInt64": (
        {"x": pd.array([None, 2**64 - 1, 3, 4], dtype="UInt64")},
        f"document 1 is {2**64 - 1}, whose last digits",
    ),
    "digits of NumPy": ({"x": [np.int64(LONG), None, 2, 3]}, f"document 0 is {LONG}, whose last"),
    "above 2**63": ({"x": [2**70 + 1, 1, 2, -3]}, "and above 2..63, numbers are floats"),
    "name": ({1: [1, 2, 3, 4]}, r"names of covariates\[0\] is 1; give strings"),
    "no name": ({"": [1, 2, 3, 4]}, "covariates has a column without a name"),
    "twice": (pd.DataFrame([[1, 2]] * 4, columns=["x", "x"]), "'x' at 0 and again at 1"),
    "NUL": ({"x": ["x\0", "b", "c", "d"]}, r"levels of covariates\['x'\]\[3\] is 'x\\x00'"),
    "half": ({"x": ["\ud83d", "b", "c", "d"]}, "has half of a surrogate pair"),
    "levels": ({"x": pd.Categorical([1, "1", 1, 1])}, r"levels of .*'1' at 0 and again at 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case):
    covariates, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        corpus_with(covariates)


# --- columns of frames and files


FRAME = pd.DataFrame(
    {
        "title": ["One", "Two", "Three"],
        "body": ["a cat", "the dog", "cats and dogs"],
        "year": [1999, 2001, 2004],
        "party": ["b", None, "a"],
        "who": [["x"], ["x", "y"], ["y"]],
        "id": [7, 8, 9],
    },
    index=[2, 0, 1],
)


def test_a_corpus_of_a_frame():
    corpus = bnp.Corpus.from_dataframe(
        FRAME, ["title", "body"], covariates=["year", "party"], labels="year", authors="who",
        doc_names="id", lowercase=False, stop_words=None,
    )  # fmt: skip
    assert corpus.words(1) == ["Two", "the", "dog"]
    assert corpus.doc_names == ("7", "8", "9")
    assert corpus.authors(1) == ["x", "y"]
    assert corpus.label.tolist() == [1999, 2001, 2004]
    assert corpus.covariates["year"].tolist() == [1999, 2001, 2004]
    assert corpus.covariates["party"].isna().tolist() == [False, True, False]
    assert corpus == bnp.Corpus.from_texts(
        (FRAME["title"] + "\n" + FRAME["body"]).tolist(), labels=[1999, 2001, 2004],
        authors=FRAME["who"].tolist(), doc_names=["7", "8", "9"], lowercase=False, stop_words=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "frame has no 'text' for text=; give some of 'title', 'body', 'year'"),
        ({"text": "boddy"}, "no 'boddy' for text=; .*: did you mean 'body'?"),
        ({"text": []}, "text must have at least one entry"),
        ({"text": "year"}, "year of document 0 must be a string, got 1999"),
        ({"text": "party"}, "party of document 1 must be a string, got (None|nan)"),
        ({"text": "body", "labels": "yeer"}, "no 'yeer' for labels=; .*: did you mean 'year'?"),
        ({"text": "body", "groups": "gruop"}, "no 'gruop' for groups="),
        ({"text": "body", "covariates": ["yeer"]}, "no 'yeer' for covariates=; .* 'year'?"),
        ({"text": "body", "doc_names": ""}, "doc_names must be a string that is not empty"),
        ({"text": "body", "authors": "title"}, "give every document a list of authors"),
        ({"text": "body", "min_dff": 3}, "min_dff=3 is not an option of from_texts.*'min_df'"),
        ({"frame": [1]}, r"frame must be a pandas DataFrame, see to_pandas\(\), got list"),
        (
            {"frame": FRAME.set_axis(["body"] * 2 + list("abcd"), axis=1), "text": "body"},
            "frame has 2 columns 'body'",
        ),
    ],
)
def test_columns_of_a_frame_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bnp.Corpus.from_dataframe(**({"frame": FRAME} | options))


CSV = """body,year,count,when,good,party,zip
a cat,2001,3,2001-02-03,true,NA,01
a dog,NA,4,,False,,02
a fox,2002.5,5,2001-02-03 10:11,TRUE,none,03
"""


def test_columns_of_a_table_become_what_all_entries_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    names = ["year", "count", "when", "good", "party", "zip"]
    frame = bnp.read_corpus(path, text="body", covariates=names).covariates
    assert frame["year"].tolist()[::2] == [2001, 2002.5]
    assert frame["year"].isna().tolist() == [False, True, False]
    assert frame["count"].tolist() == [3, 4, 5]
    assert str(frame["count"].dtype) == "int64"
    assert frame["when"].tolist()[::2] == [
        pd.Timestamp("2001-02-03"),
        pd.Timestamp("2001-02-03 10:11"),
    ]
    assert frame["when"].isna().tolist() == [False, True, False]
    assert frame["good"].tolist() == [True, False, True]
    assert frame["party"].tolist()[::2] == ["NA", "none"]  # a party may be called so
    assert frame["party"].isna().tolist() == [False, True, False]
    assert frame["zip"].tolist() == ["01", "02", "03"]
    one = bnp.read_corpus(path, text="body", covariates="count", store=tmp_path / "store")
    assert one.covariates["count"].tolist() == [3, 4, 5]
    assert bnp.read_corpus(path, text="body").covariates.shape == (3, 0)


def test_a_mistyped_date(tmp_path):
    days = [f"2020-01-{d:02}" for d in range(1, 20)]
    path = tmp_path / "a.csv"
    for wrong in ("2020-13-45", "3 May 2020", "20200-01-01"):
        column = [*days[:4], wrong, "NA", *days[4:]]
        path.write_text("\n".join(["text,day", *(f"cat,{day}" for day in column)]))
        message = (
            rf"a.csv: covariates\['day'\] of document 4 is '{wrong}', which is no date, but 19 "
            r"others are: write all as '2024-12-31', and None \(nothing in a file\)"
        )
        with pytest.raises(ValueError, match=message):
            bnp.read_corpus(path, covariates="day")
        frame = pd.DataFrame({"text": "cat", "day": column})
        with pytest.raises(ValueError, match=rf"document 4 is '{wrong}', which is no date, but 19"):
            bnp.Corpus.from_dataframe(frame, covariates="day")
        frame["day"] = frame["day"].astype("category")  # whose user says what it is
        assert bnp.Corpus.from_dataframe(frame, covariates="day").covariates["day"][4] == wrong
    frame["day"] = [None, *days, "none"]
    with pytest.raises(ValueError, match=r"document 20 is 'none', which is no date, but 19"):
        bnp.Corpus.from_dataframe(frame, covariates="day")
    frame["day"] = [*days[:18], "x", "y", "z"]  # 18 of 21
    assert bnp.Corpus.from_dataframe(frame, covariates="day").covariates["day"][20] == "z"


def test_times_are_those_of_their_clocks(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,when\ncat,2020-01-01T23:30+05:00\ndog,2020-01-01T08:00Z\n")
    local = [pd.Timestamp("2020-01-01 23:30"), pd.Timestamp("2020-01-01 08:00")]
    assert bnp.read_corpus(path, covariates="when").covariates["when"].tolist() == local


def test_fields_of_records(tmp_path):
    path = tmp_path / "a.jsonl"
    records = [
        {"text": "a cat", "year": 1, "when": "2001-02-03", "s": "1", "bad": "2001-13-45"},
        {"text": "a dog", "year": None, "when": None, "s": None, "bad": "2001-12-31"},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    frame = bnp.read_corpus(path, covariates=["year", "when", "s", "bad"]).covariates
    assert [str(dtype) for dtype in frame.dtypes] == [
        "float64", "datetime64[us]", "category", "category",
    ]  # fmt: skip
    assert frame["s"].tolist()[0] == "1"
    records[1].pop("year")
    path.write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(ValueError, match=r"a.jsonl: document 1 has no 'year' for covariates="):
        bnp.read_corpus(path, covariates=["year"])
    words = [{"tokens": ["x", "y"], "year": 1}, {"tokens": ["y"], "year": 2}]
    path.write_text("\n".join(map(json.dumps, words)))
    assert bnp.read_corpus(path, covariates="year").covariates["year"].tolist() == [1, 2]


def test_arrays_beside_counts(tmp_path):
    counts: dict[str, Any] = {"doc": [0, 1], "word": [0, 1], "count": [1, 1]}
    np.savez(tmp_path / "a.npz", **counts, year=[2001, 2002], split=[0, 1])
    corpus = bnp.read_corpus(tmp_path / "a.npz", covariates="year", split=1)
    assert corpus.covariates["year"].tolist() == [2002]
    with pytest.raises(ValueError, match=r"a.npz has no 'yeer' for covariates=; .* mean 'year'?"):
        bnp.read_corpus(tmp_path / "a.npz", covariates=["yeer"])
    with pytest.raises(ValueError, match=r"covariates has 'year' at 0 and again at 1"):
        bnp.read_corpus(tmp_path / "a.npz", covariates=["year", "year"])
    corpus.save(tmp_path / "b.npz")
    with pytest.raises(ValueError, match=r"is a saved corpus, which has its own .* covariates"):
        bnp.read_corpus(tmp_path / "b.npz", covariates=["year"])


def test_files_without_columns_take_them_by_row(tmp_path):
    (tmp_path / "a.txt").write_text("a cat\na dog\n")
    (tmp_path / "a.ldac").write_text("1 0:1\n1 1:2\n")
    for name in ("a.txt", "a.ldac"):
        corpus = bnp.read_corpus(tmp_path / name, covariates={"x": [1, 2]})
        assert corpus.covariates["x"].tolist() == [1, 2]


# --- documents that are written one by one


def test_a_writer_keeps_them(tmp_path):
    with bnp.CorpusWriter(tmp_path / "w") as writer:
        writer.add([0, 1], covariates={"year": None, "party": "b"})
        writer.add([1], covariates={"party": None, "year": 2001})
        writer.add([1], covariates={"year": 2002, "party": "a"})
        corpus = writer.finish(num_words=2)
    for found in (corpus, bnp.Corpus.load(tmp_path / "w")):
        assert found.covariates["year"].tolist()[1:] == [2001, 2002]
        assert found.covariates["party"].isna().tolist() == [False, True, False]
        assert found.covariates["party"].cat.categories.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "covariates of document 1 lack 'year', unlike those"),
        ({"year": 1}, "covariates of document 1 lack 'party'"),
        ({"year": 1, "party": "a", "patry": "b"}, "document 1 have 'patry'"),
        ({"yeer": 1, "party": "a"}, "document 1 have 'yeer', .*: did you mean 'year'?"),
        ({"year": "x", "party": "a"}, r"covariates\['year'\] holds 2000 and 'x'; give numbers"),
        ({"year": np.inf, "party": "a"}, r"covariates\['year'\] of document 1 is inf"),
        ({"year": [1], "party": "a"}, r"covariates\['year'\] holds 2000 and \[1\]"),
        ({"year": 1, "party": "\0"}, "without NUL characters"),
        ({"year": 10**400, "party": "a"}, r"\['year'\] of document 1 is 10+\.\.\., whose last"),
        ({"year": pd.NA, "party": np.ones(2)}, r"covariates\['party'\] holds 'a' and array"),
    ],
)
def test_a_writer_does_not_add_what_is_wrong(tmp_path, wrong, message):
    with bnp.CorpusWriter(tmp_path / "w") as writer:
        writer.add([0], covariates={"year": 2000, "party": "a"})
        for _ in range(2):  # the second time it is not taken for one that was checked
            with pytest.raises(ValueError, match=message):
                writer.add([0], covariates=wrong)
        writer.add([1], covariates={"year": 2001, "party": "b"})
        corpus = writer.finish(num_words=2)
    assert corpus.covariates["year"].tolist() == [2000, 2001]


def test_a_writer_keeps_digits_or_refuses_them(tmp_path):
    with bnp.CorpusWriter(tmp_path / "w") as writer:
        writer.add([0], covariates={"x": LONG, "y": None})
        for wrong, message in (
            ({"x": None, "y": 1}, rf"\['x'\] of document 0 is {LONG}, whose last digits"),
            ({"x": 1, "y": LONG}, rf"\['y'\] of document 1 is {LONG}, whose last digits"),
        ):
            with pytest.raises(ValueError, match=message):
                writer.add([0], covariates=wrong)
        writer.add([0], covariates={"x": -LONG, "y": 1})
        assert writer.finish(num_words=1).covariates["x"].tolist() == [LONG, -LONG]


def test_a_writer_does_not_lose_its_documents_by_a_mistyped_date(tmp_path):
    with bnp.CorpusWriter(tmp_path / "w") as writer:
        for day in ["2020-01-01"] * 10 + ["2020-13-01"]:
            writer.add([0], covariates={"day": day})
        assert str(writer.finish(num_words=1).covariates["day"].dtype) == "category"


def test_a_writer_without_covariates_takes_none_later(tmp_path):
    with bnp.CorpusWriter(tmp_path / "w") as writer:
        writer.add([0])
        with pytest.raises(ValueError, match="document 1 have 'x'"):
            writer.add([0], covariates={"x": 1})
        assert writer.finish(num_words=1).covariates.shape == (1, 0)
