import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "experiments" / "benchmarks"


def run(*argv, **options):
    command = [sys.executable, *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.slow
def test_speed_runs_and_resumes(tmp_path):
    output = tmp_path / "speed.json"
    script = BENCHMARKS / "speed.py"
    first = run(script, "--quick", "--output", output)
    assert first.returncode == 0, first.stderr
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == {"tokens", "ess", "completion", "starts", "memory"}
    assert "jax" in results["sessions"][0]["versions"]
    tokens = {cell["method"]: cell["systems"] for cell in cells if cell["part"] == "tokens"}
    assert list(tokens["authors"]) == ["ATM sequential, 1 chain"]
    for systems in tokens.values():
        assert all(rate > 0 for x in systems.values() for rate in x["tokens_per_second"])
    for curve in (c for c in cells if c["part"] == "completion" and c["method"] != "unigram"):
        assert len(curve["seconds"]) == len(curve["perplexity"]) > 0
        assert 1 < curve["perplexity"][-1] < 150
    table = output.with_suffix(".md").read_text()
    for head in ("Targets", "Tokens per second", "Held-out score", "Peak memory"):
        assert f"## {head}" in table
    assert {p.name for p in tmp_path.glob("*.png")} == {
        "speed_from_different_starts.png",
        "speed_heldout_score_against_time.png",
    }
    again = run(script, "--quick", "--output", output)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("0 of ")
    assert json.loads(output.read_text()) == results
    other = run(script, "--quick", "--output", output, "--seed", "1")
    assert "settings" in other.stderr
    assert other.returncode == 1


@pytest.mark.slow
def test_first_sweep_is_sooner_with_kept_programs(tmp_path):
    output = tmp_path / "first_sweep.json"
    done = run(BENCHMARKS / "first_sweep.py", "--models", "HDPLDA", "--output", output)
    assert done.returncode == 0, done.stderr
    seconds = json.loads(output.read_text())["seconds"]["HDPLDA"]
    assert 0 < seconds["warm"] < seconds["cold"]
    assert done.stdout.startswith("HDPLDA {")


def test_all_systems_are_planned(load, monkeypatch):
    """With the peers, and every schedule of the author models with 1 and 4 chains."""
    plan, settings = load("benchmarks.plan"), load("benchmarks.settings")
    monkeypatch.setattr(plan, "_installed", lambda spec: True)
    asked = {}

    def note(s, folder, part, method, corpus, *stages, **about):
        asked[part, method, corpus] = stages

    monkeypatch.setattr(plan, "_cell", note)
    list(plan.cells(settings.STANDARD, "folder"))
    names = {
        key: [spec["name"] for spec in stages[0].arguments["specs"]]
        for key, stages in asked.items()
        if "specs" in stages[0].arguments
    }
    assert names["tokens", "authors", "nips12"] == [
        *(f"ATM {x}, {n}" for x in ("parallel", "sequential") for n in ("1 chain", "4 chains")),
        *(
            f"NP-ATM {x}, {n}"
            for x in ("parallel", "sequential", "mixed")
            for n in ("1 chain", "4 chains")
        ),
    ]
    assert "tomotopy HDP, 2 workers" in names["tokens", "HDP", "nips12"]
    assert ("tokens", "authors", "synthetic") not in names
    of_completion = {key[1] for key in asked if key[0] == "completion"}
    assert of_completion >= {"unigram", "parallel", "HDP parallel", "gensim LdaModel"}
    assert "tomotopy HDP optimised, 2 workers" in of_completion


@pytest.mark.slow
def test_gpu_needs_jax_and_the_kernels_only():
    absent = ("arviz", "bnp_models", "gensim", "numpyro", "scipy", "sklearn", "tomotopy")
    block = (
        "import runpy, sys\n"
        f"sys.modules.update(dict.fromkeys({absent}))\n"
        "sys.argv[1:] = ['--quick']\n"
        f"runpy.run_path({str(BENCHMARKS / 'gpu.py')!r}, run_name='__main__')\n"
    )
    done = run("-c", block)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [row["schedule"] for row in results["measurements"]] == ["parallel", "sequential"]
    for row in results["measurements"]:
        assert row["tokens_per_second"]["median"] > 0
    assert {(row["sweep"], row["topics"]) for row in results["token_sweeps"]} == {
        (sweep, topics) for sweep in ("lanes", "pallas") for topics in (16, 200)
    }
    for row in results["token_sweeps"]:
        assert row["whole"]["tokens_per_second"]["median"] > 0
        assert row["alone"]["tokens_per_second"]["median"] > 0
        assert row["of_record"] > 0
    assert "There is no GPU: Pallas interprets its kernel" in done.stderr
    assert "pallas/record" in done.stderr


def test_a_stage_has_a_process_of_its_own(load, tmp_path):
    processes = load("benchmarks.processes")
    order = processes.Order(None, 0, False, 1, str(tmp_path))
    stages = [
        processes.Stage(function, {"corpus": "synthetic"}) for function in ("unigram", "nothing")
    ]
    assert 1 < processes.run_stages(order, stages[:1])["perplexity"] < 5000
    with pytest.raises(subprocess.CalledProcessError):
        processes.run_stages(order, stages[1:])


def test_split_halves_the_test_documents_and_nothing_else(load):
    bags = load("benchmarks.bags")
    bag = bags.load("synthetic", data=None, seed=3, quick=True)
    train, observed, heldout = parts = bags.split(bag, seed=5)
    assert train.num_docs + observed.num_docs == bag.num_docs
    assert observed.num_docs == heldout.num_docs == 8
    assert len({part.num_words for part in parts}) == 1
    assert np.unique(train.word).size == train.num_words
    for part in parts:
        assert (np.diff(part.doc) >= 0).all()
        assert part.doc.max() < part.num_docs
    lost = bag.num_tokens - sum(part.num_tokens for part in parts)
    assert 0 <= lost < 10  # words that only test documents have
    counts = [np.bincount(part.doc, minlength=8) for part in (observed, heldout)]
    assert set(counts[0] - counts[1]) <= {0, 1}
    for a, b in zip(parts, bags.split(bag, seed=5), strict=True):
        assert np.array_equal(a.word, b.word)


def test_every_document_has_different_authors(load):
    bag = load("benchmarks.bags").load("synthetic", data=None, seed=3, quick=True)
    authors = np.split(bag.author_idx, bag.author_ptr[1:-1])
    assert {len(a) for a in authors} == {1, 2, 3}
    assert all(len(set(a)) == len(a) for a in authors)
    corpus = load("benchmarks.bags").to_corpus(bag)
    assert corpus.num_docs == 80
    assert [len(corpus.authors(d)) for d in range(80)] == [len(a) for a in authors]


def test_rates_count_all_chains_and_whole_rounds(load, monkeypatch):
    measures = load("benchmarks.measures")

    class Stub:
        num_chains, round, compile_seconds, compiled, sweeps = 2, 4, 1.5, False, 0

        def advance(self, num_sweeps):
            return 0.25 * num_sweeps

        def topics(self):
            return [7]

        def slots(self):
            return 32

    asked = []

    def make(spec, bag, seed):
        asked.append(spec)
        return Stub()

    monkeypatch.setattr(measures, "make", make)
    bag = SimpleNamespace(num_tokens=1000, describe=dict)
    order = SimpleNamespace(bag=lambda corpus: bag, seed=0)
    given = {"corpus": "c", "authors": False, "seconds": 2.0, "repeats": 3, "warmup": 3}
    specs = [{"name": "a"}, {"name": "b", "topics": "like first"}]
    found = measures.tokens(order, specs=specs, **given)["systems"]
    assert (asked[1]["topics"], asked[1]["max_topics"]) == (7, 32)
    for name in "ab":
        assert found[name]["sweeps_per_turn"] == 8
        assert found[name]["tokens_per_second"] == [1000 * 2 * 8 / 2.0] * 3


def test_report_says_which_targets_are_met(load, tmp_path):
    def system(*rates):
        return {
            "tokens_per_second": list(rates), "topics": [9, 9], "slots": 32, "compile_seconds": 1.0,
        }  # fmt: skip

    lda = {
        "parallel, 1 chain": system(8e6, 7e6),
        "parallel, 4 chains": system(6e6, 5e6),
        "tomotopy LDA, 1 worker": system(5e6, 5e6),
        "tomotopy LDA, 2 workers": system(10e6, 10e6),
    }
    curve = {
        "part": "completion", "data": "c", "model": "LDA", "seconds": [1.0, 2.0],
        "perplexity": [110.0, 100.0], "error_docs": [0.02, 0.02], "topics": [5, 5],
        "compile_seconds": 0.0,
    }  # fmt: skip
    start = {
        "part": "starts", "data": "c", "method": "HDP", "sweeps": [1, 2], "seconds": [0.1, 0.2],
        "perplexity": [[9.0, 8.0], [7.0, 6.0]], "large_topics": [[1, 1], [2, 2]],
        "topics": [[1, 2], [1, 3]],
    }  # fmt: skip
    cells = [
        {"part": "tokens", "data": "c", "method": "LDA parallel", "systems": lda},
        {**curve, "method": "parallel"},
        {**curve, "method": "mixed", "model": "HDP", "perplexity": [300.0, 200.0]},
        {"part": "completion", "data": "c", "method": "unigram", "perplexity": 400.0},
        {**start, "start": "from 1 topic"},
        {**start, "start": "from 100 topics"},
        {"part": "memory", "data": "c", "method": "fit, 4 chains", "ru_maxrss": 10**9,
         "high_water": 3 * 10**9, "max_topics": 256},
    ]  # fmt: skip
    machine = {"cpu": "x", "cores": 2}
    session = {"begun": "today", "cores": 2, "machine": machine, "versions": {"jax": "0"}}
    run = {
        "settings": {
            "size": "standard", "cores": 2, "seed": 0, "chains": 4, "many_chains": 16,
            "within": 0.005, "ess_warmup_share": 0.5,
        },
        "sessions": [session],
        "cells": {i: {**cell, "session": 0} for i, cell in enumerate(cells)},
    }  # fmt: skip
    report = load("benchmarks.report")
    rows = report.targets(run).rows
    assert [row["met"] for row in rows] == ["yes", "**no**", "**no**"]
    assert rows[1]["found"] == "0.55 (0.50 to 0.60)"
    text = report.report(run, tmp_path / "speed.json")
    assert "| c | HDP | ours, mixed | 200 | 0.02 | 5 | 2 | 100.5 | never | 0 |" in text
    assert "| c | - | unigram | 400 |" in text
    for name in ("heldout_score_against_time", "from_different_starts"):
        assert (tmp_path / f"speed_{name}.png").exists()
        assert (tmp_path / f"speed_{name}.csv").exists()


class TestEffectiveDraws:
    """A value where chains mixed and made enough draws, a ratio where both sides have a value."""

    def rows(self, load, systems):
        def system(lp, chains=4):
            names = ("ess", "ess_per_second", "rhat")
            return {
                "sweeps": 9, "chains": chains, "lp": dict(zip(names, lp, strict=True)),
                "topics": dict.fromkeys(names),
            }  # fmt: skip

        cell = {
            "part": "ess", "data": "c", "method": "LDA",
            "systems": {name: system(*given) for name, given in systems.items()},
        }  # fmt: skip
        run = {"settings": {"ess_warmup_share": 0.5}, "cells": {"a": cell}}
        table = load("benchmarks.report")._ess(run)
        given = "effective_draws_of_log_density_per_second"
        assert {row["effective_draws_of_number_of_topics_per_second"] for row in table.rows} == {
            None
        }
        return {row["system"]: (row[given], row["ratio"]) for row in table.rows}, table.note

    def test_values_near_the_floor_are_not_compared(self, load):
        rows, note = self.rows(
            load,
            {
                "four mixed": ((500.0, 25.0, 1.01),),
                "four short": ((399.0, 20.0, 1.01),),
                "four apart": ((500.0, 25.0, 1.06),),
                "no number": ((500.0, 25.0, float("nan")),),
                "tomotopy LDA, 1 worker": ((100.0, 5.0, 1.05), 1),
                "tomotopy LDA, 2 workers": ((99.0, 5.0, 1.0), 1),
            },
        )
        assert rows == {
            "four mixed": (25.0, 5.0),
            "four short": ("too few draws", None),
            "four apart": ("not mixed", None),
            "no number": ("not mixed", None),
            "tomotopy LDA, 1 worker": (5.0, 1.0),
            "tomotopy LDA, 2 workers": ("too few draws", None),
        }
        assert "No system" not in note

    def test_a_peer_that_did_not_mix_is_no_base_of_ratios(self, load):
        rows, note = self.rows(
            load,
            {
                "four mixed": ((500.0, 25.0, 1.01),),
                "tomotopy LDA, 1 worker": ((3.0, 0.2, 1.6), 1),
            },
        )
        assert rows["four mixed"] == (25.0, None)
        assert "No system" not in note

    def test_the_report_says_if_there_is_nothing_to_compare(self, load):
        rows, note = self.rows(load, {"four apart": ((5.0, 0.3, 2.0),)})
        assert rows == {"four apart": ("not mixed", None)}
        assert "No system got there" in note

    @pytest.mark.parametrize("chains", [2, 4])
    @pytest.mark.parametrize("kind", ["apart", "drifting"])
    def test_chains_that_did_not_mix_have_an_ess_near_their_number(self, load, chains, kind):
        """What the limits are for: the floor does not depend on how many draws there are."""
        noise = np.random.default_rng(0).normal(size=(chains, 1000))
        far = {"apart": 20.0 * np.arange(chains)[:, None], "drifting": np.linspace(0, 50, 1000)}
        sizes = []
        for draws in (noise[:, ::10], noise):
            place = far[kind] if kind == "apart" else far[kind][:: 1000 // draws.shape[1]]
            worth = load("benchmarks.measures").worth(place + draws, 1.0)
            assert worth["rhat"] > load("benchmarks.report").RHAT
            sizes.append(worth["ess"])
        assert chains < min(sizes) <= max(sizes) < 2 * chains


class TestAgainst:
    @pytest.fixture
    def against(self, load):
        return load("benchmarks.against")

    @pytest.mark.slow
    def test_a_checkout_is_as_fast_as_itself_and_draws_the_same(self, tmp_path):
        output = tmp_path / "against.csv"
        done = run(BENCHMARKS / "speed.py", "--quick", "--against", ROOT, "--output", output)
        assert done.returncode == 0, done.stderr
        assert "Median of the 2 ratios" in done.stdout
        head, *rows = [line.split(",") for line in output.read_text().splitlines()]
        same = head.index("same_log_density_at_end")
        ratio = head.index("median_ratio_new_to_old_tokens_per_second")
        assert [row[:2] for row in rows] == [["LDA", "parallel"], ["LDA", "sequential"]]
        assert [row[same] for row in rows] == ["yes", "yes"]
        assert all(float(row[ratio]) > 0 for row in rows)

    def test_every_schedule_with_every_number_of_chains(self, against):
        wanted = list(against.systems(list(against.MODELS), [1, 4]))
        assert len(wanted) == len(set(wanted)) == 20
        with pytest.raises(ValueError, match="--models has 'GPT'; choose some of LDA,"):
            list(against.systems(["GPT"], [1]))

    def test_a_folder_without_the_project_is_refused(self, against, tmp_path):
        arguments = SimpleNamespace(against=tmp_path, quick=True, data=None)
        with pytest.raises(ValueError, match="give the root of a checkout"):
            against.compare(arguments, None)

    def side(self, seconds, errors=()):
        asked = []

        def ask(do, **arguments):
            asked.append((do, arguments))
            if do == "start" and len([x for x in asked if x[0] == "start"]) <= len(errors):
                return {"error": errors[0]}
            sweeps = arguments.get("sweeps", 1)
            return {
                "seconds": seconds * sweeps, "sweeps": sweeps, "lp": [1.0], "topics": [3],
                "tokens": 1000, "seconds_to_first_sweep": 9.0,
            }  # fmt: skip

        return SimpleNamespace(ask=ask, asked=asked)

    def test_both_sides_make_as_many_sweeps_and_the_ratio_is_that_of_speeds(self, against):
        sides = {"new": self.side(0.5), "old": self.side(1.0)}
        system = against.System("HDPLDA", "mixed", 4)
        found = against.take_turns(sides, system, 3, 10.0, topics=5, slots=32, warmup=1)
        advanced = [x for side in sides.values() for x in side.asked if x[0] == "advance"]
        assert [x[1]["sweeps"] for x in advanced] == [12] * 6  # whole rotations of six
        assert found["median_ratio_new_to_old_tokens_per_second"] == 2.0
        assert found["new_million_tokens_per_second"] == pytest.approx(1000 * 4 / 0.5 / 1e6)
        assert found["same_log_density_at_end"] == "yes"
        text = against.table([{**system._asdict(), **found}])
        assert "| HDPLDA | mixed | 4 | 2 | 2 | 2 |" in text
        assert "Median of the 1 ratios: 2.000." in text

    def test_both_sides_start_again_with_more_slots_where_one_has_too_few(self, against):
        sides = {"new": self.side(1.0), "old": self.side(1.0, ["ValueError: max_topics=32 is"])}
        found = against.take_turns(
            sides, against.System("HDPLDA", "parallel", 1), 1, 1.0, topics=5, slots=32, warmup=1
        )
        assert found["error"] == ""
        for side in sides.values():
            assert [x["slots"] for do, x in side.asked if do == "start"] == [32, 64]

    def test_what_fails_is_a_row_and_the_others_go_on(self, against):
        sides = {"new": self.side(1.0, ["TypeError: no"]), "old": self.side(1.0)}
        system = against.System("LDA", "parallel", 1)
        row = system._asdict() | against.take_turns(sides, system, 1, 1.0, slots=32)
        assert row["error"] == "new: TypeError: no"
        assert "| LDA | parallel | 1 | new: TypeError: no |" in against.table([row])
