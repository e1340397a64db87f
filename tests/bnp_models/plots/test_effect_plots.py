import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from bnp_models.plots import topic_plots
from bnp_models.plots.panels import COLOURS


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def effects(num_topics=4):
    rows = []
    for k in range(num_topics):
        for t, term in enumerate(("intercept", "year", "party[left]")):
            effect = (-1) ** k * 0.01 * (k + t)
            rows.append((k, term, effect, effect - 0.015, effect + 0.015, 0.5))
    columns = ["topic", "term", "effect", "lower", "upper", "probability"]
    table = pd.DataFrame(rows, columns=columns)
    table.attrs["reference"] = {"party": "centre"}
    return table


def over_time(num_topics, middle=(1990.0, 2000.0, 2010.0)):
    count = len(middle)
    share = np.random.default_rng(0).dirichlet(np.ones(num_topics), count).ravel()
    return pd.DataFrame(
        {
            "middle": np.repeat(np.array(middle), num_topics),
            "topic": np.tile(np.arange(num_topics), count),
            "prevalence": share,
            "lower": 0.8 * share,
            "upper": 1.2 * share,
        }
    )


def test_effects_are_in_order_and_clear_ones_in_colour():
    ax = topic_plots.plot_effects(effects(), labels=list("abcd"))
    assert ax.get_title(loc="left") == "Effect of year"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a", "b", "d"]
    _, dots = ax.collections
    np.testing.assert_allclose(dots.get_offsets()[:, 0], [0.03, 0.01, -0.02, -0.04])
    assert [to_hex(colour) for colour in dots.get_facecolors()] == [
        COLOURS[0].lower(), to_hex("0.55"), COLOURS[0].lower(), COLOURS[0].lower()
    ]  # fmt: skip
    assert ax.yaxis_inverted()


def test_terms():
    ax = topic_plots.plot_effects(effects(), term="party[left]")
    assert ax.get_title(loc="left") == "Effect of party[left] against centre"
    assert ax.get_yticklabels()[0].get_text() == "topic 2"
    given = plt.subplots()[1]
    assert topic_plots.plot_effects(effects(), term="intercept", ax=given) is given
    with pytest.raises(ValueError, match=r"term must be one of \['intercept', 'party\[left\]'"):
        topic_plots.plot_effects(effects(), term="month")
    with pytest.raises(ValueError, match="labels must have 4 entries"):
        topic_plots.plot_effects(effects(), labels=["one"])
    with pytest.raises(ValueError, match=r"table must be one from topic_effects\.effects"):
        topic_plots.plot_effects(over_time(2))


def expected(num_topics, first, second=(0.5, 2.0)):
    rows = []
    for k in range(num_topics):
        for i, value in enumerate(first):
            for j, other in enumerate(second):
                share = 0.1 + 0.01 * k + 0.02 * i + 0.03 * j
                row = (k, f"word {k}", value, other, share, share - 0.05, share + 0.05, 0.0)
                rows.append(row)
    names = ["topic", "label", "first", "second", "share", "lower", "upper", "difference"]
    table = pd.DataFrame(rows, columns=names)
    table.attrs["left_out"] = {"empty": 1, "missing": 2000}
    return table


@pytest.mark.parametrize(
    "first",
    [(2000, 2001, 2005), pd.date_range("2020-01-01", periods=3, freq="YS")],
    ids=["years", "dates"],
)
def test_expected_shares_by_a_number_are_lines(first):
    table = expected(4, first)
    axes = topic_plots.plot_expected_shares(table, labels=list("abcd"))
    assert [ax.get_title(loc="left") for ax in axes] == list("abcd")
    assert len({ax.get_ylim() for ax in axes}) == 1
    for k, ax in enumerate(axes):
        assert len(ax.collections) == 2
        for line, other in zip(ax.get_lines(), (0.5, 2.0), strict=True):
            part = table[(table["topic"] == k) & (table["second"] == other)]
            np.testing.assert_array_equal(line.get_ydata(), part["share"])
    axes[0].figure.canvas.draw()
    year = "2002" if first[0] == 2000 else "2021"
    assert year in {label.get_text() for label in axes[-1].get_xticklabels()}
    legend = axes[2].get_legend()
    assert legend.get_title().get_text() == "second"
    assert [text.get_text() for text in legend.get_texts()] == ["0.5", "2"]
    assert legend.get_window_extent().x1 < axes[0].figure.bbox.x1 + 1
    said = " ".join(axes[0].figure.get_supxlabel().split())
    assert said == (
        "Expected shares by first, with intervals as bands. Documents left out: 2,000 with missing "
        "values, 1 without tokens."
    )


def test_expected_shares_of_levels_are_dots():
    table = expected(2, ("a", "$b$", "c"))
    one = table.loc[table["second"] == 2.0, [name for name in table if name != "second"]]
    for drawn, groups in ((table, 2), (one, 1)):
        axes = topic_plots.plot_expected_shares(drawn, num_columns=2)
        labels = [label.get_text() for label in axes[0].get_yticklabels()]
        assert labels == ["a", r"\$b\$", "c"]
        assert axes[0].yaxis_inverted()
        for k, ax in enumerate(axes):
            dots = ax.get_lines()
            assert len(dots) == len(ax.collections) == groups
            part = drawn[drawn["topic"] == k]
            found = np.sort(np.concatenate([line.get_xdata() for line in dots]))
            np.testing.assert_allclose(found, np.sort(part["share"]))
            places = np.concatenate([line.get_ydata() for line in dots])
            np.testing.assert_allclose(np.round(np.sort(places)), np.repeat(range(3), groups))
            assert len(set(places)) == 3 * groups
        assert (axes[1].get_legend() is None) == (groups == 1)
    given = plt.subplots(1, 2)[1]
    assert topic_plots.plot_expected_shares(one, axes=given)[1] is given[1]
    with pytest.raises(ValueError, match="labels must have 2 entries"):
        topic_plots.plot_expected_shares(one, labels=["one"])
    with pytest.raises(ValueError, match=r"table must be one from topic_effects.expected_shares"):
        topic_plots.plot_expected_shares(effects())


@pytest.mark.parametrize("num_topics", [1, 6])
def test_few_topics_share_a_panel(num_topics):
    table = over_time(num_topics)
    (ax,) = topic_plots.plot_topics_over_time(table)
    assert len(ax.get_lines()) == len(ax.collections) == num_topics
    for k, line in enumerate(ax.get_lines()):
        part = table[table["topic"] == k]
        np.testing.assert_array_equal(line.get_ydata(), part["prevalence"])
        assert line.get_label() == f"topic {k}"
    assert len({line.get_color() for line in ax.get_lines()}) == num_topics
    ax.figure.canvas.draw()
    assert "2000" in {label.get_text() for label in ax.get_xticklabels()}
    box = ax.get_legend().get_window_extent()
    assert box.x1 < ax.figure.bbox.x1 + 1


def test_many_topics_have_panels_of_one_scale():
    axes = topic_plots.plot_topics_over_time(over_time(7), labels=list("abcdefg"), num_columns=3)
    assert axes.shape == (7,)
    assert [ax.get_title(loc="left") for ax in axes] == list("abcdefg")
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert axes[0].get_legend() is None
    given = plt.subplots(1, 7)[1]
    assert topic_plots.plot_topics_over_time(over_time(7), axes=given)[3] is given[3]
    with pytest.raises(ValueError, match=r"axes must have shape \(7,\), got \(2,\)"):
        topic_plots.plot_topics_over_time(over_time(7), axes=given[:2])


def test_small_topics_are_counted():
    for num_topics in (5, 9):
        table = over_time(num_topics)
        table.loc[table["topic"] >= num_topics - 2, "prevalence"] = 2e-5
        axes = topic_plots.plot_topics_over_time(table)
        said = "Not drawn: 2 topics below 0.005% in every period, together at most 0.004%."
        assert " ".join(axes[0].figure.get_supxlabel().split()) == said
        assert len(axes) == (7 if num_topics == 9 else 1)
        assert sum(len(ax.get_lines()) for ax in axes) == num_topics - 2
    given = plt.subplots(3, 3)[1]
    assert len(topic_plots.plot_topics_over_time(table, axes=given)) == 9


def test_the_caption_says_what_is_in_colour():
    said = topic_plots.plot_effects(effects()).figure.get_supxlabel()
    assert said == "In colour: the interval does not enclose zero."


def test_terms_of_splines_are_not_drawn_by_default():
    table = effects()
    names = {"intercept": "intercept", "year": "s(year, df=3)[1]", "party[left]": "party[left]"}
    table["term"] = table["term"].map(names)
    title = topic_plots.plot_effects(table).get_title(loc="left")
    assert title == "Effect of party[left] against centre"
    splines = table[table["term"] != "party[left]"]
    title = topic_plots.plot_effects(splines).get_title(loc="left")
    assert title == "Effect of s(year, df=3)[1]"
    of_one = table[table["term"] == "intercept"]
    assert topic_plots.plot_effects(of_one).get_title(loc="left") == "Effect of intercept"


def test_axes_of_expected_shares_end_where_shares_do():
    """The intervals of a regression may go further."""
    table = expected(2, (2000, 2001, 2005))
    assert topic_plots.plot_expected_shares(table)[0].get_ylim()[1] < 0.5
    table["upper"] = 2.2
    assert topic_plots.plot_expected_shares(table)[0].get_ylim() == (0.0, 1.0)
    levels = topic_plots.plot_expected_shares(table.assign(first=list("abab") * 3))
    assert levels[0].get_xlim() == (0.0, 1.0)
    table["share"] += 1  # lines are drawn in whole
    assert topic_plots.plot_expected_shares(table)[0].get_ylim()[1] == table["share"].max()


def test_effects_that_other_chains_do_not_confirm_are_grey():
    table = effects()
    clear = table["term"].eq("year") & (table["lower"].gt(0) | table["upper"].lt(0))
    assert table.loc[clear, "topic"].tolist() == [1, 2, 3]
    counts = {1: (2, 2), 2: (2, 1), 3: (0, 0)}  # 2 is contradicted, 3 is in no other chain
    table["other_chains"] = [counts.get(k, (2, 2))[0] for k in table["topic"]]
    table["same_sign"] = [counts.get(k, (2, 2))[1] for k in table["topic"]]
    ax = topic_plots.plot_effects(table)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    lines, dots = ax.collections
    for drawn in (lines.get_colors(), dots.get_facecolors()):
        colours = dict(zip(shown, map(to_hex, drawn), strict=True))
        assert colours.pop("topic 1") == COLOURS[0].lower()
        assert set(colours.values()) == {to_hex("0.55")}
    said = " ".join(ax.figure.get_supxlabel().split())
    assert said == (
        "In colour: the interval does not enclose zero, at least one other chain has the topic, "
        "and the effect has the same sign in all of these chains."
    )


def test_effects_on_small_topics_are_left_out():
    table = effects()
    table.attrs["prevalence"] = [0.6, 2e-5, 0.39993, 1e-5]
    ax = topic_plots.plot_effects(table)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["topic 2", "topic 0"]
    said = " ".join(ax.figure.get_supxlabel().split())
    assert said.endswith("Not drawn: 2 topics below 0.005%, together 0.003%.")
    given = topic_plots.plot_effects(table, ax=plt.subplots()[1])
    assert len(given.get_yticklabels()) == 4
    some = table[table["topic"] == 1]  # asked for
    assert len(topic_plots.plot_effects(some).get_yticklabels()) == 1


def test_dates_and_periods_without_tokens():
    dates = pd.date_range("2020-01-01", periods=4, freq="YS").to_numpy()
    table = over_time(2, dates)
    table.loc[2:3, ["prevalence", "lower", "upper"]] = np.nan
    (ax,) = topic_plots.plot_topics_over_time(table)
    ax.figure.canvas.draw()
    assert "2021" in {label.get_text() for label in ax.get_xticklabels()}
    assert np.isnan(ax.get_lines()[0].get_ydata()[1])
