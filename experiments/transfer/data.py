"""Data of the study of transfer: a continuum of made-up problems, newsgroups, sections of NIPS.

Faisal, Gillberg, Leen and Peltonen, Transfer learning using a nonparametric sparse topic model,
Neurocomputing 2013, section 5 and appendix B. What the paper leaves open is chosen here and said
so. Groups of a corpus are the tasks; one of them is the task of interest.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

import bnp_models as bnp
from bnp_models.data.readers import read_npz
from transfer.settings import PARTS

__all__ = [
    "INTEREST", "NEWSGROUPS", "NIPS", "SECTIONS", "Problem", "continuum", "made_up", "newsgroups",
    "nips", "of_interest",
]  # fmt: skip

NEWSGROUPS, NIPS = "news20_comp.npz", "nips12.npz"
SECTIONS = ("CNP", "NS", "LT", "AA", "AP")
INTEREST = {
    **dict.fromkeys(PARTS, "interest"),
    "newsgroups": "comp.sys.ibm.pc.hardware", "nips": "AA",
}  # fmt: skip
"""The task of interest of each part of the study."""

MASS = 300  # sum of the pseudo-counts of a task
DENSITY = 0.1  # probability that a topic has a word


class Problem(NamedTuple):
    """One made-up learning problem: training documents of all tasks, new ones of one of them."""

    train: Any  # Corpus; the task of interest comes first
    test: Any  # Corpus of documents of the task of interest
    phi: Float[np.ndarray, "K V"]  # the true topics
    counts: Float[np.ndarray, "C K"]  # parameters of the Dirichlet laws of the tasks


def continuum(
    mixing: float, seed: int, *, num_tasks: int = 10, num_topics: int = 10, num_words: int = 150,
    num_interest: int = 24, num_others: int = 8, num_test: int = 100, length: int = 8,
) -> Problem:  # fmt: skip
    """Draw a problem between two kinds of sharing (Faisal et al. 2013, appendix B).

    Parameters
    ----------
    mixing
        Between 0 and 1. 0: the task of interest has one topic, which the other tasks share; each of
        these has a topic of its own, too. 1: each task has three topics at random. Between them the
        pseudo-counts, 300 in each task, are mixed.
    seed
        Of the problem. Topics and pseudo-counts at both ends do not depend on `mixing`, and nothing
        of a task depends on how many tasks there are: fewer tasks are a part of more tasks.
    num_interest, num_others, num_test
        Documents of the task of interest, of each other task, and new ones of the former. The
        paper does not say how many are new.
    length
        Words in a document. All problems of a size have the same shapes.

    Raises
    ------
    ValueError
        If `mixing` is not between 0 and 1.

    Notes
    -----
    Topics have a word with probability 0.1, one word at least, and are uniform over the simplex of
    their words: the paper names a sparse prior (Wang and Blei, 2009) without its settings. With
    more than ten tasks their own topics repeat, which the paper leaves open.
    """
    if not 0 <= mixing <= 1:
        raise ValueError(f"mixing must be between 0 and 1, got {mixing}")
    same = np.random.default_rng([seed, 0])  # for every `mixing`
    phi = _sparse_topics(same, num_topics, num_words)
    counts = (1 - mixing) * _left(num_tasks, num_topics)
    counts += mixing * _right(same, num_tasks, num_topics)

    def documents(stream: int, task: int, number: int) -> list[np.ndarray]:
        rng = np.random.default_rng([seed, stream, round(1e6 * mixing), task])
        return _documents(rng, np.repeat(counts[[task]], number, axis=0), phi, length)

    sizes = [num_interest, *[num_others] * (num_tasks - 1)]
    train = [doc for task, number in enumerate(sizes) for doc in documents(1, task, number)]
    names = [INTEREST["continuum"], *(f"other {task}" for task in range(1, num_tasks))]
    tasks = np.repeat(np.arange(num_tasks), sizes)
    return Problem(
        bnp.Corpus.from_ids(train, num_words, groups=tasks, group_names=names),
        bnp.Corpus.from_ids(
            documents(2, 0, num_test), num_words, groups=[0] * num_test, group_names=names[:1]
        ),
        phi, counts,
    )  # fmt: skip


def _left(num_tasks: int, num_topics: int) -> Float[np.ndarray, "C K"]:
    """Return pseudo-counts where all tasks share one topic, and the others have one more each."""
    counts = np.zeros((num_tasks, num_topics))
    counts[:, 0] = MASS / 2
    counts[0, 0] = MASS
    others = np.arange(1, num_tasks)
    counts[others, 1 + (others - 1) % (num_topics - 1)] = MASS / 2
    return counts


def _right(rng: np.random.Generator, num_tasks: int, num_topics: int) -> Float[np.ndarray, "C K"]:
    """Return pseudo-counts where every task has three topics at random."""
    counts = np.zeros((num_tasks, num_topics))
    for row in counts:
        row[rng.choice(num_topics, 3, replace=False)] = MASS / 3
    return counts


def _sparse_topics(
    rng: np.random.Generator, num_topics: int, num_words: int
) -> Float[np.ndarray, "K V"]:
    has = rng.random((num_topics, num_words)) < DENSITY
    has[np.arange(num_topics), rng.integers(num_words, size=num_topics)] |= ~has.any(axis=1)
    weights = np.where(has, rng.exponential(size=has.shape), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _documents(
    rng: np.random.Generator, counts: Float[np.ndarray, "D K"], phi: np.ndarray, length: int
) -> list[Int[np.ndarray, " N"]]:
    """Draw documents with shares from Dirichlet laws, zero where the pseudo-count is zero."""
    some = counts > 0
    theta = np.where(some, rng.gamma(np.where(some, counts, 1.0)), 0.0)
    theta /= theta.sum(axis=1, keepdims=True)
    return [
        np.array([rng.choice(phi.shape[1], p=phi[k]) for k in topics], int)
        for topics in (rng.choice(len(phi), size=length, p=shares) for shares in theta)
    ]


def newsgroups(folder: str | Path) -> Any:
    """Read the five newsgroups about computers: stems without stop words, as the file has them."""
    return read_npz(Path(folder) / NEWSGROUPS)


def nips(folder: str | Path, num_words: int | None = 1321) -> Any:
    """Read five sections of NIPS, with their most frequent words (None: all words).

    The paper has 1,321 words and 950 tokens a paper, and does not say how the words were chosen.
    The most frequent ones leave 932 tokens a paper.
    """
    corpus = read_npz(Path(folder) / NIPS)
    section = np.array(corpus.group_names)[np.asarray(corpus.group)]
    corpus = corpus.select(np.isin(section, SECTIONS)).prune(max_words=num_words)
    # the other sections are no tasks, so their names have to go
    return bnp.Corpus.from_counts(
        corpus.to_counts(), vocabulary=corpus.vocabulary, doc_names=corpus.doc_names,
        groups=section[np.isin(section, SECTIONS)], group_names=SECTIONS,
    )  # fmt: skip


def made_up(part: str, seed: int, per_group: int = 20, num_words: int = 150) -> Any:
    """Draw a small corpus in place of the newsgroups or of NIPS: two groups that share a topic.

    Documents have eight words and there are as many words as in the made-up problems, so that a
    quick run compiles less.
    """
    rng = np.random.default_rng(seed)
    names = [INTEREST[part], "other"]
    group = np.repeat(np.arange(len(names)), per_group)
    phi = rng.dirichlet(np.full(num_words, 0.2), size=3)
    theta = np.array([[1, 0, 1], [0, 1, 1]]) / 2
    docs = [rng.choice(num_words, size=8, p=theta[g] @ phi) for g in group]
    return bnp.Corpus.from_ids(docs, num_words, groups=group, group_names=names)


def of_interest(
    corpus: bnp.Corpus, interest: str, *, num_interest: int, num_others: int, fold: int,
    num_folds: int = 5, seed: int = 0,
) -> tuple[Any, Any]:  # fmt: skip
    """Divide documents: few of the task of interest and more of each other task; a fold for tests.

    The task of interest is divided into folds, one of which is the test; the fitted documents of
    this task are drawn from the other folds. Those of a smaller `num_interest` are among those of a
    larger one, beside the same documents of the other tasks.

    Raises
    ------
    ValueError
        If there is no such task or fold, or a task has too few documents.
    """
    if interest not in corpus.group_names:
        raise ValueError(f"interest must be one of {corpus.group_names}, got {interest!r}")
    if not 0 <= fold < num_folds:
        raise ValueError(f"fold must be below num_folds={num_folds}, got {fold}")
    group, mine = np.asarray(corpus.group), corpus.group_names.index(interest)
    of_task = np.random.default_rng([seed, num_folds]).permutation(np.flatnonzero(group == mine))
    test = np.array_split(of_task, num_folds)[fold]
    kept = []
    for task, name in enumerate(corpus.group_names):
        among = np.setdiff1d(np.flatnonzero(group == task), test)
        argument, wanted = "num_others", num_others
        if task == mine:
            argument, wanted = "num_interest", num_interest
        if wanted > len(among):
            raise ValueError(
                f"{argument}={wanted} is more than the {len(among)} documents of {name!r} that "
                "are not in the test"
            )
        kept.append(np.random.default_rng([seed, fold, task]).permutation(among)[:wanted])
    return corpus.select(np.sort(np.concatenate(kept))), corpus.select(np.sort(test))
