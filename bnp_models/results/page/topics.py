"""The parts of the page about topics: what they are, a map, and which come together."""

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.results.document_tables import DocumentShares
from bnp_models.results.page.figures import interval_bar, topic_map
from bnp_models.results.page.markup import Html, Section, joined, paragraph, shortened, tag
from bnp_models.results.page.tables import data_table, interval_text, number, percent
from bnp_models.results.topic_relations import largest_documents
from bnp_models.results.topic_report import in_others

__all__ = ["correlation_section", "map_section", "topic_link", "topics_section"]

NUM_OPEN = 20  # topics that are shown at once; the others are behind a button
NUM_WORDS = 10
NUM_DOCUMENTS = 3  # for each topic
EXCERPT = 400  # characters of a text
MAX_MAP = 30  # topics in the map
MAX_PAIRS = 12
MAX_COMPARED = 500  # topics of which each is compared with each other one: seconds


def topic_link(k: int, labels: pd.Series) -> Html:
    """Return a link to a topic, with its label."""
    return tag("a", tag("b", str(k)), f" {labels[k]}", href=f"#topic-{k}")


def topics_section(
    fit: Any, table: pd.DataFrame, labels: pd.Series, shares: DocumentShares
) -> Section:
    """Describe each topic: share, label, words, and the documents that are most about it.

    Parameters
    ----------
    fit
        Of a topic model.
    table
        From `fit.topics()`.
    labels
        From `fit.topic_labels()`.
    shares
        Of the documents that were fitted.
    """
    words = dict(iter(fit.topic_words(num_words=NUM_WORDS).groupby("topic")))
    top = float(table["upper"].max())
    num_others = fit.shown.alignment.num_others
    every = [
        _card(fit, k, row, labels, words.get(k), shares, top=top, num_others=num_others)
        for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
    ]
    shown, hidden = every[:NUM_OPEN], every[NUM_OPEN:]
    more = None
    if hidden:
        rest = table["prevalence"].iloc[NUM_OPEN:].sum()
        said = f"{len(hidden):,} smaller topics, together {percent(rest)} of the tokens"
        cards = tag("div", hidden, class_="cards")
        more = tag("details", tag("summary", said), cards, class_="more-topics")
    unmatched = float(table.attrs.get("unmatched", 0.0))
    notes = [
        f"{len(table):,} topics, the largest first. Intervals hold 90% of the draws. Labels are "
        "words that are frequent in a topic and rare in others, where nobody has given a name."
    ]
    if num_others:
        notes.append(
            "\u201cOthers\u201d says how many of the other chains have such a topic, and its "
            "lowest and highest share there; \u201calike\u201d is 1 if it is the same topic."
        )
    if unmatched >= 0.0005:
        notes.append(f"{percent(unmatched)} of the tokens are in topics that resemble none of "
                     "these.")  # fmt: skip
    text = [paragraph(line) for line in fit.shown._chains_text().split("\n\n")]
    body = joined(paragraph(" ".join(notes)), text, tag("div", shown, class_="cards"), more)
    return Section("topics", "Topics", body)


def _card(
    fit: Any,
    k: int,
    row: dict[str, Any],
    labels: pd.Series,
    words: pd.DataFrame | None,
    shares: DocumentShares,
    *,
    top: float,
    num_others: int,
) -> Html:
    facts = [f"in {percent(row['documents'])} of the documents"]
    if num_others:
        alike, there = in_others(row["similarity"], row["lowest_share"], row["highest_share"])
        facts += [f"others {row['other_chains']}/{num_others} ({there})", f"alike {alike}"]
    share = tag(
        "div",
        interval_bar(row["prevalence"], row["lower"], row["upper"], top),
        tag("span", percent(row["prevalence"]), " ", interval_text(row["lower"], row["upper"])),
        class_="share",
    )
    head = tag("h3", tag("span", str(k), class_="badge"), " ", labels[k] or "no word of its own")
    detail = tag(
        "details",
        tag("summary", "words in numbers, and documents"),
        _words(words),
        paragraph(tag("b", "Rare in other topics: "), row["relevant_words"]),
        _documents(fit, k, shares),
    )
    return tag(
        "article",
        tag("header", head, share),
        paragraph(row["words"], class_="words"),
        paragraph(", ".join(facts), class_="muted"),
        detail,
        id=f"topic-{k}",
        class_="topic",
    )


def _words(words: pd.DataFrame | None) -> Html | None:
    if words is None:
        return None
    top = float(words["upper"].max())
    rows = [
        (
            row["word"],
            interval_bar(row["probability"], row["lower"], row["upper"], top),
            percent(row["probability"]),
            interval_text(row["lower"], row["upper"]),
        )
        for row in words.to_dict("records")
    ]
    head = ("word", "", "probability", "90% interval")
    return data_table("Most probable words", head, rows, numeric=(2, 3), class_="words-table")


def _documents(fit: Any, k: int, shares: DocumentShares) -> Html:
    """List the documents with the largest shares of a topic, with the start of their texts."""
    found = largest_documents(shares, fit.dataset, k, num_documents=NUM_DOCUMENTS)
    items = []
    for row in found.to_dict("records"):
        text = row.get("text")
        items.append(
            tag(
                "li",
                tag("b", row["name"], dir="auto"),
                f" {percent(row['share'])} ",
                interval_text(row["lower"], row["upper"]),
                text and tag("blockquote", shortened(text, EXCERPT), dir="auto"),
            )
        )
    link = tag(
        "a", "Find more in the list of documents", href=f"#documents&topic={k}", class_="js-only"
    )
    return joined(
        paragraph(tag("b", "Documents with the largest shares")), tag("ul", items), paragraph(link)
    )


def map_section(fit: Any, labels: pd.Series) -> Section | None:
    """Draw the map of the topics; None if there are fewer than three."""
    title = "Map of the topics"
    if len(labels) < 3:
        return None
    if len(labels) > MAX_COMPARED:
        return Section("map", title, _too_many(len(labels), "plot_topic_map"))
    table = fit.topic_map()
    explained = float(table.attrs["explained"])
    drawn = table.iloc[:MAX_MAP]
    titles = [
        f"topic {k}: {labels[k]}, {percent(share)} of the tokens"
        for k, share in drawn["prevalence"].items()
    ]
    names = [", ".join(label.split(", ")[:2]) for label in labels.iloc[: len(drawn)]]
    figure = topic_map(
        drawn[["x", "y"]].to_numpy(), drawn["prevalence"].to_numpy(),
        [shortened(name, 28) for name in names], titles, explained,
    )  # fmt: skip
    note = None
    if len(drawn) < len(table):
        note = paragraph(f"The {len(drawn)} largest of {len(table):,} topics are drawn.")
    return Section("map", title, joined(note, figure))


def correlation_section(fit: Any, labels: pd.Series) -> Section | None:
    """List the pairs of topics that come in the same documents; None if there is none."""
    title = "Topics that come together"
    if len(labels) < 3:
        return None
    if len(labels) > MAX_COMPARED:
        return Section("together", title, _too_many(len(labels), "topic_correlation"))
    table = fit.topic_correlation()
    found = table[(table["lower"] > 0) & np.isfinite(table["correlation"])]
    if found.empty:
        return None
    found = found.sort_values("correlation", ascending=False, kind="stable")
    rows = [
        (
            joined(topic_link(row.topic, labels), tag("br"), topic_link(row.other, labels)),
            number(row.correlation, ".2f"),
            f"{row.lower:.2f} \N{EN DASH} {row.upper:.2f}",
        )
        for row in found.head(MAX_PAIRS).itertuples()
    ]
    said = "Two topics are correlated if documents that have more of one have more of the other."
    if len(found) > len(rows):
        said += (
            f" The table has the {len(rows)} strongest of {len(found):,} pairs whose interval lies "
            "above zero; fit.topic_correlation() has all."
        )
    head = ("topics", "correlation", "90% interval")
    caption = "Correlation of the topics' shares over documents"
    return Section(
        "together",
        title,
        joined(paragraph(said), data_table(caption, head, rows, numeric=(1, 2))),
    )


def _too_many(count: int, method: str) -> Html:
    """Say that a comparison of each topic with each other one is left out."""
    return paragraph(
        f"There are {count:,} topics. Comparing each with each other one takes long, so it is left "
        f"out here; fit.{method}() does it."
    )
