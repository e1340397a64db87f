"""The study of supervised topic models: its small size, its data, and what it says of claims."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("supervised.claims")


@pytest.mark.slow
@pytest.mark.usefixtures("in_no_time")
@pytest.mark.filterwarnings("ignore")  # tomotopy warns when it is imported
def test_quick_study_resumes(load, read_csv, capsys, tmp_path):
    study, output = load("supervised.__main__"), tmp_path / "supervised.json"
    assert study.main(["--quick", "--output", str(output)]) == 0
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == set(study.STUDY.parts)
    tuned = [cell for cell in cells if cell["method"] == "gSLDA tuned"]
    assert [cell["parameters"] for cell in tuned] == 3 * [{"c": 25.0}]  # two seeds, two starts
    for cell in cells:
        for way in cell.get("ways", {}).values():
            right = load("study.scores").unpack(way["correct"], cell["test_documents"])
            assert way["accuracy"] == pytest.approx(right.mean())
    sampled = [cell for cell in cells if cell["method"] == "gSLDA+" and "ways" in cell]
    assert {"plug_in", "one_state", "averaged"} in [set(cell["ways"]) for cell in sampled]
    assert {cell.get("start") for cell in sampled} >= {None, "from 1 topic"}
    kept = [cell for cell in cells if cell["part"] == "binary" and "averaged" in cell["ways"]]
    assert {len(cell["draws"]) for cell in kept} == {2}
    for cell in (cell for cell in cells if cell["method"] == "vSLDA"):
        bound = cell["bound"]
        assert np.isfinite(bound).all()
        assert 2 ** (len(bound) - 1) * study.STUDY.settings["quick"].steps == cell["steps"]
        assert cell["flat"] == (bound[-1] - bound[-2] < 1e-3 * abs(bound[-1]))
    if importlib.util.find_spec("tomotopy"):
        assert {"tomotopy", "race"} <= {cell["method"] for cell in cells}
    names = [claim.claim for claim in load("supervised.claims").CLAIMS]
    assert [row["claim"] for row in read_csv(tmp_path / "supervised_claims.csv")] == names
    for picture in ("supervised", "supervised_sensitivity", "supervised_tomotopy"):
        assert (tmp_path / f"{picture}.png").stat().st_size > 3000
    text = output.with_suffix(".md").read_text()
    assert study.main(["--report", "--output", str(output)]) == 0
    assert output.with_suffix(".md").read_text() == text
    capsys.readouterr()
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith(f"0 of {len(cells)} measurements")
    assert json.loads(output.read_text()) == results


class TestData:
    @pytest.fixture
    def folder(self, load, tmp_path):
        load("supervised.data").made_up(tmp_path, seed=0)
        return tmp_path

    def test_stop_words_and_words_of_test_documents_alone_are_left_out(self, load, folder):
        data = load("supervised.data")
        with np.load(folder / data.FILE) as arrays:
            arrays = dict(arrays)
        only_test = np.flatnonzero(arrays["split"][arrays["doc"]] == 1)[:1]
        arrays["word"][only_test] = 50  # of one test document
        arrays |= {"n_words": 51, "vocab": np.array([f"w{v}" for v in range(51)])}
        arrays["is_stop"] = np.arange(51) < 4
        np.savez(folder / data.FILE, **arrays)
        task = data.read(folder, groups=data.PAIR)
        assert task.train.vocabulary == task.test.vocabulary
        known = set(task.train.vocabulary)
        assert not known & {"w0", "w1", "w2", "w3", "w50"}
        counts = np.bincount(np.asarray(task.train.word), minlength=task.train.num_words)
        assert (counts > 0).all()

    def test_the_published_split_is_kept(self, load, folder):
        data = load("supervised.data")
        task = data.read(folder, groups=data.PAIR)
        assert (task.train.num_docs, task.test.num_docs) == (16, 16)
        assert {task.train.label_names[i] for i in np.asarray(task.train.label)} == set(data.PAIR)
        every = data.read(folder)
        assert (every.train.num_docs, every.test.num_docs) == (32, 32)
        some = data.read(folder, share=0.5)
        assert np.bincount(np.asarray(some.train.label)).tolist() == [4, 4, 4, 4]
        fitted, validation = task.validation(0.25, seed=0)
        assert np.bincount(np.asarray(validation.label)).tolist() == [2, 0, 0, 2]
        assert fitted.num_docs == 12

    def test_classes_may_be_names_or_numbers(self, load, folder):
        data = load("supervised.data")
        corpus = data.read(folder, groups=data.PAIR).test
        label = np.asarray(corpus.label)
        predicted = np.full(len(label), label.max())
        right = data.predicted_classes(corpus, predicted)
        np.testing.assert_array_equal(right, label == label.max())
        names = np.array(corpus.label_names)[predicted]
        np.testing.assert_array_equal(data.predicted_classes(corpus, names), right)


def fit(load, method, right, seed, part="binary", topics=5, **more):
    pack = load("study.scores").pack
    ways = {"plug_in": {"correct": pack(np.asarray(right, bool)), "test_seconds": 1.0}}
    about = {"part": part, "method": method, "topics": topics, "chain_seed": seed}
    return {**about, "test_documents": len(right), "ways": ways, "train_seconds": 2.0, **more}


def run_of(*records):
    settings = {"mass": 1.0, "class_steps": 3, "batch_size": 4, "class_sweeps": 40}
    return {"cells": dict(enumerate(records)), "settings": settings}


def test_methods_are_compared_on_the_same_documents_and_starts(load, claims):
    right = np.arange(200) < 180
    worse = np.arange(200) < 140
    records = [fit(load, "gSLDA+", right, n) for n in range(3)]
    records += [fit(load, "gSLDA", worse, n) for n in range(2)]
    found = claims._compare(run_of(*records), "binary", "gSLDA+", "gSLDA")
    assert found.verdict == "holds"
    assert found.found.startswith("0.900 against 0.700; difference +0.200")
    assert (
        claims._compare(run_of(*records), "binary", "gSLDA", "gSLDA+", "below").verdict == "holds"
    )
    assert (
        claims._compare(run_of(*records), "binary", "gSLDA", "gSLDA+", "equal").verdict
        == "does not hold"
    )
    same = [fit(load, "vMedLDA tuned", right, n, part="variational") for n in range(2)]
    near = claims._compare(run_of(*records, *same), "binary", "gSLDA+", "vMedLDA tuned", "equal")
    assert near.verdict == "holds"  # of another part with the same documents
    one = claims._compare(run_of(*records[2:4]), "binary", "gSLDA+", "gSLDA")
    assert one.verdict == "not run"  # other seeds


AGREE = [{start: np.resize([1.0, 2.0, 1.5], (2, 30)) for start in ("usual", "from 1 topic")}]


def test_accuracies_are_about_draws_of_chains(load, claims):
    ruled = load("study.claims").ruled
    records = [fit(load, "gSLDA+", np.arange(200) < 180, n) for n in range(2)]
    records += [fit(load, "gLDA+SVM", np.arange(200) < 140, n) for n in range(2)]
    found = claims._compare(run_of(*records), "binary", "gSLDA+", "gLDA+SVM")
    assert found.verdict == "holds"
    assert ruled(found).verdict == "not converged"
    assert ruled(found._replace(chains=AGREE)) == found._replace(chains=AGREE)


def test_accuracies_of_states_are_kept(load, claims):
    """Seeds are the chains; a linear SVM has none."""
    rng, ruled = np.random.default_rng(0), load("study.claims").ruled

    def verdict(moved):
        right, records = np.arange(200) < 180, []
        for n in range(2):
            for start in ({}, {"start": "from 1 topic"}):
                draws = 0.9 + 0.01 * rng.normal(size=25) - (moved if start else 0)
                records.append(fit(load, "gSLDA+", right, n, draws=draws.tolist(), **start))
            records.append(fit(load, "SVM of words", np.arange(200) < 140, n))
        return ruled(claims._compare(run_of(*records), "binary", "gSLDA+", "SVM of words")).verdict

    assert verdict(0.0) == "holds"
    assert verdict(0.05) == "not converged"


@pytest.mark.parametrize(
    ("part", "one", "other", "ask", "said"),
    [
        ("binary", "gSLDA+", "vMedLDA tuned", "above", "not flat in 1 of 2 fits"),
        ("binary", "vSLDA tuned", "gSLDA+", "below", "not flat in 1 of 2 fits"),
        ("binary", "vSLDA tuned", "gSLDA+", "above", ""),
        ("binary", "gSLDA+", "gLDA+SVM", "above", ""),
        ("classes", "gSLDA+", "gLDA+SVM", "above", "LDA of the baseline made 40 sweeps."),
    ],
)
def test_another_method_may_not_be_at_its_best(load, claims, part, one, other, ask, said):
    right = {one: np.arange(200) < 180, other: np.arange(200) < 140}
    records = [
        fit(load, name, x, n, part, flat=n == 0) for name, x in right.items() for n in range(2)
    ]
    found = claims._compare(run_of(*records), part, one, other, ask)
    verdict = load("study.claims").ruled(found._replace(chains=AGREE)).verdict
    assert said in found.baseline
    assert verdict == ("other baseline" if said else found.verdict)


def test_the_best_parameters_on_validation_documents_are_chosen(load, tmp_path):
    measures = load("supervised.measures")
    output = tmp_path / "study.json"
    choose = measures.chosen(output, "binary", "logistic", ("c",))
    with pytest.raises(ValueError, match="validation documents for logistic"):
        choose()
    cells = {}
    for split in range(2):
        for c, accuracy in ((1.0, (0.5, 0.9)), (9.0, (0.8, 0.8)), (25.0, (0.7, 0.7))):
            ways = {"plug_in": {"accuracy": 1.0}, "averaged": {"accuracy": accuracy[split]}}
            about = {"part": "binary", "method": "validation of logistic"}
            cells[f"{c} {split}"] = {**about, "parameters": {"c": c}, "ways": ways}
    output.write_text(json.dumps({"cells": cells}))
    assert choose() == {"c": 9.0}


def test_a_race_ends_where_accuracy_stays(load):
    arrival = load("supervised.speed")._arrival
    path = {"our_path": [0.5, 0.9, 0.8, 0.9, 0.9, 0.95], "our_path_seconds": [1, 2, 3, 4, 5, 6]}
    assert arrival(path, 0.85) == {"our_seconds": 4, "our_sweeps": 4}
    assert arrival(path, 0.92) == {"our_seconds": None, "our_sweeps": None}


@pytest.mark.slow
def test_a_race_compiles_anew(load, tmp_path):
    """The folder of compiled programs is neither read nor written meanwhile."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    try:
        jax.config.update(names[0], str(tmp_path))
        jax.config.update(names[1], 0.0)
        compilation_cache.reset_cache()
        jax.jit(lambda x: x * 17.0)(1.0)
        written = len(list(tmp_path.iterdir()))
        assert written
        with load("supervised.speed")._nothing_compiled():
            jax.jit(lambda x: x * 18.0)(1.0)
        assert len(list(tmp_path.iterdir())) == written
        jax.jit(lambda x: x * 19.0)(1.0)
        assert len(list(tmp_path.iterdir())) > written
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def test_ratios_of_seconds_to_the_same_accuracy(load, claims):
    def race(ours, theirs=10.0, compiling=4.0):
        workers = {"1": {"seconds": theirs, "our_seconds": ours}}
        about = {"part": "speed", "method": "race", "c": 25.0, "c_of_tomotopy": 1.0}
        return {**about, "workers": workers, "our_compile_seconds": compiling}

    fast = run_of(race(1.0), race(1.2), race(0.9))
    found = claims._race(fast, 25.0, 1.0, False)
    assert found.verdict == "holds"
    assert load("study.claims").ruled(found) == found  # seconds are not draws of chains
    assert claims._race(fast, 25.0, 1.0, True).verdict == "not decided"
    assert claims._race(run_of(race(9.0), race(8.0)), 25.0, 1.0, False).verdict == "does not hold"
    never = claims._race(run_of(race(None), race(None), race(1.0)), 25.0, 1.0, False)
    assert never.verdict == "does not hold"
    assert "not reached in 2 of 3 runs" in never.found
    assert claims._race(fast, 1.0, 1.0, False).verdict == "not run"


def test_shares_of_a_sweep(claims):
    def parts(topics, draw, sweep):
        seconds = {"lambda": draw, "eta": 0.001, "sequential": sweep, "parallel": sweep / 3}
        about = {"part": "classes", "method": "parts of a sweep", "topics": topics}
        return {**about, "seconds": seconds}

    run = run_of(parts(20, 0.5, 0.4), parts(50, 0.5, 0.8))
    assert claims._pieces(run, "lambda").verdict == "does not hold"  # 38% with 50 topics
    for ask in ("eta", "flat", "grows"):
        assert claims._pieces(run, ask).verdict == "holds"


def test_data_are_needed(load, monkeypatch, capsys):
    monkeypatch.delenv("BNP_DATA", raising=False)
    assert load("supervised.__main__").main([]) == 1
    assert "--data FOLDER is needed: the folder with news20_bow.npz" in capsys.readouterr().err
