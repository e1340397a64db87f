"""What the report says of a factor model: factors, sources and rows."""

import numpy as np
import pandas as pd

from bnp_models.report.parts import Filter, Section, bars, evenly, heat_columns, weighted
from bnp_models.results.factor_fit import FactorFit

__all__ = ["factor_sections"]

NUM_FACTORS = 4  # of each row
MAX_SOURCES = 12
MAX_IMPUTED = 50


def factor_sections(fit: FactorFit, num_rows: int | None) -> list[Section]:
    """Return the parts about factors, sources and rows.

    Parameters
    ----------
    fit
        Of a factor model.
    num_rows
        Rows in the list at most; all if None.
    """
    found = [_number(fit)]
    if not fit.has_states:
        return [*found, Section("factors", "Factors", {"parts": "factors"}, "unknown")]
    if not fit._has_factors():
        return [*found, Section("factors", "Factors", macro="no_factors")]
    found.append(_factors(fit))
    if fit.dataset.num_sources > 1:
        found.append(_sharing(fit))
    if fit.dataset.observed is not None:
        table = fit.impute()
        data = {"table": table.head(MAX_IMPUTED), "total": len(table)}
        found.append(Section("missing", "Missing entries", data))
    return [*found, _rows(fit, num_rows)]


def _number(fit: FactorFit) -> Section:
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


def _sharing(fit: FactorFit) -> Section:
    """Show how many factors each two sources share."""
    table, names = fit.sharing(), fit.dataset.source_names
    shown = names[:MAX_SOURCES]
    table = table[table["source"].isin(shown) & table["other"].isin(shown)]
    table = table.assign(shade=table["shared"] / (table["shared"].max() or 1.0))
    wide = table.pivot(index="source", columns="other").loc[list(shown)]
    columns = heat_columns("shared", shown, "heat_count")
    data = {"table": wide, "columns": columns, "num_sources": len(names)}
    return Section("sharing", "What the sources share", data, "source_sharing")


def _rows(fit: FactorFit, num_rows: int | None) -> Section:
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
