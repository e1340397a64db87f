"""What a corpus is made of: arrays, names, and the digest where it is known already."""

from typing import Any, NamedTuple

import numpy as np

from bnp_models.data.checks import check_doc_names, check_vocabulary, documents, integers, tokens
from bnp_models.data.names import Names

__all__ = ["LEAVES", "CorpusArrays", "check_arrays", "checked", "frozen", "is_mapped"]

LEAVES = ("doc", "word", "doc_length", "group", "label", "author_ptr", "author_idx")
"""Names of the arrays."""


class CorpusArrays(NamedTuple):
    """The arrays and names of a corpus, checked."""

    arrays: dict[str, np.ndarray]
    """Read-only, by their names in `LEAVES`; those that a corpus lacks are left out."""
    names: Names
    digest: str | None = None
    """Digest of arrays and names; None if it was not computed yet."""


def checked(
    doc: Any, word: Any, vocabulary: tuple[str, ...], known: dict[str, Any]
) -> CorpusArrays:
    """Check the tokens and return the parts of their corpus.

    Parameters
    ----------
    doc, word
        Document and word of each token.
    vocabulary
        The words; checked already.
    known
        Arrays and names of the documents, as `checks.documents` returns them.
    """
    doc_names = known["doc_names"]
    doc, word = tokens(doc, word, len(doc_names), len(vocabulary), doc_names)
    arrays = {name: known[name] for name in LEAVES if name in known}
    arrays |= {"doc": doc, "word": word, "doc_length": np.bincount(doc, minlength=len(doc_names))}
    names = {name: value for name, value in known.items() if name not in LEAVES}
    return frozen(arrays, Names(vocabulary=vocabulary, **names))


def check_arrays(
    doc: Any,
    word: Any,
    *,
    num_docs: Any = None,
    num_words: Any = None,
    vocabulary: Any = None,
    doc_names: Any = None,
    **about: Any,
) -> CorpusArrays:
    """Check arrays and names, see `Corpus.from_arrays`; `about` are those of `checks.documents`."""
    doc = integers("doc", doc)
    if num_docs is None:
        num_docs = int(doc[-1]) + 1 if doc_names is None and len(doc) else None
    known = documents(doc_names=check_doc_names(doc_names, num_docs), **about)
    return checked(doc, word, check_vocabulary(vocabulary, num_words), known)


def frozen(arrays: dict[str, np.ndarray], names: Names) -> CorpusArrays:
    """Return read-only copies of arrays that are checked already; mapped arrays are not copied."""
    if not arrays["word"].size:
        raise ValueError("no token is left; keep more words, or documents that have some")
    copies: dict[str, Any] = {}
    for name, array in arrays.items():
        dtype = np.float32 if array.dtype.kind == "f" else np.int32
        copies[name] = array if is_mapped(array) else np.array(array, dtype)
        copies[name].setflags(write=False)
    return CorpusArrays(copies, names)


def is_mapped(array: Any) -> bool:
    """Tell whether an array is a view of a file that is mapped into memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
