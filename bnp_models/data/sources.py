"""The data of the factor models: rows from several sources over the same features."""

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.core import Tracer
from jaxtyping import Bool, Float, Int, Num

from bnp_models.data import arguments
from bnp_models.data.arguments import BYTES_PER_CELL, check_memory
from bnp_models.data.checks import distinct, order_by_name, positions, strings
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.documents import (
    ComparedByDigest,
    SourceNames,
    draw_test,
    encode,
    number_of_tests,
)
from bnp_models.data.storage import array_digest, load_checked, write_sealed

__all__ = [
    "MAX_COUNT",
    "Sources",
    "Standardisation",
    "as_sources",
    "check_counts",
    "check_sources",
    "standardisation",
    "with_features",
]

MAX_COUNT = 2**20
"""Largest count. The kernels compute rates in float32, so the log likelihood ratios of a count have
rounding errors in proportion to it: up to about 0.06 nats here, and 1 nat at 2**24."""
FLOAT32_MAX = float(np.finfo(np.float32).max)


def _as_matrix(argument: str, values: Any) -> Num[np.ndarray, "N M"]:
    """Make a dense matrix of numbers with at least one row and one column; masks are kept."""
    if scipy.sparse.issparse(values):
        _check_cells(f"{argument} has shape {values.shape}", math.prod(values.shape), 1)
        wide = values.dtype.kind in "biu"  # the sum of duplicates may be larger than they are
        values = (values.astype(np.int64) if wide else values).toarray()
    masked = isinstance(values, np.ma.MaskedArray)
    array = values if masked else arguments.to_array(argument, values)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{argument} has dtype {array.dtype} and shape {array.shape}; give a matrix of "
            "numbers, rows by features"
        )
    if not array.size:
        raise ValueError(
            f"{argument} has shape {array.shape}; give every source at least one row, and the rows "
            "at least one feature"
        )
    return array.astype(np.int32) if array.dtype == bool else array


def _by_name(arrays: Sequence[Any], feature_names: Any) -> tuple[list[Any], Any]:
    """Return matrices with the columns of frames in one order, and the names of the columns.

    If the columns of all frames are 0, 1, ... in this order, they have no names, as those of
    matrices.
    """
    import pandas as pd

    if feature_names is not None:
        feature_names = distinct("feature_names", feature_names)
    labels = {
        j: list(array.columns) for j, array in enumerate(arrays) if isinstance(array, pd.DataFrame)
    }
    numbers = [str(i) for i in range(max(map(len, labels.values()), default=0))]
    if all(list(map(str, columns)) == numbers for columns in labels.values()) and (
        feature_names is None or {*feature_names} != {*numbers}
    ):
        labels = {}
    found, wanted = [], "feature_names"
    for j, array in enumerate(arrays):
        if j not in labels:
            if hasattr(array, "columns") and not isinstance(array, pd.DataFrame):
                raise ValueError(
                    f"arrays[{j}] is of type {type(array).__name__}; give a pandas frame, such as "
                    "to_pandas() makes"
                )
            found.append(array)
            continue
        own = f"columns of arrays[{j}]"
        names = distinct(own, [str(column) for column in labels[j]])
        if feature_names is None:
            feature_names, wanted = names, own
        found.append(array.iloc[:, order_by_name(own, names, wanted, feature_names)])
    return found, feature_names


def _check_cells(what: str, num_rows: int, num_features: int) -> None:
    """Check that a dense matrix fits into memory; `what` is the argument with its value."""
    fix = "give fewer rows, or leave out features: every entry is stored, zeros too"
    check_memory(what, num_rows * num_features * BYTES_PER_CELL, fix)


def _read_frame(
    frame: Any, source: Any, names: Any
) -> tuple[Num[np.ndarray, "N M"], Int[np.ndarray, " N"], SourceNames]:
    """Return the matrix of a pandas frame, the source of each row, and all names.

    See `Sources.from_frame`. Missing values become NaN.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame is of type {type(frame).__name__}; give a pandas.DataFrame")
    if not isinstance(source, Hashable) or source not in frame.columns:
        raise ValueError(f"source is {source!r}, which is no column; give one of the frame's")
    data = frame.drop(columns=source)
    for column, dtype in data.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ValueError(
                f"frame has the column {column!r} of dtype {dtype}; drop it, or turn it into "
                "numbers"
            )
    feature_names = distinct("columns of frame", [str(column) for column in data.columns])
    row_names = tuple(str(label) for label in frame.index)
    ids, source_names = encode(
        f"source {source!r}",
        frame[source].tolist(),
        names,
        "names",
        lambda n: f"row {row_names[n]!r}",
    )
    absent = np.setdiff1d(np.arange(len(source_names)), ids)
    if absent.size:
        raise ValueError(
            f"names has {source_names[absent[0]]!r}, a source without rows in the frame; leave it "
            "out"
        )
    if data.isna().to_numpy().any():
        matrix = data.to_numpy(np.float64, na_value=np.nan)
    else:
        matrix = arguments.to_array("frame", data)
    return _as_matrix("frame", matrix), ids, SourceNames(source_names, row_names, feature_names)


def _kind_of(kind: object, arrays: Sequence[Num[np.ndarray, "_ _"]]) -> str:
    """Return "counts" or "reals"; None takes integers for counts and floats for reals."""
    if kind is None:
        return "reals" if any(array.dtype.kind == "f" for array in arrays) else "counts"
    return arguments.one_of("kind", kind, ("counts", "reals", None))


def _check_entries(
    array: Num[np.ndarray, "N M"],
    kind: str,
    allow_missing: bool,
    where: Callable[[int, int], str],
) -> tuple[Num[np.ndarray, "N M"], Bool[np.ndarray, "N M"] | None]:
    """Return a matrix in its stored form, and a mask of the observed entries (None: all are).

    Counts become int32 and reals float64; missing entries become 0. `where(n, i)` describes
    `array[n, i]` in messages.
    """
    hidden, array = np.ma.getmaskarray(array), np.ma.getdata(array)
    missing = hidden | np.isnan(array)
    if missing.any() and not allow_missing:
        raise ValueError(
            f"{_first(missing, where)} is {'masked' if hidden.any() else 'nan'}; fill it in, or "
            "declare such entries to be missing with allow_missing=True"
        )
    filled = np.where(missing, np.zeros((), array.dtype), array) if missing.any() else array
    observed = ~missing if missing.any() else None
    if kind == "reals":
        wrong = ~(np.abs(filled.astype(np.float64)) <= FLOAT32_MAX)
        if wrong.any():
            raise ValueError(
                f"{_first(wrong, where)} is {filled[wrong][0]}; give finite numbers within float32"
            )
        return filled.astype(np.float64), observed
    wrong = (filled < 0) | (filled > MAX_COUNT) | (filled != np.floor(filled))
    if wrong.any():
        raise ValueError(
            f"{_first(wrong, where)} is {filled[wrong][0]}; counts are whole numbers from 0 to "
            "2**20 = 1048576; for other numbers give kind='reals', to a model of real numbers"
        )
    return filled.astype(np.int32), observed


def _first(wrong: Bool[np.ndarray, "N M"], where: Callable[[int, int], str]) -> str:
    n, i = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return where(int(n), int(i))


SCHEMA = "bnp-sources-1"
LEAVES = ("values", "source", "observed")
NAMES = ("source_names", "row_names", "feature_names")

Leaf = Any  # an array; any object inside a JAX tree transformation, so not checked by type


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sources(ComparedByDigest):
    """Data matrices of several sources over common features, stacked; immutable.

    Build sources with `from_arrays`, `from_frame`, `from_corpus` or `load`, which check their
    input. The class itself checks nothing, because JAX calls it in every tree transformation of the
    data. The data are a pytree: arrays are leaves, sizes and names are static. Two sets of sources
    are equal when they have the same `digest`.

    Sizes: N rows in all, M features, J sources.

    Attributes
    ----------
    values : Int["N M"] or Float["N M"]
        Counts as int32 or reals as float64; the rows of source 0 come first, then those of source
        1, and so on. A row or a column of zeros is legal. Missing entries are 0 here.
    source : Int[" N"]
        Source of each row, in non-decreasing order.
    observed : Bool["N M"] or None
        False where an entry is missing; None if no entry is.
    rows_per_source : tuple of int
        Number of rows of each source; static, none is zero.
    names : SourceNames
        `source_names`, `row_names` and `feature_names`; each is also a property. Sources, rows and
        features without names are called "0", "1", ....

    Notes
    -----
    The constructors make read-only NumPy arrays, so no device is needed to build the data;
    `jax.device_put(sources)` moves them to one.

    The constructors share two options. `kind` is "counts" or "reals"; None takes integers for
    counts and floats for reals. Counts are whole numbers from 0 to 2**20, the largest for which
    the sampler of counts is exact up to rounding. Reals are finite in float32. NaN and entries
    that are masked are refused unless `allow_missing` is true; they are then missing.

    Reals are float64, so that their means can be subtracted without loss. On a device they are
    float32, as everywhere in JAX. `digest` is the same in both places, because reals are rounded to
    float32 for it.

    Raises
    ------
    ValueError
        From every constructor, before it does anything else, if an argument is invalid. The message
        names the argument, its value and how to fix it.
    """

    values: Leaf
    source: Leaf
    observed: Leaf = None
    rows_per_source: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    names: SourceNames = dataclasses.field(metadata={"static": True})

    @classmethod
    def from_arrays(
        cls,
        arrays: Any,
        *,
        names: Any = None,
        feature_names: Any = None,
        row_names: Any = None,
        kind: str | None = None,
        allow_missing: bool = False,
    ) -> "Sources":
        """Take one matrix per source, [rows, M].

        Parameters
        ----------
        arrays
            The matrices, in a list, or in a dictionary by the names of the sources: SciPy sparse
            ones, pandas frames, or anything that NumPy reads as a matrix. Columns of frames that
            have names are put together by name, in the order of `feature_names` or of the first
            such frame; their index is not used.
        names
            Names of the J sources, distinct; not beside a dictionary, which has them.
        feature_names
            Names of the M features, distinct.
        row_names
            Names of the N rows, in the order of the sources.
        kind, allow_missing
            See the class.

        Examples
        --------
        >>> Sources.from_arrays([[[1, 0, 2]], [[0, 0, 3], [1, 1, 1]]], names=["a", "b"])
        Sources(2 sources, 3 rows, 3 features, counts)
        """
        if isinstance(arrays, Mapping):
            if names is not None:
                raise ValueError(
                    f"names is {arguments.short_repr(names)} beside a dictionary of arrays, which "
                    "has the names of the sources; give one of them"
                )
            names, arrays = list(arrays), list(arrays.values())
        if not isinstance(arrays, (list, tuple)):
            raise ValueError(
                f"arrays is of type {type(arrays).__name__}; give a list of matrices, one per "
                "source, or a dictionary of them"
            )
        if not arrays:
            raise ValueError("arrays is empty; give at least one source")
        arguments.flag("allow_missing", allow_missing)
        arrays, feature_names = _by_name(arrays, feature_names)
        matrices = [_as_matrix(f"arrays[{j}]", array) for j, array in enumerate(arrays)]
        num_features = matrices[0].shape[1]
        for j, matrix in enumerate(matrices):
            if matrix.shape[1] != num_features:
                raise ValueError(
                    f"arrays[{j}] has {matrix.shape[1]} features but arrays[0] has {num_features}; "
                    "give all sources the same features, in the same order"
                )
        sizes = tuple(len(matrix) for matrix in matrices)
        end = np.cumsum(sizes)

        def where(n: int, i: int) -> str:
            j = int(np.searchsorted(end, n, side="right"))
            return f"arrays[{j}][{n - (end[j] - sizes[j])}, {i}]"

        checked = SourceNames(
            distinct("names", _names("names", names, len(sizes), "sources")),
            _names("row_names", row_names, sum(sizes), "rows"),
            distinct(
                "feature_names", _names("feature_names", feature_names, num_features, "features")
            ),
        )
        kind = _kind_of(kind, matrices)
        values, observed = _check_entries(np.ma.concatenate(matrices), kind, allow_missing, where)
        return _frozen(values, sizes, observed, checked)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        source: Any,
        *,
        names: Any = None,
        kind: str | None = None,
        allow_missing: bool = False,
    ) -> "Sources":
        """Take a pandas frame with one row per data point and a column that says its source.

        The index becomes `row_names`. All other columns become features and must hold numbers. Rows
        are regrouped by source; inside a source they keep their order.

        Parameters
        ----------
        frame
            A `pandas.DataFrame`.
        source
            Label of the column with the sources, strings or integers; they are sorted.
        names
            All sources, in another order; each must have rows.
        kind, allow_missing
            See the class; pandas' own missing values count as NaN.
        """
        arguments.flag("allow_missing", allow_missing)
        matrix, ids, names = _read_frame(frame, source, names)
        values, observed = _check_entries(
            matrix,
            _kind_of(kind, [matrix]),
            allow_missing,
            lambda n, i: f"frame, row {names.row_names[n]!r}, column {names.feature_names[i]!r},",
        )
        return _grouped(values, ids, observed, names)

    @classmethod
    def from_corpus(cls, corpus: Corpus, by: str | None = "group") -> "Sources":
        """Take the documents of a corpus as rows of word counts, and its groups as sources.

        Groups without a document are left out; documents without a word stay, as rows of zeros.

        Parameters
        ----------
        by
            "group", or None to take all documents as one source.
        """
        as_corpus("corpus", corpus)
        arguments.one_of("by", by, ("group", None))
        if by == "group" and corpus.group is None:
            raise ValueError("by is 'group' but the corpus has no groups; make it None")
        _check_cells(f"corpus is {corpus}", corpus.num_docs, corpus.num_words)
        values, _ = _check_entries(
            corpus.to_counts().toarray(),
            "counts",
            False,
            lambda d, v: f"count of {corpus.vocabulary[v]!r} in {corpus.doc_names[d]!r}",
        )
        ids = np.zeros(corpus.num_docs, np.int32) if by is None else np.asarray(corpus.group)
        source_names = ("all",) if by is None else corpus.group_names
        names = SourceNames(source_names, corpus.doc_names, corpus.vocabulary)
        return _grouped(values, ids, None, names)

    @property
    def num_rows(self) -> int:
        """N, the number of rows of all sources."""
        return sum(self.rows_per_source)

    @property
    def num_features(self) -> int:
        """M, the number of features."""
        return len(self.names.feature_names)

    @property
    def num_sources(self) -> int:
        """J, the number of sources."""
        return len(self.rows_per_source)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the J sources."""
        return self.names.source_names

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the N rows; a selection of rows keeps them."""
        return self.names.row_names

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the M features."""
        return self.names.feature_names

    @property
    def kind(self) -> str:
        """Kind of the values, "counts" or "reals"."""
        return "counts" if np.dtype(self.values.dtype).kind == "i" else "reals"

    @property
    def coords(self) -> dict[str, tuple[str, ...]]:
        """Labels of the dims `source`, `row` and `feature`."""
        names = self.names
        return {
            "source": names.source_names,
            "row": names.row_names,
            "feature": names.feature_names,
        }

    @functools.cached_property
    def row_ptr(self) -> Int[np.ndarray, " J_plus_1"]:
        """Bounds: the rows of source j run from row_ptr[j] to row_ptr[j + 1]."""
        return np.concatenate([[0], np.cumsum(self.rows_per_source, dtype=np.int64)])

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of arrays, sizes and names, in hex; the same in every process."""
        header = f"{SCHEMA} {self.names.digest}"
        arrays = self._arrays()
        if arrays["values"].dtype == np.float64:
            arrays["values"] = arrays["values"].astype(np.float32)  # as on a device
        return array_digest(header, arrays)

    def __repr__(self) -> str:
        parts = [f"{self.num_sources} sources", f"{self.num_rows} rows"]
        parts.append(f"{self.num_features} features")
        if hasattr(self.values, "dtype"):
            parts.append(self.kind)
        if self.observed is not None:
            parts.append("some missing")
        return f"Sources({', '.join(parts)})"

    def matrix(self, source: str) -> Num[np.ndarray, "n M"]:
        """Return the rows of one source, by its name; missing entries are 0."""
        (j,) = self.positions_of([arguments.one_of("source", source, self.source_names)])
        return np.asarray(self.values)[self.row_ptr[j] : self.row_ptr[j + 1]]

    def positions_of(self, source_names: Any) -> Int[np.ndarray, " n"]:
        """Return the positions of sources, given their names; scores of new rows use them."""
        index = {name: j for j, name in enumerate(self.source_names)}
        asked = arguments.texts("source_names", source_names)
        for name in asked:
            if name not in index:
                raise ValueError(
                    f"source_names has {name!r}; give names out of {list(self.source_names)}"
                    f"{arguments.meant(name, self.source_names)}"
                )
        return np.array([index[name] for name in asked], np.int32)

    def select(self, source_names: Any) -> "Sources":
        """Take some sources by their names, in the order given; no name may be repeated."""
        chosen = self.positions_of(distinct("source_names", source_names))
        if not len(chosen):
            raise ValueError("source_names is empty; give at least one source")
        place = np.full(self.num_sources, self.num_sources)
        place[chosen] = np.arange(len(chosen))
        moved = place[np.asarray(self.source)]
        rows = np.argsort(moved, kind="stable")[: (moved < len(chosen)).sum()]
        return self._take(rows, moved[rows], tuple(self.source_names[j] for j in chosen))

    def select_rows(self, rows: Any) -> "Sources":
        """Take some rows, in the order given inside each source; sources left empty are dropped.

        Parameters
        ----------
        rows
            Numbers of rows, in any order and also repeatedly, or a mask of N booleans.
        """
        rows = positions("rows", rows, self.num_rows, "row")
        if not len(rows):
            raise ValueError("rows is empty; give at least one row")
        _check_cells(f"rows has {len(rows)} entries", len(rows), self.num_features)
        return self._take(rows, np.asarray(self.source)[rows], self.source_names)

    def pooled(self, name: str = "all") -> "Sources":
        """Merge all rows into one source, for a model that ignores the sources."""
        arguments.text("name", name)
        zeros = np.zeros(self.num_rows, np.int32)
        return self._take(np.arange(self.num_rows), zeros, strings("name", [name]))

    def train_test_split(
        self, test_size: float | SupportsIndex = 0.2, *, seed: int = 0
    ) -> tuple["Sources", "Sources"]:
        """Split the rows at random into training and test rows, in proportion from each source.

        A source that gets no test row is left out of the test data.

        Parameters
        ----------
        test_size
            Number of test rows, or their share as a float.
        seed
            Seed of the split.
        """
        seed = arguments.seed("seed", seed)
        num_test = number_of_tests(test_size, self.num_rows, "row")
        source = np.asarray(self.source)
        is_test = draw_test(source, num_test, seed)
        train = np.bincount(source[~is_test], minlength=self.num_sources)
        if not train.all():
            name = self.source_names[int(np.argmin(train))]
            raise ValueError(
                f"test_size is {test_size}, which leaves the source {name!r} no row for training; "
                "make it smaller"
            )
        return self.select_rows(~is_test), self.select_rows(is_test)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data to a compressed `.npz` file, completely or not at all; see `load`."""
        path = arguments.path("path", path)
        content = {name: np.array(getattr(self.names, name), np.str_) for name in NAMES}
        content |= {"rows_per_source": np.array(self.rows_per_source)}
        content |= {"schema": np.array(SCHEMA), "digest": np.array(self.digest)}
        write_sealed(path, self._arrays() | content, compressed=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Sources":
        """Read sources that `save` wrote; check them as `from_arrays` does, and by their digest."""
        path = arguments.path("path", path)
        required = {"values", "rows_per_source", "digest", *NAMES}
        instead = "read other matrices with np.load, and take them with Sources.from_arrays"
        content = load_checked(path, SCHEMA, required, "Sources", instead)
        values, observed = content["values"], content.get("observed")
        if observed is not None:
            values = np.where(observed, values.astype(np.float64), np.nan)
        names = {name: content[name].tolist() for name in NAMES}
        sources = cls.from_arrays(
            np.split(values, np.cumsum(content["rows_per_source"])[:-1]),
            names=names["source_names"],
            row_names=names["row_names"],
            feature_names=names["feature_names"],
            kind="counts" if content["values"].dtype.kind == "i" else "reals",
            allow_missing=observed is not None,
        )
        if sources.digest != str(content["digest"]):
            raise ValueError(f"{path} is damaged: its content has another digest; save it again")
        return sources

    def _arrays(self) -> dict[str, np.ndarray]:
        leaves = {name: getattr(self, name) for name in LEAVES}
        return {name: np.asarray(leaf) for name, leaf in leaves.items() if leaf is not None}

    def _take(
        self, rows: Int[np.ndarray, " n"], source: Int[np.ndarray, " n"], names: tuple[str, ...]
    ) -> "Sources":
        """Take some rows and assign them to the sources given."""
        arrays = self._arrays()
        observed = arrays["observed"][rows] if "observed" in arrays else None
        row_names = tuple(self.row_names[n] for n in rows)
        known = SourceNames(names, row_names, self.feature_names)
        return _grouped(arrays["values"][rows], source, observed, known)


def as_sources(name: str, value: object) -> Sources:
    """Return a `Sources`, given as the argument `name`, or raise `ValueError`."""
    return arguments.instance(
        name,
        value,
        Sources,
        "a Sources",
        "build one with Sources.from_arrays, Sources.from_frame or Sources.from_corpus",
    )


def with_features(sources: Sources, names: tuple[str, ...]) -> Sources:
    """Return sources whose features are in the order of `names`; others raise `ValueError`."""
    if sources.feature_names == names:
        return sources
    own = "feature_names of the new rows"
    order = order_by_name(own, sources.feature_names, "those of the training data", names)
    arrays = sources._arrays()
    return _frozen(
        arrays["values"][:, order],
        sources.rows_per_source,
        arrays["observed"][:, order] if "observed" in arrays else None,
        dataclasses.replace(sources.names, feature_names=names),
    )


def check_sources(data: object, *, allow_missing: bool = False) -> Sources:
    """Return data that are `Sources`, not traced by JAX and without missing entries."""
    data = as_sources("data", data)
    if isinstance(data.values, Tracer):
        raise ValueError("data must be concrete when a chain starts: call init outside of jit")
    if data.observed is not None and not allow_missing:
        count = int((~np.asarray(data.observed)).sum())
        raise ValueError(
            f"data has {count} missing entries, which this model can't use: fill them in, or drop "
            "their rows"
        )
    return data


def check_counts(data: object, *, allow_missing: bool = False) -> None:
    """Raise `ValueError` as `check_sources` does, and for data that are not counts."""
    if check_sources(data, allow_missing=allow_missing).kind != "counts":
        raise ValueError(
            "data must hold counts, got reals: build it with kind='counts' if the numbers are whole"
        )


def _names(argument: str, names: Iterable[str] | None, length: int, unit: str) -> tuple[str, ...]:
    """Return `length` names; "0", "1", ... if `names` is None."""
    found = map(str, range(length)) if names is None else names
    return strings(argument, found, length, unit)


def _grouped(
    values: Num[np.ndarray, "N M"],
    source: Int[np.ndarray, " N"],
    observed: Bool[np.ndarray, "N M"] | None,
    names: SourceNames,
) -> Sources:
    """Group checked rows, in any order, by source; sources without a row are left out."""
    count = np.bincount(source, minlength=len(names.source_names))
    kept = np.flatnonzero(count)
    order = np.argsort(source, kind="stable")
    return _frozen(
        values[order],
        tuple(count[kept].tolist()),
        None if observed is None else observed[order],
        SourceNames(
            tuple(names.source_names[j] for j in kept),
            tuple(names.row_names[n] for n in order),
            names.feature_names,
        ),
    )


def _frozen(
    values: Num[np.ndarray, "N M"],
    rows_per_source: tuple[int, ...],
    observed: Bool[np.ndarray, "N M"] | None,
    names: SourceNames,
) -> Sources:
    """Return sources of read-only copies of arrays that are already checked."""
    source = np.repeat(np.arange(len(rows_per_source), dtype=np.int32), rows_per_source)
    arrays = {"values": values, "source": source}
    if observed is not None and not observed.all():
        arrays["observed"] = observed
    copies = {name: np.array(array) for name, array in arrays.items()}
    for copy in copies.values():
        copy.setflags(write=False)
    leaves: dict[str, Any] = copies
    return Sources(rows_per_source=rows_per_source, names=names, **leaves)


_ROUNDING = 1e-12  # a spread below this share of the largest value is rounding of float64


class Standardisation(NamedTuple):
    r"""Centre and scale of data for a model that has no mean of its own, in units of the data.

    The model sees $y_{ni} = (x_{ni} - m_i) / s$ in place of $x_{ni}$. The mean $m_i$ of a feature
    is taken over all rows of all sources: the sources share factors, so a difference between their
    means is for the factors to explain. There is one scale s for all features, because the model
    has one noise variance for all features.
    """

    mean: Any  # [M], float64
    scale: Any

    @property
    def log_scale(self) -> float:
        """Logarithm of the scale: each observed entry of x has this less log density than y."""
        return math.log(self.scale)

    def apply(
        self, values: Num[np.ndarray, "N M"], observed: Bool[np.ndarray, "N M"] | None = None
    ) -> Float[np.ndarray, "N M"]:
        """Return y in float64, zero where an entry is missing."""
        y = (np.asarray(values, np.float64) - self.mean) / self.scale
        return y if observed is None else np.where(observed, y, 0.0)


def standardisation(data: Sources, *, centre: bool, scale: bool) -> Standardisation:
    """Compute mean and scale from the observed entries of training data.

    Parameters
    ----------
    centre
        Whether to subtract the mean of each feature; if not, the means are zero.
    scale
        Whether to divide by the root mean square of the centred entries; if not, the scale is 1.

    Raises
    ------
    ValueError
        If a feature has no observed entry, so that its mean is unknown, or if all centred entries
        are zero, so that there is no scale. Values that JAX traces are not checked.

    Notes
    -----
    Concrete values are treated in float64: a mean that is large compared with the spread costs no
    precision. Traced values are treated in float32.
    """
    traced = isinstance(data.values, Tracer)
    xp: Any = jnp if traced else np
    x = xp.asarray(data.values, np.float32 if traced else np.float64)
    there = xp.ones(x.shape, bool) if data.observed is None else xp.asarray(data.observed)
    count = there.sum(axis=0)
    mean, unit = xp.zeros(x.shape[1], x.dtype), 1.0
    if centre:
        if not traced and not count.all():
            name = data.feature_names[int(np.argmin(count))]
            raise ValueError(
                f"data has no observed entry of the feature {name!r}, so that its mean is unknown: "
                "leave the feature out, or give centre=False, which takes all means to be zero"
            )
        mean = xp.where(there, x, 0.0).sum(axis=0) / xp.maximum(count, 1)
    if scale:
        squares = xp.where(there, (x - mean) ** 2, 0.0)
        unit = xp.sqrt(squares.sum() / xp.maximum(count.sum(), 1))
        if traced:
            unit = xp.where(unit > 0, unit, 1.0)
        elif unit <= _ROUNDING * np.abs(x).max():
            raise ValueError(
                "data has no spread, for all of its entries are equal to their means: give "
                "scale=False"
            )
        else:
            unit = float(unit)
    return Standardisation(mean, unit)
