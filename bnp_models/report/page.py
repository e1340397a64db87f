"""The report of a fit as one HTML page, which needs no network and no other file."""

import base64
import functools
import hashlib
import importlib.resources
import json
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup

from bnp_models.data import arguments
from bnp_models.data.files import replacing
from bnp_models.posterior.diagnostics import label_free
from bnp_models.report.pictures import png, png_figures, run_pictures, trace
from bnp_models.report.sections import (
    MAX_INTERVALS,
    Column,
    Section,
    class_sections,
    covariate_sections,
    factor_sections,
    number,
    percent,
    plain,
    shortened,
    span,
    topic_sections,
)
from bnp_models.report.text import in_others
from bnp_models.results.factor_tables import FactorFit
from bnp_models.results.label_fit import OneVsRestFit
from bnp_models.results.result import Fit
from bnp_models.results.topic_fit import TopicFit

__all__ = ["write_page"]

MAX_ROWS = 30  # of the table of quantities; those that fail come first
MAX_TRACES = 6
MAX_LENGTH = 3000  # of a model or an option in words
PASSING = ("ok", "constant")
# what no HTML may hold: control characters, and halves of surrogate pairs, which no UTF-8 has
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def write_page(
    fit: Fit,
    path: str | os.PathLike[str],
    *,
    num_rows: int | None = 1000,
    title: str | None = None,
    effects: str | None = None,
    time: str | Sequence[Any] | np.ndarray | None = None,
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
    num_rows, title, effects, time
        See `Fit.report`.
    pictures
        As PNG files, by name; made here by default.
    folder
        The folder of the run; by default that of `path`, if the draws are there.
    """
    path = _checked_path(path)
    num_rows = arguments.optional(arguments.integer, "num_rows", num_rows, 1)
    arguments.optional(arguments.text, "title", title)
    about_covariates = covariate_sections(fit, effects, time)  # what may fail comes first
    if folder is None and (path.parent / "draws.nc").is_file():
        folder = path.parent
    if pictures is None:
        pictures = {name: png(axes) for name, axes in run_pictures(fit).items()}
    labels, sections = pd.Series(dtype=object), []
    if isinstance(fit, FactorFit):
        sections = factor_sections(fit, num_rows)
    elif isinstance(fit, TopicFit):
        labels = fit.topic_labels() if fit.has_states else labels
        sections = topic_sections(fit, labels, num_rows)
        sections[-1:-1] = about_covariates  # before the list of documents
    elif isinstance(fit, OneVsRestFit) and fit.has_states:
        sections = class_sections(fit)
    if figures := png_figures(pictures):
        sections.append(Section("pictures", "Pictures", {"figures": figures}))
    text = render(
        title or f"{type(fit.model).__name__}: report",
        f"{_data_text(fit)}; {_run_text(fit)}.",
        [convergence(fit._whole), *sections, about(fit, folder)],
        labels.to_dict(),
    )
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
    return path


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise `ValueError`."""
    path = arguments.path("path", path)
    if path.is_dir():
        raise ValueError(f"path must be a file, got the folder {path}: give {path / 'report.html'}")
    if not path.parent.is_dir():
        raise ValueError(
            f"path must be in a folder that is there, got {path}: make {path.parent} first"
        )
    return path


def render(
    title: str, lead: str, sections: list[Section], labels: Mapping[int, str] | None = None
) -> str:
    """Put the sections into a page, with a list of them at its start.

    Parameters
    ----------
    title, lead
        What stands above.
    sections
        In their order.
    labels
        Of the topics, by number.
    """
    script = _file("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = _template().render(
        title=title, lead=lead, sections=sections, labels=labels or {}, digest=digest,
        script=Markup(script), style=Markup(_file("style.css")),
    )  # fmt: skip
    return _FORBIDDEN.sub("\ufffd", text.lstrip())  # the lines between macros are empty


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "in_others": in_others, "max_intervals": MAX_INTERVALS, "number": number,
        "percent": percent, "plain": plain, "records": _records, "shortened": shortened,
        "span": span,
    }  # fmt: skip
    environment.filters["fields"] = _fields
    return environment.from_string(_file("report.html"))


@functools.cache
def _file(name: str) -> str:
    """Read a file that lies beside this one."""
    return (importlib.resources.files("bnp_models.report") / name).read_text("utf-8")


def _records(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Return the rows of a table by the names of their fields; the field None is the index."""
    rows: list[dict[Hashable, Any]] = table.to_dict("records")
    return [row | {None: index} for row, index in zip(rows, table.index.tolist(), strict=True)]


def _fields(row: Mapping[Hashable, Any], column: Column) -> list[Any]:
    return [row[field] for field in column[2:]]


def convergence(fit: Fit) -> Section:
    """Collect whether the chains of a fit agree, and what shows it.

    Parameters
    ----------
    fit
        With all its chains.
    """
    judged, terms = fit.convergence(), fit.model.terms
    table = judged.table.assign(fails=~judged.table["verdict"].isin(PASSING))
    if len(table) > MAX_ROWS:
        worst = table["rhat"].fillna(float("inf"))
        order = table.assign(worst=worst).sort_values(["fails", "worst"], ascending=False)
        table = order.head(MAX_ROWS)
    scalars = label_free(fit.data, terms=terms)
    chains = fit._chain_numbers()
    data = {
        "judged": judged,
        "unjudged": judged.summary.startswith("Not judged"),
        "parts": terms.parts,
        "modes": fit._modes_text(),
        "table": table,
        "agreed": fit._functionals.text().splitlines() if fit._comparable() else [],
        "chains": chains,
        "traces": [trace(name, scalars[name], chains) for name in list(scalars)[:MAX_TRACES]],
        "num_scalars": len(scalars),
    }
    return Section("convergence", "Have the chains converged?", data)


def about(fit: Fit, folder: Path | None) -> Section:
    """Describe the run, so that it can be repeated and read again.

    Parameters
    ----------
    fit
        What the page is about.
    folder
        The folder of the run, if the fit is in one.
    """
    attrs = fit.data.attrs
    facts = {"model": shortened(repr(fit.model), MAX_LENGTH)}
    facts |= {"data": _data_text(fit), "chains": _run_text(fit)}
    named = {"num_samples": "sweeps after the warm-up", "thinning": "sweeps per kept draw"}
    named |= {"keep_states": "full states kept per chain", "seed": "seed"}
    facts |= {said: attrs[name] for name, said in named.items() if name in attrs}
    options = json.loads(attrs.get("options", "{}"))
    given = [f"{key}={value!r}" for key, value in options.items() if value not in (None, [], ())]
    if given:
        facts["sampler"] = shortened(", ".join(given), MAX_LENGTH)
    if "sampling_seconds" in attrs:  # not where `MCMC` drew
        seconds, compiling = float(attrs["sampling_seconds"]), float(attrs["compile_seconds"])
        facts["time"] = f"{seconds:,.1f} s, of which compiling took {compiling:,.1f} s"
    if versions := json.loads(attrs.get("versions", "{}")):
        facts["versions"] = ", ".join(f"{name} {value}" for name, value in versions.items())
    if "data" in attrs:
        facts["SHA-256 of the data"] = attrs["data"]
    is_mapped = getattr(fit.dataset, "is_mapped", False)
    file = fit.model.readers.file
    data = {
        "facts": facts,
        "folder": None if folder is None else repr(str(folder)),
        "fit_class": type(fit).__name__,
        "data_class": type(fit.dataset).__name__,
        "is_mapped": is_mapped,
        "file": file.removesuffix(".npz") if is_mapped else file,
    }
    return Section("about", "About this run", data)


def _data_text(fit: Fit) -> str:
    """Say in a sentence how large the data are."""
    data = fit.dataset
    if hasattr(data, "num_docs"):
        sizes = {"documents": data.num_docs, "tokens": data.num_tokens, "words": data.num_words}
        sizes |= {"groups": len(data.group_names)} if data.group is not None else {}
        sizes |= {"authors": len(data.author_names)} if data.author_idx is not None else {}
        sizes |= {"labels": len(data.label_names)} if data.label_names else {}
    else:
        sizes = {"rows": data.num_rows, "features": data.num_features, "sources": data.num_sources}
    *first, last = [f"{size:,} {name}" for name, size in sizes.items()]
    return f"{', '.join(first)} and {last}"


def _run_text(fit: Fit) -> str:
    """Say in a sentence how many chains and draws there are."""
    sizes, attrs = fit.posterior.sizes, fit.data.attrs
    text = f"{sizes['chain']} {'chain' if sizes['chain'] == 1 else 'chains'} "
    text += f"with {sizes['draw']:,} kept draws each"
    if "num_warmup" in attrs:
        text += f", after {int(attrs['num_warmup']):,} sweeps of warm-up"
    return text
