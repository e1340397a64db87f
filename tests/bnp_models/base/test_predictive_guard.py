"""Programs refuse posterior draws that lack what the data depend on."""

import warnings

import jax
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer import Predictive, init_to_sample

import bnp_models as bnp

CORPUS = bnp.Corpus.from_ids([[0, 1], [1]], num_words=2, authors=[["a"], ["a", "b"]])
COUNTS = bnp.Sources.from_arrays([np.ones((3, 2), int)])
TOPICS = [
    bnp.LDA(2), bnp.HDPLDA(max_topics=2), bnp.AuthorTopicModel(2),
    bnp.NonparametricAuthorTopicModel(max_topics=2),
]  # fmt: skip
FACTORS = [
    bnp.PoissonGammaFactorAnalysis(max_factors=2), bnp.GaussianFactorAnalysis(max_factors=2),
]  # fmt: skip
HALVES = np.full((5, 2, 2), 0.5, np.float32)
USED = np.full(5, 2)


def predict(model, data, samples, *, observed=False):
    return Predictive(model, samples)(jax.random.key(0), data, observed=observed)


def name_of(model):
    return type(model).__name__


@pytest.mark.slow
@pytest.mark.parametrize("model", TOPICS, ids=name_of)
def test_topics_must_be_there(model):
    with pytest.raises(ValueError, match=r"posterior_samples has no phi: .*record=\('phi', 'the"):
        predict(model, CORPUS, {"num_topics_used": USED, "theta": HALVES})
    with pytest.warns(UserWarning, match="posterior_samples has no theta: .* new documents"):
        predict(model, CORPUS, {"num_topics_used": USED, "phi": HALVES})
    for more in ({"theta": HALVES}, {"z": np.zeros((5, 3), int)}):
        found = predict(model, CORPUS, {"num_topics_used": USED, "phi": HALVES, **more})
        assert found["w"].shape == (5, 3)


@pytest.mark.slow
@pytest.mark.parametrize("model", FACTORS, ids=name_of)
def test_factors_must_be_there(model):
    samples = {"num_factors_used": USED, "phi": HALVES}
    with pytest.raises(ValueError, match=r"posterior_samples has no weights, z: .*record="):
        predict(model, COUNTS, samples)
    rows = np.ones((5, 3, 2), np.float32)
    assert predict(model, COUNTS, {**samples, "weights": rows, "z": rows})["x"].shape == (5, 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("model", [TOPICS[0], FACTORS[1]], ids=name_of)
def test_values_that_users_choose_are_not_refused(model):
    data = CORPUS if name_of(model) == "LDA" else COUNTS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict(model, data, {"alpha": np.ones(5)})
        Predictive(model, num_samples=2)(jax.random.key(0), data, observed=False)
        seeded = handlers.seed(model, 0)
        handlers.substitute(seeded, substitute_fn=init_to_sample)(data)
