"""Tables and pictures of the study of author-topic models."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from study.cells import of_part, session_of
from study.curves import PALETTE, Curve, Panel, draw
from study.frames import DataFrame, frame, grouped
from study.report import Table, head, write_report
from study.scores import worst_rhat

from author_topic.claims import (
    CLAIMS,
    Which,
    best_of,
    judged,
    perplexity,
    scored,
    tried,
    words_worth,
)
from author_topic.settings import (
    ALL,
    ATM,
    AUTHORS,
    GENSIM,
    HDP,
    INFERRED,
    LDA,
    NP,
    PER_TOPIC,
    SEEN_BY,
    TOMOTOPY,
    start_name,
)

__all__ = ["CLAIMS", "report"]

COLOURS: dict[str, str] = dict(zip((LDA, ATM, HDP, NP, GENSIM, TOMOTOPY),
                   (*PALETTE[:2], PALETTE[5], PALETTE[4], PALETTE[6], PALETTE[3]),
                   strict=True))  # fmt: skip
KNOWN = {AUTHORS: "authors known", ALL: "first half seen"}
LABEL = "perplexity of second halves"
Run = dict[str, Any]


def report(run: Run, output: Path) -> str:
    """Write tables and pictures beside `output`; return the tables as Markdown."""
    s = run["settings"]
    about = (
        f"{_sizes(run)}{s['size']} size, seed {s['seed']}, {s['splits']} splits, each with chains "
        f"of its own; {s['num_chains']} chains of {s['num_warmup']} + {s['num_samples']} sweeps, "
        f"of which {s['keep_states']} states each are scored. The second halves of the test "
        "documents are predicted; no part of a test document is fitted. Two conditions: LDA and "
        "the HDP see some words of the first half, or all; the author-topic models know the "
        "authors and see no word. Models of different conditions do not compete. A perplexity is "
        "that at the mean nats per token over splits; its standard error has the variance over "
        "splits and that over documents, an error of a ratio those of paired differences. The "
        "concentrations have the prior Gamma(1, 1); the articles hold them fixed. Finite models "
        "begin at random states; their scores are about these fits, whose R-hats are below."
    )
    draw([_by_words(run), _by_topics(run), _by_time(run)], output.with_suffix(".png"))
    validation = (
        "gensim's author-topic model is trained on a part of the training documents, validated on "
        "the others, and then trained on all of them for as many passes."
    )
    tables = [
        Table("Claims", "claims", judged(run)),
        Table("Perplexity of second halves", "perplexity",
              [*_scores(run, list(_fitted(run))), *_unigram_row(run)]),
        Table("Longer chains", "longer_chains", _scores(run, list(_long(run)))),
        Table("Perplexity by words seen", "perplexity_by_words_seen", _seen(run)),
        Table("Words that the authors are worth", "words_worth", _worth(run),
              "So many words LDA (or the HDP) has to see to predict as well as the author-topic "
              "model of the same K does from the authors."),
        Table("Choices of gensim's model", "gensim_choices", _choices(run), validation),
        Table("Convergence", "convergence", _convergence(run)),
        Table(f"Perplexity against time, author-topic model, K={s['curve_topics']}",
              "perplexity_against_time", _time(run),
              "The first split. Compiling is left out, and gensim's tuning."),
    ]  # fmt: skip
    return write_report(output, head(run, "Author-topic models", about), tables)


def _sizes(run: Run) -> str:
    for record in of_part(run, "fit", method="unigram"):
        return f"{', '.join(f'{x} {name}' for name, x in record['sizes'].items())}. "
    return ""


def _fitted(run: Run) -> Iterator[Which]:
    """Return what was fitted, model by model, without splits; peers as well."""
    s = run["settings"]
    wanted = [Which(m, k) for m in (LDA, ATM) for k in tried(run, m)]
    wanted += [Which(m, k, alpha=PER_TOPIC) for m in (LDA, ATM) for k in tried(run, m, PER_TOPIC)]
    wanted += [Which(m, start=start_name(n)) for m in (HDP, NP) for n in s["starts"]]
    wanted += [Which(GENSIM, k) for k in s["gensim_topics"]]
    wanted += [Which(TOMOTOPY, start=start_name(n)) for n in s["tomotopy_starts"]]
    return (which for which in wanted if which.records(run))


def _topics(run: Run, which: Which) -> float:
    """Return the mean number of topics in use."""
    return fmean(record["topics"] for record in which.records(run).values())


def _about(which: Which) -> Run:
    return {"topics_asked": which.topics, "alpha": which.alpha, "start": which.start}


def _long(run: Run) -> Iterator[Which]:
    """Return the longer chains from each of their starts."""
    asked = dict.fromkeys((r["method"], r["topics_asked"]) for r in of_part(run, "long"))
    for method, topics in asked:
        which = Which(method, topics, long=True)
        yield from (which._replace(start=start) for start in which.starts(run))


def _scores(run: Run, fitted: Sequence[Which]) -> list[Run]:
    rows = []
    for which in fitted:
        found = which.records(run).values()
        single = perplexity(which._replace(single=True).scores(run))
        seconds = [r["seconds"] for r in found if r["seconds"] is not None]
        rows.append({
            "model": which.method, "known_of_the_document": KNOWN[SEEN_BY[which.method]],
            **_about(which), **_with_error(perplexity(which.scores(run))),
            "perplexity_of_a_single_state": single and single[0],
            "topics_in_use": _topics(run, which), "worst_rhat": worst_rhat(found),
            "splits": len(found), "mean_seconds": fmean(seconds) if seconds else None,
            "cores": session_of(run, next(iter(found)))["cores"],
        })  # fmt: skip
    return rows


def _unigram_row(run: Run) -> Iterator[Run]:
    if found := _unigram(run):
        yield {"model": "unigram", **_with_error(found)}


def _unigram(run: Run) -> tuple[float, float] | None:
    found = of_part(run, "fit", method="unigram")
    docs = {r["split_seed"]: np.array(r["doc_log_prob"]) for r in found}
    return perplexity(scored(run, docs))


def _with_error(found: tuple[float, float] | None) -> Run:
    if found is None:
        return {}
    error = found[1] if math.isfinite(found[1]) else None
    return {"perplexity": found[0], "standard_error": error}


def _seen(run: Run) -> list[Run]:
    what = {AUTHORS: "its authors", ALL: "all words of its first half"}
    return [
        {
            "model": which.method, **_about(which),
            "known_of_the_document": what.get(seen, f"{seen} word{'s' * (seen != '1')}"),
            **_with_error(perplexity(which._replace(seen=seen).scores(run))),
        }
        for which in _fitted(run) if which.method in (LDA, HDP, ATM, NP)
        for seen in next(iter(which.records(run).values()))["scores"]
    ]  # fmt: skip


def _worth(run: Run) -> list[Run]:
    pairs = [(Which(ATM, k), Which(LDA, k)) for k in tried(run, ATM)]
    pairs.append((Which(NP), Which(HDP)))
    rows = []
    for authors, words in pairs:
        if (found := words_worth(run, authors, words)) is not None:
            rows.append({
                "from_authors": authors.method, "from_words": words.method,
                "topics_asked": authors.topics, "words_worth": found.value,
                "standard_error_over_splits":
                    found.error if math.isfinite(found.error) else None,
            })  # fmt: skip
    return rows


def _choices(run: Run) -> list[Run]:
    rows = []
    for record in of_part(run, "peers", method=GENSIM):
        for one in record["validation"]:
            rows.append({
                "topics": record["topics_asked"], "split": record["split_seed"],
                "eta": str(one["eta"]), "documents_per_update": one["documents_per_update"],
                "best_validation_perplexity": one["perplexity"], "after_passes": one["passes"],
                "after_seconds": one["seconds"],
                "perplexity_at_the_end": one["perplexity_at_the_end"],
                "best_at_the_end": "yes" if one["stopped_at_the_end"] else "no",
                "chosen": "yes" if one == record["chosen"] else "no",
                "test_perplexity": record["perplexity"] if one == record["chosen"] else None,
            })  # fmt: skip
    return rows


def _convergence(run: Run) -> DataFrame:
    """Summarise over the splits what is known of each label-free quantity."""
    rows = [
        {"model": which.method, **_about(which), **row}
        for which in _fitted(run) for record in which.records(run).values()
        for row in record.get("convergence", ())
    ]  # fmt: skip
    about = ("model", "topics_asked", "alpha", "start", "quantity")
    table = frame(rows, *about, "mean", "rhat", "ess_bulk")
    return grouped(table, *about).agg(
        mean=("mean", "mean"), median_rhat=("rhat", "median"), worst_rhat=("rhat", "max"),
        fewest_effective_draws=("ess_bulk", "min"), splits=("mean", "size"),
    ).reset_index()  # fmt: skip


def _curves(run: Run) -> list[tuple[str, Run]]:
    """Return curves of the first split with what is said of them, ours and then gensim's."""
    first = {"topics_asked": run["settings"]["curve_topics"], "split_seed": run["settings"]["seed"]}
    named = [
        (f"ours, {c['schedule']}, {c['chains']} chain{'s' if c['chains'] > 1 else ''}", c["curve"])
        for c in of_part(run, "curve", **first)
    ]
    gensim = of_part(run, "peers", method=GENSIM, **first)
    return [*named, *(("gensim, tuned", c["curve"]) for c in gensim)]


def _time(run: Run) -> list[Run]:
    return [
        {"system": name, "seconds": seconds, "perplexity": score}
        for name, curve in _curves(run)
        for seconds, score in zip(curve["seconds"], curve["perplexity"], strict=True)
    ]


def _band(label: str, x: Sequence[float], found: Sequence[tuple[float, float]],
          method: str, style: str = "-", markers: bool = True) -> Curve:  # fmt: skip
    """Return a curve with two standard errors to both sides."""
    y, error = np.array(found).T
    error = np.where(np.isfinite(error), error, 0.0)
    low, high = y - 2 * error, y + 2 * error
    return Curve(label, x, y.tolist(), low.tolist(), high.tolist(), style, COLOURS[method], markers)


def _lines(run: Run) -> dict[str, float]:
    found = _unigram(run)
    return {"unigram": found[0]} if found else {}


def _by_words(run: Run) -> Panel:
    """Draw both conditions over the number of words that are seen."""
    numbers = run["settings"]["words"]
    lengths = [r["words_of_a_first_half"] for r in of_part(run, "fit", method="unigram")]
    places = [max(n, 0.5) for n in numbers] + ([fmean(lengths)] if lengths else [])
    shown = [best_of(run, m) for m in (LDA, ATM)]
    which = [best.which for best in shown if best]
    curves = []
    for one in [*which, Which(HDP), Which(NP)]:
        name = f"{one.method}, K={one.topics}" if one.topics != INFERRED else one.method
        if SEEN_BY[one.method] == AUTHORS:
            if (found := perplexity(one.scores(run))) and places:
                ends = [places[0], places[-1]]
                label = f"{name}, from the authors"
                curves.append(_band(label, ends, [found] * 2, one.method, "--", False))
            continue
        x, y = [], []
        for place, seen in zip(places, [*map(str, numbers), ALL], strict=False):
            if found := perplexity(one._replace(seen=seen).scores(run)):
                x.append(place)
                y.append(found)
        if x:
            curves.append(_band(f"{name}, from the words", x, y, one.method))
    ticks = dict(zip(places, [*map(str, numbers), "all"], strict=False))
    title = "Band: two standard errors (splits, documents)"
    return Panel(title, "words seen of a document", LABEL, curves, _lines(run), True, ticks)


def _by_topics(run: Run) -> Panel:
    """Draw perplexity by the number of topics in use; each condition has colours of its own."""
    by: dict[tuple[str, str | None], list[Any]] = {}
    for which in _fitted(run):
        about = which.start if which.topics == INFERRED else which.alpha
        point = _topics(run, which), perplexity(which.scores(run))
        by.setdefault((which.method, about), []).append(point)
    curves = []
    for (method, about), points in by.items():
        x, y = zip(*sorted(points), strict=True)
        alpha = ", alpha for each topic" if about == PER_TOPIC else ""
        label = f"{method}{alpha}, {KNOWN[SEEN_BY[method]]}"
        curves.append(_band(label, x, y, method, ":" if about == PER_TOPIC else "-"))
    ticks = {k: str(k) for k in run["settings"]["topics"]}
    title = "Band: two standard errors (splits, documents)"
    return Panel(title, "topics in use", LABEL, curves, _lines(run), True, ticks)


def _by_time(run: Run) -> Panel:
    """Draw perplexity against time in the first split."""
    styles = {ATM: itertools.cycle(("-", "--", ":")), GENSIM: itertools.cycle("-")}
    curves = []
    for name, curve in _curves(run):
        side = ATM if name.startswith("ours") else GENSIM
        x, y = curve["seconds"], curve["perplexity"]
        curves.append(Curve(name, x, y, style=next(styles[side]), colour=COLOURS[side]))
    title = f"Author-topic model, K={run['settings']['curve_topics']}; first split"
    return Panel(title, "seconds, compiling left out", LABEL, curves, _lines(run), log_x=True)
