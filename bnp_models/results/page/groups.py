"""The parts of the page about groups of documents: shares of topics, sharing, and contrasts."""

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.results.page.markup import Html, Section, joined, paragraph, tag
from bnp_models.results.page.tables import data_table, interval_text, number, percent
from bnp_models.results.page.topics import topic_link

__all__ = ["contrast_section", "prevalence_section", "sharing_section"]

MAX_TOPICS = 30
MAX_GROUPS = 12


def prevalence_section(fit: Any, labels: pd.Series) -> Section:
    """Show the share of each topic in each group, with intervals, as a heat map."""
    table = fit.topic_prevalence_by_group()
    size = table.groupby("group", sort=False)["num_tokens"].first()
    groups = size.sort_values(ascending=False, kind="stable").index[:MAX_GROUPS]
    groups = [name for name in size.index if name in set(groups)]
    at = {(row.group, row.topic): row for row in table.itertuples()}
    shown = labels.index[:MAX_TOPICS].tolist()
    top = np.nanmax([at[g, k].prevalence for g in groups for k in shown], initial=0.0) or 1.0
    rows = []
    for k in shown:
        cells = [at[g, k] for g in groups]
        rows.append((topic_link(k, labels), *(_cell(row, top) for row in cells)))
    said = [
        "Each column says how the tokens of a group are divided among the topics. Intervals hold "
        "90% of the draws; the more colour, the larger the share."
    ]
    if len(shown) < len(labels):
        said.append(f"These are the {len(shown)} largest of {len(labels):,} topics.")
    if len(groups) < len(size):
        said.append(f"These are the {len(groups)} largest of {len(size):,} groups.")
    if len(said) > 1:
        said.append("fit.topic_prevalence_by_group() has all.")
    caption = "Share of each topic among the tokens of each group"
    return Section(
        "groups",
        "Topics by group",
        joined(
            paragraph(" ".join(said)),
            data_table(
                caption, ("topic", *groups), rows, numeric=range(1, 1 + len(groups)), class_="heat"
            ),
        ),
    )


def _cell(row: Any, top: float) -> Html:
    value = row.prevalence
    shade = (value / top) ** 0.5 if np.isfinite(value) else 0.0  # small ones can be told apart
    return tag(
        "td", percent(value), tag("br"), interval_text(row.lower, row.upper),
        style=f"--v:{shade:.3f}", class_="number",
    )  # fmt: skip


def sharing_section(fit: Any, labels: pd.Series) -> Section:
    """Say of each topic which groups have it."""
    table = fit.shared_topics()
    count = len(fit.dataset.group_names)
    rows = [
        (
            topic_link(k, labels),
            row["kind"],
            number(row["num_groups"], ".1f"),
            row["groups"],
            percent(row["largest_share"]),
        )
        for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
    ]
    kinds = table["kind"].value_counts()
    known = [kind for kind in ("common", "shared", "own") if kind in kinds]
    found = ", ".join(f"{kinds[kind]} {kind}" for kind in known)
    said = (
        f"A group counts if it has the topic with a probability of one half at least: {found}. "
        f"Common topics are those of all {count} groups, own ones those of a single group."
    )
    head = ("topic", "kind", "expected groups", "groups, the largest share first", "largest share")
    return Section(
        "sharing",
        "What the groups share",
        joined(
            paragraph(said),
            data_table("Groups that have each topic", head, rows, numeric=(2, 4)),
        ),
    )


def contrast_section(fit: Any, labels: pd.Series) -> Section:
    """Put the words of each group for a topic side by side."""
    table = fit.contrast()
    words = table.columns[table.columns.get_loc("common") :].tolist()
    measures = [name for name in ("likeness", "distance") if name in table]
    rows = []
    for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        cells = [
            joined(
                number(row[name], ".2f"), tag("br"),
                tag("span", _span(row[f"{name}_lower"], row[f"{name}_upper"]), class_="interval"),
            )
            for name in measures
        ]  # fmt: skip
        rows.append((topic_link(k, labels), *cells, *(row[name] for name in words)))
    said = (
        "Every topic has words that all groups use, in the column \u201ccommon\u201d, and in each "
        "group words that it uses more than that. An empty cell: the group does not have the "
        "topic. Distance is that of Hellinger between the versions of two groups, from 0 to 1."
    )
    if "likeness" in measures:
        said += " Likeness is what the model infers about how alike the versions are."
    head = ("topic", *measures, *words)
    numeric = range(1, 1 + len(measures))
    return Section(
        "contrast",
        "How the groups differ in each topic",
        joined(
            paragraph(said),
            data_table("Words of the topics by group", head, rows, numeric=numeric, class_="wide"),
        ),
    )


def _span(lower: float, upper: float) -> str:
    if not np.isfinite([lower, upper]).all():
        return ""
    return f"{lower:.2f} \N{EN DASH} {upper:.2f}"
