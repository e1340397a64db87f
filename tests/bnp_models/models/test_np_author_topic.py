"""The nonparametric author-topic model: the contract of all models, its collapsed density.

What it shares with the finite model is tested in `test_author_topic.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.testing import refusals

DOCS, AUTHORS = [[0, 0, 1], [1, 2, 2]], [["a", "b"], ["b"]]
CORPUS = bnp.Corpus.from_ids(DOCS, num_words=3, authors=AUTHORS)
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.NonparametricAuthorTopicModel,
    configurations=(
        bnp.NonparametricAuthorTopicModel(beta=PRIOR, max_topics=5),
        bnp.NonparametricAuthorTopicModel(),
        bnp.NonparametricAuthorTopicModel(gamma=dist.Gamma(1.0, 1.5)),
        bnp.NonparametricAuthorTopicModel(alpha=2, gamma=dist.Exponential(2.0), max_topics=7),
        bnp.NonparametricAuthorTopicModel(alpha=1.0, gamma=1.0, max_topics=8),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "gamma": (), "beta": (), "sticks": (4,), "phi": (5, 3), "theta": (2, 5),
        "place": (6,), "z": (6,), "w": (6,),
    },
    dims={
        "z": ("token",), "x": ("token",), "phi": ("topic", "word"), "theta": ("author", "topic"),
        "topic_tokens": ("topic",), "author_tokens": ("author",), "root_weights": ("topic",),
        "tables": ("topic",),
    },
    refused=refusals.ROOTED_ARGUMENTS,
    options_refused=[*refusals.ROOTED_OPTIONS, ({"record": ("beta",)}, "record must be one of")],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no authors"),
    ],
    no_update=refusals.ROOTED_NO_UPDATE,
    options={"init_topics": 2},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_collapsed_density_is_that_of_the_kernel():
    model = bnp.NonparametricAuthorTopicModel(beta=PRIOR, max_topics=7)
    sampler = model.gibbs(init_topics=3).sampler()
    data = sampler.prepare(CORPUS)
    state = jax.jit(lambda key: sampler.init(key, data, CORPUS))(jax.random.key(3))
    assert (state.topic > 0).sum() > 1
    snapshot = sampler.snapshot(state, data)
    root = jnp.append(snapshot["root_weights"], snapshot["unused_weight"])
    values = {name: snapshot[name] for name in ("x", "z", *model.hyperparameters)} | {"root": root}
    found = jax.jit(lambda values: log_density(model.collapsed, (CORPUS,), {}, values)[0])(values)
    np.testing.assert_allclose(found, jax.jit(sampler.log_density)(state, data), rtol=1e-5)
