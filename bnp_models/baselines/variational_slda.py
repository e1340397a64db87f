r"""Variational supervised LDA with logistic labels, a competitor of the Gibbs sampler.

The model is $\eta \sim \mathrm{N}(0, \nu^2 I)$, $\omega_d = \eta \cdot \bar z_d$ with the topic
frequencies $\bar z_d$ of a document, and labels that count with the weight c:
$[e^{y \omega} / (1 + e^\omega)]^c$, y in {0, 1}. Wang, Blei and Fei-Fei (CVPR 2009) have softmax
labels and one estimate of $\eta$; here $\eta$ has a distribution too. c = 1 is their weight.
"""

import dataclasses
from typing import Unpack

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Float

from bnp_models.baselines.mean_field import Response, Weights
from bnp_models.baselines.variational import FitOptions, VariationalFit, fit_program
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["VariationalSLDA", "fit_variational_slda"]

SMALLEST = 1e-12  # added under a square root, whose slope at zero is infinite


@dataclasses.dataclass(frozen=True)
class Logistic(Response):
    r"""Logistic labels, bounded after Jaakkola and Jordan (Statistics and Computing 10, 2000).

    $$c (y \omega - \log(1 + e^\omega)) \ge c (y - \tfrac12) \omega - c \log 2 \cosh(\xi / 2)
    - \frac{c \tanh(\xi / 2)}{4 \xi} (\omega^2 - \xi^2)$$

    The best $\xi^2$ is the mean of $\omega^2$, which leaves the first two terms. In the bound that
    mean is over z alone, for each draw of $\eta$. In `push` it is over z and $\eta$. With
    $R = \sum_n r_n$ and $A$ the mean of $\eta \eta^T$,

    $$N^2 \, \mathrm{E} \omega^2 = R^T A R + \sum_n [\mathrm{diag}(A)^T r_n - r_n^T A r_n]$$
    """

    c: float

    def law(self, weights: Weights) -> dist.Distribution:
        """Return the normal law, of which `factor` gets a draw."""
        return dist.Normal(*weights)

    def factor(self, batch, sign, r, eta, multiplier):
        r"""Return $c [(y - 1/2) \mathrm{E} \omega - \log 2 \cosh(\xi / 2)]$."""
        zero = jnp.zeros_like(eta)
        omega, square = self._moments(batch, r, Weights(eta, zero))
        half = jnp.sqrt(square + SMALLEST) / 2
        return self.c * (sign / 2 * omega - jnp.abs(sign) * jnp.logaddexp(half, -half))

    def push(self, batch, sign, r, weights, multiplier):
        r"""Return the derivative in $r_n$, with $t = c \tanh(\xi / 2) / (2 \xi)$.

        It is $c (y - \tfrac12) m / N - \frac{t}{2 N^2} [\mathrm{diag}(A) + 2 A (R - r_n)]$.

        The quadratic term couples the tokens of a document. For changes $\delta_n$ of $r_n$ that
        sum to zero over topics, $\delta^T A \delta \le \tfrac{N}{4} \sum_n |\delta_n|_1^2 w^2$,
        where $\delta = \sum_n \delta_n$ and $w^2$ is the largest mean of $(\eta_j - \eta_k)^2$. The
        entropy bends by $\sum_n |\delta_n|_1^2$ at least (Pinsker). Steps of $1 / (1 + t w^2 / 4N)$
        in the logits therefore never lower the bound.
        """
        loc, variance = weights.loc, weights.scale**2
        _, square = self._moments(batch, r, weights)
        xi = jnp.sqrt(square + SMALLEST)
        t = jnp.abs(sign) * self.c * jnp.tanh(xi / 2) / (2 * xi)
        rest = batch.total(r)[batch.doc] - r
        product = variance * rest + loc * (rest @ loc)[:, None]
        pull = (variance + loc**2 + 2 * product) * (t / (2 * batch.length**2))[batch.doc, None]
        gain = (self.c * sign / (2 * batch.length))[batch.doc, None] * loc
        width = (loc.max() - loc.min()) ** 2 + 2 * variance.max()
        return gain - pull, 1 / (1 + t * width / (4 * batch.length)), multiplier

    def _moments(self, batch, r, weights):
        """Return the means of omega and of its square."""
        loc, variance = weights.loc, weights.scale**2
        counts, along = batch.total(r), r @ loc
        own = r @ (variance + loc**2) - r**2 @ variance - along**2
        square = (counts @ loc) ** 2 + counts**2 @ variance + batch.total(own[:, None])[:, 0]
        return counts @ loc / batch.length, jnp.maximum(square, 0) / batch.length**2


@dataclasses.dataclass(frozen=True, eq=False)
class VariationalSLDA(VariationalFit):
    """What `fit_variational_slda` returns: a `VariationalFit` with probabilities of labels."""

    def predict_proba(self, corpus: Corpus) -> Float[np.ndarray, "D L"]:
        r"""Return the probability of each class for new documents.

        With two classes it is $1 / (1 + e^{-\omega})$ at the mean of $\omega$, not taken to the
        power c. With more, those of the problems are divided by their sum.

        Raises
        ------
        ValueError
            If the corpus has other words than the one that was fitted.
        """
        scores = self.decision_function(corpus)
        positive = 1 / (1 + np.exp(-scores.astype(np.float64)))
        if scores.ndim == 1:
            return np.stack([1 - positive, positive], axis=1)
        return positive / positive.sum(axis=1, keepdims=True)


def fit_variational_slda(
    corpus: Corpus, num_topics: int, *, c: float = 1.0, **options: Unpack[FitOptions]
) -> VariationalSLDA:
    r"""Fit variational supervised LDA with logistic labels, by stochastic gradients of the bound.

    Parameters
    ----------
    corpus, num_topics
        As those of `fit_program`.
    c
        Weight of the labels: the likelihood of each is taken to this power; positive.
    **options
        Of `fit_program`: `alpha`, `beta`, `eta_variance`, `num_steps`, `batch_size`,
        `learning_rate` and `seed`.

    Returns
    -------
    A `VariationalSLDA` with `predict`, `decision_function` and `predict_proba`.

    Raises
    ------
    ValueError
        If the corpus has no labels or only one class, or a number is out of its range.

    Notes
    -----
    The bound has many local optima: compare `elbo` between seeds.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> texts = ["cat dog cat", "moon sun", "dog cat", "sun moon moon"]
    >>> corpus = bnp.Corpus.from_texts(texts, labels=["pet", "sky", "pet", "sky"])
    >>> fitted = fit_variational_slda(corpus, 2, num_steps=200)
    >>> [fitted.label_names[y] for y in fitted.predict(corpus)]
    ['pet', 'sky', 'pet', 'sky']
    """
    response = Logistic(arguments.finite_number("c", c, above=0))
    return fit_program(VariationalSLDA, corpus, response, num_topics, **options)
