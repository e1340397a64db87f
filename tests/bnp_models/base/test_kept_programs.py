"""Programs that are kept on the disk: where, how many, and that a second process compiles none."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from bnp_models.base import other_packages
from bnp_models.base.other_packages import keep_programs
from bnp_models.cli import command

OPTIONS = (
    "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
    "jax_enable_compilation_cache",
)  # fmt: skip
START = """
import collections, json, sys
import jax, jax.monitoring
from numpyro.infer import MCMC
import bnp_models as bnp
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **about: seen.update([name]))
corpus = bnp.Corpus.from_ids([[0, 1, 0], [2, 1]], 3)
"""
WAYS = {
    "fit": "bnp.fit(bnp.LDA(2), corpus, num_warmup=2, num_samples=2, num_chains=2, progress=False)",
    "mcmc": """
kernel = bnp.HDPLDA(max_topics=16).gibbs(init_topics=1, schedule="sequential")
mcmc = MCMC(kernel, num_warmup=1, num_samples=1, progress_bar=False)
mcmc.run(jax.random.key(0), corpus)
""",
}
END = """
hits, misses = (seen[f"/jax/compilation_cache/cache_{x}"] for x in ("hits", "misses"))
print(json.dumps([jax.config.jax_compilation_cache_dir, hits, misses]))
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


def run(way, caches, **environment):
    """Return the folder, and how many programs were loaded and compiled, of a process."""
    kept = {name: x for name, x in os.environ.items() if name.lower() not in OPTIONS}
    done = subprocess.run(
        [sys.executable, "-c", START + WAYS[way] + END],
        env=kept | {"XDG_CACHE_HOME": str(caches)} | environment,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_second_process_compiles_nothing(tmp_path, way):
    folder, hits, misses = run(way, tmp_path)
    assert Path(folder).parent == tmp_path / "bnp-models" / "programs"
    assert (hits, misses > 5) == (0, True)
    assert len(list(Path(folder).glob("*-cache"))) == misses
    _, hits, again = run(way, tmp_path)
    assert (hits, again) == (misses, 0)


@pytest.mark.slow
def test_one_variable_turns_it_off(tmp_path):
    assert run("fit", tmp_path, JAX_ENABLE_COMPILATION_CACHE="0") == [None, 0, 0]
    assert not (tmp_path / "bnp-models").exists()


def folder_of_jax():
    return jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.usefixtures("settings")
class TestFolder:
    def test_of_the_user(self, tmp_path):
        keep_programs()
        folder = Path(folder_of_jax())
        assert folder.is_dir()
        assert folder.parent == tmp_path / "caches" / "bnp-models" / "programs"

    @pytest.mark.parametrize(
        ("system", "below"),
        [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
    )
    def test_of_the_platform(self, tmp_path, monkeypatch, system, below):
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        monkeypatch.setattr(other_packages.sys, "platform", system)
        assert (tmp_path / below) in other_packages._default_folder().parents

    def test_one_that_jax_knows_is_kept(self, tmp_path):
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "known"))
        keep_programs()
        assert folder_of_jax() == str(tmp_path / "known")
        assert not (tmp_path / "caches").exists()

    def test_none(self, tmp_path):
        jax.config.update("jax_enable_compilation_cache", False)
        keep_programs()
        assert folder_of_jax() is None
        assert not (tmp_path / "caches").exists()

    def test_that_cannot_be_made(self, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.warns(UserWarning, match=r"not kept.*JAX_COMPILATION_CACHE_DIR, or set JAX_EN"):
            keep_programs()
        assert folder_of_jax() is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            keep_programs()  # that was said

    def test_is_used_although_something_was_compiled(self):
        jax.jit(lambda x: x * 3 - 1)(1.5)
        keep_programs()
        jax.jit(lambda x: x * 3 - 2)(1.5)
        assert list(Path(folder_of_jax()).glob("*-cache"))

    def test_size(self, monkeypatch):
        folder = other_packages._default_folder()
        folder.mkdir(parents=True)
        for i, age in enumerate((30, 10, 20)):  # seconds since the last use
            file = folder / f"{i}-cache"
            file.write_bytes(b"x" * 1000)
            os.utime(file, (1e9 - age, 1e9 - age))
        (folder / "notes").write_bytes(b"x" * 5000)
        monkeypatch.setattr(other_packages, "MAX_BYTES", 2000)
        keep_programs()
        assert {path.name for path in folder.iterdir()} == {"1-cache", "2-cache", "notes"}

    @pytest.mark.parametrize("argv", [["models"], ["resume", "nowhere"]])
    def test_of_the_command(self, tmp_path, argv):
        """Of one that compiles; in a home that can't be written to, there is only a message."""
        command.main(argv)
        assert (tmp_path / "caches").exists() is (argv[0] == "resume")

    def test_of_the_command_in_a_home_that_is_none(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.warns(UserWarning, match="compiled programs are not kept"):
            assert command.main(["resume", str(tmp_path / "nowhere")]) == 2
        assert "nowhere" in capsys.readouterr().err
