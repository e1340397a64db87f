"""The layout of a corpus for the kernels: flat token arrays, shared by all chains."""

import importlib.util
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from bnp_kernels.numerics.devices import current_device
from bnp_kernels.numerics.shards import (
    ONE_DEVICE,
    ONE_PART,
    DeviceParts,
    Shards,
    bounds_of_tokens,
    divide,
    spread,
)
from bnp_kernels.tokens.documents import Documents, line_up
from bnp_kernels.tokens.lanes import Lanes, pack
from bnp_kernels.tokens.scan import DocumentOrder, make_document_order

__all__ = [
    "TOKEN_SWEEPS",
    "Tokens",
    "WordTransform",
    "check_tokens",
    "default_token_sweep",
    "design_of",
    "group_of",
    "make_tokens",
    "max_word_count",
    "num_docs",
    "num_tokens",
    "own_docs",
]

TOKEN_SWEEPS = ("lanes", "pallas")
"""Ways to make the token sweep of the parallel schedule, see `make_tokens`."""

_CHUNK = 2**22
_DTYPES = {"group": np.int32, "label": np.int32, "design": np.float32}


class WordTransform(NamedTuple):
    """Rows of matrices from global to local words: the entries that are not zero.

    Word v of group g has the row g V + v. Padding has weight 0.
    """

    alternative: Int[Array, "R S"]  # global words
    weight: Float[Array, "R S"]


class Tokens(NamedTuple):
    """The tokens of a corpus, sorted by document, and their layout for both schedules.

    Where the corpus is divided over devices, `doc` counts from the first document of the device.
    """

    doc: Int[Array, " T"]
    word: Int[Array, " T"]
    doc_length: Int[Array, " D"]
    max_word_count: Integer[Array, ""]  # see the function of that name
    lanes: Lanes | Documents  # of the parallel schedule
    buckets: tuple[DocumentOrder, ...]  # of the sequential schedule
    shards: Shards = ONE_DEVICE
    whole: Any = None  # `Tokens` of the corpus, if it is divided and a sweep needs all of it
    group: Int[Array, " D"] | None = None  # for models with groups of documents
    label: Int[Array, " D"] | None = None  # for models with labels of documents
    design: Float[Array, "D F"] | None = None  # columns, for models with covariates of documents
    is_intercept: Bool[Array, " F"] | None = None  # which of these columns is one everywhere
    count_values: Int[Array, " N"] | None = None  # 0, 1, ..: how often a word may be in a topic
    transform: WordTransform | None = None  # for models with words of groups


def group_of(data: Tokens) -> Int[Array, " D"]:
    """Return the group of each document, for kernels that ask for groups."""
    assert data.group is not None
    return data.group


def design_of(data: Tokens) -> tuple[Float[Array, "D F"], Bool[Array, " F"]]:
    """Return the columns of covariates, and which is the intercept, for kernels that need them."""
    assert data.design is not None
    assert data.is_intercept is not None
    return data.design, data.is_intercept


def num_docs(data: Tokens) -> int:
    """Return the number of documents of the corpus, on however many devices they are."""
    local = data.doc_length.shape[0]
    return local if data.shards.axis_name is None else data.shards.num_docs


def num_tokens(data: Tokens) -> int:
    """Return the number of tokens of the corpus, on however many devices they are."""
    return data.doc.shape[0] if data.shards.axis_name is None else data.shards.num_tokens


def default_token_sweep() -> str:
    """Return "pallas" for GPUs that Triton has programs for (NVIDIA's since 2020), else "lanes"."""
    device = current_device()
    try:  # "9.0"; other makers' GPUs have words
        capability = float(getattr(device, "compute_capability", "none"))
    except ValueError:
        return "lanes"
    has_triton = importlib.util.find_spec("jax.experimental.pallas.triton") is not None
    return "pallas" if device.platform == "gpu" and capability >= 8 and has_triton else "lanes"


def make_tokens(
    doc: Int[np.ndarray, " T"],
    word: Int[np.ndarray, " T"],
    num_docs: int,
    *,
    num_lanes: int | None = None,
    token_sweep: str = "lanes",
    doc_length: Int[np.ndarray, " D"] | None = None,
    parts: DeviceParts = ONE_PART,
    axis_name: str | None = None,
    whole: bool = False,
    group: Int[np.ndarray, " D"] | None = None,
    label: Int[np.ndarray, " D"] | None = None,
    design: tuple[Float[np.ndarray, "D F"], Bool[np.ndarray, " F"]] | None = None,
    num_count_values: int | None = None,
    transform: tuple[Int[np.ndarray, "R S"], Float[np.ndarray, "R S"]] | None = None,
) -> Tokens:
    """Lay a corpus out for the kernels; runs on the host, on concrete arrays.

    Parameters
    ----------
    doc, word
        Document and word of each token, sorted by document. Order is checked, ranges of `word`
        are not.
    num_docs
        Number of documents, empty ones included.
    num_lanes
        Number of lanes of the parallel schedule; chosen for the corpus by default.
    token_sweep
        How the parallel schedule sweeps the tokens: by "lanes", or by a "pallas" kernel for GPUs.
        See `lanes.sweep_lanes`.
    doc_length
        Number of tokens of each document, if it is known. `doc` is then not checked.
    parts, axis_name
        Devices that share the documents, and the name of their axis; None: one device. The arrays
        are those of the parts that are here, on the host.
    whole
        Whether a sweep needs the whole corpus, where several devices share the documents.
    group, label
        Group and label of each document, for kernels that need them. Not checked.
    design
        Columns of covariates, and which of them is the intercept. Not checked.
    num_count_values
        For kernels with tables: one more than the largest number of tokens of a cell.
    transform
        Arrays of a `WordTransform`. Not checked.

    Raises
    ------
    ValueError
        If `doc` is not sorted, or names a document outside [0, num_docs), or if `token_sweep` has
        an unknown value.
    """
    if token_sweep not in TOKEN_SWEEPS:
        raise ValueError(f"token_sweep must be one of {TOKEN_SWEEPS}, got {token_sweep!r}")
    if doc_length is None:
        doc, word = check_tokens(doc, word, num_docs)
        doc_length = np.bincount(doc, minlength=num_docs).astype(np.int32)
    columns, marks = (None, None) if design is None else design
    is_intercept = None if marks is None else jnp.asarray(marks)
    of_docs: dict[str, Any] = {"group": group, "label": label, "design": columns}
    of_docs = {n: np.asarray(x, _DTYPES[n]) for n, x in of_docs.items() if x is not None}
    count_values = None if num_count_values is None else jnp.arange(num_count_values)
    rows = None if transform is None else WordTransform(*map(jnp.asarray, transform))
    most = jnp.asarray(max_word_count(word))

    def tokens(doc, word, doc_length, of_docs, **more):
        return Tokens(
            doc, word, doc_length, most, count_values=count_values, transform=rows,
            is_intercept=is_intercept, **of_docs, **more,
        )  # fmt: skip

    def undivided(lanes):
        bucket = make_document_order(doc_length)
        found = tokens(doc, word, doc_length, of_docs, lanes=lanes, buckets=(bucket,))
        return jax.tree.map(jnp.asarray, found)

    def for_sweeps(bounds=None):
        packed = pack(doc_length, word, num_lanes, doc_bounds=bounds, here=parts.here)
        if token_sweep == "lanes":
            return packed
        return line_up(doc_length, word, packed, doc_bounds=bounds, here=parts.here)

    if axis_name is None:
        return undivided(for_sweeps())
    bounds = divide(doc_length, parts.number)
    token_bounds = bounds_of_tokens(doc_length, bounds)
    shards = Shards(jnp.asarray(bounds), jnp.asarray(token_bounds), axis_name, num_docs, len(doc))
    return tokens(
        own_docs(doc, bounds, token_bounds, parts), spread(word, token_bounds, parts.here),
        spread(doc_length, bounds, parts.here),
        {n: spread(x, bounds, parts.here) for n, x in of_docs.items()},
        lanes=for_sweeps(bounds), buckets=(), shards=shards,
        whole=undivided(None) if whole else None,
    )  # fmt: skip


def own_docs(
    doc: Int[np.ndarray, " T"],
    bounds: Int[np.ndarray, " S1"],
    token_bounds: Int[np.ndarray, " S1"],
    parts: DeviceParts,
) -> Int[np.ndarray, " P"]:
    """Return the document of each token of the parts here, counted from the first of its device."""
    found = spread(doc, token_bounds, parts.here).reshape(len(parts.here), -1)
    return np.maximum(found - bounds[list(parts.here), None], 0).ravel()  # padding has 0


def max_word_count(word: Int[np.ndarray, " T"]) -> Integer[np.ndarray, ""]:
    """Count the most frequent word, in the dtype of word tables in loops over tokens.

    The dtype is uint16 if this largest count fits, else int32. Such loops wait for these tables, so
    smaller tables make them faster.
    """
    counts = np.zeros(int(word.max(initial=-1)) + 1, np.int64)
    for begin in range(0, len(word), _CHUNK):  # `bincount` makes a wider copy
        counts += np.bincount(word[begin : begin + _CHUNK], minlength=len(counts))
    most = counts.max(initial=0)
    return np.asarray(most, np.uint16 if most <= np.iinfo(np.uint16).max else np.int32)


def check_tokens(
    doc: Int[np.ndarray, " T"], word: Int[np.ndarray, " T"], num_docs: int
) -> tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"]]:
    """Return document and word of each token as int32, or raise `ValueError`: see `make_tokens`."""
    doc, word = np.asarray(doc, np.int32), np.asarray(word, np.int32)
    if doc.shape != word.shape or doc.ndim != 1:
        raise ValueError(
            f"doc and word must be vectors of one length, got shapes {doc.shape} and {word.shape}"
        )
    if np.any(np.diff(doc) < 0):
        t = int(np.argmax(np.diff(doc) < 0)) + 1
        raise ValueError(
            f"doc must be sorted, got {doc[t]} after {doc[t - 1]} at token {t}: sort the tokens"
        )
    if doc.size and not 0 <= doc[0] <= doc[-1] < num_docs:
        raise ValueError(
            f"doc must lie in [0, num_docs) with num_docs={num_docs}, "
            f"got values from {doc[0]} to {doc[-1]}"
        )
    return doc, word
