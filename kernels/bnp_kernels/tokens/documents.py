"""A corpus as a list of documents, longest first: the layout of the Pallas sweep."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Int

from bnp_kernels.numerics.shards import bounds_of_tokens

__all__ = ["Documents", "line_up"]


class Documents(NamedTuple):
    """The documents of a corpus, longest first, and their tokens, in corpus order.

    Where the corpus is divided over devices, each device has its part of every array, padded to one
    length; documents and tokens are counted from the first ones of the device. A document of the
    padding has no tokens.
    """

    doc: Int[Array, " D"]
    begin: Int[Array, " D"]  # first token of the document
    length: Int[Array, " D"]
    word: Int[Array, " T"]
    of_token: Int[Array, " T"]  # document of the token
    rank: Int[Array, " T"]  # tokens of the document before the token
    lanes: Any  # `Lanes` of the same corpus, for sweeps that have no Pallas kernel


def line_up(
    doc_length: Int[np.ndarray, " D"],
    word: Int[np.ndarray, " T"],
    lanes: Any,
    *,
    doc_bounds: Int[np.ndarray, " S1"] | None = None,
    here: Sequence[int] = (0,),
) -> Documents:
    """Line up documents, longest first on each device, so that a long one does not begin last.

    Runs on the host, on concrete arrays, and so are the results.

    Parameters
    ----------
    doc_length
        Number of tokens of each document.
    word
        Word of each token, in corpus order.
    lanes
        `Lanes` of the same corpus.
    doc_bounds
        Documents of each device, see `shards.Shards`; None: one device has all.
    here
        Devices whose documents are wanted.
    """
    bounds = np.asarray([0, len(doc_length)] if doc_bounds is None else doc_bounds)
    first_token = bounds_of_tokens(doc_length, bounds)
    of_docs, of_tokens = (int(np.diff(x).max()) for x in (bounds, first_token))
    parts = []
    for device in here:
        length = np.asarray(doc_length[bounds[device] : bounds[device + 1]])
        begin, order = np.cumsum(length) - length, np.argsort(-length, kind="stable")
        of_token = np.repeat(np.arange(len(length)), length)
        rank = np.arange(len(of_token)) - begin[of_token]
        words = word[first_token[device] : first_token[device + 1]]
        docs = [_padded(x, of_docs) for x in (order, begin[order], length[order])]
        parts.append([*docs, *(_padded(x, of_tokens) for x in (words, of_token, rank))])
    joined: Any = map(np.concatenate, zip(*parts, strict=True))
    return Documents(*joined, lanes=lanes)


def _padded(x: np.ndarray, places: int) -> np.ndarray:
    """Return int32, with zeros at the end."""
    return np.pad(x.astype(np.int32), (0, places - len(x)))
