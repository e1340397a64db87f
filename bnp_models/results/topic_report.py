"""The table of topics as text."""

import math
import shutil
import textwrap
from typing import Any

import pandas as pd

from bnp_models.plots.small_topics import small, small_text

__all__ = ["in_others", "topics_text"]

MAX_LABEL = 24  # characters


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
    of_few, large = table["prevalence"][hidden], table[~hidden]
    shown = large.head(len(large) if num_rows is None else num_rows)
    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    columns = "{:>5}  {:>6}  {:>15}  " + "{:>6}  {:>5}  {:>8}  " * (num_others > 0)
    labels = _labels(shown)
    place = max(map(len, labels.values()), default=0)
    head = columns.format("topic", "share", "90% interval", "others", "alike", "there")
    lines = [head + ("label".ljust(place) + "  " if labels else "") + "words"]
    for topic, row in shown.iterrows():
        start = columns.format(
            topic,
            f"{row['prevalence']:.2%}",
            f"{row['lower']:.2%} - {row['upper']:.2%}",
            f"{row['other_chains']}/{num_others}",
            *in_others(row["similarity"], row["lowest_share"], row["highest_share"]),
        )
        start += labels[topic].ljust(place) + "  " if labels else ""
        lines.append(
            start + textwrap.shorten(row["words"], max(width - len(start), 20), placeholder=" ...")
        )
    left = large.iloc[len(shown) :]
    if len(left):
        share = left["prevalence"].sum()
        lines.append(f"and {len(left)} smaller topics, together {share:.1%} of the tokens")
    if len(of_few):
        lines.append(f"and {small_text(len(of_few), float(of_few.sum()))} of the tokens")
    if num_others:
        lines.append(
            "others: how many of the other chains have such a topic; alike: 1 if it is the same "
            "one there,\nnear 0.5 if it is hardly the same; there: its shares in them, lowest and "
            "highest"
        )
    unmatched = table.attrs.get("unmatched", 0.0)
    if unmatched >= 0.0005:
        lines.append(
            f"{unmatched:.1%} of the tokens are in topics of some draws that resemble none of these"
        )
    return "\n".join(lines)


def in_others(similarity: float, lowest: float, highest: float) -> tuple[str, str]:
    """Format how alike a topic is in the other chains, and its shares there; dashes for none."""
    if math.isnan(similarity):
        return "-", "-"
    shares = dict.fromkeys(f"{100 * share:.2g}" for share in (lowest, highest))
    return f"{similarity:.2f}", "-".join(shares) + "%"


def _labels(table: pd.DataFrame) -> dict[Any, str]:
    """Return the labels that the user gave, by topic, cut to the width of a column; if any."""
    if "label" not in table:
        return {}
    lines = {topic: " ".join(label.split()) for topic, label in table["label"].items()}
    cut = MAX_LABEL - 3
    shown = {k: x if len(x) <= MAX_LABEL else f"{x[:cut]}..." for k, x in lines.items()}
    return {k: x.ljust(len("label")) for k, x in shown.items()}
