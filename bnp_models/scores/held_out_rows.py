r"""Held-out scores of factor models, and the factors that new rows use.

A new row of source j uses factor k of a posterior state with probability $\pi_{jk} \sim
\mathrm{Beta}(\alpha_j \beta_k + n_{jk}, \alpha_j (1 - \beta_k) + N_j - n_{jk})$, drawn once for
each state. Its weights come from their prior. Factors that no training row uses are left out, as in
the paper. z and w of a row are integrated out in one of three ways (`METHODS`):

- "ais", annealed importance sampling: unbiased for the probability. Its logarithm is therefore too
  low on average, less so with more temperatures;
- "prior", draws of z and w from the prior: also unbiased, but useless for long rows, which hardly
  any draw fits;
- "eq32", draws of z and w given the row itself, inserted in the likelihood of the same row. This is
  how eq. 32 of the paper is commonly read. It counts the row twice and is too high, without limit
  for long rows. Its purpose is to reproduce published numbers.

Gupta, Phung and Venkatesh, UAI 2012, eqs. 32 and 33; Neal, Annealed importance sampling,
Statistics and Computing 11 (2001).
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from bnp_models.base.factor_model import FactorModel
from bnp_models.base.other_packages import refuse_forked
from bnp_models.base.row_annealing import NewRows, PoissonRows, draw_rows
from bnp_models.data import arguments
from bnp_models.data.sources import Sources, as_sources, check_counts, with_features
from bnp_models.posterior import arviz_data
from bnp_models.scores.held_out_score import errors_text, jackknife_error, log_mean_exp

__all__ = [
    "METHODS",
    "RowScore",
    "expected_shares",
    "expected_weights",
    "new_rows",
    "predict_rows",
    "row_completion",
    "row_evidence",
    "thin",
]

METHODS = ("ais", "prior", "eq32")
"""How `predict_rows` integrates out z and w."""

_SLOTS = 8  # their number is padded to a multiple, so that states share compiled programs
_STEEPNESS = 4.0  # of the temperature schedule, which is denser at both ends


@runtime_checkable
class RowFit(Protocol):
    """What the scores read of the fit of a factor model."""

    @property
    def model(self) -> FactorModel:
        """The model that was fitted."""
        ...

    @property
    def dataset(self) -> Sources:
        """The rows that it was fitted to."""
        ...

    @property
    def data(self) -> Any:
        """The draws, with kept states."""
        ...


class RowScore(NamedTuple):
    """Log probability of new rows, in nats, with its standard errors."""

    log_prob: float  # per row; every row by itself, averaged over states in probability space
    error_rows: float  # standard errors of log_prob; NaN where one cannot be had
    error_states: float
    error_chains: float
    joint_log_prob: float  # per row, of all rows together: the best states dominate
    row_log_prob: Float[np.ndarray, " N"]
    state_log_prob: Float[np.ndarray, "S N"]

    def __str__(self) -> str:
        """Say the score and its errors in one line."""
        errors = {"rows": self.error_rows, "states": self.error_states}
        errors |= {"chains": self.error_chains}
        text = f"{self.log_prob:.2f} nats per row over {len(self.row_log_prob)} rows"
        return f"{text}; {errors_text(errors)}"


def new_rows(fit: RowFit, *, unknown: bool = False, seed: int = 0) -> Iterator[NewRows]:
    r"""Return an iterator over kept states: the parameters of new rows under each.

    Parameters
    ----------
    unknown
        Whether rows come from one new source, instead of the sources that were fitted: $\pi_k =
        \beta_k$, and all other parameters are averages over the fitted sources.
    seed
        Seed of $\pi$.
    """
    _check_fit(fit)
    arguments.flag("unknown", unknown)
    seed = arguments.seed("seed", seed)
    refuse_forked()
    return _new_rows(fit, unknown, seed)


def _new_rows(fit: RowFit, unknown: bool, seed: int) -> Iterator[NewRows]:
    model, data = fit.model, fit.dataset
    states = arviz_data.group(fit.data, "states")
    source, num_rows = np.asarray(data.source), np.asarray(data.rows_per_source)[:, None]
    rng = np.random.default_rng(seed)
    for c, d in np.ndindex(states.sizes["chain"], states.sizes["draw"]):
        state = states.isel(chain=c, draw=d)
        z = state["z"].transpose("row", "factor").to_numpy().astype(bool)
        used = np.flatnonzero(z.any(axis=0))
        uses = np.stack([z[source == j][:, used].sum(0) for j in range(len(num_rows))])
        beta = state["beta"].to_numpy().astype(np.float64)[used]
        alpha = state["alpha"].to_numpy().astype(np.float64)[:, None]
        pi = rng.beta(alpha * beta + uses, alpha * (1 - beta) + num_rows - uses)
        phi = state["phi"].transpose("factor", "feature").to_numpy()[used]
        free = max(_SLOTS * math.ceil(len(used) / _SLOTS), _SLOTS) - len(used)
        phi = np.pad(phi, [(0, free), (0, 0)]).astype(np.float32)
        pi = np.pad(pi, [(0, 0), (0, free)]).astype(np.float32)
        arrays = {str(name): values.to_numpy() for name, values in state.items()}
        found = model.new_rows(phi, pi, arrays, data.num_sources)
        if unknown:
            pi = np.pad(beta, (0, free)).astype(np.float32)[None]
            found = type(found)(phi, pi, *(x.mean(keepdims=True) for x in found[2:]))
        yield found


def predict_rows(
    fit: RowFit,
    test: Sources,
    *,
    method: str = "ais",
    num_temperatures: int = 200,
    num_particles: int = 4,
    totals: bool = False,
    seed: int = 0,
) -> RowScore:
    r"""Score new rows of known sources.

    $$\log p = \frac1N \sum_n \log \frac1S \sum_s \hat p(x_n \mid \mathrm{state}\ s)$$

    Parameters
    ----------
    fit
        Fit of a factor model, with kept states.
    test
        Rows over the same features; each of its sources is one of the training data.
    method
        "ais", "prior" or "eq32", see above.
    num_temperatures, num_particles
        Steps from prior to posterior, and number of runs, per row and state. The two other methods
        use as many draws as there are steps in all runs.
    totals
        For counts: score only the sum of each row. The score of the rows minus this score is the
        score of the rows given their totals (bags of words), which can be compared with that of
        other models.
    seed
        Seed of $\pi$ and of the runs.

    Raises
    ------
    ValueError
        If the model is one of counts and the rows are not, the rows have other features, a source
        is unknown, an option is out of its domain, no state was kept, or `totals` is asked for and
        entries are missing.

    Notes
    -----
    Missing entries of a row are integrated out; the score is that of the others. The scores of a
    Gaussian model are log densities, which depend on the units of the data. Memory: five float32
    per temperature, particle, row and factor.
    """
    arguments.one_of("method", method, METHODS)
    arguments.flag("totals", totals)
    effort = {"num_temperatures": num_temperatures, "num_particles": num_particles}
    _check(**effort, seed=seed)
    values, observed, source = _prepare(fit, test, "test")
    states = new_rows(fit, seed=seed)
    if totals:
        _check_counts(fit, test)
        values = values.sum(axis=1, keepdims=True)
        states = (state.of_totals() for state in states if isinstance(state, PoissonRows))
    how = {"method": method, **effort}
    by_state = [
        row_evidence(np.random.default_rng([seed, s]), values, state, source, observed, **how)
        for s, state in enumerate(states)
    ]
    return _score(np.stack(by_state) - _log_units(fit, test), _chains(fit))


def row_evidence(
    rng: np.random.Generator,
    values: Num[np.ndarray, "N M"],
    state: NewRows,
    source: Int[np.ndarray, " N"],
    observed: Bool[np.ndarray, "N M"] | None = None,
    *,
    method: str = "ais",
    num_temperatures: int,
    num_particles: int,
) -> Float[np.ndarray, " N"]:
    r"""Estimate $\log p(x_n)$ of rows under one state, in nats.

    The exponential of the estimate is unbiased, except with "eq32", see above. Entries that are not
    `observed` are integrated out.
    """
    if method == "ais":
        powers = 1 / (1 + np.exp(-_STEEPNESS * np.linspace(-1.0, 1.0, num_temperatures + 1)))
        powers = (powers - powers[0]) / (powers[-1] - powers[0])
        steps = np.diff(powers)
        powers = powers[:-1]  # the last weight is that of the state before the last step
    else:
        steps = None
        powers = np.zeros(num_temperatures)
        if method == "eq32":
            warm = num_temperatures // 2 + 1
            powers = np.append(np.linspace(0.0, 1.0, warm, endpoint=False), powers + 1)
    how = {"num_particles": num_particles, "observed": observed}
    log_likelihood, _ = draw_rows(rng, values, state, source, powers, **how)
    if steps is not None:
        log_weight = np.einsum("t,trn->rn", steps, log_likelihood)
    else:
        log_weight = log_likelihood[-num_temperatures:].reshape(-1, len(values))
    return log_mean_exp(log_weight, axis=0)


def row_completion(
    fit: RowFit,
    test: Sources,
    *,
    num_warmup: int = 20,
    num_kept: int = 20,
    num_particles: int = 2,
    seed: int = 0,
) -> float:
    r"""Return the perplexity of one half of the counts of each new row, given the other half.

    Every single count goes to either half with probability 1/2. Given z and w, the halves are then
    independent Poisson variables of half the rate. Each held-out unit is predicted on its own, with
    `expected_shares` averaged over states. The perplexity is therefore comparable with the document
    completion of topic models on the same halves.

    Parameters
    ----------
    fit
        Fit of a factor model.
    test
        New rows of counts, of sources that were fitted.
    num_warmup, num_kept
        Sweeps per state: how many are discarded, and how many after them are averaged.
    num_particles
        Independent runs of these sweeps per state, which are averaged too.
    seed
        Seed of the halves and of the sweeps.
    """
    _check(num_warmup=num_warmup, num_kept=num_kept, num_particles=num_particles, seed=seed)
    test = _matched(fit, test, "test")
    _, _, source = _prepare(fit, test, "test")
    _check_counts(fit, test)
    values = np.asarray(test.values)  # counts, whatever the model does with them
    given = thin(values, seed)
    heldout = values - given
    if not heldout.any():
        raise ValueError("test has too few counts to hold some out; give longer rows")
    effort = {"num_warmup": num_warmup, "num_kept": num_kept, "num_particles": num_particles}
    shares = [
        expected_shares(np.random.default_rng([seed, s]), given, state.of_half(), source, **effort)
        for s, state in enumerate(new_rows(fit, seed=seed))
        if isinstance(state, PoissonRows)  # all are, by the check above
    ]
    log_prob = heldout * np.log(np.mean(shares, axis=0))
    return float(np.exp(-log_prob.sum() / heldout.sum()))


def thin(values: Int[np.ndarray, "N M"], seed: int) -> Int[np.ndarray, "N M"]:
    """Keep each single count with probability 1/2: the half that `row_completion` is given."""
    return np.random.default_rng(seed).binomial(values, 0.5).astype(np.int32)


def expected_shares(
    rng: np.random.Generator,
    values: Int[np.ndarray, "N M"],
    state: NewRows,
    source: Int[np.ndarray, " N"],
    *,
    num_warmup: int,
    num_kept: int,
    num_particles: int,
) -> Float[np.ndarray, "N M"]:
    r"""Estimate $\mathrm{E}[r_{ni} / \sum_i r_{ni} \mid x_n]$ under one state, r the rate."""
    powers = _rising(num_warmup, num_kept)
    _, shares = draw_rows(
        rng, values, state, source, powers, num_particles=num_particles, wanted="shares"
    )
    return shares.mean(axis=0, dtype=np.float64)


def expected_weights(
    fit: RowFit,
    rows: Sources,
    *,
    known: bool,
    num_warmup: int = 20,
    num_kept: int = 20,
    seed: int = 0,
) -> Iterator[Float[np.ndarray, "N K"]]:
    r"""Return an iterator over states: $\mathrm{E}[z_{nk} w_{nk} \mid x_n]$ of new rows in each.

    One array per state, not their mean: factor k of one state need not be factor k of another. K is
    the number of slots of the states, as in `FactorStates`.

    Parameters
    ----------
    rows
        New rows over the features that were fitted; entries may be missing.
    known
        Whether the sources of the rows are among those that were fitted. If not, all rows are
        treated as rows of one new source.
    num_warmup, num_kept
        Sweeps with the likelihood raised to rising powers, and sweeps that are averaged.
    """
    arguments.flag("known", known)
    _check(num_warmup=num_warmup, num_kept=num_kept, seed=seed)
    values, observed, source = _prepare(fit, rows, "rows", known)
    z = arviz_data.group(fit.data, "states")["z"].transpose("chain", "draw", "row", "factor")
    used = z.to_numpy().astype(bool).any(axis=2).reshape(-1, z.sizes["factor"])
    powers = _rising(num_warmup, num_kept)
    how = {"num_particles": 1, "wanted": "weights", "observed": observed}

    def one_state(s: int, state: NewRows) -> Float[np.ndarray, "N K"]:
        rng = np.random.default_rng([seed, s])
        mean = draw_rows(rng, values, state, source, powers, **how)[1][0]
        weights = np.zeros((len(values), used.shape[1]))
        slots = np.flatnonzero(used[s])
        weights[:, slots] = mean[:, : len(slots)]
        return weights

    states = new_rows(fit, unknown=not known, seed=seed)
    return (one_state(s, state) for s, state in enumerate(states))


def _matched(fit: RowFit, rows: Sources, name: str) -> Sources:
    """Return rows with the features in the order of the training data.

    Raises `ValueError` without kept states, or for rows of another kind or other features.
    """
    _check_fit(fit)
    if not arviz_data.has_group(fit.data, "states"):
        raise ValueError("keep_states must be positive when fitting: no full state was kept")
    fit.model.check_data(as_sources(name, rows))
    try:
        return with_features(rows, fit.dataset.feature_names)
    except ValueError as error:
        raise ValueError(f"{name} must have the features of the training data: {error}") from None


def _score(by_state: Float[np.ndarray, "S N"], chain: Int[np.ndarray, " S"]) -> RowScore:
    num_states, num_rows = by_state.shape

    def score_with(kept: Bool[np.ndarray, " S"]) -> float:
        return float(log_mean_exp(by_state[kept], axis=0).mean())

    rows, together = log_mean_exp(by_state, axis=0), by_state.sum(axis=1, keepdims=True)
    return RowScore(
        log_prob=float(rows.mean()),
        error_rows=float(rows.std(ddof=1) / math.sqrt(num_rows)) if num_rows > 1 else math.nan,
        error_states=jackknife_error(score_with, np.arange(num_states)),
        error_chains=jackknife_error(score_with, chain),
        joint_log_prob=float(log_mean_exp(together, axis=0)[0] / num_rows),
        row_log_prob=rows,
        state_log_prob=by_state,
    )


def _chains(fit: RowFit) -> Int[np.ndarray, " S"]:
    states = arviz_data.group(fit.data, "states")
    return np.repeat(states["chain"].to_numpy(), states.sizes["draw"])


def _rising(num_warmup: int, num_kept: int) -> Float[np.ndarray, " T"]:
    """Return powers that rise from 0, and then are 1 for the sweeps that are averaged."""
    return np.append(np.linspace(0.0, 1.0, num_warmup, endpoint=False), np.ones(num_kept))


def _check_counts(fit: RowFit, test: Sources) -> None:
    """Refuse what a score of counts needs: rows of counts, and a model of counts."""
    check_counts(test)
    if "row_completion" not in fit.model.scores:
        raise ValueError("fit must be one of a model of counts: a Gaussian one has no such score")


def _check_fit(fit: RowFit) -> None:
    if not hasattr(getattr(fit, "model", None), "new_rows") or not hasattr(fit, "data"):
        raise ValueError(
            f"fit must be what bnp_models.fit returns for a factor model, got "
            f"{arguments.short_repr(fit)}"
        )


def _prepare(
    fit: RowFit, test: Sources, name: str, known: bool = True
) -> tuple[Num[np.ndarray, "N M"], Bool[np.ndarray, "N M"] | None, Int[np.ndarray, " N"]]:
    """Return new rows, the mask of observed entries, and the sources as numbers in training.

    The rows are centred and scaled as the training data are. If the sources are not `known`, all
    rows are of source 0.
    """
    test = _matched(fit, test, name)
    source = np.asarray(test.source)
    source = fit.dataset.positions_of(test.source_names)[source] if known else np.zeros_like(source)
    observed = None if test.observed is None else np.asarray(test.observed)
    values, found = np.asarray(test.values), fit.model.standardisation(fit.dataset)
    return values if found is None else found.apply(values, observed), observed, source


def _log_units(fit: RowFit, test: Sources) -> Float[np.ndarray, " N"] | float:
    """Return what the log density of each row loses when it is taken in units of the data."""
    found = fit.model.standardisation(fit.dataset)
    if found is None:
        return 0.0
    there = np.ones(np.shape(test.values), bool) if test.observed is None else test.observed
    return np.asarray(there).sum(axis=1) * found.log_scale


def _check(**numbers: int) -> None:
    for name, value in numbers.items():
        arguments.seed(name, value) if name == "seed" else arguments.integer(name, value, 1)
