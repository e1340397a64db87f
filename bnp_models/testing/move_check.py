"""One move of a factor model on draws of the joint law: it keeps the law, and wrong moves do not.

States and data are drawn together from the prior, exactly and without the code of the kernels. A
move that leaves the posterior invariant leaves their joint law as it is. So the change of any
quantity by one move has mean zero. Most of the noise of the draws cancels in this change, so one
move shows mistakes that the means of long chains hide.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bnp_models.testing.cases import Case
from bnp_models.testing.invariants import check_tally, quick_jit
from bnp_models.testing.mistakes import Mistake, switched
from bnp_models.testing.statistics import one_sample
from bnp_models.testing.topic_family import as_floats

__all__ = ["MoveCheck", "each_move", "each_wrong_move"]

NUM_DRAWS = 40_000


class MoveCheck:
    """A move, its wrong versions, and the law that it has to keep.

    Parameters
    ----------
    name
        Of the model, for the reports.
    case
        The model's case; its joint law has two sources and some missing entries.
    move
        Makes one move: `move(rng_key, state, data, priors)`.
    mistakes
        Ways to make it wrong, each of which the check must see.
    """

    def __init__(
        self, name: str, case: Case, move: Callable[..., Any], mistakes: Sequence[Mistake]
    ):
        self.name, self.case, self.move, self.mistakes = name, case, move, tuple(mistakes)

    @functools.cached_property
    def _move_all(self) -> Callable[[Sequence[Mistake]], Any]:
        """One move of each draw, compiled once, with the mistakes behind switches."""
        joint = self.case.joint
        assert joint is not None
        states, data = joint.simulate(np.random.default_rng(0), NUM_DRAWS)
        keys = jax.random.split(jax.random.key(1), NUM_DRAWS)

        def move(rng_key, state, data):
            after = self.move(rng_key, state, data, joint.priors)
            before, now = _quantities(state, data), _quantities(after, data)
            return {name: now[name] - before[name] for name in now}, after

        @quick_jit
        def move_all(keys, states, data, switches):
            with switched(self.mistakes, switches):
                return jax.vmap(move)(keys, states, data)

        return lambda switches: move_all(keys, states, data, switches)

    def check(self, mistakes: Sequence[Mistake] = ()) -> np.ndarray:
        """Check that the mean of no quantity changes; return how the numbers of factors change.

        Raises `Rejected` if a mean changes. The rate of false alarms is that of the harness, 1e-4
        for all quantities together.
        """
        changes, after = self._move_all(np.array([m in mistakes for m in self.mistakes]))  # pyright: ignore[reportArgumentType]
        changes = {name: np.asarray(x) for name, x in changes.items()}
        assert not after.overflow.any()
        expected = {name: np.zeros(x.shape[1:]) for name, x in changes.items()}
        report = one_sample(self.name, changes, expected)
        print(report)
        report.check()
        check_tally(self.name, self.case.tally, after, None)  # pyright: ignore[reportArgumentType]
        return changes["factors"]


def each_move(moves: Mapping[str, MoveCheck]) -> Any:
    """Run a test with `move` for each of the models."""
    import pytest

    return pytest.mark.parametrize("move", moves.values(), ids=moves)


def each_wrong_move(moves: Mapping[str, MoveCheck]) -> Any:
    """Run a test with `move` and `mistake` for each way to make the move of a model wrong."""
    import pytest

    each = [(move, mistake) for move in moves.values() for mistake in move.mistakes]
    ids = [f"{move.name}: {mistake.name}" for move, mistake in each]
    return pytest.mark.parametrize(("move", "mistake"), each, ids=ids)


def _quantities(state: Any, data: Any) -> dict[str, Any]:
    """Return quantities that a birth, death, split or merge changes; large values are damped."""
    z, observed = state.z, data.observed
    uses = z.sum(axis=1)
    factors, own = (uses > 0).sum(), (z & (uses == 1)[:, None]).sum(axis=0)
    signal = state.phi.T @ state.weights  # [M, N]
    unseen = jnp.where(observed, 0.0, signal)
    rest = jnp.where(observed, data.x - signal, 0.0)
    log_beta = jnp.log(jnp.where(state.beta > 0, state.beta, 1.0))
    member = jax.nn.one_hot(data.rows.source, 2)
    values = {
        "factors": factors,
        "factors^2": factors**2,
        "factors of one row": own,
        "factors of one row^2": (own**2).sum(),
        "of one row * log alpha": own @ member * jnp.log(state.alpha),
        "of one row * log tau": own.sum() * jnp.log(state.tau),
        "uses": z.sum(axis=0),
        "uses * log alpha": z.sum(axis=0) @ member * jnp.log(state.alpha),
        "factors * log tau": factors * jnp.log(state.tau),
        "sticks": state.beta.sum(),
        "log sticks": log_beta.sum(),
        "phi^2": jnp.log1p(state.phi**2).sum(),
        "w^2": jnp.log1p(state.weights**2).sum(),
        "signal^2": jnp.log1p(signal**2).sum(),
        "unseen signal^2": jnp.log1p(unseen**2).sum(),
        "signal * x": jnp.tanh(signal * data.x).sum(),
        "rest^2": jnp.log1p(rest**2).sum(),
    }
    return as_floats(values)
