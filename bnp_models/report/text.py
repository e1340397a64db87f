"""The main tables of a fit as text, for the terminal and for `report.txt`."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from bnp_models.plots.small_topics import small, small_text
from bnp_models.posterior.alignment import MIN_SIMILARITY as TOPIC_SIMILARITY
from bnp_models.posterior.factor_states import MIN_SIMILARITY as FACTOR_SIMILARITY

if TYPE_CHECKING:
    from bnp_models.base.model import ModelWords
    from bnp_models.posterior.alignment import Alignment

__all__ = ["chains_text", "factors_text", "in_others", "topics_text"]

MAX_LABEL = 24  # characters
MAX_SOURCES = 6  # that have a column in the text; the tables in files have all
ALIKE = (
    "others: how many of the other chains have such a {}; alike: how nearly it is the same there,\n"
    "from {} (only roughly; less does not count) to 1 (the same)"
)
NEARLY = "at least roughly (alike says how nearly)"  # having a topic and having the same one differ


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
    chain, share = alignment.chain[0], 1 - alignment.uncommon_share()
    common = f"{share:.1%} of the {counted} are" if share >= 0.0005 else f"No {counted} are"
    if alignment.in_chains is not None:
        number = len(alignment.in_chains.chains)
        which = "one of the chains"
        if representative:
            which = "the chain that is most like the others"
            which = "the one with the higher mean lp" if number == 2 else which
        said = (
            f"Chain {chain}, {which} ({number} in all). {common} in {terms.parts} that every "
            f"other chain has, too, {NEARLY}. Shares and intervals are within this chain. "
            "fit.of_chain(c) shows chain c (on the command line --chain c), fit.pooled() the "
            "average over chains."
        )
    elif (alignment.chain == chain).all():
        said = f"Chain {chain} alone, which is no summary of the posterior."
    else:
        said = (
            f"Average over {len(set(alignment.chain.tolist()))} chains. {common} in "
            f"{terms.parts} that every chain has, {NEARLY}. A chain without a {terms.dim} counts "
            "as zero."
        )
    return textwrap.fill(said, 100)


def topics_text(table: pd.DataFrame, *, num_others: int, num_rows: int | None = None) -> str:
    """Lay out the table of `TopicFit.topics` in aligned columns, a line per topic, and explain it.

    There is a column of labels if `with_labels` gave some. Topics below 0.005% of the tokens are
    put together in the last line of topics.

    Parameters
    ----------
    table
        From `TopicFit.topics`.
    num_others
        Chains besides the one that the topics come from; the columns about them need some.
    num_rows
        Topics to show, the largest ones; all by default.
    """
    hidden = small(table["prevalence"])
    of_few, large = table["prevalence"].to_numpy()[hidden], table.loc[~hidden, :]
    shown = large.iloc[:num_rows]
    left = large.iloc[len(shown) :]
    columns: list[tuple[str, str, Iterable[object]]] = [
        ("topic", ">5", shown.index),
        ("share", ">6", shown["prevalence"].map("{:.2%}".format)),
        ("90% interval", ">15", map("{:.2%} - {:.2%}".format, shown["lower"], shown["upper"])),
    ]
    if num_others:
        found = list(
            map(in_others, shown["similarity"], shown["lowest_share"], shown["highest_share"])
        )
        columns += [
            ("others", ">6", [f"{count}/{num_others}" for count in shown["other_chains"]]),
            ("alike", ">5", [alike for alike, _ in found]),
            ("there", ">8", [shares for _, shares in found]),
        ]
    if "label" in table:
        labels = [" ".join(label.split()) for label in shown["label"]]
        labels = [x if len(x) <= MAX_LABEL else f"{x[: MAX_LABEL - 3]}..." for x in labels]
        columns.append(("label", f"<{max(map(len, ['label', *labels]))}", labels))
    lines = _aligned([*columns, ("words", "", shown["words"])])
    if len(left):
        share = left["prevalence"].sum()
        lines.append(f"and {len(left)} smaller topics, together {share:.1%} of the tokens")
    if len(of_few):
        lines.append(f"and {small_text(len(of_few), float(of_few.sum()))} of the tokens")
    if num_others:
        lines.append(
            f"{ALIKE.format('topic', TOPIC_SIMILARITY)}; there: its shares in them, lowest and "
            "highest"
        )
    unmatched = table.attrs.get("unmatched", 0.0)
    if unmatched >= 0.0005:
        which = "topics of some draws that resemble none of these"
        if "parts" in table.attrs:
            which = "topics that are left out or resemble none of these"
        lines.append(f"{unmatched:.1%} of the tokens are in {which}")
    return "\n".join(lines)


def factors_text(
    table: pd.DataFrame,
    number: pd.DataFrame,
    source_names: Sequence[str],
    *,
    num_others: int,
    num_rows: int | None = None,
) -> str:
    """Lay out the table of `FactorFit.factors` in aligned columns, and the number of factors.

    Parameters
    ----------
    table, number
        From `FactorFit.factors` and `FactorFit.num_factors`.
    source_names
        Names of the sources.
    num_others
        Chains besides the one that the factors come from; the columns about them need some.
    num_rows
        Factors to show, the most used ones; all by default.
    """
    shown = table.iloc[:num_rows]
    columns: list[tuple[str, str, Iterable[object]]] = [
        ("factor", ">6", shown.index),
        ("rows", ">6", shown["rows"].map("{:.0f}".format)),
        ("90% interval", ">15", map("{:.0f} - {:.0f}".format, shown["lower"], shown["upper"])),
    ]
    columns += [
        (name, f">{max(len(name), 4)}", shown[f"in {name}"].map("{:.0%}".format))
        for name in source_names[:MAX_SOURCES]
    ]
    if num_others:
        alike = ["-" if math.isnan(x) else f"{x:.2f}" for x in shown["similarity"]]
        others = [f"{count}/{num_others}" for count in shown["other_chains"]]
        columns += [("others", ">6", others), ("alike", ">5", alike)]
    probable = number.nlargest(4, "probability")["probability"]
    probable = probable.loc[probable >= 0.05]
    said = ", ".join(f"{n} ({share:.0%})" for n, share in probable.items())
    lines = [f"number of factors, over all chains: {said or 'spread over many'}", ""]
    lines += _aligned([*columns, ("features", "", shown["features"])])
    if left := len(table) - len(shown):
        lines.append(f"and {left} factors that fewer rows use")
    lines.append("rows: how many use the factor, then the share of the rows of each source")
    if num_others:
        lines.append(ALIKE.format("factor", FACTOR_SIMILARITY))
    return "\n".join(lines)


def in_others(similarity: float, lowest: float, highest: float) -> tuple[str, str]:
    """Format how alike a topic is in the other chains, and its shares there; dashes for none."""
    if math.isnan(similarity):
        return "-", "-"
    shares = dict.fromkeys(f"{100 * share:.2g}" for share in (lowest, highest))
    return f"{similarity:.2f}", "-".join(shares) + "%"


def _aligned(columns: Sequence[tuple[str, str, Iterable[object]]]) -> list[str]:
    """Lay out columns, given as headings, alignments and cells; the last is cut at the width."""
    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    lines = []
    for row in zip(*([heading, *cells] for heading, _, cells in columns), strict=True):
        *first, last = row
        start = "".join(
            f"{cell!s:{align}}  " for cell, (_, align, _) in zip(first, columns, strict=False)
        )
        shown = textwrap.shorten(last, max(width - len(start), 20), placeholder=" ...")
        lines.append(start + shown)
    return lines
