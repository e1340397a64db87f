"""The author-topic model's kernels: enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of finite topic models; this file
holds the data. Thresholds follow from the harness's false-alarm rate, seeds from the names of the
checks. With the efforts below enumeration sees biases of about 0.006 in a probability, Geweke of
about 0.07 standard deviations.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels import author_topic, lda
from bnp_kernels.tokens import author_sweeps, scan
from bnp_models import AuthorTopicModel, testing
from bnp_models.testing import author_corpora as tiny
from bnp_models.testing import token_corpora

DOCS = [[0, 0, 1], [1, 2, 2]]
TINY = testing.TinyCorpus(DOCS, 3, [[0, 1], [1]], 2, layout={"block_size": 4})
# The first document has an empty place in its bucket, the last author has no document.
JOINT = testing.TinyCorpus(
    [[0] * 5, [0] * 4, [0] * 4], 3, [[0, 1, 2], [1], [2, 0]], 4, layout={"block_size": 8}
)


def weigh(state, data, token):
    num_words, num_topics = state.word_topic.shape
    minus = jnp.arange(num_topics) == state.z[token]
    own = jnp.arange(data.num_authors) == state.x[token]
    weights: Any = author_topic.conditional(
        state.author_topic - own[:, None] * minus, (state.author - own)[:, None],
        state.word_topic[data.word[token]] - minus, state.topic - minus,
        alpha=state.alpha, sum_alpha=state.alpha.sum(), beta=state.beta, num_words=num_words,
    )  # fmt: skip
    return weights.topics * weights.factor / weights.divisor


FAMILY = testing.FiniteTopicsCase(
    author_topic, AuthorTopicModel, author_topic.AuthorTopicState, author_topic.AuthorTopicPriors,
    weigh, TINY, JOINT,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weights without the authors' denominators", author_topic, "share",
        "1 / (n_j + total)", "jnp.ones_like(n_j + total)",
        "conditional",
    ),
    testing.Mistake(
        "authors' denominators are missing", author_topic, "share",
        "1 / (n_j + total)", "jnp.ones_like(n_j + total)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own count stays with the author", scan, "_scan_chains",
        "doc={without}, total", "desk.topic",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own token stays in the author's total", scan, "_scan_chains",
        "desk.total - was", "desk.total",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "authors' totals are never updated", scan, "_scan_chains",
        "desk.total + {(now - was)}", "0",
        "invariants/sequential",
    ),
    testing.Mistake(
        "empty places at the desk are taken", scan, "_scan_chains",
        "desk.row < num_rows", "True",
        "geweke/sequential",
    ),
    testing.Mistake(
        "author drawn before the topic", scan, "_scan_chains",
        "_draw_outcome({weights}, ", "jnp.ones_like(weights)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic drawn for the first author", scan, "_scan_chains",
        "of_topics = {_sum_outcomes(weights)}", "weights[0]",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "one number for topic and author", author_sweeps, "_sweep",
        "jnp.minimum({u_author}, ", "u_topic",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "mixtures are means, not draws", author_topic, "_parallel_sweep",
        "state.x, {theta}, phi",
        "(state.author_topic + state.alpha) / (state.author + state.alpha.sum())[:, None]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "alpha sees lengths that x does not move", author_topic, "step",
        "new.author_topic, {new.author}, ", "data.author_share",
        "geweke/sequential",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="author_topic",
    targets=("fixed", "symmetric"),
    schedules={  # programs: one alpha or several, and more documents in Geweke's test
        name: testing.Schedule(testing.late(author_topic, "step", sweeps=(name,)), num_programs=3)
        for name in ("sequential", "parallel")
    },
    mistakes=tuple(MISTAKES),
    skip={"batch/parallel": "it is about loops over chains, and this sweep has none"},
)


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def state_of(data, x, z, alpha, beta=0.5):
    alpha, beta = jnp.array(alpha, jnp.float32), jnp.float32(beta)
    corpus = testing.TinyCorpus(DOCS, 3, [], data.num_authors)
    return FAMILY.make_state(corpus, z, x, data.word, len(alpha), alpha=alpha, beta=beta)


def lda_log_joint(docs, z, alpha, beta=0.5):
    data = token_corpora.lay_out(docs)
    z, alpha = jnp.array(z), jnp.array(alpha, jnp.float32)
    doc_topic = token_corpora.tally(z, data.doc, len(docs), len(alpha))
    word_topic = token_corpora.tally(z, data.word, 3, len(alpha))
    counts = doc_topic, word_topic, word_topic.sum(axis=0)
    return testing.quick_jit(lda.log_joint)(
        lda.LDAState(z, *counts, alpha, jnp.float32(beta)), data
    )


def test_lonely_authors_are_documents():
    z, alpha = [0, 1, 1, 2, 2, 0], (0.5, 1.2, 0.3)
    log_joint = testing.quick_jit(author_topic.log_joint)
    private = tiny.lay_out(DOCS, [[1], [0]], 2)
    state = state_of(private, [1, 1, 1, 0, 0, 0], z, alpha)
    np.testing.assert_allclose(log_joint(state, private), lda_log_joint(DOCS, z, alpha), rtol=1e-6)
    minus = jnp.arange(3) == z[0]
    rows = state.author_topic[1], state.word_topic[0], state.topic
    options = {"alpha": state.alpha, "beta": 0.5, "num_words": 3}
    same = lda.conditional(*(n - minus for n in rows), **options)
    weights = weigh(state, private, 0)[1]
    np.testing.assert_allclose(weights / weights.sum(), same / same.sum(), rtol=1e-6)
    one = tiny.lay_out(DOCS, [[0], [0]], 1)
    expected = lda_log_joint([[*DOCS[0], *DOCS[1]]], z, alpha)
    state = state_of(one, [0] * 6, z, alpha)
    np.testing.assert_allclose(log_joint(state, one), expected, rtol=1e-6)


def test_authors_without_taste():
    """With one topic, or mixtures that are all alike, the words say nothing about authors."""
    data = tiny.lay_out([[0, 1, 2, 1]], [[0, 1, 2]], 3)
    log_joint = testing.quick_jit(author_topic.log_joint)

    def at(x, z, alpha):
        return log_joint(state_of(data, x, z, alpha), data)

    one, alike = ([0] * 4, [0.7]), ([0, 1, 1, 0], (1e6, 1e6))
    np.testing.assert_allclose(at([0, 1, 2, 0], *one), at([1] * 4, *one), rtol=1e-5)
    np.testing.assert_allclose(at([0, 1, 2, 0], *alike), at([1] * 4, *alike), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["sequential", "parallel"])
def test_layout_changes_no_draw(schedule):
    states, many_data = FAMILY.simulate(np.random.default_rng(0), 1)
    state, data = jax.tree.map(lambda x: jnp.asarray(x)[0], (states, many_data))
    larger = tiny.lay_out(JOINT.docs, JOINT.authors, JOINT.num_authors)
    other = data._replace(
        buckets=tuple(
            bucket._replace(
                row=jnp.pad(bucket.row, [(0, 0), (0, 3)], constant_values=JOINT.num_authors)
            )
            for bucket in data.buckets
        ),
        blocks=tiny.with_words(larger, data.word).blocks,
    )
    assert other.blocks.word.shape != data.blocks.word.shape
    step = testing.quick_jit(CASE.schedules[schedule].step)
    one, two = (step(jax.random.key(0), state, d, CASE.joint.priors) for d in (data, other))
    jax.tree.map(np.testing.assert_array_equal, one, two)
