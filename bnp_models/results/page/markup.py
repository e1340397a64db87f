"""HTML that is escaped as it is made: every text is, unless it is `Html` already.

Words, names and texts of a corpus can hold anything. So nothing here joins strings by hand: `tag`
makes an element of its children, and escapes those that are plain text.
"""

import html
import re
from typing import Any, NamedTuple

__all__ = ["Html", "Section", "element_id", "joined", "paragraph", "shortened", "tag"]

VOID = ("br", "img", "input", "meta")
# what no HTML may hold: control characters, and halves of surrogate pairs, which no UTF-8 has
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


class Section(NamedTuple):
    """A part of the page."""

    id: str  # address inside the page
    title: str
    body: Html


def escaped(text: Any) -> Html:
    """Return a text with the characters of HTML escaped; `Html` stays as it is."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_FORBIDDEN.sub("\ufffd", str(text))))


def joined(*children: Any) -> Html:
    """Put children one after another: texts, elements, and lists of them; None is left out."""
    parts = []
    for child in children:
        if isinstance(child, list | tuple):
            parts.append(joined(*child))
        elif child is not None:
            parts.append(escaped(child))
    return Html("".join(parts))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Make an element.

    Parameters
    ----------
    name
        Of the element.
    *children
        As for `joined`.
    **attributes
        Their names, with an underscore for a hyphen, and one at the end of a Python word (`class_`,
        `for_`). None and False leave an attribute out, True gives it no value.
    """
    given = ""
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        given += f" {key}" if value is True else f' {key}="{escaped(str(value))}"'
    if name in VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def paragraph(*children: Any, class_: str | None = None) -> Html:
    """Make a paragraph."""
    return tag("p", *children, class_=class_)


def element_id(text: str) -> str:
    """Return a text as the address of an element: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def shortened(text: str, length: int) -> str:
    """Return a text in one line, cut after so many characters; an ellipsis says that it is."""
    line = " ".join(text[: 4 * length].split())
    if len(line) <= length and len(text) <= 4 * length:
        return line
    return f"{line[:length].rstrip()} \N{HORIZONTAL ELLIPSIS}"
