"""Every kind of file, with a flipped bit or cut short: refused by a plain error, or the same."""

import os

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data.storage import read_sealed
from bnp_models.run.checkpoint import FIX, read_header

FLIPS = int(os.environ.get("BNP_FLIPS", "20"))  # of each kind of file; was tried with 500
OPTIONS = {"num_warmup": 1, "num_samples": 2, "num_chains": 1, "progress": False}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a file of each kind, and for each file what reads it."""
    folder = tmp_path_factory.mktemp("files")
    corpus = bnp.Corpus.from_texts(["cat dog cat", "mars moon"], keep_texts=True)
    fit = bnp.fit(bnp.LDA(2), corpus, checkpoint=folder / "run", **OPTIONS)
    fit.save(folder / "draws.nc")
    fit.save_model(folder / "model.npz")
    corpus.save(folder / "corpus.npz")
    sources = bnp.Sources.from_arrays([np.arange(6.0).reshape(2, 3)])
    sources.save(folder / "sources.npz")
    bnp.Corpus.from_texts(["cat dog", "moon"]).save(folder / "mapped", mapped=True)

    def texts(path):
        found = bnp.Corpus.load(path)
        return found.digest, found.texts

    def mapped(path):
        return bnp.Corpus.load(path.parent).digest

    def sealed(path):
        return {
            name: array.tolist() for name, array in read_sealed(path, FIX, required=True).items()
        }

    def draws(path):
        found = bnp.Fit.load(path, corpus)
        return found.states["z"].to_numpy().tolist(), found.posterior.to_dict()

    reads = {
        "draws.nc": draws,
        "model.npz": lambda path: repr(bnp.load(path)),
        "corpus.npz": texts,
        "sources.npz": lambda path: bnp.Sources.load(path).digest,
        "mapped/corpus.json": mapped,
        "mapped/word.npy": mapped,
        "run/header.json": lambda path: read_header(path.parent),
        "run/state.npz": sealed,
        "run/draws-00000000.npz": sealed,
        "run/history.npz": sealed,
    }
    return folder, reads


KINDS = (
    "draws.nc", "model.npz", "corpus.npz", "sources.npz", "mapped/corpus.json", "mapped/word.npy",
    "run/header.json", "run/state.npz", "run/draws-00000000.npz", "run/history.npz",
)  # fmt: skip
NOT_SEEN = (
    "corpus.npz", "sources.npz", "run/header.json", "mapped/corpus.json", "mapped/word.npy",
)  # fmt: skip
"""Files whose entries can be written in two ways, or with a digest beside the checksum."""


@pytest.mark.parametrize("name", KINDS)
def test_damage_gives_no_other_content_and_no_raw_error(kept, name):
    folder, reads = kept
    path, read = folder / name, reads[name]
    content = path.read_bytes()
    expected, rng = read(path), np.random.default_rng(0)
    damaged = [content[:n] for n in rng.integers(0, len(content), FLIPS // 10)]
    # the end has the directory of an archive and the mark of the checksum
    places = [*rng.integers(0, len(content), FLIPS), *range(len(content) - 72, len(content), 3)]
    for place in places:
        flipped = content[place] ^ (1 << int(rng.integers(8)))
        damaged.append(content[:place] + bytes([flipped]) + content[place + 1 :])
    try:
        for other in damaged:
            path.write_bytes(other)
            try:
                found = read(path)
            except ValueError as error:
                assert str(path.parent) in str(error)  # noqa: PT017
            else:
                assert name in NOT_SEEN
                assert found == expected
    finally:
        path.write_bytes(content)
