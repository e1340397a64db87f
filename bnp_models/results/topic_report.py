"""The table of topics as text."""

import shutil
import textwrap

import pandas as pd

__all__ = ["topics_text"]


def topics_text(table: pd.DataFrame, *, num_chains: int, num_rows: int | None = None) -> str:
    """Lay out the table of `TopicFit.topics` in aligned columns, a line per topic, and explain it.

    Parameters
    ----------
    table
        From `TopicFit.topics`.
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
        "chains: how many have such a topic in half of their states; alike: 1 if it is the same "
        "one in all\nstates, near 0.5 if it is hardly the same"
    )
    unmatched = table.attrs.get("unmatched", 0.0)
    if unmatched >= 0.0005:
        lines.append(
            f"{unmatched:.1%} of the tokens are in topics of some draws that resemble none of these"
        )
    return "\n".join(lines)
