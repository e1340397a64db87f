"""IBP compound Dirichlet topic model: program, hyperparameters and exact Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import ibp_compound_dirichlet as kernel
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import token_model, topic_model
from bnp_models.base.likelihood import count_rows, draw_dirichlet
from bnp_models.base.model import deterministic, sample
from bnp_models.base.topic_sampler import InfiniteSampler
from bnp_models.base.topics import Topics, dirichlet_topics
from bnp_models.data.corpus import Corpus

__all__ = ["IBPCompoundDirichlet"]

_LOG2 = float(np.log(2.0))
_ABOUT_50 = dist.Gamma(5.0, 0.1)  # nothing changes a distribution


class _Sampler(InfiniteSampler):
    """Sampler of `IBPCompoundDirichlet`."""

    def log_joint(self, state: kernel.FocusedState, data: Tokens) -> Array:
        return kernel.log_joint(state, data) + kernel.log_atoms(state, data)

    def theta(self, rng_key: Array, state: kernel.FocusedState, data: Tokens) -> Array:
        key_open, key_theta = split(rng_key)
        weights, rest = kernel.mixtures(key_open, state, data)
        return token_model.draw_theta(key_theta, state.doc_topic, weights, rest, data.shards)

    def parameters(self, state: kernel.FocusedState) -> dict[str, Array]:
        return {"stick": state.stick, "strength": state.strength}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class IBPCompoundDirichlet(topic_model.InfiniteTopics):
    r"""Focused topic model: how common a topic is does not say how much of a document it is.

    Sticks $\pi_k$ of an Indian buffet process of mass $\alpha$, strengths
    $s_k \sim \mathrm{Gamma}(a, 1)$, $b_{dk} \sim \mathrm{Bernoulli}(\pi_k)$, document length
    $N_d \sim \mathrm{NB}(\sum_k b_{dk} s_k, 1/2)$, $\theta_d \sim \mathrm{Dir}(b_d \cdot s)$,
    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$
    (Williamson, Wang, Heller and Blei, ICML 2010). A rare topic can be most of a document.

    Parameters
    ----------
    alpha
        Mass of the buffet process, the expected number of topics that a document switches on: a
        positive number or a prior.
    strength_shape
        Shape a of the strengths: a positive number or a prior. A topic that is on has a tokens
        in a document, on average.
    beta
        Topic-word concentration per word: a positive number or a prior.
    max_topics
        Capacity: a buffer, not a truncation. `fit` enlarges it when a sweep needs more; plain
        `MCMC` raises an error then. The program (not the sampler) is truncated at this level.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Notes
    -----
    The lengths of the documents are data, and empty documents count. A new document has no
    Dirichlet law of its mixture. So `left_to_right` scores it, given its length, and
    `document_completion` and `empirical_likelihood` refuse it. Tables of documents give the share
    of a topic as the probability that one more word has it.

    **Chains mix badly.** A document has about $s_k$ tokens of each topic that is on, and hardly
    ever a few. Where the strengths are large, as on real text, single tokens seldom change their
    topic, and chains stay near their start: their topics are then worse than those of `HDPLDA`.
    Start from few topics (`init_topics=`), compare starts, and look at the convergence.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.IBPCompoundDirichlet(beta=0.01).max_topics
    128
    """

    alpha: Any = topic_model.VAGUE
    strength_shape: Any = _ABOUT_50
    beta: Any = 0.01
    max_topics: int = 128

    hyperparameters = ("alpha", "strength_shape", "beta")
    kernel = kernel
    priors = kernel.FocusedPriors
    sampler_type = _Sampler
    recordable = (
        "z", "phi", "theta", "topic_tokens", "stick", "strength",
    )  # fmt: skip
    scores = ("left_to_right", "npmi")

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` lengths and words are drawn as well. Words are those of documents of
        the corpus' lengths, and the lengths are a site of their own, `doc_length`.
        """
        values = self.start_program(corpus, observed)
        with numpyro.plate("atom", self.max_topics):
            shares = sample("shares", dist.Beta(values["alpha"], 1.0))
            strength = sample("strength", dist.Gamma(values["strength_shape"], 1.0))
        stick = deterministic("stick", jnp.cumprod(shares))
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("doc", corpus.num_docs):
            chance = jnp.broadcast_to(stick, (corpus.num_docs, self.max_topics))
            on = sample("on", dist.Bernoulli(chance).to_event(1))
            rate = sample("rate", dist.Gamma(jnp.broadcast_to(strength, chance.shape)).to_event(1))
            weights = jnp.asarray(on * rate) + 1e-30  # some probability where nothing is on
            lengths = jnp.asarray(corpus.doc_length) if observed else None
            sample("doc_length", dist.Poisson(weights.sum(axis=1)), obs=lengths)
        theta = weights / weights.sum(axis=1, keepdims=True)
        topic_model.draw_tokens(corpus, jnp.asarray(corpus.doc), theta, phi, observed)

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        """Return topics and prior weights of one kept state; the last topic stands for new ones.

        The weights are those of one more document, given its length.
        """
        stick, strength = (np.asarray(state[n], np.float64) for n in ("stick", "strength"))
        silent = stick * np.exp2(-strength)
        rates = 1 + _LOG2 * np.arange(1, corpus.num_docs + 2)
        shape = float(state["strength_shape"])
        of_rates = rates ** -(shape + 1)
        new = (shape + 1) * (of_rates / rates).sum() / of_rates.sum()
        new_if_absent = float(state["alpha"]) * shape * of_rates.mean()
        return dirichlet_topics(
            state["z"],
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            beta=state["beta"],
            weights=np.append(strength, new),
            absent=np.append(strength * silent / (1 - stick + silent), new_if_absent),
            num_slots=len(stick),
        )

    def draw_mixtures(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Float[np.ndarray, "K V"], Float[np.ndarray, "R K"]]:
        r"""Draw the topics, and the mixture of each document, given one kept state.

        $\phi_k \mid z \sim \mathrm{Dir}(\beta + n_k)$ and
        $\theta_d \mid z, b \sim \mathrm{Dir}(n_d + b_d s)$, with switches b given z, and with the
        topics that are on in some document but have no token.
        """
        stick, strength = (np.asarray(state[n], np.float64) for n in ("stick", "strength"))
        z, doc, num_docs = state["z"], np.asarray(corpus.doc), corpus.num_docs
        counts = count_rows(doc, z, num_docs, len(stick))
        silent = stick * np.exp2(-strength)
        on = (counts > 0) | (rng.random(counts.shape) < silent / (1 - stick + silent))
        new_strength, new_on = _draw_unused(
            rng, float(state["alpha"]), float(state["strength_shape"]), num_docs
        )
        of_word = count_rows(z, np.asarray(corpus.word), len(stick), corpus.num_words)
        none = np.zeros((len(new_strength), corpus.num_words))
        phi = draw_dirichlet(rng, np.concatenate([of_word, none]) + float(state["beta"]))
        weights = np.concatenate([counts + on * strength, new_on * new_strength], axis=1)
        weights[weights.sum(axis=1) == 0, 0] = 1.0  # an empty document: any mixture will do
        return phi, draw_dirichlet(rng, weights)


def _draw_unused(
    rng: np.random.Generator, alpha: float, shape: float, num_docs: int
) -> tuple[Float[np.ndarray, " J"], np.ndarray]:
    """Draw strengths and switches [D, J] of topics that are on in some document without a token."""
    rank = np.arange(1, num_docs + 1)
    first = rng.choice(
        num_docs, rng.poisson(alpha * (1 / rank).sum()), p=1 / rank / (1 / rank).sum()
    )
    stick = 1 - rng.random(len(first)) ** (1 / (first + 1))
    row = np.arange(num_docs)[:, None]
    on = (row == first) | ((row > first) & (rng.random((num_docs, len(first))) < stick))
    strength = rng.gamma(shape, size=len(first))
    kept = rng.random(len(first)) < np.exp2(-strength * on.sum(axis=0))
    return strength[kept], on[:, kept]
