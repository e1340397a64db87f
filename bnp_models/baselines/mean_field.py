r"""The program of LDA with labels and its mean-field guide, which variational methods share.

The bound is the mean field one, with
$q = \prod_k \mathrm{Dir}(\phi_k; \lambda_k) \, \mathrm{N}(\eta; m, \mathrm{diag}(s^2))
\prod_d \mathrm{Dir}(\theta_d; g_d) \prod_{dn} \mathrm{Cat}(z_{dn}; r_{dn})$:

$$\mathrm{E}_q \Big[\sum_{dn} \sum_k r_{dnk} (\log \theta_{dk} + \log \phi_{k w_{dn}}
- \log r_{dnk}) + \sum_d f_d(r_d, \eta)\Big]
- \mathrm{KL}(q(\phi) \| p) - \mathrm{KL}(q(\eta) \| p) - \mathrm{KL}(q(\theta) \| p)$$

The label of a document enters by $f_d$ alone, its `Response`. The words enter linearly in
$\log \phi$ and $\log \theta$, whose means are known, so that only $\eta$ is ever drawn.

A step of SVI takes a batch of documents. It first maximises the bound over their $g_d$ and $r_d$ by
coordinate ascent, given the rest. Then it moves $\lambda$, $m$ and $s$ along the gradient for these
$g_d$ and $r_d$ (Hoffman, Blei, Wang and Paisley, Stochastic variational inference, JMLR 14, 2013).
Binary problems of many classes are one mapped axis.

Sizes: K topics, V words, P problems; M batches with B places for documents and C for tokens.
"""

import abc
import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import digamma, gammaln, logsumexp, xlogy
from jaxtyping import Array, ArrayLike, Float, Int
from numpyro.distributions import constraints
from numpyro.distributions.kl import kl_divergence

from bnp_models.base.model import sample
from bnp_models.data.corpus import Corpus

__all__ = [
    "Batches",
    "LogDirichlet",
    "MeanLogDirichlet",
    "Response",
    "Weights",
    "WordsAndLabels",
    "make_batches",
    "solve_locals",
]

MAX_ROUNDS = 200  # of coordinate ascent for the documents of a batch
TOLERANCE = 1e-4  # mean change of a document's topic shares at which the rounds end


class Batches(NamedTuple):
    """Documents dealt into batches of one shape; `jax.tree.map(lambda x: x[i], ...)` is one."""

    doc: Int[Array, "M C"]  # place of each token's document, sorted
    word: Int[Array, "M C"]
    real: Float[Array, "M C"]  # 1 for a token, 0 for padding
    length: Float[Array, "M B"]  # tokens, at least 1
    place: Int[Array, "M B"]  # number of the document; D for padding
    scale: Float[Array, " M"]  # M: a sum over a batch times this is unbiased for all documents

    def total(self, values: Float[Array, "C K"]) -> Float[Array, "B K"]:
        """Add the values of the tokens of each document."""
        values = values * self.real[:, None]
        return jax.ops.segment_sum(values, self.doc, self.length.shape[0], indices_are_sorted=True)


def make_batches(corpus: Corpus, batch_size: int, rng: np.random.Generator) -> Batches:
    """Deal the documents into batches of at most `batch_size`, once for a fit.

    Documents are sorted by length and dealt out in turn, equally long ones in random order. So all
    batches have about the same number of tokens, and little padding.
    """
    length, ptr = np.asarray(corpus.doc_length), corpus.doc_ptr
    num_batches = -(-corpus.num_docs // batch_size)
    order = np.lexsort((rng.permutation(corpus.num_docs), -length))
    dealt = [np.sort(order[i::num_batches]) for i in range(num_batches)]
    places = max(len(docs) for docs in dealt)
    tokens = max(int(length[docs].sum()) for docs in dealt)
    doc = np.full((num_batches, tokens), places - 1, np.int32)
    word, real = np.zeros((num_batches, tokens), np.int32), np.zeros((num_batches, tokens))
    place = np.full((num_batches, places), corpus.num_docs, np.int32)
    of_place = np.ones((num_batches, places))
    for i, docs in enumerate(dealt):
        mine = np.concatenate([np.asarray(corpus.word)[ptr[d] : ptr[d + 1]] for d in docs])
        doc[i, : len(mine)] = np.repeat(np.arange(len(docs)), length[docs])
        word[i, : len(mine)], real[i, : len(mine)] = mine, 1
        place[i, : len(docs)], of_place[i, : len(docs)] = docs, np.maximum(length[docs], 1)
    return Batches(
        jnp.asarray(doc),
        jnp.asarray(word),
        jnp.asarray(real, jnp.float32),
        jnp.asarray(of_place, jnp.float32),
        jnp.asarray(place),
        jnp.full(num_batches, num_batches, jnp.float32),
    )


class LogDirichlet(dist.Distribution):
    r"""The law of $\log p$ where $p \sim \mathrm{Dir}(a)$.

    Its density is with respect to $\prod_k dp_k / p_k$ on the simplex. Logarithms, because entries
    of p underflow where a is small.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}  # noqa: RUF012
    support = constraints.real_vector  # pyright: ignore[reportAssignmentType]
    reparametrized_params = ["concentration"]  # noqa: RUF012

    def __init__(self, concentration: ArrayLike, *, validate_args: bool | None = None):
        self.concentration = jnp.asarray(concentration)
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw logarithms."""
        draw = jax.random.loggamma(key, self.concentration, sample_shape + self.shape())
        return draw - logsumexp(draw, axis=-1, keepdims=True)

    def log_prob(self, value: Array) -> Array:
        """Return the log density."""
        a = self.concentration
        return (a * value - gammaln(a)).sum(-1) + gammaln(a.sum(-1))

    @property
    def mean(self) -> Array:
        r"""$\mathrm{E} \log p_k = \psi(a_k) - \psi(\sum_j a_j)$."""
        return digamma(self.concentration) - digamma(self.concentration.sum(-1, keepdims=True))


class MeanLogDirichlet(LogDirichlet):
    """The same law in a guide, for terms that are linear in the value: it draws the mean.

    The expectation of such terms is then exact, and the divergence from the prior is too.
    """

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Return the mean."""
        return jnp.broadcast_to(self.mean, sample_shape + self.shape())


@kl_divergence.register(LogDirichlet, LogDirichlet)  # pyright: ignore[reportFunctionMemberAccess]
def _(p: LogDirichlet, q: LogDirichlet) -> Array:
    return kl_divergence(dist.Dirichlet(p.concentration), dist.Dirichlet(q.concentration))


class Weights(NamedTuple):
    """Mean and standard deviation of q(eta)."""

    loc: Float[Array, " K"]
    scale: Float[Array, " K"]


class Response(abc.ABC):
    """How labels enter: the factor of a document, and its push on the topics of the tokens.

    `sign` is 1 or -1 for the label of each document of a batch, and 0 for no label. Instances are
    frozen dataclasses, because a compiled program belongs to each.
    """

    @abc.abstractmethod
    def law(self, weights: Weights) -> dist.Distribution:
        """Return the law of eta in the guide."""

    @abc.abstractmethod
    def factor(
        self,
        batch: Batches,
        sign: Float[Array, " B"],
        r: Float[Array, "C K"],
        eta: Float[Array, " K"],
        multiplier: Float[Array, " B"],
    ) -> Float[Array, " B"]:
        """Return the term of each label in the bound, in nats, for a draw of `law`."""

    @abc.abstractmethod
    def push(
        self,
        batch: Batches,
        sign: Float[Array, " B"],
        r: Float[Array, "C K"],
        weights: Weights,
        multiplier: Float[Array, " B"],
    ) -> tuple[Float[Array, "C K"], Float[Array, " B"], Float[Array, " B"]]:
        """Return the label's term in the logits of r, the length of the step, the new multiplier.

        A step of 1 goes all the way to the new logits; it must be short enough not to overshoot.
        The multiplier is a number that a response may keep for each document. It starts at zero.
        """


class Locals(NamedTuple):
    """Variational parameters of the documents of a batch."""

    r: Float[Array, "C K"]  # rows sum to one
    counts: Float[Array, "B K"]  # expected topic counts; g = alpha + counts
    multiplier: Float[Array, " B"]


def solve_locals(
    batch: Batches,
    sign: Float[Array, " B"],
    log_phi: Float[Array, "V K"],
    weights: Weights,
    *,
    alpha: float,
    response: Response,
) -> Locals:
    """Maximise the bound over the documents of a batch, given the topics and the weights.

    Every document starts from equal shares of all topics. `log_phi` is the mean of log phi.
    """
    rows = log_phi[batch.word]

    def expected(logits):
        r = jax.nn.softmax(logits)
        return r, batch.total(r)

    def one_round(carry):
        i, logits, r, counts, multiplier, _ = carry
        pushed, step, multiplier = response.push(batch, sign, r, weights, multiplier)
        target = rows + digamma(alpha + counts)[batch.doc] + pushed
        logits = logits + step[batch.doc, None] * (target - logits)
        r, new = expected(logits)
        change = (jnp.abs(new - counts).sum(1) / (batch.length * step)).mean()
        return i + 1, logits, r, new, multiplier, change

    def goes_on(carry):
        return (carry[0] < MAX_ROUNDS) & (carry[-1] > TOLERANCE)

    logits = jnp.zeros_like(rows)
    nothing = jnp.zeros_like(batch.length)
    first = (0, logits, *expected(logits), nothing, jnp.full((), jnp.inf, rows.dtype))
    _, _, r, counts, multiplier, _ = jax.lax.while_loop(goes_on, one_round, first)
    return Locals(r, counts, multiplier)


@dataclasses.dataclass(frozen=True)
class WordsAndLabels:
    r"""The program of LDA with labels, and its guide; an instance is a NumPyro model.

    The indicators z are replaced by their variational probabilities r, which are a site without a
    prior: `tokens` has their part of the bound, entropy included. The multipliers of the response
    are a site without a prior, too.
    """

    num_topics: int
    alpha: float
    beta: float
    eta_variance: float
    response: Response

    def __call__(
        self, batch: Batches, sign: Float[Array, " B"], word_count: Float[Array, " V"]
    ) -> None:
        """Run the program on a batch."""
        num_words, shape = word_count.shape[0], (batch.word.shape[0], self.num_topics)
        with numpyro.plate("topic", self.num_topics):
            log_phi = sample("log_phi", LogDirichlet(jnp.full(num_words, self.beta)))
            eta = sample("eta", dist.Normal(0.0, math.sqrt(self.eta_variance)))
        with numpyro.handlers.scale(scale=batch.scale):
            with numpyro.plate("doc", batch.length.shape[0]):
                log_theta = sample("log_theta", LogDirichlet(jnp.full(self.num_topics, self.alpha)))
            simplices = constraints.independent(constraints.simplex, 1)
            r = sample("r", dist.ImproperUniform(simplices, (), shape))
            reals = dist.ImproperUniform(constraints.real_vector, (), batch.length.shape)
            multiplier = sample("multiplier", reals)
            log_weights = log_theta[batch.doc] + jnp.transpose(log_phi)[batch.word]
            numpyro.factor("tokens", (batch.real[:, None] * (r * log_weights - xlogy(r, r))).sum())
            of_labels = self.response.factor(batch, sign, r, eta, multiplier)
            numpyro.factor("response", of_labels.sum())

    def guide(
        self, batch: Batches, sign: Float[Array, " B"], word_count: Float[Array, " V"]
    ) -> None:
        """Run the guide, whose parameters are those of the topics and of eta.

        Topics start as the word counts of the corpus times standard exponential noise.
        """
        shape = (self.num_topics, word_count.shape[0])
        concentration = numpyro.param(
            "topic_word",
            lambda key: self.beta + word_count / shape[0] * jax.random.exponential(key, shape),
            constraint=constraints.positive,
        )
        topics = MeanLogDirichlet(concentration)
        weights = Weights(
            jnp.asarray(numpyro.param("eta_loc", jnp.zeros(self.num_topics))),
            jnp.asarray(
                numpyro.param(
                    "eta_scale",
                    jnp.full(self.num_topics, math.sqrt(self.eta_variance)),
                    constraint=constraints.positive,
                )
            ),
        )
        # Stopped before the loop, which has no derivative: the gradient is that for fixed r and g.
        log_phi, fixed = jax.lax.stop_gradient((topics.mean.T, weights))
        of_docs = solve_locals(
            batch, sign, log_phi, fixed, alpha=self.alpha, response=self.response
        )
        with numpyro.plate("topic", self.num_topics):
            sample("log_phi", topics)
            sample("eta", self.response.law(weights))
        with numpyro.handlers.scale(scale=batch.scale):
            with numpyro.plate("doc", batch.length.shape[0]):
                sample("log_theta", MeanLogDirichlet(self.alpha + of_docs.counts))
            sample("r", dist.Delta(of_docs.r, event_dim=2))
            sample("multiplier", dist.Delta(of_docs.multiplier, event_dim=1))
