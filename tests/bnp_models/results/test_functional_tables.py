"""Functionals of topic and factor fits, against counts by hand; draws are made up."""

import itertools
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.functionals import shared_topics
from bnp_models.results import functional_tables

CHAINS, DRAWS, WORDS = 3, 12, 6


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    docs = [(2 * (d % 3) + rng.integers(0, 2, 8)).tolist() if d != 4 else [] for d in range(9)]
    return bnp.Corpus.from_ids(
        docs, vocabulary=list("abcdef"), groups=["new" if d < 4 else "old" for d in range(9)]
    )


def fit_of(corpus, *, same=False, lp_differs=None, noise=0.1):
    """Chain 0 has a topic for each pair of words, other chains one topic for two of them."""
    lp_differs = not same if lp_differs is None else lp_differs
    rng = np.random.default_rng(1)
    kind = np.asarray(corpus.word) // 2
    homes = [[0, 1, 2], [2, 1, 0], [1, 2, 0]] if same else [[0, 1, 2], [3, 1, 1], [0, 0, 2]]
    z = np.repeat(np.array(homes)[:, kind][:, None], DRAWS, axis=1)
    z = np.where(rng.random(z.shape) < noise, rng.integers(0, 4, z.shape), z).astype(np.uint8)
    lp = rng.normal(size=(CHAINS, DRAWS)) + (20 if lp_differs else 0) * np.arange(CHAINS)[:, None]
    each = np.ones((CHAINS, DRAWS))
    groups = {
        "posterior": {"num_topics_used": np.full((CHAINS, DRAWS), 3)},
        "sample_stats": {"lp": lp},
        "states": {"z": z, "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.LDA(4, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture(scope="module")
def apart(corpus):
    return fit_of(corpus)


def test_kinds_and_names(apart, corpus):
    found = apart.functionals(num_pairs=30)
    assert list(found.summary.index) == [
        "scalars", "document pairs", "word pairs", "group pairs", "topics", "topics by group",
    ]  # fmt: skip
    assert list(found.table.loc["scalars"].index) == ["lp", "num_topics_used"]
    groups = ["new / new", "new / old", "old / old"]
    assert list(found.table.loc["group pairs"].index) == groups
    assert not any("4" in name.split(" / ") for name in found.table.loc["document pairs"].index)
    assert found.num_states == DRAWS
    assert apart.functionals(num_pairs=2).summary.loc["group pairs", "number"] == 2


def test_word_and_group_pairs_by_hand(apart, corpus):
    table = apart.functionals(num_pairs=40).table
    z = apart.states["z"].to_numpy()
    word, doc = np.asarray(corpus.word), np.asarray(corpus.doc)
    group = np.asarray(corpus.group)[doc]
    for kind, item, names in (
        ("word pairs", word, corpus.vocabulary), ("group pairs", group, corpus.group_names),
    ):  # fmt: skip
        for name, row in table.loc[kind].iterrows():
            i, j = (list(names).index(part) for part in name.split(" / "))
            same = z[..., item == i][..., :, None] == z[..., item == j][..., None, :]
            by_chain = same.mean(axis=(1, 2, 3))
            assert row["mean"] == pytest.approx(by_chain.mean())
            assert row["highest"] == pytest.approx(by_chain.max())


def test_prevalence_by_hand(apart, corpus):
    table = apart.functionals().table
    expected = apart.pooled().topic_prevalence_by_group()
    for _, row in expected.iterrows():
        name = f"pooled topic {row['topic']} in {row['group']}"
        assert table.loc[("topics by group", name), "mean"] == pytest.approx(row["prevalence"])
    shares = table.loc["topics", "mean"].to_numpy()
    np.testing.assert_allclose(shares, apart.pooled().topics()["prevalence"])


def test_chains_in_modes_differ_where_they_differ(apart, corpus):
    table = apart.functionals(num_pairs=60).table
    words = table.loc["word pairs", "verdict"]
    for i, j in itertools.combinations(range(WORDS), 2):
        name = f"{corpus.vocabulary[i]} / {corpus.vocabulary[j]}"
        if name in words.index and i // 2 != j // 2 and (i // 2, j // 2) != (0, 2):
            assert words[name] == "differ"  # together in one chain, in two topics in another
        elif name in words.index and i // 2 == j // 2:
            assert words[name] != "differ"
    assert table.loc[("scalars", "lp"), "verdict"] == "differ"


def test_labels_do_not_matter(corpus):
    found = fit_of(corpus, same=True).functionals(num_pairs=60)
    assert found.summary.loc[["document pairs", "word pairs", "group pairs"], "differ"].sum() <= 3
    assert found.summary.loc["topics", "differ"] == 0


def test_scores_of_new_documents(apart):
    test = bnp.Corpus.from_ids([[0, 1, 0, 1], [4, 5, 4], []], vocabulary=list("abcdef"),
                               groups=["new"] * 3)  # fmt: skip
    found = apart.functionals(test, num_pairs=3, split_seed=2, seed=1)
    score = apart.document_completion(test, split_seed=2, seed=1)
    total = found.table.loc[("held-out total", "all documents")]
    assert total["mean"] == pytest.approx(score.state_log_prob.sum(1).mean() / score.num_tokens)
    each = found.table.loc["held-out documents"]
    assert list(each.index) == list(test.doc_names[:2])
    expected = (score.state_log_prob / np.maximum(score.doc_tokens, 1)).mean(0)[:2]
    np.testing.assert_allclose(each["mean"], expected)


def test_words_of_pairs_are_drawn_by_their_tokens():
    rng = np.random.default_rng(0)
    word = rng.permutation(np.repeat([0, 2, 3], [1, 3, 4]))
    pairs = functional_tables._word_pairs(rng, word, 40_000)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    seen = {pair: np.mean((pairs == pair).all(axis=1)) for pair in [(0, 2), (0, 3), (2, 3)]}
    count = {0: 1, 2: 3, 3: 4}
    for (i, j), share in seen.items():
        a, b = count[i], count[j]
        expected = a * b / 8 * (1 / (8 - a) + 1 / (8 - b))
        assert share == pytest.approx(expected, abs=5 * np.sqrt(expected / 40_000))


def test_an_item_and_itself_are_drawn_with_replacement():
    z = np.array([[[0, 0, 1, 1, 1]]])
    found = shared_topics(z, np.array([0, 0, 0, 1, 1]), np.array([[0, 0], [0, 1], [1, 1]]))
    np.testing.assert_allclose(found[0, 0], [5 / 9, 1 / 3, 1])


def test_the_report_says_what_agrees_if_chains_are_in_modes(apart, corpus):
    assert apart.convergence().verdict == "different modes"
    report = apart.summaries()
    for text in (report.text(None), apart.text()):
        head = text.split("\n\n")[0]
        said = " ".join(head.split())
        assert "different modes and differ in topics: an average of all chains describes" in said
        assert "what other chains hold. Functionals that agree over " in said
        assert "The chains differ in: lp" in said
        assert max(map(len, head.splitlines())) <= 100
    assert "different modes" in apart.of_chain(0).text()  # its topics are compared with theirs
    assert {"functionals"} <= set(report.tables) & set(report.drawn)
    like = fit_of(corpus, same=True)
    assert "different modes" not in like.text()
    assert "functionals" not in like.of_chain(0).summaries().tables
    plt.close("all")


def test_chains_that_differ_but_for_their_topics_are_averaged(corpus, tmp_path):
    """The text, the verdict and the report tell one story."""
    fit = fit_of(corpus, same=True, lp_differs=True, noise=0)
    assert fit.convergence().verdict == "different modes"
    same = "they differ in lp. All of them have the same large topics, at least roughly"
    page = " ".join(fit.report(tmp_path / "page.html").read_text("utf-8").split())
    text = " ".join(fit.text().split())
    for said in (text, page):
        assert "Average over 3 chains. 100.0% of the tokens" in said
        assert f"{same}, so the tables average over the chains." in said
        assert "most like the others" not in said
        assert "describes none" not in said
    alone = " ".join(fit.of_chain(0).text().split())
    assert f"{same}." in alone
    other = fit_of(corpus).report(tmp_path / "other.html").read_text("utf-8")
    assert " ".join(other.split()).count("an average of all chains describes none of them") == 2
    plt.close("all")


@pytest.fixture
def factors(made_up_factors):
    phi = np.array([[3.0, 0, 0, 4], [0, 2, 0, 0]])
    weights = np.array([[2.0, 0], [1, 0], [1, 3], [0, 5], [0, 4]])
    sources = bnp.Sources.from_arrays([(weights @ phi)[:3], (weights @ phi)[3:]], names=["s", "t"])
    model = bnp.GaussianFactorAnalysis(centre=False)
    return made_up_factors(model, sources, phi, weights, sigma2_w=[4.0, 9], sigma2_n=[1e-4, 1e-4])


def test_functionals_of_factors_by_hand(factors):
    found = factors.functionals(num_pairs=100)
    assert list(found.summary.index) == ["scalars", "cells", "row pairs", "source pairs"]
    table, sources = found.table, factors.dataset
    fitted = factors.reconstruct()
    for name, row in table.loc["cells"].iterrows():
        n, i = (list(x).index(part) for x, part in zip(
            (sources.row_names, sources.feature_names), name.split(", "), strict=True))  # fmt: skip
        assert row["mean"] == pytest.approx(fitted.mean[n, i])
    assert table.loc[("source pairs", "s / t"), "mean"] == 1
    rows = {f"{sources.row_names[i]} / {sources.row_names[j]}": i for i, j in [(0, 1), (2, 3)]}
    for name in rows:
        if ("row pairs", name) in table.index:
            assert table.loc[("row pairs", name), "mean"] == 1
    assert "functionals" in factors.summaries().tables
    assert "constant" in set(table["verdict"])
    plt.close("all")


def test_one_chain_cannot_be_compared(apart):
    with pytest.raises(ValueError, match="fit must have two chains or more to compare, got 1; use"):
        apart.of_chain(0).functionals()
