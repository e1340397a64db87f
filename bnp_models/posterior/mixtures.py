r"""Posterior states of a topic model as plain mixtures: topics and the law of new documents.

`Mixtures` holds for S states what `base.topics.Topics` holds for one state. All functions for new
documents (fold-in, held-out scores, tables) read nothing else. They can therefore score states of a
fit, and also arrays that another program estimated.

Full arrays are large (40 states of 100 topics over 13,649 words: 218 MB). `MixtureStates` therefore
asks the model for one state at a time. The functions of this library that use mixtures take either
form and hold one state at a time.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PyTree

from bnp_kernels.tokens.mixture_law import DirichletLaw, MixtureLaw
from bnp_models.base.author_model import AuthorModel
from bnp_models.base.token_model import TokenModel
from bnp_models.base.topics import ColumnsOf, Topics
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus

__all__ = [
    "AuthorMixture",
    "MixtureStates",
    "Mixtures",
    "OneRow",
    "author_states",
    "check_mixtures",
    "check_words",
    "document_rows",
    "mixture_states",
    "one_by_one",
    "row_of",
]

State = Mapping[str, np.ndarray]
"""Variables of one kept state by name."""


class Mixtures(NamedTuple):
    """Topics of S posterior states and the law of new documents, in chain-major order.

    Where topics and law of all documents are the same, `phi` may also be [S, V, K] and the arrays
    of `law` [S, K]: that is taken as F = G = 1. Where topics, or the law, or both differ by group,
    `row_names` are the groups whose documents read the rows.

    Where the law of a document depends on its covariates, `coefficients` turn its columns into the
    logs of Dirichlet weights, `columns_of` makes the columns of documents, and `law` is that of a
    document whose columns have their means.

    With `chain_weight` (see `stacking`), held-out scores weight the chains so, and the states of a
    chain alike. Without it all states count alike.
    """

    phi: Float[np.ndarray, "S F V K"]  # word-major; each column [s, f, :, k] sums to one
    law: MixtureLaw  # of the topic shares in a new document; its arrays are [S, G, K]
    chain: Int[np.ndarray, " S"]
    draw: Int[np.ndarray, " S"]
    vocabulary: tuple[str, ...] | None = None  # None: only the number of words can be checked
    row_names: tuple[str, ...] | None = None  # of the rows; None: there is one for all
    chain_weight: Float[np.ndarray, " S"] | None = None  # of the state's chain; None: no weights
    coefficients: Float[np.ndarray, "S F K"] | None = None
    columns_of: ColumnsOf | None = None

    @property
    def weights(self) -> Float[np.ndarray, "S *G K"]:
        """Weights of the topics in the law, zero for those that can't occur."""
        return np.asarray(self.law.weights)

    def _select(self, kept: np.ndarray | slice) -> "Mixtures":
        """Return some of the states."""
        names = "phi", "law", "chain", "draw", "chain_weight", "coefficients"
        every = {name: getattr(self, name) for name in names}
        return self._replace(**jax.tree.map(lambda x: x[kept], every))

    def _of_documents(self, corpus: Corpus, name: str) -> "Mixtures":
        """Return the mixtures with a row of the law for each document, if it has covariates.

        `name` is that of the corpus as an argument, for messages.
        """
        if self.coefficients is None:
            return self
        assert self.columns_of is not None
        columns = self.columns_of(corpus, name)
        weights = np.exp(np.einsum("df,sfk->sdk", columns, self.coefficients))
        return self._replace(law=DirichletLaw(weights.astype(np.float32)), coefficients=None)


class AuthorMixture(NamedTuple):
    """One posterior state of a model with authors: topics, and every author's shares of them."""

    mixture: Mixtures
    theta: Float[np.ndarray, "J K"]  # rows sum to one
    author_names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class MixtureStates:
    """Mixtures of kept states, each made when it is asked for.

    This is a sequence of one-state `Mixtures`, with `len`, indexing by an integer, and iteration
    any number of times. `mixture_states` builds it and checks the arguments.
    """

    topics_of: Callable[[State], Topics]
    states: Mapping[str, np.ndarray]  # [chain, draw, ...]
    draw: np.ndarray  # [draw]
    vocabulary: tuple[str, ...] | None = None
    row_names: tuple[str, ...] | None = None
    chain: np.ndarray | None = None  # [chain], numbers of the chains; None: 0, 1, ...
    chain_weight: np.ndarray | None = None  # [chain]; None: all states count alike
    columns_of: ColumnsOf | None = None

    def __len__(self) -> int:
        """Count the states: chains times draws."""
        chains, draws = next(iter(self.states.values())).shape[:2]
        return chains * draws

    def state(self, index: int) -> State:
        """Return the variables of one state."""
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            raise ValueError(
                f"index must be the number of a state, got {arguments.short_repr(index)}"
            )
        if not -len(self) <= index < len(self):
            raise ValueError(f"index must be below {len(self)}, the number of states, got {index}")
        at = self._place(index)
        return {name: np.asarray(values[at]) for name, values in self.states.items()}

    def __getitem__(self, index: int) -> Mixtures:
        """Ask the model for the topics of one state."""
        place, draw = self._place(index)
        chain = place if self.chain is None else int(self.chain[place])
        try:
            topics = self.topics_of(self.state(index))
        except ValueError as error:
            raise ValueError(f"{error} (chain {chain}, draw {draw})") from None
        return Mixtures(
            topics.phi[None],
            jax.tree.map(lambda x: x[None], topics.law),
            np.array([chain]),
            np.asarray(self.draw[draw]).reshape(1),
            self.vocabulary,
            self.row_names,
            None if self.chain_weight is None else self.chain_weight[place : place + 1],
            None if topics.coefficients is None else topics.coefficients[None],
            self.columns_of,
        )

    def __iter__(self) -> Iterator[Mixtures]:
        """Iterate over the states in chain-major order; one is made at a time."""
        return (self[index] for index in range(len(self)))

    def stack(self) -> Mixtures:
        """Hold all states at once: 4 S F V K bytes."""
        names = {"vocabulary": self.vocabulary, "row_names": self.row_names}
        names |= {"columns_of": self.columns_of}
        parts = [each._replace(**dict.fromkeys(names)) for each in self]
        stacked = jax.tree.map(lambda *leaf: np.concatenate(leaf), *parts)
        return stacked._replace(**names)

    def _place(self, index: int) -> tuple[int, int]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"state {index} of {len(self)}")
        chain, draw = divmod(index % len(self), len(self.draw))
        return chain, draw


def mixture_states(
    model: TokenModel,
    states: Any,
    corpus: Corpus,
    chain_weight: Float[np.ndarray, " C"] | None = None,
) -> MixtureStates:
    """Return the mixtures of kept states, which are made one at a time by `model.topics_of`.

    Parameters
    ----------
    states
        Variables [chain, draw, ...] by name, as `fit` keeps them, and the numbers of the draws
        and perhaps of the chains (`draw`, `chain`).
    corpus
        The one that was fitted.
    chain_weight
        Weights of the chains, in their order; None: all states count alike.

    Raises
    ------
    ValueError
        If there is no state, or variables differ in their chains or draws. Errors inside a state
        are raised when its mixture is made.
    """
    draw = np.asarray(states["draw"])
    chain = np.asarray(states["chain"]) if "chain" in states else None
    arrays = {
        str(name): np.asarray(values)
        for name, values in states.items()
        if name not in ("chain", "draw")
    }
    shape = next(iter(arrays.values())).shape[:2]
    for name, values in arrays.items():
        if values.ndim < 2 or values.shape[:2] != shape or 0 in shape:
            raise ValueError(
                f"states[{name!r}] must have shape [chain, draw, ...] with at least one chain and "
                f"draw, as many as other variables, got {values.shape}; record states with "
                "fit(..., keep_states=...)"
            )
    if draw.shape != shape[1:]:
        raise ValueError(f"draw must have length {shape[1]}, as the states have, got {draw.shape}")
    make = functools.partial(model.topics_of, corpus=corpus)
    rows, columns_of = model.row_names(corpus), model.columns_of(corpus)
    return MixtureStates(
        make, arrays, draw, corpus.vocabulary, rows, chain, chain_weight, columns_of
    )


def author_states(
    model: AuthorModel,
    states: Any,
    corpus: Corpus,
    chain_weight: Float[np.ndarray, " C"] | None = None,
) -> Iterator[AuthorMixture]:
    """Return an iterator over kept states: their topics, and every author's shares of them.

    Parameters and errors are those of `mixture_states`.
    """
    mixtures = mixture_states(model, states, corpus, chain_weight)

    def one_state(index: int) -> AuthorMixture:
        mixture = mixtures[index]
        theta = model.author_shares(mixtures.state(index), corpus, mixture.weights[0, 0])
        return AuthorMixture(mixture, theta, corpus.author_names)

    return map(one_state, range(len(mixtures)))


@dataclasses.dataclass(frozen=True, eq=False)
class OneRow:
    """Mixtures with only the row of one group, which all documents read.

    Iteration is possible as often as over `mixtures`.
    """

    mixtures: Mixtures | Iterable[Mixtures]
    name: str  # of the row

    def __iter__(self) -> Iterator[Mixtures]:
        """Iterate over the states.

        Raises
        ------
        ValueError
            If no row has this name.
        """
        for mixture in one_by_one(self.mixtures):
            names = mixture.row_names or ()
            if self.name not in names:
                known = ", ".join(names) or "none, for topics do not differ by group"
                raise ValueError(
                    f"group must be one of those the topics differ by ({known}), got {self.name!r}"
                    f"{arguments.meant(self.name, names)}"
                )
            row = names.index(self.name)
            phi, law = jax.tree.map(
                lambda x, row=row: x if x.shape[1] == 1 else x[:, row : row + 1],
                (mixture.phi, mixture.law),
            )
            yield mixture._replace(phi=phi, law=law, row_names=None)


def document_rows(
    mixture: Mixtures, corpus: Corpus, name: str = "corpus"
) -> Int[np.ndarray, " D"] | None:
    """Return the row of `phi` and `law` that each document reads; None: there is one for all.

    Parameters
    ----------
    mixture
        From `one_by_one`.
    corpus
        Documents with groups, which are found by name.

    Raises
    ------
    ValueError
        If topics differ by group, but the corpus has no groups or an unknown one.
    """
    arguments.text("name", name)
    arguments.instance("mixture", mixture, Mixtures, "one of Mixtures, from one_by_one")
    as_corpus("corpus", corpus)
    if mixture.columns_of is not None and mixture.coefficients is None:
        return np.arange(corpus.num_docs, dtype=np.int32)
    names = mixture.row_names
    if names is None:
        return None
    if corpus.group is None:
        raise ValueError(
            f"{name} must have groups, for the topics of documents differ by group: build it with "
            f"groups= out of {', '.join(names)}"
        )
    group = np.asarray(corpus.group)
    place = {row: g for g, row in enumerate(names)}
    rows = np.array([place.get(row, -1) for row in corpus.group_names])
    unknown = np.unique(group[rows[group] < 0])
    if unknown.size:
        other = corpus.group_names[unknown[0]]
        raise ValueError(
            f"{name} has the group {other!r}, which the model has not: give documents of "
            f"{', '.join(names)}{arguments.meant(other, names)}"
        )
    return rows[group].astype(np.int32)


def row_of(values: PyTree, row: int) -> PyTree:
    """Return what documents of one row read of the `phi` or `law` of one state."""
    return jax.tree.map(lambda x: x[0, row if x.shape[1] > 1 else 0], values)


def check_words(mixture: Mixtures, corpus: Corpus, name: str = "corpus") -> None:
    """Refuse a corpus whose words are not those of the mixture.

    Words without names are called "0", "1", .... If either side has only such names, only the
    number of words is checked.

    Raises
    ------
    ValueError
        If the numbers of words differ, or both sides name their words and differently.
    """
    arguments.text("name", name)
    arguments.instance("mixture", mixture, Mixtures, "one of Mixtures, from one_by_one")
    as_corpus("corpus", corpus)
    num_words = mixture.phi.shape[-2]
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


def check_mixtures(mixtures: Any, kind: type = Mixtures) -> Any:
    """Refuse what can't be posterior states; iterators are not read for that."""
    listed = isinstance(mixtures, list | tuple) and not isinstance(mixtures, Mixtures)
    wrong = not isinstance(mixtures, Iterable)
    wrong |= isinstance(mixtures, str | bytes | Mapping | np.ndarray)
    if wrong or (listed and not (mixtures and all(isinstance(x, kind) for x in mixtures))):
        what = "author_mixtures()" if kind is AuthorMixture else "mixtures"
        raise ValueError(
            f"mixtures must be an iterable of {kind.__name__} such as fit.{what}, got "
            f"{arguments.short_repr(mixtures)}"
        )
    return mixtures


def one_by_one(
    mixtures: Mixtures | Iterable[Mixtures], corpus: Corpus | None = None, name: str = "corpus"
) -> Iterator[Mixtures]:
    """Iterate over the states of one or several `Mixtures`, as `Mixtures` of one state each.

    With a corpus, which messages call `name`, a law that depends on covariates has a row for each
    of its documents. Their `phi` is [1, F, V, K] and the arrays of their law [1, G, K], also where
    they came without F and G.

    Raises
    ------
    ValueError
        If there is no state at all, shapes disagree, a column of `phi` does not sum to one, weights
        are negative or all zero, or rows have no names.
    """
    shape = None
    check_mixtures(mixtures)
    for mixture in [mixtures] if isinstance(mixtures, Mixtures) else mixtures:
        arguments.instance("mixtures", mixture, Mixtures, "Mixtures, or an iterable of them")
        for s in range(mixture.phi.shape[0]):
            part = _one_state(mixture, s)
            if corpus is not None:
                part = part._of_documents(corpus, name)
            if shape not in (None, part.phi.shape):
                raise ValueError(
                    "mixtures must all have one shape [F, V, K], got "
                    f"{shape and shape[1:]} and {part.phi.shape[1:]}"
                )
            shape = part.phi.shape
            yield part
    if shape is None:
        raise ValueError(
            "mixtures holds no state; an iterator can be used only once, pass MixtureStates"
        )


def _one_state(mixture: Mixtures, s: int) -> Mixtures:
    """Check one state and return it with all its axes."""
    mixture = mixture._select(slice(s, s + 1))
    law = jax.tree.map(
        lambda x: np.asarray(x)[0],
        arguments.instance("law", mixture.law, MixtureLaw, "such as DirichletLaw(weights)"),
    )
    phi = np.asarray(mixture.phi[0])
    if phi.ndim == 2 and law.weights.ndim == 1:
        phi, law = jax.tree.map(lambda x: x[None], (phi, law))
    weights = law.weights
    if phi.ndim != 3 or weights.ndim != 2 or phi.shape[2] != weights.shape[1]:
        raise ValueError(
            f"mixtures: weights has shape {np.shape(mixture.weights)}, phi "
            f"{np.shape(mixture.phi)} needs one weight per topic, in each row"
        )
    names = mixture.row_names
    rows = {len(phi), len(weights)} - {1} or {1}
    if rows != {1 if names is None else len(names)}:
        raise ValueError(
            f"mixtures: row_names must name the {len(phi)} rows of phi [S, F, V, K] and the "
            f"{len(weights)} rows of weights [S, G, K], those that are more than one, got {names}"
        )
    total = phi.sum(1, dtype=np.float64)
    if not ((phi >= 0).all() and np.allclose(total, 1.0, atol=1e-3)):
        raise ValueError(
            "mixtures: each topic (column of phi, over words) must be a probability "
            f"vector, column sums are {total.min()}..{total.max()}; "
            "phi is word-major, [S, F, V, K] or [S, V, K]"
        )
    for name, values in law._asdict().items():
        mass = values.sum(-1)
        if not ((values >= 0).all() and (mass > 0).all() and np.isfinite(mass).all()):
            raise ValueError(
                f"mixtures: {name} must be finite, not negative and not all zero, "
                f"got {values.min()}..{values.max()}"
            )
    return mixture._replace(phi=phi[None], law=jax.tree.map(lambda x: x[None], law))
