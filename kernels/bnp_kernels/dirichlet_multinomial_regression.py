r"""Gibbs kernels of LDA with covariates; the program is `DirichletMultinomialRegression`.

The prior weights of the topics in document d are $\alpha_{dk} = e^{x_d \cdot \lambda_k}$, with the
columns $x_d$ of the covariates and normal coefficients $\lambda$ (Mimno and McCallum, Topic models
conditioned on arbitrary features with Dirichlet-multinomial regression, UAI 2008).

Two exact sweeps of one posterior $p(z, \lambda, v, \beta \mid w, x)$:

- "sequential": topics and documents integrated out, one scan over the tokens;
- "parallel": the topic-word rows are drawn, then documents are independent given them.

After either sweep, `step` draws $\beta$, if it has a prior, and the coefficients: given the table
counts $m_{dk}$ of the documents and $q_d \sim \mathrm{Beta}(\sum_k \alpha_{dk}, N_d)$, the density
of $\lambda$ is that of Poisson regressions of $m_{dk}$ with exposure $-\log q_d$, one for each
topic. Where prior weights are large, table counts and q hold their sum fast. A slice step without
both therefore moves the coefficients of all topics together. The authors optimise $\lambda$
instead.
Sizes: T tokens, D documents, V words, K topics, F columns. Counts are int32, log densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_gamma_prior
from bnp_kernels.numerics.sums import sum_pairwise, sum_topics
from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.processes.poisson_regression import draw_coefficients, linear_predictor
from bnp_kernels.random import bits, gamma
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_kernels.random.tables import draw_tables_of_rows
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens, design_of
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "DMRInfo",
    "DMRPriors",
    "DMRState",
    "conditional",
    "doc_weights",
    "init",
    "log_coefficients",
    "log_joint",
    "log_prior",
    "prior_variance",
    "row_weights",
    "step",
]

_START = 0.1  # prior weight of every topic
_BRACKET = 4.0  # of a step that all topics make together
_SMALLEST = 1e-30  # a prior weight never underflows to 0


class DMRState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    coefficients: Float[Array, "F K"]
    coefficient_variance: Float[Array, ""]  # prior variance of all but those of the intercept
    intercept_variance: Float[Array, ""]  # prior variance of these; it has no update
    beta: Float[Array, ""]


class DMRPriors(NamedTuple):
    """Priors of the hyperparameters; None holds one fixed at its value in the state.

    `coefficient_variance` is the gamma prior of its inverse, the precision.
    """

    coefficient_variance: GammaPrior | None = None
    beta: GammaPrior | None = None


class DMRInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed
    num_accepted: Int[Array, ""]  # topics whose own proposal was accepted


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    coefficient_variance: ArrayLike,
    intercept_variance: ArrayLike,
    beta: ArrayLike,
    init_topics: int | None = None,
) -> DMRState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random.

    Coefficients are zero but for those of the intercept, at which all prior weights are 0.1.
    """
    assigned = random_start(rng_key, data, num_words, num_topics, init_topics)
    _, is_intercept = design_of(data)
    intercept = jnp.where(is_intercept, jnp.log(_START), jnp.float32(0))
    coefficients = jnp.broadcast_to(intercept[:, None], (len(intercept), num_topics))
    beta, coefficient_variance, intercept_variance = (
        jnp.asarray(x, coefficients.dtype) for x in (beta, coefficient_variance, intercept_variance)
    )
    return DMRState(
        *assigned, coefficients=coefficients, coefficient_variance=coefficient_variance,
        intercept_variance=intercept_variance, beta=beta,
    )  # fmt: skip


def doc_weights(coefficients: Float[Array, "F K"], data: Tokens) -> Float[Array, "D K"]:
    r"""Return the prior weights of the topics in each document, $\alpha_{dk}$."""
    return row_weights(coefficients, design_of(data)[0])


def row_weights(
    coefficients: Float[Array, "F K"], design: Float[Array, "D F"]
) -> Float[Array, "D K"]:
    """Return the prior weights of the topics for rows of columns."""
    return jnp.maximum(jnp.exp(linear_predictor(design, coefficients)), _SMALLEST)


def prior_variance(state: DMRState, data: Tokens) -> Float[Array, " F"]:
    """Return the prior variance of the coefficients of each column."""
    _, is_intercept = design_of(data)
    return jnp.where(is_intercept, state.intercept_variance, state.coefficient_variance)


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, alpha: ArrayLike, beta: ArrayLike, num_words: int
) -> Array:
    """Return p(z_t = k | z_-t, w, x) up to a constant; the counts leave token t out.

    `alpha` are the prior weights in the token's document.
    """
    return (n_dk + alpha) * (n_vk + beta) / (n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: DMRState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> DMRState:
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, topic, alpha, beta):
        return Weights(conditional(doc, word, topic, alpha=alpha, beta=beta, num_words=num_words))

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        per_doc_topic={"alpha": doc_weights(state.coefficients, data)},
        constants={"beta": state.beta}, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z,
        doc_topic=swept.doc,
        word_topic=swept.tables["word"],
        topic=swept.tables["topic"],
    )


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: DMRState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> DMRState:
    key_phi, key_z = bits.split(rng_key)
    (num_docs, num_topics), num_words = state.doc_topic.shape, state.word_topic.shape[0]
    shards = data.shards
    phi = gamma.draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=shards.axis_name)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, doc_weights(state.coefficients, data),
        prior_row=jnp.arange(num_docs), shards=shards, power=power,
    )  # fmt: skip
    counts = tally.tally(z, data.doc, data.word, num_docs, num_words, num_topics, shards)
    return state._replace(z=z, doc_topic=counts[0], word_topic=counts[1], topic=counts[2])


def step(
    rng_key: Key[Array, ""],
    state: DMRState,
    data: Tokens,
    priors: DMRPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    power: Float[Array, ""] | None = None,
    update_coefficients: bool = True,
) -> tuple[DMRState, DMRInfo]:
    r"""Resample the topic of every token by the sweep `sweeps[turn]`, then all parameters.

    "sequential", in corpus order and all else integrated out:

    $$p(z_t = k \mid z_{-t}, w) \propto
      (n_{dk} + \alpha_{dk}) (n_{vk} + \beta) / (n_k + V \beta)$$

    "parallel", topics first, then all documents side by side:

    $$\phi_k \mid z \sim \mathrm{Dir}(\beta + n_{\cdot k}), \qquad
      p(z_t = k \mid z_{-t}, \phi) \propto (n_{dk} + \alpha_{dk}) \phi_{k w_t}$$

    The topics do not outlive the step; $\beta$ and the coefficients are drawn without them and
    without the documents' mixtures, which keeps the posterior. Table counts and q are drawn anew
    for the coefficients. The precision 1/v is $\mathrm{Gamma}(a + n/2, b + \sum \lambda^2 / 2)$
    given the n coefficients that are not of the intercept. `power` is that of annealed sweeps, see
    `run_scheduled_sweep`. Without `update_coefficients` they stay as they are.
    """
    key_z, key_tables, key_beta, key_coefficients, key_variance = bits.split(rng_key, 5)
    known = {"sequential": on_one_device(_sequential_sweep), "parallel": _parallel_sweep}
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    beta = dirichlet_topics.resample_beta(
        key_tables, key_beta, new.word_topic, new.topic, new.beta, priors.beta
    )
    new = new._replace(beta=beta)
    num_accepted = jnp.int32(0)
    if update_coefficients:
        key_each, key_all = bits.split(key_coefficients)
        new = new._replace(coefficients=_draw_coefficients(key_each, new, data))
        num_accepted = (new.coefficients != state.coefficients).any(axis=0).sum()
        new = new._replace(coefficients=_shift_together(key_all, new, data))
    if priors.coefficient_variance is not None:
        variance = _draw_variance(key_variance, new, data, priors.coefficient_variance)
        new = new._replace(coefficient_variance=variance)
    return new, DMRInfo(data.shards.total((new.z != state.z).sum()), num_accepted)


def _draw_coefficients(
    rng_key: Key[Array, ""], state: DMRState, data: Tokens
) -> Float[Array, "F K"]:
    """Draw the table counts and q of every document, and the coefficients given both."""
    key_tables, key_q, key_coefficients = bits.split(rng_key, 3)
    weights, first = doc_weights(state.coefficients, data), data.shards.first_doc
    tables = draw_tables_of_rows(key_tables, state.doc_topic, weights, first)
    some, docs = data.doc_length > 0, first + jnp.arange(len(weights))
    length = jnp.maximum(data.doc_length, 1).astype(weights.dtype)
    log_q = gamma.draw_log_beta(key_q, sum_topics(weights), length, 0, docs)
    design, _ = design_of(data)
    return draw_coefficients(
        key_coefficients, state.coefficients, design, tables, jnp.where(some, -log_q, 0.0),
        prior_variance(state, data), data.shards,
    )  # fmt: skip


def _shift_together(rng_key: Key[Array, ""], state: DMRState, data: Tokens) -> Float[Array, "F K"]:
    """Move the coefficients of all topics by the same step in a random direction.

    Given table counts and q they could hardly move together where prior weights are large.
    """
    key_direction, key_step = bits.split(rng_key)
    normal = bits.normal(key_direction, jnp.arange(len(state.coefficients)), 0)
    direction = normal / jnp.sqrt(sum_pairwise(normal**2))

    def moved(step):
        return state._replace(coefficients=state.coefficients + step * direction[:, None])

    def log_density(step):
        new = moved(step)
        return _log_documents(new, data) + log_coefficients(new, data)

    step = draw_slice(key_step, log_density, jnp.zeros(()), _BRACKET)
    return moved(step).coefficients


def _draw_variance(
    rng_key: Key[Array, ""], state: DMRState, data: Tokens, prior: GammaPrior
) -> Float[Array, ""]:
    _, is_intercept = design_of(data)
    ours = jnp.where(is_intercept, 0.0, 1.0)[:, None]
    number = ours.sum() * state.coefficients.shape[1]
    squares = sum_pairwise(sum_pairwise(ours * state.coefficients**2))
    shape = jnp.asarray(prior.concentration + number / 2)
    precision = jnp.exp(gamma.draw_log_gamma(rng_key, shape, 0, 0))
    return jnp.asarray(prior.rate + squares / 2) / precision


def log_joint(state: DMRState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, \lambda \mid v, \beta, x)$ in nats.

    Topics and documents are integrated out.
    """
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    return _log_documents(state, data) + words + log_coefficients(state, data)


def _log_documents(state: DMRState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(z \mid \lambda, x)$."""
    weights = doc_weights(state.coefficients, data)
    return data.shards.total(
        log_dirichlet_multinomial(state.doc_topic, data.doc_length, weights, sum_topics(weights))
    )


def log_coefficients(state: DMRState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(\lambda \mid v)$."""
    variance = prior_variance(state, data)[:, None]
    normal = state.coefficients**2 / variance + jnp.log(2 * jnp.pi * variance)
    return -sum_pairwise(sum_pairwise(normal)) / 2


def log_prior(state: DMRState, priors: DMRPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    total = dirichlet_topics.log_prior({"beta": state.beta}, {"beta": priors.beta})
    if priors.coefficient_variance is not None:
        precision = 1 / state.coefficient_variance
        density = log_gamma_prior(precision, *priors.coefficient_variance)
        total = total + density + 2 * jnp.log(precision)  # of the variance
    return total
