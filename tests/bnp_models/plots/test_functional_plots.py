"""The picture of functionals: its rows, colours and limit, and that nothing is cut off."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from bnp_models.plots.chain_plots import ABOVE, WITHIN, plot_functionals
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
    infinite, large, kind, median = ax.collections
    assert infinite.get_offsets()[0, 0] == ax.get_xlim()[1]
    for one, colour in ((infinite, ABOVE), (large, ABOVE), (kind, WITHIN)):
        assert {to_hex(face) for face in one.get_facecolor()} == {colour.lower()}
        assert {to_hex(edge) for edge in one.get_edgecolor()} == {colour.lower()}
    assert len(kind.get_offsets()) == 5
    limit = np.asarray(ax.get_lines()[0].get_xdata())[0]
    assert (np.asarray(kind.get_offsets())[:, 0] < limit).all()
    assert "limit 1.05" in ax.get_xlabel()
    ((at, low), _) = median.get_segments()[0]
    assert at == np.median(np.asarray(kind.get_offsets())[:, 0])
    assert low < 2
    names = [text.get_text() for text in ax.texts]
    rhat = made_up().table.loc["document pairs"]["rhat"]
    assert names == ["", "", rhat.idxmax()]  # the worst of its kind
    said = " ".join(ax.figure.get_supxlabel().split())
    assert said.startswith("Black line: median of the kind")
    assert said.endswith("Constant in all chains, not drawn: 1 document pairs.")


def test_scalars_and_kinds_are_sorted():
    rng = np.random.default_rng(1)
    apart = np.arange(4)[:, None, None]
    values = {
        "far": Values(["a", "b"], rng.normal(size=(4, 200, 2)) + 9 * apart),
        "near": Values(["a", "b"], rng.normal(size=(4, 200, 2))),
        "scalars": Values(["same", "else"], rng.normal(size=(4, 200, 2)) + [0, 5] * apart),
    }
    ax = plot_functionals(functionals(dict(reversed(values.items()))))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["else", "same", "far: 0 of 2 agree", "near: 2 of 2 agree"]


def test_few_states_are_open_dots_and_said():
    rng = np.random.default_rng(0)
    ax = plot_functionals(functionals({"pairs": Values(list("abc"), rng.normal(size=(4, 3, 3)))}))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["pairs: 3, not judged"]
    dots = ax.collections[0]
    assert {to_hex(face) for face in dots.get_facecolor()} == {"#ffffff"}
    assert {to_hex(edge) for edge in dots.get_edgecolor()} <= {ABOVE.lower(), WITHIN.lower()}
    said = " ".join(ax.figure.get_supxlabel().split())
    assert "3 kept states per chain are too few to judge any of these" in said


def test_no_text_is_cut_off_and_a_given_panel_is_used():
    ax = plot_functionals(made_up(20))
    assert len(ax.get_yticklabels()) == 13
    figure = ax.figure
    assert "Only the worst 12 of 20 scalars are drawn." in " ".join(figure.get_supxlabel().split())
    figure.canvas.draw()
    box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    assert min(box.x0, box.y0) > -1
    assert box.x1 < figure.bbox.x1 + 1
    assert box.y1 < figure.bbox.y1 + 1
    given = plt.subplots()[1]
    assert plot_functionals(made_up(), ax=given) is given
