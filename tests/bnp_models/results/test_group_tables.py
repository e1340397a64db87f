"""Tables of what groups share, on a corpus whose sharing is known."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp

pytestmark = pytest.mark.slow


def documents(rng, words, num_docs):
    return [rng.choice(words, 40) for _ in range(num_docs)]


@pytest.fixture(scope="module")
def groups():
    """Words 0-4 are in all groups, 5-9 in two, 10-14 in the last one."""
    rng = np.random.default_rng(0)
    common, some, own = np.arange(5), np.arange(5, 10), np.arange(10, 15)
    parts = {"a": (common, some), "b": (common, some), "c": (common, own)}
    docs, of = [], []
    for name, topics in parts.items():
        for words in topics:
            docs += documents(rng, words, 6)
            of += [name] * 6
    return bnp.Corpus.from_ids(docs, num_words=15, groups=of)


@pytest.fixture(scope="module")
def fit(groups):
    model = bnp.MultiTaskHDPLDA(alpha=0.5, group_alpha=1.0, gamma=1.0, beta=0.1, max_topics=40)
    return bnp.fit(
        model, groups, num_warmup=60, num_samples=20, num_chains=2, seed=1, progress=False,
        init_topics=3,
    )  # fmt: skip


def topic_of(fit, word):
    """Return the topic with the largest share that has this word."""
    table = fit.topics(num_words=4)
    return next(k for k, words in table["words"].items() if str(word) in words.split(", "))


def test_probabilities_are_those_of_the_states(fit):
    table = fit.sharing().set_index(["group", "topic"])
    probability, share = table["probability"], table["share"]
    common, some, own = (topic_of(fit, word) for word in (2, 7, 12))
    assert probability.loc[["a", "b", "c"], common].min() == 1
    assert (probability["a", some], probability["b", some]) == (1, 1)
    assert probability["c", some] < 0.5
    assert probability["c", own] == 1
    np.testing.assert_allclose(share["c", own], 0.5, atol=0.05)
    assert share.groupby("group").sum().max() <= 1 + 1e-9
    assert (table["lower"] <= table["upper"]).all()
    few = fit.sharing(min_tokens=1000)
    assert few["probability"].max() == 0


def test_kinds_of_topics(fit):
    table = fit.shared_topics()
    common, some, own = (topic_of(fit, word) for word in (2, 7, 12))
    assert table.loc[[common, some, own], "kind"].tolist() == ["common", "shared", "own"]
    assert table.loc[own, "groups"] == "c"
    assert sorted(table.loc[some, "groups"].split(", ")) == ["a", "b"]
    assert not table.loc[common, "weak"]
    assert fit.shared_topics(weak=1.0)["weak"].all()
    assert list(fit.own_topics("c").index) == [k for k in table.index if table.groups[k] == "c"]
    assert fit.own_topics("a")["kind"].eq("own").all()
    one = fit.of_chain(0).shared_topics()
    assert set(one["kind"]) <= {"common", "shared", "own", "none"}


def test_a_picture_of_sharing(fit):
    ax = fit.plot_sharing()
    assert ax.get_title(loc="left") == "Topics that groups share"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    plt.close("all")


@pytest.mark.slow
def test_a_group_is_compared_with_itself_alone(fit, groups):
    rng = np.random.default_rng(5)
    new = bnp.Corpus.from_ids(
        [rng.integers(0, 5, 30), rng.integers(10, 15, 30), [7]], num_words=15,
        groups=["c", "c", "a"],
    )  # fmt: skip
    own = fit.corpus_of("c")
    assert own.num_docs == 12
    alone = bnp.fit(
        fit.model.alone(), own, num_warmup=20, num_samples=10, num_chains=1, progress=False
    )
    table = fit.compare_alone("c", new, alone)
    assert list(table.index) == ["with the others", "alone", "difference"]
    assert table["num_docs"].eq(2).all()
    gap = table.loc["with the others", "log_prob"] - table.loc["alone", "log_prob"]
    np.testing.assert_allclose(table.loc["difference", "log_prob"], gap, rtol=1e-4, atol=1e-6)
    same = fit.compare_alone("c", new, fit)
    assert same.loc["difference", ["log_prob", "error"]].tolist() == [0, 0]
    assert fit.model.alone() == bnp.HDPLDA(alpha=0.5, gamma=1.0, beta=0.1, max_topics=40)
    only_a = bnp.Corpus.from_ids([[1]], num_words=15, groups=["a"])
    with pytest.raises(ValueError, match="corpus must have documents of group 'c'"):
        fit.compare_alone("c", only_a, alone)
    with pytest.raises(ValueError, match="group must be one of"):
        fit.compare_alone("d", new, alone)


def test_bad_options_are_named(fit):
    with pytest.raises(ValueError, match="min_tokens must be an integer of at least 1"):
        fit.sharing(min_tokens=0)
    with pytest.raises(ValueError, match="probability must be"):
        fit.shared_topics(probability=2)
    with pytest.raises(ValueError, match="group must be one of"):
        fit.own_topics("x")


def test_the_report_has_what_groups_share(fit):
    made = fit.summaries()
    assert {"sharing", "shared_topics"} <= set(made.tables)
    assert "sharing" in made.drawn
    plt.close("all")
