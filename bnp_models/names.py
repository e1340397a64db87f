"""What a corpus calls its words, documents, groups, authors and labels.

Names are static data of a pytree: JAX compares and hashes them on every call of a compiled
function. `Names` does both through one digest, computed once, so that a corpus that is built or
loaded again finds the programs compiled for its twin.
"""

import dataclasses
import functools
import hashlib
import json

__all__ = ["Names"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Names:
    """Hold the strings of a corpus; equal when all of them are equal, in order."""

    vocabulary: tuple[str, ...]
    doc_names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    author_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the names, in hex; the same in every process."""
        fields = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return hashlib.sha256(json.dumps(fields).encode("ascii")).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Names):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Names({self.digest[:8]})"
