"""The folder of a run: draws, data, tables, pictures and a report, written and read again."""

import os
from pathlib import Path
from typing import Any

from bnp_models.data import arguments
from bnp_models.data.files import replacing
from bnp_models.data.mapped import is_mapped_corpus
from bnp_models.data.saved_data import save_data, saved_data
from bnp_models.results.pictures import png, run_pictures
from bnp_models.results.result import Fit, put_together, read_draws
from bnp_models.results.saved_model import load_model

__all__ = ["REPORT", "load", "load_run", "save_picture", "save_run"]

DRAWS = "draws.nc"
REPORT = "report.html"


def save_run(fit: Fit, folder: Path, *, num_rows: int | None = None) -> str:
    """Write draws, data, tables and pictures, and return the report on the model and the chains.

    The files are `draws.nc`, the data (in a folder if they are mapped), `convergence.csv`,
    `report.txt`, `report.html`, and the tables and pictures of `fit.summaries()`.

    Parameters
    ----------
    fit
        What to write.
    folder
        An existing folder.
    num_rows
        How many topics or factors the returned report shows; the files have all.
    """
    from bnp_models.report.page import write_page

    arguments.instance("fit", fit, Fit, "what bnp_models.fit returns")
    folder = arguments.path("folder", folder)
    arguments.optional(arguments.integer, "num_rows", num_rows, 1)
    fit.save(folder / DRAWS)  # first, so that a failure below loses no draw
    save_data(fit.dataset, folder / fit.model.readers.file)
    judged = fit.convergence()
    judged.table.to_csv(folder / "convergence.csv")
    parts, whole = [str(judged)], [str(judged)]
    if "compile_seconds" in fit.data.attrs:  # not where `MCMC` drew
        whole.append(
            "The chains ran for {sampling_seconds:.1f} s, of which compiling took "
            "{compile_seconds:.1f} s.".format(**fit.data.attrs)
        )
    tables, text, drawn = fit.summaries()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv")
    if text is not None:
        parts.insert(0, text(num_rows))
        whole.insert(0, text(None))
    (folder / "report.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")
    pictures = {name: png(axes) for name, axes in run_pictures(fit, drawn).items()}
    for name, content in pictures.items():
        _write(content, folder / f"{name}.png")
    write_page(fit, folder / REPORT, pictures=pictures)
    return "\n\n".join(parts)


def save_picture(axes: Any, path: Path) -> None:
    """Write the figure of some axes as PNG, completely or not at all, and close it."""
    _write(png(axes), path)


def _write(content: bytes, path: Path) -> None:
    with replacing(path) as file:
        file.write(content)


def load_run(folder: Path) -> Any:
    """Read the fit that `save_run` wrote.

    Raises
    ------
    ValueError
        If the folder holds no such run, or its files do not belong together.
    """
    folder = arguments.path("folder", folder)
    _check_file(folder, DRAWS)
    model, draws = read_draws(folder / DRAWS)
    path = saved_data(folder / model.readers.file)
    _check_file(folder, path.name)
    data = model.load_data(path)
    return put_together(folder / DRAWS, model, draws, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fit from the folder of a run, or a `SavedModel` from one light file.

    Reading runs no code from the file.

    Parameters
    ----------
    path
        The --output folder of `bnp-models fit`, or what `fit.save_model` wrote.

    Returns
    -------
    What `fit` returned, such as a `TopicFit`; or a `SavedModel`, which has the topics and
    `transform` but no documents.

    Raises
    ------
    ValueError
        If there is no such folder or file, it is damaged, or something else is in it.

    Examples
    --------
    >>> bnp_models.load("run").topics()  # doctest: +SKIP
    >>> bnp_models.load("topics.npz").transform(["a new text"])  # doctest: +SKIP
    """
    path = arguments.path("path", path)
    if is_mapped_corpus(path):
        raise ValueError(f"{path} is a saved corpus; read it with bnp_models.Corpus.load")
    if path.is_dir():
        return load_run(path)
    if not path.is_file():
        raise ValueError(
            "path must be the folder of a run or a file that fit.save_model wrote, there is no "
            f"{path}"
        )
    with open(path, "rb") as file:
        start = file.read(4)
    if start in (b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05"):
        raise ValueError(
            f"{path} has the draws of a fit, but not its data: bnp_models.Fit.load(path, data) "
            "takes both, or give load the folder of the run"
        )
    return load_model(path)


def _check_file(folder: Path, name: str) -> None:
    if (folder / "header.json").is_file() and not (folder / name).exists():
        raise ValueError(
            f"{folder} is the checkpoint of a run: bnp_models.resume({str(folder)!r}) finishes the "
            "run, or reads it if it is finished"
        )
    if not (folder / name).exists():
        raise ValueError(
            f"{folder} holds no finished run: {name} is missing. Give the --output folder of "
            "`bnp-models fit`; an interrupted run is finished by `bnp-models resume`"
        )
