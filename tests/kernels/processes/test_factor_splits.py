"""Splits and merges of factors: a move keeps the joint law, and wrong moves do not.

See `testing.MoveCheck` for the check. Planted factors show that a split finds what stands together.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from bnp_kernels import gaussian_factors, poisson_factors
from bnp_kernels.processes import factor_splits, gaussian_splits, poisson_splits
from bnp_kernels.processes.allocation import make_counts
from bnp_models import MODELS, testing

CASES = testing.find(Path(__file__).parents[1], MODELS, "CASE")  # their joint laws and tallies
GAUSSIAN, POISSON = "GaussianFactorAnalysis", "PoissonGammaFactorAnalysis"
JOINT_LAW = "the joint law"  # the check that must see the mistakes

# moves that are wrong on purpose

OF_ALL = [
    testing.Mistake(
        "a merge chooses among as many pairs as a split factors", factor_splits, "split_or_merge",
        "log_ratio - {jnp.log(jnp.where(is_split, num_used + 1, num_used))}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "a merge counts its factors as a split does", factor_splits, "split_or_merge",
        "jnp.where(is_split, num_used + 1, num_used)", "num_used + 1",
        JOINT_LAW,
    ),
    testing.Mistake(
        "splits without the mass", factor_splits, "split_or_merge",
        "log_sticks[0] + {jnp.log(state.tau)}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "the stick that is replaced does not count", factor_splits, "split_or_merge",
        "log_sticks[2] - {log_sticks[0]}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "merges with the ratio of splits", factor_splits, "split_or_merge",
        "log_u < {-log_ratio}", "log_ratio",
        JOINT_LAW,
    ),
    testing.Mistake(
        "what is replaced stays among the others", factor_splits, "split_or_merge",
        "jnp.where({replaced[:, None]}, 0.0", "jnp.zeros_like(replaced[:, None])",
        JOINT_LAW,
    ),
    testing.Mistake(
        "one number decides on the kind and on acceptance", factor_splits, "split_or_merge",
        "jnp.log({u_accept})", "u_kind",
        JOINT_LAW,
    ),
    testing.Mistake(
        "sticks as if from their law", factor_splits, "_propose_sticks",
        "jnp.log(stick) - {log_q}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "sticks without the density of the process", factor_splits, "_propose_sticks",
        "column - {jnp.log(stick)}", "0.0",
        JOINT_LAW,
    ),
    testing.Mistake(
        "choices of rows cost nothing", factor_splits, "draw_patterns",
        "jnp.where(members, {log_p}, 0.0)", "jnp.zeros_like(log_p)",
        JOINT_LAW,
    ),
    testing.Mistake(
        "a merge is judged by choices that it would draw", factor_splits, "draw_patterns",
        "jnp.where(is_split, drawn, {present})", "drawn",
        JOINT_LAW,
    ),
]  # fmt: skip
OF_MODEL = {
    GAUSSIAN: [
        testing.Mistake(
            "factors as if from their law", gaussian_splits, "_draw",
            "log_phi - {log_q}", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "a factor has one sign only", gaussian_splits, "_log_proposal",
            "{logsumexp(-0.5 * jnp.stack(each))} - size", "-0.5 * each[-1]",
            JOINT_LAW,
        ),
        testing.Mistake(
            "the spread of scales does not count", gaussian_splits, "_log_proposal",
            "_log_det(scales) - {2 * size * jnp.log(fit.spread)}", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "the weights are not integrated out", gaussian_splits, "_weights_law",
            "- {_log_det(law)} + number", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "missing entries of the factors are seen", gaussian_splits, "_inner",
            "jnp.where({rest.observed}, squares[:, None], 0.0)", "jnp.ones_like(rest.observed)",
            JOINT_LAW,
        ),
    ],
    POISSON: [
        testing.Mistake(
            "factors as if from their prior", poisson_splits, "_draw",
            "log_phi - {log_gamma_density(new_phi, shapes, shapes / phi)}", "log_phi",
            JOINT_LAW,
        ),
        testing.Mistake(
            "weights as if from their law", poisson_splits, "_draw",
            "log_w - {log_gamma_density(new_w, shapes, shapes / mean)}", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "the exposure does not count", poisson_splits, "_draw",
            "jnp.where(given.z, log_w, 0.0) - {new_w * _exposure_of_rows(rest, new_phi)}", "0.0",
            JOINT_LAW,
        ),
        testing.Mistake(
            "missing entries are seen", poisson_splits, "_exposure_of_rows",
            "jnp.where({rest.observed[None]}, phi", "jnp.ones_like(rest.observed[None])",
            JOINT_LAW,
        ),
    ],
}  # fmt: skip


def split_or_merge(model):
    """Return the move of a model as `MoveCheck` makes it."""
    if model == GAUSSIAN:
        return lambda rng_key, state, data, _: gaussian_factors._split_or_merge(
            rng_key, state, data
        )
    return lambda *args: poisson_factors._split_or_merge(*args)  # as it is then


MOVES = {
    model: testing.MoveCheck(model, CASES[model], split_or_merge(model), OF_ALL + mistakes)
    for model, mistakes in OF_MODEL.items()
}


@pytest.mark.slow
@testing.each_move(MOVES)
def test_a_move_keeps_the_joint_law(move):
    change = move.check()
    print("splits", (change > 0).mean(), "merges", (change < 0).mean())
    assert (change > 0).mean() > 0.02  # splits
    assert (change < 0).mean() > 0.02  # merges


@pytest.mark.slow
@testing.each_wrong_move(MOVES)
def test_a_wrong_move_changes_the_joint_law(move, mistake):
    with pytest.raises(testing.Rejected):
        move.check([mistake])


@testing.each_move(MOVES)
def test_mistakes_fit_the_source(move):
    with testing.switched(move.mistakes, np.zeros(len(move.mistakes), bool)):
        pass


# ---- the parts of a proposal


@pytest.mark.parametrize("size", [1, 2])
def test_gaussian_proposals_have_the_density_that_they_say(size):
    rng = np.random.default_rng(size)
    num_features, spread = 3, 0.3
    mean = rng.normal(size=(size, num_features))
    root = rng.normal(size=(num_features, size, size))
    precision = root @ root.swapaxes(1, 2) + np.eye(size)  # of each feature
    fit = gaussian_splits._Fit(
        jnp.asarray(mean, jnp.float32), jnp.asarray(np.moveaxis(precision, 0, 2), jnp.float32),
        jnp.float32(spread),
    )  # fmt: skip
    law = gaussian_splits._law([list(row) for row in fit.precision], list(fit.mean))
    phi = rng.normal(size=(size, num_features))
    covariance = np.zeros((size, num_features, size, num_features))
    for i in range(num_features):
        covariance[:, i, :, i] = np.linalg.inv(precision[i])
    for k in range(size):
        covariance[k, :, k, :] += spread**2 * np.outer(mean[k], mean[k])
    covariance = covariance.reshape(size * num_features, -1)
    each = [
        stats.multivariate_normal(mean.ravel(), covariance).logpdf((sign * phi).ravel())
        for sign in np.stack(np.meshgrid(*[[-1, 1]] * size), axis=-1).reshape(-1, size, 1)
    ]
    constant = 0.5 * size * num_features * np.log(2 * np.pi)
    expected = logsumexp(each) - size * np.log(2) + constant
    found = gaussian_splits._log_proposal(fit, law, jnp.asarray(phi, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("z", [(True,), (True, False), (False, True), (True, True)])
def test_gaussian_evidence_integrates_the_weights_out(z):
    rng = np.random.default_rng(0)
    phi, x = rng.normal(size=(len(z), 4)), rng.normal(size=(4, 2))
    sigma2_n, sigma2_w = np.array([0.5, 2.0]), np.array([1.5, 0.7])
    rest = gaussian_splits.Unexplained(
        *(jnp.asarray(y, jnp.float32) if y is not None else None
          for y in (x, None, sigma2_n, sigma2_w, 1.0))
    )  # fmt: skip
    inner = gaussian_splits._inner(rest, jnp.asarray(phi, jnp.float32), None)
    evidence = gaussian_splits._weights_law(rest, *inner, z)[1]
    for n in range(2):
        used = phi[list(z)]
        covariance = sigma2_n[n] * np.eye(4) + sigma2_w[n] * used.T @ used
        log_p = stats.multivariate_normal(np.zeros(4), covariance).logpdf(x[:, n])
        without = stats.multivariate_normal(np.zeros(4), sigma2_n[n] * np.eye(4)).logpdf(x[:, n])
        np.testing.assert_allclose(evidence[n], log_p - without, rtol=1e-4)


# ---- what splits are for


@pytest.mark.slow
def test_splits_part_planted_factors():
    """Chains that start with one factor for everything have all factors after a few sweeps."""
    rng = np.random.default_rng(0)
    phi = rng.random((6, 40)) < 0.25
    z = rng.random((60, 6)) < 0.5
    counts = rng.poisson(0.1 + (z * rng.gamma(2.0, 2.0, z.shape)) @ phi)
    data = make_counts(counts, np.zeros(60, int), 1)
    one = testing.gamma_prior(1.0, 1.0)
    priors = poisson_factors.PoissonPriors(a_phi=0.5, a_w=1.0, background=one, alpha=one)
    start = {"num_features": 40, "max_factors": 24, "init_factors": 1, "priors": priors}
    start |= {"alpha": 1.0, "tau": 1.0, "b_phi": 1.0, "b_w": 1.0}

    def chain(rng_key):
        state = poisson_factors.init(rng_key, data, **start)

        def sweep(state, rng_key):
            state, _ = poisson_factors.parallel_step(rng_key, state, data, priors)
            return state, state.z.any(axis=1).sum()

        return jax.lax.scan(sweep, state, jax.random.split(rng_key, 100))

    state, used = testing.quick_jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 4))
    assert not state.overflow.any()
    assert ((used[:, 50:] >= 6) & (used[:, 50:] <= 10)).all(), used[:, ::10]
