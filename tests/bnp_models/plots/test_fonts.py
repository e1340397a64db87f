"""Signs that the font of matplotlib lacks: drawn with a font of the system, or as boxes."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.font_manager import FontProperties, findfont

from bnp_models.plots import fonts, panels

HINDI = "चुनाव"
DEFAULT = plt.rcParams["font.family"]


@pytest.fixture
def only(monkeypatch):
    """Let the system have these fonts only, by their names and signs."""

    def have(**signs):
        monkeypatch.setattr(fonts, "_fonts", lambda: [(name, name) for name in signs])
        monkeypatch.setattr(fonts, "_signs", lambda path: frozenset(map(ord, signs[path])))

    fonts.families.cache_clear()
    yield have
    fonts.families.cache_clear()
    plt.close("all")


def test_fonts_that_have_what_is_missing(only):
    only(useless="abc", first=HINDI[:2], all=HINDI + "选", more="选举")
    assert fonts.families("abcé") == ()
    assert fonts.families("".join(sorted(HINDI))) == ("first", "all")
    assert fonts.families("举选") == ("all", "more")
    assert fonts.families("\U00013000") == ()  # none has it


def test_texts_get_them_when_the_picture_is_drawn(only):
    only(**{"DejaVu Serif": HINDI})  # which is always there
    ax = panels.panel(None, 3.0, 2.0)
    plain, hindi = ax.text(0, 0, "abc"), ax.text(0, 0.5, HINDI)
    ax.figure.canvas.draw()
    assert plain.get_fontfamily() == DEFAULT
    assert hindi.get_fontfamily() == [*DEFAULT, "DejaVu Serif"]
    ax.figure.canvas.draw()
    assert hindi.get_fontfamily() == [*DEFAULT, "DejaVu Serif"]  # once


def test_nothing_is_said_where_there_is_no_font(only):
    only()
    ax = panels.panel(None, 3.0, 2.0)
    ax.set_title(HINDI)
    ax.figure.canvas.draw()  # a warning would be an error


def test_the_fonts_of_the_system_are_found():
    names = [name for name, _ in fonts._fonts()]
    assert "DejaVu Sans" in names
    assert names == list(dict.fromkeys(names))
    paths = dict(fonts._fonts())
    assert ord("é") in fonts._signs(paths["DejaVu Sans"])
    assert fonts._signs("no file") == frozenset()
    if found := fonts.families("".join(sorted(HINDI))):
        assert findfont(FontProperties(family=list(found)), fallback_to_default=False)
