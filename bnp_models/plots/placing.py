"""Places of circles and their names in a map, so that none covers another.

Lengths are in one unit, points or pixels. The map reaches from (0, 0) to `size`, and y points down.
There is no randomness: the same input has the same places.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

__all__ = [
    "CHARACTER", "LINE", "Name", "apart", "fitted", "place_names", "shortened", "text_length",
]  # fmt: skip

WIDE = 1.8  # characters of usual width in one of Chinese, Japanese or Korean, or an ellipsis
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
STEPS = 1000  # of pushing circles apart; most maps need less than 100
PUSH = 0.4  # share of what two circles lack that one step makes up for
GAP = 2.0  # around a circle and its name
ROOM = 1.1  # an ellipse does not enclose the corners of a name
SLACK = 0.03  # share of a distance that may be lacking
CHARACTER, LINE = 0.56, 1.4  # width and height of a character in units of the font's size
# quarters of a turn, the best places for a name first
ANGLES = np.array([1, 3, 0, 2, 0.5, 1.5, 2.5, 3.5, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75])
RINGS = np.array([2.0, 6, 14, 24, 36, 50, 66, 84, 105])  # from a circle to its name, nearest first
FAR = np.repeat(RINGS > 6, len(ANGLES))  # places from which a line leads to the circle
ALONG = np.linspace(0.1, 0.9, 9)  # points of a line that must be clear


class Name(NamedTuple):
    """Where a name stands: its centre, and the line to its circle if it is not beside it."""

    text: str
    x: float
    y: float
    line: tuple[float, float, float, float] | None


def text_length(text: str) -> float:
    """Return the length of a text in characters of usual width.

    Signs of Chinese, Japanese and Korean and the ellipsis are wider; marks that are put on other
    signs take no room.
    """
    length = 0.0
    for sign in text:
        if sign == ELLIPSIS or unicodedata.east_asian_width(sign) in "WF":
            length += WIDE
        elif unicodedata.category(sign) not in ("Mn", "Me", "Cf"):
            length += 1
    return length


def shortened(text: str, length: float | int) -> str:
    """Return a text in one line, cut where it is longer than so many characters of usual width."""
    line = " ".join(text.split())
    if text_length(line) <= length:
        return line
    while text_length(line) > length - WIDE:
        line = line[:-1]
    return f"{line.rstrip(' ,')}{ELLIPSIS}"


def fitted(
    places: Float[np.ndarray, "n 2"], size: tuple[float, float], margin: float
) -> Float[np.ndarray, "n 2"]:
    """Scale places alike in both directions and centre them, with a margin on each side.

    Directions mean nothing: the one in which places differ more goes along the longer side.
    """
    if not len(places):
        return places
    if (np.ptp(places[:, 1]) > np.ptp(places[:, 0])) != (size[1] > size[0]):
        places = places[:, ::-1]
    low, high = places.min(axis=0), places.max(axis=0)
    extent = np.maximum(high - low, 1e-9)
    scale = float(((np.array(size) - 2 * margin) / extent).min()) if (high > low).any() else 0.0
    return (places - (low + high) / 2) * max(scale, 0.0) + np.array(size) / 2


def apart(
    centres: Float[np.ndarray, "n 2"],
    radii: Float[np.ndarray, " n"],
    widths: Float[np.ndarray, " n"],
    size: tuple[float, float],
    *,
    line: float,
) -> Float[np.ndarray, "n 2"]:
    """Push circles apart until none covers another, with room for a name below each of them.

    The smaller of two circles is pushed farther. Circles stay inside the map. If it has no room for
    all names, there is room for half of each name, or the circles alone are pushed apart.

    Parameters
    ----------
    centres, radii
        Of the circles.
    widths
        Of the names.
    size
        Width and height of the map.
    line
        Height of a name.
    """
    turn = 2.4 * np.arange(len(centres))  # radians; circles at one place go to different sides
    start = centres + 1e-3 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    for share, below in ((1.0, line), (0.5, line), (0.0, 0.0)):
        name = share * widths / 2
        half = ROOM * np.stack([np.maximum(radii, name), radii + below / 2], axis=1) + GAP
        shift = np.array([0.0, below / 2])
        places, fits = _pushed(start + shift, half, radii**2, size)
        if fits:
            break
    return places - shift


def _pushed(
    places: Float[np.ndarray, "n 2"],
    half: Float[np.ndarray, "n 2"],
    weight: Float[np.ndarray, " n"],
    size: tuple[float, float],
) -> tuple[Float[np.ndarray, "n 2"], bool]:
    """Push ellipses of these half axes apart, light ones farther; return also if that worked."""
    share = weight / (weight[:, None] + weight)  # of a push that the first one of two gets
    wanted = half[:, None] + half
    edge = np.minimum(half, np.array(size) / 2)
    for _ in range(STEPS):
        places = np.clip(places, edge, np.array(size) - edge)
        between = places[:, None] - places
        distance = np.sqrt(((between / wanted) ** 2).sum(axis=-1))  # 1 where they touch
        np.fill_diagonal(distance, 1.0)
        if distance.min(initial=1.0) > 1 - SLACK:
            return places, True
        push = PUSH * np.maximum(1 / np.maximum(distance, 1e-9) - 1, 0.0) * share
        places = places + (between * push[:, :, None]).sum(axis=1)
    return places, False


def place_names(
    names: Sequence[Sequence[str]],
    centres: Float[np.ndarray, "n 2"],
    radii: Float[np.ndarray, " n"],
    size: tuple[float, float],
    *,
    font: float,
    lines: Float[np.ndarray, "m 2 2"] | None = None,
) -> list[Name | None]:
    """Find room for the name of each circle, as near as possible; None: nowhere.

    Parameters
    ----------
    names
        Of each circle, the most important circle first: its name, and shorter ones to take where
        there is no room for it.
    centres, radii
        Of the circles.
    size
        Width and height of the map.
    font
        Size of the font.
    lines
        Between two points each, which no name covers.
    """
    discs = np.column_stack([centres, radii + 1])  # that no name may cover
    for start, end in () if lines is None else lines:
        points = start + np.linspace(0, 1, 15)[:, None] * (end - start)
        discs = np.vstack([discs, np.column_stack([points, np.ones(len(points))])])
    boxes = np.empty((0, 4))
    found: list[Name | None] = []
    for texts, centre, radius in zip(names, centres, radii, strict=True):
        found.append(None)
        for text in texts:
            half = np.array([CHARACTER * text_length(text), LINE]) * font / 2
            middle, step = _around(centre, float(radius), half)
            box = np.hstack([middle - half, middle + half])
            room = (box[:, :2] >= 1).all(axis=1) & (box[:, 2:] <= np.array(size) - 1).all(axis=1)
            room &= ~_covers(box, discs, boxes)
            start, end = centre + step * radius, np.clip(centre, box[:, :2], box[:, 2:])
            line = start + ALONG[:, None, None] * (end - start)  # [points, candidates, 2]
            if not room[~FAR].any():
                points = np.concatenate([line, line], axis=-1).reshape(-1, 4)
                room &= ~_covers(points, discs, boxes).reshape(len(ALONG), -1).any(axis=0)
            if not room.any():
                continue
            best = int(room.argmax())
            boxes = np.vstack([boxes, box[best] + np.array([-2, -1, 2, 1])])
            ends = (*start[best].tolist(), *end[best].tolist()) if FAR[best] else None
            if ends is not None:  # no name may cover the line
                thin = np.ones(len(ALONG))
                discs = np.vstack([discs, np.column_stack([line[:, best], thin])])
            x, y = middle[best].tolist()
            found[-1] = Name(text, x, y, ends)
            break
    return found


def _around(
    centre: Float[np.ndarray, " 2"], radius: float, half: Float[np.ndarray, " 2"]
) -> tuple[Float[np.ndarray, "m 2"], Float[np.ndarray, "m 2"]]:
    """Return centres of boxes of this half size around a circle, and their directions."""
    step = np.stack([np.cos(ANGLES * np.pi / 2), np.sin(ANGLES * np.pi / 2)], axis=1)
    step = np.tile(step, (len(RINGS), 1))
    out = radius + np.repeat(RINGS, len(ANGLES))
    return centre + out[:, None] * step + np.clip(2 * step, -1, 1) * half, step


def _covers(
    box: Float[np.ndarray, "m 4"], discs: Float[np.ndarray, "n 3"], boxes: Float[np.ndarray, "b 4"]
) -> Bool[np.ndarray, " m"]:
    """Return which boxes meet one of the discs or of the other boxes."""
    nearest = np.clip(discs[:, None, :2], box[:, :2], box[:, 2:])
    meets = ((nearest - discs[:, None, :2]) ** 2).sum(axis=-1) < discs[:, None, 2] ** 2
    over = (box[:, None, :2] < boxes[:, 2:]) & (boxes[:, :2] < box[:, None, 2:])
    return meets.any(axis=0) | over.all(axis=-1).any(axis=-1)
