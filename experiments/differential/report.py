"""Tables and pictures of the study of differential topic models."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from study.cells import of_part, session_of
from study.curves import PALETTE, Curve, Panel, axes_of, banded, draw, save
from study.frames import DataFrame, frame, grouped
from study.gaps import usual
from study.report import Table, head, rates, write_report
from study.scores import mean_of

from differential.claims import DICTIONARY, TOKENS, accuracies, judged
from differential.settings import (
    CCLDA,
    HALF,
    LDA,
    PARTS,
    POOLED,
    PYP,
    PYP_POOLED,
    SETS,
    TI,
    TII,
    WORDNET,
)

__all__ = ["report"]

SPLITS = (TOKENS, DICTIONARY)
METHODS = (TI, TII, CCLDA, PYP, LDA, POOLED, WORDNET, HALF)
ALIKE = 0.3  # likeness of topics from which the picture of figure 4 has an arc
COLOURS = {**dict(zip(METHODS, (*PALETTE, "black"), strict=True)), PYP_POOLED: PALETTE[3]}
Run = dict[str, Any]


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    about = (
        f"{s['size']} size, seed {s['seed']}. Perplexities and nats are per held-out token of test "
        "documents, one fifth of all, by document completion averaged over the kept states. "
        '"Tokens": a random half of the tokens is held out; "dictionary": the word types of even '
        "number are. The blogs are a sample of the paper's set Blog, and stand for its BD as well; "
        "the abstracts are other ones than its MLJ; the Reuters and ImageNet sets could not be "
        "had. TI connects words that occur together in the "
        "documents that are not held out, more often than by chance (log-likelihood): within 20 "
        "tokens of the abstracts, within a document of the blogs, whose order is not known. The "
        "paper's TI is of Wikipedia. The "
        "paper optimises the concentrations of Dirichlet laws; here all models but those of the "
        "part on hybrids sample them, with prior Gamma(1, 1), and those of the Pitman-Yor "
        "processes with prior Gamma(2, 0.01). The switches of ccLDA have uniform priors."
    )
    draw(_perplexity_panels(run), output.with_suffix(".png"))
    draw(_discount_panels(run), output.with_name(f"{output.stem}_discount.png"))
    draw(_sampler_panels(run), output.with_name(f"{output.stem}_samplers.png"))
    draw(_sweep_panels(run), output.with_name(f"{output.stem}_sweeps.png"))
    _draw_arcs(run, output.with_name(f"{output.stem}_arcs.png"))
    _draw_digits(run, output.with_name(f"{output.stem}_digits.png"))
    tables = [
        Table("Claims, test documents divided by tokens", "claims", judged(run, TOKENS, True)),
        Table("Claims about perplexity, divided by word types", "claims_by_dictionary",
              judged(run, DICTIONARY, False)),
        Table("Perplexity", "perplexity", _perplexity(run),
              "Means over splits of nats per token; sd is the standard deviation over them."),
        Table("Samplers of one posterior", "samplers", _samplers(run),
              "Perplexity of single states. Effective draws are of the log density in the second "
              "half of the sweeps, over all chains."),
        Table("Accuracy: which group is a document from?", "accuracy", _accuracy(run),
              "Means over splits with standard errors; the paper's are of its own sets."),
        Table("Topics of the digits", "digits", _digits(run),
              "In the last state of each chain, the topics that differ most between classes "
              "first. `names_class`: the share of classes whose version is nearest to the mean "
              "picture of this class."),
        Table("Made-up groups", "planted", _planted(run)),
        Table("Fits", "fits", _fits(run)),
        Table("Tokens per second", "tokens_per_second",
              rates(of_part(run, "speed", method="rates"))),
        Table("Tables of Stirling ratios", "stirling_tables", _tables(run)),
    ]  # fmt: skip
    return write_report(output, head(run, "Differential topic models", about), tables)


def _scores(run: Run) -> DataFrame:
    """Return nats per token of every fit from the usual start, by both ways to hold words out."""
    rows = [
        {"topics": 0, **r, "held_out": how, "value": r["scores"][how]["log_prob"]}
        for r in of_part(run, *SETS.values(), "discount", "hybrids", start=None)
        for how in SPLITS
    ]  # fmt: skip
    return frame(
        rows, "part", "data", "method", "discount", "topics", "split_seed", "held_out", "value"
    )


def _perplexity(run: Run) -> DataFrame:
    scores = _scores(run)
    of_method = ("part", "data", "method", "discount")
    scores["order"] = grouped(scores, *of_method).ngroup()
    scores["second"] = scores["held_out"] == DICTIONARY
    scores = scores.sort_values(["order", "second", "topics"], kind="stable")
    table = grouped(scores, *of_method, "topics", "held_out").agg(
        perplexity=("value", lambda x: math.exp(-x.mean())), nats_per_token=("value", "mean"),
        sd=("value", "std"), splits=("value", "size"),
    )  # fmt: skip
    return table.reset_index().replace({"topics": {0: None}})


def _samplers(run: Run) -> list[Run]:
    rows = []
    for r in of_part(run, "samplers"):
        draws, seconds = r.get("effective_draws"), r.get("seconds_of_draws")
        rows.append({
            "sampler": r["method"], "discount": r["discount"], "split": r["split_seed"],
            "start": r.get("start", "usual"), "sweeps": r["sweeps"][-1],
            "seconds": r["seconds"][-1], "perplexity": _perplexity_of(r["chain_log_prob"][-1]),
            "effective_draws": draws,
            "effective_draws_per_second": draws / seconds if draws and seconds else None,
        })  # fmt: skip
    return rows


def _perplexity_of(log_probs: list[float]) -> float:
    return math.exp(-float(np.mean(log_probs)))


def _accuracy(run: Run) -> list[Run]:
    rows = []
    records = of_part(run, "classification")
    for data, method in dict.fromkeys((r["data"], r["method"]) for r in records):
        first = next(r for r in records if (r["data"], r["method"]) == (data, method))
        for score in first["accuracy"]:
            mean = mean_of(found := usual(accuracies(run, data, method, score))["value"])
            rows.append({
                "data": data, "method": method,
                "score": score if len(first["accuracy"]) > 1 else None,
                "accuracy": mean.value,
                "standard_error": mean.error if math.isfinite(mean.error) else None,
                "splits": len(found),
                "log_error_of_particles": first.get("log_error_of_particles")
                if score == "corrected" else None,
            })  # fmt: skip
    return rows


def _digits(run: Run) -> list[Run]:
    rows = []
    for r in of_part(run, "digits", method=TII):
        for c, chain in enumerate(r["chains"]):
            for k, distance in enumerate(chain["distance"]):
                rows.append({
                    "start": r.get("start", "usual"), "chain": c, "topic": k,
                    "distance_between_classes": distance, "names_class": chain["names_class"][k],
                    "share_of_pixels": chain["share_of_pixels"][k],
                })  # fmt: skip
    return rows


def _planted(run: Run) -> list[Run]:
    return [
        {"split": r["split_seed"], "start": r.get("start", "usual"), "chain": c,
         "rank_correlation": chain["rank_correlation"],
         "tokens_in_their_topic": chain["tokens_in_their_topic"],
         "true_concentrations": ", ".join(f"{x:g}" for x in r["concentration"]),
         "posterior_geometric_means": ", ".join(f"{x:.3g}" for x in chain["likeness"])}
        for r in of_part(run, "planted") for c, chain in enumerate(r["chains"])
    ]  # fmt: skip


def _tables(run: Run) -> list[Run]:
    return [
        {"model": r["method"].removeprefix("table, "), "data": r["data"],
         **{name: r[name] for name in ("tokens", "rows", "columns", "megabytes", "sweeps")}}
        for r in of_part(run, "speed") if "megabytes" in r
    ]  # fmt: skip


def _fits(run: Run) -> DataFrame:
    """Summarise what was fitted: convergence, seconds, compiling."""
    rows = [
        {**r, "sweeping": r["seconds"] - r["compile_seconds"], **session_of(run, r)}
        for r in of_part(run, *PARTS)
        if r["part"] != "samplers" and {"seconds", "compile_seconds"} <= r.keys()
    ]  # fmt: skip
    about = ("part", "data", "method", "topics", "start")
    fits = frame(rows, *about, "worst_rhat", "sweeping", "compile_seconds", "cores")
    return grouped(fits.replace({"start": {"": "usual"}}), *about).agg(
        fits=("method", "size"), median_rhat=("worst_rhat", "median"),
        worst_rhat=("worst_rhat", "max"), median_seconds_of_sweeps=("sweeping", "median"),
        median_seconds_compiling=("compile_seconds", "median"), cores=("cores", "first"),
    ).reset_index()  # fmt: skip


def _band(label: str, rows: DataFrame, x: str) -> Curve:
    """Return perplexities at mean nats, with two standard errors over splits."""
    return banded(label, rows, x, scale=lambda nats: np.exp(-nats), colour=COLOURS[label])


def _perplexity_panels(run: Run) -> list[Panel]:
    """Draw perplexity beside that of TII, for each set of documents and number of topics: figure 6.

    The errors are those of the ratios: splits differ more than methods do.
    """
    panels, scores = [], _scores(run)
    for data, part in SETS.items():
        for how in SPLITS:
            rows = scores[(scores["part"] == part) & (scores["held_out"] == how)]
            base = rows[rows["method"] == TII].set_index(["split_seed", "topics"])["value"]
            if base.empty:
                continue
            rows = rows.join(base.rename("base"), on=["split_seed", "topics"])
            rows["value"] -= rows["base"]
            sizes = sorted(set(base.index.get_level_values("topics")))
            ticks = {float(place): f"{k} topics" for place, k in enumerate(sizes)}
            others = [name for name in METHODS if name in set(rows["method"]) - {TII}]
            curves = []
            for number, name in enumerate(others):
                of = rows[rows["method"] == name]
                # side by side: the bars of methods would hide one another
                shift = (number - (len(others) - 1) / 2) / (len(others) + 1)
                of = of.assign(place=of["topics"].map(sizes.index) + shift)
                curves.append(banded(name, of, "place", colour=COLOURS[name],
                                     scale=lambda nats: 100 * (np.exp(-nats) - 1)))  # fmt: skip
            said = f"{data.capitalize()}, by {how}; TII: {math.exp(-base.mean()):.0f}"
            panels.append(Panel(f"{said}; bars: two standard errors", "", "% above TII", curves,
                                {"TII": 0.0}, ticks=ticks))  # fmt: skip
    return panels


def _discount_panels(run: Run) -> list[Panel]:
    """Draw perplexity against the discount: figure 7."""
    scores = _scores(run)
    scores = scores[(scores["part"] == "discount") & (scores["held_out"] == TOKENS)]
    panels = []
    for data in SETS:
        by = dict(list(scores[scores["data"] == data].groupby("method")))
        curves = [_band(n, by[n], "discount") for n in (TI, TII, PYP_POOLED) if n in by]
        title = f"{data.capitalize()}; two standard errors"
        panels.append(Panel(title, "discount a", "perplexity", curves))
    return panels


def _sampler_panels(run: Run) -> list[Panel]:
    """Draw the perplexity of single states against sweeps and seconds, one line for each start."""
    records = [r for r in of_part(run, "samplers") if r["discount"] == 0.7]
    names = list(dict.fromkeys(r["method"] for r in records))
    panels = []
    for axis in ("sweeps", "seconds"):
        curves = []
        for name, colour in zip(names, PALETTE, strict=False):
            for other in (False, True):
                several = [r for r in records if r["method"] == name and ("start" in r) == other]
                if not several:
                    continue
                x = np.mean([r[axis] for r in several], axis=0)
                y = [[_perplexity_of(mark) for mark in r["chain_log_prob"]] for r in several]
                start = several[0].get("start", "")
                label, style = f"{name} {start}".strip(), ":" if other else "-"
                lines = (of(y, axis=0).tolist() for of in (np.mean, np.min, np.max))
                curves.append(Curve(label, x.tolist(), *lines, style=style, colour=colour))
        panels.append(Panel("Single states; band: all splits", axis, "perplexity", curves,
                            log_x=True))  # fmt: skip
    return panels


def _sweep_panels(run: Run) -> list[Panel]:
    """Draw the accuracy of single states against sweeps, a line for each start: section 6.5."""
    panels = []
    for data in SETS:
        curves = []
        for r in of_part(run, "sweeps", data=data):
            lines = [of(r["draws"], axis=0).tolist() for of in (np.mean, np.min, np.max)]
            label, style = f"{r['method']} {r.get('start', '')}".strip(), "-:"["start" in r]
            colour = COLOURS[r["method"]]
            curves.append(Curve(label, r["sweeps"], *lines, style=style, colour=colour))
        title = f"{data.capitalize()}, single states; band: all chains"
        panels.append(Panel(title, "sweeps", "accuracy", curves))
    return panels


def _draw_arcs(run: Run, path: Path) -> None:
    """Draw the topics of two groups, and arcs between those that are alike: figure 4.

    Each topic has arcs to its own version in the other group and to the one that is most like it.
    """
    found = next((r["arcs"] for r in of_part(run, *SETS.values(), method=TII) if "arcs" in r), None)
    if found is None:
        return
    likeness = np.array(found["likeness"])
    figure, axes = axes_of(1, 1, figsize=(9.0, 0.5 * len(likeness) + 0.8))
    axis = axes[0, 0]
    for side, (group, topics) in enumerate(zip(found["groups"], found["words"], strict=True)):
        align = "left" if side else "right"
        axis.text(side, -0.9, group, ha=align, va="center", weight="bold")
        for k, words in enumerate(topics):
            axis.text(side, k, f" {', '.join(words)} ", ha=align, va="center", fontsize="small")
    # of each topic the most alike one only, or all of them cross
    best = (likeness == likeness.max(axis=0)) | (likeness == likeness.max(axis=1)[:, None])
    best |= np.eye(len(likeness), dtype=bool)
    for j, k in zip(*np.nonzero(best & (likeness > ALIKE)), strict=True):
        colour = PALETTE[0] if j == k else PALETTE[1]
        axis.plot([0, 1], [j, k], color=colour, lw=5 * likeness[j, k], alpha=likeness[j, k])
    axis.set(xlim=(-1.6, 2.6), ylim=(len(likeness) - 0.5, -1.4))
    axis.set_axis_off()
    save(figure, path, 90)


def _draw_digits(run: Run, path: Path) -> None:
    """Draw versions of topics in a few classes: TII, and LDA of each class alone (figure 9)."""
    found = [r for r in of_part(run, "digits") if "start" not in r and r.get("versions")]
    shown = next((r for r in found if "samples" in r), None)
    if shown is None:
        return
    classes, shape = list(shown["versions"]), tuple(shown["shape"])
    topics = len(shown["versions"][classes[0]])
    lines = len(found) * len(classes)
    figure, axes = axes_of(lines, topics + 1, figsize=(0.75 * (topics + 1), 0.95 * lines))
    for m, record in enumerate(found):
        for c, name in enumerate(classes):
            sample = np.zeros(math.prod(shape))
            sample[shown["samples"][name]] = 1.0
            row = axes[m * len(classes) + c]
            for axis, picture in zip(row, [sample, *record["versions"][name]], strict=True):
                axis.imshow(np.reshape(picture, shape), cmap="gray_r")
                axis.set_xticks([])
                axis.set_yticks([])
            row[0].set_ylabel(f"{record['method'].split(',')[0]}\n{name}", fontsize="small")
    axes[0][0].set_title("sample", fontsize="small")
    axes[0][1].set_title("differs most", fontsize="small")
    save(figure, path, 90)
