"""The author-topic model's kernels: enumeration, Geweke, densities, invariants, limits, mistakes.

All checks but the limits come from the harness; this file holds the data. Thresholds follow from
the harness's false-alarm rate, seeds from the names of the checks. With the efforts below
enumeration sees biases of about 0.006 in a probability, Geweke of about 0.07 standard deviations.
Posteriors with fixed concentrations are those with sharp priors: their difference, of order
1 / `SHARP`, is far below that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from bnp_kernels import author_topic, lda
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.tokens import author_sweeps
from bnp_kernels.tokens.author_layout import make_author_tokens
from bnp_models import testing
from bnp_models.author_topic import AuthorTopicModel
from bnp_models.data.corpus import Corpus
from bnp_models.testing import author_corpora as tiny
from bnp_models.testing import simulate, token_corpora

DOCS, AUTHORS, NUM_AUTHORS = [[0, 0, 1], [1, 2, 2]], [[0, 1], [1]], 2
NUM_WORDS = 3
FIXED = {"alpha": (0.5, 1.2), "beta": 0.5}
SHARP = 1e5  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x
ALPHA_PRIOR, BETA_PRIOR = (2.0, 2.0), (2.0, 4.0)  # concentration and rate


def gamma_prior(concentration, rate, shape=()):
    return GammaPrior(np.full(shape, concentration, np.float32), np.float32(rate))


def sharp(value):
    return gamma_prior(np.multiply(value, SHARP), SHARP, np.shape(value))


# ---- posteriors that are known exactly


def pairs(c01, c02, c03, c04, c23, c24, c34, c45):
    """Values of pairs of the six tokens: equal words of a document share theirs."""
    return [c01, c02, c03, c04, c04, c02, c03, c04, c04, c23, c24, c24, c34, c34, c45]


def posterior_quantities(state, data):
    same = tiny.same_pair(state.z, state.x)
    values = {
        "one_topic": (state.topic > 0).sum() == 1,
        "first_author": state.x[:3] == 0,
        "coassigned": token_corpora.coassigned(state.z),
        "same_pair": same[jnp.array([0, 1, 2, 5, 6, 9])],  # 01, 02, 03, 12, 13, 23
        "alpha": state.alpha[0],
        "beta": state.beta,
        "topic": state.topic,
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(alpha, priors, expected):
    data = tiny.lay_out(DOCS, AUTHORS, NUM_AUTHORS, block_size=4)

    def start(rng_key):
        return author_topic.init(
            rng_key, data, num_words=NUM_WORDS, num_topics=2,
            alpha=jnp.array(alpha, jnp.float32), beta=FIXED["beta"],
        )  # fmt: skip

    return testing.Target(data, priors, start, posterior_quantities, expected)


TARGETS = {
    "fixed": target(
        FIXED["alpha"],
        author_topic.AuthorTopicPriors(sharp(FIXED["alpha"]), sharp(FIXED["beta"])),
        {
            "one_topic": 0.156702,
            "first_author": [0.552555, 0.552555, 0.479436],
            "coassigned": pairs(
                0.767535, 0.524097, 0.501897, 0.484897, 0.745335, 0.561079, 0.635637, 0.819893
            ),
            "same_pair": [0.461445, 0.299033, 0.264513, 0.299033, 0.264513, 0.424699],
            "topic": [2.180172, 3.819828],
        },
    ),
    "symmetric": target(
        (1.0, 1.0),
        author_topic.AuthorTopicPriors(gamma_prior(*ALPHA_PRIOR), gamma_prior(*BETA_PRIOR)),
        {
            "one_topic": 0.100141,
            "first_author": [0.561234, 0.561234, 0.474472],
            "coassigned": pairs(
                0.747590, 0.473509, 0.448021, 0.436703, 0.722102, 0.530191, 0.618192, 0.810103
            ),
            "same_pair": [0.464257, 0.281064, 0.243891, 0.281064, 0.243891, 0.425353],
            "alpha": 1.029809,
            "beta": 0.656878,
            "topic": [3.0, 3.0],
        },
    ),
}


# ---- the joint law of everything, from the prior

# The first document has an empty place in its bucket, the last author has no document.
JOINT_DOCS, JOINT_AUTHORS = [[0] * 5, [0] * 4, [0] * 4], [[0, 1, 2], [1], [2, 0]]
JOINT_PEOPLE, JOINT_WORDS, JOINT_TOPICS = 4, 3, 3
JOINT_DATA = tiny.lay_out(JOINT_DOCS, JOINT_AUTHORS, JOINT_PEOPLE, 8)


def states(alpha, beta, x, z, word):
    author_topic_counts = simulate.tally(z, x, JOINT_PEOPLE, JOINT_TOPICS)
    word_topic = simulate.tally(z, word, JOINT_WORDS, JOINT_TOPICS)
    data = jax.vmap(lambda w: tiny.with_words(JOINT_DATA, w))(np.asarray(word, np.int32))
    state = author_topic.AuthorTopicState(
        z=np.asarray(z, np.int32),
        x=np.asarray(x, np.int32),
        author_topic=author_topic_counts,
        word_topic=word_topic,
        topic=word_topic.sum(axis=1),
        author=author_topic_counts.sum(axis=2),
        alpha=np.asarray(alpha, np.float32),
        beta=np.asarray(beta, np.float32),
    )
    return state, data


def simulate_prior(rng, size):
    alpha = rng.gamma(ALPHA_PRIOR[0], 1 / ALPHA_PRIOR[1], (size, JOINT_TOPICS))
    beta = rng.gamma(BETA_PRIOR[0], 1 / BETA_PRIOR[1], size)
    theta = simulate.draw_dirichlet(rng, np.repeat(alpha[:, None], JOINT_PEOPLE, axis=1))
    phi = simulate.draw_dirichlet(
        rng, np.broadcast_to(beta[:, None, None], (size, JOINT_TOPICS, JOINT_WORDS))
    )
    rows = np.arange(size)[:, None]
    x = tiny.draw_authors(rng, JOINT_DATA, size)
    z = simulate.draw_categorical(rng, theta[rows, x])
    word = simulate.draw_categorical(rng, phi[rows, z])
    return states(alpha, beta, x, z, word)


def draw_program(rng_key, size):
    model = AuthorTopicModel(
        num_topics=JOINT_TOPICS,
        alpha=dist.Gamma(*ALPHA_PRIOR).expand([JOINT_TOPICS]),
        beta=dist.Gamma(*BETA_PRIOR),
    )
    corpus = Corpus.from_ids(
        JOINT_DOCS, num_words=JOINT_WORDS, authors=JOINT_AUTHORS, author_names=list("abcd")
    )
    draws = token_corpora.draw_program(
        rng_key, model, corpus, ["alpha", "beta", "x", "z", "w"], size
    )
    return testing.quick_jit(jax.vmap(joint_quantities))(*states(*draws.values()))


def redraw_words(rng_key, state, data):
    word = token_corpora.draw_words(rng_key, state.z, JOINT_WORDS, state.beta)
    word_topic = token_corpora.tally(state.z, word, JOINT_WORDS, JOINT_TOPICS)
    return state._replace(word_topic=word_topic), tiny.with_words(data, word)


def joint_quantities(state, data):
    total = state.alpha.sum()
    values = {
        "log alpha": jnp.log(total),
        "alpha share": state.alpha[1] / total,
        "log beta": jnp.log(state.beta),
        "log alpha * log beta": jnp.log(total) * jnp.log(state.beta),
        "topics used": (state.topic > 0).sum(),
        "sum n_k^2": (state.topic**2).sum(),
        "sum n_jk^2": (state.author_topic**2).sum(),
        "sum n_vk^2": (state.word_topic**2).sum(),
        "first topic * share": state.topic[1] * state.alpha[1] / total,
        "tokens of authors": state.author,
        "sum n_j^2": (state.author**2).sum(),
        "tokens of word 0": (data.word == 0).sum(),
        "log joint": author_topic.log_joint(state, data),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=author_topic.AuthorTopicPriors(
        gamma_prior(*ALPHA_PRIOR, shape=JOINT_TOPICS), gamma_prior(*BETA_PRIOR)
    ),
    simulate=simulate_prior,
    redraw=redraw_words,
    quantities=joint_quantities,
    program=draw_program,
)


# ---- densities


def tally(state, data):
    num_authors, num_topics = state.author_topic.shape
    num_words = state.word_topic.shape[0]
    counts = token_corpora.tally(state.z, state.x, num_authors, num_topics)
    word_topic = token_corpora.tally(state.z, data.word, num_words, num_topics)
    return {
        "author_topic": counts,
        "word_topic": word_topic,
        "topic": counts.sum(axis=0),
        "author": counts.sum(axis=1),
    }


def with_assignments(state, data, z, x):
    state = state._replace(z=z, x=x)
    return state._replace(**tally(state, data))


def conditional(state, data, token):
    """Weigh every author and topic as the sweep does; authors of other documents have none."""
    num_words, num_topics = state.word_topic.shape
    people, topics = jnp.arange(NUM_AUTHORS), jnp.arange(num_topics)
    minus, own = topics == state.z[token], people == state.x[token]
    shares = author_topic.share(
        state.author_topic - own[:, None] * minus, (state.author - own)[:, None],
        weights=state.alpha, total=state.alpha.sum(),
    )  # fmt: skip
    n_vk, n_k = state.word_topic[data.word[token]] - minus, state.topic - minus
    weights = shares * (n_vk + state.beta) / (n_k + num_words * state.beta)
    may_write = [[author in some for author in range(NUM_AUTHORS)] for some in AUTHORS]
    may_write = jnp.array(may_write)[data.doc[token]][:, None]

    def joint(author, topic):
        z, x = state.z.at[token].set(topic), state.x.at[token].set(author)
        return author_topic.log_joint(with_assignments(state, data, z, x), data)

    joints = jax.vmap(lambda j: jax.vmap(lambda k: joint(j, k))(topics))(people)
    log_weights = jnp.where(may_write, jnp.log(weights), -jnp.inf)
    joints = jnp.where(may_write, joints, -jnp.inf)
    return testing.Conditional(log_weights.reshape(-1), joints.reshape(-1))


def log_joint(state, data, priors):
    return author_topic.log_joint(state, data) + author_topic.log_prior(state, priors)


def program_log_joint(state, data, priors):
    """Remove theta and phi: p(w, z) = p(w, z, theta, phi) / p(theta, phi | w, z), at any point."""
    hyperparameters, values = dict(FIXED), {}
    for name, prior in priors._asdict().items():
        if prior is not None:
            hyperparameters[name] = dist.Gamma(*prior)
            values[name] = getattr(state, name)
            if name == "alpha" and np.ndim(prior.concentration) == 0:
                values[name] = state.alpha[0]
    model = AuthorTopicModel(num_topics=2, **hyperparameters)
    theta, phi = jnp.array([[0.3, 0.7], [0.6, 0.4]]), jnp.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
    corpus = Corpus.from_ids(DOCS, num_words=NUM_WORDS, authors=AUTHORS, author_names=["a", "b"])
    place = jnp.where(data.doc == 0, state.x, 0)
    values |= {"theta": theta, "phi": phi, "place": place, "z": state.z}
    total, _ = log_density(model, (corpus,), {}, values)
    mixtures = dist.Dirichlet(state.alpha + state.author_topic).log_prob(theta).sum()
    words = dist.Dirichlet(state.beta + state.word_topic.T).log_prob(phi).sum()
    return total - mixtures - words


# ---- schedules


def sequential(*args):
    return author_topic.sequential_step(*args)


def parallel(*args):
    return author_topic.parallel_step(*args)


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
        "own count stays with the author", author_topic, "_sweep_chains",
        "share({n_jk}, ", "desk.topic",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own token stays in the author's total", author_topic, "_sweep_chains",
        "n_j = desk.total - {token.own}", "0",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "authors' totals are never updated", author_topic, "_sweep_chains",
        "desk.total + {(place - token.own)}", "0",
        "invariants/sequential",
    ),
    testing.Mistake(
        "empty places at the desk are taken", author_topic, "_sweep_chains",
        "desk.author < num_authors", "True",
        "geweke/sequential",
    ),
    testing.Mistake(
        "author drawn before the topic", author_topic, "_sweep_chains",
        "draw_author({of_slot[:, :, 0]}, ", "jnp.ones_like(of_slot[:, :, 0])",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topic drawn for the first author", author_topic, "_sweep_chains",
        "author_sweeps.sum_authors(shares)", "shares[0]",
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
        "alpha sees lengths that x does not move", author_topic, "_step",
        "new.author_topic, {new.author}, ", "data.author_share",
        "geweke/sequential",
    ),
]  # fmt: skip

CASE = testing.Case(
    name="author_topic",
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
    # the schedules differ in the tokens only; "batch" is about loops over chains
    skip=frozenset({"enumeration/symmetric/parallel", "batch/parallel"}),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


@pytest.mark.slow
def test_concentrations_without_priors_stay():
    target = TARGETS["fixed"]
    state = testing.quick_jit(target.start)(jax.random.key(0))
    priors = author_topic.AuthorTopicPriors()
    after, _ = testing.quick_jit(parallel)(jax.random.key(1), state, target.data, priors)
    np.testing.assert_array_equal(after.alpha, state.alpha)
    assert after.beta == state.beta


def state_of(data, x, z, alpha, beta=0.5):
    alpha = jnp.array(alpha, jnp.float32)
    empty = jnp.zeros((data.num_authors, len(alpha)), jnp.int32)
    words = jnp.zeros((NUM_WORDS, len(alpha)), jnp.int32)
    state = author_topic.AuthorTopicState(
        jnp.array(z), jnp.array(x), empty, words, words[0], empty[:, 0], alpha, jnp.float32(beta)
    )
    return with_assignments(state, data, state.z, state.x)


def lda_log_joint(docs, z, alpha, beta=0.5):
    data = token_corpora.lay_out(docs)
    z, alpha = jnp.array(z), jnp.array(alpha, jnp.float32)
    doc_topic = token_corpora.tally(z, data.doc, len(docs), len(alpha))
    word_topic = token_corpora.tally(z, data.word, NUM_WORDS, len(alpha))
    topic = word_topic.sum(axis=0)
    state = lda.LDAState(z, doc_topic, word_topic, topic, alpha, jnp.float32(beta))
    return testing.quick_jit(lda.log_joint)(state, data)


def test_lonely_authors_are_documents():
    z, alpha = [0, 1, 1, 2, 2, 0], (0.5, 1.2, 0.3)
    log_joint = testing.quick_jit(author_topic.log_joint)
    private = tiny.lay_out(DOCS, [[1], [0]], 2)
    state = state_of(private, [1, 1, 1, 0, 0, 0], z, alpha)
    expected = lda_log_joint(DOCS, z, alpha)
    np.testing.assert_allclose(log_joint(state, private), expected, rtol=1e-6)
    minus = jnp.arange(3) == 1
    of_author, n_vk, n_k = state.author_topic[1] - minus, state.word_topic[0] - minus, state.topic
    weights = author_topic.share(of_author, 2, weights=state.alpha, total=2.0)
    weights = weights * (n_vk + 0.5) / (n_k - minus + 1.5)
    same = lda.conditional(of_author, n_vk, n_k - minus, alpha=state.alpha, beta=0.5, num_words=3)
    np.testing.assert_allclose(weights / weights.sum(), same / same.sum(), rtol=1e-6)

    one = tiny.lay_out(DOCS, [[0], [0]], 1)
    expected = lda_log_joint([[*DOCS[0], *DOCS[1]]], z, alpha)
    np.testing.assert_allclose(
        log_joint(state_of(one, [0] * 6, z, alpha), one), expected, rtol=1e-6
    )


def test_authors_without_taste():
    """With one topic, or mixtures that are all alike, the words say nothing about authors."""
    data = tiny.lay_out([[0, 1, 2, 1]], [[0, 1, 2]], 3)
    log_joint = testing.quick_jit(author_topic.log_joint)

    def at(x, z, alpha):
        return log_joint(state_of(data, x, z, alpha), data)

    np.testing.assert_allclose(
        at([0, 1, 2, 0], [0] * 4, [0.7]), at([1] * 4, [0] * 4, [0.7]), rtol=1e-5
    )
    z, alike = [0, 1, 1, 0], (1e6, 1e6)
    np.testing.assert_allclose(at([0, 1, 2, 0], z, alike), at([1] * 4, z, alike), atol=1e-4)


# ---- the layout


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["sequential", "parallel"])
def test_layout_changes_no_draw(schedule):
    states, many_data = simulate_prior(np.random.default_rng(0), 1)
    state, data = jax.tree.map(lambda x: jnp.asarray(x)[0], (states, many_data))
    larger = tiny.lay_out(JOINT_DOCS, JOINT_AUTHORS, JOINT_PEOPLE)
    other = data._replace(
        buckets=tuple(
            bucket._replace(
                author=jnp.pad(bucket.author, [(0, 0), (0, 3)], constant_values=JOINT_PEOPLE)
            )
            for bucket in data.buckets
        ),
        blocks=tiny.with_words(larger, data.word).blocks,
    )
    assert other.blocks.word.shape != data.blocks.word.shape
    step = testing.quick_jit(CASE.schedules[schedule].step)
    one, two = (step(jax.random.key(0), state, d, JOINT.priors) for d in (data, other))
    jax.tree.map(np.testing.assert_array_equal, one, two)


LINKS = {"doc": [0, 0, 2], "word": [0, 1, 0], "author_ptr": [0, 1, 1, 3], "author_idx": [2, 0, 1]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"doc": [0, 0, 1]}, "document 1 has tokens, but no author"),
        ({"author_idx": [2, 0, 3]}, r"author_idx must lie in \[0, num_authors\).*from 0 to 3"),
        ({"author_idx": [2, 1, 1]}, "lists author 1 of document 2 twice"),
        ({"author_ptr": [0, 1, 1, 2]}, "author_ptr must rise from 0 to 3"),
        ({"doc": [0, 2, 0]}, "doc must be sorted"),
    ],
)
def test_wrong_layout(wrong, message):
    def make(**arrays):
        return make_author_tokens(*map(np.array, arrays.values()), 3)

    assert len(make(**LINKS).buckets) == 2  # document 1 is empty, and needs no author
    with pytest.raises(ValueError, match=message):
        make(**{**LINKS, **wrong})
