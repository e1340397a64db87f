"""The data in the folder of a run: an `.npz` file, or a folder beside it for a mapped corpus."""

from pathlib import Path
from typing import Any

from bnp_models.data.mapped import is_mapped_corpus

__all__ = ["save_data", "saved_data"]


def save_data(data: Any, path: Path) -> None:
    """Write data to an `.npz` file, or a mapped corpus to a folder of the same name without `.npz`.

    Raises
    ------
    ValueError
        If something else is where that folder should be. The same corpus is left as it is.
    """
    if not getattr(data, "is_mapped", False):
        data.save(path)
        return
    folder = path.with_suffix("")
    if not (is_mapped_corpus(folder) and type(data).load(folder) == data):
        data.save(folder, mapped=True)
    path.unlink(missing_ok=True)  # of other data; it would be found first


def saved_data(path: Path) -> Path:
    """Return the file or folder where `save_data(data, path)` put the data."""
    folder = path.with_suffix("")
    return folder if not path.exists() and is_mapped_corpus(folder) else path
