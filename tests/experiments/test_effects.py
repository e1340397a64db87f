"""How often intervals of effects cover the truth: the small size, and what was found."""

import json
from pathlib import Path

import pytest
import scipy.stats

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


@pytest.mark.slow
def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "effects.json"
    assert load("effects").main(["--quick", "--output", str(output)]) == 0
    found = json.loads(output.read_text())
    assert found["command"] == "python experiments/effects.py --quick"
    rows = read_csv(output.with_suffix(".csv"))
    assert len(rows) == len(found["rows"]) == 2 * 3 * 4
    for row in rows:
        assert 0 <= int(row["covered"]) <= int(row["of"]) == 2
        assert (row["effects"] == "none") <= (float(row["true"]) == 0)
        assert int(row["covered"]) + int(row["excludes zero"]) == 2 or row["effects"] == "planted"
    assert "of 24 covered" in capsys.readouterr().out


def test_intervals_cover_nine_in_ten(read_csv):
    """A row has 100 intervals; fewer than 80 that cover have probability 8e-4 at 90%."""
    rows = read_csv(RESULTS / "effects_standard.csv")
    assert len(rows) == 48
    law = scipy.stats.binom(100, 0.9)
    assert law.cdf(79) < 1e-3
    assert all(80 <= int(row["covered"]) <= 100 == int(row["of"]) for row in rows)
    for effects in ("none", "planted"):
        covered = [int(row["covered"]) for row in rows if row["effects"] == effects]
        assert 89 < sum(covered) / len(covered) < 94
