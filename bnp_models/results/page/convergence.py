"""The part of the page about the chains: the verdict first, then what it rests on."""

from typing import Any

import pandas as pd

from bnp_models.posterior.diagnostics import label_free
from bnp_models.results.page.figures import chain_legend, trace
from bnp_models.results.page.markup import Html, Section, joined, paragraph, tag
from bnp_models.results.page.tables import data_table, number, plain

__all__ = ["convergence_section"]

MAX_ROWS = 30  # of the table; the quantities that fail come first
MAX_TRACES = 6
PASSING = ("ok", "constant")

HEADLINES = {
    "converged": "The chains agree.",
    "still rising": "Not converged: the chains are still moving.",
    "different modes": "Not converged: the chains have settled in different places.",
    "too few draws": "Not shown to have converged: there are too few draws.",
}
MEANINGS = {
    "converged": (
        "This is necessary, not sufficient: the quantities below do not depend on the numbers of "
        "{parts}, and {parts} may still differ between chains."
    ),
    "still rising": (
        "Take what follows for a first look. A longer run will find other {parts} and shares."
    ),
    "different modes": (
        "Averages over all chains describe none of them, and intervals leave out what other chains "
        "hold; see below which chains the {parts} are from."
    ),
    "too few draws": (
        "Take what follows for a first look: averages and intervals may change with more draws."
    ),
}


def convergence_section(fit: Any) -> Section:
    """Say whether the chains of a fit agree, what shows it, and what to do if they do not.

    Parameters
    ----------
    fit
        With all its chains.
    """
    judged, terms = fit.convergence(), fit.model.terms
    unjudged = judged.summary.startswith("Not judged")
    headline = "Convergence could not be judged." if unjudged else HEADLINES[judged.verdict]
    verdict = tag(
        "div",
        tag("p", tag("span", "\u2713" if judged.passed else "!", class_="mark",
                     aria_hidden="true"), headline, class_="headline"),
        paragraph(judged.summary),
        None if unjudged else paragraph(MEANINGS[judged.verdict].format(parts=terms.parts)),
        class_=f"verdict {'good' if judged.passed else 'bad'}",
    )  # fmt: skip
    common = None
    if fit._comparable():
        lines = [paragraph(line) for line in fit._functionals.text().splitlines()]
        common = joined(tag("h3", "What the chains agree on"), lines)
    body = joined(verdict, _table(judged.table), common, _traces(fit))
    return Section("convergence", "Have the chains converged?", body)


def _table(table: pd.DataFrame) -> Html:
    good = table["verdict"].isin(PASSING)
    order = pd.DataFrame({"good": good, "rhat": -table["rhat"].fillna(float("inf"))})
    shown = table
    if len(table) > MAX_ROWS:
        shown = table.loc[order.sort_values(["good", "rhat"], kind="stable").index[:MAX_ROWS]]
    rows = [
        (
            str(name),
            plain(row["mean"]),
            number(row["sd"]),
            number(row["rhat"], ".3f"),
            number(row["ess_bulk"], ",.0f"),
            number(row["ess_tail"], ",.0f"),
            tag("span", row["verdict"], class_=None if row["verdict"] in PASSING else "fails"),
        )
        for name, row in shown.iterrows()
    ]
    head = ("quantity", "mean", "sd", "R-hat", "bulk ESS", "tail ESS", "verdict")
    caption = "Quantities that do not depend on the numbers of topics or factors"
    left = ""
    if len(table) > MAX_ROWS:
        left = (
            f" The table has {MAX_ROWS} of {len(table):,} quantities, those that fail first; "
            "fit.convergence().table has all."
        )
    about = (
        "R-hat compares the chains with one another: 1 means that they agree, and the limit is "
        "1.01. ESS is the number of independent draws that would be worth as much, in the middle "
        "of the distribution (bulk) and in its tails; the limit is 100 for each chain." + left
    )
    return joined(data_table(caption, head, rows, numeric=range(1, 6)), paragraph(about))


def _traces(fit: Any) -> Html:
    """Draw the first label-free scalars: log joint density, number in use, and others."""
    scalars = label_free(fit.data, terms=fit.model.terms)
    chains = fit.posterior["chain"].to_numpy().tolist()
    names = list(scalars)[:MAX_TRACES]
    said = "Chains that agree look like one another, and none of them climbs or falls."
    if len(names) < len(scalars):
        said += (
            f" These are the first {len(names)} of {len(scalars):,} quantities; fit.plot_traces() "
            "draws more."
        )
    return joined(
        tag("h3", "Traces"),
        paragraph(said),
        chain_legend(chains) if len(chains) > 1 else None,
        tag("div", [trace(name, scalars[name], chains) for name in names], class_="traces"),
    )
