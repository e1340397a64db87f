"""Readers of the data of factor models: tables, what was saved, corpora, and what is none."""

import gzip

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data.readers import guess_source_format, read_sources, read_table

TABLE = "id,kind,x,y\nr1,b,1,0\nr2,a,2,5\nr3,b,0,7\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def test_table(table):
    sources = read_table(table, source="kind", row="id")
    assert sources.source_names == ("a", "b")
    assert sources.row_names == ("r2", "r1", "r3")
    assert sources.feature_names == ("x", "y")
    assert sources.kind == "counts"
    np.testing.assert_array_equal(sources.values, [[2, 5], [1, 0], [0, 7]])
    assert read_table(table, source="kind", row="id", kind="reals").kind == "reals"


def test_table_without_sources(tmp_path):
    path = tmp_path / "table.tsv.gz"
    with gzip.open(path, "wt") as file:
        file.write("source\ty\n1.5\t2\n\t3\n")
    sources = read_sources(path, missing=True)
    assert sources.source_names == ("all",)
    assert sources.feature_names == ("source", "y")
    np.testing.assert_array_equal(sources.observed, [[True, True], [False, True]])


def test_names_may_look_like_missing_entries(table):
    table.write_text("id,kind,x,y\nNA,null,1,NA\n007,NA,2,5\n", encoding="utf-8-sig")
    sources = read_table(table, source="kind", row="id", missing=True)
    assert set(sources.row_names) == {"NA", "007"}
    assert set(sources.source_names) == {"NA", "null"}
    assert np.asarray(sources.observed).sum() == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            TABLE,
            {"source": "sort"},
            "has no 'sort' for source=; give some of 'id', 'kind', 'x'",
        ),
        (TABLE, {"source": "kind"}, "has the column 'id', which does not hold numbers: drop it"),
        (TABLE.replace("5", ""), {"source": "kind", "row": "id"}, "is nan; fill it in, or declare"),
        ("x;y\n1;2\n", {}, "has the column 'x;y', which.*The file has one column: .* by ','"),
        ("x;y\n1;2\n", {"row": "x"}, "no 'x' for row=; .*The file has one column: .* by ','"),
        ("", {}, "is no table"),
        ("a,b\n1,2\n1,2,3\n", {}, "is no table"),
    ],
)
def test_what_is_no_table_of_numbers(text, options, message, table):
    table.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(table, **options)


def test_formats_are_told_by_name_or_content(table, tmp_path, tiny):
    sources = read_table(table, source="kind", row="id")
    sources.save(tmp_path / "sources.npz")
    tiny.save(tmp_path / "corpus.npz")
    assert guess_source_format(table) == "table"
    assert guess_source_format(tmp_path / "sources.npz") == "sources"
    assert guess_source_format(tmp_path / "corpus.npz") == "npz"
    assert read_sources(tmp_path / "sources.npz") == sources
    assert read_sources(tmp_path / "corpus.npz") == bnp.Sources.from_corpus(tiny)


def test_corpora_are_counts(tmp_path):
    (tmp_path / "lines.txt").write_text("cat dog cat\nmars moon\n")
    sources = read_sources(tmp_path / "lines.txt")
    assert (sources.source_names, sources.kind) == (("all",), "counts")
    assert sources.values.sum() == 5
    (tmp_path / "texts.csv").write_text("body,group\ncat dog,a\nmars moon,b\n")
    assert read_sources(tmp_path / "texts.csv", "csv", text="body").num_sources == 2
    with pytest.raises(ValueError, match=r"format must be one of .*'table'.* got 'xls'"):
        read_sources(tmp_path / "lines.txt", "xls")


def test_columns_of_the_same_name(tmp_path):
    (tmp_path / "a.tsv").write_text("x\ty\tx\n1\t2\t3\n")
    with pytest.raises(ValueError, match=r"a\.tsv: the first line has 'x' at 0 and again at 2"):
        read_table(tmp_path / "a.tsv")
    (tmp_path / "b.csv").write_text("NA,y\n1,2\n")
    assert read_table(tmp_path / "b.csv").num_features == 2
