"""`to_fit`: a fit of what `numpyro.infer.MCMC` has drawn with a kernel of this library."""

import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from numpyro.infer import MCMC
from numpyro.infer.util import log_density

from bnp_models.base.gibbs import GibbsKernel, GibbsModel, GibbsState, as_batch
from bnp_models.base.other_packages import arguments_of_run
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus
from bnp_models.data.sources import Sources
from bnp_models.results.result import Fit
from bnp_models.run.draws import Arrays, by_group, describe_run, evenly, flatten, pack, to_data

__all__ = ["to_fit"]


def to_fit(mcmc: MCMC, data: Corpus | Sources | None = None, *, keep_states: int = 10) -> Fit:
    """Make a fit of a finished run of `numpyro.infer.MCMC`: tables, `convergence`, `report`.

    The kernel of the run is `model.gibbs(...)`, or `numpyro.infer.Gibbs` with such a kernel as one
    of its blocks. Nothing is drawn again: with the same seed, chains and settings the draws are
    those of `fit`.

    Topics, documents and scores are averages over full states of the chains. If the run has
    collected all that a state consists of, `keep_states` draws of each chain are full states. The
    sites of a block are all. Where the kernel is alone, ask for what `fit.states` holds beside
    hyperparameters: `record=("z",)` for `LDA`, `("z", "root_weights", "unused_weight")` for
    `HDPLDA`. Otherwise only the last state of each chain is a full state, and intervals of topics
    have no width within a chain; a warning says so, unless `keep_states` is 1 or 0.
    Convergence is judged by all draws in either case.

    Parameters
    ----------
    mcmc
        The run. What `extra_fields=("info.num_moved",)` collected goes into `sample_stats`; fields
        of a block begin with its place, as in "block_states.0.info.num_moved".
    data
        The data of the run, by default those that `mcmc.run` was given. They may have other texts
        or covariates.
    keep_states
        Number of full states per chain, evenly spaced over the draws, as in `fit`.

    Returns
    -------
    What `fit` returns, without the group `history`. `.data.posterior` also has the sites that other
    blocks sample, by their names in the program.

    Raises
    ------
    ValueError
        If `mcmc` ran no such kernel or two of them, has no draws, or was short of capacity; if
        `data` are not those of the run; or if topics were left out of the draws of a block, and no
        `lp` was collected in their place.
    """
    keep_states = arguments.integer("keep_states", keep_states, 0)
    if data is not None:
        arguments.instance("data", data, (Corpus, Sources), "a Corpus or Sources")
    arguments.instance("mcmc", mcmc, MCMC, "a numpyro.infer.MCMC that has run")
    kernel, state, place = _kernel_of(mcmc)
    kernel.check_capacity(state)
    model, state = kernel.config, as_batch(state)
    assert isinstance(model, GibbsModel)  # they alone make such kernels
    args, named = arguments_of_run(mcmc)
    used = kernel.data_argument(args, dict(named))
    data = used if data is None else data
    if getattr(data, "digest", None) != used.digest:
        raise ValueError(
            f"data are other data than those of the run, which were {used!r}: give those, or leave "
            f"data out; got {arguments.short_repr(data)}"
        )
    samples = mcmc.get_samples(group_by_chain=True)
    draws, stats = _fields(mcmc.get_extra_fields(group_by_chain=True), place)
    draws = {**model.recorded_of_sites(samples), **draws}
    if missing := [name for name in model.assignments if place and name not in draws]:
        count = model.terms.count_variable
        if "lp" not in stats:
            raise ValueError(
                f"mcmc has no draws of {missing[0]}, and no lp in their place: collect "
                f"{missing[0]}, or run with extra_fields=('~z.{missing[0]}', '{place}lp', "
                f"'{place}draws.{count}')"
            )
    elif place:
        draws, stats = _completed(model, used, samples, draws, stats, set(state.draws))
    snapshot = kernel.sampler(model.hyperparameters).snapshot
    last = jax.vmap(snapshot, (0, None))(state.chain, state.data)
    num_kept = len(stats["lp"][0])
    unknown = [name for name in last if name not in draws and name not in model.hyperparameters]
    if unknown and min(keep_states, num_kept) > 1:
        names, parts = " and ".join(map(repr, unknown)), model.terms.parts
        how = f"collect {names} of the block" if place else f"add {names} to record= of gibbs()"
        warnings.warn(
            f"mcmc has no draws of {names}, so only the last state of each chain is known: "
            f"intervals of {parts} have no width within a chain. To have {keep_states} states of "
            f"each chain, {how} and run again; keep_states=1 is this fit without the warning",
            stacklevel=2,
        )
        keep_states = 1
    states, at = _full_states(draws, last, num_kept, keep_states)
    groups = by_group(flatten(draws, stats, model.dims))
    if at:
        groups["states"] = pack(states, model.dims)
    names = ("num_warmup", "num_samples", "num_chains", "thinning")
    sizes = {name: getattr(mcmc, name) for name in names} | {"keep_states": keep_states}
    attrs = describe_run(kernel, data, sizes)
    return model.fit_type()(model, data, to_data(model, data, groups, at, state.means, attrs))


def _kernel_of(mcmc: MCMC) -> tuple[GibbsKernel, GibbsState, str]:
    """Return the kernel of this library, its last state, and what its fields begin with."""
    kernel, state = mcmc.sampler, mcmc.last_state
    blocks = [block for block, _ in getattr(kernel, "blocks", ())]  # of `numpyro.infer.Gibbs`
    own = [i for i, block in enumerate(blocks) if isinstance(block, GibbsKernel)]
    if not isinstance(kernel, GibbsKernel) and len(own) != 1:
        what = f"numpyro.infer.Gibbs with {len(own)} blocks of them" if own else repr(kernel)
        raise ValueError(
            f"mcmc must be an MCMC of model.gibbs(...), or of numpyro.infer.Gibbs with one such "
            f"block, got {what}; arviz.from_numpyro(mcmc) reads other kernels"
        )
    if state is None:
        raise ValueError("mcmc has no draws: call mcmc.run(key, data) first")
    if isinstance(kernel, GibbsKernel):
        return kernel, state, ""
    return blocks[own[0]], state.block_states[own[0]], f"block_states.{own[0]}."


def _fields(fields: Mapping[str, Any], place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was collected beside the sites: variables by name, and `sample_stats`."""
    own = {n.removeprefix(place): x for n, x in fields.items() if n.startswith(place)}
    draws, stats = dict(own.pop("draws", {})), {}
    for name, x in own.items():
        group, _, variable = name.rpartition(".")
        if group == "draws":
            draws[variable] = x
        elif name == "lp" or group == "info":
            stats[variable] = x
    return draws, stats


def _completed(
    model: GibbsModel,
    corpus: Corpus,
    sites: Mapping[str, jax.Array],
    draws: dict[str, Any],
    stats: dict[str, Any],
    own: set[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add what follows from the sites of a block: the number of topics in use, and `lp`.

    `own` are the variables of the block. Its `lp` is the density given hyperparameters that other
    blocks sample, without their priors.
    """
    given = [name for name in model.hyperparameters if name in sites and name not in own]
    latent = [name for name in sites if name in own]
    program = model.collapsed  # pyright: ignore[reportAttributeAccessIssue] - models of blocks have it

    @jax.jit
    def of_draws(corpus, values):
        def of_draw(values):
            fixed = {name: values[name] for name in given}
            rest = {name: values[name] for name in latent}
            lp = log_density(program, (corpus,), fixed, rest)[0]
            z = jnp.sort(values["z"])
            return lp, 1 + (jnp.diff(z) != 0).sum()

        return lax.map(lambda of_chain: lax.map(of_draw, of_chain), values)

    lp, used = of_draws(corpus, {name: sites[name] for name in (*given, *latent)})
    return {model.terms.count_variable: used, **draws}, {"lp": lp, **stats}


def _full_states(
    draws: Mapping[str, ArrayLike],
    last: Mapping[str, ArrayLike],
    num_kept: int,
    keep_states: int,
) -> tuple[Arrays, list[int]]:
    """Return full states, [chain, n, ...], and the numbers of their draws.

    `last` is the last state of every chain. What it has and the draws lack is constant, if it is a
    hyperparameter.
    """
    at = evenly(keep_states, num_kept)
    return {
        name: np.asarray(draws[name])[:, at]
        if name in draws
        else np.repeat(np.asarray(x)[:, None], len(at), axis=1)
        for name, x in last.items()
    }, at
