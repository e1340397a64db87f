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


def chains_text(
    alignment: Alignment, *, representative: bool, counted: str, terms: ModelWords
) -> str:
    """Say which chains a table is made from, and how much of it the chains have in common.

    Parameters
    ----------
    alignment
        Of the states that the table is made from.
    representative
        Whether these are the states of the representative chain.
    counted
        What the sizes of topics or factors count, in the plural.
    terms
        Words of the model.
    """
    chain, common = alignment.chain[0], f"{1 - alignment.uncommon_share():.1%} of the {counted}"
    if alignment.in_chains is not None:
        number = len(alignment.in_chains.chains)
        which = "one of the chains"
        if representative:
            which = "the chain that is most like the others"
            which = "the one with the higher mean lp" if number == 2 else which
        said = (
            f"Chain {chain}, {which} ({number} in all). {common} are in {terms.parts} that every "
            "other chain has, too. Shares and intervals are within this chain. fit.of_chain(c) "
            "shows chain c (on the command line --chain c), fit.pooled() the average over chains."
        )
    elif (alignment.chain == chain).all():
        said = f"Chain {chain} alone, which is no summary of the posterior."
    else:
        said = (
            f"Average over {len(set(alignment.chain.tolist()))} chains. {common} are in "
            f"{terms.parts} that every chain has. A chain without a {terms.dim} counts as zero."
        )
    return textwrap.fill(said, 100)
