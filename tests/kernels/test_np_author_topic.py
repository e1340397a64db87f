"""The nonparametric author-topic model's kernels: enumeration, Geweke, densities, limits, mistakes.

All checks but the limits come from the harness; this file holds the data. Thresholds follow from
the harness's false-alarm rate, seeds from the names of the checks. With the efforts below
enumeration sees biases of 0.006 (sequential), 0.01 (parallel) and 0.014 (mixed) in a probability,
Geweke's test of 0.1 standard deviations. Posteriors with fixed concentrations are those with sharp
priors: their difference, of order 1 / `SHARP`, is far below that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer.util import log_density

from bnp_kernels import author_topic, hdp_lda, np_author_topic
from bnp_kernels.processes import hdp_root
from bnp_kernels.random.concentration import GammaPrior
from bnp_models import testing
from bnp_models.data.corpus import Corpus
from bnp_models.np_author_topic import NonparametricAuthorTopicModel
from bnp_models.testing import author_corpora as tiny
from bnp_models.testing import simulate, token_corpora

DOCS, AUTHORS, NUM_AUTHORS = [[0, 0, 1], [1, 2, 2]], [[0, 1], [1]], 2
NUM_WORDS = 3
FIXED = {"alpha": 1.0, "gamma": 1.5, "beta": 0.5}
CAPACITY = 16  # at least one more than there are tokens
SHARP = 1e5  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x


def gamma_prior(concentration, rate):
    return GammaPrior(np.float32(concentration), np.float32(rate))


# ---- posteriors that are known exactly


def num_used(state):
    return (state.topic > 0).sum()


def pairs(c01, c02, c03, c04, c23, c24, c34, c45):
    """Values of pairs of the six tokens: equal words of a document share theirs."""
    return [c01, c02, c03, c04, c04, c02, c03, c04, c04, c23, c24, c24, c34, c34, c45]


def posterior_quantities(state, data):
    values = {
        "topics": num_used(state) == jnp.arange(1, 7),
        "tables": state.tables.sum(),
        "unused_weight": state.unused_weight,
        "alpha": state.alpha,
        "gamma": state.gamma,
        "first_author": state.x[:3] == 0,
        "coassigned": token_corpora.coassigned(state.z),
        "same_pair": tiny.same_pair(state.z, state.x)[jnp.array([0, 1, 2, 9])],  # 01, 02, 03, 23
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(alpha, gamma, expected):
    data = tiny.lay_out(DOCS, AUTHORS, NUM_AUTHORS, block_size=4)
    priors = hdp_lda.HDPPriors(gamma_prior(*alpha), gamma_prior(*gamma))

    def start(rng_key):
        return np_author_topic.init(
            rng_key, data, num_words=NUM_WORDS, max_topics=CAPACITY, init_topics=2, **FIXED
        )

    return testing.Target(data, priors, start, posterior_quantities, expected)


TARGETS = {
    "fixed": target(
        (FIXED["alpha"] * SHARP, SHARP),
        (FIXED["gamma"] * SHARP, SHARP),
        {
            "topics": [0.095548, 0.443082, 0.361685, 0.091354, 0.008114, 0.000217],
            "tables": 3.511649,
            "unused_weight": 0.311653,
            "first_author": [0.599433, 0.599433, 0.461791],
            "coassigned": pairs(
                0.622505, 0.374382, 0.337488, 0.326117, 0.575680, 0.424911, 0.558606, 0.744665
            ),
            "same_pair": [0.457482, 0.252805, 0.207188, 0.397777],
        },
    ),
    "hyper": target(
        (1, 1),
        (1, 1),
        {
            "topics": [0.263776, 0.452790, 0.213960, 0.059537, 0.009303, 0.000635],
            "tables": 3.260464,
            "alpha": 1.070744,
            "gamma": 1.261584,
            "first_author": [0.595992, 0.595992, 0.458506],
            "coassigned": pairs(
                0.718900, 0.501691, 0.462417, 0.453549, 0.673840, 0.568358, 0.698688, 0.824716
            ),
            "same_pair": [0.499770, 0.315115, 0.269530, 0.445860],
        },
    ),
}


# ---- the joint law of everything, from the prior

# The first document has an empty place in its bucket, the last author has no document.
JOINT_DOCS, JOINT_AUTHORS = [[0] * 5, [0] * 4, [0] * 4], [[0, 1, 2], [1], [2, 0]]
JOINT_PEOPLE, JOINT_WORDS, JOINT_TOKENS = 4, 3, 13
JOINT_DATA = tiny.lay_out(JOINT_DOCS, JOINT_AUTHORS, JOINT_PEOPLE, 8)
PRIORS = {"alpha": (2.0, 2.0), "gamma": (2.0, 2.0), "beta": (2.0, 4.0)}  # concentration and rate


def states(x, z, word, tables, root, hyperparameters):
    """Make kernel states of draws, a leading axis in all of them."""
    padded = CAPACITY - JOINT_TOKENS
    counts = simulate.tally(z, x, JOINT_PEOPLE, CAPACITY)
    word_topic = simulate.tally(z, word, JOINT_WORDS, CAPACITY)
    data = jax.vmap(lambda w: tiny.with_words(JOINT_DATA, w))(np.asarray(word, np.int32))
    state = np_author_topic.AuthorHDPState(
        z=np.asarray(z, np.int32),
        x=np.asarray(x, np.int32),
        author_topic=counts,
        word_topic=word_topic,
        topic=word_topic.sum(axis=1),
        author=counts.sum(axis=2),
        root_weights=np.pad(root[:, :-1], [(0, 0), (0, padded)]).astype(np.float32),
        unused_weight=root[:, -1].astype(np.float32),
        tables=np.pad(tables, [(0, 0), (0, padded)]),
        overflow=np.zeros(len(z), bool),
        **{name: np.asarray(value, np.float32) for name, value in hyperparameters.items()},
    )
    return state, data


def simulate_prior(rng, size):
    """Seat the franchise of authors; given its tables the root is a Dirichlet draw."""
    hyper = {name: rng.gamma(a, 1 / b, size) for name, (a, b) in PRIORS.items()}
    x = tiny.draw_authors(rng, JOINT_DATA, size)
    z, tables = simulate.restaurant_franchise(rng, hyper["alpha"], hyper["gamma"], x)
    root = simulate.draw_dirichlet(rng, np.column_stack([tables, hyper["gamma"]]))
    concentration = np.broadcast_to(hyper["beta"][:, None, None], (size, JOINT_TOKENS, JOINT_WORDS))
    phi = simulate.draw_dirichlet(rng, concentration)
    word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], z])
    return states(x, z, word, tables, root, hyper)


def draw_program(rng_key, size):
    """Draw from the truncated program; its topics are compared, not its sticks."""
    priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
    model = NonparametricAuthorTopicModel(**priors, max_topics=32)  # 1.5e-5 of the root is behind
    corpus = Corpus.from_ids(
        JOINT_DOCS, num_words=JOINT_WORDS, authors=JOINT_AUTHORS, author_names=list("abcd")
    )
    draws = token_corpora.draw_program(rng_key, model, corpus, [*PRIORS, "x", "z", "w"], size)
    z = token_corpora.first_appearance(draws["z"])
    no_tables = np.zeros(z.shape, np.int32)
    no_root = np.zeros((size, z.shape[1] + 1))
    hyper = {name: draws[name] for name in PRIORS}
    state, data = states(draws["x"], z, draws["w"], no_tables, no_root, hyper)
    drawn = testing.quick_jit(jax.vmap(joint_quantities))(state, data)
    return {name: drawn[name] for name in drawn if name not in OF_ROOT}


def redraw_words(rng_key, state, data):
    word = token_corpora.draw_words(rng_key, state.z, JOINT_WORDS, state.beta)
    word_topic = token_corpora.tally(state.z, word, JOINT_WORDS, len(state.topic))
    return state._replace(word_topic=word_topic), tiny.with_words(data, word)


OF_ROOT = ("tables", "unused weight", "sum tau^2", "sum n_k tau_k", "log joint", "gamma * unused")


def joint_quantities(state, data):
    log_alpha, log_gamma = jnp.log(state.alpha), jnp.log(state.gamma)
    values = {
        "log alpha": log_alpha,
        "log gamma": log_gamma,
        "log beta": jnp.log(state.beta),
        "log alpha * log gamma": log_alpha * log_gamma,
        "log alpha * log beta": log_alpha * jnp.log(state.beta),
        "topics": num_used(state),
        "topics * log gamma": num_used(state) * log_gamma,
        "sum n_k^2": (state.topic**2).sum(),
        "sum n_jk^2": (state.author_topic**2).sum(),
        "tokens of authors": state.author,
        "sum n_j^2": (state.author**2).sum(),
        "sum n_vk^2": (state.word_topic**2).sum(),
        "tokens of word 0": (data.word == 0).sum(),
        "tables": state.tables.sum(),
        "unused weight": state.unused_weight,
        "gamma * unused": state.gamma * state.unused_weight,
        "sum tau^2": (state.root_weights**2).sum(),
        "sum n_k tau_k": (state.topic * state.root_weights).sum(),
        "log joint": np_author_topic.log_joint(state, data),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


JOINT = testing.Joint(
    priors=hdp_lda.HDPPriors(**{name: gamma_prior(*prior) for name, prior in PRIORS.items()}),
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
    """Weigh every author and slot, and a new topic with the mass that `birth` gives it at one u.

    u is uniform, so that the weight of a new topic is also its density in u; the joint density is
    one in the mass, hence the slope.
    """
    num_words, capacity = state.word_topic.shape
    slots, people = jnp.arange(capacity), jnp.arange(NUM_AUTHORS)
    minus, own = slots == state.z[token], people == state.x[token]
    n_k = state.topic - minus
    root, pool = hdp_root.death(state.root_weights, state.unused_weight, n_k, minus)
    n_jk, n_j = state.author_topic - own[:, None] * minus, (state.author - own)[:, None]
    shares = np_author_topic.share(n_jk, n_j, weights=state.alpha * root, total=state.alpha)
    shares_new = np_author_topic.share(0, n_j, weights=state.alpha * pool, total=state.alpha)
    n_vk = state.word_topic[data.word[token]] - minus
    weights = shares * (n_vk + state.beta) / (n_k + num_words * state.beta)
    weights = jnp.concatenate([weights, shares_new / num_words], axis=1)
    free = jnp.argmax(n_k == 0)

    def born(u):
        after = hdp_root.birth(root, pool, slots == free, state.gamma, u)
        return after[0][free], after

    slope, (new_root, new_pool) = jax.grad(born, has_aux=True)(jnp.float32(0.6))

    def joint(author, topic, root, pool):
        z, x = state.z.at[token].set(topic), state.x.at[token].set(author)
        moved = with_assignments(state, data, z, x)
        moved = moved._replace(root_weights=root, unused_weight=pool)
        return np_author_topic.log_joint(moved, data) + np_author_topic.log_root(moved)

    def of_author(author):
        joints = jax.vmap(lambda k: joint(author, k, root, pool))(slots)
        joints = jnp.where(root > 0, joints, -jnp.inf)  # a slot without mass
        return jnp.append(joints, joint(author, free, new_root, new_pool) + jnp.log(slope))

    may_write = [[author in some for author in range(NUM_AUTHORS)] for some in AUTHORS]
    may_write = jnp.array(may_write)[data.doc[token]][:, None]
    joints = jnp.where(may_write, jax.vmap(of_author)(people), -jnp.inf)
    log_weights = jnp.where(may_write, jnp.log(weights), -jnp.inf)
    return testing.Conditional(log_weights.reshape(-1), joints.reshape(-1))


def log_joint(state, data, priors):
    return np_author_topic.log_joint(state, data) + np_author_topic.log_prior(state, priors)


def program_log_joint(state, data, priors):
    """Condition on the root and remove theta and phi, at any point.

    The slots are the program's first sticks and the pool its last topic, so that the authors'
    concentrations are those of the state.
    """
    hyperparameters, values = dict(FIXED), {}
    for name, prior in priors._asdict().items():
        if prior is not None:
            hyperparameters[name] = dist.Gamma(*prior)
            values[name] = getattr(state, name)
    used = 2  # `start` uses two slots
    model = NonparametricAuthorTopicModel(**hyperparameters, max_topics=used + 1)
    weights = jnp.append(state.root_weights[:used], state.unused_weight)
    before = jnp.append(0.0, jnp.cumsum(weights)[:-1])
    sticks = (weights / (1 - before))[:-1]
    theta = jnp.array([[0.3, 0.5, 0.2], [0.5, 0.4, 0.1]])
    phi = jnp.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]])
    corpus = Corpus.from_ids(DOCS, num_words=NUM_WORDS, authors=AUTHORS, author_names=["a", "b"])
    place = jnp.where(data.doc == 0, state.x, 0)
    values |= {"sticks": sticks, "theta": theta, "phi": phi, "place": place, "z": state.z}
    total, _ = log_density(model, (corpus,), {}, values)
    root = dist.Beta(1.0, state.gamma).log_prob(sticks).sum()
    concentration = jnp.maximum(state.alpha * weights, 1e-6)
    mixtures = dist.Dirichlet(concentration + state.author_topic[:, : used + 1]).log_prob(theta)
    words = dist.Dirichlet(state.beta + state.word_topic.T[: used + 1]).log_prob(phi)
    return total - root - mixtures.sum() - words.sum()


# ---- schedules


def resize(state, max_topics):
    """Move the used slots to the front, in order, and change the capacity."""
    order = jnp.argsort(state.topic == 0, stable=True)
    slots = ("author_topic", "word_topic", "topic", "root_weights", "tables")
    state = state._replace(
        z=token_corpora.permute_slots(state.z, order),
        overflow=jnp.zeros((), bool),
        **{name: jnp.take(getattr(state, name), order, axis=-1) for name in slots},
    )
    return np_author_topic.grow(state, max_topics)


def growth(capacity, fewer=0):
    return testing.Growth(num_used, resize, lambda state: state.overflow, capacity, fewer)


def sequential(*args):
    return np_author_topic.sequential_step(*args)


def of_turns(*args):
    return np_author_topic.any_step(*args)


SEQUENTIAL = testing.Schedule(sequential, growth(CAPACITY, 3), num_programs=2)
OF_TURNS = testing.Schedule(of_turns, growth(96), testing.Effort(500, 40, 320), num_programs=2)


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
        "own count stays with the author", np_author_topic, "_sweep_chains",
        "{n_jk}, n_j[:, :, None], weights=(alpha * root", "desk.topic",
        "enumeration/fixed/sequential",
    ),
    *token_corpora.root_mistakes(FIXED["alpha"]),
    testing.Mistake(
        "author drawn before the topic", np_author_topic, "_sweep_chains",
        "draw_author({jnp.where(is_new, shares_new, of_slot)}, u_author)",
        "jnp.ones_like(of_slot)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "any author opens a new topic", np_author_topic, "_sweep_chains",
        "jnp.where(is_new, {shares_new}, of_slot)", "jnp.ones_like(shares_new)",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "tokens below the threshold move too", np_author_topic, "_parallel_sweep",
        "~taking_part[state.z]", "False",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "mixtures without the topics that wait", np_author_topic, "_draw_mixtures",
        "draw_rows(rng_key, concentration, {rest})", "jnp.zeros_like(rest)",
        "enumeration/hyper/parallel",
    ),
    testing.Mistake(
        "the tail beyond the slots is ignored", np_author_topic, "_parallel_sweep",
        "state.overflow | {(rest > threshold)}", "False",
        "growth/parallel",
    ),
]  # fmt: skip

CASE = testing.Case(
    name="np_author_topic",
    schedules={  # programs: Geweke's test has more documents
        "sequential": SEQUENTIAL,
        "parallel": OF_TURNS._replace(turns=(0,), growth=OF_TURNS.growth._replace(fewer=8)),
        "mixed": OF_TURNS._replace(turns=(0, 1), effort=testing.Effort(500, 40, 200)),
    },
    targets=TARGETS,
    joint=JOINT,
    tally=tally,
    conditional=conditional,
    log_joint=log_joint,
    program_log_joint=program_log_joint,
    mistakes=tuple(MISTAKES),
    skip=frozenset(
        {
            "enumeration/fixed/mixed",
            "geweke/mixed",
            "batch/mixed",
            "ranks/mixed",  # "parallel" traces the step for all turns
            "invariants/mixed",
            "batch/parallel",
        }
    ),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def state_of(data, x, z, root, pool, alpha):
    root = jnp.array(root, jnp.float32)
    table, half = jnp.zeros((4, len(root)), jnp.int32), jnp.float32(0.5)
    state = np_author_topic.AuthorHDPState(
        jnp.array(z), jnp.array(x), table[: data.num_authors], table[:NUM_WORDS], table[0],
        table[: data.num_authors, 0], root, jnp.float32(pool), table[0],
        jnp.float32(alpha), half, half, jnp.bool_(False),
    )  # fmt: skip
    return with_assignments(state, data, state.z, state.x)


def test_lonely_authors_are_documents():
    z, root = [0, 1, 1, 2, 2, 0], [0.4, 0.2, 0.3]
    private = tiny.lay_out(DOCS, [[1], [0]], 2)
    state = state_of(private, [1, 1, 1, 0, 0, 0], z, root, 0.1, 1.7)
    data = token_corpora.lay_out(DOCS)
    same = hdp_lda.HDPState(state.z, state.author_topic[::-1], *state[3:5], *state[6:])
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, private),
        testing.quick_jit(hdp_lda.log_joint)(same, data),
        rtol=1e-6,
    )
    one = tiny.lay_out(DOCS, [[0], [0]], 1)
    whole = token_corpora.lay_out([[*DOCS[0], *DOCS[1]]])
    state = state_of(one, [0] * 6, z, root, 0.1, 1.7)
    same = hdp_lda.HDPState(state.z, state.author_topic, *state[3:5], *state[6:])
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, one),
        testing.quick_jit(hdp_lda.log_joint)(same, whole),
        rtol=1e-6,
    )


def test_even_root_is_the_finite_model():
    data, z, x = TARGETS["fixed"].data, [0, 3, 1, 1, 2, 1], [0, 0, 1, 1, 1, 1]
    state = state_of(data, x, z, [0.25] * 4, 0.0, 1.7)
    finite = author_topic.AuthorTopicState(*state[:6], jnp.full(4, 1.7 / 4), state.beta)
    np.testing.assert_allclose(
        testing.quick_jit(np_author_topic.log_joint)(state, data),
        testing.quick_jit(author_topic.log_joint)(finite, data),
        rtol=1e-6,
    )
