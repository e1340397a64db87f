import dataclasses
import json

import pytest


@dataclasses.dataclass(frozen=True)
class Sizes:
    size: str = "quick"
    cores: int = 1
    seed: int = 0


@pytest.fixture
def command(load, in_this_process):
    return load("study.command")


@pytest.fixture
def study(load, command):
    """A study of two cells; `asked` lists the folders that it was given."""
    cell, asked = load("study.cells").Cell, []

    def prepare(settings, folder, output):
        asked.append(folder)
        value = {"perplexity": 2.0 + settings.seed}
        return {"data": "d"}, [cell(part, "m", lambda: value) for part in ("a", "b")]

    def report(run, output):
        return f"{len(run['cells'])} cells"

    made = command.Study(
        "s", "A study.", {"quick": Sizes(), "standard": Sizes("standard")}, ("a", "b"), prepare,
        report, data_files={"b": "x.npz"},
    )  # fmt: skip
    return made, asked


def test_a_run_is_resumed_and_reported(command, study, tmp_path, capsys):
    study, _ = study
    output = tmp_path / "s.json"

    def main(*argv):
        arguments = [*argv, "--output", str(output)]
        status = command.run_study(study, command.parser_of(study).parse_args(arguments))
        return status, capsys.readouterr()

    assert main("--quick", "--plan")[1].out.endswith("\n  a/method=m\n  b/method=m\n")
    assert not output.exists()
    status, said = main("--quick", "--parts", "a")
    assert (status, said.out.split("\n")[-2]) == (0, "1 cells")
    assert main("--quick")[1].out.startswith("1 of 2 measurements")
    assert main("--quick")[1].out.startswith("0 of 2 measurements")
    assert main("--report")[1].out == "2 cells\n"
    run = json.loads(output.read_text())
    assert run["study"] == "s"
    assert run["sessions"][0]["cores"] == 1
    assert [record["perplexity"] for record in run["cells"].values()] == [2.0, 2.0]
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**run, "cells": {"c": run["cells"]["a/method=m"]}}))
    assert main("--report", "--also", str(other))[1].out == "3 cells\n"
    status, said = main("--quick", "--seed", "1")
    assert status == 1
    assert "other settings" in said.err
    assert main("--quick", "--seed", "1", "--fresh")[0] == 0
    changed = json.loads(output.read_text())["cells"]
    assert [record["perplexity"] for record in changed.values()] == [3.0, 3.0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--quick", "--parts", "a,c"], "--parts has 'c'; choose some of a,b"),
        (["--parts", "b"], "--data FOLDER is needed: the folder with x.npz"),
        (["--parts", "b", "--data", "nowhere"], "--data nowhere: there is no x.npz"),
        (["--report"], "--report: there is no"),
        (["--report", "--also", "nowhere.json"], "--also nowhere.json: there is no such file"),
    ],
)
def test_bad_input_is_named(command, study, argv, message, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BNP_DATA", raising=False)
    output = ["--output", str(tmp_path / "s.json")]
    arguments = command.parser_of(study[0]).parse_args([*argv, *output])
    assert command.run_study(study[0], arguments) == 1
    assert message in capsys.readouterr().err


def test_data_are_asked_for_only_by_the_parts_that_read_them(command, study, tmp_path):
    made, asked = study
    (tmp_path / "x.npz").touch()
    for argv in (["--parts", "a"], ["--parts", "b"], ["--quick"]):
        options = ["--data", str(tmp_path), "--plan", "--output", str(tmp_path / "s.json")]
        command.run_study(made, command.parser_of(made).parse_args([*argv, *options]))
    assert asked == [None, str(tmp_path), None]
