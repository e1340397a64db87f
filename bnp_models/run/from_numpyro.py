"""`to_fit`: a fit of what `numpyro.infer.MCMC` has drawn with a kernel of this library."""

import warnings
from collections.abc import Iterable, Mapping
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
    `HDPLDA`, `("z", "opens")` for `PitmanYorLDA`. Otherwise only the last state of each chain is a
    full state, and intervals of topics have no width within a chain; a warning says so, unless
    `keep_states` is 1 or 0. Convergence is judged by all draws in either case.

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
        If `mcmc` ran no such kernel or two of them, has no draws, has made no more than a warm-up,
        or was short of capacity; if its draws are of other data than the last `mcmc.run` was given;
        if `data` are not those of the run; or if topics or hyperparameters were left out of the
        draws of a block, and no `lp` was collected in their place.
    """
    keep_states = arguments.integer("keep_states", keep_states, 0)
    if data is not None:
        arguments.instance("data", data, (Corpus, Sources), "a Corpus or Sources")
    arguments.instance("mcmc", mcmc, MCMC, "a numpyro.infer.MCMC that has run")
    kernel, state, place, sites = _kernel_of(mcmc)
    kernel.check_capacity(state)
    model, state = kernel.config, as_batch(state)
    assert isinstance(model, GibbsModel)  # they alone make such kernels
    args, named = arguments_of_run(mcmc)
    used = kernel.data_argument(args, dict(named))
    _check_run(kernel, state, used)
    data = used if data is None else data
    assert data is not None
    if data.digest != used.digest:
        raise ValueError(
            f"data are other data than those of the run, which were {used!r}: they differ in "
            f"{_difference(data, used)}. Give those of the run, or leave data out; got "
            f"{arguments.short_repr(data)}"
        )
    samples = mcmc.get_samples(group_by_chain=True)
    draws, stats = _fields(mcmc.get_extra_fields(group_by_chain=True), place)
    draws |= samples
    drawn = set(state.draws)
    needed = [name for name in sites if name in {*drawn, *model.for_other_blocks}]
    missing = [name for name in needed if name not in draws]
    if missing and "lp" not in stats:
        some, removed = " and ".join(missing), ", ".join(f"'~z.{name}'" for name in missing)
        raise ValueError(
            f"mcmc has no draws of {some}, and no lp in their place: collect {some}, or run with "
            f"extra_fields=({removed}, '{place}lp', '{place}draws.{model.terms.count_variable}')"
        )
    if "lp" not in stats:
        stats["lp"] = _log_densities(model, used, {name: draws[name] for name in needed}, drawn)
    if place and not {*model.assignments} & {*missing}:
        draws.setdefault(model.terms.count_variable, _topics_used(draws[model.assignments[0]]))
    draws = model.recorded_of_sites(draws)
    snapshot = kernel.sampler(model.hyperparameters).snapshot
    last = jax.vmap(snapshot, (0, None))(state.chain, state.data)
    num_kept = len(stats["lp"][0])
    constant = {*model.hyperparameters} - {*drawn, *needed}
    unknown = [name for name in last if name not in draws and name not in constant]
    if unknown and min(keep_states, num_kept) > 1:
        removed = [f"~z.{name}" for name in missing]
        removed += [f"~draws.{name}" for name in unknown if not place and name in drawn]
        lacking = [name for name in unknown if not place and name not in drawn]
        how = [f"add {_listed(lacking)} to record= of gibbs()"] if lacking else []
        how += [f"take {_listed(removed)} out of extra_fields="] if removed else []
        warnings.warn(
            f"mcmc has no draws of {_listed(unknown)}, so only the last state of each chain is "
            f"known: intervals of {model.terms.parts} have no width within a chain. To have "
            f"{min(keep_states, num_kept)} states of each chain, {', '.join(how)} and run again; "
            "keep_states=1 is this fit without the warning",
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


def _kernel_of(mcmc: MCMC) -> tuple[GibbsKernel, GibbsState, str, list[str]]:
    """Return the kernel of this library and its last state.

    For a block of `numpyro.infer.Gibbs` the rest is what its fields begin with, and all sites.
    """
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
        raise ValueError(
            "mcmc has no draws: call mcmc.run(key, data) first; a run that ended by an error has "
            "none"
        )
    if isinstance(kernel, GibbsKernel):
        return kernel, state, "", []
    return blocks[own[0]], state.block_states[own[0]], f"block_states.{own[0]}.", list(state.z)


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


def _check_run(kernel: GibbsKernel, state: GibbsState, used: Corpus | Sources) -> None:
    """Raise `ValueError` if the last state of a run is not one after draws given these data."""
    if int(state.sweep) <= int(state.num_warmup):
        raise ValueError(
            "mcmc has no draws after the warm-up: call mcmc.run(key, data); a run that ended by an "
            "error has none"
        )
    if not _ran_on(kernel, state, used):
        raise ValueError(
            f"mcmc has draws of other data than those that mcmc.run was last given, {used!r}: that "
            "run ended by an error and left the draws of the one before, or it went on from a "
            "state of other data. Set mcmc.post_warmup_state = None and call mcmc.run(key, data) "
            "again"
        )


def _ran_on(kernel: GibbsKernel, state: GibbsState, used: Corpus | Sources) -> bool:
    """Return whether the last state of a run is one of these data."""
    given = kernel.config.hyperparameters
    sampler = kernel.sampler(given)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run has said it
            prepared = sampler.prepare(used)
    except ValueError:  # the model refuses these data
        return False
    if not _same_content(prepared, state.data):
        return False
    start = jax.eval_shape(sampler.init, jax.random.key(0), prepared, used)
    sizes, found = (
        [
            x.shape
            for name in start._fields
            if name not in given
            for x in jax.tree.leaves(chain[name])
        ]
        for chain in (start._asdict(), state.chain._asdict())
    )
    return sizes == [shape[1:] for shape in found]


_LAYOUT = ("lanes", "blocks", "buckets", "shards", "whole")
"""Fields of prepared data that depend on the machine, and follow from the others."""


def _same_content(prepared: Any, other: Any) -> bool:
    """Return whether prepared data are the same, however they are laid out."""
    mine, theirs = (
        jax.tree.leaves({n: x for n, x in data._asdict().items() if n not in _LAYOUT})
        for data in (prepared, other)
    )
    return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))


_PARTS = {
    "tokens": ("doc", "word"),
    "values": ("values", "observed"),
    "sources": ("source", "source_names"),
    "vocabulary": ("vocabulary",),
    "names of the features": ("feature_names",),
    "groups": ("group", "group_names"),
    "labels": ("label", "label_names"),
    "authors": ("author_ptr", "author_idx", "author_names"),
    "names of the documents": ("doc_names",),
    "names of the rows": ("row_names",),
}
"""Attributes of data by what a message calls them."""


def _difference(data: Corpus | Sources, used: Corpus | Sources) -> str:
    """Say in what two sets of data differ."""
    if type(data) is not type(used):
        return "their type"
    if isinstance(data, Corpus) and isinstance(used, Corpus):
        ours, theirs = (
            [corpus.document(d).tobytes() for d in range(corpus.num_docs)]
            for corpus in (data, used)
        )
        if ours != theirs and sorted(ours) == sorted(theirs):
            return "the order of the documents"
    differ = [
        what
        for what, names in _PARTS.items()
        if any(not np.array_equal(getattr(data, n, None), getattr(used, n, None)) for n in names)  # pyright: ignore
    ]
    return " and ".join(differ) or "the type of their numbers"


def _listed(names: Iterable[str]) -> str:
    """Return names as a message shows them."""
    return " and ".join(map(repr, names))


def _log_densities(
    model: GibbsModel, corpus: Corpus, sites: Mapping[str, jax.Array], own: set[str]
) -> jax.Array:
    """Return `lp` of the sites of a block, which are [chain, draw, ...].

    `own` are the variables of the block. The density is that given hyperparameters that other
    blocks sample, without their priors.
    """
    program = model.collapsed  # pyright: ignore[reportAttributeAccessIssue] - models of blocks have it

    @jax.jit
    def of_draws(corpus, sites):
        def of_draw(sites):
            fixed = {name: x for name, x in sites.items() if name not in own}
            latent = {name: x for name, x in sites.items() if name in own}
            return log_density(program, (corpus,), fixed, latent)[0]

        return lax.map(lambda of_chain: lax.map(of_draw, of_chain), sites)

    return of_draws(corpus, dict(sites))


@jax.jit
def _topics_used(z: jax.Array) -> jax.Array:
    """Count the topics that have tokens, in each draw of each chain."""

    def of_draw(z):
        return 1 + (jnp.diff(jnp.sort(z)) != 0).sum()

    return lax.map(lambda of_chain: lax.map(of_draw, of_chain), z)


def _full_states(
    draws: Mapping[str, ArrayLike],
    last: Mapping[str, ArrayLike],
    num_kept: int,
    keep_states: int,
) -> tuple[Arrays, list[int]]:
    """Return full states, [chain, n, ...], and the numbers of their draws.

    `last` is the last state of every chain. What it has and the draws lack is constant, or one
    state is asked for.
    """
    at = evenly(keep_states, num_kept)
    return {
        name: np.asarray(draws[name])[:, at]
        if name in draws
        else np.repeat(np.asarray(x)[:, None], len(at), axis=1)
        for name, x in last.items()
    }, at
