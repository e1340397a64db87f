"""Draws as ArviZ data, for ArviZ 0.x and ArviZ 1.x.

ArviZ 0.2x keeps draws in an `InferenceData`, ArviZ 1.x in an `xarray.DataTree`. Only this module
handles the difference: it takes groups as plain arrays and returns them as `xarray.Dataset`. Files
are netCDF-4 with one netCDF group for each group of draws. Both lines of ArviZ use this layout, so
each can read the files of the other.

ArviZ and xarray are imported inside the functions, because sampling needs neither.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnp_models.data import arguments
from bnp_models.data.files import replacing, seal

if TYPE_CHECKING:
    import xarray

__all__ = [
    "check_data",
    "ess",
    "group",
    "groups",
    "has_group",
    "load",
    "make_data",
    "mcse",
    "one_chain",
    "rhat",
    "rhat_nested",
    "save",
    "with_group",
]

RHATS = ("rank", "split", "folded", "z_scale", "identity")
ESSES = ("bulk", "tail", "mean", "sd", "median", "mad", "z_scale", "folded", "identity")
MCSES = ("mean", "sd", "median")
SAMPLE_DIMS = ("chain", "draw")
_COMPRESS_FROM = 10_000  # elements; a smaller array gains nothing from compression


def make_data(
    groups: Mapping[str, Mapping[str, Any]],
    *,
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    group_coords: Mapping[str, Mapping[str, Any]] | None = None,
    group_dims: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Put groups of arrays into the installed ArviZ's container.

    Parameters
    ----------
    groups
        `{group: {variable: array}}`. Arrays start with the axes (chain, draw), except in groups
        whose name ends in `data` (`observed_data`, `constant_data`). Dtypes are kept.
    coords
        Labels of a dimension, in every group that has it. A dimension without labels is numbered
        from 0; only `token` gets no numbers, because they would take more memory than its draws.
    dims
        Names of a variable's axes after (chain, draw). An axis without a name is called
        `<variable>_dim_<i>`, ArviZ's own habit.
    group_coords
        Labels of one group only, which replace those of `coords`: for instance
        `{"states": {"draw": [0, 50, 100]}}` for full states kept at some of the draws.
    group_dims
        Names of the axes in one group only, which replace those of `dims`.
    attrs
        Attributes of the whole; numbers and strings survive `save`.

    Returns
    -------
    data
        `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (ArviZ 1.x).

    Raises
    ------
    ValueError
        If the arrays of a group disagree on a dimension, or names or labels do not fit an array.
    """
    arguments.mapping("groups", groups, "groups of arrays by name")
    for name, variables in groups.items():
        arguments.mapping(f"groups[{name!r}]", variables, "arrays by name")
    options = {
        "coords": coords, "dims": dims, "group_coords": group_coords, "group_dims": group_dims,
        "attrs": attrs,
    }  # fmt: skip
    for name, option in options.items():
        arguments.optional(arguments.mapping, name, option, "values by name")
    own, own_dims = group_coords or {}, group_dims or {}
    for option, given in {"group_coords": own, "group_dims": own_dims}.items():
        for name in given:
            if name not in groups:
                raise ValueError(f"{option} names {name!r}; groups has only {sorted(groups)}")
    datasets = {
        name: _dataset(
            name,
            variables,
            {**(coords or {}), **own.get(name, {})},
            {**(dims or {}), **own_dims.get(name, {})},
        )
        for name, variables in groups.items()
    }
    return _container(datasets, dict(attrs or {}))


def check_data(name: str, data: object) -> Any:
    """Refuse what is neither an `arviz.InferenceData` nor an `xarray.DataTree`."""
    if hasattr(data, "children") or callable(getattr(data, "groups", None)):
        return data
    raise ValueError(
        f"{name} must be ArviZ data (arviz.InferenceData or xarray.DataTree) such as fit.data, got "
        f"{type(data).__name__} {arguments.short_repr(data)}"
    )


def groups(data: Any) -> list[str]:
    """List the names of the groups, in the order of the container."""
    if hasattr(check_data("data", data), "children"):
        return list(data.children)
    return [str(name) for name in data.groups()]


def has_group(data: Any, name: str) -> bool:
    """Tell whether the data has a group of this name."""
    return arguments.text("name", name) in groups(data)


def group(data: Any, name: str) -> xarray.Dataset:
    """Return one group as a dataset.

    Raises
    ------
    ValueError
        If there is no such group; the message lists those there are.
    """
    arguments.one_of("name", name, groups(data))
    found = data[name]
    return found.to_dataset() if hasattr(found, "to_dataset") else found


def one_chain(data: Any, chain: int) -> Any:
    """Return the draws of one chain, given by its label; the arrays are views, not copies."""
    found = {name: group(data, name) for name in groups(data)}
    for name, dataset in found.items():
        if "chain" in dataset.dims:
            at = int(np.flatnonzero(dataset["chain"].to_numpy() == chain)[0])
            found[name] = dataset.isel(chain=slice(at, at + 1))
    return _container(found, dict(data.attrs))


def with_group(data: Any, name: str, dataset: xarray.Dataset | None) -> Any:
    """Return the data with this group added or replaced; None leaves the group out."""
    found = {other: group(data, other) for other in groups(data) if other != name}
    found |= {} if dataset is None else {name: dataset}
    return _container(found, dict(data.attrs))


def save(data: Any, path: str | os.PathLike[str]) -> Path:
    """Write the data to a netCDF file with a checksum at its end, completely or not at all.

    If the process dies while writing, the old file is unchanged.
    """
    import xarray

    path = arguments.path("path", path)
    datasets = {name: group(data, name) for name in groups(data)}
    tree = xarray.DataTree.from_dict(datasets)
    tree.attrs = dict(data.attrs)
    encoding = {f"/{name}": _compression(dataset) for name, dataset in datasets.items()}
    # in memory first: HDF5 ends the process where the disk is full
    content: Any = tree.to_netcdf(None, engine="h5netcdf", encoding=encoding)
    with replacing(path) as file:
        file.write(content)
        seal(file)
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read a file of `save`, or of ArviZ, into memory and close it."""
    import xarray

    try:
        with xarray.open_datatree(arguments.path("path", path), engine="h5netcdf") as tree:
            attrs = {str(name): _plain(value) for name, value in tree.attrs.items()}
            datasets = {name: child.to_dataset().load() for name, child in tree.children.items()}
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError) as error:  # of many kinds, by h5py
        raise ValueError(f"{path} is no whole netCDF file ({error}); save it again") from error
    for name, dataset in datasets.items():
        labels = {dim: _labels(dataset[dim].to_numpy()) for dim in dataset.indexes}
        datasets[name] = dataset.drop_encoding().assign_coords(labels)
    return _container(datasets, attrs)


def rhat(draws: xarray.Dataset, *, method: str = "rank") -> xarray.Dataset:
    """Compute R-hat of every variable over (chain, draw); NaN where it is not defined.

    R-hat of a constant is NaN. R-hat of chains that are constant at different values is infinite,
    or as large as rounding allows. `diagnostics.convergence` tells the two cases apart.
    """
    return _statistic("rhat", draws, method)


def rhat_nested(
    draws: xarray.Dataset, superchain_ids: Sequence[int] | None
) -> xarray.Dataset | None:
    """Compute nested R-hat, which compares groups of chains; None if ArviZ 0.x is installed.

    `superchain_ids` has the group of each chain. All groups must be of one size. Without it there
    is no result either.
    """
    arviz = _import_arviz()
    if superchain_ids is None or not hasattr(arviz, "rhat_nested"):
        return None
    with _silent(arviz):
        return arviz.rhat_nested(draws.astype(np.float64), superchain_ids=list(superchain_ids))


def ess(draws: xarray.Dataset, *, method: str = "bulk") -> xarray.Dataset:
    """Compute the effective sample size of every variable, in draws over all chains."""
    return _statistic("ess", draws, method)


def mcse(draws: xarray.Dataset, *, method: str = "mean") -> xarray.Dataset:
    """Compute the Monte Carlo standard error of every variable, in the variable's unit."""
    return _statistic("mcse", draws, method)


def _statistic(name: str, draws: xarray.Dataset, method: str) -> xarray.Dataset:
    import xarray

    known = {"rhat": RHATS, "ess": ESSES, "mcse": MCSES}[name]
    arguments.one_of("method", method, known)
    arguments.instance("draws", draws, xarray.Dataset, "an xarray.Dataset such as fit.posterior")
    arviz = _import_arviz()
    with _silent(arviz):
        return getattr(arviz, name)(draws.astype(np.float64), method=method)


@contextlib.contextmanager
def _silent(arviz: Any) -> Iterator[None]:
    """Let ArviZ say nothing of constants, by which it divides, and of few draws, in the block."""
    log = getattr(arviz, "_log", logging.getLogger("arviz"))  # ArviZ 0.x warns by this logger
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        log.addFilter(_nothing)
        try:
            yield
        finally:
            log.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _import_arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its own next version on import
        try:
            import arviz
        except OSError:  # it notes the day of that in the cache folder, which can't be written
            with tempfile.TemporaryDirectory() as folder, _environment("XDG_CACHE_HOME", folder):
                import arviz
    return arviz


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment in the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _container(datasets: Mapping[str, xarray.Dataset], attrs: dict[str, Any]) -> Any:
    arviz = _import_arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        import xarray

        tree = xarray.DataTree.from_dict(dict(datasets))
        tree.attrs = attrs
        return tree
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not defined in the InferenceData scheme.*")
        return arviz.InferenceData(attrs=attrs, **datasets)


def _dataset(
    name: str,
    variables: Mapping[str, Any],
    coords: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]],
) -> xarray.Dataset:
    import xarray

    lead = () if name.endswith("data") else SAMPLE_DIMS
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    sizes: dict[str, tuple[int, str]] = {}  # size of a dimension, and the variable that set it
    for variable, value in variables.items():
        array = np.asarray(value)
        if array.ndim < len(lead):
            raise ValueError(
                f"{name}[{variable!r}] must start with the axes {lead}, got shape {array.shape}"
            )
        trailing = array.ndim - len(lead)
        own = tuple(dims.get(variable, [f"{variable}_dim_{i}" for i in range(trailing)]))
        if len(own) != trailing:
            raise ValueError(
                f"dims[{variable!r}] must name the {trailing} axes that follow {lead} in "
                f"{name}, got {own}"
            )
        arrays[variable] = (lead + own, array)
        for dim, size in zip(lead + own, array.shape, strict=True):
            known, by = sizes.setdefault(dim, (size, variable))
            if known != size:
                raise ValueError(
                    f"{name}[{variable!r}] must have {known} entries along {dim!r} like "
                    f"{by!r}, got {size}"
                )
    labels = {}
    for dim, (size, _) in sizes.items():
        if dim in coords:
            label = _labels(coords[dim])
            if label.shape != (size,):
                raise ValueError(
                    f"coords[{dim!r}] must have {size} labels for group {name!r}, "
                    f"got shape {label.shape}"
                )
            labels[dim] = label
        elif dim != "token":
            labels[dim] = np.arange(size)
    return xarray.Dataset(arrays, coords=labels)


def _labels(values: Any) -> np.ndarray:
    """Return labels as an array; text as objects, so that one long word does not widen all."""
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "UT" else array


def _plain(value: object) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _compression(dataset: xarray.Dataset) -> dict[str, dict[str, Any]]:
    return {
        str(name): {"zlib": True, "complevel": 4, "shuffle": True}
        for name, variable in dataset.data_vars.items()
        if variable.size >= _COMPRESS_FROM and variable.dtype.kind in "biuf"
    }
