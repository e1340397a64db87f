"""Checkpoints of a run: a folder of plain `.npz` and JSON files, each written whole or not at all.

```
header.json         what is run: model, options, sizes, versions, digest of the data
data.npz            the data; a folder `data` with the arrays of a mapped corpus
state.npz           sampler state after the last saved sweep (random keys as integers)
draws-00000000.npz  kept draws, named by the number of the first; states-*.npz likewise
history.npz         log joint density and topics in use on the way, see `history`
```

The state before the first sweep is written first. Later draws and history are written before the
state that follows them. A killed run therefore leaves a state and all draws before it. Draws after
that state are made again, with the same values. Draws without a state are refused: the state was
lost. Nothing is pickled.

Every file has a SHA-256 of its content, which is compared when it is read: a header as the entry
`checksum`, an `.npz` file at its end. A mapped corpus has its digest.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from bnp_models.data.files import checksum, replacing
from bnp_models.data.storage import read_sealed, write_sealed
from bnp_models.run.processes import is_key

__all__ = [
    "DATA", "FIX", "check_header", "check_no_draws", "check_unused", "has_checkpoint",
    "read_header", "read_state", "write_header", "write_state",
]  # fmt: skip

FORMAT = "bnp-run 2"
DATA = "data.npz"

FIX = "restore it, or begin anew in another folder"

_ENTRIES = {
    "model": dict, "options": dict, "data": str, "num_devices": int, "versions": dict,
    "num_warmup": int, "num_samples": int, "num_chains": int, "thinning": int, "seed": int,
    "keep_states": int,
}  # fmt: skip
"""What every header has, beside its format."""


def has_checkpoint(folder: Path) -> bool:
    """Tell whether a run was begun in this folder."""
    return (folder / "header.json").exists()


def check_no_draws(folder: Path, lost: str) -> None:
    """Check that a folder which lacks a file of a run has no draws that belong to that file.

    Raises
    ------
    ValueError
        If there are draws or states; the message names the file that was lost.
    """
    found = sorted(
        path.name for kind in ("draws", "states") for path in folder.glob(f"{kind}-*.npz")
    )
    if found:
        raise ValueError(
            f"checkpoint {folder} has draws ({found[0]}) but lacks {lost}, without which they "
            f"can't be used: {FIX}"
        )


def check_unused(folder: Path) -> None:
    """Check that a run can begin in a folder: it must not hold draws or results of another one.

    Raises
    ------
    ValueError
        If it does; the message says what was found.
    """
    check_no_draws(folder, "header.json")
    if (folder / "draws.nc").exists() or has_checkpoint(folder / "checkpoint"):
        raise ValueError(
            f"checkpoint {folder} is the folder with the results of another run: give another "
            f"folder, or {folder / 'checkpoint'} to go on with that run's checkpoint"
        )


def write_header(folder: Path, header: dict[str, Any]) -> None:
    """Write the header; a folder with this file is a checkpoint."""
    header = {"format": FORMAT, **header}
    with replacing(folder / "header.json") as file:
        file.write(json.dumps({**header, "checksum": checksum(header)}, indent=1).encode())


def read_header(folder: Path) -> dict[str, Any]:
    """Read the header of a run.

    Raises
    ------
    ValueError
        If there is no run in the folder, or its header is damaged, of another format or not whole.
    """
    path = folder / "header.json"
    if not path.exists():
        raise ValueError(f"checkpoint {folder} holds no run: header.json is missing")
    try:
        header = json.loads(path.read_text("utf-8"))
        stored, found = header.pop("checksum", None), header.get("format")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:  # not such JSON
        raise ValueError(f"checkpoint {path} is damaged ({error}); {FIX}") from None
    if found != FORMAT:
        raise ValueError(f"checkpoint {path} has format {found!r}, this version reads {FORMAT!r}")
    if stored != checksum(header):
        raise ValueError(
            f"checkpoint {path} is damaged: its content does not fit its checksum; {FIX}"
        )
    for name, kind in _ENTRIES.items():
        if type(header.get(name)) is not kind:
            raise ValueError(
                f"checkpoint {path} is no header of a run: {name} is {header.get(name)!r}, not of "
                f"type {kind.__name__}; {FIX}"
            )
    return header


def check_header(folder: Path, found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that a run, whose header was found, was begun with the expected arguments.

    Raises
    ------
    ValueError
        If entries differ; the message names them with both values.
    """
    parts = list(_differences("", found, json.loads(json.dumps(expected))))
    if parts:
        raise ValueError(
            f"checkpoint {folder} belongs to another run: {'; '.join(parts)}. Use another folder, "
            "or the arguments the run was begun with"
        )


def _differences(prefix: str, found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    for name, now in expected.items():
        was = found.get(name)
        if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
            yield from _differences(f"{prefix}{name}.", was, now)
        elif was != now:
            yield f"{prefix}{name} was {was!r} and is now {now!r}"


def _leaves(tree: PyTree) -> dict[str, PyTree]:
    """List the leaves of a tree by their path."""
    return {jax.tree_util.keystr(path): x for path, x in jax.tree.leaves_with_path(tree)}


def write_state(folder: Path, state: PyTree, num_kept: int) -> None:
    """Write the leaves of a sampler state and the number of draws that belong to it."""
    arrays = {
        name: np.asarray(jax.random.key_data(x) if is_key(x) else x)
        for name, x in _leaves(state).items()
    }
    write_sealed(folder / "state.npz", {**arrays, "num_kept": np.asarray(num_kept)})


def read_state(folder: Path, template: PyTree) -> tuple[Any, int] | None:
    """Read a state with the structure of `template` (shapes may differ), or None if there is none.

    Raises
    ------
    ValueError
        If the file is damaged or does not hold a state of this structure.
    """
    path = folder / "state.npz"
    if not path.exists():
        return None
    arrays = read_sealed(path, FIX, required=True)
    if set(arrays) != {*_leaves(template), "num_kept"}:
        raise ValueError(f"checkpoint {path} does not fit the model: it has {sorted(arrays)}")

    def read(place: jax.tree_util.KeyPath, leaf: jax.Array | jax.ShapeDtypeStruct) -> jax.Array:
        name = jax.tree_util.keystr(place)
        x = jnp.asarray(arrays[name])
        if is_key(leaf):
            x = jax.random.wrap_key_data(x)  # key type: as the header says
        if x.dtype != leaf.dtype or x.ndim != leaf.ndim:
            raise ValueError(
                f"checkpoint {path} does not fit the model: {name} is {x.dtype} with {x.ndim} axes"
            )
        return x

    return jax.tree.map_with_path(read, template), int(arrays["num_kept"])
