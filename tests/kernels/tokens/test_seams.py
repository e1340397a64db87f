"""What the token sweeps offer to models, each in a small kernel of its own, against enumeration.

The data are one tiny corpus of two groups. Each kernel is a sweep of LDA with one thing changed;
its exact posterior is the sum over all assignments, computed in NumPy. Thresholds follow from the
harness's false-alarm rate, keys from the names of the tests.
"""

import itertools
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from bnp_kernels.processes import dirichlet_topics
from bnp_kernels.random import bits, categorical, gamma
from bnp_kernels.tokens import lanes, scan
from bnp_kernels.tokens.fold_in import fold_in
from bnp_kernels.tokens.left_to_right import left_to_right
from bnp_kernels.tokens.mixture_law import DirichletLaw, expected_shares
from bnp_kernels.tokens.scan import CountTable, PerRow, Weights
from bnp_models.testing import author_corpora, enumeration, token_corpora
from bnp_models.testing.compiled_sweeps import OPTIMISED
from bnp_models.testing.enumeration import log_dirichlet_multinomial
from bnp_models.testing.statistics import one_sample

DOCS = [[0, 1], [1, 1], [0, 2]]
GROUP = np.array([0, 1, 1])
NUM_WORDS, NUM_TOPICS, BETA = 3, 2, 0.5
DATA = token_corpora.lay_out(DOCS, num_lanes=2)
DOC, WORD = np.asarray(DATA.doc), np.asarray(DATA.word)
Z = enumeration.assignments(NUM_TOPICS, len(WORD))
ONE_PRIOR = np.array([0.5, 1.2], np.float32)
PRIORS = {
    "one for all": (ONE_PRIOR, None),
    "of groups": (np.array([[0.5, 1.2], [2.0, 0.3]], np.float32), GROUP),
    "of documents": (np.array([[0.1, 0.9], [2.0, 0.3], [0.7, 0.7]], np.float32), np.arange(3)),
}
NUM_CHAINS, NUM_WARMUP, NUM_SWEEPS = 2000, 20, 60


def count(assigned, row, num_rows, num_topics=NUM_TOPICS):
    """Count tokens by row and topic, [S, rows, K]."""
    topics, rows = np.eye(num_topics, dtype=int)[assigned], np.eye(num_rows, dtype=int)[row]
    return np.einsum("stk,tr->srk", topics, rows)


def log_documents(prior, row):
    concentration = prior if row is None else prior[row]
    return log_dirichlet_multinomial(count(Z, DOC, len(DOCS)), concentration).sum(axis=1)


def log_words(row=WORD, num_rows=NUM_WORDS, groups=1):
    of_topic = count(Z, row, num_rows).reshape(len(Z), groups, -1, NUM_TOPICS)
    return log_dirichlet_multinomial(of_topic.swapaxes(2, 3), BETA).sum(axis=(1, 2))


def quantities(z):
    return {"topic 0": z == 0, "coassigned": enumeration.coassignment(z)}


def check(title, sweep, log_joint, start):
    """Compare posterior means of many chains with those of the enumeration."""
    expected = enumeration.enumerate_posterior(Z, lambda z: log_joint, quantities).means(
        "topic 0", "coassigned"
    )

    def chain(key):
        def one(carry, i):
            z = sweep(jax.random.fold_in(key, i), *carry)
            sums = jax.tree.map(lambda x: (i >= NUM_WARMUP) * jnp.float32(x), quantities(z[0]))
            return z, sums

        _, kept = jax.lax.scan(one, start, jnp.arange(NUM_WARMUP + NUM_SWEEPS))
        return jax.tree.map(lambda x: x.sum(axis=0) / NUM_SWEEPS, kept)

    keys = jax.random.split(jax.random.key(zlib.crc32(title.encode())), NUM_CHAINS)
    means = jax.jit(jax.vmap(chain), compiler_options=OPTIMISED)(keys)
    report = one_sample(title, jax.tree.map(np.asarray, means), expected)
    report.check()
    return report


def draw_topics(key, z, row, num_rows, groups=1, log=False):
    """Draw the topic-word rows of each group given the assignments."""
    word_topic = token_corpora.tally(z, jnp.asarray(row), num_rows, NUM_TOPICS)
    tables = word_topic.reshape(groups, -1, NUM_TOPICS)
    return jnp.concatenate(
        [
            gamma.draw_topic_word(bits.fold_in(key, g), tables[g], jnp.float32(BETA), log=log)
            for g in range(groups)
        ]
    )


def parallel(key, z, row=DATA.word, num_rows=NUM_WORDS, groups=1, prior=ONE_PRIOR, **options):
    key_phi, key_z = bits.split(key)
    phi = draw_topics(key_phi, z, row, num_rows, groups, log="tilt" in options)
    doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
    return (lanes.sweep_lanes(key_z, DATA.lanes, z, doc_topic, phi, jnp.array(prior), **options),)


START = (jnp.zeros(len(WORD), jnp.int32),)


def check_pairs(title, sweep, pairs, log_joint, measured, start):
    """Compare chains of topics and outcomes with the enumeration of both.

    `sweep` may return a third number: how many counts are wrong after it.
    """
    exact = enumeration.enumerate_posterior(
        pairs[0], lambda _: log_joint, lambda _: measured(*pairs)
    )

    def chain(key):
        def one(carry, i):
            z, x, *wrong = sweep(jax.random.fold_in(key, i), *carry[:2])
            sums = {n: (i >= NUM_WARMUP) * jnp.float32(q) for n, q in measured(z, x).items()}
            return (z, x, sum(wrong, carry[2])), sums

        (*_, wrong), kept = jax.lax.scan(
            one, (*start, jnp.int32(0)), jnp.arange(NUM_WARMUP + NUM_SWEEPS)
        )
        return wrong, jax.tree.map(lambda x: x.sum(axis=0) / NUM_SWEEPS, kept)

    keys = jax.random.split(jax.random.key(zlib.crc32(title.encode())), NUM_CHAINS)
    wrong, means = jax.jit(jax.vmap(chain), compiler_options=OPTIMISED)(keys)
    assert not wrong.any()  # counts are those of the assignments
    report = one_sample(title, jax.tree.map(np.asarray, means), exact.means())
    report.check()
    print(report)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["of groups", "of documents"])
def test_priors_of_rows(which):
    prior, row = PRIORS[which]

    def sweep(key, z):
        return parallel(key, z, prior=prior, prior_row=jnp.asarray(row))

    print(check(f"prior {which}", sweep, log_documents(prior, row) + log_words(), START))


@pytest.mark.slow
def test_one_row_is_no_row():
    key, z = jax.random.key(0), START[0]
    plain = parallel(key, z)[0]
    rows = parallel(key, z, prior=ONE_PRIOR[None], prior_row=jnp.zeros(3, jnp.int32))[0]
    np.testing.assert_array_equal(plain, rows)


@pytest.mark.slow
def test_tables_of_groups():
    row = GROUP[DOC] * NUM_WORDS + WORD
    first = jnp.asarray(GROUP * NUM_WORDS)

    def sweep(key, z):
        return parallel(key, z, row, 2 * NUM_WORDS, 2, table_row=first)

    log_joint = log_documents(ONE_PRIOR, None) + log_words(row, 2 * NUM_WORDS, 2)
    print(check("tables of groups", sweep, log_joint, START))


LABEL, ETA = np.array([1.0, -1.0, 1.0], np.float32), np.array([3.0, -2.0], np.float32)


def label_tilt(counts, of_doc, eta):
    """Weigh the label of a document by each topic that the token may have (logistic)."""
    label, length = of_doc
    eta = categorical.pad_topics(eta)
    return jax.nn.log_sigmoid(label * ((counts * eta).sum() + eta) / length)


@pytest.mark.slow
def test_tilts():
    lengths = np.array([len(words) for words in DOCS], np.float32)

    def sweep(key, z):
        docs = jnp.asarray(LABEL), jnp.asarray(lengths)
        return parallel(key, z, tilt=label_tilt, tilt_docs=docs, tilt_shared=jnp.asarray(ETA))

    score = count(Z, DOC, len(DOCS)) @ ETA / lengths
    log_labels = np.log(expit(LABEL * score)).sum(axis=1)
    log_joint = log_documents(ONE_PRIOR, None) + log_words() + log_labels
    print(check("tilts", sweep, log_joint, START))


def test_seams_do_not_depend_on_the_lanes():
    """All of them together, in one lane and in three."""
    key, z = jax.random.key(1), jnp.array([0, 1, 1, 0, 0, 1])
    doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
    table = jnp.log(jax.random.uniform(jax.random.key(2), (2 * NUM_WORDS, NUM_TOPICS)))
    options = {
        "prior_row": jnp.asarray(GROUP), "table_row": jnp.asarray(GROUP * NUM_WORDS),
        "tilt": label_tilt, "tilt_docs": (jnp.asarray(LABEL), jnp.full(3, 2.0)),
        "tilt_shared": jnp.asarray(ETA),
    }  # fmt: skip
    prior = jnp.asarray(PRIORS["of groups"][0])

    def swept(num_lanes):
        data = token_corpora.lay_out(DOCS, num_lanes=num_lanes)
        return lanes.sweep_lanes(key, data.lanes, z, doc_topic, table, prior, **options)

    np.testing.assert_array_equal(swept(1), swept(3))


# ---- the sequential sweep


def sequential(key, z, weigh, **options):
    """Sweep with a kernel that says how its tokens weigh."""
    word_topic = token_corpora.tally(z, DATA.word, NUM_WORDS, NUM_TOPICS)
    doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
    tables = {
        "word": CountTable(word_topic, DATA.word),
        "topic": CountTable(word_topic.sum(axis=0)),
    }
    swept = scan.scan_tokens(weigh, key, DATA.buckets, z, doc_topic, tables, **options)
    return (swept.z,)


def test_what_belongs_to_documents():
    """Priors and labels of documents, token after token."""
    prior = PRIORS["of documents"][0]
    lengths = np.array([len(words) for words in DOCS], np.float32)

    def weigh(doc, word, topic, prior, label, length, eta):
        words = (word + BETA) / (topic + NUM_WORDS * BETA)
        score = (jnp.where(eta == 0, 0, doc * eta).sum() + eta) / length
        return Weights(jnp.maximum((doc + prior) * words * jax.nn.sigmoid(label * score), 0))

    def sweep(key, z):
        return sequential(
            key, z, weigh, per_topic={"eta": jnp.asarray(ETA)},
            per_doc_topic={"prior": jnp.asarray(prior)},
            per_doc={"label": jnp.asarray(LABEL), "length": jnp.asarray(lengths)},
        )  # fmt: skip

    log_labels = np.log(expit(LABEL * (count(Z, DOC, len(DOCS)) @ ETA / lengths))).sum(axis=1)
    log_joint = log_documents(prior, np.arange(3)) + log_words() + log_labels
    print(check("what belongs to documents", sweep, log_joint, START))


# ---- the sequential sweep with outcomes: a token is common to all groups, or specific to its own

COMMON = 0.6


def test_outcomes_with_tables_of_their_own():
    """Cross-collection LDA with a fixed share of common words: outcomes 0 (common) and 1."""
    num_tokens, own_row = len(WORD), GROUP[DOC] * NUM_WORDS + WORD
    both = enumeration.assignments(2 * NUM_TOPICS, num_tokens)  # outcome and topic of each token
    x, z = both // NUM_TOPICS, both % NUM_TOPICS

    def log_of_words(row, num_rows, outcome):
        topics = np.where(x == outcome, z, NUM_TOPICS)  # others count in a topic of no interest
        of_topic = count(topics, row, num_rows, NUM_TOPICS + 1)[..., :NUM_TOPICS]
        of_topic = of_topic.reshape(len(both), -1, NUM_WORDS, NUM_TOPICS).swapaxes(2, 3)
        return log_dirichlet_multinomial(of_topic, BETA).sum(axis=(1, 2))

    log_joint = log_dirichlet_multinomial(count(z, DOC, len(DOCS)), ONE_PRIOR).sum(axis=1)
    log_joint = log_joint + log_of_words(WORD, NUM_WORDS, 0)
    log_joint = log_joint + log_of_words(own_row, 2 * NUM_WORDS, 1)
    log_joint = log_joint + np.where(x == 0, np.log(COMMON), np.log(1 - COMMON)).sum(axis=1)

    def measured(z, x):
        return quantities(z) | {"common": x == 0, "common of topic 0": (x == 0) & (z == 0)}

    def weigh(doc, common, of_common, own, of_own, alpha):
        def words(n_vk, n_k):
            return (n_vk + BETA) / (n_k + NUM_WORDS * BETA)

        shares = COMMON * words(common, of_common), (1 - COMMON) * words(own, of_own)
        return Weights(jnp.stack([jnp.maximum((doc + alpha) * share, 0) for share in shares]))

    def sweep(key, z, x):
        first, second = (jnp.where(x == outcome, z, NUM_TOPICS) for outcome in (0, 1))

        def tally(topics, row, num_rows):
            counts = token_corpora.tally(topics, jnp.asarray(row), num_rows, NUM_TOPICS + 1)
            return counts[:, :NUM_TOPICS]

        tables = {
            "common": CountTable(tally(first, WORD, NUM_WORDS), DATA.word, (1, 0)),
            "of_common": CountTable(tally(first, WORD, NUM_WORDS).sum(axis=0), None, (1, 0)),
            "own": CountTable(tally(second, own_row, 2 * NUM_WORDS), jnp.asarray(own_row), (0, 1)),
            "of_own": CountTable(tally(second, GROUP[DOC], 2), jnp.asarray(GROUP[DOC]), (0, 1)),
        }
        doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
        swept = scan.scan_tokens(
            weigh, key, DATA.buckets, z, doc_topic, tables,
            per_topic={"alpha": jnp.asarray(ONE_PRIOR)}, x=x,
        )  # fmt: skip
        fresh = jnp.where(swept.x == 1, swept.z, NUM_TOPICS)
        wrong = (swept.tables["own"] != tally(fresh, own_row, 2 * NUM_WORDS)).sum()
        return swept.z, swept.x, wrong

    check_pairs("outcomes", sweep, (z, x), log_joint, measured, (*START, *START))


# ---- the sequential sweep with an outcome that is drawn anew: a token is marked or not

MARKED, BETA_MARKED = 0.3, 2.0


def marks(key, z, marked, limit=None):
    """Sweep LDA with marked tokens, whose words have another concentration.

    The state counts the marked tokens of each cell, and does not say which ones they are.
    """
    word_topic = token_corpora.tally(z, DATA.word, NUM_WORDS, NUM_TOPICS)
    tables = {
        "word": CountTable(word_topic, DATA.word),
        "marked": CountTable(marked, DATA.word, (0, 1)),
        "topic": CountTable(word_topic.sum(axis=0)),
        "of_marked": CountTable(marked.sum(axis=0), None, (0, 1)),
    }

    def weigh(doc, word, marked, topic, of_marked, alpha, share):
        plain = (word - marked + BETA) / (topic - of_marked + NUM_WORDS * BETA)
        special = (marked + BETA_MARKED) / (of_marked + NUM_WORDS * BETA_MARKED)
        both = jnp.stack([(1 - share) * plain, share * special])
        overflow = None if limit is None else (marked >= limit).any()
        return Weights(jnp.maximum((doc + alpha) * both, 0), overflow=overflow)

    def leave(word, marked, topic, of_marked, alpha, share):
        return marked / word

    doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
    return scan.scan_tokens(
        weigh, key, DATA.buckets, z, doc_topic, tables, leave=leave,
        per_topic={"alpha": jnp.asarray(ONE_PRIOR)}, constants={"share": jnp.float32(MARKED)},
        overflow=None if limit is None else jnp.zeros((), bool),
    )  # fmt: skip


def test_outcomes_that_are_drawn_when_a_token_leaves():
    num_tokens = len(WORD)
    both = enumeration.assignments(2 * NUM_TOPICS, num_tokens)
    x, z = both // NUM_TOPICS, both % NUM_TOPICS
    log_joint = log_dirichlet_multinomial(count(z, DOC, len(DOCS)), ONE_PRIOR).sum(axis=1)
    log_joint = log_joint + np.where(x == 1, np.log(MARKED), np.log(1 - MARKED)).sum(axis=1)
    cells = []
    for outcome, beta in ((0, BETA), (1, BETA_MARKED)):
        topics = np.where(x == outcome, z, NUM_TOPICS)
        cells.append(count(topics, WORD, NUM_WORDS, NUM_TOPICS + 1)[..., :NUM_TOPICS])
        log_joint = log_joint + log_dirichlet_multinomial(cells[-1].swapaxes(1, 2), beta).sum(1)

    def measured(z, marked):
        each = quantities(z) | {"marked": marked, "marked^2": (marked**2).sum(axis=(-2, -1))}
        return each | {"marked of a topic": (marked.sum(axis=-2) ** 2).sum(axis=-1)}

    exact = enumeration.enumerate_posterior(
        both, lambda _: log_joint, lambda _: measured(z, cells[1])
    )

    def chain(key):
        def one(carry, i):
            swept = marks(jax.random.fold_in(key, i), *carry[:2])
            z, marked = swept.z, swept.tables["marked"]
            fresh = token_corpora.tally(z, DATA.word, NUM_WORDS, NUM_TOPICS)
            wrong = (swept.tables["word"] != fresh).sum() + (marked > fresh).sum()
            wrong += (marked < 0).sum()
            wrong += (swept.tables["of_marked"] != marked.sum(axis=0)).sum()
            sums = {
                n: (i >= NUM_WARMUP) * jnp.asarray(q, jnp.float32)
                for n, q in measured(z, marked).items()
            }
            return (z, marked, carry[2] + wrong), sums

        start = (*START, jnp.zeros((NUM_WORDS, NUM_TOPICS), jnp.int32), jnp.int32(0))
        (*_, wrong), kept = jax.lax.scan(one, start, jnp.arange(NUM_WARMUP + NUM_SWEEPS))
        return wrong, jax.tree.map(lambda x: x.sum(axis=0) / NUM_SWEEPS, kept)

    keys = jax.random.split(jax.random.key(zlib.crc32(b"marks")), NUM_CHAINS)
    wrong, means = jax.jit(jax.vmap(chain), compiler_options=OPTIMISED)(keys)
    assert not wrong.any()
    report = one_sample("marks", jax.tree.map(np.asarray, means), exact.means())
    report.check()
    print(report)


def test_weights_can_ask_for_more_room():
    """The flag is raised if any token of the sweep asks; no draw depends on one that is not."""
    key, z = jax.random.key(3), jnp.array([0, 1, 1, 0, 0, 1])
    none = jnp.zeros((NUM_WORDS, NUM_TOPICS), jnp.int32)
    plain, enough, short = (marks(key, z, none, limit) for limit in (None, 7, 1))
    assert plain.overflow is None
    assert not enough.overflow
    assert short.overflow
    np.testing.assert_array_equal(plain.z, enough.z)
    jax.tree.map(np.testing.assert_array_equal, plain.tables, enough.tables)


# ---- a prior weight for each word, or for each word of each topic

WORD_PRIORS = {
    "of words": np.array([[0.2], [1.5], [0.6]], np.float32),
    "of words and topics": np.array([[0.2, 2.0], [1.5, 0.3], [0.6, 0.6]], np.float32),
}


@pytest.mark.parametrize("schedule", ["sequential", "parallel"])
@pytest.mark.parametrize("which", WORD_PRIORS)
def test_priors_of_words(which, schedule):
    beta = jnp.asarray(WORD_PRIORS[which])
    whole = np.broadcast_to(WORD_PRIORS[which], (NUM_WORDS, NUM_TOPICS))
    of_topic = count(Z, WORD, NUM_WORDS).swapaxes(1, 2)
    words = log_dirichlet_multinomial(of_topic, whole.T).sum(axis=1)

    def weigh(doc, word, topic, alpha, beta, total):
        some = total > 0  # not the padding, where all is zero
        return Weights((doc + alpha) * (word + beta) / jnp.where(some, topic + total, 1))

    def one_by_one(key, z):
        return sequential(
            key, z, weigh, per_row={"beta": PerRow(jnp.asarray(whole), DATA.word)},
            per_topic={"alpha": jnp.asarray(ONE_PRIOR), "total": jnp.asarray(whole.sum(axis=0))},
        )  # fmt: skip

    def side_by_side(key, z):
        key_phi, key_z = bits.split(key)
        word_topic = token_corpora.tally(z, DATA.word, NUM_WORDS, NUM_TOPICS)
        phi = gamma.draw_topic_word(key_phi, word_topic, beta)
        doc_topic = token_corpora.tally(z, DATA.doc, len(DOCS), NUM_TOPICS)
        return (lanes.sweep_lanes(key_z, DATA.lanes, z, doc_topic, phi, jnp.asarray(ONE_PRIOR)),)

    sweep = one_by_one if schedule == "sequential" else side_by_side
    print(check(f"prior {which}, {schedule}", sweep, log_documents(ONE_PRIOR, None) + words, START))
    for s, z in enumerate(Z[::7]):
        word_topic = token_corpora.tally(jnp.asarray(z), DATA.word, NUM_WORDS, NUM_TOPICS)
        found = dirichlet_topics.log_words(word_topic, word_topic.sum(axis=0), beta)
        np.testing.assert_allclose(found, words[7 * s], rtol=1e-5)


# ---- what belongs to the rows of a desk, where they are authors

AUTHORS, NUM_AUTHORS = [[0, 1], [1], [0, 2]], 3
AUTHOR_PRIOR = np.array([[0.5, 1.2], [2.0, 0.3], [0.1, 0.9]], np.float32)


def test_what_belongs_to_authors():
    """Each author has prior weights of the topics."""
    data = author_corpora.lay_out(DOCS, AUTHORS, NUM_AUTHORS)
    possible = np.array(list(itertools.product(*(AUTHORS[d] for d in DOC))))
    z = np.repeat(Z, len(possible), axis=0)
    x = np.tile(possible, (len(Z), 1))
    of_author = np.stack(
        [count(np.where(x == j, z, 2), 0 * WORD, 1, 3)[:, 0, :2] for j in range(NUM_AUTHORS)], 1
    )
    of_words = log_dirichlet_multinomial(count(z, WORD, NUM_WORDS).swapaxes(1, 2), BETA)
    log_joint = log_dirichlet_multinomial(of_author, AUTHOR_PRIOR).sum(axis=1) + of_words.sum(
        axis=1
    )

    def measured(z, x):
        return quantities(z) | {"author 0": x == 0, "author 0 in topic 0": (x == 0) & (z == 0)}

    def weigh(doc, total, word, topic, prior, of_all):
        shares = jnp.maximum((doc + prior) / (total + of_all), 0)
        return Weights(shares, factor=word + BETA, divisor=topic + NUM_WORDS * BETA)

    def sweep(key, z, x):
        tables = {
            "word": CountTable(token_corpora.tally(z, data.word, NUM_WORDS, 2), data.word),
            "topic": CountTable(token_corpora.tally(z, 0 * data.word, 1, 2)[0]),
        }
        author_topic = token_corpora.tally(z, x, NUM_AUTHORS, 2)
        swept = scan.scan_tokens(
            weigh, key, data.buckets, z, author_topic, tables, x=x, total=author_topic.sum(axis=1),
            per_doc_topic={"prior": jnp.asarray(AUTHOR_PRIOR)},
            per_doc={"of_all": jnp.asarray(AUTHOR_PRIOR.sum(axis=1))},
        )  # fmt: skip
        return swept.z, swept.x

    first = jnp.asarray([AUTHORS[d][0] for d in DOC], jnp.int32)
    check_pairs("authors", sweep, (z, x), log_joint, measured, (*START, first))


# ---- a token with two topics

OUTER_PRIOR, INNER_PRIOR = 0.7, np.array([[0.5, 1.2], [1.0, 0.4]], np.float32)


def test_two_topics_of_a_token():
    """Two levels of topics: a document has shares of outer topics, and of inner ones in each."""
    both = enumeration.assignments(4, len(WORD))
    x, z = both // 2, both % 2
    of_doc = count(both, DOC, len(DOCS), 4).reshape(len(both), len(DOCS), 2, 2)
    log_joint = log_dirichlet_multinomial(of_doc.sum(axis=3), OUTER_PRIOR).sum(axis=1)
    log_joint = log_joint + log_dirichlet_multinomial(of_doc, INNER_PRIOR).sum(axis=(1, 2))
    of_words = log_dirichlet_multinomial(count(z, WORD, NUM_WORDS).swapaxes(1, 2), BETA)
    log_joint = log_joint + of_words.sum(axis=1)

    def measured(z, x):
        same = enumeration.coassignment(x)
        return quantities(z) | {"outer": x == 0, "outer and inner": x == z, "same outer": same}

    def weigh(doc, word, topic, first, second, prior_first, prior_second):
        words = (word + BETA) / (topic + NUM_WORDS * BETA)
        each = []
        for counts, prior in ((first, prior_first), (second, prior_second)):
            total = counts.sum()
            each.append((total + OUTER_PRIOR) * (counts + prior) / (total + prior.sum()) * words)
        return Weights(jnp.maximum(jnp.stack(each), 0))

    def sweep(key, z, x):
        def of_outer(outcome):
            return token_corpora.tally(jnp.where(x == outcome, z, 2), DATA.doc, len(DOCS), 3)[:, :2]

        word_topic = token_corpora.tally(z, DATA.word, NUM_WORDS, 2)
        tables = {
            "word": CountTable(word_topic, DATA.word, (1, 1)),
            "topic": CountTable(word_topic.sum(axis=0), None, (1, 1)),
            "first": CountTable(of_outer(0), DATA.doc, (1, 0)),
            "second": CountTable(of_outer(1), DATA.doc, (0, 1)),
        }
        swept = scan.scan_tokens(
            weigh, key, DATA.buckets, z, token_corpora.tally(z, DATA.doc, len(DOCS), 2), tables,
            x=x, per_topic={
                "prior_first": jnp.asarray(INNER_PRIOR[0]),
                "prior_second": jnp.asarray(INNER_PRIOR[1]),
            },
        )  # fmt: skip
        return swept.z, swept.x

    check_pairs("two topics", sweep, (z, x), log_joint, measured, (*START, *START))


# ---- a law of the shares of a new document that no model of the library has


class TwoLevelLaw(NamedTuple):
    """Shares of outer topics from Dir(outer), and of the inner topics in each from Dir(weights)."""

    weights: jax.Array
    outer: jax.Array  # outer topic of each topic
    outer_weight: jax.Array  # of this outer topic

    def weigh(self, counts):
        same = self.outer[..., None, :] == self.outer[..., :, None]
        total, of_outer = ((same * x[..., None, :]).sum(-1) for x in (counts, self.weights))
        return (total + self.outer_weight) * (counts + self.weights) / (total + of_outer)

    def log_total(self, length):
        first = np.unique(self.outer, return_index=True)[1]
        return DirichletLaw(self.outer_weight[first]).log_total(length)


TWO_LEVELS = TwoLevelLaw(
    np.array([0.5, 1.2, 0.3]), np.array([0.0, 0.0, 1.0]), np.array([0.7, 0.7, 2.0])
)
NEW_PHI = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]]).T


def test_another_law_of_new_documents():
    """Shares by fold-in, and the evidence by left-to-right."""
    document, copies = [0, 2, 2, 1], 2000
    every = np.array(list(itertools.product(range(3), repeat=4)))
    joint, shares = np.ones(len(every)), np.zeros((len(every), 3))
    for s, z in enumerate(every):
        counts = np.zeros(3)
        for v, k in zip(document, z, strict=True):
            joint[s] *= TWO_LEVELS.weigh(counts)[k] * NEW_PHI[v, k]
            counts[k] += 1
        shares[s] = expected_shares(TWO_LEVELS, counts)[0]
    law = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32)[None], TWO_LEVELS)
    phi = jnp.asarray(NEW_PHI, jnp.float32)[None]
    data = token_corpora.lay_out([document] * copies)
    found = fold_in(jax.random.key(3), data, phi, law, num_sweeps=30, num_kept=15)
    report = one_sample(
        "shares", {"share": np.asarray(found, np.float64)}, {"share": joint @ shares / joint.sum()}
    )
    report.check()
    word = jnp.tile(jnp.array(document)[:, None], copies)
    length, doc = jnp.full(copies, 4), jnp.arange(copies)
    run = left_to_right(jax.random.key(4), word, length, doc, phi, law, num_particles=20)
    log_total = TWO_LEVELS.log_total(np.array([4]))
    excess = log_total - DirichletLaw(TWO_LEVELS.weights).log_total(np.array([4]))
    means = np.exp(np.asarray(run.log_product, np.float64) - excess).mean(axis=1)
    exact = joint.sum() / np.exp(log_total[0])
    one_sample("evidence", {"evidence": means}, {"evidence": exact}).check()
