"""What a run says about each claim of the study of differential topic models.

Numbers are nats per token of the test documents, or accuracies; every rule asks for two standard
errors.
"""

import math
from typing import Any

import numpy as np
import scipy.stats
from differential_gaps import (
    TOKENS,
    Which,
    accuracies,
    accuracy_gap,
    better,
    gap_of,
    start_gaps,
)
from differential_settings import CCLDA, LDA, POOLED, PRINTED, PYP, SAMPLERS, SETS, TI, TII
from study.cells import of_part
from study.claims import Finding, about_posterior, about_starts, decide, not_run, plus, weakest
from study.report import span
from study.scores import mean_of

__all__ = [
    "ALIGNED", "CLEAR", "EQUAL", "RANK", "SPEED", "TABLE_MEGABYTES", "accuracy", "against_all",
    "alignment", "converged", "likeness_ranks", "never", "of_digits", "of_samplers", "pair",
    "planted_ranks", "speed", "steadier", "tables", "transformed", "with_discount",
]  # fmt: skip

EQUAL = 0.01  # nats per token: samplers of one posterior
CLEAR = 2.0  # times the median distance of the versions of other topics
ALIGNED = 0.05  # share of topics
SPEED, TABLE_MEGABYTES = 0.3, 200.0  # of LDA's tokens per second; at two million tokens
RANK = 0.9  # rank correlation
SHAPES = 0.5  # share of classes that the versions of a topic name if it carries their shape
Run = dict[str, Any]


def _perplexity(data: str, method: str) -> Which:
    return Which(SETS[data], data, method)


def pair(run: Run, data: str, one: str, other: str, how: str) -> Finding:
    """Decide whether one method predicts a set of documents better than another one."""
    both = _perplexity(data, one), _perplexity(data, other)
    tried = [which for which in both if which.method not in (PYP, LDA)]
    return better(run, *both, how, starts=tried)


def against_all(run: Run, data: str, one: str, others: tuple[str, ...], how: str) -> Finding:
    """Decide for several comparisons at once: it holds if all of them hold."""
    found = {other: pair(run, data, one, other, how) for other in others}
    measured = {name: x for name, x in found.items() if x.verdict != "not run"}
    if not measured:
        return next(iter(found.values()))
    text = "; ".join(f"{name}: {x.found}" for name, x in measured.items())
    order = ("does not hold", "not converged", "not decided")
    worst = next((v for v in order if any(x.verdict == v for x in measured.values())), "holds")
    why = " ".join(dict.fromkeys(x.why for x in measured.values() if x.verdict == worst and x.why))
    if gone := sorted(set(found) - set(measured)):
        worst = "not decided" if worst == "holds" else worst
        why = f"Not measured: {', '.join(gone)}. {why}".strip()
    return Finding(text, worst, why)


def with_discount(run: Run, data: str, method: str, how: str) -> Finding:
    """Compare the discount of the paper with none."""
    one, other = (Which("discount", data, method, a) for a in (0.7, 0.0))
    return _both_discounts(run, one, other, how)


def _both_discounts(run: Run, one: Which, other: Which, how: str) -> Finding:
    finding = better(run, one, other, how)
    gap = gap_of(run, one, other, how)
    if gap is None:
        return not_run(f"no fits of {one.method} with both discounts to the {one.data}")
    found = {f"{w.method}, a = {w.discount:g}": start_gaps(run, w, how) for w in (one, other)}
    return about_starts(finding, gap.value, found)


def transformed(run: Run, data: str, how: str) -> Finding:
    """Compare TI and TII at every discount that both have."""
    discounts = {r["discount"] for r in of_part(run, "discount", data=data, method=TI)}
    if not discounts:
        return not_run("no fits of TI")
    found = {
        a: better(run, Which("discount", data, TI, a), Which("discount", data, TII, a), how,
                  starts=[_perplexity(data, TI), _perplexity(data, TII)])
        for a in sorted(discounts)
    }  # fmt: skip
    text = "; ".join(f"a = {a:g}: {x.found}" for a, x in found.items())
    order = ("does not hold", "not converged", "not decided", "not run")
    worst = next((v for v in order if any(x.verdict == v for x in found.values())), "holds")
    why = " ".join(dict.fromkeys(x.why for x in found.values() if x.why))
    return Finding(text, worst, why)


def _sampler_values(run: Run, sampler: str, mark: int) -> dict[tuple[float, int, str], float]:
    """Return nats per token after some sweeps (-1: the last), by discount, split and start."""
    return {
        (r["discount"], r["split_seed"], r.get("start", "")): float(
            np.mean(r["chain_log_prob"][mark])
        )
        for r in of_part(run, "samplers", method=SAMPLERS[sampler])
    }  # fmt: skip


def _sampler_gap(run: Run, other: str, mark: int) -> list[float]:
    mine, theirs = (_sampler_values(run, name, mark) for name in ("ti", other))
    at = sorted(key for key in set(mine) & set(theirs) if not key[2])
    return [mine[key] - theirs[key] for key in at]


def of_samplers(run: Run, other: str, *, equal: bool = False) -> Finding:
    """Compare table indicators with another sampler of the same posterior, after all sweeps."""
    found = _sampler_gap(run, other, -1)
    if not found:
        return not_run(f"no chains of both table indicators and {SAMPLERS[other]}")
    gap = mean_of(found)
    text = f"{plus(gap, 4)} nats per token, {len(found)} pairs of runs"
    records = of_part(run, "samplers", method=SAMPLERS["ti"])
    marks = records[0]["sweeps"]
    early = mean_of(_sampler_gap(run, other, len(marks) // 2))
    text += f"; after {marks[len(marks) // 2]} sweeps {plus(early, 4)}, after {marks[-1]} the first"
    margin = EQUAL - abs(gap.value) if equal else gap.value
    verdict = decide(margin, gap.error)
    why = "The posterior is the same, so what differs is how fast chains mix."
    if verdict == "not decided":
        why += " Open: more splits."
    starts = {}
    for name in ("ti", other):
        every = _sampler_values(run, name, -1)
        starts[SAMPLERS[name]] = [
            x - every[(*key[:2], "")] for key, x in every.items()
            if key[2] and (*key[:2], "") in every
        ]  # fmt: skip
    return about_starts(Finding(text, verdict, why), margin, starts)


def likeness_ranks(run: Run, data: str) -> Finding:
    """Ask whether b_k is larger where the versions of a topic are more alike."""
    found, records = [], []
    for record in _perplexity(data, TII).records(run).values():
        table = record.get("contrasts", {})
        pairs = [(b, d) for b, d in zip(table.get("likeness") or (), table.get("distance", ()),
                                        strict=False) if d is not None]  # fmt: skip
        if len(pairs) > 2:
            found.append(-float(scipy.stats.spearmanr(*zip(*pairs, strict=True))[0]))
            records.append(record)
    if not found:
        return not_run("no likeness of versions was kept")
    mean = mean_of(found)
    finding = Finding(
        f"rank correlation of b and closeness {plus(mean, 2)}", decide(mean.value, mean.error)
    )
    apart = start_gaps(run, _perplexity(data, TII), TOKENS)
    return about_starts(finding, mean.value, {TII: apart})


def planted_ranks(run: Run) -> Finding:
    """Ask whether posterior concentrations rank planted topics, in all chains."""
    records = of_part(run, "planted")
    if not records:
        return not_run("nothing was planted")
    ranks = [chain["rank_correlation"] for r in records for chain in r["chains"]]
    found = [chain["tokens_in_their_topic"] for r in records for chain in r["chains"]]
    margins = mean_of(ranks)
    text = f"rank correlation {span(ranks)} in {len(ranks)} chains; {span(found)} of the tokens "
    verdict = decide(margins.value - RANK, margins.error)
    if margins.error == 0:
        verdict = "holds" if margins.value > RANK else "does not hold"
    starts = len({r.get("start", "") for r in records})
    finding = Finding(f"{text}in their topic", verdict, f"It holds if the mean is above {RANK}.")
    return about_posterior(finding, _hats(records), starts)


def alignment(run: Run, data: str) -> Finding:
    """Compare the share of topics whose versions find one another in TII and in ccLDA."""
    both = []
    for method in (TII, CCLDA):
        records = _perplexity(data, method).records(run)
        both.append({at: r["contrasts"]["matched"] for at, r in records.items()
                     if "contrasts" in r})  # fmt: skip
    at = sorted(set(both[0]) & set(both[1]))
    if not at:
        return not_run("the versions of topics were not kept for both TII and ccLDA")
    gap = mean_of([both[0][key] - both[1][key] for key in at])
    mine, theirs = (float(np.mean([of[key] for key in at])) for of in both)
    text = f"{mine:.2f} of the topics, ccLDA {theirs:.2f}; {plus(gap, 2)}"
    finding = Finding(text, decide(gap.value + ALIGNED, gap.error), "One measure of our own: the "
                      "paper's is in an appendix that we do not have.")  # fmt: skip
    starts = {m: start_gaps(run, _perplexity(data, m), TOKENS) for m in (TII, CCLDA)}
    return about_starts(finding, ALIGNED, starts)


def of_digits(run: Run, ask: str) -> Finding:
    """Ask about the topics of the digits, chain by chain."""
    records = of_part(run, "digits", method=TII)
    if not records:
        return not_run("no fit of TII to the digits")
    chains = [chain for r in records for chain in r["chains"]]
    if ask == "one":
        counts = [sum(x > SHAPES for x in chain["names_class"]) for chain in chains]
        good = [count == 1 for count in counts]
        text = f"topics whose versions name most classes: {span([float(x) for x in counts], '.0f')}"
    else:
        ratios = [chain["distance"][0] / np.median(chain["distance"][1:]) for chain in chains]
        good = [ratio > CLEAR for ratio in ratios]
        text = f"largest distance to the median of the others: {span(ratios)}"
    share = sum(good)
    verdict = "holds" if share == len(good) else "does not hold" if not share else "not decided"
    finding = Finding(f"{text}, in {len(chains)} chains", verdict,
                      "It holds if it is so in all chains, and not if in none.")  # fmt: skip
    return about_posterior(finding, _hats(records), len({r.get("start", "") for r in records}))


def _hats(records: list[Run]) -> list[Run]:
    """Return records in the form that `about_posterior` reads."""
    return [{"convergence": [{"rhat": r.get("worst_rhat")}]} for r in records]


def accuracy(
    run: Run, data: str, one: tuple[str, str], other: tuple[str, str], sign: int = 1
) -> Finding:
    """Decide whether a method is more accurate (sign 1) or less (-1) than another one."""
    found = accuracy_gap(run, data, one, other)
    if found is None:
        return not_run(f"no accuracy of both {one[0]} and {other[0]} on the {data}")
    gap, mine, theirs, splits = found
    text = f"{mine:.3f}, {theirs:.3f}; {plus(gap)}, {splits} splits"
    verdict = decide(sign * gap.value, gap.error)
    why = "Open: more splits." if verdict == "not decided" else ""
    starts = {}
    for method, score in (one, other):
        if method in (TI, TII, CCLDA):
            usual = accuracies(run, data, method, score)
            starts[method] = [
                x - usual[n]
                for r in of_part(run, "classification", data=data, method=method)
                if "start" in r and score in r["accuracy"]
                for n, x in ((r["split_seed"], r["accuracy"][score]),) if n in usual
            ]  # fmt: skip
    return about_starts(Finding(text, verdict, why), gap.value, starts)


def steadier(run: Run, data: str) -> Finding:
    """Compare the spread of accuracies over splits."""
    both = [list(accuracies(run, data, m, PRINTED).values()) for m in (TI, TII)]
    if min(map(len, both)) < 2:
        return not_run("fewer than two splits of TI and TII")
    mine, theirs = (float(np.std(x, ddof=1)) for x in both)
    ratio = math.log(mine / theirs) if mine and theirs else 0.0
    error = math.sqrt(sum(1 / (2 * (len(x) - 1)) for x in both))  # of the log of an sd
    text = f"sd over splits {mine:.3f}, TII {theirs:.3f}"
    verdict = decide(-ratio, error)
    why = "The log ratio, with the error that normal scores would give. Splits, not iterations."
    return Finding(text, verdict, why)


def speed(run: Run, one: str, schedule: str) -> Finding:
    """Compare tokens per second with LDA turn by turn, with as many chains."""
    said, verdicts = [], []
    for record in of_part(run, "speed", method="rates"):
        for name, found in record["systems"].items():
            base = record["systems"].get(name.replace(one, POOLED, 1))
            if not name.startswith(f"{one}, {schedule}") or base is None:
                continue
            ratios = np.divide(found["tokens_per_second"], base["tokens_per_second"])
            logs = mean_of(np.log(ratios).tolist())
            verdicts.append(decide(logs.value - math.log(SPEED), logs.error))
            said.append(f"{name.rsplit(', ', 1)[-1]}: {span(ratios.tolist())}")
    if not said:
        return not_run(f"no speeds of both {one} and LDA")
    verdict = weakest(verdicts)
    return Finding("; ".join(said), verdict, "Ratios turn by turn: median, lowest and highest.")


def tables(run: Run) -> Finding:
    """Ask how large the table of Stirling ratios is."""
    records = [r for name in (TI, TII) for r in of_part(run, "speed", method=f"table, {name}")]
    if not records:
        return not_run("no table of a differential model")
    text = "; ".join(
        f"{r['method'].removeprefix('table, ')}: {r['megabytes']:.1f} MB a chain, {r['rows']} by "
        f"{r['columns']}, {r['tokens'] / 1e6:.2f} M tokens" for r in records
    )  # fmt: skip
    if min(r["tokens"] for r in records) < 2e6:
        return Finding(text, "not decided", "Open: a corpus of two million tokens.")
    small = max(r["megabytes"] for r in records) < TABLE_MEGABYTES
    return Finding(text, "holds" if small else "does not hold", "The size of the room after a few "
                   "sweeps; it grows where a word has more tables.")  # fmt: skip


def converged(run: Run) -> Finding:
    """Say how many fits have a low R-hat of scalars that have no labels."""
    hats = [r["worst_rhat"] for r in run["cells"].values()
            if r.get("worst_rhat") is not None and "start" not in r]  # fmt: skip
    if not hats:
        return not_run("no R-hat was kept")
    low = sum(hat < 1.05 for hat in hats)
    text = f"{low} of {len(hats)} fits; R-hat {span(hats)}"
    why = "R-hat of log density and concentrations; scores may agree before these."
    return Finding(text, "holds" if low == len(hats) else "does not hold", why)


def never(why: str, run: Run) -> Finding:
    """Say why nothing is measured for a claim."""
    return not_run(why)
