"""Cross-collection LDA's kernels: enumeration, Geweke, densities, invariants, limits, mistakes.

The posterior of the tiny corpus is a sum over all topics and switches of its tokens. The
concentrations are integrated by quadrature: those of the words one by one, those of the switches
and of the two topics in pairs. The simulator draws topics, mixtures and switches in NumPy.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import logsumexp

from bnp_kernels import cross_collection_lda as kernel
from bnp_kernels import lda
from bnp_models import CrossCollectionLDA, testing
from bnp_models.testing import enumeration, simulate, token_corpora
from bnp_models.testing.finite_topics_case import JOINT_TOPICS, NUM_TOPICS
from bnp_models.testing.topic_family import (
    as_floats,
    gamma_prior,
    priors_in_program,
    sharp,
    somewhere,
)

FIXED = {
    "alpha": (0.5, 1.2), "beta": 0.5, "group_beta": 0.3, "switch_common": 1.5, "switch_own": 0.8,
}  # fmt: skip
PRIORS = {  # concentration and rate
    "alpha": (2.0, 2.0), "beta": (2.0, 4.0), "group_beta": (3.0, 4.0), "switch_common": (2.0, 1.0),
    "switch_own": (2.0, 2.0),
}  # fmt: skip
GIVEN = ("theta_00", "phi_10", "own_010", "psi_01", "log_joint")  # where all of these are numbers
# documents of a group are not neighbours
TINY = testing.TinyCorpus(
    [[0, 0], [1, 2], [2, 1]], num_words=3, group=[0, 1, 0], layout={"num_lanes": 1}
)
JOINT = testing.TinyCorpus(
    [[0] * n for n in (3, 4, 3, 4)], num_words=3, group=[1, 0, 0, 1], layout={"num_lanes": 2}
)


# ---- enumeration


def pair_factor(counts, first, second):
    """Return the log probability of counts [S, R, 2] of two values, and the means of both.

    The two concentrations are numbers, or rules of independent priors.
    """
    one, two = (enumeration._as_rule(value) for value in (first, second))
    points = np.stack([x.ravel() for x in np.meshgrid(one.nodes, two.nodes, indexing="ij")], axis=1)
    log_weights = np.add.outer(one.log_weights, two.log_weights).ravel()
    pairs, place = np.unique(counts.reshape(-1, 2), axis=0, return_inverse=True)
    of_pairs = np.stack([enumeration.log_dirichlet_multinomial(n, points) for n in pairs])
    tables, which = np.unique(place.reshape(counts.shape[:2]), axis=0, return_inverse=True)
    found = []
    for table in tables:
        logs = of_pairs[table].sum(axis=0) + log_weights
        total = logsumexp(logs)
        found.append((total, *(np.exp(logs - total) @ points)))
    return np.array(found)[which.ravel()].T


def switched_posterior(docs, group, num_words, *, alpha, beta, group_beta, switch_common,
                       switch_own):  # fmt: skip
    """Enumerate topics and switches of all tokens, with two topics; numbers or rules."""
    doc, word = enumeration._tokens(docs)
    of_token = np.asarray(group)[doc]
    num_groups, num_tokens = max(group) + 1, len(word)
    every = enumeration.assignments(2 * NUM_TOPICS, num_tokens)
    z, switch = every // 2, every % 2
    of_doc = simulate.tally(z, doc, len(docs), NUM_TOPICS)
    # of topic k: common words in row k, words of group g in row (g + 1) K + k
    row = z + switch * (of_token + 1) * NUM_TOPICS
    words = simulate.tally(row, word, num_words, (num_groups + 1) * NUM_TOPICS).swapaxes(1, 2)
    common, own = np.split(words, [NUM_TOPICS], axis=1)
    switches = simulate.tally(switch, of_token * NUM_TOPICS + z, num_groups * NUM_TOPICS, 2)
    log_docs, *of_alpha = pair_factor(of_doc, *alpha)
    log_switches, *of_switch = pair_factor(switches, switch_common, switch_own)
    (log_common, of_beta), (log_own, of_group_beta) = (
        enumeration.word_factor(counts, a) for counts, a in ((common, beta), (own, group_beta))
    )
    log_joint = log_docs + log_switches + log_common + log_own
    found = enumeration.token_quantities(z) | switch_quantities(z, switch) | {
        "topic": of_doc.sum(axis=1), "alpha": of_alpha[0], "alpha_sum": sum(of_alpha),
        "beta": of_beta, "group_beta": of_group_beta, "switch_common": of_switch[0],
        "switch_own": of_switch[1],
    }  # fmt: skip
    if not any(isinstance(x, enumeration.Rule) for x in (*alpha, beta)):
        prior = np.array([switch_common, switch_own])
        theta = (of_doc[:, 0] + alpha) / (len(docs[0]) + sum(alpha))
        phi, of_groups, psi = (
            (n + a) / (n + a).sum(axis=-1, keepdims=True)
            for n, a in ((common, beta), (own, group_beta), (switches, prior))
        )
        first = psi[:, :NUM_TOPICS, 1:]
        of_first = (1 - first) * phi + first * of_groups[:, :NUM_TOPICS]
        found |= {
            "theta_00": theta[:, 0], "phi_10": phi[:, 1, 0], "own_010": of_groups[:, 1, 0],
            "psi_01": psi[:, 1, 1], "log_joint": log_joint,
            "next": (theta[:, :, None] * of_first).sum(axis=1),  # word of the first document
        }  # fmt: skip
    return enumeration.enumerate_posterior((z, switch), lambda _: log_joint, lambda _: found)


def switch_quantities(z, switch):
    """Return quantities of switches [..., T]; arrays of NumPy or JAX."""
    pairs = enumeration.coassignment
    first, second = np.triu_indices(z.shape[-1], 1)
    common = (switch[..., first] == 0) & (switch[..., second] == 0)
    return {"own": 1.0 * switch, "both_common": pairs(z) * common}


@functools.cache
def enumerated(target):
    values = FIXED
    if target == "hyper":
        values = {name: enumeration.gamma_rule(*prior) for name, prior in PRIORS.items()}
        values["alpha"] = (values["alpha"],) * NUM_TOPICS
    return switched_posterior(TINY.docs, TINY.group, TINY.num_words, **values)


def test_enumeration_gives_known_numbers():
    """Against numbers that another program has computed, for other concentrations."""
    posterior = switched_posterior(
        [[0, 1], [0, 2], [2]], [0, 1, 1], 3, alpha=(0.5, 0.5), beta=0.6, group_beta=0.3,
        switch_common=1.0, switch_own=2.0,
    )  # fmt: skip
    expected = {
        "coassigned": [
            0.669141, 0.514965, 0.493287, 0.486410, 0.493220, 0.485158, 0.486797, 0.660072,
            0.466010, 0.611878,
        ],
        "both_common": [
            0.099869, 0.112322, 0.045988, 0.041011, 0.057024, 0.035786, 0.034632, 0.096564,
            0.066733, 0.112667,
        ],
        "own": [0.609529, 0.657992, 0.580823, 0.688682, 0.702178],
        "next": [0.395000, 0.383209, 0.221791],
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(posterior.mean(name), values, atol=6e-7, err_msg=name)
    used = posterior.mean("topics") @ np.arange(1, 6)
    scalars = [posterior.mean("own").sum(), used, posterior.log_evidence]
    np.testing.assert_allclose(scalars, [3.239203, 1.881823, -5.973870], atol=6e-7)


# ---- the case


def weigh(state, data, token):
    (num_words, num_topics), doc = state.word_topic.shape, data.doc[token]
    word, group, own = data.word[token], data.group[doc], state.switch[token]
    minus = (jnp.arange(num_topics) == state.z[token]).astype(jnp.int32)
    return kernel.conditional(
        state.doc_topic[doc] - minus,
        state.word_topic[word] - minus * (1 - own),
        state.word_topic.sum(axis=0) - minus * (1 - own),
        state.group_word_topic[group * num_words + word] - minus * own,
        state.group_own[group] - minus * own,
        state.group_topic[group] - minus,
        num_words=num_words, **{name: getattr(state, name) for name in FIXED},
    )  # fmt: skip


def count(z, switch, data, num_words, num_groups, num_topics):
    """Count topics and switches from scratch, by the names of the fields."""
    group = data.group[data.doc]
    topic = token_corpora.tally(z, data.doc, data.doc_length.shape[0], num_topics)

    def tally(row, num_rows, values):
        return jnp.zeros((num_rows, num_topics), jnp.int32).at[row, z].add(values)

    return {
        "doc_topic": topic,
        "topic": topic.sum(axis=0),
        "word_topic": tally(data.word, num_words, 1 - switch),
        "group_word_topic": tally(group * num_words + data.word, num_groups * num_words, switch),
        "group_topic": tally(group, num_groups, 1),
        "group_own": tally(group, num_groups, switch),
    }


def make_state(z, switch, data, num_words, num_groups, **hyper):
    z, switch = (jnp.asarray(x, jnp.int32) for x in (z, switch))
    hyper = {name: jnp.asarray(x, jnp.float32) for name, x in hyper.items()}
    counts = count(z, switch, data, num_words, num_groups, len(hyper["alpha"]))
    return kernel.CrossCollectionState(z=z, switch=switch, **counts, **hyper)


@dataclasses.dataclass(frozen=True, eq=False)
class SwitchedTopics(testing.FiniteTopicsCase):
    """Parts of the case: as for other finite topics, with a switch for each token."""

    outcome = "switch", 2

    def exact(self, target):
        names = ["one_topic", "coassigned", "topic", "own", "both_common"]
        names += GIVEN if target == "fixed" else [*list(FIXED), "alpha_sum"]
        return enumerated(target).means(*names)

    def target(self, name):
        shapes = {"alpha": (NUM_TOPICS,)}
        priors = {n: gamma_prior(*p, shape=shapes.get(n, ())) for n, p in PRIORS.items()}
        if name == "fixed":
            priors = {n: sharp(value) for n, value in FIXED.items()}
        others = {n: x for n, x in FIXED.items() if n != "alpha"}

        def start(rng_key):
            return kernel.init(
                rng_key, TINY.data, num_words=TINY.num_words, num_groups=2, num_topics=NUM_TOPICS,
                alpha=jnp.array(FIXED["alpha"], jnp.float32), **others,
            )  # fmt: skip

        return testing.Target(
            TINY.data, kernel.CrossCollectionPriors(**priors), start, self.posterior_quantities,
            functools.partial(self.exact, name),
        )  # fmt: skip

    def posterior_quantities(self, state, data):
        num_words, alpha = state.word_topic.shape[0], state.alpha
        words, own = state.word_topic[:, 1], state.group_word_topic[:num_words, 1]
        switches = state.switch_own + state.group_own[0, 1]
        both = state.switch_own + state.switch_common + state.group_topic[0, 1]
        values = self.token_quantities(state) | switch_quantities(state.z, state.switch) | {
            **{name: getattr(state, name) for name in FIXED},
            "alpha": alpha[0],
            "alpha_sum": alpha.sum(),
            "topic": state.topic,
            "theta_00": (state.doc_topic[0, 0] + alpha[0]) / (data.doc_length[0] + alpha.sum()),
            "phi_10": (words[0] + state.beta) / (words.sum() + num_words * state.beta),
            "own_010": (own[0] + state.group_beta) / (own.sum() + num_words * state.group_beta),
            "psi_01": switches / both,
            "log_joint": kernel.log_joint(state, data),
        }  # fmt: skip
        return as_floats(values)

    def shipped(self):
        def quantities(draws):
            z = draws["z"]
            topic = (z[..., None] == np.arange(NUM_TOPICS)).sum(axis=-2)
            found = enumeration.token_quantities(z) | switch_quantities(z, draws["switch"])
            return found | {"topic": topic}

        def expected():
            return {n: x for n, x in self.exact("fixed").items() if n not in GIVEN}

        return testing.Shipped(
            CrossCollectionLDA(NUM_TOPICS, **FIXED), TINY.corpus, quantities, expected,
            ("z", "switch"),
        )  # fmt: skip

    def tally(self, state, data):
        num_words, num_topics = state.word_topic.shape
        num_groups = state.group_own.shape[0]
        return count(state.z, state.switch, data, num_words, num_groups, num_topics)

    def joint(self):
        shapes = {"alpha": (JOINT_TOPICS,)}
        priors = {n: gamma_prior(*p, shape=shapes.get(n, ())) for n, p in PRIORS.items()}
        return dataclasses.replace(super().joint(), priors=kernel.CrossCollectionPriors(**priors))

    def switched_states(self, z, switch, word, hyper):
        """Return kernel states and data of draws of everything, with a leading axis."""

        def one(z, switch, data, hyper):
            return make_state(z, switch, data, JOINT.num_words, 2, **hyper)

        data = self.with_words_of(word)
        hyper = {name: np.asarray(x, np.float32) for name, x in hyper.items()}
        return testing.quick_jit(jax.vmap(one))(z, switch, data, hyper), data

    def simulate(self, rng, size):
        rows, group = np.arange(size)[:, None], np.asarray(JOINT.group)
        num_groups, doc = 2, JOINT.doc
        hyper = {
            name: rng.gamma(a, 1 / b, (size, JOINT_TOPICS) if name == "alpha" else size)
            for name, (a, b) in PRIORS.items()
        }
        theta = simulate.draw_dirichlet(rng, np.repeat(hyper["alpha"][:, None], len(group), axis=1))

        def draw(concentration, *shape):
            wide = concentration.reshape(size, *[1] * (len(shape) - 1), concentration[0].size)
            return simulate.draw_dirichlet(rng, np.broadcast_to(wide, (size, *shape)))

        phi = draw(hyper["beta"], JOINT_TOPICS, JOINT.num_words)
        own = draw(hyper["group_beta"], num_groups, JOINT_TOPICS, JOINT.num_words)
        prior = np.stack([hyper["switch_common"], hyper["switch_own"]], axis=1)
        psi = draw(prior, num_groups, JOINT_TOPICS, 2)
        z = simulate.draw_categorical(rng, theta[rows, doc])
        switch = simulate.draw_categorical(rng, psi[rows, group[doc], z])
        of_token = np.where(switch[..., None] == 1, own[rows, group[doc], z], phi[rows, z])
        return self.switched_states(z, switch, simulate.draw_categorical(rng, of_token), hyper)

    def draw_program(self, rng_key, size):
        priors = {name: dist.Gamma(*prior) for name, prior in PRIORS.items()}
        model = CrossCollectionLDA(
            JOINT_TOPICS, **priors | {"alpha": priors["alpha"].expand([JOINT_TOPICS])}
        )
        draws = self.program_draws(rng_key, model, list(PRIORS), size)
        hyper = {name: draws[name] for name in PRIORS}
        states = self.switched_states(draws["z"], draws["switch"], draws["w"], hyper)
        return self.measure(self.joint_quantities, *states)

    def redraw_words(self, rng_key, state, data):
        num_words, num_topics = state.word_topic.shape
        group, is_own = data.group[data.doc], state.switch == 1
        urn = state.z + state.switch * (group + 1) * num_topics
        beta = jnp.where(is_own, state.group_beta, state.beta)
        word = token_corpora.draw_words(rng_key, urn, num_words, beta)
        data = self.joint_corpus.with_words(data, word)
        return state._replace(**self.tally(state, data)), data

    def joint_quantities(self, state, data):
        logs = {f"log {n}": jnp.log(getattr(state, n)) for n in list(FIXED)[1:]}
        own, share = state.switch.sum(), state.alpha[1] / state.alpha.sum()
        values = self.count_quantities(state, data) | logs | {
            "log alpha": jnp.log(state.alpha.sum()),
            "alpha share": share,
            "first topic * share": state.topic[1] * share,
            "topics used": (state.topic > 0).sum(),
            "own": own,
            "own of group 0": state.group_own[0].sum(),
            "own tokens of word 0": ((data.word == 0) * state.switch).sum(),
            "sum n_gvk1^2": (state.group_word_topic**2).sum(),
            "sum n_gk1^2": (state.group_own**2).sum(),
            "sum n_0k1 n_1k1": state.group_own.prod(axis=0).sum(),
            "sum n_gk^2": (state.group_topic**2).sum(),
            "own * log switch_own": own * logs["log switch_own"],
            "own * log switch_common": own * logs["log switch_common"],
            "log beta * log group_beta": logs["log beta"] * logs["log group_beta"],
            "log switch_common * log switch_own": logs["log switch_common"]
            * logs["log switch_own"],
        }  # fmt: skip
        return as_floats(values)

    def program_log_joint(self, state, data, priors):
        """Return the log density of the program, with all that the kernel integrates out."""
        hyperparameters, values = priors_in_program(FIXED, priors, state)
        model = CrossCollectionLDA(NUM_TOPICS, **hyperparameters)
        shape = 2, NUM_TOPICS, TINY.num_words
        own = jnp.asarray(somewhere(2 * NUM_TOPICS, TINY.num_words), jnp.float32).reshape(shape)
        psi = jnp.asarray(somewhere(5, 2 * NUM_TOPICS)[0], jnp.float32).reshape(2, NUM_TOPICS)
        values |= {"group_phi": own, "psi": psi}
        total = self.density_without_mixtures(model, values, state, data, state.alpha)
        counts = state.group_word_topic.reshape(2, TINY.num_words, NUM_TOPICS).swapaxes(1, 2)
        of_words = dist.Dirichlet(state.group_beta + counts).log_prob(own)
        common = state.group_topic - state.group_own
        switches = dist.Beta(state.switch_own + state.group_own, state.switch_common + common)
        return total - of_words.sum() - switches.log_prob(psi).sum()


FAMILY = SwitchedTopics(
    kernel, CrossCollectionLDA, kernel.CrossCollectionState, kernel.CrossCollectionPriors, weigh,
    TINY, JOINT,
)  # fmt: skip

# kernels that are wrong on purpose
MISTAKES = [
    testing.Mistake(
        "weights without the denominator of the switches", kernel, "conditional",
        "total = {group_k + (switch_common + switch_own)}", "jnp.ones_like(group_k) + 0.0",
        "conditional",
    ),
    testing.Mistake(
        "denominator of the switches is missing", kernel, "conditional",
        "total = {group_k + (switch_common + switch_own)}", "1.0",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own tokens with the concentration of the common ones", kernel, "conditional",
        "own_k + {switch_own}", "switch_common",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "switches of Beta(c_0, c_1)", kernel, "_draw",
        "key_psi, {state.switch_own}", "state.switch_common",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "density of switched switches", kernel, "log_joint",
        "jnp.stack([state.switch_common, state.switch_own])",
        "jnp.stack([state.switch_own, state.switch_common])",
        "log_joint",
    ),
    testing.Mistake(
        "own tokens count in the totals of the common words", kernel, "_sequential_sweep",
        "CountTable({state.topic - state.group_own.sum(axis=0)}", "state.topic",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "common words drawn with the own tokens", kernel, "_draw",
        "key_phi, {state.word_topic}",
        "state.word_topic + state.group_word_topic.reshape(-1, num_words, num_topics).sum(axis=0)",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "own words of the other group", kernel, "_sequential_sweep",
        "state.group_word_topic, {_own_row(data, num_words)}",
        "(1 - group) * num_words + data.word",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "switches of the other group", kernel, "_sequential_sweep",
        "CountTable(state.group_own, {group}, ", "1 - group",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "topics drawn with the words of the other group", kernel, "_parallel_sweep",
        "table_row={group_of(data)} * num_words", "(1 - group_of(data))",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "switches drawn without the words", kernel, "_parallel_sweep",
        "< {of_own.reshape(-1, num_topics)[row, z]}",
        "(jnp.exp(log_psi)[:, None, :] * both.reshape(own.shape)).reshape(-1, num_topics)[row, z]",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "probabilities of the switches are means, not draws", kernel, "_draw",
        "swapaxes(0, 1), {log_psi}",
        "jnp.log((state.switch_own + state.group_own) "
        "/ (state.switch_own + state.switch_common + state.group_topic))",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "own words with the concentration of the common ones", kernel, "conditional",
        "own_vk + {group_beta}", "beta",
        "enumeration/fixed/sequential",
    ),
    testing.Mistake(
        "own words drawn with the concentration of the common ones", kernel, "_draw",
        "num_words), {state.group_beta}, ", "state.beta",
        "enumeration/fixed/parallel",
    ),
    testing.Mistake(
        "switches of own tokens alone", kernel, "_resample",
        "Concentration(value, {state.group_topic}.reshape(-1)", "state.group_own",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "tables of the switches with the concentrations swapped", kernel, "_resample",
        "_switch_counts(state), {value}", "value[::-1]",
        "enumeration/hyper/sequential",
    ),
    testing.Mistake(
        "tables of group_beta from the common words", kernel, "_resample",
        "keys[2], {_by_word(state.group_word_topic, num_words)}",
        "jnp.tile(state.word_topic, (1, state.group_own.shape[0]))",
        "enumeration/hyper/parallel",
    ),
    testing.Mistake(
        "beta sees the own tokens", kernel, "_resample",
        "state.word_topic, {common}", "state.topic",
        "enumeration/hyper/parallel",
    ),
]  # fmt: skip

CASE = FAMILY.case(
    name="cross_collection_lda",
    targets=("fixed", "hyper"),
    schedules={  # programs: two documents more, and one topic more, in Geweke's test
        name: testing.Schedule(testing.late(kernel, "step", sweeps=(name,)), num_programs=2)
        for name in ("sequential", "parallel")
    },
    mistakes=tuple(MISTAKES),
)


@pytest.mark.slow
@testing.each_check(CASE)
def test_check(check):
    print(check())


@testing.each_mistake(MISTAKES)
def test_mistake(mistake):
    CASE.must_catch(mistake)


# ---- limits

DOCS, GROUP = [[0, 0, 1], [1, 2], [2, 2, 1]], [1, 0, 1]
Z = [0, 1, 2, 1, 1, 0, 2, 0]
HYPER = {
    "alpha": (0.5, 1.2, 0.3), "beta": 0.4, "group_beta": 0.7, "switch_common": 1.5,
    "switch_own": 0.8,
}  # fmt: skip


def log_joint(switch, group=None, z=Z, **hyper):
    group = GROUP if group is None else group
    data = token_corpora.lay_out(DOCS, group=group)
    state = make_state(z, switch, data, 3, max(group) + 1, **HYPER | hyper)
    return testing.quick_jit(kernel.log_joint)(state, data)


def lda_log_joint(docs, z, beta):
    data, z = token_corpora.lay_out(docs), jnp.array(z)
    alpha = jnp.array(HYPER["alpha"], jnp.float32)
    counts = (token_corpora.tally(z, *of, 3) for of in ((data.doc, len(docs)), (data.word, 3)))
    doc_topic, word_topic = counts
    state = lda.LDAState(z, doc_topic, word_topic, word_topic.sum(0), alpha, jnp.float32(beta))
    return testing.quick_jit(lda.log_joint)(state, data)


def test_without_own_words_it_is_lda_of_all_documents():
    found = log_joint([0] * 8, switch_own=1e-8)
    np.testing.assert_allclose(found, lda_log_joint(DOCS, Z, HYPER["beta"]), rtol=1e-6)
    assert log_joint([0] * 7 + [1], switch_own=1e-8) < found - 15  # no token has the switch


def test_without_common_words_it_is_lda_of_each_group():
    found = log_joint([1] * 8, switch_common=1e-8)
    beta = HYPER["group_beta"]
    of_groups = lda_log_joint(DOCS[1:2], Z[3:5], beta) + lda_log_joint(
        [DOCS[0], DOCS[2]], Z[:3] + Z[5:], beta
    )
    np.testing.assert_allclose(found, of_groups, rtol=1e-6)
    assert log_joint([1] * 7 + [0], switch_common=1e-8) < found - 15


def test_one_group_with_equal_priors_is_symmetric():
    """The two kinds of words of any topic may be exchanged, so that P(s = 1) = 1/2."""
    equal = {"group": [0] * 3, "group_beta": HYPER["beta"], "switch_own": HYPER["switch_common"]}
    switch = np.array([0, 1, 1, 0, 1, 0, 0, 0])
    found = log_joint(switch, **equal)
    np.testing.assert_allclose(log_joint(1 - switch, **equal), found, rtol=1e-6)
    of_one_topic = np.where(np.array(Z) == 1, 1 - switch, switch)
    np.testing.assert_allclose(log_joint(of_one_topic, **equal), found, rtol=1e-6)
    assert abs(log_joint(1 - switch) - log_joint(switch)) > 0.1  # it is not so with two groups


@pytest.mark.parametrize("schedule", ["sequential", "parallel"])
def test_one_topic(schedule):
    data = token_corpora.lay_out(DOCS, num_lanes=1, group=GROUP)
    hyper = HYPER | {"alpha": (0.5,)}
    state = make_state([0] * 8, [0, 1] * 4, data, 3, 2, **hyper)
    step = testing.quick_jit(CASE.schedules[schedule].step)
    after, info = step(jax.random.key(0), state, data, kernel.CrossCollectionPriors())
    assert info.num_moved == 0
    np.testing.assert_array_equal(after.z, 0)
    assert (np.asarray(after.switch) != np.asarray(state.switch)).any()
    # documents are certain; the rest is that of words and switches
    switch, word = np.array([0, 1, 0, 0, 1, 0, 1, 1]), np.concatenate(DOCS)
    token_group = np.repeat(GROUP, [3, 2, 3])
    log_dm = enumeration.log_dirichlet_multinomial
    expected = log_dm(np.bincount(word[switch == 0], minlength=3), HYPER["beta"])
    for g in range(2):
        mine = token_group == g
        own = np.bincount(word[mine & (switch == 1)], minlength=3)
        pair = np.array([HYPER["switch_common"], HYPER["switch_own"]])
        expected += log_dm(own, HYPER["group_beta"])
        expected += log_dm(np.bincount(switch[mine], minlength=2), pair)
    found = log_joint(switch, z=[0] * 8, alpha=(0.5,))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_concentrations_with_and_without_priors():
    """One that has no prior keeps its value, and does not change the draw of another."""
    data = TINY.data
    state = testing.quick_jit(CASE.targets["fixed"].start)(jax.random.key(0))
    resample = testing.quick_jit(kernel._resample)
    priors = {n: gamma_prior(*p) for n, p in PRIORS.items()}

    def drawn(*names):
        of_these = kernel.CrossCollectionPriors(**{n: priors[n] for n in names})
        return resample(jax.random.key(1), state, data, of_these)

    none, both, own = drawn(), drawn("switch_common", "switch_own"), drawn("switch_own")
    jax.tree.map(np.testing.assert_array_equal, none, state)
    assert own.switch_common == state.switch_common != both.switch_common
    assert own.switch_own == both.switch_own != state.switch_own
    alpha = np.asarray(drawn("alpha").alpha)
    assert (alpha == alpha[0]).all()
    assert alpha[0] not in np.asarray(state.alpha)
