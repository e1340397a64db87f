"""The part of the page that lists the documents, or the rows of a factor model, to search them."""

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.results.document_tables import DocumentShares
from bnp_models.results.page.markup import Section, shortened, tag
from bnp_models.results.page.tables import Filter, Row, evenly, listing, percent

__all__ = ["documents_section", "more_rows"]

NUM_TOPICS = 3  # of each document
MIN_SHARE = 0.02  # of a topic that is named
EXCERPT = 160  # characters of a text


def more_rows(total: int) -> str:
    """Say how to get a page with all rows."""
    return (
        f"fit.report(path, num_rows={total}), or bnp-models report RUN --num-rows {total}, has all."
    )


def documents_section(
    fit: Any, labels: pd.Series, shares: DocumentShares, num_rows: int | None
) -> Section:
    """List documents with their largest topics.

    Parameters
    ----------
    fit
        Of a topic model.
    labels
        From `fit.topic_labels()`.
    shares
        Of the documents that were fitted.
    num_rows
        Documents at most; all if None.
    """
    corpus = fit.dataset
    chosen = evenly(corpus.num_docs, num_rows)
    top = np.argsort(-shares.mean, axis=1, kind="stable")[:, :NUM_TOPICS]
    texts = corpus.texts
    group = None if corpus.group is None else np.asarray(corpus.group)
    label = None if corpus.label is None else np.asarray(corpus.label)
    rows, seen = [], set()
    length = np.asarray(corpus.doc_length)
    for d in chosen.tolist():
        main = [(k, float(shares.mean[d, k])) for k in top[d].tolist()]
        main = [(k, share) for k, share in main if share >= MIN_SHARE] or main[:1]
        seen |= {k for k, _ in main}
        name = [tag("span", corpus.doc_names[d], dir="auto")]
        if texts is not None:
            name.append(tag("p", shortened(texts[d], EXCERPT), class_="excerpt", dir="auto"))
        cells = [tag("div", name)]
        if group is not None:
            cells.append(corpus.group_names[group[d]])
        if corpus.author_idx is not None:
            cells.append(", ".join(corpus.authors(d)))
        if label is not None:
            cells.append(corpus.label_names[label[d]] if corpus.label_names else str(label[d]))
        cells.append(f"{length[d]:,}")
        cells.append(
            tag(
                "ul",
                [
                    tag("li", tag("a", tag("b", str(k)), f" {labels[k]}", href=f"#topic-{k}"),
                        f" {percent(share)}")
                    for k, share in main
                ],
                class_="main-topics",
            )
        )  # fmt: skip
        has = {"topic": " ".join(f"{k}:{share:.3f}" for k, share in main)}
        if group is not None:
            has["group"] = str(group[d])
        rows.append(Row(cells, has))
    filters = [Filter("topic", "Topic", [(k, f"{k} {labels[k]}") for k in sorted(seen)])]
    if group is not None:
        names = corpus.group_names
        used = sorted(set(group[chosen].tolist()))
        filters.append(Filter("group", "Group", [(g, names[g]) for g in used]))
    head = ["document"]
    head += ["group"] if group is not None else []
    head += ["authors"] if corpus.author_idx is not None else []
    head += ["label"] if label is not None else []
    head += ["tokens", "largest topics"]
    caption = "Documents and their largest topics, with posterior mean shares"
    if texts is not None:
        caption += "; the search looks at names, beginnings of texts and labels of topics"
    return Section(
        "documents",
        "Documents",
        listing(
            "documents", "documents", caption, head, rows, total=corpus.num_docs,
            more=more_rows(corpus.num_docs), filters=filters, numeric=(len(head) - 2,),
        ),
    )  # fmt: skip
