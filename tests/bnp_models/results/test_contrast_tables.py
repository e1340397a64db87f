"""Tables of topics that differ by group, on made-up states of cross-collection LDA."""

import dataclasses
import json
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.special
import scipy.stats

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base.token_model import DIMS
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.mixtures import Mixtures
from bnp_models.posterior.stacking import with_weights
from bnp_models.report import sections
from bnp_models.results import contrast_tables
from bnp_models.scores.held_out import document_topics, left_to_right

COMMON, OWN = ("c0", "c1", "c2"), {"a": ("a0", "a1"), "b": ("b0", "b1")}
SAME, ONLY_A, BOTH = ("s0", "s1", "s2"), ("o0", "o1"), ("c0", "s0")
WORDS = (*COMMON, *OWN["a"], *OWN["b"], *SAME, *ONLY_A, "unused")
TOPIC = dict.fromkeys((*COMMON, *OWN["a"], *OWN["b"]), 0) | dict.fromkeys(SAME, 1)
TOPIC |= dict.fromkeys(ONLY_A, 2)
MODEL = bnp.CrossCollectionLDA(
    3, alpha=0.2, beta=0.1, group_beta=0.05, switch_common=2.0, switch_own=1.0
)


def draw(rng, group, num_docs, length=20):
    """Draw documents of one topic each; half of the tokens of topic 0 are own words."""
    docs = []
    for d in range(num_docs):
        words = rng.choice((COMMON, SAME, ONLY_A if group == "a" else SAME)[d % 3], length)
        if d % 3 == 0:
            words = np.where(rng.random(length) < 0.5, words, rng.choice(OWN[group], length))
        docs.append([WORDS.index(word) for word in words])
    return docs


def make_corpus(seed, num_docs=(12, 18), length=20):
    rng = np.random.default_rng(seed)
    docs, groups = [], []
    for group, count in zip("ba", num_docs, strict=True):  # the order of the names is another
        docs += draw(rng, group, count, length)
        groups += [group] * count
    return bnp.Corpus.from_ids(docs, vocabulary=WORDS, groups=groups, group_names=["a", "b"])


def documents_of(corpus):
    doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
    return [word[doc == d] for d in range(corpus.num_docs)]


def fit_of(corpus, z, switch, model=MODEL, prior=(2, 1), **states):
    shape = z.shape[:2]
    values = {"alpha": 0.2, "beta": 0.1, "group_beta": 0.05}
    values |= dict(zip(("switch_common", "switch_own"), prior, strict=True))
    states |= {"z": z, "switch": switch}
    states |= {name: np.full(shape, value, np.float32) for name, value in values.items()}
    groups = {
        "posterior": {"num_topics_used": np.full(shape, 3)},
        "sample_stats": {"lp": -np.arange(float(z[:, :, 0].size)).reshape(shape)},
        "states": states,
    }
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return model.result_class()(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(0)


@pytest.fixture(scope="module")
def fit(corpus):
    """Two chains of two states near the truth; chain 1 has the slots in another order."""
    rng = np.random.default_rng(1)
    word = np.asarray(corpus.word)
    z = np.array([TOPIC.get(name, 0) for name in WORDS])[word]
    own = np.isin(word, [WORDS.index(name) for names in OWN.values() for name in names])
    z = np.tile(z, (2, 2, 1))
    moved = (rng.random(z.shape) < 0.03) & (z < 2)
    z = np.where(moved, 1 - z, z)
    switch = np.where(rng.random(z.shape) < 0.02, 1 - own, own)
    z[1] = np.array([2, 0, 1])[z[1]]
    return fit_of(corpus, z.astype(np.uint8), switch.astype(np.uint8))


@pytest.fixture(scope="module")
def new():
    return make_corpus(3, num_docs=(6, 6), length=8)


@pytest.fixture(scope="module")
def numbers(fit):
    """Numbers of the topics by what they are about."""
    words = fit.topics(num_words=11)["words"]
    return {
        name: next(k for k in words.index if words[k].split(", ")[0] in of)
        for name, of in (("contrast", (*COMMON, *OWN["a"], *OWN["b"])), ("same", SAME),
                         ("only a", ONLY_A))
    }  # fmt: skip


def by_hand(fit):
    """Return common version [S, V, 3], versions [S, 2, V, 3] and psi [S, 2, 3], topics as truth."""
    corpus, found = fit.dataset, []
    group, word = np.asarray(corpus.group)[np.asarray(corpus.doc)], np.asarray(corpus.word)
    for chain in range(2):
        for state in range(2):
            z = fit.states["z"].to_numpy()[chain, state]
            z = z if chain == 0 else np.array([1, 2, 0])[z]
            switch = fit.states["switch"].to_numpy()[chain, state]
            common, psi = np.full((len(WORDS), 3), 0.1), np.zeros((2, 3))
            own, counts = np.full((2, len(WORDS), 3), 0.05), np.tile([2.0, 1.0], (2, 3, 1))
            for g, v, k, s in zip(group, word, z, switch, strict=True):
                counts[g, k, s] += 1
                if s:
                    own[g, v, k] += 1
                else:
                    common[v, k] += 1
            common /= common.sum(0)
            psi = counts[..., 1] / counts.sum(-1)
            own /= own.sum(1, keepdims=True)
            found.append((common, (1 - psi)[:, None] * common + psi[:, None] * own, psi))
    return [np.stack(part) for part in zip(*found, strict=True)]


def test_the_seam_of_the_model(fit, corpus):
    common, versions, psi = by_hand(fit)
    share = np.array([0.6, 0.4])  # of the tokens
    for s in (0, 1):  # of chain 0, whose slots are the true topics
        state = fit.mixtures.state(s)
        found = fit.model.common_topics_of(state, corpus)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, common[s], rtol=1e-5)
        np.testing.assert_allclose(fit.mixtures[s].phi[0], versions[s], rtol=1e-5)
        np.testing.assert_allclose(fit.model.likeness_of(state, corpus), 1 - share @ psi[s])
        # what a model without a common version says
        mean = super(type(fit.model), fit.model).common_topics_of(state, corpus)
        assert mean.dtype == np.float32
        np.testing.assert_allclose(mean, np.tensordot(share, versions[s], 1), rtol=1e-5)
        assert super(type(fit.model), fit.model).likeness_of(state, corpus) is None


def test_one_row_is_common_to_all(corpus):
    model = bnp.LDA(2)
    state = {"z": np.arange(corpus.num_tokens) % 2, "alpha": 0.1, "beta": 0.1}
    topics = model.topics_of(state, corpus)
    np.testing.assert_array_equal(model.common_topics_of(state, corpus), topics.phi[0])


def test_likeness_and_distance_are_those_of_the_states(fit, numbers):
    _, versions, psi = by_hand(fit)
    table = fit.contrast(interval=0.5)
    likeness = 1 - np.tensordot([0.6, 0.4], psi, (0, 1))  # [S, 3]
    root = np.sqrt(versions)
    distance = np.sqrt(1 - (root[:, 0] * root[:, 1]).sum(1))
    for k, name in enumerate(("contrast", "same")):
        row = table.loc[numbers[name]]
        for column, values in (("likeness", likeness[:, k]), ("distance", distance[:, k])):
            assert row[column] == pytest.approx(values.mean(), rel=1e-5)
            bounds = np.quantile(values, [0.25, 0.75])
            found = row[[f"{column}_lower", f"{column}_upper"]].tolist()
            np.testing.assert_allclose(found, bounds, rtol=1e-5)
    assert table.loc[numbers["contrast"], "distance"] > 0.4
    assert table.loc[numbers["same"], "distance"] < 0.2
    assert np.isnan(table.loc[numbers["only a"], "distance"])  # there is nothing to compare


def test_versions_side_by_side(fit, numbers):
    table = fit.contrast()
    assert list(table.columns)[-3:] == ["common", "a", "b"]
    row = table.loc[numbers["contrast"]]
    assert set(row["common"].split(", ")[:3]) == set(COMMON)
    assert {name: set(row[name].split(", ")) for name in "ab"} == {
        name: set(words) for name, words in OWN.items()
    }
    assert "unused" not in " ".join(table.to_numpy().astype(str).ravel())
    assert set(table.loc[numbers["same"], "common"].split(", ")[:3]) == set(SAME)
    one = fit.contrast(numbers["contrast"], num_words=2)
    assert one.index.tolist() == [numbers["contrast"]]
    assert one["common"].iloc[0] == ", ".join(row["common"].split(", ")[:2])


def test_a_topic_of_one_group_is_not_compared(fit, numbers):
    """Its common words are those of the only group that has it."""
    row = fit.contrast(num_words=2).loc[numbers["only a"]]
    assert (row["a"], row["b"]) == ("", "")
    assert set(row["common"].split(", ")) == set(ONLY_A)
    assert len(fit.contrast_words(numbers["only a"])) == 0


def test_common_words_are_those_that_all_groups_say(fit, numbers):
    _, versions, _ = by_hand(fit)
    least = versions[..., 0].min(axis=1).mean(axis=0)
    said = [word for word in WORDS if word not in (*OWN["a"], *OWN["b"], *ONLY_A, "unused")]
    expected = sorted(said, key=lambda word: -least[WORDS.index(word)])
    found = fit.contrast(numbers["contrast"], num_words=4)["common"].iloc[0]
    assert found.split(", ") == expected[:4]


def test_a_word_has_one_place(fit):
    """What a group says more is not among the common words, however frequent it is."""
    table = fit.contrast(num_words=20, interval=0.01)
    lists = table[["common", "a", "b"]].map(lambda text: text.split(", ") if text else [])
    for row in lists.to_numpy():
        words = [word for names in row for word in names]
        assert len(words) == len(set(words))


def ratios_by_hand(fit, topic=0):
    """Return mean and deviation of the log ratio of each group, [2, V], one word after another."""
    _, versions, _ = by_hand(fit)
    corpus = fit.dataset
    of_token = np.asarray(corpus.group)[np.asarray(corpus.doc)]
    found = np.zeros((2, len(WORDS), 4, 2))
    for s in range(4):
        z = fit.states["z"].to_numpy()[divmod(s, 2)]
        z = z if s < 2 else np.array([1, 2, 0])[z]
        n = [np.sum((of_token == g) & (z == topic)) for g in (0, 1)]
        for v in range(len(WORDS)):
            p = [versions[s, g, v, topic] + 1 / sum(n) for g in (0, 1)]
            error = 1 / (n[0] * p[0]) + 1 / (n[1] * p[1])  # one over the two counts
            found[0, v, s] = np.log(p[0] / p[1]), error
            found[1, v, s] = np.log(p[1] / p[0]), error
    mean = found[..., 0].mean(axis=-1)
    return mean, np.sqrt(found[..., 0].var(axis=-1) + found[..., 1].mean(axis=-1))


def test_words_that_a_group_says_more(fit, numbers):
    mean, deviation = ratios_by_hand(fit)
    _, versions, _ = by_hand(fit)
    table = fit.contrast_words(numbers["contrast"], num_words=20, interval=0.5)
    assert table.columns.tolist() == [
        "topic", "group", "word", "log_ratio", "lower", "upper", "a", "b",
    ]  # fmt: skip
    assert table.attrs["interval"] == 0.5
    assert set(table["topic"]) == {numbers["contrast"]}
    lower = mean - scipy.stats.norm.ppf(0.75) * deviation
    for g, name in enumerate("ab"):
        mine = table[table["group"] == name]
        order = np.argsort(-mean[g] / deviation[g])
        expected = [v for v in order if lower[g, v] > 0]
        ids = [WORDS.index(word) for word in mine["word"]]
        assert ids == expected
        assert set(mine["word"][:2]) == set(OWN[name])
        np.testing.assert_allclose(mine["log_ratio"], mean[g, ids], rtol=1e-5)
        np.testing.assert_allclose(mine["lower"], lower[g, ids], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(mine["lower"] + mine["upper"], 2 * mean[g, ids], rtol=1e-5)
        for h, other in enumerate("ab"):
            p = versions[:, h, ids, 0].mean(0)
            np.testing.assert_allclose(mine[other], p, rtol=1e-5)


def test_a_wider_interval_leaves_words_out(fit, numbers):
    narrow, wide = (
        set(fit.contrast_words(numbers["same"], num_words=20, interval=p)["word"])
        for p in (0.01, 0.999)
    )
    assert wide < narrow


def test_a_rare_word_comes_after_a_frequent_one():
    """Two tokens of one group only: a larger ratio than 60 to 30, and less is known of it."""
    docs = {"a": [0] * 60 + [1] * 2 + [2] * 40, "b": [0] * 30 + [2] * 70}
    corpus = bnp.Corpus.from_ids(list(docs.values()), num_words=3, groups=[*docs])
    z = np.zeros((1, 1, corpus.num_tokens), np.uint8)
    model = bnp.CrossCollectionLDA(1)
    other = fit_of(corpus, z, np.ones_like(z), model=model)  # all words are own ones
    table = other.contrast_words(interval=0.05)
    mine = table[table["group"] == "a"]
    assert mine["word"].tolist() == ["0", "1"]
    assert mine["log_ratio"].is_monotonic_increasing
    assert other.contrast_words()["word"].tolist() == ["0", "2"]  # not surely more
    # ratios have the prior of one token of each word, the probabilities beside them do not
    said = np.exp(mine["log_ratio"])
    np.testing.assert_allclose(said, (mine["a"] + 1 / 202) / (mine["b"] + 1 / 202), rtol=1e-6)
    assert (mine["a"] / mine["b"]).iloc[1] > 1.4 * said.iloc[1]


def test_groups_are_compared_with_the_mean_of_the_others():
    """A large group counts as much as a small one; one without the topic does not count."""
    docs = [[0] * 50 + [1] * 50, [0] * 10 + [1] * 990, [0] * 30 + [1] * 70, [0, 1]]
    corpus = bnp.Corpus.from_ids(docs, num_words=2, groups=[*"abcd"])
    z = np.zeros((1, 1, corpus.num_tokens), np.uint8)
    other = fit_of(corpus, z, np.ones_like(z), model=bnp.CrossCollectionLDA(1))
    phi = other.mixtures[0].phi[0][:, 0, 0].astype(float)  # of word 0
    p = phi[:3] + 1 / 1200
    row = other.contrast_words().iloc[0]
    assert (row["group"], row["word"]) == ("a", "0")
    assert row["log_ratio"] == pytest.approx(np.log(p[0] / ((p[1] + p[2]) / 2)))
    n = np.array([100, 1000, 100])
    variance = 1 / (n[0] * p[0]) + (p[1] / n[1] + p[2] / n[2]) / (p[1] + p[2]) ** 2
    half = scipy.stats.norm.ppf(0.95) * np.sqrt(variance)
    assert row["lower"] == pytest.approx(row["log_ratio"] - half)
    np.testing.assert_allclose(row[[*"abc"]].astype(float), phi[:3], rtol=1e-5)
    assert np.isnan(row["d"])


def test_labels_of_topics_are_shown(fit, numbers):
    k = numbers["contrast"]
    named = fit.with_labels({k: "a name"})
    assert "label" not in fit.contrast()
    table = named.contrast()
    assert table.columns[0] == "label"
    assert table["label"].tolist() == ["a name" if i == k else "" for i in range(3)]
    title = named.plot_contrast(topics=[k])[0].get_title(loc="left")
    assert title.splitlines()[0] == f"{k}: a name"
    assert f"{k}: a name" in [x.get_text() for x in named.plot_distances().get_yticklabels()]
    plt.close("all")


def test_order_of_the_rows(fit, numbers):
    assert fit.contrast().index.tolist() == [0, 1, 2]
    by_distance = fit.contrast(by="distance").index.tolist()
    assert by_distance == [numbers["same"], numbers["contrast"], numbers["only a"]]
    reported = sections._contrast(fit).data["table"].index.tolist()
    assert reported == [numbers["contrast"], numbers["same"], numbers["only a"]]
    likeness = fit.contrast(by="likeness")["likeness"]
    assert likeness.is_monotonic_decreasing
    assert likeness.index[-1] == numbers["contrast"]


def test_topics_of_one_group(fit, numbers):
    """What `GroupFit` says of topics that only one group has is right for these models too."""
    assert fit.own_topics("a").index.tolist() == [numbers["only a"]]
    assert len(fit.own_topics("b")) == 0
    kinds = fit.shared_topics()["kind"]
    assert kinds[[numbers["contrast"], numbers["same"]]].tolist() == ["common", "common"]


def test_chains_and_weights(fit, numbers):
    """A stacked chain counts as its weight says, and `chain=` uses it alone."""
    k = numbers["contrast"]
    alone = [fit.of_chain(c).contrast()["distance"].min() for c in (0, 1)]
    pooled = [fit.of_chain(c).contrast_words()["log_ratio"].max() for c in (0, 1)]
    about = {"score": "left_to_right", "num_docs": 1, "num_tokens": 1}
    data = with_weights(fit.data, np.array([0.0, 1.0]), np.zeros(2), about)
    stacked = dataclasses.replace(fit, data=data)
    assert stacked.contrast()["distance"].min() == pytest.approx(alone[1])
    assert stacked.contrast_words()["log_ratio"].max() == pytest.approx(pooled[1])
    assert pooled[0] != pytest.approx(pooled[1])
    assert stacked.contrast().loc[k, "distance"] != fit.contrast().loc[k, "distance"]
    # the words are chosen by the same weights
    alone = fit.of_chain(1).contrast_words(num_words=20)
    counted = stacked.contrast_words(num_words=20)
    assert sorted(counted["word"]) == sorted(alone["word"])


def test_names_of_groups_stay_apart_from_other_columns(corpus, fit):
    names = bnp.Corpus.from_ids(
        documents_of(corpus),
        vocabulary=WORDS,
        groups=[("common", "distance")[g] for g in np.asarray(corpus.group)],
    )
    states = fit.states
    other = fit_of(names, states["z"].to_numpy(), states["switch"].to_numpy())
    table = other.contrast()
    assert list(table.columns)[-3:] == ["common", "common (group)", "distance (group)"]
    assert table["common"].tolist() == fit.contrast()["common"].tolist()
    words = other.contrast_words()
    assert set(words["group"]) == {"common (group)", "distance (group)"}
    assert words.columns[-2:].tolist() == ["common (group)", "distance (group)"]
    assert list(other.group_probabilities(names).columns) == ["common", "distance"]
    assert other.plot_contrast().size == 3
    plt.close("all")


class TestLikenessOfThePrior:
    @staticmethod
    def fit_with(fit, common, own):
        """Return the fit as if its switches had this prior."""
        z, switch = (fit.states[name].to_numpy() for name in ("z", "switch"))
        model = dataclasses.replace(MODEL, switch_common=common, switch_own=own)
        return fit_of(fit.dataset, z, switch, model=model, prior=(common, own))

    def test_it_is_no_finding(self, fit, numbers):
        """A topic has 100 tokens in a group on average; the prior counts as much as 101."""
        other = self.fit_with(fit, 50.0, 51.0)
        assert other.model.prior_likeness(fit.dataset) == pytest.approx((50 / 101, 1.01))
        table = other.contrast()
        assert not [name for name in table.columns if "likeness" in name]
        assert sections._contrast(other).data["has_likeness"] is False
        for ax in other.plot_contrast():
            assert "likeness" not in ax.get_title(loc="left")
        plt.close("all")
        with pytest.raises(ValueError, match="no likeness or only that of its prior"):
            other.contrast(by="likeness")

    def test_a_weaker_prior_leaves_it_to_the_documents(self, fit):
        other = self.fit_with(fit, 50.0, 49.0)
        assert "likeness" in other.contrast()
        assert sections._contrast(other).data["has_likeness"] is True
        assert "likeness" in other.plot_contrast()[0].get_title(loc="left")
        plt.close("all")

    def test_all_topics_are_where_the_prior_was(self, fit):
        """Here it counts as much as 99 tokens. One topic elsewhere gives all of them the column."""
        z = fit.states["z"].to_numpy()
        model = dataclasses.replace(MODEL, switch_common=98.9, switch_own=0.1)
        no_own = fit_of(fit.dataset, z, np.zeros_like(z), model=model, prior=(98.9, 0.1))
        assert "likeness" not in no_own.contrast()
        assert "likeness" not in no_own.contrast(0)
        switch = np.zeros_like(z)
        switch[0][z[0] == 0] = 1
        switch[1][z[1] == 2] = 1
        one_own = fit_of(fit.dataset, z, switch, model=model, prior=(98.9, 0.1))
        moved = (one_own.contrast()["likeness"] - 0.999).abs() > 0.01
        assert moved.sum() == 1
        assert "likeness" in one_own.contrast(int(moved.idxmin()))

    def test_only_a_fixed_prior_can_decide(self, fit):
        learnt = dataclasses.replace(MODEL, switch_common=dist.Gamma(1.0, 1.0))
        assert learnt.prior_likeness(fit.dataset) is None
        assert bnp.LDA(2).prior_likeness(fit.dataset) is None


class Elsewhere(bnp.CrossCollectionLDA):
    """Common versions over other words, no likeness."""

    names: ClassVar[tuple[str, ...]] = ("first", "second")

    def common_topics_of(self, state, corpus):
        return np.tile(np.float32([[0.3], [0.7]]), (1, 3))

    def common_words(self, corpus):
        return self.names

    def likeness_of(self, state, corpus):
        return None


def test_common_version_over_other_words(fit, corpus, numbers):
    model = Elsewhere(3)
    other = fit_of(corpus, fit.states["z"].to_numpy(), fit.states["switch"].to_numpy(), model=model)
    table = other.contrast()
    assert "likeness" not in table.columns
    assert table["common"].tolist() == ["second, first"] * 3
    words = other.contrast_words(numbers["contrast"])
    assert set(words.loc[words["group"] == "a", "word"]) == set(OWN["a"])
    with pytest.raises(ValueError, match="by must be 'distance' or None for Elsewhere"):
        other.contrast(by="likeness")
    with pytest.raises(ValueError, match="theta_from must be 'group' for this Elsewhere"):
        other.group_probabilities(corpus, theta_from="root")


class TestGroupsOfNewDocuments:
    def test_they_are_found(self, fit, new):
        table = fit.group_probabilities(new)
        np.testing.assert_allclose(table.sum(axis=1), 1)
        assert table.index.tolist() == list(new.doc_names)
        truth = [new.group_names[g] for g in np.asarray(new.group)]
        told = np.arange(12) % 3 == 0  # has words of its group
        assert (table.idxmax(axis=1).to_numpy() == truth)[told].all()
        assert table.max(axis=1)[told].min() > 0.95
        only_a = np.array(truth) == "a"
        assert table.loc[only_a & (np.arange(12) % 3 == 2), "a"].min() > 0.9
        neither = np.arange(12) % 3 == 1
        np.testing.assert_allclose(table.loc[neither, "a"], 0.6, atol=0.15)  # the prior

    def test_it_is_the_evidence_times_the_prior(self, fit, new):
        """Of left-to-right where each document is said to be of either group."""
        table = fit.group_probabilities(new, seed=4)
        uniform = fit.group_probabilities(new, seed=4, prior="uniform")
        evidence = []
        for name in "ab":
            said = bnp.Corpus.from_ids(documents_of(new), vocabulary=WORDS, groups=[name] * 12)
            evidence.append(left_to_right(fit.mixtures, said, seed=4).doc_log_prob)
        evidence = np.stack(evidence, axis=1)
        for found, prior in ((table, [18 / 30, 12 / 30]), (uniform, [0.5, 0.5])):
            expected = scipy.special.softmax(evidence + np.log(prior), axis=1)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert 0 < table.attrs["log_error"] < 0.5

    def test_one_word_is_exact(self, fit):
        """With one token per document there is nothing to sample."""
        words = [[WORDS.index(w)] for w in ("a0", "c1", "s2")]
        found = fit.group_probabilities(bnp.Corpus.from_ids(words, vocabulary=WORDS))
        _, versions, _ = by_hand(fit)
        p = versions.mean(axis=(0, 3)).T[[w[0] for w in words]] * [0.6, 0.4]  # alpha is symmetric
        np.testing.assert_allclose(found, p / p.sum(axis=1, keepdims=True), rtol=1e-5)

    @pytest.mark.parametrize("theta_from", ["root", "group"])
    def test_scores_as_printed(self, fit, new, theta_from):
        how = {"num_sweeps": 5, "num_kept": 3, "seed": 2}
        common, versions, _ = by_hand(fit)
        docs, word = np.asarray(new.doc), np.asarray(new.word)
        slots = [np.arange(3)] * 2 + [np.array([2, 0, 1])] * 2  # where each true topic is
        total, product = np.zeros((2, 12, 2))
        for g, name in enumerate("ab"):
            said = bnp.Corpus.from_ids(documents_of(new), vocabulary=WORDS, groups=[name] * 12)
            if theta_from == "group":
                thetas = document_topics(fit.mixtures, said, **how)
            else:
                phi = np.stack([x[:, np.argsort(s)] for x, s in zip(common, slots, strict=True)])
                phi = phi.astype(np.float32)[:, None]
                at = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
                weights = np.full((4, 1, 3), 0.2, np.float32)
                thetas = document_topics(Mixtures(phi, DirichletLaw(weights), *at), new, **how)
            for s, theta in enumerate(thetas):
                p = (theta[docs][:, slots[s]] * versions[s, g, word]).sum(1)
                total[:, g] += np.bincount(docs, p) / 4
                product[:, g] += np.exp(np.bincount(docs, np.log(p))) / 4
        found = fit.group_probabilities(new, score="sum", theta_from=theta_from, **how)
        np.testing.assert_allclose(found, total / total.sum(1, keepdims=True), rtol=1e-4)
        if theta_from == "root":
            found = fit.group_probabilities(new, theta_from="root", prior="uniform", **how)
            np.testing.assert_allclose(found, product / product.sum(1, keepdims=True), rtol=1e-4)

    @pytest.fixture
    def of_texts(self, fit):
        """The fit as if its documents had been read from texts."""
        corpus = fit.dataset
        texts = [" ".join(corpus.words(d)) for d in range(corpus.num_docs)]
        groups = [corpus.group_names[g] for g in np.asarray(corpus.group)]
        read = bnp.Corpus.from_texts(texts, vocabulary=WORDS, groups=groups, group_names=["a", "b"])
        return fit_of(read, fit.states["z"].to_numpy(), fit.states["switch"].to_numpy())

    def test_texts_are_read_as_those_of_the_fit(self, of_texts):
        texts = ["A0 c0, a1!", "b0 b1 zebra", "zebra"]
        with pytest.warns(UserWarning, match="1 of 3 texts have no word .* those of the prior"):
            found = of_texts.group_probabilities(texts)
        pd.testing.assert_frame_equal(
            found, of_texts.group_probabilities(of_texts.dataset.read_texts(texts))
        )
        assert found.idxmax(axis=1).tolist()[:2] == ["a", "b"]
        np.testing.assert_allclose(of_texts.group_probabilities(texts[0]).iloc[0], found.iloc[0])

    def test_texts_without_a_known_word_have_the_prior(self, of_texts):
        with pytest.warns(UserWarning, match="2 of 2 texts have no word"):
            found = of_texts.group_probabilities(["zebra", ""])
        np.testing.assert_allclose(found, [[0.6, 0.4]] * 2)
        assert np.isnan(found.attrs["log_error"])
        with pytest.warns(UserWarning, match="1 of 1 texts .*: their probabilities are NaN"):
            found = of_texts.group_probabilities("zebra", score="sum")
        assert found.shape == (1, 2)
        assert found.isna().all(axis=None)

    def test_documents_without_words(self, fit):
        new = bnp.Corpus.from_ids([[], [0, 1]], vocabulary=WORDS)
        np.testing.assert_allclose(fit.group_probabilities(new).iloc[0], [0.6, 0.4])
        assert fit.group_probabilities(new, score="sum").iloc[0].isna().all()

    def test_bad_options_are_named(self, fit, new):
        with pytest.raises(ValueError, match="prior must be None with score='sum'"):
            fit.group_probabilities(new, score="sum", prior="sizes")
        with pytest.raises(ValueError, match="corpus has 3 words, the model has 13"):
            fit.group_probabilities(bnp.Corpus.from_ids([[0]], num_words=3))
        with pytest.raises(ValueError, match="num_kept must be at most"):
            fit.group_probabilities(new, num_sweeps=2, num_kept=3)


def test_pictures(fit, numbers):
    axes = fit.plot_contrast(num_words=4)
    assert axes.shape == (3,)
    assert [ax.get_title(loc="left").split(",")[0] for ax in axes] == [
        "topic 0", "topic 1", "topic 2",
    ]  # fmt: skip
    one = fit.plot_contrast(topics=[numbers["only a"]])[0]
    shown = [text.get_text() for text in one.texts]
    assert shown.count("\N{EN DASH}") == 2
    assert any(set(ONLY_A) <= set(text.split(", ")) for text in shown)
    ax = fit.plot_distances()
    assert len(ax.get_yticklabels()) == 2  # topics that one group has are left out
    assert ax.get_yticklabels()[0].get_text().startswith(f"{numbers['contrast']}: ")
    with pytest.raises(ValueError, match="table must have a topic of two groups"):
        fit.plot_distances(topics=[numbers["only a"]])
    plt.close("all")


def test_the_report_has_contrasts(fit):
    made = fit.summaries()
    assert {"topics", "sharing", "contrast", "contrast_words"} <= set(made.tables)
    assert {"contrast", "distances"} <= set(made.drawn)
    plt.close("all")


def test_a_report_without_topics_of_two_groups(corpus):
    """Tiny corpora have fewer tokens than `min_tokens` in every topic."""
    small = bnp.Corpus.from_ids([[0, 1], [5, 7]], vocabulary=WORDS, groups=["a", "b"])
    z = np.zeros((1, 1, 4), np.uint8)
    made = fit_of(small, z, z).summaries()
    assert "distances" not in made.drawn
    assert made.tables["contrast"]["a"].tolist() == [""]
    assert len(made.tables["contrast_words"]) == 0
    plt.close("all")


def test_other_fits_and_topics_are_refused(fit, corpus):
    with pytest.raises(ValueError, match="topic must be the number of a topic, from 0 to 2"):
        fit.contrast(3)
    with pytest.raises(ValueError, match="by must be one of"):
        fit.contrast(by="words")
    z = np.zeros((1, 1, corpus.num_tokens), np.uint8)
    lda = fit_of(corpus, z, z, model=bnp.LDA(1))
    with pytest.raises(ValueError, match="fit must be that of a model whose topics differ"):
        contrast_tables.contrast(lda)
    assert isinstance(fit, bnp.ContrastFit)
    assert isinstance(fit.contrast(), pd.DataFrame)
