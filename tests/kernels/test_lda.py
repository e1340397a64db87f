"""LDA's kernels: exact enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness; this file holds the data. Thresholds follow from
the harness's false-alarm rate, seeds from the names of the checks. With the efforts below
enumeration sees biases of about 0.005 in a probability, Geweke of about 0.07 standard deviations.
Posteriors with fixed concentrations are those with sharp priors: their difference, of order
1 / `SHARP`, is far below that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from bnp_kernels import lda
from bnp_kernels.random import concentration, tables
from bnp_kernels.random.concentration import GammaPrior
from bnp_models import testing
from bnp_models.data.corpus import Corpus
from bnp_models.lda import LDA
from bnp_models.testing import simulate, token_corpora
from bnp_models.testing.enumeration import log_dirichlet_multinomial

DOCS = [[0, 0, 1], [1, 2, 2]]
NUM_WORDS = 3
FIXED = {"alpha": (0.5, 1.2), "beta": 0.5}
SHARP = 1e5  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x
ALPHA_PRIOR, BETA_PRIOR = (2.0, 2.0), (2.0, 4.0)  # concentration and rate


def gamma_prior(concentration, rate, shape=()):
    return GammaPrior(np.full(shape, concentration, np.float32), np.float32(rate))


def sharp(value):
    return gamma_prior(np.multiply(value, SHARP), SHARP, np.shape(value))


# ---- posteriors that are known exactly


def pairs(c01, c02, c03, c04, c23):
    """Co-assignments of the six tokens: equal words of a document share their values."""
    return [c01, c02, c03, c04, c04, c02, c03, c04, c04, c23, c03, c03, c02, c02, c01]


def posterior_quantities(state, data):
    alpha, beta, first_doc = state.alpha, state.beta, state.doc_topic[0, 0]
    values = {
        "one_topic": (state.topic > 0).sum() == 1,
        "coassigned": token_corpora.coassigned(state.z),
        "alpha": alpha[0],
        "alpha_sum": alpha.sum(),
        "beta": beta,
        "topic": state.topic,
        "theta_00": (first_doc + alpha[0]) / (3 + alpha.sum()),
        "phi_10": (state.word_topic[0, 1] + beta) / (state.topic[1] + NUM_WORDS * beta),
        "log_joint": lda.log_joint(state, data),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(alpha, priors, expected):
    data = token_corpora.lay_out(DOCS, num_lanes=1)

    def start(rng_key):
        return lda.init(
            rng_key, data, num_words=NUM_WORDS, num_topics=2,
            alpha=jnp.array(alpha, jnp.float32), beta=FIXED["beta"],
        )  # fmt: skip

    return testing.Target(data, priors, start, posterior_quantities, expected)


TARGETS = {
    "fixed": target(
        FIXED["alpha"],
        lda.LDAPriors(sharp(FIXED["alpha"]), sharp(FIXED["beta"])),
        {
            "one_topic": 0.115337,
            "coassigned": pairs(0.848455, 0.657022, 0.448060, 0.349835, 0.639493),
            "topic": [2.223897, 3.776103],
            "theta_00": 0.342968,
            "phi_10": 0.328201,
            "log_joint": -10.913838,
        },
    ),
    "symmetric": target(
        (1.0, 1.0),
        lda.LDAPriors(gamma_prior(*ALPHA_PRIOR), gamma_prior(*BETA_PRIOR)),
        {
            "one_topic": 0.067181,
            "coassigned": pairs(0.840526, 0.640444, 0.389042, 0.300827, 0.589123),
            "alpha": 0.995866,
            "beta": 0.644806,
        },
    ),
    "asymmetric": target(
        (1.0, 1.0),
        lda.LDAPriors(gamma_prior(*ALPHA_PRIOR, shape=2), gamma_prior(*BETA_PRIOR)),
        {
            "one_topic": 0.139198,
            "coassigned": pairs(0.846014, 0.662353, 0.461924, 0.372969, 0.645585),
            "alpha_sum": 1.991280,
            "beta": 0.655351,
        },
    ),
}


# ---- the joint law of everything, from the prior

LENGTHS, JOINT_WORDS, JOINT_TOPICS = (4, 5, 6), 4, 3
JOINT_DATA = token_corpora.lay_out([[0] * n for n in LENGTHS], num_lanes=2)
JOINT_DOC = np.asarray(JOINT_DATA.doc)


def states(alpha, beta, z, word):
    doc_topic = simulate.tally(z, JOINT_DOC, len(LENGTHS), JOINT_TOPICS)
    word_topic = simulate.tally(z, word, JOINT_WORDS, JOINT_TOPICS)
    alpha, beta = np.asarray(alpha, np.float32), np.asarray(beta, np.float32)
    counts = doc_topic, word_topic, doc_topic.sum(axis=1)
    data = jax.vmap(lambda w: token_corpora.with_words(JOINT_DATA, w))(np.asarray(word, np.int32))
    return lda.LDAState(np.asarray(z, np.int32), *counts, alpha=alpha, beta=beta), data


def simulate_prior(rng, size):
    alpha = rng.gamma(ALPHA_PRIOR[0], 1 / ALPHA_PRIOR[1], (size, JOINT_TOPICS))
    beta = rng.gamma(BETA_PRIOR[0], 1 / BETA_PRIOR[1], size)
    theta = simulate.draw_dirichlet(rng, np.repeat(alpha[:, None], len(LENGTHS), axis=1))
    phi = simulate.draw_dirichlet(
        rng, np.broadcast_to(beta[:, None, None], (size, JOINT_TOPICS, JOINT_WORDS))
    )
    z = simulate.draw_categorical(rng, theta[:, JOINT_DOC])
    word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], z])
    return states(alpha, beta, z, word)


def draw_program(rng_key, size):
    model = LDA(
        num_topics=JOINT_TOPICS,
        alpha=dist.Gamma(*ALPHA_PRIOR).expand([JOINT_TOPICS]),
        beta=dist.Gamma(*BETA_PRIOR),
    )
    corpus = Corpus.from_ids([[0] * n for n in LENGTHS], num_words=JOINT_WORDS)
    draws = token_corpora.draw_program(rng_key, model, corpus, ["alpha", "beta", "z", "w"], size)
    return testing.quick_jit(jax.vmap(joint_quantities))(*states(*draws.values()))


def redraw_words(rng_key, state, data):
    word = token_corpora.draw_words(rng_key, state.z, JOINT_WORDS, state.beta)
    word_topic = token_corpora.tally(state.z, word, JOINT_WORDS, JOINT_TOPICS)
    return state._replace(word_topic=word_topic), token_corpora.with_words(data, word)


def joint_quantities(state, data):
    total = state.alpha.sum()
    values = {
        "log alpha": jnp.log(total),
        "alpha share": state.alpha[1] / total,
        "log beta": jnp.log(state.beta),
        "log alpha * log beta": jnp.log(total) * jnp.log(state.beta),
        "topics used": (state.topic > 0).sum(),
        "sum n_k^2": (state.topic**2).sum(),
        "sum n_dk^2": (state.doc_topic**2).sum(),
        "sum n_vk^2": (state.word_topic**2).sum(),
        "first topic * share": state.topic[1] * state.alpha[1] / total,
        "tokens of word 0": (data.word == 0).sum(),
        "log joint": lda.log_joint(state, data),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=lda.LDAPriors(gamma_prior(*ALPHA_PRIOR, shape=JOINT_TOPICS), gamma_prior(*BETA_PRIOR)),
    simulate=simulate_prior,
    redraw=redraw_words,
    quantities=joint_quantities,
    program=draw_program,
)


# ---- densities


def tally(state, data):
    num_docs, num_topics = state.doc_topic.shape
    num_words = state.word_topic.shape[0]
    doc_topic = token_corpora.tally(state.z, data.doc, num_docs, num_topics)
    word_topic = token_corpora.tally(state.z, data.word, num_words, num_topics)
    return {"doc_topic": doc_topic, "word_topic": word_topic, "topic": doc_topic.sum(axis=0)}


def with_topics(state, data, z):
    state = state._replace(z=z)
    return state._replace(**tally(state, data))


def conditional(state, data, token):
    num_words, num_topics = state.word_topic.shape
    minus = jnp.arange(num_topics) == state.z[token]
    weights = lda.conditional(
        state.doc_topic[data.doc[token]] - minus,
        state.word_topic[data.word[token]] - minus,
        state.topic - minus,
        alpha=state.alpha, beta=state.beta, num_words=num_words,
    )  # fmt: skip

    def joint(topic):
        return lda.log_joint(with_topics(state, data, state.z.at[token].set(topic)), data)

    return testing.Conditional(jnp.log(weights), jax.vmap(joint)(jnp.arange(num_topics)))


def log_joint(state, data, priors):
    return lda.log_joint(state, data) + lda.log_prior(state, priors)


def program_log_joint(state, data, priors):
    """Remove theta and phi: p(w, z) = p(w, z, theta, phi) / p(theta, phi | w, z), at any point."""
    hyperparameters, values = dict(FIXED), {}
    for name, prior in priors._asdict().items():
        if prior is not None:
            hyperparameters[name] = dist.Gamma(*prior)
            values[name] = getattr(state, name)
            if name == "alpha" and np.ndim(prior.concentration) == 0:
                values[name] = state.alpha[0]
    model = LDA(num_topics=2, **hyperparameters)
    theta, phi = jnp.array([[0.3, 0.7], [0.6, 0.4]]), jnp.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
    corpus = Corpus.from_ids(DOCS, num_words=NUM_WORDS)
    total, _ = log_density(
        model, (corpus,), {}, {**values, "theta": theta, "phi": phi, "z": state.z}
    )
    documents = dist.Dirichlet(state.alpha + state.doc_topic).log_prob(theta).sum()
    words = dist.Dirichlet(state.beta + state.word_topic.T).log_prob(phi).sum()
    return total - documents - words


# ---- schedules


def sequential(*args):
    return lda.sequential_step(*args)


def parallel(*args):
    return lda.parallel_step(*args)


# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "own count stays in the document", lda, "_sweep_chains",
        "conditional({n_dk}, ", "n_dk + minus",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic totals are stale", lda, "_sweep_chains",
        "n_k = {topic} - minus", "start_topic",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic totals are never updated", lda, "_sweep_chains",
        "topic + {change}", "jnp.zeros_like(change)",
        "invariants/sequential",
    ),
    testing.Mistake(
        "weights without V in the denominator", lda, "conditional",
        "n_k + {num_words} * beta", "1",
        "conditional",
    ),
    testing.Mistake(
        "V is missing from the denominator", lda, "conditional",
        "n_k + {num_words} * beta", "1",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "one uniform for all tokens", lda, "_sweep_chains",
        "(doc, word, old, {u})", "jnp.broadcast_to(u[:1], u.shape)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "counts of another document", lda, "_parallel_sweep",
        "state.z, {state.doc_topic}, ", "state.doc_topic[::-1]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "topics are means, not draws", lda, "_parallel_sweep",
        "{phi}, state.alpha, axis_name",
        "(state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "first table not counted", tables, "_draw",
        "(n >= 1).astype(jnp.int32)", "0",
        "enumeration/asymmetric/sequential",
    ),
    testing.Mistake(
        "prior counted twice", lda, "draw_concentrations",
        "asarray({prior.concentration} + num_tables", "2 * prior.concentration",
        "enumeration/asymmetric/sequential",
    ),
    testing.Mistake(
        "alpha counted once per restaurant", lda, "_of_alpha",
        "scale={alpha.shape[0]}", "1.0",
        "enumeration/symmetric/parallel",
    ),
    testing.Mistake(
        "beta counted once per restaurant", lda, "of_beta",
        "scale={num_words}", "1.0",
        "enumeration/symmetric/parallel",
    ),
    testing.Mistake(
        "concentrations from the same numbers in every sweep", lda, "resample_concentrations",
        "draw_concentrations({key}, these)", "jax.random.key(1)",
        "enumeration/symmetric/sequential",
    ),
    testing.Mistake(
        "one number for alpha and beta", concentration, "_draw_joined",
        "jnp.full(size, {slot})", "0",
        "geweke/sequential",
    ),
]  # fmt: skip

CASE = testing.Case(
    name="lda",
    schedules={  # programs: one alpha or several, and more documents in Geweke's test
        "sequential": testing.Schedule(sequential, num_programs=3),
        "parallel": testing.Schedule(parallel, num_programs=3),
    },
    targets=TARGETS,
    joint=JOINT,
    tally=tally,
    conditional=conditional,
    log_joint=log_joint,
    program_log_joint=program_log_joint,
    mistakes=tuple(MISTAKES),
    fast=frozenset({"enumeration/fixed/parallel", "enumeration/asymmetric/sequential"}),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def state_of(z, alpha, beta):
    """Make the state of some assignments of the six tokens."""
    data = TARGETS["fixed"].data
    num_topics = len(alpha)
    empty = [jnp.zeros(shape, jnp.int32) for shape in ((2, num_topics), (3, num_topics))]
    state = lda.LDAState(
        jnp.array(z), *empty, empty[0][0], jnp.array(alpha, jnp.float32), jnp.float32(beta)
    )
    return with_topics(state, data, state.z), data


@pytest.mark.parametrize("schedule", ["sequential", "parallel"])
def test_one_topic(schedule):
    state, data = state_of([0] * 6, [0.7], 0.4)
    step = testing.quick_jit(CASE.schedules[schedule].step)
    after, info = step(jax.random.key(0), state, data, lda.LDAPriors())
    jax.tree.map(np.testing.assert_array_equal, after, state)
    assert info.num_moved == 0
    evidence = log_dirichlet_multinomial(np.array([2, 2, 2]), 0.4)  # the documents are certain
    np.testing.assert_allclose(lda.log_joint(after, data), evidence, rtol=1e-6)


def test_the_type_of_counts_changes_no_draw():
    state, data = state_of([0, 1, 0, 1, 1, 2], [0.7] * 3, 0.4)
    assert data.most_of_a_word.dtype == np.uint16

    def after(dtype):
        of_type = data._replace(most_of_a_word=data.most_of_a_word.astype(dtype))
        return step(jax.random.key(0), state, of_type, lda.LDAPriors())

    step = testing.quick_jit(CASE.schedules["sequential"].step)
    jax.tree.map(np.testing.assert_array_equal, after(np.uint16), after(np.int32))


def test_large_concentrations():
    z = [0, 1, 0, 1, 1, 2]
    log_joint = testing.quick_jit(lda.log_joint)

    def at(alpha, beta):
        return log_joint(*state_of(z, [alpha] * 3, beta))

    of_docs = at(0.5, 1e6) + 6 * np.log(NUM_WORDS)  # topics are flat
    of_words = at(1e6, 0.4) + 6 * np.log(3)  # documents mix evenly
    np.testing.assert_allclose(at(0.5, 0.4), of_docs + of_words, atol=1e-3)
    np.testing.assert_allclose(at(1e6, 1e6), -6 * np.log(9), atol=1e-3)
