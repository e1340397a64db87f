"""Counter-based random bits: Threefry-2x32 with 20 rounds, one block for every (slot, item).

A draw depends on its key and its counter, not on the shape of the array that holds it. Padding an
array with further slots or items therefore leaves the other draws unchanged. The cipher is that of
`jax.random.key(seed, impl="threefry2x32")`. Its rounds are unrolled here, because XLA's CPU backend
keeps JAX's own rounds in a loop that it does not vectorise.

Keys, and short arrays that programs take apart into scalars, end in an optimisation barrier, so
that XLA does not compute them again inside the loops that use them. Such a loop would have the
rounds of two blocks: of a key and of what is drawn with it, or of two scalars. A block has twenty
rounds, and from jaxlib 0.11 on LLVM's loop vectoriser takes twice as long for each round beyond
about twenty. (`experiments/upstream/unrolled_rounds.py` shows it without this library.)

Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Integer, Key, UInt32

__all__ = [
    "fold_in",
    "key_words",
    "normal",
    "random_bits",
    "split",
    "threefry",
    "to_uniform",
    "uniform",
]

# Rotation distances of Threefry-2x32 (table 2 of the paper), and the parity constant of its
# key schedule.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
# Items in one run of `uniform`. The first half of a run takes the first output words of its
# counters, the second half takes the second words.
_RUN = 256


@jax.jit  # traced once for each shape: a sweep calls it about a hundred times
def threefry(
    key0: UInt32[Array, "..."],
    key1: UInt32[Array, "..."],
    count0: UInt32[Array, "..."],
    count1: UInt32[Array, "..."],
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Encrypt the counter (count0, count1) under the key (key0, key1): one block of 64 bits."""
    add, word = lax.add, np.uint32  # a third of the time that the operators take to trace
    keys = key0, key1, key0 ^ key1 ^ word(_PARITY)
    *keys, x0, x1 = jnp.broadcast_arrays(*keys, count0, count1)
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = lax.bitwise_xor(_rotated(x1, distance), x0)
        x0 = add(x0, keys[(group + 1) % 3])
        x1 = add(add(x1, keys[(group + 2) % 3]), word(group + 1))
    return x0, x1


def _rotated(x: UInt32[Array, "..."], distance: int) -> UInt32[Array, "..."]:
    up, down = np.uint32(distance), np.uint32(32 - distance)
    return lax.bitwise_or(lax.shift_left(x, up), lax.shift_right_logical(x, down))


def key_words(rng_key: Key[Array, ""]) -> tuple[UInt32[Array, ""], UInt32[Array, ""]]:
    """Reduce a key of any JAX implementation to the two words that Threefry takes.

    The two words of a Threefry key are used as they are. A longer key is folded: each further pair
    of words is encrypted under the key made so far. (A plain XOR would cancel: the second half of
    an `rbg` key repeats the first.)
    """
    words = jax.random.key_data(rng_key).astype(jnp.uint32)
    key0, key1, *more = (lax.index_in_dim(words, i, keepdims=False) for i in range(len(words)))
    for pair in zip(more[::2], more[1::2], strict=False):
        block = threefry(key0, key1, *pair)
        key0, key1 = lax.optimization_barrier(block)
    return key0, key1


def split(rng_key: Key[Array, ""], num: int = 2) -> Key[Array, " num"]:
    """Return the keys of `jax.random.split`; the code for Threefry keys compiles faster."""
    if not _is_threefry(rng_key):
        return jax.random.split(rng_key, num)
    number = jnp.arange(num, dtype=jnp.uint32)
    return _encrypt_key(rng_key, jnp.zeros_like(number), number)


def fold_in(rng_key: Key[Array, ""], data: Integer[Array, ""] | int) -> Key[Array, ""]:
    """Return the key of `jax.random.fold_in`; the code for Threefry keys compiles faster."""
    if not _is_threefry(rng_key):
        return jax.random.fold_in(rng_key, data)
    return _encrypt_key(rng_key, jnp.uint32(0), jnp.uint32(data))


def _is_threefry(rng_key: Key[Array, ""]) -> bool:
    return str(jax.random.key_impl(rng_key)) == "threefry2x32"


def _encrypt_key(rng_key: Key[Array, ""], count0: Array, count1: Array) -> Array:
    block = lax.optimization_barrier(threefry(*key_words(rng_key), count0, count1))
    return jax.random.wrap_key_data(jnp.stack(block, axis=-1), impl="threefry2x32")


def random_bits(
    rng_key: Key[Array, ""],
    slot: Integer[Array, "..."] | int,
    item: Integer[Array, "..."] | int,
    block: Integer[Array, "..."] | int = 0,
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Draw 64 random bits for every counter (slot, item); the arguments broadcast together.

    A counter has 2**32 blocks of bits. The number of the block is added to the first word of the
    key. Blocks are as good as separate keys (section 2 of the paper), and cheaper than `split`
    where only a few are needed.

    Returns
    -------
    Two arrays of uniform 32-bit words, independent of each other, of the broadcast shape.
    """
    key0, key1 = key_words(rng_key)
    key0 = key0 + jnp.asarray(block).astype(jnp.uint32)
    slot, item, key0 = jnp.broadcast_arrays(jnp.asarray(slot), jnp.asarray(item), key0)
    return threefry(key0, key1, slot.astype(jnp.uint32), item.astype(jnp.uint32))


def to_uniform(bits: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Map words to float32 in [2**-32, 1 - 2**-24], never 0 or 1.

    Only the top 31 bits are used. Small values keep their low bits, so that events of probability
    down to 1e-9 occur at the right rate.
    """
    unit = (bits >> 1).astype(jnp.int32).astype(jnp.float32) * jnp.float32(2.0**-31)
    return jnp.clip(unit, jnp.float32(2.0**-32), jnp.float32(1 - 2.0**-24))


def normal(
    rng_key: Key[Array, ""], slot: Integer[Array, "..."] | int, item: Integer[Array, "..."] | int
) -> Float[Array, "..."]:
    """Draw a standard normal number for every counter (slot, item); its size is at most 5.3."""
    unit = 2 * to_uniform(random_bits(rng_key, slot, item)[0]) - 1
    edge = jnp.float32(1 - 2.0**-23)
    return jnp.float32(2**0.5) * lax.erf_inv(jnp.clip(unit, -edge, edge))


def uniform(
    rng_key: Key[Array, ""], shape: tuple[int, ...], first: Integer[Array, ""] | int = 0
) -> Float[Array, "..."]:
    """Draw float32 uniforms strictly inside (0, 1), entry i in row-major order from counter i.

    `uniform(key, (n,))[:m]` equals `uniform(key, (m,))`. Both words of every block are used.

    Parameters
    ----------
    shape
        At most 2**32 entries: beyond that the counters of one key repeat.
    first
        Number of the first entry: `uniform(key, (n,), m)` is `uniform(key, (m + n,))[m:]`.
    """
    size = math.prod(shape)
    half = _RUN // 2
    if not isinstance(first, int) or first:
        item = jnp.asarray(first).astype(jnp.uint32) + jnp.arange(size, dtype=jnp.uint32)
        words = random_bits(rng_key, 0, item // _RUN * half + item % half)
        word = jnp.where(item % _RUN < half, *words)
        return to_uniform(word).reshape(shape)
    if size <= half:  # first words only, which need no second loop
        word = lax.optimization_barrier(random_bits(rng_key, 0, jnp.arange(size))[0])
        return to_uniform(word).reshape(shape)
    # Two axes from the start: XLA's CPU backend does not vectorise one long axis that it splits
    # over threads.
    run = jnp.arange(-(-size // _RUN), dtype=jnp.uint32)[:, None]
    words = random_bits(rng_key, 0, run * half + jnp.arange(half, dtype=jnp.uint32)[None, :])
    units = jnp.concatenate([to_uniform(word) for word in words], axis=1)
    return units.reshape(-1)[:size].reshape(shape)
