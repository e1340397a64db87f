"""LDA as users meet it: the contract of all models, its collapsed density."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing

CORPUS = bnp.Corpus.from_ids([[0, 1, 0, 3], [], [2, 1, 1]], num_words=5)
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.LDA,
    configurations=(
        bnp.LDA(3, alpha=dist.Gamma(np.ones(3), jnp.asarray([1.0, 2.0, 3.0])), beta=PRIOR),
        bnp.LDA(3),
        bnp.LDA(4),
        bnp.LDA(3, alpha=1.0),
        bnp.LDA(3, alpha=(1.0, 1.0, 1.0)),
        bnp.LDA(3, alpha=(0.1, 0.2, 0.3), beta=np.float32(0.1)),
        bnp.LDA(3, beta=dist.Exponential(2.0)),
        bnp.LDA(3, alpha=PRIOR),
    ),
    data=CORPUS,
    sites={"alpha": (3,), "beta": (), "phi": (3, 5), "theta": (3, 3), "z": (7,), "w": (7,)},
    dims={
        "alpha": ("topic",), "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": -1.0}, "alpha must be positive"),
        ({"num_topics": 2, "alpha": (1.0,)}, "alpha must be a number or 2 numbers"),
        ({"num_topics": 2, "beta": (1.0, 1.0)}, "beta must be a positive number"),
        ({"num_topics": 2, "beta": dist.Normal()}, "beta must have a prior over positive numbers"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3, got 4"),
        ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
        ({"record": ("tables",)}, "record must be one of"),
        ({"record": "z"}, "record must be a tuple of names"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Sources.from_arrays([np.ones((2, 2))]), "data must be a Corpus, got Sources"),
    ],
    no_update={"num_topics": 2, "alpha": dist.LogNormal(0.0, 1.0)},
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


@pytest.mark.parametrize("alpha", [(0.5, 1.2, 0.1), PRIOR], ids=["fixed", "sampled"])
def test_collapsed_density_is_that_of_the_kernel(tiny, alpha):
    model = bnp.LDA(3, alpha=alpha, beta=PRIOR)
    sampler = model.gibbs().sampler()
    data = sampler.prepare(tiny)
    state = jax.jit(lambda key: sampler.init(key, data, tiny))(jax.random.key(0))
    values = {"z": state.z, "beta": state.beta}
    if not isinstance(alpha, tuple):
        values["alpha"] = state.alpha[0]
    found = jax.jit(lambda values: log_density(model.collapsed, (tiny,), {}, values)[0])(values)
    np.testing.assert_allclose(found, jax.jit(sampler.log_density)(state, data), rtol=1e-5)
