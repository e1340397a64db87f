"""The case of a topic model with a fixed number of topics: LDA, the author-topic model.

`FiniteTopicsCase` has all parts of the case except the schedules, mistakes and limits of the model.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from bnp_models.testing import enumeration, simulate
from bnp_models.testing.cases import Case
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.targets import Joint, Target
from bnp_models.testing.topic_family import (
    TopicFamily,
    as_floats,
    gamma_prior,
    priors_in_program,
    sharp,
)

__all__ = ["FIXED", "PRIORS", "FiniteTopicsCase"]

FIXED = {"alpha": (0.5, 1.2), "beta": 0.5}
PRIORS = {"alpha": (2.0, 2.0), "beta": (2.0, 4.0)}  # concentration and rate
NUM_TOPICS, JOINT_TOPICS = 2, 3  # of enumeration, of Geweke's test


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteTopicsCase(TopicFamily):
    """Parts of the case of a finite topic model.

    `weigh` returns weights [rows, K] of the possible rows and topics of a token. The possible rows
    are its document, or all authors.

    There are three targets. In "fixed" the concentrations are numbers. In "symmetric" they have
    priors, and all topics share one `alpha`. In "asymmetric" each topic has its own `alpha`.
    """

    def case(self, targets: tuple[str, ...], **own: Any) -> Case:
        """Return the case; `own` are the fields of it that belong to the model."""
        return Case(
            model=self.model,
            shipped=self.shipped(),
            targets={name: self.target(name) for name in targets},
            joint=self.joint(),
            tally=self.tally,
            conditional=self.finite_conditional,
            log_joint=self.log_joint,
            program_log_joint=self.program_log_joint,
            **own,
        )

    def exact(self, target: str) -> dict[str, Any]:
        """Return the exact posterior means of a target."""
        names = ["one_topic", "coassigned", "topic"]
        names += ["first_author", "same_pair"] if self.has_authors else []
        fixed = target == "fixed"
        names += ["theta_00", "phi_10", "log_joint"] if fixed else ["alpha", "alpha_sum", "beta"]
        return _enumerated(self, target).means(*names)

    def target(self, name: str) -> Target:
        """Return one of the three targets."""
        alpha, priors = (1.0, 1.0), {"alpha": gamma_prior(*PRIORS["alpha"])}
        priors["beta"] = gamma_prior(*PRIORS["beta"])
        if name == "fixed":
            alpha, priors = FIXED["alpha"], {n: sharp(value) for n, value in FIXED.items()}
        elif name == "asymmetric":
            priors["alpha"] = gamma_prior(*PRIORS["alpha"], shape=(NUM_TOPICS,))

        def start(rng_key):
            return self.kernel.init(
                rng_key, self.tiny.data, num_words=self.tiny.num_words, num_topics=NUM_TOPICS,
                alpha=jnp.array(alpha, jnp.float32), beta=FIXED["beta"],
            )  # fmt: skip

        return Target(
            self.tiny.data, self.priors_type(**priors), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state: Any, data: Any) -> dict[str, jax.Array]:
        """Measure a state of the tiny corpus."""
        alpha, beta = state.alpha, state.beta
        first, num_words = getattr(state, self.rows_field)[0], state.word_topic.shape[0]
        values = self.token_quantities(state) | {
            "alpha": alpha[0],
            "alpha_sum": alpha.sum(),
            "beta": beta,
            "topic": state.topic,
            "theta_00": (first[0] + alpha[0]) / (first.sum() + alpha.sum()),
            "phi_10": (state.word_topic[0, 1] + beta) / (state.topic[1] + num_words * beta),
            "log_joint": self.kernel.log_joint(state, data),
        }
        return as_floats(values)

    def shipped(self) -> Shipped:
        """Return the tiny corpus as users make it, and the model with fixed concentrations."""
        record = ("x", "z") if self.has_authors else ("z",)
        topics = np.arange(NUM_TOPICS)

        def quantities(draws):
            z, x = draws["z"], draws.get("x")
            counts = {"topic": (z[..., None] == topics).sum(axis=-2)}
            return enumeration.token_quantities(z, x) | counts

        def expected():
            exact = self.exact("fixed")
            return {n: exact[n] for n in exact if n not in ("theta_00", "phi_10", "log_joint")}

        model = self.model(NUM_TOPICS, **FIXED)
        return Shipped(model, self.tiny.corpus, quantities, expected, record)

    def joint(self) -> Joint:
        """Return the joint law of everything, from the prior."""
        priors = {
            "alpha": gamma_prior(*PRIORS["alpha"], shape=(JOINT_TOPICS,)),
            "beta": gamma_prior(*PRIORS["beta"]),
        }
        return Joint(
            priors=self.priors_type(**priors),
            simulate=self.simulate,
            redraw=self.redraw_words,
            quantities=self.joint_quantities,
            program=self.draw_program,
        )

    def states(self, z: Any, x: Any, word: Any, alpha: Any, beta: Any) -> tuple[Any, Any]:
        """Return kernel states and data of draws of everything, with a leading axis."""

        def one(z, x, word, alpha, beta):
            return self.make_state(
                self.joint_corpus, z, x, word, JOINT_TOPICS, alpha=alpha, beta=beta
            )

        alpha, beta = np.asarray(alpha, np.float32), np.asarray(beta, np.float32)
        many = quick_jit(jax.vmap(one))(z, x, np.asarray(word, np.int32), alpha, beta)
        return many, self.with_words_of(word)

    def simulate(self, rng: np.random.Generator, size: int) -> tuple[Any, Any]:
        """Draw everything from the prior, in NumPy."""
        corpus, rows = self.joint_corpus, np.arange(size)[:, None]
        alpha = rng.gamma(PRIORS["alpha"][0], 1 / PRIORS["alpha"][1], (size, JOINT_TOPICS))
        beta = rng.gamma(PRIORS["beta"][0], 1 / PRIORS["beta"][1], size)
        theta = simulate.draw_dirichlet(rng, np.repeat(alpha[:, None], corpus.num_rows, axis=1))
        shape = size, JOINT_TOPICS, corpus.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(beta[:, None, None], shape))
        x = corpus.draw_rows(rng, size)
        z = simulate.draw_categorical(rng, theta[rows, x])
        word = simulate.draw_categorical(rng, phi[rows, z])
        return self.states(z, x, word, alpha, beta)

    def draw_program(self, rng_key: jax.Array, size: int) -> dict[str, jax.Array]:
        """Draw everything from the program and measure it."""
        alpha = dist.Gamma(*PRIORS["alpha"]).expand([JOINT_TOPICS])
        model = self.model(JOINT_TOPICS, alpha=alpha, beta=dist.Gamma(*PRIORS["beta"]))
        draws = self.program_draws(rng_key, model, ["alpha", "beta"], size)
        states = self.states(draws["z"], draws["x"], draws["w"], draws["alpha"], draws["beta"])
        return self.measure(self.joint_quantities, *states)

    def joint_quantities(self, state: Any, data: Any) -> dict[str, jax.Array]:
        """Measure what Geweke's test compares."""
        total = state.alpha.sum()
        values = self.count_quantities(state, data) | {
            "log alpha": jnp.log(total),
            "alpha share": state.alpha[1] / total,
            "log beta": jnp.log(state.beta),
            "log alpha * log beta": jnp.log(total) * jnp.log(state.beta),
            "topics used": (state.topic > 0).sum(),
            "first topic * share": state.topic[1] * state.alpha[1] / total,
        }
        return as_floats(values)

    def program_log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Return the log density of the program, with theta and phi integrated out."""
        hyperparameters, values = priors_in_program(FIXED, priors, state)
        model = self.model(NUM_TOPICS, **hyperparameters)
        return self.density_without_mixtures(model, values, state, data, state.alpha)


@functools.lru_cache(maxsize=16)
def _enumerated(family: FiniteTopicsCase, target: str) -> enumeration.Posterior:
    alpha, beta = (enumeration.gamma_rule(*PRIORS[name]) for name in ("alpha", "beta"))
    if target == "fixed":
        alpha, beta = FIXED["alpha"], FIXED["beta"]
    return enumeration.finite_topics(
        family.tiny.docs, family.tiny.num_words, NUM_TOPICS, alpha, beta,
        symmetric=target != "asymmetric", authors=family.tiny.authors,
    )  # fmt: skip
