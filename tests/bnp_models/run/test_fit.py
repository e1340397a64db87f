"""`fit`: arguments, what it returns, the same draws as through MCMC, interrupts, devices."""

import dataclasses
import inspect
import json
import signal

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_models.posterior import arviz_data
from bnp_models.run import runner as runner_module
from bnp_models.run.progress import Progress
from bnp_models.run.runner import Runner

SIZES = {"num_warmup": 3, "num_samples": 5, "num_chains": 2}
needs_two_devices = pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")


def fit(model, corpus, **options):
    return bnp.fit(model, corpus, **{**SIZES, "progress": False, **options})


def groups(found):
    return {
        name: {v: x.to_numpy() for v, x in arviz_data.group(found.data, name).data_vars.items()}
        for name in arviz_data.groups(found.data)
    }


def draws(found):
    return groups(found)["posterior"] | groups(found)["sample_stats"]


def through_mcmc(kernel, corpus, *, thinning=1, num_warmup=3, num_samples=5, num_chains=2):
    mcmc = MCMC(
        kernel, num_warmup=num_warmup, num_samples=num_samples, num_chains=num_chains,
        thinning=thinning, chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    mcmc.run(jax.random.key(0), corpus, extra_fields=("info.num_moved",))
    found = {**mcmc.get_samples(group_by_chain=True), **mcmc.get_extra_fields(group_by_chain=True)}
    found["num_moved"] = found.pop("info.num_moved")
    return {name: np.asarray(x) for name, x in found.items()}, mcmc.last_state


def assert_equal(found, expected, *, rtol=0.0):
    """Compare bit for bit, numbers with rtol up to it; slot axes may be longer by zeros."""
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        y = found[name]
        shape = np.maximum(x.shape, y.shape)
        x, y = (
            np.pad(a, [(0, n - m) for n, m in zip(shape, a.shape, strict=True)]) for a in (x, y)
        )
        inexact = np.issubdtype(x.dtype, np.inexact)
        np.testing.assert_allclose(y, x, rtol=rtol if inexact else 0.0, err_msg=name)


WRONG = [
    ({"num_warmup": -1}, "num_warmup must be an integer of at least 0, got -1"),
    ({"num_samples": 0}, "num_samples must be an integer of at least 1, got 0"),
    ({"num_samples": 2.5}, r"num_samples must be an integer of at least 1, got 2\.5"),
    ({"num_chains": 0}, "num_chains must be an integer of at least 1, got 0"),
    ({"num_chains": True}, "num_chains must be an integer of at least 1, got True"),
    ({"thinning": 0}, "thinning must be an integer of at least 1, got 0"),
    ({"thinning": 6}, "thinning must be at most num_samples=5, got 6"),
    ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ({"seed": 2**32}, "seed must be an integer of at most 4294967295, got 4294967296"),
    ({"seed": None}, "seed must be an integer of at least 0, got None"),
    ({"checkpoint": ""}, "checkpoint must be the path of a file or a folder, got ''"),
    ({"checkpoint": 3}, "checkpoint must be the path of a file or a folder, got 3"),
    ({"keep_states": -1}, "keep_states must be an integer of at least 0, got -1"),
    ({"checkpoint_seconds": -1.0}, r"checkpoint_seconds must be a number of at least 0, got -1\.0"),
    (
        {"checkpoint_seconds": float("nan")},
        "checkpoint_seconds must be a number of at least 0, got nan",
    ),
    ({"record": ("pi",)}, r"record must be one of \[.*'phi'.*\], got 'pi'"),
    ({"record": "phi"}, "record must be a tuple of names, got the string 'phi'"),
    ({"schedule": "fast"}, r"schedule must be one of \['parallel', 'sequential'\], got 'fast'"),
    ({"init_topics": 4}, "init_topics must be at most num_topics=3, got 4"),
    ({"init_topics": 0}, "init_topics must be an integer of at least 1, got 0"),
    ({"num_parallel": 0}, "num_parallel must be an integer of at least 1, got 0"),
    (
        {"colour": "red"},
        r"colour='red' is not an option of fit; give some of \['sch",
    ),
    ({"program": print}, "program=.* is not an option of fit"),
    (
        {"devices": []},
        r"devices must have .* JAX devices such as jax\.devices\(\)\[:1\], got",
    ),
    ({"devices": ["cpu"]}, r"devices\[0\] must be a JAX device, got str 'cpu'"),
]


class TestArguments:
    @pytest.mark.parametrize(("wrong", "message"), WRONG, ids=lambda x: str(x)[:30])
    def test_are_checked_before_anything_is_compiled(self, tiny, monkeypatch, wrong, message):
        monkeypatch.setattr(jax, "jit", None)
        unchecked = inspect.unwrap(bnp.fit)  # without the tests' checks of types
        with pytest.raises(ValueError, match=message):
            unchecked(bnp.LDA(3), tiny, **{**SIZES, "progress": False, **wrong})

    def test_model_and_data(self, tiny):
        unchecked = inspect.unwrap(bnp.fit)
        with pytest.raises(ValueError, match="model must be a model such as HDPLDA"):
            unchecked("LDA", tiny)
        with pytest.raises(ValueError, match=r"got the class LDA: give LDA\(\.\.\.\)"):
            unchecked(bnp.LDA, tiny)
        with pytest.raises(ValueError, match="data must be a Corpus, got list"):
            unchecked(bnp.LDA(3), [[0, 1]])

    def test_prior_without_update(self, tiny):
        model = bnp.HDPLDA(gamma=dist.HalfNormal(1.0))
        with pytest.raises(
            ValueError, match=r"gamma has the prior HalfNormal.*Gamma\(concentration"
        ):
            fit(model, tiny)


LDA = bnp.LDA(3, alpha=dist.Gamma(np.ones(3), 1.0), beta=0.2)
LDA_OPTIONS = {
    "schedule": "sequential",
    "record": ("z", "phi", "theta", "topic_tokens", "phi_mean", "theta_mean"),
}


@pytest.fixture(scope="module")
def found(tiny):
    return fit(LDA, tiny, keep_states=2, devices=jax.devices()[:1], **LDA_OPTIONS)


class TestSameDraws:
    """Those of MCMC, bit for bit."""

    @pytest.mark.parametrize(
        "sizes",
        [{}, {"num_samples": 7, "thinning": 3}, {"num_warmup": 0, "num_chains": 1}],
        ids=["plain", "thinned", "one-chain"],
    )
    def test_toy(self, toy, tiny, sizes):
        record = ("z", "noise", "topic_tokens", "topic_tokens_mean")
        found = fit(toy(), tiny, record=record, schedule="mixed", **sizes)
        expected, state = through_mcmc(toy().gibbs(record=record, schedule="mixed"), tiny, **sizes)
        assert_equal(draws(found), expected)
        mean = groups(found)["posterior_mean"]["topic_tokens_mean"]
        by_chain = np.reshape(state.means["topic_tokens_mean"], (mean.shape[0], 1, -1))
        np.testing.assert_allclose(mean, by_chain, rtol=1e-6)

    def test_growing_toy(self, toy, tiny):
        record = ("z", "noise", "topic_tokens")
        found = fit(toy(gamma=6.0, max_topics=1), tiny, record=record)
        expected, _ = through_mcmc(toy(gamma=6.0, max_topics=31).gibbs(record=record), tiny)
        assert expected["num_topics_used"].max() > 8
        assert_equal(draws(found), expected)

    @pytest.mark.slow
    def test_replay_that_is_cut_short(self, toy, tiny, monkeypatch):
        """More slots leave room for fewer draws in the buffer; the other sweeps follow."""
        record, sizes = ("topic_tokens", "noise"), {"num_warmup": 0, "num_samples": 30}
        expected = fit(toy(gamma=6.0, max_topics=31), tiny, record=record, **sizes)
        stretch, cut = Runner.stretch, []

        def watch(self, state, num_sweeps):
            after = stretch(self, state, num_sweeps)
            cut.append(after.num_sweeps < num_sweeps)
            return after

        monkeypatch.setattr(Runner, "stretch", watch)
        monkeypatch.setattr(runner_module, "MARGIN", 1)
        monkeypatch.setattr(runner_module, "BUFFER_BYTES", 2 * 4 * 30)
        monkeypatch.setattr(inspect.getmodule(bnp.fit), "STRETCH_SECONDS", 1e9)
        found = fit(toy(gamma=6.0, max_topics=1), tiny, record=record, keep_states=0, **sizes)
        assert any(cut)
        assert_equal(draws(found), draws(expected))

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_lda(self, found, tiny):
        assert_equal(draws(found), through_mcmc(LDA.gibbs(**LDA_OPTIONS), tiny)[0])

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_lda_with_priors(self, tiny):
        model = bnp.LDA(3, alpha=dist.Gamma(np.ones(3), 1.0), beta=dist.Gamma(1.0, 4.0))
        record = tuple(name for name in model.recordable if not name.endswith("mean"))
        options = {"record": record}
        found = fit(model, tiny, devices=jax.devices()[:1], **options)
        assert_equal(draws(found), through_mcmc(model.gibbs(**options), tiny)[0])

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_hdp_that_grows(self, tiny):
        """From few slots against plenty of them."""
        priors = {"alpha": dist.Gamma(10.0, 10.0), "gamma": dist.Gamma(10.0, 10.0)}
        large = bnp.HDPLDA(**priors, beta=dist.Gamma(1.0, 4.0), max_topics=32)
        options = {"record": large.recordable, "init_topics": 2, "devices": jax.devices()[:1]}
        sizes = {"num_warmup": 10, "num_samples": 20}
        shown = Recorder(), Recorder()
        expected = fit(large, tiny, progress=shown[0], **sizes, **options)
        small = dataclasses.replace(large, max_topics=2)
        found = fit(small, tiny, progress=shown[1], **sizes, **options)
        notes = [{part for *_, note in it.seen for part in note.split(", ")} for it in shown]
        grown = ["32 slots" in parts for parts in notes]
        assert grown == [False, True]  # one size that is compiled for both
        assert_equal(draws(found), draws(expected))


class TestResult:
    def test_groups_dims_and_labels(self, found, tiny):
        posterior = arviz_data.group(found.data, "posterior")
        dims = {name: x.dims[2:] for name, x in posterior.data_vars.items()}
        assert dims == {
            "num_topics_used": (),
            "alpha": ("topic",),
            "z": ("token",),
            "phi": ("topic", "word"),
            "theta": ("doc", "topic"),
            "topic_tokens": ("topic",),
        }
        assert dict(posterior.sizes) == {
            "chain": 2, "draw": 5, "topic": 3, "token": 31, "word": 6, "doc": 5,
        }  # fmt: skip
        assert list(posterior["word"].values) == list("uvwxyz")
        assert list(posterior["doc"].values) == list("klmno")
        assert posterior["z"].dtype == np.uint8
        means = arviz_data.group(found.data, "posterior_mean")
        assert means["phi_mean"].dims == ("chain", "draw", "topic", "word")
        assert means["theta_mean"].dims == ("chain", "draw", "doc", "topic")
        assert means["draw"].values.tolist() == [4]
        states = arviz_data.group(found.data, "states")
        assert states["draw"].values.tolist() == [1, 4]
        assert states["alpha"].dims == ("chain", "draw", "topic")
        np.testing.assert_array_equal(states["z"], posterior["z"][:, [1, 4]])
        np.testing.assert_array_equal(states["alpha"], posterior["alpha"][:, [1, 4]])
        assert arviz_data.group(found.data, "constant_data")["doc_group"].dims == ("doc",)
        self.check_numbers(posterior, means, tiny)

    def check_numbers(self, posterior, means, tiny):
        """Counts are those of `z`, draws of topics have the law given `z`, means are means."""
        z = posterior["z"].to_numpy()
        hot = (z[..., None] == np.arange(3)).astype(float)
        np.testing.assert_array_equal(posterior["topic_tokens"], hot.sum(2))
        np.testing.assert_allclose(posterior["phi"].sum("word"), 1, rtol=1e-5)
        np.testing.assert_allclose(posterior["theta"].sum("topic"), 1, rtol=1e-5)
        doc = (tiny.doc[:, None] == np.arange(5)).astype(float)
        word = (tiny.word[:, None] == np.arange(6)).astype(float)
        alpha = posterior["alpha"].to_numpy()[:, :, None]
        theta = np.einsum("td,cstk->csdk", doc, hot) + alpha
        theta /= theta.sum(-1, keepdims=True)
        phi = np.einsum("tv,cstk->cskv", word, hot) + 0.2
        phi /= phi.sum(-1, keepdims=True)
        np.testing.assert_allclose(means["phi_mean"][:, 0], phi.mean(1), rtol=1e-4)
        # alpha is drawn after the tokens, so the mean given a state goes with that state's alpha
        np.testing.assert_allclose(means["theta_mean"][:, 0], theta.mean(1), rtol=1e-4)

    def test_always_recorded(self, toy, tiny):
        found = fit(toy(max_topics=4), tiny)
        assert set(groups(found)["posterior"]) == {"num_topics_used"}
        assert set(groups(found)["sample_stats"]) == {"lp", "num_moved"}

    def test_without_states(self, toy, tiny):
        found = fit(toy(), tiny, keep_states=0)
        assert not arviz_data.has_group(found.data, "states")
        with pytest.raises(ValueError, match="keep_states must be positive when fitting"):
            _ = found.mixtures

    def test_attributes_say_what_was_run(self, toy, tiny):
        attrs = fit(toy(), tiny, seed=3, thinning=2).data.attrs
        assert (attrs["seed"], attrs["thinning"], attrs["num_warmup"]) == (3, 2, 3)
        assert json.loads(attrs["model"]) == toy().describe()
        assert json.loads(attrs["options"])["schedule"] == "sequential"
        assert attrs["data"] == tiny.digest
        assert attrs["sampling_seconds"] > attrs["compile_seconds"] > 0

    def test_seeds_differ(self, toy, tiny):
        one, two = (fit(toy(), tiny, seed=seed, record=("noise",)) for seed in (0, 1))
        assert not np.isin(
            groups(one)["posterior"]["noise"], groups(two)["posterior"]["noise"]
        ).any()

    @pytest.mark.slow
    def test_documents_without_words(self):
        """They are kept, at the prior."""
        corpus = bnp.Corpus.from_ids([[], [0, 1, 1], [], [1, 2], []], 3)
        model = bnp.LDA(2, alpha=(3.0, 1.0), beta=0.5)
        for schedule in model.schedules:
            found = fit(model, corpus, schedule=schedule, record=("theta", "theta_mean"))
            assert found.posterior["theta"].shape == (2, 5, 5, 2)
            mean = groups(found)["posterior_mean"]["theta_mean"][:, 0]
            np.testing.assert_allclose(
                mean[:, [0, 2, 4]], np.full((2, 3, 2), [0.75, 0.25]), rtol=1e-5
            )
            assert len(found.documents()) == 5


class Recorder:
    """A progress display that notes what it is told."""

    def __init__(self, at=None, action=None):
        self.seen, self.closed, self.at, self.action = [], False, at, action

    def update(self, sweep, used, lp, note=""):
        self.seen.append((sweep, used.tolist(), lp.tolist(), note))
        if self.at is not None and sweep >= self.at and self.action:
            action, self.action = self.action, None
            action()

    def close(self):
        self.closed = True


class TestProgress:
    def test_own_display(self, toy, tiny):
        shown = Recorder()
        assert isinstance(shown, Progress)
        found = fit(toy(max_topics=2), tiny, progress=shown)
        assert shown.closed
        assert shown.seen[-1][0] == 8
        np.testing.assert_array_equal(shown.seen[-1][1], found.posterior["num_topics_used"][:, -1])
        np.testing.assert_array_equal(shown.seen[-1][2], groups(found)["sample_stats"]["lp"][:, -1])

    def test_bar(self, toy, tiny, capsys):
        fit(toy(), tiny, progress=True)
        shown = capsys.readouterr().err
        assert "8/8" in shown
        assert "tokens/s" in shown
        fit(toy(), tiny, progress=False)
        assert capsys.readouterr() == ("", "")

    def test_closed_after_an_error(self, toy, tiny):
        def fail():
            raise RuntimeError

        shown = Recorder(at=2, action=fail)
        with pytest.raises(RuntimeError):
            fit(toy(), tiny, progress=shown)
        assert shown.closed


class TestInterrupts:
    """Ctrl-C, and what remains of the run."""

    @pytest.fixture
    def short_stretches(self, monkeypatch):
        monkeypatch.setattr(inspect.getmodule(bnp.fit), "STRETCH_SECONDS", 0.0)

    @pytest.mark.parametrize("max_topics", [None, 2], ids=["finite", "infinite"])
    @pytest.mark.parametrize("how", ["raise", "return"])
    def test_result_holds_what_was_drawn(
        self, toy, tiny, max_topics, how, short_stretches, tmp_path
    ):
        model = toy(gamma=6.0, max_topics=max_topics)
        record = ("z", "topic_tokens_mean") if max_topics is None else ("z",)
        expected = fit(model, tiny, record=record)
        shown = Recorder(at=6, action=lambda: signal.raise_signal(signal.SIGINT))
        message = "interrupted: there are 3 of 5 draws per chain"
        options = {"record": record, "progress": shown, "checkpoint": tmp_path}
        if how == "return":
            with pytest.warns(UserWarning, match=message):
                found = fit(model, tiny, on_interrupt="return", **options)
        else:
            with pytest.raises(KeyboardInterrupt, match=message) as stop:
                fit(model, tiny, **options)
            found = stop.value.fit
        assert shown.closed
        np.testing.assert_array_equal(found.posterior["z"], expected.posterior["z"][:, :3])
        if max_topics is None:
            mean = groups(found)["posterior_mean"]["topic_tokens_mean"]
            z = groups(found)["posterior"]["z"]
            counts = (z[..., None] == np.arange(31)).sum(2)
            np.testing.assert_allclose(mean[:, 0], counts.mean(1), rtol=1e-5)
        again = fit(model, tiny, record=record, checkpoint=tmp_path)
        assert again.data.attrs["start_sweep"] == 6
        assert_equal(draws(again), draws(expected))

    def test_the_last_state_is_kept(self, toy, tiny, short_stretches, tmp_path):
        """Tables need one; the run itself goes on with the states that were asked for."""
        shown = Recorder(at=6, action=lambda: signal.raise_signal(signal.SIGINT))
        options = {"keep_states": 1, "record": ("z",), "checkpoint": tmp_path}
        with pytest.raises(KeyboardInterrupt) as stop:
            fit(toy(), tiny, progress=shown, **options)
        found = stop.value.fit
        assert found.states["draw"].to_numpy().tolist() == [2]
        np.testing.assert_array_equal(found.states["z"][:, 0], found.posterior["z"][:, 2])
        again = fit(toy(), tiny, **options)
        assert again.states["draw"].to_numpy().tolist() == [4]
        shown = Recorder(at=6, action=lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as stop:
            fit(toy(), tiny, progress=shown, keep_states=0)
        assert not stop.value.fit.has_states

    def test_in_the_warmup(self, toy, tiny, short_stretches, tmp_path):
        shown = Recorder(at=2, action=lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as stop:
            fit(toy(), tiny, record=("z",), progress=shown, checkpoint=tmp_path)
        assert stop.value.fit is None
        again = fit(toy(), tiny, record=("z",), checkpoint=tmp_path)
        assert again.data.attrs["start_sweep"] == 2
        assert_equal(draws(again), draws(fit(toy(), tiny, record=("z",))))

    @pytest.mark.parametrize("at", [2, 6], ids=["in the warm-up", "later"])
    def test_termination(self, toy, tiny, short_stretches, tmp_path, at):
        before = signal.getsignal(signal.SIGTERM)
        shown = Recorder(at=at, action=lambda: signal.raise_signal(signal.SIGTERM))
        further = rf"; to go on: bnp_models\.resume\('{tmp_path}'\)"
        options = {"record": ("z",), "checkpoint": tmp_path}
        what = "before the first draw" if at == 2 else ": there are 3 of 5 draws per chain"
        with pytest.raises(KeyboardInterrupt, match=f"{what}{further}") as stop:
            fit(toy(), tiny, progress=shown, **options)
        assert (stop.value.fit is None) == (at == 2)
        assert signal.getsignal(signal.SIGTERM) is before
        again = fit(toy(), tiny, **options)
        assert again.data.attrs["start_sweep"] == at
        assert_equal(draws(again), draws(fit(toy(), tiny, record=("z",))))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_before_the_sweeps(self, toy, tiny, monkeypatch, tmp_path, number):
        """Also where Python drops exceptions: as it collects garbage."""
        module = inspect.getmodule(bnp.fit)
        original = module.Runner.init

        class Garbage:
            def __del__(self):
                signal.raise_signal(number)

        def init(self, keys):
            Garbage()
            return original(self, keys)

        with monkeypatch.context() as patched:
            patched.setattr(module.Runner, "init", init)
            with pytest.raises(KeyboardInterrupt, match="before the first draw; to go on") as stop:
                fit(toy(), tiny, checkpoint=tmp_path)
        assert stop.value.fit is None
        assert fit(toy(), tiny, checkpoint=tmp_path).data.attrs["start_sweep"] == 0

    def test_after_the_last_draw(self, toy, tiny, monkeypatch):
        module = inspect.getmodule(bnp.fit)
        original = module.to_data

        def to_data(*args):
            signal.raise_signal(signal.SIGINT)
            return original(*args)

        monkeypatch.setattr(module, "to_data", to_data)
        with pytest.raises(KeyboardInterrupt, match="after the last draw") as stop:
            fit(toy(), tiny)
        assert stop.value.fit.posterior.sizes["draw"] == 5

    @pytest.mark.parametrize("own", [signal.SIG_IGN, "a function"])
    def test_own_handlers_of_termination_stay(self, toy, tiny, own):
        calls = []
        handler = own if own != "a function" else lambda number, frame: calls.append(number)
        before = signal.signal(signal.SIGTERM, handler)
        try:
            shown = Recorder(at=2, action=lambda: signal.raise_signal(signal.SIGTERM))
            found = fit(toy(), tiny, progress=shown)
            assert signal.getsignal(signal.SIGTERM) is handler
        finally:
            signal.signal(signal.SIGTERM, before)
        assert found.posterior.sizes["draw"] == 5
        assert len(calls) == (own == "a function")

    def test_unknown_ways(self, toy, tiny):
        with pytest.raises(ValueError, match=r"on_interrupt must be one of .*, got 'no'"):
            fit(toy(), tiny, on_interrupt="no")

    def test_insistent(self, toy, tiny, short_stretches):
        def twice():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

        shown = Recorder(at=7, action=twice)
        with pytest.raises(KeyboardInterrupt, match="there are 4 of 5 draws") as stop:
            fit(toy(), tiny, progress=shown)
        found = stop.value.fit
        assert found.posterior.sizes["draw"] == 4

    def test_in_the_middle_of_a_sweep(self, toy, tiny, short_stretches, monkeypatch):
        """The state is lost then, but not the draws."""
        module = inspect.getmodule(bnp.fit)
        original = module.Runner.stretch

        def stretch(self, state, num_sweeps):
            done = int(state.sweep)
            after = original(self, state, num_sweeps)
            if done == 6:
                raise KeyboardInterrupt
            return after

        monkeypatch.setattr(module.Runner, "stretch", stretch)
        with pytest.raises(KeyboardInterrupt, match="there are 3 of 5 draws") as stop:
            fit(toy(), tiny, record=("topic_tokens_mean",))
        found = stop.value.fit
        assert found.posterior.sizes["draw"] == 3
        assert not arviz_data.has_group(found.data, "posterior_mean")


class TestNotANumber:
    def test_stops_the_run(self, toy, tiny, monkeypatch):
        def log_density(self, state, data):
            return state.gamma * np.nan

        monkeypatch.setattr(toy.sampler_type, "log_density", log_density)
        with pytest.raises(
            FloatingPointError, match=r"log joint density became .*nan.* by sweep 1"
        ):
            fit(toy(gamma=1.125), tiny)


@needs_two_devices
class TestDevices:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", [bnp.LDA(2), bnp.HDPLDA()], ids=["finite", "infinite"])
    def test_one_device_that_is_not_the_first(self, tiny, model, monkeypatch):
        where, init = set(), Runner.init

        def noted(runner, keys):
            state = init(runner, keys)
            where.update(state.chain.z.devices(), runner.data.word.devices())
            return state

        monkeypatch.setattr(Runner, "init", noted)
        last = fit(model, tiny, devices=jax.devices()[1:2])
        assert where == {jax.devices()[1]}
        assert_equal(draws(last), draws(fit(model, tiny, devices=jax.devices()[:1])))

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_chains_over_devices(self, tiny):
        model = bnp.LDA(3, alpha=0.5, beta=0.2)
        options = {"schedule": "sequential", "record": ("z", "phi", "theta")}
        one = fit(model, tiny, devices=jax.devices()[:1], **options)
        two = fit(model, tiny, devices=jax.devices()[:2], **options)
        assert two.data.attrs["num_devices"] == 2
        assert_equal(draws(two), draws(one))

    @pytest.mark.optimised
    @pytest.mark.slow
    def test_documents_over_devices(self, tiny):
        model = bnp.LDA(3, alpha=0.5, beta=0.2)
        options = {"record": ("z",), "num_chains": 1}
        one = fit(model, tiny, devices=jax.devices()[:1], **options)
        two = fit(model, tiny, devices=jax.devices()[:2], **options)
        assert two.data.attrs["num_devices"] == 2
        # sums over documents are made in another order: the last digits may differ
        assert_equal(draws(two), draws(one), rtol=1e-5)
