"""`GroupLDA` as users meet it: the program, names of what is recorded, weights, bad input."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive

import bnp_models as bnp
from bnp_models.models.group_lda import GroupLDA

DOCS = [[0, 1, 2, 0], [3, 4, 5, 3, 4], [0, 2, 5], [1, 1, 4]]
CORPUS = bnp.Corpus.from_ids(DOCS, vocabulary=list("uvwxyz"), groups=list("baba"))
MODEL = GroupLDA(3, alpha=(0.05, 20.0), beta=0.2)
SIZES = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "keep_states": 2, "progress": False}


@pytest.fixture(scope="module")
def fitted():
    model = GroupLDA(3, alpha=(0.05, 20.0), beta=dist.Gamma(1.0, 1.0))
    return bnp.fit(model, CORPUS, record=model.recordable, schedule="sequential", **SIZES)


def test_documents_of_a_group_mix_topics_alike():
    draw = Predictive(MODEL, num_samples=200, return_sites=["theta"])
    largest = draw(jax.random.key(0), CORPUS, observed=False)["theta"].max(axis=-1).mean(axis=0)
    assert (largest[1::2] > 0.8).all()  # group a: about one topic each
    assert (largest[::2] < 0.6).all()  # group b: all topics in equal parts, about


def test_names(fitted):
    assert fitted.posterior["beta"].dims == ("chain", "draw")
    assert fitted.posterior["theta"].dims == ("chain", "draw", "doc", "topic")
    assert fitted.states["alpha"].dims == ("chain", "draw", "group")
    np.testing.assert_allclose(fitted.states["alpha"].sel(group="b"), 20.0)
    mean = fitted.data["posterior_mean"]["theta_mean"]
    np.testing.assert_allclose(mean.sum("topic"), 1.0, rtol=1e-5)
    assert (mean.max("topic")[..., 1::2] > mean.max("topic")[..., ::2].max("doc")).all()


def test_weights_of_new_documents(fitted):
    mixture = fitted.mixtures[0]
    assert mixture.row_names == ("a", "b")
    np.testing.assert_allclose(mixture.weights[0], [[0.05] * 3, [20.0] * 3], rtol=1e-6)
    assert mixture.phi.shape[1] == 1  # groups share the topics


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GroupLDA(2, alpha=0.1), "alpha must be a number for each group"),
        (lambda: GroupLDA(2, alpha=dist.Gamma(1.0, 1.0)), "alpha must be a number for each group"),
        (lambda: GroupLDA(2, alpha=(0.1, -1.0)), r"alpha\[1\] must be positive"),
        (lambda: GroupLDA(2, alpha=(0.1, dist.Gamma(1.0, 1.0))), "alpha must be numbers"),
        (lambda: GroupLDA(0, alpha=(0.1,)), "num_topics must be an integer of at least 1"),
    ],
)
def test_bad_hyperparameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_data():
    with pytest.raises(ValueError, match=r"alpha must have 2 numbers, .* \(a, b\), got 3"):
        bnp.fit(GroupLDA(2, alpha=(0.1, 0.2, 0.3)), CORPUS, **SIZES)
    with pytest.raises(ValueError, match="data has no groups"):
        bnp.fit(MODEL, bnp.Corpus.from_ids(DOCS, num_words=6), **SIZES)
