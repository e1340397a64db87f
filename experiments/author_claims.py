"""Claims, tables and pictures of the study of author-topic models."""

import itertools
import math
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from study.cells import of_part, session_of
from study.claims import Claim, Finding, about_posterior, decide, judge, not_run
from study.curves import PALETTE, Curve, Panel, draw
from study.report import Table, head, rates, write_report
from study.scores import paired, worst_rhat
from study.timing import arrival

__all__ = ["CLAIMS", "report"]

NEAR = 0.02  # how much worse a model may be that finds the number of topics by itself
ATM, PEER = "AuthorTopicModel", "gensim's AuthorTopicModel"
NP, HDP = "NonparametricAuthorTopicModel", "HDPLDA"
COLOURS = {
    "LDA": PALETTE[0], ATM: PALETTE[1], HDP: PALETTE[5], NP: PALETTE[4], PEER: PALETTE[6],
}  # fmt: skip
Run = dict[str, Any]


def scores(run: Run, method: str) -> list[Run]:
    """Return the final scores of a method, by the number of topics.

    Of gensim's, which get worse after a while, the best on the way.
    """
    if method != PEER:
        return of_part(run, "fit", method=method)
    best: dict[int, Run] = {}
    for record in of_part(run, "gensim"):
        asked = record["topics_asked"]
        about = {"topics_asked": asked, "topics": asked, "session": record["session"]}
        score = {**min(record["scores"], key=_perplexity), **about}
        best[asked] = min(best.get(asked, score), score, key=_perplexity)
    return [best[k] for k in sorted(best)]


def _perplexity(score: Run) -> float:
    return score["perplexity"]


def _difference(run: Run, one: Run, other: Run) -> Any:
    return paired(one, other, run["heldout_tokens"])


def _num_starts(run: Run, records: list[Run]) -> int:
    """Count the starts whose scores agree with those of the first one."""
    gaps = [_difference(run, records[0], other) for other in records[1:]]
    return 1 + sum(abs(gap.value) < 2 * gap.error for gap in gaps)


def _words(run: Run, after: bool) -> Finding:
    found = {record["method"]: record for record in of_part(run, "words")}
    if {"LDA", ATM} - set(found):
        return not_run("part 'words' was not run for both models")
    authors = found[ATM]["scores"]["authors"]
    by_number = sorted((int(n), score) for n, score in found["LDA"]["scores"].items())
    seen = {n: _difference(run, authors, score) for n, score in by_number}
    number = max(seen) if after else min(seen)
    gap = seen[number]
    text = f"ratio of perplexities, authors to LDA after {number} words: {gap.ratio}"
    ahead = [n for n, d in seen.items() if d.value > 0]
    if after and ahead:
        text += f"; LDA is ahead from {ahead[0]} words on"
    finding = Finding(text, decide(gap.value if after else -gap.value, gap.error))
    return about_posterior(finding, list(found.values()))


def _number_of_topics(run: Run) -> Finding:
    records = scores(run, NP)
    if not records:
        return not_run("no fit of the nonparametric model")
    chains = [f"{k:.0f}" for k in records[0]["topics_by_chain"]]
    text = f"{records[0]['topics']:.0f} topics in use (means of the chains {', '.join(chains)})"
    return about_posterior(Finding(text, "holds"), records, _num_starts(run, records))


def _near(run: Run, inferred: str, fixed: str) -> Finding:
    mine, theirs = scores(run, inferred), scores(run, fixed)
    if not mine or not theirs:
        return not_run("one of the models was not fitted")
    best = min(theirs, key=_perplexity)
    gap = _difference(run, mine[0], best)
    text = f"{mine[0]['topics']:.0f} topics; ratio of perplexities {gap.ratio} to "
    text += f"K={best['topics_asked']}"
    verdict, why = decide(math.log(1 + NEAR) - gap.value, gap.error), ""
    if _falling(run, theirs):
        why = f"{fixed} gets better up to the greatest K tried, {theirs[-1]['topics_asked']}."
        verdict = "not decided" if verdict == "holds" else verdict
    return about_posterior(Finding(text, verdict, why), [*mine, best], _num_starts(run, mine))


def _same_size(run: Run, inferred: str, fixed: str) -> Finding:
    mine, theirs = scores(run, inferred), scores(run, fixed)
    if not mine:
        return not_run(f"{inferred} was not fitted")
    topics = mine[0]["topics"]
    by_size = {score["topics_asked"]: score for score in theirs}
    between = [(a, b) for a, b in itertools.pairwise(sorted(by_size)) if a <= topics <= b]
    if not between:
        return not_run(f"no two fits of {fixed} have fewer and more topics than {topics:.0f}")
    low, high = between[0]
    fewer, more = by_size[low], by_size[high]
    # log densities of a model with as many topics: a straight line in log K between its neighbours
    share = math.log(topics / low) / math.log(high / low)
    line = (1 - share) * np.array(fewer["doc_log_prob"]) + share * np.array(more["doc_log_prob"])
    errors = [score.get("error_chains") or 0.0 for score in (fewer, more)]
    gap = _difference(run, mine[0], {"doc_log_prob": line, "error_chains": max(errors)})
    text = f"{topics:.0f} topics; ratio of perplexities {gap.ratio} to what lies between K={low} "
    finding = Finding(f"{text}and {high}", decide(-gap.value, gap.error))
    return about_posterior(finding, [*mine, fewer, more], _num_starts(run, mine))


def _authors_or_words(run: Run) -> Finding:
    found = {name: scores(run, name) for name in (ATM, "LDA")}
    if not all(found.values()):
        return not_run("one of the models was not fitted")
    one, other = (min(found[name], key=_perplexity) for name in found)
    gap = _difference(run, one, other)
    verdict, why = decide(-gap.value, gap.error), []
    for name, open_verdict in ((ATM, "does not hold"), ("LDA", "holds")):
        if _falling(run, found[name]):
            most = max(score["topics_asked"] for score in found[name])
            why.append(f"{name} gets better up to the greatest K tried, {most}.")
            verdict = "not decided" if verdict == open_verdict else verdict
    text = f"ratio of perplexities {gap.ratio}, K={one['topics_asked']} and "
    finding = Finding(f"{text}{other['topics_asked']}", verdict, " ".join(why))
    return about_posterior(finding, [one, other])


def _falling(run: Run, records: list[Run]) -> bool:
    """Say whether scores leave open that more topics than the most that were tried do better."""
    *before, last = sorted(records, key=lambda score: score["topics_asked"])
    if not before:
        return True
    gap = _difference(run, last, before[-1])
    return min(records, key=_perplexity) is last and gap.value < -2 * gap.error


def _peer_every_k(run: Run) -> Finding:
    ours = {x["topics_asked"]: x for x in scores(run, ATM)}
    both = {k: x for x in scores(run, PEER) if (k := x["topics_asked"]) in ours}
    if not both:
        return not_run("gensim's model and ours were not fitted with the same K")
    gaps = {k: _difference(run, ours[k], theirs) for k, theirs in both.items()}
    worst = max(gaps.values(), key=lambda gap: gap.value / gap.error)
    text = ", ".join(f"K={k}: {gap.ratio}" for k, gap in gaps.items())
    why = "Our score averages the states of all chains, gensim's is one state; its eta not tuned."
    finding = Finding(f"ratios of perplexities {text}", decide(-worst.value, worst.error), why)
    return about_posterior(finding, [ours[k] for k in both])


def _one_state(run: Run, sooner: bool) -> Finding:
    """Hold our curves of one chain against gensim's with as many topics: scores, or times."""
    ours = of_part(run, "curve", chains=1)
    theirs = of_part(run, "gensim", topics_asked=run["settings"]["curve_topics"])
    if not ours or not theirs:
        return not_run("no curve of one chain, or none of gensim's model")
    best = min((score for curve in theirs for score in curve["scores"]), key=_perplexity)
    goal = best["perplexity"]
    if sooner:
        said = []
        for side in (ours, theirs):
            times = [arrival(c["seconds"], list(map(_perplexity, c["scores"])), goal) for c in side]
            soonest = min((t for t in times if t is not None), default=None)
            said.append("never" if soonest is None else f"{soonest:.1f} s")
        why = "One run of each, so the times have no error; the machine was busy."
        return Finding(f"{' against '.join(said)}, perplexity {goal:.1f}", "not decided", why)
    last = ours[0]["scores"][-1]
    gap = _difference(run, last, best)
    text = f"{last['perplexity']:.0f} against {goal:.0f}; ratio {gap.ratio}"
    why = "One run of each; the error is over documents. gensim's eta is not tuned."
    return Finding(text, decide(-gap.value, gap.error), why)


def _converged(run: Run) -> Finding:
    records = of_part(run, "fit")
    hats = {f"{r['method']}, K={r['topics_asked']}": worst_rhat([r]) for r in records}
    known = {name: hat for name, hat in hats.items() if hat is not None}
    if not known:
        return not_run("no fit")
    name = max(known, key=lambda name: known[name])
    text = f"worst R-hat {known[name]:.2f} ({name}), median {median(known.values()):.2f}"
    verdict = "holds" if known[name] < 1.05 else "does not hold"
    return Finding(text, verdict, "R-hat of log density, topics in use and concentrations.")


ROSEN_ZVI = ("Rosen-Zvi et al., UAI 2004", "perplexity by words observed")
BLEIER, BLEIER_LDA = ("Bleier", "section 3"), ("Bleier", "section 3, for LDA")
OWN = ("own question", "-")
OPEN = "not given: section 3 leaves performance open"
CLAIMS = (
    Claim(*ROSEN_ZVI, "Before a word is seen, the authors predict a document better than LDA does",
          "ratio below 1", partial(_words, after=False)),
    Claim(*ROSEN_ZVI, "After some words LDA predicts the rest better than the authors do",
          "ratio above 1", partial(_words, after=True)),
    Claim(*ROSEN_ZVI, "The author-topic model predicts better than a model of authors without "
          "topics", "lower perplexity",
          lambda run: not_run("The model of authors without topics is not in this library.")),
    Claim(*BLEIER, "The model estimates the number of topics that the data need",
          "no number given", _number_of_topics),
    Claim(*BLEIER, f"{NP} is at most {NEAR:.0%} worse than {ATM} with its best K", OPEN,
          partial(_near, inferred=NP, fixed=ATM)),
    Claim(*BLEIER_LDA, f"{HDP} is at most {NEAR:.0%} worse than LDA with its best K", OPEN,
          partial(_near, inferred=HDP, fixed="LDA")),
    Claim(*BLEIER, f"{NP} predicts better than {ATM} with as many topics", OPEN,
          partial(_same_size, inferred=NP, fixed=ATM)),
    Claim(*BLEIER_LDA, f"{HDP} predicts better than LDA with as many topics", OPEN,
          partial(_same_size, inferred=HDP, fixed="LDA")),
    Claim(*OWN, f"{ATM} predicts second halves better than LDA does, each with its best K",
          "not known", _authors_or_words),
    Claim(*OWN, "Our author-topic model predicts better than gensim's, with every K",
          "ratio below 1", _peer_every_k),
    Claim(*OWN, "So does one state after the same seconds, against gensim's best",
          "ratio below 1", partial(_one_state, sooner=False)),
    Claim(*OWN, "One chain of ours is at gensim's best score sooner than gensim",
          "fewer seconds", partial(_one_state, sooner=True)),
    Claim(*OWN, "The chains of all fits agree", "R-hat below 1.05", _converged),
)  # fmt: skip


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    sizes = ", ".join(f"{value} {name}" for name, value in run["sizes"].items())
    about = (
        f"{sizes}. {s['size']} size, seed {s['seed']}, {s['num_chains']} chains of "
        f"{s['num_warmup']} + {s['num_samples']} sweeps. The second halves of the test documents "
        "are predicted: by LDA and HDPLDA from the first halves, by the author-topic models from "
        "the authors, who are known. The first halves are part of what is fitted. Of gensim, "
        "which gets worse after a while, the best score on the way is given. Compilation is left "
        "out of all times but those of fits. The concentrations have the prior Gamma(1, 1); the "
        "articles hold them fixed."
    )
    _draw(run, output.with_suffix(".png"))
    tables = [
        Table("Claims", "claims", judge(CLAIMS, run)),
        Table("Perplexity of second halves", "perplexity", _scores(run)),
        Table("Convergence", "convergence", _convergence(run)),
        Table(
            f"Perplexity against time, author-topic model, K={s['curve_topics']}",
            "perplexity_against_time", _time(run),
        ),
        Table(
            "Perplexity by what is known of the document", "perplexity_by_words_seen", _seen(run)
        ),
        Table("Tokens per second", "tokens_per_second", rates(of_part(run, "speed"))),
    ]  # fmt: skip
    return write_report(output, head(run, "Author-topic models", about), tables)


def _scores(run: Run) -> list[Run]:
    rows = []
    for method in COLOURS:
        for x in scores(run, method):
            y = x["perplexity"]
            errors = {n: y * e if (e := x.get(f"error_{n}")) else None for n in ("docs", "chains")}
            rows.append({
                "model": method, "topics_asked": x["topics_asked"], "start": x.get("start", ""),
                "perplexity": y, "error_over_documents": errors["docs"],
                "error_over_chains": errors["chains"],
                "perplexity_of_a_single_state": x.get("single_state_perplexity"),
                "topics_in_use": x["topics"], "worst_rhat": worst_rhat([x]),
                "seconds": x.get("seconds"), "cores": session_of(run, x)["cores"],
            })  # fmt: skip
    for x in of_part(run, "unigram", fitted=None):
        rows.append({"model": "unigram", "perplexity": x["perplexity"]})
    return rows


def _convergence(run: Run) -> list[Run]:
    names = ("quantity", "mean", "rhat", "ess_bulk", "ess_tail", "verdict")
    return [
        {"model": record["method"], "topics_asked": record["topics_asked"],
         **{name: row[name] for name in names}}
        for record in of_part(run, "fit") for row in record["convergence"]
    ]  # fmt: skip


def _curves(run: Run) -> dict[str, Run]:
    """Return curves against time by what is said of them, ours and then gensim's."""
    k, named = run["settings"]["curve_topics"], {}
    for c in of_part(run, "curve", topics_asked=k):
        named[f"ours, {c['schedule']}, {c['chains']} chain{'s' if c['chains'] > 1 else ''}"] = c
    for c in of_part(run, "gensim", topics_asked=k):
        named[f"gensim, {c['documents_per_update']} documents an update"] = c
    return named


def _with_error(score: Run) -> Run:
    y = score["perplexity"]
    return {"perplexity": y, "error_over_documents": y * score["error_docs"]}


def _time(run: Run) -> list[Run]:
    return [
        {"system": name, "seconds": seconds, **_with_error(score)}
        for name, curve in _curves(run).items()
        for seconds, score in zip(curve["seconds"], curve["scores"], strict=True)
    ]


def _seen(run: Run) -> list[Run]:
    return [
        {"model": record["method"], "topics_asked": record["topics_asked"],
         "known_of_the_document": "its authors" if seen == "authors" else f"{seen} words",
         **_with_error(score)}
        for record in of_part(run, "words") for seen, score in record["scores"].items()
    ]  # fmt: skip


LABEL = "perplexity of second halves"


def _draw(run: Run, path: Path) -> None:
    """Draw perplexity by topics, by time, and by words seen."""
    found = {x.get("fitted"): {"unigram": x["perplexity"]} for x in of_part(run, "unigram")}
    unigram, alone = found.get(None, {}), found.get("training documents alone", {})
    draw([_by_topics(run, unigram), _by_time(run, unigram), _by_words(run, alone)], path)


def _by_topics(run: Run, lines: dict[str, float]) -> Panel:
    curves = []
    for method, colour in COLOURS.items():
        records = scores(run, method)
        for points in [[r] for r in records] if method in (NP, HDP) else [records]:
            y = np.array([p["perplexity"] for p in points])
            error = 2 * y * np.array([p.get("error_chains") or 0.0 for p in points])
            x = [p["topics"] for p in points]
            if points:
                curves.append(Curve(method, x, y, y - error, y + error, colour=colour))
    ticks = {k: str(k) for k in run["settings"]["topics"]}
    title = "Band: two standard errors over chains"
    return Panel(title, "topics in use", LABEL, curves, lines, True, ticks)


def _by_time(run: Run, lines: dict[str, float]) -> Panel:
    styles = {ATM: itertools.cycle(("-", "--", ":")), PEER: itertools.cycle(("-", "--"))}
    curves = []
    for name, c in _curves(run).items():
        side = ATM if name.startswith("ours") else PEER
        y = [x["perplexity"] for x in c["scores"]]
        style = next(styles[side])
        curves.append(Curve(name, c["seconds"], y, style=style, colour=COLOURS[side]))
    title = f"Author-topic model, K={run['settings']['curve_topics']}; authors known"
    return Panel(title, "seconds, compilation left out", LABEL, curves, lines, log_x=True)


def _by_words(run: Run, lines: dict[str, float]) -> Panel:
    found = {record["method"]: record["scores"] for record in of_part(run, "words")}
    title, where = "Band: two standard errors over documents", "words seen of a document"
    if {"LDA", ATM} - set(found):
        return Panel(title, where, LABEL, [])
    seen = {max(int(n), 0.5): score for n, score in found["LDA"].items()}
    y = np.array([x["perplexity"] for x in seen.values()])
    error = 2 * y * np.array([x["error_docs"] for x in seen.values()])
    curve = Curve("LDA, from the words seen", list(seen), y, y - error, y + error)
    lines = {"from the authors": found[ATM]["authors"]["perplexity"]} | lines
    ticks = dict(zip(seen, found["LDA"], strict=True))
    return Panel(title, where, LABEL, [curve], lines, True, ticks)
