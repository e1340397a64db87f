"""Pictures draw every text from data as it is written, though some signs begin formulas."""

from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from bnp_models.plots import (
    chain_plots,
    contrast_plots,
    factor_plots,
    heat_maps,
    panels,
    relation_plots,
    topic_plots,
)
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.factor_states import Effects

NAMES = ["$AAPL_$TSLA", "$5 to $9", r"\$ of \frac{$", "$_$"]  # each is a formula, or none


@pytest.fixture(autouse=True)
def no_formulas():
    """Refuse that matplotlib reads a text as a formula."""
    with mock.patch("matplotlib.mathtext.MathTextParser.parse", side_effect=AssertionError):
        yield
    plt.close("all")


def table(**columns):
    """Return a table of four topics in four groups, whose values are all shares."""
    more = dict.fromkeys(("prevalence", "share", "shared", "probability", "effect"), 0.25)
    more |= {"lower": 0.1, "upper": 0.4, "distance": 0.2, "correlation": 0.3, "log_ratio": 0.2}
    topic, name = np.divmod(np.arange(16), 4)
    names = np.array(NAMES, object)
    more |= {"topic": topic, "other": (topic + 1 + name) % 5, "middle": 2000.0 + name}
    more |= dict.fromkeys(("group", "word", "term"), names[name])
    return pd.DataFrame(more | columns)


def draws():
    x = np.random.default_rng(0).normal(size=(2, 20, 4))
    groups = {"posterior": {"share": x}, "sample_stats": {"lp": x[..., 0]}}
    return make_data(groups, dims={"share": ["group"]}, coords={"group": NAMES})


def sharing():
    one = table().rename(columns={"group": "source"})
    return one.assign(other=np.array(NAMES, object)[one["topic"]])


def contrast():
    columns = {"distance": 0.5, "distance_lower": 0.4, "distance_upper": 0.6}
    common = pd.DataFrame(columns | {"common": NAMES, **dict.fromkeys(NAMES, "x")})
    return common


EFFECTS = Effects(*np.full((3, 2, 4), 0.5))
PICTURES = {
    "topic words": lambda: topic_plots.plot_topic_words(table(), titles=NAMES),
    "prevalence": lambda: topic_plots.plot_prevalence(table(words="$a_, $b^")),
    "effects": lambda: topic_plots.plot_effects(table(), labels=NAMES),
    "shares": lambda: topic_plots.plot_expected_shares(
        table(label="x", difference=0.0)[
            ["topic", "label", "group", "word", "share", "lower", "upper", "difference"]
        ],
        labels=NAMES,
    ),
    "time": lambda: topic_plots.plot_topics_over_time(table(), labels=NAMES),
    "calibration": lambda: topic_plots.plot_calibration(
        table(predicted=0.5, observed=0.5, low=0.4, high=0.6), NAMES[0]
    ),
    "groups": lambda: heat_maps.plot_prevalence_by_group(table(), labels=NAMES),
    "shared topics": lambda: heat_maps.plot_sharing(table(), labels=NAMES),
    "sources": lambda: factor_plots.plot_sharing(sharing()),
    "factors": lambda: factor_plots.plot_factors(EFFECTS, titles=NAMES[:2], feature_names=NAMES),
    "correlation": lambda: relation_plots.plot_topic_correlation(
        table(), labels=[*NAMES, "$e$"], prevalence=dict.fromkeys(range(5), 0.2)
    ),
    "map": lambda: relation_plots.plot_topic_map(
        pd.DataFrame({"x": np.arange(4.0), "y": 0.0, "prevalence": 0.25}), labels=NAMES
    ),
    "contrast": lambda: contrast_plots.plot_contrast(contrast(), table()),
    "distances": lambda: contrast_plots.plot_distances(contrast()),
    "traces": lambda: chain_plots.plot_traces(draws()),
    "ranks": lambda: chain_plots.plot_ranks(draws()),
    "constants": lambda: chain_plots.plot_traces(
        make_data({"posterior": {"$a_{$": np.ones((2, 3))}})
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_is_a_formula(name):
    figure = np.asarray(PICTURES[name](), object).flat[0].figure
    figure.canvas.draw()
    shown = [text._preprocess_math(text.get_text()) for text in figure.findobj(Text)]
    assert "$" in "".join(text for text, _ in shown)
    assert not any(formula for _, formula in shown)
    assert r"\$A" not in "".join(text for text, _ in shown)


@pytest.mark.parametrize("text", NAMES)
def test_texts_are_shown_as_written(text):
    drawn = plt.figure().text(0, 0, panels.as_written(text))
    assert drawn._preprocess_math(drawn.get_text()) == (text, False)


def test_a_caption_that_grows():
    ax = topic_plots.plot_calibration(table(predicted=0.5, observed=0.5, low=0.4, high=0.6), "x")
    for text in NAMES:
        panels.caption(ax, text * 3)
    caption = ax.figure._supxlabel
    shown, formula = caption._preprocess_math(caption.get_text())
    assert not formula
    assert "".join(shown.split()) == "".join("".join(3 * text for text in NAMES).split())


def test_the_legend_shows_names_that_begin_with_a_line():
    """Matplotlib takes such a name as that of a line without one."""
    ax = topic_plots.plot_topics_over_time(table(), labels=["_a", "b", "_$c$", "d"])[0]
    shown = [text.get_text().replace("\\", "") for text in ax.get_legend().get_texts()]
    assert shown == ["_a", "b", "_$c$", "d"]
