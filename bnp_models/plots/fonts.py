"""Fonts of the system for signs that the font of matplotlib lacks, such as those of Hindi."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findSystemFonts, fontManager, get_font
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

__all__ = ["choose_fonts", "no_glyph_warnings"]

PREFERRED = ("Noto Sans CJK SC", "Noto Sans", "Noto", "Source Han Sans", "WenQuanYi", "Lohit")
PLAIN = ("normal", "regular", 400, 500)  # weights of fonts for usual text


def choose_fonts(figure: Figure) -> None:
    """Let texts of a figure have fonts for all their signs, as far as the system has any."""
    for text in figure.findobj(Text):
        said = text.get_text()
        if said.isascii():
            continue
        own = text.get_fontfamily()
        more = [name for name in families("".join(sorted(set(said)))) if name not in own]
        if more:
            text.set_fontfamily([*own, *more])


@contextlib.contextmanager
def no_glyph_warnings() -> Iterator[None]:
    """Say nothing of signs that no font of the system has; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


@functools.lru_cache(maxsize=4096)
def families(signs: str) -> tuple[str, ...]:
    """Return fonts that together have all signs which the default font lacks, if there are any."""
    default = get_font(fontManager.findfont(FontProperties())).get_charmap()
    missing = {ord(sign) for sign in signs if sign.isprintable()} - set(default)
    found = []
    for name, path in _fonts() if missing else ():
        if had := missing & _signs(path):
            found.append(name)
            missing -= had
        if not missing:
            break
    return tuple(found)


@functools.cache
def _fonts() -> list[tuple[str, str]]:
    """Return names and files of plain fonts, the preferred ones first."""
    known = {font.fname for font in fontManager.ttflist}  # matplotlib may have listed them long ago
    for path in set(findSystemFonts()) - known:
        with contextlib.suppress(Exception):  # a font that is damaged or of an unknown form
            fontManager.addfont(path)
    fonts = {
        font.name: font.fname
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in PLAIN and "Last Resort" not in font.name
    }
    rank = {
        name: next((i for i, start in enumerate(PREFERRED) if name.startswith(start)), 99)
        for name in fonts
    }
    # of one kind the shortest name first: "Noto Sans CJK JP" before "Noto Sans Mono CJK JP"
    order = sorted(fonts, key=lambda name: (rank[name], len(name), name))
    return [(name, fonts[name]) for name in order]


@functools.cache
def _signs(path: str) -> frozenset[int]:
    """Return the signs that a font has; none of a file that cannot be read."""
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
