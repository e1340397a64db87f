"""What runs cost on paper, and the small size of the comparison with runs."""

import json

import pytest


@pytest.mark.slow
def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "scale.json"
    arguments = ["--quick", "--output", str(output), "--scratch", str(tmp_path)]
    assert load("benchmarks.scale").main(arguments) == 0
    cells = json.loads(output.read_text())["cells"]
    assert sum(record["part"] == "corpus" for record in cells.values()) == 2
    rows = read_csv(tmp_path / "scale_runs.csv")
    found = [[float(row[name]) for name in ("devices", "processes", "MB_sent")] for row in rows]
    assert [pair[:2] for pair in found] == [[1, 1], [1, 1], [2, 2]]
    assert [sent > 0 for *_, sent in found] == [False, False, True]
    assert all(float(row["seconds_a_sweep"]) > 0 for row in rows)
    targets = {row["target"] for row in read_csv(tmp_path / "scale_targets.csv")}
    assert "memory of a process of two, to that of one with one device" in targets
    assert "PubMed" in capsys.readouterr().out
    on_gpu = read_csv(tmp_path / "scale_on_a_gpu.csv")
    assert all(float(row["times_as_long"]) > 0.5 for row in on_gpu)
    assert {float(row["topics"]) for row in on_gpu} >= {64, 1024}


def test_costs(load):
    cost = load("benchmarks.scale_cost")
    small, large = (cost.Size(t, t / 100, 1000, 64) for t in (1e5, 1e6))
    rates = cost.Rates(1e-7, 2e-8)
    each = [cost.seconds(size, rates, cores=2, link=1e9) for size in (small, large)]
    assert cost.rates_of(small, each[0], large, each[1]) == pytest.approx(rates)
    assert cost.bytes_sent(large) == 0
    two, four = (large._replace(devices=n) for n in (2, 4))
    assert cost.bytes_sent(two) == pytest.approx(1.5 * 4 * 1000 * 64)
    assert cost.memory(large) > cost.memory(two) > cost.memory(large) / 2
    assert cost.seconds(four, rates, 2, 1e12) == pytest.approx(each[1] / 2, rel=1e-3)
    assert cost.bytes_moved(two) > cost.bytes_moved(large) / 2
