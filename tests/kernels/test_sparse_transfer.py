"""Kernels of the sparse transfer model: enumeration, Geweke, densities, limits, mistakes.

The posterior of the tiny corpus is a sum over set partitions, with integrals over the tilts of the
groups and the atoms. Geweke's test is given the sizes of the groups, for which the simulator keeps
the draws that have them.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

from bnp_kernels import sparse_transfer as kernel
from bnp_kernels.numerics.densities import log_rising
from bnp_kernels.processes import buffet, dirichlet_topics
from bnp_models import SparseTransferTopicModel, testing
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.targets import Conditional
from bnp_models.testing.topic_family import (
    TopicFamily,
    as_floats,
    gamma_prior,
    priors_in_program,
    sharp,
    somewhere,
)
from oracles import buffet_posteriors, buffet_simulations

FIXED = {"alpha": 2.0, "beta": 0.5}
NUMBERS = {"epsilon": 0.5, "strength_shape": 5.0, "strength_scale": 0.3}
HYPER = {"alpha": (2.0, 1.0)}  # of enumeration
PRIORS = {"alpha": (3.0, 1.0), "beta": (2.0, 4.0)}  # of Geweke's test
CAPACITY = 72
GROUPS = (0, 1, 0, 1)
# documents of a group are neighbours in one corpus and not in the other
TINY = testing.TinyCorpus(
    [[0, 1], [0], [1, 1]], num_words=2, group=[0, 0, 1], layout={"num_lanes": 1}
)
JOINT = testing.TinyCorpus(
    [[0] * n for n in (2, 1, 1, 2)], num_words=3, group=GROUPS, layout={"num_lanes": 2}
)
PROCESS = ("stick", "strength", "group_strength")


@functools.cache
def enumerated(target, size_model):
    alpha = enumeration.gamma_rule(*HYPER["alpha"]) if target == "hyper" else FIXED["alpha"]
    return buffet_posteriors.switched_topics(
        TINY.docs, TINY.group, TINY.num_words, alpha=alpha, beta=FIXED["beta"],
        size_model=size_model, **NUMBERS,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class SwitchedTopics(TopicFamily):
    """Parts of the case."""

    size_model: str = "task_nb"

    def case(self, targets=("fixed", "hyper"), **own):
        return testing.Case(
            targets={name: self.target(name) for name in targets},
            joint=self.joint(),
            tally=self.tally,
            **own,
        )

    @property
    def sizes(self):
        return self.size_model == "task_nb"

    def tally(self, state, data):
        found = super().tally(state, data)
        none = jnp.zeros_like(state.group_topic)
        return found | {"group_topic": none.at[data.group].add(found["doc_topic"])}

    def growth(self, fewer=0):
        return testing.Growth(
            lambda state: (state.stick > 0).sum(), self.resize, lambda state: state.overflow,
            CAPACITY, fewer,
        )  # fmt: skip

    def resize(self, state, max_topics):
        order = jnp.argsort(state.stick == 0, stable=True)
        counts = ("doc_topic", "group_topic", "word_topic", "topic", "size_tables")
        state = state._replace(
            z=token_corpora.permute_slots(state.z, order), overflow=jnp.zeros((), bool),
            **{n: jnp.take(getattr(state, n), order, axis=-1) for n in (*counts, *PROCESS)},
        )  # fmt: skip
        return kernel.grow(state, max_topics)

    def exact(self, target):
        names = ["topics", "coassigned", "strength_0", "stick_0", "group_strength_0", "num_on"]
        names += ["alpha"] if target == "hyper" else []
        means = enumerated(target, self.size_model).means(*names)
        return means | {"topics": means["topics"][:4]}  # more than these are rare

    def target(self, name):
        prior = gamma_prior(*HYPER["alpha"]) if name == "hyper" else sharp(FIXED["alpha"])

        def start(rng_key):
            state = kernel.init(
                rng_key, TINY.data, num_words=TINY.num_words, num_groups=2, max_topics=CAPACITY,
                init_topics=2, **FIXED, **NUMBERS,
            )  # fmt: skip
            used, slot = state.topic > 0, jnp.arange(CAPACITY, dtype=jnp.float32)
            on = state.group_strength > 0
            return state._replace(  # different values, so that densities tell them apart
                stick=jnp.where(used, 0.7 - 0.4 * slot, 0.0),
                strength=jnp.where(used, 1.3 + 0.5 * slot, 0.0),
                group_strength=jnp.where(on, 0.8 + 0.3 * slot[None, :], 0.0),
            )

        return testing.Target(
            TINY.data, kernel.TransferPriors(alpha=prior), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state, data):
        first, on = state.z[0], state.group_strength > 0
        values = self.token_quantities(state) | {
            "strength_0": state.strength[first],
            "stick_0": state.stick[first],
            "group_strength_0": state.group_strength[0, first],
            "num_on": (on & (state.topic > 0)[None, :]).sum(),
            "alpha": state.alpha,
        }
        return as_floats(values | {"topics": values["topics"][:4]})

    def shipped(self):
        def quantities(draws):
            values = enumeration.token_quantities(draws["z"], None)
            first = draws["z"][..., :1]

            def of_first(x):
                return np.take_along_axis(x, first, axis=-1)[..., 0]

            on = (draws["group_strength"] > 0) & (draws["topic_tokens"] > 0)[..., None, :]
            return values | {
                "topics": values["topics"][..., :4],
                "strength_0": of_first(draws["strength"]),
                "stick_0": of_first(draws["stick"]),
                "group_strength_0": of_first(draws["group_strength"][..., 0, :]),
                "num_on": on.sum(axis=(-1, -2)),
            }

        return testing.Shipped(
            SparseTransferTopicModel(**FIXED, **NUMBERS, max_topics=CAPACITY), TINY.corpus,
            quantities, functools.partial(self.exact, "fixed"), (*PROCESS, "topic_tokens", "z"),
            {"init_topics": 2}, testing.Effort(400, 40, 160),
        )  # fmt: skip

    def joint(self):
        return testing.Joint(
            priors=kernel.TransferPriors(**{n: gamma_prior(*p) for n, p in PRIORS.items()}),
            simulate=self.simulate, redraw=self.redraw_words, quantities=self.joint_quantities,
            num_reference=20_000,
        )  # fmt: skip

    def simulate(self, rng, size):
        drawn = buffet_simulations.switched_topics(
            rng, size, JOINT.doc, GROUPS, alpha=PRIORS["alpha"], size_model=self.size_model,
            **NUMBERS,
        )  # fmt: skip
        beta = rng.gamma(PRIORS["beta"][0], 1 / PRIORS["beta"][1], size)
        shape = size, drawn.z.shape[1], JOINT.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(beta[:, None, None], shape))
        word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], drawn.z])
        atoms = drawn.sticks, drawn.strength, drawn.group_strength
        return self.states(rng, drawn.z, word, atoms, {"alpha": drawn.alpha, "beta": beta})

    def states(self, rng, z, word, atoms, hyper):
        """Return kernel states and data of draws of everything, with a leading axis."""
        group_strength, size = atoms[-1], len(z)
        total, num_groups = group_strength.sum(axis=2), group_strength.shape[1]
        length, group = np.bincount(JOINT.doc), np.array(GROUPS)
        # auxiliary variables from their conditionals
        log_x, log_y = (simulate.draw_log_gamma(rng, x) for x in (
            total[:, group], np.broadcast_to(1.0 * length, (size, len(length)))
        ))  # fmt: skip
        log_x = -np.logaddexp(0, log_y - log_x)
        tilt = np.stack([-log_x[:, group == c].sum(axis=1) for c in range(num_groups)], axis=1)
        tables = np.zeros(group_strength.shape, np.int32)
        if self.sizes:
            tilt += np.log(2)
            for c in range(num_groups):
                for j in range(length[group == c].sum()):
                    opens = rng.random(size) * (total[:, c] + j) < total[:, c]
                    topic = simulate.draw_categorical(rng, group_strength[:, c])
                    tables[np.arange(size), c, topic] += opens

        def wide(x):
            free = CAPACITY - x.shape[-1]
            return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, free)])

        fields = {n: wide(x).astype(np.float32) for n, x in zip(PROCESS, atoms, strict=True)}
        fields |= {"size_tables": wide(tables), "tilt": tilt.astype(np.float32)}
        fields |= {name: np.asarray(x, np.float32) for name, x in hyper.items()}
        numbers = {name: jnp.float32(x) for name, x in NUMBERS.items()}

        def one(z, word, fields):
            none = jnp.zeros((num_groups, CAPACITY), jnp.int32)
            group_topic = none.at[jnp.asarray(group[JOINT.doc]), z].add(1)
            return self.make_state(
                JOINT, z, JOINT.doc, word, CAPACITY, overflow=jnp.zeros((), bool),
                group_topic=group_topic, **numbers, **fields,
            )  # fmt: skip

        many = testing.quick_jit(jax.vmap(one))(z, np.asarray(word, np.int32), fields)
        return many, self.with_words_of(word)

    def joint_quantities(self, state, data):
        on = state.group_strength > 0
        some = on.any(axis=0)
        used = (state.topic > 0).sum()
        log_strength = jnp.where(some, jnp.log(jnp.where(some, state.strength, 1.0)), 0.0)
        total = state.group_strength.sum(axis=1)
        values = self.count_quantities(state, data)
        del values["log joint"]
        values |= {
            "log alpha": jnp.log(state.alpha),
            "log beta": jnp.log(state.beta),
            "topics": used,
            "topics * log alpha": used * jnp.log(state.alpha),
            "atoms": some.sum(),
            "pairs on": on.sum(),
            "atoms * log alpha": some.sum() * jnp.log(state.alpha),
            "atoms on in both": on.all(axis=0).sum(),
            "sum pi": state.stick.sum(),
            "sum log gamma": log_strength.sum(),
            "log R": jnp.log(total),
            "sum s gamma": (state.group_strength * state.strength[None, :]).sum(),
            "sum n_ck s_ck": (state.group_topic * state.group_strength).sum(axis=1),
            "sum n_c0 n_c1": state.group_topic.prod(axis=0).sum(),
            "tables": state.size_tables.sum(axis=1),
            "log T": jnp.log(state.tilt),
            "tables * log R": (state.size_tables.sum(axis=1) * jnp.log(total)).sum(),
        }
        if not self.sizes:
            values = {name: x for name, x in values.items() if not name.startswith("tables")}
        return as_floats(values)

    def conditional(self, state, data, token):
        """Weigh all slots in use and two free ones, which hold atoms from the pseudo-prior.

        The joint density is that of z, of the atoms in play, and of the strengths of all pairs,
        given tilts and tables.
        """
        slot, doc = jnp.arange(state.topic.shape[0]), data.doc[token]
        group, minus = data.group[doc], slot == state.z[token]
        tables = jnp.zeros_like(state.size_tables).at[0, 0].set(1)
        tilt = jnp.array([0.9, 2.0])
        all_tables = tables.sum(axis=0)
        used = state.topic + all_tables > 0
        in_play = used | (slot < 4)
        stick = jnp.where(used, state.stick, 0.1 + 0.1 * (slot % 5))
        strength = jnp.where(used, state.strength, 0.5 + 0.3 * (slot % 7))
        pairs = 0.3 + 0.2 * ((slot[None, :] + jnp.arange(2)[:, None]) % 3)
        log_silent = kernel._log_silent(tilt, strength)
        absent = kernel._absent(stick, state.epsilon, log_silent)
        pool = kernel.weigh_pairs(state._replace(tilt=tilt), stick, strength)
        weights = kernel.conditional(
            state.doc_topic[doc] - minus, state.group_topic[group] - minus,
            state.word_topic[data.word[token]] - minus, state.topic - minus,
            tables=tables[group], all_tables=all_tables, strength=pairs[group],
            join=pool[0][group], birth=jnp.where(in_play, pool[1][group], 0.0), beta=state.beta,
            num_words=state.word_topic.shape[0],
        )  # fmt: skip
        shape, scale = state.strength_shape, state.strength_scale
        log_atom = (shape - 1) * jnp.log(strength) - strength / scale
        gam, more = strength[None, :], tilt[:, None]
        log_free = (
            gam * jnp.log(pairs) - (1 + more) * pairs + (gam + 1) * jnp.log1p(more)
            - gammaln(gam + 1)
        )  # fmt: skip

        def joint(topic):
            moved = self.move(state, data, token, None, topic)
            mine = moved.topic + all_tables > 0
            represented = moved.group_topic + tables > 0
            rising = log_rising(pairs[data.group], moved.doc_topic)
            of_pairs = (
                jnp.log(state.epsilon * stick)[None, :] + (gam - 1) * jnp.log(pairs) - pairs
                - gammaln(gam) - more * pairs + tables * jnp.log(pairs)
                + jnp.zeros_like(pairs).at[data.group].add(rising)
            )  # fmt: skip
            of_pairs = jnp.where(represented, of_pairs, jnp.log(absent) + log_free).sum(axis=0)
            process = jnp.log(state.alpha / stick) + log_atom + of_pairs
            spare = np.log(buffet.SPARE) + log_atom + log_free.sum(axis=0)
            atoms = jnp.where(mine, process, jnp.where(in_play, spare, 0.0)).sum()
            return atoms + dirichlet_topics.log_words(moved.word_topic, moved.topic, moved.beta)

        joints = jnp.where(in_play, jax.vmap(joint)(slot), -jnp.inf)
        return Conditional(jnp.log(weights), joints)

    def program_log_joint(self, state, data, priors):
        """Return the density of the program given the atoms, without theta and phi."""
        hyperparameters, values = priors_in_program(FIXED, priors, state)
        num = 2  # `start` uses two slots
        model = SparseTransferTopicModel(**hyperparameters, **NUMBERS, max_topics=num)
        stick, strength = state.stick[:num], state.strength[:num]
        own = state.group_strength[:, :num]
        on = (own > 0).astype(jnp.float32)
        own = jnp.where(own > 0, own, 0.5)
        shares = jnp.array([stick[0], stick[1] / stick[0]])
        theta = jnp.asarray(somewhere(TINY.num_rows, num), jnp.float32)
        phi = jnp.asarray(somewhere(num, TINY.num_words), jnp.float32)
        values |= {
            "shares": shares, "strength": strength, "on": on, "own_strength": own, "phi": phi,
            "theta": theta,
        }  # fmt: skip
        total = self.program_density(model, values, state, data)
        total -= dist.Beta(state.alpha, 1.0).log_prob(shares).sum()
        rate = 1 / NUMBERS["strength_scale"]
        total -= dist.Gamma(NUMBERS["strength_shape"], rate).log_prob(strength).sum()
        total -= dist.Bernoulli(NUMBERS["epsilon"] * stick[None, :]).log_prob(on).sum()
        total -= dist.Gamma(strength[None, :], 1.0).log_prob(own).sum()
        weights = jnp.maximum(own * on, 1e-6)[data.group] + state.doc_topic[:, :num]
        words = dist.Dirichlet(state.beta + state.word_topic.T[:num]).log_prob(phi)
        return total - dist.Dirichlet(weights).log_prob(theta).sum() - words.sum()


def family(size_model):
    return SwitchedTopics(
        kernel, SparseTransferTopicModel, kernel.TransferState, kernel.TransferPriors, None, TINY,
        JOINT, size_model,
    )  # fmt: skip


FAMILY, WITHOUT_SIZES = family("task_nb"), family("none")
SWEEPS = ("sequential", "parallel")


def schedule(sizes, num_programs):
    return testing.Schedule(
        testing.late(kernel, "step", sweeps=SWEEPS, sizes=sizes), FAMILY.growth(),
        testing.Effort(500, 40, 320), num_programs=num_programs,
    )  # fmt: skip


SCHEDULE = schedule(True, 2)

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "pairs join as if the sizes were no evidence", kernel, "weigh_pairs",
        "{jnp.exp(log_silent)}", "jnp.ones_like(log_silent)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "other groups do not count at a birth", kernel, "weigh_pairs",
        "state.alpha * {none} /", "jnp.ones_like(none)",
        "conditional",
    ),
    testing.Mistake(
        "births ignore that other groups lack the topic", kernel, "weigh_pairs",
        "state.alpha * {none} /", "jnp.ones_like(none)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "pairs with size tables alone are not represented", kernel, "conditional",
        "represented = {n_ck + tables} > 0", "1.0 * n_ck",
        "conditional",
    ),
    testing.Mistake(
        "documents read the strengths of the other group", kernel, "_parallel_sweep",
        "prior_row={group_of(data)}", "1 - group_of(data)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "one document for each group", kernel, "_draw_sizes",
        "tilt={_LOG2 + of_docs}", "jnp.full_like(of_docs, _LOG2)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "every token opens a size table", kernel, "_draw_size_tables",
        "opens = {bits.uniform(key_open, shape, shards.first_token) * (mine + rank) < mine}",
        "mine > 0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "strengths of pairs from tables of documents alone", kernel, "_resample",
        "shards.total(own) + {state.size_tables}", "0 * state.size_tables",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "strengths of topics ignore pairs without tables", kernel, "_resample",
        "sum_rows(jnp.where({on}, log_tilt", "tables > 0",
        "geweke/sequential",
    ),
    testing.Mistake(
        "sticks from the switches that the mask leaves", kernel, "_resample",
        "({on | hidden}).sum", "on",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "unused atoms are not thinned", kernel, "_draw_switches",
        "jnp.exp({log_unused})", "jnp.zeros_like(log_unused)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "switches from their prior", kernel, "_draw_switches",
        "chance[None, :] * {jnp.exp(log_silent)} /", "jnp.ones_like(log_silent)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "the mass counts topics with tokens", kernel, "_draw_hyperparameters",
        "number = {(state.stick > 0).sum()}", "(state.topic > 0).sum()",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "too few free slots are not reported", buffet, "slots_in_play",
        "{place[-1] < wanted}", "jnp.zeros((), bool)",
        "growth/sequential",
    ),
    testing.Mistake(
        "atoms without a free slot are dropped", buffet, "into_free_slots",
        "{number > place[-1] + 1}", "jnp.zeros((), bool)",
        "growth/parallel",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="sparse_transfer",
    model=SparseTransferTopicModel,
    shipped=FAMILY.shipped(),
    conditional=FAMILY.conditional,
    log_joint=FAMILY.log_joint,
    program_log_joint=FAMILY.program_log_joint,
    schedules={
        name: SCHEDULE._replace(turns=(turn,), growth=FAMILY.growth(fewer=fewer))
        for turn, (name, fewer) in enumerate(zip(SWEEPS, (19, 4), strict=True))
    }
    | {"mixed": SCHEDULE._replace(turns=(0, 1), effort=testing.Effort(500, 40, 200))},
    mistakes=tuple(MISTAKES),
    skip=dict.fromkeys(
        [f"{check}/mixed" for check in ("geweke", "batch", "ranks", "invariants", "growth")],
        "each kind of sweep that it takes passes by itself",
    )
    | {
        "ranks/sequential": '"parallel" traces the step for all turns',
        "program": "the simulator is given the sizes; those that the program draws have a test",
    },
)

NO_SIZES = WITHOUT_SIZES.case(
    ("fixed",),
    name="sparse_transfer, sizes not modelled",
    schedules={
        name: schedule(False, 2)._replace(turns=(turn,)) for turn, name in enumerate(SWEEPS)
    },
    skip=dict.fromkeys(
        [f"{check}/*" for check in ("batch", "ranks", "invariants")],
        "the kernel with sizes passes them",
    ),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_check(NO_SIZES)
def test_check_without_sizes(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


@pytest.mark.slow
def test_sizes_from_the_program():
    """How often the program draws sizes is their evidence, where there is a single word."""
    model = SparseTransferTopicModel(**FIXED, **NUMBERS, max_topics=24)
    size, key = 20_000, jax.random.key(0)
    drawn = token_corpora.draw_program(key, model, TINY.corpus, ["group_size"], size)["group_size"]
    for n in [(0, 1), (1, 0), (1, 1), (2, 1), (0, 3), (2, 2)]:
        docs = [[0] * each for each in n]
        exact = buffet_posteriors.switched_topics(docs, [0, 1], 1, **FIXED, **NUMBERS)
        exact, found = np.exp(exact.log_evidence), (drawn == np.array(n)).all(axis=1).mean()
        # six two-sided tests at 4.2 standard errors: false alarms below 2e-4
        assert abs(found - exact) < 4.2 * (exact * (1 - exact) / size) ** 0.5, (n, found, exact)


# ---- limits


def test_without_switches_documents_weigh_as_in_lda():
    """Where all pairs are represented, a topic weighs as in LDA with the prior of the group."""
    counts, strength = jnp.array([0, 2, 1]), jnp.array([0.4, 1.1, 2.0])
    found = kernel.conditional(
        counts, counts + 1, counts, counts + 3, tables=0.0 * counts, all_tables=0.0 * counts,
        strength=strength, join=strength * jnp.nan, birth=strength * jnp.nan, beta=0.5, num_words=4,
    )  # fmt: skip
    np.testing.assert_allclose(found, (counts + strength) * (counts + 0.5) / (counts + 5.0))


def test_tiny_switches():
    """Probabilities of switches and of atoms stay positive and finite at epsilon of 1e-4."""
    atoms = testing.quick_jit(
        lambda key: buffet.draw_atoms(key, jnp.float32(5e4), 5, 64, jnp.float32(1e-4))
    )(jax.random.key(0))
    assert not atoms.overflow
    number = int(atoms.exists.sum())
    expected = float(buffet.expected_atoms(5e4, 5, 1e-4))
    assert abs(expected - 5e4 * (1 - (1 - 1e-4) ** np.arange(1, 6)) @ (1 / np.arange(1, 6))) < 0.01
    assert abs(number - expected) < 5 * expected**0.5
    assert np.asarray(atoms.on[:, :number]).any(axis=0).all()
    assert not np.asarray(atoms.on[:, number:]).any()
    assert 0.4 < np.asarray(atoms.stick[:number]).mean() < 0.6  # nearly uniform


@pytest.mark.slow
def test_hyperparameters_without_priors_stay():
    state = testing.quick_jit(CASE.targets["fixed"].start)(jax.random.key(0))
    resample = testing.quick_jit(functools.partial(kernel._resample, sizes=True))
    after = resample(jax.random.key(1), state, TINY.data, kernel.TransferPriors())
    for name, value in (FIXED | NUMBERS).items():
        np.testing.assert_allclose(getattr(after, name), value)
