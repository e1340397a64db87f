"""Tables of ratios out of the results: what was found, against whom, and whether it is enough."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from .found import completion_threshold, measured
from .pictures import draw_completion, draw_starts

__all__ = ["Target", "reached", "report", "targets"]

LOADED = 0.5  # load average per core above which the machine was not idle
UNCONVERGED = 1.05  # R-hat above which an effective sample size is not to be trusted
MEMORY = 2.0  # GB

Target = tuple[str, str, bool | None]
"""What is asked for, what was found, and whether that is enough (None: not measured)."""


def report(run: dict[str, Any], output: Path) -> str:
    """Write the pictures beside `output` and return the tables as Markdown."""
    sections = [
        _head(run),
        _targets(run),
        _tokens(run),
        _ess(run),
        _completion(run, draw_completion(run, output)),
        _starts(run, draw_starts(run, output)),
        _memory(run),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _span(values: Sequence[float], digits: str = ".2f") -> str:
    middle, low, high = (format(x, digits) for x in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})" if len(values) > 1 else middle


def _number(value: float | None, digits: str = ".3g") -> str:
    return "-" if value is None or math.isnan(value) else format(value, digits)


def _head(run: dict[str, Any]) -> str:
    machine, settings, versions = run["machine"], run["settings"], run["versions"]
    text = (
        f"# Speed and convergence beside other libraries\n\n"
        f"{machine['cpu']}, {settings['cores']} of {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB; {settings['size']} size, seed {settings['seed']}, "
        f"{run['begun']}. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".\nOne run on one machine: the ratios carry over to others, the absolute numbers don't. "
        "Compilation is left out of all times and given apart. In brackets: lowest to highest."
    )
    loads = [m["load_before"] for m in run["measurements"].values() if m.get("load_before")]
    if loads and max(loads) > settings["cores"] + LOADED * machine["cores"]:
        text += (
            f"\n\n**The machine was busy** (load up to {max(loads):.1f} when a measurement began): "
            "these numbers are preliminary."
        )
    return text


# ---- targets


def targets(run: dict[str, Any]) -> list[Target]:
    """Say for each target whether it is met."""
    settings, made = run["settings"], []
    tokens = measured(run, "tokens")
    corpora = [c for c in run["corpora"] if any(key[0] == c for key in tokens)]
    theirs = f"{settings['cores']} workers"

    def rates(corpus: str, group: str, name: str) -> list[float]:
        systems = tokens.get((corpus, group), {}).get("systems", {})
        return systems.get(name, {}).get("tokens_per_second", [])

    for corpus in corpora or run["corpora"][:1]:
        for model, name in (("LDA", "LDA parallel"), ("HDP", "HDP")):
            for chains in sorted({1, settings["chains"]}):
                count = f"{chains} chain{'s' if chains > 1 else ''}"
                ours = rates(corpus, name, f"parallel, {count}")
                peer = rates(corpus, name, f"tomotopy {model}, {theirs}")
                ratio = [a / b for a, b in zip(ours, peer, strict=False)]
                made.append((
                    f"parallel {model}, {count}, {corpus}: at least 0.7 of tomotopy's {theirs}",
                    _span(ratio) if ratio else "-",
                    median(ratio) >= 0.7 if ratio else None,
                ))  # fmt: skip
        ours = rates(corpus, "LDA sequential", f"sequential, {settings['many_chains']} chains")
        made.append((
            f"sequential LDA, {settings['many_chains']} chains, {corpus}: at least 8 M tokens/s",
            _span([x / 1e6 for x in ours], ".1f") + " M" if ours else "-",
            median(ours) >= 8e6 if ours else None,
        ))  # fmt: skip
    for key, value in measured(run, "memory").items():
        if key[1].startswith("fit"):
            peak = _peak(value) / 1e9
            made.append((
                f"peak memory of {key[1]} of HDPLDA, {key[0]}, {value['max_topics']} slots: "
                f"below {MEMORY:g} GB",
                f"{peak:.2f} GB",
                peak < MEMORY,
            ))  # fmt: skip
    return made


def _targets(run: dict[str, Any]) -> str:
    rows = [
        (what, found, "not measured" if met is None else "yes" if met else "**no**")
        for what, found, met in targets(run)
    ]
    return "## Targets\n\n" + _table(("target", "found", "met"), rows)


# ---- parts


def _tokens(run: dict[str, Any]) -> str:
    sections = []
    for (corpus, group), value in measured(run, "tokens").items():
        systems = value["systems"]
        peers = [name for name in systems if name.startswith("tomotopy")]
        peer = max(peers, default=None)  # the one with most workers
        rows = []
        for name, found in systems.items():
            rate = found["tokens_per_second"]
            ratio = "-"
            if peer is not None:
                against = systems[peer]["tokens_per_second"]
                ratio = _span([a / b for a, b in zip(rate, against, strict=True)])
            low, high = found["topics"]
            rows.append((
                name,
                _span([x / 1e6 for x in rate], ".2f"),
                ratio,
                f"{low}" if low == high else f"{low} to {high}",
                str(found["slots"]),
                f"{found['compile_seconds']:.1f}",
            ))  # fmt: skip
        sizes = value["corpus"]
        head = (
            "",
            "M tokens/s, all chains",
            f"ratio to {peer or '-'}",
            "topics",
            "slots",
            "compiled, s",
        )
        sections.append(
            f"### {group}, {corpus} ({sizes['documents']} documents, {sizes['tokens']} tokens, "
            f"{sizes['vocabulary']} words)\n\n{_table(head, rows)}"
        )
    if not sections:
        return ""
    note = (
        "Whole sweeps with all that is in them, in turns; ratios turn by turn. tomotopy's runs "
        "with several workers use counts that are out of date, and its HDP samples another law: "
        "fast, but not the same thing."
    )
    return "## Tokens per second\n\n" + note + "\n\n" + "\n\n".join(sections)


def _ess(run: dict[str, Any]) -> str:
    sections = []
    for (corpus, group), value in measured(run, "ess").items():
        systems = value["systems"]
        peer = next((name for name in systems if name.startswith("tomotopy")), None)
        base = None if peer is None else systems[peer]["lp"]["ess_per_second"]
        rows = []
        for name, found in systems.items():
            lp, topics = found["lp"], found["topics"]
            varies = topics["ess"] is not None
            speed = lp["ess_per_second"]
            rows.append((
                name,
                str(found["sweeps"]),
                _number(lp["ess"]),
                _number(speed),
                _number(speed / base if speed and base else None, ".2f"),
                _hat(lp["rhat"]),
                _number(topics["ess_per_second"]) if varies else "-",
                _hat(topics["rhat"]) if varies else "-",
            ))  # fmt: skip
        head = (
            "", "sweeps", "ESS of lp", "per s", f"ratio to {peer or '-'}", "R-hat",
            "ESS of topics in use, per s", "R-hat",
        )  # fmt: skip
        sections.append(f"### {group}, {corpus}\n\n{_table(head, rows)}")
    if not sections:
        return ""
    note = (
        f"Bulk ESS of all chains together, after the first "
        f"{100 * run['settings']['ess_warmup_share']:.0f}% of the time. tomotopy returns one chain "
        "(two of its chains with one worker each would do twice as much on two cores); its HDP and "
        f"its several workers draw from something else. A star: R-hat above {UNCONVERGED}, so the "
        "ESS is not to be trusted."
    )
    return "## Effective draws per second\n\n" + note + "\n\n" + "\n\n".join(sections)


def _hat(value: float | None) -> str:
    text = _number(value, ".3f")
    return f"{text}*" if value is not None and value > UNCONVERGED else text


def reached(curve: dict[str, Any], threshold: float) -> float | None:
    """Return the time at which a curve of perplexity first is at the threshold or below.

    Between two states the perplexity is taken as linear in the logarithm of time.
    """
    before = None
    for seconds, value in zip(curve["seconds"], curve["perplexity"], strict=True):
        if value <= threshold:
            if before is None:
                return seconds
            share = (before[1] - threshold) / (before[1] - value)
            return math.exp(math.log(before[0]) + share * (math.log(seconds) - math.log(before[0])))
        before = seconds, value
    return None


def _completion(run: dict[str, Any], picture: str | None) -> str:
    found = measured(run, "completion")
    sections = []
    for corpus in dict.fromkeys(key[0] for key in found):
        threshold = completion_threshold(run, corpus)
        if threshold is None:
            continue
        times: dict[str, list[float | None]] = {}
        finals: dict[str, list[dict[str, Any]]] = {}
        for key, curve in found.items():
            if key[0] == corpus:
                times.setdefault(key[2], []).append(reached(curve, threshold))
                finals.setdefault(key[2], []).append(curve)
        peer = max((n for n in times if n.startswith("tomotopy LDA")), default=None)
        base = _middle(times[peer]) if peer else None
        rows = []
        for name, curves in finals.items():
            time = _middle(times[name])
            rows.append((
                name if name.startswith(("tomotopy", "gensim")) else f"ours, {name}",
                _span([c["perplexity"][-1] for c in curves], ".1f"),
                str(round(median(c["topics"][-1] for c in curves))),
                f"{median(c['seconds'][-1] for c in curves):.0f}",
                "never" if time is None else f"{time:.1f}",
                _number(base / time if base and time else None, ".2f"),
                f"{median(c['compile_seconds'] for c in curves):.1f}",
            ))  # fmt: skip
        error = median(c[0]["error_docs"][-1] for c in finals.values())
        head = (
            "", "final perplexity", "topics", "seconds", f"seconds to {threshold:.1f}",
            f"speed relative to {peer or '-'}", "compiled, s",
        )  # fmt: skip
        sections.append(
            f"### {corpus}\n\nArrived means a perplexity of {threshold:.1f}, "
            f"{100 * run['settings']['within']:.2g}% above the best final one of an LDA. Standard "
            f"error of a score over documents: {100 * error:.1f}% of the perplexity, the same "
            f"documents for all.\n\n{_table(head, rows)}"
        )
    if not sections:
        return ""
    note = (
        "Time to complete documents well: half of each test document is given, the other half "
        "scored, with one fold-in for all and the topics and weights that each system had at the "
        "time. One state at a time, no averages over draws."
    )
    shown = [f"![Held-out perplexity against time]({picture})"] if picture else []
    return "## Held-out score against time\n\n" + "\n\n".join([note, *sections, *shown])


def _middle(values: Sequence[float | None]) -> float | None:
    """Return the median where None is later than everything."""
    middle = median(math.inf if x is None else x for x in values)
    return None if math.isinf(middle) else middle


def _starts(run: dict[str, Any], picture: str | None) -> str:
    found = measured(run, "starts")
    sections = []
    for corpus in dict.fromkeys(key[0] for key in found):
        runs = {key[1]: value for key, value in found.items() if key[0] == corpus}
        rows = []
        stops = sorted(set.intersection(*(set(value["sweeps"]) for value in runs.values())))
        for stop in [s for s in stops if s >= stops[-1] / 20] or stops:
            row = [str(stop)]
            middles = []
            for value in runs.values():
                i = value["sweeps"].index(stop)
                topics = [chain[stop - 1] for chain in value["topics"]]
                row.append(_span(topics, ".0f"))
                row.append(_span(value["large_topics"][i], ".0f"))
                row.append(_span(value["perplexity"][i], ".1f"))
                middles.append(sum(value["perplexity"][i]) / len(topics))
            gap = 100 * (max(middles) / min(middles) - 1)
            rows.append((*row, f"{gap:.2f}%"))
        head = ["sweeps"]
        for name in runs:
            head += [f"topics, {name}", f"large, {name}", f"perplexity, {name}"]
        text = f"### {corpus}\n\n{_table([*head, 'gap'], rows)}"
        seconds = ", ".join(f"{v['seconds'][-1]:.0f} s {name}" for name, v in runs.items())
        sections.append(f"{text}\n\nThe last row took {seconds}.")
    if not sections:
        return ""
    note = (
        "The HDP topic model with its default schedule, chains started with all tokens at random "
        "in few and in many topics. Over the chains: median, lowest to highest. Large topics hold "
        "more than 0.1% of the tokens; the gap is that of the mean perplexities."
    )
    shown = [f"![Topics and held-out perplexity by sweep]({picture})"] if picture else []
    return "## From different starts\n\n" + "\n\n".join([note, *sections, *shown])


def _peak(value: dict[str, Any]) -> float:
    return value["high_water"] or value["ru_maxrss"]


def _memory(run: dict[str, Any]) -> str:
    found = measured(run, "memory")
    if not found:
        return ""
    rows = [
        (
            f"{name}, {corpus}",
            f"{_peak(value) / 1e9:.2f}",
            f"{value['ru_maxrss'] / 1e9:.2f}",
            "{} to {}".format(*value["topics"]) if "topics" in value else "-",
            "; ".join(value.get("capacity", [])) or "-",
        )
        for (corpus, name), value in found.items()
    ]
    head = ("", "peak, GB", "ru_maxrss, GB", "topics", "capacity")
    return "## Peak memory of a process\n\n" + _table(head, rows)
