"""Topics that are merged or left out for display."""

import inspect
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import make_data
from bnp_models.results.document_tables import document_shares


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def make_fit(z, corpus):
    each = np.ones(z.shape[:2])
    groups = {
        "posterior": {"num_topics_used": 3 * each},
        "sample_stats": {"lp": np.arange(each.size, 0.0, -1.0).reshape(each.shape)},
        "states": {"z": z, "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.LDA(4, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture(scope="module")
def fit(z, corpus):
    """Three chains of four states that agree, so tables are of all of them."""
    return make_fit(z, corpus)


@pytest.fixture(scope="module")
def one(z, corpus):
    """The first state of the first chain alone."""
    return make_fit(z[:1, :1], corpus)


@pytest.fixture(scope="module")
def hdp(z, corpus):
    """Two chains of an HDP; the second one has a single topic in place of two of the first."""
    z = np.stack([z[0], np.where(z[0] == 2, 1, z[0])])
    each = np.ones(z.shape[:2])
    groups = {
        "posterior": {"num_topics_used": 3 * each},
        "sample_stats": {"lp": np.arange(each.size, 0.0, -1.0).reshape(each.shape)},
        "states": {
            "z": z, "alpha": 0.3 * each, "beta": 0.1 * each, "unused_weight": 0.2 * each,
            "root_weights": np.full((*each.shape, 4), 0.2),
        },
    }  # fmt: skip
    model = bnp.HDPLDA(max_topics=4)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


def order_of(fit):
    """Return the parts of the topics, by which tables of a merged fit are compared."""
    return fit.topics().attrs["parts"]


@pytest.mark.parametrize("chain", [None, 2])
def test_shares_are_summed(fit, chain):
    fit = fit if chain is None else fit.of_chain(chain)
    merged = fit.merge_topics([[2, 0]])
    shares, found = fit.document_topics(), merged.document_topics()
    assert order_of(merged) == [[2, 0], [1]]  # as they were given
    np.testing.assert_allclose(found[0], shares[0] + shares[2])
    np.testing.assert_allclose(found[1], shares[1])
    old, new = fit.topics()["prevalence"], merged.topics()["prevalence"]
    np.testing.assert_allclose(new, [old[0] + old[2], old[1]])
    old, new = (one.topic_prevalence_by_group()["prevalence"] for one in (fit, merged))
    old, new = old.to_numpy().reshape(-1, 3), new.to_numpy().reshape(-1, 2)
    np.testing.assert_allclose(new, np.stack([old[:, 0] + old[:, 2], old[:, 1]], axis=1))


def test_intervals_of_a_merged_topic_are_those_of_its_sum(fit):
    # of Dir(n + 0.3) over four slots, one of them without a token, the sum of the other three
    merged = fit.merge_topics([[0, 1, 2]])
    assert (merged.documents()["certainty"] == 1).all()
    found = document_shares(merged.shown.topic_states, fit.dataset, merged.shown.alignment)
    total = np.asarray(fit.dataset.doc_length) + 1.2
    mean = 1 - 0.3 / total
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(found.sd[:, 0], np.sqrt(mean * (1 - mean) / (total + 1)), rtol=1e-4)


def test_words_are_those_of_the_tokens_of_the_parts(one):
    corpus, shown = one.dataset, one.shown
    merged = one.merge_topics([[0, 1]])
    number = shown.alignment.number[0][shown.topic_states.z[0].astype(int)]
    union = np.isin(number, [0, 1])
    counts = np.bincount(np.asarray(corpus.word)[union], minlength=corpus.num_words)
    # two topics with beta = 0.1 each, weighted by their tokens
    sizes = np.array([(number == k).sum() for k in (0, 1)])
    parts = np.stack(
        [np.bincount(np.asarray(corpus.word)[number == k], minlength=len(counts)) for k in (0, 1)]
    )
    mean = (parts + 0.1) / (sizes + 0.1 * len(counts))[:, None]
    expected = sizes @ mean / sizes.sum()
    np.testing.assert_allclose(expected, counts / counts.sum(), atol=0.02)  # nearly the counts
    table = merged.topic_words(num_words=corpus.num_words)
    table = table[table["topic"] == 0].set_index("word")["probability"]
    word = {name: v for v, name in enumerate(corpus.vocabulary)}
    np.testing.assert_allclose(table, expected[[word[name] for name in table.index]], rtol=1e-5)


def test_words_of_topics_that_differ_by_group(corpus, no_sweeps):
    with no_sweeps():
        fit = bnp.fit(
            bnp.CrossCollectionLDA(3), corpus, num_warmup=2, num_samples=2, num_chains=1,
            keep_states=1, progress=False,
        )  # fmt: skip
    with pytest.raises(ValueError, match="can't be merged in a ContrastFit: it has versions"):
        fit.merge_topics([[0, 1]])
    left = fit.drop_topics([0])
    assert left.contrast().index.tolist() == [0, 1]
    kept = fit.contrast().iloc[1:].reset_index(drop=True)
    assert left.contrast()["common"].tolist() == kept["common"].tolist()
    np.testing.assert_allclose(left.contrast()["distance"], kept["distance"])


OTHERS = {
    "SupervisedFit": (bnp.SupervisedLDA(3), "topic_weights", "weight"),
    "AuthorFit": (bnp.AuthorTopicModel(3), "author_topics", "share"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_fits_with_values_of_each_topic(name, no_sweeps):
    model, table, column = OTHERS[name]
    texts = ["cat dog cat mouse", "mars moon sun", "dog mouse dog", "sun moon mars mars"]
    corpus = bnp.Corpus.from_texts(texts, authors=[["A"], ["B"], ["A"], ["B"]], labels=list("xyxy"))
    with no_sweeps():
        fit = bnp.fit(
            model, corpus, num_warmup=2, num_samples=2, num_chains=1, keep_states=1, progress=False
        )
    with pytest.raises(ValueError, match=f"groups can't be merged in a {name}: it has .* drop_top"):
        fit.merge_topics([[0, 1]])
    old, new = getattr(fit, table)(), getattr(fit.drop_topics([0]), table)()
    old, new = (x if "topic" in x else x.reset_index() for x in (old, new))
    old = old[old["topic"] > 0]
    np.testing.assert_array_equal(new["topic"], old["topic"] - 1)
    np.testing.assert_allclose(new[column], old[column])


def test_dropped_topics(fit):
    left = fit.drop_topics([1])
    assert order_of(left) == [[0], [2]]
    shares = fit.document_topics()[[0, 2]].to_numpy()
    np.testing.assert_allclose(left.document_topics(), shares)
    old, new = fit.topics(), left.topics()
    assert new["words"].tolist() == old["words"][[0, 2]].tolist()
    np.testing.assert_allclose(new.attrs["unmatched"], old["prevalence"][1])
    assert "are in topics that are left out or resemble none of these" in left.text()
    assert "display: left out was 1. Draws" in left.text()


def test_drop_then_merge_then_drop(fit):
    both = fit.merge_topics([[0, 1]]).drop_topics([1])
    assert order_of(both) == [[0, 1]]
    one = fit.drop_topics([2]).merge_topics([[0, 1]])
    np.testing.assert_allclose(one.document_topics(), both.document_topics())
    assert one.topics()["words"].tolist() == both.topics()["words"].tolist()
    shares = fit.document_topics()
    np.testing.assert_allclose(both.document_topics()[0], shares[0] + shares[1])
    # also of the fit that is shown, and of the average over chains
    for again in (fit.shown.drop_topics([2]).shown, fit.pooled().drop_topics([2]).pooled()):
        found = again.merge_topics([[0, 1]]).document_topics()
        np.testing.assert_allclose(found, both.document_topics())


def test_numbers_are_by_share(fit):
    # the two smaller topics together are larger than the largest one
    old = fit.topics()["prevalence"]
    assert old[1] + old[2] > old[0]
    merged = fit.merge_topics([[1, 2]])
    assert order_of(merged) == [[1, 2], [0]]
    assert "0 was 1 + 2" in merged.text()


def test_the_order_of_the_user_stays(fit):
    merged = fit.merge_topics([[2, 0]])
    assert "0 was 2 + 0" in merged.text()
    named = fit.with_labels({0: "law", 2: "sport"})
    assert named.merge_topics([[2, 0]]).topics()["label"].tolist() == ["sport + law", ""]
    assert order_of(merged.merge_topics([[1, 0]])) == [[1, 2, 0]]
    table = fit.merge_topics([[0, 2]]).effects({"x": np.arange(24.0)})
    assert merged.plot_effects(table) is not None  # topics that are the same


def test_labels_are_carried_over(fit):
    named = fit.with_labels({0: "law", 2: "sport"})
    assert named.merge_topics([[0, 2]]).topics()["label"].tolist() == ["law + sport", ""]
    assert named.merge_topics([[0, 1]]).topics()["label"].tolist() == ["law", "sport"]
    assert named.drop_topics([0]).topics()["label"].tolist() == ["", "sport"]
    merged = named.merge_topics([[0, 1]]).with_labels({0: "both"})
    assert merged.topics()["label"].tolist() == ["both", ""]
    assert order_of(merged) == [[0, 1], [2]]
    assert "label" not in merged.with_labels({}).topics()


def test_draws_stay_as_they_are(fit, tmp_path):
    merged = fit.merge_topics([[0, 1]])
    np.testing.assert_array_equal(merged.states["z"], fit.states["z"])
    assert merged.convergence().table.equals(fit.convergence().table)
    assert merged.functionals().table.equals(fit.functionals().table)
    assert len(merged.of_chain(0).topics()) == 3
    assert "parts" not in fit.topics().attrs
    again = bnp.Fit.load(merged.save(tmp_path / "draws.nc"), fit.dataset)
    assert again.topics().equals(merged.topics())
    with pytest.raises(ValueError, match="fit must have its topics as they were drawn"):
        merged.save_model(tmp_path / "model.npz")


def test_transform_adds_up(fit):
    new = fit.dataset.select(range(4))
    shares = fit.transform(new, num_sweeps=4, num_kept=2)
    found = fit.merge_topics([[0, 2]]).transform(new, num_sweeps=4, num_kept=2)
    np.testing.assert_allclose(found[0], shares[0] + shares[2])
    np.testing.assert_allclose(found[1], shares[1])


def test_one_of_several_chains_of_an_hdp(hdp):
    assert hdp.shown._chain_numbers() == [0]
    old = hdp.shown.alignment.in_chains.share[:, 1]
    assert np.isnan(old).sum() == 1  # of three topics
    (lacking,) = np.flatnonzero(np.isnan(old)).tolist()
    first, second = (k for k in range(3) if k != lacking)
    shares = hdp.document_topics()
    for group, there in (([first, second], True), ([first, lacking], False)):
        merged = hdp.merge_topics([group])
        at = order_of(merged).index(group)
        assert at == 0
        found, table = merged.document_topics(), merged.topics()
        np.testing.assert_allclose(found[at], shares[group[0]] + shares[group[1]], rtol=1e-5)
        np.testing.assert_allclose(found.sum(axis=1), shares.sum(axis=1), rtol=1e-5)
        # a chain without one of the parts does not have the merged topic
        assert table["other_chains"][at] == there
        np.testing.assert_allclose(table["lowest_share"][at], old[group].sum())
        assert merged.of_chain(0).topics().equals(table)
        assert len(merged.of_chain(1).topics()) == 2
    assert "Chain 0: shares and intervals are within this chain. Topics are merged" in " ".join(
        merged.plot_topic_words().flat[0].get_figure().get_supxlabel().split()
    )


def test_effects_in_other_chains_are_summed(hdp):
    columns = {"x": np.arange(24.0)}
    old = hdp.effects(columns)
    lowest = old.pivot(index="term", columns="topic", values="lowest_effect")
    (lacking,) = np.flatnonzero(lowest.isna().any()).tolist()
    first, second = (k for k in range(3) if k != lacking)
    merged = hdp.merge_topics([[first, second]]).effects(columns)
    at = merged[merged["topic"] == 0]
    assert at["other_chains"].tolist() == [1, 1]
    np.testing.assert_allclose(at["lowest_effect"], lowest[first] + lowest[second])
    merged = hdp.merge_topics([[first, lacking]]).effects(columns)
    assert merged["other_chains"][merged["topic"] == 0].tolist() == [0, 0]


def test_shares_are_summed_where_documents_switch_topics(corpus, no_sweeps):
    with no_sweeps():
        fit = bnp.fit(
            bnp.IBPCompoundDirichlet(max_topics=8), corpus, num_warmup=2, num_samples=2,
            num_chains=1, keep_states=1, init_topics=4, progress=False,
        )  # fmt: skip
    merged = fit.merge_topics([[0, 2]])
    at = order_of(merged).index([0, 2])
    for old, new in (
        (fit.document_topics(), merged.document_topics()),
        (x.transform(corpus.select(range(3)), num_sweeps=2, num_kept=1) for x in (fit, merged)),
    ):
        np.testing.assert_allclose(new[at], old[0] + old[2], rtol=1e-5)
        np.testing.assert_allclose(new.sum(axis=1), old.sum(axis=1), rtol=1e-5)


ARGUMENTS = {
    "coherence": {"measure": "npmi"},
    "find_topics": {"query": ["court"]},
    "representative_documents": {"topic": 1},
    "with_labels": {"labels": {1: "law"}},
    "merge_topics": {"groups": [[0, 1]]},
    "drop_topics": {"topics": [1]},
    "of_chain": {"chain": 0},
}
LEFT_OUT = {
    "load", "save_model", "stacked", "chain_weights", "prior_predictive",
    "posterior_predictive", "log_likelihood", "plot_history", "plot_tempering", "pyldavis",
}  # fmt: skip


@pytest.mark.parametrize("change", ["merged", "dropped"])
def test_all_methods(fit, change, tmp_path):
    merged = fit.merge_topics([[0, 2]]) if change == "merged" else fit.drop_topics([0])
    corpus = merged.dataset
    x = np.linspace(0, 1, corpus.num_docs)
    given = ARGUMENTS | {
        "find_topics": {"query": list(corpus.vocabulary[:2])},
        "effects": {"covariates": {"x": x}},
        "expected_shares": {"covariates": {"x": x}, "by": "x"},
        "plot_effects": {"effects": "x", "covariates": {"x": x}, "by": "x"},
        "topics_over_time": {"time": np.arange(corpus.num_docs) % 3},
        "plot_topics_over_time": {"time": np.arange(corpus.num_docs) % 3},
        "match": {"data": corpus},
        "transform": {"corpus": corpus, "num_sweeps": 2, "num_kept": 1},
        "document_completion": {"corpus": corpus, "num_sweeps": 2, "num_kept": 1},
        "left_to_right": {"corpus": corpus.select(range(2)), "num_particles": 2},
        "empirical_likelihood": {"corpus": corpus.select(range(2)), "num_draws": 20},
        "evaluate": {"score": "npmi", "data": corpus},
        "save": {"path": tmp_path / "draws.nc"},
        "report": {"path": tmp_path / "report.html"},
    }
    with pytest.raises(ValueError, match="got those of topics that are merged or left out other"):
        merged.plot_effects(fit.effects({"x": x}))
    assert merged.plot_effects(merged.effects({"x": x})) is not None
    called = []
    for name in dir(bnp.TopicFit):
        method = getattr(merged, name, None) if not name.startswith("_") else None
        if inspect.ismethod(method) and name not in LEFT_OUT:
            assert method(**given.get(name, {})) is not None, name
            called.append(name)
    assert len(called) > 35
    assert "0 was 0 + 2" in (tmp_path / "report.html").read_text() or change == "dropped"
    axes = merged.plot_topic_words()
    caption = np.asarray(axes, object).flat[0].get_figure().get_supxlabel()
    assert "Topics are merged or left out for display." in " ".join(caption.split())


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            [[0, 1], [1, 2]],
            r"groups must have each topic once at most, got topic 1 twice in .*: write it once",
        ),
        ([[0, 0]], "groups must have each topic once at most, got topic 0 twice"),
        ([[0, 3]], r"groups\[0\] must be a list of numbers from 0 to 2"),
        ([[0, 1], [2]], r"groups must be lists of two topics or more, such as \[\[0, 3\]\]"),
        ([], "groups must be lists of two topics or more"),
    ],
)
def test_bad_groups(fit, groups, message):
    with pytest.raises(ValueError, match=message):
        fit.merge_topics(groups)


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (
            [0, 1, 2],
            r"must leave at least one of the 3 topics, got all of them in \[0, 1, 2\]: take out",
        ),
        ([1, 1], r"must have each number once, got 1 twice in \[1, 1\]: leave one of them out"),
        ([3], "topics must be a list of numbers from 0 to 2"),
        ([], "topics must be a list of numbers from 0 to 2, with at least one"),
    ],
)
def test_bad_topics(fit, topics, message):
    with pytest.raises(ValueError, match=message):
        fit.drop_topics(topics)
