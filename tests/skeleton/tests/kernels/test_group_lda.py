"""The kernels of `GroupLDA`: enumeration, Geweke, densities, invariants, a limit, mistakes.

All checks but the limit come from the harness. This file holds what is the model's own: two tiny
corpora, the exact posterior of one, a simulator of the prior, the weights of a token.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from bnp_kernels import group_lda, lda
from bnp_models import testing
from bnp_models.models.group_lda import GroupLDA
from bnp_models.testing import enumeration, simulate

GROUP = [1, 0, 1]
TINY = testing.TinyCorpus([[0, 0], [0, 1], [1, 2, 2]], 3, group=GROUP, layout={"num_lanes": 2})
JOINT = testing.TinyCorpus([[0] * n for n in (4, 5, 6)], 4, group=GROUP, layout={"num_lanes": 2})
ALPHA, BETA, PRIOR = (0.2, 2.0), 0.5, (2.0, 4.0)  # of beta: concentration and rate
NUM_TOPICS, JOINT_TOPICS = 2, 3  # of enumeration, of Geweke's test
DOC_ALPHA = np.array(ALPHA, np.float32)[GROUP][:, None]  # the same for all topics


def weigh(state, data, token):
    """Weigh the topics of a token by the function that the kernel calls."""
    num_words, num_topics = state.word_topic.shape
    doc, minus = data.doc[token], jnp.arange(num_topics) == state.z[token]
    return group_lda.conditional(
        state.doc_topic[doc] - minus,
        state.word_topic[data.word[token]] - minus,
        state.topic - minus,
        alpha=state.alpha[data.group[doc]], beta=state.beta, num_words=num_words,
    )[None]  # fmt: skip


FAMILY = testing.TopicFamily(
    group_lda, GroupLDA, group_lda.GroupLDAState, group_lda.GroupLDAPriors, weigh, TINY, JOINT
)


# ---- the exact posterior: a sum over all assignments


def exact(beta):
    """Return posterior means, for a number `beta` or the quadrature rule of its prior."""
    z, word = enumeration.assignments(NUM_TOPICS, len(TINY.doc)), np.concatenate(TINY.docs)
    doc_topic = simulate.tally(z, TINY.doc, len(GROUP), NUM_TOPICS)
    word_topic = simulate.tally(z, word, TINY.num_words, NUM_TOPICS)
    documents = enumeration.log_dirichlet_multinomial(doc_topic, DOC_ALPHA).sum(axis=1)
    words, mean_beta = enumeration.word_factor(word_topic.swapaxes(1, 2), beta)
    quantities = enumeration.token_quantities(z) | {"beta": mean_beta}
    posterior = enumeration.enumerate_posterior(
        z, lambda _: documents + words, lambda _: quantities
    )
    return posterior.means()


def measure(state, data):
    return testing.as_floats(FAMILY.token_quantities(state) | {"beta": state.beta})


def start(rng_key):
    return group_lda.init(
        rng_key, TINY.data, num_words=TINY.num_words, num_topics=NUM_TOPICS,
        alpha=jnp.array(ALPHA), beta=BETA,
    )  # fmt: skip


def target(prior, beta):
    priors = group_lda.GroupLDAPriors(beta=prior)
    return testing.Target(TINY.data, priors, start, measure, functools.partial(exact, beta))


def exact_of_tokens():
    return {name: mean for name, mean in exact(BETA).items() if name != "beta"}


# ---- the joint law: parameters, topics and words from the prior, in NumPy


def states_of(z, word, beta):
    """Return kernel states and data of draws of everything, with a leading axis."""

    def one(z, word, beta):
        return FAMILY.make_state(
            JOINT, z, JOINT.doc, word, JOINT_TOPICS, alpha=jnp.array(ALPHA), beta=beta
        )

    word = np.asarray(word, np.int32)
    states = testing.quick_jit(jax.vmap(one))(z, word, np.asarray(beta, np.float32))
    return states, FAMILY.with_words_of(word)


def draw_prior(rng, size):
    draw, rows = np.arange(size)[:, None], np.broadcast_to(DOC_ALPHA, (size, 3, JOINT_TOPICS))
    beta = rng.gamma(PRIOR[0], 1 / PRIOR[1], size)
    theta = simulate.draw_dirichlet(rng, rows)
    shape = size, JOINT_TOPICS, JOINT.num_words
    phi = simulate.draw_dirichlet(rng, np.broadcast_to(beta[:, None, None], shape))
    z = simulate.draw_categorical(rng, theta[draw, JOINT.doc])
    return states_of(z, simulate.draw_categorical(rng, phi[draw, z]), beta)


def draw_program(rng_key, size):
    model = GroupLDA(JOINT_TOPICS, alpha=ALPHA, beta=dist.Gamma(*PRIOR))
    draws = FAMILY.program_draws(rng_key, model, ["beta"], size)
    return FAMILY.measure(measure_joint, *states_of(draws["z"], draws["w"], draws["beta"]))


def measure_joint(state, data):
    values = FAMILY.count_quantities(state, data) | {
        "sum n_dk^2 of the first group": (state.doc_topic[GROUP.index(0)] ** 2).sum(),
        "log beta": jnp.log(state.beta),
        "topics used": (state.topic > 0).sum(),
    }
    return testing.as_floats(values)


def program_log_joint(state, data, priors):
    hyperparameters, values = testing.priors_in_program(
        {"alpha": ALPHA, "beta": BETA}, priors, state
    )
    model = GroupLDA(NUM_TOPICS, **hyperparameters)
    return FAMILY.density_without_mixtures(model, values, state, data, DOC_ALPHA)


# ---- kernels that are wrong on purpose, and the check that must see it

MISTAKES = (
    testing.Mistake(
        "V is missing from the denominator", group_lda, "conditional",
        "n_k + {num_words} * beta", "1",
        "conditional",
    ),
    testing.Mistake(
        "weights of one topic for the sum of all", group_lda, "log_joint",
        "{weights.sum(axis=1)}", "weights[:, 0]",
        "log_joint",
    ),
    testing.Mistake(
        "all documents in the first group", group_lda, "doc_weights",
        "data.group", "jnp.zeros_like(data.group)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "documents read the row of the other group", group_lda, "_parallel_sweep",
        "prior_row={data.group}", "1 - data.group",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "topics are means, not draws", group_lda, "_parallel_sweep",
        "{phi}, prior,",
        "(state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "beta from the same numbers in every sweep", group_lda, "step",
        "key_tables, {key_beta}, new", '__import__("jax").random.key(1)',
        "enumeration/sampled/sequential",
    ),
)  # fmt: skip

CASE = testing.Case(
    name="group_lda",
    model=GroupLDA,
    shipped=testing.Shipped(
        GroupLDA(NUM_TOPICS, alpha=ALPHA, beta=BETA), TINY.corpus,
        lambda draws: enumeration.token_quantities(draws["z"]), exact_of_tokens, record=("z",),
    ),
    schedules={  # two programs: the data of enumeration and of Geweke's test differ in shape
        name: testing.Schedule(testing.late(group_lda, "step", sweeps=(name,)), num_programs=2)
        for name in ("sequential", "parallel")
    },
    targets={
        "fixed": target(testing.sharp(BETA), BETA),
        "sampled": target(testing.gamma_prior(*PRIOR), enumeration.gamma_rule(*PRIOR)),
    },
    joint=testing.Joint(
        priors=group_lda.GroupLDAPriors(beta=testing.gamma_prior(*PRIOR)), simulate=draw_prior,
        redraw=FAMILY.redraw_words, quantities=measure_joint, program=draw_program,
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


@pytest.mark.slow
@pytest.mark.parametrize("sweep", ["sequential", "parallel"])
def test_groups_that_are_alike_are_lda(sweep):
    counts = FAMILY.tally(start(jax.random.key(0)), TINY.data)
    z = start(jax.random.key(0)).z
    ours = group_lda.GroupLDAState(z, **counts, alpha=jnp.full(2, 0.7), beta=jnp.float32(BETA))
    theirs = lda.LDAState(z, **counts, alpha=jnp.full(NUM_TOPICS, 0.7), beta=jnp.float32(BETA))
    prior, key = testing.gamma_prior(*PRIOR), jax.random.key(1)
    np.testing.assert_allclose(
        group_lda.log_joint(ours, TINY.data), lda.log_joint(theirs, TINY.data), rtol=1e-6
    )
    ours, _ = group_lda.step(
        key, ours, TINY.data, group_lda.GroupLDAPriors(beta=prior), sweeps=(sweep,)
    )
    theirs, _ = lda.step(key, theirs, TINY.data, lda.LDAPriors(), sweeps=(sweep,))
    np.testing.assert_array_equal(ours.z, theirs.z)
