"""Places of circles and names: none covers another, all are inside, and they stay near."""

import itertools

import numpy as np
import pytest

from bnp_models.plots.placing import (
    CHARACTER,
    LINE,
    apart,
    fitted,
    place_names,
    shortened,
    text_length,
)

SIZE = (760.0, 580.0)
FONT = 12.0


def made_up(kind, count=30):
    rng = np.random.default_rng(0)
    places = {
        "one place": np.zeros((count, 2)),
        "normal": rng.normal(size=(count, 2)),
        "two places": np.sign(rng.normal(size=(count, 2))),
        "far away": rng.standard_t(1, size=(count, 2)),
    }[kind]
    radii = -np.sort(-np.clip(30 * rng.beta(1, 3, count), 10, 30))
    return places, radii


@pytest.mark.parametrize("kind", ["one place", "normal", "two places", "far away"])
def test_circles_are_apart_and_named(kind):
    places, radii = made_up(kind)
    names = [f"{k} government, vote" for k in range(len(places))]
    widths = np.array([CHARACTER * FONT * len(name) for name in names])
    start = fitted(places, SIZE, 60.0)
    at = apart(start, radii, widths, SIZE, line=LINE * FONT)
    np.testing.assert_array_equal(at, apart(start, radii, widths, SIZE, line=LINE * FONT))
    distance = np.sqrt(((at[:, None] - at) ** 2).sum(axis=-1)) - radii - radii[:, None]
    assert distance[~np.eye(len(at), dtype=bool)].min() > 0
    assert (at - radii[:, None] > 0).all()
    assert (at + radii[:, None] < SIZE).all()
    found = place_names([(name, name[:9]) for name in names], at, radii, SIZE, font=FONT)
    assert all(name is not None for name in found)
    boxes = []
    for name in found:
        half = np.array([CHARACTER * text_length(name.text), LINE]) * FONT / 2
        box = np.array([name.x, name.y]) - half, np.array([name.x, name.y]) + half
        assert (box[0] >= 0).all()
        assert (box[1] <= SIZE).all()
        outside = np.sqrt(((np.clip(at, *box) - at) ** 2).sum(axis=1)) - radii
        assert outside.min() > 0  # it covers no circle
        boxes.append(box)
    for (low, high), (other_low, other_high) in itertools.combinations(boxes, 2):
        assert (low >= other_high).any() or (high <= other_low).any()


def test_circles_that_have_room_stay():
    places = fitted(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), SIZE, 60.0)
    at = apart(places, np.full(3, 12.0), np.full(3, 60.0), SIZE, line=14.0)
    assert np.abs(at - places).max() < 0.01


def test_the_smaller_circle_is_pushed_farther():
    start = np.array([[300.0, 300.0], [320.0, 300.0]])
    at = apart(start, np.array([30.0, 10.0]), np.zeros(2), SIZE, line=0.0)
    large, small = np.abs(at - start)[:, 0]
    assert small == pytest.approx(9 * large, rel=0.01)


def test_names_that_are_not_beside_their_circle_have_a_line():
    """Around the circle in the middle there is no room."""
    turn = np.arange(8) * np.pi / 4
    ring = 30 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    at = np.vstack([ring, [[0.0, 0.0]]]) + np.array(SIZE) / 2
    names = [("",)] * 8 + [("a name",)]
    found = place_names(names, at, np.full(9, 10.0), SIZE, font=FONT)
    # the line to it would cross a circle, or go between two of them
    assert found[-1] is None or found[-1].line is not None
    found = place_names(names, at, np.full(9, 6.0), SIZE, font=FONT)
    assert found[-1].line is not None
    start, end = np.reshape(found[-1].line, (2, 2))
    assert np.sqrt(((start - at[-1]) ** 2).sum()) == pytest.approx(6.0)
    points = start + np.linspace(0, 1, 50)[:, None] * (end - start)
    clear = np.sqrt(((points[:, None] - at[:8]) ** 2).sum(axis=-1))
    assert clear.min() > 5.5


def test_a_shorter_name_is_taken_where_there_is_no_room():
    at = np.array([[50.0, 20.0]])
    long = "a name that is much too long"
    (found,) = place_names([(long, "short")], at, np.array([9.0]), (100.0, 60.0), font=FONT)
    assert found.text == "short"
    (found,) = place_names([(long,)], at, np.array([9.0]), (100.0, 60.0), font=FONT)
    assert found is None


def test_names_keep_off_lines():
    at = np.array([[200.0, 100.0]])
    down = np.array([[[200.0, 100.0], [200.0, 300.0]]])
    (free,) = place_names([("name",)], at, np.array([9.0]), SIZE, font=FONT)
    (found,) = place_names([("name",)], at, np.array([9.0]), SIZE, font=FONT, lines=down)
    assert free.y > 100
    assert found.y < 100


def test_places_are_scaled_alike_and_centred():
    at = fitted(np.array([[0.0, 0.0], [4.0, 1.0]]), (100.0, 100.0), 10.0)
    np.testing.assert_allclose(at, [[10, 40], [90, 60]])
    at = fitted(np.array([[0.0, 0.0], [1.0, 4.0]]), (200.0, 100.0), 10.0)
    np.testing.assert_allclose(at, [[10, 27.5], [190, 72.5]])  # along the longer side
    np.testing.assert_allclose(fitted(np.ones((2, 2)), (100.0, 50.0), 10.0), [[50, 25]] * 2)
    assert fitted(np.empty((0, 2)), SIZE, 10.0).shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("abc", 3),
        ("选举", 3.6),
        ("한", 1.8),
        ("é", 1),
        ("e\u0301", 1),
        ("", 0),
        ("ab\N{HORIZONTAL ELLIPSIS}", 3.8),
    ],
)
def test_text_length(text, length):
    assert text_length(text) == pytest.approx(length)


def test_shortened():
    assert shortened("a\n b", 5) == "a b"
    assert shortened("abcdef", 4) == "ab\N{HORIZONTAL ELLIPSIS}"  # which is wider than a letter
    assert shortened("ab, cd", 4) == "ab\N{HORIZONTAL ELLIPSIS}"
    assert shortened("选举与政府", 5.5) == "选举\N{HORIZONTAL ELLIPSIS}"
