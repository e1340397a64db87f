import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from bnp_kernels.numerics.shards import every_part, spread
from bnp_kernels.random import bits, categorical
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import make_tokens

NUM_WORDS, NUM_TOPICS = 30, 11
draw = jax.jit(categorical.draw)
sweep_lanes = jax.jit(lanes.sweep_lanes)


def corpus(seed=0, num_docs=25, longest=40, **options):
    rng = np.random.default_rng(seed)
    doc_length = rng.integers(0, longest, num_docs)
    doc_length[[1, -1]] = 0
    doc_length[2] = 1
    doc = np.repeat(np.arange(num_docs), doc_length)
    word = rng.integers(0, NUM_WORDS, doc.size)
    return make_tokens(doc, word, num_docs, **options)


def problem(tokens, seed=0, num_topics=NUM_TOPICS):
    """Draw a state and a table with zeros, of which each token's own topic is none."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, num_topics, tokens.doc.shape[0])
    table = rng.gamma(0.2, size=(NUM_WORDS, num_topics)) * (rng.random(num_topics) < 0.8)
    table[tokens.word, z] += 0.01
    prior = rng.gamma(0.5, size=num_topics)
    z = jnp.asarray(z, jnp.int32)
    doc_topic, _, _ = tally.tally(
        z, tokens.doc, tokens.word, tokens.doc_length.shape[0], NUM_WORDS, num_topics
    )
    return z, doc_topic, jnp.asarray(table, jnp.float32), jnp.asarray(prior, jnp.float32)


def plain_sweep(key, tokens, z, doc_topic, table, prior, frozen):
    """Token by token, document by document, with the same uniforms."""
    z, doc_topic = np.array(z), np.array(doc_topic)
    table, prior = np.asarray(table), np.asarray(prior)
    rank = np.concatenate([np.arange(n) for n in np.asarray(tokens.doc_length)])
    u = bits.to_uniform(bits.random_bits(key, tokens.doc, jnp.asarray(rank))[0])
    for t, (d, v) in enumerate(zip(np.asarray(tokens.doc), np.asarray(tokens.word), strict=True)):
        if frozen[t]:
            continue
        doc_topic[d, z[t]] -= 1
        weights = (doc_topic[d].astype(np.float32) + prior) * table[v]
        z[t] = draw(weights, u[t])
        doc_topic[d, z[t]] += 1
    return z


@pytest.mark.parametrize("frozen", [False, True])
def test_is_the_plain_sweep(frozen):
    tokens = corpus(num_lanes=4)
    key, state = jax.random.key(0), problem(tokens)
    mask = np.random.default_rng(1).random(tokens.doc.shape[0]) < 0.4 * frozen
    new = sweep_lanes(key, tokens.lanes, *state, frozen=jnp.asarray(mask) if frozen else None)
    expected = plain_sweep(key, tokens, *state, mask)
    np.testing.assert_array_equal(new, expected)
    assert (expected != np.asarray(state[0])).mean() > 0.3
    assert new.dtype == jnp.int32


@pytest.mark.parametrize("num_lanes", [1, 64])
def test_does_not_depend_on_the_lanes(num_lanes):
    tokens = corpus()
    key, state = jax.random.key(1), problem(tokens)
    expected = sweep_lanes(key, tokens.lanes, *state)
    other = corpus(num_lanes=num_lanes)
    assert other.lanes.word.shape[-1] == num_lanes
    np.testing.assert_array_equal(sweep_lanes(key, other.lanes, *state), expected)


@pytest.mark.parametrize("shards", [1, 3])
def test_documents_are_packed_some_after_the_other(shards, monkeypatch):
    rng = np.random.default_rng(2)
    length = rng.integers(0, 9, 60) * rng.integers(0, 2, 60)
    word = rng.integers(0, 50, length.sum())
    bounds = np.linspace(0, 60, shards + 1).astype(int)
    at_once = lanes.pack(length, word, doc_bounds=bounds, here=range(shards))
    monkeypatch.setattr(lanes, "_CHUNK", 7)
    for a, b in zip(
        lanes.pack(length, word, doc_bounds=bounds, here=range(shards)), at_once, strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("capacity", [12, 50])
def test_does_not_depend_on_the_capacity(capacity):
    tokens = corpus()
    key, state = jax.random.key(2), problem(tokens)
    extra = ((0, 0), (0, capacity - NUM_TOPICS))
    z, doc_topic, table, prior = state
    wide = z, jnp.pad(doc_topic, extra), jnp.pad(table, extra), jnp.pad(prior, extra[1:])
    np.testing.assert_array_equal(
        sweep_lanes(key, tokens.lanes, *wide), sweep_lanes(key, tokens.lanes, *state)
    )


@pytest.mark.parametrize("num_lanes", [4, 128])  # vectorised over chains, one chain at a time
def test_vmap_is_one_by_one(num_lanes):
    tokens = corpus(num_lanes=num_lanes)
    states = [problem(tokens, seed) for seed in range(3)]
    keys = jax.random.split(jax.random.key(3), 3)
    stacked = [jnp.stack(x) for x in zip(*states, strict=True)]
    axes = (0, None, 0, 0, 0, 0)
    together = jax.jit(jax.vmap(lanes.sweep_lanes, in_axes=axes))(keys, tokens.lanes, *stacked)
    for chain in range(3):
        alone = sweep_lanes(keys[chain], tokens.lanes, *states[chain])
        np.testing.assert_array_equal(together[chain], alone)


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_does_not_depend_on_the_devices():
    whole, tokens = corpus(), corpus(parts=every_part(2), num_lanes=6, axis_name="s")
    key, (z, doc_topic, *rest) = jax.random.key(4), problem(whole)
    shards = tokens.shards
    mesh = jax.make_mesh((2,), ("s",), axis_types=(jax.sharding.AxisType.Auto,))
    layout = jax.tree.map(lambda x: P(*[None] * (x.ndim - 1), "s"), tokens.lanes)

    def sweep(lanes_, z, doc_topic, *rest):
        new = lanes.sweep_lanes(key, lanes_, z, doc_topic, *rest, shards=shards)
        return shards.all_tokens(new)

    specs = (layout, P("s"), P("s"), P(), P())
    divided = jax.jit(
        jax.shard_map(sweep, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    )
    own = (spread(np.asarray(z), np.asarray(shards.token_bounds)),
           spread(np.asarray(doc_topic), np.asarray(shards.doc_bounds)))  # fmt: skip
    np.testing.assert_array_equal(
        divided(tokens.lanes, *own, *rest), sweep_lanes(key, whole.lanes, z, doc_topic, *rest)
    )


def test_a_lane_takes_up_the_counts_of_its_next_document():
    # words are no help and the prior is tiny: a document of one topic keeps it
    doc = np.repeat(np.arange(6), 9)
    tokens = make_tokens(doc, np.zeros_like(doc), 6, num_lanes=1)
    z = jnp.asarray(doc % 3, jnp.int32)
    doc_topic, _, _ = tally.tally(z, tokens.doc, tokens.word, 6, 1, 3)
    new = sweep_lanes(
        jax.random.key(5), tokens.lanes, z, doc_topic, jnp.ones((1, 3)), jnp.full(3, 1e-9)
    )
    np.testing.assert_array_equal(new, z)


@pytest.mark.parametrize("num_lanes", [None, 1, 5])
@pytest.mark.parametrize("longest", [3, 40, 300])
def test_pack_places_every_token_once(num_lanes, longest):
    tokens = corpus(longest=longest, num_lanes=num_lanes)
    word, position, doc, rank = (np.asarray(x) for x in tokens.lanes)
    num_tokens = tokens.doc.shape[0]
    held = position < num_tokens
    np.testing.assert_array_equal(np.sort(position[held]), np.arange(num_tokens))
    np.testing.assert_array_equal(word[held], np.asarray(tokens.word)[position[held]])
    # a block holds consecutive tokens of one document, from its start
    n, b, lane = np.nonzero(held)
    np.testing.assert_array_equal(np.asarray(tokens.doc)[position[held]], doc[n, lane])
    begin = np.concatenate([[0], np.cumsum(tokens.doc_length)[:-1]])
    np.testing.assert_array_equal(position[held] - begin[doc[n, lane]], rank[n, lane] + b)


def test_pack_wastes_little(monkeypatch):
    monkeypatch.setattr(lanes, "current_device", lambda: jax.devices("cpu")[0])
    rng = np.random.default_rng(0)
    doc_length = rng.poisson(rng.gamma(2, 200, size=2000))
    packed = lanes.pack(doc_length, np.zeros(doc_length.sum(), np.int32))
    assert doc_length.sum() / packed.word.size > 0.85


def test_rank_promotion():
    tokens = corpus()
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(lanes.sweep_lanes, jax.random.key(0), tokens.lanes, *problem(tokens))
