"""What the command line says of a run, and the folder it keeps a run in."""

import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bnp_models import arviz_data
from bnp_models.corpus import Corpus
from bnp_models.result import Fit

__all__ = ["Lines", "draw_run", "load_run", "save_run", "say", "topics_text"]


class Lines:
    """Progress as a line of text now and then, where a moving bar would fill a log file.

    Parameters
    ----------
    num_sweeps
        Sweeps of the whole run.
    seconds
        Time between lines.
    """

    def __init__(self, num_sweeps: int, seconds: float | int = 15):
        self._num_sweeps, self._seconds = num_sweeps, seconds
        self._start = self._last = time.monotonic()

    def update(self, sweep: int, used: np.ndarray, lp: np.ndarray, note: str = "") -> None:
        """Print a line if it is time, or if this was the last sweep."""
        now = time.monotonic()
        if now - self._last < self._seconds and sweep < self._num_sweeps:
            return
        self._last = now
        say(
            f"{now - self._start:5.0f} s: sweep {sweep} of {self._num_sweeps}, "
            f"{np.min(used)} to {np.max(used)} topics, lp {np.mean(lp):.6g}"
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


def save_run(fit: Fit, folder: Path, *, num_rows: int | None = None) -> str:
    """Write draws, corpus, tables and pictures, and return the report on topics and chains.

    The files are `draws.nc`, `corpus.npz`, `convergence.csv`, `report.txt`, pictures and, if full
    states were kept, `topics.csv` and `documents.csv`.

    Parameters
    ----------
    fit
        What to write.
    folder
        An existing folder.
    num_rows
        Topics in the returned report; the files have all.
    """
    import matplotlib.pyplot as plt

    fit.save(folder / "draws.nc")  # first: nothing that fails below loses a draw
    fit.corpus.save(folder / "corpus.npz")
    judged = fit.convergence()
    judged.table.to_csv(folder / "convergence.csv")
    parts, whole = [str(judged)], [str(judged)]
    table = None
    if arviz_data.has_group(fit.data, "states"):
        table = fit.topics()
        table.to_csv(folder / "topics.csv")
        fit.documents().to_csv(folder / "documents.csv")
        num_chains = fit.posterior.sizes["chain"]
        parts.insert(0, topics_text(table, num_chains=num_chains, num_rows=num_rows))
        whole.insert(0, topics_text(table, num_chains=num_chains))
    (folder / "report.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")
    for name, axes in draw_run(fit, table).items():
        figure = np.asarray(axes, dtype=object).flat[0].figure
        figure.savefig(folder / f"{name}.png", dpi=110)
        plt.close(figure)
    return "\n\n".join(parts)


def load_run(folder: Path) -> Fit:
    """Read the fit that `save_run` wrote.

    Raises
    ------
    ValueError
        If the folder holds no such run, or its files do not belong together.
    """
    for name in ("draws.nc", "corpus.npz"):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder} holds no finished run: {name} is missing. Give the --output folder of "
                "`bnp-models fit`; an interrupted run is finished by `bnp-models resume`"
            )
    return Fit.load(folder / "draws.nc", Corpus.load(folder / "corpus.npz"))


def draw_run(fit: Fit, topics: pd.DataFrame | None) -> dict[str, Any]:
    """Draw the pictures that there are data for.

    Parameters
    ----------
    fit
        The run.
    topics
        From `fit.topics`; None if no full state was kept.

    Returns
    -------
    Axes, one or an array of them, by the name of the picture.
    """
    drawn: dict[str, Any] = {"traces": fit.plot_traces()}
    if fit.posterior.sizes["chain"] > 1:
        drawn["ranks"] = fit.plot_ranks()
    if "num_topics_used" in fit.posterior:
        drawn["num_topics"] = fit.plot_num_topics()
    if topics is not None:
        drawn["topic_words"] = fit.plot_topic_words()
        drawn["topic_similarity"] = fit.plot_topic_similarity()
        if getattr(fit.corpus, "group", None) is not None:
            drawn["topics_by_group"] = fit.plot_prevalence_by_group()
    return drawn
