r"""The slots of a factor model during a sweep: slices, fresh atoms, and rows that use factors.

A sweep of z can visit only finitely many of the atoms of a beta process. Slice variables make this
cut exact. A slice is $\rho \sim U(0, \beta^*)$, where $\beta^*$ is the smallest stick that a row
(or any row) uses, and only atoms above $\rho$ take part. Unused atoms above $\rho$ are drawn from
their Poisson process by thinning, and merged with the used ones **in order of $\beta$**. If the
order of the slots depended on which atoms are used, the sweep would not leave the posterior
invariant.

The likelihood is passed as a function `visit`, so the same sweep serves every factor model. The
capacity K is a buffer. If it is too small, `overflow` is raised, and the sweep has to be repeated
from the state before it, with more slots and the same key. No draw depends on K.

Gupta, Phung and Venkatesh, UAI 2012, sections 4.2 and 4.4; one slice per row after Walker, Sampling
the Dirichlet mixture model with slices, Communications in Statistics 36 (2007).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.loops import most_of_any_chain
from bnp_kernels.numerics.sums import prefix_sums, sum_pairwise
from bnp_kernels.processes.beta_process import (
    LARGEST_STICK,
    SMALLEST_STICK,
    RowSources,
    count_uses,
    draw_log_odds,
    log_unused,
)
from bnp_kernels.random import bits

__all__ = [
    "Slots",
    "Visit",
    "add_up",
    "arrange",
    "by_stick",
    "counters",
    "draw_z",
    "for_each_slot",
    "grow",
    "open_slots",
    "slots_needed",
    "sweep_slots",
    "used_first",
]

# Number of axes of each field of a state, counted from the axis of slots to the last. The state of
# several chains has further axes in front.
_SLOTS = {"z": 2, "beta": 1, "phi": 2, "weights": 2}

Visit = Callable[..., tuple[Array, Callable[[Array], tuple[Any, Any]]]]
"""How a likelihood takes part in the sweep: `visit(rows, fit, factor, entries, z)`.

One call is for one slot and some rows (all, or a single one). The arguments are the data of the
rows, their present fit, the parameters of the factor, the entries of the factor at these rows, and
whether the rows use the factor. The call returns the log likelihood ratio of using the factor to
not using it, and a function of the new z that returns the new fit and entries.
"""


class Slots(NamedTuple):
    """Used factors and fresh atoms by decreasing stick; free slots, with stick zero, at the end."""

    beta: Float[Array, " K"]
    z: Bool[Array, "K N"]
    log_slice: Float[Array, " N"]
    before: Int[Array, " K"]  # slot of a used factor before the sweep
    is_old: Bool[Array, " K"]
    num_taken: Int[Array, ""]  # slots that are not free, the most of any chain
    overflow: Bool[Array, ""]


def open_slots(
    rng_key: Key[Array, ""],
    z: Bool[Array, "K N"],
    beta: Float[Array, " K"],
    alpha: Float[Array, " J"],
    tau: Float[Array, ""],
    rows: RowSources,
    *,
    one_slice: bool,
) -> Slots:
    r"""Draw slices and the unused atoms above them, and sort all atoms by stick.

    The atoms of a Poisson process of intensity $\tau x^{-1} dx$ are
    $x_b = e^{-(E_1 + \dots + E_b) / \tau}$ with standard exponentials $E_b$. Each atom is kept with
    probability $F(x_b)$, the probability that it is unused. If `one_slice`, all rows share one
    slice, below the smallest stick in use. Otherwise each row has its own slice, below the smallest
    stick that it uses.
    """
    num_slots, num_rows = z.shape
    key_slice, key_atoms = bits.split(rng_key)
    log_beta = jnp.log(jnp.where(beta > 0, beta, 1.0))
    in_use = (beta > 0)[:, None] if one_slice else z
    log_least = jnp.where(in_use, log_beta[:, None], 0.0).min(axis=0)
    if one_slice:
        log_u = jnp.log(bits.uniform(key_slice, (1,)))
        log_slice = jnp.broadcast_to(log_u + log_least, (num_rows,))
    else:
        log_slice = jnp.log(bits.uniform(key_slice, (num_rows,))) + log_least
    lowest = log_slice.min()

    numbers = jnp.arange(num_slots, dtype=jnp.uint32)
    step, keep = (bits.to_uniform(u) for u in bits.random_bits(key_atoms, numbers, 0))
    log_x = prefix_sums(jnp.log(step)) / tau
    x = jnp.clip(jnp.exp(log_x), SMALLEST_STICK, LARGEST_STICK)
    unused = jax.vmap(log_unused, (None, 0, 0, None))(x, alpha, rows.num_rows, rows.number)
    fresh = (log_x > lowest) & (jnp.log(keep) < unused.sum(axis=0))

    sticks = jnp.concatenate([beta, jnp.where(fresh, x, 0.0)])
    order = jnp.argsort(-sticks, stable=True)
    before = order[:num_slots]
    is_old = before < num_slots
    before = jnp.minimum(before, num_slots - 1)
    used = jnp.where(is_old, beta[before] > 0, False)
    return Slots(
        beta=sticks[order[:num_slots]],
        z=z[before] & used[:, None],
        log_slice=log_slice,
        before=before,
        is_old=used,
        num_taken=most_of_any_chain((sticks > 0).sum(dtype=jnp.int32)),
        overflow=(log_x[-1] > lowest) | (sticks[order[num_slots]] > 0),
    )


def arrange(slots: Slots, old: Float[Array, " K *rest"], fresh: Float[Array, " K *rest"]) -> Array:
    """Move the `old` values of used factors to their slots, and put `fresh` ones in all others."""
    is_old = slots.is_old.reshape(-1, *[1] * (old.ndim - 1))
    return jnp.where(is_old, old[slots.before], fresh)


def for_each_slot(
    count: Int[Array, ""],
    body: Callable[[Any, Any], tuple[Any, Any]],
    carry: Any,
    xs: Any,
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Scan over the first `count` slots; the outputs of the other slots are zero."""
    first = jax.tree.map(lambda x: x[0], xs)
    _, shapes = jax.eval_shape(body, carry, first)
    num_slots = len(jax.tree.leaves(xs)[0])
    ys = jax.tree.map(lambda x: jnp.zeros((num_slots, *x.shape), x.dtype), shapes)

    def visit(i, loop):
        carry, ys = loop
        k = count - 1 - i if reverse else i
        carry, y = body(carry, jax.tree.map(lambda x: x[k], xs))
        return carry, jax.tree.map(lambda ys, y: ys.at[k].set(y), ys, y)

    return lax.fori_loop(0, jnp.minimum(count, num_slots), visit, (carry, ys))


def add_up(
    x: Float[Array, "K A"], observed: Bool[Array, "A B"] | None, count: Int[Array, ""]
) -> Float[Array, "K _"]:
    """Sum x over its last axis, [K, 1], or over the entries that each column observes, [K, B].

    Only the first `count` slots are in use. A matrix product is not used: its rounding varies with
    the capacity and the number of chains.
    """
    if observed is None:
        return sum_pairwise(x.T)[:, None]
    weights = observed.astype(jnp.float32)

    def of_slot(_, x):
        return (), sum_pairwise(x[:, None] * weights)

    return for_each_slot(count, of_slot, (), x)[1]


def sweep_slots(
    slots_of_rows: Any, rows: Any, fit: Any, visit: Visit, count: Array
) -> tuple[Any, Any]:
    """Redraw some rows of z, slot by slot; all arrays but `beta` and `factor` are [K, R].

    The slices have the density 1 / beta*, with beta* the smallest stick in use. A factor whose
    stick is smaller than all others in use makes this density larger. The smallest of the other
    sticks is the minimum over the earlier slots with their new z, the later slots with their old z,
    and the slots that are `held` by other rows.
    """
    beta, z, held, log_prior_odds, open_, logistic, factor, entries = slots_of_rows
    stick = jnp.where(beta > 0, beta, 1.0)[:, None]
    holding = jnp.where(z | held, stick, 1.0)
    later = lax.cummin(holding, axis=0, reverse=True)
    later = jnp.concatenate([later[1:], jnp.ones_like(later[:1])])

    def body(carry, slot):
        earlier, fit = carry
        beta, z, held, log_prior_odds, open_, logistic, later, factor, entries = slot
        others = jnp.minimum(jnp.minimum(earlier, later), jnp.where(held, beta, 1.0))
        log_ratio, settle = visit(rows, fit, factor, entries, z)
        log_odds = log_prior_odds + log_ratio + jnp.log(others / jnp.minimum(others, beta))
        new = jnp.where(open_, logistic < log_odds, z)
        fit, entries = settle(new)
        return (jnp.minimum(earlier, jnp.where(new | held, beta, 1.0)), fit), (new, entries)

    xs = stick[:, 0], z, held, log_prior_odds, open_, logistic, later, factor, entries
    start = jnp.ones(z.shape[1:]), fit
    (_, fit), (z, entries) = for_each_slot(count, body, start, xs)
    return fit, (z, entries)


def draw_z(
    rng_key: Key[Array, ""],
    slots: Slots,
    alpha: Float[Array, " J"],
    rows: RowSources,
    data: Any,
    fit: Any,
    factor: Any,
    entries: Any,
    visit: Visit,
    *,
    sequential: bool,
) -> tuple[Bool[Array, "K N"], Any, Any]:
    r"""Redraw which rows use which factors.

    Given $\pi_{jk} \sim \mathrm{Beta}(\alpha_j \beta_k + n_{jk}, \alpha_j (1 - \beta_k) + N_j -
    n_{jk})$ all rows are updated in parallel. If `sequential`, they are updated one after the
    other, with $\pi$ integrated out of the first term of the log odds:

    $$\log \frac{p(z_{nk} = 1)}{p(z_{nk} = 0)} = \log\frac{\pi_{jk}}{1 - \pi_{jk}}
      + \log \frac{\beta^*_{n \setminus k}}{\min(\beta^*_{n \setminus k}, \beta_k)}
      + \log \frac{p(x_n \mid z_{nk} = 1)}{p(x_n \mid z_{nk} = 0)}$$

    Parameters
    ----------
    data, fit
        Data and present fit of each row. Rows are the **last** axis of every array.
    factor
        Parameters of each factor, [K, ...].
    entries
        Arrays [K, N] of what each row holds of each factor.
    visit
        The likelihood, see `Visit`.

    Returns
    -------
    z, fit and entries.
    """
    key_u, key_pi = bits.split(rng_key)
    num_slots, num_rows = slots.z.shape
    beta, z = slots.beta, slots.z
    slot = jnp.arange(num_slots, dtype=jnp.uint32)[:, None]
    row = jnp.arange(num_rows, dtype=jnp.uint32)[None, :]
    u = bits.to_uniform(bits.random_bits(key_u, slot, row)[0])
    logistic = jnp.log(u) - jnp.log1p(-u)
    log_beta = jnp.log(jnp.where(beta > 0, beta, 1.0))
    open_ = (beta[:, None] > 0) & (log_beta[:, None] >= slots.log_slice[None, :])
    uses = count_uses(z, rows.source, alpha.shape[0])
    if not sequential:
        log_odds = draw_log_odds(key_pi, beta, uses, alpha, rows)
        log_prior_odds = jnp.take(log_odds, rows.source, axis=1)
        held = jnp.zeros_like(z)
        of_rows = beta, z, held, log_prior_odds, open_, logistic, factor, entries
        fit, (z, entries) = sweep_slots(of_rows, data, fit, visit, slots.num_taken)
        return z, fit, entries

    x = jnp.where(beta > 0, beta, 0.5)[:, None]
    on, off = alpha[None, :] * x, alpha[None, :] * (1 - x)

    def sweep_row(uses, of_row):
        j, one = of_row
        z, open_, logistic, data, fit, entries = jax.tree.map(lambda x: x[..., None], one)
        here = jnp.arange(alpha.shape[0])[None, :] == j
        uses = uses - (z & here)
        others = jnp.take(rows.num_rows, j) - 1 - jnp.take(uses, j, axis=1)
        log_on = jnp.log(jnp.take(on, j, axis=1) + jnp.take(uses, j, axis=1))
        log_off = jnp.log(jnp.take(off, j, axis=1) + others)
        held = (uses.sum(axis=1) > 0)[:, None]
        of_row = beta, z, held, (log_on - log_off)[:, None], open_, logistic, factor, entries
        fit, (z, entries) = sweep_slots(of_row, data, fit, visit, slots.num_taken)
        return uses + (z & here), jax.tree.map(lambda x: x[..., 0], (z, fit, entries))

    rows_first = jax.tree.map(
        lambda x: jnp.moveaxis(x, -1, 0), (z, open_, logistic, data, fit, entries)
    )
    _, new = lax.scan(sweep_row, uses, (rows.source, rows_first))
    z, fit, entries = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), new)
    return z, fit, entries


def used_first(z: Bool[Array, "K N"], *arrays: Array) -> tuple[Array, ...]:
    """Move factors in use to the front, in order, and zero the slots of the others."""
    used = z.any(axis=1)
    order = jnp.argsort(~used, stable=True)

    def move(x):
        mine = used[order].reshape(-1, *[1] * (x.ndim - 1))
        return jnp.where(mine, x[order], jnp.zeros((), x.dtype))

    return tuple(move(x) for x in (z, *arrays))


def by_stick(z: Bool[Array, "K N"], beta: Float[Array, " K"], *arrays: Array) -> tuple[Array, ...]:
    """Sort factors in use by decreasing stick, and zero the slots of the others."""
    order = jnp.argsort(-jnp.where(z.any(axis=1), beta, 0.0), stable=True)
    return used_first(z[order], beta[order], *(x[order] for x in arrays))


def counters(num_slots: int, num_features: int, num_rows: int) -> tuple[Array, Array, Array]:
    """Return numbers of slots, [K, 1], features, [1, M], and rows, [1, N], for draws by counter."""
    slot, feature, row = (
        jnp.arange(n, dtype=jnp.uint32) for n in (num_slots, num_features, num_rows)
    )
    return slot[:, None], feature[None, :], row[None, :]


def grow(state: Any, max_factors: int) -> Any:
    """Pad a kernel's state with free slots up to `max_factors`, or drop free ones at the end."""

    def resize(x, axes):
        axis = x.ndim - axes
        extra = max(max_factors - x.shape[axis], 0)
        x = jnp.pad(x, [(0, extra if i == axis else 0) for i in range(x.ndim)])
        return lax.slice_in_dim(x, 0, max_factors, axis=axis)

    slots = {name: axes for name, axes in _SLOTS.items() if name in state._fields}
    return state._replace(**{name: resize(getattr(state, name), n) for name, n in slots.items()})


def slots_needed(
    beta: Float[Array, " K"], alpha: Float[Array, " J"], tau: Float[Array, ""], rows: RowSources
) -> Int[Array, ""]:
    r"""Return how many slots make an overflow of the next sweep improbable.

    Atoms are proposed down to the lowest slice. With N rows this slice is seldom below
    $e^{-4} \beta^* / N$. The sticks of the atoms that are kept start near $1 / \mathrm{E}[U]$, the
    inverse of the expected number of tables. The numbers of proposed and of kept atoms are both
    Poisson; the result adds four standard deviations to their means.
    """
    used = beta > 0
    least = jnp.log(jnp.where(used, beta, 1.0)).min()
    depth = jnp.log(rows.source.shape[0] * 1.0) + 4.0 - least
    tables = (alpha * jnp.log1p(rows.num_rows / alpha)).sum()

    def enough(mean):
        mean = tau * jnp.maximum(mean, 0.0)
        return jnp.ceil(mean + 4.0 * jnp.sqrt(mean) + 4.0).astype(jnp.int32)

    kept = used.sum() + enough(depth - jnp.log1p(tables))
    return jnp.maximum(enough(depth), kept)
