"""The parts of the page about authors, and about labels of documents."""

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.results.page.documents import more_rows
from bnp_models.results.page.figures import interval_bar
from bnp_models.results.page.markup import Html, Section, joined, paragraph, tag
from bnp_models.results.page.tables import (
    Filter,
    Row,
    data_table,
    evenly,
    interval_text,
    listing,
    number,
    percent,
)
from bnp_models.results.page.topics import topic_link

__all__ = ["authors_section", "weights_section"]

NUM_TOPICS = 4  # of each author


def authors_section(fit: Any, labels: pd.Series, num_rows: int | None) -> Section:
    """List authors with their largest topics.

    Parameters
    ----------
    fit
        Of a model with authors.
    labels
        From `fit.topic_labels()`.
    num_rows
        Authors at most; all if None.
    """
    names = fit.dataset.author_names
    chosen = [names[i] for i in evenly(len(names), num_rows).tolist()]
    table = fit.author_topics(chosen, top=NUM_TOPICS)
    number_of = np.bincount(np.asarray(fit.dataset.author_idx), minlength=len(names))
    docs = dict(zip(names, number_of.tolist(), strict=True))
    rows, seen = [], set()
    for author, part in table.groupby("author", sort=False):
        found = list(part.itertuples())
        seen |= {row.topic for row in found}
        items = [
            tag("li", topic_link(row.topic, labels), f" {percent(row.share)} ",
                interval_text(row.lower, row.upper))
            for row in found
        ]  # fmt: skip
        has = {"topic": " ".join(f"{row.topic}:{row.share:.3f}" for row in found)}
        cells = (
            tag("span", str(author), dir="auto"), f"{docs[str(author)]:,}",
            tag("ul", items, class_="main-topics"),
        )  # fmt: skip
        rows.append(Row(cells, has))
    filters = [Filter("topic", "Topic", [(k, f"{k} {labels[k]}") for k in sorted(seen)])]
    caption = "Authors and their largest topics, with 90% intervals"
    return Section(
        "authors",
        "Authors",
        listing(
            "authors", "authors", caption, ("author", "documents", "largest topics"), rows,
            total=len(names), more=more_rows(len(names)), filters=filters, numeric=(1,),
        ),
    )  # fmt: skip


def weights_section(fit: Any, labels: pd.Series) -> Section:
    """Show the weight of each topic for the label, and how many documents have each label."""
    corpus, classes = fit.dataset, fit.model.classes(fit.dataset)
    table = fit.topic_weights()
    if classes:
        meaning = f"A topic of large weight makes the label \u201c{classes[1]}\u201d probable."
    else:
        meaning = "A topic of large weight makes a large count probable."
    said = f"{meaning} A shift of all weights changes nothing, so compare them with one another."
    top = float(np.nanmax(np.abs(table[["weight_lower", "weight_upper"]].to_numpy()), initial=0.0))
    rows = [
        (
            topic_link(k, labels),
            _diverging(row["weight"], row["weight_lower"], row["weight_upper"], top),
            number(row["weight"], ".2f"),
            f"{row['weight_lower']:.2f} \N{EN DASH} {row['weight_upper']:.2f}",
        )
        for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
    ]
    head = ("topic", "", "weight", "90% interval")
    weights = data_table("Weights of the topics", head, rows, numeric=(2, 3))
    return Section(
        "labels",
        "Labels of the documents",
        joined(_counts(corpus), paragraph(said), weights),
    )


def _counts(corpus: Any) -> Html | None:
    """Say how many documents have each label."""
    if not corpus.label_names:
        return None
    found = np.bincount(np.asarray(corpus.label), minlength=len(corpus.label_names))
    rows = [
        (
            name,
            interval_bar(n / len(corpus.label), 0.0, 0.0, 1.0),
            f"{n:,}",
            percent(n / corpus.num_docs),
        )
        for name, n in zip(corpus.label_names, found.tolist(), strict=True)
    ]
    head = ("label", "", "documents", "share")
    return data_table("Documents with each label", head, rows, numeric=(2, 3))


def _diverging(value: float, lower: float, upper: float, top: float) -> Html:
    """Draw a number as a bar from the middle, to the left if it is negative."""
    at, low, high = (50 + 48 * x / (top or 1.0) for x in (value, lower, upper))
    left, width = min(at, 50.0), abs(at - 50.0)
    return tag(
        "svg",
        tag("path", d="M50 0V14", class_="axis"),
        tag("rect", x=f"{left:.2f}", y=3, width=f"{width:.2f}", height=8, class_="bar"),
        tag("path", d=f"M{low:.2f} 7H{high:.2f}", class_="whisker"),
        viewBox="0 0 100 14",
        preserveAspectRatio="none",
        class_="interval-bar",
        aria_hidden="true",
    )
