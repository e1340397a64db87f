"""Names of the words and documents of a corpus, and of the rows and features of sources.

Names are static data of a pytree: JAX compares and hashes them on every call of a compiled
function. Both use one digest, which is computed once. Data that are built or loaded again have the
same digest, so JAX reuses the compiled functions.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["Names", "SourceNames", "make_unique"]


class _ComparedByDigest:
    """Equality and hash of a dataclass of strings, by the digest of its fields.

    Fields that are declared with `compare=False` are left out.
    """

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the names, in hex; the same in every process."""
        names: Any = self
        compared = [field for field in dataclasses.fields(names) if field.compare]
        fields = [getattr(names, field.name) for field in compared]
        return hashlib.sha256(json.dumps(fields).encode("ascii")).hexdigest()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _ComparedByDigest):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.digest[:8]})"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Names(_ComparedByDigest):
    """Hold the strings of a corpus; equal when all names are equal, in order.

    Raw texts, and how they were read, are stored here too but not compared. A corpus with texts
    therefore has the same digest, and the same draws, as one without them.
    """

    vocabulary: tuple[str, ...]
    doc_names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    author_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = dataclasses.field(default=None, compare=False)
    tokenizer: str | None = dataclasses.field(default=None, compare=False)  # JSON, see `texts`


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SourceNames(_ComparedByDigest):
    """Hold the strings of a set of sources; equal when all of them are equal, in order."""

    source_names: tuple[str, ...]
    row_names: tuple[str, ...]
    feature_names: tuple[str, ...]


def make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names: a name that was there before gets a number, as in "name (2)"."""
    taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: dict[str, int] = {}
    found = []
    for name in names:
        number = seen.get(name, 0) + 1
        new = name
        while number > 1 and (new := f"{name} ({number})") in taken:
            number += 1
        seen[name] = number
        taken.add(new)
        found.append(new)
    return tuple(found)
