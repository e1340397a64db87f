"""The kernels of `DifferentialTopicModel`: enumeration, Geweke, invariants, limits, mistakes.

The exact posteriors and the simulator of the prior are those of `oracles.pitman_yor_topics`, with
groups. There are two cases: the identity, with which the root is integrated out in the sequential
sweep, and a transform, with which the root is part of the state. This file holds the data.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import optimize, special

from bnp_kernels import differential as kernel
from bnp_kernels import lda
from bnp_kernels import pitman_yor_lda as one_group
from bnp_kernels.processes import pitman_yor, word_transforms
from bnp_kernels.processes import pitman_yor_topics as shared
from bnp_kernels.processes.pitman_yor import BetaPrior
from bnp_kernels.random import stirling
from bnp_models import DifferentialTopicModel, Transform, testing
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.topic_family import SHARP
from oracles import pitman_yor_topics

NUM_TOPICS, NUM_WORDS, NUM_GROUPS = 2, 3, 2
JOINT_TOPICS = 3
CAPACITY = 7  # one more than any cell has tokens
TRANSFORMS = np.array(  # local words by four global words, for each group
    [
        [[0.6, 0.0, 0.5, 0.1], [0.4, 0.7, 0.0, 0.2], [0.0, 0.3, 0.5, 0.7]],
        [[0.2, 0.9, 0.0, 0.0], [0.8, 0.0, 0.3, 0.6], [0.0, 0.1, 0.7, 0.4]],
    ]
)


def sparse_rows(matrices):
    """Return the rows of matrices [G, V, V0] as the kernels take them, padded with zeros."""
    rows = matrices.reshape(-1, matrices.shape[2])
    most = (rows > 0).sum(axis=1).max()
    alternative, weight = np.zeros((len(rows), most), np.int32), np.zeros((len(rows), most))
    for i, row in enumerate(rows):
        some = np.flatnonzero(row)
        alternative[i, : len(some)], weight[i, : len(some)] = some, row[some]
    return alternative, weight.astype(np.float32)


ROWS = sparse_rows(TRANSFORMS)
# documents of a group are not neighbours
FIRST_GROUP, GROUP_OF_JOINT = 0, np.array([1, 0, 1])
TINY = testing.TinyCorpus(
    [[0, 0, 1], [0, 0, 2], [1, 0]], NUM_WORDS, group=[FIRST_GROUP, 1, 0],
    layout={"num_lanes": 1, "num_count_values": 4},
)  # fmt: skip
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 3)], NUM_WORDS, group=GROUP_OF_JOINT.tolist(),
    layout={"num_lanes": 2, "num_count_values": 7},
)  # fmt: skip
FIXED = {"alpha": (0.5, 1.2), "beta": 0.6, "discount": 0.4, "concentration": 1.5}
PRIORS = {"alpha": (2.0, 2.0), "beta": (1.5, 1.0), "concentration": (2.0, 1.0)}  # with rates
UNIFORM = BetaPrior(np.float32(1), np.float32(1))
EFFORT = testing.Effort(500, 40, 200)


def corpus_of(corpus, transformed):
    """Return a corpus whose data have the transform."""
    if not transformed:
        return corpus
    return dataclasses.replace(corpus, layout={**corpus.layout, "transform": ROWS})


def by_group(counts):
    """Sum counts of rows over the words of each group, [G, K]."""
    return counts.reshape(NUM_GROUPS, NUM_WORDS, -1).sum(axis=1)


def by_word(counts):
    """Sum counts of rows over groups, [V, K]."""
    return counts.reshape(NUM_GROUPS, NUM_WORDS, -1).sum(axis=0)


def row_of(data):
    return data.group[data.doc] * NUM_WORDS + data.word


@dataclasses.dataclass(frozen=True, eq=False)
class TopicsOfGroups(testing.TopicFamily):
    """Parts of the case: as for other topic models, but each group has its own row of a word."""

    def tally(self, state, data):
        num_docs, num_topics = state.doc_topic.shape
        shape = num_docs, state.word_topic.shape[0], num_topics
        return self._count(state.z, data.doc, row_of(data), *shape)

    @property
    def transformed(self):
        return "transform" in self.tiny.layout


def family(transformed):
    return TopicsOfGroups(
        kernel, DifferentialTopicModel, kernel.PitmanYorState, kernel.PitmanYorPriors,
        lambda *_: None, corpus_of(TINY, transformed), corpus_of(JOINT, transformed),
    )  # fmt: skip


IDENTITY, TRANSFORMED = family(False), family(True)


# ---- the exact posterior of the tiny corpus


def test_enumeration_gives_known_numbers():
    """Against numbers that another program has computed."""
    docs, group = [[0, 0], [1], [0, 2]], [0, 0, 1]
    values = {"alpha": np.array([[0.5], [0.8]]), "beta": 0.6, "discount": 0.4, "concentration": 1.5}
    transforms = np.array(
        [
            [[0.7, 0.2, 0.0], [0.3, 0.6, 0.3], [0.0, 0.2, 0.7]],
            [[0.5, 0.0, 0.1], [0.5, 0.9, 0.0], [0.0, 0.1, 0.9]],
        ]
    )
    coassigned = [
        0.862232, 0.387396, 0.571899, 0.401599, 0.387396, 0.571899, 0.401599, 0.464304, 0.515843,
        0.560067,
    ]  # fmt: skip
    of_transform = {
        "used": 1.921740, "tables": 4.632892, "log_evidence": -6.217537, "coassigned": coassigned,
        "global_tables": [2.568237, 0.727341, 1.337313],
        "next_word": [0.543532, 0.306688, 0.149781],
    }  # fmt: skip
    coassigned = [
        0.884101, 0.292786, 0.686926, 0.452009, 0.292786, 0.686926, 0.452009, 0.354246, 0.457856,
        0.536115,
    ]  # fmt: skip
    of_identity = {
        "used": 1.948499, "tables": 4.685199, "log_evidence": -5.971456, "coassigned": coassigned,
        "global_tables": [2.685199, 1.0, 1.0], "next_word": [0.636169, 0.207174, 0.156657],
    }  # fmt: skip
    for given, expected in ((transforms, of_transform), (None, of_identity)):
        posterior = pitman_yor_topics.pitman_yor_topics(
            docs, 3, 2, group=group, transforms=given, **values
        )
        found = posterior.means() | {"log_evidence": posterior.log_evidence}
        found["used"] = found["topics"] @ np.arange(1, 6)
        for name, numbers in expected.items():
            np.testing.assert_allclose(found[name], numbers, atol=6e-7, err_msg=name)


@functools.cache
def exact(transformed, sampled, **values):
    """Return posterior means; `values` are those that differ from `FIXED`, and are not sampled."""
    of_all = {**FIXED, **values, "alpha": np.reshape(values.get("alpha", FIXED["alpha"]), (-1, 1))}
    if sampled:
        rules = {name: enumeration.gamma_rule(*prior) for name, prior in PRIORS.items()}
        rules["discount"] = pitman_yor_topics.beta_rule(1.0, 1.0)
        of_all |= {name: rule for name, rule in rules.items() if name not in values}
    posterior = pitman_yor_topics.pitman_yor_topics(
        TINY.docs, NUM_WORDS, NUM_TOPICS, group=TINY.group,
        transforms=TRANSFORMS if transformed else None, **of_all,
    )  # fmt: skip
    means = posterior.means()
    if transformed:  # the kernel's has the global words as well
        means.pop("log_joint", None)
    return means


def measure(state, data):
    """Measure a state as `exact` does."""
    tables = state.tables
    values = enumeration.token_quantities(state.z) | {
        "topic": state.topic,
        "tables": tables.sum(),
        "word_tables": by_word(tables).sum(axis=1),
        "tables^2": (tables**2).sum(),
        "concentration": state.concentration.mean(),
        "discount": state.discount,
        "alpha": state.alpha,
        "beta": state.beta,
        "log_joint": kernel.log_joint(state, data),
    }
    assert TINY.group is not None
    if state.root is None:
        of_words = by_word(tables)
        root = of_words + state.beta
        base = root / root.sum(axis=0)[None]
    else:
        of_words = state.root.tables
        first = jnp.asarray(TRANSFORMS[FIRST_GROUP], jnp.float32)
        base = first @ jnp.exp(state.root.log_phi)
    values["global_tables"] = of_words.sum(axis=1)
    mine = slice(FIRST_GROUP * NUM_WORDS, (FIRST_GROUP + 1) * NUM_WORDS)
    all_tokens, all_tables = by_group(state.word_topic)[FIRST_GROUP], by_group(tables)[FIRST_GROUP]
    phi = state.word_topic[mine] - state.discount * tables[mine]
    phi = phi + (state.concentration + state.discount * all_tables)[None] * base
    phi = phi / (state.concentration + all_tokens)[None]
    theta = state.doc_topic[0] + state.alpha[FIRST_GROUP]
    values["next_word"] = (phi * (theta / theta.sum())[None]).sum(axis=1)
    return testing.as_floats(values)


def priors_of(sampled, discount=None):
    """Return priors as the kernels take them; for a target that is not sampled, very sharp ones."""
    shapes = {"alpha": (NUM_GROUPS,)}
    if sampled:
        priors = {n: testing.gamma_prior(*p, shape=shapes.get(n, ())) for n, p in PRIORS.items()}
        return kernel.PitmanYorPriors(**priors, discount=UNIFORM if discount is None else None)
    of_discount = np.float32(FIXED["discount"] * SHARP), np.float32((1 - FIXED["discount"]) * SHARP)
    priors = {name: testing.sharp(FIXED[name]) for name in PRIORS}
    return kernel.PitmanYorPriors(**priors, discount=BetaPrior(*of_discount))


def target(of, sampled, **values):
    data = of.tiny.data

    def start(rng_key):
        key_z, key_tables = jax.random.split(rng_key)
        state = kernel.init(
            key_z, data, num_words=NUM_WORDS, num_groups=NUM_GROUPS, num_topics=NUM_TOPICS,
            max_tables=CAPACITY, num_global=TRANSFORMS.shape[2] if of.transformed else None,
            **{**FIXED, "alpha": jnp.array(FIXED["alpha"], jnp.float32), **values},
        )  # fmt: skip
        u = jax.random.uniform(key_tables, state.tables.shape)
        more = (u * state.word_topic).astype(jnp.int32)
        return state._replace(tables=jnp.minimum(1 + more, state.word_topic))

    def expected():
        return exact(of.transformed, sampled, **values)

    def quantities(state, data):
        return {name: x for name, x in measure(state, data).items() if name in expected()}

    return testing.Target(data, priors_of(sampled, **values), start, quantities, expected)


def targets(of):
    return {"fixed": target(of, False), "sampled": target(of, True)}


def shipped(of):
    fixed = {**FIXED, "alpha": 0.7}
    transform = None
    if of.transformed:
        transform = Transform.from_matrix(dict(zip("ab", TRANSFORMS, strict=True)))

    def quantities(draws):
        z = draws["z"]
        counts = {
            "topic": (z[..., None] == np.arange(NUM_TOPICS)).sum(axis=-2),
            "tables": draws["group_tables"].sum(axis=(-2, -1)),
        }
        return enumeration.token_quantities(z) | counts

    def expected():
        means = exact(of.transformed, False, alpha=0.7)
        return {n: means[n] for n in ("one_topic", "topics", "coassigned", "topic", "tables")}

    model = DifferentialTopicModel(NUM_TOPICS, transform=transform, **fixed)
    return testing.Shipped(model, TINY.corpus, quantities, expected, ("z", "group_tables"))


# ---- one token: its weights, and the joint density of it, all others, and who opened tables


def conditional(state, data, token):
    """Take a token out with its table, or without it if it can, and weigh all that it may do."""
    d, v, old = data.doc[token], data.word[token], state.z[token]
    group, row = data.group[d], row_of(data)[token]
    m, t = state.word_topic[row, old], state.tables[row, old]
    flag = jnp.where(t == m, 1, token % 2)
    minus = jnp.arange(NUM_TOPICS) == old
    tables = state.tables.at[row, old].add(-flag)
    ratios = stirling.ratios(state.discount, data.count_values, CAPACITY)
    weights = shared.weigh(
        state.doc_topic[d] - minus, state.word_topic[row] - minus, tables[row],
        by_group(state.word_topic)[group] - minus, by_group(tables)[group], state.alpha[group],
        state.concentration, ratios, state.discount, state.beta,
        root_tables=by_word(tables)[v], all_root_tables=tables.sum(axis=0), sampler="ti",
        num_words=NUM_WORDS,
    ).topics  # fmt: skip

    def joint(opens, topic):
        moved = IDENTITY.move(state, data, token, None, topic)
        moved = moved._replace(tables=tables.at[row, topic].add(opens))
        m, t = (x[row, topic].astype(jnp.float32) for x in (moved.word_topic, moved.tables))
        flag = jnp.log(jnp.where(opens == 1, t, m - t) / m)  # of C(m, t) choices of openers
        some = (moved.tables > 0) == (moved.word_topic > 0)
        valid = (some & (moved.tables <= moved.word_topic)).all()
        return jnp.where(valid, kernel.log_joint(moved, data) + flag, -jnp.inf)

    topics = jnp.arange(NUM_TOPICS)
    joints = jax.vmap(lambda r: jax.vmap(lambda k: joint(r, k))(topics))(jnp.arange(2))
    return testing.Conditional(jnp.log(weights).reshape(-1), joints.reshape(-1))


# ---- the joint law


OF_TABLES = ("tables", "sum t^2", "sum T^2", "discount * tables", "log b * tables", "log joint",
             "sum Q^2", "log beta * sum Q^2", "tables of group 0")  # fmt: skip
FLOATS = "alpha", "beta", "discount", "concentration"


def draw_joint(of, rng, size):
    """Draw everything from the prior, in NumPy."""
    drawn = {n: rng.gamma(c, 1 / r, size) for n, (c, r) in PRIORS.items()}
    for name, count in (("alpha", NUM_GROUPS), ("concentration", JOINT_TOPICS)):
        c, r = PRIORS[name]
        drawn[name] = rng.gamma(c, 1 / r, (size, count))
    drawn["discount"] = rng.uniform(size=size)
    shape = size, JOINT.num_rows, JOINT_TOPICS
    theta = simulate.draw_dirichlet(
        rng, np.broadcast_to(drawn["alpha"][:, GROUP_OF_JOINT, None], shape)
    )
    z = simulate.draw_categorical(rng, theta[:, JOINT.doc])
    word, tables, label = pitman_yor_topics.seat_tokens(
        rng, z, num_words=NUM_WORDS, group=GROUP_OF_JOINT[JOINT.doc],
        transforms=TRANSFORMS if of.transformed else None,
        **{name: drawn[name] for name in ("discount", "concentration", "beta")},
    )  # fmt: skip
    drawn |= {"z": z, "word": word, "tables": tables.reshape(size, -1, JOINT_TOPICS)}
    if of.transformed:
        drawn |= draw_root(rng, drawn, label)
    return states_of(of, drawn)


def draw_root(rng, drawn, label):
    """Draw the root given the global words of the tables; return the fields of `BaseMeasure`."""
    (size, num_tokens), num_global = label.shape, TRANSFORMS.shape[2]
    tables = np.zeros((size, num_global, JOINT_TOPICS), np.int32)
    log_labels = np.zeros(size)
    for t in range(num_tokens):
        opened = np.flatnonzero(label[:, t] >= 0)
        v, word = label[opened, t], drawn["word"][opened, t]
        tables[opened, v, drawn["z"][opened, t]] += 1
        log_labels[opened] += np.log(TRANSFORMS[GROUP_OF_JOINT[JOINT.doc[t]], word, v])
    shape = tables.swapaxes(1, 2) + drawn["beta"][:, None, None]
    log_phi = simulate.draw_log_gamma(rng, shape)
    log_phi -= special.logsumexp(log_phi, axis=2, keepdims=True)
    return {"log_phi": log_phi.swapaxes(1, 2), "root_tables": tables, "log_labels": log_labels}


def states_of(of, drawn):
    """Return kernel states and data of draws of everything, with a leading axis."""

    def one(z, word, tables, values, root):
        state = kernel.PitmanYorState(
            z, jnp.zeros((JOINT.num_rows, JOINT_TOPICS), jnp.int32), tables, jnp.zeros(0), tables,
            table_capacity=jnp.zeros(CAPACITY, bool), overflow=jnp.zeros((), bool), root=root,
            **values,
        )  # fmt: skip
        data = of.joint_corpus.with_words(of.joint_corpus.data, word)
        return state._replace(**of.tally(state, data))

    integers = (np.asarray(drawn[name], np.int32) for name in ("z", "word", "tables"))
    values = {name: np.asarray(drawn[name], np.float32) for name in FLOATS}
    root = None
    if of.transformed:
        root = shared.BaseMeasure(
            np.asarray(drawn["log_phi"], np.float32), drawn["root_tables"],
            np.asarray(drawn["log_labels"], np.float32),
        )  # fmt: skip
    many = testing.quick_jit(jax.vmap(one))(*integers, values, root)
    return many, of.with_words_of(drawn["word"])


def redraw(of, rng_key, state, data):
    """Draw new words and tables given the assignments and the root, by the restaurants.

    Where the root is integrated out, it is a restaurant, too.
    """
    tokens = state.z.shape[0]
    group = data.group[data.doc]
    matrices = TRANSFORMS if of.transformed else np.stack([np.eye(NUM_WORDS)] * NUM_GROUPS)
    matrices = jnp.asarray(matrices, jnp.float32)
    phi = None if state.root is None else jnp.exp(state.root.log_phi)
    u = jax.random.uniform(rng_key, (tokens, 2))

    def draw(carry, t):
        customers, tables, labels, log_labels = carry
        k, g = state.z[t], group[t]
        m = jax.lax.dynamic_slice_in_dim(customers[:, k], g * NUM_WORDS, NUM_WORDS)
        n = jax.lax.dynamic_slice_in_dim(tables[:, k], g * NUM_WORDS, NUM_WORDS)
        root = labels[:, k] + state.beta if phi is None else phi[:, k]
        pairs = matrices[g] * (root / root.sum())[None]  # local and global word of a new table
        opens = (state.concentration[k] + state.discount * n.sum()) * pairs
        sums = jnp.cumsum(jnp.concatenate([m - state.discount * n, opens.reshape(-1)]))
        place = (sums[:-1] <= u[t, 0] * sums[-1]).sum()
        new, place_of_pair = place >= NUM_WORDS, jnp.maximum(place - NUM_WORDS, 0)
        word, label = jnp.divmod(place_of_pair, pairs.shape[1])
        word = jnp.where(new, word, place)
        row = g * NUM_WORDS + word
        log_labels = log_labels + jnp.where(new, jnp.log(matrices[g, word, label]), 0.0)
        carry = (
            customers.at[row, k].add(1), tables.at[row, k].add(new), labels.at[label, k].add(new),
            log_labels,
        )  # fmt: skip
        return carry, word.astype(jnp.int32)

    none = jnp.zeros_like(state.tables)
    no_labels = jnp.zeros((matrices.shape[2], none.shape[1]), jnp.int32)
    start = none, none, no_labels, jnp.zeros(())
    (customers, tables, labels, log_labels), word = jax.lax.scan(draw, start, jnp.arange(tokens))
    state = state._replace(word_topic=customers, tables=tables)
    if state.root is not None:
        state = state._replace(root=state.root._replace(tables=labels, log_labels=log_labels))
    return state, of.joint_corpus.with_words(data, word)


def joint_quantities(of, state, data):
    all_tables, log_b = by_group(state.tables), jnp.log(state.concentration)
    of_words = by_word(state.tables) if state.root is None else state.root.tables
    by_topic = by_group(state.word_topic)
    values = of.count_quantities(state, data) | {
        "cells": (state.word_topic > 0).sum(),
        "tables": all_tables.sum(),
        "tables of group 0": all_tables[0].sum(),
        "sum t^2": (state.tables**2).sum(),
        "sum T^2": (all_tables**2).sum(),
        "sum Q^2": (of_words**2).sum(),
        "sum n_0k n_1k": by_topic.prod(axis=0).sum(),
        "discount * tables": state.discount * all_tables.sum(),
        "log b * tables": (log_b * all_tables.sum(axis=0)).sum(),
        "log b": log_b.mean(),
        "log b * sum n_vk^2": (log_b * (state.word_topic**2).sum(axis=0)).sum(),
        "discount": state.discount,
        "discount * sum n_vk^2": state.discount * (state.word_topic**2).sum(),
        "log alpha": jnp.log(state.alpha),
        "log alpha_0 * sum n_dk^2": jnp.log(state.alpha[0])
        * ((state.doc_topic**2) * (data.group == 0)[:, None]).sum(),
        "log beta": jnp.log(state.beta),
        "log beta * sum Q^2": jnp.log(state.beta) * (of_words**2).sum(),
        "log alpha * discount": jnp.log(state.alpha) * state.discount,
    }
    if state.root is not None:
        phi = jnp.exp(state.root.log_phi)
        values |= {
            "sum phi^2": (phi**2).sum(),
            "phi": phi.sum(axis=1),
            "sum phi Q": (phi * of_words).sum(),
            "log labels": state.root.log_labels,
        }
    return testing.as_floats(values)


def draw_program(of, rng_key, size):
    """Draw everything but the tables from the program, and measure it."""
    transform = None
    if of.transformed:
        transform = Transform.from_matrix(dict(zip("ab", TRANSFORMS, strict=True)))
    model = DifferentialTopicModel(
        JOINT_TOPICS, transform=transform, discount=dist.Uniform(0.0, 1.0),
        **{name: dist.Gamma(*prior) for name, prior in PRIORS.items()},
    )  # fmt: skip
    drawn = of.program_draws(rng_key, model, list(FLOATS), size)
    none = np.zeros((size, NUM_GROUPS * NUM_WORDS, JOINT_TOPICS))
    drawn |= {"word": drawn["w"], "tables": none}
    hidden = set(OF_TABLES)
    if of.transformed:
        # the state holds no phi of the program, whose words are tested
        no_labels = np.full(drawn["word"].shape, -1)
        drawn |= draw_root(np.random.default_rng(0), drawn, no_labels)
        hidden |= {"sum phi^2", "phi", "sum phi Q", "log labels"}
    found = of.measure(functools.partial(joint_quantities, of), *states_of(of, drawn))
    return {name: x for name, x in found.items() if name not in hidden}


def joint(of):
    priors = {name: testing.gamma_prior(*prior) for name, prior in PRIORS.items()}
    return testing.Joint(
        priors=kernel.PitmanYorPriors(**priors, discount=UNIFORM),
        simulate=functools.partial(draw_joint, of), redraw=functools.partial(redraw, of),
        quantities=functools.partial(joint_quantities, of),
        program=functools.partial(draw_program, of),
    )  # fmt: skip


# ---- kernels that are wrong on purpose

FIRST_RESTAURANT = "jnp.zeros_like(all_tables).at[0].set(all_tables.sum(axis=0))"
MISTAKES = [
    testing.Mistake(
        "base measure from the tables of one group", shared, "weigh",
        "if root_tables is None else {root_tables}", "tables",
        "conditional",
    ),
    testing.Mistake(
        "tables of one group in the denominator of the base measure", shared, "weigh",
        "if all_root_tables is None else {all_root_tables}", "all_tables",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "row of the token without its group", shared, "_sequential_sweep",
        "row, of_group = {_row(data, num_words)}, None", "data.word",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "tokens and tables of a topic in the first group", shared, "_sequential_sweep",
        "of_group = {data.group[data.doc]} if", "jnp.zeros_like(data.doc)",
        "enumeration/fixed/ss",
    ),
    testing.Mistake(
        "alpha of the other group", shared, "_sequential_sweep",
        "per_doc[\"alpha\"] = {state.alpha[data.group]}", "state.alpha[1 - data.group]",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "held tables see the topic in all groups", pitman_yor, "_draw_held",
        "own, of_word, total = {of_groups[group]} - t", "of_groups.sum(axis=0)",
        "enumeration/fixed/cs",
    ),
    testing.Mistake(
        "alpha of the other group in lanes", shared, "_prior_of_docs",
        "shape), {data.group}", "1 - data.group",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "topics of the first group for all documents", shared, "_parallel_sweep",
        "table_row = {group_of(data) * num_words}", "jnp.zeros_like(data.group)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "base measures in the order of words, not of groups", shared, "_base",
        "jnp.maximum({jnp.tile(drawn, (num_groups, 1))}", "jnp.repeat(drawn, num_groups, axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "sizes of the topics from the tables of all groups", pitman_yor, "draw_topics",
        "shape_of_size = concentration[None] / discount + {all_tables}\n",
        "jnp.broadcast_to(all_tables.sum(axis=0, keepdims=True), all_tables.shape)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "rate of alpha without the number of topics", shared, "_draw_alpha_of_groups",
        "scale={num_topics}", "1",
        "enumeration/sampled/sequential",
    ),
    testing.Mistake(
        "alpha from the documents of the other group", shared, "_draw_alpha_of_groups",
        "state.doc_topic, {group}, each", "1 - group",
        "enumeration/sampled/sequential",
    ),
    testing.Mistake(
        "beta from tokens", shared, "_resample",
        "key_beta, of_words, {of_words.sum(axis=0)}", "state.topic",
        "geweke/sequential",
    ),
    testing.Mistake(
        "concentrations from one restaurant for all groups", shared, "_resample",
        "_by_group(state.word_topic, num_groups), {all_tables}, state", FIRST_RESTAURANT,
        "enumeration/sampled/parallel",
    ),
    testing.Mistake(
        "tokens of all groups are added before the rising factorial", pitman_yor,
        "draw_concentrations",
        "discount, tables) - {log_rising(b, customers)}",
        "log_rising(b, customers.sum()) / customers.shape[0]",
        "enumeration/sampled/parallel",
    ),
    testing.Mistake(
        "discount from one restaurant for all groups", shared, "_resample",
        "state.word_topic, state.tables, {all_tables},", FIRST_RESTAURANT,
        "geweke/parallel",
    ),
]  # fmt: skip
TRANSFORMED_MISTAKES = [
    testing.Mistake(
        "labels without the weights of the transform", word_transforms, "_draw_labels",
        "{values[:, s]} * jnp.maximum(phi", "(values[:, s] > 0)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "labels without the root", word_transforms, "_draw_labels",
        "values[:, s] * {jnp.maximum(phi[words[:, s], topic], 1e-30)}", "1.0",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "base measures without the weights of the transform", word_transforms, "apply",
        "total + {weight[:, s, None]} * rows", "(weight[:, s, None] > 0) / 2",
        "enumeration/fixed/ss",
    ),
    testing.Mistake(
        "root without beta", kernel, "step",
        "key_phi, new.root.tables, {new.beta}", "jnp.ones(())",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "root from the tables of local words", kernel, "step",
        "key_phi, {new.root.tables}, new.beta",
        "new.root.tables.at[:3].set(new.tables.reshape(2, 3, -1).sum(axis=0)).at[3:].set(0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "root is not drawn again", kernel, "step",
        "_replace(log_phi={log_phi})", "state.root.log_phi",
        "enumeration/fixed/cs",
    ),
    testing.Mistake(
        "held tables with a uniform base measure", shared, "_sequential_sweep",
        "beta=state.beta, base={base}", "jnp.full_like(base, 1 / 3)",
        "enumeration/fixed/cs",
    ),
]  # fmt: skip


# ---- the cases

GROWTH = testing.Growth(
    num_used=lambda state: state.tables.max(), resize=kernel.grow,
    overflow=lambda state: state.overflow, capacity=CAPACITY,
)  # fmt: skip


def schedule(name, sampler="ti", fewer=0):
    step = testing.late(kernel, "step", sweeps=(name,), sampler=sampler)
    return testing.Schedule(step, GROWTH._replace(fewer=fewer), EFFORT, num_programs=2)


SCHEDULES = {
    "sequential": schedule("sequential"),
    "ss": schedule("sequential", "ss"),
    "cs": schedule("sequential", "cs"),
    "parallel": schedule("parallel"),
}
FEWER = {
    "sequential": schedule("sequential", fewer=1),
    "parallel": schedule("parallel", fewer=2),
}

CASE = testing.Case(
    name="differential",
    model=DifferentialTopicModel,
    shipped=shipped(IDENTITY),
    targets=targets(IDENTITY),
    joint=joint(IDENTITY),
    tally=IDENTITY.tally,
    conditional=conditional,
    schedules=SCHEDULES | FEWER,
    skip={
        "log_joint": "the density of the program is an integral; sums over tables are compared with"
        " the enumeration instead"
    },
    mistakes=tuple(MISTAKES),
)

CASE_OF_TRANSFORM = testing.Case(
    name="differential, with a transform",
    shipped=shipped(TRANSFORMED),
    targets=targets(TRANSFORMED),
    joint=joint(TRANSFORMED),
    tally=TRANSFORMED.tally,
    schedules=SCHEDULES,
    skip={f"geweke/{name}": "too long; see the identity" for name in ("ss", "cs")},
    mistakes=tuple(TRANSFORMED_MISTAKES),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_check(CASE_OF_TRANSFORM)
def test_check_with_transform(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


@testing.each_mistake(TRANSFORMED_MISTAKES)
def test_mistake_with_transform(mistake):
    CASE_OF_TRANSFORM.must_catch(mistake)


def no_discount(of):
    return testing.Case(
        name=f"differential, no discount{', with a transform' * of.transformed}",
        targets={"sampled": target(of, True, discount=0.0)},
        tally=of.tally,
        schedules={
            name: testing.Schedule(
                testing.late(kernel, "step", sweeps=(name,), dirichlet=name == "parallel"),
                GROWTH,
                EFFORT,
            )
            for name in ("sequential", "parallel")
        },
    )


@testing.each_check(no_discount(IDENTITY))
def test_check_without_discount(check):
    print(check())


@testing.each_check(no_discount(TRANSFORMED))
def test_check_without_discount_with_transform(check):
    print(check())


# ---- the joint density, and limits


SMALL = testing.TinyCorpus(
    [[0, 0], [1], [0, 2]], NUM_WORDS, group=[0, 0, 1], layout={"num_count_values": 4}
)


def state_of(corpus, z, **values):
    """Return a state without tables; its data are those of the corpus."""
    num_topics = max(z) + 1
    none = np.zeros((NUM_GROUPS * NUM_WORDS, num_topics), np.int32)
    values = {**FIXED, **values}
    values["concentration"] = np.full(num_topics, values["concentration"])
    values["alpha"] = np.broadcast_to(values["alpha"], NUM_GROUPS)
    state = kernel.PitmanYorState(
        jnp.asarray(z), jnp.zeros((len(corpus.docs), num_topics), jnp.int32), none, jnp.zeros(0),
        none, **{name: jnp.asarray(x, jnp.float32) for name, x in values.items()},
        table_capacity=jnp.zeros(CAPACITY, bool), overflow=jnp.zeros((), bool),
    )  # fmt: skip
    return state._replace(**IDENTITY.tally(state, corpus.data))


def log_of_tables(corpus, z, transformed=False, **values):
    """Return the kernel's log p(w, z): its density summed over tables and their global words."""
    data, state = corpus_of(corpus, transformed).data, state_of(corpus, z, **values)
    m = np.asarray(state.word_topic)
    every = np.array(list(np.ndindex(*(m.ravel() + 1)))).reshape(-1, *m.shape)
    every = every[((every > 0) == (m > 0)).all(axis=(1, 2))]
    if not transformed:
        log_joint = jax.vmap(lambda t: kernel.log_joint(state._replace(tables=t), data))
        logs = testing.quick_jit(log_joint)(jnp.asarray(every))
        return special.logsumexp(np.asarray(logs, float))
    rows, found = TRANSFORMS.reshape(len(m), -1), []
    for tables in every:
        cells = [tuple(x) for x in np.argwhere(tables) for _ in range(tables[tuple(x)])]
        for labels in itertools.product(*(np.flatnonzero(rows[row]) for row, _ in cells)):
            of_words = np.zeros((rows.shape[1], m.shape[1]), np.int32)
            log_labels = 0.0
            for (row, k), v in zip(cells, labels, strict=True):
                of_words[v, k] += 1
                log_labels += np.log(rows[row, v])
            found.append((tables, of_words, np.float32(log_labels)))

    def of_one(tables, of_words, log_labels):
        root = shared.BaseMeasure(jnp.zeros(of_words.shape), of_words, log_labels)
        return kernel.log_joint(state._replace(tables=tables, root=root), data)

    parts = map(np.stack, zip(*found, strict=True))
    return special.logsumexp(np.asarray(testing.quick_jit(jax.vmap(of_one))(*parts), float))


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("z", [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0] * 5], ids=str)
def test_sum_over_tables_is_the_enumerated_density(transformed, z):
    num_topics = max(z) + 1
    posterior = pitman_yor_topics.pitman_yor_topics(
        SMALL.docs, NUM_WORDS, num_topics, group=SMALL.group,
        transforms=TRANSFORMS if transformed else None,
        **{**FIXED, "alpha": np.reshape(FIXED["alpha"], (-1, 1))},
    )  # fmt: skip
    place = (posterior.states == z).all(axis=1)
    found = log_of_tables(SMALL, z, transformed)
    np.testing.assert_allclose(found, posterior.log_joint[place][0], rtol=1e-5)


Z = [0, 1, 0, 1, 1, 0, 1, 0]


def test_one_group_is_pitman_yor_lda():
    z, alpha = jnp.array(Z), 0.7
    tables = jnp.array([[2, 1], [1, 2], [0, 1]])
    found = []
    for module, group in ((kernel, [0, 0, 0]), (one_group, None)):
        data = token_corpora.lay_out(TINY.docs, group=group, num_count_values=6)
        counts = [token_corpora.tally(z, row, n, 2) for row, n in ((data.doc, 3), (data.word, 3))]
        state = module.PitmanYorState(
            z, *counts, counts[0].sum(axis=0), tables, jnp.full(2 if group is None else 1, alpha),
            jnp.float32(0.6), jnp.float32(0.4), jnp.array([1.5, 0.8]), jnp.zeros(6, bool),
            jnp.zeros((), bool),
        )  # fmt: skip
        found.append(testing.quick_jit(module.log_joint)(state, data))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_topics_of_a_large_concentration_are_those_of_lda_of_all_documents():
    beta = 0.6
    found = log_of_tables(TINY, Z, alpha=0.7, beta=beta, concentration=1e6)
    state = lda.LDAState(
        jnp.array(Z), *(jnp.zeros((3, NUM_TOPICS), int) for _ in range(2)),
        jnp.zeros(NUM_TOPICS, int), jnp.full(NUM_TOPICS, 0.7), jnp.float32(beta),
    )  # fmt: skip
    pooled = testing.TinyCorpus(TINY.docs, NUM_WORDS)
    counts = (
        token_corpora.tally(state.z, row, 3, NUM_TOPICS)
        for row in (pooled.data.doc, pooled.data.word)
    )
    names = "doc_topic", "word_topic"
    state = state._replace(**dict(zip(names, counts, strict=True)))
    state = state._replace(topic=state.doc_topic.sum(axis=0))
    np.testing.assert_allclose(found, lda.log_joint(state, pooled.data), atol=1e-3)


# ---- approximations and optimised hyperparameters


def dirichlet_mean_of_logs(shape):
    return special.digamma(shape) - special.digamma(shape.sum(axis=0, keepdims=True))


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("approximation", shared.APPROXIMATIONS)
def test_root_of_approximate_sweeps(approximation, transformed):
    """Expected tables by global word, and the root from them; the density given the root."""
    rng = np.random.default_rng(0)
    matrices = TRANSFORMS if transformed else np.stack([np.eye(NUM_WORDS)] * NUM_GROUPS)
    num_global, beta = matrices.shape[2], 1.4
    phi = rng.dirichlet(np.full(num_global, 2.0), NUM_TOPICS).T
    tables = rng.integers(0, 9, (NUM_GROUPS * NUM_WORDS, NUM_TOPICS))
    data = corpus_of(TINY, transformed).data
    state = state_of(TINY, Z, beta=beta)
    log_phi = jnp.asarray(np.log(phi), jnp.float32)
    root = shared.BaseMeasure(log_phi, jnp.zeros(phi.shape), jnp.zeros(()))
    state = state._replace(tables=jnp.asarray(tables), root=root)
    new = testing.quick_jit(shared._update_root, static_argnums=2)(state, data, approximation).root

    base = np.einsum("gwv,vk->gwk", matrices, phi)
    share = matrices[..., None] * phi / base[:, :, None]  # [G, V, V0, K]
    expected = np.einsum("gwk,gwvk->vk", tables.reshape(base.shape), share)
    np.testing.assert_allclose(new.tables, expected, rtol=1e-5)
    np.testing.assert_allclose(new.tables.sum(axis=0), tables.sum(axis=0), rtol=1e-5)
    if approximation == "variational":
        found = dirichlet_mean_of_logs(beta + expected)
        assert (np.exp(found).sum(axis=0) < 1).all()  # not a distribution
    else:
        mode = beta - 1 + expected
        found = np.log(mode / mode.sum(axis=0))
    np.testing.assert_allclose(new.log_phi, found, rtol=1e-5, atol=1e-6)

    flat = root._replace(log_phi=jnp.full_like(log_phi, -jnp.log(jnp.float32(num_global))))
    tables = np.asarray(state.word_topic)  # every token has one
    own, of_flat = (
        kernel.log_joint(state._replace(tables=jnp.asarray(tables), root=x), data)
        for x in (root, flat)
    )
    ratio = base / np.einsum("gwv->gw", matrices)[..., None] * num_global
    expected = (tables * np.log(ratio.reshape(tables.shape))).sum()
    np.testing.assert_allclose(own - of_flat, expected, rtol=1e-4)


def test_mode_of_a_root_without_tables_is_finite():
    """With beta below 1 the mode has no mass on words without tables."""
    tables = np.zeros((NUM_GROUPS * NUM_WORDS, NUM_TOPICS), np.int32)
    tables[0], tables[4] = 3, (2, 0)
    state = state_of(TINY, Z, beta=0.25)
    root = shared.BaseMeasure(jnp.zeros((NUM_WORDS, NUM_TOPICS)), jnp.zeros(()), jnp.zeros(()))
    state = state._replace(tables=jnp.asarray(tables), root=root)
    new = shared._update_root(state, TINY.data, "em").root
    assert np.isfinite(np.asarray(new.log_phi)).all()
    shares = np.exp(np.asarray(new.log_phi))
    np.testing.assert_allclose(shares[:, 0], [2.25 / 3.5, 1.25 / 3.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(shares[:, 1], [1.0, 0.0, 0.0], atol=1e-6)


def test_optimised_concentrations_are_the_most_likely_ones():
    """Many steps of the fixed point, against a direct search; a group without tokens stays."""
    rng = np.random.default_rng(1)
    num_topics, group = 4, np.repeat([0, 1, 2, 0, 1], [30, 20, 5, 10, 20])
    alpha, length = np.array([0.3, 1.5, 0.9]), np.where(group == 2, 0, 25)
    theta = rng.dirichlet(np.ones(num_topics), len(group))
    for g in range(2):
        theta[group == g] = rng.dirichlet(np.full(num_topics, alpha[g]), (group == g).sum())
    doc_topic = np.stack([rng.multinomial(*x) for x in zip(length, theta, strict=True)])
    phi = rng.dirichlet(np.full(40, 0.4), num_topics)
    tables = np.stack([[rng.multinomial(60, p) for p in phi] for _ in range(2)]).swapaxes(1, 2)
    tables = np.concatenate([*tables, np.zeros((40, num_topics), int)])
    data = token_corpora.lay_out(
        [[0] * int(n) for n in length], group=group.tolist(), num_count_values=3
    )
    state = kernel.PitmanYorState(
        data.doc, jnp.asarray(doc_topic), jnp.asarray(tables), jnp.asarray(doc_topic.sum(axis=0)),
        jnp.asarray(tables), jnp.asarray(alpha, jnp.float32), jnp.float32(2.0), jnp.float32(0.4),
        jnp.ones(num_topics), jnp.zeros(9, bool), jnp.zeros((), bool),
    )  # fmt: skip

    @testing.quick_jit
    def many(state):
        step = lambda _, x: shared._optimise(x, data, ("alpha", "beta"))  # noqa: E731
        return jax.lax.fori_loop(0, 300, step, state)

    def best(counts):
        def minus_log(x):
            return -enumeration.log_dirichlet_multinomial(counts, np.exp(x)).sum()

        return np.exp(optimize.minimize_scalar(minus_log, bounds=(-6, 6), method="bounded").x)

    new = many(state)
    of_words = tables.reshape(3, 40, num_topics).sum(axis=0).T
    expected = [best(doc_topic[group == g]) for g in range(2)]
    np.testing.assert_allclose(new.alpha[:2], expected, rtol=2e-3)
    np.testing.assert_allclose(new.beta, best(of_words), rtol=2e-3)
    assert new.alpha[2] == state.alpha[2]
    only = shared._optimise(state, data, ("beta",))
    np.testing.assert_array_equal(only.alpha, state.alpha)
    assert only.beta != state.beta
