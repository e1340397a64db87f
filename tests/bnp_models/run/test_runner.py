"""Stretches of sweeps: which sweeps are kept, capacity, devices, memory."""

import dataclasses

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_models.run import runner as runner_module
from bnp_models.run.runner import Runner, make_mesh, mesh_shape
from bnp_models.run.system import begin

needs_two_devices = pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
RECORD = ("z", "topic_tokens", "noise")
WITH_MEANS = (*RECORD, "topic_tokens_mean")  # for finite models only


def keys(num_chains=2, seed=0):
    return jax.random.split(jax.random.key(seed), num_chains)


def run(runner, lengths, num_chains=2, after=lambda stretch: None):
    """Run through stretches of these lengths; return the draws, [chain, n, ...], and the end."""
    state = runner.init(keys(num_chains))
    parts = []
    for length in lengths:
        stretch = runner.stretch(state, length)
        after(stretch)
        state = stretch.state
        parts.append(flat(stretch.kept))
    assert int(state.sweep) == sum(lengths) == runner.num_sweeps
    return joined(parts), state


def joined(parts):
    """Concatenate the draws of stretches, whose numbers of slots may differ."""
    found = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        size = np.max([x.shape for x in arrays], axis=0)
        missing = [size - x.shape for x in arrays]
        for width in missing:
            width[1] = 0  # draws are concatenated, slots padded
        arrays = [np.pad(x, [(0, n) for n in w]) for x, w in zip(arrays, missing, strict=True)]
        found[name] = np.concatenate(arrays, axis=1)
    return found


def flat(kept):
    return {**kept["draws"], "lp": kept["lp"], **kept["info"]._asdict()}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        shared = tuple(map(slice, np.minimum(x.shape, found[name].shape)))
        np.testing.assert_array_equal(found[name][shared], x[shared], err_msg=name)
        assert found[name].sum() == pytest.approx(x.sum())  # the rest is zero


class TestKeptSweeps:
    @pytest.mark.parametrize("sizes", [(3, 4, 1), (3, 7, 3), (0, 5, 5), (2, 6, 4)])
    def test_as_in_numpyro(self, toy, tiny, sizes):
        num_warmup, num_samples, thinning = sizes
        kernel = toy().gibbs(record=WITH_MEANS)
        mcmc = MCMC(
            kernel, num_warmup=num_warmup, num_samples=num_samples, num_chains=2,
            thinning=thinning, chain_method="vectorized", progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(0), tiny)
        runner = Runner(kernel, tiny, num_warmup, num_samples, thinning)
        lengths = [1] * (num_warmup + num_samples)
        found, state = run(runner, lengths)
        del found["num_moved"]
        expected = mcmc.get_samples(group_by_chain=True)
        expected |= mcmc.get_extra_fields(group_by_chain=True)
        assert_equal(found, {name: np.asarray(x) for name, x in expected.items()})
        means = mcmc.last_state.means["topic_tokens_mean"]
        np.testing.assert_allclose(state.means["topic_tokens_mean"], means, rtol=1e-6)

    def test_numbers(self, toy, tiny):
        runner = Runner(toy().gibbs(), tiny, 5, 10, 3)
        assert runner.num_kept == 3
        kept_at = [runner.sweep_of(i) for i in range(3)]
        assert kept_at == [9, 12, 15]
        counts = [runner.kept_before(sweep) for sweep in range(16)]
        assert counts == [sum(at <= sweep for at in kept_at) for sweep in range(16)]


class TestStretches:
    def test_lengths_do_not_matter(self, toy, tiny):
        kernel = toy().gibbs(record=WITH_MEANS, schedule="mixed")
        expected, end = run(Runner(kernel, tiny, 4, 9), [13])
        for lengths in ([1] * 13, [2, 5, 6]):
            found, state = run(Runner(kernel, tiny, 4, 9), lengths)
            assert_equal(found, expected)
            for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(end), strict=True):
                np.testing.assert_array_equal(as_numbers(x), as_numbers(y))

    def test_reports_the_last_state(self, toy, tiny):
        runner = Runner(toy().gibbs(record=RECORD), tiny, 0, 3)
        stretch = runner.stretch(runner.init(keys()), 3)
        np.testing.assert_array_equal(stretch.lp, stretch.kept["lp"][:, -1])
        used = stretch.kept["draws"]["num_topics_used"][:, -1]
        np.testing.assert_array_equal(stretch.used, used)
        assert stretch.note == ""

    def test_memory_for_draws_is_bounded(self, toy, tiny, monkeypatch):
        kernel = toy().gibbs(record=RECORD)
        state = Runner(kernel, tiny, 5, 20, 2).init(keys())
        assert Runner(kernel, tiny, 5, 20, 2).longest(state) > 25  # all there are
        # two chains: z, counts, noise, number used, lp, moved: 4 bytes each
        size = 2 * 4 * (31 + 31 + 4)
        for room, num_slots in ((3 * size + size // 2, 3), (0, 1)):
            monkeypatch.setattr(runner_module, "BUFFER_BYTES", room)
            runner = Runner(kernel, tiny, 5, 20, 2)
            longest = runner.longest(state)
            assert runner.kept_before(longest) == num_slots
            assert runner.kept_before(longest + 1) == num_slots + 1
        stretch = runner.stretch(state, longest + 1)
        assert stretch.num_sweeps == longest
        assert flat(stretch.kept)["z"].shape == (2, 1, 31)
        assert runner.longest(stretch.state) == 2

    def test_finite_models_advance_in_place(self, toy, tiny):
        runner = Runner(toy().gibbs(), tiny, 0, 3)
        state = runner.init(keys())
        runner.stretch(state, 2)
        assert state.chain.z.is_deleted()
        runner = Runner(toy(max_topics=32).gibbs(), tiny, 0, 3)
        state = runner.init(keys())
        runner.stretch(state, 2)
        assert not state.chain.z.is_deleted()  # where an overflow would go back to

    def test_equal_kernels_share_what_is_compiled(self, toy, tiny, twin):
        model = toy(gamma=1.625)  # not used elsewhere
        toy.traced.clear()
        first = Runner(model.gibbs(), tiny, 2, 3)
        first.stretch(first.init(keys()), 3)
        before = len(toy.traced)
        second = Runner(toy(gamma=1.625).gibbs(), twin, 2, 3)
        second.stretch(second.init(keys(seed=1)), 5)
        assert len(toy.traced) == before


def as_numbers(x):
    is_key = jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(x) if is_key else x)


class TestCapacity:
    """Whatever happens to the number of slots, the draws are those of a buffer that is too big."""

    @pytest.fixture
    def expected(self, toy, tiny):
        kernel = toy(gamma=6.0, max_topics=64).gibbs(record=RECORD)
        return run(Runner(kernel, tiny, 4, 12), [16])[0]

    @pytest.mark.slow
    def test_growth(self, toy, tiny, expected, monkeypatch):
        monkeypatch.setattr(runner_module, "MARGIN", 2)
        notes = []
        kernel = toy(gamma=6.0, max_topics=1).gibbs(record=RECORD)
        found, _ = run(
            Runner(kernel, tiny, 4, 12),
            [1, 2, 5, 8],
            after=lambda stretch: notes.append(stretch.note),
        )
        assert any("replayed with" in note for note in notes)
        assert_equal(found, expected)
        assert found["num_topics_used"].max() > 8

    def test_of_a_start_that_needs_more(self, toy, tiny, monkeypatch):
        """Before the first sweep is compiled, and said after it."""
        monkeypatch.setattr(runner_module, "MARGIN", 2)
        runner = Runner(toy(gamma=1e-9, max_topics=1).gibbs(), tiny, 0, 3)
        state = runner.init(keys())
        assert state.chain.topic.shape[-1] == 4  # for one in use and one to come, and more to come
        stretch = runner.stretch(state, 1)
        assert stretch.note == "4 slots"
        assert runner.stretch(stretch.state, 1).note == ""

    def test_shrinking(self, toy, tiny, expected, monkeypatch):
        monkeypatch.setattr(runner_module, "MARGIN", 1)
        kernel = toy(gamma=6.0, max_topics=64).gibbs(record=RECORD)
        runner = Runner(kernel, tiny, 4, 12)
        sizes = []

        def after(stretch):
            runner._last_compile, runner._sweep_seconds = 0.0, 1.0
            sizes.append(stretch.state.chain.topic.shape[-1])
            if runner._coming:
                runner._coming.program.result()  # it is there at the end of the next stretch

        found, _ = run(runner, [2, 2, 4, 4, 4], after=after)
        assert sizes[:3] == [64, 64, 64] > [*sizes[-2:]]
        assert_equal(found, expected)

    def test_replay_when_the_buffer_is_full(self, toy, tiny, expected, monkeypatch):
        """Larger draws leave room for fewer: the replay is shorter than what was asked for."""
        kernel = toy(gamma=6.0, max_topics=2).gibbs(record=RECORD)
        check_full_buffer(Runner(kernel, tiny, 4, 12), expected, monkeypatch)

    @pytest.mark.slow
    @pytest.mark.optimised  # without, a last bit of alpha differs where the buffer holds one draw
    @pytest.mark.parametrize("name", ["topics", "factors"])
    def test_replay_of_models_when_the_buffer_is_full(self, tiny, name, monkeypatch):
        if name == "topics":
            prior = dist.Gamma(10.0, 10.0)
            model = bnp.HDPLDA(alpha=prior, gamma=prior, beta=dist.Gamma(1.0, 4.0), max_topics=48)
            data, small = tiny, dataclasses.replace(model, max_topics=3)
            options = {"record": ("phi", "z", "topic_tokens"), "init_topics": 2}
        else:
            model = bnp.GaussianFactorAnalysis(max_factors=48)
            rows = np.random.default_rng(0).normal(size=(2, 9, 4)).astype(np.float32)
            data, small = bnp.Sources.from_arrays(list(rows)), model
            small = dataclasses.replace(model, max_factors=3)
            options = {"record": ("phi", "z")}
        large, _ = run(Runner(model.gibbs(**options), data, 4, 12), [16])
        check_full_buffer(Runner(small.gibbs(**options), data, 4, 12), large, monkeypatch)

    @pytest.fixture
    def roomy(self, toy, tiny, monkeypatch):
        """A run that could do with much fewer slots from its fifth sweep on."""
        monkeypatch.setattr(runner_module, "MARGIN", 1)
        runner = Runner(toy(gamma=6.0, max_topics=64).gibbs(), tiny, 4, 12)
        stretch = runner.stretch(runner.init(keys()), 3)
        runner._last_compile, runner._sweep_seconds = 0.0, 1.0
        return runner, stretch.state, np.asarray(stretch.state.chain.topic) > 0

    def test_a_size_that_overflowed_is_not_tried_again(self, roomy):
        runner, state, used = roomy
        runner._floor = 40
        assert resized(runner, state, used, 4) == (40, "40 slots")

    def test_a_little_is_not_given_back(self, roomy):
        runner, state, used = roomy
        runner._floor = 60
        assert resized(runner, state, used, 4) == (64, "")

    def test_the_last_half_says_what_is_needed(self, roomy):
        runner, state, used = roomy
        runner._needs = [(0, 2, 50), (2, 3, 39), (3, 4, 20)]
        assert resized(runner, state, used, 4) == (44, "44 slots")  # an eighth more than 39

    def test_what_has_become_too_few_is_not_taken(self, roomy):
        runner, state, used = roomy
        runner._needs = [(0, 4, 39)]
        assert runner._wanted(64, used, 39, 4) == 44
        runner._resize(state, used, 39, 4)
        runner._coming.program.result()
        assert runner._resize(state, used, 45, 5)[1] == ""
        assert runner._coming is None

    @pytest.mark.parametrize(
        ("sweep", "seconds", "needs"),
        [
            (3, 0.0, [(0, 3, 9)]),
            (4, 12.0, [(0, 4, 9)]),
            (8, 0.0, [(5, 8, 9)]),
            (8, 0.0, []),
        ],
        ids=["first quarter", "no saving", "not watched long enough", "annealed until now"],
    )
    def test_keeps_its_slots(self, roomy, sweep, seconds, needs):
        runner, _, used = roomy
        runner._last_compile, runner._needs = seconds, needs
        assert runner._wanted(64, used, 9, sweep) is None
        runner._last_compile, runner._needs = 0.0, [(0, sweep, 9)]
        assert sweep < 4 or runner._wanted(64, used, 9, sweep) < 64

    def test_grows_before_a_sweep_runs_short(self, roomy):
        """What is needed has a margin, and compiling takes time."""
        runner, state, used = roomy
        runner._last_compile = 14.0
        assert resized(runner, state, used, 3, need=65) == (64, "")  # 13 more sweeps, of a second
        runner._last_compile = 12.0
        assert resized(runner, state, used, 3, need=65) == (74, "74 slots")

    def test_a_replay_takes_what_is_being_compiled(self, roomy):
        runner, state, _ = roomy
        for need, slots in ((70, 100), (120, 135)):
            runner._coming = runner_module._Coming(100, begin(runner._program(state, 100)))
            assert runner._replay_with(64, need) == slots
            assert runner._coming is None

    @pytest.mark.parametrize("ahead", [True, False])
    def test_the_program_is_the_one_that_runs(self, roomy, ahead):
        """Also if it was compiled ahead: then nothing is compiled (or loaded) in a stretch."""
        runner, state, _ = roomy
        state = runner._chains.resized(state, 97 + ahead)  # shapes that only this test has
        if ahead:
            runner._program(state, 97 + ahead)()
        events = []

        def note(event, seconds, **_):
            events.append(event)

        jax.monitoring.register_event_duration_secs_listener(note)
        try:
            runner.stretch(state, 1)
        finally:
            jax.monitoring.unregister_event_duration_listener(note)
        compiled = [x for x in events if x.endswith("backend_compile_duration")]
        assert (compiled == []) == ahead

    def test_a_program_that_was_there_says_nothing_about_the_next_one(self, toy, tiny, monkeypatch):
        """A second run of the same shapes compiles nothing; fewer slots would be compiled."""
        monkeypatch.setattr("bnp_models.run.runner._slowest", {})
        kernel = toy(gamma=6.0, max_topics=64).gibbs()
        first, second = (Runner(kernel, tiny, 4, 12) for _ in range(2))
        clock = iter([0.0, 9.0, 9.0, 9.1])  # start and end of compiling, of both
        monkeypatch.setattr("time.perf_counter", lambda: next(clock))
        for runner in (first, second):
            with runner._compiling():
                pass
        assert (first.compile_seconds, second.compile_seconds) == pytest.approx((9.0, 0.1))
        assert second._last_compile == 9.0

    def test_most_that_a_sweep_needed(self, toy, tiny):
        kernel = toy(gamma=6.0, max_topics=64).gibbs()
        state, runner = Runner(kernel, tiny, 0, 9).init(keys()), Runner(kernel, tiny, 0, 9)
        stretch = runner.stretch(state, 9)
        most = stretch.kept["draws"]["num_topics_used"].max() + 1
        assert runner._needs == [(0, 9, most)]


def resized(runner, state, used, sweep, need=9):
    """Look at the capacity, and again when the program of another one is ready."""
    for _ in range(2):
        state, note = runner._resize(state, used, need, sweep)
        if runner._coming:
            runner._coming.program.result()
    return state.chain.topic.shape[-1], note


def check_full_buffer(runner, expected, monkeypatch):
    """Run short of slots in a stretch that fills the buffer; compare the draws."""
    one_draw = sum(x[:, 0].nbytes for x in expected.values())  # with more slots than needed
    monkeypatch.setattr(runner_module, "BUFFER_BYTES", 2 * one_draw)
    monkeypatch.setattr(runner_module, "at_start", lambda chosen, need: chosen)
    state, parts, cut = runner.init(keys()), [], 0
    while (sweep := int(state.sweep)) < runner.num_sweeps:
        asked = min(runner.longest(state), runner.num_sweeps - sweep)
        stretch = runner.stretch(state, asked)
        state = stretch.state
        assert int(state.sweep) == sweep + stretch.num_sweeps
        if stretch.num_sweeps < asked:
            assert "replayed with" in stretch.note
            cut += 1
        parts.append(flat(stretch.kept))
    assert cut > 0
    assert_equal(joined(parts), expected)


class TestSlots:
    """Numbers of slots: at the start, after an overflow, and for the rest of a run."""

    def test_what_the_user_chose_is_the_start(self):
        assert [runner_module.at_start(128, need) for need in (17, 128)] == [128, 128]

    def test_a_larger_need_gets_room(self):
        assert runner_module.at_start(128, 129) == 160

    def test_growth_is_never_small(self):
        assert runner_module.larger(1024, 30) == 1152
        assert runner_module.larger(1, 1) == runner_module.MARGIN
        assert runner_module.larger(128, 200) == 256

    def test_multiples(self):
        assert [runner_module.enough(n) for n in (1, 28, 29, 56)] == [32, 32, 64, 64]


class TestDevices:
    @pytest.mark.parametrize(
        ("num_chains", "max_parts", "layout"),
        [
            (4, 1, (4, 1)), (4, 2, (4, 1)), (4, 6, (2, 3)), (6, 6, (6, 1)), (12, 1, (6, 1)),
            (1, 6, (1, 6)), (1, 4, (1, 4)), (5, 6, (1, 6)), (5, 3, (5, 1)), (1, 1, (1, 1)),
        ],
    )  # fmt: skip
    def test_layout_of_six(self, num_chains, max_parts, layout):
        assert mesh_shape(6, num_chains, max_parts) == layout

    @needs_two_devices
    def test_mesh(self):
        devices = jax.local_devices()[:2]
        assert make_mesh(devices, 4, 2).shape == {"chain": 2, "document": 1}
        assert make_mesh(devices, 3, 2).shape == {"chain": 1, "document": 2}
        assert make_mesh(devices, 3, 1) is None
        assert make_mesh(devices[:1], 2, 1) is None

    @pytest.mark.slow
    @needs_two_devices
    @pytest.mark.parametrize("max_topics", [None, 3], ids=["finite", "growing"])
    def test_chains_over_devices(self, toy, tiny, max_topics):
        kernel = toy(gamma=6.0, max_topics=max_topics).gibbs(record=RECORD)
        expected, _ = run(Runner(kernel, tiny, 2, 4), [6])
        mesh = make_mesh(jax.local_devices()[:2], 2, 1)
        found, state = run(Runner(kernel, tiny, 2, 4, 1, mesh), [2, 4])
        assert len(state.chain.z.sharding.device_set) == 2
        assert_equal(found, expected)
