"""Cross-collection LDA: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bnp_kernels import cross_collection_lda as kernel
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base import token_model, topic_model
from bnp_models.base.collapsed import Assignments, Words
from bnp_models.base.likelihood import Likelihood, count_rows, draw_dirichlet, word_likelihood
from bnp_models.base.model import concentration, is_prior, sample
from bnp_models.base.sampler import Lazy
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.base.topics import Topics
from bnp_models.data.corpus import Corpus
from bnp_models.models.lda import LDA

__all__ = ["CrossCollectionLDA"]

_OWN = ("group_beta", "switch_common", "switch_own")


class _Sampler(FiniteSampler):
    """Sampler of `CrossCollectionLDA`."""

    def recorded(self, state: kernel.CrossCollectionState, data: Tokens) -> Lazy:
        return {"switch": lambda: data.shards.all_tokens(state.switch)}

    def topics(self, rng_key: Array, state: kernel.CrossCollectionState, data: Tokens) -> Lazy:
        return kernel.draw_topics(rng_key, state)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CrossCollectionLDA(topic_model.FiniteTopics):
    r"""LDA of several collections whose topics have common words, and words of each collection.

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\phi_{gk} \sim \mathrm{Dir}(\beta' 1_V)$,
    $\psi_{gk} \sim \mathrm{Beta}(c_1, c_0)$, $\theta_d \sim \mathrm{Dir}(\alpha)$,
    $z_t \sim \theta_{d_t}$, $s_t \sim \mathrm{Bernoulli}(\psi_{g z_t})$, and
    $w_t \sim \phi_{z_t}$ where $s_t = 0$, $w_t \sim \phi_{g z_t}$ where $s_t = 1$, with g the group
    of document $d_t$ (Paul, thesis, University of Illinois, 2009; Paul and Girju, EMNLP 2009).
    The groups g of a corpus are the collections.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one number per topic, or a prior,
        as for `LDA`.
    beta
        Concentration of the common words of a topic, per word: a positive number or a prior.
    group_beta
        Concentration of the words that a topic has in one group only, per word: a positive number
        or a prior.
    switch_common, switch_own
        Concentrations c_0 and c_1 of the switches: positive numbers or priors. A token of a topic
        has its word from the own words of the group with probability
        `switch_own` / (`switch_common` + `switch_own`) before anything is seen, and this prior
        counts as much as `switch_common` + `switch_own` tokens of the topic in the group: by
        default one token of ten, and 10,000 tokens. Only common words hold the groups' versions of
        a topic together. With a weak prior, such as 1 and 1, a topic can be about other things in
        each group. So the sum should be at least the number of tokens that a topic has in a group.
        Where the groups write about different subjects, a weak prior predicts better; it also tells
        the groups of new documents better apart. Change both together: 1 beside the default of the
        other one leaves hardly any own words, or hardly any common ones.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.CrossCollectionLDA(num_topics=20).switch_common
    9000.0
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.05
    group_beta: Any = 0.01
    switch_common: Any = 9000.0
    switch_own: Any = 1000.0

    hyperparameters = ("alpha", "beta", *_OWN)
    result = "bnp_models:ContrastFit"
    kernel = kernel
    priors = kernel.CrossCollectionPriors
    sampler_type = _Sampler
    assignments = ("z", "switch")
    by_group = True
    min_groups = 2
    recordable = (
        "z", "switch", "phi", "group_phi", "psi", "theta", "topic_tokens", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        self.check_fields(concentration, *_OWN)

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and groups.
        """
        values, doc = self.start_program(corpus, observed), jnp.asarray(corpus.doc)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with (
            numpyro.plate("group", corpus.num_groups, dim=-2),
            numpyro.plate("topic", self.num_topics, dim=-1),
        ):
            each = jnp.full(corpus.num_words, values["group_beta"])
            group_phi = sample("group_phi", dist.Dirichlet(each))
            law = dist.Beta(values["switch_own"], values["switch_common"])
            psi = sample("psi", law)
        with numpyro.plate("doc", corpus.num_docs):
            theta = sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        group = jnp.asarray(corpus.group)[doc]
        with numpyro.plate("token", corpus.num_tokens):
            z = sample("z", dist.Categorical(theta[doc]))
            switch = sample("switch", dist.Bernoulli(psi[group, z]))
            words = jnp.where((switch == 1)[..., None], group_phi[group, z], phi[z])
            word = jnp.asarray(corpus.word) if observed else None
            sample("w", dist.Categorical(words), obs=word)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **conditioned_on: Any) -> None:
        """Run the program with topics, mixtures and shares of switches integrated out.

        Blocks of `numpyro.infer.Gibbs` share this form of the program. Its sites are `z`, `switch`
        and `w`, and the hyperparameters that have a prior. Arguments (`alpha=`, `switch_own=`)
        override hyperparameters, so that a program with its own priors can call this one. With
        `observed=False` the words are drawn as well.
        """
        values, num_topics = self.start_program(corpus, observed, **conditioned_on), self.num_topics
        doc, num_cells = jnp.asarray(corpus.doc), corpus.num_groups * num_topics
        z = sample("z", Assignments(self.all_alpha(values["alpha"]), doc, corpus.num_docs))
        cell = jnp.asarray(corpus.group)[doc] * num_topics + z
        switches = jnp.stack([values["switch_common"], values["switch_own"]])
        switch = sample("switch", Assignments(switches, cell, num_cells))
        row = jnp.where(switch == 1, num_topics + cell, z)  # own words come after the common ones
        sizes = np.array([num_topics, num_cells])
        beta = jnp.repeat(jnp.stack([values["beta"], values["group_beta"]]), sizes)
        words = Words(row, beta, corpus.num_words, int(sizes.sum()))
        sample("w", words, obs=jnp.asarray(corpus.word) if observed else None)

    def alone(self) -> LDA:
        """Return the model of one group by itself."""
        return LDA(self.num_topics, alpha=self.alpha, beta=self.beta)

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        r"""Return topics, a row for each group, and prior weights of one kept state.

        The topics are $(1 - \psi_{gk}) \phi_k + \psi_{gk} \phi_{gk}$, at the means given the state.
        """
        weights = np.broadcast_to(np.asarray(state["alpha"], np.float32), (1, self.num_topics))
        common, own, switches = (x + a for x, a in self._counts(state, corpus))
        psi = (switches[..., 1] / switches.sum(axis=-1))[:, :, None]
        phi = (1 - psi) * (common / common.sum(axis=-1, keepdims=True))
        phi = phi + psi * (own / own.sum(axis=-1, keepdims=True))
        return Topics(phi.swapaxes(1, 2).astype(np.float32), DirichletLaw(weights))

    def common_topics_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "V K"]:
        r"""Return the common words of each topic, the mean of $\phi_k$ given one kept state."""
        common = np.add(*self._counts(state, corpus)[0])
        return (common / common.sum(axis=-1, keepdims=True)).T.astype(np.float32)

    def likeness_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, " K"]:
        r"""Return the share of common words in each topic, in [0, 1].

        This is one minus the mean of $\psi_{gk}$ over the groups, weighted by their tokens.
        """
        switches = np.add(*self._counts(state, corpus)[2])
        psi = switches[..., 1] / switches.sum(axis=-1)
        return 1 - token_model.group_shares(corpus) @ psi

    def prior_likeness(self, corpus: Corpus) -> tuple[float, float] | None:
        """Return the share of common words that a prior pulls all topics to, and its weight.

        The prior counts as much as c_0 + c_1 tokens of a topic in a group. The weight is how many
        times as much this is as the tokens there on average. None: a concentration has a prior.
        """
        if is_prior(self.switch_common) or is_prior(self.switch_own):
            return None
        total = self.switch_common + self.switch_own
        tokens = corpus.num_tokens / (self.num_topics * corpus.num_groups)
        return self.switch_common / total, total / tokens

    def _counts(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[tuple[np.ndarray, Any], ...]:
        """Return counts and prior of common words, words of each group, and switches.

        The counts are [K, V], [G, K, V] and [G, K, 2].
        """
        z, switch, word = state["z"], np.asarray(state["switch"]), np.asarray(corpus.word)
        num_groups, shape = corpus.num_groups, (self.num_topics, corpus.num_words)
        own = switch == 1
        row = np.asarray(corpus.group)[np.asarray(corpus.doc)].astype(np.int64) * shape[0] + z
        common = count_rows(z[~own], word[~own], *shape)
        of_groups = count_rows(row[own], word[own], num_groups * shape[0], shape[1])
        switches = count_rows(row, switch.astype(int), num_groups * shape[0], 2)
        prior = np.array([state["switch_common"], state["switch_own"]], np.float64)
        return (
            (common, float(state["beta"])),
            (of_groups.reshape(num_groups, *shape), float(state["group_beta"])),
            (switches.reshape(num_groups, shape[0], 2), prior),
        )

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> Likelihood:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        common, own, switches = (self._draw(rng, *pair) for pair in self._counts(state, data))
        phi = switches[..., :1] * common + switches[..., 1:] * own
        alpha = np.broadcast_to(np.asarray(state["alpha"], np.float64), (self.num_topics,))
        theta = topic_model.draw_mixtures_given(rng, self, state, data, alpha)
        return word_likelihood(
            phi, theta, np.asarray(data.doc), np.asarray(data.word), np.asarray(data.group)
        )

    @staticmethod
    def _draw(
        rng: np.random.Generator, counts: np.ndarray, prior: np.ndarray | float
    ) -> Float[np.ndarray, "*shape"]:
        """Draw a Dirichlet vector along the last axis."""
        rows = (counts + prior).reshape(-1, counts.shape[-1])
        return draw_dirichlet(rng, rows).reshape(counts.shape)
