"""Labels of topics, and pictures as methods of a fit, whose draws are made up."""

import json
import sys
import types

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.base.author_model import DIMS
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.stacking import with_weights
from bnp_models.results import topic_tables
from bnp_models.results.document_tables import document_shares


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fit(z, corpus):
    """Three chains of four states, in which chain 2 has its slots in another order."""
    each = np.ones(z.shape[:2])
    groups = {
        "posterior": {"num_topics_used": 3 * each},
        "sample_stats": {"lp": np.arange(each.size, 0.0, -1.0).reshape(each.shape)},
        "states": {"z": z, "alpha": 0.3 * each, "beta": 0.1 * each},
    }
    model = bnp.LDA(4, alpha=0.3, beta=0.1)
    attrs = {"model": json.dumps(model.describe()), "data": corpus.digest}
    return bnp.TopicFit(model, corpus, make_data(groups, dims=DIMS, attrs=attrs))


@pytest.fixture
def x(corpus):
    return np.random.default_rng(0).normal(size=corpus.num_docs)


@pytest.mark.parametrize("chain", [None, 2])
def test_document_topics(fit, chain):
    fit = fit if chain is None else fit.of_chain(chain)
    table, one = fit.document_topics(), fit.shown
    expected = document_shares(one.topic_states, fit.dataset, one.alignment).mean
    np.testing.assert_array_equal(table, expected)
    assert table.index.tolist() == [f"article {d}" for d in range(24)]
    assert table.columns.tolist() == [0, 1, 2]


class TestLabels:
    def test_labels_of_ones_own(self, fit):
        plain = fit.topic_labels()
        assert "label" not in fit.topics()
        named = fit.with_labels({0: "finance", np.int64(2): "law, order"})
        assert named.topic_labels().tolist() == ["finance", plain[1], "law, order"]
        table = named.topics()
        assert table.columns[0] == "label"
        assert table["label"].tolist() == ["finance", "", "law, order"]
        pd.testing.assert_frame_equal(table.drop(columns="label"), fit.topics())
        assert fit.topic_labels().equals(plain)  # the first fit has none
        assert named.with_labels({1: "new"}).topics()["label"].tolist() == ["", "new", ""]
        assert "label" not in named.with_labels({}).topics()
        again = fit.with_labels(named.topic_labels())
        assert again.topic_labels().equals(named.topic_labels())

    def test_saved_and_loaded(self, fit, tmp_path):
        named = fit.with_labels({1: "Präsident & law"})
        found = bnp.Fit.load(named.save(tmp_path / "draws.nc"), fit.dataset)
        pd.testing.assert_frame_equal(found.topics(), named.topics())
        kept = json.loads(found.data.attrs["topic_labels"])
        assert kept == {"chains": [0, 1, 2], "labels": {"1": "Präsident & law"}}

    def test_the_text_shows_them(self, fit):
        """In a column of their own, which is not there without labels."""
        plain = fit.text(num_words=2).splitlines()
        long = "a very long label of a topic"
        named = fit.with_labels({0: "law\nand order", 2: long}).text(num_words=2).splitlines()
        assert len(named) == len(plain)
        first = next(i for i, line in enumerate(plain) if line.startswith("topic  "))
        start = plain[first].index("words")
        assert "label" not in "".join(plain)
        assert named[first] == plain[first][:start] + "label".ljust(24) + "  words"
        shown = ("law and order", "", "a very long label of ...")
        for i, label in enumerate(shown, first + 1):
            assert named[i] == plain[i][:start] + label.ljust(24) + "  " + plain[i][start:]

    def test_one_chain_has_no_labels(self, fit):
        named = fit.with_labels({0: "finance"})
        assert "label" not in named.of_chain(1).topics()
        assert "finance" not in set(named.of_chain(1).topic_labels())
        own = fit.of_chain(1).with_labels({0: "mine"})  # but may have its own
        assert own.topics()["label"][0] == "mine"

    def test_weights_of_chains_leave_labels(self, fit):
        named = fit.with_labels({0: "finance"})
        data = with_weights(named.data, np.array([0.2, 0.3, 0.5]), np.full(3, -1.0))
        assert bnp.TopicFit(fit.model, fit.dataset, data).topics()["label"].tolist()[0] == "finance"

    def test_wrong_labels(self, fit):
        with pytest.raises(ValueError, match="labels must have numbers of topics from 0 to 2"):
            fit.with_labels({3: "law"})

    def test_pictures_show_them(self, fit):
        named = fit.with_labels({1: "finance"})
        axes = named.plot_topic_words()
        share = [f"{x:.1%}" for x in named.topics()["prevalence"]]
        expected = [f"topic 0 ({share[0]})", f"1: finance ({share[1]})", f"topic 2 ({share[2]})"]
        assert [ax.get_title(loc="left") for ax in axes] == expected
        for draw in (named.plot_topic_similarity, named.plot_prevalence_by_group):
            labels = [label.get_text() for label in draw().get_yticklabels()]
            assert labels[1] == "1: finance"
            assert labels[0].startswith("0: said, ")
        for draw in (named.plot_topic_correlation, named.plot_topic_map):
            shown = {text.get_text().split(": ")[-1] for text in draw().texts}
            assert "finance" in shown

    def test_a_topic_has_one_name(self, fit, x):
        """Tables and pictures name topics without a label by the same words."""
        names = fit.topic_labels()
        assert [f"{k}: {name}" for k, name in names.items()] == [
            label.get_text() for label in fit.plot_topic_similarity().get_yticklabels()
        ]
        for k, words in fit.topics()["words"].items():
            assert words.startswith(names[k])
        table = fit.effects({"x": x}, num_draws=1)
        assert dict(zip(table["topic"], table["label"], strict=True)) == names.to_dict()
        two = {", ".join(name.split(", ")[:2]) for name in names}
        for draw in (fit.plot_topic_correlation, fit.plot_topic_map):
            shown = {" ".join(text.get_text().split()) for text in draw().texts}
            assert two <= shown


def texts(ax):
    return {text.get_text() for text in ax.texts}


class TestPictures:
    def test_correlation_and_map(self, fit):
        ax = fit.plot_topic_correlation(topics=[0, 2], min_correlation=0)
        assert len(ax.collections[0].get_offsets()) == 2
        assert {"0", "2"} <= texts(ax)
        assert len(fit.plot_topic_map(topics=[1]).collections[0].get_offsets()) == 1
        given = plt.subplots()[1]
        assert fit.plot_topic_map(ax=given) is given
        with pytest.raises(
            ValueError, match=r"topics must be two or more to be compared, got \[1\]"
        ):
            fit.plot_topic_correlation(topics=[1])
        with pytest.raises(ValueError, match="topics must be a list of numbers from 0 to 2"):
            fit.plot_topic_map(topics=[3])

    def test_effects(self, fit, x):
        table = fit.effects({"x": x, "y": x > 0}, num_draws=1)
        ax = fit.plot_effects(table, term="y[True]", topics=[2, 0])
        assert ax.get_title(loc="left") == "Effect of y[True] against False"
        labels = {label.get_text().split(":")[0] for label in ax.get_yticklabels()}
        assert labels == {"0", "2"}
        ax = fit.of_chain(1).plot_effects({"x": x})
        assert ax.get_title(loc="left") == "Effect of x"
        assert len(ax.get_yticklabels()) == 3
        with pytest.raises(ValueError, match="term must be one of"):
            fit.plot_effects(table, term="z")
        with pytest.raises(ValueError, match="covariates must have one row for each"):
            fit.plot_effects({"x": x[:3]})

    def test_expected_shares(self, fit, x):
        columns = {"x": x, "y": np.where(x > 0, "b", "a")}
        axes = fit.plot_effects("~ x * y", columns, by=["x", "y"], topics=[2, 0])
        assert [ax.get_title(loc="left")[:2] for ax in axes] == ["0:", "2:"]
        assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["a", "b"]
        table = fit.expected_shares("~ x", columns, by="x", num_draws=1)
        axes = fit.plot_effects(table)
        change = table.groupby("topic")["share"].agg(lambda v: v.max() - v.min())
        order = change.sort_values(ascending=False).index
        assert [ax.get_title(loc="left")[:2] for ax in axes] == [f"{k}:" for k in order]
        caption = " ".join(axes[0].figure.get_supxlabel().split())
        assert "Documents left out: 1 without tokens." in caption
        axes = fit.plot_effects("~ y", columns, by="y")
        labels = {label.get_text() for ax in axes for label in ax.get_yticklabels()}
        assert {"a", "b"} <= labels
        with pytest.raises(ValueError, match="by and covariates must be left out where effects"):
            fit.plot_effects(table, by="x")
        with pytest.raises(
            ValueError, match="ax must be left out for this picture, which has axes"
        ):
            fit.plot_effects(table, ax=plt.subplots()[1])
        with pytest.raises(
            ValueError, match="axes must be left out for this picture, which has ax"
        ):
            fit.plot_effects({"x": x}, axes=axes)
        of_one = fit.of_chain(1).expected_shares(columns, by="x", num_draws=1)
        with pytest.raises(ValueError, match=r"effects must be .* got those of chains \[1"):
            fit.of_chain(2).plot_effects(of_one)

    def test_effects_on_the_topics_of_another_chain(self, fit, x):
        """Their numbers and labels are not those of the topics of this fit."""
        of_one = fit.of_chain(1).effects({"x": x}, num_draws=1)
        assert of_one.attrs["chains"] == [1]
        fit.of_chain(1).plot_effects(of_one[of_one["topic"] < 2])
        for one in (fit.pooled(), fit.of_chain(2)):
            with pytest.raises(ValueError, match=r"effects must be .* got those of chains \[1"):
                one.plot_effects(of_one)

    def test_over_time(self, fit):
        (ax,) = fit.plot_topics_over_time(np.arange(24), topics=[2, 0], bins=3)
        assert [line.get_label()[:2] for line in ax.get_lines()] == ["0:", "2:"]
        assert len(ax.get_lines()[0].get_xdata()) == 3
        (ax,) = fit.of_chain(0).plot_topics_over_time(np.arange(24), bins=[0, 12, 30])
        assert len(ax.get_lines()) == 3


class TestPyLDAvis:
    def test_arguments(self, fit, monkeypatch):
        fake = types.ModuleType("pyLDAvis")
        fake.prepare = lambda **given: given
        monkeypatch.setitem(sys.modules, "pyLDAvis", fake)
        found = fit.pyldavis()
        arrays = topic_tables.pyldavis_arrays(fit)
        assert found.keys() == {*arrays, "sort_topics", "start_index"}
        assert (found["sort_topics"], found["start_index"]) == (False, 0)
        np.testing.assert_array_equal(found["topic_term_dists"], arrays["topic_term_dists"])

    def test_not_installed(self, fit, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyLDAvis", None)
        with pytest.raises(ImportError, match=r"pip install pyLDAvis"):
            fit.pyldavis()
