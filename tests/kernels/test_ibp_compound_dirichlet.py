"""Kernels of the IBP compound Dirichlet model: enumeration, Geweke, densities, limits, mistakes.

The posterior of the tiny corpus is a sum over set partitions, with an integral over the stick and
the strength of each block. The lengths of documents are random in this model. Geweke's test is
given the lengths, for which the simulator keeps the draws that have them.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import gammaln

from bnp_kernels import ibp_compound_dirichlet as kernel
from bnp_kernels.processes import buffet
from bnp_models import IBPCompoundDirichlet, testing
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

FIXED = {"alpha": 2.0, "strength_shape": 1.5, "beta": 0.5}
HYPER = {"alpha": (2.0, 1.0), "strength_shape": (5.0, 10.0)}  # of enumeration
PRIORS = {"alpha": (2.0, 2.0), "strength_shape": (3.0, 2.0), "beta": (2.0, 4.0)}  # of Geweke's test
CAPACITY = 96
LENGTHS = (1, 2, 1)
TINY = testing.TinyCorpus([[0, 1], [0, 0], [1]], num_words=2, layout={"num_lanes": 1})
JOINT = testing.TinyCorpus([[0] * n for n in LENGTHS], num_words=3, layout={"num_lanes": 2})
PROCESS = ("stick", "strength")


def without(state, token):
    """Return the present slot of a token, as a one-hot, and its document."""
    return jnp.arange(state.topic.shape[0]) == state.z[token], TINY.data.doc[token]


@functools.cache
def enumerated(target):
    values = FIXED
    if target == "hyper":
        rules = {name: enumeration.gamma_rule(*prior) for name, prior in HYPER.items()}
        values = FIXED | rules
    return buffet_posteriors.focused_topics(TINY.docs, TINY.num_words, **values)


@dataclasses.dataclass(frozen=True, eq=False)
class FocusedTopics(TopicFamily):
    """Parts of the case."""

    def case(self, **own):
        return testing.Case(
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

    def growth(self, fewer=0):
        return testing.Growth(
            lambda state: (state.topic > 0).sum(), self.resize, lambda state: state.overflow,
            CAPACITY, fewer,
        )  # fmt: skip

    def resize(self, state, max_topics):
        order = jnp.argsort(state.topic == 0, stable=True)
        per_slot = ("doc_topic", "word_topic", "topic", *PROCESS)
        state = state._replace(
            z=token_corpora.permute_slots(state.z, order), overflow=jnp.zeros((), bool),
            **{name: jnp.take(getattr(state, name), order, axis=-1) for name in per_slot},
        )  # fmt: skip
        return kernel.grow(state, max_topics)

    def exact(self, target):
        names = ["topics", "coassigned", "strength_0", "stick_0", "strength_sum"]
        names += ["alpha", "strength_shape"] if target == "hyper" else []
        means = enumerated(target).means(*names)
        return means | {"topics": means["topics"][:4]}  # more than these are rare

    def target(self, name):
        priors = {n: gamma_prior(*p) for n, p in HYPER.items()}
        if name == "fixed":
            priors = {n: sharp(FIXED[n]) for n in priors}

        def start(rng_key):
            state = kernel.init(
                rng_key, TINY.data, num_words=TINY.num_words, max_topics=CAPACITY, init_topics=2,
                **FIXED,
            )  # fmt: skip
            used = state.topic > 0
            slot = jnp.arange(CAPACITY, dtype=jnp.float32)
            return state._replace(  # different values, so that densities tell them apart
                stick=jnp.where(used, 0.7 - 0.4 * slot, 0.0),
                strength=jnp.where(used, 1.3 + 0.5 * slot, 0.0),
            )

        return testing.Target(
            TINY.data, kernel.FocusedPriors(**priors), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state, data):
        values = self.token_quantities(state) | {
            "strength_0": state.strength[state.z[0]],
            "stick_0": state.stick[state.z[0]],
            "strength_sum": state.strength.sum(),
            "alpha": state.alpha,
            "strength_shape": state.strength_shape,
        }
        return as_floats(values | {"topics": values["topics"][:4]})

    def shipped(self):
        def quantities(draws):
            values = enumeration.token_quantities(draws["z"], None)
            first = draws["z"][..., :1]
            of_first = {
                f"{name}_0": np.take_along_axis(draws[name], first, axis=-1)[..., 0]
                for name in PROCESS
            }
            return values | of_first | {
                "topics": values["topics"][..., :4], "strength_sum": draws["strength"].sum(axis=-1)
            }  # fmt: skip

        return testing.Shipped(
            IBPCompoundDirichlet(**FIXED, max_topics=CAPACITY), TINY.corpus, quantities,
            functools.partial(self.exact, "fixed"), (*PROCESS, "z"), {"init_topics": 2},
            testing.Effort(400, 40, 160),
        )  # fmt: skip

    def joint(self):
        return testing.Joint(
            priors=kernel.FocusedPriors(**{n: gamma_prior(*p) for n, p in PRIORS.items()}),
            simulate=self.simulate, redraw=self.redraw_words, quantities=self.joint_quantities,
            num_reference=20_000,
        )  # fmt: skip

    def simulate(self, rng, size):
        both = {name: PRIORS[name] for name in ("alpha", "strength_shape")}
        drawn = buffet_simulations.focused_topics(rng, size, LENGTHS, **both)
        beta = rng.gamma(PRIORS["beta"][0], 1 / PRIORS["beta"][1], size)
        shape = size, drawn.z.shape[1], JOINT.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(beta[:, None, None], shape))
        word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], drawn.z])
        hyper = {"alpha": drawn.alpha, "strength_shape": drawn.strength_shape, "beta": beta}
        return self.states(drawn.z, word, drawn.sticks, drawn.strength, hyper)

    def states(self, z, word, stick, strength, hyper):
        """Return kernel states and data of draws of everything, with a leading axis."""
        fields = {name: np.asarray(x, np.float32) for name, x in hyper.items()}
        for name, x in zip(PROCESS, (stick, strength), strict=True):
            padded = np.pad(x, [(0, 0), (0, CAPACITY - x.shape[1])])
            fields[name] = np.clip(padded, 0, 1e30).astype(np.float32)

        def one(z, word, fields):
            return self.make_state(
                JOINT, z, JOINT.doc, word, CAPACITY, overflow=jnp.zeros((), bool), **fields
            )

        many = testing.quick_jit(jax.vmap(one))(z, np.asarray(word, np.int32), fields)
        return many, self.with_words_of(word)

    def joint_quantities(self, state, data):
        used = (state.topic > 0).sum()
        logs = {f"log {n}": jnp.log(getattr(state, n)) for n in PRIORS}
        some = state.topic > 0
        log_strength = jnp.where(some, jnp.log(jnp.where(some, state.strength, 1.0)), 0.0)
        values = self.count_quantities(state, data) | logs | {
            "topics": used,
            "topics * log alpha": used * logs["log alpha"],
            "log alpha * log shape": logs["log alpha"] * logs["log strength_shape"],
            "sum pi": state.stick.sum(),
            "sum pi^2": (state.stick**2).sum(),
            "sum log s": log_strength.sum(),
            "sum n_k pi_k": (state.topic * state.stick).sum(),
            "sum n_k log s_k": (state.topic * log_strength).sum(),
            "topics of two documents": ((state.doc_topic > 0).sum(axis=0) > 1).sum(),
        }  # fmt: skip
        return as_floats(values)

    def conditional(self, state, data, token):
        """Weigh all slots in use and two free ones, which hold atoms from the pool.

        The joint density is that of z and of all atoms, with those of the free slots in play.
        """
        minus, doc = without(state, token)
        used = state.topic > 0
        slot = jnp.arange(len(used))
        in_play = used | (slot < 4)
        stick = jnp.where(used, state.stick, 0.1 + 0.1 * (slot % 5))
        strength = jnp.where(used, state.strength, 0.5 + 0.3 * (slot % 7))
        shape, num_docs = state.strength_shape, len(state.doc_topic)
        rates = kernel._birth_rates(num_docs, state.alpha, shape)
        weights = kernel.conditional(
            state.doc_topic[doc] - minus, state.word_topic[data.word[token]] - minus,
            state.topic - minus, strength=strength, join=kernel._join(stick, strength),
            birth=jnp.where(in_play, rates.sum() / buffet.SPARE, 0.0), beta=state.beta,
            num_words=state.word_topic.shape[0],
        )  # fmt: skip
        j = 1.0 + jnp.arange(num_docs)
        birth = state.alpha * shape * ((1 + j * np.log(2)) ** -(shape + 1)).mean()
        absent = 1 - stick + stick * 2.0**-strength
        log_pool = (
            jnp.log(state.alpha / birth * strength) + (shape - 1) * jnp.log(strength)
            - strength * (1 + np.log(2)) - gammaln(shape) + (num_docs - 1) * jnp.log(absent)
        )  # fmt: skip

        def joint(topic):
            moved = self.move(state, data, token, None, topic)
            mine = moved.topic > 0
            moved = moved._replace(
                stick=jnp.where(mine, stick, 0.0), strength=jnp.where(mine, strength, 0.0)
            )
            free = jnp.where(in_play & ~mine, log_pool + np.log(buffet.SPARE), 0.0)
            return kernel.log_joint(moved, data) + kernel.log_atoms(moved, data) + free.sum()

        joints = jnp.where(in_play, jax.vmap(joint)(slot), -jnp.inf)
        return Conditional(jnp.log(weights), joints)

    def program_log_joint(self, state, data, priors):
        """Return the density of the program given the atoms, with all else integrated out.

        p(w, z) = p(w, z, more) / p(more | w, z), for any values of switches, rates and topics.
        """
        hyperparameters, values = priors_in_program(FIXED, priors, state)
        num = 2  # `start` uses two slots
        model = IBPCompoundDirichlet(**hyperparameters, max_topics=num)
        stick, strength = state.stick[:num], state.strength[:num]
        counts, num_docs = state.doc_topic[:, :num], TINY.num_rows
        shares = jnp.array([stick[0], stick[1] / stick[0]])
        on = (counts > 0).astype(jnp.float32)
        rate = jnp.full((num_docs, num), 0.9)
        phi = jnp.asarray(somewhere(num, TINY.num_words), jnp.float32)
        values |= {"shares": shares, "strength": strength, "on": on, "rate": rate, "phi": phi}
        total = self.program_density(model, values, state, data)
        total -= dist.Beta(state.alpha, 1.0).log_prob(shares).sum()
        total -= dist.Gamma(state.strength_shape, 1.0).log_prob(strength).sum()
        words = dist.Dirichlet(state.beta + state.word_topic.T[:num]).log_prob(phi)
        absent = 1 - stick + stick * 2.0**-strength
        off = jnp.where(on == 1, 0.0, jnp.log((1 - stick) / absent)[None, :])
        rates = dist.Gamma(strength[None, :] + counts, 1 + on).log_prob(rate)
        return total - words.sum() - off.sum() - rates.sum()


FAMILY = FocusedTopics(
    kernel, IBPCompoundDirichlet, kernel.FocusedState, kernel.FocusedPriors, None, TINY, JOINT
)
SWEEPS = ("sequential", "parallel")
SCHEDULE = testing.Schedule(
    testing.late(kernel, "step", sweeps=SWEEPS), FAMILY.growth(), testing.Effort(500, 40, 320),
    num_programs=2,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "a document joins as if its length were no evidence", kernel, "_join",
        "{_absent(stick, strength)}", "jnp.ones_like(stick)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "weight of a birth of one more document", kernel, "_birth_rates",
        "alpha * shape / {num_docs}", "(num_docs + 1.0)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "density of a birth", kernel, "_birth_rates",
        "alpha * shape / {num_docs}", "(num_docs + 1.0)",
        "conditional",
    ),
    testing.Mistake(
        "strength of a birth from the prior", kernel, "_draw_pool",
        "{state.strength_shape + 1}", "state.strength_shape",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "stick of a birth as in a single document", kernel, "_draw_pool",
        "/ {num_docs}\n", "1.0\n",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "all documents count for the strengths", kernel, "_resample",
        "1 + _LOG2 * {num_on}", "num_docs",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "switches from their prior", kernel, "_draw_on",
        "stick * {jnp.exp(-_LOG2 * strength)} /", "1.0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "unused atoms are not thinned", kernel, "open_atoms",
        "-_LOG2 * strength * {num_on}", "0 * strength",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "documents use topics that are off", kernel, "_parallel_sweep",
        "jnp.where({atoms.on}, atoms", "atoms.on | (atoms.stick > 0)[None, :]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "unused atoms are on in a single document", buffet, "draw_atoms",
        "True, {on & (row > first[None, :])}", "jnp.zeros_like(on)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "the mass ignores unused atoms", kernel, "_resample",
        "priors.alpha.rate + {_mass_in_use(state.strength_shape, num_docs)}", "0.0",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "the shape ignores unused atoms", kernel, "_draw_shape",
        "gammaln(shape) - {unused}", "0.0",
        "enumeration/hyper/sequential",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="ibp_compound_dirichlet",
    schedules={
        name: SCHEDULE._replace(turns=(turn,), growth=FAMILY.growth(fewer=fewer))
        for turn, (name, fewer) in enumerate(zip(SWEEPS, (30, 30), strict=True))
    }
    | {"mixed": SCHEDULE._replace(turns=(0, 1), effort=testing.Effort(500, 40, 200))},
    mistakes=tuple(MISTAKES),
    skip=dict.fromkeys(
        [f"{check}/mixed" for check in ("geweke", "batch", "ranks", "invariants", "growth")],
        "each kind of sweep that it takes passes by itself",
    )
    | {
        "ranks/sequential": '"parallel" traces the step for all turns',
        "program": "the simulator is given the lengths; those that the program draws have a test",
    },
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


@pytest.mark.slow
def test_lengths_from_the_program():
    """How often the program draws lengths is their evidence, where there is a single word."""
    model = IBPCompoundDirichlet(**FIXED, max_topics=24)  # (2/3)^24 of the mass is behind
    size, key = 20_000, jax.random.key(0)
    drawn = token_corpora.draw_program(key, model, TINY.corpus, ["doc_length"], size)["doc_length"]
    lengths = [(0, 0, 1), (1, 0, 0), (1, 1, 0), (0, 2, 1), (1, 1, 1), (3, 0, 0), (2, 0, 2)]
    for n in lengths:
        docs = [[0] * each for each in n]
        exact = np.exp(buffet_posteriors.focused_topics(docs, 1, **FIXED).log_evidence)
        found = (drawn == np.array(n)).all(axis=1).mean()
        # seven two-sided tests at 4.2 standard errors: false alarms below 2e-4
        assert abs(found - exact) < 4.2 * (exact * (1 - exact) / size) ** 0.5, (n, found, exact)


# ---- limits


def test_topics_that_all_documents_have_are_those_of_lda():
    strength = jnp.array([0.2, 1.0, 3.0])
    join = kernel._join(jnp.full(3, 1 - 2.0**-24), strength)
    np.testing.assert_allclose(join, strength, rtol=1e-5)


def test_numerics_of_rare_atoms():
    """Sums over documents stay finite and right with many documents and small strengths."""
    for num_docs, shape in ((1, 0.01), (20_000, 0.01), (20_000, 50.0)):
        j = np.arange(1, num_docs + 1)
        exact = (-np.expm1(-shape * np.log1p(j * np.log(2))) / j).sum()
        found = kernel._mass_in_use(jnp.float32(shape), num_docs)
        np.testing.assert_allclose(found, exact, rtol=1e-4)


def test_hyperparameters_without_priors_stay():
    state = testing.quick_jit(CASE.targets["fixed"].start)(jax.random.key(0))
    resample = testing.quick_jit(kernel._resample)
    after = resample(jax.random.key(1), state, TINY.data, kernel.FocusedPriors())
    for name, value in FIXED.items():
        np.testing.assert_allclose(getattr(after, name), value)


@pytest.mark.parametrize("spare", [0, 5])
def test_slots_in_play(spare):
    """The first free slots are in play, as many as drawn; too few are reported."""
    used = jnp.arange(40 + spare) % 3 == 0
    keys = jax.random.split(jax.random.key(0), 200)
    in_play, short = jax.vmap(lambda key: buffet.slots_in_play(key, used))(keys)
    number = np.asarray((in_play & ~used).sum(axis=1))
    first = np.asarray(~used)
    for row, count in zip(np.asarray(in_play), number, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(row & first), np.flatnonzero(first)[:count])
        assert row[np.asarray(used)].all()
    assert abs(number.mean() - buffet.SPARE) < 5 * (buffet.SPARE / 200) ** 0.5
    assert not np.asarray(short)[number < first.sum()].any()
