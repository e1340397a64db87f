"""Empirical likelihood: sums by hand, exact evidence of tiny documents, stated errors."""

import itertools
import math

import numpy as np
import pytest

from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import Mixtures, OneRow
from bnp_models.scores import empirical_likelihood as module
from bnp_models.scores.empirical_likelihood import empirical_likelihood
from bnp_models.scores.held_out import left_to_right
from bnp_models.testing.statistics import one_sample, rejection_threshold

VOCABULARY = ["a", "b", "c"]
PHI = np.array([[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.5, 0.4, 0.1], [0.05, 0.05, 0.9]]])
PHI = PHI.transpose(0, 2, 1)  # word-major
WEIGHTS = np.array([[0.5, 1.2], [0.2, 0.3]])
DOCUMENTS = [[0, 2, 1], [1], [2, 2, 0, 0, 1], [0, 0]]


def corpus(documents=DOCUMENTS, **names):
    return Corpus.from_ids(documents, vocabulary=VOCABULARY, **names)


def mixtures(num_states=2):
    """Two kinds of states, each of which is a chain."""
    kind = np.arange(num_states) % 2
    return Mixtures(
        PHI[kind], DirichletLaw(WEIGHTS[kind]), kind, np.arange(num_states) // 2, tuple(VOCABULARY)
    )


def likelihoods(document, num_draws, seed=0, num_states=2):
    """By hand: states by draws."""
    found = []
    for s in range(num_states):
        theta = np.random.default_rng([seed, s]).dirichlet(WEIGHTS[s % 2], num_draws)
        found.append([math.prod(PHI[s % 2][v] @ row for v in document) for row in theta])
    return np.array(found)


def evidence(document, phi, weights):
    """p(document), over all topic assignments."""
    total = 0.0
    for z in itertools.product(range(len(weights)), repeat=len(document)):
        counts, p = np.zeros(len(weights)), 1.0
        for n, (word, k) in enumerate(zip(document, z, strict=True)):
            p *= (counts[k] + weights[k]) / (n + weights.sum()) * phi[word, k]
            counts[k] += 1
        total += p
    return total


def averaged(document):
    return np.mean([evidence(document, *state) for state in zip(PHI, WEIGHTS, strict=True)])


def test_sums_by_hand():
    """Averages, the effective number, and errors by leaving out a block of draws at a time."""
    num_draws, num_states = 40, 4
    score = empirical_likelihood(mixtures(num_states), corpus(), num_draws=num_draws, seed=3)
    p = np.array([likelihoods(d, num_draws, 3, num_states) for d in DOCUMENTS])  # [D, S, R]
    np.testing.assert_allclose(score.doc_log_prob, np.log(p.mean((1, 2))))
    np.testing.assert_allclose(score.state_log_prob, np.log(p.mean(2)).T)
    by_chain = [np.log(p[:, c::2].mean((1, 2))) for c in range(2)]
    np.testing.assert_allclose(score.chain_log_prob, by_chain)
    np.testing.assert_allclose(score.doc_effective_draws, p.sum((1, 2)) ** 2 / (p**2).sum((1, 2)))
    assert score.effective_draws == np.median(score.doc_effective_draws)
    log_prob = np.log(p.mean((1, 2)))
    blocks = p.reshape(4, num_states, 20, 2).mean(3)
    variance, bias, total = np.zeros(4), np.zeros(4), 0.0
    for s in range(num_states):
        without = np.empty((20, 4))
        for b in range(20):
            means = blocks.mean(2)
            means[:, s] = np.delete(blocks[:, s], b, 1).mean(1)
            without[b] = np.log(means.mean(1))
        variance += 19 * without.var(0)
        bias += 19 * (without.mean(0) - log_prob)
        total += 19 * without.sum(1).var()
    np.testing.assert_allclose(score.doc_error_particles, np.sqrt(variance))
    assert score.num_tokens == 11
    assert score.log_prob * 11 == pytest.approx(log_prob.sum())
    assert score.error_particles * 11 == pytest.approx(math.sqrt(total))
    assert score.bias_particles * 11 == pytest.approx(bias.sum())
    assert np.isfinite([score.error_docs, score.error_states, score.error_chains]).all()
    assert score.settings == {
        "method": "empirical_likelihood",
        "num_draws": num_draws,
        "num_states": num_states,
        "seed": 3,
    }


def test_the_mean_over_seeds_is_exact():
    """One word: E[theta] phi. Three words: all topic assignments."""
    documents = [[0], [1], [2], [0, 2, 1]]
    new = corpus(documents)
    scores = [empirical_likelihood(mixtures(), new, num_draws=100, seed=s) for s in range(300)]
    found = [np.exp(score.doc_log_prob) for score in scores]
    share = WEIGHTS / WEIGHTS.sum(1, keepdims=True)
    exact = [*np.mean([phi @ e for phi, e in zip(PHI, share, strict=True)], axis=0)]
    exact += [averaged(documents[-1])]
    report = one_sample("evidence", {"p": np.array(found)}, {"p": np.array(exact)})
    report.check()
    assert all(report.detectable(c) < 0.01 for c in report.comparisons), report


def test_left_to_right_estimates_the_same():
    new = corpus()
    ours = empirical_likelihood(mixtures(), new, num_draws=20_000)
    other = left_to_right(mixtures(), new, num_particles=2000)
    error = np.hypot(ours.doc_error_particles, other.doc_error_particles)
    assert (error < 0.02).all()
    assert (np.abs(ours.doc_log_prob - other.doc_log_prob) < rejection_threshold(4) * error).all()


def test_error_is_that_of_repetitions():
    """All documents share the draws, so copies of one are wrong by the same: 6 sigma of either."""
    seeds, new = 300, corpus([DOCUMENTS[0]] * 9)
    found = [empirical_likelihood(mixtures(), new, num_draws=400, seed=s) for s in range(seeds)]
    seen = np.std([score.log_prob for score in found], ddof=1)
    stated = math.sqrt(np.mean([score.error_particles**2 for score in found]))
    assert abs(seen / stated - 1) < 6 / math.sqrt(2 * seeds)
    first = found[0]
    assert first.error_particles == pytest.approx(first.doc_error_particles[0] / 3)  # no less


def test_order_and_pieces_change_nothing(monkeypatch):
    score = empirical_likelihood(mixtures(), corpus())
    order = [2, 0, 3, 1]
    other = empirical_likelihood(mixtures(), corpus([DOCUMENTS[d] for d in order]))
    np.testing.assert_allclose(other.doc_log_prob, score.doc_log_prob[order], rtol=1e-12)
    monkeypatch.setattr(module, "_NUMBERS", 7 * 13)  # 13 draws at a time
    pieces = empirical_likelihood((m for m in [mixtures()]), corpus())
    np.testing.assert_allclose(pieces.doc_log_prob, score.doc_log_prob, rtol=1e-12)
    np.testing.assert_allclose(pieces.doc_effective_draws, score.doc_effective_draws)
    assert pieces.error_particles == pytest.approx(score.error_particles)
    assert empirical_likelihood(mixtures(), corpus(), seed=1).log_prob != score.log_prob


def test_topics_without_weight_have_no_share():
    """Also where words of other topics then have probability zero in a draw."""
    few = mixtures()
    spare = np.zeros((2, 3, 1))
    spare[:, 0] = 1.0
    many = few._replace(
        phi=np.concatenate([few.phi[:, :, :1], spare, few.phi[:, :, 1:]], 2),
        law=DirichletLaw(np.insert(few.weights, 1, 0.0, axis=1)),
    )
    found, plain = (empirical_likelihood(m, corpus()) for m in (many, few))
    np.testing.assert_array_equal(found.doc_log_prob, plain.doc_log_prob)
    one = few._replace(
        law=DirichletLaw(few.weights * [1.0, 0.0])
    )  # a single topic: no Monte Carlo error
    found = empirical_likelihood(one, corpus())
    exact = [np.log(PHI[:, d, 0].prod(1).mean()) for d in DOCUMENTS]
    np.testing.assert_allclose(found.doc_log_prob, exact)
    assert found.error_particles < 1e-12
    np.testing.assert_allclose(found.doc_effective_draws[1:2], 2000 * 0.3**2 / 0.1)


GROUPS = ["north", "south", "south", "north"]


@pytest.mark.parametrize("differ", ["topics", "weights", "both"])
def test_documents_read_the_row_of_their_group(differ):
    """As if all documents were of that group; a topic that a group has switched off is left out."""
    phi = np.stack([PHI, PHI[:, [1, 2, 0]]], axis=1)
    weights = np.stack([WEIGHTS, WEIGHTS * [0.0, 2.0]], axis=1)
    phi = phi if differ != "weights" else phi[:, :1]
    weights = weights if differ != "topics" else weights[:, :1]
    by_group = Mixtures(
        phi, DirichletLaw(weights), np.arange(2), np.zeros(2), tuple(VOCABULARY), ("north", "south")
    )
    found = empirical_likelihood(by_group, corpus(groups=GROUPS)).state_log_prob
    for name in ("north", "south"):
        alone = empirical_likelihood(OneRow(by_group, name), corpus()).state_log_prob
        mine = np.array(GROUPS) == name
        np.testing.assert_allclose(found[:, mine], alone[:, mine], rtol=1e-12)
        assert np.abs(found - alone)[:, ~mine].max() > 0.01


def test_weights_of_chains():
    plain = empirical_likelihood(mixtures(6), corpus())
    shares = np.array([0.8, 0.2])
    chain = mixtures(6).chain
    found = empirical_likelihood(mixtures(6)._replace(chain_weight=shares[chain]), corpus())
    np.testing.assert_array_equal(found.chain_log_prob, plain.chain_log_prob)
    expected = np.log(shares @ np.exp(plain.chain_log_prob))
    np.testing.assert_allclose(found.doc_log_prob, expected)
    assert math.isnan(found.error_chains)
    p = np.array([likelihoods(d, 1000, 0, 6) for d in DOCUMENTS]) * shares[chain][:, None]
    effective = p.sum((1, 2)) ** 2 / (p**2).sum((1, 2))
    np.testing.assert_allclose(found.doc_effective_draws, effective)


def test_long_documents_rest_on_few_draws():
    """The warning, the text, and the number per document."""
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(30, 0.1), 20).T[None]
    state = Mixtures(
        phi + 1e-6, DirichletLaw(np.full((1, 20), 0.1)), np.zeros(1, int), np.zeros(1, int)
    )
    theta = rng.dirichlet(np.full(20, 0.1), 3)
    long = [rng.choice(30, 400, p=phi[0] @ t / (phi[0] @ t).sum()).tolist() for t in theta]
    new = Corpus.from_ids([[0], *long], num_words=30)
    with pytest.warns(UserWarning, match=r"median 1(\.\d*)? of 1000\): it is probably too low"):
        score = empirical_likelihood(state, new)
    assert score.doc_effective_draws[0] > 20
    assert (score.doc_effective_draws[1:] < 10).all()
    assert f"effective pseudo-documents: median {score.effective_draws:.3g}" in str(score)
    assert "particles" in str(score)
    short = empirical_likelihood(mixtures(), corpus())  # no warning
    assert short.effective_draws > 100


def test_documents_that_no_draw_explains():
    """Two topics without a common word, each draw all but one of them: exact, never NaN."""
    disjoint = Mixtures(
        np.eye(2)[None], DirichletLaw(np.full((1, 2), 1e-20)), np.zeros(1, int), np.zeros(1, int)
    )
    words = {"vocabulary": ["a", "b"]}
    single = empirical_likelihood(disjoint, Corpus.from_ids([[0], [1, 1]], **words))
    assert np.exp(single.doc_log_prob).sum() == pytest.approx(1)
    assert np.isfinite([single.error_particles, single.bias_particles]).all()
    with pytest.warns(UserWarning, match="median 0 of 1000"):
        both = empirical_likelihood(disjoint, Corpus.from_ids([[0, 1], [0, 1, 1], [1]], **words))
    np.testing.assert_array_equal(np.isneginf(both.doc_log_prob), [True, True, False])
    assert (both.log_prob, both.perplexity) == (-math.inf, math.inf)
    np.testing.assert_array_equal(both.doc_effective_draws[:2], 0)
    assert math.isnan(both.error_particles)
    assert str(both).startswith("-inf nats per token")


def test_empty_documents_score_nothing():
    score = empirical_likelihood(mixtures(), corpus([[], *DOCUMENTS]))
    full = empirical_likelihood(mixtures(), corpus())
    np.testing.assert_array_equal(score.doc_log_prob, [0, *full.doc_log_prob])
    assert (score.log_prob, score.effective_draws) == (full.log_prob, full.effective_draws)
    assert math.isnan(score.doc_effective_draws[0])
    assert score.error_particles == pytest.approx(full.error_particles)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_draws": 0}, "num_draws must be an integer of at least 20, got 0"),
        ({"num_draws": 50}, r"num_draws must be a multiple of 20, .* got 50; use 60"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"corpus": Corpus.from_ids([[3]], num_words=4)}, "corpus has 4 words, the model has 3"),
        (
            {"mixtures": mixtures()._replace(phi=np.eye(3, 2)[None].repeat(2, 0))},
            "gives word 2, which occurs in corpus, probability zero in chain 0, draw 0",
        ),
    ],
)
def test_bad_input(options, message):
    arguments = {"mixtures": mixtures(), "corpus": corpus()} | options
    with pytest.raises(ValueError, match=message):
        empirical_likelihood(**arguments)
