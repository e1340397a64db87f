"""The study of what tempered chains buy: its small size, and its tables."""

import json

import pytest

METHODS = ["plain", "annealed", "tempered"]


@pytest.mark.slow
def test_quick(load, read_csv, in_this_process, tmp_path, capsys):
    output = tmp_path / "tempering.json"
    tempering = load("tempering")
    assert tempering.main(["--quick", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("4 of 4 measurements to make")
    rows = read_csv(tmp_path / "tempering_equal_seconds.csv")
    assert [row["method"] for row in rows] == METHODS
    assert [row["replicas"] != "" for row in rows] == [False, False, True]
    for row in rows:
        assert float(row["lowest_lp"]) <= float(row["mean_lp"]) <= float(row["highest_lp"])
        assert 0 < float(row["likeness_of_chains"]) <= 1
        assert 1 < float(row["perplexity"]) < 1000
    barriers = read_csv(tmp_path / "tempering_barriers.csv")
    assert [row["documents"] for row in barriers] == ["20"]
    assert tempering.main(["--quick", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("0 of 4 measurements to make")
    stored = json.loads(output.read_text())["cells"].values()
    assert [len(cell["barrier"]) for cell in stored if "barrier" in cell] == [2, 2]


def test_barriers_are_related_to_tokens(load):
    record = {"documents": 5, "tokens": 400, "num_replicas": 9, "seconds_per_scan": 0.5}
    row = load("tempering").barrier_row({**record, "barrier": [3.0, 5.0]})
    assert (row["barrier"], row["barrier_by_root_of_tokens"]) == ("4.0", "0.200")


def test_new_documents_have_the_words_of_the_sample(load):
    tempering = load("tempering")
    corpus, new = tempering.samples(None, tempering.QUICK, 30)
    assert (corpus.num_docs, new.num_docs) == (30, 10)
    assert corpus.num_words == new.num_words
