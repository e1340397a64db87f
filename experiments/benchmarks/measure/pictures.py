"""The curves behind the tables."""

from pathlib import Path
from typing import Any

from .found import completion_threshold, measured

__all__ = ["draw_completion", "draw_starts"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, which can be told apart by everybody."""


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_completion(run: dict[str, Any], output: Path) -> str | None:
    """Draw perplexity against time, LDA and HDP side by side; return the file's name."""
    found = measured(run, "completion")
    if not found:
        return None
    pyplot = _pyplot()
    corpora = list(dict.fromkeys(key[0] for key in found))
    models = [m for m in ("LDA", "HDP") if any(key[1] == m for key in found)]
    figure, axes = pyplot.subplots(
        len(corpora), len(models), squeeze=False, sharey="row",
        figsize=(5.2 * len(models), 4.3 * len(corpora)), layout="constrained",
    )  # fmt: skip
    for row, corpus in zip(axes, corpora, strict=True):
        threshold = completion_threshold(run, corpus)
        last = [v["perplexity"][-1] for key, v in found.items() if key[0] == corpus]
        for axis, model in zip(row, models, strict=True):
            names = dict.fromkeys(key[2] for key in found if key[:2] == (corpus, model))
            for name, colour in zip(names, COLOURS, strict=False):
                ours = not name.startswith(("tomotopy", "gensim"))
                curves = [v for key, v in found.items() if key[:3] == (corpus, model, name)]
                for i, curve in enumerate(curves):
                    axis.plot(
                        curve["seconds"], curve["perplexity"], color=colour,
                        marker="o" if ours else ".", markersize=4 if ours else 5,
                        linestyle="-" if ours else "--", linewidth=2.0 if ours else 1.3,
                        label=(f"ours, {name}" if ours else name) if i == 0 else None,
                    )  # fmt: skip
            if threshold is not None:
                axis.axhline(threshold, color="0.5", linewidth=0.8, zorder=0)
                axis.annotate(
                    f"arrived: {threshold:.0f}", (0.01, threshold), color="0.35", fontsize=8,
                    xycoords=("axes fraction", "data"), xytext=(2, 2), textcoords="offset points",
                )  # fmt: skip
            axis.set_xscale("log")
            axis.set_title(f"{model}, {corpus}")
            axis.set_xlabel("seconds of sweeps, compilation left out")
            axis.legend(
                fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14)
            )  # below, where no curve is
            axis.spines[["top", "right"]].set_visible(False)
        low, high = min(last), max(last)
        room = max(high - low, 0.05 * low)
        highest = max(max(v["perplexity"]) for key, v in found.items() if key[0] == corpus)
        row[0].set_ylim(low - 0.15 * room, min(high + 2.5 * room, highest + 0.1 * room))
        row[0].set_ylabel("held-out perplexity")
    return _save(figure, output, "completion")


def draw_starts(run: dict[str, Any], output: Path) -> str | None:
    """Draw topics in use and perplexity by sweep, a column per corpus; return the file's name."""
    found = measured(run, "starts")
    if not found:
        return None
    pyplot = _pyplot()
    corpora = list(dict.fromkeys(key[0] for key in found))
    figure, axes = pyplot.subplots(
        2, len(corpora), squeeze=False, sharex="col",
        figsize=(5.2 * len(corpora), 6.0), layout="constrained",
    )  # fmt: skip
    for (topics, score), corpus in zip(axes.T, corpora, strict=True):
        runs = {key[1]: value for key, value in found.items() if key[0] == corpus}
        last = []
        for (name, value), colour in zip(runs.items(), COLOURS, strict=False):
            for i, chain in enumerate(value["topics"]):
                label = f"{name}, {len(value['topics'])} chains" if i == 0 else None
                sweeps = range(1, len(chain) + 1)
                topics.plot(sweeps, chain, color=colour, alpha=0.7, linewidth=1, label=label)
            for chain in zip(*value["perplexity"], strict=True):
                score.plot(
                    value["sweeps"], chain, color=colour, alpha=0.7, linewidth=1, marker=".",
                    markersize=4,
                )  # fmt: skip
            last += value["perplexity"][-1]
        room = max(max(last) - min(last), 0.02 * min(last))
        score.set_ylim(min(last) - room, max(last) + 6 * room)
        topics.set_title(corpus)
        topics.set_ylabel("topics in use")
        topics.set_ylim(bottom=0)
        topics.legend(fontsize=8, frameon=False)
        score.set_ylabel("held-out perplexity")
        score.set_xscale("log")
        score.set_xlabel("sweeps")
        for axis in (topics, score):
            axis.spines[["top", "right"]].set_visible(False)
    return _save(figure, output, "starts")


def _save(figure: Any, output: Path, name: str) -> str:
    path = output.with_name(f"{output.stem}_{name}.png")
    figure.savefig(path, dpi=100)
    _pyplot().close(figure)
    return path.name
