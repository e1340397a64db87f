r"""Atoms of an Indian buffet process as topics: slots for births, and atoms without tokens.

The atoms, sticks x with marks, are a Poisson process of intensity $\alpha x^{-1} dx$ times the law
of the marks. Rows (documents, or groups of documents) switch each atom on with probability
$\epsilon x$. A topic is an atom that has tokens; topics occupy slots. No draw depends on the number
of slots.

Births need no code of their own. Before a sweep, some free slots get an atom each, from a density
q. A token may move to such a slot as to any other, and a slot that loses its last token keeps its
atom. The number of free slots with an atom is Poisson($\lambda$), so that the density of slots and
atoms is $\prod_f \lambda q(f)$ over the free ones. The weight of a free slot is therefore the
intensity of the process at its atom, times the factor of the token, over $\lambda q$. (Densities on
such spaces of pseudo-priors: Carlin and Chib, JRSS B 57, 1995. With a number of free slots that is
fixed, the weight would depend on how many are left, and a sweep could run out of them.)
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.sums import prefix_sums, sum_pairwise
from bnp_kernels.random import bits

__all__ = [
    "SPARE",
    "Atoms",
    "draw_atoms",
    "draw_switches",
    "expected_atoms",
    "into_free_slots",
    "slots_for",
    "slots_in_play",
]

SPARE = 16.0
r"""Expected number $\lambda$ of free slots with an atom in a sequential sweep."""

_SMALLEST = 1e-30  # a stick never underflows to 0
_LARGEST = 1 - 2.0**-24
# Cumulative probabilities of Poisson(SPARE); what is left behind the last is less than 1e-12.
_SPARE_CDF = np.exp(-SPARE) * np.cumsum([SPARE**n / math.factorial(n) for n in range(56)])


def slots_in_play(
    rng_key: Key[Array, ""], used: Bool[Array, " K"]
) -> tuple[Bool[Array, " K"], Bool[Array, ""]]:
    """Choose the slots that a sweep may use: those in use, and the first Poisson(16) free ones.

    Returns
    -------
    The slots, and whether there are too few.
    """
    wanted = (bits.uniform(rng_key, (1,)) > _SPARE_CDF.astype(np.float32)).sum()
    place = jnp.cumsum(~used)  # 1 in the first free slot
    return used | (place <= wanted), place[-1] < wanted


class Atoms(NamedTuple):
    """Atoms of the process that at least one row switches on, in no particular order."""

    stick: Float[Array, " K"]
    on: Bool[Array, "R K"]
    exists: Bool[Array, " K"]  # the first J
    overflow: Bool[Array, ""]  # there are more than K


def expected_atoms(alpha: ArrayLike, num_rows: int, epsilon: ArrayLike = 1.0) -> Float[Array, ""]:
    r"""Return how many atoms are expected to be on in a row at least.

    This is $\alpha \sum_{j=1}^R (1 - (1 - \epsilon)^j) / j$.
    """
    return jnp.asarray(alpha) * sum_pairwise(_first_rows(num_rows, epsilon))


def _first_rows(num_rows: int, epsilon: ArrayLike) -> Float[Array, " R"]:
    """Return the expected number of atoms that row j is the first to switch on, for mass one."""
    j = jnp.arange(1, num_rows + 1, dtype=jnp.float32)
    return -jnp.expm1(j * _log_off(epsilon)) / j


def _log_off(epsilon: ArrayLike) -> Float[Array, ""]:
    """Return log(1 - epsilon); very small, not -inf, for 1."""
    return jnp.log1p(-jnp.minimum(jnp.float32(epsilon), jnp.float32(1 - 2.0**-24)))


def draw_atoms(
    rng_key: Key[Array, ""],
    alpha: Float[Array, ""],
    num_rows: int,
    max_atoms: int,
    epsilon: ArrayLike = 1.0,
    here: tuple[Int[Array, ""] | int, int] | None = None,
) -> Atoms:
    r"""Draw all atoms that are on in a row at least, with their switches, from the process.

    Row j is the first to switch on Poisson($\alpha (1 - (1 - \epsilon)^j) / j$) atoms. The density
    of their sticks is proportional to $(1 - \epsilon x)^{j - 1}$ on (0, 1). Where rows are divided
    over devices, `here` are the first row of this device and how many it has; the switches are
    those of these rows.
    """
    key_number, key_first, key_stick, key_on = bits.split(rng_key, 4)
    rates = _first_rows(num_rows, epsilon)
    arrivals = prefix_sums(-jnp.log(bits.uniform(key_number, (max_atoms,))))
    exists = arrivals <= alpha * sum_pairwise(rates)
    until = prefix_sums(rates)
    place = bits.uniform(key_first, (max_atoms,)) * until[-1]
    first = jnp.minimum(jnp.searchsorted(until, place, side="right"), num_rows - 1)
    # invert the distribution function 1 - (1 - epsilon x)^(first + 1)
    number = first.astype(jnp.float32) + 1
    most = -jnp.expm1(number * _log_off(epsilon))
    rest = jnp.log1p(-bits.uniform(key_stick, (max_atoms,)) * most)
    stick = jnp.clip(-jnp.expm1(rest / number) / epsilon, _SMALLEST, _LARGEST)
    first_row, rows = (0, num_rows) if here is None else here
    row = (first_row + jnp.arange(rows))[:, None]
    chance = jnp.broadcast_to(epsilon * stick, (rows, max_atoms))
    on = draw_switches(key_on, chance, first_row)
    on = jnp.where(row == first[None, :], True, on & (row > first[None, :]))
    return Atoms(stick, on & exists[None, :], exists, exists[-1])


def draw_switches(
    rng_key: Key[Array, ""],
    probability: Float[Array, "R K"],
    first_row: Int[Array, ""] | int = 0,
) -> Bool[Array, "R K"]:
    """Draw which switches are on; cell (r, k) is drawn from the counter (k, r).

    Rows are numbered from `first_row`.
    """
    num_rows, num_slots = probability.shape
    slot = jnp.arange(num_slots, dtype=jnp.uint32)[None, :]
    row = (jnp.asarray(first_row, jnp.uint32) + jnp.arange(num_rows, dtype=jnp.uint32))[:, None]
    return bits.to_uniform(bits.random_bits(rng_key, slot, row)[0]) < probability


def into_free_slots(
    chosen: Bool[Array, " K"], used: Bool[Array, " K"]
) -> tuple[Int[Array, " K"], Bool[Array, " K"], Bool[Array, ""]]:
    """Give the first free slots to the chosen atoms.

    Returns
    -------
    atom, taken, overflow
        Atom of each slot where `taken`, and whether there are too few slots.
    """
    place = jnp.cumsum(~used) - 1
    number = chosen.sum()
    order = jnp.argsort(~chosen, stable=True)
    taken = ~used & (place < number)
    return order[jnp.maximum(place, 0)], taken, number > place[-1] + 1


def slots_for(expected: ArrayLike) -> Int[Array, ""]:
    """Return how many slots are enough for Poisson(expected) atoms, but once in 1e9 times."""
    expected = jnp.asarray(expected)
    return jnp.ceil(expected + 6.0 * jnp.sqrt(expected) + 6.0).astype(jnp.int32)
