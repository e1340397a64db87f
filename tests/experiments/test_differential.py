"""The study of differential topic models: data, contestants, claims, and its small size."""

import json
import os

import numpy as np
import pytest

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw

DATA = os.environ.get("BNP_DATA", "")
TOKENS = "tokens"
TI, TII, CCLDA, PYP, LDA = (
    "TI", "TII", "ccLDA", "PYP, each group alone", "LDA, each group alone",
)  # fmt: skip


@pytest.fixture
def data(load):
    """The module of the data."""
    return load("differential.data")


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("differential.claims")


@pytest.fixture
def ruled(load):
    """The rule that every finding is asked."""
    return load("study.claims").ruled


@pytest.mark.slow
@pytest.mark.usefixtures("in_no_time")
def test_quick_study_resumes(load, read_csv, capsys, tmp_path):
    study, output = load("differential.__main__"), tmp_path / "differential.json"
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert "FAILED" not in capsys.readouterr().err
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == {
        "perplexity-abstracts", "samplers", "discount", "hybrids", "classification", "sweeps",
        "planted", "digits", "speed",
    }  # fmt: skip
    scored = [cell for cell in cells if cell["part"] == "perplexity-abstracts"]
    assert {cell["method"] for cell in scored} == {
        *study.STUDY.settings["quick"].methods,
        "unigram",
    }
    for cell in scored:
        for how, score in cell["scores"].items():
            # 24 words; and a mean of probabilities is no less than that of their logarithms
            assert 2 < score["perplexity"] < 100
            assert score.get("single_state_perplexity", np.inf) > score["perplexity"] - 1e-6
            assert ("doc_log_prob" in score) == (how == TOKENS)
            if cell["method"] != "unigram":
                assert np.shape(score["draws"]) == (1, 2)
                assert np.mean(score["draws"]) < score["log_prob"] + 1e-4
    rows = read_csv(tmp_path / "differential_claims.csv")
    module = load("differential.claims")
    wanted = [c.claim for c in (*module.claims_by(TOKENS), *module.other_claims())]
    assert [row["claim"] for row in rows] == wanted
    for picture in ("digits", "arcs", "sweeps"):
        assert (tmp_path / f"differential_{picture}.png").stat().st_size > 1000
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Perplexity", "Accuracy", "Samplers", "Fits", "Tokens per second"):
        assert f"## {head}" in text
    assert study.main(["--report", "--quick", "--output", str(output)]) == 0
    assert output.with_suffix(".md").read_text() == text
    capsys.readouterr()
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert f"0 of {len(cells)} measurements" in capsys.readouterr().out
    assert json.loads(output.read_text()) == results


def test_data_are_needed(load, monkeypatch, capsys, in_this_process):
    monkeypatch.delenv("BNP_DATA", raising=False)
    study = load("differential.__main__")
    assert study.main(["--parts", "digits", "--plan"]) == 1
    assert "the folder with alphadigs.npz" in capsys.readouterr().err


@pytest.mark.usefixtures("in_this_process")
def test_plan(load, monkeypatch, capsys, tmp_path):
    study = load("differential.__main__")
    settings = study.STUDY.settings["standard"]
    monkeypatch.setattr(load("study.command"), "_data", lambda *given: None)
    options = ["--parts", "perplexity-abstracts", "--plan", "--output", str(tmp_path / "a.json")]
    assert study.main(options) == 0
    out = capsys.readouterr().out
    # a unigram; all methods and WordNet, with every K, from two starts
    per_seed = 1 + 2 * (len(settings.methods) + 2) * len(settings.topics)
    assert out.startswith(f"{settings.seeds * per_seed} of ")
    assert "method=PYP, each group alone/topics=10" in out
    full = study.STUDY.settings["full"].perplexity
    assert (full.num_warmup, full.num_samples) == (2000, 100)
    assert study.STUDY.settings["full"].seeds == 6


class TestData:
    def test_halves_by_word_types(self, data):
        corpus = data.made_up(0)
        observed, heldout = data.halves_of(corpus, "dictionary", 0)
        assert (np.asarray(observed.word) % 2 == 1).all()
        assert (np.asarray(heldout.word) % 2 == 0).all()
        for d in range(corpus.num_docs):
            both = np.concatenate([observed.document(d), heldout.document(d)])
            np.testing.assert_array_equal(np.sort(both), np.sort(corpus.document(d)))
        for half in (observed, heldout):
            np.testing.assert_array_equal(half.group, corpus.group)
            assert (half.num_docs, half.group_names) == (corpus.num_docs, corpus.group_names)

    def test_documents_without_a_word_of_one_half(self, data):
        corpus = bnp.Corpus.from_ids([[0, 2], [1], [3, 4], [2]], 5, groups=["a", "a", "b", "b"])
        observed, heldout = data.dictionary_halves(corpus)
        assert [observed.document(d).tolist() for d in range(4)] == [[], [1], [3], []]
        assert [heldout.document(d).tolist() for d in range(4)] == [[0, 2], [], [4], [2]]

    def test_splits_keep_the_shares_of_groups(self, data):
        split = data.split_of(data.made_up(0, per_group=20), 3, ordered=True, num_train=16)
        assert np.bincount(split.train.group).tolist() == [8, 8]
        assert np.bincount(split.test.group).tolist() == [4, 4]

    def test_transform_without_order_takes_documents_for_windows(self, data):
        docs = [[0, *[2] * 30, 1], [3, 3, 3, 3]]
        corpus = bnp.Corpus.from_ids(docs, 4, groups=["a", "b"])
        few = corpus.select([1])
        near, whole, half = (
            data.transform_of(
                data.Split(few, corpus, corpus, ordered),
                kind,
                window=20,
                top=4,
                association="log-likelihood",
            ).to_sparse()
            for ordered, kind in ((True, "co"), (False, "co"), (False, "half"))
        )
        assert near[0, 1] == 0
        assert whole[0, 1] > 0
        np.testing.assert_allclose(near.sum(axis=0), 1, rtol=1e-6)
        np.testing.assert_allclose(half.toarray(), (whole.toarray() + np.eye(4)) / 2, rtol=1e-6)

    @pytest.mark.slow
    def test_planted_versions_are_alike_where_the_concentration_is_large(self, data):
        made = data.planted(0, (2.0, 3000.0), discount=0.3, num_words=40, docs_per_group=80)
        group = np.asarray(made.corpus.group)[np.asarray(made.corpus.doc)]
        apart = []
        for k in range(2):
            share = np.zeros((4, 40))
            mine = made.topic == k
            np.add.at(share, (group[mine], np.asarray(made.corpus.word)[mine]), 1)
            share /= share.sum(axis=1, keepdims=True)
            apart.append(np.abs(share[:, None] - share[None]).sum(axis=2).mean())
        # thousands of tokens in each topic and group: counting noise is some hundredths
        assert apart[0] > 3 * apart[1]


@pytest.mark.skipif(
    not os.path.exists(os.path.join(DATA, "mlabs.jsonl.gz")), reason="BNP_DATA has no abstracts"
)
def test_real_data(data):
    texts = data.abstracts(DATA)
    assert (texts.num_docs, texts.num_words, texts.num_tokens) == (1920, 3366, 140264)
    assert texts.group_names == ("AISTATS", "ICML", "COLT")
    first = np.asarray(texts.document(0), int).tolist()
    assert first != sorted(first)  # the order of the text
    blogs = data.blogs(DATA, 1000, seed=0)
    assert (blogs.num_docs, blogs.num_groups) == (1000, 6)
    digits, shape = data.digits(DATA)
    assert (digits.num_docs, digits.num_words, digits.num_groups) == (1404, 320, 36)
    assert shape == (20, 16)


class TestMethods:
    def test_fits_of_single_groups_are_scored_as_one(self, load):
        """Documents of a group read the row of its own fit."""
        methods = load("differential.measures")
        mixtures = load("bnp_models.posterior.mixtures")
        rng = np.random.default_rng(0)
        one = np.zeros(1, int)

        class Found:
            def __init__(self):
                phi = rng.dirichlet(np.ones(6), size=2).T.astype(np.float32)[None, None]
                weights = np.full((1, 1, 2), 0.5, np.float32)
                self.mixtures = [mixtures.Mixtures(phi, DirichletLaw(weights), one, one)]

        fits = [Found(), Found()]
        (both,) = methods.mixtures_of(fits, ("a", "b"))
        assert both.row_names == ("a", "b")
        held = load("bnp_models.scores.held_out")
        docs = [rng.integers(6, size=8) for _ in range(6)]
        corpus = bnp.Corpus.from_ids(docs, 6, groups=["a", "b"] * 3)
        observed, heldout = corpus.halves(0)
        together = held.document_completion([both], observed, heldout)
        mine = np.asarray(corpus.group) == 1
        alone = held.document_completion(
            fits[1].mixtures, observed.select(mine), heldout.select(mine), num_sweeps=600,
            num_kept=550,
        )  # fmt: skip
        long = held.document_completion([both], observed, heldout, num_sweeps=600, num_kept=550)
        # shares are means of 550 sweeps: their errors are some hundredths
        np.testing.assert_allclose(long.doc_log_prob[mine], alone.doc_log_prob, atol=0.2)
        assert together.num_tokens == long.num_tokens


class TestDigits:
    def test_versions_that_name_the_class(self, load):
        digits = load("differential.digits")
        rng = np.random.default_rng(0)
        pictures = rng.dirichlet(np.full(30, 0.2), size=5)
        shared = rng.dirichlet(np.full(30, 0.2), size=2)
        phi = np.stack([pictures, *(np.tile(row, (5, 1)) for row in shared)], axis=2)
        names = digits.names_class(phi, pictures)
        assert names[0] == 1
        assert (names[1:] <= 1 / 5).all()
        distance = digits.version_distance(phi)
        assert distance[0] > 0.5
        np.testing.assert_allclose(distance[1:], 0, atol=1e-6)

    def test_pictures_of_classes(self, load):
        corpus = bnp.Corpus.from_ids([[0, 1], [1], [2]], 3, groups=["A", "A", "B"])
        found = load("differential.digits").class_pictures(corpus)
        np.testing.assert_allclose(found, [[1 / 3, 2 / 3, 0], [0, 0, 1]])


class TestAlignment:
    def test_versions_that_find_one_another(self, load):
        matched = load("differential.measures").matched
        rng = np.random.default_rng(0)
        phi = rng.dirichlet(np.full(40, 0.1), size=4).T
        assert matched([np.stack([phi, phi, phi])]) == 1
        assert matched([np.stack([phi, phi[:, [1, 0, 2, 3]]])]) == 0.5


def scored(method, seed, log_prob, topics=10, start=None, part="perplexity-blogs", docs=None,
           draws=None, **about):  # fmt: skip
    """Return a record of a fit with given scores; `draws` are added to the score."""
    scores = {how: {"log_prob": log_prob} for how in (TOKENS, "dictionary")}
    for score in scores.values() if draws is not None else ():
        score["draws"] = (log_prob + draws).tolist()
    if docs is not None:
        scores[TOKENS]["doc_log_prob"] = list(docs)
    record = {"part": part, "data": "blogs", "method": method, "split_seed": seed}
    record |= {"topics": topics, "scores": scores, **about}
    return record | ({"start": start} if start else {})


def run_of(*records):
    return {"cells": dict(enumerate(records))}


METHODS = (TI, TII, CCLDA, PYP, LDA)


def states(rng):
    """Return how states of two chains differ from their mean score."""
    return 0.01 * rng.normal(size=(2, 200))


def blogs(levels, noise=0.002, seeds=3, moved=(), starts=True, kept=True):
    """Return fits of methods whose scores differ by given amounts, on splits that differ more.

    `moved` says by how much methods are worse from another start.
    """
    rng, records = np.random.default_rng(0), []
    for seed in range(seeds):
        split = -6 + 0.1 * rng.normal()
        for method, level in levels.items():
            for topics in (10, 50):
                x = split + level + noise * rng.normal()
                for start in (None, "from 1 topic") if starts else (None,):
                    worse = dict(moved).get(method, 0.0) if start else 0.0
                    draws = states(rng) if kept else None
                    records.append(scored(method, seed, x - worse, topics, start, draws=draws))
    return run_of(*records)


class TestClaims:
    def first(self, claims, run, how=TOKENS):
        return claims.claims_by(how)[0].ask(run)

    def levels(self, **changed):
        return dict.fromkeys(METHODS, 0.0) | {TI: 0.1} | changed

    def test_the_best_of_all(self, claims, ruled):
        found = self.first(claims, blogs(self.levels()))
        assert found.verdict == "holds"
        assert ruled(found).verdict == "holds"
        assert found.found.startswith("TII: +0.1")
        assert self.first(claims, blogs(self.levels()), "dictionary").verdict == "holds"

    def test_one_that_is_better_spoils_it(self, claims):
        found = self.first(claims, blogs(self.levels(TII=0.2)))
        assert found.verdict == "does not hold"

    def test_small_differences_are_open(self, claims):
        run = blogs(self.levels() | {TI: 0.001}, noise=0.01)
        found = self.first(claims, run)
        assert found.verdict == "not decided"
        assert "splits" in found.why

    def test_one_split_decides_nothing(self, claims):
        assert self.first(claims, blogs(self.levels(), seeds=1)).verdict == "not decided"

    @pytest.mark.parametrize("gain", [0.1, -0.1])
    def test_chains_have_to_agree(self, claims, ruled, gain):
        def found(**about):
            run = blogs(self.levels(ccLDA=-gain), **about)
            return ruled(claims.pair(run, "blogs", TII, CCLDA, TOKENS))

        assert found().verdict == ("holds" if gain > 0 else "does not hold")
        assert found(moved={CCLDA: 0.08}).verdict == "not converged"
        assert "not two chains from each of two starts" in found(starts=False).why
        assert "was not kept" in found(kept=False).why
        assert found(kept=False).verdict == "not converged"

    def test_only_what_decides_has_to_agree(self, claims):
        """One method that is better spoils a claim, whatever the chains of others do."""
        run = blogs(self.levels(TII=0.2))
        alone = claims.pair(run, "blogs", TI, TII, TOKENS)
        found = self.first(claims, run)
        assert found.margin == pytest.approx(abs(alone.margin))
        assert len(found.chains) == 1
        for start, quantity in alone.chains[0].items():
            np.testing.assert_array_equal(found.chains[0][start], quantity)

    def test_a_method_that_was_not_measured(self, claims):
        levels = self.levels()
        del levels[CCLDA]
        found = self.first(claims, blogs(levels))
        assert found.verdict == "not decided"
        assert "Not measured: ccLDA" in found.why

    def test_nothing_measured(self, claims):
        for claim in (*claims.claims_by(TOKENS), *claims.other_claims()):
            assert claim.ask(run_of()).verdict == "not run"

    def test_errors_over_documents(self, load):
        claims, gaps = load("differential.claims"), load("study.gaps")
        rng = np.random.default_rng(1)
        tokens = np.full(400, 50)
        errors = []
        for _ in range(2):
            records = []
            for seed in range(3):
                base = -300 + 20 * rng.normal(size=400)
                gain = 5 + 10 * rng.normal(size=400)
                for method, docs in ((TI, base + gain), (TII, base)):
                    log_prob = docs.sum() / tokens.sum()
                    records.append(scored(method, seed, log_prob, docs=docs))
                scores = {TOKENS: {"doc_tokens": tokens.tolist()}}
                records.append({"part": "perplexity-blogs", "data": "blogs", "method": "unigram",
                                "split_seed": seed, "scores": scores})  # fmt: skip
            which = [claims.Which("perplexity-blogs", "blogs", m) for m in (TI, TII)]
            run = run_of(*records)
            gap = gaps.gap_between(*(w.scores(run, TOKENS) for w in which), ["topics"])
            assert gap.value == pytest.approx(0.1, abs=0.03)
            errors.append(gap.error)
        # documents alone: 10 nats of 50 tokens in 1,200 documents, 0.0058; splits as much again
        assert 0.0058 <= min(errors)
        assert max(errors) < 0.025

    def discounts(self, level, moved=0.0):
        """Return fits with two discounts; from another start the one of 0.7 is worse."""
        rng, records = np.random.default_rng(0), []
        for seed in range(3):
            for a, gain in ((0.0, 0.0), (0.7, level)):
                x = -6 + gain + 0.002 * rng.normal()
                for start in (None, "from 1 topic"):
                    worse = moved if start and a else 0.0
                    records.append(scored(TII, seed, x - worse, start=start, part="discount",
                                          discount=a, draws=states(rng)))  # fmt: skip
        return run_of(*records)

    def test_pitman_yor_against_dirichlet(self, claims, ruled):
        (ask,) = [c.ask for c in claims.claims_by(TOKENS)
                  if c.where == "figure 7a" and c.claim.startswith("Blogs")]  # fmt: skip
        assert ruled(ask(self.discounts(0.1))).verdict == "holds"
        assert ruled(ask(self.discounts(-0.1))).verdict == "does not hold"
        assert ruled(ask(self.discounts(0.1, moved=0.09))).verdict == "not converged"

    def samplers(self, gain):
        rng, records = np.random.default_rng(0), []
        for name, more in (("table indicators", gain), ("seats (SS)", 0.0)):
            for seed in range(3):
                late = -6 + more + 0.0005 * rng.normal(size=(2, 30, 2))
                for start, end in zip((None, "from 1 topic"), late, strict=True):
                    records.append({
                        "part": "samplers", "data": "abstracts", "method": name, "discount": 0.7,
                        "split_seed": seed, "sweeps": [*range(1, 30), *range(30, 90, 2)],
                        "chain_log_prob": [*[[-7.0, -7.0]] * 29, *end.tolist()],
                        **({"start": start} if start else {}),
                    })  # fmt: skip
        return run_of(*records)

    def test_samplers(self, claims, ruled):
        ask = {c.claim: c.ask for c in claims.other_claims() if "seats" in c.claim}
        better, same = ask.values()
        # how fast chains mix is about sweeps; only one posterior is about draws
        assert ruled(better(self.samplers(0.05))).verdict == "holds"
        assert same(self.samplers(0.05)).verdict == "does not hold"
        assert ruled(better(self.samplers(-0.05))).verdict == "does not hold"
        assert ruled(same(self.samplers(0.0))).verdict == "holds"
        one_start = {k: r for k, r in self.samplers(0.0)["cells"].items() if "start" not in r}
        assert ruled(same({"cells": one_start})).verdict == "not converged"

    def accuracy(self, load, shares):
        pack = load("study.scores").pack
        rng, records = np.random.default_rng(0), []
        for seed in range(3):
            for method, by_score in shares.items():
                right = {score: rng.random(300) < share for score, share in by_score.items()}
                records.append({
                    "part": "classification", "data": "blogs", "method": method,
                    "split_seed": seed, "test_documents": 300,
                    "accuracy": {name: float(x.mean()) for name, x in right.items()},
                    "correct": {name: pack(x) for name, x in right.items()},
                })  # fmt: skip
        return run_of(*records)

    def test_accuracies(self, claims, load, ruled):
        run = self.accuracy(load, {
            TI: {"printed": 0.5, "corrected": 0.8}, TII: {"printed": 0.7, "corrected": 0.7},
            "linear SVM": {"corrected": 0.7},
        })  # fmt: skip
        found = {c.claim: c.ask(run) for c in claims.other_claims() if c.claim.startswith("Blogs")}
        asked = {claim: of.verdict for claim, of in found.items()}
        assert asked["Blogs: TI is more accurate than linear SVM, printed score"] == "does not hold"
        assert asked["Blogs: TI is more accurate than linear SVM, corrected score"] == "holds"
        assert asked["Blogs: TI: the corrected score is more accurate than the printed one"] == (
            "holds"
        )
        assert asked["Blogs: TI is more accurate than RBF SVM, printed score"] == "not run"
        claim = "Blogs: TII is more accurate than linear SVM, printed score"
        assert found[claim].baseline == ""
        # the accuracies of single states are not there
        assert {ruled(of).verdict for of in found.values()} <= {
            "not decided", "not converged", "not run",
        }  # fmt: skip

    def test_accuracies_by_chains(self, claims, load, ruled):
        """The corrected score is kept state by state; an SVM has one accuracy."""
        run, rng = run_of(), np.random.default_rng(0)
        for start in (None, "from 1 topic"):
            levels = {TI: {"corrected": 0.8}, "linear SVM": {"corrected": 0.5}}
            for key, r in self.accuracy(load, levels)["cells"].items():
                if r["method"] == TI:
                    r |= {"worst_rhat": 1.0, "draws": 0.8 + 0.01 * rng.normal(size=(2, 50))}
                    r |= {"start": start} if start else {}
                elif start:
                    continue
                run["cells"][key, start] = r

        def verdict():
            both = (TI, "corrected"), ("linear SVM", "corrected")
            return ruled(claims.accuracy(run, "blogs", *both)).verdict

        assert verdict() == "holds"
        for r in run["cells"].values():
            if "start" in r:
                r["draws"] = r["draws"] - 0.1
        assert verdict() == "not converged"

    def test_accuracies_by_sweeps(self, claims, ruled):
        rng, sweeps = np.random.default_rng(0), np.arange(5, 201, 5)

        def asked(change):
            level = np.where(sweeps > 100, 0.7 + change, 0.7)
            return ruled(claims.steady(run_of(*(
                {"part": "sweeps", "data": "blogs", "method": TI, "sweeps": sweeps.tolist(),
                 "draws": level + 0.005 * rng.normal(size=(2, len(sweeps))),
                 **({"start": start} if start else {})}
                for start in ("", "from 1 topic")
            )), "blogs", TI)).verdict  # fmt: skip

        assert asked(0.0) == "holds"
        assert asked(0.1) == "does not hold"

    def digits(self, shares):
        return run_of(*(
            {"part": "digits", "data": "digits", "method": TII, "split_seed": 0,
             "chains": [{"names_class": share, "distance": [0.6, 0.1, 0.1]} for share in shares],
             **({"start": start} if start else {})}
            for start in ("", "from 1 topic")
        ))  # fmt: skip

    def test_digits(self, claims, ruled):
        one, far = [c.ask for c in claims.other_claims() if c.claim.startswith("Digits")]
        good, bad = [0.9, 0.1, 0.0], [0.9, 0.9, 0.0]
        assert one(self.digits([good, good])).verdict == "holds"
        assert far(self.digits([good, good])).verdict == "holds"
        assert one(self.digits([bad, bad])).verdict == "does not hold"
        assert one(self.digits([good, bad])).verdict == "not decided"
        # the topics of the last state of each chain are kept, and not those of others
        assert ruled(one(self.digits([good, good]))).verdict == "not converged"

    def test_speed_and_tables(self, claims, ruled):
        def systems(rate):
            rng = np.random.default_rng(0)
            made = {
                f"{name}, parallel, {chains}": {
                    "tokens_per_second": list(1e6 * r * np.exp(0.01 * rng.normal(size=7)))
                }
                for name, r in ((TI, rate), ("LDA, groups pooled", 1.0))
                for chains in ("1 chain", "4 chains")
            }  # fmt: skip
            return run_of({"part": "speed", "method": "rates", "systems": made})

        ti, tii = [c.ask for c in claims.other_claims() if "tokens per second" in c.claim]
        assert ruled(ti(systems(0.4))).verdict == "holds"
        assert ruled(ti(systems(0.2))).verdict == "does not hold"
        assert tii(systems(0.4)).verdict == "not run"
        (size,) = [c.ask for c in claims.other_claims() if "Stirling" in c.claim]
        table = {"part": "speed", "method": "table, TI", "rows": 1000, "columns": 100}
        assert size(run_of({**table, "megabytes": 0.4, "tokens": 10})).verdict == "not decided"
        for megabytes, verdict in ((190.0, "holds"), (210.0, "does not hold")):
            found = size(run_of({**table, "megabytes": megabytes, "tokens": 3e6}))
            assert ruled(found).verdict == verdict
