import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bnp_models.plots import chain_plots, heat_maps, topic_plots
from bnp_models.posterior.alignment import Alignment
from bnp_models.posterior.arviz_data import make_data


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def draws(chains=4, size=60):
    rng = np.random.default_rng(0)
    return make_data(
        {
            "posterior": {
                "num_topics_used": rng.integers(8, 13, (chains, size)),
                "alpha": rng.gamma(3.0, size=(chains, size)),
            },
            "sample_stats": {"lp": rng.normal(-1e7, 50, (chains, size))},
        }
    )


def words(num_topics=3, num_words=4, suffix=""):
    topic = np.repeat(np.arange(num_topics), num_words)
    rank = np.tile(np.arange(num_words), num_topics)
    probability = 0.2 / (1 + rank)
    return pd.DataFrame(
        {
            "topic": topic,
            "rank": rank,
            "word": [f"word-{k}-{r}{suffix}" for k, r in zip(topic, rank, strict=True)],
            "probability": probability,
            "lower": probability * 0.9,
            "upper": probability * 1.5,
        }
    )


def topics(num_topics=4):
    share = np.linspace(0.4, 0.1, num_topics)
    return pd.DataFrame(
        {
            "words": [f"first{k}, second{k}, third{k}, fourth{k}" for k in range(num_topics)],
            "prevalence": share,
            "lower": share - 0.05,
            "upper": share + 0.05,
        }
    )


def by_group(groups, num_topics=3):
    return pd.DataFrame(
        {
            "group": np.repeat(groups, num_topics),
            "topic": np.tile(np.arange(num_topics), len(groups)),
            "prevalence": np.linspace(0, 1, len(groups) * num_topics),
            "lower": np.nan,
            "upper": np.nan,
        }
    )


def texts(ax):
    return [text.get_text() for text in ax.texts]


def assert_all_text_is_inside(figure):
    """Nothing that was written is cut off at the edge of the picture."""
    figure.canvas.draw()
    boxes = [figure.get_tightbbox().transformed(figure.dpi_scale_trans)]
    boxes += [ax.get_legend().get_window_extent() for ax in figure.axes if ax.get_legend()]
    for box in boxes:
        assert min(box.x0, box.y0) > -1
        assert box.x1 < figure.bbox.x1 + 1
        assert box.y1 < figure.bbox.y1 + 1


def overlap(ax):
    """Whether neighbouring labels of the x axis lie on one another."""
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    return any(a.x1 > b.x0 for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize("chains", [1, 4, 7, 12])
def test_traces(chains):
    axes = chain_plots.plot_traces(draws(chains))
    assert axes.shape == (3, 2)
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["lp (nats)", "topics in use", "alpha"]
    assert axes[-1, 0].get_xlabel() == "kept draw"
    assert [len(ax.get_lines()) for ax in axes[:, 0]] == [chains] * 3
    legend = axes[0, 0].get_legend()
    assert (legend is not None) == (chains in (4, 7))
    assert_all_text_is_inside(axes[0, 0].figure)
    lp = [label.get_text() for label in axes[0, 0].get_yticklabels()]
    assert all(len(text) >= len("-9999950") for text in lp)  # whole numbers without an offset


def test_traces_of_chosen_and_extra_quantities_on_given_axes():
    given = plt.subplots(2, 2)[1]
    extra = {"largest": np.random.default_rng(0).random((4, 60))}
    axes = chain_plots.plot_traces(draws(), var_names=("lp", "largest"), extra=extra, axes=given)
    assert axes[1, 0] is given[1, 0]
    with pytest.raises(ValueError, match=r"axes must have shape \(3, 2\), got \(2, 2\)"):
        chain_plots.plot_traces(draws(), axes=given)


def with_constants(size=30, **more):
    rng = np.random.default_rng(0)
    posterior = {"k": np.full((2, size), 5), "x": np.full((2, size), 0.25)}
    return make_data({"posterior": posterior | {"y": rng.random((2, size))} | more})


def test_constants_have_no_panel_and_are_named():
    data = with_constants()
    traces, ranks = chain_plots.plot_traces(data), chain_plots.plot_ranks(data)
    assert traces.shape == (1, 2)
    assert traces[0, 0].get_ylabel() == "y"
    assert [ax.get_title() for ax in ranks] == ["y"]
    for axes in (traces, ranks):
        figure = axes.flat[0].figure
        said = " ".join(figure.get_supxlabel().split())
        assert said == "Constant in all chains, not drawn: k = 5, x = 0.25."
        assert_all_text_is_inside(figure)
    assert chain_plots.plot_traces(draws())[0, 0].figure.get_supxlabel() == ""


def test_a_chain_that_is_constant_alone_is_drawn():
    apart = np.repeat([[1.0], [2.0]], 30, axis=1)
    axes = chain_plots.plot_traces(with_constants(apart=apart), var_names=["apart", "x"])
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["apart"]


def test_many_constants_are_counted():
    data = with_constants(**{f"fixed{i}": np.full((2, 30), i) for i in range(20)})
    figure = chain_plots.plot_traces(data)[0, 0].figure
    said = " ".join(figure.get_supxlabel().split())
    assert "fixed9 = 9" in said
    assert said.endswith("and 10 more, see convergence().")
    assert_all_text_is_inside(figure)


def test_only_constants_become_a_sentence():
    data = with_constants()
    names = ["k", "x"]
    pictures = (
        (chain_plots.plot_traces(data, var_names=names), "k = 5, x = 0.25"),
        (chain_plots.plot_ranks(data, var_names=names), "k = 5, x = 0.25"),
        (chain_plots.plot_number(data, var_name="k"), "k = 5"),
    )
    for axes, values in pictures:
        (said,) = texts(axes.flat[0])
        assert " ".join(said.split()) == f"The same in all draws of all chains: {values}."
        assert not axes.flat[0].get_lines()
        assert not axes.flat[0].axison
        assert_all_text_is_inside(axes.flat[0].figure)


def test_given_panels_of_constants_say_it():
    given = plt.subplots(3, 2, layout="constrained")[1]
    axes = chain_plots.plot_traces(with_constants(), axes=given)
    assert axes[2, 0] is given[2, 0]
    assert [len(ax.get_lines()) for ax in axes[:, 0]] == [0, 0, 2]
    assert "k = 5." in texts(axes[0, 0])[0]
    assert axes[2, 0].get_legend() is not None
    ranks = chain_plots.plot_ranks(with_constants(), axes=plt.subplots(1, 3)[1])
    assert "x = 0.25." in " ".join(texts(ranks[1])[0].split())


def shown_ticks(axis):
    """Return the labels inside the limits of an axis, as numbers."""
    axis.axes.figure.canvas.draw()
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for at, label in pairs if low <= at <= high]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 13, 25, 12_000])
def test_axes_of_draws_have_whole_and_readable_numbers(size):
    data = draws(2, size)
    traces = chain_plots.plot_traces(data)
    trace, bars = chain_plots.plot_number(data)
    whole = [traces[-1, 0].xaxis, traces[1, 0].yaxis, trace.xaxis, trace.yaxis, bars.xaxis]
    for axis in whole:
        labels = shown_ticks(axis)
        assert labels
        assert all(label.replace(",", "").isdecimal() for label in labels)
    for ax in (traces[-1, 0], trace, bars):
        assert not overlap(ax)
    if size == 12_000:
        assert "10,000" in shown_ticks(trace.xaxis)
    shares = [float(label.removesuffix("%")) for label in shown_ticks(bars.yaxis)]
    steps = {f"{step:.6g}".strip("0.") for step in np.diff(shares)}
    assert len(steps) == 1
    assert steps <= {"1", "2", "5"}


@pytest.mark.parametrize("num_draws", [60, 75, 61, 1000])
def test_bars_of_ranks_hold_the_same_number_of_ranks(num_draws):
    for ax in chain_plots.plot_ranks(draws(4, num_draws)):
        edges = next(p for p in ax.patches if hasattr(p, "get_data")).get_data().edges
        assert np.all(edges == np.round(edges))
        assert not overlap(ax)


def test_whole_numbers_have_bars_of_their_own():
    data = with_constants(total=np.random.default_rng(0).integers(3, 9, (2, 30)) * 1.0)
    right = chain_plots.plot_traces(data, var_names=["total"])[0, 1]
    edges = np.unique(np.concatenate([patch.get_xy()[:, 1] for patch in right.patches]))
    assert edges.tolist() == (np.arange(3, 10) - 0.5).tolist()


def test_ranks_count_every_draw_once():
    axes = chain_plots.plot_ranks(draws(), bins=10)
    assert axes.shape == (3,)
    for ax in axes:
        steps = np.stack(
            [patch.get_data().values for patch in ax.patches if hasattr(patch, "get_data")]
        )
        np.testing.assert_array_equal(steps.sum(0), np.full(10, 24))  # all chains: 240 / 10
        np.testing.assert_array_equal(steps.sum(1), np.full(4, 60))  # all bins
        assert ax.get_ylim()[0] == 0
        assert ax.get_ylim()[1] > steps.max()
    assert_all_text_is_inside(axes[0].figure)


def test_ranks_need_chains_and_bins():
    with pytest.raises(ValueError, match="data must have two chains or more to compare"):
        chain_plots.plot_ranks(draws(1))
    with pytest.raises(ValueError, match="bins must be an integer of at least 2, got 1"):
        chain_plots.plot_ranks(draws(), bins=1)


@pytest.mark.parametrize("chains", [1, 4, 12])
def test_num_topics(chains):
    trace, bars = chain_plots.plot_number(draws(chains))
    assert trace.get_ylabel() == bars.get_xlabel() == "topics in use"
    heights = np.array([bar.get_height() for bar in bars.patches])
    assert heights.sum() == pytest.approx(chains)  # the shares of each chain sum to one
    assert_all_text_is_inside(trace.figure)


def test_many_numbers_of_topics_become_lines():
    counts = np.random.default_rng(0).integers(50, 200, (4, 100))
    bars = chain_plots.plot_number(make_data({"posterior": {"num_topics_used": counts}}))[1]
    assert len(bars.patches) == 4
    for line in bars.patches:
        corners = line.get_xy()  # of the steps, from the left
        edges, heights = corners[::2, 0], corners[1:-1:2, 1]
        assert heights.sum() == pytest.approx(1)
        assert set(np.diff(edges)) == {4}


def test_topic_words_are_complete_and_each_topic_has_its_scale():
    table = words(num_topics=7, num_words=10, suffix=" of the international agency")
    flat = table["topic"] == 6
    table.loc[flat, ["probability", "lower", "upper"]] *= 0.01
    axes = topic_plots.plot_topic_words(table, titles=[f"topic {k} (3%)" for k in range(7)])
    assert axes.shape == (7,)
    for k, ax in enumerate(axes):
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == list(table.loc[table["topic"] == k, "word"])
        assert ax.get_title(loc="left") == f"topic {k} (3%)"
        assert ax.get_xlim()[0] == 0
        top = table.loc[table["topic"] == k, "upper"].max()
        assert top < ax.get_xlim()[1] < 1.1 * top
        assert ax.yaxis_inverted()
    assert [ax.get_xlabel() for ax in axes] == [""] * 3 + ["probability"] * 4
    assert_all_text_is_inside(axes[0].figure)


def test_long_words_and_titles_are_cut():
    table = words(1, 2, suffix="y" * 99)
    (ax,) = topic_plots.plot_topic_words(table, titles=["a title that somebody made " * 4])
    assert {len(label.get_text()) for label in ax.get_yticklabels()} == {39}
    title = ax.get_title(loc="left").split("\n")
    assert len(title) == 2
    assert max(map(len, title)) <= topic_plots.TITLE
    assert title[1].endswith("\N{HORIZONTAL ELLIPSIS}")
    assert_all_text_is_inside(ax.figure)


def test_topic_words_of_some_topics():
    table = words()
    (ax,) = topic_plots.plot_topic_words(table[table["topic"] == 2])
    assert ax.get_title(loc="left") == "topic 2"
    given = plt.subplots(1, 3)[1]
    assert topic_plots.plot_topic_words(table, axes=given)[2] is given[2]
    for options, message in (
        ({"titles": ["one"]}, "titles must have 3 entries"),
        ({"num_columns": 0}, "num_columns must be an integer of at least 1, got 0"),
        ({"axes": given[:2]}, r"axes must have shape \(3,\), got \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            topic_plots.plot_topic_words(table, **options)
    with pytest.raises(ValueError, match="table must have rows"):
        topic_plots.plot_topic_words(table[:0])


def test_prevalence():
    ax = topic_plots.plot_prevalence(topics(), num_words=2)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[1] == "1: first1, second1"
    assert ax.get_xlabel() == "share of tokens"
    assert_all_text_is_inside(ax.figure)
    given = plt.subplots()[1]
    assert topic_plots.plot_prevalence(topics(), ax=given) is given


def test_groups_that_are_alike_have_no_marks():
    """The mean of equal shares is not this share, but for rounding."""
    table = by_group([str(g) for g in range(11)], 6)
    for name in ("prevalence", "lower", "upper"):
        table[name] = table["topic"].map(dict(enumerate((0.1, 0.07, 0.13, 0.3, 0.011, 0.7))))
    signs = {heat_maps.ABOVE, heat_maps.BELOW}
    assert not signs & set("".join(texts(heat_maps.plot_prevalence_by_group(table))))
    table.loc[0, ["prevalence", "lower", "upper"]] = 0.2
    assert signs <= set("".join(texts(heat_maps.plot_prevalence_by_group(table))))


def test_prevalence_by_group_keeps_the_order_of_groups_and_topics():
    ax = heat_maps.plot_prevalence_by_group(by_group(["b", "a", "c"]))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a", "c"]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"topic {k}" for k in range(3)]
    assert texts(ax) == ["0", "38%", "75%", "12%", "50%", "88%", "25%", "62%", "100%"]
    assert_all_text_is_inside(ax.figure)
    assert not overlap(ax)


def test_long_group_names_are_not_cut_off():
    names = [f"conference on information systems {year}" for year in range(2000, 2012)]
    ax = heat_maps.plot_prevalence_by_group(
        by_group(names, 20), labels=[f"{k}: retrieval, representation" for k in range(20)]
    )
    assert_all_text_is_inside(ax.figure)
    with pytest.raises(ValueError, match="labels must have 20 entries"):
        heat_maps.plot_prevalence_by_group(by_group(names, 20), labels=["one"])


def test_a_group_without_tokens_is_a_dash():
    table = by_group(["a", "b"])
    table.loc[table["group"] == "b", "prevalence"] = np.nan
    ax = heat_maps.plot_prevalence_by_group(table)
    assert texts(ax)[1::2] == ["\N{EN DASH}"] * 2  # topic 0 has no tokens in group a


def test_narrow_cells_hold_no_numbers():
    ax = plt.subplots(figsize=(2, 2))[1]
    heat_maps.plot_prevalence_by_group(by_group([str(k) for k in range(20)]), ax=ax)
    assert texts(ax) == []


def test_topic_similarity_marks_the_reference_and_missing_topics():
    alignment = Alignment(
        reference=2,
        number=np.array([[0, -1], [0, -1], [0, 1]]),
        similarity=np.array([[0.5, np.nan], [0.7, np.nan], [1, 1]]),
        sizes=np.array([[2, 0], [2, 0], [1, 1]]),
        chain=np.array([0, 0, 1]),
        draw=np.array([0, 1, 0]),
    )
    ax = heat_maps.plot_topic_similarity(
        alignment, labels=topic_plots.short_labels(topics(2), num_words=1)
    )
    assert [t.get_text() for t in ax.get_xticklabels()] == ["chain 0", "chain 1\n(reference)"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0: first0", "1: first1"]
    dash, one = "\N{EN DASH}", "1.00\n1.00\N{EN DASH}1.00"
    assert texts(ax) == [f"0.60\n0.51{dash}0.69", one, dash, one]
    assert "90% interval over the states of the chain" in ax.figure.get_supxlabel()
    assert_all_text_is_inside(ax.figure)
    assert not overlap(ax)


def with_intervals(num_groups, num_topics=3):
    table = by_group([f"g{k}" for k in range(num_groups)], num_topics)
    share = table["prevalence"] / 2
    table = table.assign(prevalence=share, lower=0.9 * share, upper=1.1 * share, share=share)
    table["probability"] = np.linspace(0.5, 1, len(table))
    table.attrs["interval"] = 0.8
    return table


def test_cells_show_their_intervals_if_there_is_room():
    ax = heat_maps.plot_prevalence_by_group(with_intervals(2))
    assert texts(ax)[1] == "30%\n27\N{EN DASH}33%"
    assert ax.figure.get_supxlabel() == "Second line: 80% interval."
    assert_all_text_is_inside(ax.figure)
    ax = heat_maps.plot_sharing(with_intervals(2))
    assert texts(ax)[-1] == "1.00\n45\N{EN DASH}55%"
    assert_all_text_is_inside(ax.figure)


def test_cells_without_room_are_marked_if_they_are_certain():
    table = with_intervals(20)
    ax = heat_maps.plot_prevalence_by_group(table)  # 60 cells, the most that hold numbers
    shown = np.array(texts(ax)).reshape(3, 20)
    assert all(text.endswith("▼") for text in shown[:, 0])
    assert all(text.endswith("▲") for text in shown[:, -1])
    assert not any(text.endswith(("▲", "▼")) for text in shown[:, 10])  # near the mean
    assert ax.figure.get_supxlabel().startswith("▲ ▼: the 80% interval lies above or below")
    assert_all_text_is_inside(ax.figure)
    ax = heat_maps.plot_sharing(table)
    certain = table.pivot(index="topic", columns="group", values="probability")
    certain = certain[[f"g{k}" for k in range(20)]].to_numpy() >= 0.95
    marked = np.array([text.endswith("●") for text in texts(ax)]).reshape(3, 20)
    np.testing.assert_array_equal(marked, certain)
    assert "●: the probability is at least 0.95" in ax.figure.get_supxlabel()


def test_many_cells_have_marks_only_and_like_is_beside_like():
    table = with_intervals(21)
    alike = table["group"].isin(["g3", "g11", "g19"])
    for name in ("prevalence", "lower", "upper"):
        table.loc[alike, name] = [0.9, 0.0, 0.4] * 3
    ax = heat_maps.plot_prevalence_by_group(table)
    assert set(texts(ax)) <= {heat_maps.ABOVE, heat_maps.BELOW}
    groups = [label.get_text() for label in ax.get_xticklabels()]
    assert sorted(groups) == sorted(table["group"].unique())
    at = sorted(groups.index(name) for name in ("g3", "g11", "g19"))
    assert np.diff(at).tolist() == [1, 1]
    assert "Like rows are beside one another" in ax.figure.get_supxlabel()
    topics = [int(label.get_text().split()[1]) for label in ax.get_yticklabels()]
    shown = np.asarray(ax.images[0].get_array())
    expected = table.pivot(index="topic", columns="group", values="prevalence")
    np.testing.assert_array_equal(shown, expected.loc[topics, groups])


def test_years_keep_their_order():
    years = [str(year) for year in range(1990, 2011)]
    table = with_intervals(21)
    table["group"] = np.repeat(np.random.default_rng(0).permutation(years), 3)
    ax = heat_maps.plot_prevalence_by_group(table)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(table["group"].unique())


def test_tiny_cells_have_marks_only():
    ax = plt.subplots(figsize=(5, 3), layout="constrained")[1]
    table = with_intervals(30)
    heat_maps.plot_sharing(table, ax=ax)
    assert texts(ax) == ["●"] * (table["probability"] >= 0.95).sum()
    assert "●: the probability is at least 0.95" in ax.get_xlabel()
    assert not overlap(ax)


def test_small_topics_are_counted():
    share = np.array([0.5, 4e-5, 0.3, 2e-5])
    table = topics(4).assign(prevalence=share, lower=share / 2, upper=2 * share)
    ax = topic_plots.plot_prevalence(table, num_words=1)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0: first0", "2: first2"]
    said = " ".join(ax.figure.get_supxlabel().split())
    assert said == "Not drawn: 2 topics below 0.005%, together 0.006%."
    assert_all_text_is_inside(ax.figure)
    ax = topic_plots.plot_prevalence(table.iloc[[1, 3]])  # nothing else was asked for
    assert len(ax.get_yticklabels()) == 2


def test_small_topics_of_groups_are_counted():
    table = with_intervals(2)
    for name in ("prevalence", "share"):
        table.loc[table["topic"] > 0, name] = 3e-5
    for draw in (heat_maps.plot_prevalence_by_group, heat_maps.plot_sharing):
        ax = draw(table)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["topic 0"]
        said = "Not drawn: 2 topics below 0.005% in every group, together at most 0.006%."
        assert " ".join(ax.figure.get_supxlabel().split()).endswith(said)
        assert_all_text_is_inside(ax.figure)
    table.loc[0, "prevalence"] = 0.4
    table.loc[1, "prevalence"] = 6e-5  # enough in one group
    assert len(heat_maps.plot_prevalence_by_group(table).get_yticklabels()) == 2


def test_small_topics_of_the_similarity_are_counted():
    alignment = Alignment(
        reference=0,
        number=np.array([[0, 1, 2], [0, 1, -1]]),
        similarity=np.array([[1.0, 1.0, 1.0], [0.9, 0.8, np.nan]]),
        sizes=np.array([[99_999, 1, 1], [100_000, 1, 0]]),
        chain=np.array([0, 1]),
        draw=np.array([0, 0]),
    )
    ax = heat_maps.plot_topic_similarity(alignment)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["topic 0"]
    said = " ".join(ax.figure.get_supxlabel().split())
    assert said.endswith("Not drawn: 2 topics below 0.005%, together 0.0015%.")
    part = alignment._replace(similarity=alignment.similarity[:, 1:])
    assert len(heat_maps.plot_topic_similarity(part).get_yticklabels()) == 2  # asked for


def test_small_topics_have_no_panel_of_words():
    table = words(num_topics=3)
    table.attrs["prevalence"] = [0.7, 1e-5, 0.2]
    axes = topic_plots.plot_topic_words(table, titles=["a", "b", "c"])
    assert [ax.get_title(loc="left") for ax in axes] == ["a", "c"]
    said = axes[0].figure.get_supxlabel()
    assert " ".join(said.split()) == "Not drawn: 1 topic below 0.005%: 0.001%."
    assert_all_text_is_inside(axes[0].figure)
    assert len(topic_plots.plot_topic_words(table, axes=plt.subplots(1, 3)[1])) == 3


@pytest.mark.slow
def test_pictures_of_many_sources_show_the_first_and_say_so():
    rng = np.random.default_rng(0)
    posterior = {"b_w": rng.gamma(2.0, size=(2, 20, 40))}
    data = make_data({"posterior": posterior}, dims={"b_w": ["source"]})
    axes = chain_plots.plot_traces(data)
    assert axes.shape == (30, 2)
    assert axes[0, 0].get_title(loc="left").endswith("(the first 30 of 40)")
    axes = chain_plots.plot_ranks(data)
    assert len(axes) == 30
    assert axes[-1].get_xlabel().endswith("\n(the first 30 of 40)")
    long = make_data({"posterior": {"sigma2_n[new instrument]": rng.random((2, 9))}})
    assert chain_plots.plot_traces(long)[0, 0].get_ylabel() == "sigma2_n\n[new instrument]"
    (row,) = chain_plots.plot_traces(data, var_names=["b_w[39]"])
    assert row[0].get_ylabel() == "b_w[39]"
