"""The study of author-topic models: its small size, and what it says of its claims."""

import itertools
import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.posterior.mixtures import Mixtures

LDA, ATM, HDP, NP = "LDA", "AuthorTopicModel", "HDPLDA", "NonparametricAuthorTopicModel"
GENSIM, TOMOTOPY = "gensim's AuthorTopicModel", "tomotopy's HDP"
TOKENS = [40] * 60
USUAL, OTHER = "from 100 topics", "from 10 topics"


@pytest.fixture
def findings(load):
    """The module of the findings."""
    return load("author_topic.claims")


@pytest.fixture
def ruled(load):
    """The rule that every finding is asked."""
    return load("study.claims").ruled


@pytest.mark.slow
@pytest.mark.usefixtures("in_no_time")
def test_quick_study_resumes(load, read_csv, capsys, tmp_path):
    study, output = load("author_topic.__main__"), tmp_path / "study.json"
    parts = ["--quick", "--parts", "fit,long,curve", "--output", str(output)]
    assert study.main(parts) == 0
    assert "FAILED" not in capsys.readouterr().err
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == {"fit", "long", "curve"}
    fits = {cell["method"]: cell for cell in cells if cell["part"] == "fit"}
    assert set(fits) == {"unigram", LDA, ATM, NP}
    for name, known in ((LDA, {"0", "4", "all"}), (ATM, {"authors"}), (NP, {"authors"})):
        assert set(fits[name]["scores"]) == known
        for score in fits[name]["scores"].values():
            assert 1 < score["perplexity"] < 40
            assert len(score["doc_log_prob"]) == len(fits["unigram"]["doc_tokens"]) == 8
            assert np.shape(score["draws"]) == (2, 2)
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Perplexity of second halves", "Perplexity by words seen", "Conv"):
        assert f"## {head}" in text
    rows = read_csv(tmp_path / "study_perplexity.csv")
    assert [row["model"] for row in rows] == [LDA, ATM, NP, "unigram"]
    longer = [row["model"] for row in read_csv(tmp_path / "study_longer_chains.csv")]
    assert longer == [ATM, ATM, NP, NP, *["authors without topics"] * 2]
    assert (tmp_path / "study.png").stat().st_size > 5000
    assert not list(tmp_path.glob(".*"))  # no checkpoint is left
    output.with_suffix(".md").unlink()
    assert study.main(["--report", "--quick", "--output", str(output)]) == 0
    assert output.with_suffix(".md").read_text() == text
    capsys.readouterr()
    assert study.main(parts) == 0
    assert capsys.readouterr().out.startswith(f"0 of {len(cells)}")
    assert json.loads(output.read_text()) == results


@pytest.mark.usefixtures("in_this_process")
def test_plan_has_whole_splits(load, monkeypatch, capsys, tmp_path):
    """An interrupted run has all fits of the first splits."""
    study = load("author_topic.__main__")
    monkeypatch.setattr(load("study.command"), "_data", lambda *given: None)
    options = ["--parts", "fit", "--plan", "--output", str(tmp_path / "a.json")]
    assert study.main(options) == 0
    assert study.main([*options, "--splits", "5"]) == 0
    standard, more = capsys.readouterr().out.split("results go to")[1:]
    seeds = [int(line.split("split_seed=")[1][0]) for line in standard.splitlines()[1:-1]]
    assert seeds == sorted(seeds)
    s = study.STUDY.settings["standard"]
    per_split = 1 + 2 * (len(s.topics) + len(s.per_topic)) + len(s.infinite)
    others = len(s.infinite) * s.start_splits
    assert len(seeds) == s.splits * per_split + others
    assert more.count("split_seed=") == 5 * per_split + others


def score(gains, single=None, draws=None):
    """Return a score of 60 documents, `gains` nats per token above a level of -7.

    `single` has what it is in a single state, and `draws` how states differ from their mean.
    """
    docs = np.multiply(TOKENS, np.asarray(gains) - 7.0)
    single = docs if single is None else np.multiply(TOKENS, np.asarray(single) - 7.0)
    perplexity = math.exp(-docs.sum() / np.sum(TOKENS))
    return {
        "perplexity": perplexity, "doc_log_prob": docs.tolist(),
        "single_doc_log_prob": single.tolist(),
        **({} if draws is None else {"draws": (draws + single.sum() / np.sum(TOKENS)).tolist()}),
    }  # fmt: skip


class Made:
    """Records of fits on several splits, whose documents differ by noise and by a gain."""

    def __init__(self, splits=3):
        self.rng = np.random.default_rng(0)
        self.splits, self.cells = range(splits), []
        self.level = 0.3 * self.rng.normal(size=(splits, len(TOKENS)))
        for n in self.splits:
            self.cells.append({
                "part": "fit", "method": "unigram", "split_seed": n, "doc_tokens": TOKENS,
                "words_of_a_first_half": 500.0, "sizes": {"test documents": len(TOKENS)},
                **score(self.level[n] - 0.7),
            })  # fmt: skip

    def fit(self, method, asked, gain, *, splits=None, topics=None, kept=True, **about):
        """Add fits; `gain` is a number, or one for each number of words seen.

        Two chains have states, which differ a little, and a peer has one; see `kept`.
        """
        peer = method in (GENSIM, TOMOTOPY)
        known = "all" if method in (LDA, HDP, TOMOTOPY) else "authors"
        gains = gain if isinstance(gain, dict) else {known: gain}
        for n in self.splits if splits is None else splits:
            noise = self.level[n] + 0.01 * self.rng.normal(size=len(TOKENS))
            # one state is a tenth of a nat worse than an average of states
            states = np.zeros((1, 1)) if peer else 0.01 * self.rng.normal(size=(2, 200))
            scores = {seen: score(noise + x, noise + x - 0.1, states if kept else None)
                      for seen, x in gains.items()}  # fmt: skip
            self.cells.append({
                "part": "peers" if peer else "fit", "method": method,
                "topics_asked": asked, "split_seed": n, "scores": scores,
                "topics": float(topics or asked), "convergence": [{"rhat": 1.01}, {"rhat": None}],
                "perplexity": scores[list(scores)[-1]]["perplexity"], "seconds": 8.0 + n,
                "session": 0, **about,
            })  # fmt: skip
        return self

    def longer(self, method, asked, gain, starts=(None, "from 10 topics"), apart=0.0):
        """Add longer chains from two starts; the other one is `apart` from the first."""
        for number, start in enumerate(starts):
            about = {} if start is None else {"start": start}
            self.fit(method, asked, gain + number * apart, topics=200, part="long", **about)
        return self

    def inferred(self, method, gain, topics=200.0, *, other=0.0, **about):
        """Add fits of a model that infers the number of topics, from two starts."""
        self.fit(method, "inferred", gain, topics=topics, start=USUAL, **about)
        if other is not None:
            few = list(self.splits)[:2]
            self.fit(method, "inferred", gain + other, topics=topics, start=OTHER, splits=few,
                     **about)  # fmt: skip
        return self

    @property
    def run(self):
        """The run."""
        settings = {
            "size": "made-up", "seed": 0, "splits": len(self.splits), "starts": [100, 10],
            "words": [0, 4, 16, 64], "topics": [100, 200, 400], "per_topic": [100, 400],
            "gensim_topics": [100, 200], "tomotopy_starts": [100, 2], "curve_topics": 100,
            "curve_seconds": 60.0, "num_chains": 2, "num_warmup": 1, "num_samples": 1,
            "keep_states": 1, "long_starts": [[0, 10], [800, 10]],
        }  # fmt: skip
        sessions = [{"cores": 2, "versions": {}}]
        return {"settings": settings, "sessions": sessions, "cells": dict(enumerate(self.cells))}


def finite(made, method=LDA, gains=(0.0, 0.2, 0.19), **about):
    for k, gain in zip((100, 200, 400), gains, strict=True):
        made.fit(method, k, gain, **about)
    return made


class TestInferredTopics:
    @pytest.mark.parametrize(
        ("gain", "verdict"), [(0.2, "holds"), (0.1, "does not hold"), (0.181, "not decided")]
    )
    def test_what_inferring_their_number_costs(self, findings, gain, verdict):
        found = findings.near(finite(Made()).inferred(HDP, gain).run, HDP, LDA)
        assert found.verdict == verdict
        assert found.found.startswith("200 ± 0 topics; ratio of perplexities")
        assert found.found.endswith("to K=200, 3 splits")
        assert ("splits would decide" in found.why) == (verdict == "not decided")

    def test_one_split_decides_nothing(self, findings):
        found = findings.near(finite(Made(1)).inferred(HDP, 0.1).run, HDP, LDA)
        assert found.verdict == "not decided"
        assert "run at least two splits" in found.why

    def test_a_finite_model_has_one_start(self, findings, ruled):
        for kept in (True, False):
            made = finite(Made(), kept=kept).inferred(HDP, 0.2, kept=kept)
            assert ruled(findings.near(made.run, HDP, LDA)).verdict == "not converged"
        # what lies between two numbers of topics has chains if both have
        made = Made().fit(ATM, 100, 0.0).fit(ATM, 400, 0.2).inferred(NP, 0.2, other=None)
        (quantity,) = findings.same_size(made.run, NP, ATM).chains
        # half-way there is 0.1, and 0.01 nats of states and of documents
        assert quantity[""].shape == (2, 200)
        assert quantity[""].mean() == pytest.approx(-0.1, abs=0.01)

    @pytest.mark.parametrize(("apart", "verdict"), [(0.0, "holds"), (0.1, "not converged")])
    def test_longer_chains_have_two_starts(self, findings, ruled, apart, verdict):
        made = finite(Made()).inferred(HDP, 0.0)  # the short ones say another thing
        for k, gain in ((800, 0.2), (1600, 0.19)):
            made.longer(LDA, k, gain)
        made.longer(HDP, "inferred", 0.2, ("from 800 topics", "from 10 topics"), apart)
        found = ruled(findings.near(made.run, HDP, LDA, long=True))
        assert found.verdict == verdict
        assert "to K=800" in found.found
        assert findings.near(finite(Made()).run, HDP, LDA, long=True).verdict == "not run"

    def test_authors_without_topics(self, findings, ruled):
        made = Made().longer(ATM, 100, 0.2)
        assert findings.without_topics(made.run).verdict == "not run"
        made.longer("authors without topics", "inferred", 0.0, (None, "from first authors"))
        found = ruled(findings.without_topics(made.run))
        assert found.verdict == "holds"
        assert found.found.endswith("K=100, 3 splits")

    def test_more_topics_than_were_tried_may_be_better(self, findings):
        made = finite(Made(), gains=(0.0, 0.1, 0.2)).inferred(HDP, 0.2)
        found = findings.near(made.run, HDP, LDA)
        assert found.verdict == "not decided"
        assert "better up to the greatest K tried, 400" in found.why
        worse = finite(Made(), gains=(0.0, 0.1, 0.2)).inferred(HDP, 0.0)
        assert findings.near(worse.run, HDP, LDA).verdict == "does not hold"

    @pytest.mark.parametrize(
        ("gain", "verdict"), [(0.2, "holds"), (0.0, "does not hold"), (0.1, "not decided")]
    )
    def test_as_many_topics(self, findings, gain, verdict):
        """Half-way over log K between 100 and 400 lie 200 topics."""
        made = Made().fit(ATM, 100, 0.0).fit(ATM, 400, 0.2).inferred(NP, gain)
        found = findings.same_size(made.run, NP, ATM)
        assert found.verdict == verdict
        assert "lies between K=100 and 400" in found.found
        outside = Made().fit(ATM, 100, 0.0).inferred(NP, gain)
        assert findings.same_size(outside.run, NP, ATM).verdict == "not run"

    @pytest.mark.parametrize(
        ("gain", "verdict"), [(0.2, "holds"), (0.1, "does not hold"), (0.19, "not decided")]
    )
    def test_an_alpha_for_each_topic(self, findings, gain, verdict):
        made = finite(Made()).inferred(HDP, 0.2)
        made.fit(LDA, 400, gain, alpha="for each topic")
        found = findings.alpha_per_topic(made.run, HDP, LDA)
        assert found.verdict == verdict
        assert "K=400" in found.found
        alone = finite(Made()).inferred(HDP, 0.2)
        assert findings.alpha_per_topic(alone.run, HDP, LDA).verdict == "not run"

    def test_the_number_of_topics(self, findings, ruled):
        def found(topics, other=True):
            made = Made()
            few = list(made.splits)[:2]
            for n in made.splits:
                made.fit(NP, "inferred", 0.0, splits=[n], topics=200 + n, start=USUAL)
            for n in few if other else ():
                made.fit(NP, "inferred", 0.0, splits=[n], topics=topics + n, start=OTHER)
            return findings.number_of_topics(made.run)

        assert found(201).verdict == "holds"
        assert found(201).found.startswith("201 ± 1 topics from 100 topics; 202 ± 0 topics from 10")
        assert found(150).verdict == "does not hold"
        assert ruled(found(201)).verdict == "not converged"  # numbers are kept as means over draws
        assert found(201, other=False).verdict == "not decided"


BY_WORDS = {"0": -0.7, "4": -0.5, "16": -0.3, "64": 0.1, "all": 0.3}


class TestConditions:
    def made(self, authors, splits=3):
        return Made(splits).fit(LDA, 100, BY_WORDS).fit(ATM, 100, authors)

    def test_authors_against_no_words_and_many(self, findings):
        run = self.made(-0.3).run
        none, many = (findings.words(run, after) for after in (False, True))
        assert (none.verdict, many.verdict) == ("holds", "holds")
        assert "authors known to 64 words seen" in many.found
        assert "the authors are worth 16." in many.found
        poor, good = (self.made(x).run for x in (-0.9, 0.2))
        assert findings.words(poor, after=False).verdict == "does not hold"
        assert findings.words(good, after=True).verdict == "does not hold"
        assert findings.words(Made().fit(ATM, 100, 0.0).run, after=True).verdict == "not run"

    def test_authors_against_half_of_the_words(self, findings):
        """More topics, which were not tried, could make the loser win."""
        found = findings.authors_or_half(self.made(0.0).run)
        assert found.verdict == "not decided"
        assert "AuthorTopicModel gets better" in found.why
        made = finite(finite(Made()), ATM)
        assert findings.authors_or_half(made.run).verdict == "not decided"
        made = finite(finite(Made()), ATM, (-0.2, 0.1, 0.0))
        assert findings.authors_or_half(made.run).verdict == "does not hold"

    def test_words_that_the_authors_are_worth(self, load):
        gaps = load("author_topic.claims")
        which = gaps.Which(ATM, 100), gaps.Which(LDA, 100)
        worth = gaps.words_worth(self.made(-0.1).run, *which)
        # half-way between 16 and 64 words, over log(1 + words)
        assert worth.value == pytest.approx(math.sqrt(17 * 65) - 1, rel=0.03)
        assert worth.error < 1
        for beyond in (-0.9, 0.5):
            assert gaps.words_worth(self.made(beyond).run, *which) is None


class TestPeers:
    def made(self, ours, gensim):
        made = Made()
        for k in (100, 200):
            made.fit(ATM, k, ours).fit(GENSIM, k, gensim)
            for cell in made.cells:
                if cell["method"] == GENSIM:  # it has one state, and no average
                    score = cell["scores"]["authors"]
                    score["single_doc_log_prob"] = score["doc_log_prob"]
        return made

    @pytest.mark.parametrize(
        ("gain", "average", "single"),
        [(0.2, "holds", "holds"), (0.05, "holds", "does not hold"),
         (-0.1, "does not hold", "does not hold")],
    )  # fmt: skip
    def test_averages_and_single_states(self, findings, gain, average, single):
        run = self.made(gain, 0.0).run
        for one, verdict in ((False, average), (True, single)):
            found = findings.gensim_with_every_k(run, single=one)
            assert found.verdict == verdict
            # all K have to be better, and one that is worse decides alone
            assert len(found.chains) == (2 if verdict == "holds" else 1)
        assert findings.gensim_with_every_k(Made().run, single=True).verdict == "not run"

    def curves(self, gain, seconds):
        """One chain of ours is at a perplexity of 1000 after so many seconds; gensim after 8."""
        made = self.made(0.0, 0.0)
        for cell in made.cells:
            if cell["method"] == GENSIM:
                cell["perplexity"] = 1000.0
        for n in made.splits:
            points = {"seconds": [0.1, seconds + 0.05 * n], "perplexity": [2000.0, 1000.0]}
            made.cells.append({
                "part": "curve", "chains": 1, "split_seed": n, "curve": points,
                "scores": {"authors": score(made.level[n] + gain)},
            })  # fmt: skip
        return made.run

    def test_one_chain_on_the_clock(self, findings, ruled):
        for gain, verdict in ((0.2, "holds"), (-0.2, "does not hold")):
            found = findings.one_state_after_seconds(self.curves(gain, 1.0))
            assert ruled(found).verdict == verdict
        assert findings.one_state_after_seconds(self.made(0.0, 0.0).run).verdict == "not run"
        found = ruled(findings.sooner(self.curves(0.2, 1.0)))
        assert found.verdict == "holds"
        assert "1.0 s against 8.0" in found.found
        assert findings.sooner(self.curves(0.2, 90.0)).verdict == "does not hold"

    def test_a_curve_that_never_arrives_is_a_lower_bound(self, findings):
        for last, verdict in ((90.0, "does not hold"), (1.0, "not decided")):
            run = self.curves(0.2, last)
            for cell in run["cells"].values():
                if cell["part"] == "curve":
                    cell["curve"]["perplexity"] = [2000.0, 1500.0]
            found = findings.sooner(run)
            assert found.verdict == verdict
            assert found.found.startswith("ratio of seconds at least")
            assert "never against 8.0" in found.found
            assert ("run longer curves" in found.why) == (verdict == "not decided")

    @pytest.mark.parametrize(("gain", "verdict"), [(0.4, "holds"), (0.0, "does not hold")])
    def test_one_state_of_each_hdp(self, findings, ruled, gain, verdict):
        def found(**about):
            made = Made().inferred(HDP, gain, **about)
            made.fit(TOMOTOPY, "inferred", 0.2, topics=90, start=USUAL)
            made.fit(TOMOTOPY, "inferred", 0.1, topics=5, start="from 2 topics")
            return ruled(findings.tomotopy(made.run))

        assert found().verdict == verdict
        assert "200 ± 0 topics against 90 ± 0 from 100 topics" in found().found
        assert findings.tomotopy(Made().inferred(HDP, 0.0).run).verdict == "not run"
        for lacking, said in (({"kept": False}, "was not kept"), ({"other": -0.1}, "R-hat of"),
                              ({"other": None}, "not two chains from each of two")):  # fmt: skip
            assert found(**lacking).verdict == "not converged"
            assert said in found(**lacking).why


def full_run():
    """Return a run with everything in it."""
    made = TestPeers().made(0.2, 0.0)
    for k in (100, 200, 400):
        made.fit(LDA, k, BY_WORDS)
    made.inferred(NP, 0.25)
    curve = {"curve": {"seconds": [1.0, 4.0], "perplexity": [1500.0, 1200.0]}}
    for n in made.splits:
        made.cells.append({
            "part": "curve", "method": ATM, "topics_asked": 100, "schedule": "parallel",
            "chains": 1, "split_seed": n, "scores": {"authors": score(made.level[n])}, **curve,
        })  # fmt: skip
    tried = {
        "eta": "auto", "documents_per_update": 50, "passes": 2.5, "seconds": 3.0,
        "perplexity": 1200.0, "perplexity_at_the_end": 1300.0, "stopped_at_the_end": False,
    }  # fmt: skip
    for cell in made.cells:
        if cell["method"] == GENSIM:
            cell |= {"validation": [{**tried, "eta": 0.1}, tried], "chosen": tried, **curve}
        if "convergence" in cell:
            lp = {"quantity": "lp", "mean": -1e5, "rhat": 1.0, "ess_bulk": 90.0}
            cell["convergence"] = [lp, {**lp, "quantity": "constant", "rhat": None}]
        cell.setdefault("session", 0)
    return made.run


def test_report(load, read_csv, tmp_path):
    module = load("author_topic.report")
    text = module.report(full_run(), tmp_path / "study.json")
    for head in ("Claims", "Perplexity of second halves", "Perplexity by words seen",
                 "Words that the authors are worth", "Choices of gensim's model", "Convergence",
                 "Perplexity against time"):  # fmt: skip
        assert f"## {head}" in text
    rows = read_csv(tmp_path / "study_claims.csv")
    assert [row["claim"] for row in rows] == [claim.claim for claim in module.CLAIMS]
    scores = read_csv(tmp_path / "study_perplexity.csv")
    assert all(float(row["standard_error"]) > 0 for row in scores)
    known = [row["known_of_the_document"] for row in
             read_csv(tmp_path / "study_perplexity_by_words_seen.csv")][:5]  # fmt: skip
    assert known == ["0 words", "4 words", "16 words", "64 words", "all words of its first half"]
    choices = read_csv(tmp_path / "study_gensim_choices.csv")
    assert [row["chosen"] for row in choices[:2]] == ["no", "yes"]
    assert (tmp_path / "study.png").stat().st_size > 5000


def test_nothing_measured(load, tmp_path):
    module = load("author_topic.report")
    run = Made(0).run
    for claim in module.CLAIMS:
        assert claim.ask(run).verdict == "not run"
    assert "not run" in module.report(run, tmp_path / "study.json")


class FakeGensim:
    """A model of gensim with two words; `quality` is the probability of the first."""

    def __init__(self, quality, authors):
        self.alpha = np.ones(1)
        self.author2id = {name: j for j, name in enumerate(authors)}
        self.state = SimpleNamespace(gamma=np.ones((len(authors), 1)))
        self.quality = quality

    def get_topics(self):
        return np.array([[self.quality, 1 - self.quality]])


def test_gensim_is_tuned_on_training_documents_alone(load):
    """The first word is all there is, so that a model is as good as it makes this word likely."""
    authors = [[f"a{d % 3}"] for d in range(23)]
    corpus = bnp.Corpus.from_ids([[0, 0]] * 23, num_words=2, authors=authors)
    train, test = corpus.select(np.arange(20)), corpus.select(np.arange(20, 23))
    calls = []

    def trainer(fitted, *, topics, eta, chunk, seed, look):
        calls.append((fitted.num_docs, eta, chunk))
        for update in range(1, 1000):  # best after two updates, with eta "auto" and chunks of 10
            quality = 0.9 - 0.1 * abs(update - 2) if update < 9 else 0.1
            quality -= 0.05 * (eta != "auto") + 0.05 * (chunk != 10)
            if look(FakeGensim(quality, fitted.author_names), update, float(update)):
                return

    found = load("study.peers").tuned_gensim(
        train, test, topics=1, etas=(0.1, "auto"), chunks=(5, 10), validation_share=0.25,
        seconds=8.0, points=9, seed=0, trainer=trainer,
    )  # fmt: skip
    # 15 of 20 documents, a pass has 3 updates or 2; then all of them, and one pass is 2 updates
    assert calls == [(15, 0.1, 5), (15, 0.1, 10), (15, "auto", 5), (15, "auto", 10),
                     (20, "auto", 10)]  # fmt: skip
    assert found["chosen"]["passes"] == 1
    assert found["chosen"]["eta"] == "auto"
    assert not found["chosen"]["stopped_at_the_end"]
    assert len(found["validation"]) == 4
    assert found["seconds"] == 2.0
    assert found["perplexity"] == pytest.approx(1 / 0.9, rel=1e-3)
    assert found["scores"]["authors"]["doc_log_prob"] == pytest.approx([2 * math.log(0.9)] * 3,
                                                                       abs=0.01)  # fmt: skip


def test_authors_without_topics_are_their_words(load):
    module = load("author_topic.measures")
    settings = load("author_topic.settings").Settings(
        "test", beta=0.5, num_warmup=50, num_samples=200, keep_states=100, num_chains=2
    )
    train = bnp.Corpus.from_ids(
        [[0, 0, 1], [2, 2, 2], [0, 2]],
        vocabulary=("a", "b", "c"),
        authors=[["x"], ["y"], ["x", "y"]],
    )
    heldout = bnp.Corpus.from_ids(
        [[0]], vocabulary=("a", "b", "c"), authors=[["x"]], author_names=("x", "y")
    )
    data = load("study.splits").Halves(train, heldout, heldout)
    # of the last document each of both tokens is of x or y: weights of the four ways
    weights, shares = [], []
    for first, second in itertools.product((True, False), repeat=2):  # by x
        counts = np.array([[2, 1, 0], [0, 0, 3]]) + 0.5
        counts[0 if first else 1, 0] += 1
        counts[0 if second else 1, 2] += 1
        log_weight = gammaln(counts).sum() - gammaln(counts.sum(axis=1)).sum()
        weights.append(np.exp(log_weight))
        shares.append(counts[0, 0] / counts[0].sum())
    wanted = np.average(shares, weights=weights)
    for signed_first in (False, True):
        found = module.authors_alone(data, signed_first=signed_first, settings=settings, seed=0)
        # 200 states whose shares have a standard deviation of 0.05
        assert 1 / found["perplexity"] == pytest.approx(wanted, abs=5 * 0.05 / np.sqrt(200))
        assert np.shape(found["scores"]["authors"]["draws"]) == (2, 100)


def test_nothing_known_is_the_prior(load):
    phi = np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)
    zero = np.zeros(1, int)
    state = Mixtures(phi[None], DirichletLaw(np.array([[1.0, 3.0]], np.float32)), zero, zero)
    heldout = bnp.Corpus.from_ids([[0, 1], [1]], num_words=2, authors=[["a"], ["b"]])
    found = load("author_topic.measures").nothing_known(SimpleNamespace(mixtures=[state]), heldout)
    expected = np.log([0.2, 0.8, 0.8]).mean()
    assert found.log_prob == pytest.approx(expected, rel=1e-5)


def test_words_that_tomotopy_leaves_out(load):
    phi = np.array([[0.7, 0.1], [0.0, 0.0], [0.3, 0.9]])
    found = load("author_topic.measures").all_words_possible(phi)
    np.testing.assert_allclose(found[1], [0.3 / 1.3, 0.1 / 1.1])
    np.testing.assert_allclose(found.sum(axis=0), 1)


def test_documents_of_prolific_authors(load):
    chosen = load("author_topic.measures").of_prolific_authors
    authors = [["a"], ["b"], ["a", "b"], ["c"], ["a"], ["b", "d"]]
    corpus = bnp.Corpus.from_ids([[0, 1]] * 6, num_words=2, authors=authors)
    assert chosen(corpus, 4).tolist() == [0, 2, 4]
    assert chosen(corpus, 5).tolist() == [0, 1, 2, 4, 5]


@pytest.mark.skipif(not os.environ.get("BNP_DATA"), reason="needs the NIPS papers")
def test_test_documents_are_not_fitted(load, tmp_path):
    study = load("author_topic.plan")
    plan = study.Plan(
        load("author_topic.settings").STANDARD, os.environ["BNP_DATA"], tmp_path / "a.json"
    )
    data = plan.split(1)
    assert not set(data.train.doc_names) & set(data.heldout.doc_names)
    assert data.train.author_names == data.heldout.author_names
    assert plan.split(1) is data
