"""The curves behind the tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bnp_models.data.files import replacing

from .found import curves, measured, perplexities

__all__ = ["draw_perplexity", "draw_time", "draw_words"]

COLOURS = {
    "LDA": "#0072B2",
    "HDP-LDA": "#56B4E9",
    "ATM": "#D55E00",
    "NP-ATM": "#E69F00",
    "gensim's ATM": "#777777",
}
"""Out of Okabe and Ito's, which can be told apart by everybody."""


def draw_perplexity(run: dict[str, Any], output: Path) -> None:
    """Draw perplexity against the number of topics in use."""
    found = perplexities(run)
    if not found:
        return
    figure, ax = _figure()
    for name, points in found.items():
        y = [point["perplexity"] for point in points]
        error = [2 * point["perplexity"] * (point.get("error_chains") or 0.0) for point in points]
        one = points[0]["asked"] == "inferred"
        ax.errorbar(
            [point["topics"] for point in points], y, yerr=error, color=COLOURS[name], capsize=3,
            marker="D" if one else "o", ls="none" if one else "-", label=name,
        )  # fmt: skip
    ax.set_xscale("log")
    _ticks(ax, run["settings"]["topics"])
    ax.set_xlabel("topics in use")
    ax.set_ylabel("perplexity of second halves")
    ax.set_title("Bars: two standard errors over chains", fontsize=9, loc="left")
    _save(figure, ax, output.with_suffix(".png"))


def draw_time(run: dict[str, Any], output: Path) -> None:
    """Draw perplexity against time: ours and gensim's author-topic model."""
    topics = run["settings"]["curve_topics"]
    found = curves(run, topics)
    if not found:
        return
    figure, ax = _figure()
    styles = {"ours": iter(("-", "--", ":")), "gensim": iter(("-", "--", ":"))}
    for name, curve in found.items():
        ours = name.startswith("ours")
        ax.plot(
            curve["seconds"], [score["perplexity"] for score in curve["scores"]],
            color=COLOURS["ATM" if ours else "gensim's ATM"], label=name, marker="o", ms=3.5,
            ls=next(styles["ours" if ours else "gensim"], "-."),
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("seconds, compilation left out")
    ax.set_ylabel("perplexity of second halves, authors known")
    ax.set_title(f"Author-topic model, {topics} topics", fontsize=9, loc="left")
    _save(figure, ax, output.with_name(f"{output.stem}_time.png"))


def draw_words(run: dict[str, Any], output: Path) -> None:
    """Draw perplexity against the number of words that were seen of a document."""
    found = {key[0]: value["scores"] for key, value in measured(run, "words").items()}
    if len(found) < 2:
        return
    figure, ax = _figure()
    seen = {int(n): score for n, score in found["LDA"].items()}
    y = [score["perplexity"] for score in seen.values()]
    ax.plot(list(seen), y, color=COLOURS["LDA"], marker="o", label="LDA, from the words seen")
    authors = found["AuthorTopicModel"]["authors"]["perplexity"]
    ax.axhline(authors, color=COLOURS["ATM"], label="ATM, from the authors")
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.2, 1.3 * max(seen))
    _ticks(ax, list(seen))
    ax.set_xlabel("words seen of a document")
    ax.set_ylabel("perplexity of second halves")
    _save(figure, ax, output.with_name(f"{output.stem}_words.png"))


def _figure() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")


def _ticks(ax: Any, numbers: Sequence[int]) -> None:
    """Mark what was measured, and nothing else."""
    ax.minorticks_off()
    ax.set_xticks(numbers, [str(n) for n in numbers])


def _save(figure: Any, ax: Any, path: Path) -> None:
    from matplotlib import pyplot

    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize="small", frameon=False)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
    pyplot.close(figure)
