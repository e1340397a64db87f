"""Saved fits: the checksum of their file."""

import h5py
import numpy as np
import pytest
import xarray

import bnp_models as bnp
from bnp_models.data.files import SEAL_BYTES
from bnp_models.posterior import arviz_data

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


@pytest.mark.parametrize("change", ["flip", "remove"])
def test_the_checksum_is_required(fit, tmp_path, change):
    path = fit.save(tmp_path / "draws.nc")
    content = path.read_bytes()
    end = len(content) - SEAL_BYTES
    marks = [content[: end + i] + bytes([content[end + i] ^ 1]) + content[end + i + 1 :]
             for i in range(len("sha256:"))]  # fmt: skip
    for damaged in marks if change == "flip" else [content[:end]]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"draws\.nc is damaged: .* checksum is missing"):
            bnp.Fit.load(path, fit.dataset)


@pytest.mark.parametrize("content", [b"", b"not this", None, "half", "foreign"])
def test_files_that_hold_no_draws(fit, tmp_path, content):
    path = fit.save(tmp_path / "draws.nc")
    if content == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif content == "foreign":  # the checksum is right
        arviz_data.save(arviz_data.make_data({"posterior": {"x": np.zeros((1, 2))}}), path)
    elif content is not None:
        path.write_bytes(content)
    else:
        arviz_data.save(arviz_data.make_data({}, attrs=dict(fit.data.attrs)), path)
    with pytest.raises(ValueError, match=rf"{path} .*; restore it, or save the fit again"):
        bnp.Fit.load(path, fit.dataset)
    if content in (b"", b"not this", "half"):
        with pytest.raises(ValueError, match=f"{path} is no whole netCDF file"):
            arviz_data.load(path)


@pytest.mark.parametrize("model", ["[1]", "3", "null", "no JSON", '{"model": []}', '{"model": 1}'])
def test_forged_models(fit, tmp_path, model):
    fit.data.attrs["model"] = model
    path = fit.save(tmp_path / "draws.nc")
    with pytest.raises(ValueError, match=f"{path} was not written by Fit.save"):
        bnp.Fit.load(path, fit.dataset)


def test_others_can_read_the_file_but_not_change_it(fit, tmp_path):
    path = fit.save(tmp_path / "draws.nc")
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert "posterior" in tree.children
    with h5py.File(path, "a") as file:
        file.attrs["comment"] = "mine"
    with pytest.raises(ValueError, match="or another program wrote the file; restore it, or save"):
        bnp.Fit.load(path, fit.dataset)


def test_a_fit_is_shown_in_one_line(fit):
    assert str(fit).startswith("FactorFit(GaussianFactorAnalysis(")
    assert str(fit).endswith(
        "Sources(1 sources, 4 rows, 3 features, reals), chains: 2, draws of each: 2)"
    )
    assert "\n" not in str(fit)
