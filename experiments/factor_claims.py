"""What the paper claims of the factor studies, answered by what was measured."""

import statistics
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Claim", "claims", "gains", "section_values"]

BEST = ("IM", "SSP", "AP")  # auxiliary sections of figure 3b, the best one first
SECONDS = {"exact": 6.67 * 60, "approximate": 52.3 * 60}  # to twelve factors, in the paper


class Claim(NamedTuple):
    """A claim, "yes" or "no", and the number that decides; "number" where the number is all."""

    text: str
    answer: str
    number: str


class Gain(NamedTuple):
    """How much a method is better than another over the cells in which both were measured."""

    values: np.ndarray  # nats per paper, one for each auxiliary section, training size and run
    sizes: np.ndarray  # training size of each

    @property
    def error(self) -> float:
        """Standard error of the mean over cells; unknown (NaN) of a single one."""
        count = len(self.values)
        return self.values.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan

    def __str__(self) -> str:
        """Say the mean, its standard error over cells, and in how many cells it is positive."""
        return (
            f"{self.values.mean():+.1f} nats per paper "
            f"(standard error over cells {self.error:.1f}), "
            f"better in {(self.values > 0).sum()} of {len(self.values)}"
        )


def claims(found: dict[str, Any]) -> list[Claim]:
    """Answer the claims for which something was measured."""
    answers = []
    for name, measured in found.items():
        if name.startswith("planted/"):
            answers += _planted(name.removeprefix("planted/"), measured)
    answers += _births(found) + _sections(found)
    return answers + _digits(found, "digits") + _digits(found, "bundled")


def section_values(
    found: dict[str, Any], key: str = "log_ppd"
) -> dict[tuple[str, int, int, str], float]:
    """Return a score by auxiliary section ("none" alone), training size, run and method."""
    values = {}
    for name, measured in found.items():
        if name.startswith("sections/") and key in measured:
            _, other, size, run, method = name.split("/")
            values[other, int(size), int(run), method] = measured[key]
    return values


def gains(found: dict[str, Any], better: str, worse: str, key: str = "log_ppd") -> Gain | None:
    """Return by how much a score is lower with one method than with another, None if unknown."""
    values = section_values(found, key)
    pairs = [
        (size, values["none" if "alone" in worse else other, size, run, worse] - value)
        for (other, size, run, method), value in values.items()
        if method == better and ("none" if "alone" in worse else other, size, run, worse) in values
    ]
    if not pairs:
        return None
    sizes, differences = zip(*pairs, strict=True)
    return Gain(np.array(differences), np.array(sizes))


def _claim(text: str, holds: bool, number: str) -> Claim:
    return Claim(text, "yes" if holds else "no", number)


def _better(text: str, gain: float, error: float, number: str) -> Claim:
    """Decide by two standard errors of the gain."""
    if not abs(gain) > 2 * error:
        return Claim(text, "not decided", number)
    return _claim(text, gain > 0, number)


def _planted(about: str, found: dict[str, Any]) -> list[Claim]:
    reached = found["sweeps_to_all"]
    posterior = {int(k): p for k, p in found["posterior"].items()}
    mode = max(posterior, key=lambda k: posterior[k])
    alike = [row["similarity"] for row in found["recovery"]]
    weights = [row["weights"] for row in found["recovery"]]
    shared = next(x["shared"] for x in found["shared"] if x["source"] != x["other"])
    count = len(alike)
    fast = all(sweep is not None and sweep < 100 for sweep in reached)
    seconds = ["never" if x is None else f"{x:.1f}" for x in found["seconds_to_all"]]
    paper = SECONDS["exact" if about.endswith("exact") else "approximate"]
    answers = [
        _claim(
            f"All chains have {count} factors before sweep 100",
            fast,
            f"sweeps {', '.join('never' if sweep is None else str(sweep) for sweep in reached)}",
        ),
        Claim(
            f"Seconds to {count} factors, chains side by side; in the paper {paper:.0f}",
            "number",
            ", ".join(seconds),
        ),
        _claim(
            f"{count} is the most probable number of factors",
            mode == count,
            f"p({count}) = {posterior.get(count, 0.0):.2f}, most probable: {mode}",
        ),
        _claim(
            "Every factor is found again, cosine above 0.9",
            min(alike) > 0.9,
            f"{sum(a > 0.9 for a in alike)} of {count}, lowest {min(alike):.2f}",
        ),
        _claim(
            "So are its weights",
            min(weights) > 0.9,
            f"{sum(w > 0.9 for w in weights)} of {count}, lowest {min(weights):.2f}",
        ),
        _claim("Four factors are shared", round(shared) == 4, f"{shared:.2f}"),
    ]
    return [claim._replace(text=f"{claim.text} ({about})") for claim in answers]


def _births(found: dict[str, Any]) -> list[Claim]:
    """Compare the times to recovery of the exact and the approximate sampler."""
    answers = []
    for name, exact in found.items():
        other = found.get(name.replace("/exact", "/approximate"))
        if not name.startswith("planted/") or not name.endswith("/exact") or other is None:
            continue
        times = []
        for measured in (exact, other):
            never = float("inf")
            seconds = [never if x is None else x for x in measured["seconds_to_all"]]
            times.append(statistics.median_low(seconds))
        text = f"Exact births recover sooner than approximate ones ({name.split('/')[1]})"
        said = ["never" if x == float("inf") else f"{x:.1f} s" for x in times]
        number = f"median chain {said[0]} and {said[1]}; in the paper 400 s and 3138 s"
        answers.append(_claim(text, times[0] < times[1], number))
    return answers


def _sections(found: dict[str, Any]) -> list[Claim]:
    answers = []
    for worse, name in (("alone", "the target alone"), ("pooled", "both pooled")):
        gain = gains(found, "hierarchical", worse)
        if gain is not None:
            text = f"Telling sources apart predicts better than {name}, at every training size"
            holds = all(gain.values[gain.sizes == size].mean() > 0 for size in set(gain.sizes))
            answers.append(_claim(text, holds, str(gain)))
    gain = gains(found, "pooled", "alone")
    if gain is not None:
        by_size = {size: gain.values[gain.sizes == size].mean() for size in sorted(set(gain.sizes))}
        answers.append(
            _claim(
                "Pooling helps below about 50 papers of the target, and harms above",
                all((value > 0) == (size < 50) for size, value in by_size.items()),
                ", ".join(f"{size}: {value:+.1f} nats" for size, value in by_size.items()),
            )
        )
    values = section_values(found)
    ours = {(o, s, r): v for (o, s, r, method), v in values.items() if method == "hierarchical"}
    if ours:
        largest = max(size for _, size, _ in ours)
        mean = np.mean([v for (_, size, _), v in ours.items() if size == largest])
        text = (
            f"Nats per paper with {largest} papers of the target; in the paper 1102.9, other text"
        )
        answers.append(Claim(text, "number", f"{mean:.1f}"))
    others = {other for other, _, _ in ours}
    if set(BEST) <= others:
        mean = {o: np.mean([v for (x, _, _), v in ours.items() if x == o]) for o in others}
        order = sorted(mean, key=lambda other: mean[other])
        text = f"The best auxiliary sections are {', '.join(BEST)}, in this order"
        answers.append(_claim(text, tuple(order[:3]) == BEST, ", ".join(order)))
    gain = gains(found, "hierarchical sparse", "hierarchical")
    if gain is not None:
        text = "Sparser factors (a_phi = 0.1) predict better than those of the paper (a_phi = 1)"
        answers.append(_better(text, gain.values.mean(), gain.error, str(gain)))
    return answers + _topics(found)


def _topics(found: dict[str, Any]) -> list[Claim]:
    """Hold factors against the HDP topic model, on one sample space: bags of words, or words."""
    answers = []
    for ours in ("hierarchical", "hierarchical sparse"):
        gain = gains(found, ours, "HDP pooled", "log_bag")
        if gain is None:
            continue
        # left-to-right estimates of the HDP are too low, so this decides nothing
        text = f"Nats by which factors ({ours}) beat the HDP's lower estimate, given lengths"
        answers.append(Claim(text, "number", str(gain)))
        words = section_values(found, "word_perplexity")
        hdp = {cell[:3]: x for cell, x in words.items() if cell[3] == "HDP pooled"}
        pairs = [(words[*cell, ours], x) for cell, x in hdp.items() if (*cell, ours) in words]
        mine, theirs = np.exp(np.log(pairs).mean(axis=0))
        text = f"Half of the words given the others: factors ({ours}) have a lower perplexity"
        answers.append(_claim(text, bool(mine < theirs), f"{mine:.0f}, HDP {theirs:.0f}"))
    return answers


def _digits(found: dict[str, Any], part: str) -> list[Claim]:
    scores = {name.split("/")[1]: f for name, f in found.items() if name.startswith(f"{part}/")}
    if "GaussianFactorAnalysis" not in scores:
        return []
    ours = scores.pop("GaussianFactorAnalysis")
    best = max(scores, key=lambda name: scores[name]["map"])
    other = scores[best]
    number = (
        f"{ours['map']:.3f}, {best}: {other['map']:.3f} (standard errors {ours['error']:.3f} "
        f"and {other['error']:.3f})"
    )
    text = "Factors retrieve better than features and principal components do, by MAP"
    answers = [
        # as if independent: an upper limit, for the queries are the same
        _better(
            text,
            ours["map"] - other["map"],
            float(np.hypot(ours["error"], other["error"])),
            number,
        ),
        Claim("Number of factors; in the paper 30 to 40, of animals", "number",
              f"{ours['factors']:.1f}"),
        Claim("Mean average precision by factors; in the paper 0.1945, of animals", "number",
              f"{ours['map']:.4f}"),
    ]  # fmt: skip
    return [claim._replace(text=f"{claim.text} ({part})") for claim in answers]
