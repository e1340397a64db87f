"""The only adapter to NumPyro: it makes an `MCMCKernel` from the `Sampler` of a model.

Only this module maps functions over chains. A single chain runs as a batch of one, so that it uses
the same random numbers as it would beside other chains.
"""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import PyTree
from numpyro.infer.mcmc import MCMCKernel

from bnp_kernels.random.bits import fold_in, split
from bnp_models.base.kernel_program import KernelProgram, one_data_argument, simulator
from bnp_models.base.model import Model
from bnp_models.base.other_packages import keep_programs, make_room, refuse_forked, reuse_loops
from bnp_models.base.sampler import Options, Sampler, describe_fields
from bnp_models.base.tempering import TemperedSampler
from bnp_models.data import arguments

__all__ = ["GibbsKernel", "GibbsModel", "GibbsState", "as_batch"]

_SITES = "_gibbs_sites"  # keyword by which numpyro.infer.Gibbs passes the values of other blocks
_DRAW = 2**32 - 1  # folded into a chain's key to draw variables that are only recorded


class GibbsState(NamedTuple):
    """State of `GibbsKernel`; several chains are the first axis of all fields but shared ones."""

    draws: Any  # recorded variables, by name
    lp: Any  # log joint density of the collapsed state, nats
    info: Any  # report of the last sweep
    chain: Any  # state of the model's kernel
    means: dict[str, jax.Array]  # running means over the sweeps after warm-up
    data: Any  # shared by the chains
    sweep: jax.Array  # sweeps done, shared by the chains
    num_warmup: jax.Array  # shared by the chains
    rng_key: jax.Array


class GibbsKernel(MCMCKernel):
    """Gibbs sampler of a model, for NumPyro's `MCMC`; made by `model.gibbs()`.

    `mcmc.run` takes the data by position or by name: `mcmc.run(key, corpus=corpus)`, for factor
    models `data=` or `sources=`. The state carries the data it was initialised with.
    `chain_method` may be "vectorized", "sequential", "parallel" or a callable such as `jax.vmap`.
    Kernels of equal models with equal options are equal, and share compiled functions. NumPyro
    compiles its loop over sweeps once for each `MCMC` object: call `run` of the same object again,
    with any key, to compile nothing.

    A run of an infinite model that is short of slots raises `ValueError`. Where NumPyro maps the
    whole run over chains ("parallel", a callable), its draws and `lp` are NaN instead (-1 if they
    are integers), and `to_fit` raises the error.

    `bnp_models.to_fit(mcmc)` makes a fit of the run, with tables and `convergence`.
    `arviz.from_numpyro(mcmc)` reads the draws alone. ArviZ can't compute a log likelihood by
    itself, because the topics that it would need are integrated out: `from_numpyro` makes none, and
    refuses to where it would have to be asked (1.x). `fit.log_likelihood()` computes one.
    `simulator` is for simulation-based calibration.

    Examples
    --------
    >>> import arviz as az
    >>> import bnp_models as bnp
    >>> import jax
    >>> from numpyro.infer import MCMC
    >>> corpus = bnp.Corpus.from_texts(["cat dog cat", "moon sun", "dog cat", "sun moon"])
    >>> mcmc = MCMC(bnp.LDA(2).gibbs(), num_warmup=5, num_samples=5, progress_bar=False)
    >>> mcmc.run(jax.random.key(0), corpus=corpus)
    >>> list(az.from_numpyro(mcmc)["posterior"])
    ['num_topics_used']

    Parameters
    ----------
    config
        The model.
    options
        Options of its `gibbs`, checked.
    program
        For a block of `numpyro.infer.Gibbs`: the program that the blocks share.
    ignore
        For a block: sites of `program` on which the sampler does not depend, given the
        hyperparameters.
    """

    sample_field = "draws"  # pyright: ignore[reportAssignmentType]

    def __init__(
        self,
        config: "GibbsModel",
        options: Options,
        *,
        program: Callable | None = None,
        ignore: Collection[str] = (),
    ):
        arguments.optional(arguments.function, "program", program)
        ignore = arguments.texts(
            "ignore", arguments.sequence("ignore", ignore, "names of sites", ordered=False)
        )
        self.config = config
        self.options = options
        self._shown = KernelProgram(config, frozenset((*config.hyperparameters, *options.record)))
        self.model = self._shown if program is None else program
        self._is_block = program is not None
        self._ignore = frozenset(ignore)
        self._sample_fn = None  # not None: MCMC continues from a state without a new `init`

    def _identity(self) -> tuple:
        return self.config, self.options, self._ignore, self._is_block

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GibbsKernel):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def default_fields(self) -> tuple[str, ...]:
        """Fields that `MCMC` collects without being asked."""
        return ("draws", "lp")

    def sampler(self, sampled_by_other_blocks: Collection[str] = ()) -> Sampler:
        """Return the sampler of one chain; what other blocks sample stays as it is."""
        return _sampler(self, frozenset(sampled_by_other_blocks))

    def init(
        self,
        rng_key: jax.Array,
        num_warmup: int,
        init_params: PyTree,
        model_args: tuple[Any, ...],
        model_kwargs: dict | None,
    ) -> GibbsState:
        """Start one chain (one key) or several (a batch of keys).

        Raises
        ------
        ValueError
            If `init_params` is given outside `numpyro.infer.Gibbs` (choose the start with
            `init_topics=`), there is not one data argument, a keyword is not its name, or the model
            refuses the data or a prior.
        """
        values = self._other_blocks(model_kwargs)
        if init_params is not None and not self._is_block:
            raise ValueError(
                f"init_params must be None: choose the start with {self.config.terms.start_option}="
            )
        argument = self.data_argument(model_args, model_kwargs)
        refuse_forked()
        keep_programs()
        make_room()
        reuse_loops(_check_capacity_of)
        data = self.sampler(values).prepare(argument)
        keys, _, leave = _chains_of(rng_key)
        if self._is_block:
            self._check_slots(keys, num_warmup, data, argument, values)
        state = self.start(keys, num_warmup, data, argument, values)
        draws, lp = _report(self, state, values)
        self._sample_fn = True
        return leave(state._replace(draws=draws, lp=lp))

    def _check_slots(self, *start: Any) -> None:
        """Refuse a start with more slots than the program has, in which topics would be lost."""
        sampler = self.sampler(self.config.hyperparameters)
        if not sampler.grows:
            return
        terms = self.config.terms
        chosen = getattr(self.config, terms.capacity)
        slots = sampler.capacity(jax.eval_shape(self.start, *start).chain)
        if slots > chosen:
            raise ValueError(
                f"{terms.capacity}={chosen} is too small for a block: chains start with up to "
                f"{slots} {terms.parts}. Ask for {terms.capacity}={slots} or more, with room for "
                f"new ones, or for {terms.start_option}={chosen} or fewer"
            )

    def data_argument(self, model_args: tuple[Any, ...], model_kwargs: dict | None) -> Any:
        """Return the data out of the arguments of `MCMC.run`.

        For a block they may have other arguments beside them, which its program takes.

        Raises
        ------
        ValueError
            See `init`.
        """
        names = self.config.terms.data
        named = {name: x for name, x in (model_kwargs or {}).items() if name != _SITES}
        if self._is_block:
            named = {name: x for name, x in named.items() if name in names}
            model_args = model_args[:1] if not named else ()
        return one_data_argument(names, model_args, named)

    def simulator(self, data: PyTree) -> Callable[..., dict[str, Any]]:
        """Return a simulator of data for simulation-based calibration with `simuk`.

        Calibration draws hyperparameters from their priors, draws data given them, runs the kernel
        on these data, and ranks the hyperparameters among the draws. If the kernel is right, all
        ranks are equally probable. `simuk` needs Python 3.12. It ranks what the kernel collects,
        so a hyperparameter must have a prior, and ranks of recorded variables with labels (`phi`)
        mean something only where labels switch often.

        Parameters
        ----------
        data
            Data whose sizes the simulated ones have.

        Raises
        ------
        ValueError
            If the kernel collects no site of its program, or the program does not draw all that the
            model observes, see `kernel_program.simulator`.

        Examples
        --------
        >>> import bnp_models as bnp
        >>> import numpyro.distributions as dist
        >>> corpus = bnp.Corpus.from_ids([[0, 1, 0, 2], [2, 1, 1]], num_words=3)
        >>> kernel = bnp.LDA(2, alpha=dist.Gamma(2.0, 2.0)).gibbs()
        >>> kernel.simulator(corpus)(alpha=0.5, seed=1)["corpus"]
        Corpus(2 documents, 7 tokens, 3 words)

        With `simuk`::

            sbc = simuk.SBC(
                kernel,
                num_simulations=100,
                data_dir={"corpus": corpus},
                simulator=kernel.simulator(corpus),
                sample_kwargs={"num_warmup": 200, "num_samples": 300, "thinning": 20},
            )
            sbc.run_simulations()
            sbc.simulations["prior_sbc"]["alpha"]
        """
        return simulator(self._shown, data)

    # Compiled once per kernel. Kernels compare by value, so an equal kernel is not traced again.
    @partial(jax.jit, static_argnums=0)
    def start(
        self,
        keys: jax.Array,
        num_warmup: int | jax.Array,
        data: PyTree,
        argument: PyTree,
        conditioned_on: dict | None = None,
    ) -> GibbsState:
        """Start several chains on prepared data; `draws` and `lp` are left None."""
        conditioned_on = conditioned_on or {}
        sampler = self.sampler(conditioned_on)

        def one(rng_key):
            rng_key, key_init = split(rng_key)
            chain = sampler.condition_on(sampler.init(key_init, data, argument), conditioned_on)
            means = jax.tree.map(jnp.zeros_like, sampler.means(chain, data))
            turn, power = sampler.next_sweep(jnp.zeros((), jnp.int32), jnp.int32(num_warmup))
            info = jax.eval_shape(partial(step, sampler), key_init, chain, data, turn, power)[1]
            info = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), info)
            return info, chain, means, rng_key

        info, chain, means, keys = jax.vmap(one)(keys)
        sweep, num_warmup = jnp.zeros((), jnp.int32), jnp.asarray(num_warmup, jnp.int32)
        return GibbsState(None, None, info, chain, means, data, sweep, num_warmup, keys)

    def sample(
        self, state: GibbsState, model_args: tuple[Any, ...], model_kwargs: dict | None
    ) -> GibbsState:
        """Advance every chain by one sweep of its schedule."""
        _kernels[type(state.chain)] = self  # `init` is skipped where a run goes on
        return _sample(self, state, self._other_blocks(model_kwargs))

    def advance(self, state: GibbsState, conditioned_on: dict | None = None) -> GibbsState:
        """Advance several chains by one sweep; `draws` and `lp` are not updated."""
        conditioned_on = conditioned_on or {}
        sampler = self.sampler(conditioned_on)
        turn, power = sampler.next_sweep(state.sweep, state.num_warmup)

        def one(rng_key, chain, means):
            rng_key, key_sweep = split(rng_key)
            chain = sampler.condition_on(chain, conditioned_on)
            chain, info = step(sampler, key_sweep, chain, state.data, turn, power)
            chain = lax.optimization_barrier(chain)  # later use must not change its rounding
            since = (state.sweep + 1 - state.num_warmup).astype(jnp.float32)

            def update(means):
                terms = sampler.means(chain, state.data)
                return jax.tree.map(lambda mean, term: mean + (term - mean) / since, means, terms)

            if means:
                means = lax.cond(since > 0, update, lambda means: means, means)
            return chain, info, means, rng_key

        chain, info, means, keys = jax.vmap(one)(state.rng_key, state.chain, state.means)
        return state._replace(
            chain=chain, info=info, means=means, sweep=state.sweep + 1, rng_key=keys
        )

    def report(
        self, state: GibbsState, conditioned_on: dict | None = None
    ) -> tuple[Any, jax.Array]:
        """Return `draws` and `lp` of several chains, computed from their state alone.

        They are not numbers (-1 where they are integers) if the chain was short of slots.
        """
        sampler = self.sampler(conditioned_on or {})
        of_chain = jax.vmap(partial(_report_chain, sampler), (0, 0, None))
        reported = lax.optimization_barrier(of_chain(state.rng_key, state.chain, state.data))
        if not sampler.grows:
            return reported
        return jax.vmap(_unless)(state.chain.overflow, reported)

    def _other_blocks(self, model_kwargs: dict | None) -> dict[str, jax.Array]:
        """Return what other blocks sample; refuse what they can't give this kernel."""
        values = dict((model_kwargs or {}).get(_SITES, {}))
        values = {n: jnp.asarray(x) for n, x in values.items() if n not in self._ignore}
        given = self.config.for_other_blocks
        if unknown := sorted(set(values) - set(given)):
            raise ValueError(
                f"sites {unknown} are sampled by another block, but this kernel can only be given "
                f"{sorted(given)}: let the blocks share a program that calls "
                "collapsed(), and name sites that the tokens do not depend on in ignore="
            )
        return values

    def refresh(
        self, state: GibbsState, model_args: tuple[Any, ...], model_kwargs: dict | None
    ) -> GibbsState:
        """Set the hyperparameters that other blocks sample, without advancing the chain."""
        return _refresh(self, state, self._other_blocks(model_kwargs))

    def wrap_model(self, wrapper: Callable) -> "GibbsKernel":
        """Return a copy whose program is `wrapper(self.model)`."""
        kernel = copy.copy(self)
        kernel.model, kernel._sample_fn = wrapper(self.model), None
        return kernel

    def get_constrain_fn(self, model_args: tuple[Any, ...], model_kwargs: dict | None) -> Callable:
        """Return the identity: draws are constrained values already."""
        return lambda draws: draws

    def get_diagnostics_str(self, state: GibbsState) -> str:
        """Return the number of topics or factors in use and the log joint, for the progress bar."""
        terms = self.config.terms
        used = jnp.mean(state.draws[terms.count_variable])
        return f"{used:.0f} {terms.parts}, lp {jnp.mean(state.lp):.6g}"

    def check_capacity(self, state: GibbsState) -> None:
        """Raise `ValueError` if a run was short of slots, which makes its draws invalid."""
        sampler = self.sampler(self.config.hyperparameters)
        if not sampler.grows or not np.any(state.chain.overflow):
            return
        name, slots = self.config.terms.capacity, sampler.capacity(state.chain)
        raise ValueError(
            f"{name}={getattr(self.config, name)} is too small for this run: a sweep needed more "
            f"than {slots}. Ask for {name}={2 * slots}, or use bnp_models.fit, which grows by "
            "itself"
        )

    def for_fit(self, num_warmup: int) -> "GibbsKernel":
        """Return a copy that compiles no annealed sweep if there is no warm-up."""
        kernel = copy.copy(self)
        if num_warmup == 0 and hasattr(self.options, "start_temperature"):
            kernel.options = dataclasses.replace(self.options, start_temperature=1.0)
        kernel._sample_fn = None
        return kernel


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Block:
    """Options of `model.gibbs` for a block of `numpyro.infer.Gibbs` that samples the tokens' sites.

    Parameters
    ----------
    program
        For use as a block of `numpyro.infer.Gibbs`, beside blocks that sample hyperparameters: the
        program that the blocks share, which must end in a call of `collapsed`.
    ignore
        For such a block: sites of `program` on which tokens do not depend, given the
        hyperparameters.
    """

    program: Callable | None = None
    ignore: Collection[str] = ()


class GibbsModel(Model):
    """A model whose kernel is a `GibbsKernel`.

    `model.gibbs` has the fields of `options_type` as its options. A model with a collapsed form of
    its program, `collapsed`, can also be a block of `numpyro.infer.Gibbs`.
    """

    kernel: ClassVar[ModuleType]
    """The module of the model's kernel."""
    priors: ClassVar[type]
    """The kernel's class of priors: a field for each hyperparameter."""
    options_type: ClassVar[type[Options]]
    sampler_type: ClassVar[type[Sampler]]
    always: ClassVar[tuple[str, ...]] = ()
    """Fields of the kernel's state that are always recorded."""
    assignments: ClassVar[tuple[str, ...]] = ()
    """What the kernel assigns to each token: fields of its state, and sites of the program."""
    far_end: ClassVar[Mapping[str, float]] = {}
    """Factors of hyperparameters at the far end of a `Tempering`, by default; none: refused."""
    block_sites: ClassVar[tuple[str, ...]] = ()
    """Sites that a block of `numpyro.infer.Gibbs` samples besides the assignments."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if hasattr(cls, "recordable") and "gibbs" not in vars(cls):
            cls.gibbs = _with_options(cls)

    def gibbs(self, **options: Any) -> "GibbsKernel":
        """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`."""
        arguments.options(type(self).gibbs, options)
        block = {n: options.pop(n) for n in ("program", "ignore") if n in options}
        is_block = block.get("program") is not None
        if is_block and options.get("tempering") is not None:
            raise ValueError("tempering is not for a block of numpyro.infer.Gibbs: leave it out")
        sites = (*self.block_sites, *self.assignments) if is_block else ()
        made = self.options_type(**options)
        return GibbsKernel(self, dataclasses.replace(made, **made.checked(self, sites)), **block)

    @property
    def for_other_blocks(self) -> tuple[str, ...]:
        """Variables that other blocks of `numpyro.infer.Gibbs` may sample."""
        return *self.hyperparameters, *self.always

    def recorded_of_sites(self, sites: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of sites of the collapsed program in the form that `draws` have."""
        return dict(sites)

    def sampler(self, options: Options, sampled_by_other_blocks: frozenset[str]) -> Sampler:
        """Return the sampler of one chain."""
        tempering = getattr(options, "tempering", None)
        if tempering is None:
            return self.sampler_type(self, options, sampled_by_other_blocks)
        plain = dataclasses.replace(options, tempering=None)
        return TemperedSampler(self.sampler_type(self, plain, sampled_by_other_blocks), tempering)


def _with_options(cls: type[GibbsModel]) -> Callable[..., "GibbsKernel"]:
    """Return the method `gibbs` of a model, whose signature and docstring list its options."""

    def gibbs(self: GibbsModel, **options: Any) -> GibbsKernel:
        return GibbsModel.gibbs(self, **options)

    kinds = (cls.options_type, _Block) if hasattr(cls, "collapsed") else (cls.options_type,)
    about = {name: text for kind in kinds for name, text in describe_fields(kind).items()}
    own = [p for kind in kinds for p in inspect.signature(kind).parameters.values()]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    gibbs.__signature__ = inspect.Signature([itself, *own], return_annotation=GibbsKernel)
    gibbs.__module__, gibbs.__qualname__ = cls.__module__, f"{cls.__qualname__}.gibbs"
    about["record"] += f"\n    This model has {', '.join(f'`{n}`' for n in cls.recordable)}."
    listed = "\n".join(f"{name}\n{text}" for name, text in about.items())
    gibbs.__doc__ = _ABOUT_GIBBS.format(listed)
    return gibbs


_ABOUT_GIBBS = """Return the Gibbs kernel, a `numpyro.infer.mcmc.MCMCKernel`.

Parameters
----------
{}

Raises
------
ValueError
    If an option is not one of those above. A prior without a Gibbs update is refused when a chain
    starts.
"""


@functools.lru_cache(maxsize=64)
def _sampler(kernel: GibbsKernel, sampled_by_other_blocks: frozenset[str]) -> Sampler:
    return kernel.config.sampler(kernel.options, sampled_by_other_blocks)


@partial(jax.jit, static_argnums=0)
def step(sampler: Sampler, rng_key, chain, data, turn, power) -> tuple[PyTree, PyTree]:
    """Make one sweep of one chain; it is traced once, wherever it is used."""
    return sampler.step(rng_key, chain, data, turn, power)


@partial(jax.jit, static_argnums=0)
def _report_chain(sampler: Sampler, rng_key, chain, data) -> tuple[Any, jax.Array]:
    return sampler.draws(fold_in(rng_key, _DRAW), chain, data), sampler.log_density(chain, data)


@partial(jax.jit, static_argnums=0)
def _report(kernel: GibbsKernel, state: GibbsState, conditioned_on) -> tuple[Any, jax.Array]:
    return kernel.report(state, conditioned_on)


@partial(jax.jit, static_argnums=0)
def _sample(kernel: GibbsKernel, state: GibbsState, conditioned_on: dict) -> GibbsState:
    _, enter, leave = _chains_of(state.rng_key)
    new = kernel.advance(enter(state), conditioned_on)
    draws, lp = kernel.report(new, conditioned_on)
    return leave(new._replace(draws=draws, lp=lp))


@partial(jax.jit, static_argnums=0)
def _refresh(kernel: GibbsKernel, state: GibbsState, conditioned_on: dict) -> GibbsState:
    _, enter, leave = _chains_of(state.rng_key)
    new, sampler = enter(state), kernel.sampler(conditioned_on)
    chain = jax.vmap(lambda chain: sampler.condition_on(chain, conditioned_on))(new.chain)
    new = new._replace(chain=chain)
    return leave(new._replace(lp=kernel.report(new, conditioned_on)[1]))


def _unless(lost: jax.Array, reported: PyTree) -> PyTree:
    """Return what was reported, or in its place values that are no numbers."""

    def one(x):
        no_number = jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else -1
        return x if x.dtype == bool else jnp.where(lost, jnp.asarray(no_number, x.dtype), x)

    return jax.tree.map(one, reported)


_kernels: dict[type, GibbsKernel] = {}
"""A kernel for each class of chain states: its capacity has one name for all of them."""


def _check_capacity_of(result: PyTree) -> None:
    """Raise `ValueError` if a state in what NumPyro's loop returns was short of slots."""
    for found in filter(_is_state, jax.tree.leaves(result, is_leaf=_is_state)):
        traced = any(isinstance(x, Tracer) for x in jax.tree.leaves(found))
        if not traced:
            _kernels[type(found.chain)].check_capacity(found)


def _is_state(x: object) -> bool:
    return isinstance(x, GibbsState)


def as_batch(state: GibbsState) -> GibbsState:
    """Return the last state of `MCMC` as one of several chains, whatever `chain_method` made it.

    A single chain becomes a batch of one. What the chains share is there once. The keys are typed.
    """
    batch = _chains_of(state.rng_key)[1](state)
    if not jnp.ndim(state.sweep):
        return batch
    # NumPyro mapped the whole run over chains, and has copied what they share
    return batch._replace(**{n: jax.tree.map(lambda x: x[0], getattr(state, n)) for n in _SHARED})


_MAPPED = ("draws", "lp", "info", "chain", "means")
_SHARED = ("data", "sweep", "num_warmup")
_Change = Callable[[GibbsState], GibbsState]


def _chains_of(rng_key: jax.Array) -> tuple[jax.Array, _Change, _Change]:
    """Return typed keys with a chain axis, and functions that give a state this form and undo it.

    A single chain, which has one key, becomes a batch of one. Raw keys, as from
    `jax.random.PRNGKey`, become typed ones.
    """
    is_typed = jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key)
    typed = rng_key if is_typed else jax.random.wrap_key_data(rng_key)
    is_single = typed.ndim == 0
    keys = typed[None] if is_single else typed

    def change(state: GibbsState, change: Callable[[jax.Array], jax.Array]) -> GibbsState:
        fields = _MAPPED if is_single else ()
        return state._replace(**{n: jax.tree.map(change, getattr(state, n)) for n in fields})

    def enter(state: GibbsState) -> GibbsState:
        return change(state, lambda x: x[None])._replace(rng_key=keys)

    def leave(state: GibbsState) -> GibbsState:
        own = state.rng_key[0] if is_single else state.rng_key
        own = own if is_typed else jax.random.key_data(own)
        return change(state, lambda x: x[0])._replace(rng_key=own)

    return keys, enter, leave
