"""The kernels of `PitmanYorLDA`: enumeration, Geweke, densities, invariants, limits, mistakes.

The state has tables besides the assignments, so the exact posteriors and the simulator of the prior
are those of `oracles.pitman_yor_topics`. This file holds the data.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import special

from bnp_kernels import lda
from bnp_kernels import pitman_yor_lda as kernel
from bnp_kernels.processes import pitman_yor
from bnp_kernels.processes import pitman_yor_topics as shared
from bnp_kernels.processes.pitman_yor import BetaPrior
from bnp_kernels.random import stirling
from bnp_models import PitmanYorLDA, testing
from bnp_models.base import pitman_yor as pitman_yor_law
from bnp_models.data.corpus import Corpus
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.topic_family import SHARP
from oracles import pitman_yor_topics

NUM_TOPICS, NUM_WORDS = 2, 3
CAPACITY = 11  # one more than any cell has tokens
TINY = testing.TinyCorpus(
    [[0, 0, 1], [0, 2, 2]], NUM_WORDS, layout={"num_lanes": 1, "num_count_values": 4}
)
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 3)], NUM_WORDS, layout={"num_lanes": 2, "num_count_values": 11}
)
FIXED = {"alpha": 0.5, "beta": 0.8, "discount": 0.4, "concentration": 1.5}
PRIORS = {"alpha": (2.0, 2.0), "beta": (1.5, 1.0), "concentration": (2.0, 1.0)}  # with rates
UNIFORM = BetaPrior(np.float32(1), np.float32(1))
EFFORT = testing.Effort(500, 40, 200)
FAMILY = testing.TopicFamily(
    kernel, PitmanYorLDA, kernel.PitmanYorState, kernel.PitmanYorPriors, lambda *_: None, TINY,
    JOINT,
)  # fmt: skip


# ---- the exact posterior of the tiny corpus


@functools.cache
def exact(base, sampled, discount=None):
    """Return posterior means; `discount` is that of a target whose other values may be sampled."""
    values = {**FIXED, **({} if discount is None else {"discount": discount})}
    if sampled:
        values |= {name: enumeration.gamma_rule(*prior) for name, prior in PRIORS.items()}
        if discount is None:
            values["discount"] = pitman_yor_topics.beta_rule(1.0, 1.0)
    if base == "uniform":
        values.pop("beta")
    posterior = pitman_yor_topics.pitman_yor_topics(TINY.docs, NUM_WORDS, NUM_TOPICS, **values)
    return posterior.means()


def measure(state, data):
    """Measure a state as `exact` does."""
    tables, all_tables = state.tables, state.tables.sum(axis=0)
    values = enumeration.token_quantities(state.z) | {
        "topic": state.topic,
        "tables": tables.sum(),
        "word_tables": tables.sum(axis=1),
        "tables^2": (tables**2).sum(),
        "concentration": state.concentration.mean(),
        "discount": state.discount,
        "alpha": state.alpha[:1],
    }
    if state.beta is not None:
        values |= {"beta": state.beta, "global_tables": tables.sum(axis=1)}
    h = 1 / NUM_WORDS
    if state.beta is not None:
        h = (tables + state.beta) / (all_tables + NUM_WORDS * state.beta)[None]
    own = state.word_topic - state.discount * tables
    phi = own + (state.concentration + state.discount * all_tables)[None] * h
    phi = phi / (state.concentration + state.topic)[None]
    theta = state.doc_topic[0] + state.alpha
    values["log_joint"] = kernel.log_joint(state, data)
    values["next_word"] = (phi * (theta / theta.sum())[None]).sum(axis=1)
    return testing.as_floats(values)


def target(base, sampled, discount=None):
    values = {**FIXED, **({} if discount is None else {"discount": discount})}
    priors = {name: testing.gamma_prior(*prior) for name, prior in PRIORS.items()}
    priors["discount"] = UNIFORM
    if not sampled:
        priors = {name: testing.sharp(values[name]) for name in PRIORS}
        sharp = values["discount"] * SHARP, (1 - values["discount"]) * SHARP
        priors["discount"] = BetaPrior(*map(np.float32, sharp))
    if discount is not None:
        priors["discount"] = None
    if base == "uniform":
        priors["beta"] = None

    def start(rng_key):
        key_z, key_tables = jax.random.split(rng_key)
        state = kernel.init(
            key_z, TINY.data, num_words=NUM_WORDS, num_topics=NUM_TOPICS, max_tables=CAPACITY,
            alpha=jnp.full(NUM_TOPICS, FIXED["alpha"], jnp.float32),
            beta=None if base == "uniform" else FIXED["beta"], discount=values["discount"],
            concentration=FIXED["concentration"],
        )  # fmt: skip
        u = jax.random.uniform(key_tables, state.tables.shape)
        more = (u * state.word_topic).astype(jnp.int32)
        return state._replace(tables=jnp.minimum(1 + more, state.word_topic))

    def quantities(state, data):
        return {name: x for name, x in measure(state, data).items() if name in expected()}

    def expected():
        return exact(base, sampled, discount)

    return testing.Target(TINY.data, kernel.PitmanYorPriors(**priors), start, quantities, expected)


TARGETS = {
    "dirichlet": target("dirichlet", False),
    "uniform": target("uniform", False),
    "uniform sampled": target("uniform", True),
    "dirichlet sampled": target("dirichlet", True),
}


def shipped():
    record = ("z", "topic_tables")

    def quantities(draws):
        z = draws["z"]
        counts = {
            "topic": (z[..., None] == np.arange(NUM_TOPICS)).sum(axis=-2),
            "tables": draws["topic_tables"].sum(axis=-1),
        }
        return enumeration.token_quantities(z) | counts

    def expected():
        means = exact("dirichlet", False)
        return {n: means[n] for n in ("one_topic", "topics", "coassigned", "topic", "tables")}

    model = PitmanYorLDA(NUM_TOPICS, base="dirichlet", **FIXED)
    return testing.Shipped(model, TINY.corpus, quantities, expected, record)


# ---- one token: its weights, and the joint density of it, all others, and who opened tables


def valid(state):
    some = (state.tables > 0) == (state.word_topic > 0)
    return (some & (state.tables <= state.word_topic)).all()


def conditional(state, data, token):
    """Take a token out with its table, or without it if it can, and weigh all that it may do."""
    d, v, old = data.doc[token], data.word[token], state.z[token]
    m, t = state.word_topic[v, old], state.tables[v, old]
    flag = jnp.where(t == m, 1, token % 2)
    minus = jnp.arange(NUM_TOPICS) == old
    tables = state.tables.at[v, old].add(-flag)
    ratios = stirling.ratios(state.discount, data.count_values, CAPACITY)
    weights = shared.weigh(
        state.doc_topic[d] - minus, state.word_topic[v] - minus, tables[v], state.topic - minus,
        tables.sum(axis=0), state.alpha, state.concentration, ratios, state.discount, state.beta,
        sampler="ti", num_words=NUM_WORDS,
    ).topics  # fmt: skip

    def joint(opens, topic):
        moved = FAMILY.move(state, data, token, None, topic)
        moved = moved._replace(tables=tables.at[v, topic].add(opens))
        m, t = (x[v, topic].astype(jnp.float32) for x in (moved.word_topic, moved.tables))
        flag = jnp.log(jnp.where(opens == 1, t, m - t) / m)  # of C(m, t) choices of openers
        return jnp.where(valid(moved), kernel.log_joint(moved, data) + flag, -jnp.inf)

    topics = jnp.arange(NUM_TOPICS)
    joints = jax.vmap(lambda r: jax.vmap(lambda k: joint(r, k))(topics))(jnp.arange(2))
    return testing.Conditional(jnp.log(weights).reshape(-1), joints.reshape(-1))


# ---- the joint law


def states_of(drawn):
    """Return kernel states and data of draws of everything, with a leading axis."""

    def one(z, word, tables, alpha, beta, discount, concentration):
        return FAMILY.make_state(
            JOINT, z, JOINT.doc, word, NUM_TOPICS, alpha=jnp.full(NUM_TOPICS, alpha), beta=beta,
            tables=tables, discount=discount, concentration=concentration,
            table_capacity=jnp.zeros(CAPACITY, bool), overflow=jnp.zeros((), bool),
        )  # fmt: skip

    integers = (np.asarray(drawn[name], np.int32) for name in ("z", "word", "tables"))
    names = "alpha", "beta", "discount", "concentration"
    floats = (np.asarray(drawn[name], np.float32) for name in names)
    many = testing.quick_jit(jax.vmap(one))(*integers, *floats)
    return many, FAMILY.with_words_of(drawn["word"])


def draw_prior(rng, size):
    """Draw everything from the prior, in NumPy."""
    drawn = {n: rng.gamma(c, 1 / r, size) for n, (c, r) in PRIORS.items() if n != "concentration"}
    c, r = PRIORS["concentration"]
    drawn["concentration"] = rng.gamma(c, 1 / r, (size, NUM_TOPICS))
    drawn["discount"] = rng.uniform(size=size)
    shape = size, JOINT.num_rows, NUM_TOPICS
    theta = simulate.draw_dirichlet(rng, np.broadcast_to(drawn["alpha"][:, None, None], shape))
    drawn["z"] = simulate.draw_categorical(rng, theta[:, JOINT.doc])
    word, tables, _ = pitman_yor_topics.seat_tokens(
        rng, drawn["z"], num_words=NUM_WORDS,
        **{name: drawn[name] for name in ("discount", "concentration", "beta")},
    )  # fmt: skip
    return states_of(drawn | {"word": word, "tables": tables[:, 0]})


def redraw(rng_key, state, data):
    """Draw new words and tables given the assignments: the restaurants run forward."""
    tokens = state.z.shape[0]
    u = jax.random.uniform(rng_key, (tokens,))

    def draw(carry, t):
        customers, tables = carry
        k = state.z[t]
        m, n = customers[:, k], tables[:, k]
        h = (n + state.beta) / (n.sum() + NUM_WORDS * state.beta)
        opens = (state.concentration[k] + state.discount * n.sum()) * h
        sums = jnp.cumsum(jnp.concatenate([m - state.discount * n, opens]))
        place = (sums[:-1] <= u[t] * sums[-1]).sum()
        word = place % NUM_WORDS
        carry = customers.at[word, k].add(1), tables.at[word, k].add(place >= NUM_WORDS)
        return carry, word.astype(jnp.int32)

    none = jnp.zeros_like(state.tables)
    (customers, tables), word = jax.lax.scan(draw, (none, none), jnp.arange(tokens))
    state = state._replace(word_topic=customers, tables=tables)
    return state, JOINT.with_words(data, word)


OF_TABLES = ("tables", "sum t^2", "sum T^2", "discount * tables", "log b * tables", "log joint")


def joint_quantities(state, data):
    all_tables, log_b = state.tables.sum(axis=0), jnp.log(state.concentration)
    values = FAMILY.count_quantities(state, data) | {
        "cells": (state.word_topic > 0).sum(),
        "tables": all_tables.sum(),
        "sum t^2": (state.tables**2).sum(),
        "sum T^2": (all_tables**2).sum(),
        "discount * tables": state.discount * all_tables.sum(),
        "log b * tables": (log_b * all_tables).sum(),
        "log b": log_b.mean(),
        "log b * sum n_vk^2": (log_b * (state.word_topic**2).sum(axis=0)).sum(),
        "discount": state.discount,
        "discount * sum n_vk^2": state.discount * (state.word_topic**2).sum(),
        "log alpha": jnp.log(state.alpha[0]),
        "log beta": jnp.log(state.beta),
        "log alpha * discount": jnp.log(state.alpha[0]) * state.discount,
    }
    return testing.as_floats(values)


def draw_program(rng_key, size):
    """Draw everything but the tables from the program, and measure it."""
    priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
    model = PitmanYorLDA(NUM_TOPICS, base="dirichlet", discount=dist.Uniform(0.0, 1.0), **priors)
    names = ["alpha", "beta", "discount", "concentration"]
    drawn = FAMILY.program_draws(rng_key, model, names, size)
    none = np.zeros((size, NUM_WORDS, NUM_TOPICS))
    states = states_of({**drawn, "word": drawn["w"], "tables": none})
    found = FAMILY.measure(joint_quantities, *states)
    return {name: x for name, x in found.items() if name not in OF_TABLES}


JOINT_LAW = testing.Joint(
    priors=TARGETS["dirichlet sampled"].priors, simulate=draw_prior, redraw=redraw,
    quantities=joint_quantities, program=draw_program,
)  # fmt: skip


# ---- kernels that are wrong on purpose

MISTAKES = [
    testing.Mistake(
        "a token that must stay goes without its table", pitman_yor, "leave",
        "return {t / m}", "jnp.where((tables == 1) & (customers > 1), 0.0, t / m)",
        "enumeration/dirichlet/sequential",
    ),
    testing.Mistake(
        "tables leave too rarely", pitman_yor, "leave",
        "m, t = customers.astype(jnp.float32), {tables.astype(jnp.float32)}",
        "tables.astype(jnp.float32) ** 2 / customers",
        "enumeration/dirichlet/sequential",
    ),
    testing.Mistake(
        "the token is counted in its topic", pitman_yor, "weigh",
        "jnp.maximum({all_customers} + concentration, _TINY)", "all_customers + 1",
        "conditional",
    ),
    testing.Mistake(
        "base measure from tokens", shared, "weigh",
        "base = ({of_word} + beta)", "word",
        "conditional",
    ),
    testing.Mistake(
        "new tables without the discount", pitman_yor, "weigh",
        "opened = ({concentration + discount * all_tables}) * base", "concentration",
        "enumeration/uniform/sequential",
    ),
    testing.Mistake(
        "too many tables go unnoticed", pitman_yor, "weigh",
        "overflow={(tables > most).any()}", "False",
        "growth/sequential",
    ),
    testing.Mistake(
        "a token counts as two in its seat", pitman_yor, "leave",
        "1 / (1 + ({m - 1} - t * discount)", "m",
        "enumeration/dirichlet/ss",
    ),
    testing.Mistake(
        "held tables are clipped", pitman_yor, "leave",
        "return jnp.where({customers == 1}, 1.0, 0.0)", "tables == customers",
        "enumeration/dirichlet/cs",
    ),
    testing.Mistake(
        "base measure counts the tables that are drawn again", pitman_yor, "_draw_held",
        "of_words[word] - t, {total - t}", "total",
        "enumeration/dirichlet/cs",
    ),
    testing.Mistake(
        "tables by the law of a Dirichlet process", pitman_yor, "draw_tables",
        "draw(key_tables, {ratios}, customers",
        "stirling.ratios(0.0, jnp.arange(ratios.shape[0]), ratios.shape[1] - 2)",
        "enumeration/dirichlet/parallel",
    ),
    testing.Mistake(
        "the rate is not drawn again", pitman_yor, "draw_tables",
        "discount * ({log_rate} - drawn.log_rate)", "drawn.log_rate",
        "enumeration/uniform sampled/parallel",
    ),
    testing.Mistake(
        "the size forgets the tables", pitman_yor, "draw_topics",
        "shape_of_size = concentration[None] / discount + {all_tables}\n",
        "0 * all_tables",
        "enumeration/dirichlet/parallel",
    ),
    testing.Mistake(
        "concentrations without the Jacobian", pitman_yor, "draw_concentrations",
        "*prior) + {x} + restaurants", "0.0",
        "enumeration/uniform sampled/parallel",
    ),
    testing.Mistake(
        "discount without the tables of topics", pitman_yor, "draw_discount",
        "total + {of_topics.sum()} +", "0.0",
        "enumeration/uniform sampled/sequential",
    ),
    testing.Mistake(
        "beta from tokens", shared, "_resample",
        "key_beta, {of_words}, of_words.sum", "state.word_topic",
        "geweke/sequential",
    ),
]  # fmt: skip

GROWTH = testing.Growth(
    num_used=lambda state: state.tables.max(), resize=kernel.grow,
    overflow=lambda state: state.overflow, capacity=CAPACITY,
)  # fmt: skip


def sequential(sampler, fewer=0):
    step = testing.late(kernel, "step", sweeps=("sequential",), sampler=sampler)
    return testing.Schedule(step, GROWTH._replace(fewer=fewer), EFFORT, num_programs=3)


CASE = testing.Case(
    name="pitman_yor_lda",
    model=PitmanYorLDA,
    shipped=shipped(),
    targets=TARGETS,
    joint=JOINT_LAW,
    tally=FAMILY.tally,
    conditional=conditional,
    schedules={
        "sequential": sequential("ti", fewer=1),
        "ss": sequential("ss"),
        "cs": sequential("cs"),
        "parallel": testing.Schedule(
            testing.late(kernel, "step", sweeps=("parallel",)), GROWTH._replace(fewer=2),
            EFFORT, num_programs=3,
        ),
    },
    skip={"log_joint": "the density of the program is an integral, see test_density_of_program"},
    mistakes=tuple(MISTAKES),
)  # fmt: skip

NO_DISCOUNT = testing.Case(
    name="pitman_yor_lda, no discount",
    targets={"dirichlet sampled": target("dirichlet", True, 0.0)},
    tally=FAMILY.tally,
    schedules={
        "parallel": testing.Schedule(
            testing.late(kernel, "step", sweeps=("parallel",), dirichlet=True), GROWTH, EFFORT
        ),
        "sequential": testing.Schedule(
            testing.late(kernel, "step", sweeps=("sequential",), sampler="ti"), GROWTH, EFFORT
        ),
    },
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_check(NO_DISCOUNT)
def test_check_without_discount(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- the density of the program


def nodes(count, low, high):
    """Return points for a trapezoidal rule, and their distance."""
    points = np.linspace(low, high, count)
    return points, points[1] - points[0]


@pytest.mark.slow
def test_density_of_program():
    r"""One topic and two words: the program's density, integrated over its auxiliary variables.

    The density of the kernel's state is summed over all tables. Both are $\log p(w, z)$, as the
    topic proportions are certain. The integral has four dimensions: an angle and an exponential
    variable for each word. All are mapped to the real line, where trapezoids converge fast.
    """
    docs, a, b = [[0, 0, 1]], 0.6, 1.7
    model = PitmanYorLDA(1, alpha=1.0, discount=a, concentration=b)
    corpus, data = (
        Corpus.from_ids(docs, num_words=2),
        token_corpora.lay_out(docs, num_count_values=3),
    )
    z = jnp.zeros(3, jnp.int32)
    angles, of_angle = nodes(26, -9.0, 13.0)
    energies, of_energy = nodes(30, -17.0, 5.0)
    logs = []

    def density(first, x, second, y):
        angle = jnp.pi * jax.nn.sigmoid(jnp.stack([first, second]))
        energy = jnp.exp(jnp.stack([x, y]))
        values = {"angle": angle[None], "energy": energy[None], "theta": jnp.ones((1, 1)), "z": z}
        log_p = log_density(model.augmented, (corpus,), {}, values)[0]
        shape = jnp.log(angle) + jax.nn.log_sigmoid(-jnp.stack([first, second]))
        return log_p + shape.sum() + x + y

    grid = np.meshgrid(angles, energies, indexing="ij")
    one = [jnp.asarray(x.ravel(), jnp.float32) for x in grid]
    of_second = testing.quick_jit(
        jax.vmap(jax.vmap(density, (None, None, 0, 0)), (0, 0, None, None))
    )
    for part in np.array_split(np.arange(len(one[0])), 12):
        logs.append(np.asarray(of_second(one[0][part], one[1][part], *one), float).ravel())
    measure_of_points = 2 * (np.log(of_angle) + np.log(of_energy))
    found = special.logsumexp(np.concatenate(logs)) + measure_of_points

    def joint(tables):
        state = kernel.PitmanYorState(
            z, jnp.array([[3]]), jnp.array([[2], [1]]), jnp.array([3]), tables, jnp.ones(1), None,
            jnp.float32(a), jnp.full(1, b), jnp.zeros(3, bool), jnp.zeros((), bool),
        )  # fmt: skip
        return kernel.log_joint(state, data)

    every = jax.vmap(joint)(jnp.array([[[1], [1]], [[2], [1]]]))
    np.testing.assert_allclose(found, special.logsumexp(np.asarray(every, float)), atol=3e-4)


# ---- limits


def state_of(z, tables, **values):
    state = TARGETS["uniform"].start(jax.random.key(0))
    values = {name: jnp.asarray(x, jnp.float32) for name, x in values.items()}
    state = state._replace(z=jnp.asarray(z), tables=jnp.asarray(tables), **values)
    return state._replace(**FAMILY.tally(state, TINY.data))


def log_of_tables(z, **values):
    """Return the kernel's log p(w, z): its joint density summed over all tables."""
    state = state_of(z, jnp.zeros((NUM_WORDS, NUM_TOPICS), int), **values)
    m = np.asarray(state.word_topic)
    every = np.array(list(np.ndindex(*(m.ravel() + 1)))).reshape(-1, *m.shape)
    every = every[((every > 0) == (m > 0)).all(axis=(1, 2))]
    joint = testing.quick_jit(
        jax.vmap(lambda t: kernel.log_joint(state._replace(tables=t), TINY.data))
    )
    return special.logsumexp(np.asarray(joint(jnp.asarray(every)), float))


Z = [0, 1, 0, 1, 1, 0]


def test_without_discount_and_with_a_uniform_base_it_is_lda():
    b = 1.8
    state = lda.LDAState(
        jnp.array(Z), *(jnp.zeros((n, NUM_TOPICS), int) for n in (2, NUM_WORDS)),
        jnp.zeros(NUM_TOPICS, int), jnp.full(NUM_TOPICS, 0.5), jnp.float32(b / NUM_WORDS),
    )  # fmt: skip
    state = state._replace(**FAMILY.tally(state, TINY.data))
    found = log_of_tables(Z, discount=0.0, concentration=np.full(NUM_TOPICS, b))
    np.testing.assert_allclose(found, lda.log_joint(state, TINY.data), rtol=1e-5)


def test_topics_of_a_large_concentration_are_the_base_measure():
    flat = state_of(Z, np.ones((NUM_WORDS, NUM_TOPICS)))
    documents = lda.LDAState(
        flat.z, flat.doc_topic, flat.word_topic, flat.topic, flat.alpha, jnp.float32(1e6)
    )
    found = log_of_tables(Z, concentration=np.full(NUM_TOPICS, 1e6))
    np.testing.assert_allclose(found, lda.log_joint(documents, TINY.data), atol=1e-3)


def test_sum_over_tables_is_the_enumerated_density():
    exact = pitman_yor_topics.pitman_yor_topics(
        TINY.docs, NUM_WORDS, NUM_TOPICS, alpha=0.5, discount=0.4, concentration=1.5
    )
    place = (exact.states == Z).all(axis=1)
    np.testing.assert_allclose(log_of_tables(Z), exact.log_joint[place][0], rtol=1e-5)


@pytest.mark.slow
def test_words_follow_a_power_law():
    """Distinct words of the first N tokens of a topic: the slope of the logs is the discount."""
    size, num_words, a, b = 20_000, 10**6, 0.7, 10.0
    law = pitman_yor_law.PitmanYor(a, np.full(1, b), np.full((1, num_words), 1 / num_words))
    phi = np.asarray(jax.jit(law.sample)(jax.random.key(0)), float)[0]
    word = np.random.default_rng(0).choice(num_words, size, p=phi / phi.sum())
    first = np.sort(np.unique(word, return_index=True)[1])
    n = np.geomspace(2_000, size, 12).astype(int)
    slope = np.polyfit(np.log(n), np.log(np.searchsorted(first, n)), 1)[0]
    assert abs(slope - a) < 0.06
