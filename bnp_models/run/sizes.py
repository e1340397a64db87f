"""Refuse runs whose arrays can't fit into memory, before anything is compiled or allocated."""

import jax

from bnp_kernels.numerics.devices import current_device
from bnp_models.data.memory import check_memory, total_memory
from bnp_models.run.runner import Runner, num_bytes

__all__ = ["check_sizes"]

FEW = 8  # a draw is smaller than this many states


def check_sizes(
    runner: Runner, *, num_chains: int, num_samples: int, keep_states: int, num_devices: int
) -> None:
    """Check the memory of the chains, of the draws that are kept, and of the kept states.

    Raises
    ------
    ValueError
        If one of them is larger than the memory; the message names the argument.
    """
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), num_chains))
    try:
        state = runner.shapes(keys)  # `Runner.init` uses this trace again
    except OverflowError as error:
        raise ValueError(
            f"model {runner.kernel.config!r} has arrays with more cells than int32 can count: use "
            "a smaller capacity or fewer topics (factors)"
        ) from error
    chains = num_bytes(state)
    what = f"num_chains is {num_chains}: the states of all chains are kept at once"
    fix = "use fewer chains, or a smaller model, or data with fewer words (features)"
    check_memory(what, chains, fix)
    stats = current_device().memory_stats() or {}  # None on a CPU
    if limit := stats.get("bytes_limit"):
        check_memory(what, chains, fix, limit=limit * num_devices)
    available = total_memory()
    if available is None or FEW * chains * (runner.num_kept + keep_states) < available:
        return  # the usual case, without tracing what is recorded
    num_states = min(keep_states, runner.num_kept)
    snapshot = jax.eval_shape(runner.snapshot, state)
    check_memory(
        f"keep_states is {keep_states}: {num_states} states are kept in each of {num_chains} "
        "chains",
        num_bytes(snapshot) * num_states,
        "keep fewer",
    )
    draw = runner.recorded(state)
    check_memory(
        f"num_samples is {num_samples}: {runner.num_kept} draws are kept in each of {num_chains} "
        "chains",
        num_bytes(draw) * runner.num_kept,
        "keep fewer by a larger thinning, or record= less",
    )
