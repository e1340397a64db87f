"""The study of author-topic models: its small size, twice, and the numbers that it reports."""

import csv
import dataclasses
import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def run(*argv):
    command = [sys.executable, EXPERIMENTS / "author_topic.py", *argv]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


@pytest.fixture
def load(monkeypatch):
    """Import a module of the study as the script does."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return lambda name: importlib.import_module(f"author_study.{name}")


@pytest.mark.slow
def test_quick_study_resumes(tmp_path):
    output = tmp_path / "study.json"
    first = run("--quick", "--output", output)
    assert first.returncode == 0, first.stderr
    results = json.loads(output.read_text())
    (session,) = results["sessions"]
    assert "jax" in session["versions"]
    found = results["measurements"]
    assert {key.split("/")[0] for key in found} >= {"fit", "curve", "speed"}
    fits = {key: value for key, value in found.items() if key.startswith("fit")}
    models = {"LDA", "AuthorTopicModel", "NonparametricAuthorTopicModel"}
    assert {key.split("/")[1] for key in fits} == models
    assert all(1 < value["perplexity"] < 30 for value in fits.values())
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Convergence", "Millions of tokens a second, times chains"):
        assert f"## {head}" in text
    rows = list(csv.reader((tmp_path / "study_scores.csv").read_text().splitlines()))
    assert len(rows) == 1 + len(fits) + ("gensim/4/2000" in found)
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "study.png",
        "study_time.png",
    }
    assert not list(tmp_path.glob(".*"))  # no checkpoint is left
    output.with_suffix(".md").unlink()
    assert run("--report", "--output", output).returncode == 0
    assert output.with_suffix(".md").read_text() == text
    again = run("--quick", "--output", output)
    assert again.returncode == 0, again.stderr
    assert "\n0 of" in again.stdout
    assert json.loads(output.read_text()) == results


def test_other_settings_are_refused(tmp_path):
    output = tmp_path / "study.json"
    other = {"settings": {}, "data": "", "sessions": [{"versions": {}}], "measurements": {}}
    output.write_text(json.dumps(other))
    found = run("--quick", "--output", output)
    assert found.returncode == 1
    assert "holds a run of other settings and data and versions" in found.stderr


def test_earlier_measurements_stand_beside_those_of_one_more_k(load, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    study = importlib.import_module("author_topic")
    settings = load("settings").QUICK
    corpora = load("corpora")
    data = corpora.split(corpora.load(settings, None), settings)
    output = tmp_path / "study.json"
    run = study._open(output, settings, data, cores=1, mix=False)
    run["measurements"]["fit/LDA/4"] = {"session": 0}
    study._write(output, run)

    more = dataclasses.replace(settings, topics=(4, 8))
    again = study._open(output, more, data, cores=1, mix=False)
    assert again["measurements"] == run["measurements"]
    assert again["settings"]["topics"] == [4, 8]
    assert len(again["sessions"]) == 1
    assert [s["cores"] for s in study._open(output, more, data, 2, False)["sessions"]] == [1, 2]
    for change in ({"seed": 1}, {"init_topics": 8}):  # on which measurements depend
        with pytest.raises(SystemExit, match="other settings:"):
            study._open(output, dataclasses.replace(settings, **change), data, 1, False)

    monkeypatch.setattr(study, "_code", lambda: "changed")
    with pytest.raises(SystemExit, match="other versions"):
        study._open(output, settings, data, 1, False)
    mixed = study._open(output, settings, data, 1, mix=True)
    assert [s["versions"]["study"] == "changed" for s in mixed["sessions"]] == [False, True]
    mixed["measurements"]["fit/LDA/8"] = {"session": 1}
    first, second = load("report")._sessions(mixed)
    assert "fit" not in first
    assert second.endswith("study changed: fit/LDA/8.")


def test_differences_are_paired(load):
    found = load("found")
    run = {"heldout_tokens": [10, 20, 0, 10]}
    other = {"doc_log_prob": [-50.0, -110.0, 0.0, -47.0], "error_chains": None}
    # each token a tenth of a nat better: the documents leave no doubt
    one = {"doc_log_prob": [-49.0, -108.0, 0.0, -46.0], "error_chains": None}
    ratio, error = found.difference(run, one, other)
    assert ratio == pytest.approx(-0.1)
    assert error == pytest.approx(0, abs=1e-9)
    assert found.difference(run, {**one, "error_chains": 0.03}, other).error == pytest.approx(0.03)
    one["doc_log_prob"] = [-46.0, -110.0, 0.0, -47.0]
    ratio, error = found.difference(run, one, other)
    rest = [3.0, -2.0, -1.0]  # 4, 0, 0 less 0.1 for each token
    assert ratio == pytest.approx(-0.1)
    assert error == pytest.approx(math.sqrt(3 / 2 * sum(x**2 for x in rest)) / 40)


def test_arrival(load):
    arrival = load("found").arrival
    scores = [{"perplexity": y} for y in (900.0, 800.0, 850.0, 700.0)]
    curve = {"seconds": [1.0, 4.0, 16.0, 64.0], "scores": scores}
    assert arrival(curve, 1000) == 1
    assert arrival(curve, 850) == pytest.approx(2)
    assert arrival(curve, 775) == pytest.approx(32)
    assert arrival(curve, 699) is None


def test_verdicts(load):
    """A run in which inferring the number of topics costs 1% and then 30%."""
    found = load("found")

    def score(perplexity, **more):
        log_prob = -math.log(perplexity)
        docs = [100 * log_prob, 300 * log_prob + 0.1]
        return {"perplexity": perplexity, "doc_log_prob": docs, "error_chains": 1e-3} | more

    fits = {
        "fit/LDA/5": score(1000.0), "fit/LDA/9": score(1020.0),
        "fit/AuthorTopicModel/5": score(1100.0), "fit/AuthorTopicModel/9": score(1110.0),
        "fit/HDPLDA/inferred": score(1010.0), "fit/NonparametricAuthorTopicModel/inferred":
        score(1300.0),
    }  # fmt: skip
    for value in fits.values():
        value |= {"topics": 5.0, "convergence": [{"rhat": 1.01}, {"rhat": None}]}
    run = {
        "settings": {"topics": [5], "curve_topics": 5, "num_chains": 2},
        "heldout_tokens": [100, 300],
        "measurements": fits,
    }

    def claims():
        made = found.claims(run)
        return {c.claim.split(",")[0]: c for c in made if "as many topics" not in c.claim}

    verdict = {name: claim.verdict for name, claim in claims().items()}
    assert verdict["NP-ATM"] == "no"
    assert verdict["HDP-LDA"] == "yes"
    assert verdict["ATM predicts second halves better than LDA"] == "no"
    assert verdict["Our ATM predicts better than gensim's"] == "not measured"
    assert next(v for k, v in verdict.items() if k.startswith("The chains")) == "yes"

    # more topics than were tried may still be better: what depends on that is not decided
    fits["fit/LDA/9"] |= score(990.0)
    claim = claims()
    assert claim["HDP-LDA"].verdict == "not decided"
    assert claim["HDP-LDA"].found.endswith("K=9; LDA gets better up to the greatest K tried, 9")
    assert claim["ATM predicts second halves better than LDA"].verdict == "no"  # all the more so
    fits["fit/AuthorTopicModel/9"] |= score(1050.0)
    claim = claims()
    assert claim["NP-ATM"].verdict == "no"
    assert claim["ATM predicts second halves better than LDA"].verdict == "not decided"


def test_as_many_topics(load):
    """Between 1000 with 4 topics and 810 with 16 lies 900 with 8."""
    found = load("found")

    def score(perplexity, asked, topics):
        docs = [-100 * math.log(perplexity), -300 * math.log(perplexity)]
        return {"doc_log_prob": docs, "error_chains": 1e-3, "asked": asked, "topics": topics}

    run = {"heldout_tokens": [100, 300]}
    scores = {"LDA": [score(1000.0, "4", 4), score(810.0, "16", 16), score(700.0, "64", 64)]}
    for perplexity, verdict in ((891.0, "yes"), (909.0, "no"), (900.0, "not decided")):
        scores["HDP-LDA"] = [score(perplexity, "inferred", 8.0)]
        claim = found._same_size(run, scores, "HDP-LDA", "LDA")
        assert claim.verdict == verdict
        assert f"8 topics; ratio {perplexity / 900:.3f}" in claim.found
        assert claim.found.endswith("between K=4 and 16")
    scores["HDP-LDA"] = [score(800.0, "inferred", 70.0)]  # outside of what was tried
    assert found._same_size(run, scores, "HDP-LDA", "LDA").verdict == "not measured"


def test_words_that_the_authors_are_worth(load, tmp_path):
    found, report = load("found"), load("report")

    def score(nats):
        docs = [-100 * nats, -300 * nats + 0.1]
        return {
            "perplexity": math.exp(nats), "doc_log_prob": docs, "error_chains": 1e-3,
            "error_docs": 0.1,
        }  # fmt: skip

    seen = {"0": score(7.0), "4": score(6.5), "16": score(6.3), "64": score(6.1)}
    run = {
        "settings": {"topics": [5], "curve_topics": 5, "num_chains": 2},
        "heldout_tokens": [100, 300],
        "measurements": {
            "words/LDA/5": {"scores": seen},
            "words/AuthorTopicModel/5": {"scores": {"authors": score(6.4)}},
        },
    }
    first, last = found.claims(run)[:2]
    assert (first.verdict, last.verdict) == ("yes", "yes")
    assert "LDA is ahead from 16 words on" in last.found
    load("pictures").draw_words(run, tmp_path / "study.json")
    assert (tmp_path / "study_words.png").stat().st_size > 5000
    assert [row[2] for row in report._words(run).rows] == ["0", "4", "16", "64", "authors"]


def test_nothing_known_is_the_prior(load):
    import bnp_models as bnp
    from bnp_models.posterior.mixtures import Mixtures

    phi = np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)
    zero = np.zeros(1, int)
    state = Mixtures(phi[None], np.array([[1.0, 3.0]], np.float32), zero, zero)
    heldout = bnp.Corpus.from_ids([[0, 1], [1]], num_words=2, authors=[["a"], ["b"]])
    score = load("fits")._nothing_known(SimpleNamespace(mixtures=[state]), heldout)
    expected = np.log([0.2, 0.8, 0.8]).mean()
    assert score.log_prob == pytest.approx(expected, rel=1e-5)


def test_documents_of_prolific_authors(load):
    import bnp_models as bnp

    settings = load("settings").QUICK
    corpora = load("corpora")
    authors = [["a"], ["b"], ["a", "b"], ["c"], ["a"], ["b", "d"]]
    corpus = bnp.Corpus.from_ids([[0, 1]] * 6, num_words=2, authors=authors)
    assert corpora._of_prolific_authors(corpus, 4).tolist() == [0, 2, 4]
    assert corpora._of_prolific_authors(corpus, 5).tolist() == [0, 1, 2, 4, 5]
    data = corpora.split(corpora.load(settings, None), settings)
    parts = data.train.num_tokens, data.observed.num_tokens
    assert data.together.num_tokens == sum(parts)
    assert data.together.author_names == data.heldout.author_names
    first = corpora.first_words(data.observed, 3, 0)
    assert (first.doc_length <= 3).all()
    assert first.num_docs == data.heldout.num_docs
