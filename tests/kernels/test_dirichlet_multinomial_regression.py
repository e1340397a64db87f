"""The kernels of `DirichletMultinomialRegression`: all checks, a limit, mistakes.

All checks but the limits come from the harness. This file holds what is the model's own: two tiny
corpora with a covariate, the exact posterior of one, a simulator of the prior.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import logsumexp

from bnp_kernels import dirichlet_multinomial_regression as dmr
from bnp_kernels import lda
from bnp_kernels.processes import poisson_regression
from bnp_kernels.random import tables
from bnp_models import DirichletMultinomialRegression, testing
from bnp_models.testing import enumeration, simulate

DOCS, NUM_WORDS = [[0, 0], [1, 2, 2], [0]], 3
X, JOINT_X = (-1.0, 1.0, 0.3), (0.0, 2.0, 1.0)
BETA, VARIANCE, INTERCEPT = 0.5, 0.8, 1.5
PRIORS = {"beta": (2.0, 4.0), "coefficient_variance": (6.0, 4.0)}  # concentration and rate
NUM_TOPICS, JOINT_TOPICS = 2, 3  # of enumeration, of Geweke's test
POINTS = 10  # of the quadrature over each coefficient


def standard(x):
    """Return the columns of a regression on x: the intercept and x with mean 0, deviation 1."""
    x = np.asarray(x)
    columns = np.stack([np.ones(len(x)), (x - x.mean()) / x.std()], axis=1).astype(np.float32)
    return columns, np.array([True, False])


def corpus_of(docs, num_words, x):
    layout = {"num_lanes": 2, "design": standard(x)}
    return testing.TinyCorpus(docs, num_words, covariates={"x": x}, layout=layout)


TINY = corpus_of(DOCS, NUM_WORDS, X)
JOINT = corpus_of([[0] * n for n in (4, 5, 6)], 4, JOINT_X)


def weigh(state, data, token):
    """Weigh the topics of a token by the function that the kernel calls."""
    num_words, num_topics = state.word_topic.shape
    doc, minus = data.doc[token], jnp.arange(num_topics) == state.z[token]
    return dmr.conditional(
        state.doc_topic[doc] - minus,
        state.word_topic[data.word[token]] - minus,
        state.topic - minus,
        alpha=dmr.doc_weights(state.coefficients, data)[doc], beta=state.beta,
        num_words=num_words,
    )[None]  # fmt: skip


FAMILY = testing.TopicFamily(
    dmr, DirichletMultinomialRegression, dmr.DMRState, dmr.DMRPriors, weigh, TINY, JOINT
)


# ---- the exact posterior: a sum over all assignments, an integral over the coefficients


def variance_rule(variance):
    """Return points of the prior of the coefficients' variance, few of which are needed."""
    if variance is not None:
        return np.array([variance]), np.zeros(1)
    rule = enumeration.gamma_rule(*PRIORS["coefficient_variance"])
    kept = np.flatnonzero(rule.log_weights > -14)[::2]
    log_weights = rule.log_weights[kept]
    return 1 / rule.nodes[kept], log_weights - logsumexp(log_weights)


def log_document(counts, alpha):
    """Return the log probability of the topics of a document, [S, Q]; `alpha` may be huge."""
    rising = np.log(alpha[..., None] + np.arange(3)).cumsum(axis=-1)  # [Q, K, 3]
    rising = np.concatenate([np.zeros_like(rising[..., :1]), rising], axis=-1)
    total = np.log(alpha.sum(axis=1)[:, None] + np.arange(counts[0].sum())).sum(axis=1)
    return sum(rising[:, k, counts[:, k]].T for k in range(NUM_TOPICS)) - total


@functools.lru_cache(maxsize=4)
def exact(sampled, points=POINTS):
    """Return posterior means; `sampled`: the hyperparameters have priors."""
    z, word = enumeration.assignments(NUM_TOPICS, len(TINY.doc)), np.concatenate(DOCS)
    doc_topic = simulate.tally(z, TINY.doc, len(DOCS), NUM_TOPICS)  # [S, D, K]
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    grid = np.array(list(itertools.product(range(points), repeat=2 * NUM_TOPICS)))
    normal = nodes[grid].reshape(-1, 2, NUM_TOPICS)
    log_grid = np.log(weights / weights.sum())[grid].sum(axis=1)
    columns = standard(X)[0].astype(float)
    parts, values = [], []
    for v, log_v in zip(*variance_rule(None if sampled else VARIANCE), strict=True):
        coefficients = normal * np.sqrt([INTERCEPT, v])[None, :, None]
        alpha = np.exp(np.einsum("df,qfk->qdk", columns, coefficients))
        documents = sum(log_document(doc_topic[:, d], alpha[:, d]) for d in range(len(DOCS)))
        parts.append(documents + log_grid + log_v)
        values.append(measure_coefficients(coefficients, np.full(len(coefficients), v)))
    of_all = np.concatenate(parts, axis=1)  # [S, Q]
    documents = logsumexp(of_all, axis=1)
    given = np.exp(of_all - documents[:, None])
    word_topic = simulate.tally(z, word, NUM_WORDS, NUM_TOPICS)
    beta = enumeration.gamma_rule(*PRIORS["beta"]) if sampled else BETA
    words, mean_beta = enumeration.word_factor(word_topic.swapaxes(1, 2), beta)
    of_values = {n: np.concatenate([part[n] for part in values]) for n in values[0]}
    quantities = enumeration.token_quantities(z) | {n: given @ x for n, x in of_values.items()}
    coefficients = np.concatenate(
        [
            normal * np.sqrt([INTERCEPT, v])[None, :, None]
            for v in variance_rule(None if sampled else VARIANCE)[0]
        ]
    )
    along = np.einsum("sq,qfk->sfk", given, coefficients)
    quantities["coefficients * tokens"] = (along * doc_topic[:, 1][:, None]).sum(axis=2)
    quantities["beta"] = mean_beta
    posterior = enumeration.enumerate_posterior(
        z, lambda _: documents + words, lambda _: quantities
    )
    return posterior.means()


def measure_coefficients(coefficients, variance):
    """Return functions of the coefficients [..., F, K] that do not depend on the topics' order."""
    return {
        "coefficients": coefficients.sum(axis=-1),
        "their squares": (coefficients**2).sum(axis=-1),
        "their products": (coefficients[..., 0, :] * coefficients[..., 1, :]).sum(axis=-1),
        "1 / variance": 1 / variance,
    }


def measure(state, data):
    values = FAMILY.token_quantities(state) | {"beta": state.beta}
    values |= measure_coefficients(state.coefficients, state.coefficient_variance)
    of_document = state.coefficients * state.doc_topic[1][None, :]
    return testing.as_floats(values | {"coefficients * tokens": of_document.sum(axis=1)})


def start(rng_key):
    return dmr.init(
        rng_key, TINY.data, num_words=NUM_WORDS, num_topics=NUM_TOPICS,
        coefficient_variance=VARIANCE, intercept_variance=INTERCEPT, beta=BETA,
    )  # fmt: skip


def target(sampled):
    priors = {name: testing.gamma_prior(*prior) for name, prior in PRIORS.items()}
    if not sampled:
        priors = {
            "beta": testing.sharp(BETA), "coefficient_variance": testing.sharp(1 / VARIANCE),
        }  # fmt: skip
    return testing.Target(
        TINY.data, dmr.DMRPriors(**priors), start, measure, functools.partial(exact, sampled)
    )


# ---- the joint law: parameters, topics and words from the prior, in NumPy


def states_of(z, word, coefficients, variance, beta):
    """Return kernel states and data of draws of everything, with a leading axis."""

    def one(z, word, coefficients, variance, beta):
        return FAMILY.make_state(
            JOINT, z, JOINT.doc, word, JOINT_TOPICS, coefficients=coefficients,
            coefficient_variance=variance, intercept_variance=jnp.float32(INTERCEPT), beta=beta,
        )  # fmt: skip

    word = np.asarray(word, np.int32)
    floats = (np.asarray(x, np.float32) for x in (coefficients, variance, beta))
    return testing.quick_jit(jax.vmap(one))(z, word, *floats), FAMILY.with_words_of(word)


def draw_prior(rng, size):
    draw = np.arange(size)[:, None]
    (a, b), (c, e) = PRIORS["coefficient_variance"], PRIORS["beta"]
    variance, beta = 1 / rng.gamma(a, 1 / b, size), rng.gamma(c, 1 / e, size)
    spread = np.stack([np.full(size, INTERCEPT), variance], axis=1)[:, :, None]
    coefficients = rng.normal(size=(size, 2, JOINT_TOPICS)) * np.sqrt(spread)
    alpha = np.exp(np.einsum("df,sfk->sdk", standard(JOINT_X)[0], coefficients))
    theta = simulate.draw_dirichlet(rng, alpha)
    shape = size, JOINT_TOPICS, JOINT.num_words
    phi = simulate.draw_dirichlet(rng, np.broadcast_to(beta[:, None, None], shape))
    z = simulate.draw_categorical(rng, theta[draw, JOINT.doc])
    word = simulate.draw_categorical(rng, phi[draw, z])
    return states_of(z, word, coefficients, variance, beta)


def priors_of_program():
    return {
        "beta": dist.Gamma(*PRIORS["beta"]),
        "coefficient_variance": dist.InverseGamma(*PRIORS["coefficient_variance"]),
        "intercept_variance": INTERCEPT,
    }


def draw_program(rng_key, size):
    model = DirichletMultinomialRegression(JOINT_TOPICS, **priors_of_program())
    names = ["coefficients", "coefficient_variance", "beta"]
    draws = FAMILY.program_draws(rng_key, model, names, size)
    states = states_of(draws["z"], draws["w"], *(draws[name] for name in names))
    return FAMILY.measure(measure_joint, *states)


def measure_joint(state, data):
    values = FAMILY.count_quantities(state, data) | {
        "slope * tokens of a document": (state.coefficients[1] * state.doc_topic[1]).sum(),
        "sum of slopes^2": (state.coefficients[1] ** 2).sum(),
        "sum of intercepts^2": (state.coefficients[0] ** 2).sum(),
        "intercept * slope": (state.coefficients[0] * state.coefficients[1]).sum(),
        "log variance": jnp.log(state.coefficient_variance),
        "log beta": jnp.log(state.beta),
        "topics used": (state.topic > 0).sum(),
    }
    return testing.as_floats(values)


def program_log_joint(state, data, priors):
    fixed = {"beta": state.beta, "coefficient_variance": state.coefficient_variance}
    values = {**fixed, "coefficients": state.coefficients}
    own = {"intercept_variance": INTERCEPT, "beta": dist.Gamma(*priors.beta)}
    own["coefficient_variance"] = dist.InverseGamma(*priors.coefficient_variance)
    model = DirichletMultinomialRegression(NUM_TOPICS, **own)
    weights = dmr.doc_weights(state.coefficients, data)
    return FAMILY.density_without_mixtures(model, values, state, data, weights)


# ---- kernels that are wrong on purpose, and the check that must see it

SAMPLED = "enumeration/sampled/sequential"
MISTAKES = (
    testing.Mistake(
        "weights of one topic for the sum of all", dmr, "_log_documents",
        "{sum_topics(weights)}", "weights[:, 0]",
        "log_joint",
    ),
    testing.Mistake(
        "the variance's density is that of the precision", dmr, "log_prior",
        "+ {2 * jnp.log(precision)}", "0.0",
        "log_joint",
    ),
    testing.Mistake(
        "documents read the row of another one", dmr, "_parallel_sweep",
        "prior_row={jnp.arange(num_docs)}", "jnp.arange(num_docs)[::-1]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "topics are means, not draws", dmr, "_parallel_sweep",
        "{phi}, doc_weights",
        "(state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "counts of tokens for those of tables", dmr, "_draw_coefficients",
        "design, {tables},", "state.doc_topic",
        SAMPLED,
    ),
    testing.Mistake(
        "q from the counts without the prior weights", dmr, "_draw_coefficients",
        "{sum_topics(weights)}, length", "jnp.ones_like(length)",
        SAMPLED,
    ),
    testing.Mistake(
        "the intercept has the variance of all", dmr, "prior_variance",
        "{state.intercept_variance}, state", "state.coefficient_variance",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "all topics move together without their prior", dmr, "_shift_together",
        "+ {log_coefficients(new, data)}", "0.0",
        SAMPLED,
    ),
    testing.Mistake(
        "all topics move together by twice the step", dmr, "_shift_together",
        "return moved({step}).coefficients", "2 * step",
        SAMPLED,
    ),
    testing.Mistake(
        "the intercept's coefficients count for the variance", dmr, "_draw_variance",
        "{jnp.where(is_intercept, 0.0, 1.0)}", "jnp.ones(len(is_intercept))",
        SAMPLED,
    ),
    testing.Mistake(
        "twice the sum of squares", dmr, "_draw_variance",
        "{squares / 2}", "squares",
        SAMPLED,
    ),
    testing.Mistake(
        "every proposal is accepted", poisson_regression, "_step",
        "(log_u < {gain})", "jnp.inf",
        SAMPLED,
    ),
    testing.Mistake(
        "density of a normal proposal", poisson_regression, "_step",
        "+ {(freedom + num_columns) / 2 * jnp.log1p(distance / freedom)}", "distance / 2",
        SAMPLED,
    ),
    testing.Mistake(
        "proposals without the prior's curvature", poisson_regression, "_step",
        "density = {sum_pairwise(product(slope, change)) - bent - prior}",
        "sum_pairwise(product(slope, change)) - bent",
        SAMPLED,
    ),
    testing.Mistake(
        "rows share the first row's concentrations", tables, "_draw_rows",
        "row[None], {concentration}", "concentration[:1]",
        SAMPLED,
    ),
)  # fmt: skip

CASE = testing.Case(
    name="dirichlet_multinomial_regression",
    model=DirichletMultinomialRegression,
    shipped=testing.Shipped(
        DirichletMultinomialRegression(
            NUM_TOPICS, coefficient_variance=VARIANCE, intercept_variance=INTERCEPT, beta=BETA
        ),
        TINY.corpus, lambda draws: enumeration.token_quantities(draws["z"]),
        lambda: {n: exact(False)[n] for n in ("one_topic", "topics", "coassigned")},
        record=("z",),
    ),
    schedules={  # two programs: the data of enumeration and of Geweke's test differ in shape
        name: testing.Schedule(testing.late(dmr, "step", sweeps=(name,)), num_programs=2)
        for name in ("sequential", "parallel")
    },
    targets={"fixed": target(False), "sampled": target(True)},
    joint=testing.Joint(
        priors=dmr.DMRPriors(**{n: testing.gamma_prior(*prior) for n, prior in PRIORS.items()}),
        simulate=draw_prior, redraw=FAMILY.redraw_words, quantities=measure_joint,
        program=draw_program,
    ),
    tally=FAMILY.tally,
    conditional=FAMILY.finite_conditional,
    log_joint=FAMILY.log_joint,
    program_log_joint=program_log_joint,
    mistakes=MISTAKES,
)  # fmt: skip


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


def test_quadrature_has_converged():
    for sampled, others in ((False, 14), (True, 8)):
        one, two = exact(sampled), exact(sampled, others)
        for name in one:
            np.testing.assert_allclose(one[name], two[name], atol=1e-3, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("sweep", ["sequential", "parallel"])
def test_without_effects_of_covariates_it_is_lda(sweep):
    first = start(jax.random.key(0))
    alpha, key = jnp.array([0.7, 0.2]), jax.random.key(1)
    ours = first._replace(coefficients=jnp.stack([jnp.log(alpha), jnp.zeros(NUM_TOPICS)]))
    theirs = lda.LDAState(*first[:4], alpha=alpha, beta=first.beta)
    priors = (jnp.log(2 * jnp.pi * jnp.array([INTERCEPT, VARIANCE])) * NUM_TOPICS).sum() / 2
    priors += (jnp.log(alpha) ** 2).sum() / INTERCEPT / 2
    np.testing.assert_allclose(
        dmr.log_joint(ours, TINY.data) + priors, lda.log_joint(theirs, TINY.data), rtol=1e-5
    )
    ours, _ = dmr.step(key, ours, TINY.data, dmr.DMRPriors(), sweeps=(sweep,))
    theirs, _ = lda.step(key, theirs, TINY.data, lda.LDAPriors(), sweeps=(sweep,))
    np.testing.assert_array_equal(ours.z, theirs.z)
