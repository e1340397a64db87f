"""The HDP topic model's kernels: enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness and its family of rooted topic models; this file
holds the data. Thresholds follow from the harness's false-alarm rate, seeds from the names of the
checks. With the efforts below enumeration sees biases of 0.006 (sequential), 0.01 (parallel) and
0.014 (mixed) in a probability, Geweke's test of 0.1 standard deviations.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bnp_kernels import hdp_lda, lda
from bnp_kernels.processes import hdp_root, split_merge, split_proposal
from bnp_models import HDPLDA, testing
from bnp_models.testing import token_corpora
from bnp_models.testing.hdp_case import CAPACITY, FIXED

TINY = testing.TinyCorpus([[0, 0, 1], [1, 2, 2]], num_words=3, layout={"num_lanes": 1})
JOINT = testing.TinyCorpus([[0] * n for n in (4, 5, 6)], num_words=4, layout={"num_lanes": 2})


def weigh(state, data, token):
    num_words, capacity = state.word_topic.shape
    minus, root = jnp.arange(capacity) == state.z[token], state.root
    weights, weight_new = hdp_lda.conditional(
        state.doc_topic[data.doc[token]] - minus, state.word_topic[data.word[token]] - minus,
        state.topic - minus, root_weights=root.weights, unused_weight=root.unused,
        alpha=state.alpha, beta=state.beta, num_words=num_words,
    )  # fmt: skip
    return weights[None], weight_new[None]


FAMILY = testing.HDPCase(hdp_lda, HDPLDA, hdp_lda.HDPState, hdp_lda.HDPPriors, weigh, TINY, JOINT)
SEQUENTIAL = testing.Schedule(
    testing.late(hdp_lda, "step", sweeps=("sequential",)),
    FAMILY.growth(CAPACITY, 3),
    num_programs=2,
)  # fmt: skip
OF_TURNS = testing.Schedule(
    testing.late(hdp_lda, "step", sweeps=("parallel", "split-merge", "sequential")),
    FAMILY.growth(48), testing.Effort(500, 40, 320),
    num_programs=2,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "new topics without the unused mass", hdp_lda, "conditional",
        "alpha * unused_weight / num_words", "alpha / num_words",
        "conditional",
    ),
    *token_corpora.root_mistakes(FIXED["alpha"]),
    testing.Mistake(
        "a birth takes almost the whole pool", hdp_root, "birth",
        "{share} * unused_weight", "0.998",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "new gamma, root of the old one", hdp_root, "resample",
        "draw_root(key_root, tables, {gamma})", "root.gamma",
        "geweke/sequential",
    ),
    testing.Mistake(
        "gamma counts all slots", hdp_root, "resample",
        "(tables > 0).sum()", "len(tables)",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "topics in use always take part", hdp_root, "open_slots",
        "time <= 1.0", "(time <= 1.0) | jnp.append(topic > 0, False)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "tokens below the threshold move too", hdp_lda, "_parallel_sweep",
        "~slots.taking_part[state.z]", "False",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "the tail beyond the slots is ignored", hdp_root, "open_slots",
        "drawn[-1]", "jnp.bool_(False)",
        "growth/parallel",
    ),
    testing.Mistake(
        "a split pays nothing for its new topic", split_merge, "log_ratio",
        "{jnp.log(gamma)} - log_share.sum(1)", "0.0",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "a merge does not ask how probable the split was", split_merge, "_move",
        "- ({log_proposal} +", "jnp.where(splits, log_proposal, 0.0)",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "the chance of the other side", split_proposal, "propose",
        "jnp.where({new == 0}, weights[:, 0]", "new == 1",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "anchors count as drawn", split_proposal, "propose",
        "there & {(wanted < 2)}", "True",
        "geweke/split-merge",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="hdp_lda",
    schedules={  # programs: Geweke's test has more documents
        "sequential": SEQUENTIAL,
        "parallel": OF_TURNS._replace(turns=(0,), growth=OF_TURNS.growth._replace(fewer=4)),
        "split-merge": OF_TURNS._replace(turns=(1,), growth=OF_TURNS.growth._replace(fewer=2)),
        "mixed": OF_TURNS._replace(turns=(0, 1, 2), effort=testing.Effort(500, 40, 200)),
    },
    mistakes=tuple(MISTAKES),
    skip=dict.fromkeys(
        [f"{check}/mixed" for check in ("geweke", "batch", "ranks", "invariants", "growth")],
        "each kind of sweep that it takes passes by itself",
    )
    | {
        "enumeration/fixed/mixed": "the shipped rotation is compared with the same posterior",
        "enumeration/*/split-merge": "alone it forgets too slowly; Geweke's test need not wait, "
        'and "mixed" enumerates with it',
        "batch/sequential": "test_gibbs.py of the library compares whole runs",
        "ranks/split-merge": '"parallel" traces the step for all turns',
    },
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def test_concentrations_without_priors_stay():
    state = testing.quick_jit(CASE.targets["fixed"].start)(jax.random.key(0))
    resample = testing.quick_jit(hdp_lda.resample)
    after = resample(jax.random.key(1), state, TINY.data, hdp_lda.HDPPriors())
    for name, value in FIXED.items():
        assert getattr(after.root if name == "gamma" else after, name) == value


def test_even_root_is_lda():
    data, num_topics, alpha, beta = TINY.data, 4, 1.7, jnp.float32(0.5)
    z = jnp.array([0, 3, 1, 1, 2, 1])
    doc_topic = token_corpora.tally(z, data.doc, 2, num_topics)
    word_topic = token_corpora.tally(z, data.word, 3, num_topics)
    counts = doc_topic, word_topic, doc_topic.sum(axis=0)
    even, zero = jnp.full(num_topics, 1 / num_topics), jnp.float32(0)
    alphas = alpha * even
    root = hdp_root.RootWeights(even, zero, counts[2], beta)
    state = hdp_lda.HDPState(z, *counts, root, jnp.float32(alpha), beta, jnp.bool_(False))
    finite = lda.LDAState(z, *counts, alphas, beta)
    np.testing.assert_allclose(
        testing.quick_jit(hdp_lda.log_joint)(state, data),
        testing.quick_jit(lda.log_joint)(finite, data),
        rtol=1e-6,
    )
    rows = doc_topic[0], word_topic[2], counts[2]
    options = {"beta": beta, "num_words": 3}
    weights, weight_new = hdp_lda.conditional(
        *rows, root_weights=even, unused_weight=zero, alpha=state.alpha, **options
    )
    expected = lda.conditional(*rows, alpha=alphas, **options)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert weight_new == 0
