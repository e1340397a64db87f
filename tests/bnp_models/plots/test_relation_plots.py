import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bnp_models.plots import relation_plots


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def pairs(num_topics=5, numbers=None):
    """Correlations in which topic 0 goes with all others, 1 with 2 uncertainly."""
    numbers = range(num_topics) if numbers is None else numbers
    rows = []
    for i, j in itertools.combinations(numbers, 2):
        r = 0.3 if i == 0 else 0.2 if (i, j) == (1, 2) else -0.2
        rows.append((i, j, r, r - (0.25 if (i, j) == (1, 2) else 0.05), r + 0.05))
    return pd.DataFrame(rows, columns=["topic", "other", "correlation", "lower", "upper"])


def places(count, spread=1.0):
    points = spread * np.random.default_rng(0).normal(size=(count, 2))
    share = np.random.default_rng(1).dirichlet(np.ones(count))
    table = pd.DataFrame(points, columns=["x", "y"]).assign(prevalence=share)
    table.attrs["explained"] = 0.5
    return table


def test_lines_are_clear_and_large_correlations():
    ax = relation_plots.plot_topic_correlation(pairs())
    assert len(ax.get_lines()) == 4  # not that of 1 and 2, whose interval encloses zero
    centre = np.asarray(ax.collections[0].get_offsets())[0]
    for line in ax.get_lines():
        assert np.isclose(line.get_xydata(), centre).all(axis=1).any()
    ax = relation_plots.plot_topic_correlation(pairs(), min_correlation=0.3)
    assert not ax.get_lines()
    assert "correlation above 0.3" in ax.get_title(loc="left")


def test_joined_topics_are_nearer_than_others():
    joined = np.zeros((8, 8))
    for i, j in ((0, 4), (1, 5), (2, 6), (3, 7)):
        joined[i, j] = joined[j, i] = 0.4
    at = relation_plots._springs(joined)
    distance = np.sqrt(((at[:, None] - at) ** 2).sum(axis=-1))
    apart = distance[~np.eye(8, dtype=bool) & (joined == 0)]
    assert distance[joined > 0].max() < apart.min()
    np.testing.assert_array_equal(at, relation_plots._springs(joined))
    assert np.isfinite(relation_plots._springs(np.zeros((1, 1)))).all()


def test_areas_are_in_proportion_to_prevalence():
    """But for the smallest, whose circles have room for their numbers."""
    share = pd.Series([0.4, 0.3, 0.2, 0.1, 0.0001])
    ax = relation_plots.plot_topic_correlation(pairs(), prevalence=share)
    areas = ax.collections[0].get_sizes()
    np.testing.assert_allclose(areas[:4] / areas[0], share[:4] / 0.4)
    assert areas[4] > 4 * share[4] * areas[0]
    assert areas[4] < areas[3]
    with pytest.raises(ValueError, match=r"prevalence must have a share for each topic, none for"):
        relation_plots.plot_topic_correlation(pairs(), prevalence=share[:3])


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_circles_and_labels_do_not_overlap(spread):
    table = places(24, spread)
    labels = [f"first{k}, 二{k}" for k in range(24)]
    ax = relation_plots.plot_topic_map(table, labels=labels)
    ax.figure.canvas.draw()
    circles = ax.collections[0]
    at = ax.transData.transform(circles.get_offsets()) * 72 / ax.figure.dpi
    radius = np.sqrt(circles.get_sizes() / np.pi)
    apart = np.sqrt(((at[:, None] - at) ** 2).sum(axis=-1)) - radius - radius[:, None]
    assert apart[~np.eye(24, dtype=bool)].min() > 0
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert {str(k) for k in range(24)} <= set(boxes)
    named = {text: box for text, box in boxes.items() if "f" in text}
    assert len(named) == 24
    for one, other in itertools.combinations(named.values(), 2):
        assert not one.overlaps(other)
    for box in named.values():  # the nearest point of the label is outside of all circles
        corners = np.array([[box.x0, box.y0], [box.x1, box.y1]]) * 72 / ax.figure.dpi
        nearest = np.clip(at, *corners)
        assert (np.sqrt(((nearest - at) ** 2).sum(axis=1)) > radius - 0.5).all()
    assert "50% of their differences" in ax.get_title(loc="left")


def test_long_labels_are_cut():
    ax = relation_plots.plot_topic_map(places(3), labels=["x" * 99, "y", "z"])
    assert max(len(text.get_text()) for text in ax.texts) == 27
    assert any(text.get_text().endswith("x\N{HORIZONTAL ELLIPSIS}") for text in ax.texts)


def test_small_topics_are_not_drawn_but_counted():
    table = places(6)
    table["prevalence"] = [0.5, 0.4, 1e-5, 0.09, 2e-5, 0.01]
    ax = relation_plots.plot_topic_map(table)
    assert len(ax.collections[0].get_offsets()) == 4
    said = ax.figure.get_supxlabel()
    assert said == "Not drawn: 2 topics below 0.005%, together 0.003%."
    assert {text.get_text() for text in ax.texts} <= {"0", "1", "3", "5"}
    ax = relation_plots.plot_topic_correlation(pairs(6), prevalence=table["prevalence"])
    assert len(ax.collections[0].get_offsets()) == 4
    assert len(ax.get_lines()) == 3  # from topic 0 to 1, 3 and 5
    said = " ".join(ax.figure.get_supxlabel().split())
    assert "the interval lies above zero" in said
    assert said.endswith("Not drawn: 2 topics below 0.005%, together 0.003%.")


def test_numbers_are_those_of_the_table():
    ax = relation_plots.plot_topic_correlation(pairs(numbers=[3, 8, 11]))
    shown = {text.get_text() for text in ax.texts}
    assert shown == {"3", "8", "11"}
    with pytest.raises(ValueError, match="labels must have 3 entries"):
        relation_plots.plot_topic_correlation(pairs(numbers=[3, 8, 11]), labels=["one"])
    ax = relation_plots.plot_topic_map(places(9).loc[[7, 2]], labels=["seven", "two"])
    shown = " ".join(text.get_text() for text in ax.texts)
    assert "seven" in shown
    assert "two" in shown


def test_bad_arguments():
    with pytest.raises(ValueError, match="min_correlation must be a finite number of at least 0"):
        relation_plots.plot_topic_correlation(pairs(), min_correlation=-0.1)
    with pytest.raises(ValueError, match="table must be one from topic_relations"):
        relation_plots.plot_topic_map(pairs())
    with pytest.raises(ValueError, match="table must have rows"):
        relation_plots.plot_topic_correlation(pairs()[:0])
