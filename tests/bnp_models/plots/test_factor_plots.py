"""Pictures of factor models: what is in them, and that nothing is cut off."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bnp_models.plots.factor_plots import plot_factors, plot_sharing
from bnp_models.results.factor_tables import Effects


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made_up(num_factors=3, num_features=6, *, signed=False):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(num_factors, num_features))
    mean = mean if signed else np.abs(mean)
    return Effects(mean, mean - 0.2 * np.abs(mean), mean + 0.3)


def shared(names):
    count = len(names)
    return pd.DataFrame(
        {
            "source": np.repeat(names, count),
            "other": np.tile(names, count),
            "shared": np.arange(count**2, dtype=float),
            "lower": np.nan,
            "upper": np.nan,
        }
    )


def assert_all_text_is_inside(figure):
    figure.canvas.draw()
    box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert min(box.x0, box.y0) > -1
    assert box.x1 < figure.bbox.x1 + 1
    assert box.y1 < figure.bbox.y1 + 1


@pytest.mark.parametrize("names", [["a", "b"], [f"section number {j}" for j in range(9)]])
def test_sharing_has_sources_in_one_order(names):
    ax = plot_sharing(shared(names[::-1]))
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert [label.get_text() for label in ax.get_yticklabels()] == shown
    numbers = [text.get_text() for text in ax.texts]
    if len(names) == 2:
        assert shown == names[::-1]
        assert numbers == ["0", *(f"{i:.2f}" for i in range(1, len(names) ** 2))]
    else:  # too many to read
        assert sorted(shown) == names
        assert set(numbers) <= {"\N{BLACK CIRCLE}", "\N{EN DASH}"}
    assert_all_text_is_inside(ax.figure)
    given = plt.subplots()[1]
    assert plot_sharing(shared(names), ax=given) is given


@pytest.mark.parametrize("count", [3, 14])
def test_cells_of_sharing_are_marked_or_have_intervals(count):
    table = shared([f"s{j}" for j in range(count)])
    table = table.assign(lower=np.maximum(table["shared"] - 5, 0), upper=table["shared"] + 5)
    table.attrs["interval"] = 0.9
    ax = plot_sharing(table)
    shown, said = [text.get_text() for text in ax.texts], ax.figure.get_supxlabel()
    if count == 3:
        assert shown[8] == "8.00\n3\N{EN DASH}13"
        assert said == "Second line: 90% interval."
    else:
        assert shown == ["●"] * (table["lower"] > 0).sum()
        assert said.startswith("●: the 90% interval lies above zero.")
    assert_all_text_is_inside(ax.figure)


def test_pixels_whose_interval_excludes_zero_are_marked():
    effects = made_up(2, signed=True)
    axes = plot_factors(effects, shape=(2, 3))
    for ax, lower, upper in zip(axes, effects.lower, effects.upper, strict=True):
        (dots,) = ax.collections
        clear = np.argwhere(((lower > 0) | (upper < 0)).reshape(2, 3))
        np.testing.assert_array_equal(dots.get_offsets(), clear[:, ::-1])
    assert axes[0].figure.get_supxlabel() == "Dot: the interval does not enclose zero."
    axes = plot_factors(made_up(2), shape=(2, 3))
    assert not axes[0].collections
    assert axes[0].figure.get_supxlabel() == ""


@pytest.mark.parametrize("signed", [False, True])
def test_images_have_one_scale(signed):
    effects = made_up(5, signed=signed)
    axes = plot_factors(effects, shape=(2, 3))
    assert axes.shape == (5,)
    top = np.abs(effects.mean).max()
    for ax, values in zip(axes, effects.mean, strict=True):
        (image,) = ax.images
        np.testing.assert_allclose(image.get_array(), values.reshape(2, 3))
        assert image.get_clim() == (-top if signed else 0, top)
    assert [ax.get_title(loc="left") for ax in axes] == [f"factor {k}" for k in range(5)]
    assert_all_text_is_inside(axes[0].figure)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "names", [None, ["first", "second", "third", "fourth", "a long name", "f"]]
)
def test_bars(signed, names):
    effects = made_up(signed=signed)
    axes = plot_factors(effects, feature_names=names, titles=["x", "y", "z"], num_columns=2)
    for ax, values in zip(axes, effects.mean, strict=True):
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], values)
        assert ax.get_ylim() == axes[0].get_ylim()
        low, high = ax.get_ylim()
        assert low <= effects.lower.min() or low == 0
        assert high > effects.upper.max()
        if names is not None:
            assert [label.get_text() for label in ax.get_xticklabels()] == names
    assert_all_text_is_inside(axes[0].figure)


def test_many_features_become_a_profile():
    effects = made_up(2, 300)
    axes = plot_factors(effects)
    for ax, mean, lower, upper in zip(axes, *effects, strict=True):
        profile, band = (patch.get_data() for patch in ax.patches)
        np.testing.assert_allclose(profile.values, mean)
        np.testing.assert_allclose(band.values, upper)
        np.testing.assert_allclose(band.baseline, lower)


def test_some_factors_on_given_axes():
    given = plt.subplots(1, 2)[1]
    effects = made_up()
    axes = plot_factors(effects, factors=[2, 0], axes=given)
    assert axes[0] is given[0]
    assert axes[0].get_title(loc="left") == "factor 2"
    np.testing.assert_allclose([bar.get_height() for bar in axes[0].patches], effects.mean[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (2, 2)}, r"shape must hold the 6 features as pixels, got \(2, 2\)"),
        (
            {"factors": [3]},
            r"factors must be a list of numbers from 0 to 2, with at least one of them, got \[3\]",
        ),
        ({"factors": []}, "factors must be a list of numbers from 0 to 2"),
        ({"titles": ["one"]}, "titles must have 3 entries"),
        ({"feature_names": ["one"]}, "feature_names must have 6 entries"),
        ({"num_columns": 0}, "num_columns must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        plot_factors(made_up(), **options)
