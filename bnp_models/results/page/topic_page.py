"""The parts of the page about a topic model, in their order."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from bnp_models.results.document_tables import document_shares
from bnp_models.results.page.documents import documents_section
from bnp_models.results.page.figures import interval_bar
from bnp_models.results.page.groups import prevalence_section
from bnp_models.results.page.markup import Section, element_id, joined, paragraph
from bnp_models.results.page.tables import data_table, interval_text, number, percent
from bnp_models.results.page.topics import correlation_section, map_section, topics_section

__all__ = ["class_sections", "topic_sections"]

NO_STATES = "No full state was kept (keep_states=0), so topics are not known."


def topic_sections(
    fit: Any, num_rows: int | None, more: Callable[[pd.Series, int | None], list[Section]]
) -> list[Section]:
    """Return the parts about topics, groups and documents.

    Parameters
    ----------
    fit
        Of a topic model.
    num_rows
        Documents in the list at most; all if None.
    more
        Returns the parts that only fits of some class have, given labels and `num_rows`.
    """
    if not fit.has_states:
        return [Section("topics", "Topics", paragraph(NO_STATES))]
    labels = fit.topic_labels()
    shares = document_shares(fit.shown.topic_states, fit.dataset, fit.shown.alignment)
    found = [topics_section(fit, fit.topics(), labels, shares), map_section(fit, labels)]
    if fit.dataset.group is not None:
        found.append(prevalence_section(fit, labels))
    found += [*more(labels, num_rows), correlation_section(fit, labels)]
    found.append(documents_section(fit, labels, shares, num_rows))
    return [section for section in found if section is not None]


def class_sections(fit: Any) -> list[Section]:
    """Return a part for each class of a fit that has a model for each: its topics and weights."""
    sections = []
    for place, name in enumerate(fit.classes):
        one = fit.of_class(name)
        table = one.topic_weights()
        top = float(table["upper"].max())
        rows = [
            (
                str(k),
                number(row["weight"], ".2f"),
                f"{row['weight_lower']:.2f} \N{EN DASH} {row['weight_upper']:.2f}",
                interval_bar(row["prevalence"], row["lower"], row["upper"], top),
                joined(percent(row["prevalence"]), " ", interval_text(row["lower"], row["upper"])),
                row["words"],
            )
            for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
        ]
        said = (
            f"These are the topics of the model of \u201c{name}\u201d against the rest, by their "
            "weights: a topic of large weight makes this label probable. Weights are compared with "
            "one another; a shift of all changes nothing."
        )
        chains = [paragraph(line) for line in one.shown._chains_text().split("\n\n")]
        head = ("topic", "weight", "90% interval", "", "share of the tokens", "words")
        table = data_table(f"Topics of the class {name}", head, rows, numeric=(1, 2), class_="wide")
        title = f"Topics for the label \u201c{name}\u201d"
        id = f"class-{place}-{element_id(name)}".strip("-")
        sections.append(Section(id, title, joined(paragraph(said), chains, table)))
    return sections
