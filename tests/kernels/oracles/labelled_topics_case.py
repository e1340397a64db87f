"""The case of a topic model whose topics also explain a label of each document.

`LabelledTopicsCase` has what does not depend on the law of the labels: words and topics, and the
weights `eta` with the scores of the documents. The file of a case adds the likelihood of the
labels, their draws, and the quantities that belong to them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bnp_kernels.processes import labelled_topics
from bnp_models.testing import enumeration, simulate
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.topic_family import TopicFamily, gamma_prior
from oracles import label_posteriors

__all__ = ["FIXED", "NUM_TOPICS", "VARIANCE", "LabelledTopicsCase", "weigh"]

FIXED = {"alpha": 0.5, "beta": 0.25}
NUM_TOPICS = 2
VARIANCE = 4.0  # of eta


def weigh(kernel: ModuleType, state: Any, data: Any, token: Any) -> Any:
    """Weigh the topics of a token by the functions that the kernel calls, see `TopicFamily`."""
    num_words, num_topics = state.word_topic.shape
    doc, minus = data.doc[token], jnp.arange(num_topics) == state.z[token]
    n_d = state.doc_topic[doc] - minus
    log_label_of_token, of_docs = kernel.tilt(state, data)
    log_label = log_label_of_token(
        n_d.astype(jnp.float32), tuple(x[doc] for x in of_docs), state.eta
    )
    return labelled_topics.conditional(
        n_d, state.word_topic[data.word[token]] - minus, state.topic - minus, log_label,
        alpha=state.alpha, beta=state.beta, num_words=num_words,
    )[None]  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledTopicsCase(TopicFamily):
    """Parts of the case of a topic model with labels of documents.

    Attributes
    ----------
    priors
        Concentration and rate of each hyperparameter that can be sampled; `alpha` and `beta` are
        among them.
    draw_labels
        rng_key, state, scores -> new labels of one chain, in Geweke's test.
    """

    priors: Mapping[str, tuple[float, float]]
    draw_labels: Callable[[jax.Array, Any, jax.Array], jax.Array]

    # ---- enumeration

    def exact(
        self,
        log_label: Callable[..., np.ndarray],
        of_weights: Callable[..., Mapping[str, np.ndarray]],
        *,
        sampled: bool = False,
        variance: float = VARIANCE,
        kinks: Float[np.ndarray, "M D"] | None = None,
    ) -> tuple[dict[str, np.ndarray], float]:
        """Return exact posterior means and the log evidence of the tiny corpus.

        Parameters
        ----------
        log_label, of_weights, variance, kinks
            See `label_posteriors.integrate_weights`. `of_weights` returns the quantities that
            `score_quantities` does not have.
        sampled
            Whether the concentrations have their priors, or are those of `FIXED`.
        """
        concentrations: dict[str, Any] = {**FIXED, "alpha": (FIXED["alpha"],) * NUM_TOPICS}
        if sampled:
            concentrations = {name: enumeration.gamma_rule(*self.priors[name]) for name in FIXED}
        of_words = enumeration.finite_topics(
            self.tiny.docs, self.tiny.num_words, NUM_TOPICS, **concentrations
        )

        def quantities(eta, score):
            found = {name: x[:, None] for name, x in self.score_quantities(eta, score).items()}
            return {**found, **of_weights(eta, score)}

        z = of_words.states[0]
        log_labels, given = label_posteriors.integrate_weights(
            simulate.tally(z, self.tiny.doc, self.tiny.num_rows, NUM_TOPICS),
            variance, log_label, quantities, kinks,
        )  # fmt: skip
        found = enumeration.token_quantities(z) | given
        found["omega_0 if together"] = given["omega"][:, :1] * found["coassigned"]
        if sampled:
            found |= {name: of_words.quantities[name] for name in FIXED}
        posterior = enumeration.enumerate_posterior(
            z, lambda _: of_words.log_joint + log_labels, lambda _: found
        )
        return posterior.means(), posterior.log_evidence

    def score_quantities(self, eta: Any, score: Any) -> dict[str, Any]:
        """Return quantities of weights [..., K] and scores [..., D]; arrays of NumPy or JAX."""
        return {
            "omega": score,
            "omega^2": score**2,
            "(omega_0 - omega_1)^2": (score[..., 0] - score[..., 1]) ** 2,
            "eta^2": (eta**2).sum(axis=-1),
        }

    def scores(self, state: Any, data: Any) -> jax.Array:
        """Return the score of each document."""
        return (state.doc_topic * state.eta).sum(axis=1) / data.doc_length

    def posterior_quantities(self, state: Any, data: Any) -> dict[str, Any]:
        """Measure a state of the tiny corpus as `exact` does."""
        score = self.scores(state, data)
        values = self.token_quantities(state) | self.score_quantities(state.eta, score)
        values["omega_0 if together"] = score[0] * values["coassigned"]
        return values | {"alpha": state.alpha[0], "beta": state.beta}

    def start(self, rng_key: jax.Array, **own: Any) -> Any:
        """Start a chain on the tiny corpus; `own` are the model's own arguments of `init`."""
        key_z, key_eta = jax.random.split(rng_key)
        state = self.kernel.init(
            key_z, self.tiny.data, num_words=self.tiny.num_words, num_topics=NUM_TOPICS,
            alpha=jnp.full(NUM_TOPICS, FIXED["alpha"], jnp.float32), beta=FIXED["beta"],
            eta_variance=VARIANCE, **own,
        )  # fmt: skip
        return state._replace(eta=2 * jax.random.normal(key_eta, (NUM_TOPICS,)))

    def shipped(self, model: Any, exact: Callable[[], Mapping[str, Any]]) -> Shipped:
        """Return the check of the shipped source of a model; `exact` returns posterior means."""
        names = ("one_topic", "topics", "coassigned", "omega", "omega^2", "eta^2")

        def quantities(draws):
            z, eta = draws["z"], draws["eta"]
            topics, docs = np.arange(NUM_TOPICS), range(self.tiny.num_rows)
            share = [(z[..., self.tiny.doc == d, None] == topics).mean(axis=-2) for d in docs]
            score = (eta[..., None, :] * np.stack(share, axis=-2)).sum(axis=-1)
            found = enumeration.token_quantities(z) | self.score_quantities(eta, score)
            return {name: found[name] for name in names}

        def expected():
            means = exact()
            return {name: means[name] for name in names}

        return Shipped(model, self.tiny.corpus, quantities, expected, record=("z",))

    # ---- the joint law of everything

    def joint_priors(self) -> dict[str, Any]:
        """Return the priors as the kernel takes them, of `alpha` one for each topic."""
        shapes = {"alpha": (NUM_TOPICS,)}
        return {n: gamma_prior(*x, shape=shapes.get(n, ())) for n, x in self.priors.items()}

    def simulate(
        self,
        rng: np.random.Generator,
        size: int,
        log_weight: Callable[[Float[np.ndarray, "S D"]], Float[np.ndarray, "S D"]],
        *,
        tries: int,
    ) -> dict[str, np.ndarray]:
        """Draw all but labels from the prior times a function of the scores, in NumPy.

        Parameters
        ----------
        log_weight
            Scores -> log factor of each document, at most 0. Draws are accepted with this
            probability.
        tries
            Draws from the prior at a time, as a multiple of `size`.
        """
        parts, number = [], 0
        while number < size:
            drawn = self._draw_parameters(rng, tries * size)
            log_factor = log_weight(drawn["score"]).sum(axis=1)
            keep = np.log(rng.uniform(size=len(log_factor))) < log_factor + 1e-9
            parts.append({name: x[keep] for name, x in drawn.items()})
            number += keep.sum()
        found = {name: np.concatenate([part[name] for part in parts])[:size] for name in parts[0]}
        shape = size, NUM_TOPICS, self.joint_corpus.num_words
        phi = simulate.draw_dirichlet(rng, np.broadcast_to(found["beta"][:, None, None], shape))
        w = simulate.draw_categorical(rng, phi[np.arange(size)[:, None], found["z"]])
        return found | {"w": w}

    def _draw_parameters(self, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        """Draw all but words and labels."""
        draw, doc = np.arange(size)[:, None], self.joint_corpus.doc
        num_docs = self.joint_corpus.num_rows
        drawn = {
            name: rng.gamma(a, 1 / b, (size, NUM_TOPICS) if name == "alpha" else size)
            for name, (a, b) in self.priors.items()
        }
        theta = simulate.draw_dirichlet(rng, np.repeat(drawn["alpha"][:, None], num_docs, axis=1))
        z = simulate.draw_categorical(rng, theta[draw, doc])
        eta = VARIANCE**0.5 * rng.normal(size=(size, NUM_TOPICS))
        doc_topic = simulate.tally(z, doc, num_docs, NUM_TOPICS)
        score = np.einsum("sdk,sk->sd", doc_topic, eta) / doc_topic.sum(axis=2)
        return drawn | {"z": z, "eta": eta, "score": score}

    def states_of(self, draws: Mapping[str, np.ndarray], **held: float) -> tuple[Any, Any]:
        """Return kernel states and data of draws of everything, with a leading axis.

        `held` are fields that are the same in all states. A hyperparameter that is not among the
        draws is None.
        """
        numbers = {n: jnp.float32(x) for n, x in {**held, "eta_variance": VARIANCE}.items()}

        def one(z, w, parameters):
            corpus = self.joint_corpus
            return self.make_state(corpus, z, corpus.doc, w, NUM_TOPICS, **parameters, **numbers)

        parameters = {
            name: np.asarray(draws[name], np.float32) if name in draws else None
            for name in (*self.priors, "eta")
        }
        z, w, y = (np.asarray(draws[name], np.int32) for name in ("z", "w", "y"))
        states = quick_jit(jax.vmap(one))(z, w, parameters)
        return states, self.with_words_of(w)._replace(label=y)

    def redraw(self, rng_key: jax.Array, state: Any, data: Any) -> tuple[Any, Any]:
        """Draw words and labels given all else."""
        key_words, key_labels = jax.random.split(rng_key)
        state, data = self.redraw_words(key_words, state, data)
        y = self.draw_labels(key_labels, state, self.scores(state, data))
        return state, data._replace(label=y.astype(jnp.int32))

    def joint_quantities(self, state: Any, data: Any) -> dict[str, Any]:
        """Measure what Geweke's test compares."""
        score = self.scores(state, data)
        return self.count_quantities(state, data) | {
            "log alpha": jnp.log(state.alpha.sum()),
            "alpha share": state.alpha[1] / state.alpha.sum(),
            "log beta": jnp.log(state.beta),
            "sum eta^2": (state.eta**2).sum(),
            "sum n_k eta_k": (state.topic * state.eta).sum(),
            "omega_0^2": score[0] ** 2,
            "omega_0 omega_1": score[0] * score[1],
            "|omega_2|": jnp.abs(score[2]),
            "y_0 = y_1": data.label[0] == data.label[1],
        }
