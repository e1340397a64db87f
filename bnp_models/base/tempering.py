r"""Parallel tempering: replicas of a chain along a path of larger hyperparameters, with exchanges.

With ten topics or more, chains on real text hardly leave the place where they began. Larger
concentrations melt the posterior: topics overlap, and tokens move freely. So each chain becomes an
*ensemble* of replicas. Replica 0 of the path has the hyperparameters of the model (the cold end,
which is recorded), the others have them times a factor that grows along the path. A *scan* lets
neighbours on the path exchange their states, and then sweeps every replica with the model's own
kernel.

Rung i of the path has the target $\pi_i(s) = p(w, s \mid h_i)$. States $s$ and $s'$ of the rungs i
and j are exchanged with probability

$$\min\Bigl(1, \frac{p(w, s' \mid h_i)\, p(w, s \mid h_j)}
  {p(w, s \mid h_i)\, p(w, s' \mid h_j)}\Bigr)$$

Even pairs of neighbours try in even scans and odd pairs in odd ones, so that replicas travel along
the path instead of diffusing (Syed, Bouchard-Côté, Deligiannidis and Doucet, Non-reversible
parallel tempering, JRSS B 84, 2022). The states stay where they are in memory: rungs and
hyperparameters are exchanged.

A hyperparameter that is sampled is sampled at the cold end only, where its value stays. The other
rungs hold theirs at multiples of its mean in the warm-up. After the warm-up nothing adapts.
"""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bnp_kernels.numerics.batching import vectorise_if
from bnp_kernels.numerics.shards import ONE_PART, DeviceParts
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_models.base.sampler import Sampler, next_sweep
from bnp_models.data import arguments

__all__ = ["Ensemble", "TemperedInfo", "TemperedSampler", "Tempering"]

_OWN_KEY = 2**31  # added to numbers that are folded into keys: sweeps split theirs by small numbers
_SWEEP_KEY = np.uint32(2**31 + 2**30)  # the same, of sweeps between two exchanges
_HELD = 1e12  # prior observations that hold a hyperparameter at a value, up to rounding
_NODES = np.array([0.5 - 0.15**0.5, 0.5, 0.5 + 0.15**0.5], np.float32)  # on [0, 1]
_WEIGHTS = np.array([5 / 18, 8 / 18, 5 / 18], np.float32)
_MOST = 999  # replicas, and sweeps between two exchanges
_REPLICAS_BY_ROOT = 0.2  # replicas of a chain, divided by the root of the number of tokens
_FIRST_ROUND = 16  # scans until the path is divided anew for the first time


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tempering:
    """How chains are tempered, for `fit(..., tempering=)`.

    Each chain becomes an ensemble of replicas along a path of hyperparameters. One end of the path
    has those of the model; this end is recorded. The far end has larger ones, with which chains
    forget where they began. Neighbours on the path exchange their states, so that states from the
    far end reach the recorded one. The warm-up moves the replicas along the path until exchanges
    succeed equally often everywhere; without a warm-up they stay evenly spaced.

    Parameters
    ----------
    end
        By which factor each hyperparameter is larger at the far end, such as
        `{"alpha": 1.5, "beta": 3.0}`; others do not change. Between the ends, factors grow
        geometrically. By default 1.5 for `alpha` and `gamma` and 3 for `beta`, which was tried for
        LDA alone.
    num_replicas
        Replicas of each chain, at most 999; with 1 it is not tempered. A scan takes as long as that
        many sweeps. By default a fifth of the root of the number of tokens, and at least 3: 20 for
        10,000 tokens. That is about twice the barrier of LDA with ten topics.
    sweeps_per_swap
        Sweeps of each replica between two exchanges, at most 999.

    Raises
    ------
    ValueError
        If a value is out of its domain; the message names it.
    """

    end: Mapping[str, float | int] | Sequence[Sequence[Any]] | None = None
    num_replicas: int | None = None
    sweeps_per_swap: int = 1

    def __post_init__(self):
        integer = arguments.integer
        if self.num_replicas is not None:
            num_replicas = integer("num_replicas", self.num_replicas, 1, _MOST)
            object.__setattr__(self, "num_replicas", num_replicas)
        object.__setattr__(
            self, "sweeps_per_swap", integer("sweeps_per_swap", self.sweeps_per_swap, 1, _MOST)
        )
        if self.end is None:
            return
        given = arguments.mapping("end", _by_name(self.end), "factors by hyperparameter")
        factors = [
            (name, arguments.finite_number(f"end[{name!r}]", x, at_least=1, at_most=1000))
            for name, x in sorted(given.items(), key=str)
        ]
        if all(factor == 1 for _, factor in factors):
            raise ValueError(
                f"end must have a factor above 1, or all replicas are alike, got {dict(factors)}"
            )
        object.__setattr__(self, "end", tuple(factors))

    @property
    def factors(self) -> dict[str, float]:
        """The factors by name."""
        pairs: Any = self.end or ()
        return dict(pairs)


def checked_tempering(value: object, model: Any) -> Tempering:
    """Return a `Tempering` with the factors of a model; the value may have the form of JSON."""
    given = arguments.short_repr(value)
    if not model.far_end:
        raise ValueError(
            f"tempering must be None for {type(model).__name__}, for which no path of larger "
            f"hyperparameters is known that helps its chains, got {given}"
        )
    if isinstance(value, Mapping):
        known = [field.name for field in dataclasses.fields(Tempering)]
        for key in value:
            arguments.one_of("a name in tempering", key, known)
        value = Tempering(**value)
    made = arguments.instance("tempering", value, Tempering, "a bnp_models.Tempering")
    if made.end is None:
        return dataclasses.replace(made, end=model.far_end)
    for name in made.factors:
        arguments.one_of("a name in end of tempering", name, list(model.far_end))
    return made


def _by_name(end: Any) -> Any:
    """Return factors by name, also from pairs, as JSON holds them."""
    if not isinstance(end, list | tuple):
        return end
    are_pairs = all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in end)
    by_name = dict(map(tuple, end)) if are_pairs else {}
    return by_name if len(by_name) == len(end) else end  # a name twice is no mapping


def _num_replicas(tempering: Tempering, num_tokens: int) -> int:
    """Return the number of replicas of a chain of a corpus."""
    if tempering.num_replicas is not None:
        return tempering.num_replicas
    return min(max(3, math.ceil(_REPLICAS_BY_ROOT * num_tokens**0.5)), _MOST)


class Ensemble(NamedTuple):
    """The replicas of a chain, and the path that they travel along."""

    replicas: Any  # states of the model's kernel, [R, ...]
    rung: Int[Array, " R"]  # of each replica; 0 is the cold end
    ladder: Float[Array, " R"]  # place of each rung on the path, from 0 to 1
    cold: dict[str, Array]  # hyperparameters of the path at the cold end
    centre: dict[str, Array]  # values of which those of the other rungs are multiples
    acceptance: Float[Array, " R-1"]  # of each pair of neighbours, when it last tried
    length: Int[Array, ""]  # scans of this round of the warm-up
    rejected: Float[Array, " R-1"]  # sums of this round of the warm-up
    log_cold: dict[str, Array]  # sums of this round of the warm-up
    leg: Int[Array, " R"]  # of each replica: 1 from the cold end on, 2 on its way back, else 0
    round_trips: Int[Array, ""]  # from the cold end to the far end and back, since the warm-up
    overflow: Bool[Array, ""]


class TemperedInfo(NamedTuple):
    """What a scan reports."""

    num_moved: Int[Array, ""]  # tokens of the cold replica whose topic changed in its last sweep
    cold_replica: Int[Array, ""]  # number of the replica at the cold end, which is recorded
    rung: Int[Array, " R"]  # of each replica
    ladder: Float[Array, " R"]  # place of each rung on the path
    swap_acceptance: Float[Array, " R-1"]  # probability, of each pair of neighbours
    round_trips: Int[Array, ""]  # until now, since the warm-up
    lp_far: Float[Array, ""]  # log joint density of the replica at the far end, in nats


def over_replicas(function: Callable) -> Callable:
    """Map a function of one replica and what all share over replicas, and chains, as one axis.

    The kernels vectorise one axis of chains. `vmap` over an ensemble of each chain would give them
    two.
    """

    @custom_vmap
    def mapped(own, shared):
        return jax.vmap(function, (0, None))(own, shared)

    @mapped.def_vmap
    def rule(axis_size, in_batched, own, shared):
        if any(jax.tree.leaves(in_batched[1])):
            raise ValueError("what replicas share must be shared by chains, too")

        def flat(x, batched):
            x = x if batched else jnp.broadcast_to(x, (axis_size, *x.shape))
            return x.reshape(-1, *x.shape[2:])

        out = mapped(jax.tree.map(flat, own, in_batched[0]), shared)
        out = jax.tree.map(lambda x: x.reshape(axis_size, -1, *x.shape[1:]), out)
        return out, jax.tree.map(lambda _: True, out)

    return mapped


class TemperedSampler(Sampler):
    """The sampler of an ensemble of replicas of a chain.

    Parameters
    ----------
    plain
        The `TopicSampler` of one replica.
    tempering
        With the factors of the model.
    """

    def __init__(self, plain: Any, tempering: Tempering):
        self.plain = plain
        self.model, self.options, self.updated = plain.model, plain.options, plain.updated
        self.tempering = tempering
        self.grows, self.slot_field = plain.grows, plain.slot_field

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters that change along the path."""
        return tuple(self.tempering.factors)

    @property
    def _sampled(self) -> dict[str, Any]:
        """The priors of those of them that are sampled at the cold end."""
        priors = {name: self.updated[name] for name in self.names}
        return {name: prior for name, prior in priors.items() if prior is not None}

    def next_sweep(
        self, sweep: Int[Array, ""], num_warmup: Int[Array, ""]
    ) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """Return the number of the scan, and of the scans before the first draw."""
        return sweep, num_warmup

    def prepare(self, data: PyTree, parts: DeviceParts = ONE_PART) -> PyTree:
        """Return the data of the kernel."""
        return self.plain.prepare(data, parts)

    def init(self, rng_key: Key[Array, ""], data: PyTree, argument: PyTree) -> Ensemble:
        """Start every replica on its own, at the values of its rung."""
        num = _num_replicas(self.tempering, argument.num_tokens)
        keys = _own_keys(rng_key, num)
        replicas = jax.vmap(lambda key: self.plain.init(key, data, argument))(keys)
        cold = self._values_of(jax.tree.map(lambda x: x[0], replicas))
        pairs = jnp.zeros(num - 1, jnp.float32)
        made = Ensemble(
            replicas=replicas,
            rung=jnp.arange(num),
            ladder=jnp.linspace(0, 1, num, dtype=jnp.float32),
            cold=cold,
            centre=cold,
            acceptance=pairs,
            length=jnp.zeros((), jnp.int32),
            rejected=pairs,
            log_cold=jax.tree.map(jnp.zeros_like, cold),
            leg=jnp.zeros(num, jnp.int32),
            round_trips=jnp.zeros((), jnp.int32),
            overflow=jnp.zeros((), bool),
        )
        return self._placed(made)

    def step(
        self,
        rng_key: Key[Array, ""],
        state: Ensemble,
        data: PyTree,
        turn: Int[Array, ""],
        power: Int[Array, ""],
    ) -> tuple[Ensemble, TemperedInfo]:
        """Make the scan number `turn`: exchange, then sweep; `power` is the length of the warm-up.

        What a sweep draws last belongs to the rung of its replica, so states are read before the
        next exchange.
        """
        scan, num_warmup = turn, power
        swapped = self._exchanged(rng_key, state, data, scan)
        replicas, moved = self._swept(rng_key, swapped, data, scan)
        cold = self._values_of(_cold(replicas, swapped.rung))
        new = swapped._replace(replicas=replicas, cold=cold)
        if self.grows:
            new = new._replace(overflow=new.overflow | replicas.overflow.any())
        new = self._adapted(new, scan + 1, num_warmup)
        return new, TemperedInfo(
            num_moved=_cold(moved, new.rung),
            cold_replica=jnp.argmin(new.rung).astype(jnp.int16),
            rung=new.rung.astype(jnp.int16),
            ladder=new.ladder,
            swap_acceptance=new.acceptance,
            round_trips=new.round_trips,
            lp_far=self.plain.log_joint(_at(replicas, jnp.argmax(new.rung)), data),
        )

    def _values_of(self, state: PyTree) -> dict[str, Array]:
        """Return the hyperparameters of the path of a replica."""
        return {name: self.plain.hyperparameter(state, name) for name in self.names}

    def _values_at(self, state: Ensemble, rung: Int[Array, " R"]) -> dict[str, Array]:
        """Return the hyperparameters of rungs, [R, ...]."""
        end = self.tempering.factors

        def at(name):
            cold, centre = state.cold[name], state.centre[name]
            factor = jnp.exp(state.ladder[rung] * jnp.log(jnp.float32(end[name])))
            each = (slice(None), *[None] * cold.ndim)
            return jnp.where((rung == 0)[each], cold[None], centre[None] * factor[each])

        return {name: at(name) for name in self.names}

    def _placed(self, state: Ensemble) -> Ensemble:
        """Give every replica the hyperparameters of its rung."""
        values = self._values_at(state, state.rung)
        return state._replace(replicas=jax.vmap(self.plain.condition_on)(state.replicas, values))

    def _gain(self, own: tuple[PyTree, Mapping[str, Array]], data: PyTree) -> Float[Array, ""]:
        """Return by how much a replica's log joint density grows from its own values to others.

        In nats. A log joint density of many tokens is rounded by nats, and so is a difference of
        two. This is the integral of its slope on the way, by three points of Gauss and Legendre.
        """
        replica, there = own
        here = self._values_of(replica)
        way = jax.tree.map(lambda a, b: jnp.log(b / a), here, there)

        def density(values):
            return self.plain.log_joint(self.plain.condition_on(replica, values), data)

        def slope(place):
            at = jax.tree.map(lambda a, x: a * jnp.exp(place * x), here, way)
            return jax.jvp(density, (at,), (jax.tree.map(jnp.multiply, at, way),))[1]

        return jnp.dot(_WEIGHTS, lax.map(slope, _NODES))

    def _exchanged(
        self, rng_key: Key[Array, ""], state: Ensemble, data: PyTree, scan: Int[Array, ""]
    ) -> Ensemble:
        """Let every second pair of neighbours on the path exchange their rungs, or not."""
        num = len(state.rung)
        if num == 1:
            return state
        lower = (state.rung - scan) % 2 == 0  # of its pair
        partner = jnp.clip(state.rung + jnp.where(lower, 1, -1), 0, num - 1)
        own = state.replicas, self._values_at(state, partner)
        gain = over_replicas(vectorise_if(False, self._gain))(own, data)
        gains = jnp.zeros(num, jnp.float32).at[state.rung].set(gain)
        acceptance = jnp.exp(jnp.minimum(gains[:-1] + gains[1:], 0))
        tries = (jnp.arange(num - 1) - scan) % 2 == 0
        key = bits.fold_in(rng_key, _OWN_KEY + num)
        accepted = tries & (bits.uniform(key, (num - 1,)) < acceptance)
        up, down = jnp.pad(accepted, (0, 1))[state.rung], jnp.pad(accepted, (1, 0))[state.rung]
        rung = state.rung + up - down
        leg = jnp.where((rung == num - 1) & (state.leg == 1), 2, state.leg)
        returned = (rung == 0) & (leg == 2)
        new = state._replace(
            rung=rung,
            leg=jnp.where(rung == 0, 1, leg),
            round_trips=state.round_trips + returned.sum(),
            acceptance=jnp.where(tries, acceptance, state.acceptance),
            rejected=state.rejected + jnp.where(tries, 1 - acceptance, 0),
        )
        return self._placed(new)

    def _swept(
        self, rng_key: Key[Array, ""], state: Ensemble, data: PyTree, scan: Int[Array, ""]
    ) -> tuple[PyTree, Int[Array, " R"]]:
        """Sweep every replica; return the replicas, and how many tokens moved in each."""
        num_sweeps, cycle = self.tempering.sweeps_per_swap, self.plain.sweep_cycle
        sampled = self._sampled

        def sweep(own, shared):
            (key, replica, held, values), (data, scan) = own, shared
            plain = copy.copy(self.plain)
            plain.updated = self.updated | {
                n: _hold(prior, held, values[n]) for n, prior in sampled.items()
            }
            plain.priors = plain.model.priors(**plain.updated)

            def one(i, carry):
                replica, _ = carry
                number = scan * num_sweeps + i
                turn, power = next_sweep(cycle, None, number, number)
                this = key if num_sweeps == 1 else bits.fold_in(key, _SWEEP_KEY + jnp.uint32(i))
                replica, info = plain.step(this, replica, data, turn, power)
                return replica, info.num_moved

            if num_sweeps == 1:
                return one(0, (replica, 0))
            return lax.fori_loop(0, num_sweeps, one, (replica, jnp.zeros((), jnp.int32)))

        keys = _own_keys(rng_key, len(state.rung))
        values = self._values_at(state, state.rung)
        own = keys, state.replicas, state.rung > 0, {name: values[name] for name in sampled}
        return over_replicas(sweep)(own, (data, scan))

    def _adapted(
        self, state: Ensemble, scans: Int[Array, ""], num_warmup: Int[Array, ""]
    ) -> Ensemble:
        """In the warm-up, divide the path anew after rounds that double in length.

        All pairs of neighbours then have the same rate of rejection, if it adds up along the path.
        """
        length = state.length + 1
        log_cold = jax.tree.map(lambda sum, x: sum + jnp.log(x), state.log_cold, state.cold)
        doubled = (scans & (scans - 1)) == 0
        ends = doubled & (scans >= _FIRST_ROUND) & (3 * scans <= 2 * num_warmup)
        ends = ends | (scans == num_warmup)
        # a rate of zero would give two rungs one place
        rates = jnp.maximum(2 * state.rejected / length, 0.01)
        barrier = jnp.concatenate([jnp.zeros(1), jnp.cumsum(rates)])
        wanted = jnp.linspace(0, 1, len(barrier)) * barrier[-1]
        ladder = jnp.interp(wanted, barrier, state.ladder).at[-1].set(1)
        mean = {name: jnp.exp(sum / length) for name, sum in log_cold.items()}
        centre = state.centre | {name: mean[name] for name in self._sampled}

        def where(flag, this, other):
            return jax.tree.map(lambda x, y: jnp.where(flag, x, y), this, other)

        sums = length, state.rejected, log_cold
        sums = where(ends | (scans > num_warmup), jax.tree.map(jnp.zeros_like, sums), sums)
        trips = where(scans == num_warmup, jnp.zeros_like(state.round_trips), state.round_trips)
        new = state._replace(
            ladder=where(ends, ladder, state.ladder),
            centre=where(ends, centre, state.centre),
            length=sums[0],
            rejected=sums[1],
            log_cold=sums[2],
            round_trips=trips,
        )
        return self._placed(new)

    def draws(self, rng_key: Key[Array, ""], state: Ensemble, data: PyTree) -> dict[str, jax.Array]:
        """Return the variables to record of the cold replica, by name."""
        return self.plain.draws(rng_key, _cold(state.replicas, state.rung), data)

    def means(self, state: Ensemble, data: PyTree) -> dict[str, jax.Array]:
        """Return the terms of running means of the cold replica, by name."""
        return self.plain.means(_cold(state.replicas, state.rung), data)

    def log_density(self, state: Ensemble, data: PyTree) -> Float[Array, ""]:
        """Return the log joint density of the cold replica, in nats."""
        return self.plain.log_density(_cold(state.replicas, state.rung), data)

    def used(self, state: Ensemble) -> Bool[Array, " K"]:
        """Return a mask of the topics in use in the cold replica."""
        return self.plain.used(_cold(state.replicas, state.rung))

    def snapshot(self, state: Ensemble, data: PyTree) -> dict[str, jax.Array]:
        """Return what predictions need of the cold replica."""
        return self.plain.snapshot(_cold(state.replicas, state.rung), data)

    def slots_needed(self, state: Ensemble, data: PyTree) -> Int[Array, ""]:
        """Return how many slots the next sweep may need."""
        need = jax.vmap(self.plain.slots_needed, (0, None))(state.replicas, data)
        used = jax.vmap(self.plain.used)(state.replicas).any(axis=0)
        last = jnp.max(jnp.where(used, jnp.arange(len(used)) + 1, 0))  # free ones after it can go
        return jnp.maximum(need.max(), last)

    def capacity(self, state: Ensemble) -> int:
        """Return the number of slots."""
        return self.plain.capacity(state.replicas)

    def grow(self, state: Ensemble, slots: int) -> Ensemble:
        """Add or drop free slots at the end."""
        replicas = jax.vmap(lambda replica: self.plain.grow(replica, slots))(state.replicas)
        none = jnp.zeros_like(replicas.overflow)
        return state._replace(replicas=replicas._replace(overflow=none))


def _own_keys(rng_key: Key[Array, ""], num: int) -> Key[Array, " num"]:
    """Return a key for each replica; the first one has the key of a chain without others."""
    others = [bits.fold_in(rng_key, _OWN_KEY + i) for i in range(1, num)]
    return jnp.stack([rng_key, *others])


def _cold(of_replicas: PyTree, rung: Int[Array, " R"]) -> PyTree:
    """Return what belongs to the replica at the cold end."""
    return _at(of_replicas, jnp.argmin(rung))


def _at(of_replicas: PyTree, replica: Int[Array, ""]) -> PyTree:
    """Return what belongs to a replica."""
    return jax.tree.map(lambda x: x[replica], of_replicas)


def _hold(prior: GammaPrior, held: Bool[Array, ""], value: Array) -> GammaPrior:
    """Return the prior, or one that leaves a hyperparameter at its value."""
    weight = jnp.where(held, jnp.float32(_HELD), 0.0)
    return GammaPrior(prior.concentration + weight, prior.rate + weight / value)
