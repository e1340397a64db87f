r"""Laws of the topic shares of a document: how probable each topic is for one more token.

Everything about new documents needs nothing else of a model's prior: fold-in (`fold_in`), the
evidence of documents (`left_to_right`), and the shares of topics given their counts. A law is a
NamedTuple of arrays, so that it passes through `jit`, with two functions:

- `weigh(counts)`: weight of each topic for one more token of a document, given how many of its
  tokens have each topic. The product of the weights, token after token, must not depend on the
  order of the tokens.
- `log_total(length)`: log of the sum of these products over all assignments of `length` tokens. It
  divides them into probabilities.

Each array has the topics on its last axis and a row for each group of documents before it, or one
row for all documents. The field `weights` says which topics are possible (positive), and starts the
samplers. Topics of weight zero may be left out. A third law is a class of this form in `LAWS`.

Sizes: G rows, K topics, N tokens of a document.
"""

from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Num

__all__ = ["LAWS", "DirichletLaw", "MixtureLaw", "SwitchedLaw", "expected_shares", "of_docs"]

_NEVER = 1e-280  # probabilities below this are left out

Row = Num[Array | np.ndarray, "... K"]
"""One number for each topic, in one or several rows."""


@runtime_checkable
class MixtureLaw(Protocol):
    """What a law offers, see the module."""

    @property
    def weights(self) -> Row:
        """Positive where a topic is possible."""
        ...

    def weigh(self, counts: Row) -> Row:
        """Return the weight of each topic for one more token."""
        ...

    def log_total(self, length: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """Return the log of the sum of products of weights; the law has one row, [K]."""
        ...


class DirichletLaw(NamedTuple):
    r"""Shares from $\mathrm{Dir}(a)$: the weight of a topic is $n_k + a_k$."""

    weights: Row  # a, the concentration; not negative

    def weigh(self, counts: Row) -> Row:
        """Return the weight of each topic for one more token."""
        return counts + self.weights

    def log_total(self, length: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        r"""Return $\log \prod_{n < N} (n + \sum_k a_k)$ for each document."""
        from scipy.special import gammaln

        total = np.asarray(self.weights, np.float64).sum()
        return gammaln(total + length) - gammaln(total)


class SwitchedLaw(NamedTuple):
    r"""Shares in documents that switch topics on and off, as in the IBP compound Dirichlet model.

    The weight of a topic is $n_k + a_k$ in a document that has tokens of it, and $j_k$ in others.
    """

    weights: Row  # a, the strength of the topic where it is on
    weights_if_absent: Row  # j, zero only where a is

    def weigh(self, counts: Row) -> Row:
        """Return the weight of each topic for one more token."""
        some = counts > 0
        return some * (counts + self.weights) + ~some * self.weights_if_absent

    def log_total(self, length: Int[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        r"""Return the log of the sum of products of weights for each document.

        The sum is $N!$ times the coefficient of $x^N$ in $\prod_k F_k(x)$, with
        $F_k(x) = 1 + (j_k / a_k) ((1 - x)^{-a_k} - 1)$. The coefficients are those of
        distributions, tilted so that lengths of about the same size are typical: documents are
        taken in classes whose lengths differ by a factor below 2.
        """
        from scipy.special import gammaln

        a, j = (np.asarray(x, np.float64) for x in self)
        a, j = a[j > 0], j[j > 0]
        found = np.zeros(len(length))
        octave = np.floor(np.log2(np.maximum(length, 1))).astype(int)
        for which in np.unique(octave[length > 0]):
            docs = np.flatnonzero((octave == which) & (length > 0))
            log_x = _tilt_to(a, j, 1.5 * 2.0**which)
            most = int(length[docs].max())
            law = np.ones(1)
            for one in zip(a, j, strict=True):
                law = np.convolve(law, _tokens_of_topic(*one, log_x, most))[: most + 1]
            law = np.pad(law, (0, most + 1 - len(law)))
            at = length[docs]
            with np.errstate(divide="ignore"):
                log_law = np.log(law[at])
            found[docs] = log_law + gammaln(at + 1.0) + _log_factor(a, j, log_x).sum() - at * log_x
        return found


LAWS = {law.__name__: law for law in (DirichletLaw, SwitchedLaw)}
"""Laws by name: what a saved model may name."""

Law = TypeVar("Law", bound=MixtureLaw)


def of_docs(law: Law, doc_row: Int[Array | np.ndarray, " D"] | None) -> Law:
    """Return the law of each document, [D, K], or [1, K] where all documents have one row."""
    return jax.tree.map(lambda x: x if doc_row is None or len(x) == 1 else x[doc_row], law)


def expected_shares(law: MixtureLaw, counts: Row) -> tuple[Row, Num[Array | np.ndarray, "..."]]:
    """Return the probabilities of the topics for one more token, and the sums that they divide.

    `counts` and the law have equal numbers of rows, or the law has one. For a Dirichlet law these
    are the expected shares, and the sums are those of the Dirichlet's parameters.
    """
    weighed = law.weigh(counts)
    total = weighed.sum(axis=-1, keepdims=True)
    return weighed / total, total[..., 0]


def _log_factor(a, j, log_x):
    """Return log F of each topic."""
    power = -a * np.log1p(-np.exp(log_x))
    large = power > 30
    small = np.log1p(j / a * np.expm1(np.where(large, 0.0, power)))
    return np.where(large, np.log(j / a) + power, small)


def _mean(a, j, log_x):
    """Return the mean length under the tilted law."""
    power = -(a + 1) * np.log1p(-np.exp(log_x))
    return np.exp(log_x + np.log(j) + power - _log_factor(a, j, log_x)).sum()


def _tilt_to(a, j, length):
    """Find log x for which the mean length is about this."""
    low, high = -50.0, -1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(a, j, middle) < length else (low, middle)
    return (low + high) / 2


def _tokens_of_topic(a, j, log_x, most):
    """Return the probabilities of 0, 1, ... tokens in a topic, up to `most`."""
    from scipy.special import gammaln

    n = np.arange(1, most + 1)
    logs = np.log(j) + gammaln(a + n) - gammaln(a + 1) - gammaln(n + 1.0) + n * log_x
    law = np.exp(np.append(0.0, logs) - _log_factor(a, j, log_x))
    return law[: np.flatnonzero(law > _NEVER)[-1] + 1]
