"""Checksums at the end of files."""

import re
import zipfile

import numpy as np
import pytest

from bnp_models.data.files import check_seal, replacing, seal
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
    assert check_seal(path, "fix")
    sealed = path.read_bytes()
    for i in {0, len(content) // 2, len(sealed) - 1} - {len(content)}:
        path.write_bytes(sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1 :])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged: .*; fix$"):
            check_seal(path, "fix")


def test_files_without_a_checksum(tmp_path):
    (tmp_path / "file").write_bytes(b"short")
    assert not check_seal(tmp_path / "file", "fix")


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
