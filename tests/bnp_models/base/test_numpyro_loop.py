"""What `MCMC` compiles in a further run, counted by the events of JAX."""

import math

import jax
import numpy as np
import numpyro.util
import pytest
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_models.base import other_packages
from bnp_models.base.other_packages import reuse_loops


@pytest.fixture
def compiled(monkeypatch):
    """Note the name of every program that XLA compiles or JAX reads from the disk."""
    monkeypatch.setattr(other_packages, "SHARE", math.inf)  # nothing is dropped meanwhile
    names = []

    def listen(event, seconds, **about):
        if "backend_compile" in event:
            names.append(about.get("fun_name", event))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def make(kernel, **options):
    options = {"num_chains": 2, "chain_method": "vectorized", "progress_bar": False, **options}
    return MCMC(kernel, num_warmup=2, num_samples=3, **options)


def run(mcmc, data, seed=0):
    mcmc.run(jax.random.key(seed), data)
    return jax.tree.map(np.asarray, mcmc.get_samples(group_by_chain=True))


@pytest.mark.parametrize("max_topics", [None, 31], ids=["finite", "infinite"])
class TestToy:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"jit_model_args": True},
            {"num_chains": 1},
            {"chain_method": "sequential"},
            {"progress_bar": True},
        ],
        ids=["plain", "data-as-arguments", "one-chain", "one-by-one", "bar"],
    )
    def test_a_second_run(self, toy, tiny, compiled, max_topics, options, monkeypatch):
        for name in ("CI", "PYTEST_XDIST_WORKER"):  # NumPyro shows no bar there
            monkeypatch.delenv(name, raising=False)
        mcmc = make(toy(max_topics=max_topics).gibbs(record=("z",)), **options)
        first = run(mcmc, tiny)
        assert compiled
        compiled.clear()
        other = run(mcmc, tiny, seed=1)
        again = run(mcmc, tiny)
        assert compiled == []
        np.testing.assert_array_equal(again["z"], first["z"])
        assert (other["z"] != first["z"]).any()

    def test_chains_one_by_one(self, toy, tiny, compiled, max_topics):
        kernel = toy(max_topics=max_topics).gibbs()
        run(make(kernel, chain_method="sequential"), tiny)
        assert compiled.count("jit(_fori_collect_loop)") == 1

    def test_another_object(self, toy, tiny, twin, compiled, max_topics):
        """NumPyro makes a body of its own for it: its loop is compiled, and nothing else."""
        run(make(toy(max_topics=max_topics).gibbs()), tiny)
        compiled.clear()
        run(make(toy(max_topics=max_topics).gibbs()), twin, seed=1)
        assert set(compiled) <= {"jit(_fori_collect_loop)"}
        assert len(compiled) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hdp", "authors", "poisson", "gaussian"])
def test_second_run_of_infinite_models(name, compiled):
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 6, n).tolist() for n in (8, 5, 7)]
    corpus = bnp.Corpus.from_ids(docs, 6, authors=[["a"], ["a", "b"], ["b"]])
    counts, reals = rng.poisson(2.0, (2, 4, 3)), rng.normal(size=(2, 4, 3))
    model, data = {
        "hdp": (bnp.HDPLDA(max_topics=32), corpus),
        "authors": (bnp.NonparametricAuthorTopicModel(max_topics=32), corpus),
        "poisson": (bnp.PoissonGammaFactorAnalysis(max_factors=80), list(counts)),
        "gaussian": (bnp.GaussianFactorAnalysis(max_factors=40), list(reals)),
    }[name]
    if data is not corpus:
        data = bnp.Sources.from_arrays(data)
    mcmc = make(model.gibbs(**({"init_factors": 3} if model.slots == "factor" else {})))
    run(mcmc, data)
    compiled.clear()
    run(mcmc, data, seed=1)
    assert compiled == []


class TestReuseLoops:
    def test_one_object_for_one_function(self):
        checked = []
        reuse_loops(checked.append)
        once = numpyro.util.maybe_jit

        def double(x):
            return 2 * x

        jitted = once(double)
        assert once(double) is jitted
        assert once(double, donate_argnums=0) is not jitted
        assert once(lambda x: 2 * x) is not jitted
        assert jitted(3) == 6
        assert checked == [6]

    def test_without_control_flow(self):
        reuse_loops(lambda result: None)

        def double(x):
            return 2 * x

        with numpyro.util.control_flow_prims_disabled():
            assert numpyro.util.maybe_jit(double) is double
        assert numpyro.util.maybe_jit(double) is not double
