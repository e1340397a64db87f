"""Tables and pictures of the factor studies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from study.cells import of_part
from study.claims import judge, plus
from study.curves import PALETTE, Curve, Panel, axes_of, banded, draw, save
from study.frames import DataFrame, frame, grouped
from study.gaps import usual
from study.report import Table, head, write_report
from study.scores import mean_of, worst_rhat

from factors.claims import (
    BAG,
    CLAIMS,
    OTHER,
    SIZE,
    TOGETHER,
    WORDS,
    Pair,
    by_data,
    nats_by_section,
    scores_of,
    shared,
    times_of,
)

__all__ = ["CLAIMS", "report"]

COLOURS = {
    "hierarchical": PALETTE[0], "pooled": PALETTE[1], "alone": PALETTE[2],
    "HDP pooled": PALETTE[3], "HDP alone": PALETTE[4], "HDP, three levels": PALETTE[5],
    "unigram": PALETTE[6],
}  # fmt: skip
PAIRS = (
    ("simulated", "hierarchical", "pooled"), ("simulated", "hierarchical", "alone"),
    ("simulated", "pooled", "alone"), ("sections", "hierarchical", "alone"),
    ("sections", "hierarchical", "pooled"), ("sections", "pooled", "alone"),
    ("sections", "hierarchical sparse", "alone sparse"),
    ("sections", "hierarchical sparse", "pooled sparse"),
    ("sections", "pooled sparse", "alone sparse"),
    ("sections", "hierarchical sparse", "hierarchical"),
    ("sections", "hierarchical", "Gaussian, exact births"),
    ("sections", "Gaussian, exact births", "Gaussian, approximate births"),
)  # fmt: skip
Run = dict[str, Any]


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    about = (
        f"{s['size']} size. Planted factors: counts of two sources drawn from twelve factors, "
        f"{s['planted_chains']} chains of {s['planted_sweeps']} sweeps from each start; "
        f"samplers: a chain of {s['sampler_sweeps']} sweeps for each data set. "
        "Sections: papers of NIPS, the section VP is the target; simulated: the same of counts "
        f"drawn from the model; {s['num_chains']} chains of {s['num_warmup']} + "
        f"{s['num_samples']} sweeps, {' + '.join(map(str, s['section_sweeps']))} of sections, "
        f"{s['num_test']} test papers. Digits: each class is a source; "
        f"{s['image_chains']} chains of {' and '.join(map(str, s['image_sweeps']))} sweeps with "
        "exact and approximate births. Nats per paper: the lower the better."
    )
    stem = output.stem
    draw(list(_planted_panels(run)), output.with_name(f"{stem}_planted.png"), dpi=70)
    draw(list(_section_panels(run)), output.with_suffix(".png"), dpi=70)
    draw(list(_image_panels(run)), output.with_name(f"{stem}_retrieval.png"), dpi=70)
    _draw_factors(run, output.with_name(f"{stem}_planted_factors.png"))
    tables = [
        Table("Claims", "claims", judge(CLAIMS, run)),
        Table("Planted factors", "planted", list(_planted(run))),
        Table("Samplers, one chain for each data set", "samplers", list(_samplers(run))),
        Table("Estimates of the probability of a row", "estimates", list(_estimates(run)),
              "Nats per row by which each is too high: annealing, eq. 32, draws from the prior."),
        Table("Paired differences", "differences", list(_differences(run)), "Nats per paper by "
              "which the first method is better; the other start less the usual one."),
        Table("Sections, simulated counts: means over splits and auxiliary sections", "sections",
              _sections(run)),
        Table("Digits", "digits", list(_images(run))),
    ]  # fmt: skip
    return write_report(output, head(run, "Factor models of several sources", about), tables)


# ---- tables


def _planted(run: Run) -> Iterator[Run]:
    for record in of_part(run, "planted"):
        found = record["recovery"]
        level = np.mean(record["lp_of_second_half_by_chain"], axis=1)
        yield {
            "a_phi": record["a_phi"], "data": record["split_seed"], "start": record["start"],
            "sweeps_to_all": " ".join(map(_never, record["sweeps_to_all"])),
            "factors": record["factors_or_topics"],
            f"probability_of_{len(found)}": record["posterior"].get(str(len(found)), 0.0),
            "planted_factors_found": sum(row["similarity"] > 0.9 for row in found),
            "planted_weights_found": sum(row["weights"] > 0.9 for row in found),
            "factors_shared": shared(record),
            "log_density": f"{level.mean():.1f}",
            "worst_rhat": worst_rhat([record]), "seconds": record["seconds_in_all"],
        }  # fmt: skip


def _never(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f}"


def _samplers(run: Run) -> Iterator[Run]:
    for a_phi, method in _sampled(run):
        chains = of_part(run, "samplers", a_phi=a_phi, method=method)
        yield {
            "a_phi": a_phi, "method": method, "data_sets": len(chains),
            "sweeps": chains[0]["sweeps"],
            "seconds_of_sweeps": np.mean([r["seconds_of_sweeps"] for r in chains]),
            "sweeps_to_all": " ".join(_never(r["sweeps_to_all"]) for r in chains),
            "seconds_to_all": " ".join(_never(r["seconds_to_all"]) for r in chains),
            "factors": np.mean([r["factors_or_topics"] for r in chains]),
            "log_density_at_the_end": f"{np.mean([r['lp'][-1] for r in chains]):.1f}",
        }  # fmt: skip


def _sampled(run: Run) -> list[tuple[float, str]]:
    """Return priors and samplers that were measured."""
    return list(dict.fromkeys((r["a_phi"], r["method"]) for r in of_part(run, "samplers")))


def _estimates(run: Run) -> Iterator[Run]:
    for r in of_part(run, "estimates"):
        errors = r["error_of_gap"]
        yield {
            "factors": r["factors"], "mean_counts": r["mean_counts"],
            "nats_per_row": r["nats_per_row"],
            **{name: f"{gap:+.2f} ± {errors[name]:.2f}" for name, gap in r["gap"].items()},
        }  # fmt: skip


def _differences(run: Run) -> Iterator[Run]:
    for pair in (Pair(*names) for names in PAIRS):
        starts = [
            plus(mean_of(gaps), 1) if (gaps := pair.start_gaps(run, method)) else ""
            for method in (pair.one, pair.other)
        ]
        for size, gap in pair.gaps(run).items():
            yield {
                "part": pair.part, "method": pair.one, "against": pair.other, SIZE: size,
                "difference": plus(gap, 1), "splits": gap.splits,
                "other_start_of_the_first": starts[0], "other_start_of_the_second": starts[1],
            }  # fmt: skip


def _sections(run: Run) -> DataFrame:
    about, scores = ("part", "method", SIZE), (
        TOGETHER, "nats_per_paper", BAG, WORDS, "factors_or_topics", "bias",
    )  # fmt: skip
    records = of_part(run, "simulated", "sections", start=None)
    rows = [{**r, "worst_rhat": worst_rhat([r])} for r in sorted(records, key=_simulated_first)]
    table = frame(rows, *about, OTHER, *scores, "worst_rhat", "seconds_in_all")
    return grouped(table, *about).agg(
        fits=(OTHER, "size"), auxiliary_sections=(OTHER, "nunique"),
        **{name: (name, "mean") for name in scores}, worst_rhat=("worst_rhat", "max"),
        seconds=("seconds_in_all", lambda x: sum([*x])),
    ).reset_index()  # fmt: skip


def _simulated_first(record: Run) -> bool:
    return record["part"] != "simulated"


def _images(run: Run) -> Iterator[Run]:
    for part in ("digits", "bundled"):
        for r in of_part(run, part):
            first = r["relevant_of_each_query_by_scope"]["1"]
            yield {
                "part": part, "method": r["method"], "start": r.get("start", ""),
                "mean_average_precision": r["mean_average_precision"],
                "error_over_queries": r["error_over_queries"],
                "precision_at_1": float(np.mean(first)),
                "map_by_features_made": r.get("rebuilt", {}).get("mean_average_precision"),
                "factors_or_components": r.get("factors_or_topics", r.get("components")),
                "worst_rhat": worst_rhat([r]), "seconds": r["seconds_in_all"],
            }  # fmt: skip


# ---- pictures


def _planted_panels(run: Run) -> Iterator[Panel]:
    for a_phi in run["settings"]["a_phi"]:
        data = by_data(run, a_phi)
        if not data:
            continue
        starts = {r["start"]: None for of in data.values() for r in of}
        curves, levels = [], []
        for shift, start in enumerate(starts):
            of_start = {n: r for n, of in data.items() for r in of if r["start"] == start}
            first = next(iter(of_start.values()))
            chains = np.concatenate([r["factors_in_use_by_chain"] for r in of_start.values()])
            x = 1 + np.linspace(0, first["sweeps"], chains.shape[1], endpoint=False)
            low, high = chains.min(axis=0), chains.max(axis=0)
            colour = PALETTE[shift]
            curves.append(Curve(start, x, chains.mean(axis=0), low, high, markers=False,
                                colour=colour))  # fmt: skip
            for seed, r in of_start.items():
                every = [c for other in data[seed] for c in other["lp_of_second_half_by_chain"]]
                of_chain = np.mean(r["lp_of_second_half_by_chain"], axis=1) - np.mean(every)
                gap = mean_of(of_chain.tolist())
                at = [seed + 0.15 * (shift - 1)]
                levels.append(Curve(start, at, [gap.value], [gap.value - 2 * gap.error],
                                    [gap.value + 2 * gap.error], colour=colour))  # fmt: skip
        yield Panel(
            f"Planted factors, a_phi {a_phi:g}; band: lowest to highest chain", "sweep",
            "factors in use", curves, {"planted": 12.0}, log_x=True, ylim=(0, None),
        )  # fmt: skip
        yield Panel(
            f"a_phi {a_phi:g}; bars: two standard errors over chains", "data set",
            "log density less mean of all starts", levels, ticks={n: str(n) for n in data},
        )  # fmt: skip
    for unit in ("sweeps", "seconds"):
        curves = []
        for a_phi, method in _sampled(run):
            times, there = times_of(run, unit, a_phi=a_phi, method=method)
            x = np.concatenate([[0], np.repeat(np.sort(times[there]), 2), [times.max()]])
            y = np.repeat(np.arange(there.sum() + 1), 2) / len(there)
            label = f"{method}, a_phi {a_phi:g}"
            curves.append(Curve(label, np.maximum(x, 0.5).tolist(), y.tolist(), markers=False))
        yield Panel("Chains from one factor, row by row", unit, "share that found all factors",
                    curves, log_x=True, ylim=(-0.02, 1.02))  # fmt: skip


def _section_panels(run: Run) -> Iterator[Panel]:
    """Draw means over auxiliary sections and splits, with two standard errors."""
    for part, score, label in (
        ("sections", TOGETHER, "nats per paper, all together"),
        ("sections", WORDS, "perplexity of half the words"),
        ("simulated", TOGETHER, "nats per row, all together"),
    ):
        scores = usual(scores_of(run, part, score=score))
        scores["value"] = np.exp(-scores["value"]) if score == WORDS else -scores["value"]
        curves = []
        for (method,), rows in grouped(scores, "method"):
            kind, style = method.removesuffix(" sparse"), "--" if "sparse" in method else "-"
            if not method.startswith("Gaussian"):
                looks = {"style": style, "colour": COLOURS.get(kind)}
                curves.append(banded(method, rows, SIZE, **looks))
        title = "Sections of NIPS" if part == "sections" else "Counts drawn from the model"
        yield Panel(f"{title}; band: two standard errors", SIZE.replace("_", " "), label, curves)
    nats = nats_by_section(run)
    order = nats.mean().sort_values().index
    curves = []
    for place, name in enumerate(order):
        rows = pd.DataFrame({"place": place, "value": nats[name]})
        curves.append(banded("hierarchical", rows, "place", colour=PALETTE[0]))
    yield Panel("Sections told apart, mean over training papers", "auxiliary section",
                "nats per paper, all together", curves,
                ticks=dict(enumerate(order)))  # fmt: skip


def _image_panels(run: Run) -> Iterator[Panel]:
    for part, features in (("digits", "649 features"), ("bundled", "64 pixels")):
        curves = []
        for r in of_part(run, part):
            scope = {int(n): np.mean(x) / int(n)
                     for n, x in r["relevant_of_each_query_by_scope"].items()}  # fmt: skip
            name = f"{r['method'].removeprefix('GaussianFactorAnalysis, ')} {r.get('start', '')}"
            label = f"{name.strip()}, MAP {r['mean_average_precision']:.3f}"
            curves.append(Curve(label, list(scope), list(scope.values())))
        yield Panel(f"Digits of the same class, by {features}", "scope", "precision", curves,
                    log_x=True, ylim=(None, 1.01))  # fmt: skip
        traces = []
        for shift, r in enumerate(r for r in of_part(run, part) if "start" in r):
            chains = np.array(r["lp_of_second_half_by_chain"]) / 1e3
            label = f"{r['method'].removeprefix('GaussianFactorAnalysis, ')} {r['start']}"
            x = np.linspace(0.5, 1, chains.shape[1], endpoint=False).tolist()
            for chain in chains:
                traces.append(Curve(label, x, chain, markers=False, colour=PALETTE[shift]))
        yield Panel("Log density of each chain", "share of the sweeps", "thousand nats", traces)


def _draw_factors(run: Run, path: Path) -> None:
    """Draw planted factors above those that were found in their place, each a line of pixels."""
    records = [r for r in of_part(run, "planted") if "images" in r]
    if not records:
        return
    pictures = {"planted": records[0]["images"]["planted"]}
    for r in records:
        found = np.array(r["images"]["found"]) / 10
        pictures[f"a_phi {r['a_phi']:g}, {r['start']}"] = found
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
