"""The comparison of ways to count chains: its small size."""

import json

import pytest


@pytest.mark.slow
def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "stacking.json"
    assert load("stacking").main(["--quick", "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    assert found["command"] == "python experiments/stacking.py --quick"
    assert set(found["measured"]) == {"simulated, LDA", "simulated, HDPLDA"}
    rows = read_csv(output.with_suffix(".csv"))
    choices = {"equal weights", "best chain by lp", "best chain by score", "stacked"}
    choices |= {"stacked by document"}
    for model in ("LDA", "HDPLDA"):
        name = f"simulated, {model}"
        mine = {row["choice"]: row for row in rows if row["data and model"] == name}
        measured = found["measured"][name]
        assert set(mine) == set(measured["weights"]) == choices
        assert measured["documents"] == [24, 8, 8]
        assert float(mine["equal weights"]["gain_over_equal"]) == 0
        assert float(mine["equal weights"]["effective_chains"]) == pytest.approx(2)
        assert float(mine["best chain by lp"]["largest_weight"]) == 1
        alone = measured["perplexity_of_chains"]
        best = float(mine["best chain by score"]["perplexity"])
        assert min(abs(best - one) for one in alone) < 1e-3
        for weights in measured["weights"].values():
            assert sum(weights) == pytest.approx(1, abs=1e-4)
    said = capsys.readouterr().out
    assert "gain over equal weights" in said
    assert load("stacking").main(["--quick", "--output", str(output)]) == 0  # nothing left to do
    assert capsys.readouterr().out == said


def test_data_are_needed(load, monkeypatch):
    monkeypatch.delenv("BNP_DATA", raising=False)
    with pytest.raises(SystemExit, match="--data FOLDER"):
        load("stacking").main([])
