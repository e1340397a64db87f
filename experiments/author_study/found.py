"""Numbers out of the results: what was measured, differences in pairs, times, and the claims."""

import itertools
import math
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Claim",
    "Difference",
    "arrival",
    "claims",
    "curves",
    "difference",
    "measured",
    "perplexities",
    "rhats",
    "session_of",
]

LABELS = {
    "LDA": "LDA",
    "AuthorTopicModel": "ATM",
    "HDPLDA": "HDP-LDA",
    "NonparametricAuthorTopicModel": "NP-ATM",
}
NEAR = 0.02  # how much worse a model may be that finds the number of topics by itself
RHAT = 1.05


class Claim(NamedTuple):
    """What is claimed, the number that was found, and whether it holds."""

    claim: str
    found: str
    verdict: str  # yes, no, not decided, not measured


class Difference(NamedTuple):
    """Log of the ratio of two perplexities, and its standard error."""

    log_ratio: float
    error: float

    def __str__(self) -> str:
        low, high = (math.exp(self.log_ratio + s * self.error) for s in (-2, 2))
        return f"{math.exp(self.log_ratio):.3f} ({low:.3f} to {high:.3f})"


def measured(run: dict[str, Any], part: str) -> dict[tuple[str, ...], Any]:
    """Return the measurements of a part by the rest of their keys."""
    keys = ((tuple(key.split("/")), value) for key, value in run["measurements"].items())
    return {key[1:]: value for key, value in keys if key[0] == part}


def session_of(run: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Return what made a measurement: machine, cores, versions."""
    return run["sessions"][value["session"]]


def curves(run: dict[str, Any], topics: int) -> dict[str, Any]:
    """Return scores against time with one number of topics."""
    ours = {
        f"ours, {schedule}, {chains} chain{'s' if int(chains) > 1 else ''}": value
        for (k, schedule, chains), value in measured(run, "curve").items()
        if k == str(topics)
    }
    theirs = {
        f"gensim, {chunk} documents an update": value
        for (k, chunk), value in measured(run, "gensim").items()
        if k == str(topics)
    }
    return ours | theirs


def perplexities(run: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return final scores, by the name of the model and in the order of the number of topics.

    Of gensim's, which get worse after a while, the best on the way.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for (model, topics), value in measured(run, "fit").items():
        found.setdefault(LABELS[model], []).append({**value, "asked": topics})
    for k in run["settings"]["topics"]:
        scores = [
            {**score, "topics": k, "asked": str(k), "session": value["session"]}
            for key, value in measured(run, "gensim").items()
            for score in value["scores"]
            if key[0] == str(k)
        ]
        if scores:
            found.setdefault("gensim's ATM", []).append(_best(scores))
    return found


def difference(run: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> Difference:
    """Compare two scores of the same documents in pairs.

    The error is that of documents (of a ratio, as in `HeldOutScore`), and of the chains of both.
    """
    tokens = np.array(run["heldout_tokens"], float)
    gain = np.array(other["doc_log_prob"]) - np.array(one["doc_log_prob"])
    scored = tokens > 0
    log_ratio = gain.sum() / tokens.sum()
    rest, n = (gain - log_ratio * tokens)[scored], int(scored.sum())
    docs = math.sqrt(n / (n - 1) * (rest**2).sum()) / tokens.sum()
    chains = [score.get("error_chains") or 0.0 for score in (one, other)]
    return Difference(float(log_ratio), math.sqrt(docs**2 + sum(x**2 for x in chains)))


def arrival(curve: dict[str, Any], perplexity: float) -> float | None:
    """Return after how many seconds a curve is at this perplexity or better, None for never.

    Between two points a straight line in log time is followed.
    """
    before: tuple[float, float] | None = None
    for seconds, score in zip(curve["seconds"], curve["scores"], strict=True):
        y = score["perplexity"]
        if y <= perplexity:
            if before is None:
                return seconds
            share = (before[1] - perplexity) / (before[1] - y)
            return before[0] * (seconds / before[0]) ** share
        before = seconds, y
    return None


def rhats(value: dict[str, Any]) -> float | None:
    """Return the worst R-hat of a fit."""
    found = [row["rhat"] for row in value["convergence"] if row.get("rhat") is not None]
    return max(found, default=None)


def claims(run: dict[str, Any]) -> list[Claim]:
    """Say of each claim whether it holds; two standard errors make the difference."""
    scores = perplexities(run)
    return [
        *_observed_words(run),
        _near(run, scores, "NP-ATM", "ATM"),
        _near(run, scores, "HDP-LDA", "LDA"),
        _same_size(run, scores, "NP-ATM", "ATM"),
        _same_size(run, scores, "HDP-LDA", "LDA"),
        _better(run, scores, "ATM", "LDA"),
        *_peer(run, scores),
        _converged(run),
    ]


def _observed_words(run: dict[str, Any]) -> list[Claim]:
    found = {key[0]: value["scores"] for key, value in measured(run, "words").items()}
    names = (
        "Before a word is seen, the authors predict a document better than LDA does (Rosen-Zvi)",
        "After some words LDA predicts the rest better than the authors do (Rosen-Zvi)",
    )
    if {"LDA", "AuthorTopicModel"} - set(found):
        return [Claim(name, "-", "not measured") for name in names]
    authors = found["AuthorTopicModel"]["authors"]
    seen = {int(n): difference(run, authors, score) for n, score in found["LDA"].items()}
    # ratios of the authors' perplexity to LDA's
    first, last = seen[min(seen)], seen[max(seen)]
    beyond = [n for n, d in sorted(seen.items()) if d.log_ratio > 0]
    how = f"ratio {last} after {max(seen)}"
    if beyond:
        how += f"; LDA is ahead from {beyond[0]} words on"
    return [
        Claim(names[0], f"ratio of perplexities {first}", _verdict(-first.log_ratio, first.error)),
        Claim(names[1], how, _verdict(last.log_ratio, last.error)),
    ]


def _near(run: dict[str, Any], scores: dict[str, Any], inferred: str, fixed: str) -> Claim:
    name = f"{inferred}, which infers K, is at most {NEAR:.0%} worse than the best {fixed}"
    if inferred not in scores or fixed not in scores:
        return Claim(name, "-", "not measured")
    best = _best(scores[fixed])
    found = difference(run, scores[inferred][0], best)
    how = f"{scores[inferred][0]['topics']:.0f} topics; ratio {found} to K={best['asked']}"
    verdict = _verdict(math.log(1 + NEAR) - found.log_ratio, found.error)
    if _falling(run, scores[fixed]):
        how += _beyond(fixed, scores[fixed])
        verdict = "not decided" if verdict == "yes" else verdict
    return Claim(name, how, verdict)


def _same_size(run: dict[str, Any], scores: dict[str, Any], inferred: str, fixed: str) -> Claim:
    name = f"{inferred}, which infers K, predicts better than {fixed} with as many topics"
    if inferred not in scores:
        return Claim(name, "-", "not measured")
    topics = scores[inferred][0]["topics"]
    by_size = sorted(scores.get(fixed, []), key=lambda score: int(score["asked"]))
    pairs = itertools.pairwise(by_size)
    between = [p for p in pairs if int(p[0]["asked"]) <= topics <= int(p[1]["asked"])]
    if not between:
        return Claim(name, "-", "not measured")
    fewer, more = between[0]
    low, high = int(fewer["asked"]), int(more["asked"])
    # log densities of a model with as many topics: a straight line in log K between its neighbours
    share = math.log(topics / low) / math.log(high / low)
    line = (1 - share) * np.array(fewer["doc_log_prob"]) + share * np.array(more["doc_log_prob"])
    errors = [score.get("error_chains") or 0.0 for score in (fewer, more)]
    at = {"doc_log_prob": line, "error_chains": max(errors)}
    found = difference(run, scores[inferred][0], at)
    how = f"{topics:.0f} topics; ratio {found} to what lies between K={low} and {high}"
    return Claim(name, how, _verdict(-found.log_ratio, found.error))


def _better(run: dict[str, Any], scores: dict[str, Any], one: str, other: str) -> Claim:
    name = f"{one} predicts second halves better than {other}, each with its best K"
    if one not in scores or other not in scores:
        return Claim(name, "-", "not measured")
    best, its = _best(scores[one]), _best(scores[other])
    found = difference(run, best, its)
    how = f"ratio of perplexities {found}, K={best['asked']} and {its['asked']}"
    verdict = _verdict(-found.log_ratio, found.error)
    for fixed, other_way in ((one, "no"), (other, "yes")):
        if _falling(run, scores[fixed]):
            how += _beyond(fixed, scores[fixed])
            verdict = "not decided" if verdict == other_way else verdict
    return Claim(name, how, verdict)


def _falling(run: dict[str, Any], scores: list[dict[str, Any]]) -> bool:
    """Say whether scores leave open that more topics than the most that were tried do better."""
    if len(scores) == 1:
        return True
    *_, before, last = sorted(scores, key=lambda score: int(score["asked"]))
    found = difference(run, last, before)
    return _best(scores) is last and found.log_ratio < -2 * found.error


def _beyond(model: str, scores: list[dict[str, Any]]) -> str:
    greatest = max(int(score["asked"]) for score in scores)
    if len(scores) == 1:
        return f"; of {model} one K was tried, {greatest}"
    return f"; {model} gets better up to the greatest K tried, {greatest}"


def _peer(run: dict[str, Any], scores: dict[str, Any]) -> list[Claim]:
    k = run["settings"]["curve_topics"]
    names = (
        "Our ATM predicts better than gensim's, with every K",
        f"Our ATM is at gensim's best score sooner than gensim, K={k}",
        f"gensim's ATM comes to our score, K={k}",
    )
    theirs = scores.get("gensim's ATM", [])
    if not theirs or "ATM" not in scores:
        return [Claim(name, "-", "not measured") for name in names]
    ours = {x["asked"]: x for x in scores["ATM"]}
    pairs = {x["asked"]: difference(run, ours[x["asked"]], x) for x in theirs if x["asked"] in ours}
    worst = min((-d.log_ratio / d.error, str(d), -d.log_ratio, d.error) for d in pairs.values())
    how = ", ".join(f"{d} (K={k})" for k, d in pairs.items())
    made = [Claim(names[0], f"ratio of perplexities {how}", _verdict(*worst[2:]))]
    found = curves(run, k)
    own = {n: c for n, c in found.items() if n.startswith("ours")}
    peer = {n: c for n, c in found.items() if n not in own}
    if not own or not peer:
        return [*made, *(Claim(name, "-", "not measured") for name in names[1:])]
    goal = _best([score for c in peer.values() for score in c["scores"]])["perplexity"]
    mine, its = _soonest(own.values(), goal), _soonest(peer.values(), goal)
    how = f"{_seconds(mine)} against {_seconds(its)}, perplexity {goal:.1f}"
    sooner = mine is not None and its is not None and mine < its
    made.append(Claim(names[1], how, "yes" if sooner else "no"))
    goal = _best([c["scores"][-1] for c in own.values()])["perplexity"]
    its = _soonest(peer.values(), goal)
    seconds = max(c["seconds"][-1] for c in peer.values())
    how = f"perplexity {goal:.1f}: {_seconds(its)}, of {seconds:.0f} s"
    made.append(Claim(names[2], how, "yes" if its is not None else "no"))
    return made


def _converged(run: dict[str, Any]) -> Claim:
    name = f"The chains of all fits agree: R-hat of lp, topics and concentrations below {RHAT}"
    worst = {key: rhats(value) for key, value in measured(run, "fit").items()}
    known = {key: x for key, x in worst.items() if x is not None}
    if not known:
        return Claim(name, "-", "not measured")
    key = max(known, key=lambda key: known[key])
    how = (
        f"worst {known[key]:.2f} ({LABELS[key[0]]}, {key[1]}), median {median(known.values()):.2f}"
    )
    return Claim(name, how, "yes" if known[key] < RHAT else "no")


def _best(scores: list[dict[str, Any]]) -> dict[str, Any]:
    return min(scores, key=lambda score: score["perplexity"])


def _soonest(found: Iterable[dict[str, Any]], goal: float) -> float | None:
    return min((t for c in found if (t := arrival(c, goal)) is not None), default=None)


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"


def _verdict(margin: float, error: float) -> str:
    return "not decided" if abs(margin) < 2 * error else "yes" if margin > 0 else "no"
