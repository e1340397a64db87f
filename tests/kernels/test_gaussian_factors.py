"""Gaussian factor analysis: enumeration, Geweke, density, invariants, limits, mistakes.

The exact values of the tiny data sets come from the characteristic function of the data, which is
closed-form over the types of factors (sets of rows that use one), inverted numerically.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from bnp_kernels import gaussian_factors
from bnp_kernels.gaussian_factors import GaussianPriors, GaussianState, make_reals
from bnp_kernels.numerics import linear
from bnp_kernels.processes import beta_process, factor_slots
from bnp_kernels.random.concentration import GammaPrior
from bnp_models import testing
from bnp_models.gaussian_factors import GaussianFactorAnalysis
from bnp_models.testing import factor_sites, invariants, simulate

CAPACITY = 32


def gamma_prior(concentration, rate):
    return GammaPrior(np.asarray(concentration, np.float32), np.asarray(rate, np.float32))


# ---- posteriors that are known exactly


SHARP = 1e3  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x


def num_used(state):
    return state.z.any(axis=1).sum()


def posterior_quantities(state, data):
    """Measure what concerns the rows that are observed."""
    z = state.z if data.observed is None else state.z & data.observed.any(axis=0)
    uses = beta_process.count_uses(z, data.rows.source, 2)
    factor_sites = z.any(axis=1).sum()
    values = {
        "factors": factor_sites,
        "number": factor_sites == jnp.arange(4),
        "in both sources": (uses > 0).all(axis=1).sum(),
        "of row": z.sum(axis=0),
        "signal": state.weights.T @ state.phi,
        "noise precision": 1 / state.sigma2_n[0],
        "factor precision": 1 / state.sigma2_phi,
    }
    if data.observed is not None:  # the third feature and the last row are not
        values["of row"] = values["of row"][:3]
        values["signal"] = values["signal"][:3, :1]
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(data, fixed, expected, **priors):
    def start(rng_key):
        return gaussian_factors.init(
            rng_key, data, max_factors=CAPACITY, init_factors=2,
            **{name: np.asarray(value, np.float32) for name, value in fixed.items()},
        )  # fmt: skip

    return testing.Target(data, GaussianPriors(**priors), start, posterior_quantities, expected)


def sharp(fixed, **priors):
    """Give what is fixed a prior that leaves it no choice; of variances, by their inverses."""
    for name, value in fixed.items():
        value = np.asarray(value, np.float32)
        value = 1 / value if name.startswith("sigma2") else value
        priors.setdefault(name, gamma_prior(value * SHARP, np.full_like(value, SHARP)))
    return priors


def padded(x):
    """Add a source's last row, and features, of which nothing is known."""
    there = np.zeros((4, 2), bool)
    there[: len(x), : len(x[0])] = True
    values = np.zeros(there.shape)
    values[there] = np.ravel(x)
    return make_reals(values, JOINT_SOURCE, 2, there)


JOINT_SOURCE = np.array([0, 0, 1, 1])
A = [[1.2], [1.9], [-0.9]]
FIXED_A = {
    "tau": 1.0, "alpha": [1.5, 0.6],
    "sigma2_phi": 1.0, "sigma2_w": [1.0, 0.8], "sigma2_n": [0.6, 0.9],
}  # fmt: skip
FIXED_B = {
    "tau": 1.1, "alpha": [1.0, 1.0],
    "sigma2_phi": 1.0, "sigma2_w": [0.7, 1.1], "sigma2_n": [0.8, 0.8],
}  # fmt: skip
TARGETS = {
    "B": target(
        make_reals(np.array([[1.3, 0.7], [0.9, 1.6]]), np.array([0, 1]), 2),
        FIXED_B,
        {
            "factors": 1.614458,
            "number": [0.178924, 0.335431, 0.274321, 0.140022],
            "in both sources": 0.540888,
            "of row": [1.047690, 1.107656],
            "signal": [[0.328662, 0.211139], [0.330918, 0.538945]],
        },
    ),
    "A": target(
        padded(A),
        FIXED_A,
        {
            "factors": 2.102658,
            "number": [0.073299, 0.275671, 0.314901, 0.203363],
            "in both sources": 0.777527,
            "of row": [1.308188, 1.441983, 1.143583],
            "signal": [[0.564858], [1.022971], [-0.279620]],
        },
        **sharp(FIXED_A),
    ),
}


# ---- the joint law of everything, from the prior

NUM_FEATURES = 2
MISSING = np.array([[0, 0], [0, 1], [1, 0], [0, 0]], bool)
PRIORS = {
    "alpha": (3.0, 2.0), "tau": (6.0, 8.0),
    "sigma2_phi": (8.0, 8.0), "sigma2_w": (8.0, 8.0), "sigma2_n": (8.0, 8.0),
}  # fmt: skip
JOINT_DATA = make_reals(np.where(MISSING, 0.0, 1.0), JOINT_SOURCE, 2, ~MISSING)


def simulate_prior(rng, size):
    shapes = {"alpha": (size, 2), "tau": (size,), "sigma2_phi": (size,)}
    hyper = {
        name: rng.gamma(a, 1 / b, shapes.get(name, (size, 2))) for name, (a, b) in PRIORS.items()
    }
    hyper |= {name: 1 / x for name, x in hyper.items() if name.startswith("sigma2")}
    z, beta = simulate.beta_process(rng, hyper["tau"], hyper["alpha"], JOINT_SOURCE, CAPACITY)
    used = z.any(axis=2)[:, :, None]
    phi = used * rng.normal(size=(size, CAPACITY, NUM_FEATURES))
    phi *= np.sqrt(hyper["sigma2_phi"])[:, None, None]
    weights = z * rng.normal(size=z.shape) * np.sqrt(hyper["sigma2_w"][:, None, JOINT_SOURCE])
    noise = rng.normal(size=(size, NUM_FEATURES, len(JOINT_SOURCE)))
    x = np.einsum("skn,skm->smn", weights, phi)
    x = x + noise * np.sqrt(hyper["sigma2_n"][:, None, JOINT_SOURCE])
    floats = {"beta": beta, "phi": phi, "weights": weights, **hyper}
    state = GaussianState(
        z=z, overflow=np.zeros(size, bool),
        **{name: np.asarray(value, np.float32) for name, value in floats.items()},
    )  # fmt: skip
    return state, jax.vmap(with_values)(x.astype(np.float32))


def with_values(x):
    """Return data with these numbers, [M, N], where they are observed."""
    return JOINT_DATA._replace(x=jnp.where(MISSING.T, 0.0, x))


def redraw(rng_key, state, data):
    noise = jax.random.normal(rng_key, data.x.shape)
    sd = jnp.sqrt(state.sigma2_n)[data.rows.source][None, :]
    return state, with_values(state.phi.T @ state.weights + noise * sd)


def joint_quantities(state, data):
    uses = beta_process.count_uses(state.z, data.rows.source, 2)
    log_n, log_w = jnp.log(state.sigma2_n), jnp.log(state.sigma2_w)
    values = {
        "factors": num_used(state),
        "shared": (uses > 0).all(axis=1).sum(),
        "uses": uses.sum(),
        "sum of sticks": state.beta.sum(),
        "log(1 + x^2)": jnp.log1p(data.x**2).sum(),
        "log(1 + phi^2)": jnp.log1p(state.phi**2).sum(),
        "log(1 + w^2)": jnp.log1p(state.weights**2).sum(),
        "signal x": jnp.tanh((state.phi.T @ state.weights) * data.x).sum(),
        "log tau": jnp.log(state.tau),
        "log alpha 0": jnp.log(state.alpha[0]),
        "log sigma2_phi": jnp.log(state.sigma2_phi),
        "log sigma2_n 0": log_n[0],
        "log sigma2_n 1": log_n[1],
        "log sigma2_w 0": log_w[0],
        "log sigma2_w 1": log_w[1],
        "log sigma2_w * log sigma2_phi": log_w[0] * jnp.log(state.sigma2_phi),
        "log sigma2_n * log x^2": (log_n[data.rows.source] * jnp.log1p(data.x[0] ** 2)).sum(),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=GaussianPriors(
        **{
            name: gamma_prior(*(np.full(np.shape(FIXED_A[name]), x) for x in prior))
            for name, prior in PRIORS.items()
        }
    ),
    simulate=simulate_prior,
    redraw=redraw,
    quantities=joint_quantities,
    num_chains=2800,
    num_sweeps=10,
    num_reference=20_000,
)


# ---- densities


def program_log_joint(state, data, priors):
    """Remove pi, and what is not in use, from the density of the truncated program at any point."""
    num_slots, source = 2, data.rows.source  # `start` uses no more
    values, excess = factor_sites.process_sites(state, data.rows, num_slots)
    used, z = state.z[:num_slots].any(axis=1), values["z"]
    values["phi"] = phi = jnp.where(used[:, None], state.phi[:num_slots], 0.7)
    values["weights"] = weights = jnp.where(z, state.weights[:num_slots].T, 1.3)
    of_phi = dist.Normal(0.0, jnp.sqrt(state.sigma2_phi))
    excess += jnp.where(used[:, None], 0.0, of_phi.log_prob(phi)).sum()
    of_w = dist.Normal(0.0, jnp.sqrt(state.sigma2_w)[source][:, None])
    excess += jnp.where(z, 0.0, of_w.log_prob(weights)).sum()
    hyperparameters = {}
    for name, prior in priors._asdict().items():
        family = dist.InverseGamma if name.startswith("sigma2") else dist.Gamma
        hyperparameters[name] = family(*(prior or (2.0, 1.0)))
        values[name] = value = getattr(state, name)
        if prior is None:
            excess += hyperparameters[name].log_prob(value).sum()
    model = GaussianFactorAnalysis(**hyperparameters, max_factors=num_slots)
    x = np.asarray(data.x if data.observed is None else np.where(data.observed, data.x, np.nan))
    total, _ = log_density(model, (factor_sites.sources_of(x.T, source),), {}, values)
    return total - excess


def log_joint(state, data, priors):
    of_prior = gaussian_factors.log_prior(state, priors)
    return gaussian_factors.log_joint(state, data) + of_prior


# ---- schedules


def resize(state, max_factors):
    return factor_slots.grow(state, max_factors)._replace(overflow=jnp.zeros((), bool))


def growth(fewer=0):
    return testing.Growth(num_used, resize, lambda state: state.overflow, CAPACITY, fewer)


EFFORT = testing.Effort(400, 20, 60)


def parallel(*args):
    return gaussian_factors.parallel_step(*args)


def sequential(*args):
    return gaussian_factors.sequential_step(*args)


def tally(state, data):
    used = state.z.any(axis=1)
    return {
        "beta": jnp.where(used, state.beta, 0.0),
        "phi": jnp.where(used[:, None], state.phi, 0.0),
        "weights": jnp.where(state.z, state.weights, 0.0),
    }


# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weight not integrated out", gaussian_factors, "_visit",
        "jnp.log(total / sigma2_n)", "0.0",
        "enumeration/A/parallel",
    ),
    testing.Mistake(
        "residual with the factor itself", gaussian_factors, "_visit",
        "product(weights, length2)", "0.0",
        "enumeration/A/parallel",
    ),
    testing.Mistake(
        "weights of all slots count", gaussian_factors, "_draw_scales",
        "sum_by_source(state.z.sum(axis=0), rows)", "num_features * rows.num_rows",
        "geweke/parallel",
    ),
    testing.Mistake(
        "missing entries are zero", gaussian_factors, "_draw_phi",
        "_with_missing(key_missing, state, data)", "data.x",
        "geweke/parallel",
    ),
]  # fmt: skip

CASE = testing.Case(
    name="gaussian_factors",
    schedules={
        "parallel": testing.Schedule(parallel, growth(), EFFORT),
        "sequential": testing.Schedule(sequential, growth(), EFFORT, num_programs=2),
    },
    targets=TARGETS,
    joint=JOINT,
    tally=tally,
    log_joint=log_joint,
    program_log_joint=program_log_joint,
    mistakes=tuple(MISTAKES),
    skip=frozenset(
        {
            "enumeration/A/sequential",
            "enumeration/B/parallel",
            "batch/parallel",
            "batch/sequential",
        }
    ),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- linear algebra


def test_draw_gaussian():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 6))
    precision = np.zeros((7, 7), np.float32)
    precision[:4, :4] = root @ root.T + np.eye(4)
    potential = np.zeros((7, 50_000), np.float32)
    potential[:4] = rng.normal(size=4)[:, None]
    noise = rng.normal(size=potential.shape).astype(np.float32)
    draw = jax.jit(linear.draw_gaussian)
    draws = np.asarray(draw(precision, potential, noise, jnp.int32(4)), np.float64)
    assert not draws[4:].any()
    covariance = np.linalg.inv(np.float64(precision[:4, :4]))
    mean = covariance @ potential[:4, 0]
    error = np.sqrt(np.diag(covariance) / 50_000)
    assert (np.abs(draws[:4].mean(axis=1) - mean) < 5 * error).all()
    np.testing.assert_allclose(np.cov(draws[:4]), covariance, atol=0.03 * covariance.max())
    small = draw(precision[:5, :5], potential[:5], noise[:5], jnp.int32(4))
    np.testing.assert_array_equal(small[:4], np.float32(draws[:4]))


# ---- a baseline that is not exact


@pytest.mark.slow
def test_approximate_births():
    target = TARGETS["A"]

    def step(rng_key, state, data):
        return gaussian_factors.approximate_step(rng_key, state, data, target.priors)[0]

    invariants.check_sweeps("approximate", step, target.start, target.data, tally)
