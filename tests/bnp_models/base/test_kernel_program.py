"""The program that a kernel shows to ArviZ and simuk: data, latent sites, simulated data."""

import inspect
import pickle

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density, log_likelihood

import bnp_models as bnp
from bnp_models.base.kernel_program import KernelProgram, one_data_argument, simulator

PRIOR = dist.Gamma(2.0, 2.0)


@pytest.fixture(scope="module")
def corpus():
    """One document for each group, with labels and authors."""
    return bnp.Corpus.from_ids(
        [[0, 1, 0], [2, 1, 1, 2]], num_words=3, groups=["a", "b"], labels=[1, 0],
        authors=[["ann"], ["bob"]], covariates={"year": [1, 2]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def sources():
    counts = np.arange(12).reshape(2, 3, 2) % 5
    return bnp.Sources.from_arrays(list(counts))


@pytest.fixture(scope="module")
def model():
    return bnp.LDA(2, alpha=PRIOR, beta=PRIOR)


def sites_of(program, *args, seed=0, **kwargs):
    """Return the values of all sites but plates."""
    found = handlers.trace(handlers.seed(program, seed)).get_trace(*args, **kwargs)
    return {n: site["value"] for n, site in found.items() if site["type"] != "plate"}


def simulate_from(model, data):
    return simulator(KernelProgram(model, frozenset({*model.hyperparameters, "z"})), data)


class TestOneDataArgument:
    def test_position_and_names(self):
        assert one_data_argument(("data", "sources"), (3,), {}) == 3
        assert one_data_argument(("data", "sources"), (), {"data": 3}) == 3
        assert one_data_argument(("data", "sources"), (), {"sources": 3}) == 3

    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ((), {}, r"takes one data argument, by position or as corpus=, got 0"),
            ((None,), {}, "got 0"),
            ((1, 2), {}, "got 2"),
            ((1,), {"corpus": 2}, "got 2"),
            ((), {"corpora": 1}, r"takes the data by position or as corpus=, got corpora="),
            ((1,), {"observed": False}, "got observed="),
        ],
    )
    def test_all_else_is_refused(self, args, kwargs, message):
        with pytest.raises(ValueError, match=message):
            one_data_argument(("corpus",), args, kwargs)


class TestSites:
    def test_only_what_is_collected_is_visible(self, corpus, model):
        assert set(sites_of(KernelProgram(model, frozenset()), corpus)) == {"w"}
        program = KernelProgram(model, frozenset({"alpha", "beta", "z", "num_topics_used"}))
        assert set(sites_of(program, corpus)) == {"alpha", "beta", "z", "w"}
        np.testing.assert_array_equal(sites_of(program, corpus=corpus)["w"], corpus.word)

    def test_hidden_sites_are_drawn(self, corpus, model):
        program = KernelProgram(model, frozenset({"z"}))
        first, second = (sites_of(program, corpus, seed=seed)["z"] for seed in (0, 1))
        assert (first != second).any()
        given = handlers.substitute(program, {"z": jnp.ones(7, int)})
        np.testing.assert_array_equal(sites_of(given, corpus)["z"], 1)

    def test_without_data_it_is_the_program(self, corpus, model):
        program = KernelProgram(model, frozenset())
        found = sites_of(program, corpus, observed=False)
        expected = sites_of(model, corpus, observed=False)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)

    def test_density_is_that_of_the_program(self, corpus, model):
        values = sites_of(model, corpus)
        found = log_density(KernelProgram(model, frozenset()), (corpus,), {}, values)[0]
        assert found == log_density(model, (corpus,), {}, values)[0]

    def test_parameters_of_the_program(self, model):
        assert list(inspect.signature(KernelProgram(model, frozenset())).parameters) == [
            "corpus", "observed",
        ]  # fmt: skip

    def test_is_a_value(self, model):
        program = KernelProgram(model, frozenset({"z"}))
        equal = pickle.loads(pickle.dumps(program))
        assert equal == program
        assert hash(equal) == hash(program)
        assert program != KernelProgram(model, frozenset())

    @pytest.mark.slow
    @pytest.mark.parametrize("name", bnp.MODELS)
    def test_of_every_model(self, corpus, sources, name):
        """Plates with the names of dims are what ArviZ takes from it."""
        kind = bnp.MODELS[name]
        required = inspect.signature(kind).parameters.values()
        model = kind(**{p.name: 2 for p in required if p.default is p.empty})
        data = sources if kind.readers.data_type is bnp.Sources else corpus
        kernel = model.gibbs()
        sites = sites_of(kernel.model, **{model.terms.data[-1]: data})
        ((site, value),) = model.data_groups(data)["observed_data"].items()
        np.testing.assert_allclose(sites[site], value, rtol=1e-6)
        sampled = {n for n in model.hyperparameters if n in sites}
        beside = {"y", "doc_length", "group_size"}  # observed as well
        assert sites.keys() - sampled - {site} <= beside | set(kernel.options.record)


class TestLogLikelihood:
    """Whether the draws hold topics or not, none is made that nobody should use."""

    def draws_of(self, model, corpus):
        sites = sites_of(model, corpus)
        return {n: x[None] for n, x in sites.items() if n != "w"} | {"num_topics_used": np.ones(1)}

    @pytest.mark.parametrize("collected", [(), ("phi", "theta", "z")])
    def test_none_without_being_asked(self, corpus, model, collected, monkeypatch):
        monkeypatch.setattr(arviz, "rcParams", {"data.log_likelihood": True})  # 1.x has none
        program = KernelProgram(model, frozenset(collected))
        draws = self.draws_of(model, corpus)
        draws = {n: x for n, x in draws.items() if n in (*collected, "num_topics_used")}
        assert log_likelihood(program, draws, corpus) == {}

    @pytest.mark.parametrize("collected", [(), ("phi", "theta", "z")])
    def test_refused_when_asked(self, corpus, model, collected, monkeypatch):
        monkeypatch.setattr(arviz, "rcParams", {"data.log_likelihood": False})  # 1.x has none
        program = KernelProgram(model, frozenset(collected))
        with pytest.raises(ValueError, match=r"draws of LDA have no log.*fit\.log_likelihood\(\)"):
            log_likelihood(program, self.draws_of(model, corpus), corpus)

    def test_the_program_itself_still_has_one(self, corpus, model):
        draws = self.draws_of(model, corpus)
        found = log_likelihood(model, draws, corpus)["w"]
        expected = np.log(draws["phi"][0][draws["z"][0], np.asarray(corpus.word)])
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)


class TestSimulator:
    def test_sizes_are_those_of_the_data(self, corpus, model):
        found = simulate_from(model, corpus)(seed=3)["corpus"]
        np.testing.assert_array_equal(found.doc, corpus.doc)
        assert found.word.dtype == corpus.word.dtype
        assert found.names == corpus.names
        assert found.digest != corpus.digest

    def test_values_are_used(self, corpus, model):
        phi = jnp.array([[0.0, 1, 0], [0, 0, 1]])
        z = jnp.array([0, 1, 0, 0, 1, 1, 1])
        found = simulate_from(model, corpus)(seed=0, phi=phi, z=z)["corpus"]
        np.testing.assert_array_equal(found.word, 1 + z)

    def test_the_seed_decides(self, corpus, model):
        simulate = simulate_from(model, corpus)
        words = [simulate(seed=seed)["corpus"].word.tolist() for seed in (0, 0, 1, 2)]
        assert words[0] == words[1]
        assert words[1] != words[2] != words[3]

    def test_the_law_is_that_of_the_program(self, model):
        """Two words, beta large: 400 fair coins; 5 standard errors happen once in 2e6 runs."""
        corpus = bnp.Corpus.from_ids([[0] * 4], num_words=2)
        simulate = simulate_from(model, corpus)
        drawn = [simulate(seed=seed, beta=1e6)["corpus"].word for seed in range(100)]
        assert abs(np.mean(drawn) - 0.5) < 5 * 0.5 / 20

    def test_a_sampler_with_the_same_seed_draws_other_numbers(self, corpus, model):
        """`simuk` gives both one seed; shared random numbers would bias the ranks."""
        own = sites_of(model, corpus, seed=5, observed=False)["w"]
        assert (simulate_from(model, corpus)(seed=5)["corpus"].word != own).any()

    @pytest.mark.slow
    def test_missing_entries_stay_missing(self):
        x = np.array([[1.0, np.nan], [2.0, 3.0]])
        data = bnp.Sources.from_arrays([x], kind="counts", allow_missing=True)
        model = bnp.PoissonGammaFactorAnalysis(max_factors=4)
        found = simulate_from(model, data)(seed=1)["data"]
        assert found.values[0, 1] == 0
        np.testing.assert_array_equal(found.observed, data.observed)
        assert found.values.dtype == data.values.dtype

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (bnp.SupervisedLDA(2), r"SupervisedLDA also has the observed sites \['y'\]"),
            (bnp.IBPCompoundDirichlet(max_topics=4), r"observed sites \['doc_length'\]"),
            (bnp.GaussianFactorAnalysis(max_factors=4), "centre=False and scale=False"),
        ],
    )
    def test_models_whose_data_have_another_law(self, corpus, model, message):
        data = corpus
        if isinstance(model, bnp.GaussianFactorAnalysis):
            data = bnp.Sources.from_arrays([np.eye(3)])
        with pytest.raises(ValueError, match=f"model can't simulate its data: .*{message}"):
            simulate_from(model, data)

    def test_wrong_arguments(self, corpus, model):
        simulate = simulate_from(model, corpus)
        with pytest.raises(ValueError, match="gamma is not a site of LDA: give some of"):
            simulate(seed=0, gamma=1.0)
        with pytest.raises(ValueError, match="seed must be an integer"):
            simulate(seed=0.5)
        with pytest.raises(ValueError, match=r"LDA.* has nothing to calibrate: give a hyper"):
            bnp.LDA(2).gibbs(record=("topic_tokens",)).simulator(corpus)
        assert bnp.LDA(2).gibbs(record=("z",)).simulator(corpus)(seed=0)

    def test_kernels_have_it(self, corpus, model):
        kernel = model.gibbs(record=("z",))
        assert isinstance(kernel.model, KernelProgram)
        assert kernel.model.collected == {"alpha", "beta", "z"}
        found = kernel.simulator(corpus)(seed=3)["corpus"]
        assert found == simulate_from(model, corpus)(seed=3)["corpus"]


def test_a_program_of_blocks_is_shown_as_it_is(model):
    kernel = model.gibbs(program=model.collapsed)
    assert kernel.model == model.collapsed
    assert not isinstance(kernel.model, KernelProgram)


def test_prng_keys_stay_outside(corpus, model):
    """A hidden site takes one key of the program that calls it, whatever their number."""

    def program():
        KernelProgram(model, frozenset())(corpus)
        numpyro.sample("after", dist.Normal())

    with handlers.seed(rng_seed=jax.random.key(0)), handlers.trace() as found:
        program()
    assert set(found) >= {"w", "after"}
    assert "phi" not in found
