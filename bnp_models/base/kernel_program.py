"""The program of a kernel's model, as the kernel shows it to ArviZ and to `simuk`.

These packages take `kernel.model` for a program whose latent sites are all among the draws. The
programs of this library have more sites: a kernel integrates some out, and records others on
request only.

Programs that are run with posterior draws must not draw a missing variable from its prior.
NumPyro's `Predictive(model, posterior_samples)` draws every site for which there are no samples
from its prior. The kernels integrate out what a program draws, and record it on request only.
Predictive draws of the data would then be draws from the prior, and nothing would say so. A program
can see the samples that it is run with. Samples of a kernel are told apart by the number of topics
or factors in use: every kernel records it, and no program has a site of that name.
"""

import dataclasses
import inspect
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import PyTree
from numpyro import handlers

from bnp_models.base.model import Model
from bnp_models.base.other_packages import handlers_in_force
from bnp_models.data import arguments

__all__ = ["KernelProgram", "one_data_argument", "refuse_prior_draws", "runs_with", "simulator"]

_FIELDS = {"w": "word", "x": "values"}  # of the data, by the site of a program that draws them
_APART = 2**31 - 1  # folded into a seed, which may also be that of a sampler


def one_data_argument(
    names: Collection[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return the data out of the arguments of `run(key, data)`; as keywords they have `names`.

    Raises
    ------
    ValueError
        If there are no data, more than one argument, or a keyword is not one of `names`.
    """
    spelt = " or ".join(f"{name}=" for name in names)
    if unknown := [name for name in kwargs if name not in names]:
        raise ValueError(
            f"run(key, data) takes the data by position or as {spelt}, got {unknown[0]}="
        )
    given = [*args, *kwargs.values()]
    if len(given) != 1 or given[0] is None:
        raise ValueError(
            f"run(key, data) takes one data argument, by position or as {spelt}, got "
            f"{sum(x is not None for x in given)}"
        )
    return given[0]


@dataclasses.dataclass(frozen=True)
class KernelProgram:
    """The program of a model in which the only latent sites are variables that a kernel collects.

    Latent sites that the kernel does not collect are drawn inside, where no handler sees them. With
    `observed=False` the program is that of the model.

    ArviZ makes a log likelihood by a run of the program with the draws as values of its sites. In
    a model of this library this would be that of each token given its own topic, if the draws hold
    topics at all; no comparison of models should use it. Such a run therefore has no observed
    sites, so that ArviZ 0.x, which makes one without being asked, makes none. Elsewhere it is
    refused.

    Parameters
    ----------
    model
        The model.
    collected
        Names of the variables that the kernel collects.
    """

    model: Model
    collected: frozenset[str]

    @property
    def __signature__(self) -> inspect.Signature:
        """Parameters of the program; `simuk` asks for their names."""
        return inspect.signature(self.model)

    def __call__(self, *args: Any, observed: bool = True, **kwargs: Any) -> None:
        """Run the program on data, given by position or by name.

        Raises
        ------
        ValueError
            If there is not one data argument, or if the run is for a log likelihood.
        """
        data = one_data_argument(self.model.terms.data, args, kwargs)
        rng_key = numpyro.prng_key() if observed else None
        if rng_key is not None:
            with handlers.block(hide_fn=self._hides), handlers.seed(rng_seed=rng_key):
                self.model(data)
        elif not observed or not runs_with(self.model.terms.count_variable):
            self.model(data, observed=observed)
        elif not _arviz_makes_one_unasked():
            raise ValueError(
                f"draws of {type(self.model).__name__} have no log likelihood by document or row "
                "in NumPyro, because the kernel integrates out what it depends on: use "
                "fit.log_likelihood(), which draws that, or log_likelihood=False"
            )

    def _hides(self, site: Mapping[str, Any]) -> bool:
        if site["type"] not in ("sample", "deterministic"):
            return False
        is_data = site["type"] == "sample" and site["is_observed"]
        if is_data:
            return isinstance(site["fn"], dist.Unit)  # of numpyro.factor
        return site["name"] not in self.collected


def _arviz_makes_one_unasked() -> bool:
    """Say whether ArviZ is there, and set to make log likelihoods that nobody asked for."""
    settings = getattr(sys.modules.get("arviz"), "rcParams", {})
    return bool(settings.get("data.log_likelihood", False))


def simulator(program: KernelProgram, data: PyTree) -> Callable[..., dict[str, Any]]:
    """Return a function that draws data of the sizes of `data`, given sites of the program.

    Parameters
    ----------
    program
        The program. That of an infinite model is truncated at its capacity, the kernel is not: the
        capacity must be so large that the rest has no weight.
    data
        Data whose sizes the drawn ones have.

    Returns
    -------
    A function of `seed`, an integer, and of values of sites by name, which returns the drawn data
    under the name that they have as an argument of the program.

    Raises
    ------
    ValueError
        If data drawn by the program do not have the law that the kernel assumes: other things than
        the data are observed, the program weights its draws by a factor, or the model takes from
        the data the units in which it works. Also if no latent site is visible.
    """
    model = program.model
    name = model.terms.data[0]
    units = getattr(model, "standardisation", lambda data: None)(data)
    with handlers.trace() as sites, handlers.seed(rng_seed=0):
        model(data)
    observed = [n for n, site in sites.items() if site["type"] == "sample" and site["is_observed"]]
    if units is not None or len(observed) != 1 or observed[0] not in _FIELDS:
        why = (
            "centres and scales its data, so that they do not have the law of its program: set "
            "centre=False and scale=False"
            if units is not None
            else f"also has the observed sites {[n for n in observed if n not in _FIELDS]}"
        )
        raise ValueError(f"model can't simulate its data: {type(model).__name__} {why}")
    if not program.collected & sites.keys():
        raise ValueError(
            f"{arguments.short_repr(model)} has nothing to calibrate: give a hyperparameter a "
            "prior "
            "such as numpyro.distributions.Gamma(2.0, 2.0), or record sites of the program"
        )
    (site,) = observed
    field = _FIELDS[site]
    old = np.asarray(getattr(data, field))

    @jax.jit
    def draw(rng_key: jax.Array, values: dict[str, Any]) -> jax.Array:
        seeded = handlers.seed(handlers.substitute(model, values), rng_key)
        return handlers.trace(seeded).get_trace(data, observed=False)[site]["value"]

    def simulate(*, seed: Any, **values: Any) -> dict[str, Any]:
        if unknown := [n for n in values if n not in sites]:
            raise ValueError(
                f"{unknown[0]} is not a site of {type(model).__name__}: give some of "
                f"{[n for n, x in sites.items() if x['type'] == 'sample' and n != site]}"
            )
        seed = arguments.integer("seed", seed)
        drawn = np.asarray(draw(jax.random.fold_in(jax.random.key(seed), _APART), values))
        if getattr(data, "observed", None) is not None:  # missing entries hold zeros
            drawn = np.where(data.observed, drawn, 0)
        return {name: dataclasses.replace(data, **{field: drawn.astype(old.dtype)})}

    return simulate


def refuse_prior_draws(
    mark: str, needed: Sequence[str], of_units: Sequence[str] = (), warning: str = ""
) -> None:
    """Stop a program that runs with draws of a kernel, but without variables that it needs.

    Parameters
    ----------
    mark
        Variable that every draw of a kernel has.
    needed
        Variables without which the draws say nothing about the data.
    of_units
        Variables of documents or authors, any of which will do. Without all of them documents are
        new ones, which may be wanted.
    warning
        What to say then.

    Raises
    ------
    ValueError
        If one of `needed` is missing.
    """
    sources = [known for known in map(_known_to, handlers_in_force()) if known(mark)]
    if not sources:
        return
    missing = [name for name in needed if not any(known(name) for known in sources)]
    ask = "use fit.posterior_predictive(), which draws them given the kept states, or fit again "
    if missing:
        names = ", ".join(missing)
        raise ValueError(
            f"posterior_samples has no {names}: NumPyro would draw them from the prior, and the "
            f"data with them; {ask}with record={tuple(needed) + tuple(of_units[:1])!r}"
        )
    if of_units and not any(known(name) for known in sources for name in of_units):
        warnings.warn(
            f"posterior_samples has no {of_units[0]}: {warning}. For data like those that were "
            f"fitted, {ask}with record={tuple(needed) + tuple(of_units[:1])!r}",
            stacklevel=3,
        )


def runs_with(mark: str) -> bool:
    """Return whether the program that calls this runs with a value for `mark`, see above."""
    return any(known(mark) for known in map(_known_to, handlers_in_force()))


def _known_to(handler: handlers.substitute | handlers.condition) -> Callable[[str], bool]:
    """Return a function that says whether a handler has a value for a site."""
    give = getattr(handler, "substitute_fn", None) or getattr(handler, "condition_fn", None)

    def known(name: str) -> bool:
        if handler.data is not None and name in handler.data:
            return True
        try:
            return give is not None and give({"name": name, "type": "sample"}) is not None
        except KeyError:  # it makes values for sites of any name, such as where NUTS starts
            return False

    return known
