"""LDA with Pitman-Yor topics: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Integer

from bnp_kernels import pitman_yor_lda as kernel
from bnp_kernels.processes.pitman_yor_topics import PitmanYorState
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base.model import sample
from bnp_models.base.pitman_yor import (
    VAGUE_CONCENTRATION,
    PitmanYorSampler,
    PitmanYorTopics,
)
from bnp_models.base.sampler import Lazy
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["PitmanYorLDA"]


class _Sampler(PitmanYorSampler):
    """Sampler of `PitmanYorLDA`."""

    def init_arguments(
        self, data: Tokens, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        no_beta = {"beta": None} if self.model.base == "uniform" else {}
        return super().init_arguments(data, corpus, values) | no_beta

    def topics(self, rng_key: Array, state: PitmanYorState, data: Tokens) -> Lazy:
        draw = partial(kernel.draw_topics, dirichlet=self.model.is_dirichlet)
        return {
            "phi": lambda: draw(rng_key, state, data).T,
            "topic_tables": lambda: state.tables.sum(axis=0),
        }


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PitmanYorLDA(PitmanYorTopics):
    r"""LDA whose topics use words by a power law (Sato and Nakagawa, KDD 2010).

    $\phi_k \sim \mathrm{PYP}(a, b_k, H_k)$, $\theta_d \sim \mathrm{Dir}(\alpha)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$. The base measure $H_k$ is uniform over the
    vocabulary, or $H_k \sim \mathrm{Dir}(\beta 1_V)$ for each topic. With discount a = 0 and a
    uniform base it is LDA with $\beta = b_k / V$. It is one of the models that Chen, Buntine, Ding,
    Xie and Du (IEEE TPAMI 37, 2015) compare with.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one number per topic, or a prior,
        as for `LDA`.
    base
        "uniform" or "dirichlet".
    beta
        Concentration of a Dirichlet base measure per word: a positive number or a prior. A uniform
        one has none.
    discount
        The discount a: a number in [0, 1), or a prior: `Uniform(0.0, 1.0)` or a beta distribution.
    concentration
        The concentration b_k: one positive number for all topics, or the prior of each one's own.
    max_tables
        How many tables a word may have in a topic: a buffer, not a truncation. `fit` enlarges it
        when a sweep needs more; plain `MCMC` raises an error then.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.PitmanYorLDA(num_topics=20, discount=0.5).base
    'uniform'
    """

    num_topics: int
    alpha: Any = 0.1
    base: str = "uniform"
    beta: Any = 0.01
    discount: Any = 0.7
    concentration: Any = VAGUE_CONCENTRATION
    max_tables: int = 16

    kernel = kernel
    sampler_type = _Sampler
    recordable = (
        "z", "phi", "theta", "topic_tokens", "topic_tables", "opens", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        arguments.one_of("base", self.base, ("uniform", "dirichlet"))
        if self.base == "uniform" and self.beta != 0.01:
            raise ValueError(
                f"beta must be left out with base='uniform', got {self.beta}: it belongs to "
                "base='dirichlet'"
            )

    def program_base(self, values: Mapping[str, Any], corpus: Corpus) -> Array:
        """Run the part of the program before the topics; return their base measures."""
        if self.base == "uniform":
            return jnp.full((self.num_topics, corpus.num_words), 1 / corpus.num_words)
        with numpyro.plate("topic", self.num_topics):
            law = dist.Dirichlet(jnp.full(corpus.num_words, values["beta"]))
            return sample("base", law)

    def base_law(
        self, state: Mapping[str, np.ndarray], tables: Integer[np.ndarray, "G K V"]
    ) -> Float[np.ndarray, "K V"]:
        """Return the parameters of the Dirichlet law of the base measures given the tables."""
        if self.base == "dirichlet":
            return super().base_law(state, tables)
        return np.ones(tables.shape[1:])

    def draw_base(
        self, rng: np.random.Generator, law: Float[np.ndarray, "K V"]
    ) -> Float[np.ndarray, "K V"]:
        """Draw base measures given the parameters of their law; uniform ones are known."""
        if self.base == "dirichlet":
            return super().draw_base(rng, law)
        return law / law.sum(axis=1, keepdims=True)
