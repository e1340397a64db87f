"""The sections of the report: what it says of topic and factor models, and their parts."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bnp_models.data import arguments
from bnp_models.data.design import make_design
from bnp_models.report.pictures import png, png_figures, topic_map
from bnp_models.results.author_tables import AuthorFit
from bnp_models.results.contrast_tables import ContrastFit
from bnp_models.results.document_tables import DocumentShares, document_shares
from bnp_models.results.factor_tables import FactorFit
from bnp_models.results.group_tables import GroupFit
from bnp_models.results.label_fit import OneVsRestFit, SupervisedFit
from bnp_models.results.result import Fit
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_relations import largest_documents

__all__ = [
    "Column",
    "Filter",
    "Section",
    "bars",
    "class_sections",
    "covariate_sections",
    "evenly",
    "factor_sections",
    "heat_columns",
    "number",
    "percent",
    "plain",
    "shortened",
    "span",
    "topic_sections",
    "weighted",
]

NUM_OPEN = 20  # topics that are shown at once; the others are behind a button
NUM_WORDS = 10
NUM_DOCUMENTS = 3  # for each topic
NUM_TOPICS, NUM_OF_AUTHOR = 3, 4  # of each document, and of each author
MIN_SHARE = 0.02  # of a topic that is named for a document
EXCERPT = 160  # characters of a text in the list of documents
MAX_MAP = 30  # topics in the map
MAX_PAIRS = 12
MAX_EFFECTS, MAX_TERMS = 30, 6  # rows in the table of effects, and pictures
MAX_COMPARED = 500  # topics of which each is compared with each other one: seconds
MAX_TOPICS, MAX_GROUPS = 30, 12  # in the heat map of topics by group
NUM_FACTORS = 4  # of each row
MAX_SOURCES = 12
MAX_INTERVALS = 60  # cells of a heat map with intervals in them
MAX_IMPUTED = 50

Column = tuple[Hashable, ...]
"""Heading, format, and the fields of a row that the format shows; the field None is the index.

A format is a macro of the template, or says how a number is formatted: ".3f".
"""


class Section(NamedTuple):
    """A part of the page, which a macro of the template shows."""

    id: str  # address inside the page
    title: str
    data: Mapping[str, Any] = {}
    macro: str = ""  # that of the name `id` by default


class Filter(NamedTuple):
    """A menu above a list, which shows the rows that have something."""

    name: str  # field of the rows: "3:0.6 17:0.2", the values that a row has and their weights
    label: str
    options: Sequence[tuple[Any, str]]  # value and text


def evenly(total: int, limit: int | None) -> np.ndarray:
    """Return the numbers of at most `limit` of `total` things, evenly spaced."""
    if limit is None or limit >= total:
        return np.arange(total)
    return np.arange(limit) * total // limit


def number(value: float | int, digits: str = ".3g") -> str:
    """Format a number; a dash stands for none."""
    return f"{value:{digits}}" if np.isfinite(value) else "\N{EN DASH}"


def plain(value: float | int) -> str:
    """Format a number in six digits, or all that it has before the point."""
    if np.isfinite(value) and abs(value) >= 1e5:
        return f"{value:,.0f}"
    return number(value, ".6g")


def percent(value: float | int) -> str:
    """Format a share; a dash stands for none."""
    if 0 < value < 0.0005:
        return "< 0.1%"
    return number(value, ".1%" if value < 0.0995 else ".0%")


def span(lower: float | int, upper: float | int, digits: str) -> str:
    """Format an interval; an empty text stands for none."""
    if not np.isfinite([lower, upper]).all():
        return ""
    return f"{lower:{digits}} \N{EN DASH} {upper:{digits}}"


def shortened(text: str, length: int) -> str:
    """Return a text in one line, cut after so many characters; an ellipsis says that it is."""
    line = " ".join(text[: 4 * length].split())
    if len(line) <= length and len(text) <= 4 * length:
        return line
    return f"{line[:length].rstrip()} \N{HORIZONTAL ELLIPSIS}"


def weighted(pairs: Iterable[tuple[int, float]], digits: str = ".3f") -> str:
    """Return what a row has for a `Filter`: values and their weights."""
    return " ".join(f"{value}:{weight:{digits}}" for value, weight in pairs)


def bars(
    table: pd.DataFrame,
    value: str,
    lower: str = "lower",
    upper: str = "upper",
    *,
    around_zero: bool = False,
) -> list[dict[str, float]]:
    """Return the bar of each row of a table with the line of its interval, in percent of the width.

    Parameters
    ----------
    table
        One row per bar.
    value, lower, upper
        Columns: the length of the bar, and its interval. The largest upper end has the full width.
    around_zero
        Whether numbers may be negative: zero is then in the middle.
    """
    ends = table[[value, lower, upper]].to_numpy(np.float64)
    if around_zero:
        zero = 50.0
        ends = zero + 48 * ends / (np.nanmax(np.abs(ends[:, 1:]), initial=0.0) or 1.0)
    else:
        zero = 0.0
        ends = np.clip(100 * ends / (np.nanmax(ends[:, 2], initial=0.0) or 1.0), 0, 100)
    return [
        {"left": min(at, zero), "width": abs(at - zero), "low": low, "high": high}
        for at, low, high in ends.tolist()
    ]


def heat_columns(value: str, names: Iterable[str], format: str, *, num_rows: int) -> list[Column]:
    """Return a column of a heat map for each name, of a table that `DataFrame.pivot` laid out.

    Intervals stand in the cells if there are few of these.

    `value` is the field that is shown above `lower` and `upper`, with the colour of `shade`.
    """
    fields = (value, "lower", "upper", "shade")
    names = list(names)
    format = format if num_rows * len(names) <= MAX_INTERVALS else f"{format}_alone"
    return [(name, format, *((field, name) for field in fields)) for name in names]


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
    if isinstance(fit, GroupFit):
        found.append(_sharing(fit))
    if isinstance(fit, ContrastFit) and fit.dataset.num_groups > 1:
        found.append(_contrast(fit))
    # tables of authors do not use weights of chains
    if isinstance(fit, AuthorFit) and not fit._is_stacked():
        found.append(_authors(fit, labels, num_rows))
    if isinstance(fit, SupervisedFit):
        found.append(_weights(fit))
    if len(labels) >= 3 and (together := _together(fit, labels)):
        found.append(together)
    return [*found, _documents(fit, labels, shares, num_rows)]


def covariate_sections(
    fit: Fit,
    effects: str | None,
    time: str | Sequence[Any] | np.ndarray | None,
) -> list[Section]:
    """Return the parts about effects of covariates, and about topics over time.

    Parameters
    ----------
    fit
        Of a topic model where one of the others is given.
    effects, time
        See `Fit.report`; without them there are no parts.
    """
    given = {"effects": effects, "time": time}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return []
    if not (isinstance(fit, TopicFit) and fit.has_states):
        name, value = next(iter(given.items()))
        raise ValueError(
            f"{name} must be None for this fit, got {arguments.short_repr(value)}: only fits of "
            "topics whose states were kept have effects of covariates and topics over time"
        )
    found = []
    if effects is not None:
        found.append(_effects(fit, arguments.text("effects", effects)))
    if time is not None:
        found.append(_time(fit, time))
    return found


def _effects(fit: TopicFit, formula: str) -> Section:
    """Draw the effect of each term on the topics, and list those that are clear."""
    from bnp_models.plots.panels import clear_effects

    try:
        table = fit.effects(formula)
    except ValueError as error:
        raise ValueError(f"effects {formula!r}: {error}") from None
    curves, of_curves = _curves(fit, formula, list(dict.fromkeys(table["term"])))
    table = table.loc[~table["term"].isin(["intercept", *of_curves])]
    terms = list(dict.fromkeys(table["term"]))
    clear = table.loc[clear_effects(table)]
    without_zero = int(((table["lower"] > 0) | (table["upper"] < 0)).sum())
    order = clear["effect"].abs().sort_values(ascending=False, kind="stable").index
    listed = clear.loc[order].head(MAX_EFFECTS)
    across = bars(listed, "effect", around_zero=True)
    drawn = {f"Effect of {term}": png(fit.plot_effects(table, term=term))
             for term in terms[:MAX_TERMS]}  # fmt: skip
    listed = listed.assign(bar=across)
    if compared := "same_sign" in listed:
        counts = zip(listed["same_sign"], listed["other_chains"], strict=True)
        listed["same"] = [f"{same}/{others}" for same, others in counts]
    data = {
        "formula": formula, "table": listed, "total": len(clear), "tested": len(table),
        "unconfirmed": without_zero - len(clear),
        "terms": terms, "num_drawn": len(drawn), "figures": png_figures(curves | drawn),
        "curves": len(curves), "compared": compared, "left_out": table.attrs.get("left_out", {}),
    }  # fmt: skip
    return Section("effects", "Effects of covariates", data)


def _curves(
    fit: TopicFit, formula: str, terms: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """Draw the expected shares by the numbers of splines; return them, and the terms of these.

    A covariate in a product with a spline has a curve for each of its values. Terms whose curve
    can't be drawn are not among those that are returned.
    """
    from bnp_models.plots.panels import SPLINE

    columns = make_design(formula, None, fit.dataset).columns
    wanted: dict[str, list[str]] = {}  # the terms of each curve
    others: dict[str, str] = {}  # what is in a product with it
    for term in terms:
        for inside in SPLINE.findall(term):
            for name in (x for x in _named(inside, columns) if columns[x].levels is None):
                wanted.setdefault(name, []).append(term)
                for other in (x for x in _named(SPLINE.sub(":", term), columns) if x != name):
                    others.setdefault(name, other)
    drawn, said = {}, []
    for name, own in list(wanted.items())[:MAX_TERMS]:
        by = [name, others[name]] if name in others else [name]
        try:
            axes = fit.plot_effects(formula, by=by)
        except ValueError:  # shares can't be asked for at other values
            continue
        drawn[f"Expected shares by {' and '.join(by)}"] = png(axes)
        said += own
    return drawn, said


def _named(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that are in a part of a formula; those before `=` are of options."""
    found = {x: re.search(rf"(?<!\w){re.escape(x)}(?!\w|\s*=[^=])", text) for x in names}
    return [name for name, there in found.items() if there]


def _time(fit: TopicFit, time: str | Sequence[Any] | np.ndarray) -> Section:
    """Draw the shares of the largest topics over time."""
    name, values = "the time", time
    if isinstance(time, str):
        columns = fit.dataset.covariates
        name = arguments.one_of("time", time, list(columns))
        values = columns[name].to_numpy()
    axes = fit.plot_topics_over_time(values)
    if axes[0].get_xlabel():  # topics that share a panel
        axes[0].set_xlabel(name.removeprefix("the "))
    drawn = {f"Shares of the largest topics by {name}": png(axes)}
    return Section("time", "Topics over time", {"figures": png_figures(drawn)})


def class_sections(fit: OneVsRestFit) -> list[Section]:
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
        "left_out": "parts" in table.attrs,
        "chains": fit.shown._chains_text(),
    }
    return Section("topics", "Topics", data)


def _map(fit: TopicFit, labels: pd.Series) -> Section:
    title = "Map of the topics"
    if len(labels) > MAX_COMPARED:
        return Section("map", title, {"method": "plot_topic_map"}, "too_many")
    table = fit.topic_map()
    drawn = table.iloc[:MAX_MAP]
    short = [", ".join(x.split(", ")[:2]) for x in labels.iloc[: len(drawn)]]
    places, shares = drawn[["x", "y"]].to_numpy(), drawn["prevalence"].to_numpy()
    data = {"shares": shares, "total": len(table), "explained": float(table.attrs["explained"])}
    return Section("map", title, topic_map(places, shares, short) | data)


def _prevalence(fit: TopicFit, labels: pd.Series) -> Section:
    """Show the share of each topic in each group, with intervals, as a heat map."""
    table = fit.topic_prevalence_by_group()
    size = table.groupby("group", sort=False).agg({"num_tokens": "first"})
    largest = size.nlargest(MAX_GROUPS, "num_tokens").index
    groups = [str(name) for name in size.index if name in largest]
    shown = table[
        table["group"].isin(groups) & table["topic"].isin(list(labels.index[:MAX_TOPICS]))
    ]
    share = np.asarray(shown["prevalence"], np.float64)
    # a root, so that small shares can be told apart
    shade = np.sqrt(np.nan_to_num(share) / (np.nanmax(share, initial=0.0) or 1.0))
    wide = shown.assign(shade=shade).pivot(index="topic", columns="group")
    columns = heat_columns("prevalence", groups, "heat_share", num_rows=len(wide))
    data = {"table": wide, "columns": columns}
    data |= {"num_groups": len(size), "shown_groups": len(groups)}
    return Section("groups", "Topics by group", data)


def _sharing(fit: GroupFit) -> Section:
    """Say of each topic which groups have it."""
    table = fit.shared_topics()
    kinds = table["kind"].value_counts().reindex(["common", "shared", "own"]).dropna()
    data = {"table": table, "kinds": kinds.astype(int).to_dict()}
    data["num_groups"] = len(fit.dataset.group_names)
    return Section("sharing", "What the groups share", data)


def _contrast(fit: ContrastFit) -> Section:
    """Put the words of each group for a topic side by side."""
    table = fit.contrast().sort_values("distance", ascending=False, kind="stable")
    measures = [name for name in ("likeness", "distance") if name in table]
    columns: list[Column] = [
        (name, "measure", name, f"{name}_lower", f"{name}_upper") for name in measures
    ]
    words = table.columns[table.columns.get_loc("common") :]
    columns += [(name, "text", name) for name in words]
    data = {"table": table, "columns": columns, "has_likeness": "likeness" in measures}
    return Section("contrast", "How the groups differ in each topic", data)


def _authors(fit: AuthorFit, labels: pd.Series, num_rows: int | None) -> Section:
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


def _weights(fit: SupervisedFit) -> Section:
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
    found = table.loc[(table["lower"] > 0) & np.isfinite(table["correlation"]), :]
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


def factor_sections(fit: FactorFit, num_rows: int | None) -> list[Section]:
    """Return the parts about factors, sources and rows.

    Parameters
    ----------
    fit
        Of a factor model.
    num_rows
        Rows in the list at most; all if None.
    """
    found = [_number_of_factors(fit)]
    if not fit.has_states:
        return [*found, Section("factors", "Factors", {"parts": "factors"}, "unknown")]
    if not fit._has_factors():
        return [*found, Section("factors", "Factors", macro="no_factors")]
    found.append(_factors(fit))
    if fit.dataset.num_sources > 1:
        found.append(_source_sharing(fit))
    if fit.dataset.observed is not None:
        table = fit.impute()
        data = {"table": table.head(MAX_IMPUTED), "total": len(table)}
        found.append(Section("missing", "Missing entries", data))
    return [*found, _factor_rows(fit, num_rows)]


def _number_of_factors(fit: FactorFit) -> Section:
    """Show the posterior of the number of factors."""
    table = fit.num_factors()
    chains = [(name, "percent", name) for name in table.columns if name != "probability"]
    drawn = bars(table, "probability", "probability", "probability")
    return Section(
        "number", "How many factors", {"table": table.assign(bar=drawn), "chains": chains}
    )


def _factors(fit: FactorFit) -> Section:
    """Describe each factor: the rows that use it, and its features."""
    table, names = fit.factors(), fit.dataset.source_names
    num_others = fit.shown.alignment.num_others
    table["others"] = [f"{count}/{num_others}" for count in table["other_chains"]]
    shown = names[:MAX_SOURCES]
    data = {
        "table": table.assign(bar=bars(table, "rows")),
        "sources": [(f"in {name}", "percent", f"in {name}") for name in shown],
        "num_sources": len(names),
        "num_others": num_others,
        "chains": fit.shown._chains_text(),
    }
    return Section("factors", "Factors", data)


def _source_sharing(fit: FactorFit) -> Section:
    """Show how many factors each two sources share."""
    table, names = fit.sharing(), fit.dataset.source_names
    shown = names[:MAX_SOURCES]
    table = table[table["source"].isin(shown) & table["other"].isin(shown)]
    table = table.assign(shade=table["shared"] / (table["shared"].max() or 1.0))
    wide = table.pivot(index="source", columns="other").loc[list(shown)]
    columns = heat_columns("shared", shown, "heat_count", num_rows=len(shown))
    data = {"table": wide, "columns": columns, "num_sources": len(names)}
    return Section("sharing", "What the sources share", data, "source_sharing")


def _factor_rows(fit: FactorFit, num_rows: int | None) -> Section:
    """List the rows of the data with their largest factors."""
    data, weights = fit.dataset, fit.weights().to_numpy()
    source = np.asarray(data.source)
    chosen = evenly(len(weights), num_rows).tolist()
    order = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :NUM_FACTORS]
    sizes = [
        [(k, float(weights[n, k])) for k in order[n].tolist() if weights[n, k] != 0] for n in chosen
    ]
    rows = pd.DataFrame({"name": [data.row_names[n] for n in chosen], "source": source[chosen]})
    rows["of_source"] = [data.source_names[j] for j in rows["source"]]
    rows["sizes"] = sizes
    rows["factor"] = [weighted(((k, abs(x)) for k, x in row), ".4g") for row in sizes]
    seen = sorted({k for row in sizes for k, _ in row})
    filters = [
        Filter("factor", "Factor", [(k, str(k)) for k in seen]),
        Filter(
            "source", "Source", [(j, data.source_names[j]) for j in sorted(set(rows["source"]))]
        ),
    ]
    listing = {"what": "rows", "rows": rows, "total": len(weights), "filters": filters}
    return Section("rows", "Rows of the data", listing)
