r"""Token sweeps of topic models in which the topics of a document also explain its label.

Both sweeps multiply the weights of a token by the likelihood of the label of its document, for each
topic of the token. The likelihood is a `Tilt` (`tokens/lanes.py`): a function of the counts of the
document without the token, of arrays of the document, and of the weights $\eta$ of the regression.

The state of a kernel has the fields `z`, `doc_topic`, `word_topic`, `topic`, `alpha`, `beta` and
`eta`. Sizes: T tokens, D documents with at least one token each, V words, K topics.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from bnp_kernels.random import bits, categorical, gamma
from bnp_kernels.tokens import lanes, tally
from bnp_kernels.tokens.layout import Tokens
from bnp_kernels.tokens.scan import CountTable, Weights, scan_tokens
from bnp_kernels.tokens.schedule import on_one_device

__all__ = ["conditional", "parallel_sweep", "sequential_sweep", "sweeps"]


def conditional(
    n_dk: Array, n_vk: Array, n_k: Array, log_label: Array, *,
    alpha: ArrayLike, beta: ArrayLike, num_words: int,
) -> Array:  # fmt: skip
    r"""Return p(z_t = k | z_-t, w, y, eta) up to a constant; the counts leave token t out.

    `log_label` is the log likelihood of the label of the token's document for each topic of the
    token.
    """
    prior = n_dk + alpha
    label = categorical.exp_of_largest(log_label, prior > 0)
    return prior * (n_vk + beta) * label / (n_k + num_words * beta)


def sequential_sweep(
    rng_key: Key[Array, ""],
    state: Any,
    data: Tokens,
    log_label_of_token: lanes.Tilt,
    of_docs: tuple[Float[Array, " D"], ...],
    power: Float[Array, ""] | None = None,
) -> Any:
    """Resample the topic of every token in corpus order, topics and documents integrated out.

    Parameters
    ----------
    log_label_of_token, of_docs
        Log likelihood of the label, and its arrays of documents.
    power
        See `scan_tokens`.
    """
    num_words = state.word_topic.shape[0]

    def weigh(doc, word, topic, alpha, beta, eta, **of_doc):
        counts = jnp.asarray(doc, eta.dtype)
        log_label = log_label_of_token(counts, tuple(of_doc.values()), eta)
        return Weights(
            conditional(doc, word, topic, log_label, alpha=alpha, beta=beta, num_words=num_words)
        )

    tables = {
        "word": CountTable(state.word_topic, data.word, largest=data.max_word_count),
        "topic": CountTable(state.topic),
    }
    swept = scan_tokens(
        weigh, rng_key, data.buckets, state.z, state.doc_topic, tables,
        per_topic={"alpha": state.alpha, "eta": state.eta}, constants={"beta": state.beta},
        per_doc={f"of_doc_{i}": x for i, x in enumerate(of_docs)}, power=power,
    )  # fmt: skip
    return state._replace(
        z=swept.z,
        doc_topic=swept.doc,
        word_topic=swept.tables["word"],
        topic=swept.tables["topic"],
    )


def parallel_sweep(
    rng_key: Key[Array, ""],
    state: Any,
    data: Tokens,
    log_label_of_token: lanes.Tilt,
    of_docs: tuple[Float[Array, " D"], ...],
    power: Float[Array, ""] | None = None,
) -> Any:
    """Draw the topics, then resample the topic of every token, all documents in parallel.

    Parameters
    ----------
    log_label_of_token, of_docs
        Log likelihood of the label, and its arrays of documents.
    power
        See `sweep_lanes`.
    """
    key_phi, key_z = bits.split(rng_key)
    log_phi = gamma.draw_topic_word(
        key_phi, state.word_topic, state.beta, axis_name=data.shards.axis_name, log=True
    )
    z = lanes.sweep_lanes(
        key_z, data.lanes, state.z, state.doc_topic, log_phi, state.alpha,
        tilt=log_label_of_token, tilt_docs=of_docs,
        tilt_shared=categorical.pad_topics(state.eta), shards=data.shards, power=power,
    )  # fmt: skip
    num_words, num_topics = state.word_topic.shape
    doc_topic, word_topic, topic = tally.tally(
        z, data.doc, data.word, state.doc_topic.shape[0], num_words, num_topics, data.shards
    )
    return state._replace(z=z, doc_topic=doc_topic, word_topic=word_topic, topic=topic)


def sweeps(
    tilt_of: Callable[[Any, Tokens], tuple[lanes.Tilt, tuple[Float[Array, " D"], ...]]],
) -> dict[str, Callable[..., Any]]:
    """Return both sweeps by name, as `run_scheduled_sweep` takes them.

    Parameters
    ----------
    tilt_of
        State and data -> log likelihood of the label, and its arrays of documents.
    """

    def sequential(rng_key, state, data, power=None):
        given = *tilt_of(state, data), power
        return sequential_sweep(rng_key, state, data, *given)

    def parallel(rng_key, state, data, power=None):
        given = *tilt_of(state, data), power
        return parallel_sweep(rng_key, state, data, *given)

    return {"sequential": on_one_device(sequential), "parallel": parallel}
