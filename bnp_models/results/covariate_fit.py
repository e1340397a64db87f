"""Fits of topic models whose prior weights depend on covariates: coefficients, predicted shares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float

from bnp_models.data import arguments
from bnp_models.results import topic_effects
from bnp_models.results.result import interval_columns
from bnp_models.results.topic_draws import by_number
from bnp_models.results.topic_fit import TopicFit
from bnp_models.results.topic_tables import topic_labels

if TYPE_CHECKING:
    from bnp_models.models.dirichlet_multinomial_regression import DirichletMultinomialRegression

__all__ = ["CovariateFit"]

OfState = Callable[[Float[np.ndarray, "F K"]], Float[np.ndarray, "N K"]]
"""Of the coefficients of a state: N values of each topic."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CovariateFit(TopicFit):
    """What `fit` returns for `DirichletMultinomialRegression`: a `TopicFit`, and coefficients."""

    model: DirichletMultinomialRegression  # pyright: ignore[reportIncompatibleVariableOverride]

    offers: ClassVar[str] = f"effects(), predicted_shares(table), {TopicFit.offers}"

    def effects(
        self,
        formula: str | pd.DataFrame | Mapping[str, Any] | None = None,
        covariates: pd.DataFrame | Mapping[str, Any] | None = None,
        *,
        topics: Sequence[int] | None = None,
        interval: float = 0.9,
        num_draws: int = 10,
        seed: int = 0,
    ) -> pd.DataFrame:
        r"""Describe how topics change with the covariates: by the model, and after the fit.

        Parameters
        ----------
        formula, covariates
            Of the regression after the fit, see `topic_effects.effects`; by default the formula of
            the model and the covariates of its corpus.
        topics, interval, num_draws, seed
            See `topic_effects.effects`.

        Returns
        -------
        table
            The table of `topic_effects.effects`, whose `effect` is a regression of the documents'
            shares after the fit. If its terms are those of the model, these columns come before:
            `coefficient`, the $\lambda$ of the model in the units of the covariates, which is
            added to the log of a prior weight when a number grows by one, or from the first level
            to this one; `predicted`, the mean over the documents of the slope of their expected
            share in this term (for the intercept: of the expected share itself); each with the
            bounds of its interval, `coefficient_lower` and so on. `predicted` says what holds of
            new documents. `effect` says what holds of these documents, words and all.
            Coefficients of all topics may grow together, which makes documents less sparse, so
            compare them with each other.

        Raises
        ------
        ValueError
            As `topic_effects.effects`.
        """
        given = self.model.formula if formula is None else formula
        how = {"topics": topics, "interval": interval, "num_draws": num_draws, "seed": seed}
        table = topic_effects.effects(self, given, covariates, **how)
        fit, columns = self.shown, self.model.columns(self.dataset)
        terms, rows = columns.terms, self._rows()
        asked = list(dict.fromkeys(table["term"]))
        if covariates is not None or asked != list(terms):
            return table
        chosen = list(dict.fromkeys(table["topic"]))

        def slopes(coefficients: Float[np.ndarray, "F K"]) -> Float[np.ndarray, "F K"]:
            share = expected_shares(rows, coefficients)
            middle = columns.is_intercept[:, None] * share.mean(axis=0)
            in_units = np.diag(columns.to_units) * ~columns.is_intercept
            own = coefficients * in_units[:, None]
            return middle + np.stack(
                [(share * (each - share @ each[:, None])).mean(axis=0) for each in own]
            )

        of_states = {
            "coefficient": lambda coefficients: columns.to_units @ coefficients,
            "predicted": slopes,
        }
        place = 3  # after topic, label and term
        for name, of_state in of_states.items():
            values = fit._over_states(of_state)[:, :, chosen]  # [S, F, R]
            flat = values.transpose(0, 2, 1).reshape(len(values), -1)
            for column, x in interval_columns(name, flat, interval, prefix=f"{name}_").items():
                table.insert(place, column, x)
                place += 1
        return table

    def predicted_shares(
        self,
        covariates: pd.DataFrame | Mapping[str, Any],
        *,
        topics: Sequence[int] | None = None,
        interval: float = 0.9,
    ) -> pd.DataFrame:
        r"""Return the expected share of each topic in documents with these covariates.

        In each state it is $\alpha_{dk} / \sum_j \alpha_{dj}$, the mean before a word is read.

        Parameters
        ----------
        covariates
            A table, or columns by name, with a row for each document that is asked about; all
            columns of the formula.
        topics
            Topics to show; all by default.
        interval
            Probability that `lower` and `upper` enclose.

        Returns
        -------
        table
            One row per topic and row of the covariates: topic, label, the covariates, share (the
            mean over the kept states), lower, upper.

        Raises
        ------
        ValueError
            If a covariate is missing or has a value that the fit can't place, or an option is out
            of its domain.
        """
        columns = self.model.columns(self.dataset)
        arguments.instance(
            "covariates", covariates, pd.DataFrame | Mapping, "a table, or columns by name"
        )
        try:
            asked = pd.DataFrame(covariates).reset_index(drop=True)
        except (ValueError, TypeError) as error:  # no lists, or of several lengths
            raise ValueError(
                "covariates must be columns by name, each with one entry per row, got "
                f"{arguments.short_repr(covariates)}: {error}"
            ) from None
        rows = columns.of_docs.columns_of_table(asked, "covariates", "give all of them")
        fit = self.shown
        chosen = arguments.indices(
            "topics", range(fit.alignment.num_topics) if topics is None else topics,
            fit.alignment.num_topics,
        )  # fmt: skip
        values = fit._over_states(lambda coefficients: expected_shares(rows, coefficients))
        flat = values[:, :, chosen].transpose(0, 2, 1).reshape(len(values), -1)
        labels = np.array(topic_labels(fit, by="probability").tolist(), object)
        used = asked[list(columns.design.columns)]
        head = {
            "topic": np.repeat(chosen, len(used)),
            "label": np.repeat(labels[chosen], len(used)),
        }
        head |= {name: np.tile(used[name], len(chosen)) for name in used}
        return pd.DataFrame(head | interval_columns("share", flat, interval))

    def _rows(self) -> Float[np.ndarray, "D F"]:
        return self.model.columns(self.dataset).matrix.astype(np.float64)

    def _over_states(self, of_state: OfState) -> Float[np.ndarray, "S N R"]:
        """Return values of the topics by their numbers in each state; NaN in one without it."""
        number, count = self.alignment.number, self.alignment.num_topics
        every = self.states["coefficients"].to_numpy().astype(np.float64)
        every = every.reshape(len(number), *every.shape[2:])
        return np.stack(
            [by_number(of_state(x), n, count, np.nan) for x, n in zip(every, number, strict=True)]
        )


def expected_shares(
    columns: Float[np.ndarray, "D F"], coefficients: Float[np.ndarray, "F K"]
) -> Float[np.ndarray, "D K"]:
    """Return the means of the documents' Dirichlet laws."""
    log_weights = columns @ coefficients
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
