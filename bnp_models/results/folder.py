"""The folder of a run: draws, data, tables, pictures and a report, written and read again."""

from pathlib import Path
from typing import Any

import numpy as np

from bnp_models.data import arguments
from bnp_models.posterior.arviz_data import has_group
from bnp_models.results.result import Fit, put_together, read_draws

__all__ = ["load_run", "save_run"]

DRAWS = "draws.nc"


def save_run(fit: Fit, folder: Path, *, num_rows: int | None = None) -> str:
    """Write draws, data, tables and pictures, and return the report on the model and the chains.

    The files are `draws.nc`, the data, `convergence.csv`, `report.txt`, and the tables and pictures
    of `fit.report()`.

    Parameters
    ----------
    fit
        What to write.
    folder
        An existing folder.
    num_rows
        How many topics or factors the returned report shows; the files have all.
    """
    import matplotlib.pyplot as plt

    arguments.instance("fit", fit, Fit, "what bnp_models.fit returns")
    folder = arguments.path("folder", folder)
    arguments.optional(arguments.integer, "num_rows", num_rows, 1)
    fit.save(folder / DRAWS)  # first, so that a failure below loses no draw
    fit.corpus.save(folder / fit.model.readers.file)
    judged = fit.convergence()
    judged.table.to_csv(folder / "convergence.csv")
    parts, whole = [str(judged)], [str(judged)]
    if "compile_seconds" in fit.data.attrs:  # not in older runs
        whole.append(
            "The chains ran for {sampling_seconds:.1f} s, of which compiling took "
            "{compile_seconds:.1f} s.".format(**fit.data.attrs)
        )
    pictures: dict[str, Any] = {"traces": fit.plot_traces()}
    if has_group(fit.data, "history"):  # not in older runs
        pictures["history"] = fit.plot_history()
    if fit.posterior.sizes["chain"] > 1:
        pictures["ranks"] = fit.plot_ranks()
    tables, text, drawn = fit.report()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv")
    if text is not None:
        parts.insert(0, text(num_rows))
        whole.insert(0, text(None))
    (folder / "report.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")
    for name, axes in (pictures | drawn).items():
        figure = np.asarray(axes, dtype=object).flat[0].figure
        figure.savefig(folder / f"{name}.png", dpi=110)
        plt.close(figure)
    return "\n\n".join(parts)


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
    _check_file(folder, model.readers.file)
    data = model.load_data(folder / model.readers.file)
    return put_together(folder / DRAWS, model, draws, data)


def _check_file(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise ValueError(
            f"{folder} holds no finished run: {name} is missing. Give the --output folder of "
            "`bnp-models fit`; an interrupted run is finished by `bnp-models resume`"
        )
