"""Fits with their held-out scores, and the scores on the way there."""

import json
import math
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import corpora
from .chains import author_mixtures, start
from .corpora import Split
from .settings import Settings

__all__ = ["curve", "fit", "make_model", "score_record", "words"]


def make_model(name: str, topics: int | None, settings: Settings) -> Any:
    """Configure a model; `topics` is ignored where their number is inferred."""
    import numpyro.distributions as dist

    import bnp_models as bnp

    alpha = dist.Gamma(1.0, 1.0) if settings.sampled else 1.0
    made = getattr(bnp, name)
    if made.slots is None:
        return made(topics, alpha=alpha, beta=settings.beta)
    return made(alpha=alpha, gamma=alpha, beta=settings.beta, max_topics=settings.max_topics)


def fit(name: str, topics: int | None, settings: Settings, data: Split, folder: Path) -> Any:
    """Fit a model to everything but the second halves, and predict these.

    `folder` is for checkpoints: an interrupted fit goes on where it was.
    """
    found, seconds = _run(name, topics, settings, data.together, folder)
    if hasattr(found.model, "author_mixtures"):
        score = found.known_authors(data.heldout)
    else:
        from bnp_models.scores.held_out import document_completion

        score = document_completion(found.mixtures, data.observed, data.heldout)
    posterior = found.posterior
    topics_used = posterior["num_topics_used"]
    table = found.convergence().table
    return {
        **score_record(score),
        "seconds": seconds,
        "topics": float(topics_used.mean()),
        "topics_by_chain": topics_used.mean("draw").to_numpy().tolist(),
        "convergence": json.loads(table.reset_index().to_json(orient="records")),
    }


def words(name: str, topics: int, settings: Settings, data: Split, folder: Path) -> Any:
    """Fit to the training documents alone; predict second halves from so many words of the first.

    The author-topic model predicts from the authors, so it needs no words. (With shares that many
    documents have taught it, a few words more would hardly change them.)
    """
    found, seconds = _run(name, topics, settings, data.train, folder)
    scores = {}
    if hasattr(found.model, "author_mixtures"):
        scores["authors"] = score_record(found.known_authors(data.heldout))
    else:
        from bnp_models.scores.held_out import document_completion

        for number in settings.words:
            if number == 0:
                score = _nothing_known(found, data.heldout)
            else:
                seen = corpora.first_words(data.observed, number, settings.seed)
                score = document_completion(found.mixtures, seen, data.heldout)
            scores[str(number)] = score_record(score)
    return {"scores": scores, "seconds": seconds}


def curve(
    schedule: str, num_chains: int, settings: Settings, data: Split, say: Callable[[str], None]
) -> Any:
    """Score the author-topic model at points in time, by all chains as they are then."""
    from bnp_models.scores.held_out import known_authors

    model = make_model("AuthorTopicModel", settings.curve_topics, settings)
    chains = start(model, data.together, settings, num_chains, schedule=schedule)
    wanted = list(np.geomspace(settings.curve_seconds / 256, settings.curve_seconds,
                               settings.curve_points))  # fmt: skip
    clock, sweeps = 0.0, 0
    found: dict[str, list[Any]] = {"seconds": [], "sweeps": [], "scores": []}
    while wanted:
        more = int(np.clip((wanted[0] - clock) * sweeps / clock, 1, 500)) if clock else 1
        clock += chains.advance(more)
        sweeps += more
        if clock >= 0.98 * wanted[0]:
            states = author_mixtures(chains, model, data.together)
            found["scores"].append(score_record(known_authors(states, data.heldout)))
            found["seconds"].append(clock)
            found["sweeps"].append(sweeps)
            wanted = [t for t in wanted if 0.98 * t > clock]
            say(f"{clock:.1f} s: perplexity {found['scores'][-1]['perplexity']:.1f}")
    return {**found, "compile_seconds": chains.compile_seconds}


def score_record(score: Any) -> dict[str, Any]:
    """Return a score as JSON takes it, by document so that scores can be compared in pairs."""
    errors = {n: getattr(score, f"error_{n}") for n in ("docs", "chains", "states")}
    return {
        "perplexity": score.perplexity,
        "log_prob": score.log_prob,
        **{f"error_{n}": None if math.isnan(x) else x for n, x in errors.items()},
        "doc_log_prob": np.round(score.doc_log_prob, 2).tolist(),
    }


def _run(
    name: str, topics: int | None, settings: Settings, corpus: Any, folder: Path
) -> tuple[Any, float | None]:
    """Fit; the time is None if it went on from a checkpoint."""
    import bnp_models as bnp

    model = make_model(name, topics, settings)
    options: dict[str, Any] = {} if settings.schedule is None else {"schedule": settings.schedule}
    if model.slots is not None:
        options["init_topics"] = settings.init_topics
    clock = time.perf_counter()
    with warnings.catch_warnings():
        # without the test documents some authors have none
        warnings.filterwarnings("ignore", ".*authors have no document", UserWarning)
        found = bnp.fit(
            model, corpus, num_warmup=settings.num_warmup, num_samples=settings.num_samples,
            num_chains=settings.num_chains, keep_states=settings.keep_states, seed=settings.seed,
            progress=sys.stderr.isatty(), checkpoint=folder, **options,
        )  # fmt: skip
    if found.posterior.sizes["draw"] < settings.num_samples:
        raise KeyboardInterrupt  # `fit` returned what it had; its checkpoint stays
    seconds = time.perf_counter() - clock
    shutil.rmtree(folder)
    return found, None if found.data.attrs["start_sweep"] else seconds


def _nothing_known(found: Any, heldout: Any) -> Any:
    """Score documents by the topics' prior shares, as if these were the shares of every author."""
    from bnp_models.posterior.mixtures import AuthorMixture
    from bnp_models.scores.held_out import known_authors

    def states():
        for mixture in found.mixtures:
            shares = mixture.weights / mixture.weights.sum()
            yield AuthorMixture(
                mixture, np.repeat(shares, heldout.num_authors, axis=0), heldout.author_names
            )

    return known_authors(states(), heldout)
