import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "experiments" / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmarks as a script there does."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"measure.{name}")


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
    parts = {key.split("/")[0] for key in results["measurements"]}
    assert parts == {"tokens", "ess", "completion", "starts", "memory"}
    assert "jax" in results["versions"]
    assert results["machine"]["cores"] > 0
    for curve in (v for k, v in results["measurements"].items() if k.startswith("completion")):
        assert len(curve["seconds"]) == len(curve["perplexity"]) > 0
        assert 1 < curve["perplexity"][-1] < 150
    table = output.with_suffix(".md").read_text()
    for head in ("Targets", "Tokens per second", "Held-out score", "Peak memory"):
        assert f"## {head}" in table
    assert {p.name for p in tmp_path.glob("*.png")} == {
        "speed_completion.png",
        "speed_starts.png",
    }
    again = run(script, "--quick", "--output", output)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("0 of ")
    assert json.loads(output.read_text()) == results
    other = run(script, "--quick", "--output", output, "--seed", "1")
    assert "settings" in other.stderr
    assert other.returncode == 1


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


def test_split_halves_the_test_documents_and_nothing_else(load):
    corpora = load("corpora")
    bag = corpora.load("synthetic", data=None, seed=3, quick=True)
    train, observed, heldout = parts = corpora.split(bag, seed=5)
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
    for a, b in zip(parts, corpora.split(bag, seed=5), strict=True):
        assert np.array_equal(a.word, b.word)


def test_systems_take_turns_and_compiling_turns_are_repeated(load, monkeypatch):
    throughput, calls = load("throughput"), []

    class Stub:
        num_chains, round, compile_seconds = 2, 4, 1.5

        def __init__(self, name):
            self.name, self.compiled, self.turns = name, False, 0

        def advance(self, num_sweeps):
            calls.append(self.name)
            self.turns += 1
            self.compiled = self.name == "b" and self.turns == 3  # its first turn
            return 100.0 if self.compiled else 0.25 * num_sweeps

        def topics(self):
            return [7]

        def slots(self):
            return 32

    asked = []

    def make(spec, bag, seed):
        asked.append(spec)
        return Stub(spec["name"])

    monkeypatch.setattr(throughput, "make", make)
    bag = SimpleNamespace(num_tokens=1000)
    specs = [{"name": "a"}, {"name": "b", "topics": "like first"}]
    found = throughput.measure(
        specs, bag, seed=0, seconds=2.0, repeats=3, warmup=3, say=lambda text: None
    )
    assert (asked[1]["topics"], asked[1]["max_topics"]) == (7, 32)
    assert calls == ["a", "a", "b", "b", *["a", "b", "b"], *["b", "a"], *["a", "b"]]
    for name in "ab":
        assert found[name]["sweeps_per_repeat"] == 8
        assert found[name]["tokens_per_second"] == [1000 * 2 * 8 / 2.0] * 3


def test_time_of_arrival_is_read_off_the_curve(load):
    reached = load("report").reached
    curve = {"seconds": [1.0, 4.0, 16.0], "perplexity": [200.0, 120.0, 100.0]}
    assert reached(curve, 200.0) == 1.0
    assert reached(curve, 110.0) == pytest.approx(8.0)
    assert reached(curve, 99.0) is None


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
    sizes = {"documents": 1, "tokens": 2, "vocabulary": 3}
    curve = {
        "seconds": [1.0, 2.0], "perplexity": [110.0, 100.0], "error_docs": [0.02, 0.02],
        "topics": [5, 5], "compile_seconds": 0.0,
    }  # fmt: skip
    start = {
        "sweeps": [1, 2], "seconds": [0.1, 0.2], "perplexity": [[9.0, 8.0], [7.0, 6.0]],
        "large_topics": [[1, 1], [2, 2]], "topics": [[1, 2], [1, 3]],
    }  # fmt: skip
    peak = {"ru_maxrss": 10**9, "high_water": 3 * 10**9, "max_topics": 256, "load_before": 0.1}
    result = {
        "settings": {
            "size": "standard", "cores": 2, "seed": 0, "chains": 4, "many_chains": 16,
            "within": 0.005, "ess_warmup_share": 0.5,
        },
        "versions": {"jax": "0"}, "corpora": ["c"], "begun": "today",
        "machine": {"cpu": "x", "cores": 2, "memory_gib": 1},
        "measurements": {
            "tokens/c/LDA parallel": {"systems": lda, "corpus": sizes},
            "completion/c/LDA/parallel/0": curve,
            "completion/c/LDA/tomotopy LDA, 2 workers/0": curve,
            "completion/c/HDP/mixed, from 1 topic/0": {**curve, "perplexity": [300.0, 200.0]},
            "starts/c/from 1 topic": start,
            "starts/c/from 100 topics": start,
            "memory/c/fit, 4 chains": peak,
        },
    }  # fmt: skip
    met = [row[-1] for row in load("report").targets(result)]
    assert met == [True, False, None, None, None, False]
    text = load("report").report(result, tmp_path / "speed.json")
    assert "| parallel, 4 chains | 5.50 (5.00 to 6.00) | 0.55 (0.50 to 0.60) | 9 | 32 |" in text
    assert "never" in text
    assert (tmp_path / "speed_completion.png").exists()
    assert (tmp_path / "speed_starts.png").exists()
