import json
from types import SimpleNamespace

import pytest

HEAD = {"study": "s", "settings": {"seed": 0, "topics": [4]}}
SESSION = {"cores": 1, "machine": {"cpu": "a"}, "versions": {"code": "1"}}


@pytest.fixture
def cells(load):
    return load("study.cells")


def cell(cells, method, found=None, **about):
    def measure():
        if found is None:
            raise RuntimeError("no luck")
        return found

    return cells.Cell("fit", method, measure, **about)


def test_key_says_what_is_measured(cells):
    made = cell(cells, "LDA", {}, detail={"topics": 4}, split_seed=0, start="from 1 topic")
    assert made.key == "fit/method=LDA/topics=4/split_seed=0/start=from 1 topic"
    assert cell(cells, "LDA", {}).key == "fit/method=LDA"


def test_each_cell_is_stored_when_it_is_done_and_not_measured_again(cells, tmp_path):
    output = tmp_path / "run.json"
    run = cells.open_run(output, HEAD, SESSION)
    wanted = [cell(cells, "LDA", {"perplexity": 2.0}), cell(cells, "HDP")]
    assert cells.measure(wanted, run, output) == ["fit/method=HDP"]
    again = cells.open_run(output, HEAD, SESSION)
    (record,) = again["cells"].values()
    assert (record["method"], record["perplexity"], record["session"]) == ("LDA", 2.0, 0)
    more = [cell(cells, "HDP", {"perplexity": 3.0}), cell(cells, "LDA")]
    assert cells.measure(more, again, output) == []
    stored = json.loads(output.read_text())["cells"]
    assert list(stored) == ["fit/method=HDP", "fit/method=LDA"]  # in the order of the plan
    assert [r["perplexity"] for r in cells.of_part(again, "fit", method="HDP")] == [3.0]


def test_a_summary_is_shown_and_not_stored(cells, tmp_path, capsys):
    run = cells.open_run(tmp_path / "run.json", HEAD, SESSION)
    cells.measure([cell(cells, "LDA", {"summary": "all well"})], run, tmp_path / "run.json")
    assert "all well" in capsys.readouterr().out
    assert "all well" not in (tmp_path / "run.json").read_text()


def test_files_are_joined_for_a_report(cells, tmp_path):
    runs = []
    for number, method in enumerate(("LDA", "HDP", "pLSA")):
        output = tmp_path / f"{number}.json"
        session = {**SESSION, "cores": number + 1}
        run = cells.open_run(output, HEAD, session)
        cells.measure([cell(cells, method, {})], run, output)
        runs.append(json.loads(output.read_text()))
    both = cells.joined(runs[0], {tmp_path / "1.json": runs[1]})
    assert list(both["cells"]) == ["fit/method=LDA", "fit/method=HDP"]
    cores = [cells.session_of(both, record)["cores"] for record in both["cells"].values()]
    assert cores == [1, 2]
    others = {tmp_path / "2.json": runs[2], tmp_path / "1.json": runs[1]}
    methods = [record["method"] for record in cells.joined(runs[0], others)["cells"].values()]
    assert methods == ["LDA", "HDP", "pLSA"]  # in whatever order the files are given
    assert cells.joined(runs[0], {}) == runs[0]
    more = {**runs[1], "settings": {**HEAD["settings"], "new": 3}}
    all_settings = cells.joined(runs[0], {tmp_path / "1.json": more})["settings"]
    assert all_settings == {**HEAD["settings"], "new": 3}
    with pytest.raises(ValueError, match=r"also .*'fit/method=LDA' is in another file"):
        cells.joined(runs[0], {tmp_path / "0.json": runs[0]})
    other = {**runs[1], "settings": {"seed": 1, "topics": [4]}}
    with pytest.raises(ValueError, match=r"also .*1.json: its run has other settings"):
        cells.joined(runs[0], {tmp_path / "1.json": other})
    assert len(cells.joined(runs[0], {tmp_path / "1.json": other}, ["seed"])["cells"]) == 2


def test_an_interrupt_keeps_what_is_done(cells, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    output = tmp_path / "run.json"
    run = cells.open_run(output, HEAD, SESSION)
    wanted = [cell(cells, "LDA", {"x": 1}), cells.Cell("fit", "HDP", interrupt)]
    with pytest.raises(KeyboardInterrupt):
        cells.measure(wanted, run, output)
    assert list(json.loads(output.read_text())["cells"]) == ["fit/method=LDA"]
    assert not list(tmp_path.glob(".*"))


def test_other_settings_are_refused_but_for_those_that_may_change(cells, tmp_path):
    output = tmp_path / "run.json"
    cells.measure([cell(cells, "LDA", {})], cells.open_run(output, HEAD, SESSION), output)
    more = {"study": "s", "settings": {"seed": 0, "topics": [4, 8]}}
    with pytest.raises(ValueError, match="a run with other settings"):
        cells.open_run(output, more, SESSION)
    run = cells.open_run(output, more, SESSION, may_change=("topics",))
    assert run["settings"] == more["settings"]
    assert len(run["cells"]) == len(run["sessions"]) == 1
    with pytest.raises(ValueError, match="other study and settings"):
        cells.open_run(output, {"study": "t", "settings": {"seed": 1}}, SESSION, mix=True)
    assert cells.open_run(output, more, SESSION, fresh=True)["cells"] == {}


def test_settings_of_parts_that_came_later_do_not_matter(cells, tmp_path):
    output = tmp_path / "run.json"
    cells.measure([cell(cells, "LDA", {})], cells.open_run(output, HEAD, SESSION), output)
    later = {**HEAD, "settings": {**HEAD["settings"], "of_a_new_part": 3}}
    assert len(cells.open_run(output, later, SESSION)["cells"]) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("cores", 2), ("machine", {"cpu": "b"}), ("versions", {"code": "2"})]
)
def test_other_code_or_machine_is_refused_or_marked(cells, tmp_path, name, value):
    output = tmp_path / "run.json"
    cells.measure([cell(cells, "LDA", {})], cells.open_run(output, HEAD, SESSION), output)
    changed = {**SESSION, name: value}
    with pytest.raises(ValueError, match=f"a run with other {name}: --mix"):
        cells.open_run(output, HEAD, changed)
    run = cells.open_run(output, HEAD, changed, mix=True)
    cells.measure([cell(cells, "HDP", {})], run, output)
    by_method = {record["method"]: record for record in run["cells"].values()}
    assert cells.session_of(run, by_method["LDA"])[name] == SESSION[name]
    assert cells.session_of(run, by_method["HDP"])[name] == value


def test_a_broken_file_is_named(cells, tmp_path):
    output = tmp_path / "run.json"
    output.write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is not JSON"):
        cells.open_run(output, HEAD, SESSION)


def test_the_digest_of_the_code_follows_what_measures_only(load, tmp_path, monkeypatch):
    machine = load("study.machine")
    package, library = tmp_path / "study", tmp_path / "library"
    for folder in (package, library):
        folder.mkdir()
        for name in ("scores", "claims"):
            (folder / f"{name}.py").write_text("1")
    monkeypatch.setattr(machine, "__file__", str(package / "machine.py"))
    found = SimpleNamespace(origin=str(library / "__init__.py"))
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: found)
    before = machine.versions()["code"]
    (package / "claims.py").write_text("2")
    assert machine.versions()["code"] == before
    for file in (package / "scores.py", library / "claims.py"):
        file.write_text("2")
        after = machine.versions()["code"]
        assert after != before
        before = after
