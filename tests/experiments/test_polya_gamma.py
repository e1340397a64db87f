"""The comparison of Polya-Gamma samplers: its small size."""

import json


def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "speed.json"
    assert load("benchmarks.polya_gamma").main(["--quick", "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    assert [(row["b"], row["z"]) for row in found["measurements"]] == [(1, 1), (3.7, 1)]
    rows = read_csv(output.with_suffix(".csv"))
    for row in rows:
        assert 0 < float(row["lowest_ratio"]) <= float(row["median_ratio"])
        assert float(row["million_draws_per_second"]) > 0
    assert "times polyagamma" in capsys.readouterr().out
