r"""Tables of how the shares of topics change with what is known about the documents, and with time.

Effects are found by the method of composition, as `estimateEffect` of the R package stm does.
Roberts, Stewart and Tingley, stm: an R package for structural topic models, Journal of Statistical
Software 91 (2019), section 3.4; Treier and Jackman, Democracy as a latent variable, American
Journal of Political Science 52 (2008). Shares near 0 or 1 vary less than others, so the standard
errors are those that allow for it, HC3 of MacKinnon and White, Some heteroskedasticity-consistent
covariance matrix estimators with improved finite sample properties, Journal of Econometrics 29
(1985). The topic model does not know the covariates. Its prior therefore pulls the shares of all
documents towards common ones, and effects towards zero: by the factor
$N / (N + \sum_k \alpha_k)$ for documents of N tokens, which is small only in short ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.special
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.data.design import DATES, INTERCEPT, Column, Design, make_design, times
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.results.document_tables import document_theta
from bnp_models.results.topic_draws import TopicDraws, by_number, shown_topics, state_weights
from bnp_models.results.topic_tables import mean_shares, topic_labels, topic_prevalence_by_group

__all__ = ["INTERCEPT", "effects", "expected_shares", "topics_over_time"]

_CALENDAR = {"week": "W", "month": "M", "quarter": "Q", "year": "Y"}  # pandas' names of periods
_DIFFERENCE = ("difference", "difference_lower", "difference_upper", "probability")
MOST_YEARS = 100  # periods of one whole number each
MOST_CURVES = 5  # values of a second number that are taken one by one
_SMALL = 1e-8  # a document that has a column of its own has no residual


class Mixtures(NamedTuple):
    """What the draws of a fit say of F sums of coefficients, for R topics."""

    mean: Float[np.ndarray, "F R"]
    lower: Float[np.ndarray, "F R"]
    upper: Float[np.ndarray, "F R"]
    positive: Float[np.ndarray, "F R"]  # probability that the sum is above zero


def effects(
    fit: TopicDraws,
    formula: str | pd.DataFrame | Mapping[str, Any] | None = None,
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
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
    formula
        What the shares depend on, such as "~ rating + s(day) + rating:venue", in the language of R
        and of the package formulaic: `a:b` is an interaction, `a * b` is `a + b + a:b`, and names
        that are not those of Python stand between backticks. A formula is Python that runs, so take
        none from someone that you do not trust; it sees the columns, formulaic's transforms (`bs`,
        `cr`, `poly`, `C`, `center`, `log`, ...), NumPy as `np`, and `s`. `s(x)` is a cubic
        B-spline with 10 degrees of freedom, or one less than x has distinct values if these are
        fewer; `s(x, df=4)` has 4. Its inner knots are quantiles of the distinct values. A table
        or columns by name, without a formula, is the sum of all its columns. So are the covariates
        without a formula.
    covariates
        The columns, by default those of the corpus (`corpus.covariates`). One row per document, in
        the order of the corpus: a table, or columns by name. The index of a table or a series is
        not used. Numbers enter linearly. Strings, categories and booleans enter as indicators of
        all levels but the first. The first level is the first category, the first string in sorted
        order, or False. Dates, or strings such as "2024-12-31", enter as years since the first of
        them. Documents that miss a value of a column of the formula are left out.
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
        One row per topic and term: topic, label (of `with_labels`, or the first words), term,
        effect (the mean), lower, upper, and probability that the effect is positive. An effect is
        the change of the share, which is between 0 and 1, when a number grows by one (a date by a
        year), or between a level and the first level. A term is the name of a covariate,
        "name[level]", or a product such as "rating[low]:year". A level that is also in a product
        with a number has its effect where this number is zero. The term "intercept" is the share
        itself where all levels are the first ones, averaged over the numbers of the documents.
        `attrs["reference"]` has these levels, `attrs["centre"]` the means of the numbers, by
        covariate, `attrs["left_out"]` the number of documents that are left out because they are
        "empty", and because values are "missing". `attrs["prevalence"]` lists the topics' mean
        shares of all tokens, by number, `attrs["chains"]` the chains that the topics come from. A
        state without a topic counts as no effect on it, and as half a state where the effect is
        positive. Where the table is that of one of several chains, it also has what the other
        chains say of the topics that they have: `lowest_effect` and `highest_effect`, the range of
        their effects, `other_chains`, their number, and `same_sign`, how many have an effect of the
        same sign.

    Raises
    ------
    ValueError
        If the covariates do not have a row for each document, the formula can't be read, has a
        column that is not there or a term that is a combination of others, no document has all
        values, or an option is out of its domain.
    """
    _, corpus, alignment = shown_topics(fit)
    design = make_design(formula, covariates, corpus)
    count, forms = len(design.terms), np.eye(len(design.terms))
    how = interval, num_draws, seed
    chosen = _chosen(topics, alignment.num_topics)
    found = _mixtures(fit.shown, design, forms, chosen, *how)
    columns = {"effect": found.mean, "lower": found.lower, "upper": found.upper}
    columns["probability"] = found.positive
    table = _of_topics(fit, chosen, {"term": np.array(design.terms, object)}, columns, design)
    table.attrs["reference"] = design.reference
    table.attrs["centre"] = design.centre

    def theirs(one: TopicDraws) -> Float[np.ndarray, "R P"]:
        every = list(range(one.alignment.num_topics))
        return _mixtures(one, design, forms, every, *how, quantiles=False).mean.T

    others = fit.shown._in_other_chains(theirs)
    if others is None:
        return table
    of_chains = others[:, chosen].reshape(len(others), len(chosen) * count)
    of_chains = pd.DataFrame(of_chains.T, index=table.index)
    same = of_chains.apply(np.sign).eq(np.sign(table["effect"]), axis=0)
    return table.assign(
        lowest_effect=of_chains.min(axis=1),
        highest_effect=of_chains.max(axis=1),
        other_chains=of_chains.notna().sum(axis=1),
        same_sign=same.sum(axis=1),
    )


def expected_shares(
    fit: TopicDraws,
    formula: str | pd.DataFrame | Mapping[str, Any] | None = None,
    covariates: pd.DataFrame | Mapping[str, Any] | None = None,
    *,
    by: str | Sequence[str],
    at: Mapping[str, Any] | None = None,
    num_points: int = 50,
    topics: Sequence[int] | None = None,
    interval: float = 0.9,
    num_draws: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the expected share of each topic as one or two covariates change.

    The regression is that of `effects`. Each row gives all documents the same value of the
    covariates in `by`; all other covariates stay as they are in the documents, and the expected
    shares are averaged over the documents. (The R package stm sets the others to one typical value
    instead. This is the same where the formula has no products of covariates.)

    Parameters
    ----------
    fit
        Fit of a topic model.
    formula, covariates, topics, interval, num_draws, seed
        See `effects`.
    by
        Name of the covariate that changes, or of two of them: then the first one changes for each
        value of the second one.
    at
        Values by name. Of a covariate in `by`: those that it takes. By default they are the levels;
        whole numbers take each of their values if they have at most `num_points`, and other numbers
        and dates take so many from the smallest to the largest. A second one that is a number takes
        its quartiles if it has more than 5 values. Where the second one has levels, the points of
        a number or date are those near documents of each level: from the last one before them to
        the first one after them. Of another covariate: one value that all documents get.
    num_points
        See `at`; 2 or more.

    Returns
    -------
    table
        One row per topic and value: topic, label, the covariates in `by`, share (the mean), lower,
        upper. `difference` is from the share at the first value of the covariate, or of the second
        one where there are two (then the value of the first one is the same): its mean,
        `difference_lower`, `difference_upper`, and `probability`, that the share is larger. These
        are NaN for the first value itself, and where no document of the first level is near. Least
        squares does not know that shares are between 0 and 1, so a line may leave these bounds.
        `attrs["by"]` has the names in `by`, `attrs["left_out"]`, `attrs["prevalence"]` and
        `attrs["chains"]` are those of `effects`.

    Raises
    ------
    ValueError
        As `effects`; or if `by` or `at` have other names than the formula, or values that the
        covariates cannot take.
    """
    _, corpus, alignment = shown_topics(fit)
    design = make_design(formula, covariates, corpus)
    names = arguments.texts("by", [by] if isinstance(by, str) else by, some=True)
    at = dict(arguments.mapping("at", {} if at is None else at, "values by the names of columns"))
    for argument, given in (("by", names), ("at", at)):
        if wrong := [name for name in given if name not in design.columns]:
            raise ValueError(
                f"{argument} must have names of columns in the formula, {list(design.columns)}, "
                f"got {wrong[0]!r}{arguments.meant(wrong[0], design.columns)}"
            )
    if len(names) > 2 or len(set(names)) < len(names):
        raise ValueError(f"by must be one column or two different ones, got {names}")
    has_points = names[0] in at
    own = ["topic", "label", "share", "lower", "upper", *_DIFFERENCE]
    if set(names) & set(own):
        raise ValueError(f"by must be columns of other names than those of the table, {own}")
    num_points = arguments.integer("num_points", num_points, 2)
    points = [
        column.enter(f"at[{name!r}]", at.pop(name))
        if name in at
        else _points(column, num_points, second)
        for name, second in zip(names, (False, True), strict=False)
        for column in [design.columns[name]]
    ]
    for name, values in zip(names, points, strict=True):
        twice = pd.Series(values[values.duplicated()])
        if len(twice):
            raise ValueError(
                f"at[{name!r}] must have different values, got "
                f"{design.columns[name].shown(twice)[0]} twice"
            )
    fixed = {
        name: design.columns[name].enter(f"at[{name!r}]", [value]) for name, value in at.items()
    }
    cells = list(itertools.product(*(range(len(values)) for values in points)))
    if len(names) == 2 and not has_points:
        cells = _near_documents(cells, points, *(design.columns[name] for name in names))
    cell = np.array(cells).T
    taken = {n: values.iloc[i] for n, values, i in zip(names, points, cell, strict=True)}
    forms = _averages(design, taken | {n: v.iloc[[0] * len(cells)] for n, v in fixed.items()})
    place = {each: i for i, each in enumerate(cells)}
    first = np.array([place.get((*each[:-1], 0), i) for i, each in enumerate(cells)])
    chosen = _chosen(topics, alignment.num_topics)
    both = np.concatenate([forms, forms - forms[first]])
    found = _mixtures(fit.shown, design, both, chosen, interval, num_draws, seed)
    share, difference = (
        Mixtures(*parts) for parts in zip(*(np.split(part, 2) for part in found), strict=True)
    )
    head = {name: design.columns[name].shown(values) for name, values in taken.items()}
    columns = {"share": share.mean, "lower": share.lower, "upper": share.upper}
    for name, values in zip(_DIFFERENCE, difference, strict=True):
        columns[name] = np.where((first == np.arange(len(first)))[:, None], np.nan, values)
    table = _of_topics(fit, chosen, head, columns, design)
    table.attrs["by"] = names
    return table


def _points(column: Column, num_points: int, second: bool) -> pd.Series:
    """Return the values that a covariate takes."""
    if column.levels is not None:
        return pd.Series(pd.Categorical(column.levels, categories=column.levels))
    values = np.unique(column.values)
    if column.grouped:
        return pd.Series(values)
    if second and len(values) > MOST_CURVES:
        return pd.Series(np.unique(np.quantile(column.values, [0.25, 0.5, 0.75])))
    if second or (column.whole and len(values) <= num_points):
        return pd.Series(values)
    return pd.Series(np.linspace(values[0], values[-1], num_points))


def _near_documents(
    cells: list[tuple[int, ...]], points: Sequence[pd.Series], number: Column, level: Column
) -> list[tuple[int, ...]]:
    """Return the pairs of points of a number and a level without those far from its documents."""
    if number.levels is not None or level.levels is None:
        return cells
    ends = number.values.groupby(level.values.tolist()).agg(["min", "max"])
    least, most = ends.loc[points[1].tolist()].to_numpy().T
    first = np.searchsorted(points[0], least, side="right") - 1
    last = np.searchsorted(points[0], most)
    return [(i, j) for i, j in cells if first[j] <= i <= last[j]]


def _averages(design: Design, taken: Mapping[str, pd.Series]) -> Float[np.ndarray, "F P"]:
    """Return the mean row of all documents where each of them has the same values of some columns.

    `taken` has F values of each of these.
    """
    rest = [name for name in design.columns if name not in taken]
    others, weight = pd.DataFrame(index=pd.RangeIndex(1)), np.ones(1)
    if rest:
        every = pd.DataFrame({name: design.columns[name].values for name in rest})
        sizes = every.groupby(rest, sort=False, observed=True).size()
        others, weight = sizes.index.to_frame(index=False), sizes.to_numpy(float)
    found = []
    for i in range(len(next(iter(taken.values())))):
        same = {name: values.iloc[[i] * len(weight)] for name, values in taken.items()}
        table = {name: values.reset_index(drop=True) for name, values in same.items()}
        rows = design.rows(pd.DataFrame(table | dict(others.items())))
        found.append(np.average(rows, axis=0, weights=weight))
    return np.stack(found)


def _chosen(topics: Sequence[int] | None, count: int) -> list[int]:
    """Return the topics of a table, in the order in which they were asked for."""
    chosen = arguments.indices("topics", range(count) if topics is None else topics, count)
    return list(dict.fromkeys(chosen))


def _of_topics(
    fit: TopicDraws,
    chosen: list[int],
    head: Mapping[str, np.ndarray],
    columns: Mapping[str, Float[np.ndarray, "F R"]],
    design: Design,
) -> pd.DataFrame:
    """Return a table with F rows for each topic, which begin with the columns of `head`."""
    states, _, alignment = shown_topics(fit)
    size = len(next(iter(head.values())))
    labels = topic_labels(fit, by="probability")
    table = pd.DataFrame(
        {
            "topic": np.repeat(chosen, size),
            "label": np.repeat(np.array(labels.tolist(), object)[chosen], size),
            **{name: np.tile(values, len(chosen)) for name, values in head.items()},
            **{name: values.T.ravel() for name, values in columns.items()},
        }
    )
    table.attrs["left_out"] = design.left_out
    table.attrs["prevalence"] = mean_shares(states, alignment).tolist()
    table.attrs["chains"] = fit.shown._chain_numbers()
    if parts := fit.shown._topic_parts:
        table.attrs["parts"] = parts
    return table


def _mixtures(
    fit: TopicDraws,
    design: Design,
    forms: Float[np.ndarray, "F P"],
    chosen: list[int],
    interval: float,
    num_draws: int,
    seed: int,
    *,
    quantiles: bool = True,
) -> Mixtures:
    """Return sums of coefficients in the states of one chain, or of all that are shown."""
    states, corpus, alignment = shown_topics(fit)
    tails = tail_quantiles(interval)
    num_draws = arguments.integer("num_draws", num_draws, 1)
    rng = np.random.default_rng(arguments.seed("seed", seed))
    count, found = alignment.num_topics, []
    regress = _Regression(design.matrix, forms)
    theta = document_theta(states, corpus, alignment)
    for number, (share, total) in zip(alignment.number, theta, strict=True):
        weighed = (share * total[:, None])[design.kept]
        rest = weighed[:, ~np.isin(number, chosen)].sum(axis=1)  # joining topics adds parameters
        weights = np.column_stack([by_number(weighed, number, count)[:, chosen], rest])
        for _ in range(num_draws):
            draws = rng.standard_gamma(weights)
            found.append(regress(draws[:, :-1] / draws.sum(axis=1, keepdims=True)))
    mean, sd = (np.stack(part) for part in zip(*found, strict=True))  # [draws, F, R]
    weight = state_weights(states)
    weight = np.repeat(weight / weight.sum(), num_draws) / num_draws
    middle = np.tensordot(weight, mean, 1)
    if not quantiles:
        return Mixtures(middle, middle, middle, middle)
    lower, upper = (_mixture_quantile(mean, sd, weight, tail) for tail in tails)
    positive = np.clip(1 - np.tensordot(weight, _normal_cdf(0.0, mean, sd), 1), 0.0, 1.0)
    return Mixtures(middle, lower, upper, positive)


def topics_over_time(
    fit: TopicDraws,
    time: str | Sequence[Any] | np.ndarray | pd.Series | pd.Index,
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
        When each document is from, in the order of the corpus: numbers (years) or dates; or the
        name of such a column of `corpus.covariates`. Documents without one are left out.
    bins
        The periods. By default each whole number is one (a year), up to 100 of them; other times
        have 10 of one length. A number is how many there are, from the first document to the last
        one; periods of whole numbers have equally many of them, so there may be fewer. "week" (from
        Monday), "month", "quarter" and "year" are those of the calendar, for dates. A sequence has
        bounds, which increase: a period begins at its bound and ends before the next one. At the
        last bound the last period ends and includes it; but if all times and bounds are whole
        numbers, the last bound is a period of its own. Documents outside are left out.
    interval
        Probability that `lower` and `upper` enclose.

    Returns
    -------
    table
        One row per period and topic: bin (from 0), start, end, middle, topic, label (of
        `with_labels`, or the first words), prevalence (mean over states), lower, upper, num_tokens
        of the period. Where times are whole numbers, start and
        end are the first and the last of the period. A period without tokens has NaN.
        `attrs["left_out"]` has the number of documents whose time is "missing".

    Raises
    ------
    ValueError
        If there is not one time per document, all are missing, or the bounds do not increase.
    """
    _, corpus, alignment = shown_topics(fit)
    if isinstance(time, str) and not (known := corpus.covariates.columns).empty:
        time = pd.Series(corpus.covariates[arguments.one_of("time", time, list(known))])
    given = pd.Series(arguments.sequence("time", time, "numbers or dates", some=True), dtype=object)
    if len(given) != corpus.num_docs:
        raise ValueError(
            f"time must have one entry for each of the {corpus.num_docs} documents, got "
            f"{len(given)}: {arguments.short_repr(time)}"
        )
    there = given.notna().to_numpy()
    if not there.any():
        raise ValueError("time must be there for some of the documents, it is missing in all")
    values, dates = times("time", given[there].tolist())
    edges, whole = _edges(values, dates, bins)
    count = len(edges) - 1
    found = np.minimum(np.searchsorted(edges, values, side="right") - 1, count)
    found[values == edges[-1]] = count if whole else count - 1
    found[found < 0] = count  # one more group, of the documents outside
    place = np.full(len(given), count)
    place[there] = found
    table = topic_prevalence_by_group(
        fit,
        by=place,
        names=[str(b) for b in range(count + 1)],
        interval=interval,
    )
    table = table[: count * alignment.num_topics]
    numbers = table.pop("group").astype(int).to_numpy()
    labels = topic_labels(fit, by="probability")
    table.insert(1, "label", np.array(labels.tolist(), object)[table["topic"]])
    bounds = np.round(edges).astype(np.int64).astype(DATES) if dates else edges
    start, end = bounds[:-1], bounds[1:]
    if whole:
        start, end = start.astype(int), end.astype(int) - 1
    head = {"bin": np.arange(count), "start": start, "end": end}
    periods = pd.DataFrame(head | {"middle": start + (end - start) / 2})
    table = pd.concat([periods.loc[numbers].reset_index(drop=True), table], axis=1)
    table.attrs["left_out"] = {"missing": int((~there).sum())}
    return table


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
        days = np.array([first, last]).astype(np.int64).astype(DATES)
        begin, end = pd.DatetimeIndex(days).to_period(frequency)
        periods = pd.period_range(begin, end + 1, freq=frequency)
        return periods.to_timestamp().to_numpy().astype(DATES).astype(float), False
    if bins is not None and not isinstance(bins, int | np.integer):
        edges, same = times("bins", bins)  # pyright: ignore[reportArgumentType] - it checks
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


class _Regression:
    """Least squares for one matrix of columns, and sums of the coefficients."""

    def __init__(self, matrix: Float[np.ndarray, "N P"], forms: Float[np.ndarray, "F P"]) -> None:
        self.q, r = np.linalg.qr(matrix)
        self.forms = forms @ np.linalg.solve(r, self.q.T)  # [F, N]
        self.squares = self.forms**2
        self.free = 1 - (self.q**2).sum(axis=1, keepdims=True)  # of a document's residual

    def __call__(
        self, response: Float[np.ndarray, "N R"]
    ) -> tuple[Float[np.ndarray, "F R"], Float[np.ndarray, "F R"]]:
        """Return the sums, and their standard errors (HC3).

        A document with a column of its own has no residual; its variance is the mean of the others.
        """
        residual = response - self.q @ (self.q.T @ response)
        usual = (residual**2).sum(axis=0) / max(self.free.sum(), 1.0)
        own = self.free <= _SMALL
        variance = np.where(own, usual, (residual / np.where(own, 1.0, self.free)) ** 2)
        return self.forms @ response, np.sqrt(self.squares @ variance)


def _normal_cdf(x: float | np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return normal distribution functions; a point mass where the deviation is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x - mean) / sd
    return scipy.special.ndtr(np.where(np.isnan(z), 0.0, z))


def _mixture_quantile(
    mean: Float[np.ndarray, "M F R"],
    sd: Float[np.ndarray, "M F R"],
    weight: Float[np.ndarray, " M"],
    tail: float,
) -> Float[np.ndarray, "F R"]:
    """Return a quantile of each mixture of normal distributions, by bisection."""
    found = np.zeros(mean.shape[1:])
    for k in range(mean.shape[2]):  # one topic after the other, for the memory
        m, s = mean[:, :, k], sd[:, :, k]
        at = m + s * scipy.special.ndtri(tail)
        low, high = at.min(axis=0), at.max(axis=0)  # the quantile lies between those of the parts
        for _ in range(32):  # to a billionth of their distance
            middle = (low + high) / 2
            below = weight @ _normal_cdf(middle, m, s) < tail
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        # many states may have no effect at all; then the quantile is exactly zero
        found[:, k] = np.where((low <= 0) & (high >= 0), 0.0, (low + high) / 2)
    return found
