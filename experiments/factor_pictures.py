"""The pictures of the factor studies."""

from pathlib import Path
from typing import Any

import factor_claims
import numpy as np

__all__ = ["draw", "draw_planted"]

COLOURS = {
    "hierarchical": "#0072B2", "hierarchical sparse": "#56B4E9", "pooled": "#E69F00",
    "alone": "#009E73", "HDP pooled": "#CC79A7", "HDP alone": "#D55E00",
}  # fmt: skip
OTHERS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00")


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw a panel for each part that was measured."""
    from matplotlib import pyplot

    panels: list[Any] = []
    if any(name.startswith("planted/") for name in found):
        panels.append(lambda ax: _traces(found, ax))
    if factor_claims.section_values(found):
        panels.append(lambda ax: _sections(found, ax, "log_ppd", "-log PPD (nats per paper)"))
    if factor_claims.section_values(found, "word_perplexity"):
        label = "perplexity of half the words"
        panels.append(lambda ax: _sections(found, ax, "word_perplexity", label))
    for part in ("digits", "bundled"):
        if any(name.startswith(f"{part}/") for name in found):
            panels.append(lambda ax, part=part: _scopes(found, ax, part))
    if not panels:
        return
    lines = -(-len(panels) // 2)
    figure, axes = pyplot.subplots(
        lines, min(len(panels), 2), figsize=(10 if len(panels) > 1 else 5.2, 3.7 * lines),
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for panel, ax in zip(panels, axes.ravel(), strict=False):
        panel(ax)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_axis_off()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def draw_planted(found: dict[str, Any], path: Path) -> None:
    """Draw planted factors above those that were found in their place, each a line of pixels."""
    from matplotlib import pyplot

    runs = {name.split("/", 1)[1]: f for name, f in found.items() if "images" in f}
    if not runs:
        return
    truth = np.array(next(iter(runs.values()))["images"]["planted"])
    pictures = {"planted": truth}
    pictures |= {name: np.array(f["images"]["found"]) for name, f in runs.items()}
    figure, axes = pyplot.subplots(
        len(pictures), figsize=(8, 1.5 * len(pictures)), sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    image: Any = None
    for ax, (name, picture) in zip(axes[:, 0], pictures.items(), strict=True):
        image = ax.imshow(picture, aspect="auto", cmap="cividis", vmin=0, vmax=1)
        ax.set_title(name.replace("/", ", "), loc="left", fontsize="medium")
        ax.set(ylabel="factor", yticks=[0, 3, 7, 11])
    axes[-1, 0].set_xlabel("feature")
    bar = figure.colorbar(image, ax=axes[:, 0].tolist(), label="share of its largest entry")
    bar.outline.set_visible(False)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _traces(found: dict[str, Any], ax: Any) -> None:
    planted = {name: f for name, f in found.items() if name.startswith("planted/")}
    truth = 0
    for colour, (name, measured) in zip(OTHERS, planted.items(), strict=False):
        truth = len(measured["recovery"])
        place = np.linspace(0, measured["sweeps"], len(measured["trace"][0]), endpoint=False)
        for c, chain in enumerate(measured["trace"]):
            label = name.removeprefix("planted/").replace("/", ", ") if c == 0 else None
            ax.plot(place, chain, lw=1, alpha=0.8, color=colour, label=label)
    ax.axhline(truth, color="0.3", ls="--", lw=1, label="planted")
    ax.set(xlabel="sweep", ylabel="factors in use", ylim=(0, None))
    ax.set_title("Planted factors, found from one factor", loc="left")
    ax.legend(frameon=False, fontsize="small", loc="upper right")


def _sections(found: dict[str, Any], ax: Any, key: str, label: str) -> None:
    """Draw means over auxiliary sections and runs, with their standard errors."""
    values = factor_claims.section_values(found, key)
    shift = -1.0
    for method, colour in COLOURS.items():
        sizes = sorted({size for _, size, _, m in values if m == method})
        by_size = [
            [v for (_, s, _, m), v in values.items() if (s, m) == (size, method)] for size in sizes
        ]
        if not sizes:
            continue
        error = [np.std(v, ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in by_size]
        ax.errorbar(
            np.add(sizes, shift), [np.mean(v) for v in by_size], error, fmt="o-", ms=4, lw=1.3,
            color=colour, label=method,
        )  # fmt: skip
        shift += 0.4
    ax.set(xlabel="training papers of the target", ylabel=label)
    ax.set_title("Sections of NIPS", loc="left")
    ax.legend(frameon=False, fontsize="small")


def _scopes(found: dict[str, Any], ax: Any, part: str) -> None:
    digits = {name: f for name, f in found.items() if name.startswith(f"{part}/")}
    for colour, (name, measured) in zip(OTHERS, digits.items(), strict=False):
        sizes = [int(size) for size in measured["scope"]]
        about = f"MAP {measured['map']:.3f} ± {measured['error']:.3f}"
        label = f"{name.split('/')[1]}, {about}"
        values = list(measured["scope"].values())
        ax.plot(sizes, values, "o-", ms=3, lw=1.3, label=label, color=colour)
    low = min(min(f["scope"].values()) for f in digits.values())
    ax.set(xscale="log", xlabel="scope", ylabel="precision", ylim=(max(low - 0.05, 0), 1.01))
    features = {"digits": "649 features", "bundled": "64 pixels"}[part]
    ax.set_title(f"Digits of the same class, by {features}", loc="left")
    ax.legend(frameon=False, fontsize="small", loc="lower left")
