r"""Gibbs kernels of the IBP compound Dirichlet topic model; the program is `IBPCompoundDirichlet`.

The atoms $(\pi_k, s_k)$, sticks and strengths, are a Poisson process of intensity
$\alpha \pi^{-1} d\pi \times \mathrm{Gamma}(s; a, 1) ds$. Document d of M switches topic k on with
probability $\pi_k$, and topics that are on have $\mathrm{NB}(s_k, 1/2)$ tokens each. The lengths of
the documents are part of the data. So the tokens of different topics are independent, and the
switches integrate out: a document without topic k has the factor $g_k = 1 - \pi_k (1 - 2^{-s_k})$,
and one with n tokens in it $\pi_k 2^{-s_k} \Gamma(s_k + n) / \Gamma(s_k)$. Given z, the atoms that
have no token are a Poisson process, too, of the above intensity times $g^M$.

Two exact sweeps of one posterior $p(z, \pi, s, \alpha, a, \beta \mid w, N)$:

- "sequential": topics and switches integrated out, one scan over the tokens;
- "parallel": topics, switches and unused atoms are drawn, then documents are independent.

After either, `_resample` draws sticks, strengths and hyperparameters. All draws but that of a, by
slice sampling, are from conditionals in closed form.

Williamson, Wang, Heller and Blei, The IBP compound Dirichlet process and its application to focused
topic modeling, ICML 2010. Their update of z is a first-order approximation, and ignores the length
of the document; the form above replaces it. Sizes: T tokens, M documents, V words, K slots. Counts
are int32, log densities in nats. Free slots hold zeros.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Key

from bnp_kernels.numerics.densities import log_rising
from bnp_kernels.numerics.sums import prefix_sums, sum_pairwise, sum_rows
from bnp_kernels.processes import buffet, dirichlet_topics, hdp_root
from bnp_kernels.processes.hdp_state import chain_by_chain
from bnp_kernels.random import bits
from bnp_kernels.random.concentration import GammaPrior
from bnp_kernels.random.gamma import draw_log_beta, draw_log_gamma, draw_topic_word
from bnp_kernels.random.slice_sampling import draw_slice
from bnp_kernels.random.tables import draw_tables
from bnp_kernels.tokens import lanes, layout, tally
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device, run_scheduled_sweep
from bnp_kernels.tokens.start import random_start

__all__ = [
    "FocusedInfo",
    "FocusedPriors",
    "FocusedState",
    "conditional",
    "grow",
    "init",
    "log_atoms",
    "log_joint",
    "log_prior",
    "mixtures",
    "open_atoms",
    "slots_needed",
    "step",
]

_LOG2 = math.log(2.0)
_SMALLEST, _LARGEST = 1e-30, 1 - 2.0**-24  # strengths and sticks stay inside
_BRACKET = 2.0  # width of the bracket of the slice step, in log a


class FocusedState(NamedTuple):
    """What one sweep hands to the next; every count is a function of `z`."""

    z: Int[Array, " T"]  # corpus order
    doc_topic: Int[Array, "M K"]
    word_topic: Int[Array, "V K"]  # word-major: a sweep reads and writes whole rows
    topic: Int[Array, " K"]
    stick: Float[Array, " K"]  # pi of the topics in use
    strength: Float[Array, " K"]  # s of the topics in use
    alpha: Float[Array, ""]
    strength_shape: Float[Array, ""]
    beta: Float[Array, ""]
    overflow: Bool[Array, ""]  # a sweep was short of slots: restore, grow, repeat the sweep


class FocusedPriors(NamedTuple):
    """Gamma priors of the hyperparameters; None holds one fixed at its value in the state."""

    alpha: GammaPrior | None = None
    strength_shape: GammaPrior | None = None
    beta: GammaPrior | None = None


class FocusedInfo(NamedTuple):
    """What one sweep reports and the next does not need."""

    num_moved: Int[Array, ""]  # tokens whose topic changed


class Open(NamedTuple):
    """Atoms of all slots that a document may use in a parallel sweep, and their switches."""

    strength: Float[Array, " K"]
    stick: Float[Array, " K"]
    on: Bool[Array, "M K"]
    overflow: Bool[Array, ""]


def init(
    rng_key: Key[Array, ""],
    data: Tokens,
    *,
    num_words: int,
    max_topics: int,
    alpha: ArrayLike,
    strength_shape: ArrayLike,
    beta: ArrayLike,
    init_topics: int | Int[Array, ""],
) -> FocusedState:
    """Assign every token to one of `init_topics` topics at random; give them plausible atoms."""
    counts = random_start(rng_key, data, num_words, max_topics, init_topics)
    values = (jnp.asarray(x, jnp.float32) for x in (alpha, strength_shape, beta))
    alpha, shape, beta = values
    _, doc_topic, _, topic = counts
    having = data.shards.total((doc_topic > 0).sum(axis=0))
    stick = jnp.where(topic > 0, having / jnp.float32(1 + layout.num_docs(data)), 0.0)
    strength = jnp.where(topic > 0, shape, 0.0)
    return FocusedState(*counts, stick, strength, alpha, shape, beta, jnp.zeros((), bool))


def grow(state: FocusedState, max_topics: int) -> FocusedState:
    """Pad the slots with free ones up to `max_topics`, or drop free ones at the end."""
    per_slot = ("doc_topic", "word_topic", "topic", "stick", "strength")
    return state._replace(**{n: hdp_root.grow(getattr(state, n), max_topics) for n in per_slot})


def _log_present(stick: Array, strength: Array) -> Array:
    """Return log of pi 2^-s, the probability of a topic that is on and has no token."""
    return jnp.log(stick) - _LOG2 * strength


def _absent(stick: Array, strength: Array) -> Array:
    """Return g, the probability that a document has no token of the topic."""
    return (1 - stick) + stick * jnp.exp(-_LOG2 * strength)


def _join(stick: Array, strength: Array) -> Array:
    """Return the weight of a topic that is in use, but not in the document."""
    return strength * stick * jnp.exp(-_LOG2 * strength) / _absent(stick, strength)


def _rates(num_docs: int) -> Float[Array, " M"]:
    """Return 1 + j log 2 for j = 1 .. M."""
    return 1 + _LOG2 * jnp.arange(1, num_docs + 1, dtype=jnp.float32)


def _birth_rates(num_docs: int, alpha: Array, shape: Array) -> Float[Array, " M"]:
    r"""Return terms whose sum is the weight of a new topic, $\int \alpha \pi^{-1} g^M \ldots$."""
    return alpha * shape / num_docs * jnp.exp(-(shape + 1) * jnp.log(_rates(num_docs)))


def _draw_pool(rng_key: Key[Array, ""], state: FocusedState) -> tuple[Array, Array]:
    r"""Draw sticks and strengths of the atoms that a token would open, one for each slot.

    Their density is proportional to $\pi^{-1} \mathrm{Gamma}(s; a, 1) g^M \cdot s \pi 2^{-s} / g$.
    With $q = 1 - 2^{-s}$, the integral over $\pi$ is that of $(1 - \pi q)^{M - 1}$: a geometric sum
    of M powers of $2^{-s}$. So s is from a mixture of M gamma distributions.
    """
    key_part, key_strength, key_stick = bits.split(rng_key, 3)
    num_docs, num_slots = state.doc_topic.shape
    until = prefix_sums(_birth_rates(num_docs, state.alpha, state.strength_shape))
    place = bits.uniform(key_part, (num_slots,)) * until[-1]
    part = jnp.minimum(jnp.searchsorted(until, place, side="right"), num_docs - 1)
    slot = jnp.arange(num_slots)
    log_strength = draw_log_gamma(
        key_strength, jnp.full(num_slots, state.strength_shape + 1), slot, 0
    )
    strength = jnp.maximum(jnp.exp(log_strength) / _rates(num_docs)[part], _SMALLEST)
    # invert the distribution function of pi, proportional to 1 - (1 - pi q)^M
    u = bits.uniform(key_stick, (num_slots,))
    log_rest = jnp.log1p(u * jnp.expm1(-_LOG2 * num_docs * strength)) / num_docs
    stick = jnp.expm1(log_rest) / jnp.expm1(-_LOG2 * strength)
    return jnp.clip(stick, _SMALLEST, _LARGEST), strength


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, *, strength: Array, join: Array, birth: Array,
    beta: ArrayLike, num_words: int,
) -> Array:  # fmt: skip
    r"""Return p(z_t = k | z_-t, w, pi, s) up to a constant; the counts leave token t out.

    A topic that the document has weighs $n_{dk} + s_k$; one that others have,
    $s_k \pi_k 2^{-s_k} / g_k$; and the atom of a free slot, its share of the weight of new topics.
    """
    mixture = jnp.where(n_dk > 0, n_dk + strength, jnp.where(n_k > 0, join, birth))
    return mixture * (n_vk + beta) / (n_k + num_words * beta)


def _sequential_sweep(
    rng_key: Key[Array, ""],
    state: FocusedState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> FocusedState:
    num_words = state.word_topic.shape[0]
    key_slots, key_pool, key_z = bits.split(rng_key, 3)
    used = state.topic > 0
    in_play, overflow = buffet.slots_in_play(key_slots, used)
    stick, strength = _draw_pool(key_pool, state)
    stick = jnp.where(used, state.stick, stick)
    strength = jnp.where(used, state.strength, strength)
    rates = _birth_rates(len(state.doc_topic), state.alpha, state.strength_shape)
    birth = sum_pairwise(rates) / buffet.SPARE
    if power is not None:
        birth = 0.0  # those born in the heat would soon die

    def weigh(doc, word, topic, strength, join, birth, beta):
        return Weights(conditional(
            doc, word, topic, strength=strength, join=join, birth=birth, beta=beta,
            num_words=num_words,
        ))  # fmt: skip

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    per_topic = {
        "strength": strength,
        "join": _join(stick, strength),
        "birth": jnp.where(in_play, birth, 0.0),
    }
    swept = scan_tokens(
        weigh, key_z, data.buckets, state.z, state.doc_topic, tables, per_topic=per_topic,
        constants={"beta": state.beta}, power=power,
    )  # fmt: skip
    counts = swept.z, swept.doc, swept.tables["word"], swept.tables["topic"]
    return _with_topics(state, counts, stick, strength, overflow)


def _with_topics(state: FocusedState, counts, stick, strength, overflow) -> FocusedState:
    """Replace the topics of the tokens, and keep the atoms of topics in use alone."""
    z, doc_topic, word_topic, topic = counts
    used = topic > 0
    return state._replace(
        z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic,
        stick=jnp.where(used, stick, 0.0), strength=jnp.where(used, strength, 0.0),
        overflow=state.overflow | overflow,
    )  # fmt: skip


def open_atoms(rng_key: Key[Array, ""], state: FocusedState, data: Tokens) -> Open:
    """Draw the switches of topics in use, and all other atoms that are on in some document.

    The latter are atoms of the process that are on somewhere, thinned by the probability that no
    document has a token of them. They get free slots.
    """
    key_on, key_atoms, key_strength, key_keep = bits.split(rng_key, 4)
    places, num_slots = state.doc_topic.shape
    used = state.topic > 0
    on = _draw_on(key_on, state, data) & used[None, :]
    here = data.shards.first_doc, places
    atoms = buffet.draw_atoms(key_atoms, state.alpha, layout.num_docs(data), num_slots, here=here)
    slot = jnp.arange(num_slots)
    log_strength = draw_log_gamma(key_strength, jnp.full(num_slots, state.strength_shape), slot, 0)
    strength = jnp.maximum(jnp.exp(log_strength), _SMALLEST)
    num_on = data.shards.total((atoms.on & _rows(data)).sum(axis=0))
    log_unused = -_LOG2 * strength * num_on
    kept = atoms.exists & (bits.uniform(key_keep, (num_slots,)) < jnp.exp(log_unused))
    atom, taken, overflow = buffet.into_free_slots(kept, used)
    return Open(
        jnp.where(taken, strength[atom], state.strength),
        jnp.where(taken, atoms.stick[atom], state.stick),
        jnp.where(taken[None, :], atoms.on[:, atom], on),
        overflow | atoms.overflow,
    )


def _rows(data: Tokens) -> Bool[Array, "M 1"] | bool:
    """Return which rows are documents: a device may have some that only fill its places."""
    docs = data.shards.are_docs(data.doc_length.shape[0])
    return docs if isinstance(docs, bool) else docs[:, None]


def _draw_on(rng_key: Key[Array, ""], state: FocusedState, data: Tokens) -> Bool[Array, "M K"]:
    """Draw the switches of the topics in use."""
    stick, strength = state.stick, state.strength
    chance = stick * jnp.exp(-_LOG2 * strength) / _absent(stick, strength)
    has = state.doc_topic > 0
    chance = jnp.broadcast_to(chance, has.shape)
    return has | buffet.draw_switches(rng_key, chance, data.shards.first_doc)


def _parallel_sweep(
    rng_key: Key[Array, ""],
    state: FocusedState,
    data: Tokens,
    power: Float[Array, ""] | None = None,
) -> FocusedState:
    key_open, key_phi, key_z = bits.split(rng_key, 3)
    atoms = open_atoms(key_open, state, data)
    phi = draw_topic_word(key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name)
    prior = jnp.where(atoms.on, atoms.strength[None, :], 0.0)
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, phi, prior,
        prior_row=jnp.arange(len(prior)), shards=data.shards, power=power,
    )  # fmt: skip
    (places, num_slots), num_words = state.doc_topic.shape, state.word_topic.shape[0]
    tallied = tally.tally(z, data.doc, data.word, places, num_words, num_slots, data.shards)
    return _with_topics(state, (z, *tallied), atoms.stick, atoms.strength, atoms.overflow)


def _resample(
    rng_key: Key[Array, ""], state: FocusedState, data: Tokens, priors: FocusedPriors
) -> FocusedState:
    r"""Draw atoms and hyperparameters given the topics.

    The switches, and the tables that the tokens of a document in one topic would take in a
    restaurant of concentration $s_k$, make the conditionals of strengths and sticks those of gamma
    and beta distributions.
    """
    keys = bits.split(rng_key, 8)
    used, num_docs = state.topic > 0, layout.num_docs(data)
    num_on = (_draw_on(keys[0], state, data) & _rows(data)).sum(axis=0)
    tables = draw_tables(keys[1], state.doc_topic, state.strength, data.shards.first_doc)
    num_on, tables = data.shards.total((num_on, tables))
    slot = jnp.arange(len(used))
    log_strength = draw_log_gamma(keys[2], state.strength_shape + tables, slot, 0)
    strength = jnp.maximum(jnp.exp(log_strength) / (1 + _LOG2 * num_on), _SMALLEST)
    num_on = jnp.where(used, num_on, 1)
    num_on = num_on.astype(jnp.float32)
    log_stick = draw_log_beta(keys[3], num_on, 1 + num_docs - num_on, slot, 0)
    stick = jnp.clip(jnp.exp(log_stick), _SMALLEST, _LARGEST)
    state = state._replace(
        stick=jnp.where(used, stick, 0.0), strength=jnp.where(used, strength, 0.0)
    )
    if priors.alpha is not None:
        concentration = jnp.asarray(priors.alpha.concentration + used.sum(), jnp.float32)
        rate = priors.alpha.rate + _mass_in_use(state.strength_shape, num_docs)
        alpha = jnp.exp(draw_log_gamma(keys[4], concentration, 0, 0)) / rate
        state = state._replace(alpha=jnp.maximum(alpha, _SMALLEST))
    if priors.strength_shape is not None:
        shape = _draw_shape(keys[5], state, num_docs, priors.strength_shape)
        state = state._replace(strength_shape=shape)
    beta = dirichlet_topics.resample_beta(
        keys[6], keys[7], state.word_topic, state.topic, state.beta, priors.beta
    )
    return state._replace(beta=beta)


def _mass_in_use(shape: Array, num_docs: int) -> Float[Array, ""]:
    r"""Return $\Psi(a)$: given mass one, the expected number of atoms that have a token."""
    rank = jnp.arange(1, num_docs + 1, dtype=jnp.float32)
    return sum_pairwise(-jnp.expm1(-shape * jnp.log(_rates(num_docs))) / rank)


def _draw_shape(
    rng_key: Key[Array, ""], state: FocusedState, num_docs: int, prior: GammaPrior
) -> Float[Array, ""]:
    """Draw the shape of the strengths by slice sampling of its logarithm."""
    used = state.topic > 0
    number = used.sum()
    logs = sum_pairwise(jnp.where(used, jnp.log(jnp.where(used, state.strength, 1.0)), 0.0))

    def log_density(log_shape):
        shape = jnp.exp(log_shape)
        unused = state.alpha * _mass_in_use(shape, num_docs)
        own = prior.concentration * log_shape - prior.rate * shape
        return own + shape * logs - number * gammaln(shape) - unused

    drawn = draw_slice(rng_key, log_density, jnp.log(state.strength_shape), _BRACKET)
    return jnp.maximum(jnp.exp(drawn), _SMALLEST)


def step(
    rng_key: Key[Array, ""],
    state: FocusedState,
    data: Tokens,
    priors: FocusedPriors,
    turn: Int[Array, ""] | int = 0,
    *,
    sweeps: tuple[str, ...] = ("sequential",),
    power: Float[Array, ""] | None = None,
) -> tuple[FocusedState, FocusedInfo]:
    r"""Resample the topics by the sweep `sweeps[turn]`, then sticks, strengths, hyperparameters.

    "sequential" draws the tokens in corpus order, with switches, documents and topics integrated
    out; see `conditional` and `buffet`.

    "parallel" draws switches b, the atoms that are on but have no token, and the topics first. Then
    all documents are independent:

    $$p(z_t = k \mid \cdot) \propto (n_{dk} + b_{dk} s_k) \phi_{k w_t}$$

    A document gets a topic then only if it had it or switched it on without a token, so
    "sequential" mixes faster. `power` is that of annealed sweeps, see `run_scheduled_sweep`.
    """
    key_sweep, key_rest = bits.split(rng_key)
    known = {
        "sequential": on_one_device(_sequential_sweep),
        "parallel": chain_by_chain(_parallel_sweep, state),
    }
    new = run_scheduled_sweep(known, sweeps, turn, key_sweep, state, data, power=power)
    new = _resample(key_rest, new, data, priors)
    new = new._replace(overflow=new.overflow | (_room_for_atoms(new, data) > len(new.topic)))
    return new, FocusedInfo(num_moved=data.shards.total((new.z != state.z).sum()))


def slots_needed(state: FocusedState, data: Tokens) -> Int[Array, ""]:
    """Return how many slots make an overflow of the next sweep very improbable."""
    used = (state.topic > 0).sum()
    return jnp.maximum(used + buffet.slots_for(buffet.SPARE), _room_for_atoms(state, data))


def _room_for_atoms(state: FocusedState, data: Tokens) -> Int[Array, ""]:
    """Return how many slots the topics in use and any draw of other atoms want."""
    expected = buffet.expected_atoms(state.alpha, layout.num_docs(data))
    return (state.topic > 0).sum() + buffet.slots_for(expected)


def log_joint(state: FocusedState, data: Tokens) -> Float[Array, ""]:
    r"""Return $\log p(w, z, N \mid \pi, s, \beta)$ in nats, switches and topics integrated out."""
    used = (state.topic > 0)[None, :]
    stick, strength = (jnp.where(used[0], x, 0.5) for x in (state.stick, state.strength))
    present = _log_present(stick, strength)[None, :] + log_rising(strength, state.doc_topic)
    absent = jnp.log(_absent(stick, strength))[None, :]
    cells = jnp.where(state.doc_topic > 0, present, absent)
    cells = jnp.where(used & _rows(data), cells, 0.0)
    lengths = -_LOG2 * data.doc_length - gammaln(data.doc_length + 1.0)
    documents = data.shards.total(sum_pairwise(sum_rows(cells)) + sum_pairwise(lengths))
    return documents + dirichlet_topics.log_words(state.word_topic, state.topic, state.beta)


def log_atoms(state: FocusedState, data: Tokens) -> Float[Array, ""]:
    r"""Return the log density of the atoms in use, in nats, given that no other has a token.

    $$K \log \alpha - \alpha \Psi(a) + \sum_k \log [\pi_k^{-1} \mathrm{Gamma}(s_k; a, 1)]$$
    """
    used, shape = state.topic > 0, state.strength_shape
    stick, strength = (jnp.where(used, x, 1.0) for x in (state.stick, state.strength))
    terms = jnp.log(state.alpha / stick) + (shape - 1) * jnp.log(strength) - strength
    terms = jnp.where(used, terms - gammaln(shape), 0.0)
    return sum_pairwise(terms) - state.alpha * _mass_in_use(shape, layout.num_docs(data))


def log_prior(state: FocusedState, priors: FocusedPriors) -> Float[Array, ""]:
    """Return the log prior density of the hyperparameters that are sampled."""
    return dirichlet_topics.log_prior(state._asdict(), priors._asdict())


def mixtures(
    rng_key: Key[Array, ""], state: FocusedState, data: Tokens
) -> tuple[Float[Array, "M K"], Float[Array, " M"]]:
    r"""Draw prior weights $b_{dk} s_k$ of the topics in use, and of all others together."""
    atoms = open_atoms(rng_key, state, data)
    weights = jnp.where(atoms.on, atoms.strength[None, :], 0.0)
    used = (state.topic > 0)[None, :]
    return jnp.where(used, weights, 0.0), sum_pairwise(jnp.where(used, 0.0, weights).T)
