"""Claims of the study of differential topic models; none is left out.

The blogs stand for the paper's sets "Blog" and "BD", the abstracts for "MLJ". Numbers are nats per
token of the test documents, or accuracies; every rule asks for two standard errors.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from study.cells import of_part
from study.claims import (
    Claim,
    Finding,
    decide,
    decided,
    judge,
    not_run,
    plus,
    speed_ratio,
    weakest,
    yes_or_no,
)
from study.frames import DataFrame, frame
from study.gaps import chains_between, gap_between, usual
from study.report import span
from study.scores import mean_of, rank_correlation, unpack

from differential.settings import (
    CCLDA,
    CORRECTED,
    HALF,
    HYBRIDS,
    LDA,
    MINKA,
    PLUG_IN,
    POOLED,
    PRINTED,
    PYP,
    PYP_POOLED,
    SAMPLERS,
    SETS,
    TI,
    TII,
    WORDNET,
)

__all__ = ["DICTIONARY", "TOKENS", "Which", "accuracies", "claims_by", "judged", "other_claims"]

TOKENS, DICTIONARY = "tokens", "dictionary"
EQUAL = 0.01  # nats per token: samplers of one posterior
CLEAR = 2.0  # times the median distance of the versions of other topics
ALIGNED = 0.05  # share of topics
SPEED, TABLE_MEGABYTES = 0.3, 200.0  # of LDA's tokens per second; at two million tokens
RANK = 0.9  # rank correlation
SHAPES = 0.5  # share of classes that the versions of a topic name if it carries their shape
EARLY, LATE = (40, 60), (150, 200)  # sweeps
STEADY = 0.02  # accuracies that differ by less have converged

Run = dict[str, Any]


# ---- tables of what was measured


class Which(NamedTuple):
    """Which fits are meant; `discount` None: those whose cell has none in its name."""

    part: str
    data: str
    method: str
    discount: float | None = None

    def records(self, run: Run) -> list[Run]:
        """Return the records, of all starts."""
        wanted = self._asdict()
        return of_part(run, wanted.pop("part"), **wanted)

    def scores(self, run: Run, how: str) -> DataFrame:
        """Return nats per token of test documents, divided by tokens or by word types."""
        tokens = {
            r["split_seed"]: r["scores"][TOKENS]["doc_tokens"]
            for r in of_part(run, self.part, data=self.data, method="unigram")
            if "doc_tokens" in r["scores"][TOKENS]
        }  # fmt: skip
        rows = [
            {
                "topics": 0, **r, "value": r["scores"][how]["log_prob"],
                "docs": r["scores"][how].get("doc_log_prob"), "tokens": tokens.get(r["split_seed"]),
                "draws": r["scores"][how].get("draws"),
            }
            for r in self.records(run)
        ]  # fmt: skip
        return frame(rows, "split_seed", "topics", "start", "value", "docs", "tokens", "draws")


def _perplexity(data: str, method: str) -> Which:
    return Which(SETS[data], data, method)


def accuracies(run: Run, data: str, method: str, score: str) -> DataFrame:
    """Return the share of documents that a method has right, and which; of all starts.

    `draws` has that of each state by itself, where a method has states and the score is corrected.
    """
    rows = []
    for r in of_part(run, "classification", data=data, method=method):
        if score in r["accuracy"]:
            right = unpack(r["correct"][score], r["test_documents"]).astype(float)
            about = {"value": right.mean(), "docs": right, "tokens": np.ones(len(right))}
            about["draws"] = r.get("draws") if score == CORRECTED else None
            if "worst_rhat" not in r:  # a method without chains
                about["draws"] = [[right.mean()]]
            rows.append({**r, **about})
    return frame(rows, "split_seed", "start", "value", "docs", "tokens", "draws")


# ---- perplexity


def better(run: Run, one: Which, other: Which, how: str) -> Finding:
    """Decide whether a method predicts better than another one."""
    both = [which.scores(run, how) for which in (one, other)]
    gap = gap_between(*both, places=["topics"])
    if gap is None:
        return not_run(f"no fits of both {one.method} and {other.method} to the {one.data}")
    by_topics = ", ".join(f"K={k}: {x.value:+.3f}" for k, x in gap.by_place.items())
    text = f"{plus(gap)} nats per token, {gap.splits} splits ({by_topics})"
    chains = [chains_between(*both, places=["topics"])]
    return decided(text, gap.less(0.0), gap.splits, chains=chains)


def _all_of(found: Mapping[str, Finding]) -> Finding:
    """Decide for several comparisons at once: it holds if all of them hold."""
    measured = {name: x for name, x in found.items() if x.verdict != "not run"}
    if not measured:
        return next(iter(found.values()))
    text = "; ".join(f"{name}: {x.found}" for name, x in measured.items())
    worst = weakest(x.verdict for x in measured.values())
    deciding = [x for x in measured.values() if x.verdict == worst]
    why = " ".join(dict.fromkeys(x.why for x in deciding if x.why))
    if gone := sorted(set(found) - set(measured)):
        worst = "not decided" if worst == "holds" else worst
        why = f"Not measured: {', '.join(gone)}. {why}".strip()
    chains = [quantity for x in deciding for quantity in x.chains or ()]
    return Finding(text, worst, why, chains, min(abs(x.margin) for x in deciding))


def against_all(run: Run, data: str, one: str, others: Sequence[str], how: str) -> Finding:
    """Decide whether a method predicts a set of documents better than several other ones."""
    mine = _perplexity(data, one)
    return _all_of({other: better(run, mine, _perplexity(data, other), how) for other in others})


def pair(run: Run, data: str, one: str, other: str, how: str) -> Finding:
    """Decide whether one method predicts a set of documents better than another one."""
    return better(run, _perplexity(data, one), _perplexity(data, other), how)


def hybrid(run: Run, other: str, how: str) -> Finding:
    """Compare exact chains of TII with an approximation."""
    both = [Which("hybrids", "abstracts", method) for method in (TII, other)]
    return better(run, *both, how=how)


def with_discount(run: Run, data: str, method: str, how: str) -> Finding:
    """Compare the discount of the paper with none."""
    both = [Which("discount", data, method, a) for a in (0.7, 0.0)]
    return better(run, *both, how=how)


def transformed(run: Run, data: str, how: str) -> Finding:
    """Compare TI and TII at every discount that both have."""
    discounts = {r["discount"] for r in of_part(run, "discount", data=data, method=TI)}
    both = {a: [Which("discount", data, name, a) for name in (TI, TII)] for a in sorted(discounts)}
    found = {f"a = {a:g}": better(run, *which, how=how) for a, which in both.items()}
    return _all_of(found) if found else not_run("no fits of TI")


# ---- samplers and topics


def of_samplers(run: Run, other: str, *, equal: bool = False) -> Finding:
    """Compare table indicators with another sampler of the same posterior, after all sweeps.

    `equal` asks whether they have one posterior; else the question is how fast chains mix.
    """

    def scores(sampler: str, mark: int) -> DataFrame:
        records = of_part(run, "samplers", method=SAMPLERS[sampler])
        rows = [
            {
                **r, "value": float(np.mean(r["chain_log_prob"][mark])),
                "draws": np.transpose(r["chain_log_prob"][len(r["sweeps"]) // 2 :]),
            }
            for r in records
        ]  # fmt: skip
        return frame(rows, "split_seed", "discount", "start", "value", "draws")

    both = [scores(name, -1) for name in ("ti", other)]
    gap = gap_between(*both, places=["discount"])
    if gap is None:
        return not_run(f"no chains of both table indicators and {SAMPLERS[other]}")
    marks = of_part(run, "samplers", method=SAMPLERS["ti"])[0]["sweeps"]
    half = len(marks) // 2
    early = gap_between(scores("ti", half), scores(other, half), ["discount"])
    text = f"{plus(gap, 4)} nats per token, {gap.splits} pairs of runs; after {marks[half]} sweeps "
    text += f"{plus(early, 4)}, after {marks[-1]} the first"
    margin = EQUAL - abs(gap.value) if equal else gap.value
    verdict = decide(margin, gap.error)
    why = "The posterior is the same, so what differs is how fast chains mix."
    why += " Open: more splits." if verdict == "not decided" else ""
    chains = [chains_between(*both, places=["discount"])] if equal else None
    return Finding(text, verdict, why, chains, margin)


def likeness_ranks(run: Run, data: str) -> Finding:
    """Ask whether b_k is larger where the versions of a topic are more alike."""
    found = []
    for record in _perplexity(data, TII).records(run):
        table = record.get("contrasts", {})
        likeness, distance = table.get("likeness") or (), table.get("distance", ())
        pairs = [(b, d) for b, d in zip(likeness, distance, strict=False) if d is not None]
        if len(pairs) > 2 and "start" not in record:
            found.append(-rank_correlation(*np.transpose(pairs)))
    if not found:
        return not_run("no likeness of versions was kept")
    mean = mean_of(found)
    return Finding(f"rank correlation of b and closeness {plus(mean, 2)}", decide(*mean))


def planted_ranks(run: Run) -> Finding:
    """Ask whether posterior concentrations rank planted topics, in all chains."""
    records = of_part(run, "planted")
    if not records:
        return not_run("nothing was planted")
    ranks, found = (
        [chain[name] for r in records for chain in r["chains"]]
        for name in ("rank_correlation", "tokens_in_their_topic")
    )
    mean = mean_of(ranks)
    chains = {
        start: np.mean([[chain["draws"] for chain in r["chains"]] for r in of], axis=0)
        for start, of in _by_start([r for r in records if "draws" in r["chains"][0]]).items()
    }
    text = f"rank correlation {span(ranks)} in {len(ranks)} chains; {span(found)} of the tokens "
    verdict = decide(mean.value - RANK, mean.error)
    if mean.error == 0:
        verdict = yes_or_no(mean.value > RANK)
    why = f"It holds if the mean is above {RANK}."
    return Finding(f"{text}in their topic", verdict, why, [chains], mean.value - RANK)


def _by_start(records: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for record in records:
        found.setdefault(record.get("start", ""), []).append(record)
    return found


def alignment(run: Run, data: str) -> Finding:
    """Compare the share of topics whose versions find one another in TII and in ccLDA."""
    both = [
        frame(
            ({**r, "value": r["contrasts"]["matched"]}
             for r in _perplexity(data, method).records(run) if "contrasts" in r),
            "split_seed", "topics", "start", "value",
        )
        for method in (TII, CCLDA)
    ]  # fmt: skip
    gap = gap_between(*both, places=["topics"])
    if gap is None:
        return not_run("the versions of topics were not kept for both TII and ccLDA")
    mine, theirs = (usual(of)["value"].mean() for of in both)
    text = f"{mine:.2f} of the topics, ccLDA {theirs:.2f}; {plus(gap, 2)}"
    return Finding(text, decide(gap.value + ALIGNED, gap.error), "One measure of our own: the "
                   "paper's is in an appendix that we do not have.")  # fmt: skip


def of_digits(run: Run, ask: str) -> Finding:
    """Ask about the topics of the digits, chain by chain."""
    records = of_part(run, "digits", method=TII)
    if not records:
        return not_run("no fit of TII to the digits")
    chains = [chain for r in records for chain in r["chains"]]
    if ask == "one":
        counts = [float(np.sum(np.array(chain["names_class"]) > SHAPES)) for chain in chains]
        good = sum(count == 1 for count in counts)
        text = f"topics whose versions name most classes: {span(counts, '.0f')}"
    else:
        ratios = [chain["distance"][0] / np.median(chain["distance"][1:]) for chain in chains]
        good = sum(ratio > CLEAR for ratio in ratios)
        text = f"largest distance to the median of the others: {span(ratios)}"
    verdict = yes_or_no(good > 0) if good in (0, len(chains)) else "not decided"
    return Finding(f"{text}, in {len(chains)} chains", verdict,
                   "It holds if it is so in all chains, and not if in none.")  # fmt: skip


# ---- accuracies, speed


def accuracy(
    run: Run, data: str, one: tuple[str, str], other: tuple[str, str], sign: int = 1
) -> Finding:
    """Decide whether a method, by a score, is more accurate (sign 1) or less than another one."""
    both = [accuracies(run, data, *which) for which in (one, other)]
    gap = gap_between(*both)
    if gap is None:
        return not_run(f"no accuracy of both {one[0]} and {other[0]} on the {data}")
    mine, theirs = (usual(of)["value"].mean() for of in both)
    text = f"{mine:.3f}, {theirs:.3f}; {plus(gap)}, {gap.splits} splits"
    verdict = decide(sign * gap.value, gap.error)
    why = "Open: more splits." if verdict == "not decided" else ""
    return Finding(text, verdict, why, [chains_between(*both)], gap.value)


def steady(run: Run, data: str, method: str) -> Finding:
    """Ask whether the accuracy of single states changes after fifty sweeps, by all chains."""
    records = of_part(run, "sweeps", data=data, method=method)
    if not records:
        return not_run(f"no accuracy by sweeps of {method} on the {data}")

    def within(record: Run, sweeps: tuple[int, int]) -> np.ndarray:
        return np.array([sweeps[0] <= x <= sweeps[1] for x in record["sweeps"]])

    if not all(within(r, sweeps).any() for r in records for sweeps in (EARLY, LATE)):
        return not_run(f"fewer than {LATE[0]} sweeps")
    means = [
        [np.array(r["draws"])[:, within(r, sweeps)].mean(axis=1) for r in records]
        for sweeps in (EARLY, LATE)
    ]
    change = mean_of(np.concatenate(means[1]) - np.concatenate(means[0]))
    text = f"{np.mean(means[0]):.3f} at sweeps {EARLY[0]} to {EARLY[1]}, "
    text += f"{np.mean(means[1]):.3f} at {LATE[0]} to {LATE[1]}; {plus(change)} in chains"
    margin = STEADY - abs(change.value)
    late = {
        start: np.mean([np.array(r["draws"])[:, within(r, LATE)] for r in of], axis=0)
        for start, of in _by_start(records).items()
    }
    why = f"It holds if the change is below {STEADY} by two standard errors over chains."
    return Finding(text, decide(margin, change.error), why, [late], margin)


def steadier(run: Run, data: str) -> Finding:
    """Compare the spread of accuracies over splits."""
    both = [usual(accuracies(run, data, m, PRINTED))["value"] for m in (TI, TII)]
    if min(map(len, both)) < 2:
        return not_run("fewer than two splits of TI and TII")
    mine, theirs = (x.std() for x in both)
    ratio = math.log(mine / theirs) if mine and theirs else 0.0
    error = math.sqrt(sum(1 / (2 * (len(x) - 1)) for x in both))  # of the log of an sd
    text = f"sd over splits {mine:.3f}, TII {theirs:.3f}"
    why = "The log ratio, with the error that normal scores would give. Splits, not iterations."
    return Finding(text, decide(-ratio, error), why)


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
        return Finding(text, "not decided", "Open: a corpus of two million tokens.", chains=None)
    small = max(r["megabytes"] for r in records) < TABLE_MEGABYTES
    return Finding(text, yes_or_no(small), "The size of the room after a few sweeps; it grows "
                   "where a word has more tables.", chains=None)  # fmt: skip


# ---- the claims

PAPER = "Chen et al., TPAMI 2015"
NAMED = {"blogs": "Blogs", "abstracts": "Abstracts"}


def claims_by(how: str) -> tuple[Claim, ...]:
    """Return the claims about perplexity, decided by one way to divide test documents."""
    above = "difference > 0 by 2 standard errors"

    def one_pair(data, where, text, one, other):
        return Claim(PAPER, where, f"{NAMED[data]}: {text}", above,
                     lambda run: pair(run, data, one, other, how))  # fmt: skip

    def all_of(data, where, text, one, others):
        return Claim(PAPER, where, f"{NAMED[data]}: {text}", f"all of: {above}",
                     lambda run: against_all(run, data, one, others, how))  # fmt: skip

    return (
        all_of("blogs", "figure 6", "TI predicts better than TII, PYP, ccLDA and LDA", TI,
               (TII, PYP, CCLDA, LDA)),
        one_pair("abstracts", "figure 6", "TII predicts a little better than TI", TII, TI),
        one_pair("abstracts", "figure 6", "ccLDA predicts a little better than TI", CCLDA, TI),
        one_pair("blogs", "figure 6", "TII predicts better than ccLDA", TII, CCLDA),
        one_pair("abstracts", "figure 6", "TII predicts better than ccLDA", TII, CCLDA),
        all_of("abstracts", "figure 6", "ccLDA predicts better than PYP and LDA of each group",
               CCLDA, (PYP, LDA)),
        one_pair("blogs", "figure 6", "ccLDA performs poorly: PYP of each group is better (BD)",
                 PYP, CCLDA),
        one_pair("blogs", "figure 6", "ccLDA performs poorly: LDA of each group is better (BD)",
                 LDA, CCLDA),
        *(Claim(PAPER, "figure 7a", f"{NAMED[data]}: {name}: a discount of 0.7 predicts better "
                "than none (Pitman-Yor against Dirichlet)", above,
                partial(with_discount, data=data, method=name, how=how))
          for data, name in (("blogs", TII), ("abstracts", TII), ("abstracts", PYP_POOLED))),
        *(Claim(PAPER, "figure 7c", f"{NAMED[data]}: TI predicts better than TII at every discount",
                above, partial(transformed, data=data, how=how)) for data in SETS),
        one_pair("abstracts", "figure 6", "TI with WordNet predicts better than TI with words that "
                 "occur together", WORDNET, TI),
        *(Claim("own question", "-", f"{NAMED[data]}: half of the transform (its mean with none) "
                "predicts better than all of it", above,
                lambda run, data=data: pair(run, data, HALF, TI, how)) for data in SETS),
        *(Claim(PAPER, "section 6.2.7", f"Abstracts: TII predicts better than its {name} hybrid",
                above, partial(hybrid, other=method, how=how))
          for name, method in (("variational", HYBRIDS["variational"]), ("EM", HYBRIDS["em"]))),
        Claim("own question", "section 5.1", "Abstracts: TII predicts better with numbers for its "
              "concentrations than with Minka's updates of them", above,
              partial(hybrid, other=MINKA, how=how)),
        *(Claim("own question", "-", f"{NAMED[data]}: TII predicts better than one LDA of all "
                "groups", above,
                lambda run, data=data: pair(run, data, TII, POOLED, how))
          for data in SETS),
    )  # fmt: skip


TABLE_2 = {
    "blogs": {TI: 0.7354, TII: 0.7152, "linear SVM": 0.6959, "RBF SVM": 0.7040,
              "LDA + SVM": 0.7063},
    "abstracts": {TI: 0.8098, TII: 0.4240, "linear SVM": 0.7192, "RBF SVM": 0.7191,
                  "LDA + SVM": 0.6927},
}  # fmt: skip
"""Accuracies of the paper on its sets Blog and MLJ."""


def _table_2(data: str, one: str, other: str, score: str) -> Claim:
    """Return a claim of table 2, in the order of the paper's accuracies."""
    mine, theirs = (TABLE_2[data][name] for name in (one, other))
    scores = [score if name in (TI, TII) else CORRECTED for name in (one, other)]
    what = f", {score} score" if {one, other} & {TI, TII} else ""
    return Claim(
        PAPER if score == CORRECTED else "own question", "table 2",
        f"{NAMED[data]}: {one} is {'more' if mine > theirs else 'less'} accurate than {other}"
        f"{what}", f"{mine:.3f} against {theirs:.3f}",
        lambda run: accuracy(run, data, (one, scores[0]), (other, scores[1]),
                              1 if mine > theirs else -1),
    )  # fmt: skip


def other_claims() -> tuple[Claim, ...]:
    """Return the claims that no perplexity decides."""
    pairs = ((TI, TII), (TI, "linear SVM"), (TI, "RBF SVM"), (TI, "LDA + SVM"),
             (TII, "linear SVM"), ("LDA + SVM", "linear SVM"))  # fmt: skip
    two = "by 2 standard errors"
    return (
        *(Claim(PAPER, "figures 6, 7b", f"Table indicators predict better than {name}",
                f"> 0 {two}, after as many sweeps", partial(of_samplers, other=other))
          for other, name in SAMPLERS.items() if other != "ti"),
        *(Claim("own question", "-", f"Table indicators and {name} have one posterior",
                f"difference < {EQUAL} {two}", partial(of_samplers, other=other, equal=True))
          for other, name in SAMPLERS.items() if other != "ti"),
        Claim(PAPER, "table 1", "Made-up groups: b_k ranks topics by how alike their versions are",
              f"rank correlation above {RANK}", planted_ranks),
        *(Claim(PAPER, "table 1", f"{NAMED[data]}: topics of large b_k have versions that are "
                "alike", "rank correlation > 0", partial(likeness_ranks, data=data))
          for data in SETS),
        *(Claim(PAPER, "appendix C", f"{NAMED[data]}: versions of topics are aligned as well as "
                "by ccLDA", f"TII less ccLDA > -{ALIGNED} {two}",
                partial(alignment, data=data)) for data in SETS),
        Claim(PAPER, "figure 5", "Words associated with a global word differ between groups",
              "for example 'computing'",
              lambda run: not_run("the library has them, and the notebook shows some; the paper "
                                  "gives no number")),
        Claim(PAPER, "figure 8", "Images: the localisation ratio of TII is above that of LDA",
              "most for the first topics",
              lambda run: not_run("the ImageNet pairs cannot be had")),
        Claim(PAPER, "figure 9", "Digits: one topic carries the shape of the class, all classes "
              "share the others", "exactly one topic names most classes",
              partial(of_digits, ask="one")),
        Claim("own question", "-", f"Digits: the versions of one topic are {CLEAR:g} times as far "
              "apart as those of the others", f"ratio above {CLEAR:g}",
              partial(of_digits, ask="distance")),
        *(_table_2(data, one, other, CORRECTED) for data in SETS for one, other in pairs),
        *(_table_2(data, one, other, PRINTED) for data in SETS for one, other in pairs[:-1]),
        *(Claim("own question", "table 2", f"{NAMED[data]}: {method}: the {name} score is more "
                "accurate than the printed one", f"> 0 {two}",
                lambda run, data=data, method=method, name=name: accuracy(
                    run, data, (method, name), (method, PRINTED)))
          for data in SETS for method in (TI, TII) for name in (CORRECTED, PLUG_IN)),
        *(Claim(PAPER, "section 6.5", f"{NAMED[data]}: accuracies of TI are steadier than those "
                "of TII", "smaller sd", partial(steadier, data=data)) for data in SETS),
        Claim(PAPER, "section 6.5", "TI is more accurate than SAGE", "0.735 against 0.696",
              lambda run: not_run("SAGE is not in the library, its division of the blogs not at "
                                  "hand")),
        *(Claim(PAPER, "section 6.5", f"{NAMED[data]}: {method}: accuracy converges within 50 "
                "iterations", "50 iterations", partial(steady, data=data, method=method))
          for data in SETS for method in (TI, TII)),
        *(Claim("own target", "-", f"{name} makes {SPEED} of LDA's tokens per second or more, "
                "parallel", f"mean log ratio > log {SPEED} {two} over turns",
                partial(speed_ratio, one=name, other=POOLED, schedule="parallel", least=SPEED,
                        why="Ratios turn by turn: median, lowest and highest."))
          for name in (TI, TII)),
        Claim("own target", "-", f"The table of Stirling ratios has less than "
              f"{TABLE_MEGABYTES:g} MB at two million tokens", f"< {TABLE_MEGABYTES:g} MB",
              tables),
    )  # fmt: skip


def judged(run: Run, how: str, others: bool) -> list[dict[str, str]]:
    """Return the table of claims by one division, with those that need none, if asked for."""
    return judge((*claims_by(how), *(other_claims() if others else ())), run)
