"""NumPyro distributions of collapsed topic models: a draw is the vector of all topics or words.

Topics and documents are integrated out of the densities (Dirichlet-multinomial). A program made of
these distributions therefore has the same target as a collapsed kernel, and both can be blocks of
`numpyro.infer.Gibbs`. `sample` draws the integrated variables first.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int
from numpyro.distributions import constraints

from bnp_kernels.numerics.densities import log_dirichlet_multinomial

__all__ = [
    "Assignments",
    "Authors",
    "RootWeightsDistribution",
    "RootedAssignments",
    "Words",
]


def _counts(row: Array, column: Array, num_rows: int, num_columns: int) -> Int[Array, "R C"]:
    return jnp.zeros((num_rows, num_columns), jnp.int32).at[row, column].add(1)


def _lengths(doc: Array, num_docs: int) -> Int[Array, " D"]:
    return jnp.zeros(num_docs, jnp.int32).at[doc].add(1)


class Assignments(dist.Distribution):
    """Topics of all tokens, with the documents' weights integrated out.

    Parameters
    ----------
    alpha
        Concentration per topic, the same in all documents, shape (K,), or not, (D, K).
    doc
        Document of each token, shape (T,); the event has this shape.
    num_docs
        Number of documents, D.
    """

    pytree_data_fields = ("alpha", "doc")
    pytree_aux_fields = ("num_docs",)

    def __init__(self, alpha: Array, doc: Array, num_docs: int):
        self.alpha, self.doc, self.num_docs = alpha, doc, num_docs
        super().__init__((), doc.shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)  # pyright: ignore[reportArgumentType]
    def support(self) -> Any:
        """Return the set of topic vectors."""
        return constraints.independent(constraints.integer_interval(0, self.alpha.shape[-1] - 1), 1)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw the documents' weights and from them the topics."""
        key_theta, key_z = jax.random.split(key)
        shape = (*sample_shape, self.num_docs)
        theta = jax.random.dirichlet(key_theta, self.alpha, shape)
        log_theta = jnp.log(theta)[..., self.doc, :]
        return jax.random.categorical(key_z, log_theta, axis=-1)

    def log_prob(self, value: Array, intermediates: object = None) -> Float[Array, ""]:
        """Return the log probability of a topic vector, in nats."""
        doc_topic = _counts(self.doc, value, self.num_docs, self.alpha.shape[-1])
        lengths = _lengths(self.doc, self.num_docs)
        return log_dirichlet_multinomial(doc_topic, lengths, self.alpha, self.alpha.sum(-1))


class Authors(dist.Distribution):
    """Authors of all tokens: uniform over the authors of each token's document.

    Parameters
    ----------
    first_link, num_links
        Start and length of the author list of each token's document, shape (T,); the event has this
        shape.
    link_author
        The author lists of all documents, concatenated.
    num_authors
        Number of authors, J.
    """

    pytree_data_fields = ("first_link", "num_links", "link_author")
    pytree_aux_fields = ("num_authors",)

    def __init__(self, first_link: Array, num_links: Array, link_author: Array, num_authors: int):
        self.first_link, self.num_links, self.link_author = first_link, num_links, link_author
        self.num_authors = num_authors
        super().__init__((), jnp.shape(first_link))

    @constraints.dependent_property(is_discrete=True, event_dim=1)  # pyright: ignore[reportArgumentType]
    def support(self) -> Any:
        """Return a set that holds all vectors of authors."""
        return constraints.independent(constraints.integer_interval(0, self.num_authors - 1), 1)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw an author for every token."""
        shape = (*sample_shape, *self.event_shape)
        place = jax.random.randint(key, shape, 0, self.num_links)
        return self.link_author[self.first_link + place]

    def log_prob(self, value: Array, intermediates: object = None) -> Float[Array, ""]:
        """Return the log probability, in nats, of a vector of authors, assumed to be possible."""
        return -jnp.log(self.num_links.astype(jnp.float32)).sum()


class Words(dist.Distribution):
    """Words of all tokens given their topics, with the word distributions integrated out.

    Parameters
    ----------
    z
        Topic of each token, shape (T,); the event has this shape.
    beta
        Concentration per word, one for all topics or one for each, shape (K,).
    num_words, num_topics
        Sizes V and K.
    """

    pytree_data_fields = ("z", "beta")
    pytree_aux_fields = ("num_words", "num_topics")

    def __init__(self, z: Array, beta: ArrayLike, num_words: int, num_topics: int):
        self.z, self.beta, self.num_words, self.num_topics = z, beta, num_words, num_topics
        super().__init__((), jnp.shape(z))

    @constraints.dependent_property(is_discrete=True, event_dim=1)  # pyright: ignore[reportArgumentType]
    def support(self) -> Any:
        """Return the set of word vectors."""
        return constraints.independent(constraints.integer_interval(0, self.num_words - 1), 1)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw the topics' word distributions and from them the words."""
        key_phi, key_w = jax.random.split(key)
        shape = (*sample_shape, self.num_topics)
        beta = jnp.broadcast_to(self.beta, (self.num_words, self.num_topics)).T
        phi = jax.random.dirichlet(key_phi, beta, shape)
        return jax.random.categorical(key_w, jnp.log(phi)[..., self.z, :], axis=-1)

    def log_prob(self, value: Array, intermediates: object = None) -> Float[Array, ""]:
        """Return the log probability of a word vector, in nats."""
        word_topic = _counts(value, self.z, self.num_words, self.num_topics)
        return log_dirichlet_multinomial(
            word_topic, word_topic.sum(0), self.beta, self.num_words * jnp.asarray(self.beta)
        )


class RootWeightsDistribution(dist.Distribution):
    """Root weights of K slots and of all other topics, shape (K + 1,).

    The density of the weights depends on which slots the tokens use. It is therefore a factor of
    `RootedAssignments`; the density here is one. `sample` breaks K sticks.
    """

    support = constraints.simplex  # pyright: ignore[reportAssignmentType]
    pytree_data_fields = ("gamma",)
    pytree_aux_fields = ("max_topics",)

    def __init__(self, gamma: ArrayLike, max_topics: int):
        self.gamma, self.max_topics = gamma, max_topics
        super().__init__((), (max_topics + 1,))

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Break the sticks."""
        shape = (*sample_shape, self.max_topics)
        log_left = -jax.random.exponential(key, shape) / self.gamma  # log(1 - Beta(1, gamma))
        after = jnp.cumsum(log_left, -1)
        sticks = -jnp.expm1(log_left) * jnp.exp(after - log_left)
        return jnp.concatenate([sticks, jnp.exp(after[..., -1:])], -1)

    def log_prob(self, value: Array, intermediates: object = None) -> Float[Array, ""]:
        """Return zero: see the class."""
        return jnp.zeros(jnp.shape(value)[:-1])


class RootedAssignments(Assignments):
    r"""Topics of all tokens given the root weights, times the density of those weights.

    $$\gamma^{K} \prod_k \tau_k^{-1} \tau_u^{\gamma - 1}
      \prod_d \frac{\Gamma(\alpha)}{\Gamma(\alpha + N_d)}
      \prod_k \frac{\Gamma(\alpha \tau_k + n_{dk})}{\Gamma(\alpha \tau_k)}$$

    over the K topics in use, in any order; $\tau_u$ is the mass of all others.
    """

    pytree_data_fields = ("gamma", "root", "concentration")

    def __init__(
        self, concentration: ArrayLike, gamma: ArrayLike, root: Array, doc: Array, num_docs: int
    ):
        self.concentration, self.gamma, self.root = concentration, gamma, root
        super().__init__(root[:-1] * concentration, doc, num_docs)

    def log_prob(self, value: Array, intermediates: object = None) -> Float[Array, ""]:
        """Return the log density of topics and root weights, in nats."""
        num_topics = self.alpha.shape[0]
        doc_topic = _counts(self.doc, value, self.num_docs, num_topics)
        used = doc_topic.sum(0) > 0
        tiny = jnp.finfo(self.root.dtype).tiny
        log_weights = jnp.log(jnp.maximum(jnp.where(used, self.root[:-1], 1.0), tiny))
        pool = self.root[-1] + jnp.where(used, 0.0, self.root[:-1]).sum()
        log_root = (
            used.sum() * jnp.log(self.gamma)
            - log_weights.sum()
            + (self.gamma - 1.0) * jnp.log(jnp.maximum(pool, tiny))
        )
        lengths = _lengths(self.doc, self.num_docs)
        documents = log_dirichlet_multinomial(
            doc_topic, lengths, self.alpha, jnp.asarray(self.concentration)
        )
        return log_root + documents
