"""Covariates of documents as the columns of a regression, by a formula.

Formulas are those of the package formulaic, which are like R's: `~ rating + s(day) + rating:venue`.
A formula is Python that runs, so take none from someone that you do not trust. It sees the columns
of the covariates, formulaic's transforms (`bs`, `cr`, `poly`, `C`, `center`, `log`, ...), NumPy as
`np`, and `s`, the spline of this module. It does not see other variables.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.covariates import EXACT, as_covariates, as_date

__all__ = [
    "DATES", "INTERCEPT", "Column", "ColumnsOfDocuments", "Design", "StandardColumns",
    "columns_of_covariates", "make_design", "standard_columns", "times",
]  # fmt: skip

INTERCEPT = "intercept"
DATES = "datetime64[us]"
YEAR = 365.25 * 86400e6  # microseconds
SPLINE = 10  # degrees of freedom
_DATE = re.compile(r"\d{4}-?(\d\d|Q[1-4])")  # how texts of dates begin
_WHOLE = re.compile(r"(C\([^[]*\)\[(?:\w\.)?-?\d+)\.0(?=\])")  # a number that is a level
_CALL = re.compile(r"\w\((?:[^()]|\([^()]*\))*\)")
_POWER = re.compile(r"(\w+)\s*(?:\*\*|\^)")
_QUOTED = re.compile("`([^`]*)`")
_INSTEAD = {
    "Q": ": a name with a space stands between backticks, as in ~ `log length`",
    **dict.fromkeys(("spline", "smooth", "ns"), ": a spline is s(), as in ~ s(day)"),
}
_SMALL = 1e-8  # relative: what is left of a column after the others are taken out


class Column(NamedTuple):
    """A covariate as it enters a formula, for the documents that the regression uses."""

    name: str
    values: pd.Series  # numbers, or categories that all occur
    first: float | None = None  # of dates, which enter as years since this one: in microseconds
    grouped: bool = False  # numbers of which each is a level, as in C(year)

    @property
    def levels(self) -> list[Any] | None:
        """The levels, in order, or None for numbers and dates."""
        found = getattr(self.values.dtype, "categories", None)
        return None if found is None else found.tolist()

    @property
    def whole(self) -> bool:
        """Whether these are whole numbers."""
        if self.levels is not None or self.first is not None:
            return False
        return bool((self.values == np.floor(self.values)).all())

    def enter(self, argument: str, values: Sequence[Any] | np.ndarray | pd.Series) -> pd.Series:
        """Return values that a user gave for this covariate as they enter the formula."""
        if self.levels is not None:
            found = arguments.sequence(argument, values, f"levels of {self.name!r}", some=True)
            for value in found:
                if value not in self.levels:
                    raise ValueError(
                        f"{argument} must be among the levels {self.levels}, got "
                        f"{arguments.short_repr(value)}{arguments.meant(value, self.levels)}"
                    )
            same = [self.levels[self.levels.index(value)] for value in found]  # True for 1
            return pd.Series(pd.Categorical(same, categories=self.levels))
        numbers, dates = times(argument, values)
        if dates != (self.first is not None):
            kind = "numbers" if self.first is None else "dates"
            raise ValueError(
                f"{argument} must be {kind}, as {self.name!r} has, got "
                f"{arguments.short_repr(values)}"
            )
        entered = pd.Series(numbers if self.first is None else (numbers - self.first) / YEAR)
        unknown = entered[~entered.isin(self.values)] if self.grouped else entered[:0]
        if len(unknown):
            raise ValueError(
                f"{argument} must be among the values of {self.name!r}, which are levels in the "
                f"formula, got {self.shown(pd.Series(unknown))[0]}: without C() it is a number"
            )
        return entered

    def shown(self, entered: pd.Series) -> np.ndarray:
        """Return values that enter the formula as the user has them; whole numbers as such."""
        if self.levels:
            return np.asarray(entered.astype(object))
        if self.first is None:
            numbers = entered.to_numpy(float)
            whole = self.whole and (numbers == np.floor(numbers)).all()
            return numbers.astype(np.int64) if whole else numbers
        return np.round(entered.to_numpy(float) * YEAR + self.first).astype(np.int64).astype(DATES)


class Design(NamedTuple):
    """The columns of a regression, and what is needed to make rows of other covariates."""

    matrix: Float[np.ndarray, "N P"]
    terms: list[str]
    kept: Bool[np.ndarray, " D"]  # the N documents that are not empty, and miss no value
    left_out: dict[str, int]  # the others
    columns: dict[str, Column]  # that the formula uses
    reference: dict[str, Any]  # the level without a column, by the name of the covariate
    centre: dict[str, Any]  # where the intercept is: the mean of a number or date
    rows: Callable[[pd.DataFrame], Float[np.ndarray, "M P"]]


class ColumnsOfDocuments(NamedTuple):
    """Makes the columns that a fit has of covariates, for other documents."""

    covariates: pd.DataFrame  # of the documents that were fitted, those of the formula
    design: Design
    middle: Float[np.ndarray, " F"]
    scale: Float[np.ndarray, " F"]

    def __call__(self, corpus: Corpus, name: str) -> Float[np.ndarray, "D F"]:
        """Return the columns of a corpus; `name` is that of the argument, for messages.

        Raises
        ------
        ValueError
            If the corpus lacks a covariate, or a value is missing or no level of the fit.
        """
        return self.columns_of_table(corpus.covariates, name, "make it with covariates=")

    def columns_of_table(
        self, table: pd.DataFrame, name: str, advice: str
    ) -> Float[np.ndarray, "D F"]:
        """Return the columns of a table of covariates."""
        columns = self.design.columns
        if missing := [each for each in columns if each not in table]:
            raise ValueError(
                f"{name} must have the covariates {list(columns)}, as the corpus that was fitted "
                f"has, but {missing[0]!r} is missing: {advice}"
            )
        entered = {
            each: column.enter(f"{each!r} of {name}", pd.Series(table[each]))
            for each, column in columns.items()
        }
        return self.standard(self.design.rows(pd.DataFrame(entered)))

    def standard(self, matrix: Float[np.ndarray, "D F"]) -> Float[np.ndarray, "D F"]:
        """Shift and scale the columns of the formula."""
        return ((matrix - self.middle) / self.scale).astype(np.float32)


class StandardColumns(NamedTuple):
    """The columns of a regression with mean 0 and standard deviation 1, but for the intercept.

    Without an intercept only the standard deviations are 1.
    """

    matrix: Float[np.ndarray, "D F"]
    is_intercept: Bool[np.ndarray, " F"]
    terms: tuple[str, ...]
    to_units: Float[np.ndarray, "F F"]
    """Turns coefficients of these columns, [F, ...], into those of the columns of the formula."""
    of_docs: ColumnsOfDocuments
    design: Design


class _Rows(NamedTuple):
    """Documents of which nothing is known but their covariates."""

    covariates: pd.DataFrame

    @property
    def num_docs(self) -> int:
        return len(self.covariates)

    @property
    def doc_length(self) -> np.ndarray:
        return np.ones(len(self.covariates))


def standard_columns(formula: str | None, corpus: Corpus) -> StandardColumns:
    """Return the columns that a formula makes of the covariates of a corpus, for a model's prior.

    Raises
    ------
    ValueError
        As `effects`; or if a document misses a value.
    """
    return _of_corpus(formula, _Compared(corpus))


class _Compared:
    """A corpus that equals others with the same names and covariates."""

    def __init__(self, corpus: Corpus):
        self.corpus = corpus

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compared) and self.corpus.names == other.corpus.names

    def __hash__(self) -> int:
        return hash(self.corpus.names)


@functools.lru_cache(maxsize=4)
def _of_corpus(formula: str | None, compared: _Compared) -> StandardColumns:
    corpus = compared.corpus
    if corpus.covariates.columns.empty:
        raise ValueError(
            "data has no covariates: give every document some, as in "
            "Corpus.from_texts(texts, covariates=...)"
        )
    return columns_of_covariates(formula, corpus.covariates, corpus.doc_names)


def columns_of_covariates(
    formula: str | None, covariates: pd.DataFrame, doc_names: Sequence[str] | None = None
) -> StandardColumns:
    """Return what `standard_columns` makes, out of the covariates alone."""
    design = make_design(formula, None, _Rows(covariates), has_prior=True)
    if not design.kept.all():
        d = int(np.argmin(design.kept))
        raise ValueError(
            f"covariates must have a value for every document, {(~design.kept).sum()} documents "
            f"miss one, such as {doc_names[d] if doc_names else d!r}: fill them in, or leave these "
            "documents out by corpus.select"
        )
    is_intercept = np.array([term == INTERCEPT for term in design.terms])
    scale = np.where(is_intercept, 1.0, design.matrix.std(axis=0))
    middle = np.where(is_intercept, 0.0, design.matrix.mean(axis=0)) * is_intercept.any()
    to_units = np.diag(1 / scale)
    to_units[is_intercept] -= middle / scale
    used = pd.DataFrame(covariates[list(design.columns)])
    of_docs = ColumnsOfDocuments(used, design, middle, scale)
    return StandardColumns(
        of_docs.standard(design.matrix), is_intercept, tuple(design.terms), to_units, of_docs,
        design,
    )  # fmt: skip


def make_design(
    formula: str | pd.DataFrame | Mapping[str, Any] | None,
    covariates: pd.DataFrame | Mapping[str, Any] | None,
    corpus: Corpus | _Rows,
    *,
    has_prior: bool = False,
) -> Design:
    """Return the regression that a user asks for; a table without a formula has all its columns.

    See `topic_effects.effects` for the arguments and errors. Coefficients that have a prior do not
    need more documents than there are terms.
    """
    if isinstance(formula, pd.DataFrame | Mapping):
        if covariates is not None:
            raise ValueError(
                "covariates must be left out where the argument before has them already, got "
                f"{arguments.short_repr(covariates)}"
            )
        formula, covariates = None, formula
    arguments.optional(arguments.text, "formula", formula)
    frame = _frame(covariates, corpus)
    parsed, quoted, used, grouped = _parse(formula, list(frame))
    frame = as_covariates(frame[used], corpus.num_docs)
    assert frame is not None  # there is a column
    missing = np.asarray(frame.isna()).any(axis=1)
    there = np.asarray(corpus.doc_length) > 0
    kept = there & ~missing
    left_out = {"empty": int((~there).sum()), "missing": int((there & missing).sum())}
    if not kept.any():
        raise ValueError(
            f"covariates must have values for some of the documents, {used} are missing in all "
            f"{there.sum()} that are not empty"
        )
    columns = {n: _column(n, pd.Series(frame[n][kept]), grouped=n in grouped) for n in used}

    from formulaic.errors import DataMismatchWarning

    def make(spec: Any, values: Mapping[Any, Any], size: int) -> Any:
        table = pd.DataFrame(dict(values), index=pd.RangeIndex(size))
        table = table.rename(columns={name: inner for inner, name in quoted.items()})
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", DataMismatchWarning)  # a level that is not there
                return spec.get_model_matrix(table, context={"s": _spline()}, na_action="ignore")
        except Exception as error:  # whatever Python does, for a formula is a program
            raise ValueError(
                f"formula can't be computed from the covariates, got {formula!r}: "
                f"{_plain(error, quoted)}"
            ) from None

    made = make(parsed, {name: column.values for name, column in columns.items()}, int(kept.sum()))
    spec = made.model_spec
    terms = [_plain(str(name), quoted).replace("[T.", "[") for name in made.columns]
    if any(column.grouped and column.levels is None for column in columns.values()):
        terms = [_WHOLE.sub(r"\1", term) for term in terms]
    if "Intercept" in made.columns:
        terms[list(made.columns).index("Intercept")] = INTERCEPT
    matrix = made.to_numpy(float)
    _check(matrix, terms, list(frame), has_prior)
    for half in (slice(0, None, 2), slice(1, None, 2)):  # the largest value is in one alone
        some = {n: pd.Series(x.values[half]).reset_index(drop=True) for n, x in columns.items()}
        if not np.allclose(make(spec, some, len(matrix[half])).to_numpy(float), matrix[half]):
            raise ValueError(
                "formula must give each document its own value, without sums or means over all of "
                f"them (center and scale keep theirs): make a column of these, got {formula!r}"
            )
    less = {  # factors of which one level has no column
        scoped.factor.expr
        for term in spec.structure
        for product in term.scoped_terms
        for scoped in product.factors
        if scoped.reduced
    }
    reference = {
        _plain(factor.expr, quoted): (
            int(level) if isinstance(level, float) and level.is_integer() else level
        )
        for factor, state in spec.factor_contrasts.items()
        for level, row in zip(state.levels, _coding(state), strict=True)
        if not row.any() and factor.expr in less
    }
    middle = np.zeros(matrix.shape[1])  # taken from columns of numbers alone
    centre: dict[str, Any] = {}
    if INTERCEPT in terms:
        centred: set[str] = set()
        for term, places in spec.term_indices.items():
            if terms[places[0]] != INTERCEPT and not set(term.factors) & set(spec.factor_contrasts):
                middle[places] = matrix[:, places].mean(axis=0)
                centred |= {quoted.get(n, n) for factor in term.factors for n in _names(factor)}
        for name, column in columns.items():
            if name in centred and column.levels is None:
                mean = column.shown(pd.Series([column.values.mean()]))[0]
                centre[name] = float(mean) if column.first is None else pd.Timestamp(mean)

    def rows(values: pd.DataFrame) -> Float[np.ndarray, "M P"]:
        given = dict(values.reset_index(drop=True).items())
        found = make(spec, given, len(values)).to_numpy(float) - middle
        if not np.isfinite(found).all():
            raise ValueError(f"formula has no finite value where it is asked, got {formula!r}")
        return found

    return Design(matrix - middle, terms, kept, left_out, columns, reference, centre, rows)


def _frame(
    covariates: pd.DataFrame | Mapping[str, Any] | None, corpus: Corpus | _Rows
) -> pd.DataFrame:
    """Return the covariates as a table with a row for each document, and names that are strings."""
    given = covariates
    if covariates is None:
        covariates = corpus.covariates
        if covariates.columns.empty:
            raise ValueError(
                "covariates must be given, for the corpus has none: a table, or columns by name, "
                "with one row per document"
            )
    if isinstance(covariates, Mapping):
        try:  # row by row: pandas would put series together by their indexes
            columns = {
                name: _values(arguments.unmasked(f"covariates[{name!r}]", column))
                for name, column in covariates.items()
            }
            covariates = pd.DataFrame(columns)
        except (ValueError, TypeError) as error:  # lengths differ, numbers in place of columns, ...
            raise ValueError(
                f"covariates must be columns by name, each with one entry per document, got "
                f"{arguments.short_repr(covariates)}: {error}"
            ) from None
    table = arguments.instance(
        "covariates", covariates, pd.DataFrame, "a pandas DataFrame, or columns by name"
    )
    if len(table) != corpus.num_docs:
        raise ValueError(
            f"covariates must have one row for each of the {corpus.num_docs} documents, got "
            f"{len(table)}: {arguments.short_repr(given)}"
        )
    names = [str(name) for name in table]
    if "Intercept" in names:
        raise ValueError("covariates has a column 'Intercept', a name that formulas use: rename it")
    if not all(names) or not names or not table.columns.is_unique:
        raise ValueError(
            "covariates must have columns of different names that are not empty, got "
            f"{list(table.columns)}"
        )
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(
            f"covariates must have other names: {twice[0]!r} is that of two terms, got "
            f"{list(table.columns)}"
        )
    return table.set_axis(names, axis=1).reset_index(drop=True)


def _values(values: object) -> Any:
    """Return the values of one covariate without an index."""
    return values.reset_index(drop=True) if isinstance(values, pd.Series) else values


def _parse(
    formula: str | None, names: list[str]
) -> tuple[Any, dict[str, str], list[str], set[str]]:
    """Parse a formula, by default the sum of all columns.

    Returns
    -------
    parsed
        In which names that are quoted, as `` `log length` ``, are replaced by plain ones.
    quoted
        The names by those that replace them.
    used
        Names of the columns in it.
    grouped
        Those of which each value is a level, as in C(year).
    """
    import formulaic
    from formulaic.transforms import TRANSFORMS

    quoted: dict[str, str] = {}
    stem = "_" * (1 + max(map(len, names)))  # longer than any name

    def unquoted(name: str) -> str:
        quoted[f"{stem}{len(quoted)}_"] = name  # none is a part of another
        return list(quoted)[-1]

    if formula is None:
        text = "~ " + " + ".join(map(unquoted, names))
    else:
        text = _QUOTED.sub(lambda found: unquoted(found[1]), formula)
    got = f"got {formula!r}"
    try:
        parsed: Any = formulaic.Formula.from_spec(text)
        single = isinstance(parsed, formulaic.SimpleFormula)
        read = [_names(factor) for term in parsed for factor in term.factors] if single else []
    except Exception as error:  # of many kinds
        why = "without a formula all columns enter" if "The `.` operator" in str(error) else error
        raise ValueError(
            f"formula must be one such as '~ rating + s(day)', {got}: {_plain(why, quoted)}"
        ) from None
    if hasattr(parsed, "lhs"):
        raise ValueError(
            f"formula must have nothing to the left of ~, where the topic shares are, {got}"
        )
    if not single:
        raise ValueError(f"formula must be a single sum of terms, without |, {got}")
    if not read:
        raise ValueError(f"formula must have a term, {got}")
    if power := _POWER.search(_CALL.sub("()", text)):
        name = _plain(power[1], quoted)
        raise ValueError(
            f"formula has a power of {name!r}, which is {name} alone there: write "
            f"I({name}**2), or poly({name}, 2), {got}"
        )
    found = [quoted.get(name, name) for each in read for name in each]
    if set(found) <= {"np"} - set(names):
        raise ValueError(f"formula must have a column of the covariates, {got}")
    known = {"s", *TRANSFORMS, *vars(builtins)} - set(_INSTEAD)
    for name in found:
        if name not in names and (name in quoted.values() or name not in known):
            raise ValueError(
                f"formula must be of the columns {arguments.short_repr(names)}, it has {name!r}"
                f"{_INSTEAD.get(name) or arguments.meant(name, [*names, *TRANSFORMS])}"
            )
    grouped = set()
    for node in (node for term in parsed for factor in term.factors for node in _nodes(factor)):
        called = node.func if isinstance(node, ast.Call) else None
        inside = node.value if isinstance(node, ast.Attribute) else None
        for used, hidden in ((called, known), (inside, {"np", "contr"})):
            if isinstance(used, ast.Name) and used.id in hidden and used.id in names:
                raise ValueError(
                    f"covariates has a column {used.id!r}, which hides {used.id} of formulas: "
                    f"rename it, {got}"
                )
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "C":
            grouped |= {quoted.get(x.id, x.id) for x in node.args[:1] if isinstance(x, ast.Name)}
    return parsed, quoted, [name for name in names if name in found], grouped


def _nodes(factor: Any) -> list[ast.AST]:
    """Return the parts of a factor that is Python."""
    if factor.eval_method.value != "python":
        return []
    return list(ast.walk(ast.parse(factor.expr, mode="eval")))


def _names(factor: Any) -> list[str]:
    """Return the names in a factor of a formula, of which formulaic's own list lacks some."""
    if factor.eval_method.value == "lookup":
        return [factor.expr]
    return [node.id for node in _nodes(factor) if isinstance(node, ast.Name)]


def _plain(text: object, quoted: Mapping[str, str]) -> str:
    """Return a text of formulaic in one line, without colours, and with the names of columns."""
    line = re.sub(r"\x1b\[[\d;]*m|[⧛⧚]", "", str(text)).split("\n")[0]
    for inner, name in quoted.items():
        line = line.replace(inner, name)
    return line


def _coding(state: Any) -> np.ndarray:
    """Return the entries of the columns of a factor, a row for each level."""
    return np.asarray(state.contrasts.get_coding_matrix(state.levels, reduced_rank=True))


@functools.cache
def _spline() -> Callable[..., Any]:
    """Return the function `s` of formulas."""
    from formulaic.transforms import TRANSFORMS
    from formulaic.utils.stateful_transforms import stateful_transform

    @stateful_transform
    def s(x: Any, df: int | None = None, _state: dict[str, Any] = {}) -> Any:  # noqa: B006
        """Return a spline; `_state` is kept from the first call, which has the documents."""
        if not _state:
            values = np.unique(np.asarray(x, float))
            if len(values) < 2:
                raise ValueError("s() needs two values or more")
            most = len(values) - 1
            df = min(SPLINE, most) if df is None else arguments.integer("df", df, 1, most)
            degree = min(3, df)
            inner = np.quantile(values, np.linspace(0, 1, df - degree + 2)[1:-1])
            _state["options"] = {
                "knots": inner.tolist(), "degree": degree,
                "lower_bound": values[0], "upper_bound": values[-1],
            }  # fmt: skip
            _state["basis"] = {}
        low, high = (_state["options"][f"{bound}_bound"] for bound in ("lower", "upper"))
        outside = np.asarray(x, float)
        outside = outside[(outside < low) | (outside > high)]
        if outside.size:
            raise ValueError(
                f"s() is a curve from {low:g} to {high:g}, where the documents are, not at "
                f"{outside[0]:g}"
            )
        return TRANSFORMS["bs"](x, **_state["options"], _state=_state["basis"])

    return s


def _column(name: str, column: pd.Series, grouped: bool) -> Column:
    """Return a covariate as it enters a formula."""
    column = column.reset_index(drop=True)
    if _has_dates(column):
        values, _ = times(f"covariates[{name!r}]", column.astype(object))
        first = float(values.min())
        return Column(name, pd.Series((values - first) / YEAR), first, grouped)
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        levels = _levels(name, column)
        return Column(name, pd.Series(pd.Categorical(column.tolist(), categories=levels)))
    values = column.to_numpy(float)
    if pd.api.types.is_integer_dtype(column) and abs(values).max() > EXACT:
        raise ValueError(
            f"covariates must be integers of at most 2**53, {name!r} has {values.max():g}: "
            "subtract the smallest one, or make them strings"
        )
    return Column(name, pd.Series(values), grouped=grouped)


def _has_dates(column: pd.Series) -> bool:
    """Say whether a column has dates, or strings such as "2024-12-31" in all rows."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return all(as_date(x) is not None for x in column.unique())
    return pd.api.types.is_datetime64_any_dtype(column)


def _levels(name: str, column: pd.Series) -> list[Any]:
    """Return the levels of categories or booleans that occur, in order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = [level for level in column.cat.categories if (column == level).any()]
    else:
        levels = sorted(set(column.tolist()))
    if len(levels) < 2:
        raise ValueError(
            f"covariates must differ between documents, {name!r} is "
            f"{arguments.short_repr(levels)} in all of them: leave it out"
        )
    return levels


def _check(
    matrix: Float[np.ndarray, "N P"], terms: list[str], names: list[str], has_prior: bool
) -> None:
    """Refuse columns that are not finite, constant, or a combination of those before them."""
    if twice := [term for i, term in enumerate(terms) if term in terms[:i]]:
        raise ValueError(
            f"covariates must have other names: {twice[0]!r} is that of two terms, got {names}"
        )
    few = len(matrix) <= len(terms)  # with a prior, columns may then repeat others
    if few and not has_prior:
        raise ValueError(
            f"covariates has {len(terms)} terms, the intercept included, for {len(matrix)} "
            "documents that are not left out: give fewer columns or levels"
        )
    for term, column in zip(terms, matrix.T, strict=True):
        if not np.isfinite(column).all():
            wrong = column[~np.isfinite(column)]
            raise ValueError(
                f"formula must give finite numbers, {term!r} is {wrong[0]} in {len(wrong)} rows"
            )
    left = np.full(len(terms), np.inf)
    if not few:  # what is left of a column without those before it
        left = np.abs(np.diagonal(np.linalg.qr(matrix, mode="r")))
    for place, (term, column) in enumerate(zip(terms, matrix.T, strict=True)):
        alone = term == INTERCEPT or INTERCEPT not in terms
        whole = np.linalg.norm(column if alone else column - column.mean())
        if whole <= _SMALL * np.linalg.norm(column):
            raise ValueError(
                f"covariates must differ between documents, {term!r} is {column[0]:g} in all of "
                f"them: {_advice(term)}"
            )
        if left[place] <= _SMALL * whole:
            raise ValueError(
                f"covariates must not repeat one another, {term!r} is a combination of "
                f"{terms[:place]}: {_advice(term)}"
            )


def _advice(term: str) -> str:
    """Say what to do about a column that adds nothing."""
    if re.search(r"\b(cr|cc)\(", term):
        return "give cr() and cc() constraints='center', or take s()"
    if ":" in term and re.search(r"\b(s|bs)\(", term):
        return (
            "no document of this level is near a part of the curve; give the spline fewer degrees "
            "of freedom, as s(x, df=3), or write + in place of the product"
        )
    return "leave it out"


def times(
    name: str, value: Sequence[Any] | np.ndarray | pd.Series | pd.Index
) -> tuple[Float[np.ndarray, " n"], bool]:
    """Return times as numbers, and whether they are dates (then in microseconds)."""
    found = arguments.sequence(name, value, "numbers or dates", some=True)
    is_number = [isinstance(x, int | float) and not isinstance(x, bool) for x in found]
    if any(is_number) and not all(is_number):
        raise ValueError(
            f"{name} must be numbers for all or dates for all, got {arguments.short_repr(value)}"
        )
    if all(is_number):
        try:
            values = np.array(found, float)
        except OverflowError:
            values = np.array([np.inf])
        if (abs(values) > EXACT).any() and np.isfinite(values).all():
            raise ValueError(
                f"{name} must be numbers of at most 2**53, got {arguments.short_repr(value)}: "
                "convert times to dates, with pandas.to_datetime"
            )
        if not np.isfinite(values).all():
            count = int((~np.isfinite(values)).sum())
            raise ValueError(
                f"{name} must be finite numbers, {count} are not, got "
                f"{arguments.short_repr(value)}: fill them in, or leave these documents out and "
                "fit again"
            )
        return values, False
    if wrong := [x for x in found if isinstance(x, str) and not _DATE.match(x)]:
        raise ValueError(
            f"{name} has {wrong[0]!r}, which is no date: write dates as '2024-12-31', and make "
            "years numbers"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about formats that differ
            iso = all(as_date(x) is not None for x in found)  # a time may be in some of them
            dates = pd.to_datetime(pd.Series(found), format="ISO8601" if iso else None)
        if dates.isna().any():
            raise TypeError
        dates = dates.dt.tz_localize(None).astype(DATES)
    except (ValueError, TypeError, AttributeError, OverflowError):
        wrong = [x for x in found if isinstance(x, str) and as_date(x) is None]
        which = f": {wrong[0]!r} is no date" if wrong else ""
        raise ValueError(
            f"{name} must be numbers or dates, none missing, got "
            f"{arguments.short_repr(value)}{which}"
        ) from None
    return dates.astype("int64").to_numpy(float), True
