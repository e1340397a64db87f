"""Tables and pictures of the benchmark: what was found, against whom, and whether it is enough."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from study.cells import of_part
from study.claims import RHAT
from study.curves import PALETTE, Curve, Panel, draw
from study.report import Table, head, rates, span, write_report
from study.timing import arrival

__all__ = ["report", "targets"]

DRAWS_PER_CHAIN = 100
"""Effective draws per chain from which their number is reported (Vehtari et al. 2021, section 4).

Chains that are apart, and chains that drift, have a bulk ESS just above the number of chains,
whatever they draw: a ratio of such values compares nothing.
"""
MEMORY = 1.5  # GB
Run = dict[str, Any]


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    settings = run["settings"]
    about = (
        f"{settings['size']} size, seed {settings['seed']}. The ratios carry over to other "
        "machines, the absolute numbers do not. Compilation is left out of all times and given "
        "apart."
    )
    _draw_completion(run, output.with_name(f"{output.stem}_heldout_score_against_time.png"))
    _draw_starts(run, output.with_name(f"{output.stem}_from_different_starts.png"))
    text = head(run, "Speed and convergence beside other libraries", about)
    tables = [targets(run), _tokens(run), _ess(run), _completion(run), _starts(run), _memory(run)]
    return write_report(output, text, tables)


def targets(run: Run) -> Table:
    """Say for each target that was measured whether it is met."""
    settings, rows = run["settings"], []
    theirs = f"{settings['cores']} workers"

    def add(target: str, found: str, met: bool) -> None:
        rows.append({"target": target, "found": found, "met": "yes" if met else "**no**"})

    for record in of_part(run, "tokens"):
        found = {n: x["tokens_per_second"] for n, x in record["systems"].items()}
        model, data = record["method"].split()[0], record["data"]
        peer = found.get(f"tomotopy {model}, {theirs}")
        for name, ours in found.items():
            if name.startswith("parallel") and peer:
                ratio = [a / b for a, b in zip(ours, peer, strict=False)]
                target = f"{name.replace(',', f' {model},')}, {data}: at least 0.7 of tomotopy's"
                add(f"{target} {theirs}", span(ratio), median(ratio) >= 0.7)
        many = f"sequential, {settings['many_chains']} chains"
        if many in found:
            rate = [x / 1e6 for x in found[many]]
            target = f"{many.replace(',', ' LDA,')}, {data}: at least 8 M tokens/s"
            add(target, f"{span(rate, '.1f')} M", median(rate) >= 8)
    for record in of_part(run, "memory"):
        if record["method"].startswith("fit"):
            peak, slots = _peak(record) / 1e9, record["max_topics"]
            target = f"peak memory of {record['method']} of HDPLDA, {record['data']}, {slots} slots"
            add(f"{target}: below {MEMORY:g} GB", f"{peak:.2f} GB", peak < MEMORY)
    return Table("Targets", "targets", rows)


def _tokens(run: Run) -> Table:
    note = (
        "Whole sweeps with all that is in them, in turns; ratios turn by turn. tomotopy's runs "
        "with several workers use counts that are out of date, and its HDP samples another law: "
        "fast, but not the same thing."
    )
    rows = rates(of_part(run, "tokens"), "tomotopy")
    return Table("Tokens per second", "tokens_per_second", rows, note)


def _ess(run: Run) -> Table:
    share, rows = run["settings"]["ess_warmup_share"], []
    for record in of_part(run, "ess"):
        systems = record["systems"]
        peer = next((name for name in systems if name.startswith("tomotopy")), None)
        base = _per_second(systems[peer], "lp") if peer else None
        for name, found in systems.items():
            speed, ratio = _per_second(found, "lp"), None
            if isinstance(speed, float) and isinstance(base, float):
                ratio = speed / base
            rows.append({
                "data": record["data"], "model": record["method"], "system": name,
                "sweeps": found["sweeps"], "rhat_of_log_density": found["lp"]["rhat"],
                "effective_draws_of_log_density_per_second": speed,
                "ratio_is_to": peer, "ratio": ratio,
                "rhat_of_number_of_topics": found["topics"]["rhat"],
                "effective_draws_of_number_of_topics_per_second": _per_second(found, "topics"),
            })  # fmt: skip
    note = (
        f"Bulk ESS of all chains together per second, after the first {share:.0%} of the time. "
        f"Values are given where R-hat is at most {RHAT:g} and ESS at least {DRAWS_PER_CHAIN} per "
        "chain, and ratios where both sides have a value. ESS of chains that have not mixed is "
        "little more than the number of chains, however fast they are. R-hat of a single chain "
        "compares its quarters; it cannot tell that another chain would end elsewhere. tomotopy "
        "returns one chain; its HDP and its several workers draw from something else."
    )
    values = (row["effective_draws_of_log_density_per_second"] for row in rows)
    if not any(isinstance(value, float) for value in values):
        note += " **No system got there for the log density in the time that it had.**"
    return Table("Effective draws per second", "effective_draws_per_second", rows, note)


def _per_second(found: Run, quantity: str) -> float | str | None:
    """Return the effective draws per second where they mean something, otherwise why they do not.

    None if the quantity does not vary, or has too few draws for an estimate.
    """
    worth = found[quantity]
    if worth["ess"] is None:
        return None
    if worth["rhat"] is None or not worth["rhat"] <= RHAT:  # NaN is not mixed either
        return "not mixed"
    enough = worth["ess"] >= DRAWS_PER_CHAIN * found["chains"]
    return worth["ess_per_second"] if enough else "too few draws"


def _curves(run: Run, data: str) -> dict[str, list[Run]]:
    """Return the curves of a corpus by the name of the system and its start."""
    found: dict[str, list[Run]] = {}
    for record in of_part(run, "completion", data=data):
        method = record["method"]
        if method != "unigram":
            ours = not method.startswith(("tomotopy", "gensim"))
            name = f"ours, {method}" if ours else method
            name += f", {record['start']}" if "start" in record else ""
            found.setdefault(name, []).append(record)
    return found


def _threshold(run: Run, data: str) -> float | None:
    """Return the perplexity that counts as arrived: a little above the best final one of an LDA."""
    records = of_part(run, "completion", data=data, model="LDA")
    final = [record["perplexity"][-1] for record in records]
    return min(final) * (1 + run["settings"]["within"]) if final else None


def _completion(run: Run) -> Table:
    rows = []
    for data in dict.fromkeys(record["data"] for record in of_part(run, "completion")):
        goal = _threshold(run, data)
        for name, curves in _curves(run, data).items():
            times = [arrival(c["seconds"], c["perplexity"], goal) for c in curves if goal]
            middle = median(math.inf if t is None else t for t in times) if times else math.inf
            rows.append({
                "data": data, "model": curves[0]["model"], "system": name,
                "final_perplexity": median(c["perplexity"][-1] for c in curves),
                "relative_error_over_documents": median(c["error_docs"][-1] for c in curves),
                "topics_at_end": round(median(c["topics"][-1] for c in curves)),
                "seconds_run": median(c["seconds"][-1] for c in curves),
                "perplexity_that_counts_as_arrived": goal,
                "seconds_to_arrive": "never" if math.isinf(middle) else middle,
                "seconds_compiling": median(c["compile_seconds"] for c in curves),
            })  # fmt: skip
        for record in of_part(run, "completion", data=data, method="unigram"):
            perplexity = record["perplexity"]
            rows.append({"data": data, "system": "unigram", "final_perplexity": perplexity})
    note = (
        "Half of each test document is given, the other half scored, with one fold-in for all and "
        "the topics and weights that each system had at the time: one state, no averages over "
        f"draws. Arrived means within {run['settings']['within']:.1%} of the best final perplexity "
        "of an LDA. Unigram: one word distribution for all documents."
    )
    return Table("Held-out score against time", "heldout_score_against_time", rows, note)


def _starts(run: Run) -> Table:
    rows = []
    for record in of_part(run, "starts"):
        for i, sweep in enumerate(record["sweeps"]):
            topics = [chain[sweep - 1] for chain in record["topics"]]
            rows.append({
                "data": record["data"], "start": record["start"], "sweep": sweep,
                "seconds": record["seconds"][i], "topics_median": median(topics),
                "topics_lowest": min(topics), "topics_highest": max(topics),
                "topics_above_0.1_percent_of_tokens_median": median(record["large_topics"][i]),
                "perplexity_mean_of_chains": mean(record["perplexity"][i]),
                "perplexity_lowest": min(record["perplexity"][i]),
                "perplexity_highest": max(record["perplexity"][i]),
            })  # fmt: skip
    note = "The HDP topic model with its default schedule; all tokens start in random topics."
    return Table("From different starts", "from_different_starts", rows, note)


def _peak(record: Run) -> float:
    return record["high_water"] or record["ru_maxrss"]


def _memory(run: Run) -> Table:
    rows = [
        {
            "data": record["data"], "process": record["method"],
            "peak_gigabytes": _peak(record) / 1e9,
            "peak_gigabytes_by_getrusage": record["ru_maxrss"] / 1e9,
            "topics": " to ".join(map(str, record.get("topics", []))),
            "changes_of_capacity": "; ".join(record.get("capacity", [])),
        }
        for record in of_part(run, "memory")
    ]  # fmt: skip
    return Table("Peak memory of a process", "peak_memory", rows)


# ---- pictures


def _draw_completion(run: Run, path: Path) -> None:
    """Draw perplexity against time, LDA and HDP side by side."""
    panels = []
    for data in dict.fromkeys(record["data"] for record in of_part(run, "completion")):
        unigrams = of_part(run, "completion", data=data, method="unigram")
        lines = {"unigram": unigrams[0]["perplexity"]} if unigrams else {}
        if goal := _threshold(run, data):
            lines[f"arrived: {goal:.0f}"] = goal
        found = _curves(run, data)
        last = [c["perplexity"][-1] for curves in found.values() for c in curves]
        top = max([1.15 * max(last, default=1.0), *(1.02 * y for y in lines.values())])
        for model in ("LDA", "HDP"):
            curves = []
            for name, records in found.items():
                style = "-" if name.startswith("ours") else "--"
                of_model = [c for c in records if c["model"] == model]
                curves += [
                    Curve(name, c["seconds"], c["perplexity"], style=style) for c in of_model
                ]
            axes = "seconds of sweeps, compilation left out", "held-out perplexity"
            ylim = (0.95 * min(last, default=1.0), top)
            panels.append(Panel(f"{model}, {data}", *axes, curves, lines, log_x=True, ylim=ylim))
    draw(panels, path)


def _draw_starts(run: Run, path: Path) -> None:
    """Draw topics in use and perplexity by sweep, the band from the lowest to the highest chain."""
    panels = []
    for data in dict.fromkeys(record["data"] for record in of_part(run, "starts")):
        topics, scores, last = [], [], []
        for record, colour in zip(of_part(run, "starts", data=data), PALETTE, strict=False):
            label = f"{record['start']}, {len(record['topics'])} chains"
            by_sweep = list(zip(*record["topics"], strict=True))
            topics.append(_band(label, list(range(1, len(by_sweep) + 1)), by_sweep, colour))
            scores.append(_band(label, record["sweeps"], record["perplexity"], colour))
            last += record["perplexity"][-1]
        room = max(max(last) - min(last), 0.02 * min(last))
        ylim = (min(last) - room, max(last) + 6 * room)
        panels.append(Panel(data, "sweeps", "topics in use", topics, ylim=(0, None)))
        panels.append(Panel(data, "sweeps", "held-out perplexity", scores, log_x=True, ylim=ylim))
    draw(panels, path)


def _band(label: str, x: list[int], by_sweep: Sequence[Sequence[float]], colour: str) -> Curve:
    """Return the mean over chains, with the lowest and the highest as the band."""
    y, low, high = ([f(v) for v in by_sweep] for f in (mean, min, max))
    return Curve(label, x, y, low, high, colour=colour, markers=len(x) < 40)
