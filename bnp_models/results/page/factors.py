"""The parts of the page about a factor model."""

from typing import Any

import numpy as np
import pandas as pd

from bnp_models.results.page.documents import more_rows
from bnp_models.results.page.figures import interval_bar
from bnp_models.results.page.markup import Section, joined, paragraph, tag
from bnp_models.results.page.tables import (
    Filter,
    Row,
    data_table,
    evenly,
    listing,
    number,
    percent,
)

__all__ = ["factor_sections"]

NUM_FACTORS = 4  # of each row
MAX_SOURCES = 12
MAX_IMPUTED = 50


def factor_sections(fit: Any, num_rows: int | None, *, some: bool) -> list[Section]:
    """Return the parts about factors, sources and rows.

    Parameters
    ----------
    fit
        Of a factor model.
    num_rows
        Rows in the list at most; all if None.
    some
        Whether there are states with factors.
    """
    found = [number_section(fit)]
    if not fit.has_states:
        said = "No full state was kept (keep_states=0), so factors are not known."
        found.append(Section("factors", "Factors", paragraph(said)))
    elif not some:
        said = "No factor is in use, so there is none to describe."
        found.append(Section("factors", "Factors", paragraph(said)))
    else:
        found += [factors_section(fit), shared_section(fit), imputed_section(fit)]
        found.append(rows_section(fit, fit.weights(), num_rows))
    return [section for section in found if section is not None]


def number_section(fit: Any) -> Section:
    """Show the posterior of the number of factors."""
    table = fit.num_factors()
    chains = [name for name in table.columns if name != "probability"]
    top = float(table["probability"].max())
    rows = [
        (
            str(n),
            interval_bar(row["probability"], row["probability"], row["probability"], top),
            percent(row["probability"]),
            *(percent(row[name]) for name in chains),
        )
        for n, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
    ]
    head = ("factors", "", "probability", *chains)
    numeric = range(2, len(head))
    caption = "Posterior of the number of factors, over all chains and in each of them"
    return Section("number", "How many factors", data_table(caption, head, rows, numeric=numeric))


def factors_section(fit: Any) -> Section:
    """Describe each factor: the rows that use it, and its features."""
    table, names = fit.factors(), fit.dataset.source_names
    shown, num_others = names[:MAX_SOURCES], fit.shown.alignment.num_others
    top = float(table["upper"].max())
    rows = [
        (
            tag("span", str(k), id=f"factor-{k}"),
            interval_bar(row["rows"], row["lower"], row["upper"], top),
            number(row["rows"], ",.0f"),
            f"{row['lower']:,.0f} \N{EN DASH} {row['upper']:,.0f}",
            *(percent(row[f"in {name}"]) for name in shown),
            *(
                (f"{row['other_chains']}/{num_others}", number(row["similarity"], ".2f"))
                if num_others
                else ()
            ),
            row["features"],
        )
        for k, row in zip(table.index.tolist(), table.to_dict("records"), strict=True)
    ]
    head = ("factor", "", "rows", "90% interval", *(f"in {name}" for name in shown))
    head = (*head, *(("others", "alike") if num_others else ()), "features")
    said = (
        "\u201cRows\u201d is how many rows use a factor, then the share of the rows of each source."
    )
    if num_others:
        said += (
            " \u201cOthers\u201d says how many of the other chains have such a factor; "
            "\u201calike\u201d is 1 if it is the same factor there."
        )
    if len(shown) < len(names):
        said += f" The table has {len(shown)} of {len(names)} sources; fit.factors() has all."
    table_ = data_table("Factors", head, rows, numeric=range(2, len(head) - 1), class_="wide")
    text = [paragraph(line) for line in fit.shown._chains_text().split("\n\n")]
    return Section("factors", "Factors", joined(paragraph(said), text, table_))


def shared_section(fit: Any) -> Section | None:
    """Show how many factors each two sources share; None for one source."""
    names = fit.dataset.source_names
    if len(names) < 2:
        return None
    table, shown = fit.sharing(), names[:MAX_SOURCES]
    at = {(row.source, row.other): row for row in table.itertuples()}
    top = max(at[a, b].shared for a in shown for b in shown) or 1.0
    rows = []
    for a in shown:
        cells = [at[a, b] for b in shown]
        rows.append((a, *(
            tag("td", number(row.shared, ".1f"), tag("br"),
                tag("span", f"{row.lower:.0f} \N{EN DASH} {row.upper:.0f}", class_="interval"),
                style=f"--v:{row.shared / top:.3f}", class_="number")
            for row in cells
        )))  # fmt: skip
    said = "Expected number of factors that two sources share, and of all that a source uses."
    if len(shown) < len(names):
        said += f" The table has {len(shown)} of {len(names)} sources; fit.sharing() has all."
    caption = "Factors that two sources share, with 90% intervals"
    body = joined(
        paragraph(said),
        data_table(
            caption, ("source", *shown), rows, numeric=range(1, 1 + len(shown)), class_="heat"
        ),
    )
    return Section("sharing", "What the sources share", body)


def imputed_section(fit: Any) -> Section | None:
    """List estimates of missing entries; None if nothing is missing."""
    if fit.dataset.observed is None:
        return None
    table = fit.impute()
    shown = table.head(MAX_IMPUTED)
    rows = [
        (row.row, row.source, row.feature, number(row.mean, ".4g"), number(row.sd))
        for row in shown.itertuples()
    ]
    said = f"{len(table):,} entries of the data are missing."
    if len(shown) < len(table):
        said += f" These are the first {len(shown)}; fit.impute() has all."
    head = ("row", "source", "feature", "mean", "sd")
    body = joined(paragraph(said), data_table("Estimated entries", head, rows, numeric=(3, 4)))
    return Section("missing", "Missing entries", body)


def rows_section(fit: Any, weights: pd.DataFrame, num_rows: int | None) -> Section:
    """List the rows of the data with their largest factors.

    Parameters
    ----------
    fit
        Of a factor model.
    weights
        From `fit.weights()`.
    num_rows
        Rows at most; all if None.
    """
    data, size = fit.dataset, weights.to_numpy()
    source = np.asarray(data.source)
    order = np.argsort(-np.abs(size), axis=1, kind="stable")[:, :NUM_FACTORS]
    rows, seen = [], set()
    chosen = evenly(len(size), num_rows)
    for n in chosen.tolist():
        main = [(k, float(size[n, k])) for k in order[n].tolist() if size[n, k] != 0]
        seen |= {k for k, _ in main}
        items = [
            tag("li", tag("a", tag("b", str(k)), href=f"#factor-{k}"), f" {value:.3g}")
            for k, value in main
        ]
        has = {"source": str(source[n]), "factor": " ".join(f"{k}:{abs(v):.4g}" for k, v in main)}
        cells = (data.row_names[n], data.source_names[source[n]],
                 tag("ul", items, class_="main-topics"))  # fmt: skip
        rows.append(Row(cells, has))
    filters = [
        Filter("factor", "Factor", [(k, str(k)) for k in sorted(seen)]),
        Filter("source", "Source", [
            (j, data.source_names[j]) for j in sorted(set(source[chosen].tolist()))
        ]),
    ]  # fmt: skip
    caption = "Rows and their largest factors: what each adds to the row, in units of the data"
    return Section(
        "rows",
        "Rows of the data",
        listing(
            "rows", "rows", caption, ("row", "source", "largest factors"), rows,
            total=len(size), more=more_rows(len(size)), filters=filters,
        ),
    )  # fmt: skip
