"""What is written of a run beside its draws: tables, a text and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Report"]


class Report(NamedTuple):
    """What there is to say of a run, as far as there are data for it."""

    tables: dict[str, pd.DataFrame]
    text: Callable[[int | None], str] | None
    """Lay out the main table, so many rows of it (all for None); None if no state was kept."""
    drawn: dict[str, Any]
    """Axes, one or an array of them, by the name of the picture."""
