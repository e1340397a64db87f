r"""Gibbs kernels of max-margin supervised LDA; their program is `bnp_models.MedLDA`.

The label $y_d \in \{-1, 1\}$ of a document is classified by the sign of its score
$\omega_d = \sum_k \eta_k n_{dk} / N_d$. In place of a likelihood of the label the posterior has the
factor $\exp(-2 c \max(0, \ell - y_d \omega_d))$, a hinge loss with margin $\ell$.

Two exact sweeps of one posterior $p(z, \eta, \alpha, \beta \mid w, y)$, as in `supervised_lda`:
"sequential", with topics and documents integrated out, and "parallel", which draws the topics
first. Both draw the topic of a token from the loss itself; the scales $\lambda$ of the augmentation
appear in the draw of $\eta$ alone (`processes/hinge_regression.py`).

Zhu, Chen, Perkins and Zhang, Gibbs max-margin topic models with data augmentation, JMLR 15 (2014),
section 3. They draw the topics given $\lambda$ instead.

A state with the field `expected` has the loss of the expected scores instead
(`processes/expected_hinge.py`). Its sweeps are an approximation.

Sizes: T tokens, D documents with at least one token each, V words, K topics. Counts are int32, log
densities in nats.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_kernels.numerics.sums import sum_pairwise
from bnp_kernels.processes import (
    dirichlet_topics,
    expected_hinge,
    hinge_regression,
    label_regression,
    labelled_topics,
)
from bnp_kernels.processes.expected_hinge import Expected
from bnp_kernels.processes.hinge_regression import Margins
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.lanes import Tilt
from bnp_kernels.tokens.layout import Tokens, num_docs
from bnp_kernels.tokens.schedule import run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "ExpectedInfo",
    "MedLDAInfo",
    "MedLDAPriors",
    "MedLDAState",
    "init",
    "log_joint",
    "log_prior",
    "margins",
    "positive_share",
    "step",
    "tilt",
]


class MedLDAState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "D K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    alpha: Float[Array, " K"]
    beta: Float[Array, ""]
    eta: Float[Array, " K"]  # weights of the classifier
    eta_variance: Float[Array, ""]  # prior variance of each weight; it has no update
    c: Float[Array, ""]  # weight of the loss; it has no update
    ell: Float[Array, ""]  # margin; it has no update
    expected: Expected | None = None  # of the approximation; None: the sweeps are exact


class MedLDAPriors(NamedTuple):
    """Priors of the hyperparameters, as in `LDAPriors`."""

    alpha: GammaPrior | None = None
    beta: GammaPrior | None = None


class MedLDAInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


class ExpectedInfo(NamedTuple):
    """What one sweep of the approximation reports."""

    num_moved: Int[Array, ""]  # tokens whose topic changed
    duality_gap: Float[Array, ""]  # relative, of the last solution; 1 before the first


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    num_topics: int,
    alpha: Float[Array, " K"],
    beta: ArrayLike,
    c: ArrayLike,
    ell: ArrayLike,
    eta_variance: ArrayLike,
    init_topics: int | None = None,
    approximation: str | None = None,
) -> MedLDAState:
    """Assign every token to one of the first `init_topics` topics (all by default) at random.

    The weights start at zero, so the first sweep takes no notice of the labels. With the
    approximation "expected" the sweeps of this state are those of `expected_hinge`.
    """
    assigned = random_start(rng_key, data, num_words, num_topics, init_topics)
    beta, c, ell, eta_variance = (jnp.asarray(x, alpha.dtype) for x in (beta, c, ell, eta_variance))
    is_expected = approximation == "expected"
    expected = expected_hinge.init(num_docs(data), num_topics) if is_expected else None
    return MedLDAState(
        *assigned, alpha=alpha, beta=beta, eta=jnp.zeros_like(alpha), eta_variance=eta_variance,
        c=c, ell=ell, expected=expected,
    )  # fmt: skip


def margins(state: MedLDAState, data: Tokens) -> Margins:
    """Return slopes and offsets of the losses; `data.label` is 0 for -1, and 1."""
    sign = _sign(state, data)
    c = jnp.where(data.shards.are_docs(len(sign)), state.c, 0.0)
    return Margins(c * sign, jnp.full_like(sign, c * state.ell))


def _sign(state: MedLDAState, data: Tokens) -> Float[Array, " D"]:
    return 2 * jnp.asarray(data.label, state.c.dtype) - 1


def positive_share(
    doc_topic: Int[Array, "D K"], doc_length: Int[Array, " D"], eta: Float[Array, " K"]
) -> Float[Array, " D"]:
    """Return 1 for documents whose score is positive given their topics, and 0 for others.

    The mean of this over draws of the topics is the share of draws with a positive score.
    """
    score = label_regression.scores(doc_topic, doc_length, eta)
    return (score > 0).astype(eta.dtype)


def tilt(state: MedLDAState, data: Tokens) -> tuple[Tilt, tuple[Float[Array, " D"], ...]]:
    """Return the log factor of the label of a token's document, and its arrays of documents."""
    length = data.doc_length.astype(state.eta.dtype)
    if state.expected is None:
        return hinge_regression.log_hinge_of_token, (*margins(state, data), length)
    tau = data.shards.own_docs(state.expected.tau, len(length))
    rate = tau * _sign(state, data)
    return expected_hinge.log_factor_of_token, (rate, length)


def step(
    rng_key: Key[Array, ""],
    state: MedLDAState,
    data: Tokens,
    priors: MedLDAPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("parallel",),
    sampler: str = "augmented",
    power: Float[Array, ""] | None = None,
) -> tuple[MedLDAState, MedLDAInfo | ExpectedInfo]:
    r"""Resample the topic of every token by the sweep `sweeps[turn]`, then all parameters.

    "sequential" draws the tokens in corpus order, with topics and documents integrated out:

    $$p(z_t = k \mid z_{-t}, \eta) \propto
      (n_{dk} + \alpha_k) (n_{vk} + \beta) / (n_k + V \beta)\;
      \exp(-2 c \max(0, \ell - y_d \omega_{dk}))$$

    with $\omega_{dk}$ the score of the document if the token has topic k. "parallel" draws the
    topics first, then all documents in parallel, as in `supervised_lda`.

    Then the concentrations and $\eta$ are drawn, each given all others. By the sampler "augmented",
    $\lambda$ is drawn anew and $\eta$ given it; nothing else is drawn given this $\lambda$, so it
    may be integrated out elsewhere. The sampler "elliptical" needs no $\lambda$. `power` is
    that of annealed sweeps, see `run_scheduled_sweep`.

    If the state has the field `expected`, the label's factor in the draw of a topic is that of
    `expected_hinge`, $\eta$ is the mean $\mu$, and `sampler` has no effect.
    """
    key_z, key_rest, key_eta = bits.split(rng_key, 3)
    known = labelled_topics.sweeps(tilt)
    new = run_scheduled_sweep(known, sweeps, turn, key_z, state, data, power=power)
    alpha, beta = dirichlet_topics.resample_concentrations(
        key_rest, new.doc_topic, data.doc_length, new.word_topic, new.topic, new.alpha, new.beta,
        alpha_prior=priors.alpha, beta_prior=priors.beta, shards=data.shards,
    )  # fmt: skip
    new = new._replace(alpha=alpha, beta=beta)
    moved = data.shards.total((new.z != state.z).sum())
    if new.expected is not None:
        # the machine is solved for all documents at once, by every device
        share = data.shards.all_docs(new.doc_topic / data.doc_length[:, None])
        sign = data.shards.all_docs(_sign(new, data))
        expected, eta = expected_hinge.update(
            new.expected, new.eta, share, sign, new.c, new.ell, new.eta_variance
        )
        new = new._replace(expected=expected, eta=eta)
        return new, ExpectedInfo(moved, expected.gap)
    draw_eta = {"augmented": _draw_eta_given_scales, "elliptical": _draw_eta_on_ellipse}
    new = new._replace(eta=draw_eta[sampler](key_eta, new, data))
    return new, MedLDAInfo(num_moved=moved)


def _draw_eta_given_scales(
    rng_key: Key[Array, ""], state: MedLDAState, data: Tokens
) -> Float[Array, " K"]:
    r"""Draw the scale of every document, then eta given them.

    The normal distribution of the draw is the conditional distribution of eta, but for what
    `hinge_regression.quadratic` leaves out. The draw is therefore a proposal of Metropolis and
    Hastings, and the acceptance probability is the ratio of what was left out, at most 1. Nearly
    always nothing was, and the probability is 1.
    """
    key_scale, key_eta, key_accept = bits.split(rng_key, 3)
    of_docs, shards = margins(state, data), data.shards
    score = label_regression.scores(state.doc_topic, data.doc_length, state.eta)
    scale = hinge_regression.draw_scales(key_scale, score, of_docs, shards)
    given = hinge_regression.quadratic(scale, of_docs, state.eta_variance, len(state.eta), shards)
    eta = label_regression.draw_normal(
        key_eta, state.doc_topic, data.doc_length, given.weight, given.linear, state.eta_variance,
        shards,
    )  # fmt: skip
    proposed = label_regression.scores(state.doc_topic, data.doc_length, eta)
    before, after = (
        hinge_regression.log_rest(x, scale, of_docs, given.rest) for x in (score, proposed)
    )
    # not accepted where the difference is that of two infinities
    left_out = shards.total(sum_pairwise(after - before))
    accepted = jnp.log(bits.uniform(key_accept, ())) < left_out
    return jnp.where(accepted, eta, state.eta)


def _draw_eta_on_ellipse(
    rng_key: Key[Array, ""], state: MedLDAState, data: Tokens
) -> Float[Array, " K"]:
    of_docs = margins(state, data)
    return label_regression.draw_on_ellipse(
        rng_key, state.eta, state.doc_topic, data.doc_length,
        lambda score: hinge_regression.log_hinge(score, *of_docs), state.eta_variance,
        data.shards,
    )  # fmt: skip


def log_joint(state: MedLDAState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, \eta \mid \alpha, \beta)$ minus the losses, in nats.

    Topics and documents are integrated out. In the approximation $\eta$ is the mean $\mu$.
    """
    documents = log_dirichlet_multinomial(
        state.doc_topic, data.doc_length, state.alpha, state.alpha.sum()
    )
    words = dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)
    score = label_regression.scores(state.doc_topic, data.doc_length, state.eta)
    labels = sum_pairwise(hinge_regression.log_hinge(score, *margins(state, data)))
    prior = label_regression.log_normal(state.eta, state.eta_variance)
    return data.shards.total(documents + labels) + words + prior


def log_prior(state: MedLDAState, priors: MedLDAPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())
