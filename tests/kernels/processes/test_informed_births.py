"""Births and deaths of factors of one row: a move keeps the joint law, and wrong moves do not.

Births must count the factors that a row has for itself, for example. The enumerations of the models
do not see whether they do: rows with several such factors are too rare there. See
`testing.MoveCheck`.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import gaussian_factors, poisson_factors
from bnp_kernels.processes import informed_births
from bnp_kernels.processes.beta_process import make_rows
from bnp_models import MODELS, testing

CASES = testing.find(Path(__file__).parents[1], MODELS, "CASE")  # their joint laws and tallies
GAUSSIAN, POISSON = "GaussianFactorAnalysis", "PoissonGammaFactorAnalysis"
JOINT_LAW = "the joint law"  # the check that must see the mistakes


# moves that are wrong on purpose

OF_ALL = [
    testing.Mistake(
        "births do not count the row's own factors", informed_births, "draw_own_factors",
        "jnp.log(num_own + is_birth)", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "a birth counts only the factors that were there", informed_births, "draw_own_factors",
        "jnp.log({num_own + is_birth})", "jnp.maximum(num_own, 1)",
        JOINT_LAW,
    ),
    testing.Mistake(
        "births and deaths without the mass", informed_births, "draw_own_factors",
        "log_prior + {jnp.log(state.tau)}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "births without the density of their proposal", informed_births, "draw_own_factors",
        "log_u < {log_ratio}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "deaths with the ratio of births", informed_births, "draw_own_factors",
        "log_u < {-log_ratio}", "log_ratio",
        JOINT_LAW,
    ),
    testing.Mistake(
        "factors of several rows die", informed_births, "draw_own_factors",
        "(z.sum(axis=1) == 1)", "z.any(axis=1)",
        JOINT_LAW,
    ),
    testing.Mistake(
        "a death leaves its factor among the others", informed_births, "draw_own_factors",
        "jnp.where({dropped}, 0.0", "jnp.zeros_like(dropped)",
        JOINT_LAW,
    ),
    testing.Mistake(
        "one number decides on the kind and on acceptance", informed_births, "draw_own_factors",
        "random_bits(key_u, {1}, number)", "0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "sticks of births as if from their law", informed_births, "_propose_sticks",
        "jnp.log(stick) - {log_q}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "sticks without the density of the process", informed_births, "_propose_sticks",
        "column - {jnp.log(stick)}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "all rows are of the first source", informed_births, "_propose_sticks",
        "rows.source[row]", "jnp.zeros_like(row)",
        JOINT_LAW,
    ),
]  # fmt: skip
OF_MODEL = {
    GAUSSIAN: [
        testing.Mistake(
            "weight of a birth costs nothing", gaussian_factors, "_propose",
            "number_seen * jnp.log1p(gain)", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "missing entries are seen", gaussian_factors, "_propose",
            "jnp.where(observed, shrinkage, {sigma2_phi})", "shrinkage",
            JOINT_LAW,
        ),
        testing.Mistake(
            "missing entries count", gaussian_factors, "_propose",
            "else {observed.sum(axis=0)}", "len(rest)",
            JOINT_LAW,
        ),
    ],
    POISSON: [
        testing.Mistake(
            "factor of a birth as if from its prior", poisson_factors, "_propose",
            "a * jnp.log(b / total)", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "factor of a birth without the counts that it takes", poisson_factors, "_propose",
            "{of_features} * (jnp.log(total)", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "missing entries are seen", poisson_factors, "_propose",
            "jnp.where(data.observed, seen, {0.0})", "seen",
            JOINT_LAW,
        ),
    ],
}  # fmt: skip


def own_factors(model):
    """Return the move of a model as `MoveCheck` makes it."""
    if model == GAUSSIAN:
        return lambda rng_key, state, data, _: gaussian_factors._draw_own_factors(
            rng_key, state, data
        )
    return lambda *args: poisson_factors._draw_own_factors(*args)  # as it is then


MOVES = {
    model: testing.MoveCheck(model, CASES[model], own_factors(model), OF_ALL + mistakes)
    for model, mistakes in OF_MODEL.items()
}


@pytest.mark.slow
@testing.each_move(MOVES)
def test_a_move_keeps_the_joint_law(move):
    change = move.check()
    assert (change > 0).mean() > 0.05  # births
    assert (change < 0).mean() > 0.05  # deaths


@pytest.mark.slow
@testing.each_wrong_move(MOVES)
def test_a_wrong_move_changes_the_joint_law(move, mistake):
    with pytest.raises(testing.Rejected):
        move.check([mistake])


@testing.each_move(MOVES)
def test_mistakes_fit_the_source(move):
    with testing.switched(move.mistakes, np.zeros(len(move.mistakes), bool)):
        pass


# ---- where factors are put


class Factors(NamedTuple):
    z: np.ndarray
    beta: np.ndarray
    phi: np.ndarray
    weights: np.ndarray
    alpha: np.ndarray
    tau: np.ndarray
    overflow: np.ndarray


Z = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], bool)
START = Factors(
    Z, np.where(Z.any(axis=1), 0.3, 0.0).astype(np.float32),
    np.where(Z.any(axis=1)[:, None], np.arange(1.0, 4), 0.0).astype(np.float32),
    Z.astype(np.float32), np.ones(1, np.float32), np.float32(1), np.zeros((), bool),
)  # fmt: skip


@functools.cache
def moved_often(log_ratio):
    """Return 50 ends of one move whose proposals all have this ratio; new weights are 2."""

    def propose(rng_key, row, others, phi, weight, is_birth):
        return phi + is_birth[:, None], jnp.where(is_birth, 2.0, weight), log_ratio * jnp.ones(4)

    def move(rng_key):
        rows = make_rows(np.zeros(4, int), 1)
        start = jax.tree.map(jnp.asarray, START)
        return informed_births.draw_own_factors(rng_key, start, rows, propose)

    after = testing.quick_jit(jax.vmap(move))(jax.random.split(jax.random.key(0), 50))
    return [Factors(*(np.asarray(x[i]) for x in after)) for i in range(50)]


def test_new_factors_take_the_first_free_slots_or_there_is_an_overflow():
    numbers = set()
    for end in moved_often(1e3):
        born = end.weights == 2
        number = (end.weights[3:] == 2).sum()
        numbers.add((int(number), bool(end.overflow)))
        np.testing.assert_array_equal(end.z[:3], Z[:3])  # no factor dies
        np.testing.assert_array_equal(end.z[3:], born[3:])
        np.testing.assert_array_equal(end.z[3:].sum(axis=1), np.arange(2) < number)
        np.testing.assert_array_equal(end.beta > 0, end.z.any(axis=1))
    assert numbers == {(0, False), (1, False), (2, False), (2, True)}


def test_slots_of_dropped_factors_are_free():
    dead = set()
    for end in moved_often(-1e3):
        there = end.z.any(axis=1)
        dead.add(tuple(np.flatnonzero(~there[:3]).tolist()))
        kept = there[:, None]
        np.testing.assert_array_equal(end.z, Z & kept)
        np.testing.assert_array_equal(end.beta, np.where(there, START.beta, 0))
        np.testing.assert_array_equal(end.phi, np.where(kept, START.phi, 0))
        np.testing.assert_array_equal(end.weights, np.where(kept, START.weights, 0))
        assert not end.overflow
    assert dead == {(), (1,), (2,), (1, 2)}  # the first factor is shared
