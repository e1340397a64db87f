"""Pictures of chains: traces, ranks, numbers of topics, the way from the start, and functionals.

Functions that draw one panel take `ax` and return it. Functions that draw several panels take
`axes`, one for each panel, and return them as an array (`axes.flat[0].figure` is the figure).
Without `ax` or `axes` a new figure is made, large enough for its labels. Colours can be told apart
with any colour vision.

A constant is the same in all draws of all chains, such as a hyperparameter that is fixed. It is
named and not drawn.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Shaped
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from bnp_models.base.model import TOPICS, ModelWords
from bnp_models.data import arguments
from bnp_models.plots import panels
from bnp_models.plots.placing import shortened
from bnp_models.posterior import arviz_data
from bnp_models.posterior.diagnostics import label_free
from bnp_models.posterior.functionals import SCALAR, Functionals

__all__ = ["plot_functionals", "plot_history", "plot_number", "plot_ranks", "plot_traces"]

MANY_DRAWS = 1000  # lines through more are thinner
MAX_BARS = 100  # side by side in one panel; lines if there are more
MAX_BINS = 40  # of whole numbers
NUM_BINS = 30  # of other numbers
LATER = 0.6  # of the range of the later half of the sweeps, shown above and below it
MAX_SCALARS = 30  # in one picture, unless they are asked for by name
MAX_SIDE = 16  # characters beside a panel
MAX_NAMES = 12  # of constants in a caption
WITHIN, ABOVE = panels.COLOURS[0], panels.COLOURS[5]  # the limit of R-hat
MAX_ROWS = 12  # of scalars in the picture of functionals
MAX_NAME = 32  # characters of the name of a functional
TOP = 10.0  # R-hat at the right edge; larger ones are drawn there
TICKS = (1.0, 1.01, 1.05, 1.1, 1.3, 2, 4, TOP)
SHOWN_FROM = 0.003  # R-hat - 1 at the left edge


class _Scalar(NamedTuple):
    """A scalar that varies, and its row of panels."""

    name: str
    draws: Shaped[np.ndarray, "C S"]
    row: np.ndarray


def plot_traces(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the label-free scalars along the chains, with their distribution in each chain.

    Without `var_names` the first thirty are drawn, and the title says how many there are. A
    quantity that is the same in all draws of all chains has no panels; the caption names it.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    axes
        Two panels for each scalar, [N, 2], constants included.
    """
    scalars = label_free(data, var_names=var_names, extra=extra, terms=terms)

    def new(count: int) -> np.ndarray:
        size = (9, 0.6 + 1.7 * count)
        return panels.new_panels(count, 2, size, width_ratios=(4, 1), sharey="row")

    axes, drawn, left_out = _panels(scalars, terms, axes, 2, new, all_of_them=var_names is not None)
    for name, draws, (left, right) in drawn:
        _trace(left, draws)
        text = name if len(name) <= MAX_SIDE else "\n[".join(name.rsplit("[", 1))
        left.set_ylabel(panels.as_written(text))
        _histogram(right, draws, _bin_edges(draws), histtype="step", orientation="horizontal")
        right.set_xticks([])
        left.tick_params(labelbottom=False)
        for ax in (left, right):
            panels.round_ticks(ax.yaxis, whole=_whole(draws), most=6)
    if drawn:
        left, right = drawn[-1].row
        left.tick_params(labelbottom=True)
        left.set_xlabel("kept draw")
        right.set_xlabel("draws")
        panels.title_with_chains(drawn[0].row[0], f"Label-free quantities by chain{left_out}")
    return axes


def plot_ranks(
    data: Any,
    *,
    var_names: Sequence[str] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    terms: ModelWords = TOPICS,
    bins: int | None = None,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the histogram of each chain's ranks among the draws of all chains.

    Without `var_names` the first thirty scalars are drawn, and the last label says how many there
    are. A quantity that is the same in all draws of all chains has no panel; the caption names it.

    The histograms of chains that agree are flat. The band holds 95% of the bars if draws are
    independent; bars of dependent draws vary more. Equal values get ranks in random order. No
    legend is drawn if `axes` is given.

    Parameters
    ----------
    data, var_names, extra, terms
        See `diagnostics.label_free`.
    bins
        Bars per chain; by default about one bar per ten draws of a chain, at least 2 and at most
        20, so that all bars hold the same number of ranks if possible.
    axes
        One for each scalar, constants included.

    Raises
    ------
    ValueError
        If there is only one chain, whose ranks are always flat.
    """
    bins = arguments.optional(arguments.integer, "bins", bins, 2)
    scalars = label_free(data, var_names=var_names, extra=extra, terms=terms)
    num_chains, num_draws = next(iter(scalars.values())).shape
    if num_chains < 2:
        raise ValueError("data must have two chains or more to compare, got 1; see num_chains")
    if bins is None:  # one that divides the number of ranks, if a suitable one does
        wanted = int(np.clip(num_draws // 10, 2, 20))
        suitable = range(wanted, max(wanted // 2, 1), -1)
        bins = next((n for n in suitable if num_chains * num_draws % n == 0), wanted)

    def new(count: int) -> np.ndarray:
        return panels.grid(None, count, 3, (3.6, 2.6) if count > 1 else (6.5, 2.8), sharey=True)

    own = axes is None
    axes, drawn, left_out = _panels(scalars, terms, axes, 1, new, all_of_them=var_names is not None)
    rng = np.random.default_rng(0)
    edges = np.linspace(0, num_chains * num_draws, bins + 1)
    band = scipy.stats.binom.interval(0.95, num_draws, 1 / bins)
    for name, draws, (ax,) in drawn:
        order = np.lexsort((rng.random(draws.size), draws.ravel()))
        ranks = np.argsort(order).reshape(draws.shape)
        ax.axhspan(*band, color="0.88", label="95% if independent")
        for chain, values in enumerate(ranks):
            counts = np.histogram(values + 0.5, bins=edges)[0]
            colour = panels.chain_colour(chain, num_chains)
            ax.stairs(counts, edges, baseline=None, color=colour, label=f"chain {chain}", lw=1.3)
        ax.set_title(panels.as_written(name), fontsize="medium")
        ax.set(xlim=(0, edges[-1]), xlabel="rank among all draws", ylabel="draws per bin")
        panels.plain(ax)
    for _, _, (ax,) in drawn:  # when the panels have their common limits
        ax.set_ylim(bottom=0)
        panels.round_ticks(ax.xaxis, whole=True, most=4)
        panels.round_ticks(ax.yaxis, whole=True, most=5)
    if left_out:
        drawn[-1].row[0].set_xlabel(f"rank among all draws\n{left_out.strip()}")
    if own and drawn and num_chains <= len(panels.COLOURS):
        figure = axes.flat[0].figure
        wide = min(5, num_chains + 1, int(figure.get_figwidth() / 1.8))
        shown = drawn[0].row[0].get_legend_handles_labels()
        figure.legend(*shown, frameon=False, loc="outside upper center", ncols=wide)
    return axes[:, 0]


def plot_number(
    data: Any,
    *,
    var_name: str | None = None,
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the number of topics in use: along the chains, and how often each number occurred.

    If the number is the same in all draws of all chains, the picture says it in words.

    Parameters
    ----------
    data
        ArviZ data.
    var_name
        The count to draw; by default `terms.count_variable`.
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels.
    """
    scalars = label_free(data, terms=terms)
    var_name = terms.count_variable if var_name is None else var_name
    arguments.one_of("var_name", var_name, list(scalars))

    def new(count: int) -> np.ndarray:
        return panels.new_panels(count, 2, (9, 3), width_ratios=(3, 2))

    axes, drawn, _ = _panels({var_name: scalars[var_name]}, terms, axes, 2, new)
    for name, draws, (trace, bars) in drawn:
        _trace(trace, draws)
        trace.set(xlabel="kept draw", ylabel=panels.as_written(name))
        panels.round_ticks(trace.yaxis, whole=_whole(draws))
        edges = _bin_edges(draws)
        share = np.full(draws.T.shape, 1 / draws.shape[1])
        kind = "bar" if (len(edges) - 1) * len(draws) <= MAX_BARS else "step"
        _histogram(bars, draws, edges, weights=share, histtype=kind, rwidth=0.85)
        bars.set(xlabel=panels.as_written(name), ylabel="share of draws")
        bars.set_xlim(edges[0] - 0.1, edges[-1] + 0.1)
        panels.round_ticks(bars.xaxis, whole=True)
        panels.round_ticks(bars.yaxis, percent=True, most=6)
        panels.title_with_chains(trace, f"Number of {panels.as_written(name)}")
    return axes[0]


def plot_history(
    data: Any,
    *,
    against: str = "seconds",
    terms: ModelWords = TOPICS,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Draw the log joint density and the number of topics in use from the start of the chains.

    A dot is the end of a stretch of sweeps, of about a second each; the dashed line is the end of
    the warm-up, before which the picture is shaded. The first sweeps are far from all others, so
    the scale is that of the later half of the sweeps and as much again. What lies outside is cut
    off, and the label says so. A quantity that never changes has no panel; the caption names it.

    Parameters
    ----------
    data
        ArviZ data of `fit`.
    against
        "seconds" since the start of the chains, which begin with compiling, or "sweeps".
    terms
        `model.terms` of the model that was fitted; needed for factor models.
    axes
        Two panels, also if a quantity never changes.

    Raises
    ------
    ValueError
        If the data have no history, as those of `to_fit`.
    """
    arguments.one_of("against", against, ("seconds", "sweeps"))
    arguments.instance("terms", terms, ModelWords, "the ModelWords of a model, model.terms")
    if not arviz_data.has_group(data, "history"):
        raise ValueError(
            "data must have the group 'history', which bnp_models.fit adds; got "
            f"the groups {arviz_data.groups(data)}"
        )
    history = arviz_data.group(data, "history")
    used = arguments.one_of("terms.count_variable", terms.count_variable, list(history.data_vars))
    sweeps = history["sweep"].to_numpy()
    x, along = sweeps, "sweeps"
    if against == "seconds":
        x, along = history["seconds"].to_numpy(), "seconds since the start, with compiling"
    scalars = {name: history[name].transpose("chain", "sweep").to_numpy() for name in ("lp", used)}

    def new(count: int) -> np.ndarray:
        return panels.grid(None, count, 2, (4.5, 3.2) if count == 2 else (6.5, 3.2))

    axes, drawn, _ = _panels(scalars, terms, axes, 1, new)
    num_warmup = int(data.attrs["num_warmup"])
    for name, values, (ax,) in drawn:
        panels.chain_lines(ax, x, values, marker=".", ms=3, lw=0.8)
        first = _show_later_half(ax, sweeps, values)
        notes = ["the first sweeps lie outside"] if first else []
        notes += ["dashed: end of the warm-up"] if num_warmup else []
        ax.set(xlabel="\n".join([along, *notes]), ylabel=panels.as_written(name))
        ends = x[[first, -1]].astype(np.float64)
        ax.set_xlim(*(ends + np.array([-0.01, 0.01]) * (np.ptp(ends) or 1.0)))
        panels.round_ticks(ax.xaxis, whole=against == "sweeps")
        panels.round_ticks(ax.yaxis, whole=_whole(values))
        panels.plain(ax)
    if drawn:
        panels.title_with_chains(drawn[0].row[0], "From the start of the chains")
    if num_warmup:
        for _, _, (ax,) in drawn:  # after the legend, which takes every line for a chain
            end = float(np.interp(num_warmup, sweeps, x))
            ax.axvspan(ax.get_xlim()[0], max(end, ax.get_xlim()[0]), color="0.95", lw=0, zorder=0)
            ax.axvline(end, color="0.3", lw=1, ls="--")
    return axes[:, 0]


def _show_later_half(ax: Axes, sweeps: np.ndarray, values: Shaped[np.ndarray, "C S"]) -> int:
    """Give a panel the scale of the later half of the sweeps; return where it has the first one."""
    later = values[:, 2 * sweeps >= sweeps[-1]].astype(np.float64)
    later = later[np.isfinite(later)]
    if not later.size:
        return 0
    low, high = float(later.min()), float(later.max())
    room = (high - low) or max(abs(high), 1.0) * 1e-3
    inside = (values >= low - LATER * room) & (values <= high + LATER * room)
    shown, margin = values[inside], 0.05 * room
    ax.set_ylim(float(shown.min()) - margin, float(shown.max()) + margin)
    if inside.all():
        return 0
    return max(int(inside.any(axis=0).argmax()) - 1, 0)


def plot_functionals(functionals: Functionals, *, ax: Axes | None = None) -> Axes:
    """Draw R-hat of every functional, by kind, with the limit of functionals that agree.

    The label-free scalars are at the top, each in a row of its own; the worst twelve.
    Below them each dot is a functional of its kind, and a line is their median; the kind
    with the largest median comes first, and the worst functional is named at the right. Colours say
    whether R-hat is within the limit. Open dots have too few kept states to tell whether the
    functional agrees. The scale is that of log(R-hat - 1): R-hat below 1.003 is drawn at the left
    edge, above 10 at the right edge. Constants have no R-hat; the caption names them. It also says
    if there are more scalars.

    Parameters
    ----------
    functionals
        From `fit.functionals()`.
    ax
        Where to draw.
    """
    arguments.instance("functionals", functionals, Functionals, "made by fit.functionals()")
    table = functionals.table.reset_index(names=["kind", "name"])
    table["rhat"] = np.nan_to_num(np.asarray(table["rhat"], np.float64), nan=1.0, posinf=np.inf)
    scalar, constant = table["kind"] == SCALAR, table["verdict"] == "constant"
    varying = table.loc[~constant].sort_values("rhat", ascending=False, kind="stable")
    scalars = varying.loc[varying["kind"] == SCALAR]
    rows = [(str(row["name"]), scalars.loc[[place]]) for place, row in scalars.iterrows()]
    num_scalars = len(rows)
    rows = rows[:MAX_ROWS]
    kinds = [part for _, part in varying.loc[varying["kind"] != SCALAR].groupby("kind", sort=False)]
    for part in sorted(kinds, key=lambda part: -part["rhat"].median()):
        said = f"{(part['verdict'] == 'agree').sum()} of {len(part)} agree"
        if (part["verdict"] == "too few states").all():
            said = f"{len(part)}, not judged"
        rows.append((f"{part['kind'].iloc[0]}: {said}", part))
    labels = [label for label, _ in rows]
    named = [shortened(str(part["name"].iloc[0]), MAX_NAME) if len(part) > 1 else ""
             for _, part in rows]  # fmt: skip
    width = 4.6 + panels.width_of(labels) + panels.SMALL_WIDTH * max(map(len, named), default=0)
    ax = panels.panel(ax, width, 1.2 + 0.36 * max(len(rows), 3))
    rng = np.random.default_rng(0)
    for y, (_, part) in enumerate(rows):
        rhat = part["rhat"].to_numpy()
        heights = y + (rng.uniform(-0.3, 0.3, len(part)) if len(part) > 1 else np.zeros(1))
        size = 14 if len(part) > 1 else 40
        edges = np.where(rhat <= functionals.max_rhat, WITHIN, ABOVE)
        inside = np.where(part["verdict"] == "too few states", "white", edges)
        x = np.clip(rhat - 1, SHOWN_FROM, TOP - 1)
        ax.scatter(
            x, heights, size, inside.tolist(), edgecolors=edges.tolist(), linewidths=0.8,
            alpha=0.8, clip_on=False,
        )  # fmt: skip
        if len(part) > 1:
            ax.vlines(np.median(x), y - 0.4, y + 0.4, color="0.1", lw=1.6, zorder=3)
        ax.annotate(
            panels.as_written(named[y]), (1.02, y), xycoords=ax.get_yaxis_transform(),
            va="center", fontsize="small", color=panels.INK, annotation_clip=False,
        )  # fmt: skip
    ax.axvline(functionals.max_rhat - 1, color="0.3", lw=1, ls="--")
    ax.set_yticks(range(len(rows)), [*map(panels.as_written, labels)], fontsize="small")
    ax.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    ax.set(xscale="log", xlim=(SHOWN_FROM, TOP - 1))
    ticks = [*(f"{tick:g}" for tick in TICKS[:-1]), f">{TOP:g}"]
    ax.set_xticks(np.maximum(np.array(TICKS) - 1, SHOWN_FROM), ticks)
    ax.minorticks_off()
    ax.set_xlabel(f"R-hat over chains (dashed: limit {functionals.max_rhat:g})")
    dots = [
        Line2D([], [], ls="", marker="o", color=edge, markerfacecolor=inside, label=label)
        for label, edge, inside in (
            ("within the limit", WITHIN, WITHIN),
            ("above it", ABOVE, ABOVE),
            ("open: too few states to tell", "0.3", "white"),
        )
    ]
    panels.legend_above(ax, "What the chains agree on", dots, handletextpad=0.1)
    ax.grid(axis="x", color="0.93")
    ax.set_axisbelow(True)
    if any(named):
        panels.caption(ax, "Black line: median of the kind; at the right, the name of the worst.")
    if (varying["verdict"] == "too few states").all() and len(varying):
        panels.caption(
            ax, f"{functionals.num_states} kept states per chain are too few to judge any of "
            "these; keep_states= keeps more."
        )  # fmt: skip
    said = table.loc[constant & scalar, "name"].astype(str).tolist()
    counts = table.loc[constant & ~scalar, "kind"].value_counts(sort=False)
    said += [f"{count:,} {kind}" for kind, count in counts.items()]
    if said:
        panels.caption(ax, f"Constant in all chains, not drawn: {', '.join(said)}.")
    if num_scalars > MAX_ROWS:
        panels.caption(ax, f"Only the worst {MAX_ROWS} of {num_scalars} scalars are drawn.")
    return panels.plain(ax)


def _panels(
    scalars: Mapping[str, Shaped[np.ndarray, "C S"]],
    terms: ModelWords,
    axes: object,
    columns: int,
    new: Callable[[int], np.ndarray],
    *,
    all_of_them: bool = True,
) -> tuple[np.ndarray, list[_Scalar], str]:
    """Return panels in rows, the scalars that are drawn, and how many they are if not all.

    In a picture of our own, which `new` makes for so many scalars, the caption names constants.
    Panels that were given are for constants, too, and say so.
    """
    labels = {"lp": "lp (nats)", terms.count_variable: f"{terms.parts} in use"}
    scalars = {labels.get(name, name): draws for name, draws in scalars.items()}
    constants = {name: x for name, x in scalars.items() if (x == x.flat[0]).all()}
    shown = [name for name in scalars if axes is not None or name not in constants]
    left_out = ""
    if not all_of_them and len(shown) > MAX_SCALARS:
        left_out = f" (the first {MAX_SCALARS} of {len(shown)})"
        shown = shown[:MAX_SCALARS]
    if axes is not None:
        shape = (len(shown), columns) if columns > 1 < len(shown) else (len(shown) * columns,)
        rows = panels.shaped(axes, shape).reshape(len(shown), columns)
        for name, row in zip(shown, rows, strict=True):
            if name in constants:
                _say_constant(row, {name: constants[name]})
    elif shown:
        rows = new(len(shown)).reshape(len(shown), columns)
        if constants:
            panels.caption(rows[0, 0], f"Constant in all chains, not drawn: {_values(constants)}.")
    else:
        rows = panels.new_panels(1, columns, (9, 1))
        _say_constant(rows[0], constants)
    drawn = [
        _Scalar(name, scalars[name], row)
        for name, row in zip(shown, rows, strict=False)
        if name not in constants
    ]
    return rows, drawn, left_out


def _say_constant(row: np.ndarray, constants: Mapping[str, np.ndarray]) -> None:
    """Write into empty panels which quantities do not vary; across a picture of our own."""
    ax = row[0]
    box = ax.figure.bbox if isinstance(ax.figure, panels.Picture) else ax.get_window_extent()
    text = f"The same in all draws of all chains: {_values(constants)}."
    width = max(int(box.width / ax.figure.dpi / panels.LABEL_WIDTH), 20)
    lines = panels.as_written(textwrap.fill(text, width))
    for empty in row:
        empty.set_axis_off()
    ax.text(0.02, 0.5, lines, transform=ax.transAxes, va="center", fontsize="medium")


def _values(constants: Mapping[str, np.ndarray]) -> str:
    """Name constants with their values: with four digits or, if they are large, one decimal."""
    said = []
    for name, draws in constants.items():
        value = float(draws.flat[0])
        form = ",.0f" if _whole(draws) else ",.1f" if abs(value) >= 1000 else ",.4g"
        said.append(f"{name} = {value:{form}}")
    if len(said) > MAX_NAMES:
        said = [*said[:MAX_NAMES], f"and {len(said) - MAX_NAMES:,} more, see convergence()"]
    return ", ".join(said)


def _whole(draws: np.ndarray) -> bool:
    """Return whether all draws are whole numbers."""
    return bool((np.isfinite(draws) & (draws == np.round(draws))).all())


def _bin_edges(draws: Shaped[np.ndarray, "C S"]) -> np.ndarray:
    """Return the edges of 30 bins; of whole numbers, one bin each or up to 40 of whole width."""
    low, high = float(draws.min()), float(draws.max())
    if _whole(draws):
        step = math.ceil((high - low + 1) / MAX_BINS)
        return np.arange(low - 0.5, high + step, step)
    return np.linspace(low, high, NUM_BINS + 1)


def _histogram(
    ax: Axes, draws: Shaped[np.ndarray, "C S"], edges: np.ndarray, **options: Any
) -> None:
    """Draw the histogram of each chain, in its colour."""
    colours = [panels.chain_colour(chain, len(draws)) for chain in range(len(draws))]
    ax.hist(draws.T.astype(np.float64), edges.tolist(), color=colours, **options)
    panels.plain(ax)


def _trace(ax: Axes, draws: Shaped[np.ndarray, "C S"]) -> None:
    count = draws.shape[1]
    panels.chain_lines(ax, np.arange(count), draws, lw=0.8 if count <= MANY_DRAWS else 0.3)
    ax.margins(x=0)
    panels.round_ticks(ax.xaxis, whole=True)
    panels.plain(ax)
