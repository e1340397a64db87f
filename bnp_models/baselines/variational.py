"""Fit the program of `mean_field` by stochastic gradients, and score new documents."""

import dataclasses
import time
from functools import partial
from typing import TypedDict, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
from jaxtyping import Array, Float, Int, Key
from numpyro.infer import SVI, TraceMeanField_ELBO
from sklearn.preprocessing import label_binarize

from bnp_models.base.other_packages import random_key
from bnp_models.baselines.label_classes import DocumentClassifier, classes_of
from bnp_models.baselines.mean_field import (
    Batches,
    MeanLogDirichlet,
    Response,
    Weights,
    WordsAndLabels,
    make_batches,
    solve_locals,
)
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["FitOptions", "VariationalFit", "bound", "fit_program", "optimise"]

AnyVariationalFit = TypeVar("AnyVariationalFit", bound="VariationalFit")

BOUND_DRAWS = 32  # of eta, for the bound at the end


def _take(batches: Batches, i: int | Int[Array, ""]) -> Batches:
    return Batches(*(x[i] for x in batches))


@partial(jax.jit, static_argnames=("program", "learning_rate"))
def optimise(
    rng_key: Key[Array, " P"],
    sign: Float[Array, "P D_plus_1"],
    batches: Batches,
    word_count: Float[Array, " V"],
    order: Int[Array, " S"],
    *,
    program: WordsAndLabels,
    learning_rate: float,
) -> tuple[dict[str, Array], Float[Array, "P S"]]:
    """Take S steps of Adam for P problems; return parameters and the bound of each step's batch.

    The learning rate falls to zero along a half cosine. `order` has the batch of each step, `sign`
    a last column of zeros for padding.
    """
    schedule = optax.cosine_decay_schedule(learning_rate, order.shape[0])
    svi = SVI(program, program.guide, optax.adam(schedule), TraceMeanField_ELBO())
    first = _take(batches, 0)

    def start(key, sign):
        return svi.init(key, first, sign, word_count)

    def step(state, i):
        batch = _take(batches, i)
        update = jax.vmap(svi.update, in_axes=(0, None, 0, None))
        return update(state, batch, sign[:, batch.place], word_count)

    state, loss = jax.lax.scan(step, jax.vmap(start)(rng_key, sign[:, first.place]), order)
    return jax.vmap(svi.get_params)(state), -loss.T


@partial(jax.jit, static_argnames=("program", "num_draws"))
def bound(
    rng_key: Key[Array, ""],
    params: dict[str, Array],
    sign: Float[Array, "P D_plus_1"],
    batches: Batches,
    word_count: Float[Array, " V"],
    *,
    program: WordsAndLabels,
    num_draws: int = BOUND_DRAWS,
) -> Float[Array, " P"]:
    """Return the bound on all documents, in nats, averaged over draws of eta."""
    elbo = TraceMeanField_ELBO(num_particles=num_draws)

    def of_batch(batch):
        def of_problem(params, sign):
            loss = elbo.loss(rng_key, params, program, program.guide, batch, sign, word_count)
            return -jnp.asarray(loss)

        return jax.vmap(of_problem)(params, sign[:, batch.place])

    return jax.lax.map(of_batch, batches).mean(0)


@partial(jax.jit, static_argnames="alpha")
def _expected_scores(
    topic_word: Float[Array, "P K V"], loc: Float[Array, "P K"], batches: Batches, *, alpha: float
) -> Float[Array, "M B P"]:
    """Return m . E[zbar] of documents without labels."""

    def of_batch(batch):
        def of_problem(concentration, loc):
            log_phi = MeanLogDirichlet(concentration).mean.T
            weights = Weights(loc, jnp.zeros_like(loc))
            sign = jnp.zeros_like(batch.length)
            found = solve_locals(batch, sign, log_phi, weights, alpha=alpha, response=_NoLabels())
            return jnp.dot(found.counts / batch.length[:, None], loc, precision="highest")

        return jax.vmap(of_problem, out_axes=1)(topic_word, loc)

    return jax.lax.map(of_batch, batches)


@dataclasses.dataclass(frozen=True)
class _NoLabels(Response):
    def law(self, weights):
        return dist.Normal(*weights)

    def factor(self, batch, sign, r, eta, multiplier):
        return jnp.zeros_like(batch.length)

    def push(self, batch, sign, r, weights, multiplier):
        return jnp.zeros_like(r), jnp.ones_like(batch.length), multiplier


@dataclasses.dataclass(frozen=True, eq=False)
class VariationalFit(DocumentClassifier):
    """What a variational competitor found; see `DocumentClassifier` for the other attributes.

    Attributes
    ----------
    topic_word : Float["P K V"]
        Concentration of the Dirichlet distribution of each topic; every problem has its own topics.
    eta_mean, eta_sd : Float["P K"]
        Mean and standard deviation of the weights.
    elbo : Float[" P"]
        The bound at the end on all documents, in nats. For logistic labels it has an error of the
        Monte Carlo mean over 32 draws of eta.
    elbo_path : Float["P S"]
        The bound before each step, in nats, estimated from the batch of the step.
    alpha : float
        Document-topic concentration.
    batch_size : int
        Documents that are scored side by side.
    """

    topic_word: Float[np.ndarray, "P K V"]
    eta_mean: Float[np.ndarray, "P K"]
    eta_sd: Float[np.ndarray, "P K"]
    elbo: Float[np.ndarray, " P"]
    elbo_path: Float[np.ndarray, "P S"]
    alpha: float
    batch_size: int

    def _scores(self, corpus: Corpus) -> Float[np.ndarray, "D P"]:
        r"""Return $m \cdot E_q[\bar z_d]$, topics of new documents found with the words alone."""
        batches = make_batches(corpus, self.batch_size, np.random.default_rng(0))
        found = _expected_scores(
            jnp.asarray(self.topic_word), jnp.asarray(self.eta_mean), batches, alpha=self.alpha
        )
        scores = np.zeros((corpus.num_docs + 1, len(self.eta_mean)), np.float32)
        scores[np.asarray(batches.place).ravel()] = np.asarray(found).reshape(-1, scores.shape[1])
        return scores[:-1]


class FitOptions(TypedDict, total=False):
    """Keyword arguments of `fit_program`."""

    alpha: float
    beta: float
    eta_variance: float
    num_steps: int
    batch_size: int
    learning_rate: float
    seed: int


def fit_program(
    kind: type[AnyVariationalFit],
    corpus: Corpus,
    response: Response,
    num_topics: int,
    *,
    alpha: float = 0.1,
    beta: float = 0.01,
    eta_variance: float = 1.0,
    num_steps: int = 2000,
    batch_size: int = 128,
    learning_rate: float = 0.05,
    seed: int = 0,
) -> AnyVariationalFit:
    """Fit the program by stochastic gradients; the variational methods pass their options on.

    Parameters
    ----------
    kind
        Class of the result.
    corpus
        Training documents with labels of two or more classes. More than two classes are fitted one
        against the rest, each with topics of its own. A document without tokens tells nothing.
    response
        How labels enter.
    num_topics
        Number of topics, K.
    alpha, beta
        Document-topic concentration per topic and topic-word concentration per word, positive.
    eta_variance
        Prior variance of the weights of the topics, positive.
    num_steps
        Number of steps, each on one batch.
    batch_size
        Number of documents in a batch; all documents if there are fewer.
    learning_rate
        Of Adam at the start, positive; it falls to zero along a half cosine.
    seed
        Seed of the start, the batches and the draws of eta.

    Raises
    ------
    ValueError
        If the corpus has no labels or only one class, or a number is out of its range.
    """
    classes = classes_of(corpus)
    program = WordsAndLabels(
        arguments.integer("num_topics", num_topics, 1),
        arguments.finite_number("alpha", alpha, above=0),
        arguments.finite_number("beta", beta, above=0),
        arguments.finite_number("eta_variance", eta_variance, above=0),
        response,
    )
    num_steps = arguments.integer("num_steps", num_steps, 1)
    batch_size = min(arguments.integer("batch_size", batch_size, 1), corpus.num_docs)
    learning_rate = arguments.finite_number("learning_rate", learning_rate, above=0)
    seed = arguments.seed("seed", seed)

    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    sign = label_binarize(np.asarray(corpus.label), classes=classes, neg_label=-1).T
    sign = np.pad(sign.astype(np.float32), ((0, 0), (0, 1)))
    batches = make_batches(corpus, batch_size, rng)
    num_batches = len(batches.doc)
    passes = [rng.permutation(num_batches) for _ in range(-(-num_steps // num_batches))]
    order = np.concatenate(passes)[:num_steps].astype(np.int32)
    word_count = np.bincount(np.asarray(corpus.word), minlength=corpus.num_words)
    data = jnp.asarray(sign), batches, jnp.asarray(word_count, jnp.float32)
    key_fit, key_bound = jax.random.split(random_key(seed))
    params, path = optimise(
        jax.random.split(key_fit, len(sign)),
        *data,
        jnp.asarray(order),
        program=program,
        learning_rate=learning_rate,
    )
    params = jax.block_until_ready(params)
    seconds = time.perf_counter() - began  # the bound is no part of the fit
    elbo = bound(key_bound, params, *data, program=program)
    return kind(
        classes=classes,
        label_names=corpus.label_names,
        vocabulary=corpus.vocabulary,
        seconds=seconds,
        topic_word=np.asarray(params["topic_word"]),
        eta_mean=np.asarray(params["eta_loc"]),
        eta_sd=np.asarray(params["eta_scale"]),
        elbo=np.asarray(elbo),
        elbo_path=np.asarray(path),
        alpha=program.alpha,
        batch_size=batch_size,
    )
