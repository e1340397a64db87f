r"""Held-out scores: how probable words are that the model has not seen.

Scores, all averaged over posterior states in probability space (not a plug-in of one state):

- `document_completion`, the cheap default: topics of a document from one half of its tokens, then
  the probability of the other half;
- `left_to_right`: the evidence p(w) of whole documents, unbiased; slower;
- `empirical_likelihood`: the same evidence by draws from the prior, in a module of its own; for
  short documents;
- `known_authors`, for models with authors: whole documents, each token given the authors;
- `log_evidence` and `word_scores`, for documents whose group is not known: by each group's topics.

Logarithms are natural and averages are over tokens, not types: perplexity = exp(-nats per token).
Numbers from programs that use base 2, or a variational bound, are not comparable.

Every score carries standard errors of the log probability per token:

- documents: the test documents are taken as a sample of all documents (ratio estimator);
- states, chains: jackknife, one posterior state or one chain left out at a time. The error over
  chains includes differences between chains that stay in different modes; it is rough with few
  chains;
- particles: the Monte Carlo error of left-to-right and of empirical likelihood alone, by the
  jackknife over particles, which also estimates its bias.

Every score takes plain topics and weights: `Mixtures`, or an iterable of them. Where topics differ
by group, a document is scored with the topics of its group, which is found by name.

States count alike, unless the mixtures carry weights of the chains (`stacking`). Weights belong to
these chains, so the error over chains is then NaN, and states are left out within their chain.

The jackknife recomputes the score. It therefore stays valid where a few states or particles hold
nearly all the weight of a document, unlike a linear approximation.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from bnp_kernels.tokens.fold_in import fold_in, token_probability
from bnp_kernels.tokens.layout import Tokens, make_tokens
from bnp_kernels.tokens.left_to_right import left_to_right as run_particles
from bnp_kernels.tokens.mixture_law import DirichletLaw, MixtureLaw
from bnp_models.base.other_packages import random_key
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.documents import shuffle_tokens
from bnp_models.posterior.mixtures import (
    AuthorMixture,
    Mixtures,
    OneRow,
    check_mixtures,
    one_by_one,
    row_of,
)
from bnp_models.scores.held_out_score import (
    HeldOutScore,
    by_row,
    check_dirichlet,
    check_scored,
    checked_rows,
    gather,
    log_mix,
    make_score,
    particle_delta,
    particle_jackknife,
    score_documents,
)

__all__ = [
    "HeldOutScore",
    "document_completion",
    "document_topics",
    "known_authors",
    "left_to_right",
    "log_evidence",
    "word_scores",
]

_LANES = 2048  # particles that advance side by side


def document_topics(
    mixtures: Mixtures | Iterable[Mixtures],
    corpus: Corpus,
    *,
    num_sweeps: int = 50,
    num_kept: int = 25,
    seed: int = 0,
) -> Iterator[Float[np.ndarray, "D K"]]:
    r"""Return an iterator over states: $\mathrm{E}[\theta_d \mid w_d]$ of new documents in each.

    One array per state, not their mean: topic k of one state need not be topic k of another.
    Gibbs fold-in with the topics fixed; averaged over the last `num_kept` of `num_sweeps` sweeps. A
    document without tokens gets the prior mean.

    Parameters
    ----------
    mixtures
        Topics and prior weights of the states, such as `fit.mixtures`.
    corpus
        New documents over the same vocabulary.
    num_sweeps, num_kept
        Fold-in sweeps per state, and how many of the last ones are averaged.
    seed
        Seed of the fold-in.

    Raises
    ------
    ValueError
        If a number is out of its range. A corpus with other words or groups than the model's raises
        when the first array is asked for.
    """
    _check_sweeps(num_sweeps, num_kept)
    key = _key(seed)
    data = _tokens(as_corpus("corpus", corpus))
    mixtures = check_mixtures(mixtures)

    def one_state(s, mixture):
        rows = checked_rows(mixture, corpus, "corpus")
        phi, law = jax.tree.map(lambda x: jnp.asarray(x[0]), (mixture.phi, mixture.law))
        key_s = jax.random.fold_in(key, s)
        return np.asarray(
            fold_in(key_s, data, phi, law, rows, num_sweeps=num_sweeps, num_kept=num_kept)
        )

    return (one_state(s, mixture) for s, mixture in enumerate(one_by_one(mixtures, corpus)))


def document_completion(
    mixtures: Mixtures | Iterable[Mixtures],
    observed: Corpus,
    heldout: Corpus,
    *,
    num_sweeps: int = 50,
    num_kept: int = 25,
    seed: int = 0,
) -> HeldOutScore:
    r"""Score one half of each document given the other half.

    $$\log p = \frac1N \sum_d \sum_{n \in \mathrm{heldout}(d)} \log \frac1S \sum_{s=1}^S
      \sum_k \hat\theta^s_{dk} \, \phi^s_{k w_n}$$

    in nats per held-out token, where $\hat\theta^s_d$ estimates $\mathrm{E}[\theta_d \mid
    w_{\mathrm{observed}(d)}, \phi^s]$ by Gibbs fold-in. Each held-out token is predicted on its
    own, not given the other held-out tokens. All states have equal weight, or that of their chain
    in the mixtures: the observed half informs $\theta$, but does not reweight the states.

    Parameters
    ----------
    mixtures
        Posterior states; used one at a time.
    observed, heldout
        Two parts of the same documents in the same order: `corpus.halves(seed)` splits the tokens
        of each at random. A document with nothing observed is scored from the prior weights, one
        with nothing held out scores 0 nats and no tokens.
    num_sweeps, num_kept
        Fold-in sweeps, and how many of the last ones are averaged.
    seed
        Seed of the fold-in. Report the seed of the split too, which is not known here.

    Raises
    ------
    ValueError
        If the halves have different numbers of documents, nothing is held out, a half has other
        words or groups than the model, or a number is out of its range.

    Notes
    -----
    Memory: one float32 per state and held-out token.
    """
    _check_sweeps(num_sweeps, num_kept)
    key = _key(seed)
    as_corpus("observed", observed)
    as_corpus("heldout", heldout)
    mixtures = check_mixtures(mixtures)
    if observed.num_docs != heldout.num_docs:
        raise ValueError(
            f"observed has {observed.num_docs} documents and heldout {heldout.num_docs}; pass the "
            "two parts that corpus.halves(seed) returns"
        )
    check_scored("heldout", heldout)
    data = _tokens(observed)
    doc, word = jnp.asarray(heldout.doc), jnp.asarray(heldout.word)

    def each_state() -> Iterator[tuple[Mixtures, np.ndarray]]:
        for s, mixture in enumerate(one_by_one(mixtures, observed, "observed")):
            check_dirichlet(mixture)
            doc_row = checked_rows(mixture, observed, "observed")
            checked_rows(mixture, heldout, "heldout")
            phi, law = _used_topics(mixture)
            key_s = jax.random.fold_in(key, s)
            theta = fold_in(
                key_s, data, phi, law, doc_row, num_sweeps=num_sweeps, num_kept=num_kept
            )
            yield mixture, np.asarray(token_probability(theta, phi, doc, word, doc_row))

    settings = {"method": "document_completion", "num_sweeps": num_sweeps, "num_kept": num_kept}
    return _score_tokens(each_state(), heldout, settings | {"seed": seed})


def known_authors(mixtures: Iterable[AuthorMixture], corpus: Corpus) -> HeldOutScore:
    r"""Score whole new documents given who wrote them.

    $$\log p = \frac1N \sum_d \sum_n \log \frac1S \sum_{s=1}^S \frac{1}{A_d} \sum_{j \in A_d} \sum_k
      \hat\theta^s_{jk} \, \phi^s_{k w_n}$$

    in nats per token. Each token is predicted on its own, from the authors of its document. Nothing
    is learnt from the other tokens, so no sampling is needed.

    Parameters
    ----------
    mixtures
        Posterior states, from `fit.author_mixtures()`; used one at a time.
    corpus
        Documents, none of whose tokens was used to fit. Authors are numbered as in the corpus that
        was fitted: build it with `author_names=fitted.author_names`.

    Raises
    ------
    ValueError
        If the corpus has no tokens, or other words or authors than the model, or there is no state.
    """
    check_scored("corpus", as_corpus("corpus", corpus))
    mixtures = _check_authors(mixtures)
    doc, word = jnp.asarray(corpus.doc), jnp.asarray(corpus.word)
    num_links = np.diff(np.asarray(corpus.author_ptr)) if corpus.num_authors else np.zeros(1)
    if not num_links.all():
        raise ValueError("corpus has documents without authors; give every document a list of them")

    def each_state() -> Iterator[tuple[Mixtures, np.ndarray]]:
        for state in mixtures:
            (mixture,) = one_by_one(state.mixture)
            doc_row = checked_rows(mixture, corpus, "corpus")
            if corpus.author_names != state.author_names:
                raise ValueError(
                    "corpus has other authors than the model; build it with author_names= of the "
                    "corpus that was fitted"
                )
            theta = state.theta[np.asarray(corpus.author_idx)]
            theta = np.add.reduceat(theta, np.asarray(corpus.author_ptr)[:-1]) / num_links[:, None]
            theta, phi = jnp.asarray(theta, jnp.float32), jnp.asarray(mixture.phi[0])
            yield mixture, np.asarray(token_probability(theta, phi, doc, word, doc_row))

    return _score_tokens(each_state(), corpus, {"method": "known_authors"})


def _score_tokens(
    found: Iterable[tuple[Mixtures, Float[np.ndarray, " T"]]],
    scored: Corpus,
    settings: dict[str, str | int],
) -> HeldOutScore:
    """Average the probability of each token over states; documents are sums of their tokens."""
    rows, parts = gather(found)
    by_state = np.stack(rows)
    chains = range(len(parts.count))
    sums = np.stack([by_state[parts.chain == c].sum(0, dtype=np.float64) for c in chains])

    def per_doc(values):
        return np.bincount(scored.doc, values, minlength=scored.num_docs)

    def score_with(kept):
        left, rest = parts.without(kept), sums.copy()
        for s in np.flatnonzero(~kept):
            rest[parts.chain[s]] -= by_state[s]
        return np.log((left.weight / np.maximum(left.count, 1)) @ rest).sum()

    means = sums / parts.count[:, None]
    return make_score(
        per_doc(np.log(parts.weight @ means)),
        np.stack([per_doc(np.log(row.astype(np.float64))) for row in by_state]),
        score_with,
        chain_log_prob=np.log(means),
        doc_tokens=np.asarray(scored.doc_length),
        parts=parts,
        settings=settings,
    )


def left_to_right(
    mixtures: Mixtures | Iterable[Mixtures],
    corpus: Corpus,
    *,
    num_particles: int = 20,
    resample: bool | int = False,
    combine: str = "mean_of_products",
    seed: int = 0,
) -> HeldOutScore:
    r"""Score whole documents by the left-to-right particle estimate of their evidence.

    $$\log p = \frac1N \sum_d \log \frac1S \sum_{s=1}^S \frac1R \sum_{r=1}^R \prod_{n=1}^{N_d}
      q^s_{rn}$$

    in nats per token. Each particle reads the document from left to right; $q_{rn}$ is its
    probability of word n given the topics it drew for the words before. The mean of products is
    unbiased for $\frac1S \sum_s p(w_d \mid \phi^s, \alpha^s)$ for every R. The logarithm of the
    mean is too low on average. The bias is half the relative variance where that is small. It is
    tens of nats on a document of a thousand tokens, where the log weights of particles spread that
    far. So score few documents, with `resample`, and look at `bias_particles`, which shows only a
    part of a large bias. The tokens of each document are read in a random order. The evidence does
    not depend on the order, but the error does: in a corpus from counts the words are sorted, and
    read in that order the estimate would be far too low. Where the length of a document is part of
    the model, the evidence is that of the words given the length.

    Parameters
    ----------
    mixtures
        Posterior states; used one at a time.
    corpus
        Documents to score, none of whose tokens was used to fit. An empty one scores 0 nats and
        counts no tokens.
    num_particles
        R, per posterior state; at least 2 for an error.
    resample
        Let each particle redraw topics of earlier words before each word. An integer redraws that
        many, at random positions; the time stays linear in the length. True redraws all of them;
        the time becomes quadratic. On documents of fifty tokens and more the weights then spread
        much less, and redraws are better value than more particles. On short documents redraws gain
        nothing.
    combine
        `"mean_of_products"` is the estimate above. `"product_of_means"` computes
        $\prod_n \frac1R \sum_r q_{rn}$ instead. It is **biased**, also with infinitely many
        particles, in a direction that depends on the document, the order of its tokens and
        `resample`. Its purpose is to reproduce published numbers, most of which were computed this
        way.
    seed
        Seed of the particles and of the order of the tokens, which is the same in all states.

    Raises
    ------
    ValueError
        If the corpus has no tokens, is over other words than the model, or a number or option is
        out of its range.

    Notes
    -----
    Memory: one float64 per state, document and particle.
    """
    arguments.one_of("combine", combine, ("mean_of_products", "product_of_means"))
    num_particles = arguments.integer("num_particles", num_particles, 1)
    if not isinstance(resample, int | np.integer) or resample < 0:
        raise ValueError(
            "resample must be True, False or a number of redraws, got "
            f"{arguments.short_repr(resample)}"
        )
    num_redrawn = int(resample) if resample is not True else None
    key = _key(seed)
    check_scored("corpus", as_corpus("corpus", corpus))
    mixtures = check_mixtures(mixtures)
    longest = int(np.max(corpus.doc_length))
    if num_redrawn is None and longest >= 2**15:
        raise ValueError(
            f"resample=True takes time quadratic in the length and is limited to documents below "
            f"{2**15} tokens, the longest has {longest}; use an integer"
        )
    if max(corpus.num_docs * num_particles, longest * (num_redrawn or 0)) >= 2**31:
        raise ValueError(
            f"num_particles={num_particles} times {corpus.num_docs} documents or "
            f"resample={resample} times {longest} tokens exceeds the random-number counter "
            "(2**31); use less, or score the corpus in parts"
        )
    blocks = list(_blocks(corpus, max(_LANES // num_particles, 1), seed))

    def each_state() -> Iterator[tuple[Mixtures, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        for s, mixture in enumerate(one_by_one(mixtures, corpus)):
            doc_row = checked_rows(mixture, corpus, "corpus")
            phi, law = _used_topics(mixture)
            key_s = jax.random.fold_in(key, s)
            product, influence = np.zeros((2, corpus.num_docs, num_particles))
            mean = np.zeros(corpus.num_docs)
            for docs, doc, word, length in blocks:
                run = run_particles(
                    key_s, word, length, doc, phi, law,
                    None if doc_row is None else doc_row[doc],
                    num_particles=num_particles, num_redrawn=num_redrawn,
                )  # fmt: skip
                product[docs] = np.asarray(run.log_product)[: len(docs)]
                influence[docs] = np.asarray(run.influence)[: len(docs)]
                mean[docs] = np.asarray(run.log_mean)[: len(docs)]
            total = _log_total_weights(mixture, corpus, doc_row)
            product, mean = product - total[:, None], mean - total
            yield mixture, (product, mean, influence)

    found, parts = gather(each_state())
    products, means, influences = map(np.stack, zip(*found, strict=True))
    if combine == "mean_of_products":
        by_state, particles = particle_jackknife(products, parts.log_shares())
    else:
        by_state, particles = particle_delta(means, influences, parts.log_shares())
    settings = {"method": "left_to_right", "num_particles": num_particles, "resample": resample}
    settings |= {"combine": combine, "seed": seed}
    return score_documents(by_state, parts, corpus, settings, particles)


def _blocks(corpus: Corpus, size: int, seed: int):
    """Yield blocks of documents of similar length, the words of each in a random order.

    Each block is (documents, numbers, words, lengths). The last three are padded to `size`
    documents; words are [position, size].
    """
    length = np.asarray(corpus.doc_length)
    word = np.asarray(corpus.word)[shuffle_tokens(np.asarray(corpus.doc), seed)]
    start = np.cumsum(length) - length
    order = np.argsort(-length, kind="stable")
    order = order[length[order] > 0]
    size = min(size, len(order))
    for first in range(0, len(order), size):
        docs = order[first : first + size]
        longest = int(length[docs[0]])
        padded = 16
        while padded < longest:  # few shapes to compile; the loop stops at the longest anyway
            padded *= 4
        words = np.zeros((padded, size), np.int32)
        numbers, lengths = np.zeros((2, size), np.int32)
        numbers[: len(docs)], lengths[: len(docs)] = docs, length[docs]
        for column, d in enumerate(docs):
            words[: length[d], column] = word[start[d] : start[d] + length[d]]
        yield docs, jnp.asarray(numbers), jnp.asarray(words), jnp.asarray(lengths)


def _used_topics(mixture: Mixtures) -> tuple[Array, MixtureLaw]:
    """Leave out topics of weight zero (empty slots), which do not change a score.

    Some are kept to reach a multiple of 32 topics, so that states share compiled programs.
    """
    positive = (mixture.weights[0] > 0).any(axis=0)
    used, spare = np.flatnonzero(positive), np.flatnonzero(~positive)
    chosen = np.sort(np.concatenate([used, spare[: -len(used) % 32]]))
    return jax.tree.map(lambda x: jnp.asarray(x[0][..., chosen]), (mixture.phi, mixture.law))


def _log_total_weights(
    mixture: Mixtures, corpus: Corpus, doc_row: Int[np.ndarray, " D"] | None
) -> Float[np.ndarray, " D"]:
    """Return by how much the products of left-to-right exceed the evidence, in nats (0: Dirichlet).

    They are divided by the sum of the weights of a Dirichlet law.
    """
    length, found = np.asarray(corpus.doc_length), np.zeros(corpus.num_docs)
    for row, docs in by_row(doc_row, corpus):
        law = row_of(mixture.law, row)
        dirichlet = DirichletLaw(law.weights)
        found[docs] = law.log_total(length[docs]) - dirichlet.log_total(length[docs])
    return found


def log_evidence(
    mixtures: Mixtures | Iterable[Mixtures], corpus: Corpus, **options: Any
) -> tuple[Float[np.ndarray, "D G"], Float[np.ndarray, "D G"]]:
    r"""Return $\log \frac1S \sum_s p(w_d \mid g, s)$ in nats for each group g, and its errors.

    The errors are those of the particles. `options` are those of `left_to_right`. All groups have
    the same random numbers, so that a part of the error cancels where groups are compared.
    """
    found = [left_to_right(each, corpus, **options) for each in _group_rows(mixtures)]
    return (
        np.stack([score.doc_log_prob for score in found], axis=1),
        np.stack([score.doc_error_particles for score in found], axis=1),
    )


def word_scores(
    mixtures: Mixtures | Iterable[Mixtures],
    corpus: Corpus,
    shares: Mixtures | Iterable[Mixtures] | None = None,
    *,
    score: str,
    **options: Any,
) -> Float[np.ndarray, "D G"]:
    r"""Score the words of documents by the topics of each group, given shares of the topics.

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
    inferred_from = _group_rows(mixtures) if shares is None else [shares]
    thetas = [document_topics(each, corpus, **options) for each in inferred_from]
    doc, word = np.asarray(corpus.doc), jnp.asarray(corpus.word)

    def each_state() -> Iterator[tuple[Mixtures, np.ndarray]]:
        for mixture, *theta in zip(one_by_one(mixtures), *thetas, strict=True):
            groups = []
            for g in range(mixture.phi.shape[1]):
                mine = jnp.asarray(theta[g if shares is None else 0], jnp.float32)
                phi = jnp.asarray(mixture.phi[0][g : g + 1])
                p = np.asarray(token_probability(mine, phi, jnp.asarray(doc), word), np.float64)
                p = np.log(p) if score == "log" else p
                groups.append(np.bincount(doc, p, minlength=corpus.num_docs))
            yield mixture, np.stack(groups, axis=1)

    found, parts = gather(each_state())
    by_state, log_share = np.stack(found), parts.log_shares()
    if score == "sum":
        return np.einsum("sdg,s->dg", by_state, np.exp(log_share))
    flat = by_state.reshape(len(by_state), -1)
    return log_mix(flat, log_share).reshape(by_state.shape[1:])


def _group_rows(mixtures: Mixtures | Iterable[Mixtures]) -> list[OneRow]:
    """Return the same states with the topics of one group only, for each group."""
    names = next(one_by_one(mixtures)).row_names or ()
    return [OneRow(mixtures, name) for name in names]


def _tokens(corpus: Corpus) -> Tokens:
    return make_tokens(np.asarray(corpus.doc), np.asarray(corpus.word), corpus.num_docs)


def _key(seed: int) -> Key[Array, ""]:
    return random_key(arguments.seed("seed", seed))


def _check_sweeps(num_sweeps: int, num_kept: int) -> None:
    arguments.integer("num_sweeps", num_sweeps, 1)
    arguments.integer("num_kept", num_kept, 1)
    if num_kept > num_sweeps:
        raise ValueError(
            f"num_kept must be in [1, num_sweeps={num_sweeps}], got {num_kept}; sweeps before "
            "the kept ones are discarded"
        )


def _check_authors(mixtures: object) -> Iterator[AuthorMixture]:
    """Return an iterator over states that are found to be those of a model with authors."""
    return (
        arguments.instance("mixtures", state, AuthorMixture, "made by fit.author_mixtures()")
        for state in check_mixtures(mixtures, AuthorMixture)
    )
