"""Tables, texts and pictures that are written for a run beside its draws."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from bnp_models.base.model_words import ModelWords
    from bnp_models.posterior.alignment import Alignment

__all__ = ["Summaries", "chains_text"]


class Summaries(NamedTuple):
    """Tables, text and pictures of a run; those that need data which are not there are left out."""

    tables: dict[str, pd.DataFrame]
    text: Callable[[int | None], str] | None
    """Lays out the main table, given how many rows to show (None: all); None without states."""
    drawn: dict[str, Any]
    """Axes, one or an array of them, by the name of the picture."""


def chains_text(alignment: Alignment, best_chain: int, *, counted: str, terms: ModelWords) -> str:
    """Say which chains a table is made from, and how much of it they do not have in common.

    Parameters
    ----------
    alignment
        Of the states that the table is made from.
    best_chain
        See `Fit.best_chain`.
    counted
        What the sizes of topics or factors count, in the plural.
    terms
        Words of the model.
    """
    chains = sorted(set(alignment.chain.tolist()))
    if len(chains) == 1:
        return f"Chain {chains[0]} alone, which is no summary of the posterior."
    share = alignment.uncommon_share()
    said = f"{share:.1%} of the {counted} are in {terms.parts} that some of the chains do not have."
    if share >= 0.0005:
        said += (
            f" The table averages over all chains; a chain without a {terms.dim} counts as zero. "
            f"To see one chain alone, give its number: chain={best_chain} (on the command line "
            f"--chain {best_chain}) is the one with the highest mean lp."
        )
    return textwrap.fill(said, 100)
