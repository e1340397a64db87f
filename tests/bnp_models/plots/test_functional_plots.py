"""The picture of functionals: its rows, colours and limit, and that nothing is cut off."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from bnp_models.plots.chain_plots import VERDICTS, plot_functionals
from bnp_models.posterior.functionals import Values, functionals


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def made_up(num_scalars=2):
    rng = np.random.default_rng(0)
    like = rng.normal(size=(4, 200, 6))
    like[:, :, 0] = 1  # constant: not drawn
    scalars = rng.normal(size=(4, 200, num_scalars)) + 9 * np.arange(4)[:, None, None]
    scalars[:, :, 0] = np.arange(4)[:, None]  # R-hat is infinite
    names = [f"scalar number {i}" for i in range(num_scalars)]
    values = {"document pairs": Values(list("abcdef"), like), "scalars": Values(names, scalars)}
    return functionals(values)


def test_scalars_stand_above_kinds():
    ax = plot_functionals(made_up())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["scalar number 0", "scalar number 1", "document pairs: 5 of 5 agree"]
    assert ax.yaxis_inverted()
    infinite, _, kind = ax.collections
    assert infinite.get_offsets()[0, 0] == ax.get_xlim()[1]
    assert to_hex(infinite.get_facecolor()[0]) == VERDICTS["differ"].lower()
    assert len(kind.get_offsets()) == 5
    limit = np.asarray(ax.get_lines()[0].get_xdata())[0]
    assert (np.asarray(kind.get_offsets())[:, 0] < limit).all()
    assert "limit 1.05" in ax.get_xlabel()
    said = ax.figure.get_supxlabel()
    assert said == "Constant in all chains, not drawn: 1 document pairs."


def test_no_text_is_cut_off_and_a_given_panel_is_used():
    ax = plot_functionals(made_up(20))
    assert len(ax.get_yticklabels()) == 13
    figure = ax.figure
    assert "Only the first 12 of 20 scalars are drawn." in " ".join(figure.get_supxlabel().split())
    figure.canvas.draw()
    box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert min(box.x0, box.y0) > -1
    assert box.x1 < figure.bbox.x1 + 1
    assert box.y1 < figure.bbox.y1 + 1
    given = plt.subplots()[1]
    assert plot_functionals(made_up(), ax=given) is given
