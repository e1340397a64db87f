"""What the models with Pitman-Yor topics share: hyperparameters, options, parts of the programs."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Float, Integer

from bnp_kernels.processes.pitman_yor import SAMPLERS
from bnp_kernels.processes.pitman_yor_topics import PitmanYorPriors
from bnp_models.base import pitman_yor, token_model, topic_model
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.base.likelihood import count_rows
from bnp_models.base.model import concentration, gamma_prior, is_prior
from bnp_models.base.model_words import TOPICS, ModelWords
from bnp_models.base.samplers import finite_sampler
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["VAGUE_CONCENTRATION", "PitmanYorTopics", "program_of_documents"]

VAGUE_CONCENTRATION = dist.Gamma(2.0, 0.01)  # nothing changes a distribution


class PitmanYorTopics(topic_model.FiniteTopics):
    r"""A topic model whose topics are $\mathrm{PYP}(a, b_k, H)$, with a base measure H of words."""

    discount: Any
    concentration: Any
    max_tables: int

    terms: ClassVar[ModelWords] = TOPICS._replace(capacity="max_tables")
    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "beta", "discount", "concentration")

    def __post_init__(self):
        super().__post_init__()
        set_field = partial(object.__setattr__, self)
        set_field("discount", pitman_yor.discount("discount", self.discount))
        set_field("concentration", concentration("concentration", self.concentration))
        set_field("max_tables", arguments.integer("max_tables", self.max_tables, 1))

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**super().dims, "concentration": ("topic",)}

    @property
    def is_dirichlet(self) -> bool:
        """Whether the discount is 0, so that topics are Dirichlet draws."""
        return not is_prior(self.discount) and self.discount == 0

    def draw_hyperparameters(self, **own: Any) -> dict[str, Any]:
        """Run the hyperparameters' part of a program, with a concentration for each topic."""
        if is_prior(self.concentration):
            own["concentration"] = self.concentration.expand([self.num_topics])
        values = self.sample_hyperparameters(**own)
        shape = (self.num_topics,)
        return {**values, "concentration": jnp.broadcast_to(values["concentration"], shape)}

    def law_of_topics(self, values: Mapping[str, Any], base: Any) -> dist.Distribution:
        """Return the law of the topics, for draws; it has no density."""
        discount = values["discount"] if is_prior(self.discount) else self.discount
        return pitman_yor.PitmanYor(discount, values["concentration"], base)

    def augmented_topics(self, name: str, values: Mapping[str, Any], base: Any) -> Any:
        r"""Run the topics' part of a program that has a density, in plates before the last axis.

        A topic is a vector of positive stable variables $s_w$ with scales $H_w$, divided by its
        sum, with the density times $(\sum_w s_w)^{-b} \Gamma(1 + b) / \Gamma(1 + b / a)$. Each has
        an angle and an exponential variable (sites `angle` and `energy`).
        """
        a, b = values["discount"], values["concentration"]
        if self.is_dirichlet:
            return numpyro.sample(name, dist.Dirichlet(b[:, None] * base))
        with numpyro.plate("word", base.shape[-1], dim=-1):
            angle = numpyro.sample("angle", dist.Uniform(0.0, jnp.pi))
            energy = numpyro.sample("energy", dist.Exponential(1.0))
        log_s = (
            jnp.log(base) / a + jnp.log(jnp.sin(a * angle)) - jnp.log(jnp.sin(angle)) / a
            + (1 - a) / a * (jnp.log(jnp.sin((1 - a) * angle)) - jnp.log(energy))
        )  # fmt: skip
        log_total = jax.nn.logsumexp(log_s, axis=-1)
        constant = jax.scipy.special.gammaln(1 + b) - jax.scipy.special.gammaln(1 + b / a)
        numpyro.factor("tilt", (constant - b * log_total)[..., None])
        return numpyro.deterministic(name, jnp.exp(log_s - log_total[..., None]))

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        sampler: str = "ti",
        record: Collection[str] = (),
        init_topics: int | None = None,
        num_parallel: int | None = None,
        start_temperature: float = 1.0,
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (a sweep draws the topics first and then updates documents side by side) or
            "sequential" (one token after another, with the topics integrated out). Both are exact.
        sampler
            How the sequential schedule moves a token and its table: "ti" (table indicators), "ss"
            (seats, without the sizes of tables) or "cs" (the tables are held while the tokens
            move). All are exact.
        record
            Variables to record besides the sampled hyperparameters and `num_topics_used`, out of
            `recordable`, such as `z`, `phi`, `theta`, `topic_tokens`. `theta_mean` is a running
            mean, which costs no memory per draw.
        init_topics
            Number of topics among which the tokens are divided at random at the start; all topics
            by default.
        num_parallel
            How many documents the parallel schedule updates at once; chosen from the corpus and the
            machine by default. Does not change the draws.
        start_temperature
            Temperature T of the first sweep of the warm-up, in [1, 2], see `FiniteTopics.gibbs`.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        made = super().gibbs(
            schedule=schedule, record=record, init_topics=init_topics, num_parallel=num_parallel,
            start_temperature=start_temperature,
        )  # fmt: skip
        how = arguments.one_of("sampler", sampler, SAMPLERS)
        if how != "ti" and schedule == "parallel":
            raise ValueError(
                f"sampler must be left out with schedule='parallel', got {sampler!r}: it belongs "
                "to schedule='sequential'"
            )
        return GibbsKernel(self, made.options | {"sampler": how})

    def make_sampler(
        self,
        kernel: Any,
        sampled_by_other_blocks: frozenset[str],
        *,
        topics: Callable[..., Any],
        make: Callable[..., Any],
        prepare: Callable[..., Any],
        how: Mapping[str, Any],
        **options: Any,
    ) -> Sampler:
        """Return the kernel's pure functions.

        Parameters
        ----------
        kernel, sampled_by_other_blocks, topics, options
            See `finite_sampler`.
        make
            The `init` of the kernel, with the room for tables.
        prepare
            Corpus, number of shards -> data of the kernel.
        how
            Options of the kernel's `step`.
        """
        made = finite_sampler(
            self, kernel, self.rows, sampled_by_other_blocks, priors=PitmanYorPriors, topics=topics,
            make=lambda key, data, **own: make(
                key, data, max_tables=min(self.max_tables, data.count_values.shape[0]), **own
            ),
            advance=partial(kernel.step, dirichlet=self.is_dirichlet, **how), **options,
        )  # fmt: skip
        return made._replace(
            prepare=prepare, slots_needed=kernel.tables_needed, grow=kernel.grow,
            capacity=lambda state: state.table_capacity.shape[-1],
        )  # fmt: skip

    def shapes(self, corpus: Corpus) -> dict[str, tuple[int, ...]]:
        """Return the shapes of hyperparameters of which one prior stands for many entries."""
        return {"concentration": (self.num_topics,)}

    def gamma_priors(self, sampled_by_other_blocks: Collection[str]) -> dict[str, Any]:
        """Return the priors that the kernel updates, by name."""
        priors = {
            name: gamma_prior(
                name, getattr(self, name), from_other_block=name in sampled_by_other_blocks
            )
            for name in self.hyperparameters
            if name != "discount"
        }
        sampled = (
            None
            if "discount" in sampled_by_other_blocks
            else pitman_yor.discount_prior(self.discount)
        )
        return {**priors, "discount": sampled}

    def counts_of(
        self,
        state: Mapping[str, np.ndarray],
        word: Integer[np.ndarray, " T"],
        num_words: int,
        group: Integer[np.ndarray, " T"] | None = None,
        num_groups: int = 1,
    ) -> tuple[Integer[np.ndarray, "G K V"], Integer[np.ndarray, "G K V"]]:
        """Return tokens and tables of one kept state; all in one group by default."""
        z, opens = np.asarray(state["z"]), np.asarray(state["opens"]).astype(bool)
        row = z if group is None else np.asarray(group, np.int64) * self.num_topics + z
        shape = num_groups, self.num_topics, num_words
        customers = count_rows(row, word, num_groups * self.num_topics, num_words)
        tables = count_rows(row[opens], word[opens], num_groups * self.num_topics, num_words)
        return customers.reshape(shape), tables.reshape(shape)

    def concentration_of(self, state: Mapping[str, np.ndarray]) -> Float[np.ndarray, " K"]:
        """Return the concentration of each topic in one kept state."""
        value = np.asarray(state["concentration"], np.float64)
        return np.broadcast_to(value, (self.num_topics,))

    def means_of(
        self,
        state: Mapping[str, np.ndarray],
        customers: Integer[np.ndarray, "G K V"],
        tables: Integer[np.ndarray, "G K V"],
        base: Float[np.ndarray, "G K V"],
    ) -> Float[np.ndarray, "G K V"]:
        r"""Return the mean of the topics, $(m_w - a t_w + (b + a T) H_w) / (b + M)$."""
        a, b = float(state["discount"]), self.concentration_of(state)[:, None]
        rest = b + a * tables.sum(axis=2, keepdims=True)
        return (customers - a * tables + rest * base) / (b + customers.sum(axis=2, keepdims=True))


def program_of_documents(
    corpus: Corpus, observed: bool, concentration: Any, law_of_word: Callable[[Any, Any], Any]
) -> None:
    """Run the part of a program after the topics.

    Parameters
    ----------
    concentration
        Of the mixture of each document, [K] or [D, K].
    law_of_word
        Documents and topics of the tokens -> probabilities of the words, [T, V].
    """
    doc, word, num_tokens = token_model.program_tokens(corpus)
    with numpyro.plate("doc", corpus.num_docs):
        theta = numpyro.sample("theta", dist.Dirichlet(concentration))
    with numpyro.plate("token", num_tokens):
        z = numpyro.sample("z", dist.Categorical(theta[doc]))
        law = dist.Categorical(law_of_word(doc, z))
        numpyro.sample("w", law, obs=word if observed else None)
