"""Latent Dirichlet allocation: the program, its hyperparameters and its Gibbs kernel."""

import dataclasses
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar

import jax
import numpyro
import numpyro.distributions as dist

from bnp_kernels import lda as kernel
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import collapsed, token_model, topic_model
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.data.corpus import Corpus

__all__ = ["LDA"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LDA(topic_model.FiniteTopics):
    r"""Latent Dirichlet allocation (Blei, Ng and Jordan, JMLR 3, 2003, section 3).

    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $\theta_d \sim \mathrm{Dir}(\alpha)$,
    $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$.

    Parameters
    ----------
    num_topics
        Number of topics, K.
    alpha
        Document-topic concentration per topic: a positive number, one per topic, or a prior. A
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
    >>> import numpyro.distributions as dist
    >>> bnp.LDA(num_topics=20, alpha=dist.Gamma(1.0, 1.0)).num_topics
    20
    """

    num_topics: int
    alpha: Any = 0.1
    beta: Any = 0.01

    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "phi_mean", "theta_mean",
    )  # fmt: skip

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        values = self.sample_hyperparameters()
        doc, word, num_tokens = token_model.program_tokens(corpus)
        phi = topic_model.draw_phi(values["beta"], self.num_topics, corpus.num_words)
        with numpyro.plate("doc", corpus.num_docs):
            theta = numpyro.sample("theta", dist.Dirichlet(self.all_alpha(values["alpha"])))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **given: Any) -> None:
        """Run the program with topics and documents integrated out.

        It is the form that blocks of `numpyro.infer.Gibbs` share: sites `z` and `w`, and the
        hyperparameters that have a prior. `given` (`alpha=`, `beta=`) overrides them, so that a
        program with priors of its own can call this one.
        """
        values = self.sample_hyperparameters(**given)
        doc, word, _ = token_model.program_tokens(corpus)
        alpha = self.all_alpha(values["alpha"])
        z = numpyro.sample("z", collapsed.Assignments(alpha, doc, corpus.num_docs))
        words = collapsed.Words(z, values["beta"], corpus.num_words, self.num_topics)
        numpyro.sample("w", words, obs=word if observed else None)

    def gibbs(
        self,
        *,
        schedule: str = "parallel",
        record: Collection[str] = (),
        init_topics: int | None = None,
        num_lanes: int | None = None,
        program: Callable | None = None,
        ignore: Collection[str] = (),
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (topics drawn once per sweep, documents side by side) or "sequential" (fully
            collapsed, token after token). Both are exact.
        record
            Variables to record besides the sampled hyperparameters and `num_topics_used`: `z`,
            `phi`, `theta`, `topic_tokens`; `phi_mean` and `theta_mean` are running means, which
            cost no memory per draw.
        init_topics
            Tokens start in this many topics at random; all of them by default.
        num_lanes
            How many documents move side by side in the parallel schedule; chosen from the corpus
            by default. Does not change the draws.
        program
            As a block of `numpyro.infer.Gibbs`, the one of site `z`: the program that the blocks
            share, one that ends in a call of `collapsed`.
        ignore
            As a block: sites of `program` on which tokens do not depend given the hyperparameters.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        options = {
            "schedule": token_model.check_option("schedule", schedule, self.schedules),
            "record": token_model.check_record(record, self.recordable, ("z",) if program else ()),
            "init_topics": token_model.check_count("init_topics", init_topics),
            "num_lanes": token_model.check_count("num_lanes", num_lanes),
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
        num_lanes: int | None,
    ) -> Sampler:
        """Return the kernel's pure functions; hyperparameters sampled `elsewhere` stay as given."""
        priors = kernel.LDAPriors(**self.gamma_priors(elsewhere))

        def init(rng_key: jax.Array, data: Tokens, corpus: Corpus) -> kernel.LDAState:
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
                "theta": lambda: token_model.draw_theta(key_theta, state.doc_topic, state.alpha),
            }
            return self.always_recorded(state, priors) | token_model.make_these(record, lazy)

        def means(state, data):
            lazy = {
                "phi_mean": lambda: topic_model.phi_mean(state),
                "theta_mean": lambda: (
                    (state.doc_topic + state.alpha) / (data.doc_length[:, None] + state.alpha.sum())
                ),
            }
            return token_model.make_these(record, lazy)

        return Sampler(
            prepare=partial(token_model.prepare, num_lanes=num_lanes),
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
                "alpha": self.recorded_alpha(state.alpha),
                "beta": state.beta,
            },
            given=self.given,
            data_specs=token_model.data_specs,
        )
