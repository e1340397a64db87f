"""The author-topic model: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar

import jax
import numpyro
import numpyro.distributions as dist

from bnp_kernels import author_topic as kernel
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.author_layout import AuthorTokens
from bnp_models.base import author_model, collapsed, token_model, topic_model
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.data.corpus import Corpus

__all__ = ["AuthorTopicModel"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AuthorTopicModel(topic_model.FiniteTopics, author_model.AuthorModel):
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

    recordable: ClassVar[tuple[str, ...]] = (
        "z", "x", "phi", "theta", "topic_tokens", "author_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths and authors.
        """
        values = self.sample_hyperparameters()
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("author", corpus.num_authors):
            theta = numpyro.sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        author_model.draw_words(corpus, theta, phi, observed=observed)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **given: Any) -> None:
        """Run the program with topics and authors' mixtures integrated out.

        It is the form that blocks of `numpyro.infer.Gibbs` share: sites `x` (authors), `z` and
        `w`, and the hyperparameters that have a prior. `given` (`alpha=`, `beta=`) overrides them,
        so that a program with priors of its own can call this one.
        """
        values = self.sample_hyperparameters(**given)
        x = author_model.draw_authors(corpus)
        alpha = self.all_alpha(values["alpha"])
        z = numpyro.sample("z", collapsed.Assignments(alpha, x, corpus.num_authors))
        words = collapsed.Words(z, values["beta"], corpus.num_words, self.num_topics)
        word = token_model.program_tokens(corpus)[1]
        numpyro.sample("w", words, obs=word if observed else None)

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        record: Collection[str] = (),
        init_topics: int | None = None,
        block_size: int | None = None,
        program: Callable | None = None,
        ignore: Collection[str] = (),
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
        program
            As a block of `numpyro.infer.Gibbs`, the one of sites `x` and `z`: the program
            that the blocks share, one that ends in a call of `collapsed`.
        ignore
            As a block: sites of `program` on which tokens do not depend given the hyperparameters.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        sites = ("x", "z") if program else ()
        options = {
            "schedule": token_model.check_option("schedule", schedule, self.schedules),
            "record": token_model.check_record(record, self.recordable, sites),
            "init_topics": token_model.check_count("init_topics", init_topics),
            "block_size": token_model.check_count("block_size", block_size),
        }
        self.check_init_topics(init_topics)
        return GibbsKernel(self, options, program=program, ignore=ignore)

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
        priors = kernel.AuthorTopicPriors(**self.gamma_priors(elsewhere))

        def init(rng_key: jax.Array, data: AuthorTokens, corpus: Corpus):
            key_z, key_values = split(rng_key)
            values = self.start_values(key_values)
            return kernel.init(
                key_z, data, num_words=corpus.num_words, num_topics=self.num_topics,
                alpha=self.all_alpha(values["alpha"]), beta=values["beta"], init_topics=init_topics,
            )  # fmt: skip

        def step(rng_key, state, data, turn, axis_name):
            if schedule == "sequential":
                return kernel.sequential_step(rng_key, state, data, priors)
            return kernel.parallel_step(rng_key, state, data, priors, axis_name=axis_name)

        def draws(rng_key, state, data):
            key_phi, key_theta = split(rng_key)
            lazy = self.lazy_draws(key_phi, state) | {
                "x": lambda: state.x,
                "author_tokens": lambda: state.author,
                "theta": lambda: token_model.draw_theta(key_theta, state.author_topic, state.alpha),
            }
            return self.always_recorded(state, priors) | token_model.make_these(record, lazy)

        def means(state, data):
            lazy = {
                "phi_mean": lambda: topic_model.phi_mean(state),
                "theta_mean": lambda: (
                    (state.author_topic + state.alpha) / (state.author[:, None] + state.alpha.sum())
                ),
            }
            return token_model.make_these(record, lazy)

        return Sampler(
            prepare=partial(author_model.prepare, block_size=block_size),
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
                "alpha": self.recorded_alpha(state.alpha),
                "beta": state.beta,
            },
            given=self.given,
            data_specs=author_model.data_specs,
        )
