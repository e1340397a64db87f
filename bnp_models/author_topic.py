"""The author-topic model: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from bnp_kernels import author_topic as kernel
from bnp_kernels.author_tokens import AuthorTokens
from bnp_kernels.gamma import draw_rows
from bnp_models import authors, tokens
from bnp_models.corpus import Corpus
from bnp_models.gibbs import GibbsKernel, Sampler
from bnp_models.mixtures import MixtureStates, finite_states
from bnp_models.model import check_integer, concentration, gamma_prior, is_prior

__all__ = ["AuthorTopicModel"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AuthorTopicModel(authors.AuthorModel):
    r"""Author-topic model (Rosen-Zvi, Griffiths, Steyvers and Smyth, UAI 2004).

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\theta_j \sim \mathrm{Dir}(\alpha)$ for every author;
    each token has one of its document's authors, $x_t \sim \mathrm{Uniform}$, and
    $z_t \sim \theta_{x_t}$, $w_t \sim \phi_{z_t}$.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Author-topic concentration per topic: a positive number, one per topic, or a prior. A
        scalar prior is that of one symmetric concentration, a prior of batch shape (K,) that of
        independent ones.
    beta
        Topic-word concentration per word: a positive number or a prior.

    Raises
    ------
    ValueError
        If a parameter is out of its domain; the message names it, its value and what is allowed.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.AuthorTopicModel(num_topics=20, alpha=0.5).num_topics
    20
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01

    hyperparameters: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    schedules: ClassVar[tuple[str, ...]] = ("parallel", "sequential")
    recordable: ClassVar[tuple[str, ...]] = (
        "z", "x", "phi", "theta", "topic_tokens", "author_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    def __post_init__(self):
        set_field = partial(object.__setattr__, self)
        set_field("num_topics", check_integer("num_topics", self.num_topics, 1))
        set_field("alpha", concentration("alpha", self.alpha, length=self.num_topics))
        set_field("beta", concentration("beta", self.beta))

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and authors.
        """
        values = {}
        for name in self.hyperparameters:
            value = getattr(self, name)
            if is_prior(value):
                value = numpyro.sample(name, value.to_event(len(value.batch_shape)))
            values[name] = jnp.asarray(value, jnp.float32)
        alpha = jnp.broadcast_to(values["alpha"], (self.num_topics,))
        with numpyro.plate("topic", self.num_topics):
            phi = numpyro.sample("phi", dist.Dirichlet(jnp.full(corpus.num_words, values["beta"])))
        with numpyro.plate("author", corpus.num_authors):
            theta = numpyro.sample("theta", dist.Dirichlet(alpha))
        authors.draw_words(corpus, theta, phi, observed=observed)

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        record: Collection[str] = (),
        init_topics: int | None = None,
        block_size: int | None = None,
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (mixtures and topics drawn once per sweep, all tokens side by side) or
            "sequential" (fully collapsed, token after token). Both are exact.
        record
            Variables to record besides the sampled hyperparameters and `num_topics_used`: `z`,
            `x` (authors of the tokens), `phi`, `theta` (topic shares of the authors),
            `topic_tokens`, `author_tokens`; `phi_mean` and `theta_mean` are running means, which
            cost no memory per draw.
        init_topics
            Tokens start in this many topics at random; all of them by default.
        block_size
            How many tokens move at once in the parallel schedule; chosen for the machine by
            default. Does not change the draws.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        options = {
            "schedule": tokens.check_option("schedule", schedule, self.schedules),
            "record": tokens.check_record(record, self.recordable),
            "init_topics": tokens.check_count("init_topics", init_topics),
            "block_size": tokens.check_count("block_size", block_size),
        }
        if init_topics is not None and init_topics > self.num_topics:
            raise ValueError(
                f"init_topics must be at most num_topics={self.num_topics}, got {init_topics}"
            )
        return GibbsKernel(self, options)

    def sampler(
        self,
        elsewhere: frozenset[str],
        *,
        schedule: str,
        record: tuple[str, ...],
        init_topics: int | None,
        block_size: int | None,
    ) -> Sampler:
        """Return the kernel's pure functions; hyperparameters sampled `elsewhere` stay as given."""
        priors = kernel.AuthorTopicPriors(
            alpha=gamma_prior("alpha", self.alpha, given="alpha" in elsewhere),
            beta=gamma_prior("beta", self.beta, given="beta" in elsewhere),
        )
        vector = self._alpha_is_vector

        def init(rng_key: jax.Array, data: AuthorTokens, corpus: Corpus):
            key_z, key_alpha, key_beta = jax.random.split(rng_key, 3)
            alpha = self.alpha.sample(key_alpha) if is_prior(self.alpha) else self.alpha
            beta = self.beta.sample(key_beta) if is_prior(self.beta) else self.beta
            alpha = jnp.broadcast_to(jnp.asarray(alpha, jnp.float32), (self.num_topics,))
            return kernel.init(
                key_z, data, num_words=corpus.num_words, num_topics=self.num_topics,
                alpha=alpha, beta=beta, init_topics=init_topics,
            )  # fmt: skip

        def step(rng_key, state, data, turn, axis_name):
            if schedule == "sequential":
                return kernel.sequential_step(rng_key, state, data, priors)
            return kernel.parallel_step(rng_key, state, data, priors, axis_name=axis_name)

        def draws(rng_key, state, data):
            key_phi, key_theta = jax.random.split(rng_key)
            out: dict[str, jax.Array] = {"num_topics_used": (state.topic > 0).sum()}
            if priors.alpha is not None:
                out["alpha"] = state.alpha if vector else state.alpha[0]
            if priors.beta is not None:
                out["beta"] = state.beta
            wanted = {
                "z": lambda: state.z,
                "x": lambda: state.x,
                "topic_tokens": lambda: state.topic,
                "author_tokens": lambda: state.author,
                "phi": lambda: tokens.draw_phi(key_phi, state.word_topic, state.beta),
                "theta": lambda: draw_rows(key_theta, state.author_topic + state.alpha),
            }
            return out | {name: make() for name, make in wanted.items() if name in record}

        def means(state, data):
            num_words = state.word_topic.shape[0]
            wanted = {
                "phi_mean": lambda: (
                    ((state.word_topic + state.beta) / (state.topic + num_words * state.beta)).T
                ),
                "theta_mean": lambda: (
                    (state.author_topic + state.alpha) / (state.author[:, None] + state.alpha.sum())
                ),
            }
            return {name: make() for name, make in wanted.items() if name in record}

        def given(state, values):
            if "alpha" in values:
                alpha = jnp.broadcast_to(values["alpha"], state.alpha.shape)
                state = state._replace(alpha=alpha)
            return state._replace(beta=values.get("beta", state.beta))

        return Sampler(
            prepare=partial(authors.prepare, block_size=block_size),
            init=init,
            step=step,
            rotation=(0,),
            draws=draws,
            means=means,
            log_density=lambda state, data: (
                kernel.log_joint(state, data) + kernel.log_prior(state, priors)
            ),
            used=lambda state: state.topic > 0,
            snapshot=lambda state: {
                "z": state.z,
                "x": state.x,
                "alpha": state.alpha if vector else state.alpha[0],
                "beta": state.beta,
            },
            given=given,
            data_specs=authors.data_specs,
        )

    @property
    def _alpha_is_vector(self) -> bool:
        return np.ndim(getattr(self.alpha, "concentration", self.alpha)) > 0

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dims of the recorded variables, behind chain and draw."""
        return {**authors.DIMS, **({"alpha": ("topic",)} if self._alpha_is_vector else {})}

    def mixtures(self, states: Any, corpus: Corpus) -> MixtureStates:
        """Return what recorded states say about documents of one author who is not known."""
        alpha = np.asarray(states["alpha"])
        return finite_states(
            np.asarray(states["z"]),
            np.asarray(corpus.word),
            num_words=corpus.num_words,
            num_topics=self.num_topics,
            alpha=alpha if self._alpha_is_vector else alpha[..., None],
            beta=np.asarray(states["beta"]),
            draw=np.asarray(states["draw"]),
            vocabulary=corpus.vocabulary,
        )
