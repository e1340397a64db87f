"""The three-level HDP topic model's kernels: enumeration, Geweke, densities, limits, mistakes.

The posterior of the tiny corpus is a sum over set partitions, tables of documents and tables of
groups. The simulator seats tokens in a franchise of three levels.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from bnp_kernels import hdp_lda
from bnp_kernels import multi_task_hdp_lda as kernel
from bnp_kernels.processes import hdp_root, split_merge
from bnp_kernels.random import tables
from bnp_models import MultiTaskHDPLDA, testing
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.hdp_case import HDPCase, num_used, with_root
from bnp_models.testing.topic_family import (
    as_floats,
    gamma_prior,
    priors_in_program,
    sharp,
    somewhere,
)

FIXED = {"alpha": 1.5, "group_alpha": 1.0, "gamma": 1.2, "beta": 0.5}
PRIORS = {"alpha": (2.0, 2.0), "group_alpha": (2.0, 1.0), "gamma": (2.0, 2.0), "beta": (2.0, 4.0)}
CAPACITY = 48
# documents of a group are not neighbours
TINY = testing.TinyCorpus(
    [[0, 0], [1, 2], [2, 1]], num_words=3, group=[0, 1, 0], layout={"num_lanes": 1}
)
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 3, 4)], num_words=4, group=[1, 0, 0, 1], layout={"num_lanes": 2}
)


def weigh(state, data, token):
    minus = jnp.arange(state.topic.shape[0]) == state.z[token]
    doc = data.doc[token]
    return kernel.conditional(
        state.doc_topic[doc] - minus, state.word_topic[data.word[token]] - minus,
        state.topic - minus, weights=kernel.doc_weights(state, data)[doc], beta=state.beta,
        num_words=state.word_topic.shape[0],
    )[None]  # fmt: skip


@functools.cache
def enumerated(target):
    values = FIXED
    if target == "hyper":
        rule = enumeration.gamma_rule(1.0, 1.0)
        values = {name: rule for name in FIXED} | {"beta": FIXED["beta"]}
    return enumeration.grouped_topics(TINY.docs, TINY.group, TINY.num_words, **values)


@dataclasses.dataclass(frozen=True, eq=False)
class GroupedTopics(HDPCase):
    """Parts of the case: as for other topics with a root, with the weights of the groups."""

    def exact(self, target):
        names = ["topics", "tables", "group_tables", "coassigned"]
        names += ["unused_weight", "group_unused"] if target == "fixed" else list(FIXED)[:3]
        means = enumerated(target).means(*names)
        return means | {"topics": means["topics"][:4]}

    def target(self, name):
        priors = {n: gamma_prior(1, 1) for n in ("alpha", "group_alpha", "gamma")}
        if name == "fixed":
            priors = {n: sharp(FIXED[n]) for n in priors}

        def start(rng_key):
            return kernel.init(
                rng_key, TINY.data, num_words=TINY.num_words, num_groups=2, max_topics=CAPACITY,
                init_topics=2, **FIXED,
            )  # fmt: skip

        return testing.Target(
            TINY.data, kernel.MultiTaskPriors(**priors), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state, data):
        values = self.token_quantities(state) | self.root_quantities(state)
        return as_floats(values | {"topics": values["topics"][:4]})

    def root_quantities(self, state):
        return {
            "tables": state.group_tables.sum(),
            "group_tables": state.root.tables.sum(),
            "unused_weight": state.root.unused,
            "group_unused": jnp.exp(state.group_log_unused),
            "alpha": state.alpha,
            "group_alpha": state.group_alpha,
            "gamma": state.root.gamma,
        }

    def shipped(self):
        record = ("tables", "unused_weight", "group_unused", "z")

        def quantities(draws):
            values = enumeration.token_quantities(draws["z"], None)
            return values | {
                "topics": values["topics"][..., :4],
                "group_tables": draws["tables"].sum(axis=-1),
                "unused_weight": draws["unused_weight"],
                "group_unused": draws["group_unused"],
            }

        def exact():
            return {n: x for n, x in self.exact("fixed").items() if n != "tables"}

        return testing.Shipped(
            MultiTaskHDPLDA(**FIXED, max_topics=CAPACITY), TINY.corpus, quantities, exact, record,
            {"init_topics": 2}, testing.Effort(400, 40, 160),
        )  # fmt: skip

    def joint(self):
        return testing.Joint(
            priors=kernel.MultiTaskPriors(**{n: gamma_prior(*p) for n, p in PRIORS.items()}),
            simulate=self.simulate, redraw=self.redraw_words, quantities=self.joint_quantities,
            program=self.draw_program,
        )  # fmt: skip

    def simulate(self, rng, size):
        hyper = {name: rng.gamma(a, 1 / b, size) for name, (a, b) in PRIORS.items()}
        three = (hyper[name] for name in ("alpha", "group_alpha", "gamma"))
        group = np.asarray(JOINT.group)
        z, of_docs, of_groups = simulate.grouped_franchise(rng, *three, JOINT.doc, group)
        root = simulate.draw_dirichlet(rng, np.column_stack([of_groups, hyper["gamma"]]))
        none = np.zeros((*of_docs.shape[:2], 1))
        prior = np.maximum(hyper["group_alpha"][:, None, None] * root[:, None, :], 1e-30)
        prior[:, :, :-1] *= (of_groups > 0)[:, None, :]
        groups = _draw_log_dirichlet(rng, prior + np.concatenate([of_docs, none], axis=2))
        shape = size, z.shape[1], JOINT.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(hyper["beta"][:, None, None], shape))
        word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], z])
        return self.grouped_states(z, word, (of_docs, of_groups), root, groups, hyper)

    def grouped_states(self, z, word, num_tables, root, groups, hyperparameters):
        """Return kernel states and data of draws of everything, with a leading axis."""

        def wide(x, fill=0):
            free = CAPACITY - z.shape[1]
            pads = [(0, 0)] * (x.ndim - 1) + [(0, free)]
            return np.pad(x, pads, constant_values=fill)

        values = {name: np.asarray(v, np.float32) for name, v in hyperparameters.items()}
        of_docs, of_groups = map(wide, num_tables)
        root = hdp_root.RootWeights(
            wide(root[:, :-1]).astype(np.float32), root[:, -1].astype(np.float32), of_groups,
            values.pop("gamma"),
        )  # fmt: skip
        fields = values | {
            "group_tables": of_docs.astype(np.int32),
            "group_log_weights": wide(groups[..., :-1], -np.inf).astype(np.float32),
            "group_log_unused": groups[..., -1].astype(np.float32),
        }

        def one(z, word, root, fields):
            return self.make_state(
                JOINT, z, JOINT.doc, word, CAPACITY, overflow=jnp.zeros((), bool), root=root,
                **fields,
            )  # fmt: skip

        many = testing.quick_jit(jax.vmap(one))(z, np.asarray(word, np.int32), root, fields)
        return many, self.with_words_of(word)

    def draw_program(self, rng_key, size):
        priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
        model = MultiTaskHDPLDA(**priors, max_topics=32)
        draws = self.program_draws(rng_key, model, list(PRIORS), size)
        z = token_corpora.first_appearance(draws["z"])
        of_docs = np.zeros((size, 2, z.shape[1]), np.int32)
        no_root, groups = np.zeros((size, z.shape[1] + 1)), np.zeros((size, 2, z.shape[1] + 1))
        hyper = {name: draws[name] for name in PRIORS}
        no_tables = of_docs, of_docs[:, 0]
        states = self.grouped_states(z, draws["w"], no_tables, no_root, groups, hyper)
        drawn = self.measure(self.joint_quantities, *states)
        of_weights = ("log joint", "sum n_gk pi_gk")
        return {n: x for n, x in drawn.items() if n.startswith(("log ", "topics", "sum n", "tok"))
                and n not in of_weights}  # fmt: skip

    def joint_quantities(self, state, data):
        root, used = state.root, num_used(state)
        values = self.root_quantities(state)
        logs = {f"log {n}": jnp.log(x) for n, x in values.items() if n.endswith(("alpha", "gamma"))}
        weights = jnp.exp(state.group_log_weights)
        of_groups = jnp.zeros_like(weights).at[data.group].add(state.doc_topic)
        values = self.count_quantities(state, data) | values | logs | {
            "log beta": jnp.log(state.beta),
            "log alpha * log group_alpha": logs["log alpha"] * logs["log group_alpha"],
            "log group_alpha * log gamma": logs["log group_alpha"] * logs["log gamma"],
            "topics": used,
            "topics * log gamma": used * logs["log gamma"],
            "topics in both groups": (of_groups > 0).all(axis=0).sum(),
            "sum n_g0 n_g1": of_groups.prod(axis=0).sum(),
            "sum tau^2": (root.weights**2).sum(),
            "sum pi^2": (weights**2).sum(axis=1),
            "sum pi_0 pi_1": weights.prod(axis=0).sum(),
            "sum tau pi": (root.weights[None, :] * weights).sum(axis=1),
            "sum n_gk pi_gk": (of_groups * weights).sum(axis=1),
        }  # fmt: skip
        plain = ("alpha", "group_alpha", "gamma")  # heavy tails: their logs do
        return as_floats({name: x for name, x in values.items() if name not in plain})

    def conditional(self, state, data, token):
        """No topic is born inside a sweep, so that the topics are those with weights."""
        return self.finite_conditional(state, data, token)

    def resize(self, state, max_topics):
        order = jnp.argsort(state.topic == 0, stable=True)

        def moved(x):
            return jnp.take(x, order, axis=-1)

        root, counts = state.root, ("doc_topic", "word_topic", "topic", "group_tables")
        state = with_root(state, weights=moved(root.weights), tables=moved(root.tables))
        state = state._replace(
            z=token_corpora.permute_slots(state.z, order), overflow=jnp.zeros((), bool),
            group_log_weights=moved(state.group_log_weights),
            **{name: moved(getattr(state, name)) for name in counts},
        )  # fmt: skip
        return kernel.grow(state, max_topics)

    def program_log_joint(self, state, data, priors):
        """Return the density of the program given the weights, without theta and phi."""
        hyperparameters, values = priors_in_program(FIXED, priors, state, state.root._asdict())
        used, root = 2, state.root  # `start` uses two slots
        model = MultiTaskHDPLDA(**hyperparameters, max_topics=used + 1)
        weights = jnp.append(root.weights[:used], root.unused)
        before = jnp.append(0.0, jnp.cumsum(weights)[:-1])
        sticks = (weights / (1 - before))[:-1]
        logs = [state.group_log_weights[:, :used], state.group_log_unused[:, None]]
        groups = jnp.maximum(jnp.exp(jnp.concatenate(logs, axis=1)), 1e-30)  # its density is finite
        theta = jnp.asarray(somewhere(TINY.num_rows, used + 1), jnp.float32)
        phi = jnp.asarray(somewhere(used + 1, TINY.num_words), jnp.float32)
        values |= {"sticks": sticks, "theta": theta, "phi": phi, "group_weights": groups}
        total = self.program_density(model, values, state, data)
        of_sticks = dist.Beta(1.0, root.gamma).log_prob(sticks).sum()
        prior = jnp.maximum(state.group_alpha * weights, 1e-6)
        of_groups = dist.Dirichlet(prior).log_prob(groups).sum()
        concentration = jnp.maximum(state.alpha * groups, 1e-6)[data.group]
        rows = dist.Dirichlet(concentration + state.doc_topic[:, : used + 1]).log_prob(theta)
        words = dist.Dirichlet(state.beta + state.word_topic.T[: used + 1]).log_prob(phi)
        return total - of_sticks - of_groups - rows.sum() - words.sum()


def _draw_log_dirichlet(rng, concentration):
    """Draw logs of Dirichlet vectors; -inf where the concentration is zero."""
    some = concentration > 0
    logs = simulate.draw_log_gamma(rng, np.where(some, concentration, 1.0))
    logs = np.where(some, logs, -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    logs = logs - top - np.log(np.exp(logs - top).sum(axis=-1, keepdims=True))
    return np.where(some, np.maximum(logs, -1e37), -np.inf)  # finite in float32


FAMILY = GroupedTopics(
    kernel, MultiTaskHDPLDA, kernel.MultiTaskState, kernel.MultiTaskPriors, weigh, TINY, JOINT
)
SWEEPS = ("sequential", "parallel", "split-merge")
SCHEDULE = testing.Schedule(
    testing.late(kernel, "step", sweeps=SWEEPS), FAMILY.growth(CAPACITY),
    testing.Effort(500, 40, 320), num_programs=2,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "documents read the root", kernel, "doc_weights",
        "jnp.exp(state.group_log_weights)[data.group]", "state.root.weights[None, :]",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "documents read the row of the other group", kernel, "_parallel_sweep",
        "prior_row={data.group}", "1 - data.group",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "tokens below the threshold move too", kernel, "_sequential_sweep",
        "~slots.taking_part[state.z]", "jnp.zeros_like(state.z, bool)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "tables of all groups under the weights of one", tables, "_draw_sums_of_groups",
        "concentration[{group_of}]", "0 * group_of",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "groups forget the tables of their documents", kernel, "_draw_groups",
        "prior + {state.group_tables}", "0 * state.group_tables",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "groups of open topics forget their tables", kernel, "_open",
        "prior + {state.group_tables}", "0 * state.group_tables",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "the rest of the root is counted twice", kernel, "_open",
        "jnp.maximum(state.root.unused - {opened}, 0.0)", "0.0 * opened",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "concentration of documents from the tables of groups", kernel, "resample",
        "data.doc_length, {tables.sum()}, priors", "(tables > 0).sum()",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "groups with the tokens of their documents as customers", kernel, "resample",
        "{tables.sum(axis=1)}, state.root", "10 * tables.sum(axis=1)",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "shares of groups are free", split_merge, "_move",
        "log_proposal - {of_groups}", "0.0",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "rows read the shares of the root", split_merge, "_move",
        'of_rows["row_log_share"] = {shares[groups.group]}',
        "jnp.broadcast_to(log_share[None], (num_rows, *log_share.shape))",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "prior of shares without those of the root", split_merge, "_move",
        "groups.alpha * weight[:, None] * {jnp.exp(log_share)}", "0.5",
        "geweke/split-merge",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="multi_task_hdp_lda",
    schedules={
        **{
            name: SCHEDULE._replace(turns=(turn,), growth=SCHEDULE.growth._replace(fewer=4))
            for turn, name in enumerate(SWEEPS)
        },
        "mixed": SCHEDULE._replace(turns=(0, 1, 2), effort=testing.Effort(500, 40, 200)),
    },
    mistakes=tuple(MISTAKES),
    skip=dict.fromkeys(
        [f"{check}/mixed" for check in ("geweke", "batch", "ranks", "invariants", "growth")],
        "each kind of sweep that it takes passes by itself",
    )
    | {
        "enumeration/fixed/mixed": "the shipped rotation is compared with the same posterior",
        "enumeration/*/split-merge": "alone it forgets too slowly; Geweke's test need not wait, "
        'and "mixed" enumerates with it',
        "growth/split-merge": "its use of free slots is that of the HDP topic model",
        "ranks/split-merge": '"parallel" traces the step for all turns',
        "ranks/sequential": '"parallel" traces the step for all turns',
    },
)


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


@pytest.mark.slow
def test_groups_like_the_root_are_the_hdp():
    """With a very large concentration of the groups, the tokens weigh as in HDP-LDA."""
    start = CASE.targets["fixed"].start(jax.random.key(0))
    state = start._replace(group_alpha=jnp.float32(1e9))
    state = testing.quick_jit(kernel._draw_groups)(jax.random.key(1), state)
    plain = hdp_lda.HDPState(
        state.z, state.doc_topic, state.word_topic, state.topic, state.root, state.alpha,
        state.beta, state.overflow,
    )  # fmt: skip
    np.testing.assert_allclose(
        testing.quick_jit(kernel.log_joint)(state, TINY.data),
        testing.quick_jit(hdp_lda.log_joint)(plain, TINY.data),
        rtol=1e-3,
    )


def test_concentrations_without_priors_stay():
    state = testing.quick_jit(CASE.targets["fixed"].start)(jax.random.key(0))
    resample = testing.quick_jit(kernel.resample)
    after = resample(jax.random.key(1), state, TINY.data, kernel.MultiTaskPriors())
    for name, value in FIXED.items():
        np.testing.assert_allclose(getattr(after.root if name == "gamma" else after, name), value)
