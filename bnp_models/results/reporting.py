"""The report as one HTML page, as a method of every fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bnp_models.results.page.markup import Section

__all__ = ["Reporting"]


class Reporting:
    """The part of `Fit` that writes the report."""

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        *,
        num_rows: int | None = 1000,
    ) -> Path:
        """Write a report as one HTML page, whole or not at all, and return its path.

        The page needs no network and no other file. It begins with the verdict on convergence.
        Then come the topics or factors with their intervals, a list of the documents or rows that
        can be searched, pictures, and how the run was made.

        Parameters
        ----------
        path
            The file; its name should end in `.html`. An older file is replaced.
        num_rows
            Rows of the long lists at most: documents, authors, rows of the data. Those in the page
            are evenly spaced in the order of the data, and the page says how many there are. A
            thousand documents take about a megabyte. None puts all into the page.

        Raises
        ------
        ValueError
            If `path` is a folder or its folder is missing, or an option is out of its domain.
        """
        from bnp_models.results.page.page import write_page

        return write_page(self, path, num_rows=num_rows)

    def _sections(self, num_rows: int | None) -> list[Section]:
        """Return the parts of the report between convergence and pictures.

        `num_rows` is how many rows the long lists have at most; None: all.
        """
        return []
