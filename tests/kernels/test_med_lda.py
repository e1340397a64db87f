"""The kernels of `MedLDA`: enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of models with labels. This file
holds what depends on the law of the labels: the exact posteriors of a tiny corpus, and a simulator
of the joint law.
"""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import med_lda
from bnp_kernels.processes import (
    expected_hinge,
    hinge_regression,
    label_regression,
    labelled_topics,
)
from bnp_kernels.tokens import scan
from bnp_models import MedLDA, testing
from bnp_models.testing import enumeration, simulate
from oracles import label_posteriors
from oracles.labelled_topics_case import FIXED, NUM_TOPICS, VARIANCE, LabelledTopicsCase, weigh

DOCS, NUM_WORDS = [[0, 0, 1], [1, 2], [2]], 3
LABELS = (1, 0, 1)
SIGN = 2 * np.array(LABELS) - 1
TINY = testing.TinyCorpus(DOCS, NUM_WORDS, label=LABELS, layout={"num_lanes": 2})
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 2)], 4, label=(0, 0, 0), layout={"num_lanes": 2}
)
PRIORS = {"alpha": (2.0, 2.0), "beta": (2.0, 4.0)}  # with rates
TINIEST = 1e-6  # of c: labels say nothing


def draw_labels(rng_key, state, score):
    negative, positive = (
        -2 * state.c * jnp.maximum(0, state.ell - sign * score) for sign in (-1, 1)
    )
    return jax.random.bernoulli(rng_key, jax.nn.sigmoid(positive - negative))


FAMILY = LabelledTopicsCase(
    med_lda, MedLDA, med_lda.MedLDAState, med_lda.MedLDAPriors,
    functools.partial(weigh, med_lda), TINY, JOINT, PRIORS, draw_labels,
)  # fmt: skip
start = FAMILY.start


# ---- the exact posterior: a sum over all assignments, an integral over weights


@functools.lru_cache(maxsize=16)
def exact(c, ell, sampled=False, sign=tuple(SIGN), variance=VARIANCE):
    """Return posterior means and the log evidence; with `sampled` concentrations have priors."""
    sign = np.array(sign)

    def of_weights(eta, score):
        zeta = ell - sign * score
        found = {
            "hinge": np.maximum(zeta, 0),
            "right": 1.0 * (sign * score > 0),
            "scale": 1 + c * abs(zeta),
        }
        return {name: x[:, None] for name, x in found.items()}

    return FAMILY.exact(
        lambda score: label_posteriors.log_hinge(score, sign, c, ell), of_weights,
        sampled=sampled, variance=variance, kinks=np.stack([sign * ell, 0 * sign]),
    )  # fmt: skip


def measure(state, data):
    """Measure a state as `exact` does."""
    score, sign = FAMILY.scores(state, data), 2 * data.label - 1
    zeta = state.ell - sign * score
    values = FAMILY.posterior_quantities(state, data) | {
        "hinge": jnp.maximum(zeta, 0),
        "right": sign * score > 0,
        "scale": 1 + state.c * jnp.abs(zeta),
    }
    return testing.as_floats(values)


def target(c, ell, priors=None, **options):
    at = functools.partial(start, c=c, ell=ell)
    priors = med_lda.MedLDAPriors(**(priors or {}))
    return testing.Target(TINY.data, priors, at, measure, lambda: exact(c, ell, **options)[0])


VAGUE = {name: testing.gamma_prior(*prior) for name, prior in PRIORS.items()}
TARGETS = {
    "c=1": target(1.0, 1.0),
    "no loss": target(TINIEST, 1.0),
    "c=0.5": target(0.5, 4.0),
    "sampled": target(2.0, 0.5, VAGUE, sampled=True),
}


# ---- the joint law: parameters, topics, words and labels, in NumPy


def log_factors(score, c, ell):
    """Return the log factors of the labels -1 and 1."""
    return tuple(-2 * c * np.maximum(0, ell - sign * score) for sign in (-1, 1))


def draw_joint(rng, size, c, ell):
    r"""Draw parameters with the weight $\prod_d \sum_y \exp(-2 c \max(0, \ell - y \omega_d))$.

    The largest value of each factor, at $|\omega| = \ell$, is $1 + \exp(-4 c \ell)$.
    """

    def log_weight(score):
        return np.logaddexp(*log_factors(score, c, ell)) - np.log1p(np.exp(-4 * c * ell))

    drawn = FAMILY.simulate(rng, size, log_weight, tries=8)
    negative, positive = log_factors(drawn["score"], c, ell)
    y = rng.uniform(size=positive.shape) < 1 / (1 + np.exp(negative - positive))
    return FAMILY.states_of(drawn | {"y": y}, c=c, ell=ell)


def measure_joint(state, data):
    score, y = FAMILY.scores(state, data), 2 * data.label - 1
    values = FAMILY.joint_quantities(state, data) | {
        "y omega": (y * score).sum(),
        "hinge": jnp.maximum(0, state.ell - y * score).sum(),
    }
    return testing.as_floats(values)


def joint(c, ell):
    return testing.Joint(
        priors=med_lda.MedLDAPriors(**FAMILY.joint_priors()),
        simulate=functools.partial(draw_joint, c=c, ell=ell), redraw=FAMILY.redraw,
        quantities=measure_joint,
    )  # fmt: skip


def program_log_joint(state, data, priors):
    """Return the program's density at the last targets with and without priors."""
    hyperparameters, values = testing.priors_in_program(FIXED, priors, state)
    c, ell = (2.0, 0.5) if values else (0.5, 4.0)
    model = MedLDA(NUM_TOPICS, c=c, ell=ell, eta_variance=VARIANCE, **hyperparameters)
    values["eta"] = state.eta
    return FAMILY.density_without_mixtures(model, values, state, data, state.alpha)


# ---- kernels that are wrong on purpose, and the check that must see it


def mistakes():
    """List the mistakes as (name, module, function, right, wrong, check)."""
    ours, hinge, labels = med_lda, hinge_regression, label_regression
    listed = [
        ("V is missing from the denominator", labelled_topics, "conditional",
         "n_k + {num_words} * beta", "1", "conditional"),
        ("the token has no part in the score", labels, "scores_of_token",
         "+ {eta}) / length", "jnp.zeros_like(eta)", "conditional"),
        ("loss without the 2", hinge, "log_hinge",
         "-{2} *", "1", "log_joint"),
        ("no prior of the weights", ours, "log_joint",
         "prior = {label_regression.log_normal(state.eta, state.eta_variance)}", "0.0",
         "log_joint"),
        ("losses beyond the margin are negative", hinge, "log_hinge",
         "{jnp.maximum(excess(score, slope, offset), 0)}", "excess(score, slope, offset)",
         "enumeration/c=1/sequential"),
        ("offset without c", ours, "margins",
         "{c * state.ell}", "state.ell", "enumeration/c=0.5/sequential"),
        ("labels 0 and 1 in place of -1 and 1", ours, "margins",
         "c * {sign}, ", "(sign + 1) / 2", "enumeration/c=1/sequential"),
        ("own count stays in the score and the document", scan, "_scan_chains",
         "dict(doc={without})", "desk.topic", "enumeration/c=0.5/sequential"),
        ("lengths of other documents, sequential", ours, "tilt",
         "data), {length})", "length[::-1]",
         "enumeration/c=0.5/sequential"),
        ("lengths of other documents, parallel", ours, "tilt",
         "data), {length})", "length[::-1]",
         "enumeration/c=0.5/parallel"),
        ("topics are means, not draws", labelled_topics, "parallel_sweep",
         "state.doc_topic, {log_phi}, state.alpha",
         "jnp.log((state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0))",
         "enumeration/c=1/parallel"),
        ("scales and eta from the same numbers in every sweep", ours, "_draw_eta_given_scales",
         "draw_normal(\n        {key_eta}, ", '__import__("jax").random.key(1)',
         "enumeration/c=1/sequential"),
        ("scales as where the loss has its kink", hinge, "draw_scales",
         "{jnp.abs(u)}", "jnp.zeros_like(u)", "enumeration/c=1/parallel"),
        ("scales from scores without labels", hinge, "draw_scales",
         "{excess(score, *margins)}", "excess(score, jnp.abs(margins.slope), margins.offset)",
         "enumeration/c=1/parallel"),
        ("weight without the square of c", hinge, "quadratic",
         "largest = {slope * slope} / scale,", "jnp.abs(slope)", "enumeration/c=0.5/parallel"),
        ("linear term without c", hinge, "quadratic",
         "/ {jnp.where(slope == 0, 1.0, slope)}", "jnp.sign(slope)", "enumeration/c=0.5/parallel"),
        ("linear term without the scale", hinge, "quadratic",
         "weight * ({scale}", "0.0", "enumeration/c=1/parallel"),
        ("linear term without the margin", hinge, "quadratic",
         "+ {offset})", "0.0", "enumeration/c=1/parallel"),
        ("slope without c", ours, "margins",
         "Margins({c} *", "1.0", "enumeration/c=0.5/sequential"),
        ("no length in the score of a token", labels, "scores_of_token",
         "eta) / {length}", "1.0", "enumeration/c=0.5/sequential"),
        ("prior precision is missing", labels, "_draw_given",
         "bool), {1 / variance}, 0.0", "1e-3", "enumeration/c=1/parallel"),
        ("eta is its mean, not a draw", labels, "_draw_given",
         "{noise[:, None]}", "jnp.zeros_like(noise)[:, None]", "enumeration/c=1/parallel"),
        ("ellipse with standard normal noise", labels, "draw_on_ellipse",
         "{jnp.sqrt(variance)} * bits", "1.0", "enumeration/c=1/elliptical"),
    ]  # fmt: skip
    return tuple(testing.Mistake(*mistake) for mistake in listed)


MISTAKES = mistakes()


def schedule(name, **options):
    """Return a schedule: programs for fixed and sampled concentrations, and for Geweke's test."""
    step = testing.late(med_lda, "step", sweeps=(name,), **options)
    return testing.Schedule(step, num_programs=3)


CASE = testing.Case(
    name="med_lda",
    model=MedLDA,
    shipped=FAMILY.shipped(
        MedLDA(NUM_TOPICS, c=0.5, ell=4.0, eta_variance=VARIANCE, **FIXED),
        lambda: exact(0.5, 4.0)[0],
    ),
    schedules={
        "sequential": schedule("sequential"),
        "parallel": schedule("parallel"),
        "elliptical": schedule("parallel", sampler="elliptical"),
    },
    targets=TARGETS,
    joint=joint(1.0, 1.0),
    tally=FAMILY.tally,
    conditional=FAMILY.finite_conditional,
    log_joint=FAMILY.log_joint,
    program_log_joint=program_log_joint,
    skip={"program": "the loss is not a distribution of labels, so the program draws another law"},
    mistakes=MISTAKES,
)  # fmt: skip


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# Weights that are nearly always too large for the normal draw: most draws of eta are refused. The
# warm-up is longer because of that.
CUT = testing.Case(
    name="med_lda, divided weights", targets={"c=1": TARGETS["c=1"]},
    schedules={
        "parallel": CASE.schedules["parallel"]._replace(
            num_programs=1, effort=testing.Effort(2500, 120, 80)
        )
    },
    skip={"ranks/*": "the case of the model has it", "batch/*": "the case of the model has it"},
    mistakes=(
        testing.Mistake(
            "every proposal is accepted", med_lda, "_draw_eta_given_scales",
            "sum_pairwise({after - before})", "0 * after", "enumeration/c=1/parallel",
        ),
        testing.Mistake(
            "rest of the new scores alone", med_lda, "_draw_eta_given_scales",
            "after - {before}", "0.0", "enumeration/c=1/parallel",
        ),
        testing.Mistake(
            "all in place of the rest", hinge_regression, "log_rest",
            "product({rest}, ", "jnp.ones_like(rest)", "enumeration/c=1/parallel",
        ),
        testing.Mistake(
            "rest without the scale", hinge_regression, "log_rest",
            "away = {scale} +", "0.0", "enumeration/c=1/parallel",
        ),
        testing.Mistake(
            "rest without the half", hinge_regression, "log_rest",
            "scale) / {2}", "1.0", "enumeration/c=1/parallel",
        ),
    ),
)  # fmt: skip


@pytest.fixture
def divided():
    with mock.patch.object(hinge_regression, "_LARGEST_WEIGHT", 0.1):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("check", CUT.checks())
def test_divided_weights(check):
    print(CUT.checks()[check].run())


@testing.each_mistake(CUT.mistakes)
@pytest.mark.usefixtures("divided")
def test_mistake_with_divided_weights(mistake):
    CUT.must_catch(mistake)


@pytest.mark.parametrize(("tiny", "least", "most"), [(3e-4, 0.6, 0.9), (1e-12, 0.0, 0.001)])
def test_one_large_weight(tiny, least, most):
    """The draw given scales keeps their normal law, also if one weight is 1e12."""
    number, scale = 20_000, np.array([tiny, 1.0, 2.0])
    state = start(jax.random.key(4), c=1.0, ell=1.0)
    share = np.asarray(state.doc_topic) / np.asarray(TINY.data.doc_length)[:, None]
    precision = np.eye(2) / VARIANCE + (share.T / scale) @ share
    potential = ((scale + 1) / scale * SIGN) @ share
    factor = np.linalg.cholesky(precision)
    noise = np.random.default_rng(0).normal(size=(number, 2))
    eta = np.linalg.solve(precision, potential) + np.linalg.solve(factor.T, noise.T).T
    draw = testing.quick_jit(
        jax.vmap(
            lambda rng_key, eta: med_lda._draw_eta_given_scales(
                rng_key, state._replace(eta=eta), TINY.data
            )
        )
    )
    eta = eta.astype(np.float32)
    scale = jnp.float32(scale)
    with mock.patch.object(hinge_regression, "draw_scales", return_value=scale):
        new = np.asarray(draw(jax.random.split(jax.random.key(5), number), eta))
    assert least <= (new != eta).any(axis=1).mean() <= most
    white = (new - np.linalg.solve(precision, potential)) @ factor
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=5 / number**0.5)
    np.testing.assert_allclose(np.cov(white.T), np.eye(2), atol=5 * (2 / number) ** 0.5)


# ---- the approximation: topics given multipliers and weights, and without a loss


TAU, MU = np.array([1.5, 3.0, 0.5]), np.array([2.0, -1.5])


def start_expected(rng_key, *, held):
    """Start at c near 0; or `held` at multipliers and weights that are never solved for."""
    state = start(rng_key, c=TINIEST, ell=1.0)
    expected = expected_hinge.init(len(DOCS), NUM_TOPICS)
    if not held:
        return state._replace(expected=expected)
    expected = expected._replace(tau=jnp.float32(TAU), num_sweeps=jnp.int32(-(10**6)))
    return state._replace(eta=jnp.float32(MU), expected=expected)


def exact_expected(held):
    """Sum over all assignments: LDA's law, times exp(sum_d tau_d y_d mu.zbar_d) if held."""
    lda = enumeration.finite_topics(DOCS, NUM_WORDS, NUM_TOPICS, (0.5, 0.5), 0.25)
    z = lda.states[0]
    doc_topic = simulate.tally(z, TINY.doc, len(DOCS), NUM_TOPICS)
    score = doc_topic @ MU / doc_topic.sum(axis=2)
    factor = (TAU * SIGN * score).sum(axis=1) if held else 0
    quantities = enumeration.token_quantities(z)
    return enumeration.enumerate_posterior(
        z, lambda _: lda.log_joint + factor, lambda _: quantities
    ).means()


def expected_target(held):
    return testing.Target(
        TINY.data, med_lda.MedLDAPriors(), functools.partial(start_expected, held=held),
        lambda state, data: testing.as_floats(FAMILY.token_quantities(state)),
        lambda: exact_expected(held),
    )  # fmt: skip


EXPECTED = testing.Case(
    name="med_lda, expected",
    targets={"no loss": expected_target(False), "held": expected_target(True)},
    schedules={
        name: CASE.schedules[name]._replace(num_programs=1) for name in ("sequential", "parallel")
    },
    mistakes=(
        testing.Mistake(
            "factor without the length", expected_hinge, "log_factor_of_token",
            "/ {length}", "1.0", "enumeration/held/sequential",
        ),
        testing.Mistake(
            "factor without the label", med_lda, "tilt",
            "tau * {_sign(state, data)}", "1.0", "enumeration/held/parallel",
        ),
        testing.Mistake(
            "multipliers of any size", expected_hinge, "update",
            "cost = {2 * c} * variance", "2.0", "enumeration/no loss/parallel",
        ),
    ),
)  # fmt: skip


@testing.each_check(EXPECTED)
def test_expected(check):
    print(check())


@testing.each_mistake(EXPECTED.mistakes)
def test_mistake_in_the_approximation(mistake):
    EXPECTED.must_catch(mistake)


def test_expected_labels_flipped_flip_the_weights():
    at = start(jax.random.key(2), c=2.0, ell=1.0)
    at = at._replace(eta=jnp.zeros(2), expected=expected_hinge.init(len(DOCS), NUM_TOPICS))
    flipped = TINY.data._replace(label=1 - TINY.data.label)
    one, other = (run(at, data, "parallel", 25) for data in (TINY.data, flipped))
    assert one.eta.any()
    np.testing.assert_array_equal(other.eta, -one.eta)
    np.testing.assert_array_equal(other.z, one.z)
    np.testing.assert_array_equal(other.expected.tau, one.expected.tau)


# Geweke's test of another joint law, by the right kernels alone
OTHER_LAW = testing.Case(
    name="med_lda, c=0.3", targets={}, joint=joint(0.3, 2.0),
    schedules={n: x._replace(num_programs=1) for n, x in CASE.schedules.items()},
    skip={"ranks/*": "the case of the model has it", "batch/*": "the case of the model has it"},
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("check", OTHER_LAW.checks())
def test_other_law(check):
    print(OTHER_LAW.checks()[check].run())


# ---- the enumeration itself, against independently computed numbers


TABLE = {  # by c and ell
    (1.0, 1.0): {
        "evidence": -12.589502,
        "eta^2": 9.917934,
        "omega": (1.481996, -1.090331, 1.869064),
        "hinge": (0.176780, 0.462291, 0.165378),
        "right": (0.949272, 0.802236, 0.935843),
        "scale": (1.835557, 2.014912, 2.199821),
        "together": (0.938604, 0.600631, 0.161082, 0.794119, 0.797039, 0.266585),
        "both used": 0.991261,
    },
    (0.5, 4.0): {
        "evidence": -16.819115,
        "eta^2": 26.204773,
        "omega": (3.407104, -2.255414, 3.756843),
        "hinge": (0.859914, 1.884041, 0.624771),
        "right": (0.979115, 0.848291, 0.973430),
        "scale": (1.563466, 2.011748, 1.503193),
        "together": (0.971792, 0.790863, 0.074855, 0.914659, 0.904130, 0.116023),
        "both used": 0.994738,
    },
}


@pytest.mark.parametrize(("c", "ell"), TABLE)
def test_exact_posteriors(c, ell):
    found, evidence = exact(c, ell)
    first, second = np.triu_indices(6, 1)
    pairs = ((0, 1), (0, 2), (0, 3), (3, 4), (0, 5), (4, 5))
    together = [found["coassigned"][(first == i) & (second == j)][0] for i, j in pairs]
    also = {"evidence": evidence, "together": together, "both used": 1 - found["one_topic"]}
    for name, expected in TABLE[c, ell].items():
        np.testing.assert_allclose((found | also)[name], expected, rtol=0, atol=1e-6, err_msg=name)


# ---- limits


@pytest.mark.parametrize(("c", "variance"), [(TINIEST, VARIANCE), (1.0, 1e-10)])
def test_without_loss_or_without_weights_it_is_lda(c, variance):
    lda = enumeration.finite_topics(DOCS, NUM_WORDS, NUM_TOPICS, (0.5, 0.5), 0.25)
    np.testing.assert_allclose(
        exact(c, 1.0, variance=variance)[0]["coassigned"], lda.mean("coassigned"), rtol=0, atol=3e-5
    )


def run(state, data, sweep, sweeps=3):
    """Run some sweeps; values of c, the margin and the variance share one program."""
    for i in range(sweeps):
        state = sweep_once(sweep)(jax.random.fold_in(jax.random.key(3), i), state, data)
    return state


@functools.cache
def sweep_once(sweep):
    def step(rng_key, state, data):
        priors = med_lda.MedLDAPriors()
        return med_lda.step(rng_key, state, data, priors, sweeps=(sweep,))[0]

    return testing.quick_jit(step)


@pytest.mark.parametrize("sweep", ["sequential", "parallel"])
class TestLimits:
    def test_weights_near_zero_say_nothing_about_topics(self, sweep):
        at = start(jax.random.key(0), c=1.0, ell=1.0)
        at = at._replace(eta=jnp.zeros(2), eta_variance=jnp.float32(1e-18))
        without = run(at._replace(c=jnp.float32(1e-9)), TINY.data, sweep)
        np.testing.assert_array_equal(run(at, TINY.data, sweep).z, without.z)

    def test_large_losses_are_finite(self, sweep):
        at = start(jax.random.key(1), c=1e3, ell=164.0)
        end = run(at._replace(eta_variance=jnp.float32(1e4)), TINY.data, sweep, 10)
        assert np.isfinite(end.eta).all()
        assert np.isfinite(med_lda.log_joint(end, TINY.data))
        score = label_regression.scores(end.doc_topic, TINY.data.doc_length, end.eta)
        assert (np.asarray(score) * SIGN > 0).all()


def test_labels_flipped_flip_the_weights():
    found, evidence = exact(1.0, 1.0)
    flipped, evidence_flipped = exact(1.0, 1.0, sign=tuple(-SIGN))
    np.testing.assert_allclose(evidence_flipped, evidence, rtol=1e-9)
    np.testing.assert_allclose(flipped["omega"], -found["omega"], rtol=1e-6)
    state, data = start(jax.random.key(2), c=1.0, ell=1.0), TINY.data
    mirrored, other = state._replace(eta=-state.eta), data._replace(label=1 - data.label)
    np.testing.assert_allclose(
        med_lda.log_joint(mirrored, other), med_lda.log_joint(state, data), rtol=1e-6
    )
    scale, margins = jnp.array([0.3, 2.0, 7.0]), med_lda.margins(state, data)
    weight, linear, _ = hinge_regression.quadratic(scale, margins, VARIANCE, 2)
    margins = med_lda.margins(mirrored, other)
    weight_other, linear_other, _ = hinge_regression.quadratic(scale, margins, VARIANCE, 2)
    np.testing.assert_array_equal(weight_other, weight)
    np.testing.assert_array_equal(linear_other, -linear)
