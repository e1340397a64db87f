"""Checkpoints: what is written, what is refused, and runs that die."""

import json
import os
import shutil
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data.files import _HERE
from bnp_models.data.storage import read_sealed, write_sealed
from bnp_models.posterior import arviz_data
from bnp_models.run import checkpoint

fit_module = sys.modules["bnp_models.run.fit"]  # the function has the module's name
SIZES = {"num_warmup": 3, "num_samples": 6, "num_chains": 2, "thinning": 2}
GROUPS = ("posterior", "sample_stats", "states", "posterior_mean")


def fit(model, corpus, folder=None, **options):
    options = {
        **SIZES,
        "record": ("z", "noise"),
        "progress": False,
        "checkpoint_seconds": 0.0,
    } | options
    return bnp.fit(model, corpus, checkpoint=folder, **options)


def assert_same(found, expected):
    for name in GROUPS:
        has = arviz_data.has_group(expected.data, name)
        assert arviz_data.has_group(found.data, name) == has
        if has:
            mine, theirs = arviz_data.group(found.data, name), arviz_data.group(expected.data, name)
            assert mine.identical(theirs), name


class Crash(Exception):
    pass


class CrashAt:
    """A progress display at which a run dies."""

    def __init__(self, sweep):
        self.sweep = sweep

    def update(self, sweep, used, lp, note=""):
        if sweep >= self.sweep:
            raise Crash

    def close(self):
        pass


@pytest.fixture
def registered(toy, monkeypatch):
    monkeypatch.setitem(bnp.MODELS, "Toy", toy)


@pytest.fixture
def model(toy):
    return toy(gamma=6.0, max_topics=2)


@pytest.fixture
def finished(model, tiny, tmp_path):
    """The folder of a finished run."""
    fit(model, tiny, tmp_path / "run")
    return tmp_path / "run"


class TestFolder:
    def test_files(self, finished):
        names = sorted(path.name for path in finished.iterdir())
        assert names[0] == "data.npz"
        assert {"header.json", "state.npz", "draws-00000000.npz"} < set(names)
        assert [n for n in names if n.startswith("states-")] == [
            f"states-{i:08d}.npz" for i in range(3)
        ]
        header = json.loads((finished / "header.json").read_text())
        assert header["format"] == "bnp-run 2"
        assert header["seed"] == 0
        for path in finished.glob("*.npz"):
            with np.load(path, allow_pickle=False) as arrays:
                assert all(arrays[name].dtype != object for name in arrays.files)

    def test_finished_runs_are_read_without_sampling(self, model, tiny, twin, finished, registered):
        expected = fit(model, tiny)
        (finished / "lock").unlink()  # which is written by every process that takes it
        before = {path.name: path.stat().st_mtime_ns for path in finished.iterdir()}
        assert_same(fit(model, twin, finished, progress=CrashAt(0)), expected)
        found = bnp.resume(finished, progress=CrashAt(0))
        assert_same(found, expected)
        assert found.model == model
        assert found.dataset == tiny
        (finished / "lock").unlink()
        assert {path.name: path.stat().st_mtime_ns for path in finished.iterdir()} == before

    def test_other_versions_can_read_a_finished_run(self, model, tiny, finished, monkeypatch):
        monkeypatch.setattr("bnp_models.run.draws.versions", lambda: {"jax": "0.0"})
        assert_same(fit(model, tiny, finished), fit(model, tiny))

    def test_no_run(self, tmp_path):
        with pytest.raises(ValueError, match=r"holds no run: header\.json is missing"):
            bnp.resume(tmp_path)

    def test_a_file_in_the_way(self, model, tiny, tmp_path):
        (tmp_path / "run").write_text("")
        with pytest.raises(ValueError, match=r"checkpoint must be a folder, got the file .*run"):
            fit(model, tiny, tmp_path / "run")

    @pytest.mark.parametrize("name", ["file/run", "x" * 300, "loop"])
    def test_folders_that_cannot_be_made(self, model, tiny, tmp_path, name):
        (tmp_path / "file").touch()
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(ValueError, match=r"checkpoint .* can't be made \(.*: give a folder"):
            fit(model, tiny, tmp_path / name)


class TestRunsThatDie:
    @pytest.mark.parametrize("sweep", [1, 4, 6, 8])
    def test_the_draws_are_the_same(self, model, tiny, tmp_path, sweep):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(sweep))
        assert_same(fit(model, tiny, tmp_path), fit(model, tiny))

    def test_between_draws_and_state(self, model, tiny, tmp_path, monkeypatch):
        written = []

        def write_state(folder, state, num_kept):
            if num_kept == 2:
                raise Crash
            written.append(num_kept)
            checkpoint.write_state(folder, state, num_kept)

        files = type("files", (), {**vars(checkpoint), "write_state": staticmethod(write_state)})
        with monkeypatch.context() as patch:
            patch.setattr(fit_module, "files", files)
            with pytest.raises(Crash):
                fit(model, tiny, tmp_path)
        assert written[-1] == 1
        assert (tmp_path / "draws-00000001.npz").exists()
        left = f".draws-00000009.npz.{_HERE}-{2**22 + 1}-0123abcd.tmp"  # of no process
        (tmp_path / left).write_bytes(b"half")
        assert_same(fit(model, tiny, tmp_path), fit(model, tiny))
        assert not list(tmp_path.glob(".*"))

    def test_before_the_first_draw(self, model, tiny, tmp_path):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(0))
        assert (tmp_path / "state.npz").exists()
        (tmp_path / "draws-00000000.npz").write_bytes(b"of a run that was killed as it wrote")
        assert_same(fit(model, tiny, tmp_path), fit(model, tiny))

    def test_before_the_first_state(self, model, tiny, tmp_path):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(0))
        (tmp_path / "state.npz").unlink()
        assert_same(fit(model, tiny, tmp_path), fit(model, tiny))

    def test_running_means_go_on(self, toy, tiny, tmp_path):
        model = toy(gamma=6.0)
        record = ("topic_tokens_mean",)
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, record=record, progress=CrashAt(6))
        assert_same(fit(model, tiny, tmp_path, record=record), fit(model, tiny, record=record))

    def test_resume_needs_only_the_folder(self, model, tiny, tmp_path, registered):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(6), init_topics=2)
        found = bnp.resume(tmp_path, progress=False)
        assert_same(found, fit(model, tiny, init_topics=2))
        assert found.data.attrs["start_sweep"] > 0


CHANGES = {
    "seed": {"seed": 1},
    "num_warmup": {"num_warmup": 4},
    "num_samples": {"num_samples": 8},
    "num_chains": {"num_chains": 4},
    "thinning": {"thinning": 3},
    "keep_states": {"keep_states": 1},
    "options.record": {"record": ("z",)},
    "options.schedule": {"schedule": "mixed"},
}


class TestLostFiles:
    """Draws are not removed because another file of their run is gone."""

    @pytest.mark.parametrize("lost", ["state.npz", "header.json"])
    def test_draws_stay(self, model, tiny, finished, lost):
        (finished / lost).unlink()
        before = sorted(path.name for path in finished.iterdir())
        message = rf"checkpoint .*run has draws .* but lacks {lost}.*: restore it, or begin anew"
        with pytest.raises(ValueError, match=message):
            fit(model, tiny, finished)
        assert sorted(path.name for path in finished.iterdir()) == before


class TestOtherRunsAreRefused:
    @pytest.mark.parametrize("name", CHANGES)
    def test_arguments(self, model, tiny, finished, name):
        with pytest.raises(ValueError, match=rf"belongs to another run: {name} was .* and is now"):
            fit(model, tiny, finished, **CHANGES[name])

    @pytest.mark.parametrize("name", ["draws.nc", "checkpoint/header.json"])
    def test_results_of_another_run(self, model, tiny, tmp_path, name):
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / name).touch()
        with pytest.raises(ValueError, match="is the folder with the results of another run"):
            fit(model, tiny, tmp_path)
        assert not (tmp_path / "header.json").exists()

    def test_model(self, toy, tiny, finished):
        with pytest.raises(ValueError, match=r"run: model\.gamma was 6\.0 and is now 5\.0\. Use"):
            fit(toy(gamma=5.0, max_topics=2), tiny, finished)
        with pytest.raises(ValueError, match=r"another run: model was \{'model': 'Toy'"):
            fit(bnp.LDA(3), tiny, finished, record=("z",))

    def test_data(self, model, tiny, finished):
        with pytest.raises(ValueError, match=f"another run: data was '{tiny.digest}' and is now"):
            fit(model, tiny.select([0, 1, 2]), finished)

    def test_another_reading(self, model, tiny, tmp_path):
        reading = {"options": {"lowercase": False}}
        fit(model, tiny, tmp_path, reading=reading)
        found = fit(model, tiny, tmp_path)  # does not say
        assert json.loads(found.data.attrs["reading"]) == reading
        with pytest.raises(ValueError, match=r"reading\.options\.lowercase was False and is now T"):
            fit(model, tiny, tmp_path, reading={"options": {"lowercase": True}})
        fit(model, tiny, tmp_path / "old")  # without the command line
        found = fit(model, tiny, tmp_path / "old", reading=reading)
        assert json.loads(found.data.attrs["reading"]) == reading

    def test_an_unfinished_run_of_other_versions(self, model, tiny, tmp_path):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(6))
        header = checkpoint.read_header(tmp_path)
        header["versions"]["jax"] = "0.1.2"
        checkpoint.write_header(tmp_path, header)
        with pytest.raises(ValueError, match=r"another run: versions\.jax was "):
            fit(model, tiny, tmp_path)

    def test_a_run_of_another_number_of_devices_goes_on(self, model, tiny, tmp_path):
        with pytest.raises(Crash):
            fit(model, tiny, tmp_path, progress=CrashAt(6))
        header = checkpoint.read_header(tmp_path)
        checkpoint.write_header(tmp_path, {**header, "num_devices": 64})
        with pytest.warns(UserWarning, match="begun on 64 devices and goes on on 2"):
            found = fit(model, tiny, tmp_path)
        assert found.data.attrs["num_devices"] == 2


def of_file(name):
    def read(folder):
        arrays = read_sealed(folder / name, checkpoint.FIX, required=True)
        return {key: x.tolist() for key, x in arrays.items()}

    return read


READ = {
    "header.json": checkpoint.read_header,
    "data.npz": lambda folder: bnp.Corpus.load(folder / "data.npz"),
    **{
        name: of_file(name)
        for name in ("state.npz", "draws-00000000.npz", "states-00000001.npz", "history.npz")
    },
}


def places(content):
    """Many places in a file, of which all in the end, where an archive has its directory."""
    end = len(content)
    return sorted({*range(0, end, max(end // 100, 1)), *range(end - 100, end)})


class TestDamage:
    @pytest.mark.parametrize("how", ["truncated", "flipped", "empty", "text"])
    @pytest.mark.parametrize(
        "name", ["state.npz", "draws-00000000.npz", "history.npz", "data.npz", "header.json"]
    )
    def test_is_noticed(self, registered, finished, name, how):
        path = finished / name
        content = bytearray(path.read_bytes())
        if how == "truncated":
            del content[len(content) // 2 :]
        elif how == "flipped":
            third = len(content) // 3
            content[third : 2 * third] = bytes(255 - x for x in content[third : 2 * third])
        else:
            content = b"" if how == "empty" else b"not this"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}|header"):
            bnp.resume(finished, progress=CrashAt(0))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{}", "has format None, this version reads 'bnp-run 2'"),
            ('{"format": "bnp-run 0"}', "has format 'bnp-run 0', this version reads 'bnp-run 2'"),
            ("[]", r"header\.json is damaged"),
            ("3", r"header\.json is damaged"),
        ],
    )
    def test_headers_of_another_format(self, finished, content, message):
        (finished / "header.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            bnp.resume(finished)

    def test_headers_that_were_edited(self, model, tiny, finished):
        header = json.loads((finished / "header.json").read_text())
        (finished / "header.json").write_text(json.dumps({**header, "seed": 1}))
        with pytest.raises(
            ValueError, match=r"header\.json is damaged: .* checksum; restore it, or"
        ):
            fit(model, tiny, finished, seed=1)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"model": None}, "no header of a run: model is None, not of type dict"),
            ({"model": ["LDA"]}, r"no header of a run: model is \['LDA'\]"),
            ({"model": {"model": ["LDA"]}}, "model must be one of"),
            ({"model": {"model": "LDA", "topics": 2}}, "model is not described as LDA is"),
            ({"num_devices": "2"}, "num_devices is '2', not of type int"),
            ({"num_samples": True}, "num_samples is True, not of type int"),
            ({"options": {"speed": 3}}, "speed=3 is not an option of"),
            ({"options": []}, r"options is \[\], not of type dict"),
            ({"versions": 0}, "versions is 0, not of type dict"),
        ],
    )
    def test_headers_that_were_forged(self, finished, change, message):
        header = json.loads((finished / "header.json").read_text()) | change
        del header["checksum"], header["format"]
        checkpoint.write_header(finished, header)
        with pytest.raises(ValueError, match=message):
            bnp.resume(finished)

    def test_data_that_are_gone(self, registered, finished):
        (finished / "data.npz").unlink()
        with pytest.raises(ValueError, match=r"run lacks its data, data\.npz; restore it, or beg"):
            bnp.resume(finished)

    @pytest.mark.parametrize("bits", [1, 255])
    @pytest.mark.parametrize("name", READ)
    def test_every_flip_is_noticed(self, finished, name, bits):
        path, read = finished / name, READ[name]
        content = path.read_bytes()
        expected = read(finished)
        for i in places(content):
            path.write_bytes(content[:i] + bytes([content[i] ^ bits]) + content[i + 1 :])
            try:
                found = read(finished)
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017
            else:  # space between entries, or the mark of a checksum beside a digest
                assert name in ("header.json", "data.npz")
                assert found == expected

    def test_files_must_have_checksums(self, model, tiny, finished):
        with np.load(finished / "state.npz") as file:
            arrays = dict(file)
        np.savez(finished / "state.npz", **arrays)
        with pytest.raises(
            ValueError, match=r"state\.npz is damaged: its checksum is missing.*; re"
        ):
            fit(model, tiny, finished)

    def test_objects_are_not_unpickled(self, model, tiny, finished):
        write_sealed(finished / "state.npz", {"evil": np.array([{}], object)})
        with pytest.raises(ValueError, match=r"state\.npz is no .npz file .*[Oo]bject"):
            fit(model, tiny, finished)


class TestState:
    STATE = {"a": jnp.arange(3), "b": (jax.random.key(7), jnp.float32(0.5), None)}  # noqa: RUF012

    def test_round_trip(self, tmp_path):
        checkpoint.write_state(tmp_path, self.STATE, 5)
        template = jax.eval_shape(lambda: self.STATE)
        found, num_kept = checkpoint.read_state(tmp_path, template)  # pyright: ignore[reportGeneralTypeIssues]
        assert num_kept == 5
        assert jax.tree.structure(found) == jax.tree.structure(self.STATE)
        np.testing.assert_array_equal(found["a"], [0, 1, 2])
        assert jax.random.key_data(found["b"][0]).tolist() == [0, 7]
        assert found["b"][1] == 0.5

    def test_other_structures_are_refused(self, tmp_path):
        assert checkpoint.read_state(tmp_path, self.STATE) is None
        checkpoint.write_state(tmp_path, self.STATE, 5)
        with pytest.raises(ValueError, match="does not fit the model: it has "):
            checkpoint.read_state(tmp_path, {"a": jnp.arange(3)})
        with pytest.raises(
            ValueError, match=r"does not fit the model: \['a'\] is int32 with 1 axes"
        ):
            checkpoint.read_state(tmp_path, {**self.STATE, "a": jnp.ones(3)})


SCRIPT = """
import sys, time
import bnp_models as bnp
module = sys.modules["bnp_models.run.fit"]
module.STRETCH_SECONDS = 0.01
class Slow:
    def update(self, sweep, used, lp, note=""):
        time.sleep(0.02)
    def close(self):
        pass
bnp.resume(sys.argv[1], progress=Slow(), checkpoint_seconds=0.0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lda", "hdp"])
def test_killed_processes(tiny, tmp_path, name):
    """Kill -9 in the warm-up and then among the draws, twice; go on here."""
    models = {
        "lda": (bnp.LDA(3, alpha=0.5, beta=0.2), {"record": ("z", "theta")}),
        "hdp": (
            bnp.HDPLDA(alpha=1.0, gamma=1.0, beta=0.2, max_topics=2),  # it grows
            {"record": ("z",), "init_topics": 2},
        ),
    }
    model, options = models[name]
    options |= {"num_warmup": 300, "num_samples": 600, "thinning": 1, "schedule": "sequential"}
    expected = fit(model, tiny, **options)
    if name == "hdp":
        assert expected.posterior["z"].max() >= model.max_topics  # it has grown
    with pytest.raises(Crash):
        fit(model, tiny, tmp_path, progress=CrashAt(0), **options)
    (tmp_path / "data.npz").stat()
    # it reads compiled programs, but could be killed while it writes one
    read_only = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1e9"}
    rng = np.random.default_rng()
    done = []
    for num_files in (0, 2, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **read_only},
        )
        try:
            deadline = time.monotonic() + 300
            # there is a state from the start, before the first sweep
            while not sweeps_done(tmp_path) or len(blocks(tmp_path)) < num_files:
                assert process.poll() is None, "the process ended before it could be killed"
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.05))  # wherever that is
        finally:
            process.kill()
            process.wait()
        copy = shutil.copytree(tmp_path, tmp_path.with_name(f"{name}-{num_files}"))
        done.append(sweeps_done(copy))
    assert 0 < done[0] < 300 < done[1] < done[2] < 900
    assert_same(fit(model, tiny, tmp_path, **options), expected)


def blocks(folder):
    return sorted(folder.glob("draws-*.npz"))


def sweeps_done(folder):
    with np.load(folder / "state.npz") as arrays:
        return int(arrays[".sweep"])
