"""The kernels of `SupervisedLDA`: enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of models with labels. This file
holds what depends on the law of the labels: the exact posteriors of tiny corpora with binary labels
and with counts, and a simulator of the prior.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import expit

from bnp_kernels import supervised_lda
from bnp_kernels.processes import label_regression, labelled_topics
from bnp_kernels.tokens import scan
from bnp_models import SupervisedLDA, testing
from bnp_models.testing import enumeration
from oracles import label_posteriors
from oracles.labelled_topics_case import FIXED, NUM_TOPICS, VARIANCE, LabelledTopicsCase, weigh

DOCS, NUM_WORDS = [[0, 0, 1], [1, 2], [2]], 3
BINARY, COUNTS = (1, 0, 1), (3, 0, 1)
TINY = testing.TinyCorpus(DOCS, NUM_WORDS, label=BINARY, layout={"num_lanes": 2})
TINY_COUNTS = dataclasses.replace(TINY, label=COUNTS)
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 2)], 4, label=(0, 0, 0), layout={"num_lanes": 2}
)
DISPERSION = 1.5
PRIORS = {"alpha": (2.0, 2.0), "beta": (2.0, 4.0), "dispersion": (2.0, 1.0)}  # with rates
TINIEST = 1e-6  # of c: labels say nothing


def draw_labels(rng_key, state, score):
    if state.dispersion is None:
        return jax.random.bernoulli(rng_key, jax.nn.sigmoid(state.c * score))
    key_rate, key_count = jax.random.split(rng_key)
    rate = jax.random.gamma(key_rate, state.dispersion, score.shape) * jnp.exp(score)
    return jax.random.poisson(key_count, rate)


FAMILY = LabelledTopicsCase(
    supervised_lda, SupervisedLDA, supervised_lda.SupervisedLDAState,
    supervised_lda.SupervisedLDAPriors, functools.partial(weigh, supervised_lda), TINY, JOINT,
    PRIORS, draw_labels,
)  # fmt: skip
FAMILY_OF_COUNTS = dataclasses.replace(FAMILY, tiny=TINY_COUNTS)


# ---- the exact posterior: a sum over all assignments, an integral over weights


def mean_weight(b, score, tanh):
    """Return the mean of PG(b, score)."""
    near = abs(score) < 1e-3
    safe = near + score * (1 - near)
    return b * (near * 0.25 + (1 - near) * tanh(safe / 2) / (2 * safe))


@functools.lru_cache(maxsize=16)
def exact(c, dispersion=None, sampled=False):
    """Return posterior means and the log evidence.

    `dispersion` is None for binary labels, a number, or True for the rule of its prior. With
    `sampled` the concentrations have priors.
    """
    y = np.array(BINARY if dispersion is None else COUNTS)
    rule = enumeration.Rule(np.array([dispersion or 0.0]), np.zeros(1))
    if dispersion is True:
        rule = enumeration.gamma_rule(*PRIORS["dispersion"])
    r = rule.nodes

    def log_label(score):
        if dispersion is None:
            return label_posteriors.log_binary(score, y, c)
        return label_posteriors.log_count(score, y, c, r) + rule.log_weights

    def of_weights(eta, score):
        sharpness = c if dispersion is None else c * (y + r[:, None])
        found = {
            "label": expit(score)[:, None],
            "weight": mean_weight(sharpness, score[:, None], np.tanh),
        }
        if dispersion is True:
            found |= {"r": r[None, :], "log r": np.log(r)[None, :]}
            found["r omega"] = r[None, :, None] * score[:, None]
        return found

    return FAMILY.exact(log_label, of_weights, sampled=sampled)


def measure(state, data):
    """Measure a state as `exact` does."""
    score, r = FAMILY.scores(state, data), state.dispersion
    sharpness = state.c if r is None else state.c * (data.label + r)
    values = FAMILY.posterior_quantities(state, data) | {
        "label": jax.nn.sigmoid(score),
        "weight": mean_weight(sharpness, score, jnp.tanh),
    }
    if r is not None:
        values |= {"r": r, "log r": jnp.log(r), "r omega": r * score}
    return testing.as_floats(values)


def target(c, dispersion=None, priors=None, **options):
    data = (TINY if dispersion is None else TINY_COUNTS).data
    at = functools.partial(FAMILY.start, c=c, dispersion=dispersion and DISPERSION)
    priors = supervised_lda.SupervisedLDAPriors(**(priors or {}))
    return testing.Target(data, priors, at, measure, lambda: exact(c, dispersion, **options)[0])


SHARP = {name: testing.sharp(x) for name, x in {**FIXED, "dispersion": DISPERSION}.items()}
VAGUE = {name: testing.gamma_prior(*prior) for name, prior in PRIORS.items()}
TARGETS = {
    "c=1": target(1.0),
    "no labels": target(TINIEST),
    "c=4": target(4.0),
    "counts": target(1.0, DISPERSION, SHARP),
    "sampled": target(2.0, True, VAGUE, sampled=True),
}


# ---- the joint law: parameters, topics, words and labels from the prior, in NumPy


def draw_prior(rng, size, c=1.0, counts=False):
    r"""Draw parameters with the weight $\prod_d \sum_y p(y \mid \omega_d)^c$, for c >= 1.

    With c = 1 all draws are accepted. Otherwise the labels have the law with this power, and these
    are the parameters that belong to it.
    """

    def log_weight(score):
        return np.logaddexp(c * score, 0) - c * np.logaddexp(score, 0)

    drawn = FAMILY.simulate(rng, size, log_weight, tries=1 if c == 1 else 4)
    score, r = drawn["score"], drawn["dispersion"]
    y = rng.uniform(size=score.shape) < expit(c * score)
    if counts:
        y = rng.poisson(rng.gamma(r[:, None], np.exp(score)))
    else:
        drawn.pop("dispersion")
    return FAMILY.states_of(drawn | {"y": y}, c=c)


def draw_program(rng_key, size, counts=False):
    alpha = dist.Gamma(*PRIORS["alpha"]).expand([NUM_TOPICS])
    hyperparameters = {"alpha": alpha, "beta": dist.Gamma(*PRIORS["beta"])}
    if counts:
        hyperparameters |= {"response": "count", "dispersion": dist.Gamma(*PRIORS["dispersion"])}
    model = SupervisedLDA(NUM_TOPICS, eta_variance=VARIANCE, **hyperparameters)
    sites = ["alpha", "beta", "eta", "y", *(["dispersion"] if counts else [])]
    draws = FAMILY.program_draws(rng_key, model, sites, size)
    return FAMILY.measure(measure_joint, *FAMILY.states_of(draws, c=1.0))


def measure_joint(state, data):
    score, y = FAMILY.scores(state, data), jnp.log1p(data.label)
    values = FAMILY.joint_quantities(state, data) | {
        "sum log(1 + y)": y.sum(),
        "log(1 + y) omega": (y * score).sum(),
    }
    if state.dispersion is not None:
        log_r = jnp.log(state.dispersion)
        values |= {"log r": log_r, "log r sum log(1 + y)": log_r * y.sum()}
    return testing.as_floats(values)


def joint(c=1.0, counts=False):
    """Return the joint law. The program is that of c = 1: other powers are no distributions."""
    priors = FAMILY.joint_priors()
    if not counts:
        priors.pop("dispersion")
    return testing.Joint(
        priors=supervised_lda.SupervisedLDAPriors(**priors),
        simulate=functools.partial(draw_prior, c=c, counts=counts), redraw=FAMILY.redraw,
        quantities=measure_joint,
        program=functools.partial(draw_program, counts=counts) if c == 1 else None,
    )  # fmt: skip


def program_log_joint(state, data, priors):
    """Return the program's density at the last targets with and without priors."""
    counts = state.dispersion is not None
    family, c = (FAMILY_OF_COUNTS, 2.0) if counts else (FAMILY, 4.0)
    fixed = FIXED | ({"dispersion": DISPERSION} if counts else {})
    hyperparameters, values = testing.priors_in_program(fixed, priors, state)
    model = SupervisedLDA(
        NUM_TOPICS, c=c, eta_variance=VARIANCE, response="count" if counts else "binary",
        **hyperparameters,
    )  # fmt: skip
    values["eta"] = state.eta
    return family.density_without_mixtures(model, values, state, data, state.alpha)


# ---- kernels that are wrong on purpose, and the check that must see it


def mistakes():
    """List the mistakes as (name, module, function, right, wrong, check)."""
    ours, labels = supervised_lda, label_regression
    listed = [
        ("V is missing from the denominator", labelled_topics, "conditional",
         "n_k + {num_words} * beta", "1", "conditional"),
        ("the token has no part in the score", labels, "scores_of_token",
         "+ {eta}) / length", "jnp.zeros_like(eta)", "conditional"),
        ("no prior of the weights", ours, "log_joint",
         "prior = {label_regression.log_normal(state.eta, state.eta_variance)}", "0.0",
         "log_joint"),
        ("counts without the power of their coefficient", ours, "log_joint",
         "labels + {state.c} * sum", "1.0", "log_joint"),
        ("own count stays in the score and the document", scan, "_scan_chains",
         "dict(doc={without})", "desk.topic", "enumeration/c=4/sequential"),
        ("no length in the score of a token", labels, "scores_of_token",
         "eta) / {length}", "1.0", "enumeration/c=4/sequential"),
        ("lengths of other documents, sequential", ours, "tilt",
         "{data.doc_length}", "data.doc_length[::-1]",
         "enumeration/c=4/sequential"),
        ("successes without the linear part", labels, "log_label",
         "jnp.asarray(failure), {jnp.asarray(success)})", "jnp.zeros_like(score)",
         "enumeration/c=4/sequential"),
        ("lambda and eta from the same numbers in every sweep", ours, "_draw_eta_given_weights",
         "draw_normal(\n        {key_eta}, ", '__import__("jax").random.key(1)',
         "enumeration/c=1/sequential"),
        ("topics are means, not draws", labelled_topics, "parallel_sweep",
         "state.doc_topic, {log_phi}, state.alpha",
         "jnp.log((state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0))",
         "enumeration/c=1/parallel"),
        ("lengths of other documents, parallel", ours, "tilt",
         "{data.doc_length}", "data.doc_length[::-1]",
         "enumeration/c=4/parallel"),
        ("sign of kappa", ours, "_draw_eta_given_weights",
         "{(labels.success - labels.failure) / 2}", "(labels.failure - labels.success) / 2",
         "enumeration/c=1/parallel"),
        ("kappa without the half", labels, "_draw_given",
         "product(share, {linear[:, None]})", "2 * linear[:, None]", "enumeration/c=1/parallel"),
        ("lambda and the dispersion from stale scores", ours, "step",
         "scores({new.doc_topic}, ", "state.doc_topic", "enumeration/c=4/parallel"),
        ("lambda as at score zero", labels, "draw_polya_gamma_weights",
         "1.0), {score}, 0", "jnp.zeros_like(score)", "enumeration/c=1/parallel"),
        ("b without c", labels, "draw_polya_gamma_weights",
         "number = {trials.success} + trials", "jnp.ones_like(score) - trials.failure",
         "enumeration/c=4/parallel"),
        ("prior precision is missing", labels, "_draw_given",
         "bool), {1 / variance}, 0.0", "1e-3", "enumeration/c=1/parallel"),
        ("eta is its mean, not a draw", labels, "_draw_given",
         "{noise[:, None]}", "jnp.zeros_like(noise)[:, None]", "enumeration/c=1/parallel"),
        ("precision of one share only", labels, "_draw_small",
         "weighted[:, :, None], {share[:, None, :]}", "jnp.ones_like(share)[:, None, :]",
         "enumeration/c=1/parallel"),
        ("failures of counts without the dispersion", ours, "trials",
         "jnp.full_like(y, state.dispersion)", "jnp.ones_like(y)", "enumeration/counts/parallel"),
        ("dispersion without the change of variables", ours, "_draw_dispersion",
         "return {prior.concentration} * log_r", "(prior.concentration - 1)",
         "enumeration/sampled/parallel"),
        ("dispersion without c", ours, "_draw_dispersion",
         "{state.c} * (rising", "1.0", "enumeration/sampled/parallel"),
        ("dispersion without the scores", ours, "_draw_dispersion",
         "{jax.nn.softplus(score)}, 0.0)", "jnp.full_like(score, 0.6931)",
         "enumeration/sampled/parallel"),
        ("ellipse with standard normal noise", labels, "draw_on_ellipse",
         "{jnp.sqrt(variance)} * bits", "1.0", "enumeration/c=1/elliptical"),
        ("level of the slice at its top", labels, "draw_elliptical",
         "likelihood + {log_u}, level", "0.0", "enumeration/c=1/elliptical"),
        ("ellipse through the noise alone", labels, "draw_elliptical",
         "return {value * jnp.cos(angle)} + noise", "jnp.zeros_like(value)",
         "enumeration/c=1/elliptical"),
        ("topics given lambda without its half", ours, "log_label_given_weight",
         "score) / {2})", "1", "enumeration/c=4/augmented sequential"),
        ("topics given lambda without kappa", ours, "log_label_given_weight",
         "product(score, {linear} - product", "jnp.zeros_like(linear)",
         "enumeration/c=4/augmented sequential"),
        ("topics given lambda of other documents", ours, "_tilt_given",
         "linear, {weight}, data", "weight[::-1]", "enumeration/c=4/augmented parallel"),
        ("topics given lambda of other weights", ours, "step",
         "state = state._replace(eta={eta})", "jnp.zeros_like(eta)",
         "enumeration/c=4/augmented parallel"),
    ]  # fmt: skip
    return tuple(testing.Mistake(*mistake) for mistake in listed)


MISTAKES = mistakes()


def schedule(name, **options):
    """Return a schedule: programs for binary labels, for counts, and for Geweke's test."""
    step = testing.late(supervised_lda, "step", sweeps=(name,), **options)
    return testing.Schedule(step, num_programs=3)


CASE = testing.Case(
    name="supervised_lda",
    model=SupervisedLDA,
    shipped=FAMILY.shipped(
        SupervisedLDA(NUM_TOPICS, c=4.0, eta_variance=VARIANCE, **FIXED), lambda: exact(4.0)[0]
    ),
    schedules={
        "sequential": schedule("sequential"),
        "parallel": schedule("parallel"),
        "elliptical": schedule("parallel", sampler="elliptical"),
        "augmented sequential": schedule("sequential", sampler="augmented"),
        "augmented parallel": schedule("parallel", sampler="augmented"),
    },
    targets=TARGETS,
    joint=joint(),
    tally=FAMILY.tally,
    conditional=FAMILY.finite_conditional,
    log_joint=FAMILY.log_joint,
    program_log_joint=program_log_joint,
    mistakes=MISTAKES,
)  # fmt: skip


# Geweke's test of other joint laws, by the right kernels alone
OTHER_LAWS = {
    name: testing.Case(
        name=f"supervised_lda, {name}", targets={}, joint=law,
        schedules={n: CASE.schedules[n]._replace(num_programs=1) for n in CASE.schedules},
        skip={"ranks/*": "the case of the model has it", "batch/*": "the case of the model has it"},
    )
    for name, law in (("c=4", joint(c=4.0)), ("counts", joint(counts=True)))
}  # fmt: skip
LAWS = [(name, check) for name, case in OTHER_LAWS.items() for check in case.checks()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), LAWS)
def test_other_laws(name, check):
    print(OTHER_LAWS[name].checks()[check].run())


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- the enumeration itself, against independently computed numbers


def same(found, i, j):
    """Return the probability that tokens i < j share a topic."""
    first, second = np.triu_indices(6, 1)
    return found["coassigned"][(first == i) & (second == j)][0]


TABLE = {  # of binary labels, by c
    TINIEST: (-8.227316, (0.913885, 0.668458, 0.437179, 0.585727, 0.250802, 0.802551), 0.963802,
              (0, 0, 0), (0.5, 0.5, 0.5), 8, None),
    1.0: (-10.706179, (0.910822, 0.641562, 0.392509, 0.607140, 0.335522, 0.732181), 0.967310,
          (0.764509, 0.052568, 0.694637), (0.634987, 0.515863, 0.617641), 6.089188,
          (0.218088, 0.225933, 0.216214)),
    4.0: (-14.487378, (0.953334, 0.636293, 0.090029, 0.887964, 0.896900, 0.130047), 0.997445,
          (2.131520, -1.730399, 2.679592), (0.843224, 0.217685, 0.887034), 15.331932,
          (0.744082, 0.786587, 0.666169)),
}  # fmt: skip


@pytest.mark.parametrize("c", TABLE)
def test_exact_posteriors_of_binary_labels(c):
    log_evidence, together, both_used, omega, label, eta2, weight = TABLE[c]
    found, evidence = exact(c)
    atol = 2e-5 if c == TINIEST else 1e-6  # the table has c = 0
    close = functools.partial(np.testing.assert_allclose, rtol=0, atol=atol)
    close(evidence, log_evidence)
    pairs = ((0, 1), (0, 2), (0, 3), (3, 4), (0, 5), (4, 5))
    close([same(found, i, j) for i, j in pairs], together)
    close(1 - found["one_topic"], both_used)
    close(found["omega"], omega)
    close(found["label"], label)
    close(found["eta^2"], eta2)
    if weight is not None:
        close(found["weight"], weight)


def test_exact_posteriors_of_counts():
    close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-6)
    found, evidence = exact(1.0, DISPERSION)
    close(evidence, -13.922747)
    close(found["omega"], (0.308636, -0.601682, -0.604167))
    close(found["eta^2"], 3.624658)
    close(found["weight"], (1.061280, 0.344539, 0.567190))
    close([same(found, 0, 2), same(found, 3, 4), same(found, 0, 5)], (0.634827, 0.636227, 0.252971))
    found, evidence = exact(1.0, True)
    close(evidence, -14.078950)
    close([found["r"], found["log r"], found["eta^2"]], (1.957466, 0.472975, 4.269120))
    close(found["omega"], (0.221381, -0.683144, -0.686429))
    close(found["weight"], (1.158987, 0.427465, 0.642672))
    close([same(found, 0, 2), same(found, 4, 5)], (0.629341, 0.830515))


# ---- limits


def test_without_labels_it_is_lda():
    lda = enumeration.finite_topics(DOCS, NUM_WORDS, NUM_TOPICS, (0.5, 0.5), 0.25)
    np.testing.assert_allclose(
        exact(TINIEST)[0]["coassigned"], lda.mean("coassigned"), rtol=0, atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("sweep", ["sequential", "parallel"])
def test_classes_under_vmap(sweep):
    """One binary problem per class: labels are mapped, all other data are shared."""
    labels = jnp.array([[1, 0, 1], [0, 1, 1]])
    keys = jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(TARGETS["c=4"].start)(keys)

    def step(rng_key, state, label):
        data = TINY.data._replace(label=label)
        priors = supervised_lda.SupervisedLDAPriors(beta=VAGUE["beta"])
        return supervised_lda.step(rng_key, state, data, priors, sweeps=(sweep,))[0]

    together = testing.quick_jit(jax.vmap(step))(keys, states, labels)
    alone = testing.quick_jit(step)
    for i in range(2):
        one = alone(keys[i], jax.tree.map(lambda x, i=i: x[i], states), labels[i])
        for field, x, y in zip(one._fields, together, one, strict=True):
            if x is not None:
                np.testing.assert_allclose(x[i], y, rtol=1e-5, err_msg=field)


def test_a_large_power_neither_underflows_nor_overflows():
    """Each weight is that of float64, though likelihoods differ by hundreds of nats."""
    eta, n_d = np.array([9.0, -9.0, 0.5, 8.9, 0.0, 3.0, -2.0, 1.0]), np.eye(8)[0] * 2
    for y in (0.0, 1.0):
        score = (eta @ n_d + eta) / 3
        exact_label = 256 * (y * score - np.logaddexp(score, 0))
        of_doc = 256 * y, 256 * (1 - y), 3
        found = label_regression.log_label_of_token(
            jnp.array(n_d, jnp.float32), of_doc, jnp.array(eta, jnp.float32)
        )
        np.testing.assert_allclose(found, exact_label, rtol=1e-6)
        weights = labelled_topics.conditional(
            jnp.array(n_d), jnp.ones(8), jnp.full(8, 9), found, alpha=jnp.ones(8), beta=0.5,
            num_words=2,
        )  # fmt: skip
        expected = (n_d + 1) * 1.5 * np.exp(exact_label - exact_label.max()) / 10
        np.testing.assert_allclose(weights, expected, rtol=1e-3, atol=1e-30)
    # topics that do not exist have no part in the scale
    alpha, log_label = jnp.array([1.0, 0.0]), jnp.array([-500.0, 0.0])
    weights = labelled_topics.conditional(
        jnp.zeros(2), jnp.ones(2), jnp.ones(2), log_label, alpha=alpha, beta=1.0, num_words=1
    )
    np.testing.assert_array_equal(weights, [1.0, 0.0])
