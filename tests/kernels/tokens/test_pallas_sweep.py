"""The Pallas sweep against the lanes, against running sums in float64, and against enumeration.

Without a GPU, Pallas interprets the kernel. The last part translates it for a GPU.
"""

import contextlib
import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from bnp_kernels import lda
from bnp_kernels.numerics.shards import every_part, spread
from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens import lanes, layout, pallas_sweep, tally
from bnp_models import LDA, testing

NUM_WORDS, NUM_GROUPS = 30, 3
sweep_lanes = jax.jit(lanes.sweep_lanes)


def corpus(seed=0, num_docs=12, longest=25, **options):
    """Draw a corpus with empty documents, documents of one token, and a long one."""
    rng = np.random.default_rng(seed)
    doc_length = rng.integers(0, longest, num_docs)
    doc_length[[1, -1]], doc_length[2], doc_length[3] = 0, 1, 2 * longest
    doc = np.repeat(np.arange(num_docs), doc_length)
    word = rng.integers(0, NUM_WORDS, doc.size)
    return layout.make_tokens(doc, word, num_docs, token_sweep="pallas", **options)


class Problem(NamedTuple):
    """Positional arguments of a sweep after the layout, and its options."""

    state: Any
    options: dict[str, Any]


def problem(tokens, num_topics, seed=0, *, rows=False, frozen=False):
    """Draw a state and tables with zeros, of which each token's own topic is none."""
    rng = np.random.default_rng(seed)
    num_docs, num_tokens = tokens.doc_length.shape[0], tokens.doc.shape[0]
    z = rng.integers(0, num_topics, num_tokens)
    group = rng.integers(0, NUM_GROUPS, num_docs)
    table_row = group * NUM_WORDS * rows
    table = rng.gamma(0.2, size=(NUM_WORDS * NUM_GROUPS, num_topics))
    table *= rng.random(num_topics) < 0.8
    table[table_row[tokens.doc] + tokens.word, z] += 0.01
    prior = rng.gamma(0.5, size=(NUM_GROUPS, num_topics))
    z = jnp.asarray(z, jnp.int32)
    doc_topic = tally.tally(z, tokens.doc, tokens.word, num_docs, NUM_WORDS, num_topics)[0]
    options = {}
    if rows:
        options = {"prior_row": jnp.asarray(group), "table_row": jnp.asarray(table_row)}
    if frozen:
        options["frozen"] = jnp.asarray(rng.random(num_tokens) < 0.4)
    state = (table, prior if rows else prior[0])
    return Problem((z, doc_topic, *(jnp.asarray(x, jnp.float32) for x in state)), options)


def uniforms(key, tokens):
    rank = np.concatenate([np.arange(n) for n in np.asarray(tokens.doc_length)])
    return np.asarray(bits.to_uniform(bits.random_bits(key, tokens.doc, jnp.asarray(rank))[0]))


def check_inverts(key, tokens, of_sweep, new):
    """Check that the uniform of each token lies at its new topic, by running sums in float64."""
    z, doc_topic, table, prior = (np.array(x, np.float64) for x in of_sweep.state)
    z, new = z.astype(int), np.asarray(new)
    docs, num_topics = np.asarray(tokens.doc), table.shape[1]
    zeros = np.zeros(len(doc_topic), int)
    prior_row = np.asarray(of_sweep.options.get("prior_row", zeros))
    table_row = np.asarray(of_sweep.options.get("table_row", zeros))
    frozen = np.asarray(of_sweep.options.get("frozen", np.zeros(len(z), bool)))
    order = np.argsort(categorical.encode(jnp.arange(num_topics), num_topics))
    u = uniforms(key, tokens)
    np.testing.assert_array_equal(new[frozen], z[frozen], "frozen tokens")
    for t in np.flatnonzero(~frozen):
        d = docs[t]
        doc_topic[d, z[t]] -= 1
        weights = doc_topic[d] + np.atleast_2d(prior)[prior_row[d]]
        weights = weights * table[table_row[d] + int(tokens.word[t])]
        assert weights[new[t]] > 0, f"topic {new[t]} of token {t} has weight zero"
        cdf = np.cumsum(weights[order]) / weights.sum()
        at = int(np.flatnonzero(order == new[t])[0])
        off = max(cdf[at] - weights[new[t]] / weights.sum() - u[t], u[t] - cdf[at])
        assert off < 2e-6, f"the uniform of token {t} is {off} away from its topic"
        doc_topic[d, new[t]] += 1


SIZES = {
    "one topic": 1,
    "one block": 11,
    "whole blocks": 256,
    "parts of blocks": 300,
    "more than registers keep": 1100,
}
VARIANTS = {"plain": {}, "rows": {"rows": True}, "rows, frozen": {"rows": True, "frozen": True}}
SOME = [("one topic", "plain"), ("one block", "plain"), ("one block", "rows, frozen"),
        ("whole blocks", "plain"), ("parts of blocks", "rows, frozen"),
        ("more than registers keep", "rows")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("size", "variant"), SOME)
def test_draws_what_the_lanes_draw(size, variant):
    tokens, key = corpus(), jax.random.key(0)
    of_sweep = problem(tokens, SIZES[size], **VARIANTS[variant])
    new = sweep_lanes(key, tokens.lanes, *of_sweep.state, **of_sweep.options)
    by_lanes = sweep_lanes(key, tokens.lanes.lanes, *of_sweep.state, **of_sweep.options)
    # one uniform of a million lies within rounding of a boundary, and there are 200
    np.testing.assert_array_equal(new, by_lanes)
    assert new.dtype == jnp.int32
    check_inverts(key, tokens, of_sweep, new)
    if SIZES[size] > 1:
        assert (np.asarray(new) != np.asarray(of_sweep.state[0])).mean() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("num_topics", [11, 300, 1100])
def test_powers(num_topics):
    """Annealed sweeps: chains with other powers, and what the lanes draw."""
    tokens, keys = corpus(), jax.random.split(jax.random.key(8), 3)
    of_sweep = problem(tokens, num_topics, rows=True, frozen=True)

    def sweep(layout_, key, power):
        return lanes.sweep_lanes(key, layout_, *of_sweep.state, power=power, **of_sweep.options)

    powers = jnp.array([0.1, 0.5, 1.0])
    new, by_lanes = (
        jax.jit(jax.vmap(functools.partial(sweep, x)))(keys, powers)
        for x in (tokens.lanes, tokens.lanes.lanes)
    )
    np.testing.assert_array_equal(new, by_lanes)
    plain = sweep_lanes(keys[0], tokens.lanes, *of_sweep.state, **of_sweep.options)
    assert (np.asarray(new[0]) != np.asarray(plain)).any()


@pytest.mark.parametrize("capacity", [12, 150, 1100])
def test_does_not_depend_on_the_capacity(capacity):
    num_topics = 11
    tokens, key = corpus(), jax.random.key(1)
    z, doc_topic, table, prior = problem(tokens, num_topics).state
    extra = ((0, 0), (0, capacity - num_topics))
    wide = z, jnp.pad(doc_topic, extra), jnp.pad(table, extra), jnp.pad(prior, extra[1:])
    np.testing.assert_array_equal(
        sweep_lanes(key, tokens.lanes, *wide),
        sweep_lanes(key, tokens.lanes, z, doc_topic, table, prior),
    )


def test_vmap_is_one_by_one():
    tokens, num_topics = corpus(), 11
    states = [problem(tokens, num_topics, seed).state for seed in range(3)]
    keys = jax.random.split(jax.random.key(2), 3)
    alone = [sweep_lanes(k, tokens.lanes, *s) for k, s in zip(keys, states, strict=True)]
    stacked = [jnp.stack(x) for x in zip(*states, strict=True)]
    axes = (0, None, 0, 0, 0, 0)
    together = jax.jit(jax.vmap(lanes.sweep_lanes, in_axes=axes))
    np.testing.assert_array_equal(together(keys, tokens.lanes, *stacked), alone)
    # each chain with a corpus of its own
    copies = jax.tree.map(lambda x: jnp.stack([x] * 3), tokens.lanes)
    together = jax.jit(jax.vmap(lanes.sweep_lanes))
    np.testing.assert_array_equal(together(keys, copies, *stacked), alone)
    # arrays that all chains share
    together = jax.jit(jax.vmap(lanes.sweep_lanes, in_axes=(0, *[None] * 5)))
    one = [sweep_lanes(key, tokens.lanes, *states[0]) for key in keys]
    np.testing.assert_array_equal(together(keys, tokens.lanes, *states[0]), one)


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_does_not_depend_on_the_devices():
    whole, tokens = corpus(), corpus(parts=every_part(2), axis_name="s")
    key, (z, doc_topic, *rest) = jax.random.key(3), problem(whole, 11).state
    shards = tokens.shards
    mesh = jax.make_mesh((2,), ("s",), axis_types=(jax.sharding.AxisType.Auto,))
    of_layout = jax.tree.map(lambda x: P(*[None] * (x.ndim - 1), "s"), tokens.lanes)

    def sweep(layout_, z, doc_topic, *rest):
        new = lanes.sweep_lanes(key, layout_, z, doc_topic, *rest, shards=shards)
        return shards.all_tokens(new), new

    specs = (of_layout, P("s"), P("s"), P(), P())
    divided = jax.jit(
        jax.shard_map(sweep, mesh=mesh, in_specs=specs, out_specs=(P(), P("s")), check_vma=False)
    )
    token_bounds = np.asarray(shards.token_bounds)
    own = (spread(np.asarray(z), token_bounds),
           spread(np.asarray(doc_topic), np.asarray(shards.doc_bounds)))  # fmt: skip
    new, of_devices = divided(tokens.lanes, *own, *rest)
    np.testing.assert_array_equal(new, sweep_lanes(key, whole.lanes, z, doc_topic, *rest))
    np.testing.assert_array_equal(of_devices, spread(np.asarray(new), token_bounds))


def sharp_tilt(counts, of_doc, shared):
    return counts * of_doc + shared


def test_other_sweeps_use_the_lanes(monkeypatch):
    tokens, key = corpus(), jax.random.key(4)
    z, doc_topic, table, prior = problem(tokens, 11).state
    num_docs = doc_topic.shape[0]
    tilted = {"tilt": sharp_tilt, "tilt_docs": jnp.ones(num_docs), "tilt_shared": jnp.ones(())}

    def both(*state, **options):
        layouts = tokens.lanes, tokens.lanes.lanes
        return [lanes.sweep_lanes(key, x, *state, **options) for x in layouts]

    monkeypatch.setattr(pallas_sweep, "MAX_TOPICS", 10)
    monkeypatch.setattr(pallas_sweep, "sweep_documents", None)
    np.testing.assert_array_equal(*both(z, doc_topic, table, prior))
    monkeypatch.setattr(pallas_sweep, "MAX_TOPICS", 11)
    np.testing.assert_array_equal(*both(z, doc_topic, jnp.log(table + 1e-9), prior, **tilted))
    with pytest.raises(TypeError, match="not callable"):
        both(z, doc_topic, table, prior)


def test_no_tokens():
    tokens = layout.make_tokens(np.zeros(0, int), np.zeros(0, int), 2, token_sweep="pallas")
    z, counts = jnp.zeros(0, jnp.int32), jnp.zeros((2, 3), jnp.int32)
    new = lanes.sweep_lanes(
        jax.random.key(0), tokens.lanes, z, counts, jnp.ones((1, 3)), jnp.ones(3)
    )
    assert new.shape == (0,)


def test_rank_promotion():
    tokens = corpus()
    of_sweep = problem(tokens, 11, rows=True, frozen=True)
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(
            lambda *x: lanes.sweep_lanes(*x, **of_sweep.options),
            jax.random.key(0), tokens.lanes, *of_sweep.state,
        )  # fmt: skip


def find(weights, u):
    """Draw a topic by the three levels of the kernel, from weights in blocks."""
    row = jnp.broadcast_to(jnp.arange(16), (8, 16))
    blocks = pallas_sweep._arrange(weights)
    block, column, left = pallas_sweep._find_block([x.sum(axis=1) for x in blocks], u)
    at_column = jnp.arange(8)[:, None] == column
    row, found = pallas_sweep._find_row(jnp.where(at_column, blocks[block], 0), left, row)
    return pallas_sweep._to_topic(block * 128 + column * 16 + row), found


def test_law_of_one_draw():
    """A grid of uniforms falls on each topic in proportion to its weight."""
    size, num_topics = 100_000, 150
    rng = np.random.default_rng(5)
    weights = rng.gamma(0.3, size=num_topics) * (rng.random(num_topics) < 0.7)
    u = (np.arange(size) + 0.5) / size
    topic, found = jax.jit(jax.vmap(find, (None, 0)))(jnp.asarray(weights), jnp.asarray(u))
    assert found.all()
    share = np.bincount(topic, minlength=num_topics) / size
    np.testing.assert_allclose(share, weights / weights.sum(), atol=1.01 / size)


def test_never_draws_a_topic_of_weight_zero():
    """Not at the ends of the uniforms, nor where weights differ by many powers of ten."""
    rng = np.random.default_rng(6)
    weights = 10.0 ** rng.uniform(-30, 3, (3000, 300)) * (rng.random((3000, 300)) < 0.05)
    weights[:300] = np.eye(300)
    u = rng.choice([2.0**-32, 0.25, 0.5, 1 - 2.0**-24, 1.0], 3000)
    topic, found = jax.jit(jax.vmap(find))(jnp.asarray(weights), jnp.asarray(u))
    assert found.all()
    assert (weights[np.arange(3000), topic] > 0).all()
    np.testing.assert_array_equal(topic[:300], np.arange(300))
    assert not find(jnp.zeros(300), jnp.float32(0.5))[1]


# ---- kernels that are wrong on purpose

WRONG = [
    testing.Mistake(
        "own token stays in the counts", pallas_sweep, "_visit_document",
        "count - {is_at(old, block)}", "0", "check_inverts",
    ),
    testing.Mistake(
        "new topic is not counted", pallas_sweep, "_visit_document",
        "count + {is_at(new, block)}", "0", "check_inverts",
    ),
    testing.Mistake(
        "uniform of another token", pallas_sweep, "_visit_document",
        "u_ref[chain, {t}]", "jnp.maximum(t - 1, 0)", "check_inverts",
    ),
    testing.Mistake(
        "prior of another document", pallas_sweep, "_visit_document",
        "prior_row_ref[{program}]", "program - 1", "check_inverts",
    ),
    testing.Mistake(
        "counts of another document", pallas_sweep, "_visit_document",
        "doc_ref[{program}]", "0", "check_inverts",
    ),
    testing.Mistake(
        "frozen tokens move", pallas_sweep, "_visit_document",
        "found & {(old >= 0)}", "True", "check_inverts",
    ),
    testing.Mistake(
        "columns are taken in the order of rows", pallas_sweep, "_to_place",
        "column * {_ROWS} +", "1", "check_inverts",
    ),
    testing.Mistake(
        "blocks before the chosen one still count", pallas_sweep, "_find_block",
        "jnp.where(past, {rest - within}, left)", "rest", "check_inverts",
    ),
    testing.Mistake(
        "the first row with a weight", pallas_sweep, "_find_row",
        "upto > {left[:, None]}", "0", "check_inverts",
    ),
]  # fmt: skip


@pytest.fixture
def no_old_traces():
    """Let JAX forget what it has traced, so that it sees a function that changed."""
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.usefixtures("no_old_traces")
@pytest.mark.parametrize("mistake", [pytest.param(m, id=m.name) for m in WRONG])
def test_mistake(mistake):
    tokens, key = corpus(), jax.random.key(7)
    of_sweep = problem(tokens, 140, rows=True, frozen=True)
    with testing.made(mistake):
        new = jax.jit(lambda *x: lanes.sweep_lanes(*x, **of_sweep.options))(
            key, tokens.lanes, *of_sweep.state
        )
    with pytest.raises(AssertionError):
        check_inverts(key, tokens, of_sweep, new)


# ---- the exact posterior of LDA, through its kernel


LAYOUT = {"num_lanes": 1, "token_sweep": "pallas"}
TINY = testing.TinyCorpus([[0, 0, 1], [1, 2, 2]], num_words=3, layout=LAYOUT)
FAMILY = testing.FiniteTopicsCase(
    lda, LDA, lda.LDAState, lda.LDAPriors, lda.conditional, TINY, TINY
)


@pytest.mark.slow
def test_exact_posterior():
    step = testing.late(lda, "step", sweeps=("parallel",))
    case = testing.Case(
        name="lda by the Pallas sweep",
        targets={"fixed": FAMILY.target("fixed")},
        schedules={
            "parallel": testing.Schedule(step, effort=testing.Effort(800, 15, 60), num_programs=2)
        },
        tally=FAMILY.tally,
    )
    print(case.enumeration("fixed", "parallel"))


# ---- a translation for a GPU


@contextlib.contextmanager
def without_a_gpu():
    """Name a GPU to translate for, as later versions of JAX ask for; they also deprecate it."""
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.filterwarnings("ignore", "The Pallas Triton backend is deprecated")
        if jax.__version_info__ >= (0, 11):
            gpu = jax.sharding.AbstractDevice("NVIDIA H100 80GB HBM3", 132, "gpu")
            mesh = jax.sharding.AbstractMesh((), (), abstract_device=gpu)
            stack.enter_context(jax.sharding.use_abstract_mesh(mesh))
        yield


@pytest.mark.parametrize("num_topics", [16, 300, 4096])
@pytest.mark.parametrize("powered", [False, True])
def test_is_translated_for_a_gpu(num_topics, powered):
    """Every operation of the kernel has a translation to Triton's language."""
    tokens, chains = corpus(), 2
    of_shape = jax.ShapeDtypeStruct
    num_docs, num_tokens = tokens.doc_length.shape[0], tokens.doc.shape[0]
    arguments = (
        of_shape((chains,), jax.random.key(0).dtype), tokens.lanes,
        of_shape((chains, num_tokens), jnp.int32),
        of_shape((chains, num_docs, num_topics), jnp.int32),
        of_shape((chains, NUM_WORDS, num_topics), jnp.float32),
        of_shape((chains, num_topics), jnp.float32),
        of_shape((), jnp.float32) if powered else None,
    )  # fmt: skip

    def one_chain(*given):
        return lanes.sweep_lanes(*given[:-1], power=given[-1])

    sweep = jax.jit(jax.vmap(one_chain, in_axes=(0, None, 0, 0, 0, 0, None)))
    with without_a_gpu():
        translated = sweep.trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" in translated
    assert "sweep_documents" in translated
