"""Pictures of a run, as its folder and its report have them: PNG, and places of what is SVG."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped

from bnp_models.plots.placing import (
    CHARACTER,
    LINE,
    apart,
    fitted,
    place_names,
    shortened,
    text_length,
)
from bnp_models.posterior.arviz_data import has_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bnp_models.results.result import Fit

__all__ = ["CAPTIONS", "png", "png_figures", "run_pictures", "topic_map", "trace"]

CAPTIONS = {
    "history": "Log joint density and number in use from the start, with the end of the warm-up",
    "ranks": "Ranks of each chain's draws among those of all chains; flat bars agree",
    "num_topics": "Number of topics in use, along the chains and by how often it occurred",
    "num_factors": "Number of factors in use, along the chains and by how often it occurred",
    "functionals": "R-hat of what does not depend on labels, by kind; 1 means agreement",
    "topic_words": "Most probable words of the largest topics, with 90% intervals",
    "topic_similarity": "How alike each topic is in every chain",
    "sharing": "What is shared",
    "contrast": "Words of each topic that all groups say, and those that each group says more",
    "distances": "How far the versions of each topic are apart",
    "factors": "Effects of the factors on the data",
}
"""Captions of pictures, which also are what screen readers say."""
DRAWN = ("traces", "topics_by_group")
"""Pictures that the page shows in another form."""
MAX_POINTS = 500  # of a trace
TRACE_LEFT, TRACE_RIGHT, TRACE_TOP, TRACE_BASE = 104.0, 636.0, 8.0, 104.0
MAP_WIDTH = 760.0
MAP_HEIGHTS = (220.0, 12.0, 600.0)  # without topics, for each of them, and at most
LARGEST = 30.0  # radius of the largest topic in the map
FONT = 12.0
MARGIN = 62.0  # around the centres of the map's circles
MAX_LABEL, SHORT = 24, (14, 8)  # characters of a name, and where there is no room for so many


def run_pictures(
    fit: Fit, drawn: Mapping[str, Axes | np.ndarray] | None = None
) -> dict[str, Axes | np.ndarray]:
    """Draw how the chains ran, and what `fit.summaries()` draws.

    Parameters
    ----------
    fit
        What to draw.
    drawn
        Those of `summaries`, if they are there already.
    """
    pictures = {"traces": fit.plot_traces()}
    if has_group(fit.data, "history"):  # not where `MCMC` drew
        pictures["history"] = fit.plot_history()
    if fit.posterior.sizes["chain"] > 1:
        pictures["ranks"] = fit.plot_ranks()
    return pictures | dict(fit.summaries().drawn if drawn is None else drawn)


def png(axes: Axes | np.ndarray) -> bytes:
    """Return the figure of some axes as a PNG file, and close it."""
    import matplotlib.pyplot as plt

    figure = np.asarray(axes, dtype=object).flat[0].figure
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    plt.close(figure)
    return content.getvalue()


def png_figures(pictures: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return captions, sizes and addresses of PNG pictures, but of those that are drawn as SVG."""
    return [
        {
            "caption": CAPTIONS.get(name, name.replace("_", " ")),
            "address": f"data:image/png;base64,{base64.b64encode(content).decode()}",
            "width": int.from_bytes(content[16:20], "big"),
            "height": int.from_bytes(content[20:24], "big"),
        }
        for name, content in pictures.items()
        if name not in DRAWN
    ]


def trace(name: str, draws: Shaped[np.ndarray, "C S"], chains: Sequence[int]) -> dict[str, Any]:
    """Return the lines of one quantity along the draws of each chain, and the ends of its axis."""
    every = math.ceil(draws.shape[1] / MAX_POINTS)
    values = draws[:, ::every].astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    share = (values - low) / (high - low) if low < high else np.full_like(values, 0.5)
    x = np.linspace(TRACE_LEFT, TRACE_RIGHT, max(values.shape[1], 2))
    y = TRACE_BASE - share * (TRACE_BASE - TRACE_TOP)
    ends = [(high, 12), (low, 104)] if low < high else [(low, 56)]
    paths = [(chain, _path(x, row)) for chain, row in zip(chains, y, strict=True)]
    return {"name": name, "every": every, "low": low, "high": high, "ends": ends, "paths": paths}


def topic_map(
    places: Float[np.ndarray, "n 2"], shares: Float[np.ndarray, " n"], labels: Sequence[str]
) -> dict[str, Any]:
    """Return circles for topics near their places, which do not cover one another, and names.

    Areas are in proportion to shares, but for the smallest: every circle has room for its number.
    """
    size = MAP_WIDTH, float(min(MAP_HEIGHTS[0] + MAP_HEIGHTS[1] * len(places), MAP_HEIGHTS[2]))
    least = [7.0 + 3.5 * len(str(k)) for k in range(len(places))]
    radii = np.maximum(LARGEST * np.sqrt(shares / (shares.max(initial=0.0) or 1.0)), least)
    order = np.argsort(-shares, kind="stable")
    full = [shortened(label, MAX_LABEL) for label in labels]
    names = [(full[k], *(shortened(full[k], size) for size in SHORT)) for k in order.tolist()]
    widths = np.array([CHARACTER * FONT * text_length(label) for label in full])
    centres = fitted(places, size, MARGIN)
    centres = apart(centres, radii, widths, size, line=LINE * FONT)
    found = place_names(names, centres[order], radii[order], size, font=FONT)
    circles = [
        {"k": k, "x": x, "y": y, "r": r}
        for k, (x, y), r in zip(
            order.tolist(), centres[order].tolist(), radii[order].tolist(), strict=True
        )
    ]
    texts = [
        {"k": k, "text": name.text, "x": name.x, "y": name.y + 0.35 * FONT, "line": name.line}
        for k, name in zip(order.tolist(), found, strict=True)
        if name is not None and name.text
    ]
    return {"width": size[0], "height": size[1], "circles": circles, "texts": texts}


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return a line through points, with gaps where there is none."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=False):  # one draw has a second place for x
        if math.isfinite(b):
            parts.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    if len(parts) == 1:
        parts.append("h1")  # a point
    return "".join(parts)
