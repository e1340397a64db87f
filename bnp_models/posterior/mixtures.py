r"""Posterior states of a topic model as plain mixtures: topics and prior weights.

Everything that looks at new documents (fold-in, held-out scores) needs two things of a posterior
state: the probability of each word in each topic, and the weight of each topic in a document that
was not seen. `Mixtures` holds them for S states. Given the topic counts $n_k$ of a document of N
tokens, its $\mathrm{E}[\theta_k]$ is $(n_k + a_k) / (N + \sum_j a_j)$ with a the weights.

Full arrays are large (40 states of 100 topics over 13,649 words: 218 MB), therefore
`MixtureStates` makes them from the recorded topics `z` one state at a time, and the functions of
this library that use mixtures take either form and hold one state at a time.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bnp_models.data.corpus import Corpus

__all__ = [
    "AuthorMixture",
    "MixtureStates",
    "Mixtures",
    "check_words",
    "finite_states",
    "infinite_states",
    "one_by_one",
]

Numbers = np.ndarray | Sequence[Any] | float


class Mixtures(NamedTuple):
    """Topics and prior topic weights of S posterior states, in chain-major order."""

    phi: Float[np.ndarray, "S V K"]  # word-major; each column [s, :, k] sums to one
    weights: Float[np.ndarray, "S K"]  # Dirichlet concentration of the topics in a new document
    chain: Int[np.ndarray, " S"]
    draw: Int[np.ndarray, " S"]
    vocabulary: tuple[str, ...] | None = None  # None: only the number of words can be checked


class AuthorMixture(NamedTuple):
    """One posterior state of a model with authors: topics, and every author's shares of them."""

    mixture: Mixtures
    theta: Float[np.ndarray, "J K"]  # rows sum to one
    author_names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class MixtureStates:
    """Make the mixture of each recorded state when it is asked for.

    A sequence of one-state `Mixtures`: `len`, indexing by an integer, iteration (any number of
    times). Build it with `finite_states` or `infinite_states`, which check the arguments.
    """

    z: np.ndarray  # [chain, draw, token], any integer type
    word: np.ndarray  # [token]
    num_words: int
    weights: np.ndarray  # [chain, draw, topic]; one more topic than z can name if new_topic
    beta: np.ndarray  # [chain, draw]
    new_topic: bool  # the last column of phi is a topic that no token has used
    draw: np.ndarray  # [draw]
    vocabulary: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Count the states: chains times draws."""
        return self.z.shape[0] * self.z.shape[1]

    def __getitem__(self, index: int) -> Mixtures:
        """Tally the topics of one state and return its posterior mean topics."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"state {index} of {len(self)}")
        chain, draw = divmod(index % len(self), self.z.shape[1])
        num_topics = self.weights.shape[-1]
        z = np.asarray(self.z[chain, draw]).astype(np.int64)
        used = num_topics - self.new_topic
        if z.size and not (0 <= z.min() and z.max() < used):
            raise ValueError(
                f"z must lie in [0, {used}), got {z.min()}..{z.max()} in chain {chain}, "
                f"draw {draw}; pass as many weights as the sampler had topic slots"
            )
        cell = self.word.astype(np.int64) * num_topics + z
        word_topic = np.bincount(cell, minlength=self.num_words * num_topics)
        word_topic = word_topic.reshape(self.num_words, num_topics)
        beta = float(self.beta[chain, draw])
        phi = (word_topic + beta) / (word_topic.sum(0) + self.num_words * beta)
        return Mixtures(
            phi.astype(np.float32)[None],
            self.weights[chain, draw].astype(np.float32)[None],
            np.array([chain]),
            np.asarray(self.draw[draw]).reshape(1),
            self.vocabulary,
        )

    def __iter__(self) -> Iterator[Mixtures]:
        """Go through the states in chain-major order, making one at a time."""
        return (self[index] for index in range(len(self)))

    def stack(self) -> Mixtures:
        """Hold all states at once: 4 S V K bytes."""
        parts = list(self)
        arrays = (np.concatenate(leaf) for leaf in zip(*(m[:4] for m in parts), strict=True))
        return Mixtures(*arrays, self.vocabulary)


def _check_snapshots(z, word, num_words: int, draw):
    """Return `word` and the draw numbers as arrays that fit `z`."""
    if np.ndim(z) != 3 or 0 in z.shape[:2]:
        raise ValueError(
            f"z must have shape [chain, draw, token] with at least one chain and draw, "
            f"got {np.shape(z)}; record states with fit(..., keep_states=...)"
        )
    word = np.asarray(word)
    if word.shape != z.shape[2:]:
        raise ValueError(
            f"word has shape {word.shape}, but z names the topics of {z.shape[2]} tokens; "
            "pass the words of the corpus that was fitted"
        )
    if word.size and not (0 <= word.min() and word.max() < num_words):
        raise ValueError(
            f"word must lie in [0, num_words={num_words}), got {word.min()}..{word.max()}"
        )
    draw = np.arange(z.shape[1]) if draw is None else np.asarray(draw)
    if draw.shape != z.shape[1:2]:
        raise ValueError(f"draw must have length {z.shape[1]}, as z has, got {draw.shape}")
    return word, draw


def _expand(name: str, value: Numbers, shape: tuple[int, ...], *, zero: bool = False):
    """Broadcast a hyperparameter to one value per state and check that it is positive."""
    value = np.asarray(value, np.float64)
    try:
        full = np.broadcast_to(value, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {value.shape}, which does not fit {shape}") from None
    allowed = np.isfinite(full) & ((full >= 0) if zero else (full > 0))
    if not allowed.all():
        kind = "not negative" if zero else "positive"
        raise ValueError(f"{name} must be finite and {kind}, got {full[~allowed].flat[0]}")
    return full


def finite_states(
    z: np.ndarray,
    word: Numbers,
    *,
    num_words: int,
    num_topics: int,
    alpha: Numbers,
    beta: Numbers,
    draw: Numbers | None = None,
    vocabulary: tuple[str, ...] | None = None,
) -> MixtureStates:
    r"""Return the mixtures of a model with a fixed number of topics.

    $\phi_{kv} = (n_{vk} + \beta) / (n_k + V \beta)$, the posterior mean given z, and prior weights
    $\alpha_k$.

    Parameters
    ----------
    z
        Recorded topics, [chain, draw, token], any integer type; read one state at a time.
    word
        Word of each token, in the same (corpus) order.
    alpha
        Document concentration: a number, one per topic, or [chain, draw, topic].
    beta
        Topic-word concentration: a number, or [chain, draw].
    draw
        Number of each recorded draw in its chain; counted from zero if not given.
    vocabulary
        Words by id; with it a corpus over other words is refused.

    Raises
    ------
    ValueError
        If shapes disagree, a word is outside [0, V), or a hyperparameter is not positive.
        Topics outside [0, K) are found when their state is made.
    """
    word, draw = _check_snapshots(z, word, num_words, draw)
    weights = _expand("alpha", alpha, (*z.shape[:2], num_topics))
    beta = _expand("beta", beta, z.shape[:2])
    return MixtureStates(z, word, num_words, weights, beta, False, draw, vocabulary)


def infinite_states(
    z: np.ndarray,
    word: Numbers,
    *,
    num_words: int,
    alpha: Numbers,
    beta: Numbers,
    root_weights: Numbers,
    unused_weight: Numbers,
    draw: Numbers | None = None,
    vocabulary: tuple[str, ...] | None = None,
) -> MixtureStates:
    r"""Return the mixtures of a model with unboundedly many topics.

    As `finite_states`, with weights $\alpha \tau_k$, and one last topic more, which stands for all
    that no token has used: weight $\alpha \tau_u$, every word with probability 1/V. (Two tokens of
    a new document that fall into it are taken as independent; a topic learnt from the new
    document itself would tie them.)

    Parameters
    ----------
    alpha
        Document concentration: a number, or [chain, draw].
    root_weights
        $\tau_k$, [chain, draw, topic], zero in empty slots.
    unused_weight
        $\tau_u$, [chain, draw]: the weight that the slots leave over.
    z, word, num_words, beta, draw, vocabulary
        As in `finite_states`.

    Raises
    ------
    ValueError
        As `finite_states`, and if the root weights and the unused weight do not sum to one.
    """
    word, draw = _check_snapshots(z, word, num_words, draw)
    states = z.shape[:2]
    root = np.asarray(root_weights, np.float64)
    if root.ndim != 3 or root.shape[:2] != states:
        raise ValueError(
            f"root_weights must have shape [chain, draw, topic] with {states} states, as z has, "
            f"got {root.shape}"
        )
    root = _expand("root_weights", root, root.shape, zero=True)
    unused = _expand("unused_weight", unused_weight, states, zero=True)
    total = root.sum(-1) + unused
    if not np.allclose(total, 1.0, atol=1e-4):
        worst = total.flat[np.abs(total - 1.0).argmax()]
        raise ValueError(
            f"root_weights and unused_weight must sum to one in every state, got {worst}"
        )
    alpha = _expand("alpha", alpha, states)
    weights = alpha[..., None] * np.concatenate([root, unused[..., None]], -1)
    beta = _expand("beta", beta, states)
    return MixtureStates(z, word, num_words, weights, beta, True, draw, vocabulary)


def check_words(mixture: Mixtures, corpus: Corpus, name: str = "corpus") -> None:
    """Refuse a corpus whose words are not those of the mixture.

    Words that came without names are called "0", "1", ...: where either side has only these,
    their number is all that can be checked.

    Raises
    ------
    ValueError
        If the numbers of words differ, or both sides name their words and differently.
    """
    num_words = mixture.phi.shape[1]
    if corpus.num_words != num_words:
        raise ValueError(
            f"{name} has {corpus.num_words} words, the model has {num_words}; "
            "build it with the vocabulary of the corpus that was fitted"
        )
    ours, theirs = mixture.vocabulary, corpus.vocabulary
    if ours is None or ours == theirs or _numbered(num_words) in (ours, theirs):
        return
    v = next(v for v in range(num_words) if ours[v] != theirs[v])
    raise ValueError(
        f"{name} has another vocabulary than the model: word {v} is {theirs[v]!r}, "
        f"not {ours[v]!r}; build it with the vocabulary of the corpus that was fitted"
    )


@functools.lru_cache(maxsize=8)
def _numbered(num_words: int) -> tuple[str, ...]:
    """Return the names that a corpus gives to words without names."""
    return tuple(map(str, range(num_words)))


def one_by_one(mixtures: Mixtures | Iterable[Mixtures]) -> Iterator[Mixtures]:
    """Go through the states of one `Mixtures`, or of several, as `Mixtures` of one state each.

    Raises
    ------
    ValueError
        If there is no state at all, shapes disagree, a column of `phi` does not sum to one, or
        weights are negative or all zero.
    """
    shape = None
    for mixture in [mixtures] if isinstance(mixtures, Mixtures) else mixtures:
        for s in range(mixture.phi.shape[0]):
            part = Mixtures(*(leaf[s : s + 1] for leaf in mixture[:4]), mixture.vocabulary)
            phi, weights = np.asarray(part.phi[0]), np.asarray(part.weights[0])
            if shape not in (None, phi.shape):
                raise ValueError(
                    f"mixtures must all have one shape [V, K], got {shape} and {phi.shape}"
                )
            shape = phi.shape
            if phi.shape[1:] != weights.shape:
                raise ValueError(
                    f"mixtures: weights has shape {weights.shape}, phi {phi.shape} needs one "
                    "weight per topic"
                )
            if not ((phi >= 0).all() and np.allclose(phi.sum(0), 1.0, atol=1e-3)):
                raise ValueError(
                    "mixtures: each topic (column of phi, over words) must be a probability "
                    f"vector, column sums are {phi.sum(0).min()}..{phi.sum(0).max()}; "
                    "phi is word-major, [S, V, K]"
                )
            if not ((weights >= 0).all() and 0 < weights.sum() < np.inf):
                raise ValueError(
                    "mixtures: weights must be finite, not negative and not all zero, "
                    f"got {weights.min()}..{weights.max()}"
                )
            yield part
    if shape is None:
        raise ValueError(
            "mixtures holds no state; an iterator can be used only once, pass MixtureStates"
        )
