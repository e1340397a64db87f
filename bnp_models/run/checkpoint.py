"""Checkpoints of a run: a folder of plain `.npz` and JSON files, each written whole or not at all.

```
header.json         what is run: model, options, sizes, versions, digest of the data
data.npz            the data; a folder `data` with the arrays of a mapped corpus
state.npz           sampler state after the last saved sweep (random keys as integers)
draws-00000000.npz  kept draws, named by the number of the first; states-*.npz likewise
history.npz         log joint density and topics in use on the way, see `history`
```

Draws and history are written before the state that follows them. A killed run therefore leaves a
state and all draws before it. Draws after that state are made again, with the same values. Nothing
is pickled.

Every file has a SHA-256 of its content, which is compared when it is read: a header as the entry
`checksum`, an `.npz` file at its end. A mapped corpus has its digest.
"""

import json
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
    "DATA",
    "check_header",
    "has_checkpoint",
    "read_blocks",
    "read_header",
    "read_history",
    "read_state",
    "write_block",
    "write_header",
    "write_history",
    "write_state",
]

FORMAT = "bnp-run 2"
DATA = "data.npz"

FIX = "restore it, or begin anew in another folder"


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        return read_sealed(path, FIX, required=True)
    except ValueError as error:
        raise ValueError(f"checkpoint {error}") from error


def has_checkpoint(folder: Path) -> bool:
    """Tell whether a run was begun in this folder."""
    return (folder / "header.json").exists()


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
        If there is no run in the folder, or its header is damaged or of another format.
    """
    path = folder / "header.json"
    if not path.exists():
        raise ValueError(f"checkpoint {folder} holds no run: header.json is missing")
    try:
        header = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # neither JSON nor text
        raise ValueError(f"checkpoint {path} is damaged ({error}); {FIX}") from None
    header = header if isinstance(header, dict) else {"format": header}
    stored, found = header.pop("checksum", None), header.get("format")
    if found != FORMAT:
        raise ValueError(f"checkpoint {path} has format {found!r}, this version reads {FORMAT!r}")
    if stored != checksum(header):
        raise ValueError(
            f"checkpoint {path} is damaged: its content does not fit its checksum; {FIX}"
        )
    return header


def check_header(folder: Path, expected: dict[str, Any]) -> None:
    """Check that a run was begun with the expected arguments.

    Raises
    ------
    ValueError
        If entries differ; the message names them with both values.
    """
    found = read_header(folder)
    expected = json.loads(json.dumps(expected))
    parts = list(_differences("", found, expected))
    if parts:
        raise ValueError(
            f"checkpoint {folder} belongs to another run: {'; '.join(parts)}. Use another folder, "
            "or the arguments the run was begun with"
        )


def _differences(prefix: str, found: dict[str, Any], expected: dict[str, Any]):
    for name, now in expected.items():
        was = found.get(name)
        if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
            yield from _differences(f"{prefix}{name}.", was, now)
        elif was != now:
            yield f"{prefix}{name} was {was!r} and is now {now!r}"


def _leaves(tree: PyTree) -> dict[str, Any]:
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
    arrays = _read_npz(path)
    leaves = _leaves(template)
    if set(arrays) != {*leaves, "num_kept"}:
        raise ValueError(f"checkpoint {path} does not fit the model: it has {sorted(arrays)}")
    read = []
    for name, leaf in leaves.items():
        x = jnp.asarray(arrays[name])
        if is_key(leaf):
            x = jax.random.wrap_key_data(x)  # key type: as the header says
        if x.dtype != leaf.dtype or x.ndim != leaf.ndim:
            raise ValueError(
                f"checkpoint {path} does not fit the model: {name} is {x.dtype} with {x.ndim} axes"
            )
        read.append(x)
    return jax.tree.unflatten(jax.tree.structure(template), read), int(arrays["num_kept"])


def write_block(folder: Path, kind: str, start: int, arrays: dict[str, np.ndarray]) -> None:
    """Write draws [chain, n, ...] of which the first is number `start`."""
    write_sealed(folder / f"{kind}-{start:08d}.npz", arrays)


def read_blocks(folder: Path, kind: str, stop: int) -> list[tuple[int, dict[str, np.ndarray]]]:
    """Read the blocks that start before draw `stop`, in order.

    Later blocks, and files that a killed process left half written, are removed.
    """
    for path in folder.glob(f".{kind}-*.tmp"):
        path.unlink(missing_ok=True)
    blocks = []
    for path in sorted(folder.glob(f"{kind}-*.npz")):
        start = int(path.stem.split("-")[1])
        if start >= stop:
            path.unlink()  # drawn after the last saved state: will be drawn again
        else:
            blocks.append((start, _read_npz(path)))
    return blocks


def write_history(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the history of a run, in place of an earlier one."""
    write_sealed(folder / "history.npz", arrays)


def read_history(folder: Path) -> dict[str, np.ndarray] | None:
    """Read the history of a run; None where none was written yet."""
    path = folder / "history.npz"
    return _read_npz(path) if path.exists() else None
