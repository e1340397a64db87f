"""Pictures of a run, as its folder and its report have them: PNG, and places of what is SVG."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped

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
MAP_WIDTH, MAP_HEIGHTS = 760.0, (240.0, 460.0)
LARGEST = 30.0  # radius of the largest topic in the map
FONT = 12.0
MARGIN = 62.0  # around the centres of the map's circles

Box = tuple[float, float, float, float]  # left, top, right, bottom


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
    """Return circles for topics at their places; areas are in proportion to their shares.

    Labels of large topics get a place where there is room.
    """
    centres, height = _spread(places)
    size = MAP_WIDTH, height
    radii = np.maximum(LARGEST * np.sqrt(shares / (shares.max() or 1.0)), 3.0).tolist()
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(centres, radii, strict=True)]
    circles, texts = [], []
    for k in map(int, np.argsort(-shares, kind="stable")):
        (x, y), r = centres[k], radii[k]
        inside = r > 4.5 * len(str(k)) + 2  # there is room for the number of the topic
        circles.append({"k": k, "x": x, "y": y, "r": r, "inside": inside})
        for text in [labels[k]] if inside else [f"{k} {labels[k]}", str(k)]:
            if text and (box := _room(text, (x, y), r, taken, size)):
                taken.append(box)
                texts.append({"text": text, "x": (box[0] + box[2]) / 2, "y": box[3] - 3})
                break
    return {"width": MAP_WIDTH, "height": height, "circles": circles, "texts": texts}


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


def _spread(places: Float[np.ndarray, "n 2"]) -> tuple[list[list[float]], float]:
    """Scale places alike in both directions; return them in the picture, and its height."""
    if np.ptp(places[:, 1]) > np.ptp(places[:, 0]):  # directions mean nothing
        places = places[:, ::-1]
    low, high = places.min(axis=0), places.max(axis=0)
    extent = np.where(high > low, high - low, 1e-9)
    room = np.array([MAP_WIDTH, MAP_HEIGHTS[1]]) - 2 * MARGIN
    scale = float((room / extent).min()) if (high > low).any() else 0.0
    height = float(np.clip(extent[1] * scale + 2 * MARGIN, *MAP_HEIGHTS))
    centred = (places - (low + high) / 2) * scale * np.array([1.0, -1.0])
    return (centred + np.array([MAP_WIDTH, height]) / 2).tolist(), height


def _room(
    text: str,
    centre: tuple[float, float],
    radius: float,
    taken: Sequence[Box],
    size: tuple[float, float],
) -> Box | None:
    """Return where a text has room beside a circle; None: nowhere."""
    width, height = 0.56 * FONT * len(text), 1.2 * FONT
    down, right = radius + height / 2, radius + 3 + width / 2
    for x, y in ((0.0, down), (0.0, -down), (right, 0.0), (-right, 0.0)):
        left, top = centre[0] + x - width / 2, centre[1] + y - height / 2
        box = (left, top, left + width, top + height)
        inside = left >= 0 and top >= 0 and box[2] <= size[0] and box[3] <= size[1]
        if inside and not any(_overlap(box, other) for other in taken):
            return box
    return None


def _overlap(box: Box, other: Box) -> bool:
    """Return whether two boxes overlap."""
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
