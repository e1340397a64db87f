"""LDA with Pitman-Yor topics: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from bnp_kernels import pitman_yor_lda as kernel
from bnp_kernels.processes.pitman_yor import SAMPLERS
from bnp_models.base import pitman_yor, token_model, topic_model
from bnp_models.base.data_law import DataLaw, count_rows, draw_dirichlet, law_of_words
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.base.model import concentration, gamma_prior, is_prior
from bnp_models.base.samplers import BY_DOCUMENT, Rows, finite_sampler
from bnp_models.base.terms import TOPICS, Terms
from bnp_models.base.topics import Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.results.topic_fit import TopicFit

__all__ = ["PitmanYorLDA"]

_VAGUE = dist.Gamma(2.0, 0.01)  # nothing changes a distribution, so models may share it


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PitmanYorLDA(topic_model.FiniteTopics):
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
    concentration: Any = _VAGUE
    max_tables: int = 16

    terms: ClassVar[Terms] = TOPICS._replace(capacity="max_tables")
    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "beta", "discount", "concentration")
    result: ClassVar[type[TopicFit]] = TopicFit
    rows: ClassVar[Rows] = BY_DOCUMENT
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "topic_tables", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        super().__post_init__()
        set_field = partial(object.__setattr__, self)
        arguments.one_of("base", self.base, ("uniform", "dirichlet"))
        if self.base == "uniform" and self.beta != 0.01:
            raise ValueError(
                f"beta must be left out with base='uniform', got {self.beta}: it belongs to "
                "base='dirichlet'"
            )
        set_field("discount", pitman_yor.discount("discount", self.discount))
        set_field("concentration", concentration("concentration", self.concentration))
        set_field("max_tables", arguments.integer("max_tables", self.max_tables, 1))

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**super().dims, "concentration": ("topic",)}

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths. The program draws; it has no density, because the Pitman-Yor process has none
        in closed form. `augmented` has one.
        """
        token_model.check_program(corpus, observed)
        topic_model.refuse_missing_topics()
        values, base = self._first_sites(corpus)
        discount = values["discount"] if is_prior(self.discount) else self.discount
        with numpyro.plate("topic", self.num_topics):
            law = pitman_yor.PitmanYor(discount, values["concentration"], base)
            phi = numpyro.sample("phi", law)
        self._last_sites(corpus, observed, values, phi)

    def augmented(self, corpus: Corpus, *, observed: bool = True) -> None:
        r"""Run the program with auxiliary variables, whose density NumPyro can compute.

        A topic is a vector of positive stable variables $s_w$ with scales $H_w$, divided by its
        sum, with the density times $(\sum_w s_w)^{-b} \Gamma(1 + b) / \Gamma(1 + b / a)$. Each has
        an angle and an exponential variable (sites `angle` and `energy`). Use it for inference:
        predictive draws ignore the factor.
        """
        token_model.check_program(corpus, observed)
        values, base = self._first_sites(corpus)
        a, b = values["discount"], values["concentration"]
        if not is_prior(self.discount) and self.discount == 0:
            with numpyro.plate("topic", self.num_topics):
                phi = numpyro.sample("phi", dist.Dirichlet(b[:, None] * base))
            self._last_sites(corpus, observed, values, phi)
            return
        with (
            numpyro.plate("topic", self.num_topics, dim=-2),
            numpyro.plate("word", corpus.num_words, dim=-1),
        ):
            angle = numpyro.sample("angle", dist.Uniform(0.0, jnp.pi))
            energy = numpyro.sample("energy", dist.Exponential(1.0))
        log_s = (
            jnp.log(base) / a + jnp.log(jnp.sin(a * angle)) - jnp.log(jnp.sin(angle)) / a
            + (1 - a) / a * (jnp.log(jnp.sin((1 - a) * angle)) - jnp.log(energy))
        )  # fmt: skip
        log_total = jax.nn.logsumexp(log_s, axis=1)
        constant = jax.scipy.special.gammaln(1 + b) - jax.scipy.special.gammaln(1 + b / a)
        numpyro.factor("tilt", (constant - b * log_total).sum())
        phi = numpyro.deterministic("phi", jnp.exp(log_s - log_total[:, None]))
        self._last_sites(corpus, observed, values, phi)

    def _first_sites(self, corpus: Corpus) -> tuple[dict[str, Any], Any]:
        """Run the part of the program before the topics; return values and base measures."""
        own = {}
        if is_prior(self.concentration):
            own["concentration"] = self.concentration.expand([self.num_topics])
        values = self.sample_hyperparameters(**own)
        values["concentration"] = jnp.broadcast_to(values["concentration"], (self.num_topics,))
        shape = self.num_topics, corpus.num_words
        if self.base == "uniform":
            return values, jnp.full(shape, 1 / corpus.num_words)
        with numpyro.plate("topic", self.num_topics):
            law = dist.Dirichlet(jnp.full(corpus.num_words, values["beta"]))
            return values, numpyro.sample("base", law)

    def _last_sites(self, corpus: Corpus, observed: bool, values: dict[str, Any], phi: Any) -> None:
        """Run the part of the program after the topics."""
        doc, word, num_tokens = token_model.program_tokens(corpus)
        with numpyro.plate("doc", corpus.num_docs):
            theta = numpyro.sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        sampler: str = "ti",
        record: Collection[str] = (),
        init_topics: int | None = None,
        side_by_side: int | None = None,
        start_temperature: float = 1.0,
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (a sweep draws the topics first and then updates documents side by side) or
            "sequential" (fully collapsed, one token after another). Both are exact.
        sampler
            How the sequential schedule moves a token and its table: "ti" (table indicators), "ss"
            (seats, without the sizes of tables) or "cs" (the tables are held while the tokens
            move). All are exact.
        record
            Variables to record besides the sampled hyperparameters and `num_topics_used`, out of
            `recordable`: `z`, `phi`, `theta`, `topic_tokens`, `topic_tables` (tables of each
            topic). `theta_mean` is a running mean, which costs no memory per draw.
        init_topics
            Number of topics among which the tokens are divided at random at the start; all topics
            by default.
        side_by_side
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
            schedule=schedule, record=record, init_topics=init_topics, side_by_side=side_by_side,
            start_temperature=start_temperature,
        )  # fmt: skip
        how = arguments.one_of("sampler", sampler, SAMPLERS)
        if how != "ti" and schedule == "parallel":
            raise ValueError(
                f"sampler must be left out with schedule='parallel', got {sampler!r}: it belongs "
                "to schedule='sequential'"
            )
        return GibbsKernel(self, made.options | {"sampler": how})

    def sampler(self, elsewhere: frozenset[str], **options: Any) -> Sampler:
        """Return the kernel's pure functions; hyperparameters in `elsewhere` are not updated."""
        dirichlet = not is_prior(self.discount) and self.discount == 0
        how = options.pop("sampler")

        def make(rng_key, data, *, beta, **values):
            return kernel.init(
                rng_key, data, max_tables=min(self.max_tables, data.sizes.shape[0]),
                beta=None if self.base == "uniform" else beta, **values,
            )  # fmt: skip

        def topics(rng_key, state):
            return {
                "phi": lambda: kernel.draw_topics(rng_key, state, dirichlet=dirichlet).T,
                "topic_tables": lambda: state.tables.sum(axis=0),
            }

        def prepare(corpus, num_shards):
            return token_model.prepare(corpus, num_shards, options["side_by_side"], sizes=True)

        made = finite_sampler(
            self, kernel, self.rows, elsewhere, priors=kernel.PitmanYorPriors, topics=topics,
            kept=lambda state, data: {"opens": kernel.opens(state, data)}, make=make,
            advance=partial(kernel.step, sampler=how, dirichlet=dirichlet), **options,
        )  # fmt: skip
        return made._replace(
            prepare=prepare, wanted=kernel.tables_wanted, grow=kernel.grow,
            capacity=lambda state: state.room.shape[-1],
        )  # fmt: skip

    def start_values(
        self, rng_key: jax.Array, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> dict[str, Any]:
        """Return all hyperparameters by name; each topic has a concentration of its own."""
        return super().start_values(rng_key, {"concentration": (self.num_topics,)})

    def gamma_priors(self, elsewhere: Collection[str]) -> dict[str, Any]:
        """Return the priors that the kernel updates, by name."""
        priors = {
            name: gamma_prior(name, getattr(self, name), given=name in elsewhere)
            for name in self.hyperparameters
            if name != "discount"
        }
        sampled = None if "discount" in elsewhere else pitman_yor.discount_prior(self.discount)
        return {**priors, "discount": sampled}

    def topics_of(self, state: Mapping[str, np.ndarray], corpus: Corpus) -> Topics:
        r"""Return topics and prior weights of one kept state.

        $(m_w - a t_w + (b + a T) H_w) / (b + M)$, with the mean of $H$ given the tables.
        """
        customers, tables, base = self._counts(state, corpus)
        a, b = float(state["discount"]), self._concentration(state)[:, None]
        own = customers - a * tables
        phi = own + (b + a * tables.sum(axis=1, keepdims=True)) * base
        phi = phi / (b + customers.sum(axis=1, keepdims=True))
        weights = np.broadcast_to(np.asarray(state["alpha"], np.float32), (1, self.num_topics))
        return Topics(phi.T[None].astype(np.float32), weights)

    def _concentration(self, state: Mapping[str, np.ndarray]) -> np.ndarray:
        value = np.asarray(state["concentration"], np.float64)
        return np.broadcast_to(value, (self.num_topics,))

    def _counts(
        self, state: Mapping[str, np.ndarray], corpus: Corpus
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return tokens, tables, and the mean of the base measure, each [K, V]."""
        z, word = np.asarray(state["z"]), np.asarray(corpus.word)
        opens, shape = np.asarray(state["opens"]).astype(bool), (self.num_topics, corpus.num_words)
        tables = count_rows(z[opens], word[opens], *shape)
        base = np.full(shape, 1 / shape[1])
        if self.base == "dirichlet":
            base = tables + float(state["beta"])
            base = base / base.sum(axis=1, keepdims=True)
        return count_rows(z, word, *shape), tables, base

    def data_law(
        self, rng: np.random.Generator, state: Mapping[str, np.ndarray], data: Corpus
    ) -> DataLaw:
        """Draw topics and mixtures given one kept state; return the law of the words given them."""
        customers, tables, base = self._counts(state, data)
        if self.base == "dirichlet":
            base = draw_dirichlet(rng, tables + float(state["beta"]))
        phi = pitman_yor.draw_posterior(
            rng, customers, tables, base, discount=float(state["discount"]),
            concentration=self._concentration(state),
        )  # fmt: skip
        doc, word = np.asarray(data.doc), np.asarray(data.word)
        counts = count_rows(doc, state["z"], data.num_docs, self.num_topics)
        theta = draw_dirichlet(rng, counts + np.asarray(state["alpha"], np.float64))
        return law_of_words(phi, theta, doc, word)
