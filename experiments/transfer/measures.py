"""What the study of transfer measures, and the contestants: how each is built and fitted.

That is scores of new documents, shared topics, and speed.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Float
from study.chains import tokens_per_second
from study.compiling import compiled_seconds
from study.scores import about_fits, draws_of

import bnp_models as bnp
from bnp_kernels.tokens.layout import group_of
from bnp_kernels.tokens.tally import tally
from bnp_models.posterior.mixtures import one_by_one
from transfer.data import Problem
from transfer.settings import (
    ALONE,
    CHANGES,
    DENSER,
    MULTI_TASK,
    SPARSE,
    TAYLOR,
    TEXT,
    TRUTH,
    WEAK,
    Fits,
    Settings,
)

__all__ = [
    "METHODS", "SCORES", "Law", "Truth", "fit_and_score", "law_of", "model_of", "recovery_of",
    "scored", "sharing_of", "speeds", "timed_model",
]  # fmt: skip

COMPLETION, EMPIRICAL = "document_completion", "empirical_likelihood"
SCORES = (EMPIRICAL, COMPLETION)
"""The paper's score, and the better estimate."""

SCHEDULE = "sequential"  # of all methods: the same sweeps, token by token


# ---- contestants


class Law(NamedTuple):
    """Hyperparameters that differ between made-up documents and text."""

    beta: float  # concentration of the topics, per word
    epsilon: float  # probability that the mask leaves a topic on


def law_of(part: str) -> Law:
    """Return the hyperparameters of a part of the study, as the paper has them."""
    return Law(0.5, 1e-4) if part in TEXT else Law(5e-5, 0.01)


# Teh, Jordan, Beal and Blei (2006), whom the paper follows for the HDP; shape and rate
HDP = {"alpha": (0.1, 0.1), "gamma": (5.0, 0.1)}
GROUPS = {"group_alpha": (5.0, 0.1)}


def _hdp(law: Law) -> dict[str, Any]:
    return {name: dist.Gamma(*ab) for name, ab in HDP.items()} | {"beta": law.beta}


def _multi_task(law: Law) -> dict[str, Any]:
    return {name: dist.Gamma(*ab) for name, ab in GROUPS.items()} | _hdp(law)


def _sparse(law: Law) -> dict[str, Any]:
    strength = {"strength_shape": 5.0, "strength_scale": 0.1}
    return {"alpha": 5.0, "epsilon": law.epsilon, **strength, "beta": law.beta}


class Truth(NamedTuple):
    """What made-up documents were drawn from."""

    phi: Float[np.ndarray, "K V"]
    counts: Float[np.ndarray, "C K"]  # parameters of the Dirichlet laws of the tasks


class _BegunSampler(bnp.SparseTransferTopicModel.sampler_type):
    """The usual sampler with another first state: planted topics, and who has them."""

    def init(self, rng_key: Any, data: Any, argument: Any) -> Any:
        """Draw the topic of each token from the mean shares of its task and the planted topics."""
        state, (phi, counts) = super().init(rng_key, data, argument), self.model.truth
        group = group_of(data)
        log_weight = jnp.log(counts)[group[data.doc]] + jnp.log(phi.T)[data.word]
        z = jax.random.categorical(rng_key, log_weight, axis=1).astype(state.z.dtype)
        z = jnp.where(data.shards.are_tokens(len(z)), z, 0)
        num_docs, (num_words, num_topics) = len(state.doc_topic), state.word_topic.shape
        doc_topic, word_topic, topic = tally(
            z, data.doc, data.word, num_docs, num_words, num_topics, data.shards
        )
        of_groups = jnp.zeros_like(state.group_topic).at[group].add(doc_topic)
        on = jnp.zeros(of_groups.shape, bool).at[:, : counts.shape[1]].set(counts > 0)
        on = on & (topic > 0) | (of_groups > 0)
        mean = state.strength_shape * state.strength_scale
        return state._replace(
            z=z, doc_topic=doc_topic, group_topic=of_groups, word_topic=word_topic, topic=topic,
            stick=on.sum(axis=0) / jnp.float32(1 + len(on)),
            strength=jnp.where(on.any(axis=0), mean, 0.0),
            group_strength=jnp.where(on, mean, 0.0),
        )  # fmt: skip


class _Begun(bnp.SparseTransferTopicModel):
    """The model, with chains that begin at the truth."""

    truth: ClassVar[Any] = None
    sampler_type = _BegunSampler


class Method(NamedTuple):
    """A model of `bnp_models`, its hyperparameters, and options of `fit`."""

    model: str
    hyperparameters: Callable[[Law], dict[str, Any]]
    options: Mapping[str, Any] = {}
    alone: bool = False  # fitted to the task of interest, without the other tasks
    changed: Mapping[str, Any] = {}  # hyperparameters that are not the paper's


METHODS = {
    SPARSE: Method("SparseTransferTopicModel", _sparse),
    TAYLOR: Method("SparseTransferTopicModel", _sparse, {"approximation": "taylor"}),
    MULTI_TASK: Method("MultiTaskHDPLDA", _multi_task),
    ALONE: Method("HDPLDA", _hdp, alone=True),
}
METHODS |= {
    name: METHODS[of]._replace(changed=changed)
    for name, (of, changed) in (CHANGES | DENSER).items()
}


def model_of(name: str, law: Law, max_topics: int, truth: Truth | None = None) -> Any:
    """Configure the model of a method; with the `truth` its chains begin there."""
    method = METHODS[name]
    values = {**method.hyperparameters(law), **method.changed, "max_topics": max_topics}
    if truth is None:
        return getattr(bnp, method.model)(**values)
    model = _Begun(**values)
    object.__setattr__(model, "truth", truth)
    return model


def timed_model(name: str, beta: float, max_topics: int) -> Any:
    """Configure a model whose speed is measured: with the library's own priors of the HDPs.

    Those of the paper ask for several times as many slots, in numbers that differ between models.
    """
    method = METHODS[name]
    values = method.hyperparameters(Law(beta, law_of("nips").epsilon))
    numbers = {name: value for name, value in values.items() if isinstance(value, float)}
    return getattr(bnp, method.model)(**numbers, max_topics=max_topics)


def own_documents(corpus: bnp.Corpus, interest: str) -> Any:
    """Return the documents of the task of interest."""
    return corpus.select(np.asarray(corpus.group) == corpus.group_names.index(interest))


# ---- what is measured


def fit_and_score(
    documents: Problem | tuple[Any, Any], method: str, *, part: str, interest: str, fits: Fits,
    seed: int, empirical_draws: int, start: int | str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fit a method and score new documents of the task of interest.

    Parameters
    ----------
    documents
        Those to fit, of all tasks, and new ones of the task of interest; then the truth, if known.
    method
        One of `METHODS`.
    part
        Of the study; it says which hyperparameters are used.
    interest
        Name of the task of interest.
    fits
        The `Fits` of the part: numbers of sweeps, chains, states and slots.
    seed
        Of chains, halves of documents, and scores.
    empirical_draws
        `num_draws` of the empirical likelihood.
    start
        Topics at the start of the chains; None: the default; `TRUTH`: the planted ones.
    """
    train, test, *truth = documents
    multi_task = METHODS[method].model == METHODS[MULTI_TASK].model
    slots = fits.hdp_topics if multi_task else fits.max_topics
    planted = Truth(*truth) if start == TRUTH else None
    model = model_of(method, law_of(part), slots, planted)
    options = {"schedule": SCHEDULE, **METHODS[method].options}
    options |= {"init_topics": start} if isinstance(start, int) else {}
    corpus = own_documents(train, interest) if METHODS[method].alone else train
    before = compiled_seconds()
    found: Any = bnp.fit(
        model, corpus, num_warmup=fits.num_warmup, num_samples=fits.num_samples,
        num_chains=fits.num_chains, keep_states=fits.keep_states, seed=seed, progress=False,
        **options,
    )  # fmt: skip
    compiled = compiled_seconds() - before
    if found.posterior.sizes["draw"] < fits.num_samples:
        raise KeyboardInterrupt  # `fit` returned what it had
    clock = time.perf_counter()
    scores = {name: scored(found, test, name, seed, empirical_draws) for name in SCORES}
    used = found.posterior["num_topics_used"]
    said = ", ".join(f"{name} {score['log_prob']:.3f}" for name, score in scores.items())
    return {
        "scores": scores,
        "topics": float(used.mean()),
        "most_topics": int(used.max()),
        **about_fits(found),
        "train_documents": corpus.num_docs,
        "train_tokens": corpus.num_tokens,
        "compiled": compiled > 0,
        "score_seconds": time.perf_counter() - clock,
        **({"recovery": recovery_of(found, *truth)} if truth else {}),
        **({"sharing": sharing_of(found)} if part == "nips" and not METHODS[method].alone else {}),
        "summary": f"{said}; {float(used.mean()):.0f} topics",
    }


def scored(
    found: bnp.TopicFit, test: bnp.Corpus, name: str, seed: int, draws: int
) -> dict[str, Any]:
    """Score new documents."""
    if name == EMPIRICAL:
        with warnings.catch_warnings():
            # that few draws count for a long document; how many is kept, and the report says it
            warnings.filterwarnings("ignore", ".*empirical likelihood rests on", UserWarning)
            score = found.empirical_likelihood(test, num_draws=draws, seed=seed)
        more = {"effective_draws": float(score.effective_draws)}
    else:
        score = found.document_completion(test, split_seed=seed, seed=seed)
        more = {}
    return {
        "log_prob": float(score.log_prob),
        **more,
        "num_tokens": int(score.num_tokens),
        "error_docs": None if np.isnan(score.error_docs) else float(score.error_docs),
        "draws": draws_of(score, len(score.chain_log_prob)),
    }


def recovery_of(
    found: bnp.TopicFit, phi: Float[np.ndarray, "K V"], counts: Float[np.ndarray, "C K"]
) -> dict[str, Any]:
    """Say how well the planted topics of the task of interest, the first one, are found.

    Of each planted topic: its `share` of the task, and its likeness with the topic of a state that
    is most like it (Bhattacharyya coefficient, 1: the same), averaged over states. `draws` has the
    mean likeness of those with a share below `WEAK` in each state, chains by states.
    """
    share = counts[0] / counts[0].sum()
    planted = np.flatnonzero(share)
    root = np.sqrt(phi[planted])
    alike = np.array([
        (root @ np.sqrt(state.phi[0, 0])).max(axis=1) for state in one_by_one(found.mixtures)
    ])  # fmt: skip
    weak = share[planted] < WEAK
    draws = alike[:, weak].mean(axis=1) if weak.any() else np.zeros(0)
    return {
        "share": np.round(share[planted], 3).tolist(),
        "likeness": np.round(alike.mean(axis=0), 3).tolist(),
        "draws": np.round(draws, 3).reshape(found.posterior.sizes["chain"], -1).tolist(),
    }


def sharing_of(found: bnp.GroupFit, top: int = 10) -> dict[str, Any]:
    """Say which topic is the strongest of each task, and which topics all tasks share.

    Of the latter those with the largest and the smallest share of the tokens, in the task that has
    the least of it, are kept with their words.
    """
    words, table = found.topics(num_words=top)["words"], found.sharing()
    share = table.pivot(index="topic", columns="group", values="share")
    common = found.shared_topics().query("kind == 'common'").index
    order = share.loc[common].min(axis=1).sort_values(ascending=False).index

    def described(topic: Any) -> dict[str, Any]:
        shares = {str(name): float(x) for name, x in share.loc[topic].items()}
        return {"topic": int(topic), "words": str(words[topic]), "shares": shares}

    strongest = {str(name): described(share[name].idxmax()) for name in share.columns}
    kept = {"strongest": strongest, "number_of_common": len(order)}
    if len(order):
        kept |= {"strongest_common": described(order[0]), "weakest_common": described(order[-1])}
    return kept


def speeds(corpus: bnp.Corpus, methods: Sequence[str], *, s: Settings) -> dict[str, Any]:
    """Return tokens per second of whole sweeps of all chains, in turns; of all documents."""
    models = {method: timed_model(method, s.speed_beta, s.speed_slots) for method in methods}
    cases = [
        (type(models[method]).__name__, models[method], schedule, chains,
         {"init_topics": s.speed_topics, **METHODS[method].options})
        for method, schedule, chains in itertools.product(
            methods, s.speed_schedules, s.speed_chains)
    ]  # fmt: skip
    return {"systems": tokens_per_second(corpus, cases, s)}
