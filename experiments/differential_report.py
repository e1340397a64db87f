"""Tables and pictures of the study of differential topic models."""

import math
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from differential_claims import judged
from differential_gaps import DICTIONARY, TOKENS, Which, accuracies, mean_of, values
from differential_settings import (
    CCLDA,
    LDA,
    PARTS,
    POOLED,
    PYP,
    PYP_POOLED,
    SETS,
    TI,
    TII,
)
from study.cells import of_part, session_of
from study.curves import PALETTE, Curve, Panel, axes_of, draw, save
from study.report import Table, head, rates, write_report

__all__ = ["report"]

SPLITS = (TOKENS, DICTIONARY)
METHODS = (TI, TII, CCLDA, PYP, LDA, POOLED)
COLOURS = {**dict(zip(METHODS, PALETTE, strict=False)), PYP_POOLED: PALETTE[3]}
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
        "had. TI connects words that occur together in training documents: within 20 tokens of "
        "the abstracts, within a document of the blogs, whose order is not known. The paper "
        "optimises the concentrations of Dirichlet laws; here all models sample them, with prior "
        "Gamma(1, 1), and those of the Pitman-Yor processes with prior Gamma(2, 0.01). The "
        "switches of ccLDA have uniform priors."
    )
    draw(_perplexity_panels(run), output.with_suffix(".png"))
    draw(_discount_panels(run), output.with_name(f"{output.stem}_discount.png"))
    draw(_sampler_panels(run), output.with_name(f"{output.stem}_samplers.png"))
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


def _by_place(found: dict[tuple[int, int], float]) -> dict[int, list[float]]:
    by: dict[int, list[float]] = {}
    for (topics, _), value in sorted(found.items()):
        by.setdefault(topics, []).append(value)
    return by


def _perplexity(run: Run) -> list[Run]:
    rows = []
    for part, data, method, discount in _groups(run):
        for how in SPLITS:
            found = values(run, Which(part, data, method, discount), how)
            for topics, numbers in _by_place(found).items():
                mean = float(np.mean(numbers))
                rows.append({
                    "part": part, "data": data, "method": method, "discount": discount,
                    "topics": topics or None, "held_out": how,
                    "perplexity": math.exp(-mean), "nats_per_token": mean,
                    "sd": float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
                    "splits": len(numbers),
                })  # fmt: skip
    return rows


def _groups(run: Run) -> list[tuple[str, str, str, float | None]]:
    """Return what was fitted and scored by completion, without splits and topics."""
    records = of_part(run, *SETS.values(), "discount")
    found = dict.fromkeys(
        (r["part"], r["data"], r["method"], r.get("discount")) for r in records if "start" not in r
    )
    return list(found)


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
            mean = mean_of(list(accuracies(run, data, method, score).values()) or [math.nan])
            rows.append({
                "data": data, "method": method,
                "score": score if len(first["accuracy"]) > 1 else None,
                "accuracy": mean.value,
                "standard_error": mean.error if math.isfinite(mean.error) else None,
                "splits": len(accuracies(run, data, method, score)),
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


def _fits(run: Run) -> list[Run]:
    """Summarise what was fitted: convergence, seconds, compiling."""
    by: dict[tuple[Any, ...], list[Run]] = {}
    for record in of_part(run, *PARTS):
        if "compile_seconds" in record and "seconds" in record and record["part"] != "samplers":
            key = record["part"], record["data"], record["method"], record.get("topics")
            by.setdefault((*key, record.get("start", "usual")), []).append(record)
    rows = []
    for (part, data, method, topics, start), records in by.items():
        hats = [r["worst_rhat"] for r in records if r.get("worst_rhat") is not None]
        rows.append({
            "part": part, "data": data, "method": method, "topics": topics, "start": start,
            "fits": len(records), "median_rhat": median(hats) if hats else None,
            "worst_rhat": max(hats, default=None),
            "median_seconds_of_sweeps": median(r["seconds"] - r["compile_seconds"]
                                               for r in records),
            "median_seconds_compiling": median(r["compile_seconds"] for r in records),
            "cores": session_of(run, records[0])["cores"],
        })  # fmt: skip
    return rows


def _perplexity_panels(run: Run) -> list[Panel]:
    """Draw perplexity against the number of topics for each set of documents: figure 6."""
    panels = []
    for data, part in SETS.items():
        for how in SPLITS:
            curves = []
            for method in METHODS:
                by_topics = _by_place(values(run, Which(part, data, method), how))
                if by_topics:
                    curves.append(_band(method, by_topics, COLOURS[method]))
            lines = _by_place(values(run, Which(part, data, "unigram"), how))
            level = {"one word distribution": math.exp(-float(np.mean(lines[0])))} if lines else {}
            title = f"{data.capitalize()}, held out by {how}; two standard errors"
            panels.append(Panel(title, "topics", "perplexity", curves, level))
    return panels


def _discount_panels(run: Run) -> list[Panel]:
    """Draw perplexity against the discount: figure 7."""
    panels = []
    for data in SETS:
        records = of_part(run, "discount", data=data, start=None)
        curves = []
        for method in (TI, TII, PYP_POOLED):
            by: dict[float, list[float]] = {}
            for r in sorted(records, key=lambda r: r["discount"]):
                if r["method"] == method:
                    by.setdefault(r["discount"], []).append(r["scores"][TOKENS]["log_prob"])
            if by:
                curves.append(_band(method, by, COLOURS[method]))
        panels.append(
            Panel(f"{data.capitalize()}; two standard errors", "discount a", "perplexity", curves)
        )
    return panels


def _band(label: str, by: dict[Any, list[float]], colour: str) -> Curve:
    """Return perplexities at mean nats, with two standard errors over splits."""
    mean = np.array([np.mean(x) for x in by.values()])
    error = np.array([np.std(x, ddof=1) / math.sqrt(len(x)) if len(x) > 1 else 0.0
                      for x in by.values()])  # fmt: skip
    middle, low, high = (np.exp(-mean + k * error).tolist() for k in (0, -2, 2))
    return Curve(label, list(by), middle, low, high, colour=colour)


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
                curves.append(
                    Curve(
                        f"{name} {start}".strip(),
                        x.tolist(),
                        np.mean(y, axis=0).tolist(),
                        np.min(y, axis=0).tolist(),
                        np.max(y, axis=0).tolist(),
                        ":" if other else "-",
                        colour,
                    )
                )
        panels.append(Panel("Single states; band: all splits", axis, "perplexity", curves,
                            log_x=True))  # fmt: skip
    return panels


def _draw_digits(run: Run, path: Path) -> None:
    """Draw versions of topics in a few classes: TII, and LDA of each class alone (figure 9)."""
    found = [r for r in of_part(run, "digits") if "start" not in r and r.get("versions")]
    shown = next((r for r in found if "samples" in r), None)
    if shown is None:
        return
    classes, shape = list(shown["versions"]), tuple(shown["shape"])
    topics = len(shown["versions"][classes[0]])
    figure, axes = axes_of(
        len(found) * len(classes),
        topics + 1,
        figsize=(0.75 * (topics + 1), 0.95 * len(found) * len(classes)),
    )
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
