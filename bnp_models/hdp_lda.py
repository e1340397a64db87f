"""The HDP topic model: the truncated program, its hyperparameters and its exact Gibbs kernel."""

import dataclasses
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bnp_kernels import hdp_lda as kernel
from bnp_kernels.random.bits import split
from bnp_kernels.tokens.layout import Tokens
from bnp_models.base import collapsed, token_model, topic_model
from bnp_models.base.gibbs import GibbsKernel, Sampler
from bnp_models.base.model import check_integer
from bnp_models.data.corpus import Corpus

__all__ = ["HDPLDA"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class HDPLDA(topic_model.RootedTopics):
    r"""Topic model with a hierarchical Dirichlet process (Teh et al., JASA 101, 2006).

    $\tau \sim \mathrm{GEM}(\gamma)$, $\theta_d \sim \mathrm{DP}(\alpha, \tau)$,
    $\phi_k \sim \mathrm{Dir}(\beta 1_V)$, $z_t \sim \theta_{d_t}$, $w_t \sim \phi_{z_t}$: LDA with
    countably many topics, of which the documents use a finite number that is inferred.

    Parameters
    ----------
    alpha
        Document concentration: a positive number or a prior.
    gamma
        Root concentration: a positive number or a prior. More topics for larger values.
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
    The program replaces the infinite sequence of topics by the first `max_topics` sticks, the last
    of which takes what is left. Its law of words and topics differs from the model's in total
    variation by at most $\mathrm{E}[M] (\gamma / (1 + \gamma))^{K - 1}$ with K = `max_topics` and
    M the number of tables, $\mathrm{E}[M] = \sum_d \alpha (\psi(\alpha + N_d) - \psi(\alpha))$.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> bnp.HDPLDA(beta=0.01).max_topics
    128
    """

    alpha: Any = topic_model.VAGUE
    gamma: Any = topic_model.VAGUE
    beta: Any = 0.01
    max_topics: int = 128

    recordable: ClassVar[tuple[str, ...]] = (
        "z", "phi", "theta", "topic_tokens", "root_weights", "unused_weight", "tables",
    )  # fmt: skip

    def __call__(self, corpus: Corpus, *, observed: bool = True) -> None:
        """Run the truncated generative program: an instance is a NumPyro model.

        With `observed=False` the words are drawn as well, for predictive draws over documents of
        these lengths.
        """
        values = self.sample_hyperparameters()
        doc, word, num_tokens = token_model.program_tokens(corpus)
        weights = topic_model.draw_root_weights(values["gamma"], self.max_topics)
        phi = topic_model.draw_phi(values["beta"], self.max_topics, corpus.num_words)
        with numpyro.plate("doc", corpus.num_docs):
            # the floor keeps a float32 Dirichlet from returning exact zeros
            concentration = jnp.maximum(values["alpha"] * weights, 1e-6)
            theta = numpyro.sample("theta", dist.Dirichlet(concentration))
        with numpyro.plate("token", num_tokens):
            z = numpyro.sample("z", dist.Categorical(theta[doc]))
            numpyro.sample("w", dist.Categorical(phi[z]), obs=word if observed else None)

    def collapsed(self, corpus: Corpus, *, observed: bool = True, **given: Any) -> None:
        """Run the program with topics and documents integrated out, the root weights kept.

        It is the form that blocks of `numpyro.infer.Gibbs` share: sites `root`, `z` and `w`, and
        the hyperparameters that have a prior. `given` (`alpha=`, `gamma=`, `beta=`) overrides them,
        so that a program with priors of its own can call this one. The density is that of the
        infinite model with unordered topics; draws are truncated at `max_topics`.
        """
        values = self.sample_hyperparameters(**given)
        alpha, gamma = values["alpha"], values["gamma"]
        doc, word, _ = token_model.program_tokens(corpus)
        root = numpyro.sample("root", collapsed.Root(gamma, self.max_topics))
        z = numpyro.sample(
            "z", collapsed.RootedAssignments(alpha, gamma, root, doc, corpus.num_docs)
        )
        words = collapsed.Words(z, values["beta"], corpus.num_words, self.max_topics)
        numpyro.sample("w", words, obs=word if observed else None)

    def gibbs(
        self,
        *,
        schedule: str = "mixed",
        record: Collection[str] = (),
        init_topics: int = 50,
        num_lanes: int | None = None,
        program: Callable | None = None,
        ignore: Collection[str] = (),
    ) -> GibbsKernel:
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

        Parameters
        ----------
        schedule
            "parallel" (topics and sticks drawn once per sweep, documents side by side),
            "sequential" (fully collapsed, token after token) or "mixed" (every second sweep splits
            and merges topics, the others are parallel and sequential in turn). All are exact;
            topics are born and found soonest in "mixed".
        record
            Variables to record besides the sampled hyperparameters and `num_topics_used`: `z`,
            `phi`, `theta`, `topic_tokens`, `root_weights`, `unused_weight`, `tables`. Variables
            with a topic axis have one entry per slot, zero where no token uses it.
        init_topics
            Tokens start in this many topics at random.
        num_lanes
            How many documents move side by side in the parallel schedule; chosen from the corpus
            by default. Does not change the draws.
        program
            As a block of `numpyro.infer.Gibbs`, the one of sites `root` and `z`: the program that
            the blocks share, one that ends in a call of `collapsed`.
        ignore
            As a block: sites of `program` on which tokens do not depend given the hyperparameters.

        Raises
        ------
        ValueError
            If an option is not one of those above. A prior without a Gibbs update is refused when
            a chain starts.
        """
        sites = ("root", "z") if program else ()
        options = {
            "schedule": token_model.check_option("schedule", schedule, self.schedules),
            "record": token_model.check_record(record, self.recordable, sites),
            "init_topics": check_integer("init_topics", init_topics, 1),
            "num_lanes": token_model.check_count("num_lanes", num_lanes),
        }
        return GibbsKernel(self, options, program=program, ignore=ignore)

    def sampler(
        self,
        elsewhere: frozenset[str],
        *,
        schedule: str,
        record: tuple[str, ...],
        init_topics: int,
        num_lanes: int | None,
    ) -> Sampler:
        """Return the kernel's pure functions; hyperparameters sampled `elsewhere` stay as given."""
        priors = kernel.HDPPriors(**self.gamma_priors(elsewhere))

        def init(rng_key: jax.Array, data: Tokens, corpus: Corpus) -> kernel.HDPState:
            key_z, key_values = split(rng_key)
            return kernel.init(
                key_z, data, num_words=corpus.num_words,
                max_topics=max(self.max_topics, init_topics), init_topics=init_topics,
                **self.start_values(key_values),
            )  # fmt: skip

        def step(rng_key, state, data, turn, axis_name):
            if schedule == "parallel":
                return kernel.parallel_step(rng_key, state, data, priors, axis_name=axis_name)
            if schedule == "sequential":
                return kernel.sequential_step(rng_key, state, data, priors)
            return kernel.any_step(rng_key, state, data, priors, turn, axis_name=axis_name)

        def draws(rng_key, state, data):
            key_phi, key_theta = split(rng_key)
            lazy = self.lazy_draws(key_phi, state) | {
                "root": lambda: collapsed.pack_root(state.root_weights, state.unused_weight),
                "theta": lambda: token_model.draw_theta(
                    key_theta,
                    state.doc_topic,
                    state.alpha * state.root_weights,
                    state.alpha * state.unused_weight,
                ),
            }
            return self.always_recorded(state, priors) | token_model.make_these(record, lazy)

        return Sampler(
            prepare=partial(token_model.prepare, num_lanes=num_lanes),
            init=init,
            step=step,
            rotation=(1, 0, 1, 2) if schedule == "mixed" else (0,),
            draws=draws,
            means=lambda state, data: {},
            log_density=lambda state, data: (
                kernel.log_joint(state, data)
                + kernel.log_root(state)
                + kernel.log_prior(state, priors)
            ),
            used=lambda state: state.topic > 0,
            snapshot=lambda state: {
                name: getattr(state, name)
                for name in ("z", *self.hyperparameters, "root_weights", "unused_weight")
            },
            given=self.given,
            data_specs=token_model.data_specs,
            wanted=kernel.slots_wanted,
            capacity=lambda state: state.topic.shape[-1],
            grow=kernel.grow,
        )
