r"""Gibbs kernels of logistic supervised LDA; their program is `bnp_models.SupervisedLDA`.

The label $y_d$ of a document depends on its score $\omega_d = \sum_k \eta_k n_{dk} / N_d$. The
likelihood of a binary label is $\sigma(\omega_d)^{c y_d} \sigma(-\omega_d)^{c (1 - y_d)}$. That of
a count is the one of a negative binomial variable with dispersion r, to the power c:

$$\Big[ \tfrac{\Gamma(y_d + r)}{\Gamma(r)\,y_d!}
  \sigma(\omega_d)^{y_d} \sigma(-\omega_d)^r \Big]^c.$$

Two exact sweeps of one posterior $p(z, \eta, r, \alpha, \beta \mid w, y)$, as in `lda`:
"sequential", with topics and documents integrated out, and "parallel", which draws the topics
first. Both draw the topic of a token from the likelihood of the label itself; Pólya-Gamma variables
appear in the draw of $\eta$ alone (`processes/label_regression.py`). The sampler "augmented" draws
the topics given these variables, too: algorithm 1 of the paper, eq. 9.

Zhu, Zheng and Zhang, Improved Bayesian logistic supervised topic models with data augmentation,
ACL 2013, section 3.
Sizes: T tokens, D documents with at least one token each, V words, K topics. Counts are int32, log
densities in nats.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial, log_rising
from bnp_kernels.numerics.linear import product
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import dirichlet_topics, label_regression, labelled_topics
from bnp_kernels.processes.label_regression import Trials
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_kernels.tokens.lanes import Tilt
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.schedule import run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "SupervisedLDAInfo",
    "SupervisedLDAPriors",
    "SupervisedLDAState",
    "init",
    "label_mean",
    "log_joint",
    "log_label_given_weight",
    "log_prior",
    "step",
    "tilt",
    "trials",
]

_BRACKET = 3.0  # of log r, in which slice sampling starts


class SupervisedLDAState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]
    eta: Float[Array, " K"]  # weights of the regression
    eta_variance: Float[Array, ""]  # prior variance of each weight; it has no update
    c: Float[Array, ""]  # power of the likelihood of the labels; it has no update
    dispersion: Float[Array, ""] | None  # of counts; None: labels are binary


class SupervisedLDAPriors(NamedTuple):
    """Priors of the hyperparameters; None holds one fixed at its value in the state.

    `alpha` is as in `LDAPriors`.
    """

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None
    dispersion: GammaPrior | None = None


class SupervisedLDAInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike,
    c: ArrayLike,
    eta_variance: ArrayLike,
    dispersion: ArrayLike | None = None,
    init_topics: int | None = None,
) -> SupervisedLDAState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random.

    The weights start at zero, so the first sweep takes no notice of the labels.
    """
    assigned = random_start(rng_key, data, num_words, num_topics, init_topics)
    beta, c, eta_variance = (jnp.asarray(x, alpha.dtype) for x in (beta, c, eta_variance))
    return SupervisedLDAState(
        *assigned, alpha=alpha, beta=beta, eta=jnp.zeros_like(alpha), eta_variance=eta_variance,
        c=c, dispersion=None if dispersion is None else jnp.asarray(dispersion, alpha.dtype),
    )  # fmt: skip


def trials(state: SupervisedLDAState, data: Tokens) -> Trials:
    """Return the labels as successes and failures, see `label_regression`."""
    y = jnp.asarray(data.label, state.c.dtype)
    failure = 1 - y if state.dispersion is None else jnp.full_like(y, state.dispersion)
    c = jnp.where(data.shards.are_docs(len(y)), state.c, 0.0)
    return Trials(c * y, c * failure)


def label_mean(
    doc_topic: Int[Array, "D K"],
    doc_length: Int[Array, " D"],
    parameters: tuple[Float[Array, " K"], Float[Array, ""] | None],
) -> Float[Array, " D"]:
    r"""Return the mean label of documents given their topics, for c = 1.

    It is $\sigma(\omega_d)$, or $r e^{\omega_d}$ of counts. `parameters` are $\eta$ and the
    dispersion of counts, None where labels are binary.
    """
    eta, dispersion = parameters
    score = label_regression.scores(doc_topic, doc_length, eta)
    return jax.nn.sigmoid(score) if dispersion is None else dispersion * jnp.exp(score)


def tilt(state: SupervisedLDAState, data: Tokens) -> tuple[Tilt, tuple[Float[Array, " D"], ...]]:
    """Return the log likelihood of the label of a token's document, and its arrays of documents."""
    of_docs = *trials(state, data), data.doc_length.astype(state.eta.dtype)
    return label_regression.log_label_of_token, of_docs


def log_label_given_weight(
    n_d: Float[Array, " K"],
    of_doc: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]],
    eta: Array,
) -> Float[Array, " K"]:
    r"""Return $\kappa_d \omega - \lambda_d \omega^2 / 2$ for each topic of a token; a `lanes.Tilt`.

    `of_doc` are $\kappa_d$, $\lambda_d$ and the length of the document, which includes the token.
    Zhu et al., eq. 9, without the terms that do not depend on the topic.
    """
    linear, weight, length = of_doc
    score = label_regression.scores_of_token(n_d, length, eta)
    return product(score, linear - product(weight, score) / 2)


def step(
    rng_key: Key[Array, ""],
    state: SupervisedLDAState,
    data: Tokens,
    priors: SupervisedLDAPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    sampler: str = "polya-gamma",
    power: Float[Array, ""] | None = None,
) -> tuple[SupervisedLDAState, SupervisedLDAInfo]:
    r"""Resample the topic of every token by the sweep `sweeps[turn]`, then all parameters.

    "sequential" draws the tokens in corpus order, with topics and documents integrated out:

    $$p(z_t = k \mid z_{-t}, \eta) \propto
      (n_{dk} + \alpha_k) (n_{vk} + \beta) / (n_k + V \beta)\; \psi_d(\omega_{dk})$$

    with $\omega_{dk}$ the score of the document if the token has topic k. "parallel" draws the
    topics first, then all documents in parallel:

    $$\phi_k \mid z \sim \mathrm{Dir}(\beta + n_{\cdot k}), \qquad
      p(z_t = k \mid z_{-t}, \phi, \eta) \propto
      (n_{dk} + \alpha_k) \phi_{k w_t} \psi_d(\omega_{dk})$$

    Then the concentrations, the dispersion of counts and $\eta$ are drawn, each given all others.
    By the sampler "polya-gamma", $\lambda$ is drawn anew and $\eta$ given it; nothing else is drawn
    given this $\lambda$, so it may be integrated out elsewhere. The sampler "elliptical" needs no
    $\lambda$. By "augmented", $\lambda$ and $\eta$ are drawn first, then the topics given both.
    `power` is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_z, key_rest, key_dispersion, key_eta = bits.split(rng_key, 4)
    old, tilt_of = state.z, tilt
    if sampler == "augmented":
        score = label_regression.scores(state.doc_topic, data.doc_length, state.eta)
        eta, weight = _draw_eta_given_weights(key_eta, state, data, score)
        state = state._replace(eta=eta)
        tilt_of = partial(_tilt_given, weight)
    known = labelled_topics.sweeps(tilt_of)
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    alpha, beta = dirichlet_topics.resample_concentrations(
        key_rest, new.doc_topic, data.doc_length, new.word_topic, new.topic, new.alpha, new.beta,
        alpha_prior=priors.alpha, beta_prior=priors.beta, shards=data.shards,
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    score = label_regression.scores(new.doc_topic, data.doc_length, new.eta)
    if priors.dispersion is not None:
        dispersion = _draw_dispersion(key_dispersion, new, data, score, priors.dispersion)
        new = new._replace(dispersion=dispersion)
    if sampler == "polya-gamma":
        eta, _ = _draw_eta_given_weights(key_eta, new, data, score)
        new = new._replace(eta=eta)
    elif sampler == "elliptical":
        new = new._replace(eta=_draw_eta_on_ellipse(key_eta, new, data, score))
    return new, SupervisedLDAInfo(num_moved=data.shards.total((new.z != old).sum()))


def _tilt_given(
    weight: Float[Array, " D"], state: SupervisedLDAState, data: Tokens
) -> tuple[Tilt, tuple[Float[Array, " D"], ...]]:
    """Return `tilt` given the Pólya-Gamma variables of the documents."""
    labels = trials(state, data)
    linear = (labels.success - labels.failure) / 2
    return log_label_given_weight, (linear, weight, data.doc_length.astype(state.eta.dtype))


def _draw_eta_given_weights(
    rng_key: Key[Array, ""], state: SupervisedLDAState, data: Tokens, score: Float[Array, " D"]
) -> tuple[Float[Array, " K"], Float[Array, " D"]]:
    """Draw the Pólya-Gamma variable of every document, then eta given them; return eta and them."""
    key_weight, key_eta = bits.split(rng_key)
    labels = trials(state, data)
    shards = data.shards
    weight = label_regression.draw_polya_gamma_weights(key_weight, score, labels, shards)
    linear = (labels.success - labels.failure) / 2
    eta = label_regression.draw_normal(
        key_eta, state.doc_topic, data.doc_length, weight, linear, state.eta_variance, shards
    )
    return eta, weight


def _draw_eta_on_ellipse(
    rng_key: Key[Array, ""], state: SupervisedLDAState, data: Tokens, score: Float[Array, " D"]
) -> Float[Array, " K"]:
    labels = trials(state, data)
    return label_regression.draw_on_ellipse(
        rng_key, state.eta, state.doc_topic, data.doc_length,
        lambda score: label_regression.log_label(score, *labels), state.eta_variance,
        data.shards,
    )  # fmt: skip


def _draw_dispersion(
    rng_key: Key[Array, ""],
    state: SupervisedLDAState,
    data: Tokens,
    score: Float[Array, " D"],
    prior: GammaPrior,
) -> Float[Array, ""]:
    r"""Update $\log r$ by slice sampling, given the scores.

    With the prior Gamma(a, b), the density of $\log r$ is
    $r^a e^{-b r} [\prod_d \Gamma(y_d + r) / \Gamma(r)\, \sigma(-\omega_d)^r]^c$. This update is
    exact for every c; one by table counts would need c = 1.
    """
    assert state.dispersion is not None
    label, shards = jnp.asarray(data.label), data.shards
    against = jnp.where(shards.are_docs(len(score)), jax.nn.softplus(score), 0.0)
    rate = shards.total(sum_pairwise(against))

    def log_density(log_r):
        r = jnp.exp(log_r)
        rising = shards.total(sum_pairwise(log_rising(r, label)))
        return prior.concentration * log_r - prior.rate * r + state.c * (rising - r * rate)

    value = draw_slice(rng_key, log_density, jnp.log(state.dispersion), _BRACKET)
    return jnp.exp(value)


def log_joint(state: SupervisedLDAState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, y, z, \eta \mid \alpha, \beta, r)$ in nats, for c = 1.

    Topics and documents are integrated out. With another c the likelihood of the labels has this
    power.
    """
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    score = label_regression.scores(state.doc_topic, data.doc_length, state.eta)
    labels = sum_pairwise(label_regression.log_label(score, *trials(state, data)))
    if state.dispersion is not None:
        label = jnp.asarray(data.label)
        choices = log_rising(state.dispersion, label) - log_rising(1.0, label)
        labels = labels + state.c * sum_pairwise(choices)
    prior = label_regression.log_normal(state.eta, state.eta_variance)
    return data.shards.total(documents + labels) + words + prior


def log_prior(state: SupervisedLDAState, priors: SupervisedLDAPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
