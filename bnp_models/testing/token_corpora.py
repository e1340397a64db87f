"""What the cases of token models share: tiny corpora, new words, quantities, mistakes."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, ScalarLike
from numpyro.infer import Predictive

from bnp_kernels.processes import hdp_root
from bnp_kernels.random import tables
from bnp_kernels.tokens.documents import Documents
from bnp_kernels.tokens.layout import Tokens, make_tokens
from bnp_models.testing.compiled_sweeps import OPTIMISED
from bnp_models.testing.mistakes import Mistake

__all__ = [
    "coassigned",
    "draw_program",
    "draw_words",
    "first_appearance",
    "lay_out",
    "permute_slots",
    "root_mistakes",
    "tally",
    "with_words",
]


def lay_out(
    docs: Sequence[Sequence[int]],
    num_lanes: int | None = None,
    group: Sequence[int] | None = None,
    label: Sequence[int] | None = None,
    num_count_values: int | None = None,
    transform: Any = None,
    design: Any = None,
    token_sweep: str = "lanes",
) -> Tokens:
    """Lay out documents, given as lists of word ids, as data of the kernels; see `make_tokens`."""
    doc = np.repeat(np.arange(len(docs), dtype=np.int32), [len(words) for words in docs])
    word = np.concatenate([np.asarray(words, np.int32) for words in docs])
    groups, labels = (None if x is None else np.asarray(x, np.int32) for x in (group, label))
    return make_tokens(
        doc, word, len(docs), num_lanes=num_lanes, group=groups, label=labels,
        num_count_values=num_count_values,
        transform=transform, design=design, token_sweep=token_sweep,
    )  # fmt: skip


def tally(
    z: Int[Array, " T"], row: Int[Array, " T"], num_rows: int, num_topics: int
) -> Int[Array, "rows K"]:
    """Count tokens by row (document or word) and topic."""
    counts = jnp.zeros((num_rows, num_topics), jnp.int32)
    return counts.at[row, z].add(1)


def with_words(data: Tokens, word: Int[Array, " T"]) -> Tokens:
    """Replace the words, in corpus order, in every place where the data holds them."""
    padded, layout = jnp.append(word, 0), data.lanes
    lanes = layout.lanes if isinstance(layout, Documents) else layout
    lanes = lanes._replace(word=padded[lanes.position])
    if isinstance(layout, Documents):
        lanes = layout._replace(word=word, lanes=lanes)
    return data._replace(word=word, lanes=lanes)


def draw_words(
    rng_key: Key[Array, ""],
    z: Int[Array, " T"],
    num_words: int,
    beta: ScalarLike | Float[Array, " T"],
) -> Int[Array, " T"]:
    """Draw words given topics, with the topic-word rows integrated out.

    Every topic has an urn, which starts with `beta` of each word. A token draws a word from the urn
    of its topic and adds one of this word to the urn. Where topics have concentrations of their
    own, `beta` is that of each token's topic.
    """
    tokens = jnp.arange(z.shape[0])
    beta = jnp.broadcast_to(jnp.asarray(beta), z.shape)
    u = jax.random.uniform(rng_key, z.shape)

    def draw(word, t):
        earlier = (z == z[t]) & (tokens < t)
        urn = (earlier[:, None] & (word[:, None] == jnp.arange(num_words)[None, :])).sum(axis=0)
        total = jnp.cumsum(urn + beta[t])
        return word.at[t].set((total[:-1] <= u[t] * total[-1]).sum()), None

    return jax.lax.scan(draw, jnp.zeros_like(z), tokens)[0]


def draw_program(
    rng_key: Key[Array, ""], model: Any, data: Any, sites: Sequence[str], size: int
) -> dict[str, np.ndarray]:
    """Draw a program `size` times, with its data, and return the values of these sites."""
    predictive = Predictive(model, num_samples=size, return_sites=list(sites), parallel=True)
    draw = jax.jit(lambda key: predictive(key, data, observed=False), compiler_options=OPTIMISED)
    draws = draw(rng_key)
    return {site: np.asarray(draws[site]) for site in sites}


def coassigned(z: Int[Array, " T"]) -> Float[Array, " pairs"]:
    """Return whether tokens i < j share a topic, pairs in lexicographic order."""
    first, second = np.triu_indices(z.shape[0], 1)
    return (z[first] == z[second]).astype(jnp.float32)


def permute_slots(z: Int[Array, " T"], order: Int[Array, " K"]) -> Int[Array, " T"]:
    """Renumber the topics: slot `order[i]` becomes slot i."""
    return jnp.argsort(order)[z].astype(z.dtype)


def first_appearance(z: Int[np.ndarray, "S T"]) -> Int[np.ndarray, "S T"]:
    """Renumber the topics of every row in order of appearance."""
    first = (z[:, :, None] == z[:, None, :]).argmax(axis=2)  # first token of the same topic
    starts = first == np.arange(z.shape[1])
    return np.take_along_axis(starts.cumsum(axis=1) - 1, first, axis=1)


def root_mistakes(alpha: float) -> list[Mistake]:
    """List mistakes in the births, deaths and tables of a kernel with an HDP root.

    `alpha` is its value in the target "fixed". The mistakes are caught by the conditional, or for
    the sequential schedule by the enumeration of "fixed" or by the growth.
    """
    enumeration = "enumeration/fixed/sequential"
    return [
        Mistake(
            "density of a share of Beta(1, alpha)", hdp_root, "birth",
            "/ gamma", f"/ {alpha}",
            "conditional",
        ),
        Mistake(
            "share of Beta(1, alpha)", hdp_root, "birth",
            "jnp.log1p(-u) / {gamma}", f"{alpha}",
            enumeration,
        ),
        Mistake(
            "a death loses its mass", hdp_root, "death",
            "unused_weight + {freed.sum(axis=-1)}", "0.0",
            enumeration,
        ),
        Mistake(
            "first table not counted", tables, "_draw",
            "(n >= 1).astype(jnp.int32)", "0",
            enumeration,
        ),
        Mistake(
            "births without a free slot are ignored", hdp_root, "join",
            "overflow | {(is_new & (free == capacity))}", "False",
            "growth/sequential",
        ),
    ]  # fmt: skip
