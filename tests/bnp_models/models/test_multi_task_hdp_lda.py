"""The HDP topic model of several collections as users meet it."""

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
    model=bnp.MultiTaskHDPLDA,
    configurations=(
        bnp.MultiTaskHDPLDA(beta=PRIOR, max_topics=6),
        bnp.MultiTaskHDPLDA(),
        bnp.MultiTaskHDPLDA(group_alpha=dist.Gamma(1.0, 1.5)),
        bnp.MultiTaskHDPLDA(group_alpha=3.0, gamma=dist.Exponential(2.0), max_topics=7),
        bnp.MultiTaskHDPLDA(alpha=1.0, group_alpha=1.0, gamma=1.0, max_topics=8),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "group_alpha": (), "gamma": (), "beta": (), "sticks": (5,), "phi": (6, 5),
        "group_weights": (2, 6), "theta": (3, 6), "z": (7,), "w": (7,),
    },
    dims={
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "root_weights": ("topic",), "tables": ("topic",),
        "group_weights": ("group", "topic"), "group_unused": ("group",),
    },
    refused=[
        *refusals.ROOTED_ARGUMENTS,
        ({"group_alpha": 0.0}, "group_alpha must be positive"),
        ({"group_alpha": (1.0, 2.0)}, "group_alpha must be a positive number or a NumPyro"),
    ],
    options_refused=[*refusals.ROOTED_OPTIONS, ({"record": ("x",)}, "record must be one of")],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no groups: give every document one"),
        (alone(["a", "a"]), "data has one group, 'a': topics are shared between two groups"),
    ],
    no_update=refusals.ROOTED_NO_UPDATE,
    options={"init_topics": 2},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_a_group_without_tokens_is_named():
    corpus = bnp.Corpus.from_ids([[0, 1], [], [1]], num_words=2, groups=["a", "b", "c"])
    with pytest.raises(ValueError, match="data has no tokens in group 'b': leave the group out"):
        bnp.MultiTaskHDPLDA().gibbs().sampler().prepare(corpus)


@pytest.mark.slow
def test_groups_have_weights_of_their_own():
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 5, 30) if d < 10 else rng.integers(5, 10, 30) for d in range(20)]
    corpus = bnp.Corpus.from_ids(docs, num_words=10, groups=["left"] * 10 + ["right"] * 10)
    model = bnp.MultiTaskHDPLDA(alpha=1.0, group_alpha=1.0, gamma=1.0, beta=0.1, max_topics=40)
    fit = bnp.fit(
        model, corpus, num_warmup=40, num_samples=10, num_chains=1, progress=False,
        record=("group_weights", "group_unused"),
    )  # fmt: skip
    posterior = fit.data["posterior"]
    weights, unused = (posterior[n].to_numpy() for n in ("group_weights", "group_unused"))
    np.testing.assert_allclose(weights.sum(-1) + unused, 1.0, rtol=1e-4)
    overlap = np.minimum(weights[..., 0, :], weights[..., 1, :]).sum(-1)
    assert overlap.mean() < 0.3
    assert fit.mixtures[-1].weights.shape[:2] == (1, 2)  # one set of topics, two rows of weights
    new = bnp.Corpus.from_ids([[0, 1, 2], [7, 8]], num_words=10, groups=["left", "right"])
    assert "perplexity" in fit.evaluate("document_completion", new)
