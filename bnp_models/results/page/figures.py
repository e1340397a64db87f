"""Pictures of the page that are drawn as SVG, with the colours of the page, and PNG pictures."""

import base64
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Shaped

from bnp_models.results.page.markup import Html, tag
from bnp_models.results.page.tables import plain

__all__ = ["chain_legend", "interval_bar", "picture", "topic_map", "trace"]

NUM_COLOURS = 7  # of chains, in the style sheet
MAX_POINTS = 500  # of a trace
MAP_WIDTH, MAP_HEIGHTS = 760.0, (240.0, 460.0)
LARGEST = 30.0  # radius of the largest topic in the map
FONT = 12.0
MARGIN = 62.0  # around the centres of the map's circles

Box = tuple[float, float, float, float]  # left, top, right, bottom


def trace(name: str, draws: Shaped[np.ndarray, "C S"], chains: Sequence[int]) -> Html:
    """Draw one quantity along the draws of each chain."""
    width, height, left, base = 640.0, 120.0, 104.0, 104.0
    every = math.ceil(draws.shape[1] / MAX_POINTS)
    values = draws[:, ::every].astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    middle = low == high
    x = np.linspace(left, width - 4, max(values.shape[1], 2))
    lines = []
    for chain, row in zip(chains, values, strict=True):
        share = np.full(len(row), 0.5) if middle else (row - low) / (high - low)
        lines.append(
            tag("path", d=_path(x, base - share * (base - 8)), fill="none", **_colour(chain))
        )
    labels = [(low, (base + 8) / 2)] if middle else [(high, 12.0), (low, base)]
    said = f"{name} along the draws of {len(chains)} chains, from {plain(low)} to {plain(high)}"
    svg = tag(
        "svg",
        tag("path", d=f"M{left - 6} 8V{base + 4}H{width - 4}", class_="axis"),
        [
            tag("text", plain(value), x=left - 12, y=f"{y:.0f}", text_anchor="end")
            for value, y in labels
        ],
        lines,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=said,
        class_="trace",
    )
    note = f", every {every} draws" if every > 1 else ""
    return tag("figure", tag("figcaption", f"{name}{note}"), svg)


def chain_legend(chains: Sequence[int]) -> Html:
    """Name the colours of the chains."""
    marks = [
        tag("li", tag("svg", tag("path", d="M0 5H18", **_colour(chain)), viewBox="0 0 18 10",
                      class_="swatch", aria_hidden="true"), f"chain {chain}")
        for chain in chains
    ]  # fmt: skip
    return tag("ul", marks, class_="legend")


def interval_bar(value: float, lower: float, upper: float, top: float) -> Html:
    """Draw a share as a bar with its interval; `top` is the share of the full width.

    The numbers stand beside the bar as text, so screen readers leave it out.
    """
    scale = 100 / top if top > 0 else 0.0
    ends = [min(max(x * scale, 0.0), 100.0) for x in (value, lower, upper)]
    at, low, high = (f"{x:.2f}" for x in ends)
    return tag(
        "svg",
        tag("rect", x=0, y=3, width=at, height=8, class_="bar"),
        tag("path", d=f"M{low} 7H{high}", class_="whisker"),
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        class_="interval-bar",
        aria_hidden="true",
    )


def topic_map(
    places: Float[np.ndarray, "n 2"],
    shares: Float[np.ndarray, " n"],
    labels: Sequence[str],
    titles: Sequence[str],
    explained: float,
) -> Html:
    """Draw topics as circles at their places; areas are in proportion to their shares.

    Each circle is a link to its topic. Labels of large topics are written where there is room.
    """
    centres, height = _spread(places)
    size = MAP_WIDTH, height
    top = float(shares.max(initial=0.0)) or 1.0
    radii = np.maximum(LARGEST * np.sqrt(shares / top), 3.0).tolist()
    taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(centres, radii, strict=True)]
    circles, texts = [], []
    for k in np.argsort(-shares, kind="stable").tolist():
        (x, y), r = centres[k], radii[k]
        inside = r > 4.5 * len(str(k)) + 2
        circles.append(
            tag(
                "a",
                tag("title", titles[k]),
                tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{r:.1f}"),
                tag("text", str(k), x=f"{x:.1f}", y=f"{y + 4:.1f}", class_="inside")
                if inside
                else None,
                href=f"#topic-{k}",
                tabindex="-1",
            )
        )
        text = labels[k] if inside else f"{k} {labels[k]}"
        for shown in (text, "" if inside else str(k)):
            if shown and (found := _room(shown, (x, y), r, taken, size)):
                taken.append(found)
                at = {"x": f"{(found[0] + found[2]) / 2:.1f}", "y": f"{found[3] - 3:.1f}"}
                texts.append(tag("text", shown, **at))
                break
    svg = tag(
        "svg",
        circles,
        tag("g", texts, class_="labels", aria_hidden="true"),
        viewBox=f"0 0 {MAP_WIDTH:.0f} {height:.0f}",
        class_="map",
        role="group",
        aria_label=f"Map of {len(shares)} topics; each circle is a link to its topic",
    )
    caption = (
        "Topics that are near one another use similar words; the area of a circle is the topic's "
        f"share of all tokens. The plane shows {explained:.0%} of the differences between topics"
    )
    caption += "." if explained >= 0.9 else ", so neighbours in it need not be alike."
    frame = tag("div", svg, class_="scroll", tabindex="0")
    return tag("figure", frame, tag("figcaption", caption))


def picture(content: bytes, alt: str) -> Html:
    """Put a PNG picture into the page, with a caption."""
    data = base64.b64encode(content).decode()
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
    image = tag(
        "img", src=f"data:image/png;base64,{data}", alt=alt, width=width, height=height,
        loading="lazy",
    )  # fmt: skip
    return tag("figure", image, tag("figcaption", alt))


def _colour(chain: int) -> dict[str, str]:
    """Return the attributes of a line that give it the colour of a chain."""
    if chain < NUM_COLOURS:
        return {"class_": f"chain-{chain}"}
    return {"stroke": f"hsl({137.5 * chain % 360:.0f} 60% 50%)", "class_": "chain"}


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
    """Say whether two boxes overlap."""
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
