"""The HDP topic model's kernels: enumeration, Geweke, densities, invariants, limits, mistakes.

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

from bnp_kernels import hdp_lda, lda
from bnp_kernels.processes import hdp_root, split_merge, split_proposal
from bnp_kernels.random.concentration import GammaPrior
from bnp_models import testing
from bnp_models.data.corpus import Corpus
from bnp_models.hdp_lda import HDPLDA
from bnp_models.testing import simulate, token_corpora

DOCS = [[0, 0, 1], [1, 2, 2]]
NUM_WORDS = 3
FIXED = {"alpha": 1.0, "gamma": 1.5, "beta": 0.5}
CAPACITY = 16  # at least one more than there are tokens
SHARP = 1e5  # a Gamma(x SHARP, SHARP) variable is as good as fixed at x


def gamma_prior(concentration, rate):
    return GammaPrior(np.float32(concentration), np.float32(rate))


# ---- posteriors that are known exactly


def num_used(state):
    return (state.topic > 0).sum()


def pairs(c01, c02, c03, c04, c23):
    """Co-assignments of the six tokens: equal words of a document share their values."""
    return [c01, c02, c03, c04, c04, c02, c03, c04, c04, c23, c03, c03, c02, c02, c01]


def posterior_quantities(state, data):
    values = {
        "topics": num_used(state) == jnp.arange(1, 7),
        "tables": state.tables.sum(),
        "unused_weight": state.unused_weight,
        "alpha": state.alpha,
        "gamma": state.gamma,
        "coassigned": token_corpora.coassigned(state.z),
    }
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), values)


def target(alpha, gamma, expected):
    data = token_corpora.lay_out(DOCS, num_lanes=1)
    priors = hdp_lda.HDPPriors(gamma_prior(*alpha), gamma_prior(*gamma))

    def start(rng_key):
        return hdp_lda.init(
            rng_key, data, num_words=NUM_WORDS, max_topics=CAPACITY, init_topics=2, **FIXED
        )

    return testing.Target(data, priors, start, posterior_quantities, expected)


TARGETS = {
    "fixed": target(
        (FIXED["alpha"] * SHARP, SHARP),
        (FIXED["gamma"] * SHARP, SHARP),
        {
            "topics": [0.060481, 0.420523, 0.395612, 0.112175, 0.010893, 0.000317],
            "tables": 3.700438,
            "unused_weight": 0.298740,
            "coassigned": pairs(0.774222, 0.576363, 0.225861, 0.164230, 0.343647),
        },
    ),
    "hyper": target(
        (1, 1),
        (1, 1),
        {
            "topics": [0.194580, 0.482736, 0.239748, 0.070582, 0.011528, 0.000826],
            "tables": 3.404013,
            "alpha": 1.020115,
            "gamma": 1.321205,
            "coassigned": pairs(0.843438, 0.708385, 0.325279, 0.278605, 0.412098),
        },
    ),
}


# ---- the joint law of everything, from the prior

LENGTHS, JOINT_WORDS = (4, 5, 6), 4
JOINT_DATA = token_corpora.lay_out([[0] * n for n in LENGTHS], num_lanes=2)
JOINT_DOC = np.asarray(JOINT_DATA.doc)
PRIORS = {"alpha": (2.0, 2.0), "gamma": (2.0, 2.0), "beta": (2.0, 4.0)}  # concentration and rate


def states(z, word, tables, root, hyperparameters):
    """Make kernel states of draws, a leading axis in all of them."""
    padded = CAPACITY - len(JOINT_DOC)
    doc_topic = simulate.tally(z, JOINT_DOC, len(LENGTHS), CAPACITY)
    word_topic = simulate.tally(z, word, JOINT_WORDS, CAPACITY)
    data = jax.vmap(lambda w: token_corpora.with_words(JOINT_DATA, w))(np.asarray(word, np.int32))
    state = hdp_lda.HDPState(
        z=np.asarray(z, np.int32),
        doc_topic=doc_topic,
        word_topic=word_topic,
        topic=doc_topic.sum(axis=1),
        root_weights=np.pad(root[:, :-1], [(0, 0), (0, padded)]).astype(np.float32),
        unused_weight=root[:, -1].astype(np.float32),
        tables=np.pad(tables, [(0, 0), (0, padded)]),
        overflow=np.zeros(len(z), bool),
        **{name: np.asarray(value, np.float32) for name, value in hyperparameters.items()},
    )
    return state, data


def simulate_prior(rng, size):
    """Seat the franchise; given its tables the root is a Dirichlet draw: nothing is truncated."""
    hyper = {name: rng.gamma(a, 1 / b, size) for name, (a, b) in PRIORS.items()}
    z, tables = simulate.restaurant_franchise(rng, hyper["alpha"], hyper["gamma"], JOINT_DOC)
    root = simulate.draw_dirichlet(rng, np.column_stack([tables, hyper["gamma"]]))
    concentration = np.broadcast_to(
        hyper["beta"][:, None, None], (size, len(JOINT_DOC), JOINT_WORDS)
    )
    phi = simulate.draw_dirichlet(rng, concentration)
    word = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], z])
    return states(z, word, tables, root, hyper)


def draw_program(rng_key, size):
    """Draw from the truncated program; its topics are compared, not its sticks."""
    priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
    model = HDPLDA(**priors, max_topics=32)  # 1.5e-5 of the root is behind
    corpus = Corpus.from_ids([[0] * n for n in LENGTHS], num_words=JOINT_WORDS)
    draws = token_corpora.draw_program(rng_key, model, corpus, [*PRIORS, "z", "w"], size)
    z = token_corpora.first_appearance(draws["z"])
    no_tables = np.zeros(z.shape, np.int32)
    no_root = np.zeros((size, z.shape[1] + 1))
    state, data = states(z, draws["w"], no_tables, no_root, {name: draws[name] for name in PRIORS})
    drawn = testing.quick_jit(jax.vmap(joint_quantities))(state, data)
    return {name: drawn[name] for name in drawn if name not in OF_ROOT}


def redraw_words(rng_key, state, data):
    word = token_corpora.draw_words(rng_key, state.z, JOINT_WORDS, state.beta)
    word_topic = token_corpora.tally(state.z, word, JOINT_WORDS, len(state.topic))
    return state._replace(word_topic=word_topic), token_corpora.with_words(data, word)


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
        "sum n_dk^2": (state.doc_topic**2).sum(),
        "sum n_vk^2": (state.word_topic**2).sum(),
        "tokens of word 0": (data.word == 0).sum(),
        "tables": state.tables.sum(),
        "unused weight": state.unused_weight,
        "gamma * unused": state.gamma * state.unused_weight,
        "sum tau^2": (state.root_weights**2).sum(),
        "sum n_k tau_k": (state.topic * state.root_weights).sum(),
        "log joint": hdp_lda.log_joint(state, data),
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
    num_docs, num_topics = state.doc_topic.shape
    num_words = state.word_topic.shape[0]
    doc_topic = token_corpora.tally(state.z, data.doc, num_docs, num_topics)
    word_topic = token_corpora.tally(state.z, data.word, num_words, num_topics)
    return {"doc_topic": doc_topic, "word_topic": word_topic, "topic": doc_topic.sum(axis=0)}


def with_topics(state, data, z):
    state = state._replace(z=z)
    return state._replace(**tally(state, data))


def conditional(state, data, token):
    """Weigh every slot, and a new topic with the mass that `birth` gives it at one value of u.

    u is uniform, so that the weight of a new topic is also its density in u; the joint density is
    one in the mass, hence the slope.
    """
    num_words, capacity = state.word_topic.shape
    slots = jnp.arange(capacity)
    minus = slots == state.z[token]
    n_k = state.topic - minus
    root, pool = hdp_root.death(state.root_weights, state.unused_weight, n_k, minus)
    weights, weight_new = hdp_lda.conditional(
        state.doc_topic[data.doc[token]] - minus, state.word_topic[data.word[token]] - minus, n_k,
        root_weights=root, unused_weight=pool, alpha=state.alpha, beta=state.beta,
        num_words=num_words,
    )  # fmt: skip
    free = jnp.argmax(n_k == 0)

    def born(u):
        after = hdp_root.birth(root, pool, slots == free, state.gamma, u)
        return after[0][free], after

    slope, (new_root, new_pool) = jax.grad(born, has_aux=True)(jnp.float32(0.6))

    def joint(topic, root, pool):
        moved = with_topics(state, data, state.z.at[token].set(topic))
        moved = moved._replace(root_weights=root, unused_weight=pool)
        return hdp_lda.log_joint(moved, data) + hdp_lda.log_root(moved)

    joints = jax.vmap(lambda k: joint(k, root, pool))(slots)
    joints = jnp.where(root > 0, joints, -jnp.inf)  # a slot without mass
    joint_new = joint(free, new_root, new_pool) + jnp.log(slope)
    log_weights = jnp.log(jnp.append(weights, weight_new))
    return testing.Conditional(log_weights, jnp.append(joints, joint_new))


def log_joint(state, data, priors):
    return hdp_lda.log_joint(state, data) + hdp_lda.log_prior(state, priors)


def program_log_joint(state, data, priors):
    """Condition on the root and remove theta and phi, at any point.

    The slots are the program's first sticks and the pool its last topic, so that the documents'
    concentrations are those of the state.
    """
    hyperparameters, values = dict(FIXED), {}
    for name, prior in priors._asdict().items():
        if prior is not None:
            hyperparameters[name] = dist.Gamma(*prior)
            values[name] = getattr(state, name)
    used = 2  # `start` uses two slots
    model = HDPLDA(**hyperparameters, max_topics=used + 1)
    weights = jnp.append(state.root_weights[:used], state.unused_weight)
    before = jnp.append(0.0, jnp.cumsum(weights)[:-1])
    sticks = (weights / (1 - before))[:-1]
    theta = jnp.array([[0.3, 0.5, 0.2], [0.5, 0.4, 0.1]])
    phi = jnp.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]])
    corpus = Corpus.from_ids(DOCS, num_words=NUM_WORDS)
    values |= {"sticks": sticks, "theta": theta, "phi": phi, "z": state.z}
    total, _ = log_density(model, (corpus,), {}, values)
    root = dist.Beta(1.0, state.gamma).log_prob(sticks).sum()
    concentration = jnp.maximum(state.alpha * weights, 1e-6)
    documents = dist.Dirichlet(concentration + state.doc_topic[:, : used + 1]).log_prob(theta)
    words = dist.Dirichlet(state.beta + state.word_topic.T[: used + 1]).log_prob(phi)
    return total - root - documents.sum() - words.sum()


# ---- schedules


def resize(state, max_topics):
    """Move the used slots to the front, in order, and change the capacity."""
    order = jnp.argsort(state.topic == 0, stable=True)
    slots = ("doc_topic", "word_topic", "topic", "root_weights", "tables")
    state = state._replace(
        z=token_corpora.permute_slots(state.z, order),
        overflow=jnp.zeros((), bool),
        **{name: jnp.take(getattr(state, name), order, axis=-1) for name in slots},
    )
    return hdp_lda.grow(state, max_topics)


def growth(capacity, fewer=0):
    return testing.Growth(num_used, resize, lambda state: state.overflow, capacity, fewer)


def sequential(*args):
    return hdp_lda.sequential_step(*args)


def of_turns(*args):
    return hdp_lda.any_step(*args)


SEQUENTIAL = testing.Schedule(sequential, growth(CAPACITY, 3), num_programs=2)
OF_TURNS = testing.Schedule(of_turns, growth(96), testing.Effort(500, 40, 320), num_programs=2)


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
        "new gamma, root of the old one", hdp_lda, "resample_root",
        "draw_root(key_root, tables, {gamma})", "state.gamma",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "gamma counts all slots", hdp_lda, "resample_root",
        "(state.topic > 0).sum()", "len(state.topic)",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "topics in use always take part", hdp_lda, "_parallel_sweep",
        "sticks > threshold", "(sticks > threshold) | (state.topic > 0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "tokens below the threshold move too", hdp_lda, "_parallel_sweep",
        "~taking_part[state.z]", "False",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "the tail beyond the slots is ignored", hdp_lda, "_parallel_sweep",
        "state.overflow | {(rest > threshold)}", "False",
        "growth/parallel",
    ),
    testing.Mistake(
        "a split pays nothing for its new topic", split_merge, "log_ratio",
        "{jnp.log(gamma)} - log_share.sum(1)", "0.0",
        "geweke/split-merge",
    ),
    testing.Mistake(
        "a merge does not ask how probable the split was", split_merge, "move",
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

CASE = testing.Case(
    name="hdp_lda",
    schedules={  # programs: Geweke's test has more documents
        "sequential": SEQUENTIAL,
        "parallel": OF_TURNS._replace(turns=(0,), growth=OF_TURNS.growth._replace(fewer=8)),
        "split-merge": OF_TURNS._replace(turns=(1,)),
        "mixed": OF_TURNS._replace(turns=(0, 1, 2), effort=testing.Effort(500, 40, 200)),
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
            "enumeration/fixed/split-merge",  # alone it forgets too slowly; Geweke's test need not
            "enumeration/hyper/split-merge",  # wait, and "mixed" enumerates with it
            "batch/sequential",  # test_gibbs.py compares whole runs
            "batch/mixed",
            "ranks/mixed",  # "parallel" traces the step for all turns
            "ranks/split-merge",
            "invariants/mixed",
        }
    ),
    fast=frozenset({"enumeration/fixed/sequential"}),
)


@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits


def test_concentrations_without_priors_stay():
    state = testing.quick_jit(TARGETS["fixed"].start)(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 5)
    lengths = TARGETS["fixed"].data.doc_length
    after = testing.quick_jit(hdp_lda.resample_root)(keys, state, lengths, hdp_lda.HDPPriors())
    for name, value in FIXED.items():
        assert getattr(after, name) == value


def test_even_root_is_lda():
    data, num_topics, alpha, beta = TARGETS["fixed"].data, 4, 1.7, jnp.float32(0.5)
    z = jnp.array([0, 3, 1, 1, 2, 1])
    doc_topic = token_corpora.tally(z, data.doc, len(DOCS), num_topics)
    word_topic = token_corpora.tally(z, data.word, NUM_WORDS, num_topics)
    counts = doc_topic, word_topic, doc_topic.sum(axis=0)
    even, zero = jnp.full(num_topics, 1 / num_topics), jnp.float32(0)
    alphas = alpha * even
    state = hdp_lda.HDPState(
        z, *counts, even, zero, counts[2], jnp.float32(alpha), beta, beta, jnp.bool_(False)
    )
    finite = lda.LDAState(z, *counts, alphas, beta)
    np.testing.assert_allclose(
        testing.quick_jit(hdp_lda.log_joint)(state, data),
        testing.quick_jit(lda.log_joint)(finite, data),
        rtol=1e-6,
    )
    rows = doc_topic[0], word_topic[2], counts[2]
    options = {"beta": beta, "num_words": NUM_WORDS}
    weights, weight_new = hdp_lda.conditional(
        *rows, root_weights=even, unused_weight=zero, alpha=state.alpha, **options
    )
    expected = lda.conditional(*rows, alpha=alphas, **options)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert weight_new == 0
