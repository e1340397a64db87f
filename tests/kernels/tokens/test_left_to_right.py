"""The particle estimate of a document's evidence, against enumeration of its topics."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bnp_kernels.tokens.left_to_right import left_to_right
from bnp_kernels.tokens.mixture_law import DirichletLaw, SwitchedLaw
from bnp_models.testing.statistics import one_sample, rejection_threshold

PHI = np.array([[0.9, 0.1], [0.25, 0.75]]).T  # word-major
WEIGHTS = np.array([0.3, 0.2])
DOCUMENT = [0, 1, 1, 0, 1]


def joint(z, words, phi, weights):
    """p(z, w) for the first tokens of a document."""
    counts, p = np.zeros(len(weights)), 1.0
    for n, (word, k) in enumerate(zip(words, z, strict=True)):
        p *= (counts[k] + weights[k]) / (n + weights.sum()) * phi[word, k]
        counts[k] += 1
    return p


def evidence(words, phi=PHI, weights=WEIGHTS):
    topics = itertools.product(range(len(weights)), repeat=len(words))
    return math.fsum(joint(z, words, phi, weights) for z in topics)


def product_of_means_limit(words, phi, weights, resample):
    """prod_n E[q_n]: what infinitely many particles give, by the law of one particle's z."""
    num_topics = len(weights)
    law = {(): 1.0}
    product = 1.0
    for n in range(len(words)):
        if resample:
            for i in range(n):
                moved: dict[tuple, float] = {}
                for z, p in law.items():
                    options = [(*z[:i], k, *z[i + 1 :]) for k in range(num_topics)]
                    weight = np.array([joint(o, words[:n], phi, weights) for o in options])
                    for option, share in zip(options, weight / weight.sum(), strict=True):
                        moved[option] = moved.get(option, 0.0) + p * share
                law = moved
        step, q_mean = {}, 0.0
        for z, p in law.items():
            longer = [(*z, k) for k in range(num_topics)]
            ratio = np.array([joint(o, words[: n + 1], phi, weights) for o in longer])
            ratio /= joint(z, words[:n], phi, weights)
            q_mean += p * ratio.sum()
            step |= {o: p * r / ratio.sum() for o, r in zip(longer, ratio, strict=True)}
        law = step
        product *= q_mean
    return product


def run(
    documents,
    phi=PHI,
    weights=WEIGHTS,
    *,
    positions=1,
    doc=None,
    row=None,
    law=DirichletLaw,
    **options,
):
    """Score documents; with `row`, `phi` and `weights` have a leading axis of rows."""
    longest = max(positions, max(map(len, documents)))
    word = np.zeros((longest, len(documents)), np.int32)
    for column, document in enumerate(documents):
        word[: len(document), column] = document
    length = jnp.array([len(document) for document in documents], jnp.int32)
    doc = jnp.arange(len(documents)) if doc is None else jnp.asarray(doc)
    phi, weights = jnp.asarray(phi, jnp.float32), jnp.asarray(weights, jnp.float32)
    if row is None:
        phi, weights = phi[None], weights[None]
    return left_to_right(
        jax.random.key(0), jnp.asarray(word), length, doc, phi, law(weights), row, **options
    )


@pytest.mark.parametrize(("num_redrawn", "num_particles"), [(0, 1), (0, 3), (2, 2), (None, 3)])
def test_mean_of_products_is_unbiased(num_redrawn, num_particles):
    """120,000 particles; power: a bias of 2% of p is seen in nine runs of ten."""
    result = run(
        [DOCUMENT] * (120_000 // num_particles),
        num_particles=num_particles,
        num_redrawn=num_redrawn,
    )
    p = np.exp(np.asarray(result.log_product, np.float64)).mean(1) / evidence(DOCUMENT)
    report = one_sample("evidence", {"p": p}, {"p": 1.0})
    report.check()
    assert report.detectable(report.worst) < 0.02


def test_published_case():
    phi, weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).T, np.array([0.5, 1.2])
    result = run([[0, 2, 1]] * 20_000, phi, weights, num_particles=1)
    p = np.exp(np.asarray(result.log_product, np.float64))[:, 0]
    one_sample("evidence", {"p": p}, {"p": math.exp(-3.607147)}).check()


@pytest.mark.parametrize("num_redrawn", [0, None])
def test_product_of_means_tends_to_another_number(num_redrawn):
    """It agrees with its own limit, which is more than 2% off the evidence."""
    limit = product_of_means_limit(DOCUMENT, PHI, WEIGHTS, num_redrawn is None)
    exact = evidence(DOCUMENT)
    assert abs(limit / exact - 1) > 0.02
    copies, num_particles = 50, 4000  # the bias from finite R is below 1e-3 of the limit
    result = run([DOCUMENT] * copies, num_particles=num_particles, num_redrawn=num_redrawn)
    p = np.exp(np.asarray(result.log_mean, np.float64))
    error = p.std(ddof=1) / math.sqrt(copies)
    assert abs(p.mean() - limit) < rejection_threshold(1) * error + 1e-3 * limit
    assert abs(p.mean() - exact) > rejection_threshold(1) * error + 1e-3 * limit


def test_influence_gives_the_error_of_log_mean():
    """Its standard error matches the spread over copies: chi-square at a false alarm of 1e-4."""
    copies, num_particles = 400, 200
    result = run([DOCUMENT] * copies, num_particles=num_particles)
    influence = np.asarray(result.influence, np.float64)
    stated = (influence.var(1, ddof=1) / num_particles).mean()
    seen = np.asarray(result.log_mean, np.float64).var(ddof=1)
    low, high = scipy.stats.chi2(copies - 1).ppf([5e-5, 1 - 5e-5]) / (copies - 1)
    assert low < seen / stated < high
    assert low > 0.7
    assert high < 1.35


def test_redrawing_keeps_the_weights_of_a_long_document_together():
    """Two halves with different topics; standard deviations are known to 3%, they differ by 2."""
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(40, 0.1), 5).T
    words = np.concatenate([rng.choice(40, 40, p=phi[:, k]) for k in (0, 1)])
    weights, spread = np.full(5, 0.1), {}
    for num_redrawn in (0, 10):
        result = run([words], phi, weights, num_particles=500, num_redrawn=num_redrawn)
        spread[num_redrawn] = np.asarray(result.log_product).std()
    assert spread[10] < 0.8 * spread[0]


@pytest.mark.parametrize("num_redrawn", [2, None])
def test_documents_do_not_depend_on_their_block(num_redrawn):
    documents = [[0, 1], [], [1, 1, 0, 1], [1]]
    options = {"num_particles": 3, "num_redrawn": num_redrawn}
    block = run(documents, **options)
    for d, document in enumerate(documents):
        alone = run([document], positions=7, doc=[d], **options)
        np.testing.assert_array_equal(block.log_product[d], alone.log_product[0])
        # the last digit of a mean depends on how XLA vectorises the block
        np.testing.assert_allclose(block.log_mean[d], alone.log_mean[0], rtol=5e-7)
    assert (np.asarray(block.log_product[1]) == 0).all()


def test_one_topic_is_a_product_of_word_probabilities():
    """Also the rounding of a long sum: 20,000 terms, an error of one float32 step."""
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(50, 0.3))[:, None].astype(np.float32)
    words = rng.choice(50, 20_000, p=phi[:, 0] / phi.sum())
    result = run([words], phi, np.array([0.7]), num_particles=2)
    exact = np.log(phi[words, 0].astype(np.float64)).sum()
    np.testing.assert_allclose(result.log_product, exact, rtol=3e-7)
    np.testing.assert_allclose(result.log_mean, exact, rtol=3e-7)


def test_one_particle_and_one_word():
    """Cases in which both ways to combine particles agree."""
    result = run([DOCUMENT] * 10, num_particles=1)
    np.testing.assert_allclose(result.log_mean, result.log_product[:, 0], rtol=1e-6)
    rounding = 0 if jax.default_backend() == "cpu" else 1e-6  # a GPU adds in another order
    np.testing.assert_allclose(result.influence, 0, atol=rounding)
    single = run([[0]], num_particles=7)  # one word: nothing is random
    np.testing.assert_allclose(single.log_product, math.log(evidence([0])), rtol=1e-6)
    np.testing.assert_allclose(single.influence, 0, atol=1e-6)


OTHER_PHI = np.array([[0.2, 0.8], [0.6, 0.4]]).T
OTHER_WEIGHTS = np.array([1.5, 0.4])


@pytest.mark.parametrize("num_redrawn", [0, 2])
def test_documents_read_the_row_of_their_group(num_redrawn):
    """Copies of one document in two groups, against enumeration under the topics of each."""
    phi, weights = np.array([PHI, OTHER_PHI]), np.array([WEIGHTS, OTHER_WEIGHTS])
    row = jnp.arange(40_000) % 2
    result = run(
        [DOCUMENT] * 40_000, phi, weights, row=row, num_particles=2, num_redrawn=num_redrawn
    )
    p = np.exp(np.asarray(result.log_product, np.float64)).mean(1).reshape(-1, 2)
    exact = np.array([evidence(DOCUMENT), evidence(DOCUMENT, OTHER_PHI, OTHER_WEIGHTS)])
    assert abs(exact[0] / exact[1] - 1) > 0.2  # a document that reads the other row is seen
    one_sample("rows", {"p": p}, {"p": exact}).check()


@pytest.mark.parametrize("one", ["phi", "weights"])
def test_what_is_the_same_for_all_has_one_row(one):
    rows = {"phi": np.array([PHI, OTHER_PHI]), "weights": np.array([WEIGHTS, OTHER_WEIGHTS])}
    rows[one][1] = rows[one][0]
    few = rows | {one: rows[one][:1]}
    how = {"row": jnp.array([0, 1, 1]), "num_particles": 4, "num_redrawn": 2}
    expected, found = (run([DOCUMENT, DOCUMENT, [0]], **given, **how) for given in (rows, few))
    np.testing.assert_allclose(found.log_product, expected.log_product, rtol=1e-6)


def test_documents_that_switch_topics_on():
    """The mean product is the evidence, with and without redrawn topics."""
    law = SwitchedLaw(WEIGHTS, np.array([0.4, 0.1]))

    def product(z, words=1.0):
        counts, p = np.zeros(2), words
        for k in z:
            p *= law.weigh(counts)[k]
            counts[k] += 1
        return p

    length = len(DOCUMENT)
    every = list(itertools.product(range(2), repeat=length))
    total = math.fsum(product(z) for z in every)
    exact = math.fsum(product(z, PHI[DOCUMENT, z].prod()) for z in every)
    excess = law.log_total(np.array([length])) - DirichletLaw(WEIGHTS).log_total(np.array([length]))
    for num_redrawn in (0, None):
        found = run(
            [DOCUMENT] * 200, num_particles=50, num_redrawn=num_redrawn,
            law=lambda weights: SwitchedLaw(weights, jnp.array([[0.4, 0.1]])),
        )  # fmt: skip
        means = np.exp(np.asarray(found.log_product, np.float64) - excess).mean(axis=1)
        one_sample("switched", {"evidence": means}, {"evidence": exact / total}).check()
