"""The measurement of `infer_author`: its small size, and its parts by hand."""

from pathlib import Path

import numpy as np
import pytest

from bnp_models.results import author_tables


@pytest.mark.slow
def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "table.csv"
    assert load("infer_author").main(["--quick", "--output", str(output)]) == 0
    rows = {row["ranked_by"]: row for row in read_csv(output)}
    assert list(rows) == [
        "chance", "number of documents", "tf-idf centroids", "average of documents",
        "infer_author, one chain", "infer_author, times number of documents", "infer_author",
    ]  # fmt: skip
    assert {row["documents"] for row in rows.values()} == {"10"}
    assert all(1 <= float(row["median_rank"]) <= 12 for row in rows.values())
    assert "40 documents" in capsys.readouterr().out


def test_ranks_are_those_of_the_best_placed_author(load):
    score = np.array([[4.0, 3.0, 2.0], [1.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
    truth = np.array([[False, True, True], [True, False, False], [False, False, False]])
    assert load("infer_author").ranks(score, truth).tolist() == [2, 1.5]


def test_documents_are_held_out_of_authors_with_another(load):
    module = load("infer_author")
    corpus = module.read(module.QUICK, None, 0)
    train, test = module.split(corpus, module.QUICK, 0)
    assert (train.num_docs, test.num_docs) == (30, 10)
    assert not set(train.doc_names) & set(test.doc_names)
    known = {name for d in range(train.num_docs) for name in train.authors(d)}
    assert all(known & set(test.authors(d)) for d in range(test.num_docs))
    once = corpus.select([0])  # nobody has another document
    assert not (np.bincount(once.author_idx) > 1).any()
    with pytest.raises(ValueError, match="empty"):
        module.split(once, module.QUICK, 0)


def test_data_are_needed(load, monkeypatch):
    monkeypatch.delenv("BNP_DATA", raising=False)
    with pytest.raises(SystemExit, match="--data FOLDER"):
        load("infer_author").main([])


def test_the_docstring_says_what_was_measured(read_csv):
    said = " ".join(str(author_tables.infer_author.__doc__).split())
    path = Path(__file__).parents[2] / "experiments/results/infer_author.csv"
    table = {(row["num_topics"], row["ranked_by"]): row for row in read_csv(path)}

    def numbers(*key):
        row = table[key]
        top_10, top_1 = (f"{100 * float(row[name]):.0f}%" for name in ("top_10", "top_1"))
        return row, top_10, top_1, f"median rank {float(row['median_rank']):.0f}"

    row, top_10, top_1, rank = numbers("50", "infer_author")
    largest = float(row["largest_probability"])
    assert f"Of {row['documents']} abstracts of NIPS papers with {int(row['candidates']):,}" in said
    assert f"the first ten for {top_10} and the first for {top_1} ({rank}; 50 topics" in said
    assert f"the largest probability was {largest:.2f} on average" in said
    row, top_10, top_1, rank = numbers("50", "average of documents")
    assert f"The average of whole documents gave {top_10} and {top_1} ({rank})" in said
    assert f"one chain alone {numbers('50', 'infer_author, one chain')[1]}" in said
    row, top_10, top_1, rank = numbers("", "tf-idf centroids")
    assert f"which needs no model, {top_10} and {top_1} ({rank})" in said
    assert f"(20 gave {numbers('20', 'infer_author')[1]})" in said
    assert f"({numbers('50', 'infer_author, times number of documents')[1]})" in said
