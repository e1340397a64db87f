"""Programs that are kept on the disk: where, how many, and that a second process compiles none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

import bnp_models as bnp
from bnp_models.cli import command
from bnp_models.run import compilation

OPTIONS = (
    "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
    "jax_enable_compilation_cache",
)  # fmt: skip
FIT = """
import collections, json, sys
import jax, jax.monitoring
import bnp_models as bnp
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **about: seen.update([name]))
folder = bnp.use_compilation_cache(sys.argv[1] or None)
corpus = bnp.Corpus.from_ids([[0, 1, 0], [2, 1]], 3)
model = bnp.LDA(2)
fit = bnp.fit(model, corpus, num_warmup=2, num_samples=2, num_chains=2, progress=False)
seconds = [fit.data.attrs[f"{name}_seconds"] for name in ("sampling", "compile")]
hits, misses = (seen[f"/jax/compilation_cache/cache_{x}"] for x in ("hits", "misses"))
print(json.dumps([str(folder), hits, misses, seconds]))
"""


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """JAX and an environment in which nothing says where programs are kept."""
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    for name in (*OPTIONS, "xdg_cache_home"):
        monkeypatch.delenv(name.upper(), raising=False)
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def run(folder, **environment):
    kept = {name: x for name, x in os.environ.items() if name.lower() not in OPTIONS}
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(folder)], env=kept | environment, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    folder, hits, misses, _ = run(tmp_path / "programs")
    assert folder == str(tmp_path / "programs")
    assert (hits, misses > 5) == (0, True)
    assert len(list((tmp_path / "programs").glob("*-cache"))) == misses
    _, hits, again, _ = run(tmp_path / "programs")
    assert (hits, again) == (misses, 0)


@pytest.mark.usefixtures("settings")
class TestFolder:
    def test_of_the_user(self, tmp_path):
        folder = bnp.use_compilation_cache()
        assert folder is not None
        assert folder.is_dir()
        assert folder.parent == tmp_path / "caches" / "bnp-models" / "programs"
        assert jax.config.jax_compilation_cache_dir == str(folder)  # pyright: ignore[reportAttributeAccessIssue]
        assert bnp.use_compilation_cache() == folder

    @pytest.mark.parametrize(
        ("system", "below"),
        [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
    )
    def test_of_the_platform(self, tmp_path, monkeypatch, system, below):
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        monkeypatch.setattr(compilation.sys, "platform", system)
        assert (tmp_path / below) in compilation._default_folder().parents

    def test_one_that_jax_knows_is_kept(self, tmp_path):
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "known"))
        assert bnp.use_compilation_cache() == tmp_path / "known"
        assert bnp.use_compilation_cache(tmp_path / "other") == tmp_path / "other"
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "other")  # pyright: ignore[reportAttributeAccessIssue]

    def test_none(self, tmp_path):
        jax.config.update("jax_enable_compilation_cache", False)
        assert bnp.use_compilation_cache(tmp_path / "programs") is None
        assert not (tmp_path / "programs").exists()

    def test_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError, match="path must be a folder that can be made"):
            bnp.use_compilation_cache(tmp_path / "file" / "programs")

    def test_is_used_although_something_was_compiled(self, tmp_path):
        jax.jit(lambda x: x * 3 - 1)(1.5)
        folder = bnp.use_compilation_cache(tmp_path)
        jax.jit(lambda x: x * 3 - 2)(1.5)
        assert folder is not None
        assert list(folder.glob("*-cache"))

    def test_size(self, tmp_path):
        for i, age in enumerate((30, 10, 20)):  # seconds since the last use
            file = tmp_path / f"{i}-cache"
            file.write_bytes(b"x" * 1000)
            os.utime(file, (1e9 - age, 1e9 - age))
        (tmp_path / "notes").write_bytes(b"x" * 5000)
        bnp.use_compilation_cache(tmp_path, max_gigabytes=2e-6)
        assert {path.name for path in tmp_path.iterdir()} == {"1-cache", "2-cache", "notes"}

    @pytest.mark.parametrize("argv", [["models"], ["resume", "nowhere"]])
    def test_of_the_command(self, tmp_path, argv):
        """Of one that compiles; in a home that can't be written to, there is only a message."""
        command.main(argv)
        assert (tmp_path / "caches").exists() is (argv[0] == "resume")

    def test_of_the_command_in_a_home_that_is_none(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert command.main(["resume", str(tmp_path / "nowhere")]) == 2
        err = capsys.readouterr().err
        assert "compiled programs are not kept: path must be a folder" in err
        assert "nowhere" in err
