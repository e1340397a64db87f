"""The case of a topic model with an HDP root: HDP-LDA, the nonparametric author-topic model.

`HDPCase` has all parts of the case except the schedules, mistakes and limits of the model.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from bnp_kernels.processes import hdp_root
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.cases import Case
from bnp_models.testing.compiled_sweeps import Effort, Growth
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.targets import Conditional, Joint, Target
from bnp_models.testing.topic_family import (
    TopicFamily,
    as_floats,
    gamma_prior,
    priors_in_program,
    sharp,
    somewhere,
)

__all__ = ["CAPACITY", "FIXED", "PRIORS", "HDPCase"]

FIXED = {"alpha": 1.0, "gamma": 1.5, "beta": 0.5}
PRIORS = {"alpha": (2.0, 2.0), "gamma": (2.0, 2.0), "beta": (2.0, 4.0)}  # concentration and rate
CAPACITY = 16  # at least one more than there are tokens
PARALLEL_CAPACITY = 48  # of sweeps that give slots to topics without tokens


def with_root(state: Any, **changes: Any) -> Any:
    """Return the state with some of its root changed."""
    return state._replace(root=state.root._replace(**changes))


def num_used(state: Any) -> Any:
    """Return the number of topics in use."""
    return (state.topic > 0).sum()


@dataclasses.dataclass(frozen=True, eq=False)
class HDPCase(TopicFamily):
    """Parts of the case of an infinite topic model.

    `weigh` returns two arrays: the weights [rows, slots] of the possible rows and used topics of a
    token, and the weights [rows] of a new topic. The possible rows are the document of the token,
    or all authors. The state that it gets has the root after the token was taken out.

    There are two targets. In "fixed" the concentrations are numbers, in "hyper" they have priors.
    """

    def case(self, **own: Any) -> Case:
        """Return the case; `own` are the fields of it that belong to the model."""
        return Case(
            model=self.model,
            shipped=self.shipped(),
            targets={name: self.target(name) for name in ("fixed", "hyper")},
            joint=self.joint(),
            tally=self.tally,
            conditional=self.conditional,
            log_joint=self.log_joint,
            program_log_joint=self.program_log_joint,
            **own,
        )

    def growth(self, capacity: int, fewer: int = 0) -> Growth:
        """Say how the slots of a chain are counted and changed."""
        return Growth(num_used, self.resize, lambda state: state.overflow, capacity, fewer)

    def resize(self, state: Any, max_topics: int) -> Any:
        """Move the used slots to the front, in order, and change the capacity."""
        order = jnp.argsort(state.topic == 0, stable=True)

        def moved(x):
            return jnp.take(x, order, axis=-1)

        root = state.root
        state = with_root(state, weights=moved(root.weights), tables=moved(root.tables))
        state = state._replace(
            z=token_corpora.permute_slots(state.z, order),
            overflow=jnp.zeros((), bool),
            **{n: moved(getattr(state, n)) for n in (self.rows_field, "word_topic", "topic")},
        )
        return self.kernel.grow(state, max_topics)

    def exact(self, target: str) -> dict[str, Any]:
        """Return the exact posterior means of a target."""
        names = ["topics", "tables", "coassigned"]
        names += ["first_author", "same_pair"] if self.has_authors else []
        names += ["unused_weight"] if target == "fixed" else ["alpha", "gamma"]
        means = _enumerated(self, target).means(*names)
        return means | {"topics": means["topics"][:4]}  # more than these are rare

    def target(self, name: str) -> Target:
        """Return one of the two targets."""
        corpus = self.tiny
        priors = {"alpha": gamma_prior(1, 1), "gamma": gamma_prior(1, 1)}
        if name == "fixed":
            priors = {n: sharp(FIXED[n]) for n in priors}

        def start(rng_key):
            return self.kernel.init(
                rng_key, corpus.data, num_words=corpus.num_words, max_topics=CAPACITY,
                init_topics=2, **FIXED,
            )  # fmt: skip

        return Target(
            corpus.data, self.priors_type(**priors), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state: Any, data: Any) -> dict[str, jax.Array]:
        """Measure a state of the tiny corpus."""
        values, root = self.token_quantities(state), state.root
        values |= {
            "topics": values["topics"][:4],
            "tables": root.tables.sum(),
            "unused_weight": root.unused,
            "alpha": state.alpha,
            "gamma": root.gamma,
        }
        return as_floats(values)

    def shipped(self) -> Shipped:
        """Return the tiny corpus as users make it, and the model with fixed concentrations."""
        record = ("tables", "unused_weight", "x", "z")

        def quantities(draws):
            values = enumeration.token_quantities(draws["z"], draws.get("x"))
            return values | {
                "topics": values["topics"][..., :4],
                "tables": draws["tables"].sum(axis=-1),
                "unused_weight": draws["unused_weight"],
            }

        return Shipped(
            self.model(**FIXED, max_topics=PARALLEL_CAPACITY), self.tiny.corpus, quantities,
            functools.partial(self.exact, "fixed"),
            tuple(name for name in record if name in self.model.recordable),
            {"init_topics": 2}, Effort(400, 40, 160),
        )  # fmt: skip

    def joint(self) -> Joint:
        """Return the joint law of everything, from the prior."""
        return Joint(
            priors=self.priors_type(**{n: gamma_prior(*prior) for n, prior in PRIORS.items()}),
            simulate=self.simulate,
            redraw=self.redraw_words,
            quantities=self.joint_quantities,
            program=self.draw_program,
        )

    def states(self, z, x, word, tables, root, hyperparameters) -> tuple[Any, Any]:
        """Return kernel states and data of draws of everything, with a leading axis."""
        free = CAPACITY - z.shape[1]
        weights = np.pad(root[:, :-1], [(0, 0), (0, free)]).astype(np.float32)
        values = {name: np.asarray(v, np.float32) for name, v in hyperparameters.items()}
        tables = np.pad(tables, [(0, 0), (0, free)])
        root = hdp_root.RootWeights(
            weights,  # pyright: ignore[reportArgumentType]
            root[:, -1].astype(np.float32),
            tables,  # pyright: ignore[reportArgumentType]
            values.pop("gamma"),  # pyright: ignore[reportArgumentType]
        )

        def one(z, x, word, root, values):
            return self.make_state(
                self.joint_corpus, z, x, word, CAPACITY, overflow=jnp.zeros((), bool),
                root=root, **values,
            )  # fmt: skip

        many = quick_jit(jax.vmap(one))(z, x, np.asarray(word, np.int32), root, values)
        return many, self.with_words_of(word)

    def simulate(self, rng: np.random.Generator, size: int) -> tuple[Any, Any]:
        """Draw everything from the prior, without truncation.

        The tokens are seated in the Chinese restaurant franchise. Given its tables, the root is a
        Dirichlet draw.
        """
        corpus = self.joint_corpus
        hyper = {name: rng.gamma(a, 1 / b, size) for name, (a, b) in PRIORS.items()}
        x = corpus.draw_rows(rng, size)
        z, tables = simulate.restaurant_franchise(rng, hyper["alpha"], hyper["gamma"], x)
        root = simulate.draw_dirichlet(rng, np.column_stack([tables, hyper["gamma"]]))
        shape = size, z.shape[1], corpus.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(hyper["beta"][:, None, None], shape))
        word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], z])
        return self.states(z, x, word, tables, root, hyper)

    def draw_program(self, rng_key: jax.Array, size: int) -> dict[str, jax.Array]:
        """Draw from the truncated program, and return the quantities that do not need the root.

        The sticks of the program and the unordered weights of a kernel can't be compared.
        """
        priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
        model = self.model(**priors, max_topics=32)  # 1.5e-5 of the root is behind
        draws = self.program_draws(rng_key, model, list(PRIORS), size)
        z = token_corpora.first_appearance(draws["z"])
        no_tables, no_root = np.zeros(z.shape, np.int32), np.zeros((size, z.shape[1] + 1))
        hyper = {name: draws[name] for name in PRIORS}
        states = self.states(z, draws["x"], draws["w"], no_tables, no_root, hyper)
        drawn = self.measure(self.joint_quantities, *states)
        of_root = "tables", "unused weight", "sum tau^2", "sum n_k tau_k", "gamma * unused"
        return {name: drawn[name] for name in drawn if name not in (*of_root, "log joint")}

    def joint_quantities(self, state: Any, data: Any) -> dict[str, jax.Array]:
        """Measure what Geweke's test compares."""
        root, used = state.root, num_used(state)
        log_alpha, log_gamma, log_beta = map(jnp.log, (state.alpha, root.gamma, state.beta))
        values = self.count_quantities(state, data) | {
            "log alpha": log_alpha,
            "log gamma": log_gamma,
            "log beta": log_beta,
            "log alpha * log gamma": log_alpha * log_gamma,
            "log alpha * log beta": log_alpha * log_beta,
            "topics": used,
            "topics * log gamma": used * log_gamma,
            "tables": root.tables.sum(),
            "unused weight": root.unused,
            "gamma * unused": root.gamma * root.unused,
            "sum tau^2": (root.weights**2).sum(),
            "sum n_k tau_k": (state.topic * root.weights).sum(),
        }
        return as_floats(values)

    def conditional(self, state: Any, data: Any, token: Any) -> Conditional:
        """Weigh every possible row and slot of a token, and a new topic.

        `birth` computes the mass of a new topic from a uniform number u. So the weight of a new
        topic is a density with respect to u. The joint density is one with respect to the mass, and
        is multiplied by the derivative of the mass in u.
        """
        slots = jnp.arange(state.topic.shape[0])
        minus = slots == state.z[token]
        n_k, gamma = state.topic - minus, state.root.gamma
        root, pool = hdp_root.death(*state.root[:2], n_k, minus)  # pyright: ignore[reportCallIssue]
        left = with_root(state, weights=root, unused=pool)
        weights, weights_new = self.weigh(left, data, token)
        free = jnp.argmax(n_k == 0)

        def born(u):
            after = hdp_root.birth(root, pool, slots == free, gamma, u)
            return after[0][free], after

        slope, (new_root, new_pool) = jax.grad(born, has_aux=True)(jnp.float32(0.6))

        def joint(row, topic, root, pool):
            moved = self.move(state, data, token, row, topic)
            moved = with_root(moved, weights=root, unused=pool)
            return self.kernel.log_joint(moved, data) + self.kernel.log_root(moved)

        def of_row(row):
            joints = jax.vmap(lambda k: joint(row, k, root, pool))(slots)
            joints = jnp.where(root > 0, joints, -jnp.inf)  # a slot without mass
            return jnp.append(joints, joint(row, free, new_root, new_pool) + jnp.log(slope))

        rows, allowed = self.possible_rows(data, token)
        weights = jnp.concatenate([weights, weights_new[:, None]], axis=1)
        both = jnp.log(weights), jax.vmap(of_row)(rows)
        return Conditional(*(jnp.where(allowed, x, -jnp.inf).reshape(-1) for x in both))

    def program_log_joint(self, state: Any, data: Any, priors: Any) -> Any:
        """Return the log density of the program given the root, with theta and phi integrated out.

        The first sticks of the program are the slots of the state, and its last topic is the pool.
        So the concentrations of the rows are those of the state.
        """
        hyperparameters, values = priors_in_program(FIXED, priors, state, state.root._asdict())
        used = 2  # `start` uses two slots
        model, root = self.model(**hyperparameters, max_topics=used + 1), state.root
        weights = jnp.append(root.weights[:used], root.unused)
        before = jnp.append(0.0, jnp.cumsum(weights)[:-1])
        sticks = (weights / (1 - before))[:-1]
        theta = jnp.asarray(somewhere(self.tiny.num_rows, used + 1), jnp.float32)
        phi = jnp.asarray(somewhere(used + 1, self.tiny.num_words), jnp.float32)
        values |= {"sticks": sticks, "theta": theta, "phi": phi}
        total = self.program_density(model, values, state, data)
        of_sticks = dist.Beta(1.0, root.gamma).log_prob(sticks).sum()
        concentration = jnp.maximum(state.alpha * weights, 1e-6)
        counts = getattr(state, self.rows_field)[:, : used + 1]
        rows = dist.Dirichlet(concentration + counts).log_prob(theta)
        words = dist.Dirichlet(state.beta + state.word_topic.T[: used + 1]).log_prob(phi)
        return total - of_sticks - rows.sum() - words.sum()


@functools.lru_cache(maxsize=16)
def _enumerated(family: HDPCase, target: str) -> enumeration.Posterior:
    alpha, gamma = FIXED["alpha"], FIXED["gamma"]
    if target == "hyper":
        alpha = gamma = enumeration.gamma_rule(1.0, 1.0)
    return enumeration.exact_hdp_posterior(
        family.tiny.docs, family.tiny.num_words, alpha, gamma, FIXED["beta"],
        authors=family.tiny.authors,
    )  # fmt: skip
