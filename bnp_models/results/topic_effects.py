r"""Tables of how the shares of topics change with what is known about the documents, and with time.

Effects are found by the method of composition, as `estimateEffect` of the R package stm does.
Roberts, Stewart and Tingley, stm: an R package for structural topic models, Journal of Statistical
Software 91 (2019), section 3.4; Treier and Jackman, Democracy as a latent variable, American
Journal of Political Science 52 (2008). The topic model does not know the covariates. Its prior
therefore pulls the shares of all documents towards common ones, and effects towards zero: by the
factor $N / (N + \sum_k \alpha_k)$ for documents of N tokens, which is small only in short ones.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.special
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.results.document_tables import document_theta
from bnp_models.results.topic_draws import TopicDraws, by_number, shown_topics, state_weights
from bnp_models.results.topic_tables import mean_shares, topic_prevalence_by_group

__all__ = ["INTERCEPT", "effects", "topics_over_time"]

INTERCEPT = "intercept"
_DATES = "datetime64[us]"
_DATE = re.compile(r"\d{4}-?(\d\d|Q[1-4])")  # how texts of dates begin
_CALENDAR = {"month": "M", "quarter": "Q", "year": "Y"}  # pandas' names of periods
MOST_YEARS = 100  # periods of one whole number each
_SMALL = 1e-8  # relative: what is left of a column after the others are taken out


class Design(NamedTuple):
    """Covariates as the columns of a regression, the first one of ones."""

    matrix: Float[np.ndarray, "D P"]
    terms: list[str]
    reference: dict[str, Any]  # the level without a column, by the name of the covariate
    centre: dict[str, float]  # what was taken from a column of numbers: their mean


def effects(
    fit: TopicDraws,
    covariates: pd.DataFrame | Mapping[str, Any],
    *,
    topics: Sequence[int] | None = None,
    interval: float = 0.9,
    num_draws: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Regress the topic shares of the documents on covariates, with all uncertainty.

    For each state, $\theta_d$ is drawn from its Dirichlet distribution given the state, and the
    share $\theta_{dk}$ of each topic is regressed on the covariates by least squares. The
    coefficients of one regression have a normal distribution, and the result is the mixture of
    these distributions over all draws and states. (Its quantiles are those of the mixture itself,
    so no coefficients are drawn.)

    Parameters
    ----------
    fit
        Fit of a topic model.
    covariates
        One row per document, in the order of the corpus: a table, or columns by name. The index of
        a table or a series is not used. Numbers enter linearly. Strings, categories and booleans
        enter as indicators of all levels but the first. The first level is the first category, the
        first string in sorted order, or False.
    topics
        Topics to show; all by default.
    interval
        Probability that `lower` and `upper` enclose.
    num_draws
        Draws of the documents' shares from each state.
    seed
        Seed of these draws.

    Returns
    -------
    table
        One row per topic and term: topic, term, effect (the mean), lower, upper, and probability
        that the effect is positive. An effect is the change of the share, which is between 0 and 1,
        when a number grows by one, or between a level and the first level. A term is the name of
        a covariate or "name[level]". The term "intercept" is the share itself where all levels are
        the first ones and all numbers have their means. `attrs["reference"]` has these levels,
        `attrs["centre"]` these means, by covariate, `attrs["left_out"]` is the number of empty
        documents, which are left out, and `attrs["prevalence"]` lists the topics' mean shares of
        all tokens, by number, `attrs["chains"]` the chains that the topics come from. A state
        without a topic counts as no effect on it, and as half a state where the effect is positive.
        Where the table is that of one of several chains, it also has what the other chains say of
        the topics that they have: `lowest_effect` and `highest_effect`, the range of their effects,
        `other_chains`, their number, and `same_sign`, how many have an effect of the same sign.

    Raises
    ------
    ValueError
        If the covariates do not have a row for each document, have missing values, or one of them
        is a combination of others; or an option is out of its domain.
    """
    shown_topics(fit)
    how = interval, num_draws, seed
    table = _effects(fit.shown, covariates, topics, *how)
    num_terms = (table["topic"] == table["topic"].iloc[0]).sum()  # names of terms may be the same

    def theirs(one: TopicDraws) -> Float[np.ndarray, "R P"]:
        return _effects(one, covariates, None, *how)["effect"].to_numpy().reshape(-1, num_terms)

    found = fit.shown._in_other_chains(theirs)
    if found is None:
        return table
    chosen = table["topic"].to_numpy()[::num_terms]
    of_chains = pd.DataFrame(found[:, chosen].reshape(len(found), -1).T, index=table.index)
    same = of_chains.apply(np.sign).eq(np.sign(table["effect"]), axis=0)
    return table.assign(
        lowest_effect=of_chains.min(axis=1),
        highest_effect=of_chains.max(axis=1),
        other_chains=of_chains.notna().sum(axis=1),
        same_sign=same.sum(axis=1),
    )


def _effects(
    fit: TopicDraws,
    covariates: pd.DataFrame | Mapping[str, Any],
    topics: Sequence[int] | None,
    interval: float,
    num_draws: int,
    seed: int,
) -> pd.DataFrame:
    """Return the effects in the states of one chain, or of all that are shown."""
    states, corpus, alignment = shown_topics(fit)
    tails = tail_quantiles(interval)
    num_draws = arguments.integer("num_draws", num_draws, 1)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    count = alignment.num_topics
    chosen = arguments.indices("topics", range(count) if topics is None else topics, count)
    chosen = list(dict.fromkeys(chosen))
    kept = np.asarray(corpus.doc_length) > 0
    design = _design(covariates, kept)
    found = []
    theta = document_theta(states, corpus, alignment)
    for number, (share, total) in zip(alignment.number, theta, strict=True):
        weighed = (share * total[:, None])[kept]
        rest = weighed[:, ~np.isin(number, chosen)].sum(axis=1)  # joining topics adds parameters
        weights = np.column_stack([by_number(weighed, number, count)[:, chosen], rest])
        for _ in range(num_draws):
            draws = rng.standard_gamma(weights)
            found.append(_regress(draws[:, :-1] / draws.sum(axis=1, keepdims=True), design.matrix))
    mean, sd = (np.stack(part) for part in zip(*found, strict=True))  # [draws, P, R]
    weight = state_weights(states)
    weight = np.repeat(weight / weight.sum(), num_draws) / num_draws
    lower, upper = (_mixture_quantile(mean, sd, weight, tail) for tail in tails)
    positive = np.clip(1 - np.tensordot(weight, _normal_cdf(0.0, mean, sd), 1), 0.0, 1.0)
    effect = np.tensordot(weight, mean, 1)
    columns = {"effect": effect, "lower": lower, "upper": upper, "probability": positive}
    table = pd.DataFrame(
        {
            "topic": np.repeat(chosen, len(design.terms)),
            "term": np.tile(np.array(design.terms, object), len(chosen)),
            **{name: values.T.ravel() for name, values in columns.items()},
        }
    )
    table.attrs["reference"] = design.reference
    table.attrs["centre"] = design.centre
    table.attrs["left_out"] = int((~kept).sum())
    table.attrs["prevalence"] = mean_shares(states, alignment).tolist()
    table.attrs["chains"] = fit._chain_numbers()
    return table


def topics_over_time(
    fit: TopicDraws,
    time: Sequence[Any] | np.ndarray | pd.Series | pd.Index,
    *,
    bins: int | str | Sequence[Any] | np.ndarray | pd.Series | pd.Index | None = None,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return the share of each topic among the tokens of each period.

    Parameters
    ----------
    fit
        Fit of a topic model.
    time
        When each document is from, in the order of the corpus: numbers (years) or dates.
    bins
        The periods. By default each whole number is one (a year), up to 100 of them; other times
        have 10 of one length. A number is how many there are, from the first document to the last
        one; periods of whole numbers have equally many of them, so there may be fewer. "month",
        "quarter" and "year" are those of the calendar, for dates. A sequence has bounds, which
        increase: a period begins at its bound and ends before the next one. At the last bound the
        last period ends and includes it; but if all times and bounds are whole numbers, the last
        bound is a period of its own. Documents outside are left out.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per period and topic: bin (from 0), start, end, middle, topic, prevalence (mean over
        states), lower, upper, num_tokens of the period. Where times are whole numbers, start and
        end are the first and the last of the period. A period without tokens has NaN.

    Raises
    ------
    ValueError
        If there is not one time per document, a time is missing, or the bounds do not increase.
    """
    _, corpus, alignment = shown_topics(fit)
    values, dates = _times("time", time)
    if len(values) != corpus.num_docs:
        raise ValueError(
            f"time must have one entry for each of the {corpus.num_docs} documents, got "
            f"{len(values)}: {arguments.short_repr(time)}"
        )
    edges, whole = _edges(values, dates, bins)
    count = len(edges) - 1
    place = np.minimum(np.searchsorted(edges, values, side="right") - 1, count)
    place[values == edges[-1]] = count if whole else count - 1
    place[place < 0] = count  # one more group, of the documents outside
    table = topic_prevalence_by_group(
        fit,
        by=place,
        names=[str(b) for b in range(count + 1)],
        interval=interval,
    )
    table = table[: count * alignment.num_topics]
    numbers = table.pop("group").astype(int).to_numpy()
    bounds = np.round(edges).astype(np.int64).astype(_DATES) if dates else edges
    start, end = bounds[:-1], bounds[1:]
    if whole:
        start, end = start.astype(int), end.astype(int) - 1
    head = {"bin": np.arange(count), "start": start, "end": end}
    periods = pd.DataFrame(head | {"middle": start + (end - start) / 2})
    return pd.concat([periods.loc[numbers].reset_index(drop=True), table], axis=1)


def _edges(
    values: Float[np.ndarray, " n"], dates: bool, bins: object
) -> tuple[Float[np.ndarray, " edges"], bool]:
    """Return the bounds of periods, and whether they are of whole numbers, without the last."""
    first, last = values.min(), values.max()
    whole = not dates and (values == np.floor(values)).all()
    if isinstance(bins, str):
        frequency = _CALENDAR[arguments.one_of("bins", bins, _CALENDAR)]
        if not dates:
            raise ValueError(f"bins is {bins!r}, which needs dates, but time has numbers")
        days = np.array([first, last]).astype(np.int64).astype(_DATES)
        begin, end = pd.DatetimeIndex(days).to_period(frequency)
        periods = pd.period_range(begin, end + 1, freq=frequency)
        return periods.to_timestamp().to_numpy().astype(_DATES).astype(float), False
    if bins is not None and not isinstance(bins, int | np.integer):
        edges, same = _times("bins", bins)  # pyright: ignore[reportArgumentType] - it checks
        if len(edges) < 2 or not (np.diff(edges) > 0).all() or same != dates:
            raise ValueError(
                "bins must be two bounds or more that increase, of the kind of time, got "
                f"{arguments.short_repr(bins)}"
            )
        whole = bool(whole and (edges == np.floor(edges)).all())
        own = whole and (values == edges[-1]).any()
        return (np.append(edges, edges[-1] + 1) if own else edges), whole
    count = None if bins is None else arguments.integer("bins", bins, 1)
    if first == last:
        raise ValueError(f"time must have two values or more, got only {first:g}; give bins")
    if not whole:
        return np.linspace(first, last, (count or 10) + 1), False
    if count is None:
        count = last + 1 - first if last - first < MOST_YEARS else 10
    step = np.ceil((last + 1 - first) / count)
    edges = np.arange(first, last + 1, step)
    return np.append(edges, last + 1), True


def _regress(
    response: Float[np.ndarray, "D R"], matrix: Float[np.ndarray, "D P"]
) -> tuple[Float[np.ndarray, "P R"], Float[np.ndarray, "P R"]]:
    """Return the coefficients of least squares, and their standard errors."""
    q, r = np.linalg.qr(matrix)
    inverse, along = np.linalg.inv(r), q.T @ response
    variance = ((response - q @ along) ** 2).sum(axis=0) / (len(matrix) - matrix.shape[1])
    unit = (inverse**2).sum(axis=1)  # diagonal of (X'X)^-1
    return inverse @ along, np.sqrt(unit[:, None] * variance)


def _design(covariates: pd.DataFrame | Mapping[str, Any], kept: np.ndarray) -> Design:
    """Check the covariates and make the columns of the regression, for the documents `kept`."""
    given = covariates
    if isinstance(covariates, Mapping):
        try:  # row by row: pandas would put series together by their indexes
            columns = {
                name: _column(arguments.unmasked(f"covariates[{name!r}]", column))
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
    if len(table) != len(kept):
        raise ValueError(
            f"covariates must have one row for each of the {len(kept)} documents, got "
            f"{len(table)}: {arguments.short_repr(given)}"
        )
    if table.columns.empty or not table.columns.is_unique:
        raise ValueError(
            f"covariates must have columns of different names, got {list(table.columns)}"
        )
    missing = table.isna().sum()
    if missing.any():
        name = missing.index[missing.to_numpy() > 0][0]
        raise ValueError(
            f"covariates must not have missing values, {name!r} has {missing[name]}: fill them in, "
            "or leave these documents out and fit again"
        )
    columns, terms = [np.ones(int(kept.sum()))], [INTERCEPT]
    reference: dict[str, Any] = {}
    centre: dict[str, float] = {}
    for name in table:
        column = table[name][kept]
        if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
            levels = _levels(str(name), column)
            reference[str(name)] = levels[0]
            columns += [(column == level).to_numpy(float) for level in levels[1:]]
            terms += [f"{name}[{level}]" for level in levels[1:]]
        else:
            if pd.api.types.is_complex_dtype(column):
                raise ValueError(f"covariates must be real numbers, {name!r} has complex ones")
            values = column.to_numpy(float)
            if not np.isfinite(values).all():
                wrong = values[~np.isfinite(values)][0]
                raise ValueError(f"covariates must be finite numbers, {name!r} has {wrong}")
            centre[str(name)] = float(values.mean())
            columns.append(values)
            terms.append(str(name))
    if twice := [term for i, term in enumerate(terms) if term in terms[:i]]:
        raise ValueError(
            f"covariates must have other names: {twice[0]!r} is that of two terms, got "
            f"{list(table.columns)}"
        )
    matrix = np.column_stack(columns)
    if len(matrix) <= len(terms):
        raise ValueError(
            f"covariates has {len(terms)} terms, the intercept included, for {len(matrix)} "
            "documents that are not empty: give fewer columns or levels"
        )
    _check_independent(matrix, terms)
    for name, middle in centre.items():
        matrix[:, terms.index(name)] -= middle
    return Design(matrix, terms, reference, centre)


def _column(values: object) -> Any:
    """Return the values of one covariate without an index."""
    return values.reset_index(drop=True) if isinstance(values, pd.Series) else values


def _levels(name: str, column: pd.Series) -> list[Any]:
    """Return the levels of a column of strings, categories or booleans that occur, in order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = [level for level in column.cat.categories if (column == level).any()]
    elif pd.api.types.is_bool_dtype(column) or all(isinstance(value, str) for value in column):
        levels = sorted(set(column.tolist()))
    else:
        raise ValueError(
            f"covariates must be numbers, strings, categories or booleans, {name!r} has "
            f"{column.dtype}, such as {arguments.short_repr(column.iloc[0])}: make dates numbers "
            "of years, for instance"
        )
    if len(levels) < 2:
        raise ValueError(
            f"covariates must differ between documents, {name!r} is "
            f"{arguments.short_repr(levels)} in all of them: leave it out"
        )
    return levels


def _check_independent(matrix: Float[np.ndarray, "D P"], terms: list[str]) -> None:
    """Refuse columns that are constant, or a combination of those before them."""
    left = np.abs(np.diagonal(np.linalg.qr(matrix, mode="r")))  # without the columns before it
    for place, (term, column) in enumerate(zip(terms, matrix.T, strict=True)):
        whole = np.linalg.norm(column - column.mean())
        if place and whole <= _SMALL * np.linalg.norm(column):
            raise ValueError(
                f"covariates must differ between documents, {term!r} is {column[0]:g} in all of "
                "them: leave it out"
            )
        if left[place] <= _SMALL * whole:
            raise ValueError(
                f"covariates must not repeat one another, {term!r} is a combination of "
                f"{terms[:place]}: leave it out"
            )


def _times(
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
            dates = pd.to_datetime(pd.Series(found))
        if dates.isna().any():
            raise TypeError
        dates = dates.dt.tz_localize(None).astype(_DATES)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise ValueError(
            f"{name} must be numbers or dates, none missing, got {arguments.short_repr(value)}"
        ) from None
    return dates.astype("int64").to_numpy(float), True


def _normal_cdf(x: float | np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return normal distribution functions; a point mass where the deviation is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x - mean) / sd
    return scipy.special.ndtr(np.where(np.isnan(z), 0.0, z))


def _mixture_quantile(
    mean: Float[np.ndarray, "M P R"],
    sd: Float[np.ndarray, "M P R"],
    weight: Float[np.ndarray, " M"],
    tail: float,
) -> Float[np.ndarray, "P R"]:
    """Return a quantile of each mixture of normal distributions, by bisection."""
    at = mean + sd * scipy.special.ndtri(tail)
    low, high = at.min(axis=0), at.max(axis=0)  # the quantile lies between those of the parts
    for _ in range(60):
        middle = (low + high) / 2
        below = np.tensordot(weight, _normal_cdf(middle, mean, sd), 1) < tail
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # many states may have no effect at all; then the quantile is exactly zero
    return np.where((low <= 0) & (high >= 0), 0.0, (low + high) / 2)
