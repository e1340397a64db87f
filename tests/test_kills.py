"""Processes that are killed as they write: a file is the old one or the new one, and nothing stays.

One process per kind of file forks a child that writes again and again, and kills it at a random
time. The child has never run JAX.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bnp_models as bnp
from bnp_models.results.folder import save_run

KINDS = ("corpus.npz", "mapped", "sources.npz", "draws.nc", "model.npz", "page.html", "run")
KILLS = int(os.environ.get("BNP_KILLS", "6"))  # of each kind
TEXTS = ["cat dog cat", "mars moon mars"], ["mars moon", "cat dog dog dog"]
HOW = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "progress": False}


def writer_and_reader(kind, folder):
    """Return a function that writes one of two contents, and one that reads."""
    path = folder / kind
    corpora = [bnp.Corpus.from_texts(texts) for texts in TEXTS]
    sources = [bnp.Sources.from_arrays([[[i, 1.5], [2.5, 3.0]]]) for i in range(2)]
    fits = [bnp.Fit.load(folder.parent / f"{i}.nc", corpora[i]) for i in range(2)]
    if kind == "corpus.npz":
        return lambda i: corpora[i].save(path), lambda: bnp.Corpus.load(path).digest
    if kind == "sources.npz":
        return lambda i: sources[i].save(path), lambda: bnp.Sources.load(path).digest
    if kind == "draws.nc":
        return lambda i: fits[i].save(path), lambda: lps(path)
    if kind == "model.npz":
        return lambda i: fits[i].save_model(path), lambda: bnp.load(path).topics().to_csv()
    if kind == "page.html":
        return lambda i: fits[i].report(path), lambda: path.read_text().split()[-1]
    if kind == "run":
        path.mkdir(exist_ok=True)
        return (
            lambda i: save_run(fits[i], path),
            lambda: (
                [file.read_bytes()[:4] for file in sorted(path.iterdir()) if file.suffix == ".csv"]
                and lps(path / "draws.nc")
            ),
        )

    def write(i):  # there must be nothing where a folder is written
        if path.exists():
            path.rename(folder / f"old-{os.getpid()}-{time.monotonic_ns()}")
        corpora[i].save(path, mapped=True)

    return write, lambda: bnp.Corpus.load(path).digest


def lps(path):
    import xarray

    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        return tree["sample_stats"]["lp"].to_numpy().tolist()


def kill_children(kind, folder):
    """Kill children as they write; check what they leave, and that the next one cleans up."""
    write, read = writer_and_reader(kind, folder)
    known, seconds = [], 0.0
    for i in range(2):
        clock = time.perf_counter()
        write(i)
        seconds = max(seconds, time.perf_counter() - clock)
        known.append(read())
    left, old = 0, 0
    for _ in range(KILLS):
        child = os.fork()
        if not child:
            for i in range(10**6):
                write(i % 2)
        time.sleep(random.uniform(0, 2 * seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert (kind == "mapped" and not (folder / kind).exists()) or read() in known
        left += bool(list(folder.rglob(".*.tmp")))
        old += (folder / kind).exists() and read() == known[0]
    write(0)
    assert read() == known[0]
    assert not list(folder.rglob(".*.tmp")), list(folder.rglob(".*.tmp"))
    print(f"{left} of {KILLS} kills left a temporary file, {old} came after the first content")


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    for i, texts in enumerate(TEXTS):
        fit = bnp.fit(bnp.LDA(2), bnp.Corpus.from_texts(texts), seed=i, **HOW)
        fit.save(folder / f"{i}.nc")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_writers(fits, kind):
    (fits / kind.split(".")[0]).mkdir()
    command = [sys.executable, "-W", "ignore", __file__, kind, str(fits / kind.split(".")[0])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(f"{kind}: {done.stdout}")


if __name__ == "__main__":
    kill_children(sys.argv[1], Path(sys.argv[2]))
