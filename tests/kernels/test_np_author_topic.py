"""The nonparametric author-topic model's kernels: enumeration, Geweke, densities, limits, mistakes.

All checks but the limits come from the harness and its family of rooted topic models; this file
holds the data. Thresholds follow from the harness's false-alarm rate, seeds from the names of the
checks. With the efforts below enumeration sees biases of 0.006 (sequential), 0.01 (parallel) and
0.014 (mixed) in a probability, Geweke's test of 0.1 standard deviations.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from bnp_kernels import author_topic, hdp_lda, np_author_topic
from bnp_kernels.processes import hdp_root, split_merge
from bnp_kernels.tokens import scan
from bnp_models import NonparametricAuthorTopicModel, testing
from bnp_models.testing import author_corpora as tiny
from bnp_models.testing import token_corpora
from bnp_models.testing.hdp_case import CAPACITY, FIXED

DOCS = [[0, 0, 1], [1, 2, 2]]
TINY = testing.TinyCorpus(DOCS, 3, [[0, 1], [1]], 2, layout={"block_size": 4})
# The first document has an empty place in its bucket, the last author has no document.
JOINT = testing.TinyCorpus(
    [[0] * 5, [0] * 4, [0] * 4], 3, [[0, 1, 2], [1], [2, 0]], 4, layout={"block_size": 8}
)


def weigh(state, data, token):
    """Weigh every author and slot as the sweep does, and a new topic for every author."""
    num_words, capacity = state.word_topic.shape
    minus, root = jnp.arange(capacity) == state.z[token], state.root
    own = jnp.arange(data.num_authors) == state.x[token]
    weights: Any = np_author_topic.conditional(
        state.author_topic - own[:, None] * minus, (state.author - own)[:, None],
        state.word_topic[data.word[token]] - minus, state.topic - minus,
        root_weights=root.weights, unused_weight=root.unused, alpha=state.alpha, beta=state.beta,
        num_words=num_words,
    )  # fmt: skip
    return weights.topics * weights.factor / weights.divisor, weights.new[:, 0]


FAMILY = testing.HDPCase(
    np_author_topic, NonparametricAuthorTopicModel, np_author_topic.AuthorHDPState,
    hdp_lda.HDPPriors, weigh, TINY, JOINT,
)  # fmt: skip
SEQUENTIAL = testing.Schedule(
    testing.late(np_author_topic, "step", sweeps=("sequential",)),
    FAMILY.growth(CAPACITY, 3),
    num_programs=2,
)  # fmt: skip
OF_TURNS = testing.Schedule(
    testing.late(np_author_topic, "step", sweeps=("parallel", "split-merge")), FAMILY.growth(48),
    testing.Effort(500, 40, 320),
    num_programs=2,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weights without the authors' denominators", np_author_topic, "share",
        "1 / (n_j + total)", "jnp.ones_like(n_j + total)",
        "conditional",
    ),
    testing.Mistake(
        "authors' denominators are missing", np_author_topic, "share",
        "1 / (n_j + total)", "jnp.ones_like(n_j + total)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own count stays with the author", scan, "_scan_chains",
        "doc={without}, total", "desk.topic",
        "enumeration/fixed/sequential",
    ),
    *token_corpora.root_mistakes(FIXED["alpha"]),
    testing.Mistake(
        "author drawn before the topic", scan, "_scan_chains",
        "_draw_outcome({weights}, ", "jnp.ones_like(weights)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "any author opens a new topic", scan, "_scan_chains",
        ", {new_topic}, code", "jnp.ones_like(new_topic)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "tokens below the threshold move too", np_author_topic, "_parallel_sweep",
        "~slots.taking_part[state.z]", "False",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "mixtures without the topics that wait", np_author_topic, "_draw_mixtures",
        "draw_rows(rng_key, concentration, {rest})", "jnp.zeros_like(rest)",
        "enumeration/hyper/parallel",
    ),
    testing.Mistake(
        "the tail beyond the slots is ignored", hdp_root, "open_slots",
        "drawn[-1]", "jnp.bool_(False)",
        "growth/parallel",
    ),
    testing.Mistake(
        "documents are split, not authors", np_author_topic, "_split_merge_sweep",
        "rng_key, {state.x}, data.word", "data.doc",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "a tenth of the authors' concentration", np_author_topic, "_split_merge_sweep",
        "alpha={state.alpha}", "0.1 * state.alpha",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "the share of a split is free", split_merge, "log_ratio",
        "- {log_share.sum(1)}", "0.0",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "the density of the proposed share is missing", split_merge, "_move",
        "+ {_log_beta_density(log_share, proposal)}", "0.0",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "the accepted weights are lost", np_author_topic, "_split_merge_sweep",
        "state.x, {moved.root_weights}, moved.overflow", "state.root.weights",
        "geweke/split-merge",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="np_author_topic",
    schedules={  # programs: Geweke's test has more documents
        "sequential": SEQUENTIAL,
        "parallel": OF_TURNS._replace(turns=(0,), growth=OF_TURNS.growth._replace(fewer=4)),
        "split-merge": OF_TURNS._replace(turns=(1,), growth=OF_TURNS.growth._replace(fewer=2)),
        "mixed": OF_TURNS._replace(turns=(0, 1), effort=testing.Effort(500, 40, 200)),
    },
    mistakes=tuple(MISTAKES),
    skip=dict.fromkeys(
        [f"{check}/mixed" for check in ("geweke", "batch", "ranks", "invariants", "growth")],
        "each kind of sweep that it takes passes by itself",
    )
    | {
        "enumeration/fixed/mixed": "the shipped rotation is compared with the same posterior",
        "enumeration/*/split-merge": "alone it changes no author; Geweke's test need not mix, and "
        '"mixed" enumerates with it',
        "ranks/split-merge": '"parallel" traces the step for all turns',
        "batch/parallel": "it is about loops over chains, and this sweep has none",
    },
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def state_of(data, x, z, root, pool, alpha):
    root, half = jnp.array(root, jnp.float32), jnp.float32(0.5)
    corpus = testing.TinyCorpus(DOCS, 3, [], data.num_authors)
    root = hdp_root.RootWeights(root, jnp.float32(pool), jnp.zeros(len(root), jnp.int32), half)
    return FAMILY.make_state(
        corpus, z, x, data.word, len(root.weights), alpha=jnp.float32(alpha), beta=half,
        overflow=jnp.bool_(False), root=root,
    )  # fmt: skip


def as_hdp(state, doc_topic):
    """Return the state of the HDP topic model with the same topics and root."""
    same = {n: x for n, x in state._asdict().items() if n in hdp_lda.HDPState._fields}
    return hdp_lda.HDPState(doc_topic=doc_topic, **same)


def test_lonely_authors_are_documents():
    z, root = [0, 1, 1, 2, 2, 0], [0.4, 0.2, 0.3]
    private = tiny.lay_out(DOCS, [[1], [0]], 2)
    state = state_of(private, [1, 1, 1, 0, 0, 0], z, root, 0.1, 1.7)
    data = token_corpora.lay_out(DOCS)
    same = as_hdp(state, state.author_topic[::-1])
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, private),
        testing.quick_jit(hdp_lda.log_joint)(same, data),
        rtol=1e-6,
    )
    one = tiny.lay_out(DOCS, [[0], [0]], 1)
    whole = token_corpora.lay_out([[*DOCS[0], *DOCS[1]]])
    state = state_of(one, [0] * 6, z, root, 0.1, 1.7)
    same = as_hdp(state, state.author_topic)
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, one),
        testing.quick_jit(hdp_lda.log_joint)(same, whole),
        rtol=1e-6,
    )


def test_even_root_is_the_finite_model():
    data, z, x = TINY.data, [0, 3, 1, 1, 2, 1], [0, 0, 1, 1, 1, 1]
    state = state_of(data, x, z, [0.25] * 4, 0.0, 1.7)
    finite = author_topic.AuthorTopicState(*state[:6], jnp.full(4, 1.7 / 4), state.beta)
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, data),
        testing.quick_jit(author_topic.log_joint)(finite, data),
        rtol=1e-6,
    )
