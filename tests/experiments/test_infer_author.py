"""The measurement of `infer_author`: its small size, and its parts by hand."""

import numpy as np
import pytest


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
