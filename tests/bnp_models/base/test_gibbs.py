"""The adapter to NumPyro: chain methods, continued runs, tracing, a full buffer, bad arguments.

Mostly on a toy model that compiles quickly, then on those of the library.
"""

import math
import pickle
import warnings

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import HMC, MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.initialization import init_to_uniform

import bnp_models as bnp
from bnp_models.base import gibbs, other_packages
from bnp_models.base.gibbs import GibbsKernel

RECORD = ("z", "topic_tokens", "noise", "topic_tokens_mean")
METHODS = [
    "sequential",
    pytest.param(
        "parallel",
        marks=pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices"),
    ),
    pytest.param(
        jax.vmap,
        id="vmap",
        marks=pytest.mark.filterwarnings("ignore:Some donated buffers were not usable"),  # NumPyro
    ),
]


def sample(kernel, *corpus, seed=0, sizes=(3, 4), extra_fields=(), run=True, named=None, **options):
    """Run a kernel on the data, given by position or, in the dictionary `named`, by name."""
    options = {"chain_method": "vectorized", "num_chains": 2, "progress_bar": False} | options
    mcmc = MCMC(kernel, num_warmup=sizes[0], num_samples=sizes[1], **options)
    if run:
        key = jax.random.key(seed) if isinstance(seed, int) else seed
        mcmc.run(key, *corpus, extra_fields=extra_fields, **(named or {}))
    return mcmc


def collected(mcmc):
    fields = mcmc.get_extra_fields(group_by_chain=True)
    found = {**mcmc.get_samples(group_by_chain=True), **fields}
    return {name: np.asarray(x) for name, x in found.items()}


def assert_equal(found, expected, nearly=()):
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        if name in nearly:
            np.testing.assert_allclose(found[name], x, rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], x, err_msg=name)


@pytest.fixture
def bar(monkeypatch):
    """Let NumPyro show its bar, which it does not in CI."""
    for name in ("CI", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kernel(toy):
    return toy().gibbs(record=RECORD, schedule="mixed")


_expected = {}


@pytest.fixture
def expected(kernel, tiny):
    """Two chains of three warm-up sweeps and four that are kept."""
    if kernel not in _expected:
        _expected[kernel] = collected(sample(kernel, tiny))
    return _expected[kernel]


class TestChainMethods:
    """The same draws, bit for bit, however the chains are run."""

    def test_reference(self, expected):
        assert set(expected) == {"z", "topic_tokens", "noise", "num_topics_used", "lp"}
        z = expected["z"]
        assert z.shape == (2, 4, 31)
        counts = (z[..., None] == np.arange(31)).sum(2)
        np.testing.assert_array_equal(expected["topic_tokens"], counts)
        np.testing.assert_array_equal(expected["num_topics_used"], (counts > 0).sum(-1))
        assert np.isfinite(expected["lp"]).all()
        assert len(np.unique(expected["noise"])) == 8
        # the rotation is sweep, rest, sweep, and the second draw comes from the fifth
        assert (z[:, 0] == z[:, 1]).all()
        assert (z[0] != z[1]).any()
        assert (z[:, 1:3] != z[:, 2:]).any((1, 2)).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_method(self, kernel, tiny, expected, method):
        assert_equal(collected(sample(kernel, tiny, chain_method=method)), expected)

    @pytest.mark.parametrize("method", ["vectorized", METHODS[2]])
    def test_infinite_model(self, toy, tiny, expected, method):
        kernel = toy(max_topics=31).gibbs(record=RECORD, schedule="mixed")
        assert_equal(collected(sample(kernel, tiny, chain_method=method)), expected)

    def test_data_as_arguments(self, kernel, tiny, expected):
        assert_equal(collected(sample(kernel, tiny, jit_model_args=True)), expected)

    @pytest.mark.parametrize("as_arguments", [False, True])
    def test_data_by_name(self, kernel, tiny, expected, as_arguments):
        mcmc = sample(kernel, named={"corpus": tiny}, jit_model_args=as_arguments)
        assert_equal(collected(mcmc), expected)
        mcmc.run(jax.random.key(1), corpus=tiny)
        assert (np.asarray(mcmc.get_samples(group_by_chain=True)["z"]) != expected["z"]).any()

    def test_chain_after_chain_with_data_by_name(self, kernel, tiny, expected):
        mcmc = sample(kernel, named={"corpus": tiny}, chain_method="sequential")
        assert_equal(collected(mcmc), expected)

    @pytest.mark.parametrize("method", ["vectorized", *METHODS[:2]])
    def test_progress_bar(self, kernel, tiny, expected, method, bar, capsys):
        mcmc = sample(kernel, tiny, chain_method=method, progress_bar=True)
        assert mcmc.progress_bar
        assert_equal(collected(mcmc), expected)
        # NumPyro asks for diagnostics where it sees the key of a single chain
        assert (" topics, lp " in capsys.readouterr().err) == (method == "sequential")

    def test_one_chain(self, kernel, tiny, expected):
        key = jax.random.split(jax.random.key(0), 2)[1]
        found = collected(sample(kernel, tiny, seed=key, num_chains=1))
        assert_equal(found, {name: x[[1]] for name, x in expected.items()})

    def test_keys_of_the_old_style(self, kernel, tiny, expected):
        mcmc = sample(kernel, tiny, seed=jax.random.PRNGKey(0))
        assert_equal(collected(mcmc), expected)
        assert mcmc.last_state.rng_key.shape == (2, 2)
        key = jax.random.split(jax.random.PRNGKey(0), 2)[1]
        one = sample(kernel, tiny, seed=key, num_chains=1)
        assert_equal(collected(one), {name: x[[1]] for name, x in expected.items()})
        assert one.last_state.rng_key.shape == (2,)

    @pytest.mark.optimised
    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["alone", *METHODS[1:]])
    def test_lda(self, tiny, method):
        model = bnp.LDA(3, alpha=dist.Gamma(1.0, 1.0), beta=dist.Gamma(1.0, 4.0))
        self.check_model(tiny, model, method)

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_hdp_lda(self, tiny):
        model = bnp.HDPLDA(beta=dist.Gamma(1.0, 4.0), max_topics=60)
        # XLA rounds a few cells of theta (1 in 1000) by what the loop over chains is fused with
        self.check_model(tiny, model, "alone", nearly=("theta",), schedule="sequential")

    def check_model(self, corpus, model, method, nearly=(), **options):
        """Compare two chains side by side with those of a method, or with the second alone.

        NumPyro's "sequential" is the latter as well, one chain after the other.
        """
        kernel = model.gibbs(init_topics=3, record=model.recordable, **options)
        sizes = (3, 12)
        if kernel not in _expected:
            _expected[kernel] = collected(sample(kernel, corpus, sizes=sizes))
        expected = _expected[kernel]
        if method == "alone":
            key = jax.random.split(jax.random.key(0), 2)[1]
            found = sample(kernel, corpus, seed=key, sizes=sizes, num_chains=1)
            expected = {name: x[[1]] for name, x in expected.items()}
        else:
            found = sample(kernel, corpus, sizes=sizes, chain_method=method)
        assert_equal(collected(found), expected, nearly)


class TestContinuedRuns:
    @pytest.mark.parametrize("method", ["vectorized", "sequential"])
    def test_draws_go_on(self, kernel, tiny, expected, method):
        mcmc = sample(kernel, tiny, sizes=(3, 2), chain_method=method)
        first = collected(mcmc)
        mcmc.post_warmup_state = mcmc.last_state
        mcmc.run(mcmc.last_state.rng_key, tiny)
        second = collected(mcmc)
        joined = {name: np.concatenate([first[name], second[name]], axis=1) for name in first}
        assert_equal(joined, expected)
        assert_means(mcmc.last_state, expected)

    def test_warmup_apart(self, kernel, tiny, expected):
        mcmc = sample(kernel, tiny, run=False)
        mcmc.warmup(jax.random.key(0), tiny)
        mcmc.run(mcmc.post_warmup_state.rng_key, tiny)
        assert_equal(collected(mcmc), expected)
        assert_means(mcmc.last_state, expected)

    def test_a_second_run_starts_afresh(self, kernel, tiny, expected):
        mcmc = sample(kernel, tiny, seed=1)
        mcmc.run(jax.random.key(0), tiny)
        assert_equal(collected(mcmc), expected)


def assert_means(state, expected):
    """See that the running means are those over the sweeps after warm-up."""
    mean = expected["topic_tokens"].mean(1)
    np.testing.assert_allclose(state.means["topic_tokens_mean"], mean, rtol=1e-5, atol=1e-6)


class TestFields:
    def test_running_means(self, kernel, tiny, expected):
        mcmc = sample(kernel, tiny)
        assert_means(mcmc.last_state, expected)
        assert "topic_tokens_mean" not in mcmc.get_samples()

    def test_extra_fields(self, kernel, tiny):
        mcmc = sample(kernel, tiny, extra_fields=("info.num_moved", "chain.z", "~draws.noise"))
        found = collected(mcmc)
        assert "noise" not in found
        np.testing.assert_array_equal(found["chain.z"], found["z"])
        moved = (found["z"][:, 1:] != found["z"][:, :-1]).sum(-1)
        np.testing.assert_array_equal(found["info.num_moved"][:, 1:], moved)

    def test_thinning_keeps_the_last_of_each(self, kernel, tiny, expected):
        mcmc = sample(kernel, tiny, thinning=3)
        assert_equal(collected(mcmc), {name: x[:, [3]] for name, x in expected.items()})
        assert_means(mcmc.last_state, expected)

    @pytest.mark.parametrize("by_name", [False, True])
    def test_arviz_reads_the_run(self, kernel, tiny, by_name):
        mcmc = sample(kernel, named={"corpus": tiny}) if by_name else sample(kernel, tiny)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ's own
            data = arviz.from_numpyro(mcmc)
        found = collected(mcmc)
        assert set(data["posterior"]) == {"z", "topic_tokens", "noise", "num_topics_used"}
        np.testing.assert_array_equal(data["posterior"]["z"], found["z"])
        np.testing.assert_array_equal(data["sample_stats"]["lp"], found["lp"])
        np.testing.assert_array_equal(data["observed_data"]["w"], tiny.word)
        assert not any("log_likelihood" in name for name in groups_of(data))
        own = bnp.to_fit(mcmc).data
        np.testing.assert_array_equal(own["posterior"]["z"], found["z"])
        np.testing.assert_array_equal(own["observed_data"]["w"], tiny.word)

    def test_arviz_refuses_a_log_likelihood_that_is_asked_for(self, kernel, tiny):
        if int(arviz.__version__.partition(".")[0]) < 1:
            pytest.skip("ArviZ 0.x computes log likelihoods without being asked: there is none")
        mcmc = sample(kernel, tiny)
        with pytest.raises(ValueError, match=r"draws of Toy have no log likelihood"):
            arviz.from_numpyro(mcmc, log_likelihood=True)


def groups_of(data):
    """Return the names of the groups, of ArviZ 0.x or 1.x."""
    return list(data.groups() if callable(data.groups) else data.groups)


class TestTracing:
    def test_once_for_equal_models_and_corpora(self, toy, tiny, twin, monkeypatch):
        monkeypatch.setattr(other_packages, "SHARE", math.inf)  # nothing is dropped meanwhile
        model = toy(gamma=0.625)  # not used elsewhere
        toy.traced.clear()
        mcmc = sample(model.gibbs(), tiny, jit_model_args=True)
        before = len(toy.traced)
        assert before == 1
        mcmc.run(jax.random.key(1), twin)
        equal = pickle.loads(pickle.dumps(model))
        sample(equal.gibbs(), twin, jit_model_args=True)
        sample(equal.gibbs(), twin)
        assert len(toy.traced) == before
        sample(equal.gibbs(), twin, num_chains=1)  # a step is that of one chain
        assert len(toy.traced) == before
        longer = bnp.Corpus.from_ids([[0, 1, 2]] * 9, 6)
        sample(equal.gibbs(), longer)
        assert len(toy.traced) > before

    def test_kernels_compare_by_content(self, toy):
        assert toy().gibbs() == toy(gamma=2.0).gibbs(schedule="sequential")
        assert hash(toy().gibbs()) == hash(toy(gamma=2.0).gibbs(schedule="sequential"))
        for other in (
            toy(gamma=3.0).gibbs(),
            toy().gibbs(schedule="mixed"),
            toy().gibbs(record=("z",)),
            toy().gibbs(program=print, ignore=("x",)),
            "kernel",
        ):
            assert toy().gibbs() != other
            assert toy().gibbs(program=print) != other


class TestFullBuffer:
    """A sweep that needs more slots than there are must not go unnoticed."""

    @pytest.mark.parametrize("shown", [False, True], ids=["quiet", "bar"])
    @pytest.mark.parametrize("method", ["vectorized", "sequential"])
    def test_raises_and_names_the_capacity(self, toy, tiny, method, shown, bar):
        kernel = toy(gamma=9.0, max_topics=3).gibbs()
        with pytest.raises(ValueError, match=r"max_topics=3 is too small.*max_topics=6"):
            sample(kernel, tiny, chain_method=method, progress_bar=shown)

    def test_raises_where_a_run_goes_on(self, toy, tiny):
        mcmc = sample(toy(gamma=9.0, max_topics=3).gibbs(), tiny, run=False)
        with pytest.raises(ValueError, match="max_topics=3 is too small"):
            mcmc.warmup(jax.random.key(0), tiny)

    def test_raises_where_a_state_of_another_process_goes_on(self, toy, tiny, monkeypatch):
        kernel = toy(gamma=1e-9, max_topics=3).gibbs()
        state = sample(kernel, tiny).last_state
        monkeypatch.setattr(gibbs, "_kernels", {})  # nothing was started in that process
        full = state.chain._replace(overflow=np.array([False, True]))
        mcmc = sample(kernel, tiny, run=False)
        mcmc.post_warmup_state = state._replace(chain=full)
        with pytest.raises(ValueError, match="max_topics=3 is too small"):
            mcmc.run(state.rng_key, tiny)

    @pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")  # NumPyro's own
    @pytest.mark.parametrize("method", ["parallel", jax.vmap])
    def test_draws_are_no_numbers_where_the_host_sees_none(self, toy, tiny, method):
        """NumPyro maps the whole loop over chains there: nothing of it is seen before its end."""
        kernel = toy(gamma=9.0, max_topics=3).gibbs(record=("z", "noise"))
        mcmc = sample(kernel, tiny, chain_method=method)
        found = collected(mcmc)
        lost = np.isnan(found["lp"])
        assert lost[:, -1].any()
        np.testing.assert_array_equal((found["num_topics_used"] == -1), lost)
        np.testing.assert_array_equal((found["z"] == -1).all(-1), lost)
        np.testing.assert_array_equal(np.isnan(found["noise"]), lost)
        with pytest.raises(ValueError, match=r"max_topics=3 is too small.*max_topics=6"):
            bnp.to_fit(mcmc)

    def test_check_capacity(self, toy, tiny):
        kernel = toy(max_topics=3).gibbs()
        state = kernel.init(jax.random.split(jax.random.key(0), 2), 0, None, (tiny,), {})
        kernel.check_capacity(state)
        full = state.chain._replace(overflow=np.array([False, True]))
        with pytest.raises(ValueError, match="max_topics=3 is too small"):
            kernel.check_capacity(state._replace(chain=full))


class TestArguments:
    def test_init_params(self, toy, tiny):
        mcmc = sample(toy().gibbs(), tiny, run=False, num_chains=1)
        with pytest.raises(ValueError, match=r"init_params must be None.*init_topics="):
            mcmc.run(jax.random.key(0), tiny, init_params={"z": np.zeros(31)})

    def test_number_of_arguments(self, toy, tiny):
        mcmc = sample(toy().gibbs(), tiny, run=False, num_chains=1)
        with pytest.raises(ValueError, match=r"run\(key, data\) takes one data argument, .* got 2"):
            mcmc.run(jax.random.key(0), tiny, tiny)
        with pytest.raises(ValueError, match=r"takes one data argument, .* corpus=, got 0"):
            mcmc.run(jax.random.key(0))
        with pytest.raises(ValueError, match="got 2"):
            mcmc.run(jax.random.key(0), tiny, corpus=tiny)

    def test_names_of_arguments(self, toy, tiny):
        mcmc = sample(toy().gibbs(), run=False, num_chains=1)
        for wrong in ({"data": tiny}, {"corpus": tiny, "observed": False}):
            (name,) = set(wrong) - {"corpus"}
            with pytest.raises(ValueError, match=f"by position or as corpus=, got {name}="):
                mcmc.run(jax.random.key(0), **wrong)

    def test_names_of_arguments_of_blocks(self, toy, tiny):
        kernel = toy().gibbs(program=print)
        assert kernel.data_argument((tiny, 1), {"other": 2}) is tiny
        assert kernel.data_argument((), {"corpus": tiny, "other": 2, "_gibbs_sites": {}}) is tiny
        with pytest.raises(ValueError, match="got 0"):
            kernel.data_argument((), {"docs": tiny})

    def test_names_of_sources(self):
        kernel = bnp.PoissonGammaFactorAnalysis(max_factors=4).gibbs()
        for name in ("data", "sources"):
            assert kernel.data_argument((), {name: 3}) == 3
        with pytest.raises(ValueError, match="as data= or sources=, got corpus="):
            kernel.data_argument((), {"corpus": 3})

    def test_prior_without_update(self, toy, tiny):
        toy.traced.clear()
        with pytest.raises(ValueError, match=r"gamma has the prior LogNormal.*Gamma\("):
            sample(toy(gamma=dist.LogNormal(0.0, 1.0)).gibbs(), tiny)
        assert not toy.traced

    def test_other_sites_than_hyperparameters(self, toy, tiny):
        kernel = toy().gibbs()
        for sites in ({"theta": 1.0}, {"alpha": 1.0, "gamma": 1.0}):
            with pytest.raises(ValueError, match=r"can only be given \['gamma'\]"):
                kernel.init(jax.random.key(0), 0, None, (tiny,), {"_gibbs_sites": sites})

    def test_hyperparameters_of_other_blocks(self, toy, tiny):
        kernel = toy(gamma=dist.LogNormal(0.0, 1.0)).gibbs(program=print)
        other = {"_gibbs_sites": {"gamma": 0.7}}
        state = kernel.init(jax.random.key(0), 0, {}, (tiny, 1), other)
        assert state.chain.gamma == np.float32(0.7)
        assert set(state.draws) == {"z", "num_topics_used"}
        other = {"_gibbs_sites": {"gamma": 0.3}}
        again = kernel.refresh(state, (tiny, 1), other)
        assert again.chain.gamma == np.float32(0.3)
        np.testing.assert_array_equal(again.chain.z, state.chain.z)
        assert again.lp != state.lp
        assert kernel.sample(state, (tiny, 1), other).chain.gamma == np.float32(0.3)

    def test_wrap_model(self, toy):
        kernel = toy().gibbs()
        wrapped = kernel.wrap_model(lambda model: (model, "wrapped"))
        assert wrapped.model == (kernel.model, "wrapped")
        assert kernel.model.model == toy()
        assert isinstance(wrapped, GibbsKernel)


class TestOtherAlgorithms:
    """Models have discrete sites, and are no kernels: errors say what to use."""

    MESSAGE = r"LDA has discrete topics.*MCMC\(model\.gibbs\(\), \.\.\.\).*gibbs\(program=\)"

    @pytest.mark.parametrize("algorithm", [NUTS, HMC])
    @pytest.mark.parametrize("program", [bnp.LDA(3), bnp.LDA(3).collapsed, bnp.HDPLDA()])
    def test_gradients(self, tiny, algorithm, program):
        with pytest.raises(ValueError, match=self.MESSAGE):
            sample(algorithm(program), tiny, num_chains=1)

    def test_guides(self, tiny):
        model = bnp.LDA(3)
        svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.1), Trace_ELBO())
        with pytest.raises(ValueError, match=self.MESSAGE):
            svi.init(jax.random.key(0), tiny)

    def test_factor_models(self):
        sources = bnp.Sources.from_arrays([np.ones((4, 3), np.int32)])
        model = bnp.PoissonGammaFactorAnalysis()
        with pytest.raises(ValueError, match=r"has discrete factors.*fit\(model, data\)$"):
            sample(NUTS(model), sources, num_chains=1)

    def test_gradients_given_the_discrete_sites(self, tiny):
        given = handlers.condition(bnp.LDA(2), {"z": jnp.zeros(31, jnp.int32)})
        seeded = handlers.seed(given, jax.random.key(0))
        with handlers.substitute(substitute_fn=init_to_uniform):  # as NUTS begins
            found = handlers.trace(seeded).get_trace(tiny)
        assert {"phi", "theta"} <= set(found)

    def test_model_in_place_of_its_kernel(self):
        with pytest.raises(AttributeError, match=r"use MCMC\(model\.gibbs\(\), \.\.\.\)"):
            MCMC(bnp.LDA(3), num_warmup=1, num_samples=1)
        with pytest.raises(AttributeError, match=r"use MCMC\(LDA\(\.\.\.\)\.gibbs\(\), \.\.\.\)"):
            MCMC(bnp.LDA, num_warmup=1, num_samples=1)
        assert not hasattr(bnp.LDA(3), "sample_field")


def test_capacity_of_a_block(tiny):
    """The program has room for `max_topics`; a kernel alone may start with more."""
    model = bnp.HDPLDA(max_topics=2)
    kernel = model.gibbs(program=model.collapsed, init_topics=5)
    message = "max_topics=2 is too small for a block: chains start with up to 5 topics"
    with pytest.raises(ValueError, match=message):
        kernel.init(jax.random.key(0), 0, None, (tiny,), {})


def test_prior_without_update_in_a_block(tiny):
    """What another block samples may have any prior, where capacity is checked too."""
    model = bnp.LDA(2, alpha=dist.LogNormal(0.0, 0.7))
    kernel = model.gibbs(program=model.collapsed)
    given = {"_gibbs_sites": {"alpha": 0.5}}
    kernel.check_capacity(kernel.init(jax.random.key(0), 0, None, (tiny,), given))
