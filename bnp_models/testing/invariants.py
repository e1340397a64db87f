"""Checks of single sweeps and of densities, in which nothing is compared with a distribution."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_models.testing.statistics import Disagreement

__all__ = [
    "Step",
    "check_batch",
    "check_equal",
    "check_ranks",
    "check_ratios",
    "check_sweeps",
    "check_tally",
    "check_together",
    "disagreeing",
    "on_the_way",
    "quick_jit",
    "rows_of",
]

Key = jax.Array
Step = Callable[[Key, Any, Any], Any]
"""One sweep of one chain: (rng_key, state, data) -> state."""

quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""`jax.jit` for functions that run a few times only: it compiles fast and does not optimise."""


@contextlib.contextmanager
def disagreeing() -> Iterator[None]:
    """Turn an `AssertionError` into a `Disagreement`; put only comparisons by NumPy inside."""
    try:
        yield
    except AssertionError as error:
        raise Disagreement(str(error)) from None


@contextlib.contextmanager
def on_the_way() -> Iterator[None]:
    """Turn a `Disagreement` into another failure, in a part that a check is not named for."""
    try:
        yield
    except Disagreement as error:
        raise AssertionError(f"on the way to what is compared: {error}") from None


def rows_of(states: Any, index: Any) -> Any:
    """Return some of many states, by NumPy: JAX would compile once for each number of states."""
    return jax.tree.map(lambda x: np.asarray(x)[index], states)


def check_ratios(where: str, log_weights, log_values, tolerance: float = 2e-4) -> None:
    """Check that two vectors of logs differ by a constant, and are infinite at the same places.

    A conditional equals the joint density up to a constant: Grosse and Duvenaud, Testing MCMC code
    (2014).
    """
    one, two = (np.asarray(x, np.float64) for x in (log_weights, log_values))
    possible = np.isfinite(two)
    if not (np.isfinite(one) == possible).all():
        raise Disagreement(f"{where}: weights vanish at other values than the joint: {one}, {two}")
    difference = one[possible] - two[possible]
    spread = difference.max() - difference.min()
    if not spread < tolerance:
        raise Disagreement(
            f"{where}: conditional and joint disagree by {spread:.3g} nats; logs up to a constant: "
            f"weights {one[possible] - one[possible][0]}, joint {two[possible] - two[possible][0]}"
        )


def check_ranks(where: str, step: Step, start: Callable[[Key], Any], data: Any) -> None:
    """Check that a sweep needs no rank promotion: `[K, V] + [V]` is a common mistake in counts."""
    key = jax.random.key(0)
    try:
        with jax.numpy_rank_promotion("raise"):
            jax.eval_shape(lambda state: step(key, state, data), jax.eval_shape(start, key))
    except ValueError as error:
        raise AssertionError(f"{where}: a sweep relies on rank promotion") from error


def check_sweeps(
    where: str,
    step: Step,
    start: Callable[[Key], Any],
    data: Any,
    tally: Callable[[Any, Any], Mapping[str, Any]],
    *,
    num_chains: int = 4,
    num_sweeps: int = 3,
) -> None:
    """Run a few sweeps of a few chains, and check the state after each sweep.

    - Fields that are functions of the assignments equal a tally from scratch.
    - Shapes, dtypes and weak types do not change, and `jit` traces once.
    - A chain gives the same result at another place of the batch, beside other chains.
    """
    traces = 0

    def counted(rng_key, state):
        nonlocal traces
        traces += 1
        return step(rng_key, state, data)

    batch = quick_jit(jax.vmap(counted))
    keys = jax.random.split(jax.random.key(num_chains + 1), num_chains)
    check_together(where, batch, quick_jit(jax.vmap(start))(keys), data, tally, num_sweeps)
    if traces != 1:
        raise AssertionError(f"{where}: traced {traces} times in {num_sweeps} sweeps")


def check_together(
    where: str,
    batch: Callable[[Key, Any], Any],
    states: Any,
    data: Any,
    tally: Callable[[Any, Any], Mapping[str, Any]],
    num_sweeps: int = 3,
) -> None:
    """Make the checks of `check_sweeps`, except that of the tracing.

    `batch` is a function of keys and states with an axis of chains in front.
    """
    num_chains = len(jax.tree.leaves(states)[0])
    places = np.arange(num_chains)
    moved = np.append(places[1:], places[1])  # without the first chain, the second one twice
    for keys in jax.random.split(jax.random.key(num_chains), (num_sweeps, num_chains)):
        before, states = states, batch(keys, states)
        _check_avals(where, before, states)
        elsewhere = batch(keys[moved], rows_of(before, moved))
        check_equal(where, rows_of(states, moved), elsewhere)
        check_tally(where, tally, states, data)


def check_tally(
    where: str, tally: Callable[..., Mapping[str, Any]], states: Any, data: Any
) -> None:
    """Check that the fields that `tally` counts equal the counts, in the states of many chains."""
    for field, fresh in quick_jit(jax.vmap(lambda state: tally(state, data)))(states).items():
        counted = getattr(states, field)
        with disagreeing():
            np.testing.assert_array_equal(counted, fresh, err_msg=f"{where}: {field} after a sweep")


def check_batch(
    where: str,
    alone: Callable[[Key, Any], Any],
    batch: Callable[[Key, Any], Any],
    states: Any,
    num_chains: int = 10,
) -> None:
    """Check that a chain gives the same state alone and in a batch, see `check_equal`."""
    keys = jax.random.split(jax.random.key(0), len(jax.tree.leaves(states)[0]))
    after = batch(keys, states)
    for chain in range(num_chains):
        end = alone(keys[chain], rows_of(states, chain))
        check_equal(f"{where}, chain {chain}", rows_of(after, chain), end)


def _check_avals(where: str, before: Any, after: Any) -> None:
    one, two = (
        [(x.shape, x.dtype, jnp.asarray(x).aval.weak_type) for x in jax.tree.leaves(tree)]
        for tree in (before, after)
    )
    if jax.tree.structure(before) != jax.tree.structure(after) or one != two:
        raise AssertionError(f"{where}: a sweep changes the state from {one} to {two}")


def check_equal(where: str, one: Any, two: Any) -> None:
    """Check that two states are equal: integers exactly, floats up to a relative error of 1e-4."""
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        with disagreeing():
            if jnp.issubdtype(x.dtype, jnp.floating):
                np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-7, err_msg=where)
            else:
                np.testing.assert_array_equal(x, y, err_msg=where)
