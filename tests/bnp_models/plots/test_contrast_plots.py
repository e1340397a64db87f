"""Pictures of topics that differ by group."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bnp_models.plots.contrast_plots import plot_contrast, plot_distances


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def tables(groups, num_topics=2, num_words=4, word="word", likeness=0.5):
    """Return a table of topics and one of words; group 1 does not have topic 1."""
    rows = [
        (k, group, f"{word}{k}{g}{r}", 1.0 + r, 0.5 + r / 2, 1.5 * (1 + r))
        for k in range(num_topics)
        for g, group in enumerate(groups)
        for r in range(num_words)
        if (k, g) != (1, 1)
    ]
    words = pd.DataFrame(rows, columns=["topic", "group", "word", "log_ratio", "lower", "upper"])
    distance = np.linspace(0.2, 0.7, num_topics)
    table = pd.DataFrame(
        {
            "likeness": likeness,
            "distance": distance,
            "distance_lower": distance - 0.1,
            "distance_upper": distance + 0.1,
            "common": [", ".join(f"common{r}{k}" for r in range(12)) for k in range(num_topics)],
            **dict.fromkeys(groups, ""),
        }
    )
    return table, words


def assert_readable(figure):
    """No text lies on another one or outside of the picture."""
    figure.canvas.draw()
    found = [text for ax in figure.axes for text in [*ax.texts, ax._left_title]]
    boxes = [(text.get_text(), text.get_window_extent()) for text in found if text.get_text()]
    for (name, a), (other, b) in itertools.combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
        assert apart, f"{name!r} is on {other!r}"
    for name, box in boxes:
        inside = box.x0 > -1 and box.y0 > -1
        assert inside, name
        assert box.x1 < figure.bbox.x1 + 1, name
        assert box.y1 < figure.bbox.y1 + 1, name


@pytest.mark.parametrize(
    ("groups", "more"),
    [
        (["a", "b"], {"num_topics": 6}),
        (["a", "b"], {"num_topics": 1, "likeness": 4958.0}),
        ([f"East Asia & Oceania {g}" for g in range(6)], {"word": "internationalisation"}),
        ([f"class {g}" for g in range(20)], {"num_words": 6}),
        (["W" * 60, "b"], {"word": "MMMM"}),
        (["north", "south", "east", "west"], {"word": "antidisestablishmentarianism"}),
    ],
)
def test_text_of_a_contrast_is_apart(groups, more):
    table, words = tables(groups, **more)
    axes = plot_contrast(table, words)
    assert axes.shape == (len(table),)
    assert_readable(axes[0].figure)


def test_what_a_contrast_says():
    table, words = tables(["left", "right"], likeness=4958.0)
    first, second = plot_contrast(table, words)
    assert first.get_title(loc="left") == "topic 0,  likeness 4,958,  distance 0.20"
    shown = [text.get_text() for text in first.texts]
    assert {"left", "right", "word000", "word013"} < set(shown)
    assert any(name.startswith("common00, common10") for name in shown)
    assert "\N{EN DASH}" not in shown
    assert "\N{EN DASH}" in [text.get_text() for text in second.texts]
    said = " ".join(second.figure.get_supxlabel().split())
    assert said.startswith(
        "Dots: how many times as probable a word is in the group as in the other"
    )
    assert "with their intervals. A dash: the group does not have the topic" in said
    words.attrs["interval"] = 0.8
    said = plot_contrast(table.iloc[:1], words)[0].figure.get_supxlabel()
    assert " ".join(said.split()).endswith("with 80% intervals.")


def test_dots_and_intervals_are_on_the_scale():
    """One is the left end, and a mark of the scale is where its ratio is."""
    table, words = tables(["left", "right"], num_topics=1)
    words.loc[words["word"] == "word001", ["log_ratio", "lower", "upper"]] = np.log([10, 5, 100])
    (ax,) = plot_contrast(table, words)
    marks = [t for t in ax.texts if t.get_text().endswith("\u00d7")]
    assert {t.get_text() for t in marks} == {"1\u00d7", "10\u00d7", "100\u00d7"}
    ten, hundred = (  # of the group on the left
        min(t.get_position()[0] for t in marks if t.get_text() == f"{n}\u00d7") for n in (10, 100)
    )
    lines, dots = ax.collections[0], ax.collections[1]
    assert dots.get_offsets()[2, 0] == pytest.approx(ten)  # two words have larger ratios
    segment = lines.get_segments()[2][:, 0]
    assert segment[1] == pytest.approx(hundred)
    assert segment[0] == pytest.approx(ten - np.log10(2) * (hundred - ten))


def test_the_largest_ratio_of_a_group_is_on_top():
    """The table has the surest words first, whatever their ratios."""
    table, words = tables(["left", "right"], num_topics=1)
    words["log_ratio"] = [1.5, 0.7, 2.5, 0.6, 0.9, 1.9, 0.8, 3.0]
    (ax,) = plot_contrast(table, words)
    height = {text.get_text(): text.get_position()[1] for text in ax.texts}
    for g, expected in enumerate(([2, 0, 1, 3], [3, 1, 0, 2])):
        names = [f"word0{g}{r}" for r in range(4)]
        assert sorted(names, key=height.__getitem__) == [names[r] for r in expected]
        lines, dots = ax.collections[len(ax.collections) // 2 * g :][:2]
        x, y = dots.get_offsets().T
        assert (np.diff(x) < 0).all()
        np.testing.assert_allclose(y, [height[names[r]] for r in expected])
        np.testing.assert_allclose(lines.get_segments()[0][0, 1], y[0])


def test_a_label_is_the_first_line_of_the_title():
    table, words = tables(["a", "b"])
    table.insert(0, "label", ["costs $5 to $9", ""])
    first, second = plot_contrast(table, words)
    assert first.get_title(loc="left").splitlines() == [
        r"0: costs \$5 to \$9", "likeness 0.50,  distance 0.20",
    ]  # fmt: skip
    assert second.get_title(loc="left").startswith("topic 1,  likeness")
    assert_readable(first.figure)
    labels = [label.get_text() for label in plot_distances(table).get_yticklabels()]
    assert labels[1] == r"0: costs \$5 to \$9"
    assert labels[0].startswith("1: common01, ")


def test_a_contrast_without_likeness_or_words():
    table, words = tables(["a", "b"], num_topics=1)
    axes = plot_contrast(table.drop(columns="likeness"), words.iloc[:0])
    assert axes[0].get_title(loc="left") == "topic 0,  distance 0.20"
    shown = [text.get_text() for text in axes[0].texts]
    assert shown.count("\N{EN DASH}") == 2
    assert_readable(axes[0].figure)


def test_a_contrast_leaves_small_topics_out():
    table, words = tables(["a", "b"], num_topics=3)
    table.attrs["prevalence"] = [0.7, 3e-5, 0.29997]
    axes = plot_contrast(table, words)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert [title.split(",")[0] for title in titles] == ["topic 0", "topic 2"]
    said = " ".join(axes[0].figure.get_supxlabel().split())
    assert said.endswith("Not drawn: 1 topic below 0.005%: 0.003%.")
    assert len(plot_contrast(table, words, axes=plt.subplots(1, 3)[1])) == 3


def test_a_contrast_on_given_axes():
    table, words = tables(["a", "b"])
    given = plt.subplots(1, 2)[1]
    assert plot_contrast(table, words, axes=given)[1] is given[1]
    with pytest.raises(ValueError, match=r"axes must have shape \(2,\), got \(3,\)"):
        plot_contrast(table, words, axes=plt.subplots(1, 3)[1])
    with pytest.raises(ValueError, match="words must be one from contrast_tables"):
        plot_contrast(table, table)


def test_distances_are_sorted():
    table, _ = tables(["a", "b"], num_topics=12)
    table.loc[3, ["distance", "distance_lower", "distance_upper"]] = np.nan
    ax = plot_distances(table)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "11: common011, common111, common211, common311, common411"
    assert len(labels) == 11
    intervals, dots = ax.collections
    assert np.all(np.diff(dots.get_offsets()[:, 0]) < 0)
    segments = intervals.get_segments()
    np.testing.assert_allclose(segments[0][:, 0], [0.6, 0.8])
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(low.y1 <= high.y0 + 1 for high, low in itertools.pairwise(boxes))
    assert min(box.x0 for box in boxes) > -1


def test_no_distance_to_draw():
    table, _ = tables(["a", "b"])
    with pytest.raises(ValueError, match="table must have a topic of two groups or more, got 2"):
        plot_distances(table.assign(distance=np.nan))
