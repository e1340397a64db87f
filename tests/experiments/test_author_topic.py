"""The study of author-topic models: its small size, twice, and what it says of its claims."""

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.posterior.mixtures import Mixtures

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def run(*argv):
    command = [sys.executable, EXPERIMENTS / "author_topic.py", *argv]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_quick_study_resumes(read_csv, tmp_path):
    output = tmp_path / "study.json"
    first = run("--quick", "--output", output)
    assert first.returncode == 0, first.stderr
    results = json.loads(output.read_text())
    (session,) = results["sessions"]
    assert "jax" in session["versions"]
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} >= {"unigram", "fit", "curve"}
    fits = [cell for cell in cells if cell["part"] == "fit"]
    models = {"LDA", "AuthorTopicModel", "NonparametricAuthorTopicModel"}
    assert {fit["method"] for fit in fits} == models
    for fit in fits:
        assert 1 < fit["perplexity"] < 40
        assert np.shape(fit["state_log_prob"]) == (4, len(results["heldout_tokens"]))
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Perplexity of second halves", "Convergence"):
        assert f"## {head}" in text
    rows = read_csv(tmp_path / "study_perplexity.csv")
    assert {row["model"] for row in rows} >= models | {"unigram"}
    assert (tmp_path / "study.png").stat().st_size > 5000
    assert not list(tmp_path.glob(".*"))  # no checkpoint is left
    output.with_suffix(".md").unlink()
    assert run("--report", "--output", output).returncode == 0
    assert output.with_suffix(".md").read_text() == text
    again = run("--quick", "--output", output)
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("0 of")
    assert json.loads(output.read_text()) == results


LDA, ATM = "LDA", "AuthorTopicModel"
HDP, NP = "HDPLDA", "NonparametricAuthorTopicModel"


def score(perplexity, **more):
    log_prob = -math.log(perplexity)
    docs = [100 * log_prob, 300 * log_prob + 0.1]
    return {"perplexity": perplexity, "doc_log_prob": docs, "error_chains": 1e-3} | more


def fit(method, asked, perplexity, topics=5.0, rhat=1.01, start=""):
    about = {"part": "fit", "method": method, "topics_asked": asked, "start": start}
    convergence = [{"rhat": rhat}, {"rhat": None}]
    return score(perplexity, **about, topics=topics, convergence=convergence)


def run_of(*cells, topics=5):
    return {
        "settings": {"topics": [topics], "curve_topics": topics}, "heldout_tokens": [100, 300],
        "cells": dict(enumerate(cells)),
    }  # fmt: skip


def test_what_inferring_the_number_of_topics_costs(load):
    """It costs 1% and then 30%, from two starts that agree."""
    near = load("author_claims")._near
    fits = [fit(LDA, 5, 1000.0), fit(LDA, 9, 1020.0), fit(ATM, 5, 1100.0), fit(ATM, 9, 1110.0)]
    inferred = [
        fit(model, "inferred", perplexity, start=start)
        for model, perplexity in ((HDP, 1010.0), (NP, 1300.0))
        for start in ("a", "b")
    ]
    run = run_of(*fits, *inferred)
    assert near(run, HDP, LDA).verdict == "holds"
    assert near(run, NP, ATM).verdict == "does not hold"
    assert near(run_of(*fits), NP, ATM).verdict == "not run"
    # one start, or two that disagree, or chains that disagree
    assert near(run_of(*fits, inferred[0]), HDP, LDA).verdict == "not decided"
    other = fit(HDP, "inferred", 900.0, start="b")
    assert near(run_of(*fits, inferred[0], other), HDP, LDA).verdict == "not decided"
    apart = [{**x, "convergence": [{"rhat": 2.0}]} for x in inferred]
    assert near(run_of(*fits, *apart), HDP, LDA).verdict == "not converged"
    # more topics than were tried may still be better: what depends on that is not decided
    better = [fit(LDA, 9, 990.0) if (x["method"], x["topics_asked"]) == (LDA, 9) else x
              for x in fits]  # fmt: skip
    found = near(run_of(*better, *inferred), HDP, LDA)
    assert found.verdict == "not decided"
    assert found.why == "LDA gets better up to the greatest K tried, 9."


@pytest.mark.parametrize(
    ("perplexity", "verdict"), [(891, "holds"), (909, "does not hold"), (900, "not decided")]
)
def test_as_many_topics(load, perplexity, verdict):
    """Between 1000 with 4 topics and 810 with 16 lies 900 with 8."""
    same_size = load("author_claims")._same_size
    lda = [fit(LDA, 4, 1000.0), fit(LDA, 16, 810.0), fit(LDA, 64, 700.0)]
    mine = [fit(HDP, "inferred", float(perplexity), 8.0, start=start) for start in "ab"]
    found = same_size(run_of(*lda, *mine), HDP, LDA)
    assert found.verdict == verdict
    assert f"8 topics; ratio of perplexities {perplexity / 900:.3f}" in found.found
    assert found.found.endswith("between K=4 and 16")
    as_many = fit(HDP, "inferred", 800.0, 16.0)  # as one of the finite fits
    assert same_size(run_of(*lda, as_many), HDP, LDA).found.endswith("between K=4 and 16")
    outside = fit(HDP, "inferred", 800.0, 70.0)
    assert same_size(run_of(*lda, outside), HDP, LDA).verdict == "not run"


def test_words_that_the_authors_are_worth(load, tmp_path):
    claims = load("author_claims")

    def at(nats):
        docs = [-100 * nats, -300 * nats + 0.1]
        perplexity = math.exp(nats)
        return {
            "perplexity": perplexity, "doc_log_prob": docs, "error_chains": 1e-3, "error_docs": 0.1,
        }  # fmt: skip

    seen = {"0": at(7.0), "4": at(6.5), "16": at(6.3), "64": at(6.1)}
    about = {"part": "words", "topics_asked": 5, "convergence": [{"rhat": 3.0}]}
    run = run_of(
        {**about, "method": LDA, "scores": seen},
        {**about, "method": ATM, "scores": {"authors": at(6.4)}},
    )
    for after in (False, True):
        found = claims._words(run, after)
        assert found.verdict == "not converged"
        assert "would say 'holds'" in found.why
    assert claims._words(run, True).found.endswith("LDA is ahead from 16 words on")
    known = [row["known_of_the_document"] for row in claims._seen(run)]
    assert known == ["0 words", "4 words", "16 words", "64 words", "its authors"]
    claims._draw(run, tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 5000


def test_a_peer_is_held_against_one_state_after_the_same_seconds(load):
    claims = load("author_claims")
    common = {"topics_asked": 5, "session": 0}
    gensim = {"part": "gensim", "seconds": [1.0, 4.0], "scores": [score(900.0), score(950.0)]}
    ours = {"part": "curve", "chains": 1, "seconds": [1.0, 4.0, 16.0]}
    scores = {"scores": [score(1000.0), score(950.0), score(800.0)]}
    run = run_of(gensim | common, ours | scores | common)
    assert claims._one_state(run, sooner=False).verdict == "holds"
    found = claims._one_state(run, sooner=True)
    assert found.verdict == "not decided"
    assert found.found.startswith("6.3 s against 1.0 s, perplexity 900.0")
    assert claims._one_state(run_of(gensim | common), sooner=True).verdict == "not run"


def test_nothing_known_is_the_prior(load):
    phi = np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)
    zero = np.zeros(1, int)
    state = Mixtures(phi[None], np.array([[1.0, 3.0]], np.float32), zero, zero)
    heldout = bnp.Corpus.from_ids([[0, 1], [1]], num_words=2, authors=[["a"], ["b"]])
    found = load("author_measures").nothing_known(SimpleNamespace(mixtures=[state]), heldout)
    expected = np.log([0.2, 0.8, 0.8]).mean()
    assert found.log_prob == pytest.approx(expected, rel=1e-5)


def test_documents_of_prolific_authors(load):
    chosen = load("author_measures").of_prolific_authors
    authors = [["a"], ["b"], ["a", "b"], ["c"], ["a"], ["b", "d"]]
    corpus = bnp.Corpus.from_ids([[0, 1]] * 6, num_words=2, authors=authors)
    assert chosen(corpus, 4).tolist() == [0, 2, 4]
    assert chosen(corpus, 5).tolist() == [0, 1, 2, 4, 5]
