"""Fold-in against enumeration of the topics of one document."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_kernels.tokens.fold_in import fold_in, fold_in_mean, token_probability
from bnp_kernels.tokens.layout import make_tokens
from bnp_kernels.tokens.mixture_law import DirichletLaw, SwitchedLaw
from bnp_models.testing.statistics import one_sample

PHI = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).T  # word-major
WEIGHTS = np.array([0.5, 1.2])
DOCUMENT = [0, 2, 1]
DOCUMENTS = [DOCUMENT, [0, 0, 0, 2, 1, 0], [1], []]
COPIES = 2000  # each is an independent chain: a bias of 0.025 in theta is seen


def enumerate_theta(document, phi, weights):
    """E[theta | document] and p(document), over all topic assignments."""
    num_topics, theta, evidence = len(weights), 0.0, 0.0
    for z in itertools.product(range(num_topics), repeat=len(document)):
        counts, p = np.zeros(num_topics), 1.0
        for n, (word, k) in enumerate(zip(document, z, strict=True)):
            p *= (counts[k] + weights[k]) / (n + weights.sum()) * phi[word, k]
            counts[k] += 1
        evidence += p
        theta = theta + p * (counts + weights) / (len(document) + weights.sum())
    return theta / evidence, evidence


def enumerate_joining(document, phi, weights, absent):
    """E[share of one more token | document], where a topic that the document has not weighs less.

    The order of the tokens has no effect on the weight of an assignment.
    """
    num_topics, shares, evidence = len(weights), 0.0, 0.0
    for z in itertools.product(range(num_topics), repeat=len(document)):
        counts, p = np.zeros(num_topics), 1.0
        for word, k in zip(document, z, strict=True):
            p *= (counts[k] + weights[k] if counts[k] else absent[k]) * phi[word, k]
            counts[k] += 1
        weighed = np.where(counts > 0, counts + weights, absent)
        evidence += p
        shares = shares + p * weighed / weighed.sum()
    return shares / evidence


def tokens(documents):
    length = [len(document) for document in documents]
    word = np.array([word for document in documents for word in document], np.int32)
    return make_tokens(np.repeat(np.arange(len(documents)), length), word, len(documents))


def one_row(phi, weights):
    """The topics and the law of a model in which they are the same for all documents."""
    return jnp.asarray(phi, jnp.float32)[None], dirichlet([weights])


def dirichlet(weights):
    return DirichletLaw(jnp.asarray(weights, jnp.float32))


def run(phi=PHI, weights=WEIGHTS, *, num_sweeps=30, num_kept=15):
    """Estimate theta for all copies, [copy, document, topic]."""
    phi, law = one_row(phi, weights)
    data, key = tokens(DOCUMENTS * COPIES), jax.random.key(0)
    theta = fold_in(key, data, phi, law, num_sweeps=num_sweeps, num_kept=num_kept)
    return np.asarray(theta, np.float64).reshape(COPIES, len(DOCUMENTS), -1)


def compare(theta, weights):
    """Compare the means of the first three documents with enumeration; the last is constant."""
    exact = np.array([enumerate_theta(d, PHI, weights)[0][0] for d in DOCUMENTS[:3]])
    return one_sample("fold-in", {"theta": theta[:, :3, 0]}, {"theta": exact})


def test_enumeration_gives_the_published_case():
    theta, evidence = enumerate_theta(DOCUMENT, PHI, WEIGHTS)
    np.testing.assert_allclose(theta, [0.317642, 0.682358], atol=5e-7)
    assert np.log(evidence) == pytest.approx(-3.607147, abs=5e-7)


@pytest.mark.parametrize("weights", [WEIGHTS, np.array([0.2, 0.1])])
def test_mean_over_many_documents_is_exact(weights):
    theta = run(weights=weights)
    report = compare(theta, weights)
    report.check()
    assert all(report.detectable(c) < 0.025 for c in report.comparisons), report
    np.testing.assert_allclose(theta.sum(2), 1.0, atol=1e-5)


def test_start_is_forgotten():
    """One sweep from the start is not enough: the check above can fail."""
    assert compare(run(num_sweeps=1, num_kept=1), WEIGHTS).rejected


def test_documents_without_tokens_get_the_prior_mean():
    prior = WEIGHTS / WEIGHTS.sum()
    np.testing.assert_allclose(run()[:, 3], np.tile(prior, (COPIES, 1)), rtol=1e-6)
    phi, law = one_row(PHI, WEIGHTS)
    nothing = fold_in(jax.random.key(0), tokens([[], []]), phi, law, num_sweeps=2, num_kept=1)
    np.testing.assert_allclose(nothing, [prior, prior], rtol=1e-6)


def test_topics_of_weight_zero_change_nothing():
    phi, weights = np.append(PHI, np.full((3, 2), 1 / 3), 1), np.append(WEIGHTS, [0.0, 0.0])
    theta = run(phi, weights)
    assert (theta[..., 2:] == 0).all()
    np.testing.assert_allclose(theta[..., :2], run(), rtol=1e-6)


def test_token_probability():
    rng = np.random.default_rng(0)
    theta, phi = rng.dirichlet([1, 1, 1], 5), rng.dirichlet([1, 1, 1, 1], 3).T
    doc, word = rng.integers(0, 5, 30), rng.integers(0, 4, 30)
    p = token_probability(*(jnp.asarray(x, jnp.float32) for x in (theta, phi[None])), doc, word)
    np.testing.assert_allclose(p, (theta[doc] * phi[word]).sum(1), rtol=1e-5)
    phis, row = rng.dirichlet([1, 1, 1, 1], (2, 3)).transpose(0, 2, 1), np.array([0, 1, 1, 0, 1])
    p = token_probability(*(jnp.asarray(x, jnp.float32) for x in (theta, phis)), doc, word, row)
    np.testing.assert_allclose(p, (theta[doc] * phis[row[doc], word]).sum(1), rtol=1e-5)


OTHER_PHI = np.array([[0.1, 0.1, 0.8], [0.5, 0.4, 0.1]]).T
OTHER_WEIGHTS = np.array([2.0, 0.1])


def test_documents_read_the_row_of_their_group():
    """Copies of one document in two groups, against enumeration under the topics of each."""
    phi = jnp.asarray([PHI, OTHER_PHI], jnp.float32)
    law = dirichlet([WEIGHTS, OTHER_WEIGHTS])
    row = jnp.tile(jnp.array([1, 0, 1]), COPIES)
    data = tokens([DOCUMENT, DOCUMENT, []] * COPIES)
    theta = fold_in(jax.random.key(0), data, phi, law, row, num_sweeps=30, num_kept=15)
    theta = np.asarray(theta, np.float64).reshape(COPIES, 3, 2)
    exact = [
        enumerate_theta(DOCUMENT, OTHER_PHI, OTHER_WEIGHTS)[0][0],
        enumerate_theta(DOCUMENT, PHI, WEIGHTS)[0][0],
    ]
    assert abs(exact[0] - exact[1]) > 0.3  # a document that reads the other row is seen
    one_sample("rows", {"theta": theta[:, :2, 0]}, {"theta": np.array(exact)}).check()
    np.testing.assert_allclose(theta[:, 2], np.tile([2 / 2.1, 0.1 / 2.1], (COPIES, 1)), rtol=1e-6)


@pytest.mark.parametrize("differs", ["phi", "weights"])
def test_what_is_the_same_for_all_has_one_row(differs):
    """Weights of groups with topics of all, and the other way round, without copies of either."""
    phi = jnp.asarray([PHI, OTHER_PHI if differs == "phi" else PHI], jnp.float32)
    weights = [WEIGHTS, OTHER_WEIGHTS if differs == "weights" else WEIGHTS]
    law = dirichlet(weights)
    data, row = tokens(DOCUMENTS * 50), jnp.arange(200) % 2
    how = {"num_sweeps": 4, "num_kept": 2}
    full = fold_in(jax.random.key(1), data, phi, law, row, **how)
    short = (phi, DirichletLaw(law.weights[:1])) if differs == "phi" else (phi[:1], law)
    few = fold_in(jax.random.key(1), data, *short, row, **how)
    np.testing.assert_allclose(few, full, rtol=1e-6)
    doc, word = jnp.array([0, 1, 1]), jnp.array([2, 2, 0])
    expected = token_probability(full, phi, doc, word, row)
    np.testing.assert_allclose(
        token_probability(few, short[0], doc, word, row), expected, rtol=1e-6
    )


def test_equal_rows_are_one_row():
    phi, law = one_row(PHI, WEIGHTS)
    data, key = tokens(DOCUMENTS * 50), jax.random.key(1)
    how = {"num_sweeps": 4, "num_kept": 2}
    row = jnp.arange(200) % 3
    several = fold_in(
        key,
        data,
        jnp.tile(phi, (3, 1, 1)),
        jax.tree.map(lambda x: jnp.tile(x, (3, 1)), law),
        row,
        **how,
    )
    np.testing.assert_allclose(several, fold_in(key, data, phi, law, **how), rtol=1e-6)


def share_of_even(doc_topic, doc_length, arrays):
    """A function of the topics that is not linear: whether topic 0 has an even number of tokens."""
    return arrays * (doc_topic[:, 0] % 2 == 0)


def test_mean_of_a_function_is_exact():
    phi, law = one_row(PHI, WEIGHTS)
    data, key = tokens(DOCUMENTS[:3] * COPIES), jax.random.key(1)
    found = fold_in_mean(
        key, data, phi, law, of_counts=share_of_even, arrays=jnp.float32(2), num_sweeps=30,
        num_kept=15,
    )  # fmt: skip
    exact = []
    for document in DOCUMENTS[:3]:
        even = total = 0.0
        for z in itertools.product(range(2), repeat=len(document)):
            counts, p = np.zeros(2), 1.0
            for n, (word, k) in enumerate(zip(document, z, strict=True)):
                p *= (counts[k] + WEIGHTS[k]) / (n + WEIGHTS.sum()) * PHI[word, k]
                counts[k] += 1
            even, total = even + 2 * p * (counts[0] % 2 == 0), total + p
        exact.append(even / total)
    found = np.asarray(found, np.float64).reshape(COPIES, 3)
    one_sample("mean over fold-in", {"even": found}, {"even": np.array(exact)})


def test_documents_that_switch_topics_on():
    absent = jnp.array([0.2, 0.3])
    phi, law = one_row(PHI, WEIGHTS)
    law = SwitchedLaw(law.weights, absent[None])
    data, key = tokens(DOCUMENTS * COPIES), jax.random.key(1)
    shares = fold_in(key, data, phi, law, num_sweeps=30, num_kept=15)
    shares = np.asarray(shares, np.float64).reshape(COPIES, len(DOCUMENTS), -1)
    exact = np.array([enumerate_joining(d, PHI, WEIGHTS, absent)[0] for d in DOCUMENTS[:3]])
    one_sample("switched", {"share": shares[:, :3, 0]}, {"share": exact}).check()
    np.testing.assert_allclose(shares[:, 3], np.broadcast_to(absent / 0.5, (COPIES, 2)), rtol=1e-5)
    # rows of groups: every document reads the second row
    both = jax.tree.map(lambda x: jnp.concatenate([1 + x, x]), law)
    rows = jnp.ones(len(DOCUMENTS) * COPIES, jnp.int32)
    of_groups = fold_in(key, data, phi, both, rows, num_sweeps=30, num_kept=15)
    np.testing.assert_allclose(of_groups.reshape(shares.shape), shares, rtol=1e-5)


def test_documents_can_be_in_a_topic_that_is_strong_and_rare():
    """Its first token alone would be very improbable."""
    phi = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]).T + 1e-3
    phi, law = one_row(phi / phi.sum(axis=0), [6.0, 50.0])
    law = SwitchedLaw(law.weights, jnp.array([[6 * 0.9 / 7, 50 * 0.06 * 2.0**-50]]))
    data = tokens([[2, 3] * 25] * 50)
    shares = fold_in(jax.random.key(0), data, phi, law, num_sweeps=10, num_kept=5)
    assert (np.asarray(shares)[:, 1] > 0.9).all()
