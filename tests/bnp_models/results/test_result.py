"""Saved fits: the checksum of their file."""

import h5py
import numpy as np
import pytest
import xarray

import bnp_models as bnp

PHI = np.array([[3.0, 0, 1], [0, 4, 0]])


@pytest.fixture
def fit(made_up_factors):
    weights = np.ones((4, 2))
    sources = bnp.Sources.from_arrays([weights @ PHI])
    model = bnp.GaussianFactorAnalysis()
    return made_up_factors(model, sources, PHI, weights, sigma2_w=1.0, sigma2_n=0.01)


def test_damage_is_noticed(fit, tmp_path):
    path = fit.save(tmp_path / "draws.nc")
    content = path.read_bytes()
    for i in np.linspace(0, len(content) - 80, 20).astype(int):
        path.write_bytes(content[:i] + bytes([content[i] ^ 255]) + content[i + 1 :])
        with pytest.raises(
            ValueError, match=r"draws\.nc is damaged: .*; restore it, or save the f"
        ):
            bnp.Fit.load(path, fit.dataset)


def test_others_can_read_and_change_the_file(fit, tmp_path):
    path = fit.save(tmp_path / "draws.nc")
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert "posterior" in tree.children
    with h5py.File(path, "a") as file:
        file.attrs["comment"] = "mine"
    found = bnp.Fit.load(path, fit.dataset)  # without the checksum, which would not fit
    assert found.data.attrs["comment"] == "mine"
