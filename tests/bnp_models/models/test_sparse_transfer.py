"""The sparse transfer model as users meet it."""

import numpy as np
import numpyro.distributions as dist
import pytest

import bnp_models as bnp
from bnp_models import testing
from bnp_models.testing import refusals

CORPUS = bnp.Corpus.from_ids(
    [[0, 1, 0, 3], [], [2, 1, 1]], num_words=5, groups=["a", "b", "b"]
)  # fmt: skip
PRIOR = dist.Gamma(2.0, 4.0)


def alone(groups):
    return bnp.Corpus.from_ids([[0, 1], [2]], num_words=3, groups=groups)


CONTRACT = testing.Contract(
    model=bnp.SparseTransferTopicModel,
    configurations=(
        bnp.SparseTransferTopicModel(alpha=PRIOR, beta=PRIOR, max_topics=6),
        bnp.SparseTransferTopicModel(),
        bnp.SparseTransferTopicModel(epsilon=1e-4),
        bnp.SparseTransferTopicModel(strength_shape=2.0),
        bnp.SparseTransferTopicModel(strength_scale=1.0, alpha=dist.Exponential(2.0)),
        bnp.SparseTransferTopicModel(alpha=1.0, size_model="none", max_topics=8),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "beta": (), "shares": (6,), "strength": (6,), "phi": (6, 5), "on": (2, 6),
        "own_strength": (2, 6), "group_size": (2,), "theta": (3, 6), "z": (7,), "w": (7,),
    },
    dims={
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "stick": ("topic",), "strength": ("topic",),
        "group_strength": ("group", "topic"),
    },
    refused=[
        ({"max_topics": 0}, "max_topics must be an integer of at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"beta": np.nan}, "beta must be positive"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": 1.5}, "epsilon must be"),
        ({"strength_shape": 0.0}, "strength_shape must be"),
        ({"strength_scale": np.inf}, "strength_scale must be"),
        ({"size_model": "poisson"}, r"size_model must be one of"),
        ({"alpha": dist.Gamma(np.ones(2), 1.0)}, "alpha must have a scalar prior"),
    ],
    options_refused=[
        *refusals.ROOTED_OPTIONS,
        ({"record": ("x",)}, "record must be one of"),
        ({"approximation": "mean"}, "approximation must be one of"),
        ({"approximation": "taylor"}, "needs schedule='sequential', got schedule='mixed'"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no groups: give every document one"),
        (alone(["a", "a"]), "data has one group, 'a': topics are shared between two groups"),
    ],
    no_update={"alpha": dist.LogNormal(0.0, 1.0)},
    options={"init_topics": 2},
    labels=("group_size",),
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def planted():
    """Return documents of two groups that share one topic, and have one topic each besides."""
    rng = np.random.default_rng(0)
    pools = [[range(5), range(5, 10)], [range(5), range(10, 15)]]  # of the groups
    docs = [rng.choice(pools[d % 2][d // 2 % 2], 30) for d in range(24)]
    return bnp.Corpus.from_ids(docs, num_words=15, groups=["left", "right"] * 12)


def fitted(**options):
    model = bnp.SparseTransferTopicModel(beta=0.1, max_topics=40)
    return bnp.fit(
        model, planted(), num_warmup=60, num_samples=20, num_chains=1, progress=False,
        init_topics=4, schedule="sequential", record=("group_strength",), **options,
    )  # fmt: skip


@pytest.mark.slow
def test_groups_share_one_topic_and_have_topics_of_their_own():
    fit = fitted()
    table = fit.shared_topics(min_tokens=20)
    kinds = dict(zip(table["groups"], table["kind"], strict=True))
    assert set(table["kind"][:3]) == {"common", "own"}
    assert kinds["left"] == kinds["right"] == "own"
    strength = fit.data["posterior"]["group_strength"].to_numpy()
    assert ((strength > 0).sum(axis=-1) >= 2).all()
    assert fit.mixtures[-1].weights.shape[:2] == (1, 2)  # one set of topics, two rows of weights
    new = bnp.Corpus.from_ids([[0, 1, 2], [12, 13]], num_words=15, groups=["left", "right"])
    assert "perplexity" in fit.evaluate("document_completion", new)
    assert np.isfinite(fit.empirical_likelihood(new, num_draws=100).log_prob)
    assert "not exact" not in fit.summaries().text(None)


@pytest.mark.slow
def test_a_fit_says_that_its_sampler_is_not_exact():
    fit = fitted(approximation="taylor")
    assert "The sampler was not exact: approximation='taylor'." in fit.summaries().text(None)
    strength = fit.data["posterior"]["group_strength"].to_numpy()
    assert (strength.sum(axis=-1) > 0).all()


def test_the_approximation_is_of_the_whole_model():
    model = bnp.SparseTransferTopicModel(size_model="none")
    with pytest.raises(ValueError, match="is of size_model='task_nb', got 'none'"):
        model.gibbs(schedule="sequential", approximation="taylor")
