"""LDA's kernels: exact enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of finite topic models; this file
holds the data. Thresholds follow from the harness's false-alarm rate, seeds from the names of the
checks. With the efforts below enumeration sees biases of about 0.005 in a probability, Geweke of
about 0.07 standard deviations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import lda
from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.random import concentration, tables
from bnp_kernels.tokens import scan
from bnp_models import LDA, testing
from bnp_models.testing.enumeration import log_dirichlet_multinomial

TINY = testing.TinyCorpus([[0, 0, 1], [1, 2, 2]], num_words=3, layout={"num_lanes": 1})
NUM_WORDS = 3
JOINT = testing.TinyCorpus([[0] * n for n in (4, 5, 6)], num_words=4, layout={"num_lanes": 2})


def weigh(state, data, token):
    num_words, num_topics = state.word_topic.shape
    minus = jnp.arange(num_topics) == state.z[token]
    return lda.conditional(
        state.doc_topic[data.doc[token]] - minus,
        state.word_topic[data.word[token]] - minus,
        state.topic - minus,
        alpha=state.alpha, beta=state.beta, num_words=num_words,
    )[None]  # fmt: skip


FAMILY = testing.FiniteTopicsCase(lda, LDA, lda.LDAState, lda.LDAPriors, weigh, TINY, JOINT)

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "own count stays in the document", scan, "_scan_chains",
        "dict(doc={without})", "desk.topic",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic totals are stale", scan, "_scan_chains",
        "if name in index else {table}\n", "start_tables[name]",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic totals are never updated", scan, "_scan_chains",
        "return table + {change}", "jnp.zeros_like(change)",
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
        "one uniform for all tokens", scan, "_scan_chains",
        "read({uniforms}, t)", "jnp.broadcast_to(uniforms[:1], uniforms.shape)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "counts of another document", lda, "_parallel_sweep",
        "state.z, {state.doc_topic}, ", "state.doc_topic[::-1]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "topics are means, not draws", lda, "_parallel_sweep",
        "{phi}, state.alpha, shards",
        "(state.word_topic + state.beta) / (state.word_topic + state.beta).sum(axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "first table not counted", tables, "_draw",
        "(n >= 1).astype(jnp.int32)", "0",
        "enumeration/asymmetric/sequential",
    ),
    testing.Mistake(
        "prior counted twice", dirichlet_topics, "draw_concentrations",
        "asarray({prior.concentration} + num_tables", "2 * prior.concentration",
        "enumeration/asymmetric/sequential",
    ),
    testing.Mistake(
        "alpha counted once per restaurant", dirichlet_topics, "alpha_statistics",
        "scale = {alpha.shape[0]}", "1.0",
        "enumeration/symmetric/parallel",
    ),
    testing.Mistake(
        "beta counted once per restaurant", dirichlet_topics, "beta_statistics",
        "scale={num_words}", "1.0",
        "enumeration/symmetric/parallel",
    ),
    testing.Mistake(
        "concentrations from the same numbers in every sweep",
        dirichlet_topics, "resample_concentrations",
        "draw_concentrations({key}, these)", '__import__("jax").random.key(1)',
        "enumeration/symmetric/sequential",
    ),
    testing.Mistake(
        "one number for alpha and beta", concentration, "_draw_joined",
        "jnp.full(size, {slot})", "0",
        "geweke/sequential",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="lda",
    targets=("fixed", "symmetric", "asymmetric"),
    schedules={  # programs: one alpha or several, and more documents in Geweke's test
        "sequential": testing.Schedule(
            testing.late(lda, "step", sweeps=("sequential",)), num_programs=3
        ),
        "parallel": testing.Schedule(
            testing.late(lda, "step", sweeps=("parallel",)), num_programs=3
        ),
    },
    mistakes=tuple(MISTAKES),
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
    data = TINY.data
    num_topics = len(alpha)
    empty = [jnp.zeros(shape, jnp.int32) for shape in ((2, num_topics), (3, num_topics))]
    state = lda.LDAState(
        jnp.array(z), *empty, empty[0][0], jnp.array(alpha, jnp.float32), jnp.float32(beta)
    )
    return state._replace(**FAMILY.tally(state, data)), data


@pytest.mark.slow
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
    assert data.max_word_count.dtype == np.uint16

    def after(dtype):
        of_type = data._replace(max_word_count=data.max_word_count.astype(dtype))
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
