r"""Pitman-Yor processes over a finite vocabulary, for programs and for predictive draws."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Float, Integer

from bnp_kernels.processes.pitman_yor import BetaPrior, draw_topics
from bnp_models.base.likelihood import draw_dirichlet
from bnp_models.base.model import is_prior
from bnp_models.data import arguments

__all__ = ["PitmanYor", "discount", "discount_prior", "draw_posterior"]

_draw_topics = jax.jit(partial(draw_topics, dirichlet=False))


class PitmanYor(dist.Distribution):
    r"""Law of the weights of a Pitman-Yor process, $\mathrm{PYP}(a, b, H)$, over V words.

    It is drawn exactly, without truncation, as a normalised generalised gamma process (Pitman and
    Yor, Annals of Probability 25, 1997). Its density has no closed form: the program
    `augmented` of the model has one.

    Parameters
    ----------
    discount
        The discount a, in [0, 1).
    concentration
        The concentration b of each draw, positive, [K].
    base
        The base measure H of each draw, positive; rows sum to one, [K, V], or [G, K, V] for G draws
        with each concentration.
    """

    arg_constraints = {  # noqa: RUF012 (as in NumPyro)
        "discount": dist.constraints.interval(0.0, 1.0),
        "concentration": dist.constraints.positive,
        "base": dist.constraints.simplex,
    }
    support = dist.constraints.simplex  # pyright: ignore[reportAssignmentType]

    def __init__(self, discount: Any, concentration: Any, base: Any, *, validate_args=None):
        self.is_dirichlet = isinstance(discount, float | int) and discount == 0
        self.discount = jnp.asarray(discount, jnp.float32)
        self.concentration, self.base = jnp.asarray(concentration), jnp.asarray(base)
        super().__init__(self.base.shape[:-1], self.base.shape[-1:], validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw the weights."""
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):  # NumPyro passes raw keys, too
            key = jax.random.wrap_key_data(key)
        *_, num_topics, num_words = self.base.shape
        base = self.base.reshape(-1, num_topics, num_words).swapaxes(1, 2)
        rows = jnp.maximum(base.reshape(-1, num_topics), 1e-37)
        none = jnp.zeros(rows.shape, jnp.int32)

        def one(key):
            drawn = draw_topics(
                key, none, none, rows, discount=self.discount, concentration=self.concentration,
                num_groups=base.shape[0], dirichlet=self.is_dirichlet,
            )  # fmt: skip
            return drawn.phi.reshape(base.shape).swapaxes(1, 2).reshape(self.base.shape)

        if not sample_shape:
            return one(key)
        keys = jax.random.split(key, int(np.prod(sample_shape)))
        return jax.vmap(one)(keys).reshape(*sample_shape, *self.base.shape)

    def log_prob(self, value: Any) -> Any:
        """Refuse: there is no closed form."""
        raise ValueError(
            "the density of a Pitman-Yor process has no closed form: use the program "
            "`model.augmented` for inference by NumPyro, or model.gibbs()"
        )


def discount(name: str, value: Any) -> Any:
    """Return a discount in its stored form: a number in [0, 1), or a prior over (0, 1)."""
    if not is_prior(value):
        number = arguments.finite_number(name, value, at_least=0)
        if not np.float32(number) < 1:
            raise ValueError(f"{name} must be below 1, got {value!r}")
        return number
    allowed = isinstance(value, dist.Beta | dist.Uniform) and value.batch_shape == ()
    if isinstance(value, dist.Uniform):
        allowed = allowed and float(value.low) == 0 and float(value.high) == 1
    if not allowed:
        raise ValueError(
            f"{name} must be a number in [0, 1), Uniform(0.0, 1.0), or Beta(concentration1, "
            f"concentration0), got {type(value).__name__}"
        )
    if isinstance(value, dist.Beta):
        for part in ("concentration1", "concentration0"):
            arguments.finite_number(f"{part} of {name}", float(getattr(value, part)), above=0)
    return value


def discount_prior(value: Any) -> BetaPrior | None:
    """Return the prior of a discount as the kernels take it; None for a number."""
    if not is_prior(value):
        return None
    if isinstance(value, dist.Uniform):
        return BetaPrior(np.float32(1), np.float32(1))
    return BetaPrior(np.float32(value.concentration1), np.float32(value.concentration0))


def draw_posterior(
    rng: np.random.Generator,
    customers: Integer[np.ndarray, "K V"],
    tables: Integer[np.ndarray, "K V"],
    base: Float[np.ndarray, "K V"],
    *,
    discount: float,
    concentration: Float[np.ndarray, " K"],
) -> Float[np.ndarray, "K V"]:
    r"""Draw topics given their tables, on the host.

    A topic is a Dirichlet draw with $m_w - a t_w$ for the words it has, and $b + a T$ for the rest,
    which is divided among all words by $\mathrm{PYP}(a, b + a T, H)$.
    """
    if discount == 0:
        return draw_dirichlet(rng, np.maximum(customers + concentration[:, None] * base, 1e-30))
    total = concentration + discount * tables.sum(axis=1)
    shares = np.concatenate([customers - discount * tables, total[:, None]], axis=1)
    shares = draw_dirichlet(rng, np.maximum(shares, 0.0))
    none = np.zeros(base.T.shape, np.int32)
    rest = _draw_topics(
        jax.random.key(int(rng.integers(2**31))), none, none,
        np.maximum(base.T, 1e-37).astype(np.float32), discount=np.float32(discount),
        concentration=total.astype(np.float32),
    )  # fmt: skip
    rest = np.asarray(rest.phi, np.float64).T
    return shares[:, :-1] + shares[:, -1:] * rest / rest.sum(axis=1, keepdims=True)
