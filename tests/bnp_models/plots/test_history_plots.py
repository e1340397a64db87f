"""The picture of the way from the start: lines, the end of the warm-up, words of the model."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray

from bnp_models.base.model import FACTORS
from bnp_models.plots.chain_plots import plot_history
from bnp_models.posterior.arviz_data import make_data, one_chain, with_group

SWEEP = np.array([1, 3, 7, 15, 20])
SECONDS = np.array([30.0, 31, 33, 41, 46])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made_up(chains=3, num_warmup=5, used="num_topics_used"):
    rng = np.random.default_rng(0)
    size = (chains, len(SWEEP))
    found = xarray.Dataset(
        {
            "lp": (("chain", "sweep"), np.sort(rng.normal(-1e6, 1e4, size))),
            used: (("chain", "sweep"), rng.integers(5, 9, size)),
            "seconds": ("sweep", SECONDS),
        },
        coords={"chain": np.arange(chains), "sweep": SWEEP},
    )
    data = make_data(
        {"posterior": {used: rng.integers(5, 9, (chains, 4))}}, attrs={"num_warmup": num_warmup}
    )
    return with_group(data, "history", found), found


def lines_of(ax):
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in ax.get_lines()]


@pytest.mark.parametrize(
    ("against", "x", "end"), [("seconds", SECONDS, 32.0), ("sweeps", SWEEP, 5.0)]
)
def test_a_line_for_each_chain_and_the_end_of_the_warm_up(against, x, end):
    data, found = made_up()
    axes = plot_history(data, against=against)
    assert [ax.get_ylabel() for ax in axes] == ["lp (nats)", "topics in use"]
    assert [ax.get_xlabel().split()[0] for ax in axes] == [against] * 2
    for ax, name in zip(axes, ("lp", "num_topics_used"), strict=True):
        *chains, (dashed, _) = lines_of(ax)
        assert len(chains) == 3
        for (place, values), expected in zip(chains, found[name].to_numpy(), strict=True):
            assert (place == x).all()
            assert (values == expected).all()
        assert dashed.tolist() == [end] * 2
    legend = axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"chain {c}" for c in range(3)]


def test_the_scale_is_that_of_the_later_half():
    """The first sweeps, which are far below, would make one line of all chains."""
    data, found = made_up()
    lp = np.array([[-9e6, -1000.0, -900, -110, -105], [-9e6, -1000.0, -900, -108, -100]])
    data, _ = made_up(2)
    data = with_group(data, "history", found.isel(chain=[0, 1]).assign(lp=(("chain", "sweep"), lp)))
    ax = plot_history(data, against="sweeps")[0]
    low, high = ax.get_ylim()
    assert -120 < low < -110
    assert -100 < high < -90
    assert 6 < ax.get_xlim()[0] < 7  # from the last sweep that lies outside
    assert "the first sweeps lie outside" in ax.get_xlabel()
    still = np.repeat([[-7.0], [-6.0]], 5, axis=1)
    still = found.isel(chain=[0, 1]).assign(lp=(("chain", "sweep"), still))
    ax = plot_history(with_group(data, "history", still), against="sweeps")[0]
    assert ax.get_xlim()[0] < 1
    assert "outside" not in ax.get_xlabel()


def test_one_chain_without_warm_up_on_given_axes():
    data, _ = made_up(num_warmup=0)
    given = plt.subplots(1, 2)[1]
    axes = plot_history(one_chain(data, 1), axes=given)
    assert axes[1] is given[1]
    assert [len(lines_of(ax)) for ax in axes] == [1, 1]
    assert axes[0].get_legend() is None
    with pytest.raises(ValueError, match=r"axes must have shape \(2,\), got \(1,\)"):
        plot_history(data, axes=given[:1])


def test_a_number_that_never_changes_is_named():
    data, found = made_up()
    fixed = with_group(data, "history", found.assign(num_topics_used=0 * found["lp"] + 8))
    (ax,) = plot_history(fixed, against="sweeps")
    assert ax.get_ylabel() == "lp (nats)"
    said = ax.figure.get_supxlabel()
    assert said == "Constant in all chains, not drawn: topics in use = 8."
    assert "end of the warm-up" in ax.get_xlabel()
    ax.figure.canvas.draw()
    assert all(label.get_text().isdecimal() for label in ax.get_xticklabels())
    axes = plot_history(fixed, axes=plt.subplots(1, 2)[1])
    assert "topics in use = 8." in " ".join(axes[1].texts[0].get_text().split())
    still = found.assign(num_topics_used=0 * found["lp"] + 8, lp=0 * found["lp"] - 3)
    (ax,) = plot_history(with_group(data, "history", still))
    assert "lp (nats) = -3, topics in use = 8" in " ".join(ax.texts[0].get_text().split())


def test_words_of_factor_models():
    data, _ = made_up(used="num_factors_used")
    assert plot_history(data, terms=FACTORS)[1].get_ylabel() == "factors in use"
    with pytest.raises(
        ValueError, match=r"terms\.count_variable must be one of .*num_factors_used"
    ):
        plot_history(data)


def test_refusals():
    data, _ = made_up()
    with pytest.raises(ValueError, match="against must be one of"):
        plot_history(data, against="hours")
    with pytest.raises(ValueError, match=r"'history', which bnp_models\.fit adds"):
        plot_history(with_group(data, "history", None))
