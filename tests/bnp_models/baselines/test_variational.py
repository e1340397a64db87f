"""SVI reaches the known optima of a corpus, and labels that topics tell are predicted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bnp_models.baselines.mean_field import WordsAndLabels, make_batches
from bnp_models.baselines.variational import bound, optimise
from bnp_models.baselines.variational_medlda import Hinge, fit_variational_medlda
from bnp_models.baselines.variational_slda import (
    Logistic,
    VariationalSLDA,
    fit_variational_slda,
)
from bnp_models.data.corpus import Corpus

pytestmark = pytest.mark.slow

EVIDENCE = {0.0: -8.227316, 1.0: -10.706179}  # by enumeration, y = (1, 0, 1)
CAVI = {0.0: -10.276, 1.0: -13.020}  # best optimum, see test_cavi
FITS = {"slda": fit_variational_slda, "medlda": fit_variational_medlda}


@pytest.fixture(scope="module")
def reach(tiny):
    """Fit the tiny corpus from many starts; all are mapped."""

    def run(response, *, num_starts=12, num_steps=600):
        batches = make_batches(tiny, 3, np.random.default_rng(0))
        sign = jnp.tile(jnp.array([1.0, -1.0, 1.0, 0.0]), (num_starts, 1))
        data = sign, batches, jnp.array([2.0, 2.0, 2.0])
        model = WordsAndLabels(2, 0.5, 0.25, 4.0, response)
        keys = jax.random.split(jax.random.key(0), num_starts)
        order = jnp.zeros(num_steps, jnp.int32)
        params, path = optimise(keys, *data, order, program=model, learning_rate=0.1)
        value = bound(jax.random.key(1), params, *data, program=model, num_draws=2000)
        return np.asarray(value), params, np.asarray(path)

    return run


@pytest.mark.slow
def test_logistic_labels_reach_the_known_optimum(reach):
    value, _, path = reach(Logistic(1.0))
    assert value.max() == pytest.approx(-12.98, abs=0.05)
    assert CAVI[1.0] - 0.01 < value.max() < EVIDENCE[1.0]  # its bound is the tighter one
    assert path[:, -100:].mean() > path[:, :5].mean() + 1  # one draw of eta per step is noisy


@pytest.mark.slow
def test_without_weight_both_are_lda(reach):
    """At c = 0 nothing is drawn, so the optimum is that of coordinate ascent, and eta the prior."""
    for response in (Logistic(0.0), Hinge(0.0, 1.0)):
        value, params, path = reach(response)
        assert value.max() == pytest.approx(CAVI[0.0], abs=2e-3)
        assert path.max() < EVIDENCE[0.0]
        np.testing.assert_allclose(params["eta_loc"], 0, atol=1e-3)
        np.testing.assert_allclose(params["eta_scale"], 2, rtol=1e-3)


def test_max_margin_keeps_the_prior_variance_and_most_starts_agree(reach):
    value, params, _ = reach(Hinge(1.0, 1.0))
    np.testing.assert_allclose(params["eta_scale"], 2, rtol=1e-3)
    # several starts end at the best optimum and at the same place: the kinks do not stop them
    assert (value > value.max() - 0.01).sum() >= 2
    assert value.max() < EVIDENCE[0.0]  # of LDA, to which the loss only adds


@pytest.fixture(scope="module", params=FITS)
def two(request, planted):
    corpus = planted(0, num_classes=2)
    found = FITS[request.param](corpus, 4, c=5.0, num_steps=200, batch_size=20, learning_rate=0.1)
    return found, corpus, planted(1, num_classes=2)


def accuracy(found, corpus):
    return (found.predict(corpus) == np.asarray(corpus.label)).mean()


def test_two_classes(two):
    found, train, test = two
    assert accuracy(found, train) > 0.9
    assert accuracy(found, test) > 0.85  # chance is 1/2
    scores = found.decision_function(test)
    assert scores.shape == (60,)
    assert found.elbo_path.shape == (1, 200)
    assert found.elbo[0] > found.elbo_path[0, :3].mean() + 50
    assert found.seconds > 0
    if isinstance(found, VariationalSLDA):
        proba = found.predict_proba(test)
        np.testing.assert_allclose(proba.sum(1), 1)
        np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), scores, rtol=1e-4, atol=1e-5)


def test_new_documents_keep_their_order(two):
    found, _, test = two
    order = np.random.default_rng(3).permutation(test.num_docs)[:23]
    scores = found.decision_function(test)
    np.testing.assert_allclose(
        found.decision_function(test.select(order)), scores[order], atol=5e-3
    )


def test_a_document_without_tokens_has_score_zero(two):
    found, *_ = two
    corpus = Corpus.from_ids([[0, 1], [], [19]], num_words=20)
    scores = found.decision_function(corpus)
    assert scores[1] == 0
    assert (scores[[0, 2]] != 0).all()


@pytest.mark.slow
def test_more_classes_one_against_the_rest(planted):
    train, test = (planted(seed, num_classes=3) for seed in (2, 3))
    found = fit_variational_slda(
        train, 4, c=5.0, num_steps=200, batch_size=20, learning_rate=0.1, seed=1
    )
    assert found.topic_word.shape == (3, 4, 20)
    assert found.elbo.shape == (3,)
    assert found.label_names == ("eggs", "milk", "rice")
    assert accuracy(found, test) > 0.7  # chance is 1/3
    proba = found.predict_proba(test)
    np.testing.assert_allclose(proba.sum(1), 1)
    np.testing.assert_array_equal(found.classes[proba.argmax(1)], found.predict(test))


BAD = {
    "num_topics": (0, "num_topics must be an integer of at least 1, got 0"),
    "alpha": (0.0, "alpha must be a finite number above 0, got 0.0"),
    "beta": (-1.0, "beta must be a finite number above 0, got -1.0"),
    "c": (0.0, "c must be a finite number above 0, got 0.0"),
    "ell": (0.0, "ell must be a finite number above 0, got 0.0"),
    "eta_variance": (0.0, "eta_variance must be a finite number above 0, got 0.0"),
    "num_steps": (0, "num_steps must be an integer of at least 1, got 0"),
    "batch_size": (0, "batch_size must be an integer of at least 1, got 0"),
    "learning_rate": (0.0, "learning_rate must be a finite number above 0, got 0.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, tiny):
    value, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        fit_variational_medlda(tiny, **{"num_topics": 2, name: value})


def test_bad_weight_of_logistic_labels(tiny):
    with pytest.raises(ValueError, match=r"c must be a finite number above 0, got -1\.0"):
        fit_variational_slda(tiny, 2, c=-1.0)


@pytest.mark.parametrize("method", FITS)
def test_labels_are_needed(method):
    with pytest.raises(ValueError, match="corpus must have labels, got None"):
        FITS[method](Corpus.from_ids([[0]], num_words=1), 2)
