"""The results that are kept: their reports can be made anew, to the letter."""

import json
from pathlib import Path

import pytest

import bnp_models as bnp

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
STUDIES = {
    "author_topic_standard": "author_topic.report",
    "differential_standard": "differential.report",
    "factors_standard": "factors.report",
    "mixing_standard": "mixing",
    "scale_standard": "benchmarks.scale_report",
    "schedules_standard": "benchmarks.schedules",
    "speed_standard": "benchmarks.report",
    "supervised_standard": "supervised.report",
    "tempering_standard": "tempering",
    "transfer_standard": "transfer.report",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_tables_are_made_anew_from_the_json_file(load, tmp_path, name):
    module = load(STUDIES[name])
    study = name.removesuffix("_standard")
    paths = sorted(RESULTS.glob(f"{study}_*.json"))  # files of parts are in the same report
    paths.remove(RESULTS / f"{name}.json")
    also = {path: json.loads(path.read_text()) for path in paths}
    may_change = load(f"{study}.__main__").STUDY.may_change if also else ()
    run = json.loads((RESULTS / f"{name}.json").read_text())
    run = load("study.cells").joined(run, also, may_change)
    module.report(run, tmp_path / f"{name}.json")
    made = {path.name: path for path in tmp_path.iterdir()}
    assert set(made) == {path.name for path in RESULTS.glob(f"{name}*") if path.suffix != ".json"}
    for file, path in made.items():
        if path.suffix != ".png":
            assert path.read_text() == (RESULTS / file).read_text()


@pytest.mark.parametrize("versions", ["oldest", "newest"])
def test_first_sweeps_are_those_of_all_models(versions):
    found = json.loads((RESULTS / f"first_sweep_{versions}.json").read_text())
    assert found["seconds"].keys() == set(bnp.MODELS)


@pytest.mark.parametrize("name", ["author_topic_standard", "factors_standard"])
def test_each_claim_has_a_row(load, read_csv, name):
    rows = read_csv(RESULTS / f"{name}_claims.csv")
    assert [row["claim"] for row in rows] == [claim.claim for claim in load(STUDIES[name]).CLAIMS]
    for row in rows:  # chains that did not come together decide nothing about a posterior
        assert ("would say" in row["why"]) <= (row["verdict"] not in ("holds", "does not hold"))
