"""A fit of a run of NumPyro's `MCMC`: the one that `fit` makes, and that of a block beside NUTS."""

import copy
import json

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro.infer import MCMC, NUTS

import bnp_models as bnp
from bnp_models.base import token_model
from bnp_models.base.gibbs import as_batch
from bnp_models.posterior import arviz_data

try:
    from numpyro.infer import Gibbs
except ImportError:  # NumPyro 0.21
    Gibbs = None

needs_blocks = pytest.mark.skipif(Gibbs is None, reason="NumPyro has no composable Gibbs")
unused_buffers = pytest.mark.filterwarnings(
    "ignore:Some donated buffers were not usable"
)  # NumPyro
RECORD = ("z", "topic_tokens", "noise", "topic_tokens_mean")
ROOT = ("z", "root_weights", "unused_weight")


def run(kernel, corpus, *, sizes=(3, 4), extra_fields=("info.num_moved",), **options):
    options = {"num_chains": 2, "chain_method": "vectorized", "progress_bar": False} | options
    mcmc = MCMC(kernel, num_warmup=sizes[0], num_samples=sizes[1], **options)
    mcmc.run(jax.random.key(0), corpus, extra_fields=extra_fields)
    return mcmc


def assert_same_data(found, expected):
    """See that all groups are the same, but for `history`."""
    assert {*arviz_data.groups(found), "history"} == set(arviz_data.groups(expected))
    for name in arviz_data.groups(found):
        mine, theirs = arviz_data.group(found, name), arviz_data.group(expected, name)
        assert mine.identical(theirs), name


def test_data_of_the_run(toy, tiny):
    mcmc = run(toy().gibbs(record=("z",)), tiny)
    assert bnp.to_fit(mcmc).dataset is tiny
    other = bnp.Corpus.from_arrays(tiny.doc, tiny.word, num_words=tiny.num_words + 1)
    with pytest.raises(ValueError, match="data are other data than those of the run"):
        bnp.to_fit(mcmc, other)
    same = copy.copy(tiny)
    assert bnp.to_fit(mcmc, same).dataset is same


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"groups": None}, "groups"),
        ({"groups": ["b", "a", "b"]}, "groups"),
        ({"vocabulary": ["x", "y", "z"]}, "vocabulary"),
        ({"doc_names": ["1", "2", "3"]}, "names of the documents"),
        ({"docs": [[0, 1], [2, 2], [1]]}, "the order of the documents"),
        ({"docs": [[0, 1], [1], [2, 0]], "groups": None}, "tokens and groups"),
    ],
)
def test_says_in_what_data_differ(toy, changed, said):
    given = {
        "docs": [[0, 1], [1], [2, 2]],
        "vocabulary": ["u", "v", "w"],
        "groups": ["a", "b", "a"],
    }
    used, other = (bnp.Corpus.from_ids(**x) for x in (given, given | changed))
    mcmc = run(toy().gibbs(record=("z",)), used, num_chains=1)
    with pytest.raises(ValueError, match=f"than those of the run, .*: they differ in {said}. Give"):
        bnp.to_fit(mcmc, other)


def shifted(corpus):
    """Return a corpus of the same sizes, in which every word is another one."""
    word = (np.asarray(corpus.word) + 1) % corpus.num_words
    return bnp.Corpus.from_arrays(corpus.doc, word, num_words=corpus.num_words)


def go_on(mcmc, data):
    """Run from the last state, as NumPyro's docs say."""
    mcmc.post_warmup_state = state = mcmc.last_state
    mcmc.run(state.rng_key, data)


class TestDrawsOfOtherData:
    """The state of the kernel holds the data it was begun with."""

    said = "mcmc has draws of other data than those that mcmc.run was last given, Corpus"

    def test_continued(self, toy, tiny):
        mcmc = run(toy().gibbs(record=("z",)), tiny)
        for data in (tiny, copy.copy(tiny)):
            go_on(mcmc, data)
            assert bnp.to_fit(mcmc).dataset is data
        go_on(mcmc, shifted(tiny))
        with pytest.raises(ValueError, match=self.said):
            bnp.to_fit(mcmc)
        mcmc.post_warmup_state = None
        mcmc.run(jax.random.key(1), shifted(tiny))
        assert bnp.to_fit(mcmc).dataset == shifted(tiny)

    def test_more_words(self, tiny):
        """The tokens are the same, but not the prior of the topics."""
        wider = bnp.Corpus.from_arrays(tiny.doc, tiny.word, num_words=tiny.num_words + 1)
        mcmc = run(bnp.LDA(3).gibbs(record=("z",)), tiny, num_chains=1)
        go_on(mcmc, wider)
        with pytest.raises(ValueError, match=self.said):
            bnp.to_fit(mcmc)

    @pytest.mark.parametrize("method", ["vectorized", "sequential"])
    def test_failed_run(self, toy, tiny, method):
        mcmc = run(toy().gibbs(record=("z",)), tiny, chain_method=method)
        with pytest.raises(TypeError):
            mcmc.run(jax.random.key(1), shifted(tiny), extra_fields=("nothing",))
        with pytest.raises(ValueError, match=self.said):
            bnp.to_fit(mcmc)

    def test_failed_run_on_data_that_the_model_refuses(self, toy, tiny, monkeypatch):
        def refuse(corpus):
            raise ValueError("data has no groups")

        mcmc = run(toy().gibbs(record=("z",)), tiny)
        monkeypatch.setattr(token_model, "check_corpus", refuse)
        with pytest.raises(ValueError, match="data has no groups"):
            mcmc.run(jax.random.key(1), shifted(tiny))
        with pytest.raises(ValueError, match=self.said):
            bnp.to_fit(mcmc)

    def test_sources(self):
        x = np.arange(6).reshape(3, 2)
        made = [bnp.Sources.from_arrays([x, y]) for y in (x, x + 1)]
        kernel = bnp.PoissonGammaFactorAnalysis(max_factors=64).gibbs(init_factors=1)
        mcmc = run(kernel, made[0], num_chains=1, extra_fields=())
        assert bnp.to_fit(mcmc, keep_states=1).dataset is made[0]
        with pytest.raises(TypeError):
            mcmc.run(jax.random.key(1), made[1], extra_fields=("nothing",))
        with pytest.raises(ValueError, match=self.said.replace("Corpus", "Sources")):
            bnp.to_fit(mcmc)


class TestWarmUpAlone:
    """NumPyro then has buffers of zeros, or draws of the warm-up."""

    @pytest.mark.parametrize("collect", [False, True])
    @pytest.mark.parametrize("method", ["vectorized", pytest.param(jax.vmap, marks=unused_buffers)])
    def test_no_draws(self, toy, tiny, collect, method):
        mcmc = MCMC(
            toy().gibbs(record=("z",)), num_warmup=3, num_samples=4, num_chains=2,
            chain_method=method, progress_bar=False,
        )  # fmt: skip
        mcmc.warmup(jax.random.key(0), tiny, collect_warmup=collect)
        with pytest.raises(
            ValueError, match=r"no draws after the warm-up: call mcmc\.run\(key, data"
        ):
            bnp.to_fit(mcmc)
        go_on(mcmc, tiny)
        whole = bnp.to_fit(run(toy().gibbs(record=("z",)), tiny, chain_method=method))
        assert bnp.to_fit(mcmc).posterior.identical(whole.posterior)
        mcmc.warmup(jax.random.key(0), tiny)
        with pytest.raises(ValueError, match="no draws after the warm-up"):
            bnp.to_fit(mcmc)

    def test_none(self, toy, tiny):
        mcmc = run(toy().gibbs(record=("z",)), tiny, sizes=(0, 1))
        assert bnp.to_fit(mcmc).posterior.sizes["draw"] == 1


class TestSameAsFit:
    @pytest.mark.parametrize(
        ("record", "keep_states", "kept"),
        [(RECORD, 2, 2), (RECORD, 0, 0), ((), 1, 1), ((), 0, 0)],
    )
    def test_groups(self, toy, tiny, record, keep_states, kept):
        model = toy()
        found = bnp.to_fit(run(model.gibbs(record=record), tiny), keep_states=keep_states)
        fit = bnp.fit(
            model, tiny, num_warmup=3, num_samples=4, num_chains=2, record=record,
            keep_states=kept, progress=False,
        )  # fmt: skip
        assert type(found) is type(fit)
        assert_same_data(found.data, fit.data)
        assert found.has_states == (kept > 0)
        named = {"model", "options", "num_warmup", "num_samples", "num_chains", "thinning", "data"}
        for name in {*named, "versions", "inference_library"}:
            assert found.data.attrs[name] == fit.data.attrs[name]

    def test_states_that_were_not_recorded(self, tiny):
        """Only the last state of each chain is known; a warning says what to do."""
        model = bnp.LDA(3, alpha=0.5, beta=0.2)
        said = (
            r"mcmc has no draws of 'z', so only the last state of each chain is known: intervals "
            r"of topics have no width within a chain\. To have 2 states of each chain, add 'z' to "
            r"record= of gibbs\(\) and run again; keep_states=1 is"
        )
        mcmc = run(model.gibbs(), tiny)
        with pytest.warns(UserWarning, match=said):
            fit = bnp.to_fit(mcmc, keep_states=2)
        with pytest.warns(UserWarning, match="To have 4 states of each chain"):  # all draws
            bnp.to_fit(mcmc)
        assert arviz_data.group(fit.data, "states").sizes["draw"] == 1
        assert bnp.to_fit(mcmc, keep_states=1).has_states  # without a warning
        table = fit.of_chain(0).topics()
        np.testing.assert_array_equal(table["lower"], table["upper"])
        recorded = bnp.to_fit(run(model.gibbs(record=("z",)), tiny), keep_states=2)
        table = recorded.of_chain(0).topics()
        assert (table["lower"] < table["upper"]).any()

    def test_hyperparameter_left_out(self, tiny):
        """It is no constant: its last value is not that of the other draws."""
        kernel = bnp.LDA(3, alpha=dist.Gamma(1.0, 1.0), beta=0.2).gibbs(record=("z",))
        whole = bnp.to_fit(run(kernel, tiny), keep_states=1)
        mcmc = run(kernel, tiny, extra_fields=("~draws.alpha",))
        said = (
            r"no draws of 'alpha', so only .* 4 states of each chain, take '~draws\.alpha' out of"
        )
        with pytest.warns(UserWarning, match=said):
            fit = bnp.to_fit(mcmc)
        assert fit.states.identical(whole.states)
        assert len(np.unique(whole.posterior["alpha"])) == 8
        mcmc = run(
            bnp.LDA(3, alpha=dist.Gamma(1.0, 1.0)).gibbs(), tiny, extra_fields=("~draws.alpha",)
        )
        said = r"add 'z' to record= of gibbs\(\), take '~draws\.alpha' out of extra_fields= and run"
        with pytest.warns(UserWarning, match=said):
            bnp.to_fit(mcmc)

    def test_thinning(self, toy, tiny):
        model = toy()
        found = bnp.to_fit(run(model.gibbs(record=("z",)), tiny, sizes=(3, 8), thinning=3))
        fit = bnp.fit(
            model, tiny, num_warmup=3, num_samples=8, num_chains=2, record=("z",), thinning=3,
            progress=False,
        )  # fmt: skip
        assert found.posterior.sizes["draw"] == 2
        assert_same_data(found.data, fit.data)

    def test_tables(self, tiny, tmp_path):
        model = bnp.LDA(3, alpha=dist.Gamma(1.0, 1.0), beta=0.2)
        found = bnp.to_fit(run(model.gibbs(record=("z",)), tiny, sizes=(5, 12)))
        fit = bnp.fit(
            model, tiny, num_warmup=5, num_samples=12, num_chains=2, record=("z",), progress=False
        )
        assert_same_data(found.data, fit.data)
        pd.testing.assert_frame_equal(found.topics(), fit.topics())
        pd.testing.assert_frame_equal(found.convergence().table, fit.convergence().table)
        loaded = bnp.TopicFit.load(found.save(tmp_path / "draws.nc"), tiny)
        pd.testing.assert_frame_equal(loaded.topics(), fit.topics())

    @pytest.mark.slow
    def test_tables_of_an_infinite_model(self, tiny):
        model = bnp.HDPLDA(beta=0.2, max_topics=40)
        found = bnp.to_fit(run(model.gibbs(record=ROOT), tiny, sizes=(5, 12)))
        fit = bnp.fit(
            model, tiny, num_warmup=5, num_samples=12, num_chains=2, record=ROOT, progress=False
        )
        assert_same_data(found.data, fit.data)
        pd.testing.assert_frame_equal(found.topics(), fit.topics())


class TestTables:
    """States of models with tables: the tables of the tokens are recorded on request."""

    @pytest.mark.parametrize("record", [("z",), ("opens", "z")])
    def test_pitman_yor(self, tiny, record):
        model = bnp.PitmanYorLDA(2, max_tables=31)
        options = {"record": record, "schedule": "sequential"}
        mcmc = run(model.gibbs(**options), tiny)
        if "opens" not in record:
            with pytest.warns(UserWarning, match=r"no draws of 'opens', .* add 'opens' to record="):
                bnp.to_fit(mcmc)
            return
        found = bnp.to_fit(mcmc)
        fit = bnp.fit(
            model, tiny, num_warmup=3, num_samples=4, num_chains=2, progress=False, **options
        )
        assert_same_data(found.data, fit.data)
        np.testing.assert_array_equal(found.states["opens"], found.posterior["opens"])

    @pytest.mark.slow
    @pytest.mark.parametrize("with_transform", [False, True])
    def test_differential(self, tiny, with_transform):
        transform = bnp.Transform.identity(tiny.num_words) if with_transform else None
        model = bnp.DifferentialTopicModel(2, transform=transform, max_tables=31)
        record = ("global_tables", "opens", "z")
        found = bnp.to_fit(run(model.gibbs(record=record), tiny))
        fit = bnp.fit(
            model, tiny, num_warmup=3, num_samples=4, num_chains=2, record=record, progress=False
        )
        assert_same_data(found.data, fit.data)
        tables = found.posterior["global_tables"]
        assert tables.dims[2:] == ("global_word" if with_transform else "word", "topic")
        opened = found.posterior["opens"].sum("token")
        np.testing.assert_array_equal(tables.sum(tables.dims[2:]), opened)
        pd.testing.assert_frame_equal(found.topics(), fit.topics())


@pytest.mark.parametrize("num_chains", [1, 2])
@pytest.mark.parametrize(
    "method", ["vectorized", "sequential", pytest.param(jax.vmap, marks=unused_buffers)]
)
def test_chain_methods(toy, tiny, num_chains, method):
    mcmc = run(toy().gibbs(record=RECORD), tiny, num_chains=num_chains, chain_method=method)
    found = bnp.to_fit(mcmc).data
    z = arviz_data.group(found, "posterior")["z"]
    assert z.shape == (num_chains, 4, 31)
    states = arviz_data.group(found, "states")
    np.testing.assert_array_equal(states["z"], z)
    mean = arviz_data.group(found, "posterior_mean")["topic_tokens_mean"]
    assert mean.shape == (num_chains, 1, 31)
    state = as_batch(mcmc.last_state)
    assert state.data.word.shape == (31,)  # not once for each chain
    assert state.sweep.shape == state.num_warmup.shape == ()
    assert state.chain.z.shape == (num_chains, 31)


def hierarchical_program(model):
    def program(corpus):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
        model.collapsed(corpus, alpha=numpyro.sample("alpha", dist.Gamma(2.0, rate)))

    return program


def without(mcmc, *names):
    """Return a run that has not collected these sites (~) and fields."""
    mcmc = copy.copy(mcmc)
    states = {n: x for n, x in mcmc._states.items() if n not in names}
    states["z"] = {n: x for n, x in states["z"].items() if f"~z.{n}" not in names}
    mcmc._states = states
    return mcmc


FIELDS = ("block_states.0.lp", "block_states.0.info.num_moved")
COUNT = "block_states.0.draws.num_topics_used"


@pytest.fixture(scope="module")
def model():
    return bnp.LDA(8, beta=dist.Gamma(1.0, 4.0))


@pytest.fixture(scope="module")
def mcmc(model, tiny):
    program = hierarchical_program(model)
    tokens = model.gibbs(program=program, ignore=("rate",), init_topics=1)
    kernel = Gibbs([(tokens, ["z", "beta"]), (NUTS(program), ["alpha", "rate"])])
    fields = (*FIELDS, COUNT, "block_states.1.diverging")
    return run(kernel, tiny, sizes=(10, 20), chain_method=jax.vmap, extra_fields=fields)


@needs_blocks
@unused_buffers
class TestBlock:
    def test_draws(self, mcmc, model, tiny):
        fit = bnp.to_fit(mcmc)
        assert isinstance(fit, bnp.TopicFit)
        assert (fit.model, fit.dataset) == (model, tiny)
        samples = mcmc.get_samples(group_by_chain=True)
        assert set(fit.posterior) == {"z", "beta", "alpha", "rate", "num_topics_used"}
        for name, x in samples.items():
            np.testing.assert_array_equal(fit.posterior[name], x)
        stats = arviz_data.group(fit.data, "sample_stats")
        assert set(stats) == {"lp", "num_moved"}
        assert {"lp", "num_topics_used", "alpha", "beta", "rate"} == set(fit.convergence().table.T)

    def test_full_states_are_draws(self, mcmc):
        fit = bnp.to_fit(mcmc, keep_states=4)
        assert fit.states["draw"].to_numpy().tolist() == [4, 9, 14, 19]
        for name in ("z", "alpha", "beta"):
            np.testing.assert_array_equal(
                fit.states[name], fit.posterior[name].isel(draw=[4, 9, 14, 19])
            )
        assert len(fit.topics()) <= 8

    def test_what_was_not_collected_follows_from_the_sites(self, mcmc):
        fit = bnp.to_fit(without(mcmc, *FIELDS, COUNT))
        fields = mcmc.get_extra_fields(group_by_chain=True)
        lp = arviz_data.group(fit.data, "sample_stats")["lp"]
        np.testing.assert_allclose(lp, fields["block_states.0.lp"], rtol=1e-5)
        np.testing.assert_array_equal(fit.posterior["num_topics_used"], fields[COUNT])
        assert len(np.unique(fields[COUNT])) > 1

    def test_saved_and_reported(self, mcmc, tiny, tmp_path):
        fit = bnp.to_fit(mcmc)
        loaded = bnp.TopicFit.load(fit.save(tmp_path / "draws.nc"), tiny)
        pd.testing.assert_frame_equal(loaded.topics(), fit.topics())
        assert "20 kept draws" in fit.report(tmp_path / "report.html").read_text()

    def test_topics_left_out(self, mcmc):
        bare = without(mcmc, "~z.z", *FIELDS, COUNT)
        with pytest.raises(ValueError, match=r"mcmc has no draws of z, and no lp.*block_states\.0"):
            bnp.to_fit(bare)
        with pytest.warns(
            UserWarning, match=r"no draws of 'z', so only .* chain, take '~z\.z' out of extra"
        ):
            fit = bnp.to_fit(without(mcmc, "~z.z"))
        assert fit.states["draw"].to_numpy().tolist() == [19]
        z = mcmc.get_samples(group_by_chain=True)["z"]
        np.testing.assert_array_equal(fit.states["z"][:, 0], z[:, -1])
        np.testing.assert_array_equal(fit.states["alpha"][:, 0], fit.posterior["alpha"][:, -1])
        assert "lp" in fit.convergence().table.index
        assert len(fit.topics()) <= 8

    def test_hyperparameter_left_out(self, mcmc):
        """Its last value is not that of the other draws, nor is the number of the model."""
        said = (
            r"no draws of alpha, and no lp in their place: collect alpha, or .*\('~z\.alpha', 'bl"
        )
        with pytest.raises(ValueError, match=said):
            bnp.to_fit(without(mcmc, "~z.alpha", *FIELDS, COUNT))
        bare = without(mcmc, "~z.alpha", COUNT)
        said = (
            r"no draws of 'alpha', so only .* of each chain, take '~z\.alpha' out of extra_fields"
        )
        with pytest.warns(UserWarning, match=said):
            fit = bnp.to_fit(bare)
        assert fit.states["draw"].to_numpy().tolist() == [19]
        alpha = mcmc.get_samples(group_by_chain=True)["alpha"]
        np.testing.assert_array_equal(fit.states["alpha"][:, 0], alpha[:, -1])
        fields = mcmc.get_extra_fields(group_by_chain=True)
        np.testing.assert_array_equal(fit.posterior["num_topics_used"], fields[COUNT])
        lp = arviz_data.group(fit.data, "sample_stats")["lp"]
        np.testing.assert_array_equal(lp, fields["block_states.0.lp"])
        bnp.to_fit(without(mcmc, "~z.rate"))  # on which tokens do not depend: no warning

    @pytest.mark.slow
    def test_infinite_model(self, tiny):
        """The root weights, and a prior of the model itself that NUTS updates."""
        model = bnp.HDPLDA(
            alpha=dist.LogNormal(0.0, 0.7), gamma=dist.Gamma(1.0, 1.0), beta=0.2, max_topics=31
        )
        tokens = model.gibbs(program=model.collapsed, schedule="sequential", init_topics=4)
        sites = ["root", "gamma", "z"]
        kernel = Gibbs([(NUTS(model.collapsed), ["alpha"]), (tokens, sites)])
        fields = ("block_states.1.lp",)
        mcmc = run(kernel, tiny, sizes=(5, 12), chain_method=jax.vmap, extra_fields=fields)
        fit = bnp.to_fit(without(mcmc, *fields))
        lp = arviz_data.group(fit.data, "sample_stats")["lp"]
        expected = mcmc.get_extra_fields(group_by_chain=True)[fields[0]]
        np.testing.assert_allclose(lp, expected, rtol=1e-5)
        used = int(fit.posterior["num_topics_used"].max())
        assert fit.states.sizes["topic"] < 31
        assert used <= fit.states.sizes["topic"]
        whole = fit.states["root_weights"].sum("topic") + fit.states["unused_weight"]
        np.testing.assert_allclose(whole, 1, rtol=1e-4)
        assert len(fit.topics()) >= 1

    @pytest.mark.slow
    def test_switches(self, tiny):
        model = bnp.CrossCollectionLDA(2, alpha=dist.LogNormal(0.0, 0.7), beta=0.2)
        tokens = model.gibbs(program=model.collapsed)
        kernel = Gibbs([(tokens, ["z", "switch"]), (NUTS(model.collapsed), ["alpha"])])
        mcmc = run(kernel, tiny, num_chains=1, extra_fields=FIELDS[:1])
        fit = bnp.to_fit(without(mcmc, *FIELDS))
        lp = arviz_data.group(fit.data, "sample_stats")["lp"]
        np.testing.assert_allclose(lp, mcmc.get_extra_fields(True)[FIELDS[0]], rtol=1e-5)
        assert isinstance(fit, bnp.ContrastFit)
        assert len(fit.topics()) <= 2

    def test_several_kernels(self, model, tiny):
        program = hierarchical_program(model)
        tokens = model.gibbs(program=program, ignore=("rate",))
        kernel = Gibbs([(tokens, ["z"]), (tokens, ["beta"]), (NUTS(program), ["alpha", "rate"])])
        with pytest.raises(ValueError, match=r"one such block, got numpyro\.infer\.Gibbs with 2"):
            bnp.to_fit(MCMC(kernel, num_warmup=1, num_samples=1))


def test_refusals(toy, tiny):
    with pytest.raises(ValueError, match=r"mcmc must be an MCMC of model\.gibbs"):
        bnp.to_fit(MCMC(NUTS(lambda: None), num_warmup=1, num_samples=1))
    with pytest.raises(ValueError, match=r"no draws: call mcmc\.run.* ended by an error has none"):
        bnp.to_fit(MCMC(toy().gibbs(), num_warmup=1, num_samples=1))
    mcmc = run(toy(max_topics=31).gibbs(), tiny)
    with pytest.raises(ValueError, match="keep_states must be an integer of at least 0, got -1"):
        bnp.to_fit(mcmc, keep_states=-1)
    state = mcmc.last_state
    full = state.chain._replace(overflow=np.array([True, False]))
    mcmc._last_state = state._replace(chain=full)  # an error that went unnoticed
    with pytest.raises(ValueError, match="max_topics=31 is too small"):
        bnp.to_fit(mcmc)


def test_attributes_are_plain(toy, tiny):
    attrs = bnp.to_fit(run(toy().gibbs(record=("z",)), tiny), keep_states=3).data.attrs
    assert json.loads(attrs["model"]) == toy().describe()
    assert attrs["keep_states"] == 3
    assert attrs["data"] == tiny.digest
