"""The study of transfer: its data, its contestants, what it says of claims, and its small size."""

import itertools
import json
import os
import types
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats
import xarray

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base import other_packages

DATA = os.environ.get("BNP_DATA", "")
EL, COMPLETION = "empirical_likelihood", "document_completion"


@pytest.fixture
def data(load):
    """The module of the data."""
    return load("transfer.data")


@pytest.fixture
def methods(load):
    """The module of the contestants."""
    return load("transfer.measures")


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("transfer.claims")


@pytest.mark.slow
@pytest.mark.usefixtures("in_no_time")
def test_quick_study_resumes(load, read_csv, capsys, monkeypatch, tmp_path):
    # drop programs now, so that none is dropped during the study: it says which fits compiled
    jax.clear_caches()
    monkeypatch.setattr(other_packages, "SHARE", 0.95)
    study, output = load("transfer.__main__"), tmp_path / "transfer.json"
    assert study.main(["--quick", "--output", str(output)]) == 0
    capsys.readouterr()
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == set(study.STUDY.parts)
    fits = [cell for cell in cells if "scores" in cell]
    assert {"multi-task HDP", "HDP alone"} <= {fit["method"] for fit in fits}
    for fit in fits:
        for score in fit["scores"].values():
            assert -20 < score["log_prob"] < -1
            # the mean of probabilities is no less than that of their logarithms
            assert np.shape(score["draws"]) == (2, 2)
            assert np.mean(score["draws"]) < score["log_prob"] + 1e-4
    alone = [fit for fit in fits if fit["method"] == "HDP alone" and fit["part"] == "newsgroups"]
    assert {fit["train_documents"] for fit in alone} == {5}
    # one program serves all problems and mixing coefficients of a method
    for method in ("multi-task HDP", "HDP alone"):
        usual = [
            fit for fit in fits if (fit["method"], fit["part"]) == (method, "continuum")
            and "start" not in fit
        ]  # fmt: skip
        assert [fit["compiled"] for fit in usual[1:]] == [False] * 3
    names = [c.claim for c in load("transfer.claims").claims_by(EL)]
    rows = read_csv(tmp_path / "transfer_claims.csv")
    assert [row["claim"] for row in rows][: len(names)] == names
    assert (tmp_path / f"transfer_{COMPLETION}.png").stat().st_size > 5000
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Scores", "Paired differences", "Fits", "Tokens per second"):
        assert f"## {head}" in text
    assert study.main(["--report", "--quick", "--output", str(output)]) == 0
    assert output.with_suffix(".md").read_text() == text
    capsys.readouterr()
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert f"0 of {len(cells)} measurements" in capsys.readouterr().out
    assert json.loads(output.read_text()) == results


def test_data_are_needed_for_text_alone(load, monkeypatch, capsys, in_this_process):
    monkeypatch.delenv("BNP_DATA", raising=False)
    study = load("transfer.__main__")
    assert study.main(["--parts", "nips", "--plan"]) == 1
    assert "--data FOLDER is needed: the folder with nips12.npz" in capsys.readouterr().err


def test_plan_of_the_paper(load, capsys, in_this_process, tmp_path):
    study = load("transfer.__main__")
    options = ["--full", "--parts", "continuum,tasks", "--plan"]
    assert study.main([*options, "--output", str(tmp_path / "paper.json")]) == 0
    out = capsys.readouterr().out
    # nine u of four methods, eight numbers of tasks and three u of two methods; ten problems, and
    # three of them from another start, too
    assert out.startswith(f"{(9 * 4 + 8 * 3 * 2) * (10 + 3)} of ")
    assert "method=sparse transfer, Taylor/mixing=0.125" in out
    fits = study.STUDY.settings["full"].continuum
    assert (fits.num_warmup, fits.num_samples // fits.keep_states, fits.keep_states) == (
        1500, 15, 100,
    )  # fmt: skip


class TestContinuum:
    def test_left_end(self, data):
        made = data.continuum(0.0, 1)
        expected = np.zeros((10, 10))
        expected[0, 0] = 300
        for task in range(1, 10):
            expected[task, [0, task]] = 150
        np.testing.assert_array_equal(made.counts, expected)
        words = set(np.flatnonzero(made.phi[0] > 0))  # the task of interest has one topic
        assert set(np.asarray(made.test.word)) <= words
        mine = np.asarray(made.train.group)[np.asarray(made.train.doc)] == 0
        assert set(np.asarray(made.train.word)[mine]) <= words

    def test_right_end(self, data):
        counts = data.continuum(1.0, 1).counts
        assert (np.sort(counts, axis=1) == [0] * 7 + [100] * 3).all()
        assert len({tuple(row) for row in counts}) > 5

    def test_between_the_ends(self, data):
        left, middle, right = (data.continuum(u, 3) for u in (0.0, 0.125, 1.0))
        np.testing.assert_allclose(middle.counts, 0.875 * left.counts + 0.125 * right.counts)
        np.testing.assert_allclose(middle.counts.sum(axis=1), 300)
        np.testing.assert_array_equal(left.phi, right.phi)

    def test_all_problems_have_the_same_shapes(self, data):
        one, other = data.continuum(0.25, 0), data.continuum(0.75, 7)
        for a, b in ((one.train, other.train), (one.test, other.test)):
            np.testing.assert_array_equal(a.doc_length, np.full(a.num_docs, 8))
            np.testing.assert_array_equal(a.group, b.group)
            assert (a.num_words, a.group_names) == (b.num_words, b.group_names)
        assert np.bincount(one.train.group).tolist() == [24] + [8] * 9
        assert one.test.num_docs == 100
        assert one.train != other.train

    def test_fewer_tasks_are_a_part_of_more(self, data):
        many, few = (data.continuum(0.5, 2, num_tasks=n) for n in (30, 4))
        assert few.test == many.test
        np.testing.assert_array_equal(few.counts, many.counts[:4])
        kept = many.train.select(np.asarray(many.train.group) < 4)
        np.testing.assert_array_equal(kept.word, few.train.word)
        left = data.continuum(0.0, 0, num_tasks=12).counts
        np.testing.assert_array_equal(left[10], left[1])  # there are nine topics of their own

    def test_words_have_their_law(self, data):
        made = data.continuum(0.5, 4, num_test=3000)
        share = made.counts[0] / made.counts[0].sum() @ made.phi
        found = np.bincount(made.test.word, minlength=150)
        assert (found[share == 0] == 0).all()
        # words of a document are nearly independent: 300 pseudo-counts, 8 words
        chi = (
            (found - found.sum() * share)[share > 0] ** 2 / (found.sum() * share)[share > 0]
        ).sum()
        assert scipy.stats.chi2(np.sum(share > 0) - 1).sf(chi / 1.03) > 1e-6

    def test_topics_are_sparse(self, data):
        phi = np.concatenate([data.continuum(0.0, seed).phi for seed in range(30)])
        np.testing.assert_allclose(phi.sum(axis=1), 1)
        assert scipy.stats.binomtest(int((phi > 0).sum()), phi.size, 0.1).pvalue > 1e-6
        tiny = data._sparse_topics(np.random.default_rng(0), 50, 3)  # many would have no word
        np.testing.assert_allclose(tiny.sum(axis=1), 1)

    def test_mixing_is_checked(self, data):
        with pytest.raises(ValueError, match=r"mixing must be between 0 and 1, got 1\.5"):
            data.continuum(1.5, 0)


class TestOfInterest:
    @pytest.fixture
    def corpus(self, data):
        return data.made_up("nips", 0)

    def divide(self, data, corpus, size=5, fold=0, **options):
        options = {"num_others": 8, "num_interest": size, "fold": fold} | options
        return data.of_interest(corpus, "AA", **options)

    def test_documents_are_divided(self, data, corpus):
        train, test = self.divide(data, corpus)
        assert np.bincount(train.group).tolist() == [5, 8]
        assert {test.group_names[g] for g in np.asarray(test.group)} == {"AA"}
        assert train.num_words == test.num_words
        tests = [self.divide(data, corpus, fold=n)[1].doc_names for n in range(5)]
        assert sorted(sum(tests, ())) == sorted(corpus.doc_names[:20])  # each once

    def test_test_documents_are_not_fitted(self, data, corpus):
        for fold in range(5):
            train, test = self.divide(data, corpus, size=16, fold=fold)
            assert not set(train.doc_names) & set(test.doc_names)

    def test_smaller_sizes_are_parts_of_larger_ones(self, data, corpus):
        (small, test), (large, same) = (self.divide(data, corpus, size) for size in (4, 9))
        assert set(small.doc_names) < set(large.doc_names)
        assert test == same
        others = [set(part.doc_names) & set(corpus.doc_names[20:]) for part in (small, large)]
        assert others[0] == others[1]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 17}, "num_interest=17 is more than the 16 documents of 'AA'"),
            ({"num_others": 21}, "num_others=21 is more than the 20 documents of 'other'"),
            ({"fold": 5}, "fold must be below num_folds=5, got 5"),
        ],
    )
    def test_too_much_is_refused(self, data, corpus, options, message):
        with pytest.raises(ValueError, match=message):
            self.divide(data, corpus, **options)

    def test_the_task_has_to_be_there(self, data, corpus):
        with pytest.raises(ValueError, match=r"interest must be one of .*, got 'VP'"):
            data.of_interest(corpus, "VP", num_interest=1, num_others=1, fold=0)


@pytest.mark.skipif(not Path(DATA, "nips12.npz").exists(), reason="BNP_DATA has no nips12.npz")
def test_sections_of_nips(data):
    corpus = data.nips(DATA)
    assert corpus.group_names == data.SECTIONS
    assert (corpus.num_docs, corpus.num_words) == (1146, 1321)
    assert np.bincount(corpus.group).tolist() == [139, 193, 279, 359, 176]
    assert 900 < corpus.num_tokens / corpus.num_docs < 950
    train, test = data.of_interest(corpus, "AA", num_interest=40, num_others=50, fold=4)
    assert (train.num_docs, test.num_docs) == (240, 71)


@pytest.mark.skipif(
    not Path(DATA, "news20_comp.npz").exists(), reason="BNP_DATA has no news20_comp.npz"
)
def test_newsgroups(data):
    corpus = data.newsgroups(DATA)
    assert (corpus.num_docs, corpus.num_groups) == (4890, 5)
    assert data.INTEREST["newsgroups"] in corpus.group_names
    assert (np.asarray(corpus.doc_length) > 0).all()


class TestMethods:
    def test_the_paper_settings(self, methods):
        for part, beta, epsilon in (("continuum", 5e-5, 0.01), ("nips", 0.5, 1e-4)):
            law = methods.law_of(part)
            assert methods.model_of(SPARSE, law, 32) == bnp.SparseTransferTopicModel(
                alpha=5.0, epsilon=epsilon, strength_shape=5.0, strength_scale=0.1, beta=beta,
                max_topics=32,
            )  # fmt: skip
            several = methods.model_of(MULTI, law, 32)
            one = methods.model_of(ALONE, law, 32)
            assert several.alone() == one
            assert (one.beta, float(several.group_alpha.mean)) == (beta, 50)

    def test_planted_topics_that_are_found(self, methods, load):
        """Two chains of two states: the weak topic is there in the first chain alone."""
        mixtures = load("bnp_models.posterior.mixtures")
        phi = np.eye(3)
        counts = np.array([[8.0, 2.0, 0.0], [0.0, 0.0, 10.0]])
        good, bad = phi, np.stack([phi[0], [0.36, 0.0, 0.64], phi[2]])

        states = [
            mixtures.Mixtures(
                topics.T.astype(np.float32)[None, None],
                DirichletLaw(np.ones((1, 1, 3), np.float32)), np.array([c]), np.array([s]),
            )
            for c, topics in enumerate((good, bad)) for s in range(2)
        ]  # fmt: skip
        chains = xarray.Dataset(coords={"chain": range(2), "draw": range(2)})
        fit = types.SimpleNamespace(posterior=chains, mixtures=states)
        found = methods.recovery_of(fit, phi, counts)
        assert found["share"] == [0.8, 0.2]
        np.testing.assert_allclose(found["likeness"], [1.0, 0.5], atol=1e-3)
        np.testing.assert_allclose(found["draws"], [[1, 1], [0, 0]], atol=1e-3)

    def test_chains_begin_at_the_truth(self, methods, data, load):
        settings = load("transfer.settings")
        problem = data.continuum(1.0, 0, num_tasks=3, length=40, num_test=10)
        fits = settings.Fits(("beta 0.02",), 0, 2, 32, 64, keep_states=2)
        about = {"part": "truth", "interest": "interest", "fits": fits, "seed": 0}
        found = [
            methods.fit_and_score(problem, "beta 0.02", **about, empirical_draws=20, start=start)
            for start in (None, settings.TRUTH)
        ]
        usual, begun = (np.mean(of["recovery"]["likeness"]) for of in found)
        assert begun > 0.9 > usual

    def test_speed_is_measured_with_usual_priors(self, methods):
        timed = methods.timed_model(MULTI, 0.05, 64)
        assert timed == bnp.MultiTaskHDPLDA(beta=0.05, max_topics=64)


SPARSE, TAYLOR = "sparse transfer", "sparse transfer, Taylor"
MULTI, ALONE = "multi-task HDP", "HDP alone"


def fit(part, method, log_prob, split, start=None, **about):
    scores = {name: {"log_prob": log_prob} for name in (EL, COMPLETION)}
    record = {"part": part, "method": method, "split_seed": split, "scores": scores, **about}
    return record | ({"start": start} if start else {})


def run_of(*records):
    settings = {"table_size": 10, "num_tasks": 10, "task_mixings": [0.25, 0.5, 1.0]}
    return {"cells": dict(enumerate(records)), "settings": settings}


def made_up_problems(gains, noise=0.01, problems=10, starts=True):
    """Return fits in which the sparse model is better by `gains`, at each mixing coefficient."""
    rng, records = np.random.default_rng(0), []
    for u, gain in gains.items():
        for n in range(problems):
            level = -3 + rng.normal()
            for method, more in ((SPARSE, gain), (MULTI, 0.0)):
                x = level + more + noise * rng.normal()
                records.append(fit("continuum", method, x, n, mixing=u, tasks=10))
                if starts and u == 0.5 and n < 3:
                    again = x + 0.001 * rng.normal()
                    records.append(
                        fit("continuum", method, again, n, "from 1 topic", mixing=u, tasks=10)
                    )
    return records


MIDDLE = (0.25, 0.375, 0.5, 0.625, 0.75)


class TestClaims:
    def judge(self, claims, run, place=0, score=EL):
        return claims.claims_by(score)[place].ask(run)

    def test_paired_differences_decide(self, claims):
        """Problems differ by 1 nat, the methods on one problem by 0.1 nats."""
        found = self.judge(claims, run_of(*made_up_problems(dict.fromkeys(MIDDLE, 0.1))))
        assert found.verdict == "holds"
        assert float(found.found.split()[0]) == pytest.approx(0.1, abs=0.01)
        assert "in 10 problems (u=0.25: +0." in found.found
        lost = self.judge(claims, run_of(*made_up_problems(dict.fromkeys(MIDDLE, -0.1))))
        assert lost.verdict == "does not hold"

    def test_one_place_that_is_lost_spoils_it(self, claims):
        gains = dict.fromkeys(MIDDLE, 0.1) | {0.625: -0.1}
        found = self.judge(claims, run_of(*made_up_problems(gains)))
        assert found.verdict == "does not hold"
        assert "Worse at u=0.625." in found.why

    def test_a_small_difference_is_open_and_says_what_would_decide(self, claims):
        records = made_up_problems(dict.fromkeys(MIDDLE, 0.004), noise=0.05)
        found = self.judge(claims, run_of(*records))
        assert found.verdict == "not decided"
        assert "problems would decide" in found.why or "too small" in found.why

    def test_the_other_sign_at_the_ends(self, claims):
        gains = {0.0: -0.1, 0.125: -0.1, 0.5: 0.1, 0.875: 0.1, 1.0: 0.1}
        run = run_of(*made_up_problems(gains))
        assert self.judge(claims, run, 1).verdict == "holds"
        assert self.judge(claims, run, 2).verdict == "does not hold"

    def test_chains_of_both_starts_decide(self, claims, load):
        rng, ruled = np.random.default_rng(0), load("study.claims").ruled
        records = made_up_problems(dict.fromkeys(MIDDLE, 0.1))
        assert ruled(self.judge(claims, run_of(*records))).verdict == "not converged"
        for record in records:
            for score in record["scores"].values():
                draws = score["log_prob"] + 0.01 * rng.normal(size=(2, 100))
                score["draws"] = draws.tolist()
        run = run_of(*records)
        assert ruled(self.judge(claims, run)).verdict == "holds"
        once = run_of(*(record for record in records if "start" not in record))
        found = ruled(self.judge(claims, once))
        assert found.verdict == "not converged"
        assert "two chains from each of two starts" in found.why
        for record in records:
            if record.get("start") and record["method"] == SPARSE:
                score = record["scores"][EL]
                score["draws"] = (np.array(score["draws"]) - 0.08).tolist()
        found = ruled(self.judge(claims, run))
        assert found.verdict == "not converged"
        assert "R-hat of what the claim is about is up to" in found.why
        assert ruled(self.judge(claims, run, score=COMPLETION)).verdict == "holds"

    @pytest.mark.parametrize(
        ("apart", "verdict"), [(0.0, "holds"), (-0.05, "not converged"), (None, "not run")]
    )
    def test_chains_from_the_truth(self, claims, load, apart, verdict):
        rng, records = np.random.default_rng(0), []
        starts = [
            ("denser", None),
            ("denser", "from 1 topic"),
            ("truth", "from the planted topics"),
        ]
        for (part, start), n in itertools.product(starts, range(3)):
            if part == "truth" and apart is None:
                continue
            draws = -3.0 + n + 0.01 * rng.normal(size=(2, 200))
            draws += (apart or 0.0) * (part == "truth")
            record = fit(part, "beta 0.02", draws.mean(), n, start, mixing=0.5, tasks=10)
            record["scores"][EL]["draws"] = draws.tolist()
            records.append(record)
        (claim,) = (c for c in claims.claims_by(EL) if "from the planted topics" in c.claim)
        found = load("study.claims").ruled(claim.ask(run_of(*records)))
        assert found.verdict == verdict
        assert ("in 3 problems (u=0.5: " in found.found) == (apart is not None)

    def test_few_effective_draws_are_said(self, claims):
        records = made_up_problems(dict.fromkeys(MIDDLE, 0.1))
        assert "effective" not in self.judge(claims, run_of(*records)).why
        for record in records:
            record["scores"][EL]["effective_draws"] = 3.0
        assert "median 3.0" in self.judge(claims, run_of(*records)).why
        assert "effective" not in self.judge(claims, run_of(*records), score=COMPLETION).why

    def test_nothing_measured(self, claims):
        for claim in (*claims.claims_by(EL), *claims.other_claims()):
            assert claim.ask(run_of()).verdict == "not run"
        only = fit("continuum", SPARSE, -3.0, 0, mixing=0.5, tasks=10)
        del only["scores"][EL]
        assert self.judge(claims, run_of(only)).verdict == "not run"

    def tasks(self, gains):
        rng, records = np.random.default_rng(1), made_up_problems({0.5: gains.get(10, 0.0)})
        for number, gain in gains.items():
            for n in range(10) if number != 10 else ():
                for method, more in ((SPARSE, gain), (MULTI, 0.0)):
                    x = -3 + 0.01 * number + more + 0.005 * rng.normal()
                    for u in (0.25, 0.5):
                        records.append(fit("tasks", method, x, n, mixing=u, tasks=number))
        return run_of(*records)

    def test_numbers_of_tasks(self, claims):
        run = self.tasks({2: 0.1, 5: 0.05, 10: 0.02, 30: -0.1})
        found = {claim.where: [] for claim in claims.claims_by(EL)}
        for claim in claims.claims_by(EL):
            found[claim.where].append(claim.ask(run))
        assert [x.verdict for x in found["figure 7"]] == ["holds", "holds"]
        assert "(2 tasks: +0.099 ± 0.001, 5 tasks: +0.051 ± 0.002)" in found["figure 7"][0].found
        few, equal, grows = found["figure 6"]
        assert (few.verdict, grows.verdict) == ("holds", "holds")
        assert equal.verdict == "does not hold"
        same = self.tasks({2: 0.1, 30: 0.001})
        assert self.judge(claims, same, 4).verdict == "holds"
        scores = claims.scores_of(run, EL, "tasks", SPARSE)
        assert 10 in set(scores["number"])  # from the part "continuum"

    def texts(self, part, sparse, multi, alone):
        rng, records = np.random.default_rng(2), []
        for size in (5, 10, 40):
            for fold in range(5):
                for method, gain in ((SPARSE, sparse), (MULTI, multi), (ALONE, alone)):
                    x = -7 + gain + 0.005 * rng.normal()
                    for start in (None, "from 1 topic") if size == 10 else (None,):
                        about = {"documents_of_interest": size}
                        records.append(fit(part, method, x, fold, start, **about))
        return run_of(*records)

    def test_text(self, claims):
        def verdicts(run, where):
            every = claims.claims_by(EL)
            return [claim.ask(run).verdict for claim in every if claim.where == where]

        run = self.texts("newsgroups", 0.1, 0.0, -0.5)
        assert verdicts(run, "figure 9") == ["holds"] * 3
        near = self.texts("newsgroups", 0.0, 0.1, -0.05)
        assert verdicts(near, "figure 9") == ["does not hold", "holds", "does not hold"]
        run = self.texts("nips", 0.03, 0.0, -0.5)
        assert verdicts(run, "figure 10") == ["holds"] * 4
        assert "5 documents: +0.0" in claims.claims_by(EL)[15].ask(run).found

    def test_strongest_topics(self, claims):
        def record(fold, topics, words):
            strongest = {name: {"topic": t} for name, t in zip("ab", topics, strict=True)}
            sharing = {"strongest": strongest, "strongest_common": {"words": words}}
            return fit("nips", SPARSE, -7, fold, documents_of_interest=10, sharing=sharing)

        same, words = (claim.ask for claim in claims.other_claims()[:2])
        good = "learning, network, model, time, input, a, b, c, d, e"
        run = run_of(*(record(n, (3, 3), good) for n in range(3)))
        assert same(run).verdict == words(run).verdict == "holds"
        run = run_of(record(0, (3, 3), good), record(1, (1, 2), "a, b"), record(2, (1, 2), "a, b"))
        assert same(run).verdict == words(run).verdict == "does not hold"
        run = run_of(record(0, (3, 3), good), record(1, (1, 2), "a, b"))
        assert same(run).verdict == "not decided"

    @pytest.mark.parametrize(("gain", "verdict"), [(0.1, "holds"), (-0.1, "does not hold")])
    def test_weak_topics(self, claims, load, gain, verdict):
        rng, records = np.random.default_rng(0), []
        for n in range(5):
            for method, more in ((SPARSE, gain), (MULTI, 0.0)):
                for start in (None, "from 1 topic"):
                    weak = 0.5 + more + 0.002 * rng.normal(size=(2, 100))
                    found = {"share": [0.5, 0.17], "likeness": [0.9, weak.mean()], "draws": weak}
                    about = {"mixing": 0.5, "tasks": 10, "recovery": found}
                    records.append(fit("causes", method, -3.0, n, start, **about))
        asked = [c.ask(run_of(*records)) for c in claims.other_claims() if "Weak" in c.claim]
        assert [load("study.claims").ruled(of).verdict for of in asked] == [verdict, "not run"]

    def test_ratios_of_speed(self, claims):
        def systems(**rates):
            rng = np.random.default_rng(0)
            of = {
                f"{name}, {schedule}, 4 chains": {
                    "tokens_per_second": list(1e6 * rate * np.exp(0.01 * rng.normal(size=7)))
                }
                for name, rate in rates.items() for schedule in ("parallel", "sequential")
            }  # fmt: skip
            return run_of({"part": "speed", "method": "rates", "systems": of})

        speed = [c.ask for c in claims.other_claims() if "tokens per second" in c.claim]
        rates = {"HDPLDA": 1.0, "MultiTaskHDPLDA": 0.9, "SparseTransferTopicModel": 0.4}
        found = [ask(systems(**rates)) for ask in speed]
        assert [x.verdict for x in found] == ["holds", "does not hold", "does not hold"]
        assert found[0].found.startswith("4 chains: 0.89 (")
        assert [ask(systems(HDPLDA=1.0)).verdict for ask in speed] == ["not run"] * 3
        near = systems(HDPLDA=1.0, MultiTaskHDPLDA=0.8)
        assert speed[0](near).verdict == "not decided"
