import logging
import os
import subprocess
import sys

import arviz
import numpy as np
import pytest
import xarray

from bnp_models.posterior import arviz_data


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "posterior": {
            "num_topics_used": rng.integers(3, 9, (4, 30)).astype(np.int32),
            "tau": rng.random((4, 30, 5)).astype(np.float32),
            "active": rng.random((4, 30, 5)) < 0.5,
            "loose": rng.random((4, 30, 2)),
        },
        "sample_stats": {"lp": rng.normal(size=(4, 30))},
        "constant_data": {"doc": np.arange(20_000, dtype=np.int32)},
        "observed_data": {"word": np.arange(20_000, dtype=np.uint16)},
        "states": {
            "z": rng.integers(0, 200, (4, 3, 20_000)).astype(np.uint8),
            "root_weights": rng.random((4, 3, 5)),
        },
    }


@pytest.fixture
def data(arrays):
    return arviz_data.make_data(
        arrays,
        coords={"topic": ("a", "b", "c", "d", "über"), "word": ["never used"]},
        dims={
            "tau": ["topic"],
            "active": ["topic"],
            "root_weights": ["topic"],
            **{key: ["token"] for key in ("z", "doc", "word")},
        },
        group_coords={"states": {"draw": [0, 10, 20]}},
        attrs={"model": "HDPLDA(beta=0.01)", "sweeps": 30},
    )


def test_the_container_is_that_of_the_installed_arviz(data):
    if arviz.__version__.startswith("0."):
        assert isinstance(data, arviz.InferenceData)
    else:
        assert isinstance(data, xarray.DataTree)
    assert set(arviz_data.groups(data)) == {
        "posterior",
        "sample_stats",
        "constant_data",
        "observed_data",
        "states",
    }
    assert dict(data.attrs) == {"model": "HDPLDA(beta=0.01)", "sweeps": 30}


def test_groups_have_the_arrays_dims_and_labels_given(data, arrays):
    for name, variables in arrays.items():
        found = arviz_data.group(data, name)
        assert set(found.data_vars) == set(variables)
        for variable, array in variables.items():
            assert found[variable].dtype == array.dtype
            np.testing.assert_array_equal(found[variable], array)
    posterior, states = (arviz_data.group(data, name) for name in ("posterior", "states"))
    assert posterior["tau"].dims == ("chain", "draw", "topic")
    assert posterior["loose"].dims == ("chain", "draw", "loose_dim_0")
    assert list(posterior["topic"].to_numpy()) == ["a", "b", "c", "d", "über"]
    assert list(states["draw"].to_numpy()) == [0, 10, 20]
    assert list(posterior["draw"].to_numpy()) == list(range(30))
    assert states["z"].dims == ("chain", "draw", "token")
    assert "token" not in states.coords
    assert arviz_data.group(data, "constant_data")["doc"].dims == ("token",)


def test_group_names(data):
    assert arviz_data.has_group(data, "states")
    assert not arviz_data.has_group(data, "prior")
    with pytest.raises(ValueError, match=r"name must be one of \[.*'states'.*'prior'"):
        arviz_data.group(data, "prior")


def test_a_saved_file_gives_the_same_data_back(data, tmp_path):
    path = arviz_data.save(data, tmp_path / "draws.nc")
    assert path.stat().st_size < 300_000  # z alone is 240 kB of noise; doc and word compress
    for _ in range(2):  # a loaded file can be saved over itself
        loaded = arviz_data.load(path)
        assert type(loaded) is type(data)
        assert loaded.attrs == {"model": "HDPLDA(beta=0.01)", "sweeps": 30}
        for name in arviz_data.groups(data):
            ours, theirs = arviz_data.group(data, name), arviz_data.group(loaded, name)
            assert ours.identical(theirs)
            assert ours.dtypes == theirs.dtypes
            for dim in ours.indexes:
                assert ours[dim].dtype == theirs[dim].dtype
        arviz_data.save(loaded, str(path))
    assert os.listdir(tmp_path) == ["draws.nc"]


def test_arviz_and_xarray_read_the_file(data, tmp_path):
    path = arviz_data.save(data, tmp_path / "draws.nc")
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert tree["states"]["z"].dtype == np.uint8
        assert tree["posterior"]["active"].dtype == bool


def test_what_dies_while_writing_leaves_the_old_file(data, tmp_path, monkeypatch):
    path = arviz_data.save(data, tmp_path / "draws.nc")
    before = path.read_bytes()

    def interrupted(file):
        assert len(os.listdir(tmp_path)) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(arviz_data, "seal", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arviz_data.save(data, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["draws.nc"]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_saved_file_may_be_read_by_those_who_may_read_new_files(data, tmp_path):
    (tmp_path / "plain").touch()
    path = arviz_data.save(data, tmp_path / "draws.nc")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ({"posterior": {"x": np.zeros(3)}}, {}, r"'x'\] must start with the axes .* shape \(3,\)"),
        (
            {"posterior": {"x": np.zeros((2, 3)), "y": np.zeros((2, 4))}},
            {},
            r"posterior\['y'\] must have 3 entries along 'draw' like 'x', got 4",
        ),
        (
            {"posterior": {"x": np.zeros((2, 3, 4))}},
            {"dims": {"x": ["topic", "word"]}},
            r"dims\['x'\] must name the 1 axes",
        ),
        (
            {"posterior": {"x": np.zeros((2, 3, 4))}},
            {"dims": {"x": ["topic"]}, "coords": {"topic": ["a"]}},
            r"coords\['topic'\] must have 4 labels for group 'posterior'",
        ),
        (
            {"posterior": {"x": np.zeros((2, 3))}},
            {"group_coords": {"states": {"draw": [1]}}},
            r"group_coords names 'states'; groups has only \['posterior'\]",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(groups, options, message):
    with pytest.raises(ValueError, match=message):
        arviz_data.make_data(groups, **options)


def test_statistics_of_independent_draws():
    draws = np.random.default_rng(1).normal(3.0, 2.0, size=(4, 1000)).astype(np.float32)
    dataset = xarray.Dataset({"x": (("chain", "draw"), draws)})
    assert float(arviz_data.rhat(dataset)["x"]) == pytest.approx(1, abs=0.01)
    # the effective size of n independent draws is n, with a relative error of a few percent
    assert float(arviz_data.ess(dataset)["x"]) == pytest.approx(4000, rel=0.1)
    assert float(arviz_data.ess(dataset, method="tail")["x"]) == pytest.approx(4000, rel=0.2)
    assert float(arviz_data.mcse(dataset)["x"]) == pytest.approx(2 / np.sqrt(4000), rel=0.1)


def test_statistics_without_variance_do_not_warn():
    dataset = xarray.Dataset({"x": (("chain", "draw"), np.full((4, 100), 7))})
    assert np.isnan(float(arviz_data.rhat(dataset)["x"]))


def test_statistics_of_few_draws_do_not_warn(monkeypatch):
    """By the logger of ArviZ 0.x, which tells every text once."""
    log = getattr(arviz, "_log", None)
    if log is None:
        pytest.skip("ArviZ 1.x says it at a level that is not shown")
    dataset = xarray.Dataset({"x": (("chain", "draw"), np.zeros((2, 3)))})
    said = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", said.append)
    monkeypatch.setattr(log, "cache", [])
    log.addHandler(handler)
    try:
        for statistic in (arviz_data.rhat, arviz_data.ess, arviz_data.mcse):
            assert np.isnan(float(statistic(dataset)["x"]))
        assert not said
        monkeypatch.setattr(log, "cache", [])
        arviz.ess(dataset)  # not silenced elsewhere
        assert said[0].getMessage().startswith("Shape validation failed")
    finally:
        log.removeHandler(handler)


@pytest.mark.slow
def test_importing_the_module_imports_no_arviz():
    code = "import sys, bnp_models.posterior.arviz_data; sys.exit('arviz' in sys.modules)"
    paths = os.pathsep.join([*filter(None, sys.path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_arviz_can_be_imported_without_a_cache_folder(tmp_path):
    (tmp_path / "file").touch()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file" / "cache")}
    code = (
        "import os; from bnp_models.posterior import arviz_data as a; "
        "folder = os.environ['XDG_CACHE_HOME']; "
        "print(a._import_arviz().__name__, os.environ['XDG_CACHE_HOME'] == folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["arviz", "True"], done.stderr
