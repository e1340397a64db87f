r"""How well the topics of each group predict documents whose group is not known.

Each function returns one number for every document and group, averaged over posterior states.
`results.contrast_tables.group_probabilities` makes probabilities of them.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bnp_kernels.tokens.fold_in import token_probability
from bnp_models.data.corpus import Corpus
from bnp_models.posterior.mixtures import OneRow, one_by_one
from bnp_models.scores.held_out import document_topics, left_to_right
from bnp_models.scores.held_out_score import log_mix, log_shares, parts_of

__all__ = ["log_evidence", "word_scores"]


def log_evidence(
    mixtures: Any, corpus: Corpus, **options: Any
) -> tuple[Float[np.ndarray, "D G"], Float[np.ndarray, "D G"]]:
    r"""Return $\log \frac1S \sum_s p(w_d \mid g, s)$ in nats, and its errors by the particles.

    `options` are those of `left_to_right`. All groups have the same random numbers, so that a part
    of the error cancels where groups are compared.
    """
    names = next(one_by_one(mixtures)).row_names or ()
    found = [left_to_right(OneRow(mixtures, name), corpus, **options) for name in names]
    return (
        np.stack([score.doc_log_prob for score in found], axis=1),
        np.stack([score.doc_error_particles for score in found], axis=1),
    )


def word_scores(
    mixtures: Any, corpus: Corpus, shares: Any = None, *, score: str, **options: Any
) -> Float[np.ndarray, "D G"]:
    r"""Score the words of documents given estimated shares of the topics.

    With $p_l = \sum_k \hat\theta_{dk} \phi_{g k w_l}$, `score="sum"` is the mean over states of
    $\sum_l p_l$, and `score="log"` the logarithm of the mean over states of $\prod_l p_l$.

    Parameters
    ----------
    mixtures
        Posterior states with a row of topics for each group.
    corpus
        The documents; their groups are not looked at.
    shares
        The same states with one row of topics for all documents, from which $\hat\theta_d$ is
        inferred; None: from the topics of group g itself.
    **options
        Those of `document_topics`.
    """
    names = next(one_by_one(mixtures)).row_names or ()
    inferred_from = [OneRow(mixtures, name) for name in names] if shares is None else [shares]
    thetas = [document_topics(each, corpus, **options) for each in inferred_from]
    doc, word = np.asarray(corpus.doc), jnp.asarray(corpus.word)
    rows, chain, weight = [], [], []
    for mixture, *theta in zip(one_by_one(mixtures), *thetas, strict=True):
        of_state = np.zeros((corpus.num_docs, len(names)))
        for g in range(len(names)):
            mine = jnp.asarray(theta[g if shares is None else 0], jnp.float32)
            phi = jnp.asarray(mixture.phi[0][g : g + 1])
            p = np.asarray(token_probability(mine, phi, jnp.asarray(doc), word), np.float64)
            p = np.log(p) if score == "log" else p
            of_state[:, g] = np.bincount(doc, p, minlength=corpus.num_docs)
        rows.append(of_state)
        chain.append(int(mixture.chain[0]))
        weight.append(mixture.chain_weight)
    by_state, log_share = np.stack(rows), log_shares(parts_of(chain, weight))
    if score == "sum":
        return np.einsum("sdg,s->dg", by_state, np.exp(log_share))
    flat = by_state.reshape(len(by_state), -1)
    return log_mix(flat, log_share).reshape(by_state.shape[1:])
