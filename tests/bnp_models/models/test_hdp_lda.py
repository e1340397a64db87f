"""HDP-LDA as users meet it: the contract of all models, its collapsed density, a full buffer."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.testing import refusals

CORPUS = bnp.Corpus.from_ids([[0, 1, 0, 3], [], [2, 1, 1]], num_words=5)
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.HDPLDA,
    configurations=(
        bnp.HDPLDA(beta=PRIOR, max_topics=6),
        bnp.HDPLDA(),
        bnp.HDPLDA(gamma=dist.Gamma(1.0, 1.5)),
        bnp.HDPLDA(alpha=2, gamma=dist.Exponential(2.0), beta=dist.Gamma(2.0, 10.0), max_topics=7),
        bnp.HDPLDA(alpha=1.0, gamma=1.0, max_topics=8),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "gamma": (), "beta": (), "sticks": (5,), "phi": (6, 5), "theta": (3, 6),
        "z": (7,), "w": (7,),
    },
    dims={
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "root_weights": ("topic",), "tables": ("topic",),
    },
    refused=refusals.ROOTED_ARGUMENTS,
    options_refused=[*refusals.ROOTED_OPTIONS, ({"record": ("x",)}, "record must be one of")],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Sources.from_arrays([np.ones((2, 2))]), "data must be a Corpus, got Sources"),
    ],
    no_update=refusals.ROOTED_NO_UPDATE,
    options={"init_topics": 2},
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def test_collapsed_density_is_that_of_the_kernel(tiny):
    model = bnp.HDPLDA(beta=PRIOR, max_topics=7)
    sampler = model.gibbs(init_topics=4).sampler()
    data = sampler.prepare(tiny)
    state = jax.jit(lambda key: sampler.init(key, data, tiny))(jax.random.key(3))
    assert (state.topic > 0).sum() == 4
    snapshot = sampler.snapshot(state, data)
    weights, unused = snapshot["root_weights"], snapshot["unused_weight"]
    values = {name: snapshot[name] for name in ("z", *model.hyperparameters)}
    density = jax.jit(lambda values: log_density(model.collapsed, (tiny,), {}, values)[0])
    expected = jax.jit(sampler.log_density)(state, data)
    root = jnp.append(weights, unused)
    np.testing.assert_allclose(density(values | {"root": root}), expected, rtol=1e-5)
    # the weight of a slot without tokens counts as unused mass
    root = root + 0.4 * unused * jnp.array([0] * 6 + [1, -1])
    np.testing.assert_allclose(density(values | {"root": root}), expected, rtol=1e-5)


@pytest.mark.slow
def test_plain_mcmc_refuses_to_be_short_of_slots(tiny):
    model = bnp.HDPLDA(alpha=5.0, gamma=50.0, beta=0.2, max_topics=2)
    kernel = model.gibbs(schedule="sequential", init_topics=2)
    mcmc = MCMC(
        kernel, num_warmup=3, num_samples=4, num_chains=2, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip

    def run():
        mcmc.run(jax.random.key(0), tiny)
        return np.asarray(mcmc.get_samples()["num_topics_used"])

    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="max_topics=4"):
        run()
