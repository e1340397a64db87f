"""Checksums at the end of files."""

import errno
import io
import os
import re
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.data import storage
from bnp_models.data.files import _DAY, _HERE, check_seal, csv_text, new_folder, replacing, seal
from bnp_models.data.storage import load_npz, write_sealed


def write(path, content):
    with replacing(path) as file:
        file.write(content)
        seal(file)


@pytest.mark.parametrize("content", [b"", b"some content", bytes(3 * 2**20)])
def test_a_changed_byte_is_noticed(tmp_path, content):
    path = tmp_path / "file"
    write(path, content)
    assert path.read_bytes().startswith(content)
    assert check_seal(path, "fix", required=False)
    sealed = path.read_bytes()
    for i in {0, len(content) // 2, len(sealed) - 1} - {len(content)}:
        path.write_bytes(sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1 :])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged: .*; fix$"):
            check_seal(path, "fix", required=False)


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes")
def test_a_full_disk_is_named_with_advice(tmp_path):
    import resource

    corpus = bnp.Corpus.from_ids([[0] * 100_000], 1)
    writes = {
        "a.npz": lambda path: write_sealed(path, {"x": np.zeros(10**5)}),
        "mapped": lambda path: corpus.save(path, mapped=True),
    }
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, write_to in writes.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(OSError, match=r"not written \(free space on the disk") as raised:
                write_to(tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert raised.value.errno in (errno.EFBIG, errno.ENOSPC)
        assert raised.value.filename == str(tmp_path / name)
        assert not list(tmp_path.iterdir())


def test_what_killed_processes_left_is_removed(tmp_path):
    """Only what is surely left: of a process that is gone, or a day old."""
    dead, other, old = f"{_HERE}-{2**22 + 1}-", "00000000-1-", 2 * _DAY
    names = {
        f".a.{dead}0123abcd.tmp": (0, False),
        f".b.npz.{dead}0123abcd.tmp": (old, False),
        f".a.{_HERE}-{os.getpid()}-0123abcd.tmp": (0, True),  # another thread writes it
        f".a.{other}0123abcd.tmp": (0, True),  # of another machine, perhaps in use
        f".a.{other}0123abce.tmp": (old, False),
        f".a.{dead}xyz.tmp": (old, True),  # somebody else's
        ".a.tmp": (old, True),
    }
    for name, (age, _) in names.items():
        (tmp_path / name).write_bytes(b"half")
        then = time.time() - age
        os.utime(tmp_path / name, (then, then))
    left = tmp_path / f".folder.{dead}0123abcd.tmp"
    left.mkdir()
    (left / "word.npy").write_bytes(b"half")
    write(tmp_path / "other", b"content")
    kept = {name for name, (_, stays) in names.items() if stays}
    assert {path.name for path in tmp_path.iterdir()} == kept | {"other"}
    left.mkdir()
    with new_folder("path", tmp_path / "folder"):
        assert not left.exists()


def test_files_without_a_checksum(tmp_path):
    (tmp_path / "file").write_bytes(b"short")
    assert not check_seal(tmp_path / "file", "fix", required=False)


@pytest.mark.parametrize("compressed", [False, True])
def test_archives_are_ordinary_ones(tmp_path, compressed):
    path = tmp_path / "a.npz"
    write_sealed(path, {"a/b": np.arange(3)}, compressed=compressed)
    with zipfile.ZipFile(path) as archive:
        assert archive.comment.startswith(b"sha256:")
        assert archive.testzip() is None
    with np.load(path) as file:
        assert file["a/b"].tolist() == [0, 1, 2]
    assert load_npz(path)["a/b"].tolist() == [0, 1, 2]


def test_spreadsheets_see_text_not_formulas():
    words = ["=1+1", "+1", "-x", "@me", "plain", None]
    table = pd.DataFrame({"word": words, "=share": np.linspace(-1, 1, 6)}, index=[*words[:5], "-"])
    expected = (
        ",word,'=share\n'=1+1,'=1+1,-1.0\n'+1,'+1,-0.6\n'-x,'-x,-0.19999999999999996\n"
        "'@me,'@me,0.20000000000000018\nplain,plain,0.6000000000000001\n'-,,1.0\n"
    )
    assert csv_text(table) == expected
    levels = table.set_index(
        pd.MultiIndex.from_product([["-a", "b"], [1, -2, 3]], names=["x", "y"])
    )
    assert csv_text(levels).splitlines()[1:3] == ["'-a,1,'=1+1,-1.0", "'-a,-2,'+1,-0.6"]


def test_ordinary_tables_are_as_pandas_writes_them():
    table = pd.DataFrame({"x": np.float32([0.1, np.nan]), "t": ["a,b", 'c"'], "n": [-1, 2]})
    for index in (True, False):
        assert csv_text(table, index=index) == table.to_csv(index=index, lineterminator="\n")
    assert csv_text(table[:0]) == table[:0].to_csv(lineterminator="\n")


def test_archives_are_unpacked_with_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_sealed(path, {"x": np.zeros(10**6)}, compressed=True)
    monkeypatch.setattr(storage, "free_memory", lambda: 10**6)
    with pytest.raises(ValueError, match=r"a\.npz .*8000000 bytes, which takes .* of memory"):
        load_npz(path)


def test_headers_that_claim_more_than_there_is(tmp_path):
    path, header = tmp_path / "a.npz", io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (2**40,)}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(80))
    with pytest.raises(ValueError, match=r"a\.npz .*x\.npy holds 80 bytes, its header says 87960"):
        load_npz(path)
