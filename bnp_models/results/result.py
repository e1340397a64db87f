"""What the fits of all models have in common: draws, states, files, and judging convergence."""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
import json
import operator
import os
import pkgutil
import textwrap
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Num

from bnp_models.base.model import Model, from_description
from bnp_models.data import arguments
from bnp_models.data.documents import html_table
from bnp_models.data.files import check_seal
from bnp_models.posterior import arviz_data
from bnp_models.posterior.intervals import tail_quantiles, weighted_quantiles
from bnp_models.posterior.representative import LARGE, ChainMatches, match_chains
from bnp_models.posterior.stacking import with_weights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bnp_models.data.corpus import Corpus
    from bnp_models.data.sources import Sources
    from bnp_models.posterior.alignment import Alignment, InChains
    from bnp_models.posterior.functionals import Functionals

__all__ = ["Delegated", "Fit", "Summaries", "interval_columns", "put_together", "read_draws"]

_FIX = "restore it, or save the fit again"
AnyFit = TypeVar("AnyFit", bound="Fit")
Drawn = TypeVar("Drawn")


class Delegated:
    """A method that is a function of another module, which is imported at the first use.

    The method has the docstring of the function, and those of its parameters that the fit does not
    give.

    Parameters
    ----------
    place
        Module of this package and name of the function, with a colon between them.
    *given
        Attributes of the fit that the first parameters of the function get.
    **named
        Attributes of the fit that other parameters get, by the name of the parameter.
    """

    def __init__(self, place: str, *given: str, **named: str) -> None:
        self.place, self.given, self.named = place, given, named

    def __get__(self, fit: Fit | None, owner: type[Fit]) -> Callable[..., Any]:
        """Return the method of a fit, or that of its class."""
        return self.method if fit is None else types.MethodType(self.method, fit)

    @functools.cached_property
    def method(self) -> Callable[..., Any]:
        """The function, with a fit in place of what the fit gives."""
        function = pkgutil.resolve_name(f"bnp_models.{self.place}")
        given = [operator.attrgetter(name) for name in self.given]
        named = {p: operator.attrgetter(name) for p, name in self.named.items()}

        @functools.wraps(function)
        def method(fit: Fit, *args: Any, **options: Any) -> Any:
            options |= {p: get(fit) for p, get in named.items()}
            return function(*(get(fit) for get in given), *args, **options)

        signature = inspect.signature(function)
        own = list(signature.parameters.values())[len(given) :]
        fit = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [fit, *(p for p in own if p.name not in named)]
        vars(method)["__signature__"] = signature.replace(parameters=parameters)
        return method


class Summaries(NamedTuple):
    """Tables, text and pictures of a run; those that need data which are not there are left out."""

    tables: dict[str, pd.DataFrame]
    text: Callable[[int | None], str] | None
    """Lays out the main table, given how many rows to show (None: all); None without states."""
    drawn: dict[str, Any]
    """Axes, one or an array of them, by the name of the picture."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fit(abc.ABC):
    """Draws from the posterior of a model, with the methods that fits of all models have.

    A model names the class of its fits (`model.result`): `TopicFit`, `AuthorFit`, `FactorFit`.

    Chains that have settled in different places hold different topics, and an average over them
    describes none of them. Numbers, labels, tables, intervals and pictures of topics or factors are
    therefore those of one chain, the `representative`, and say how well they are found in the other
    chains. `of_chain(c)` shows another chain. `pooled()` shows the average over all chains, as a
    fit does by itself where all chains agree (`representative.LARGE`). Scores, predicted labels,
    and what does not depend on numbers of topics use all chains.

    Attributes
    ----------
    model
        The model that was fitted.
    dataset
        The data it was fitted to.
    data
        The draws: `arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (1.x).
    """

    model: Model
    dataset: Any
    data: Any

    offers: ClassVar[str]
    """Methods to name when a user asks for one that only the fits of other models have."""
    default_scores: ClassVar[tuple[str, ...]]
    """Those of `model.scores` that the command line computes if none is asked for."""
    counted: ClassVar[str]
    """What the sizes of topics or factors count, in the plural."""

    @abc.abstractmethod
    def summaries(self) -> Summaries:
        """Return tables, text and pictures for the folder of a run."""

    @abc.abstractmethod
    def text(self, *, limit: int | None = None) -> str:
        """Return the main table as text; its keyword arguments are options on the command line.

        Parameters
        ----------
        limit
            Only so many topics or factors, the largest ones.
        """

    @abc.abstractmethod
    def match(self, data: Corpus | Sources) -> tuple[Corpus | Sources, list[str]]:
        """Return held-out data in the form that the scores take, and notes for the user."""

    @abc.abstractmethod
    def evaluate(
        self, score: str, data: Corpus | Sources, *, seed: int = 0, num_words: int = 10
    ) -> str:
        """Compute one of `model.scores` of held-out data and return it as a line of text.

        Parameters
        ----------
        score
            One of `model.scores`.
        data
            From `match`.
        seed
            Seed of the score.
        num_words
            Words per topic, for scores of coherence.
        """

    def __getattr__(self, name: str) -> Any:
        """Raise `AttributeError` that names the methods of this fit."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"a fit of {type(self.model).__name__} has no {name!r}; it has {self.offers}, and as "
            "every fit save(path), report(path) and convergence()"
        )

    def __repr__(self) -> str:
        sizes = self.posterior.sizes
        return (
            f"{type(self).__name__}({self.model!r}, {self.dataset!r}, "
            f"chains: {sizes['chain']}, draws of each: {sizes['draw']})"
        )

    def _repr_html_(self) -> str:
        sizes = self.posterior.sizes
        rows = {
            "model": repr(self.model),
            "data": repr(self.dataset),
            "draws": f"{sizes['draw']} of each of {sizes['chain']} chains",
            "next": f"convergence(), report(path); {self.offers}",
        }
        return html_table(type(self).__name__, rows)

    @property
    def posterior(self) -> Any:
        """The recorded draws as an `xarray.Dataset`."""
        return arviz_data.group(self.data, "posterior")

    @property
    def has_states(self) -> bool:
        """Whether full states were kept."""
        return arviz_data.has_group(self.data, "states")

    @property
    def states(self) -> Any:
        """The full states that were kept, as an `xarray.Dataset`.

        Raises
        ------
        ValueError
            If there are none (`keep_states=0`).
        """
        if not self.has_states:
            raise ValueError("keep_states must be positive when fitting: no full state was kept")
        return arviz_data.group(self.data, "states")

    def of_chain(self: AnyFit, chain: int) -> AnyFit:
        """Return the fit that has the draws of one chain only.

        It has the topics that this chain uses, numbered by an alignment of its own states: topic 3
        may be another one than topic 3 of another chain. Its tables say how well they are found in
        the other chains.

        Parameters
        ----------
        chain
            Number of the chain, from 0.

        Raises
        ------
        ValueError
            If there is no such chain.
        """
        chains = self._chain_numbers()
        known = isinstance(chain, int | np.integer) and not isinstance(chain, bool)
        if not known or chain not in chains:
            raise ValueError(f"chain must be one of {chains}, got {arguments.short_repr(chain)}")
        if len(chains) == 1:
            return self
        if chain not in self._of_chain:
            # a chain alone has no weight
            data = arviz_data.one_chain(with_weights(self.data, None), chain)
            alone = dataclasses.replace(self, data=data)
            vars(alone)["_among"] = self  # with whose other chains its topics are compared
            self._of_chain[int(chain)] = alone
        return self._of_chain[chain]

    def pooled(self: AnyFit) -> AnyFit:
        """Return this fit with tables and pictures that average over all chains.

        Topics are numbered by one alignment of all states. A chain without a topic counts as zero.
        """
        fit = dataclasses.replace(self)
        made = {name: value for name, value in vars(self).items() if name != "shown"}
        vars(fit).update(made | {"_is_pooled": True})
        return fit

    def representative(self) -> int:
        """Return the number of the chain that is most like the others.

        Tables and pictures show it, unless all chains agree. Of two chains it is the one with the
        higher mean of `lp`. See `bnp_models.posterior.representative`.

        Raises
        ------
        ValueError
            If no full state was kept.
        """
        return self.matches.representative()

    @functools.cached_property
    def matches(self) -> ChainMatches:
        """The topics or factors of the chains, matched in pairs of chains.

        A chain in which no kept state has a finite `lp` is left out.
        """
        lp = arviz_data.group(self.data, "sample_stats")["lp"].transpose("chain", "draw")
        of_states = np.isfinite(lp.sel(draw=self.states["draw"]).to_numpy())
        # a chain without a finite density has failed: it is like no other one
        chains = [c for c, of in zip(self._chain_numbers(), of_states, strict=True) if of.any()]
        if not chains:
            raise ValueError("lp must be finite in some kept state of some chain")
        means = lp.mean("draw", skipna=False)
        found = [self.of_chain(c)._found(float(means.sel(chain=c))) for c in chains]
        return match_chains(chains, found, *self._likeness())

    @functools.cached_property
    def shown(self) -> Any:
        """The fit that tables and pictures read: that of one chain, or this one."""
        whole = vars(self).get("_is_pooled") or not self._comparable() or self._agree()
        return self._presented(self if whole else self.of_chain(self.representative()))

    def _presented(self, fit: Any) -> Any:
        """Return a fit of one chain, or of these, with its topics as the user wants to see them."""
        return fit

    def _agree(self) -> bool:
        """Return whether all chains have each large topic, and one alignment of all finds it."""
        matches = self.matches
        if len(matches.chains) < len(self._chain_numbers()) or not matches.agree():
            return False
        if not any(len(one.share) for one in matches.found):
            return True
        alignment = self.alignment
        large = alignment.shares().mean(axis=0) > LARGE
        missed = float(alignment.unmatched()["share"].to_numpy().max(initial=0))
        return bool(alignment.common()[large].all()) and missed <= LARGE

    def _with_data(self: AnyFit, data: Any) -> AnyFit:
        """Return the fit of other attributes of the same draws, which shows what this one shows."""
        fit = dataclasses.replace(self, data=data)
        if self._whole is not self:
            vars(fit)["_among"] = self._whole
        return fit.pooled() if vars(self).get("_is_pooled") else fit

    @property
    def _whole(self) -> Any:
        """The fit of all chains that this one is a part of; itself if it is none."""
        return vars(self).get("_among", self)

    def _captioned(self, axes: Drawn) -> Drawn:
        """Say below a picture what `_caption` says."""
        from bnp_models.plots.panels import caption

        caption(np.asarray(axes, object).flat[0], self._caption())
        return axes

    def _caption(self) -> str:
        """Say if tables and pictures are of one of several chains."""
        if self._whole is self:
            return ""
        chain = self._chain_numbers()[0]
        return f"Chain {chain}: shares and intervals are within this chain."

    @functools.cached_property
    def alignment(self) -> Alignment:
        """Common numbers of the topics or factors in all states of this fit, for display only.

        Tables have those of `shown`.
        """
        return self._numbered._replace(in_chains=self._in_chains())

    def _in_chains(self) -> InChains | None:
        """Return how the topics of a fit of one chain are found in the other chains."""
        whole = self._whole
        return None if whole is self else whole.matches.of_chain(self._chain_numbers()[0])

    def _other_chains(self) -> list[tuple[Any, np.ndarray]]:
        """Return the fits of the other chains, and the partner there of each topic; -1: none."""
        whole, own = self._whole, self._chain_numbers()[0]
        numbers = [] if whole is self else whole.matches.chains.tolist()
        return [(whole.of_chain(c), whole.matches.partners(own, c)) for c in numbers if c != own]

    def _in_other_chains(
        self, values: Callable[[Any], Float[np.ndarray, "r ..."]]
    ) -> Float[np.ndarray, "C R ..."] | None:
        """Return values of the topics in each other chain, NaN where it has none.

        `values` returns those of all topics of a fit. None: there are no other chains.
        """
        found = []
        for other, partner in self._other_chains():
            theirs = np.asarray(values(other), np.float64)
            nowhere = np.full((1, *theirs.shape[1:]), np.nan)
            found.append(np.concatenate([theirs, nowhere])[partner])  # -1 is the last one
        return np.stack(found) if found else None

    def _chain_numbers(self) -> list[int]:
        return self.posterior["chain"].to_numpy().tolist()

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        *,
        num_rows: int | None = 1000,
        title: str | None = None,
        effects: str | None = None,
        time: str | Sequence[Any] | np.ndarray | None = None,
    ) -> Path:
        """Write a report as one HTML page, whole or not at all, and return its path.

        The page needs no network and no other file. It begins with the verdict on convergence.
        Then come the topics or factors with their intervals, a list of the documents or rows that
        can be searched, pictures, and how the run was made.

        Parameters
        ----------
        path
            The file; its name should end in `.html`. An older file is replaced.
        num_rows
            Rows of the long lists at most: documents, authors, rows of the data. Those in the page
            are evenly spaced in the order of the data, and the page says how many there are. A
            thousand documents take about a megabyte. None puts all into the page.
        title
            What stands above; by default the name of the model.
        effects
            Formula of a part about the effects of covariates on topics, such as "~ party + s(day)";
            see `topic_effects.effects`. The covariates are those of the corpus. The terms of the
            splines `s`, `bs` and `cr` are not listed: their curves are drawn.
        time
            When each document was written, for a part about topics over time: the name of a
            covariate of the corpus, or values as in `topic_effects.topics_over_time`.

        Raises
        ------
        ValueError
            If `path` is a folder or its folder is missing, an option is out of its domain, or the
            fit is none of topics and effects or time are asked for.
        """
        from bnp_models.report.page import write_page

        return write_page(self, path, num_rows=num_rows, title=title, effects=effects, time=time)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the draws as netCDF, whole or not at all; any ArviZ reads it."""
        return arviz_data.save(self.data, path)

    @classmethod
    def load(cls, draws: str | os.PathLike[str], data: Corpus | Sources) -> Any:
        """Read what `save` wrote.

        Parameters
        ----------
        draws
            The netCDF file.
        data
            The data that were fitted: a `Corpus`, for instance from `Corpus.load`, or the `Sources`
            of a factor model.

        Returns
        -------
        What `fit` returned, of the class that the model names.

        Raises
        ------
        ValueError
            If the file does not come from a fit, is damaged or was changed by another program, or
        is from a fit of other data.
        """
        draws = arguments.path("draws", draws)
        return put_together(draws, *read_draws(draws), data)

    posterior_predictive = Delegated(
        "posterior.predictive:posterior_predictive", "model", "dataset", "data"
    )
    log_likelihood = Delegated("posterior.predictive:log_likelihood", "model", "dataset", "data")
    prior_predictive = Delegated("posterior.predictive:prior_predictive", "model", "dataset")
    convergence = Delegated("posterior.diagnostics:convergence", "data", terms="model.terms")
    plot_traces = Delegated("plots.chain_plots:plot_traces", "data", terms="model.terms")
    plot_ranks = Delegated("plots.chain_plots:plot_ranks", "data", terms="model.terms")
    plot_tempering = Delegated("plots.tempering_plots:plot_tempering", "data")
    plot_history = Delegated("plots.chain_plots:plot_history", "data", terms="model.terms")

    def plot_functionals(
        self, functionals: Functionals | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """Draw R-hat of each functional: what the chains agree on, beside what they do not.

        Parameters
        ----------
        functionals
            What `functionals` returned; by default it is called without options.
        ax
            Where to draw.
        """
        from bnp_models.plots.chain_plots import plot_functionals

        if functionals is None:
            functionals = self._functionals
        return plot_functionals(functionals, ax=ax)

    @functools.cached_property
    def _functionals(self) -> Functionals:
        """The functionals for the folder of a run and the picture."""
        return self.functionals()

    @functools.cached_property
    def _of_chain(self) -> dict[int, Any]:
        """The fits of single chains that were asked for, which keep their alignments."""
        return {}

    def _chains_text(self) -> str:
        """Say which chains the tables are made from; `alignment` is that of the class."""
        from bnp_models.report.text import chains_text

        words = {"counted": self.counted, "terms": self.model.terms}
        whole = self._whole
        own = whole is not self and [whole.representative()] == self._chain_numbers()
        text = chains_text(self.alignment, representative=own, **words)
        options = json.loads(self.data.attrs.get("options", "{}"))
        if options.get("approximation"):
            text += f"\nThe sampler was not exact: approximation={options['approximation']!r}."
        if options.get("optimise"):
            text += f"\nOptimised, not sampled: {', '.join(options['optimise'])}."
        if not (head := self._modes_text()):
            return text
        agreed = whole._functionals.text().splitlines()
        return "\n".join([text, *(textwrap.fill(line, 100) for line in [head, *agreed])])

    def _modes_text(self) -> str:
        """Say what chains in different modes mean for the tables; nothing of other chains."""
        whole = self._whole
        if not whole._comparable():
            return ""
        judged = whole.convergence()
        if judged.verdict != "different modes":
            return ""
        parts, rhat = self.model.terms.parts, judged.table["rhat"].fillna(np.inf)
        apart = rhat[judged.table["verdict"].str.startswith("different modes")]
        if not whole._agree():
            return (
                f"The chains have settled in different modes and differ in {parts}: an average of "
                "all chains describes none of them, and intervals within one chain leave out what "
                "other chains hold."
            )
        more = len(apart) - 1
        others = f" and {more} other {'quantity' if more == 1 else 'quantities'}" if more else ""
        shown = "" if whole is not self else ", so the tables average over the chains"
        return (
            f"The chains have settled in different modes: they differ in {apart.idxmax()}{others}. "
            f"All of them have the same large {parts}, at least roughly{shown}."
        )

    def _comparable(self) -> bool:
        """Say whether there are states of two chains or more."""
        return self.has_states and self.posterior.sizes["chain"] > 1

    def _with_functionals(self, made: Summaries) -> Summaries:
        """Add the table and the picture of functionals, if chains can be compared."""
        if not self._comparable():
            return made
        return made._replace(
            tables=made.tables | {"functionals": self._functionals.table},
            drawn=made.drawn | {"functionals": self.plot_functionals()},
        )


def interval_columns(
    name: str,
    values: Num[np.ndarray, "S ..."],
    interval: float,
    weight: Float[np.ndarray, " S"] | None = None,
    *,
    prefix: str = "",
) -> dict[str, np.ndarray]:
    """Return mean and interval over states as columns: `name`, `lower` and `upper`.

    NaN stands for a state that has no value, and in the columns where no state has one. If states
    have weights, quantiles are not interpolated. `prefix` stands before "lower" and "upper".
    """
    tails, flat = tail_quantiles(interval), values.reshape(len(values), -1)
    missing = np.isnan(flat)
    mass = ~missing * (np.ones(len(flat)) if weight is None else weight)[:, None]
    some = mass.sum(axis=0) > 0
    found = np.full((3, flat.shape[1]), np.nan)
    mass, flat, missing = mass[:, some], flat[:, some], missing[:, some]
    total = np.where(mass > 0, mass * np.where(missing, 0.0, flat), 0.0).sum(axis=0)
    found[0, some] = total / mass.sum(axis=0)
    if weight is not None:
        found[1:, some] = weighted_quantiles(flat, tails, weight)
    else:
        found[1:, some] = (np.nanquantile if missing.any() else np.quantile)(flat, tails, axis=0)
    names = name, f"{prefix}lower", f"{prefix}upper"
    return dict(zip(names, found.reshape(3, *values.shape[1:]), strict=True))


def read_draws(path: str | os.PathLike[str]) -> tuple[Model, Any]:
    """Read the model and the draws of a file that `Fit.save` wrote.

    Raises
    ------
    ValueError
        If the file does not come from a fit, or is damaged. A file that another program changed or
        wrote again has no valid checksum and is refused.
    """
    path = arguments.path("path", path)
    check_seal(path, _FIX, required=True)
    draws = arviz_data.load(path)
    try:
        model = from_description(json.loads(draws.attrs["model"]))
        posterior, stats = (arviz_data.group(draws, n) for n in ("posterior", "sample_stats"))
        for of, name in ((draws.attrs, "data"), (posterior, "chain"), (stats, "lp")):
            of[name]  # pyright: ignore[reportUnusedExpression] - is it there?
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} was not written by Fit.save ({error}); {_FIX}") from None
    return model, draws


def put_together(
    path: str | os.PathLike[str], model: Model, draws: Any, data: Corpus | Sources
) -> Any:
    """Return the fit of draws that `read_draws` read, after a check that the data are theirs.

    Raises
    ------
    ValueError
        If the draws are from a fit of other data.
    """
    arguments.instance("data", data, model.readers.data_type, f"{model.readers.data_type.__name__}")
    if draws.attrs["data"] != data.digest:
        raise ValueError(f"data are not those of {path}; give the ones that were fitted")
    return model.fit_type()(model, data, draws)
