"""What the report says of a topic model: topics, groups, authors, labels and documents."""

import re
from typing import Any

import numpy as np
import pandas as pd

from bnp_models.posterior.stacking import chain_weights
from bnp_models.report.parts import (
    Column,
    Filter,
    Section,
    bars,
    evenly,
    heat_columns,
    shortened,
    weighted,
)
from bnp_models.report.pictures import topic_map
from bnp_models.results.document_tables import DocumentShares, document_shares
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_relations import largest_documents

__all__ = ["class_sections", "topic_sections"]

NUM_OPEN = 20  # topics that are shown at once; the others are behind a button
NUM_WORDS = 10
NUM_DOCUMENTS = 3  # for each topic
NUM_TOPICS, NUM_OF_AUTHOR = 3, 4  # of each document, and of each author
MIN_SHARE = 0.02  # of a topic that is named for a document
EXCERPT = 160  # characters of a text in the list of documents
MAX_MAP = 30  # topics in the map
MAX_PAIRS = 12
MAX_COMPARED = 500  # topics of which each is compared with each other one: seconds
MAX_TOPICS, MAX_GROUPS = 30, 12  # in the heat map of topics by group


def topic_sections(fit: TopicFit, labels: pd.Series, num_rows: int | None) -> list[Section]:
    """Return the parts about topics, groups and documents.

    Parameters
    ----------
    fit
        Of a topic model.
    labels
        From `fit.topic_labels()`.
    num_rows
        Documents and authors in the lists at most; all if None.
    """
    if not fit.has_states:
        return [Section("topics", "Topics", {"parts": "topics"}, "unknown")]
    shares = document_shares(fit.shown.topic_states, fit.dataset, fit.shown.alignment)
    found = [_topics(fit, shares)]
    if len(labels) >= 3:
        found.append(_map(fit, labels))
    if fit.dataset.group is not None:
        found.append(_prevalence(fit, labels))
    if hasattr(fit, "shared_topics"):
        found.append(_sharing(fit))
    if hasattr(fit, "contrast"):
        found.append(_contrast(fit))
    # tables of authors do not use weights of chains
    if hasattr(fit, "author_topics") and chain_weights(fit.data) is None:
        found.append(_authors(fit, labels, num_rows))
    if hasattr(fit, "topic_weights"):
        found.append(_weights(fit))
    if len(labels) >= 3 and (together := _together(fit, labels)):
        found.append(together)
    return [*found, _documents(fit, labels, shares, num_rows)]


def class_sections(fit: Any) -> list[Section]:
    """Return a part for each class of a fit that has a model for each: its topics and weights."""
    sections = []
    for place, name in enumerate(fit.classes):
        one = fit.of_class(name)
        table = one.topic_weights()
        data = {
            "name": name,
            "table": table.assign(bar=bars(table, "prevalence")),
            "chains": one.shown._chains_text(),
        }
        id = f"class-{place}-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}".strip("-")
        title = f"Topics for the label \u201c{name}\u201d"
        sections.append(Section(id, title, data, "class"))
    return sections


def _topics(fit: TopicFit, shares: DocumentShares) -> Section:
    """Describe each topic: share, label, words, and the documents that are most about it."""
    table = fit.topics()
    words = {
        k: part.assign(bar=bars(part, "probability"))
        for k, part in fit.topic_words(num_words=NUM_WORDS).groupby("topic")
    }
    cards = table.assign(bar=bars(table, "prevalence"), k=table.index).to_dict("records")
    for card in cards:
        documents = largest_documents(
            shares, fit.dataset, card["k"], num_documents=NUM_DOCUMENTS
        ).to_dict("records")
        card |= {"most_probable": words.get(card["k"]), "examples": documents}
    data = {
        "cards": cards[:NUM_OPEN],
        "hidden": cards[NUM_OPEN:],
        "hidden_share": table["prevalence"].iloc[NUM_OPEN:].sum(),
        "num_others": fit.shown.alignment.num_others,
        "unmatched": float(table.attrs.get("unmatched", 0.0)),
        "chains": fit.shown._chains_text(),
    }
    return Section("topics", "Topics", data)


def _map(fit: TopicFit, labels: pd.Series) -> Section:
    title = "Map of the topics"
    if len(labels) > MAX_COMPARED:
        return Section("map", title, {"method": "plot_topic_map"}, "too_many")
    table = fit.topic_map()
    drawn = table.iloc[:MAX_MAP]
    short = [shortened(", ".join(x.split(", ")[:2]), 28) for x in labels.iloc[: len(drawn)]]
    places, shares = drawn[["x", "y"]].to_numpy(), drawn["prevalence"].to_numpy()
    data = {"shares": shares, "total": len(table), "explained": float(table.attrs["explained"])}
    return Section("map", title, topic_map(places, shares, short) | data)


def _prevalence(fit: TopicFit, labels: pd.Series) -> Section:
    """Show the share of each topic in each group, with intervals, as a heat map."""
    table = fit.topic_prevalence_by_group()
    size = table.groupby("group", sort=False)["num_tokens"].first()
    largest = size.nlargest(MAX_GROUPS).index
    groups = [name for name in size.index if name in largest]
    shown = table[table["group"].isin(groups) & table["topic"].isin(labels.index[:MAX_TOPICS])]
    share = np.asarray(shown["prevalence"], np.float64)
    # a root, so that small shares can be told apart
    shade = np.sqrt(np.nan_to_num(share) / (np.nanmax(share, initial=0.0) or 1.0))
    wide = shown.assign(shade=shade).pivot(index="topic", columns="group")
    data = {"table": wide, "columns": heat_columns("prevalence", groups, "heat_share")}
    data |= {"num_groups": len(size), "shown_groups": len(groups)}
    return Section("groups", "Topics by group", data)


def _sharing(fit: Any) -> Section:
    """Say of each topic which groups have it."""
    table = fit.shared_topics()
    kinds = table["kind"].value_counts().reindex(["common", "shared", "own"]).dropna()
    data = {"table": table, "kinds": kinds.astype(int).to_dict()}
    data["num_groups"] = len(fit.dataset.group_names)
    return Section("sharing", "What the groups share", data)


def _contrast(fit: Any) -> Section:
    """Put the words of each group for a topic side by side."""
    table = fit.contrast()
    measures = [name for name in ("likeness", "distance") if name in table]
    columns: list[Column] = [
        (name, "measure", name, f"{name}_lower", f"{name}_upper") for name in measures
    ]
    words = table.columns[table.columns.get_loc("common") :]
    columns += [(name, "text", name) for name in words]
    data = {"table": table, "columns": columns, "has_likeness": "likeness" in measures}
    return Section("contrast", "How the groups differ in each topic", data)


def _authors(fit: Any, labels: pd.Series, num_rows: int | None) -> Section:
    """List authors with their largest topics."""
    names = fit.dataset.author_names
    chosen = evenly(len(names), num_rows).tolist()
    table = fit.author_topics([names[i] for i in chosen], top=NUM_OF_AUTHOR)
    shares = [
        list(part[["topic", "share", "lower", "upper"]].itertuples(index=False, name=None))
        for _, part in table.groupby("author", sort=False)
    ]
    num_docs = np.bincount(np.asarray(fit.dataset.author_idx), minlength=len(names))
    rows = pd.DataFrame({"name": [names[i] for i in chosen], "documents": num_docs[chosen]})
    rows["shares"] = shares
    return Section("authors", "Authors", _listing("authors", rows, len(names), labels))


def _weights(fit: Any) -> Section:
    """Show the weight of each topic for the label, and how many documents have each label."""
    corpus, table = fit.dataset, fit.topic_weights()
    across = bars(table, "weight", "weight_lower", "weight_upper", around_zero=True)
    data = {"table": table.assign(bar=across), "classes": fit.model.classes(corpus), "counts": None}
    if corpus.label_names:
        count = np.bincount(np.asarray(corpus.label), minlength=len(corpus.label_names))
        counts = pd.DataFrame({"documents": count, "none": 0.0}, index=corpus.label_names)
        counts["share"] = counts["documents"] / corpus.num_docs
        data["counts"] = counts.assign(bar=bars(counts, "share", "none", "none"))
    return Section("labels", "Labels of the documents", data)


def _together(fit: TopicFit, labels: pd.Series) -> Section | None:
    """List the pairs of topics that come in the same documents; None if there is none."""
    title = "Topics that come together"
    if len(labels) > MAX_COMPARED:
        return Section("together", title, {"method": "topic_correlation"}, "too_many")
    table = fit.topic_correlation()
    found = table[(table["lower"] > 0) & np.isfinite(table["correlation"])]
    if found.empty:
        return None
    strongest = found.sort_values("correlation", ascending=False, kind="stable").head(MAX_PAIRS)
    return Section("together", title, {"table": strongest, "total": len(found)})


def _documents(
    fit: TopicFit, labels: pd.Series, shares: DocumentShares, num_rows: int | None
) -> Section:
    """List documents with their largest topics."""
    corpus = fit.dataset
    chosen = evenly(corpus.num_docs, num_rows).tolist()
    texts = corpus.texts
    rows = pd.DataFrame({"name": [corpus.doc_names[d] for d in chosen]})
    rows["excerpt"] = "" if texts is None else [shortened(texts[d], EXCERPT) for d in chosen]
    columns: list[Column] = [("document", "document", "name", "excerpt")]
    if corpus.group is not None:
        rows["group"] = np.asarray(corpus.group)[chosen]
        rows["of_group"] = [corpus.group_names[g] for g in rows["group"]]
        columns.append(("group", "text", "of_group"))
    if corpus.author_idx is not None:
        rows["authors"] = [", ".join(corpus.authors(d)) for d in chosen]
        columns.append(("authors", "text", "authors"))
    if corpus.label is not None:
        label = np.asarray(corpus.label)[chosen].tolist()
        rows["label"] = [corpus.label_names[x] if corpus.label_names else str(x) for x in label]
        columns.append(("label", "text", "label"))
    rows["length"] = np.asarray(corpus.doc_length)[chosen]
    rows["shares"] = [_largest(shares.mean[d]) for d in chosen]
    listing = _listing("documents", rows, corpus.num_docs, labels)
    if corpus.group is not None:
        used = [(g, corpus.group_names[g]) for g in sorted(set(rows["group"]))]
        listing["filters"].append(Filter("group", "Group", used))
    listing |= {"columns": columns, "has_texts": texts is not None}
    return Section("documents", "Documents", listing)


def _largest(share: np.ndarray) -> list[tuple[int, float]]:
    """Return the largest topics of a document with their shares: one at least."""
    top = np.argsort(-share, kind="stable")[:NUM_TOPICS].tolist()
    main = [(k, float(share[k])) for k in top]
    return [(k, size) for k, size in main if size >= MIN_SHARE] or main[:1]


def _listing(what: str, rows: pd.DataFrame, total: int, labels: pd.Series) -> dict[str, Any]:
    """Return what the template takes to list rows that have a column `shares` of topics."""
    rows["topic"] = [weighted((k, share) for k, share, *_ in shares) for shares in rows["shares"]]
    seen = sorted({k for shares in rows["shares"] for k, *_ in shares})
    filters = [Filter("topic", "Topic", [(k, f"{k} {labels[k]}") for k in seen])]
    return {"what": what, "rows": rows, "total": total, "filters": filters}
