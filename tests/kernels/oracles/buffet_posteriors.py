r"""Exact posteriors of topic models with an Indian buffet process, for tiny corpora.

The topics are the atoms of a Poisson process on sticks and strengths. Given the assignments, that
is a set partition of the tokens, each block is the integral over one atom. All atoms without tokens
together are the exponential of minus one more integral. All numbers are float64 NumPy, and the
code of the kernels is not used.

======================  =================================  ==============================
name                    Williamson, Wang, Heller, Blei      Faisal, Gillberg, Leen, Peltonen
======================  =================================  ==============================
`alpha`                 mass of the process                mass of the process
`sticks`                $\pi_k$                            $\pi_k$
`strength`              $\phi_k$                           $\gamma_k$
`group_strength`                                           $\phi_{ck}$
`strength_shape`        $\gamma$                           shape of $\gamma_k$
`strength_scale`                                           scale of $\gamma_k$
`epsilon`                                                  probability that a mask is on
`beta`                  $\eta$                             $\eta$
======================  =================================  ==============================

Williamson et al., ICML 2010; Faisal et al., Neurocomputing 2013. The second paper says in section 3
that a mask is off with probability epsilon. Its values of epsilon are those of on, as here.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int, ScalarLike
from scipy.special import gammaln, logsumexp

from bnp_models.testing.enumeration import (
    Posterior,
    Rule,
    enumerate_posterior,
    set_partitions,
    token_quantities,
    word_factor,
)
from bnp_models.testing.simulate import tally
from oracles.buffet_tilts import Atoms, group_tilts, on_grid, stick_rule

__all__ = ["focused_topics", "switched_topics"]

LOG_2 = math.log(2.0)


def focused_topics(
    docs: Sequence[Any],
    num_words: int,
    *,
    alpha: ScalarLike | Rule,
    strength_shape: ScalarLike | Rule,
    beta: ScalarLike | Rule,
) -> Posterior:
    r"""Enumerate the posterior of the IBP compound Dirichlet model over all set partitions.

    $$p(w, N, z) = \prod_d \frac{2^{-N_d}}{N_d!} \, e^{-\alpha \Psi(\gamma)}
      \prod_k \alpha \int \!\! \int \frac{d\pi}{\pi} \, \mathrm{Gamma}(\phi; \gamma, 1) \, d\phi
      \prod_{d: n_{dk} > 0} \pi 2^{-\phi} (\phi)_{n_{dk}}
      \prod_{d: n_{dk} = 0} (1 - \pi + \pi 2^{-\phi}) \, p(w \mid z)$$

    with rising factorials $(\phi)_n$ and
    $\Psi(\gamma) = \sum_{j=1}^D (1 - (1 + j \log 2)^{-\gamma}) / j$ for D documents. The lengths
    $N_d$ are data: a document without words is an observation, too. At least one has words.

    Parameters
    ----------
    docs
        Word ids of each document.
    alpha, strength_shape, beta
        Mass of the process, shape of the strengths and topic-word concentration: numbers, or the
        rules of their priors.

    Returns
    -------
    Posterior
        States are z. The evidence is that of the words in order and of the lengths. Quantities:
        `alpha`, `strength_shape`, `beta`, `strength_0` and `stick_0` (of the topic of token 0) and
        `strength_sum` (over topics with tokens), all of them as means given z; and those of
        `token_quantities`.
    """
    num_docs = len(docs)
    z, of_doc, words, mean_beta = _partitions(docs, num_words, _as_rule(beta))
    blocks, which = _blocks(of_doc)
    used = z.max(axis=1) + 1
    alpha, shape = _as_rule(alpha), _as_rule(strength_shape)

    sticks, stick_weights = stick_rule(num_docs)
    # The integrand of a block is that of a shape of at least shape + 1 as the strength goes to 0.
    step = 0.2 / math.sqrt(2.0 + shape.nodes.max() + z.shape[1])
    x = np.arange(-45.0, math.log(shape.nodes.max() + z.shape[1] + 60.0) + 1.0, step)
    phi = np.exp(x)
    g = shape.nodes[:, None]
    log_prior = g * x - phi - gammaln(g) + math.log(step)  # [shapes, strengths]

    log_block, strength, stick = np.zeros((3, len(blocks), len(shape.nodes)))
    for b, counts in enumerate(blocks):
        on = counts > 0
        if not on.any():
            continue  # no topic: the factor is 1
        rising = sum(gammaln(phi + n) - gammaln(phi) for n in counts[on]) - on.sum() * LOG_2 * phi
        off = (1 + sticks * np.expm1(-LOG_2 * phi)[:, None]) ** (~on).sum()  # [strengths, sticks]
        value = stick_weights * sticks ** (on.sum() - 1.0) * off
        logs = log_prior + rising
        log_block[b] = logsumexp(logs, b=value.sum(axis=1), axis=1)
        of_strength = logsumexp(logs + x, b=value.sum(axis=1), axis=1)
        of_stick = logsumexp(logs, b=value @ sticks, axis=1)
        strength[b], stick[b] = np.exp(of_strength - log_block[b]), np.exp(of_stick - log_block[b])

    j = np.arange(1, num_docs + 1)
    unused = ((1 - (1 + j * LOG_2) ** -g) / j).sum(axis=1)  # [shapes]
    a, k = alpha.nodes[:, None], np.arange(z.shape[1] + 1)[:, None, None]
    of_alpha = alpha.log_weights[:, None] + k * np.log(a) - a * unused  # [topics, alphas, shapes]
    log_alpha = logsumexp(of_alpha, axis=1)
    mean_alpha = (a * np.exp(of_alpha - log_alpha[:, None])).sum(axis=1)

    joint = log_alpha[used] + log_block[which].sum(axis=1) + shape.log_weights  # [S, shapes]
    total = np.asarray(logsumexp(joint, axis=1))
    given = np.exp(joint - total[:, None])
    quantities = {
        "alpha": (given * mean_alpha[used]).sum(axis=1),
        "strength_shape": given @ shape.nodes,
        "beta": mean_beta,
        "strength_0": (given * strength[which[:, 0]]).sum(axis=1),
        "stick_0": (given * stick[which[:, 0]]).sum(axis=1),
        "strength_sum": (given * strength[which].sum(axis=1)).sum(axis=1),
        **token_quantities(z),
    }
    log_joint = total + words + sum(_log_size(len(one)) for one in docs)
    return enumerate_posterior(z, lambda _: log_joint, lambda _: quantities)


def switched_topics(
    docs: Sequence[Any],
    group: Sequence[int] | Int[np.ndarray, " D"],
    num_words: int,
    *,
    alpha: ScalarLike | Rule,
    epsilon: ScalarLike,
    strength_shape: ScalarLike,
    strength_scale: ScalarLike,
    beta: ScalarLike | Rule,
    size_model: str = "task_nb",
) -> Posterior:
    r"""Enumerate the posterior of the sparse transfer topic model over all set partitions.

    Topics meet only in the total strengths $R_c$ of the tasks (groups of documents). The factor
    of a task with documents of $N_d$ words is a mixture of exponentials of $R_c$ (`group_tilts`).
    Given a tilt T of each task, with $L_c = \log(1 + T_c)$, everything is a product over atoms
    $(\pi, \gamma)$. A task without tokens of the topic gives
    $1 - \pi \epsilon (1 - e^{-\gamma L_c})$, another one

    $$\pi \epsilon \int \mathrm{Gamma}(\phi; \gamma, 1) e^{-T_c \phi} \prod_d (\phi)_{n_{dk}} d\phi
      = \pi \epsilon \sum_\tau s_\tau \frac{\Gamma(\gamma + \tau)}{\Gamma(\gamma)}
      e^{-(\gamma + \tau) L_c}$$

    where $s_\tau$ are the coefficients of the product of rising factorials.

    Parameters
    ----------
    docs
        Word ids of each document. At least one has words.
    group
        Task of each document, 0 up to the number of tasks - 1.
    alpha, beta
        Mass of the process and topic-word concentration: numbers, or the rules of their priors.
    epsilon
        Probability that a mask leaves a topic on.
    size_model
        `"task_nb"`: the number of tokens of a task is negative binomial, and an observation.
        `"none"`: it is given, and the prior is that given a topic which is on in each task with
        tokens.

    Returns
    -------
    Posterior
        States are z. The evidence is that of the words in order and, with `"task_nb"`, of the
        numbers of tokens of the tasks. Quantities: `alpha`, `beta`, `strength_0`, `stick_0` and
        `group_strength_0` (of the topic of token 0; the last one in the task of token 0), `num_on`
        (pairs of a task and a topic with tokens somewhere that are on), all of them as means given
        z; and those of `token_quantities`.

    Raises
    ------
    ValueError
        If more than two tasks need a sum over tilts: with `"task_nb"` those with several documents
        that have words, with `"none"` those with words.
    """
    if size_model not in ("task_nb", "none"):
        raise ValueError(f'size_model must be "task_nb" or "none", got {size_model!r}')
    sized = size_model == "task_nb"
    epsilon, shape, scale = float(epsilon), float(strength_shape), float(strength_scale)
    of_group, lengths = np.asarray(group), np.array([len(words) for words in docs])
    tilts = [
        group_tilts(lengths[of_group == c], sized, shape, scale) for c in range(of_group.max() + 1)
    ]
    if sum(len(tilt.log_size) > 1 for tilt in tilts) > 2:
        raise ValueError(f"at most two tasks may need a sum over tilts, got group {list(group)}")
    # The task with the most tilts comes last: the sum over atoms is a product of matrices with it.
    order = np.argsort([len(tilt.log_size) for tilt in tilts], kind="stable")
    of_group, tilts = np.argsort(order)[of_group], [tilts[c] for c in order]
    z, of_doc, words, mean_beta = _partitions(docs, num_words, _as_rule(beta))
    blocks, which = _blocks(of_doc)
    first = of_group[np.flatnonzero(lengths)[0]]  # task of token 0
    atoms = Atoms(tilts, epsilon, shape, scale)

    found = [atoms.of_block(counts, of_group, first) for counts in blocks]
    log_block, means = [one[0] for one in found], [one[1] for one in found]
    pairs = np.stack(
        [(blocks[:, of_group == c] > 0).sum(axis=1) for c in range(len(tilts))], axis=1
    )
    num_docs = [tilt.num_docs for tilt in tilts]
    unused = atoms.unused()
    alpha = _as_rule(alpha)
    powers = [np.zeros_like(unused) for _ in range(z.shape[1] + 2)]  # of alpha, by exponent
    for a, log_weight in zip(alpha.nodes, alpha.log_weights, strict=True):
        value = np.exp(log_weight - a * unused)
        for k, power in enumerate(powers):
            power += a**k * value
    log_tilt = on_grid([tilt.log_size for tilt in tilts])
    total = np.zeros(len(z))
    quantities = {name: np.zeros(len(z)) for name in ("alpha", *means[-1])}
    for s, topics in enumerate(which):
        k = int(z[s].max()) + 1
        # topics give a power of 1 / (1 + T) for each pair of a topic and a document; see `Tilts`
        more = pairs[topics].sum(axis=0) - num_docs
        of_pairs = on_grid([-n * tilt.log_rate for n, tilt in zip(more, tilts, strict=True)])
        of_blocks = sum(log_block[b] for b in topics[:k])
        logs = log_tilt + np.log(powers[k]) + of_pairs + of_blocks
        total[s] = logsumexp(logs)
        given = np.exp(logs - total[s])  # p(tilts | z, w)
        quantities["alpha"][s] = (given * powers[k + 1] / powers[k]).sum()
        for name in ("strength_0", "stick_0", "group_strength_0"):
            quantities[name][s] = (given * means[topics[0]][name]).sum()
        quantities["num_on"][s] = (given * sum(means[b]["num_on"] for b in topics[:k])).sum()

    if sized:
        constant = sum(_log_size(int(lengths[of_group == c].sum())) for c in range(len(tilts)))
    else:
        constant = -_log_all_on(len(np.unique(of_group[lengths > 0])), alpha, epsilon)
    log_joint = total + words + constant
    quantities = {**quantities, "beta": mean_beta, **token_quantities(z)}
    return enumerate_posterior(z, lambda _: log_joint, lambda _: quantities)


def _log_all_on(num_groups: int, alpha: Rule, epsilon: float) -> float:
    """Return the log probability that each of these tasks has a topic that is on.

    By inclusion and exclusion: no topic is on in j tasks with probability exp(-alpha H_j).
    """
    j = np.arange(1, num_groups + 1)
    mean = np.concatenate([[0.0], np.cumsum((1 - (1 - epsilon) ** j) / j)])
    none = np.exp(alpha.log_weights - alpha.nodes * mean[:, None]).sum(axis=1)
    return math.log(sum((-1) ** n * math.comb(num_groups, n) * p for n, p in enumerate(none)))


def _partitions(docs, num_words, beta):
    """Return the set partitions of the tokens, their counts by document, and factors of words."""
    doc = np.repeat(np.arange(len(docs)), [len(words) for words in docs])
    if not len(doc):
        raise ValueError("docs must have at least one word, got none")
    word = np.concatenate([np.asarray(words, int) for words in docs])
    z = set_partitions(len(word))
    of_word = tally(z, word, num_words, len(word)).swapaxes(1, 2)
    return z, tally(z, doc, len(docs), len(word)), *word_factor(of_word, beta)


def _blocks(of_doc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List the different blocks by their tokens of each document; say which one each topic is."""
    num_states, num_docs, num_topics = of_doc.shape
    rows = of_doc.swapaxes(1, 2).reshape(-1, num_docs)
    blocks, which = np.unique(rows, axis=0, return_inverse=True)
    return blocks, which.reshape(num_states, num_topics)


def _log_size(size: int) -> float:
    """Return the constant of a negative binomial size of probability 1/2."""
    return -size * LOG_2 - math.lgamma(size + 1)


def _as_rule(value: ScalarLike | Rule) -> Rule:
    """Make a one-point rule of a fixed value."""
    return value if isinstance(value, Rule) else Rule(np.array([value], float), np.zeros(1))
