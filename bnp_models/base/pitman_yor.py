r"""Pitman-Yor processes over a finite vocabulary, and the family of models with such topics."""

import abc
import contextlib
import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Integer, Key, PyTree

from bnp_kernels.processes.pitman_yor import SAMPLERS, BetaPrior, draw_topics
from bnp_kernels.processes.pitman_yor_topics import PitmanYorPriors
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base import topic_model
from bnp_models.base.likelihood import Likelihood, count_rows, draw_dirichlet, word_likelihood
from bnp_models.base.model import TOPICS, concentration, deterministic, is_prior, sample
from bnp_models.base.sampler import Lazy
from bnp_models.base.topic_sampler import FiniteSampler
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.checks import LIMIT
from bnp_models.data.corpus import Corpus

__all__ = [
    "VAGUE_CONCENTRATION",
    "PitmanYor",
    "PitmanYorOptions",
    "PitmanYorSampler",
    "PitmanYorTopics",
    "discount",
    "discount_prior",
    "draw_posterior",
]

VAGUE_CONCENTRATION = dist.Gamma(2.0, 0.01)  # nothing changes a distribution

_draw_topics = jax.jit(partial(draw_topics, dirichlet=False))


class PitmanYor(dist.Distribution):
    r"""Law of the weights of a Pitman-Yor process, $\mathrm{PYP}(a, b, H)$, over V words.

    It is drawn exactly, without truncation, as a normalised generalised gamma process (Pitman and
    Yor, Annals of Probability 25, 1997). Its density has no closed form: the program
    `augmented` of the model has one.

    Parameters
    ----------
    discount
        The discount a, in [0, 1).
    concentration
        The concentration b of each draw, positive, [K].
    base
        The base measure H of each draw, positive; rows sum to one, [K, V], or [G, K, V] for G draws
        with each concentration.
    """

    arg_constraints = {  # noqa: RUF012 (as in NumPyro)
        "discount": dist.constraints.interval(0.0, 1.0),
        "concentration": dist.constraints.positive,
        "base": dist.constraints.simplex,
    }
    support = dist.constraints.simplex  # pyright: ignore[reportAssignmentType]

    def __init__(self, discount: ArrayLike, concentration: ArrayLike, base: ArrayLike):
        self.is_dirichlet = isinstance(discount, float | int) and discount == 0
        self.discount = jnp.asarray(discount, jnp.float32)
        self.concentration, self.base = jnp.asarray(concentration), jnp.asarray(base)
        super().__init__(self.base.shape[:-1], self.base.shape[-1:])

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw the weights."""
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):  # NumPyro passes raw keys, too
            key = jax.random.wrap_key_data(key)
        *_, num_topics, num_words = self.base.shape
        base = self.base.reshape(-1, num_topics, num_words).swapaxes(1, 2)
        rows = jnp.maximum(base.reshape(-1, num_topics), 1e-37)
        none = jnp.zeros(rows.shape, jnp.int32)

        def one(key):
            drawn = draw_topics(
                key, none, none, rows, discount=self.discount, concentration=self.concentration,
                num_groups=base.shape[0], dirichlet=self.is_dirichlet,
            )  # fmt: skip
            return drawn.phi.reshape(base.shape).swapaxes(1, 2).reshape(self.base.shape)

        if not sample_shape:
            return one(key)
        keys = jax.random.split(key, int(np.prod(sample_shape)))
        return jax.vmap(one)(keys).reshape(*sample_shape, *self.base.shape)

    def log_prob(self, value: ArrayLike) -> Any:
        """Refuse: there is no closed form."""
        raise ValueError(
            "the density of a Pitman-Yor process has no closed form: use the program "
            "`model.augmented` for inference by NumPyro, or model.gibbs()"
        )


def discount(name: str, value: object) -> Any:
    """Return a discount in its stored form: a number in [0, 1), or a prior over (0, 1)."""
    if not is_prior(value):
        number = arguments.finite_number(name, value, at_least=0)
        if not np.float32(number) < 1:
            raise ValueError(f"{name} must be below 1, got {value!r}")
        return number
    allowed = isinstance(value, dist.Beta | dist.Uniform) and value.batch_shape == ()
    if isinstance(value, dist.Uniform):
        allowed = allowed and np.all(value.low == 0) and np.all(value.high == 1)
    if not allowed:
        raise ValueError(
            f"{name} must be a number in [0, 1), Uniform(0.0, 1.0), or Beta(concentration1, "
            f"concentration0), got {type(value).__name__}"
        )
    if isinstance(value, dist.Beta):
        for part in ("concentration1", "concentration0"):
            arguments.finite_number(f"{part} of {name}", float(getattr(value, part)), above=0)
    return value


def discount_prior(value: float | dist.Beta | dist.Uniform) -> BetaPrior | None:
    """Return the prior of a discount as the kernels take it; None for a number."""
    if isinstance(value, dist.Uniform):
        return BetaPrior(np.float32(1), np.float32(1))
    if isinstance(value, dist.Beta):
        return BetaPrior(
            *(np.asarray(x, np.float32) for x in (value.concentration1, value.concentration0))
        )
    return None


def draw_posterior(
    rng: np.random.Generator,
    customers: Integer[np.ndarray, "K V"],
    tables: Integer[np.ndarray, "K V"],
    base: Float[np.ndarray, "K V"],
    *,
    discount: float,
    concentration: Float[np.ndarray, " K"],
) -> Float[np.ndarray, "K V"]:
    r"""Draw topics given their tables, on the host.

    A topic is a Dirichlet draw with $m_w - a t_w$ for the words it has, and $b + a T$ for the rest,
    which is divided among all words by $\mathrm{PYP}(a, b + a T, H)$.
    """
    if discount == 0:
        return draw_dirichlet(rng, np.maximum(customers + concentration[:, None] * base, 1e-30))
    total = concentration + discount * tables.sum(axis=1)
    shares = np.concatenate([customers - discount * tables, total[:, None]], axis=1)
    shares = draw_dirichlet(rng, np.maximum(shares, 0.0))
    none = np.zeros(base.T.shape, np.int32)
    rest = _draw_topics(
        jax.random.key(int(rng.integers(2**31))), none, none,
        np.maximum(base.T, 1e-37).astype(np.float32), discount=np.float32(discount),
        concentration=total.astype(np.float32),
    )  # fmt: skip
    rest = np.asarray(rest.phi, np.float64).T
    return shares[:, :-1] + shares[:, -1:] * rest / rest.sum(axis=1, keepdims=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PitmanYorOptions(topic_model.FiniteOptions):
    """Options of models with Pitman-Yor topics.

    Parameters
    ----------
    sampler
        How the sequential schedule moves a token and its table: "ti" (table indicators), "ss"
        (seats, without the sizes of tables) or "cs" (the tables are held while the tokens move).
        All are exact.
    """

    sampler: str = "ti"

    choices: ClassVar = {"sampler": SAMPLERS}
    sequential_only = ("sampler",)


class PitmanYorSampler(FiniteSampler):
    """The sampler of a chain with Pitman-Yor topics.

    The kernel also has `opens`, `tables_needed` and `grow`; slots are those of the tables.
    """

    grows = True
    slot_field = "table_capacity"

    def layout(self, corpus: Corpus) -> dict[str, Any]:
        """Return further options of `token_model.prepare`."""
        return super().layout(corpus) | {"sizes": True}

    def init_arguments(
        self, data: PyTree, corpus: Corpus, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return all entries of `alpha`, and the number of tables that a word may have."""
        most = min(self.model.max_tables, data.count_values.shape[0])
        return super().init_arguments(data, corpus, values) | {"max_tables": most}

    def step(
        self, rng_key: Key[Array, ""], state: PyTree, data: PyTree, turn: PyTree, power: PyTree
    ) -> tuple[PyTree, PyTree]:
        """Make one sweep; refuse one whose ratios of Stirling numbers would be too many."""
        customers, tables = data.count_values.shape[0] - 1, state.table_capacity.shape[-1]
        num_ratios = (customers + 1) * (tables + 2)
        what = (
            f"corpus has a word of {customers} tokens or so, and topics need up to {tables} tables "
            f"for it (max_tables), so that a sweep has {num_ratios} ratios"
        )
        fix = "leave the most frequent words out, or use a smaller discount"
        if num_ratios >= LIMIT:
            raise ValueError(f"{what}, and 2**31 is the limit: {fix}")
        arguments.check_memory(what, 8 * num_ratios, fix)  # and their numbers, for the discount
        return super().step(rng_key, state, data, turn, power)

    def step_options(self) -> dict[str, Any]:
        """Return arguments of `kernel.step` that are not options of `gibbs`."""
        return {"dirichlet": self.model.is_dirichlet}

    def recorded(self, state: PyTree, data: PyTree) -> Lazy:
        """Return functions that make further variables to record."""
        return super().recorded(state, data) | {"opens": lambda: self.kernel.opens(state, data)}

    def snapshot(self, state: PyTree, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of a state; tokens that open a table among it."""
        return super().snapshot(state, data) | {"opens": self.kernel.opens(state, data)}

    def slots_needed(self, state: PyTree, data: PyTree) -> Int[Array, ""]:
        """Return how many tables the next sweep may need."""
        return self.kernel.tables_needed(state, data)


class PitmanYorTopics(topic_model.FiniteTopics):
    r"""A topic model whose topics are $\mathrm{PYP}(a, b_k, H)$, with a base measure H of words."""

    discount: Any
    concentration: Any
    max_tables: int

    priors = PitmanYorPriors
    options_type = PitmanYorOptions
    sampler_type = PitmanYorSampler
    terms = TOPICS._replace(capacity="max_tables")
    hyperparameters = ("alpha", "beta", "discount", "concentration")
    topics_site: ClassVar[str] = "phi"
    """Site of the topics in the program."""

    def __post_init__(self):
        super().__post_init__()
        self.check_fields(discount, "discount")
        self.check_fields(concentration, "concentration")
        self.check_fields(arguments.integer, "max_tables", minimum=1)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**super().dims, "concentration": ("topic",), "opens": ("token",)}

    @property
    def is_dirichlet(self) -> bool:
        """Whether the discount is 0, so that topics are Dirichlet draws."""
        return not is_prior(self.discount) and self.discount == 0

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and groups. The program draws; it has no density, because the Pitman-Yor
        process has none in closed form. `augmented` has one.
        """
        topic_model.refuse_missing_topics()
        self._run_program(corpus, observed, is_augmented=False)

    def augmented(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the program with auxiliary variables, whose density NumPyro can compute.

        See `augmented_topics`. Use it for inference: predictive draws ignore the factor.
        """
        self._run_program(corpus, observed, is_augmented=True)

    def _run_program(self, corpus: Corpus, observed: bool, *, is_augmented: bool) -> None:
        values = self.start_program(corpus, observed)
        base = self.program_base(values, corpus)
        last = -2 if is_augmented and not self.is_dirichlet else -1
        groups = contextlib.nullcontext()
        if self.by_group:
            groups = numpyro.plate("group", corpus.num_groups, dim=last - 1)
        with groups, numpyro.plate("topic", self.num_topics, dim=last):
            if is_augmented:
                topics = self.augmented_topics(self.topics_site, values, base)
            else:
                a = values["discount"] if is_prior(self.discount) else self.discount
                law = PitmanYor(a, values["concentration"], base)
                topics = sample(self.topics_site, law)
        weights = self.doc_weights(values["alpha"], corpus)
        topic_model.draw_documents(corpus, weights, topics, observed)

    @abc.abstractmethod
    def program_base(self, values: Mapping[str, Any], corpus: Corpus) -> Array:
        """Run the part of the program before the topics; return their base measures."""

    def doc_weights(self, alpha: Array, corpus: Corpus) -> Array:
        """Return the prior weights of the topics in all documents, [K], or in each, [D, K]."""
        return self.all_alpha(alpha)

    def augmented_topics(
        self, name: str, values: Mapping[str, Any], base: Array | np.ndarray
    ) -> Array:
        r"""Run the topics' part of a program that has a density, in plates before the last axis.

        A topic is a vector of positive stable variables $s_w$ with scales $H_w$, divided by its
        sum, with the density times $(\sum_w s_w)^{-b} \Gamma(1 + b) / \Gamma(1 + b / a)$. Each has
        an angle and an exponential variable (sites `angle` and `energy`).
        """
        a, b = values["discount"], values["concentration"]
        if self.is_dirichlet:
            return sample(name, dist.Dirichlet(b[:, None] * base))
        with numpyro.plate("word", base.shape[-1], dim=-1):
            angle = sample("angle", dist.Uniform(0.0, jnp.pi))
            energy = sample("energy", dist.Exponential(1.0))
        log_s = (
            jnp.log(base) / a + jnp.log(jnp.sin(a * angle)) - jnp.log(jnp.sin(angle)) / a
            + (1 - a) / a * (jnp.log(jnp.sin((1 - a) * angle)) - jnp.log(energy))
        )  # fmt: skip
        log_total = jax.nn.logsumexp(log_s, axis=-1)
        constant = jax.scipy.special.gammaln(1 + b) - jax.scipy.special.gammaln(1 + b / a)
        numpyro.factor("tilt", (constant - b * log_total)[..., None])
        return deterministic(name, jnp.exp(log_s - log_total[..., None]))

    def shapes(self, corpus: Corpus) -> dict[str, tuple[int, ...]]:
        """Return the shapes of hyperparameters of which one prior stands for many entries."""
        return {"concentration": (self.num_topics,)}

    def prior_to_update(self, name: str) -> GammaPrior | BetaPrior | None:
        """Return the prior of a hyperparameter as the kernel takes it; None for a number."""
        return (
            discount_prior(self.discount) if name == "discount" else super().prior_to_update(name)
        )

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        r"""Return topics and prior weights of one kept state; for groups, a row for each.

        Topics are $(m_w - a t_w + (b + a T) H_w) / (b + M)$, with the mean of $H$ given the tables.
        """
        customers, tables = self.counts_of(state, corpus)
        given = self.base_law(state, tables)
        base = self.base_measures(given / given.sum(axis=1, keepdims=True), corpus)
        a, b = float(state["discount"]), self.concentration_of(state)[:, None]
        rest = b + a * tables.sum(axis=2, keepdims=True)
        phi = (customers - a * tables + rest * base) / (b + customers.sum(axis=2, keepdims=True))
        law = DirichletLaw(self.weights_of(state, corpus))
        return Topics(phi.swapaxes(1, 2).astype(np.float32), law)

    def likelihood_given_state(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> Likelihood:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        customers, tables = self.counts_of(state, data)
        base = self.base_measures(self.draw_base(rng, self.base_law(state, tables)), data)
        a, b = float(state["discount"]), self.concentration_of(state)
        phi = np.stack(
            [
                draw_posterior(rng, *of_group, discount=a, concentration=b)
                for of_group in zip(customers, tables, base, strict=True)
            ]
        )
        weights, group = self.weights_of(state, data).astype(np.float64), None
        if self.by_group:
            group = np.asarray(data.group)
            weights = weights[group]
        theta = topic_model.draw_mixtures_given(rng, self, state, data, weights)
        return word_likelihood(phi, theta, np.asarray(data.doc), np.asarray(data.word), group)

    def counts_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[Integer[np.ndarray, "G K V"], Integer[np.ndarray, "G K V"]]:
        """Return tokens and tables of one kept state; all in one group where topics have none."""
        row, word = np.asarray(state["z"]), np.asarray(corpus.word)
        opens, shape = np.asarray(state["opens"]).astype(bool), (self.num_topics, corpus.num_words)
        num_rows = self.num_topics
        if self.by_group:
            group = np.asarray(corpus.group, np.int64)[np.asarray(corpus.doc)]
            row, num_rows = group * self.num_topics + row, corpus.num_groups * self.num_topics
        customers = count_rows(row, word, num_rows, corpus.num_words)
        tables = count_rows(row[opens], word[opens], num_rows, corpus.num_words)
        return customers.reshape(-1, *shape), tables.reshape(-1, *shape)

    def base_law(
        self, state: Mapping[str, np.ndarray], tables: Integer[np.ndarray, "G K V"]
    ) -> Float[np.ndarray, "K V0"]:
        """Return the parameters of the Dirichlet law of the base measures given the tables."""
        return tables.sum(axis=0) + float(state["beta"])

    def draw_base(
        self, rng: np.random.Generator, law: Float[np.ndarray, "K V0"]
    ) -> Float[np.ndarray, "K V0"]:
        """Draw base measures given the parameters of their law."""
        return draw_dirichlet(rng, law)

    def base_measures(
        self, root: Float[np.ndarray, "K V0"], corpus: Corpus
    ) -> Float[np.ndarray, "G K V"]:
        """Return the base measures of the topics of each group."""
        return root[None]

    def weights_of(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> Float[np.ndarray, "G K"]:
        """Return prior weights of topics in new documents, for groups a row for each."""
        return np.broadcast_to(np.asarray(state["alpha"], np.float32), (1, self.num_topics))

    def concentration_of(self, state: Mapping[str, np.ndarray]) -> Float[np.ndarray, " K"]:
        """Return the concentration of each topic in one kept state."""
        value = np.asarray(state["concentration"], np.float64)
        return np.broadcast_to(value, (self.num_topics,))
