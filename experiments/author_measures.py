"""What the study of author-topic models measures: documents, fits and scores on the way."""

import shutil
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from benchmarks.bags import synthetic, to_corpus
from study.chains import OurChains
from study.scores import convergence, kept, unigram, worst_rhat
from study.splits import Halves, first_words, present_authors
from study.timing import until

import bnp_models as bnp
from bnp_models.data.readers import read_npz
from bnp_models.posterior.mixtures import AuthorMixture, author_states
from bnp_models.scores.held_out import document_completion, known_authors

__all__ = ["curve", "fit", "load", "of_prolific_authors", "one_word_distribution", "words"]


def load(settings: Any, folder: str | None) -> Any:
    """Read papers of NIPS, or simulate some documents where there is no folder."""
    if folder is None:
        sizes = {"num_docs": settings.num_docs, "num_words": 30, "num_topics": 4, "length": 25}
        return present_authors(to_corpus(synthetic(settings.seed, **sizes)))
    corpus = read_npz(Path(folder) / "nips12.npz")
    if settings.num_docs is not None:
        corpus = corpus.select(of_prolific_authors(corpus, settings.num_docs))
    return present_authors(corpus.prune(min_count=settings.min_count))


def of_prolific_authors(corpus: Any, num_docs: int) -> np.ndarray:
    """Return the documents of as many of the most prolific authors as fit.

    A random choice of documents would leave nearly every author with one of them. Then a model of
    authors has nothing that a model of documents does not have.
    """
    doc = np.repeat(np.arange(corpus.num_docs), np.diff(corpus.author_ptr))
    chosen = np.zeros(corpus.num_docs, bool)
    for author in np.argsort(-np.bincount(corpus.author_idx), kind="stable"):
        more = chosen.copy()
        more[doc[np.asarray(corpus.author_idx) == author]] = True
        if more.sum() > num_docs:
            break
        chosen = more
    return np.flatnonzero(chosen)


def fit(
    name: str, topics: int | None, first: int, settings: Any, data: Halves, folder: Path
) -> dict[str, Any]:
    """Fit a model to everything but the second halves, and predict these.

    An infinite model (`topics` None) starts with `first` topics. In `folder` are checkpoints: an
    interrupted fit goes on where it was.
    """
    found, seconds = _run(name, topics, first, settings, data.together, folder)
    if isinstance(found, bnp.AuthorFit):
        score = found.known_authors(data.heldout)
    else:
        score = document_completion(found.mixtures, data.observed, data.heldout)
    used = found.posterior["num_topics_used"]
    return {
        **kept(score, settings.num_chains),
        "seconds": seconds,
        "topics": float(used.mean()),
        "topics_by_chain": used.mean("draw").to_numpy().tolist(),
        "convergence": (rows := convergence(found)),
        "worst_rhat": worst_rhat([{"convergence": rows}]),
    }


def words(name: str, settings: Any, data: Halves, folder: Path) -> dict[str, Any]:
    """Fit to the training documents alone; predict second halves from so many words of the first.

    The author-topic model predicts from the authors, so it needs no words. (With shares that many
    documents have taught it, a few words more would hardly change them.)
    """
    found, seconds = _run(name, settings.words_topics, 0, settings, data.train, folder)
    scores = {}
    if isinstance(found, bnp.AuthorFit):
        scores["authors"] = found.known_authors(data.heldout)
    else:
        for number in settings.words:
            if number:
                seen = first_words(data.observed, number, settings.seed)
                score = document_completion(found.mixtures, seen, data.heldout)
            else:
                score = nothing_known(found, data.heldout)
            scores[str(number)] = score
    scores = {seen: kept(score, settings.num_chains) for seen, score in scores.items()}
    return {"scores": scores, "seconds": seconds, "convergence": convergence(found)}


def curve(schedule: str, num_chains: int, settings: Any, data: Halves) -> dict[str, Any]:
    """Score the author-topic model at points in time, by all chains as they are then."""
    model = _model("AuthorTopicModel", settings.curve_topics, settings)
    keys = jax.random.key(settings.seed)
    keys = jax.random.split(keys, num_chains) if num_chains > 1 else keys[None]
    # the sizes of a fit, so that they share what is compiled
    sizes = {"num_warmup": settings.num_warmup, "num_samples": settings.num_samples}
    chains = OurChains(model, data.together, keys, schedule=schedule, **sizes)

    def look() -> dict[str, Any]:
        states = author_states(model, chains.states(), data.together)
        score = known_authors(states, data.heldout)
        print(f"    sweep {chains.sweeps}: perplexity {score.perplexity:.1f}", flush=True)
        return {"scores": kept(score, num_chains)}

    found = until(chains, look, settings.curve_seconds, settings.curve_points)
    return {**found, "compile_seconds": chains.compile_seconds}


def one_word_distribution(fitted: Any, settings: Any, data: Halves) -> dict[str, Any]:
    """Score second halves by the words of everything that is fitted."""
    counts = np.asarray(fitted.to_counts().sum(axis=0))
    return unigram(counts, data.heldout.to_counts(), settings.beta)


def nothing_known(found: Any, heldout: Any) -> Any:
    """Score documents by the topics' prior shares, as if these were the shares of every author."""

    def states():
        for mixture in found.mixtures:
            shares = np.reshape(mixture.weights, (1, -1)) / mixture.weights.sum()
            shares = np.repeat(shares, heldout.num_authors, axis=0)
            yield AuthorMixture(mixture, shares, heldout.author_names)

    return known_authors(states(), heldout)


def _model(name: str, topics: int | None, settings: Any) -> Any:
    """Configure a model; where `topics` is None their number is inferred."""
    alpha = dist.Gamma(1.0, 1.0) if settings.sampled else 1.0
    made = getattr(bnp, name)
    if topics is not None:
        return made(topics, alpha=alpha, beta=settings.beta)
    return made(alpha=alpha, gamma=alpha, beta=settings.beta, max_topics=settings.max_topics)


def _run(
    name: str, topics: int | None, first: int, settings: Any, corpus: Any, folder: Path
) -> tuple[Any, float | None]:
    """Fit; the time is None if it went on from a checkpoint."""
    options: dict[str, Any] = {} if settings.schedule is None else {"schedule": settings.schedule}
    if topics is None:
        options["init_topics"] = first
    clock = time.perf_counter()
    with warnings.catch_warnings():
        # without the test documents some authors have none
        warnings.filterwarnings("ignore", ".*authors have no document", UserWarning)
        found = bnp.fit(
            _model(name, topics, settings), corpus, num_warmup=settings.num_warmup,
            num_samples=settings.num_samples, num_chains=settings.num_chains,
            keep_states=settings.keep_states, seed=settings.seed, checkpoint=folder,
            progress=sys.stderr.isatty(), **options,
        )  # fmt: skip
    if found.posterior.sizes["draw"] < settings.num_samples:
        raise KeyboardInterrupt  # `fit` returned what it had; its checkpoint stays
    seconds = time.perf_counter() - clock
    shutil.rmtree(folder)
    return found, None if found.data.attrs["start_sweep"] else seconds
