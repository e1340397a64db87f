"""The bound, its gradient and its maximum over documents, against formulas in NumPy."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import digamma as jax_digamma
from numpyro.distributions.kl import kl_divergence
from numpyro.infer import TraceMeanField_ELBO
from scipy.special import digamma

from bnp_models.baselines import mean_field
from bnp_models.baselines.mean_field import (
    LogDirichlet,
    MeanLogDirichlet,
    Weights,
    WordsAndLabels,
    make_batches,
    solve_locals,
)
from bnp_models.baselines.variational_medlda import Hinge
from bnp_models.baselines.variational_slda import Logistic
from bnp_models.data.corpus import Corpus
from oracles.cavi import log_beta

ALPHA, BETA, VARIANCE = 0.5, 0.25, 4.0
SIGN = np.array([1.0, -1.0, 1.0, 0.0], np.float32)  # of the tiny corpus, and of padding
PARAMS = {
    "topic_word": np.array([[2.1, 0.6, 0.4], [0.3, 1.5, 1.9]]),
    "eta_loc": np.array([1.7, -1.2]),
    "eta_scale": np.array([0.8, 1.3]),
}


def program(response):
    return WordsAndLabels(2, ALPHA, BETA, VARIANCE, response)


def batch_of(batches, i=0):
    return jax.tree.map(lambda x: x[i], batches)


@pytest.fixture
def to_the_end(monkeypatch):
    """All rounds are made, so that documents have the same result in any batch."""
    monkeypatch.setattr(mean_field, "TOLERANCE", 0.0)


def loss(response, batch, word_count, params):
    args = batch, jnp.asarray(SIGN)[batch.place], word_count
    model = program(response)
    elbo = TraceMeanField_ELBO()
    return jnp.asarray(elbo.loss(jax.random.key(3), params, model, model.guide, *args))


class TestLogDirichlet:
    a = np.array([[0.5, 2.0, 1.5], [3.0, 0.2, 0.7]], np.float32)

    def test_density_and_divergence_are_those_of_the_dirichlet(self):
        p = np.array([0.2, 0.5, 0.3], np.float32)
        ours = LogDirichlet(self.a).log_prob(jnp.log(p))
        np.testing.assert_allclose(
            ours, dist.Dirichlet(self.a).log_prob(p) + np.log(p).sum(), rtol=1e-5
        )
        prior = np.full(3, 0.4, np.float32)
        np.testing.assert_allclose(
            kl_divergence(MeanLogDirichlet(self.a), LogDirichlet(prior)),
            kl_divergence(dist.Dirichlet(self.a), dist.Dirichlet(prior)),
        )

    def test_mean_of_draws(self):
        draws = LogDirichlet(self.a).sample(jax.random.key(0), (20_000,))
        np.testing.assert_allclose(np.exp(draws).sum(-1), 1, rtol=1e-4)
        error = draws.std(0) / np.sqrt(len(draws))
        mean = MeanLogDirichlet(self.a).sample(jax.random.key(0))
        assert (np.abs(draws.mean(0) - mean) < 5 * error).all()

    def test_small_concentrations_do_not_underflow(self):
        assert np.isfinite(
            LogDirichlet(np.full(4, 1e-3, np.float32)).sample(jax.random.key(1))
        ).all()


def test_logistic_moments_are_those_of_the_enumerated_topics(tiny):
    """Mean of omega and its square over z and eta; the push is the derivative of the bound."""
    batch = batch_of(make_batches(tiny, 3, np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    r = rng.dirichlet(np.ones(2), 6).astype(np.float32)
    weights = Weights(*(jnp.asarray(PARAMS[n], jnp.float32) for n in ("eta_loc", "eta_scale")))
    response = Logistic(3.0)
    second = np.diag(PARAMS["eta_scale"] ** 2) + np.outer(PARAMS["eta_loc"], PARAMS["eta_loc"])

    def brute_force(r_doc):
        mean, square = 0.0, 0.0
        for z in itertools.product(range(2), repeat=len(r_doc)):
            p, zbar = np.prod([row[k] for row, k in zip(r_doc, z, strict=True)]), np.eye(2)[list(z)]
            zbar = zbar.mean(0)
            mean += p * (zbar @ PARAMS["eta_loc"])
            square += p * (zbar @ second @ zbar)
        return mean, square

    def bound(r_doc, sign):
        mean, square = brute_force(r_doc)
        half = np.sqrt(square) / 2
        return 3.0 * (sign / 2 * mean - np.logaddexp(half, -half))

    sign = jnp.asarray(SIGN)[batch.place]
    pushed, step, _ = jax.jit(response.push)(batch, sign, jnp.asarray(r), weights, sign)
    assert ((step > 0) & (step < 1)).all()
    mean, square = jax.jit(response._moments)(batch, jnp.asarray(r), weights)
    for d in range(3):
        mine = np.asarray(batch.doc) == d
        r_doc = r[mine].astype(np.float64)
        np.testing.assert_allclose((mean[d], square[d]), brute_force(r_doc), rtol=1e-5)
        for n, found in enumerate(np.asarray(pushed)[mine]):
            shift = np.zeros_like(r_doc)
            shift[n] = [1e-5, -1e-5]  # a constant over topics changes nothing
            up, down = (bound(r_doc + s, float(sign[d])) for s in (shift, -shift))
            assert float(found[0] - found[1]) == pytest.approx(
                (up - down) / 2e-5, rel=1e-4, abs=1e-5
            )


@pytest.mark.parametrize("response", [Logistic(2.0), Hinge(0.7, 1.0)], ids=["logistic", "hinge"])
def test_the_mean_gradient_of_batches_is_that_of_all_documents(response, tiny, to_the_end):
    params = {name: jnp.asarray(x, jnp.float32) for name, x in PARAMS.items()}
    word_count = jnp.array([2.0, 2.0, 2.0])
    rng = np.random.default_rng(0)
    one, parts = make_batches(tiny, 3, rng), make_batches(tiny, 2, rng)
    assert len(parts.doc) == 2  # of two documents and of one
    gradient = jax.jit(jax.value_and_grad(loss, argnums=3), static_argnums=0)
    whole = gradient(response, batch_of(one), word_count, params)
    each = [gradient(response, batch_of(parts, i), word_count, params) for i in range(2)]
    mean = jax.tree.map(lambda *x: sum(x) / 2, *each)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4), mean, whole)
    assert abs(float(each[0][0] - each[1][0])) > 0.1  # the batches differ


class TestHinge:
    """The objective of MedLDA in float64 against its formula; a document is on its margin."""

    response = Hinge(1.5, 0.9)

    @pytest.fixture(autouse=True)
    def float64(self, monkeypatch):
        monkeypatch.setattr(mean_field, "TOLERANCE", 0.0)
        monkeypatch.setattr(mean_field, "MAX_ROUNDS", 3000)
        with jax.enable_x64(True):
            yield

    @pytest.fixture
    def batch(self, tiny):
        batch = batch_of(make_batches(tiny, 3, np.random.default_rng(0)))
        return jax.tree.map(lambda x: x.astype(jnp.float64) if x.dtype == jnp.float32 else x, batch)

    def documents(self, batch, params):
        log_phi = MeanLogDirichlet(jnp.asarray(params["topic_word"])).mean.T
        weights = Weights(params["eta_loc"], params["eta_scale"])
        sign = jnp.asarray(SIGN, jnp.float64)[batch.place]
        return solve_locals(batch, sign, log_phi, weights, alpha=ALPHA, response=self.response)

    def test_value_and_gradient(self, batch):
        params = {name: jnp.asarray(x, jnp.float64) for name, x in PARAMS.items()}
        count = jnp.array([2.0, 2.0, 2.0])
        value_and_grad = jax.jit(
            jax.value_and_grad(lambda params: -loss(self.response, batch, count, params))
        )
        value, gradient = value_and_grad(params)
        found = jax.jit(self.documents)(batch, params)
        tau = np.asarray(found.multiplier)
        assert ((tau > 1e-3) & (tau < 2 * self.response.c - 1e-3)).any()  # on the margin
        assert float(value) == pytest.approx(self.formula(batch, found, params), abs=1e-9)
        # the derivative of the maximum over documents: they are solved anew
        for name, x in PARAMS.items():
            for at in np.ndindex(x.shape):
                shift = np.zeros_like(x)
                shift[at] = 1e-5
                up, down = ({**params, name: jnp.asarray(x + s)} for s in (shift, -shift))
                slope = float(value_and_grad(up)[0] - value_and_grad(down)[0]) / 2e-5
                assert float(gradient[name][at]) == pytest.approx(slope, abs=2e-5), (name, at)

    def formula(self, batch, found, params):
        r, counts = np.asarray(found.r), np.asarray(found.counts)
        lam, loc, scale = (np.asarray(params[n]) for n in ("topic_word", "eta_loc", "eta_scale"))
        sign = SIGN[np.asarray(batch.place)]
        log_phi = digamma(lam) - digamma(lam.sum(1, keepdims=True))
        tally = np.zeros_like(lam)
        np.add.at(tally.T, np.asarray(batch.word), r)
        total = (log_beta(ALPHA + counts) - log_beta(np.full(2, ALPHA))).sum()
        total += ((BETA + tally - lam) * log_phi).sum()
        total += (log_beta(lam) - log_beta(np.full(3, BETA))).sum() - (r * np.log(r)).sum()
        margin = sign * (counts @ loc) / np.asarray(batch.length)
        total -= 2 * self.response.c * np.maximum(0, self.response.ell - margin).sum()
        variance = scale**2
        return total - ((loc**2 + variance) / VARIANCE - 1 - np.log(variance / VARIANCE)).sum() / 2


def test_documents_are_at_a_maximum_where_labels_weigh_much():
    """With long documents and a large c no step overshoots: the last round changes nothing."""
    rng = np.random.default_rng(2)
    docs = [rng.integers(6, size=n).tolist() for n in (40, 80, 15, 60)]
    corpus = Corpus.from_ids(docs, num_words=6)
    batch = batch_of(make_batches(corpus, 4, rng))
    sign = jnp.array([1.0, -1.0, 1.0, -1.0])
    log_phi = jnp.asarray(np.log(rng.dirichlet(np.ones(6), 3).T), jnp.float32)
    weights = Weights(jnp.array([6.0, -5.0, 0.5]), jnp.full(3, 0.3))

    @partial(jax.jit, static_argnums=0)
    def one_more(response, batch):
        found = solve_locals(batch, sign, log_phi, weights, alpha=0.3, response=response)
        pushed, _, multiplier = response.push(batch, sign, found.r, weights, found.multiplier)
        logits = log_phi[batch.word] + jax_digamma(0.3 + found.counts)[batch.doc]
        return found, batch.total(jax.nn.softmax(logits + pushed)), multiplier

    for response in (Logistic(64.0), Hinge(64.0, 2.0)):
        found, again, multiplier = one_more(response, batch)
        np.testing.assert_allclose(
            again / batch.length[:, None], found.counts / batch.length[:, None], atol=5e-3
        )
        np.testing.assert_allclose(multiplier, found.multiplier, atol=0.5)


def test_every_token_and_document_is_dealt_once():
    rng = np.random.default_rng(0)
    docs = [rng.integers(7, size=n).tolist() for n in (3, 0, 9, 1, 4, 4, 2)]
    corpus = Corpus.from_ids(docs, num_words=7)
    batches = make_batches(corpus, 3, rng)
    assert batches.place.shape == (3, 3)
    np.testing.assert_array_equal(batches.scale, 3)
    found = {}
    for i in range(3):
        batch = jax.tree.map(lambda x, i=i: np.asarray(x[i]), batches)
        assert (np.diff(batch.doc) >= 0).all()
        for b, d in enumerate(batch.place):
            mine = (batch.doc == b) & (batch.real == 1)
            if d == corpus.num_docs:  # padding
                assert not mine.any()
                continue
            assert d not in found
            found[int(d)] = batch.word[mine].tolist()
            assert batch.length[b] == max(mine.sum(), 1)
        one = jnp.ones((len(batch.doc), 1))
        expected = [len(found.get(int(d), [])) for d in batch.place]
        total = jax.tree.map(jnp.asarray, batch).total(one)
        np.testing.assert_array_equal(total[:, 0], expected)
    assert [found[d] for d in range(7)] == docs


def test_batches_have_about_the_same_number_of_tokens():
    rng = np.random.default_rng(1)
    docs = [[0] * int(n) for n in rng.integers(1, 60, 200)]
    real = make_batches(Corpus.from_ids(docs, num_words=1), 20, rng).real
    assert real.mean() > 0.9
