"""Predicted labels of new documents against enumeration; tables of calibration."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.base.topics import Topics
from bnp_models.posterior.mixtures import MixtureStates
from bnp_models.scores import labels
from bnp_models.testing.statistics import one_sample

PHI = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
ALPHA = np.array([0.5, 0.5])
ETA = np.array([2.0, -1.0])
COPIES = 2000
NEW = bnp.Corpus.from_ids([[0, 2, 2], [1]] * COPIES, num_words=3)
FITTED = bnp.Corpus.from_ids([[0, 1, 2], [2]], num_words=3, labels=[0, 1])


class HandMade(bnp.SupervisedLDA):
    """Topics are known, so draws of them are all alike."""

    def draw_mixtures(self, rng, state, corpus):
        return PHI, np.ones((2, 2)) / 2


def states(eta, **more):
    """Make kept states of one chain with these weights."""
    return MixtureStates(
        topics_of=lambda state: Topics(PHI.T[None], DirichletLaw(ALPHA[None])),
        states={"eta": np.asarray(eta)[None], **more},
        draw=np.arange(len(eta)),
        vocabulary=FITTED.vocabulary,
    )


def exact(document, mean):
    """Sum over the topics of a document the predicted mean of its label."""
    value = total = 0.0
    for z in itertools.product(range(2), repeat=len(document)):
        counts, p = np.zeros(2), 1.0
        for word, k in zip(document, z, strict=True):
            p *= (counts[k] + ALPHA[k]) * PHI[k, word]
            counts[k] += 1
        value += p * mean(ETA @ counts / len(document))
        total += p
    return value / total


def predict(model, mixtures, corpus=NEW, **options):
    return labels.predict_means(model, FITTED, mixtures, corpus, **options)


class TestPredictMeans:
    def test_probabilities_are_those_of_enumeration(self):
        of_documents = [exact(document, expit) for document in ([0, 2, 2], [1])]
        assert of_documents[0] == pytest.approx(0.461758, abs=1e-6)
        found = predict(HandMade(2), states([ETA])).mean.reshape(COPIES, 2)
        one_sample("labels", {"p": found}, {"p": np.array(of_documents)})

    def test_mean_counts_are_those_of_enumeration(self):
        of_documents = [exact(d, lambda omega: 1.5 * np.exp(omega)) for d in ([0, 2, 2], [1])]
        kept = states([ETA], dispersion=np.array([[1.5]]))
        found = predict(HandMade(2, response="count"), kept).mean.reshape(COPIES, 2)
        one_sample("counts", {"mean": found}, {"mean": np.array(of_documents)})

    def test_states_are_averaged_and_one_is_plugged_in(self):
        few = bnp.Corpus.from_ids([[0, 2, 2], [1]], num_words=3)
        kept = states([[9.0, 9.0], [-9.0, -9.0], [0.0, 0.0]])
        found = predict(HandMade(2), kept, few)
        np.testing.assert_allclose(found.by_state[:, 0], expit([9, -9, 0]), rtol=1e-5)
        np.testing.assert_allclose(found.mean, 0.5, rtol=1e-5)
        np.testing.assert_allclose(found.sd, np.std(expit([9, -9, 0])), rtol=1e-5)
        last = predict(HandMade(2), kept, few, plug_in=True)
        assert last.by_state.shape == (1, 2)
        np.testing.assert_allclose(last.mean, 0.5)

    def test_weights_of_chains_count(self):
        few = bnp.Corpus.from_ids([[0]], num_words=3)
        kept = MixtureStates(
            topics_of=lambda state: Topics(PHI.T[None], DirichletLaw(ALPHA[None])),
            states={"eta": np.array([[[9.0, 9.0]], [[-9.0, -9.0]]])},
            draw=np.zeros(1),
            chain_weight=np.array([0.75, 0.25]),
        )
        assert predict(HandMade(2), kept, few).mean == pytest.approx(0.5 + 0.25 * 0.99975, abs=1e-4)

    @pytest.mark.parametrize(
        ("corpus", "options", "message"),
        [
            (bnp.Corpus.from_ids([[0], []], num_words=3), {}, "1 documents without words"),
            (bnp.Corpus.from_ids([[0]], num_words=4), {}, "has 4 words, the model has 3"),
            (NEW, {"num_kept": 60}, r"num_kept must be in \[1, num_sweeps=50\], got 60"),
        ],
    )
    def test_refused(self, corpus, options, message):
        with pytest.raises(ValueError, match=message):
            predict(HandMade(2), states([ETA]), corpus, **options)


class TestCalibration:
    def test_parts_and_intervals(self):
        p = np.array([0.9, 0.1, 0.2, 0.8])
        table = labels.calibration(p, p > 0.15, bins=2)
        np.testing.assert_allclose(table["predicted"], [0.15, 0.85])
        np.testing.assert_allclose(table["observed"], [0.5, 1.0])
        assert table["documents"].tolist() == [2, 2]
        assert np.all(table["low"] < table["observed"])
        assert np.all(table["high"] >= table["observed"])

    @pytest.mark.parametrize(
        ("p", "label", "bins", "message"),
        [
            ([0.5, 1.5], [0, 1], 1, "numbers in"),
            ([0.5], [0, 1], 1, "label must be an array"),
            ([0.5, 0.5], [0, 1], 3, "bins must be an integer of at most 2"),
        ],
    )
    def test_refused(self, p, label, bins, message):
        with pytest.raises(ValueError, match=message):
            labels.calibration(np.array(p), np.array(label), bins=bins)
