"""What the study of author-topic models measures: documents, fits and scores."""

import contextlib
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from benchmarks.bags import Bag, synthetic, to_corpus
from benchmarks.measures import pad
from benchmarks.systems import make
from study.chains import OurChains
from study.peers import tuned_gensim
from study.scores import about_fits, convergence, kept, unigram
from study.splits import Halves, first_words, present_authors
from study.timing import until

import bnp_models as bnp
from author_topic.settings import ALL, AUTHORS, Settings
from bnp_models.base.model import Model
from bnp_models.data.readers import read_npz
from bnp_models.posterior.mixtures import AuthorMixture, author_states
from bnp_models.scores.held_out import document_completion, known_authors

__all__ = [
    "all_words_possible", "authors_alone", "curve", "fit", "gensim", "load", "nothing_known",
    "of_prolific_authors", "one_word_distribution", "tomotopy_hdp",
]  # fmt: skip


def load(settings: Settings, folder: str | None) -> Any:
    """Read papers of NIPS, or simulate some documents where there is no folder."""
    if folder is None:
        sizes = {"num_docs": settings.num_docs, "num_words": 30, "num_topics": 4, "length": 25}
        return present_authors(to_corpus(synthetic(settings.seed, **sizes)))
    corpus = read_npz(Path(folder) / "nips12.npz")
    if settings.num_docs is not None:
        corpus = corpus.select(of_prolific_authors(corpus, settings.num_docs))
    return present_authors(corpus.prune(min_count=settings.min_count))


def of_prolific_authors(corpus: bnp.Corpus, num_docs: int) -> np.ndarray:
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
    data: Halves, *, name: str, topics: int | None, first: int = 0, per_topic: bool = False,
    settings: Settings, seed: int, folder: Path,
) -> dict[str, Any]:  # fmt: skip
    """Fit a model to the training documents, and predict the second halves of the test documents.

    Parameters
    ----------
    topics
        None: their number is inferred.
    first
        Topics at the start of the chains; 0: the usual start of a finite model.
    per_topic
        Give each topic an alpha of its own.
    folder
        For checkpoints: an interrupted fit goes on where it was.
    """
    found, seconds = _run(
        _model(name, topics, per_topic, settings), first or None, data.train, settings, seed,
        folder,
    )  # fmt: skip
    clock = time.perf_counter()
    scores = _scores(found, data, settings, seed)
    used = found.posterior["num_topics_used"]
    return {
        "scores": scores,
        "perplexity": next(reversed(scores.values()))["perplexity"],
        "topics": float(used.mean()),
        "topics_by_chain": used.mean("draw").to_numpy().tolist(),
        "convergence": convergence(found),
        **about_fits(found),
        "seconds": seconds,
        "score_seconds": time.perf_counter() - clock,
    }


def _scores(found: bnp.TopicFit, data: Halves, settings: Settings, seed: int) -> dict[str, Any]:
    """Predict from the authors, or from some of the words of the first halves and then all."""
    if isinstance(found, bnp.AuthorFit):
        scores = {AUTHORS: found.known_authors(data.heldout)}
    else:
        seen = {str(n): first_words(data.observed, n, seed) for n in settings.words if n}
        scores = {"0": nothing_known(found, data.heldout)} if 0 in settings.words else {}
        for number, words in (seen | {ALL: data.observed}).items():
            scores[number] = document_completion(found.mixtures, words, data.heldout, seed=seed)
    chains = settings.num_chains
    return {known: kept(score, chains) for known, score in scores.items()}


def authors_alone(
    data: Halves, *, signed_first: bool, settings: Settings, seed: int
) -> dict[str, Any]:
    """Fit the model of authors without topics, and predict the second halves from the authors.

    Each author has a distribution over words, and each token one of the authors of its document.
    With `signed_first` the chains begin with all tokens at the first author. It is the author-topic
    model in which each author has one topic that is the author's own.
    """
    train, warmup = data.train, settings.num_warmup
    ptr, doc, word = (np.asarray(x) for x in (train.author_ptr, train.doc, train.word))
    place = ptr[doc][:, None] + np.arange(np.diff(ptr).max())
    there = place < ptr[doc + 1][:, None]
    authors = np.asarray(train.author_idx)[np.where(there, place, ptr[doc][:, None])]  # [N, most]
    shape = train.num_authors, train.num_words
    kept_counts = []
    for chain in range(settings.num_chains):
        rng = np.random.default_rng([seed, chain, int(signed_first)])
        begin = 0 if signed_first else rng.integers(there.sum(axis=1))
        author = authors[np.arange(len(doc)), begin]
        every = max(settings.num_samples // settings.keep_states, 1)
        for sweep in range(1, warmup + settings.num_samples + 1):
            counts = np.bincount(author * shape[1] + word, minlength=shape[0] * shape[1])
            counts = counts.reshape(shape).astype(np.float32)
            phi = rng.standard_gamma(counts + np.float32(settings.beta), dtype=np.float32)
            phi /= phi.sum(axis=1, keepdims=True)
            below = np.cumsum(np.where(there, phi[authors, word[:, None]], 0.0), axis=1)
            drawn = rng.random(len(doc)) * below[:, -1]
            author = authors[np.arange(len(doc)), (below <= drawn[:, None]).sum(axis=1)]
            if sweep > warmup and (sweep - warmup) % every == 0:
                kept_counts.append(counts)

    def states() -> Iterator[AuthorMixture]:
        for counts in kept_counts:
            phi = counts + settings.beta
            mixture = pad((phi / phi.sum(axis=1, keepdims=True)).T, np.ones(shape[0]))
            theta = np.eye(shape[0], mixture.phi.shape[2], dtype=np.float32)
            yield AuthorMixture(mixture, theta, train.author_names)

    score = known_authors(states(), data.heldout)
    return {
        "scores": {AUTHORS: kept(score, settings.num_chains)}, "perplexity": score.perplexity,
        "topics": float(shape[0]), "seconds": None,
    }  # fmt: skip


def nothing_known(found: bnp.TopicFit, heldout: bnp.Corpus) -> Any:
    """Score documents by the topics' prior shares, as if these were the shares of every author."""

    def states() -> Iterator[AuthorMixture]:
        for mixture in found.mixtures:
            shares = np.reshape(mixture.weights, (1, -1)) / mixture.weights.sum()
            shares = np.repeat(shares, heldout.num_authors, axis=0)
            yield AuthorMixture(mixture, shares, heldout.author_names)

    return known_authors(states(), heldout)


def one_word_distribution(data: Halves, *, settings: Settings, seed: int) -> dict[str, Any]:
    """Score second halves by the words of the training documents; also describe the split."""
    train, heldout = data.train, data.heldout
    counts = np.asarray(train.to_counts().sum(axis=0))
    signed = len(np.unique(train.author_idx))
    return {
        **unigram(counts, heldout.to_counts(), settings.beta),
        "doc_tokens": np.asarray(heldout.doc_length).tolist(),
        "words_of_a_first_half": float(np.mean(data.observed.doc_length)),
        "sizes": {
            "training documents": train.num_docs,
            "test documents": heldout.num_docs,
            "training tokens": train.num_tokens,
            "predicted tokens": heldout.num_tokens,
            "words": train.num_words,
            "authors": train.num_authors,
            "authors without a training document": train.num_authors - signed,
        },
        "digest": train.digest,
    }


def curve(
    data: Halves, *, schedule: str, chains: int, settings: Settings, seed: int
) -> dict[str, Any]:
    """Score the author-topic model at points in time, by all chains as they are then."""
    model = _model("AuthorTopicModel", settings.curve_topics, False, settings)
    keys = jax.random.split(jax.random.key(seed), chains)
    # the sizes of a fit, so that they share what is compiled
    sizes: dict[str, Any] = {"num_warmup": settings.num_warmup, "num_samples": settings.num_samples}
    with _strangers():
        ours = OurChains(model, data.train, keys, schedule=schedule, **sizes)
    last: list[Any] = []

    def look() -> dict[str, Any]:
        with _strangers():
            states = author_states(model, ours.states(), data.train)
            last[:] = [known_authors(states, data.heldout)]
        print(f"    sweep {ours.sweeps}: perplexity {last[0].perplexity:.1f}", flush=True)
        return {"perplexity": last[0].perplexity}

    found = until(ours, look, settings.curve_seconds, settings.curve_points)
    return {
        "curve": found,
        "scores": {AUTHORS: kept(last[0], chains)},
        "compile_seconds": ours.compile_seconds,
    }


def gensim(data: Halves, *, topics: int, settings: Settings, seed: int) -> dict[str, Any]:
    """Tune and train gensim's author-topic model."""
    s = settings
    return tuned_gensim(
        data.train, data.heldout, topics=topics, etas=s.etas, chunks=s.chunks,
        validation_share=s.validation_share, seconds=s.tune_seconds, points=s.tune_points,
        seed=seed,
    )  # fmt: skip


def tomotopy_hdp(data: Halves, *, first: int, settings: Settings, seed: int) -> dict[str, Any]:
    """Train tomotopy's HDP with its optimisation of hyperparameters; score its last state.

    It makes as many sweeps as our fits, and is scored as one state of ours is.
    """
    spec = {
        "library": "tomotopy", "model": "HDP", "optimise": True, "workers": settings.cores,
        "topics": first, "alpha": 0.1, "gamma": 1.0, "beta": settings.beta,
    }  # fmt: skip
    train = data.train
    bag = Bag(np.asarray(train.doc), np.asarray(train.word), train.num_docs, train.num_words)
    made = make(spec, bag, seed)
    seconds = made.advance(sweeps := settings.num_warmup + settings.num_samples)
    ((phi, weights),) = made.mixtures()
    state = pad(all_words_possible(phi), weights)
    score = document_completion(state, data.observed, data.heldout, seed=seed)
    return {
        "scores": {ALL: kept(score, 1)},
        "perplexity": score.perplexity,
        "topics": made.topics()[0],
        "seconds": seconds,
        "sweeps": sweeps,
    }


def all_words_possible(phi: np.ndarray) -> np.ndarray:
    """Give a word without a training token the share of the rarest word in each topic [V, K].

    tomotopy leaves such words out, so that their probability is zero.
    """
    known = phi.any(axis=1, keepdims=True)
    least = np.where(known, phi, np.inf).min(axis=0)
    phi = np.where(known, phi, least)
    return phi / phi.sum(axis=0)


def _model(name: str, topics: int | None, per_topic: bool, settings: Settings) -> Any:
    """Configure a model; where `topics` is None their number is inferred."""
    prior = dist.Gamma(1.0, 1.0)
    alpha = prior if settings.sampled else 1.0
    made = getattr(bnp, name)
    if topics is None:
        return made(alpha=alpha, gamma=alpha, beta=settings.beta, max_topics=settings.max_topics)
    if per_topic:
        alpha = prior.expand([topics])
    return made(topics, alpha=alpha, beta=settings.beta)


def _run(
    model: Model, first: int | None, corpus: bnp.Corpus, settings: Settings, seed: int, folder: Path
) -> tuple[Any, float | None]:
    """Fit; the time, compiling left out, is None if it went on from a checkpoint."""
    options: dict[str, Any] = {} if settings.schedule is None else {"schedule": settings.schedule}
    if first is not None:
        options["init_topics"] = first
    with _strangers():
        found = bnp.fit(
            model, corpus, num_warmup=settings.num_warmup, num_samples=settings.num_samples,
            num_chains=settings.num_chains, keep_states=settings.keep_states, seed=seed,
            checkpoint=folder, progress=sys.stderr.isatty(), **options,
        )  # fmt: skip
    if found.posterior.sizes["draw"] < settings.num_samples:
        raise KeyboardInterrupt  # `fit` returned what it had; its checkpoint stays
    shutil.rmtree(folder)
    attrs = found.data.attrs
    if attrs["start_sweep"]:
        return found, None
    return found, float(attrs["sampling_seconds"]) - float(attrs["compile_seconds"])


@contextlib.contextmanager
def _strangers() -> Iterator[None]:
    """Accept authors of test documents who have no training document."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*authors have no document", UserWarning)
        yield
