r"""Variational max-margin LDA (MedLDA), a competitor of the Gibbs sampler.

After Zhu, Ahmed and Xing, MedLDA: maximum margin supervised topic models, JMLR 13 (2012), with
labels y in {-1, 1}. With the mean field q of `mean_field`, the objective is the bound of LDA minus
the hinge loss of the expected classifier:

$$\mathrm{ELBO}_{\mathrm{LDA}}(q) - \mathrm{KL}(q(\eta) \| \mathrm{N}(0, \nu^2 I))
- 2 c \sum_d \max(0, \ell - y_d \mathrm{E}_q \omega_d), \qquad
\mathrm{E}_q \omega_d = m \cdot \tfrac{1}{N_d} \sum_n r_{dn}$$

The loss has no term of the variance of $\eta$, so the best $q(\eta)$ is $\mathrm{N}(m, \nu^2 I)$
and its divergence is $|m|^2 / 2 \nu^2$. The loss of the expectation is at most the expectation of
the loss (Jensen). So the objective is at most the log evidence of LDA, but it is no lower bound of
the pseudo-evidence of the Gibbs sampler's model, whose loss is in expectation.

Given the topics, m and $g_d$, the best r of a document is a saddle point in one number
$\tau_d \in [0, 2c]$ (the multiplier of its margin):

$$r_{dnk} \propto \exp(\mathrm{E} \log \theta_{dk} + \mathrm{E} \log \phi_{k w_{dn}}
+ \tau_d y_d m_k / N_d)$$

with $\tau_d = 2c$ below the margin, 0 above, and between where the document sits on it. The
derivative of the dual in $\tau_d$ is $\ell - y_d \mathrm{E}_q \omega_d$. It changes at a rate of
$N_d^{-2} \sum_n \mathrm{Var}_{r_n}(m) \le (\max m - \min m)^2 / 4 N_d$, which sets the step.
Where a document sits on its margin the loss has no derivative, but its maximum over r has one
(Danskin): in m it is $\tau_d y_d \mathrm{E}_q \bar z_d$.
"""

import dataclasses
from typing import Unpack

import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from bnp_models.baselines.mean_field import Response, Weights
from bnp_models.baselines.variational import FitOptions, VariationalFit, fit_program
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus

__all__ = ["VariationalMedLDA", "fit_variational_medlda"]

SMALLEST = 1e-12  # rate of change where all weights are equal


class MeanNormal(dist.Normal):
    """A normal law in a guide, for terms of its mean: it draws the mean."""

    def sample(self, key, sample_shape=()):
        """Return the mean."""
        return jnp.broadcast_to(self.loc, sample_shape + self.shape())  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class Hinge(Response):
    """Hinge loss of the expected classifier, weight c and margin ell."""

    c: float
    ell: float

    def law(self, weights: Weights) -> dist.Distribution:
        """Return a normal law whose draw is its mean."""
        return MeanNormal(*weights)

    def factor(self, batch, sign, r, eta, multiplier):
        r"""Return $-2 c$ times the loss, with the derivative of $-\tau_d$ times its argument.

        `eta` is the mean, `multiplier` is $\tau$.
        """
        omega = batch.total(r) @ eta / batch.length
        lacking = jnp.abs(sign) * (self.ell - sign * omega)
        slope = -multiplier * lacking
        return slope + jax.lax.stop_gradient(-2 * self.c * jax.nn.relu(lacking) - slope)

    def push(self, batch, sign, r, weights, multiplier):
        r"""Return $\tau_d y_d m / N_d$, after one step in $\tau$, the multiplier."""
        loc = weights.loc
        omega = batch.total(r) @ loc / batch.length
        rate = jnp.maximum((loc.max() - loc.min()) ** 2 / (4 * batch.length), SMALLEST)
        tau = jnp.clip(multiplier + (self.ell - sign * omega) / rate, 0, 2 * self.c)
        pushed = (tau * sign / batch.length)[batch.doc, None] * loc
        return pushed, jnp.ones_like(tau), tau


@dataclasses.dataclass(frozen=True, eq=False)
class VariationalMedLDA(VariationalFit):
    """What `fit_variational_medlda` returns: a `VariationalFit`.

    `elbo` and `elbo_path` are the objective, see the module. There are no probabilities of labels.
    """


def fit_variational_medlda(
    corpus: Corpus,
    num_topics: int,
    *,
    c: float = 1.0,
    ell: float = 1.0,
    **options: Unpack[FitOptions],
) -> VariationalMedLDA:
    r"""Fit variational max-margin LDA, by stochastic gradients of its objective.

    Parameters
    ----------
    corpus, num_topics
        As those of `fit_program`.
    c, ell
        Weight of the hinge loss, which is multiplied by 2c, and the margin; positive.
    **options
        Of `fit_program`: `alpha`, `beta`, `eta_variance`, `num_steps`, `batch_size`,
        `learning_rate` and `seed`.

    Returns
    -------
    A `VariationalMedLDA` with `predict` and `decision_function`.

    Raises
    ------
    ValueError
        If the corpus has no labels or only one class, or a number is out of its range.

    Notes
    -----
    The objective has many local optima: compare `elbo` between seeds.

    Examples
    --------
    >>> import bnp_models as bnp
    >>> texts = ["cat dog cat", "moon sun", "dog cat", "sun moon moon"]
    >>> corpus = bnp.Corpus.from_texts(texts, labels=["pet", "sky", "pet", "sky"])
    >>> fitted = fit_variational_medlda(corpus, 2, num_steps=200)
    >>> [fitted.label_names[y] for y in fitted.predict(corpus)]
    ['pet', 'sky', 'pet', 'sky']
    """
    response = Hinge(
        arguments.finite_number("c", c, above=0), arguments.finite_number("ell", ell, above=0)
    )
    return fit_program(VariationalMedLDA, corpus, response, num_topics, **options)
