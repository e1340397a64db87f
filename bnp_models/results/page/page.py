"""The report of a fit as one HTML page, which needs no network and no other file."""

import base64
import functools
import hashlib
import importlib.resources
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.files import replacing
from bnp_models.results.page.about import about_section, data_text, run_text
from bnp_models.results.page.convergence import convergence_section
from bnp_models.results.page.figures import picture
from bnp_models.results.page.markup import Html, Section, paragraph, tag
from bnp_models.results.pictures import png, run_pictures

__all__ = ["write_page"]

CAPTIONS = {
    "history": "Log joint density and number in use from the start, with the end of the warm-up",
    "ranks": "Ranks of each chain's draws among those of all chains; flat bars agree",
    "num_topics": "Number of topics in use, along the chains and by how often it occurred",
    "num_factors": "Number of factors in use, along the chains and by how often it occurred",
    "functionals": "R-hat of what does not depend on labels, by kind; 1 means agreement",
    "topic_words": "Most probable words of the largest topics, with 90% intervals",
    "topic_similarity": "How alike each topic is in every chain",
    "sharing": "What is shared",
    "contrast": "Topics, and below them their versions in each group",
    "distances": "How far the versions of each topic are apart",
    "factors": "Effects of the factors on the data",
}
"""Captions of pictures, which also are what screen readers say."""
DRAWN = ("traces", "topics_by_group")
"""Pictures that the page shows in another form."""


def write_page(
    fit: Any,
    path: str | os.PathLike[str],
    *,
    num_rows: int | None = 1000,
    pictures: Mapping[str, bytes] | None = None,
    folder: Path | None = None,
) -> Path:
    """Write the report of a fit, completely or not at all; see `Fit.report`.

    Parameters
    ----------
    fit
        What the page is about: all chains, or one of them.
    path
        The file, which is replaced if it exists.
    num_rows
        Rows of the long lists at most; all if None.
    pictures
        As PNG files, by name; made here by default.
    folder
        The folder of the run; by default that of `path`, if the draws are there.
    """
    path = checked_path(path)
    num_rows = arguments.optional(arguments.integer, "num_rows", num_rows, 1)
    if folder is None and (path.parent / "draws.nc").is_file():
        folder = path.parent
    if pictures is None:
        pictures = {name: png(axes) for name, axes in run_pictures(fit).items()}
    sections = [convergence_section(fit._whole), *fit._sections(num_rows)]
    drawn = {name: content for name, content in pictures.items() if name not in DRAWN}
    if drawn:
        sections.append(_pictures(drawn))
    sections.append(about_section(fit, folder))
    text = page(f"{type(fit.model).__name__}: report", _head(fit), sections)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
    return path


def checked_path(path: Any) -> Path:
    """Return the path of a file that can be written, or raise `ValueError`."""
    path = arguments.path("path", path)
    if path.is_dir():
        raise ValueError(f"path must be a file, got the folder {path}: give {path / 'report.html'}")
    if not path.parent.is_dir():
        raise ValueError(
            f"path must be in a folder that is there, got {path}: make {path.parent} first"
        )
    return path


def page(title: str, head: Html, sections: Sequence[Section]) -> str:
    """Put the sections into a page, with a list of them at its start."""
    style, script = _part("style.css"), _part("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # nothing is loaded from anywhere, and no other script runs, whatever the texts hold
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    links = [tag("li", tag("a", one.title, href=f"#{one.id}")) for one in sections]
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#convergence", class_="skip"),
        tag("header", tag("h1", title), head, class_="page"),
        tag("nav", tag("ul", links), aria_label="Parts of the report"),
        tag("main", [
            tag("section", tag("h2", one.title, id=f"{one.id}-title"), one.body, id=one.id,
                aria_labelledby=f"{one.id}-title")
            for one in sections
        ]),
        tag("script", Html(script)),
    )  # fmt: skip
    top = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    return f"<!DOCTYPE html>\n{tag('html', top, body, lang='en')}\n"


def _head(fit: Any) -> Html:
    return paragraph(f"{data_text(fit)}; {run_text(fit)}.", class_="lead")


def _pictures(drawn: Mapping[str, bytes]) -> Section:
    figures = [
        picture(content, CAPTIONS.get(name, name.replace("_", " ")))
        for name, content in drawn.items()
    ]
    return Section("pictures", "Pictures", tag("div", figures, class_="pictures"))


@functools.cache
def _part(name: str) -> str:
    """Read a file that lies beside this one."""
    return (importlib.resources.files(__package__) / name).read_text("utf-8")
