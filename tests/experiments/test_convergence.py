import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "benchmarks" / "convergence.py"
OPTIONS = {"num_warmup": 2, "num_samples": 2, "keep_states": 2, "num_chains": 1, "seed": 0}


def run(*argv):
    command = [sys.executable, str(SCRIPT), *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_quick_runs_resumes_and_both_sides_of_one_checkout_draw_the_same(tmp_path, read_csv):
    output = tmp_path / "convergence.json"
    first = run("--quick", "--old", ROOT, "--output", output)
    assert first.returncode == 0, first.stderr
    results = json.loads(output.read_text())
    cells = results["cells"].values()
    assert {cell["part"] for cell in cells} == {"hdp-docs", "first-lda", "completion"}
    assert "jax" in results["sessions"][0]["versions"]
    assert "--parts hdp-docs" in results["made"]["command"]
    old, new = (cell for cell in cells if cell["part"] == "hdp-docs")
    assert (old["method"], new["method"]) == ("old", "new")
    for name in ("curve_lp", "curve_topics", "lp_of_draws", "corpus"):
        assert old[name] == new[name]
    assert old["curve_sweeps"][-1] == old["warmup"] + 2
    assert 0 < old["warmup_seconds"] < old["seconds"] == old["curve_seconds"][-1]
    row, *_ = read_csv(tmp_path / "convergence_targets.csv")
    assert float(row["old"]) == pytest.approx(old["warmup_seconds"], rel=1e-4)
    assert float(row["ratio"]) == pytest.approx(float(row["new"]) / float(row["old"]), rel=1e-4)
    assert len(read_csv(tmp_path / "convergence_measurements.csv")) == len(cells)
    assert (tmp_path / "convergence_log_joint_against_seconds.png").exists()
    again = run("--quick", "--old", ROOT, "--output", output)
    assert again.stdout.startswith("0 of ")
    assert json.loads(output.read_text()) == results


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--old CHECKOUT is needed"),
        (["--old", "nowhere"], "--old nowhere has no bnp_models"),
        (["--old", ROOT, "--warmups", "0"], "0 is no positive whole number"),
    ],
)
def test_bad_options_are_refused(load, capsys, argv, message):
    with pytest.raises(SystemExit) as error:
        load("benchmarks.convergence").main(["--quick", *map(str, argv)])
    assert message in f"{error.value} {capsys.readouterr().err}"


def test_old_and_new_take_turns_and_nothing_is_repeated_before_all_was_done(load, tmp_path):
    convergence = load("benchmarks.convergence")
    made = list(convergence.cells(convergence.STANDARD, ROOT, "data", tmp_path / "x.json"))
    assert {cell.part for cell in made} == set(convergence.PARTS)
    assert len({cell.key for cell in made}) == len(made)
    seeds = [cell.chain_seed for cell in made]
    assert seeds == sorted(seeds)
    assert set(seeds) == {0, 1, 2}
    turns = [(c.method, c.detail["warmup"]) for c in made if c.part == "lda-mlabs"]
    new = [("new", n) for n in (50, 100, 200, 400)]
    assert turns == [("old", 400), *new, *new[::-1], ("old", 400), ("old", 400), *new]
    files = convergence.DATA
    assert set(convergence.PARTS) - set(files) == {"hdp-docs", "starts-docs"}
    assert (files["authors-nips12"], files["first-hdp"]) == ("nips12.npz", "mlabs.npz")


@pytest.fixture
def order(load, tmp_path):
    return load("benchmarks.processes").Order(None, 0, True, 1, str(tmp_path))


@pytest.mark.slow
def test_a_fit_is_seen_and_scored(load, order):
    found = load("benchmarks.measures").fit(
        order, checkout=str(ROOT), corpus="synthetic", documents=70, model="HDPLDA",
        parameters={"beta": 0.05}, score=True,
        options={**OPTIONS, "schedule": "sequential", "record": ["topic_tokens"]},
    )  # fmt: skip
    assert found["corpus"]["documents"] == 63  # nine in ten are for training
    assert found["curve_sweeps"][-2:] == [3, 4]
    assert found["warmup_seconds"] == found["curve_seconds"][-2]
    draws = np.array(found["curve_lp"])[-2:]
    assert found["lp_of_draws"] == pytest.approx(draws.mean(), rel=1e-6)
    assert 1 <= found["large_topics"][0] <= found["curve_topics"][-1][0]
    assert 1 < found["perplexity"] < found["single_state_perplexity"] < 150


def test_a_fit_of_another_checkout_than_the_one_asked_for_is_refused(load, order, tmp_path):
    with pytest.raises(ValueError, match="imported bnp_models from"):
        load("benchmarks.measures").fit(
            order, checkout=str(tmp_path), corpus="synthetic", documents=None, model="LDA",
            parameters={}, score=False, options=OPTIONS,
        )  # fmt: skip


def test_a_stage_imports_its_checkout_with_an_empty_cache(load, order, tmp_path, capfd):
    package = tmp_path / "other" / "bnp_models"
    package.mkdir(parents=True)
    code = "import os\nraise ImportError('here: ' + os.environ['JAX_COMPILATION_CACHE_DIR'])"
    (package / "__init__.py").write_text(code)
    processes = load("benchmarks.processes")
    given = {"corpus": "", "documents": None, "model": "", "parameters": {}, "options": {}}
    stage = processes.Stage("fit", {"checkout": "", "score": False, **given})
    with pytest.raises(subprocess.CalledProcessError):
        processes.run_stages(order._replace(quick=False), (stage,), tmp_path / "other")
    assert f"here: {tmp_path / 'compiled'}" in capfd.readouterr().err
    assert not (tmp_path / "compiled").exists()


def test_a_subset_keeps_the_words_and_authors_of_its_documents(load):
    bags = load("benchmarks.bags")
    bag = bags.load("synthetic", data=None, seed=3, quick=True)
    part = bags.subset(bag, 30, seed=0)
    assert (part.num_docs, part.num_words) == (30, np.unique(part.word).size)
    assert np.array_equal(np.unique(part.doc), np.arange(30))
    sizes = np.bincount(bag.doc), np.bincount(part.doc)
    chosen = np.sort(np.random.default_rng([0, 3]).permutation(80)[:30])
    assert np.array_equal(sizes[0][chosen], sizes[1])
    authors = np.split(part.author_idx, part.author_ptr[1:-1])
    whole = np.split(bag.author_idx, bag.author_ptr[1:-1])
    assert [len(a) for a in authors] == [len(whole[d]) for d in chosen]
    old, new = np.concatenate([whole[d] for d in chosen]), np.concatenate(authors)
    assert np.array_equal(np.unique(old)[new], old)  # the same people, numbered without gaps
    with pytest.raises(ValueError, match="num_docs must be in 1 to 80, got 81"):
        bags.subset(bag, 81, seed=0)


def test_a_saved_corpus_is_read(load, tmp_path):
    bags = load("benchmarks.bags")
    bag = bags.load("synthetic", data=None, seed=3, quick=True)
    bags.to_corpus(bag).save(tmp_path / "corpus.npz")
    read = bags.load(str(tmp_path / "corpus.npz"), data=None, seed=0)
    assert np.array_equal(read.doc, bag.doc)
    assert np.array_equal(read.word, bag.word)


class TestTargets:
    @pytest.fixture
    def rows(self, load):
        settings = load("benchmarks.convergence").STANDARD

        def rows(*records, **changed):
            known = {"session": 0, "code": "a"}
            cells = {str(i): {**known, **record} for i, record in enumerate(records)}
            given = {**vars(settings), **changed}
            return list(load("benchmarks.convergence_report").targets({
                "settings": given, "cells": cells,
            }))  # fmt: skip

        return rows

    def fit(self, method, warmup, seconds, lp, **more):
        about = {"part": "hdp-docs", "method": method, "warmup": warmup}
        return {**about, "warmup_seconds": seconds, "lp_of_draws": lp, **more}

    def test_the_shortest_warmup_that_is_there_counts(self, rows):
        old = [self.fit("old", 400, s, lp) for s, lp in ((90.0, -11), (100.0, -10), (110.0, -9))]
        new = [self.fit("new", 50, 20.0, -10.5), self.fit("new", 100, 40.0, -10.0)]
        (row,) = rows(*old, *new, self.fit("new", 200, 70.0, -8.0))
        assert (row["old"], row["new"], row["ratio"], row["met"]) == (100.0, 40.0, 0.4, "yes")
        (row,) = rows(*old, new[0])
        assert (row["new"], row["ratio"], row["met"]) == ("never", None, "**no**")
        (row,) = rows(*old)
        assert (row["new"], row["met"]) == (None, "not measured")

    def test_records_of_older_code_and_of_other_sizes_do_not_count(self, rows):
        part = {"part": "hdp-nips12", "documents": 200}
        old = self.fit("old", 400, 100.0, -10.0, **part)
        new = self.fit("new", 50, 20.0, -9.0, **part)
        later = self.fit("new", 100, 30.0, -9.0, **part, code="b", session=1)
        assert rows(old, new, later, documents=200)[0]["new"] == 30.0
        assert rows(old, new, later)[0]["met"] == "not measured"

    def test_starts_are_compared_in_percent(self, rows):
        def start(topics, perplexity, large, seconds, method="new"):
            return {
                "part": "starts-docs", "method": method, "warmup": 400, "start": f"from {topics}",
                "perplexity": perplexity, "large_topics": large, "seconds": seconds,
            }  # fmt: skip

        found = rows(start(1, 100.0, [50, 50], 299.0), start(500, 100.5, [60, 60], 301.0))
        assert [row["met"] for row in found] == ["yes", "**no**", "**no**"]
        assert [row["new"] for row in found] == pytest.approx([0.5, 20.0, 301.0])
        assert {row["old"] for row in found} == {None}

    def test_the_first_result_needs_a_score_too(self, rows):
        ours = {
            "part": "first-lda", "method": "new", "warmup": 200, "seconds": 20.0,
            "perplexity": 90.0, "single_state_perplexity": 100.0,
        }  # fmt: skip
        peer = {"part": "first-lda", "method": "tomotopy", "seconds": 5.0, "code": None}
        for score, met in ((101.0, "yes"), (99.0, "**no**")):
            (row,) = rows(ours, {**peer, "perplexity": [score]})
            assert (row["new"], row["ratio"], row["met"]) == (10.0, 2.0, met)
        assert rows(ours)[0]["met"] == "not measured"

    def test_who_never_arrives_does_not_meet_the_target(self, rows):
        def curve(method, *perplexity):
            seconds = [1.0, 2.0]
            return {"part": "completion", "method": method, "seconds": seconds,
                    "perplexity": perplexity}  # fmt: skip

        (row,) = rows(curve("new", 1800.0, 1701.0), curve("tomotopy", 1800.0, 1750.0))
        assert (row["new"], row["met"]) == (pytest.approx(2.0), "yes")
        (row,) = rows(curve("new", 1800.0, 1750.0), curve("tomotopy", 1800.0, 1750.0))
        assert (row["new"], row["ratio"], row["met"]) == ("never", None, "**no**")
        assert math.inf not in row.values()
