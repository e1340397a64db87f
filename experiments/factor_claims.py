"""Claims, tables and pictures of the factor studies."""

import math
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from study.cells import of_part
from study.claims import Claim, Finding, about_posterior, decide, judge, not_run
from study.curves import PALETTE, Curve, Panel, axes_of, draw, save
from study.report import Table, head, write_report
from study.scores import Difference, paired_cells, worst_rhat

__all__ = ["CLAIMS", "gaps", "report"]

BEST = ("IM", "SSP", "AP")  # auxiliary sections of figure 3b, the best one first
TOGETHER = "nats_per_paper_together"
BAG = "nats_per_paper_given_its_length"
SIZE = "training_papers_of_target"
COLOURS = {
    "hierarchical": PALETTE[0], "pooled": PALETTE[1], "alone": PALETTE[2],
    "HDP pooled": PALETTE[3], "hierarchical sparse": PALETTE[5], "HDP alone": PALETTE[4],
    "unigram": PALETTE[6],
}  # fmt: skip
Run = dict[str, Any]


# ---- planted factors


def _planted(run: Run, a_phi: float, ask: Any) -> Finding:
    """Ask about exact births with the default schedule, from all starts."""
    cells = of_part(run, "planted", a_phi=a_phi, births="exact", schedule="default")
    if not cells:
        return not_run(f"no planted factors with a_phi = {a_phi:g} and exact births")
    return ask(cells)


def _soon(cells: list[Run]) -> Finding:
    cells = [cell for cell in cells if cell["start"] == "from 1 factor"]
    if not cells:
        return not_run("no chains that begin with one factor")
    reached = [sweep for cell in cells for sweep in cell["sweeps_to_all"]]
    fast = [sweep is not None and sweep < 100 for sweep in reached]
    sweeps = ", ".join(_never(x, ".0f") for x in reached)
    seconds = ", ".join(_never(x) for cell in cells for x in cell["seconds_to_all"])
    why = f"{sum(fast)} of {len(fast)} chains."
    found = f"sweeps {sweeps}; seconds {seconds}"
    return Finding(found, "holds" if all(fast) else "does not hold", why)


def _never(value: float | None, digits: str = ".1f", unit: str = "") -> str:
    return "never" if value is None else f"{value:{digits}}{unit}"


def _posterior(cells: list[Run], text: str, holds: Sequence[bool]) -> Finding:
    """Judge what each start says of the posterior; starts agree if they all say the same."""
    verdict = "holds" if all(holds) else "does not hold"
    agree = len(holds) if len(set(holds)) == 1 else 1
    after = [cell.get("convergence_from_sweep", 0) for cell in cells]
    why = "" if min(after) else "R-hat is of all sweeps, the way from the start included."
    return about_posterior(Finding(text, verdict, why), cells, agree)


def _mode(cells: list[Run]) -> Finding:
    said, holds = [], []
    for cell in cells:
        posterior = cell["posterior"]
        wanted, mode = len(cell["recovery"]), max(posterior, key=lambda k: posterior[k])
        said.append(f"most probable: {mode}, p({wanted}) = {_probability(cell):.2f}")
        holds.append(mode == str(wanted))
    return _posterior(cells, "; ".join(said), holds)


def _recovered(cells: list[Run], name: str) -> Finding:
    found = [[row[name] for row in cell["recovery"]] for cell in cells]
    said = [f"{sum(x > 0.9 for x in f)} of {len(f)}, lowest {min(f):.2f}" for f in found]
    return _posterior(cells, "; ".join(said), [min(f) > 0.9 for f in found])


def _shared(cells: list[Run]) -> Finding:
    shared = [_num_shared(cell) for cell in cells]
    text = ", ".join(f"{x:.2f}" for x in shared)
    return _posterior(cells, text, [round(x) == 4 for x in shared])


def _probability(cell: Run) -> float:
    """Return the posterior probability of as many factors as were planted."""
    return cell["posterior"].get(str(len(cell["recovery"])), 0.0)


def _num_shared(cell: Run) -> float:
    return next(x["shared"] for x in cell["shared"] if x["source"] != x["other"])


def _births(run: Run) -> Finding:
    """Compare times to all factors; a fair comparison has one schedule and one budget."""
    said, fair = [], False
    for approximate in of_part(run, "planted", births="approximate"):
        same = {name: approximate[name] for name in ("a_phi", "start")}
        for exact in of_part(run, "planted", births="exact", **same):
            times = [_never(_median(cell), unit=" s") for cell in (exact, approximate)]
            fair |= exact["schedule"] == approximate["schedule"]
            text = f"a_phi {same['a_phi']:g}, exact births with schedule {exact['schedule']}: "
            said.append(text + " against ".join(times))
    if not said:
        return not_run("not measured with both kinds of births")
    why = "Medians of chains that run side by side: too few times for an error."
    if not fair:
        why += " The schedules differ: parallel sweeps against sequential ones, and fewer of these."
    return Finding("; ".join(said), "not decided", why)


def _median(cell: Run) -> float | None:
    """Return the Kaplan-Meier median: chains are censored at one time, the end of the run."""
    times = sorted(cell["seconds_to_all"], key=lambda x: math.inf if x is None else x)
    return times[(len(times) - 1) // 2]


# ---- sections


def gaps(
    run: Run, better: str, worse: str, score: str = TOGETHER
) -> dict[int, list[tuple[float, float]]]:
    """Return pairs of scores (worse, better) by training size, over sections and splits."""
    names = [SIZE, "split_seed", *([] if "alone" in worse else ["auxiliary_section"])]

    def scored(method: str) -> list[tuple[tuple[Any, ...], float]]:
        records = [r for r in of_part(run, "sections", method=method) if score in r]
        return [(tuple(record[name] for name in names), record[score]) for record in records]

    other = dict(scored(worse))
    found: dict[int, list[tuple[float, float]]] = {}
    for place, value in scored(better):
        if place in other:
            found.setdefault(place[0], []).append((other[place], value))
    return dict(sorted(found.items()))


def _of_methods(run: Run, *methods: str) -> list[Run]:
    return [record for method in methods for record in of_part(run, "sections", method=method)]


def _means(run: Run, method: str, score: str) -> dict[int, Difference]:
    """Return the mean of a score over sections and splits, by training size."""
    values: dict[int, list[tuple[float, float]]] = {}
    for record in of_part(run, "sections", method=method):
        if score in record:
            values.setdefault(record[SIZE], []).append((record[score], 0.0))
    return {size: paired_cells(values[size]) for size in sorted(values)}


def _said(gap: Difference) -> str:
    return f"{gap.value:+.1f} ± {gap.error:.1f}"


def _section_claim(
    run: Run, better: str, worse: str, sizes: Any, together: bool = False, harms: bool = False
) -> Finding:
    """Decide by the training size that speaks least for the claim, or by all cells together.

    The claim is that one method is better than the other, or, with `harms`, that it is not.
    """
    by_size = {n: pairs for n, pairs in gaps(run, better, worse).items() if sizes(n)}
    if not by_size:
        return not_run(f"{better} and {worse} were not both measured with such training sizes")
    found = {f"{n} papers": paired_cells(pairs) for n, pairs in by_size.items()}
    if together:
        every = [pair for pairs in by_size.values() for pair in pairs]
        found = {f"{len(every)} cells": paired_cells(every)}
    verdicts = [decide(-gap.value if harms else gap.value, gap.error) for gap in found.values()]
    worst = next((v for v in ("does not hold", "not decided") if v in verdicts), "holds")
    text = "nats per paper better: " + ", ".join(f"{n}: {_said(gap)}" for n, gap in found.items())
    why = "Errors over auxiliary sections and splits, which share the test papers."
    fits = _of_methods(run, better, worse)
    return about_posterior(Finding(text, worst, why), fits)


def _order(run: Run) -> Finding:
    fits = _of_methods(run, "hierarchical")
    values: dict[str, list[float]] = {}
    for record in fits:
        values.setdefault(record["auxiliary_section"], []).append(record[TOGETHER])
    if not set(BEST) <= set(values):
        there = ", ".join(values) or "none"
        return not_run(f"needs all auxiliary sections (--full); measured: {there}")
    order = sorted(values, key=lambda name: statistics.mean(values[name]))
    holds = "holds" if tuple(order[:3]) == BEST else "does not hold"
    return about_posterior(Finding(", ".join(order), holds), fits)


def _nats(run: Run) -> Finding:
    means = _means(run, "hierarchical", TOGETHER)
    if not means:
        return not_run("no sections")
    mean = means[most := max(means)]
    text = f"{mean.value:.1f} ± {mean.error:.1f} with {most} training papers of the target"
    words = run["settings"]["max_words"]
    why = f"Other text: the {words} most frequent words" if words else "Other text"
    return Finding(text, "not decided", f"{why}; the paper's preparation is not known.")


def _hdp_bag(run: Run, ours: str) -> Finding:
    pairs = [pair for found in gaps(run, ours, "HDP pooled", BAG).values() for pair in found]
    if not pairs:
        return not_run(f"{ours} and HDP pooled were not both measured")
    why = "Left-to-right estimates of the HDP are too low by tens of nats, so this decides nothing."
    return Finding(f"nats per paper better: {_said(paired_cells(pairs))}", "not decided", why)


def _hdp_words(run: Run, ours: str) -> Finding:
    found = gaps(run, ours, "HDP pooled", "word_perplexity")
    logs = [tuple(np.log(pair)) for pairs in found.values() for pair in pairs]
    if not logs:
        return not_run(f"{ours} and HDP pooled were not both measured")
    gap, means = paired_cells(logs), np.exp(np.mean(logs, axis=0))
    text = f"perplexity {means[1]:.0f}, HDP {means[0]:.0f}; log ratio {gap.value:+.3f}"
    finding = Finding(f"{text} ± {gap.error:.3f}", decide(gap.value, gap.error))
    return about_posterior(finding, _of_methods(run, ours, "HDP pooled"))


# ---- digits


def _retrieval(run: Run, part: str) -> Finding:
    """Compare with the best baseline, in pairs of queries where every query was kept."""
    records = of_part(run, part)
    ours = [r for r in records if r["method"] == "GaussianFactorAnalysis"]
    others = [r for r in records if r not in ours]
    if not ours or not others:
        return not_run(f"part {part!r} was not run")
    name, error = "mean_average_precision", "error_over_queries"
    best = max(others, key=lambda r: r[name])
    queries = "average_precision_of_each_query"
    if queries in ours[0] and queries in best:
        gap = paired_cells(list(zip(ours[0][queries], best[queries], strict=True)))
        why = "Error over queries, in pairs."
    else:
        gap = Difference(ours[0][name] - best[name], float(np.hypot(ours[0][error], best[error])))
        why = "Queries were not kept, so the error is that of independent ones: an upper limit."
    text = f"{ours[0][name]:.3f} against {best[name]:.3f} ({best['method']}); "
    text += f"difference {gap.value:+.3f} ± {gap.error:.3f}"
    finding = Finding(text, decide(gap.value, gap.error), why)
    return about_posterior(finding, ours, len(ours))


def _number_of_factors(run: Run) -> Finding:
    found = of_part(run, "digits", "bundled", method="GaussianFactorAnalysis")
    if not found:
        return not_run("no digits")
    text = ", ".join(f"{r['part']}: {r['factors_or_topics']:.1f}" for r in found)
    why = f"Other data (digits). R-hat is up to {worst_rhat(found) or float('nan'):.2f}."
    return Finding(text, "not decided", why)


# ---- the claims

PAPER, OWN = "Gupta, Phung, Venkatesh, UAI 2012", "own question"
NO_IMAGES = "The images (NUS-WIDE) cannot be had, and the compared methods are not in this library."


def _planted_claims(a_phi: float) -> list[Claim]:
    prior = "" if a_phi == 1 else f" (a_phi = {a_phi:g}, sparser than the paper's 1)"
    rows = [
        ("section 5.1", "From one factor the sampler has all 12 before sweep 100",
         "under 100 sweeps, 400 s", _soon),
        ("section 5.1", "12 is the most probable number of factors", "12", _mode),
        ("figure 2b", "Every planted factor is found, cosine above 0.9", "12 of 12",
         partial(_recovered, name="similarity")),
        ("figures 2f, 2g", "So are its weights", "12 of 12", partial(_recovered, name="weights")),
        ("section 5.1", "Four factors are shared", "4", _shared),
    ]  # fmt: skip
    paper = PAPER if a_phi == 1 else OWN
    return [
        Claim(paper, where, claim + prior, expected, partial(_planted, a_phi=a_phi, ask=ask))
        for where, claim, expected, ask in rows
    ]


def _compare(better: str, worse: str, sizes: Any = lambda n: True, **options: Any) -> Any:
    return partial(_section_claim, better=better, worse=worse, sizes=sizes, **options)


FIGURE_3A, TABLE_1 = (PAPER, "figure 3a"), (PAPER, "table 1")
NO_COUNTS = "The Gaussian model is not run on counts."
CLAIMS = (
    *_planted_claims(1.0), *_planted_claims(0.2),
    Claim(PAPER, "section 5.1", "Exact births recover the factors sooner than approximate ones",
          "6.67 against 52.3 minutes", _births),
    Claim(*FIGURE_3A, "Telling sources apart predicts better than the target alone, at every "
          "training size", "above 0", _compare("hierarchical", "alone")),
    Claim(*FIGURE_3A, "Telling sources apart predicts better than pooling them, at every "
          "training size", "above 0", _compare("hierarchical", "pooled")),
    Claim(*FIGURE_3A, "Pooling helps with fewer than 50 papers of the target", "above 0",
          _compare("pooled", "alone", lambda n: n < 50)),
    Claim(*FIGURE_3A, "Pooling harms with more than 50 papers of the target", "below 0",
          _compare("pooled", "alone", lambda n: n > 50, harms=True)),
    Claim(PAPER, "figure 3b", f"The best auxiliary sections are {', '.join(BEST)}", "this order",
          _order),
    Claim(*TABLE_1, "Log perplexity per paper of the Poisson-gamma model", "1102.9 ± 6.5", _nats),
    Claim(*TABLE_1, "The Poisson-gamma model predicts better than the HDP: papers given their "
          "lengths", "1102.9 against 2862.5", partial(_hdp_bag, ours="hierarchical")),
    Claim(*TABLE_1, "The same by half of the words given the others", "lower perplexity",
          partial(_hdp_words, ours="hierarchical")),
    Claim(*TABLE_1, "The Poisson-gamma model predicts counts better than the Gaussian one",
          "1102.9 against 5945.3", lambda run: not_run(NO_COUNTS)),
    Claim(*TABLE_1, "The exact Gaussian model predicts better than the approximate one",
          "5945.3 against 6232.5", lambda run: not_run(NO_COUNTS)),
    Claim(PAPER, "table 2", "The Gaussian model retrieves images better than four other methods",
          "0.1945 ± 0.0115, next 0.1789", lambda run: not_run(NO_IMAGES)),
    Claim(PAPER, "figure 4", "Exact inference has a higher precision at small scopes than "
          "approximate inference", "higher", lambda run: not_run(NO_IMAGES)),
    Claim(PAPER, "section 5.2.2", "30 to 40 factors are used, of animals", "30 to 40",
          _number_of_factors),
    Claim(OWN, "-", "Sparser factors (a_phi = 0.1) predict better than those of the paper (1)",
          "not known", _compare("hierarchical sparse", "hierarchical", together=True)),
    Claim(OWN, "-", "Sparser factors predict better than the HDP: papers given their lengths",
          "not known", partial(_hdp_bag, ours="hierarchical sparse")),
    Claim(OWN, "-", "The same by half of the words given the others", "not known",
          partial(_hdp_words, ours="hierarchical sparse")),
    *(Claim(OWN, "stands in for table 2", "Factors retrieve digits better than features and "
            f"principal components ({part})", "higher", partial(_retrieval, part=part))
      for part in ("digits", "bundled")),
)  # fmt: skip


# ---- report


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    about = (
        f"{run['settings']['size']} size. Planted factors: counts of two sources drawn from twelve "
        "factors. Sections: papers of NIPS, the section VP is the target. Digits: each class is a "
        "source. Differences are better by so many nats per paper, with standard errors."
    )
    _draw(run, output.with_suffix(".png"))
    _draw_planted(run, output.with_name(f"{output.stem}_planted_factors.png"))
    tables = [
        Table("Claims", "claims", judge(CLAIMS, run)),
        *(_table(run, *parts) for parts in (["planted"], ["sections"], ["digits", "bundled"])),
    ]
    return write_report(output, head(run, "Factor models of several sources", about), tables)


def _table(run: Run, *parts: str) -> Table:
    """Return what was measured in some parts, without what is long."""
    rows = []
    for record in of_part(run, *parts):
        short = {n: x for n, x in record.items() if not isinstance(x, list | dict)}
        for name, digits in (("sweeps_to_all", ".0f"), ("seconds_to_all", ".1f")):
            if name in record:
                short[name] = " ".join(_never(x, digits) for x in record[name])
        if "recovery" in record:
            found, wanted = record["recovery"], len(record["recovery"])
            short[f"probability_of_{wanted}_factors"] = _probability(record)
            short["planted_factors_found"] = sum(row["similarity"] > 0.9 for row in found)
            short["planted_weights_found"] = sum(row["weights"] > 0.9 for row in found)
            short["factors_shared"] = _num_shared(record)
        short["worst_rhat"] = worst_rhat([record])
        hidden = ("part", "summary", "session", "load_before", "seconds_in_all")
        hidden = hidden if len(parts) == 1 else hidden[1:]
        seconds = {"seconds_in_all": record["seconds_in_all"]}
        rows.append({n: x for n, x in short.items() if n not in hidden} | seconds)
    return Table(" and ".join(parts).capitalize(), "_and_".join(parts), rows)


def _draw(run: Run, path: Path) -> None:
    panels = [
        _traces(run),
        _sections(run, TOGETHER, "nats per paper, all together"),
        _sections(run, "word_perplexity", "perplexity of half the words"),
        _scopes(run, "digits", "649 features"),
        _scopes(run, "bundled", "64 pixels"),
    ]
    draw(panels, path, dpi=70)


def _traces(run: Run) -> Panel:
    curves, truth = [], {}
    for record in of_part(run, "planted"):
        label = f"{record['births']} births, a_phi {record['a_phi']:g}, {record['start']}"
        label += "" if record["schedule"] == "default" else f", {record['schedule']}"
        chains = np.array(record["factors_in_use_by_chain"])
        x = 1 + np.linspace(0, record["sweeps"], chains.shape[1], endpoint=False)
        y = chains.mean(axis=0)
        curves.append(Curve(label, x, y, chains.min(axis=0), chains.max(axis=0), markers=False))
        truth = {"planted": float(len(record["recovery"]))}
    title = "Planted factors; band: lowest to highest chain"
    return Panel(title, "sweep", "factors in use", curves, truth, log_x=True, ylim=(0, None))


def _sections(run: Run, score: str, label: str) -> Panel:
    """Draw means over auxiliary sections and splits, with two standard errors."""
    curves = []
    for method, colour in COLOURS.items():
        means = _means(run, method, score)
        y = np.array([mean.value for mean in means.values()])
        error = np.array([2 * mean.error for mean in means.values()])
        error[~np.isfinite(error)] = 0.0  # of one cell
        if means:
            curves.append(Curve(method, list(means), y, y - error, y + error, colour=colour))
    title = "Sections of NIPS; band: two standard errors"
    return Panel(title, "training papers of the target", label, curves)


def _scopes(run: Run, part: str, features: str) -> Panel:
    curves = []
    for record in of_part(run, part):
        value, error = record["mean_average_precision"], record["error_over_queries"]
        label = f"{record['method']}, MAP {value:.3f} ± {error:.3f}"
        scope = {int(n): p for n, p in record["precision_by_scope"].items()}
        curves.append(Curve(label, list(scope), list(scope.values())))
    title = f"Digits of the same class, by {features}"
    return Panel(title, "scope", "precision", curves, log_x=True, ylim=(None, 1.01))


def _draw_planted(run: Run, path: Path) -> None:
    """Draw planted factors above those that were found in their place, each a line of pixels."""
    records = of_part(run, "planted")
    if not records:
        return
    pictures = {"planted": records[0]["images"]["planted"]}
    for r in records:
        name = f"a_phi {r['a_phi']:g}, {r['births']} births, {r['schedule']} schedule, {r['start']}"
        pictures[name] = r["images"]["found"]
    figure, axes = axes_of(len(pictures), 1, figsize=(8, 1.5 * len(pictures)), sharex=True)
    image: Any = None
    for ax, (name, picture) in zip(axes[:, 0], pictures.items(), strict=True):
        image = ax.imshow(np.array(picture), aspect="auto", cmap="cividis", vmin=0, vmax=1)
        ax.set_title(name, loc="left", fontsize="medium")
        ax.set(ylabel="factor", yticks=[0, 3, 7, 11])
    axes[-1, 0].set_xlabel("feature")
    bar = figure.colorbar(image, ax=axes[:, 0].tolist(), label="share of its largest entry")
    bar.outline.set_visible(False)
    save(figure, path, dpi=80)
