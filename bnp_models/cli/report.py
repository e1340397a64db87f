"""What the command line says of a run, and the folder it keeps a run in."""

import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bnp_models.cli.factor_report import Report, factor_tables
from bnp_models.data.corpus import Corpus
from bnp_models.data.sources import Sources
from bnp_models.posterior import arviz_data
from bnp_models.results.factor_fit import FactorFit
from bnp_models.results.topic_fit import Fit

__all__ = ["DATA_FILES", "Lines", "load_run", "save_run", "say", "topic_tables", "topics_text"]

DATA_FILES: dict[type, str] = {Corpus: "corpus.npz", Sources: "sources.npz"}
"""Name of the file with the data of a run, by their type."""

AnyFit = Fit | FactorFit


class Lines:
    """Progress as a line of text now and then, where a moving bar would fill a log file.

    Parameters
    ----------
    num_sweeps
        Sweeps of the whole run.
    seconds
        Time between lines.
    noun
        What is counted as in use, "topics" or "factors".
    """

    def __init__(self, num_sweeps: int, seconds: float | int = 15, noun: str = "topics"):
        self._num_sweeps, self._seconds, self._noun = num_sweeps, seconds, noun
        self._start = self._last = time.monotonic()

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Print a line if it is time, or if this was the last sweep."""
        now = time.monotonic()
        if now - self._last < self._seconds and sweep < self._num_sweeps:
            return
        self._last = now
        say(
            f"{now - self._start:5.0f} s: sweep {sweep} of {self._num_sweeps}, "
            f"{np.min(used)} to {np.max(used)} {self._noun}, lp {np.mean(lp):.6g}"
        )

    def close(self) -> None:
        """Do nothing: every line is complete."""


def say(text: str) -> None:
    """Print what is no result, at once, where it does not mix with results: to stderr."""
    print(text, file=sys.stderr, flush=True)


def topics_text(table: pd.DataFrame, *, num_chains: int, num_rows: int | None = None) -> str:
    """Lay out the table of `Fit.topics` in aligned columns, a line per topic, and explain it.

    Parameters
    ----------
    table
        From `Fit.topics`.
    num_chains
        Chains of the fit.
    num_rows
        Topics to show, the largest ones; all by default.
    """
    shown = table.head(len(table) if num_rows is None else num_rows)
    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    columns = "{:>5}  {:>6}  {:>15}  {:>6}  {:>5}  "
    lines = [columns.format("topic", "share", "90% interval", "chains", "alike") + "words"]
    for topic, row in shown.iterrows():
        start = columns.format(
            topic,
            f"{row['prevalence']:.2%}",
            f"{row['lower']:.2%} - {row['upper']:.2%}",
            f"{row['num_chains']}/{num_chains}",
            f"{row['similarity']:.2f}",
        )
        lines.append(start + textwrap.shorten(row["words"], width - len(start), placeholder=" ..."))
    left = table.iloc[len(shown) :]
    if len(left):
        share = left["prevalence"].sum()
        lines.append(f"and {len(left)} smaller topics, together {share:.1%} of the tokens")
    lines.append(
        "chains: that have such a topic in half of their states; alike: 1 if it is the same one in "
        "all\nstates, near 0.5 if it is hardly the same"
    )
    unmatched = table.attrs.get("unmatched", 0.0)
    if unmatched >= 0.0005:
        lines.append(
            f"{unmatched:.1%} of the tokens are in topics that resemble none of these, of some "
            "chains or draws"
        )
    return "\n".join(lines)


def save_run(fit: AnyFit, folder: Path, *, num_rows: int | None = None) -> str:
    """Write draws, data, tables and pictures, and return the report on topics and chains.

    The files are `draws.nc`, `corpus.npz`, `convergence.csv`, `report.txt`, pictures and, if full
    states were kept, `topics.csv` and `documents.csv`; see `factor_report` for factor models.

    Parameters
    ----------
    fit
        What to write.
    folder
        An existing folder.
    num_rows
        Topics or factors in the returned report; the files have all.
    """
    import matplotlib.pyplot as plt

    fit.save(folder / "draws.nc")  # first: nothing that fails below loses a draw
    fit.corpus.save(folder / DATA_FILES[type(fit.corpus)])
    judged = fit.convergence()
    judged.table.to_csv(folder / "convergence.csv")
    parts, whole = [str(judged)], [str(judged)]
    pictures: dict[str, Any] = {"traces": fit.plot_traces()}
    if fit.posterior.sizes["chain"] > 1:
        pictures["ranks"] = fit.plot_ranks()
    make = factor_tables if isinstance(fit, FactorFit) else topic_tables
    tables, text, drawn = make(fit)
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


def load_run(folder: Path) -> AnyFit:
    """Read the fit that `save_run` wrote.

    Raises
    ------
    ValueError
        If the folder holds no such run, or its files do not belong together.
    """
    found = {kind: name for kind, name in DATA_FILES.items() if (folder / name).is_file()}
    lacking = [] if found else [" and ".join(DATA_FILES.values())]
    if not (folder / "draws.nc").is_file():
        lacking.insert(0, "draws.nc")
    if lacking:
        raise ValueError(
            f"{folder} holds no finished run: {lacking[0]} is missing. Give the --output folder of "
            "`bnp-models fit`; an interrupted run is finished by `bnp-models resume`"
        )
    (kind, name), *_ = found.items()
    return Fit.load(folder / "draws.nc", kind.load(folder / name))


def topic_tables(fit: Fit) -> Report:
    """Return tables, text and pictures of topics, those that there are data for."""
    drawn: dict[str, Any] = {}
    if "num_topics_used" in fit.posterior:
        drawn["num_topics"] = fit.plot_num_topics()
    if not arviz_data.has_group(fit.data, "states"):
        return Report({}, None, drawn)
    table = fit.topics()
    drawn["topic_words"] = fit.plot_topic_words()
    drawn["topic_similarity"] = fit.plot_topic_similarity()
    if getattr(fit.corpus, "group", None) is not None:
        drawn["topics_by_group"] = fit.plot_prevalence_by_group()
    num_chains = fit.posterior.sizes["chain"]

    def text(num_rows: int | None) -> str:
        return topics_text(table, num_chains=num_chains, num_rows=num_rows)

    return Report({"topics": table, "documents": fit.documents()}, text, drawn)
