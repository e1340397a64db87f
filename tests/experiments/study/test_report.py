import json

import pytest


@pytest.fixture
def report(load):
    return load("study.report")


@pytest.fixture
def files(load):
    return load("study.files")


def test_records_stay_on_one_line_and_nothing_is_left_behind(files, tmp_path):
    path = tmp_path / "new" / "a.json"
    value = {"x": [1.5, 2.0], "cells": {"é": {"z": [["a", 1]], "ways": {"a": None}}}, "no": {}}
    files.write_json(path, value)
    assert ' "x": [1.5,2.0],\n "cells": {\n  "é": {"z":[["a",1]],"ways"' in path.read_text()
    assert json.loads(path.read_text()) == files.read_json(path) == value
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_columns_are_those_of_all_rows(files, tmp_path):
    path = tmp_path / "a.csv"
    files.write_csv(path, [{"a": 1, "b": None}, {"a": 1 / 3, "c": "x, y"}])
    assert path.read_text() == 'a,b,c\n1,,\n0.333333,,"x, y"\n'


def test_markdown(report):
    rows = [{"a_b": 1234.56, "c": None}, {"a_b": 2.0, "c": "x|y"}]
    assert report.markdown(rows).split("\n") == [
        "| a b | c |", "| --- | --- |", "| 1234.6 | - |", "| 2 | x\\|y |",
    ]  # fmt: skip


def run_of(*sessions):
    record = {"part": "fit", "session": len(sessions) - 1, "load_before": 9.0}
    return {"sessions": list(sessions), "cells": {"fit/b": record}}


def test_the_head_says_who_measured_what(report):
    machine = {"cpu": "x", "cores": 4}
    session = {"begun": "today", "cores": 2, "machine": machine, "versions": {"jax": "1"}}
    text = report.head(
        run_of({"versions": {"jax": "0"}, "note": "No date."}, session), "T", "about"
    )
    assert "1. jax 0. No date; 0 measurements." in text
    assert "2. x, 2 of 4 cores; today; jax 1; 1 measurements: fit/b." in text
    assert "**The machine was busy** (load up to 9.0" in text
    idle = {**session, "machine": {**machine, "cores": 64}}
    assert "busy" not in report.head(run_of(idle), "T", "about")


def test_many_cells_are_counted_by_part(report):
    run = run_of({"versions": {"jax": "0"}}, {"versions": {"jax": "1"}})
    record = run["cells"].pop("fit/b")
    run["cells"] = {f"{part}/{i}": record for part in ("fit", "speed") for i in range(5)}
    assert "jax 1; 10 measurements: 5 of fit, 5 of speed." in report.head(run, "T", "about")


def test_a_table_without_rows_is_left_out(report, tmp_path):
    tables = [report.Table("A", "a", [{"x": 1}], "note"), report.Table("B", "b", [])]
    text = report.write_report(tmp_path / "r.json", "# T", tables)
    assert text == "# T\n\n## A\n\nnote\n\n| x |\n| --- |\n| 1 |\n"
    assert {path.name for path in tmp_path.iterdir()} == {"r.md", "r_a.csv"}


def test_rates_are_compared_turn_by_turn(report):
    def system(*rates):
        return {
            "tokens_per_second": list(rates), "topics": [9, 9], "slots": 32, "compile_seconds": 1.0,
        }  # fmt: skip

    systems = {"ours": system(6e6, 5e6), "peer, 1": system(5e6, 5e6), "peer, 2": system(1e7, 1e7)}
    first, *_, last = report.rates([{"method": "LDA", "data": "c", "systems": systems}], "peer")
    assert first["ratio_is_to"] == last["system"] == "peer, 2"
    ratios = [first[name] for name in ("median_ratio", "lowest_ratio", "highest_ratio")]
    assert ratios == pytest.approx([0.55, 0.5, 0.6])
    assert first["median_million_tokens_per_second_all_chains"] == pytest.approx(5.5)
    assert first["topics"] == 9
    alone = report.rates([{"method": "LDA", "systems": {"ours": system(1e6)}}], "peer")
    assert "median_ratio" not in alone[0]


def test_pictures_are_drawn_where_there_are_curves(load, tmp_path):
    curves = load("study.curves")
    line = curves.Curve("a", [1, 2], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5])
    point = curves.Curve("b", [1], [1.0], [0.5], [1.5])
    panel = curves.Panel("t", "x", "y", [line, point], {"level": 1.0}, True, {1: "one"})
    curves.draw([panel, panel._replace(curves=[])], tmp_path / "a.png")
    curves.draw([panel._replace(curves=[])], tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "b.png").exists()
