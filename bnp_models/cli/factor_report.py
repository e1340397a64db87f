"""What the command line says of the run of a factor model: tables, text and pictures."""

import shutil
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from bnp_models.posterior import arviz_data
from bnp_models.posterior.alignment import reference_state
from bnp_models.results.factor_fit import FactorFit

__all__ = ["Report", "factor_tables", "factors_text"]

MAX_SOURCES = 6  # with a column each in the text; the files have all


class Report(NamedTuple):
    """What is written of a run beside its draws."""

    tables: dict[str, pd.DataFrame]
    text: Callable[[int | None], str] | None
    """Lay out the main table, so many rows of it (all for None); None if no state was kept."""
    drawn: dict[str, Any]
    """Axes, one or an array of them, by the name of the picture."""


def factor_tables(fit: FactorFit) -> Report:
    """Return tables, text and pictures of factors, those that there are data for.

    `num_factors`, and, if full states were kept, `factors`, `weights`, `sharing` if there are
    sources to share factors, `imputed` if entries are missing.
    """
    tables = {"num_factors": fit.num_factors()}
    drawn: dict[str, Any] = {"num_factors": fit.plot_num_factors()}
    if not arviz_data.has_group(fit.data, "states"):
        return Report(tables, None, drawn)
    states = fit.factor_states
    if not states.z[reference_state(states.lp)].any():  # no factor to be aligned with
        return Report(tables, None, drawn)
    tables |= {"factors": fit.factors(), "weights": fit.weights()}
    drawn["factors"] = fit.plot_factors()
    if fit.sources.num_sources > 1:
        tables["sharing"] = fit.sharing()
        drawn["sharing"] = fit.plot_sharing()
    if fit.sources.observed is not None:
        tables["imputed"] = fit.impute()
    return Report(tables, lambda num_rows: factors_text(fit, num_rows=num_rows), drawn)


def factors_text(fit: FactorFit, *, num_rows: int | None = None, num_features: int = 8) -> str:
    """Lay out the table of `FactorFit.factors` in aligned columns, and the number of factors.

    Parameters
    ----------
    num_rows
        Factors to show, the most used ones; all by default.
    num_features
        Features to name in a line.
    """
    table = fit.factors(num_features=num_features)
    names = fit.sources.source_names[:MAX_SOURCES]
    shown = table.head(len(table) if num_rows is None else num_rows)
    num_chains = fit.posterior.sizes["chain"]
    width = max(shutil.get_terminal_size((110, 24)).columns, 60)
    places = [max(len(name), 4) for name in names]
    columns = "{:>6}  {:>6}  {:>15}  " + "".join(f"{{:>{w}}}  " for w in places) + "{:>6}  {:>5}  "
    lines = [_number_text(fit.num_factors()), ""]
    head = columns.format("factor", "rows", "90% interval", *names, "chains", "alike")
    lines.append(head + "features")
    for factor, row in shown.iterrows():
        start = columns.format(
            factor,
            f"{row['rows']:.0f}",
            f"{row['lower']:.0f} - {row['upper']:.0f}",
            *(f"{row[f'in {name}']:.0%}" for name in names),
            f"{row['num_chains']}/{num_chains}",
            f"{row['similarity']:.2f}",
        )
        features = textwrap.shorten(row["features"], width - len(start), placeholder=" ...")
        lines.append(start + features)
    if left := len(table) - len(shown):
        lines.append(f"and {left} factors that fewer rows use")
    lines.append(
        "rows: that use the factor, and their share in each source; chains: that have such a "
        "factor in\nhalf of their states; alike: 1 if it is the same one in all states"
    )
    return "\n".join(lines)


def _number_text(table: pd.DataFrame) -> str:
    """Say the most probable numbers of factors."""
    pairs = sorted(zip(table["probability"], table.index, strict=True), key=lambda pair: -pair[0])
    said = ", ".join(f"{number} ({share:.0%})" for share, number in pairs[:4] if share >= 0.05)
    return f"number of factors: {said or 'spread over many'}"
