"""Held-out scores against enumeration of the topics of tiny documents."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import Mixtures
from bnp_models.scores.held_out import document_completion, document_topics, left_to_right
from bnp_models.scores.held_out_score import particle_jackknife
from bnp_models.testing.statistics import one_sample, rejection_threshold

PHI = np.array([[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.5, 0.4, 0.1], [0.05, 0.05, 0.9]]])
PHI = PHI.transpose(0, 2, 1)  # word-major
WEIGHTS = np.array([[0.5, 1.2], [0.2, 0.3]])
DOCUMENT = [0, 2, 1]


def mixtures(num_states=2):
    repeat = np.arange(num_states) % 2
    return Mixtures(
        PHI[repeat].astype(np.float32),
        DirichletLaw(WEIGHTS[repeat].astype(np.float32)),
        repeat,  # every kind of state is a chain
        np.arange(num_states) // 2,
        ("a", "b", "c"),
    )


def enumerate_document(document, phi, weights):
    """p(document) and E[theta | document], over all topic assignments."""
    theta, evidence = np.zeros(len(weights)), 0.0
    for z in itertools.product(range(len(weights)), repeat=len(document)):
        counts, p = np.zeros(len(weights)), 1.0
        for n, (word, k) in enumerate(zip(document, z, strict=True)):
            p *= (counts[k] + weights[k]) / (n + weights.sum()) * phi[word, k]
            counts[k] += 1
        evidence += p
        theta = theta + p * (counts + weights) / (len(document) + weights.sum())
    return evidence, theta / evidence


EVIDENCE = [enumerate_document(DOCUMENT, *state)[0] for state in zip(PHI, WEIGHTS, strict=True)]


def from_ids(documents):
    corpus = Corpus.from_ids([*documents, [0]], vocabulary=["a", "b", "c"])
    # without the last document, which is there because a corpus must have a token
    return dataclasses.replace(
        corpus,
        doc=corpus.doc[:-1],
        word=corpus.word[:-1],
        doc_length=corpus.doc_length[:-1],
        num_docs=len(documents),
        names=dataclasses.replace(corpus.names, doc_names=corpus.doc_names[:-1]),
    )


def test_document_topics_are_exact():
    draws = {
        f"state{s}": theta[:, 0].astype(np.float64)
        for s, theta in enumerate(document_topics(mixtures(), from_ids([DOCUMENT] * 3000)))
    }
    exact = {f"state{s}": enumerate_document(DOCUMENT, PHI[s], WEIGHTS[s])[1][0] for s in range(2)}
    assert exact["state0"] == pytest.approx(0.317642, abs=5e-7)
    one_sample("document topics", draws, exact).check()


@pytest.mark.slow
def test_document_completion_is_exact():
    """Copies of two documents; enough kept sweeps to make the bias of the log negligible."""
    documents, heldout = [DOCUMENT, [1, 1, 2, 0]], [[2, 2], [0]]
    exact, by_state = [], []
    for document, rest in zip(documents, heldout, strict=True):
        predictive = [
            phi[rest] @ enumerate_document(document, phi, weights)[1]
            for phi, weights in zip(PHI, WEIGHTS, strict=True)
        ]
        exact.append(np.log(np.mean(predictive, axis=0)).sum())
        by_state.append(np.log(predictive).sum(1))
    copies = 250
    score = document_completion(
        mixtures(),
        from_ids(documents * copies),
        from_ids(heldout * copies),
        num_sweeps=1520,
        num_kept=1500,
    )
    scores = score.doc_log_prob.reshape(copies, 2)
    report = one_sample("completion", {"score": scores}, {"score": np.array(exact)})
    report.check()
    assert all(report.detectable(c) < 0.01 for c in report.comparisons), report
    states = score.state_log_prob.reshape(2, copies, 2).transpose(1, 0, 2)
    one_sample("each state", {"score": states}, {"score": np.array(by_state).T}).check()
    assert score.num_tokens == 3 * copies
    assert score.log_prob == pytest.approx(score.doc_log_prob.sum() / (3 * copies))
    assert score.perplexity == pytest.approx(math.exp(-score.log_prob))
    assert score.settings == {
        "method": "document_completion",
        "num_sweeps": 1520,
        "num_kept": 1500,
        "num_states": 2,
        "seed": 0,
    }


def test_left_to_right_averages_states_in_probability_space():
    """The mean of p over copies, not of log p, is without bias."""
    score = left_to_right(mixtures(), from_ids([DOCUMENT] * 5000), num_particles=2)
    exact = np.mean(EVIDENCE)
    one_sample("evidence", {"p": np.exp(score.doc_log_prob)}, {"p": exact}).check()
    states = np.exp(score.state_log_prob).T
    one_sample("each state", {"p": states}, {"p": np.array(EVIDENCE)}).check()
    assert EVIDENCE[0] == pytest.approx(math.exp(-3.607147), rel=1e-6)
    averaged_logs = np.mean(np.log(EVIDENCE))
    assert abs(math.log(exact) - averaged_logs) > 0.01  # the wrong order would be seen


def test_sorted_words_are_scored_as_well_as_shuffled_ones():
    """Read in the order of the corpus, sorted words would get an estimate that is far too low."""
    rng = np.random.default_rng(0)
    words = np.sort(rng.choice(40, 200, p=np.repeat([0.1, 0.2, 0.3, 0.4], 10) / 10))
    phi = np.repeat(np.eye(4) + 0.02, 10, axis=0).astype(np.float32)  # topics of ten words
    phi /= phi.sum(axis=0)
    weights = np.full((1, 4), 0.5, np.float32)
    vocabulary = tuple(str(v) for v in range(40))
    states = Mixtures(
        phi[None], DirichletLaw(weights), np.zeros(1, int), np.zeros(1, int), vocabulary
    )
    documents = [words] * 200, [rng.permutation(words) for _ in range(200)]
    of_sorted, of_shuffled = (
        left_to_right(states, Corpus.from_ids(d, vocabulary=vocabulary), seed=s).doc_log_prob
        for s, d in enumerate(documents)
    )
    error = math.sqrt((of_sorted.var(ddof=1) + of_shuffled.var(ddof=1)) / 200)
    assert abs(of_sorted.mean() - of_shuffled.mean()) < rejection_threshold(1) * error < 1


@pytest.mark.parametrize(
    ("combine", "document"),
    [
        ("mean_of_products", DOCUMENT),
        ("product_of_means", [2, 2, 2]),  # it depends on the order of words that differ
    ],
)
def test_particle_error_is_that_of_repetitions(combine, document):
    """Spread of the score over copies against its stated error, 6 sigma of either."""
    copies = 1000
    score = left_to_right(
        mixtures(), from_ids([document] * copies), num_particles=100, combine=combine
    )
    seen = score.doc_log_prob.std(ddof=1)
    stated = math.sqrt(np.mean(score.doc_error_particles**2))
    assert abs(seen / stated - 1) < 6 / math.sqrt(2 * copies)
    total = math.sqrt((score.doc_error_particles**2).sum()) / score.num_tokens
    assert score.error_particles == pytest.approx(total)


def test_particle_bias_is_estimated():
    """The log of an unbiased estimate is too low, by what the jackknife says to first order."""
    score = left_to_right(mixtures(1), from_ids([DOCUMENT] * 20_000), num_particles=4)
    exact = math.log(EVIDENCE[0])
    (raw,) = one_sample("log", {"log": score.doc_log_prob}, {"log": exact}).comparisons
    assert raw.z < -rejection_threshold(1)
    excess = score.bias_particles * len(DOCUMENT)
    tolerance = rejection_threshold(1) * raw.standard_error + 0.1 * abs(excess)
    assert abs(raw.estimate - exact - excess) < tolerance < 0.6 * abs(excess)


@pytest.mark.parametrize("share", [[1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]])
def test_jackknife_by_leaving_out(share):
    """Leave out each particle of each state in turn, with weights that differ by many nats."""
    rng = np.random.default_rng(0)
    log_weight = rng.normal(0, 6, (3, 2, 4)) - 500
    by_state, particles = particle_jackknife(log_weight, np.log(share))
    weight = np.exp(log_weight + 500)
    np.testing.assert_allclose(by_state + 500, np.log(weight.mean(2)), rtol=1e-9)
    whole = np.log(share @ weight.mean(2))
    expected_variance, expected_bias = np.zeros((2, 2))
    for s in range(3):
        without = []
        for r in range(4):
            means = weight.mean(2)
            means[s] = np.delete(weight[s], r, 1).mean(1)
            without.append(np.log(share @ means))
        expected_variance += 3 * np.var(without, axis=0)
        expected_bias += 3 * (np.mean(without, axis=0) - whole)
    np.testing.assert_allclose(particles.variance, expected_variance)
    np.testing.assert_allclose(particles.bias, expected_bias)
    assert particles.total == pytest.approx(expected_variance.sum())
    same = particle_jackknife(log_weight[:, [0, 0]], np.log(share), shared=True)[1]
    assert same.total == pytest.approx(4 * same.variance[0])  # twice the same error


def test_left_to_right_blocks_and_options():
    """Documents of all lengths, scored in several blocks, come back in their own places."""
    rng = np.random.default_rng(0)
    documents = [list(rng.integers(0, 3, n)) for n in rng.integers(0, 6, 40)]
    score = left_to_right(mixtures(1), from_ids(documents), num_particles=1000, resample=True)
    exact = [math.log(enumerate_document(d, PHI[0], WEIGHTS[0])[0]) for d in documents]
    bound = rejection_threshold(len(documents)) * score.doc_error_particles
    assert (np.abs(score.doc_log_prob - exact) <= bound + 1e-5).all()
    np.testing.assert_array_equal(score.doc_tokens, [len(d) for d in documents])


def test_standard_errors_by_formula():
    """States and chains by deletion; documents: the ratio estimator on unequal lengths."""
    documents = [[0, 1], [2], [2, 2, 1], [1, 0, 0, 2]] * 3
    score = left_to_right(mixtures(8), from_ids(documents), num_particles=10)
    p, num_tokens = np.exp(score.state_log_prob), score.num_tokens

    def jackknife(without):
        return math.sqrt((len(without) - 1) * np.var(without)) / num_tokens

    states = [np.log(np.delete(p, s, 0).mean(0)).sum() for s in range(8)]
    assert score.error_states == pytest.approx(jackknife(states))
    chains = [np.log(p[c::2].mean(0)).sum() for c in range(2)]  # each kind of state is a chain
    assert score.error_chains == pytest.approx(jackknife(chains))
    residual = score.doc_log_prob - score.log_prob * score.doc_tokens
    docs = math.sqrt(len(documents) * residual.var(ddof=1)) / num_tokens
    assert score.error_docs == pytest.approx(docs)
    completed = document_completion(mixtures(8), from_ids(documents), from_ids(documents))
    assert 0 < completed.error_states < completed.error_chains
    plug_in = completed.state_log_prob.sum(1)
    assert completed.doc_log_prob.sum() > plug_in.mean()  # Jensen
    assert "nats per token" in str(score)
    assert "particles" in str(score)


def test_empty_documents_score_nothing():
    documents = [[], DOCUMENT, [], [1]]
    whole = left_to_right(mixtures(), from_ids(documents), seed=3)
    assert whole.num_tokens == 4
    assert (whole.doc_log_prob[[0, 2]] == 0).all()
    assert (whole.doc_log_prob[[1, 3]] < 0).all()
    halves = document_completion(mixtures(), from_ids([[], [0], [1], []]), from_ids(documents))
    assert halves.num_tokens == 4
    assert (halves.doc_log_prob[[0, 2]] == 0).all()
    unseen = np.mean([phi[1] @ w / w.sum() for phi, w in zip(PHI, WEIGHTS, strict=True)])
    assert halves.doc_log_prob[3] == pytest.approx(math.log(unseen), rel=1e-5)
    assert math.isnan(halves.error_particles)
    nothing = document_completion(mixtures(), from_ids([[]]), from_ids([[1]]))
    assert nothing.log_prob == pytest.approx(math.log(unseen), rel=1e-5)
    assert math.isnan(nothing.error_docs)


def test_one_state_at_a_time_gives_the_same():
    corpus = from_ids([DOCUMENT] * 4)
    stacked = mixtures(4)
    parts = (stacked._select(slice(s, s + 1)) for s in range(4))
    one, other = left_to_right(stacked, corpus), left_to_right(parts, corpus)
    np.testing.assert_array_equal(one.state_log_prob, other.state_log_prob)
    assert (one.log_prob, one.error_states) == (other.log_prob, other.error_states)
    assert one.log_prob != left_to_right(stacked, corpus, seed=1).log_prob


@pytest.mark.slow
def test_empty_slots_change_nothing():
    few, corpus = mixtures(2), from_ids([DOCUMENT] * 4)
    slots = np.full((2, 3, 62), 1 / 3, np.float32)
    many = few._replace(
        phi=np.concatenate([few.phi, slots], 2),
        law=DirichletLaw(np.pad(few.weights, [(0, 0), (0, 62)])),
    )
    for score in (left_to_right, lambda m, c: document_completion(m, c, c)):
        expected = score(few, corpus).state_log_prob
        np.testing.assert_allclose(score(many, corpus).state_log_prob, expected, rtol=1e-5)


def test_halves_of_a_corpus():
    corpus = from_ids([DOCUMENT * 4] * 5)
    observed, heldout = corpus.halves(0)
    score = document_completion(mixtures(), observed, heldout)
    assert score.num_tokens == heldout.num_tokens
    assert math.log(1 / 3) - 0.5 < score.log_prob < 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_particles": 0}, "num_particles must be an integer of at least 1, got 0"),
        ({"combine": "mean"}, "combine must be one of .*'mean_of_products', 'product_of_means'"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"resample": -1}, "resample must be True, False or a number of redraws, got -1"),
        ({"num_particles": 2**30}, "exceeds the random-number counter"),
    ],
)
def test_bad_left_to_right(options, message):
    with pytest.raises(ValueError, match=message):
        left_to_right(mixtures(), from_ids([DOCUMENT] * 2), **options)


def test_resampling_refuses_very_long_documents():
    with pytest.raises(ValueError, match="limited to documents below 32768 tokens"):
        left_to_right(mixtures(), from_ids([[0] * 2**15]), resample=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_kept": 60}, r"num_kept must be in \[1, num_sweeps=50\], got 60"),
        ({"num_kept": 0}, "num_kept must be"),
        ({"observed": from_ids([[0]] * 2)}, "observed has 2 documents and heldout 1"),
        ({"heldout": from_ids([[]])}, "heldout has no tokens"),
        ({"heldout": Corpus.from_ids([[3]], num_words=4)}, "heldout has 4 words, the model has 3"),
        (
            {"observed": Corpus.from_ids([[0]], vocabulary=["a", "b", "d"])},
            "observed has another vocabulary than the model: word 2 is 'd', not 'c'",
        ),
        (
            {"mixtures": mixtures()._replace(phi=np.eye(3, 2)[None].repeat(2, 0))},
            "gives word 2, which occurs in heldout, probability zero in chain 0, draw 0",
        ),
    ],
)
def test_bad_completion(options, message):
    arguments = {"mixtures": mixtures(), "observed": from_ids([[0]]), "heldout": from_ids([[2]])}
    with pytest.raises(ValueError, match=message):
        document_completion(**(arguments | options))


SHARES = np.array([0.8, 0.2])  # of the two chains of `mixtures`


def weighted(num_states, shares=SHARES):
    plain = mixtures(num_states)
    return plain._replace(chain_weight=3 * shares[plain.chain])  # any scale


SCORES = {
    "document_completion": lambda m, c: document_completion(m, c, c, num_sweeps=6, num_kept=3),
    "left_to_right": lambda m, c: left_to_right(m, c, num_particles=3),
}
DOCUMENTS = [[0, 1], [2], [2, 2, 1], [1, 0, 0, 2]]


@pytest.mark.parametrize("name", SCORES)
def test_weights_of_chains(name):
    """Chains are averaged by weight, the states of a chain alike; errors by leaving out states."""
    corpus = from_ids(DOCUMENTS)
    plain, found = (SCORES[name](m, corpus) for m in (mixtures(6), weighted(6)))
    np.testing.assert_array_equal(found.state_log_prob, plain.state_log_prob)
    np.testing.assert_array_equal(found.chain_log_prob, plain.chain_log_prob)
    by_chain = np.exp(found.chain_log_prob)
    total = np.log(SHARES @ by_chain).sum()
    assert found.log_prob * found.num_tokens == pytest.approx(total)
    assert plain.log_prob * found.num_tokens == pytest.approx(np.log(by_chain.mean(0)).sum())
    if name == "left_to_right":
        p = np.exp(found.state_log_prob)
        np.testing.assert_allclose(by_chain, [p[c::2].mean(0) for c in range(2)])
        squared = 0.0
        for c in range(2):
            without = []
            for s in range(3):
                rest = by_chain.copy()
                rest[c] = np.delete(p[c::2], s, 0).mean(0)
                without.append(np.log(SHARES @ rest).sum())
            squared += 2 * np.var(without)
        assert found.error_states * found.num_tokens == pytest.approx(math.sqrt(squared))
    assert 0 < found.error_states != pytest.approx(plain.error_states)
    assert math.isnan(found.error_chains)


@pytest.mark.parametrize("name", SCORES)
def test_equal_weights_and_a_weight_of_zero(name):
    corpus = from_ids(DOCUMENTS)
    plain = SCORES[name](mixtures(4), corpus)
    equal = SCORES[name](weighted(4, np.full(2, 0.5)), corpus)
    np.testing.assert_allclose(equal.doc_log_prob, plain.doc_log_prob)
    np.testing.assert_allclose(equal.doc_error_particles, plain.doc_error_particles)
    alone = SCORES[name](weighted(4, np.array([0.0, 1.0])), corpus)
    expected = plain.chain_log_prob[1].sum()
    assert alone.log_prob * alone.num_tokens == pytest.approx(expected)
    assert np.isfinite([alone.error_states, alone.error_docs]).all()


@pytest.mark.parametrize("weight", [[0.0] * 4, [1.0, 1, 2, 1], [-1.0, 1, -1, 1], [np.nan, 1] * 2])
def test_wrong_weights_are_refused(weight):
    wrong = mixtures(4)._replace(chain_weight=np.array(weight))
    with pytest.raises(ValueError, match="chain_weight must be finite, not negative, not all zero"):
        document_completion(wrong, from_ids([[0]]), from_ids([[0]]))


def test_weights_of_some_states_are_refused():
    parts = [mixtures(1), weighted(1)]
    with pytest.raises(ValueError, match="chain_weight in all states or in none"):
        document_completion(parts, from_ids([[0]]), from_ids([[0]]))
