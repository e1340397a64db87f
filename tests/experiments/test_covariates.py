"""Topics that depend on covariates: the small size of the study, and what was found."""

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


@pytest.mark.slow
def test_quick(load, read_csv, tmp_path, capsys):
    output = tmp_path / "covariates.json"
    given = ["--quick", "--parts", "coverage", "--output", str(output)]
    assert load("covariates").main(given) == 0
    (found,) = json.loads(output.read_text())["runs"]
    assert found["part"] == "coverage_20"
    assert found["command"].endswith("--parts coverage --lengths 20 --quick")
    rows = read_csv(tmp_path / "covariates_coverage_20.csv")
    assert len(rows) == len(found["rows"]) == 2 * 5 * 4
    assert all(0 <= int(row["covered"]) <= int(row["of"]) <= 2 for row in rows)
    terms = [row for row in rows if row["effective draws per sweep"]]
    assert len(terms) == 2 * 3 * 4
    assert all(0 < float(row["proposals accepted"]) <= 1 for row in terms)
    assert "20 tokens, planted: " in capsys.readouterr().out


def test_wrong_parts_are_refused(load, capsys, monkeypatch):
    monkeypatch.delenv("BNP_DATA", raising=False)
    for parts in ("covrage", "peer"):
        with pytest.raises(SystemExit):
            load("covariates").main(["--parts", parts])
    said = capsys.readouterr().err
    assert "--parts must be some of coverage,peer, got covrage" in said
    assert "--data must be the folder with poliblog5k.npz" in said


def test_intervals_cover_almost_nine_in_ten(read_csv):
    """Intervals of 90%, of 200 states that are no independent draws: between 85% and 93%."""
    for path in RESULTS.glob("covariates_standard_coverage_*.csv"):
        rows = read_csv(path)
        for kind in ("planted", "from the prior"):
            own = [row for row in rows if row["coefficients"] == kind]
            assert len(own) == 5 * 4
            covered, of = (sum(int(row[name]) for row in own) for name in ("covered", "of"))
            assert of > 1900
            assert 0.85 < covered / of < 0.93


def test_coefficients_mix(read_csv):
    """Without the step that all topics make together some had less than 0.001 a sweep."""
    for path in RESULTS.glob("covariates_standard_coverage_*.csv"):
        rows = [row for row in read_csv(path) if row["effective draws per sweep"]]
        assert min(float(row["effective draws per sweep"]) for row in rows) > 0.01
