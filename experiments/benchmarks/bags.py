"""The corpora of the comparison as plain arrays, so that no library has to read another's format.

Needs NumPy only: some systems run in a process without JAX.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Bag", "Split", "first", "load", "split", "subset", "synthetic", "to_corpus"]

TEST_SHARE = 0.1


class Bag(NamedTuple):
    """Tokens sorted by document."""

    doc: np.ndarray
    word: np.ndarray
    num_docs: int
    num_words: int
    author_ptr: np.ndarray | None = None  # those of document d: idx[ptr[d] : ptr[d + 1]]
    author_idx: np.ndarray | None = None

    @property
    def num_tokens(self) -> int:
        """Number of tokens."""
        return len(self.word)

    def describe(self) -> dict[str, int]:
        """Return the sizes."""
        return {
            "documents": self.num_docs,
            "tokens": self.num_tokens,
            "vocabulary": self.num_words,
            "longest": int(np.bincount(self.doc).max()),
        }


class Split(NamedTuple):
    """Training documents, and two halves of the test documents; one vocabulary."""

    train: Bag
    observed: Bag
    heldout: Bag


def synthetic(
    seed: int, *, num_docs: int = 2000, num_words: int = 5000, num_topics: int = 50,
    length: int = 150,
) -> Bag:  # fmt: skip
    """Draw documents from LDA with topics around one word distribution that falls as Zipf's law.

    Each has one to three authors.
    """
    rng = np.random.default_rng([seed, 1])
    base = 1.0 / (np.arange(num_words) + 10.0)
    phi = rng.dirichlet(200.0 * base / base.sum() + 1e-4, size=num_topics)
    doc_length = rng.poisson(length, size=num_docs) + 1
    doc = np.repeat(np.arange(num_docs), doc_length).astype(np.int32)
    theta = rng.dirichlet(np.full(num_topics, 0.1), size=num_docs)
    below = theta.cumsum(1)[doc] < rng.random(len(doc))[:, None]
    z = np.minimum(below.sum(1), num_topics - 1)
    word = np.empty(len(doc), np.int32)
    for k in range(num_topics):
        word[z == k] = rng.choice(num_words, size=(z == k).sum(), p=phi[k])
    count = rng.integers(1, 4, num_docs)  # of authors, on whom the words do not depend
    ptr = np.append(0, count.cumsum())
    first = np.repeat(rng.integers(0, num_docs // 4, num_docs), count)
    author = (first + np.arange(ptr[-1]) - np.repeat(ptr[:-1], count)) % (num_docs // 4)
    return Bag(doc, word, num_docs, num_words, ptr, author)


def first(bag: Bag, num_tokens: int) -> Bag:
    """Take whole documents from the beginning, about so many tokens, without their authors."""
    last = int(bag.doc[min(num_tokens, bag.num_tokens) - 1])
    keep = bag.doc <= last
    return Bag(bag.doc[keep], bag.word[keep], last + 1, bag.num_words)


def load(name: str, *, data: str | None, seed: int, quick: bool = False) -> Bag:
    """Return a corpus by name.

    It is "nips12", "mlabs" or "poliblog5k", read from the `.npz` file of this name in the folder
    `data`;
    "package_docs", which the library makes of the docstrings of installed packages; "synthetic",
    drawn with the seed, and small if it is to be quick; or the path of a file that `Corpus.save`
    wrote.
    """
    if name in ("nips12", "mlabs", "poliblog5k"):
        if data is None:
            raise ValueError(f"{name} needs a folder: pass --data, or set BNP_DATA")
        with np.load(Path(data) / f"{name}.npz") as file:
            doc, word = (np.repeat(file[key], file["count"]) for key in ("doc", "word"))
            sizes = int(file["n_docs"]), int(file["n_words"])
            authors = tuple(file[key] for key in ("author_ptr", "author_idx") if key in file)
        return Bag(doc.astype(np.int32), word.astype(np.int32), *sizes, *authors)
    if name == "package_docs" or name.endswith(".npz"):
        import bnp_models as bnp

        saved = name.endswith(".npz")
        corpus = bnp.Corpus.load(name) if saved else bnp.load_package_docs()
        arrays = np.asarray(corpus.doc), np.asarray(corpus.word)
        return Bag(*arrays, corpus.num_docs, corpus.num_words)
    if name == "synthetic" and quick:
        return synthetic(seed, num_docs=80, num_words=150, num_topics=5, length=40)
    if name == "synthetic":
        return synthetic(seed)
    raise ValueError(f"no corpus is called {name!r}")


def subset(bag: Bag, num_docs: int, seed: int) -> Bag:
    """Return some documents drawn at random, with the words and the authors that they have."""
    if not 1 <= num_docs <= bag.num_docs:
        raise ValueError(f"num_docs must be in 1 to {bag.num_docs}, got {num_docs}")
    rng = np.random.default_rng([seed, 3])
    chosen = np.sort(rng.permutation(bag.num_docs)[:num_docs])
    mask = np.isin(bag.doc, chosen)
    doc = np.searchsorted(chosen, bag.doc[mask]).astype(np.int32)
    words, word = np.unique(bag.word[mask], return_inverse=True)
    part = Bag(doc, word.astype(np.int32), len(chosen), len(words))
    if bag.author_ptr is None or bag.author_idx is None:
        return part
    count = np.diff(bag.author_ptr)
    links = bag.author_idx[np.isin(np.repeat(np.arange(bag.num_docs), count), chosen)]
    ptr, author = np.append(0, count[chosen].cumsum()), np.unique(links, return_inverse=True)[1]
    return part._replace(author_ptr=ptr, author_idx=author)


def split(bag: Bag, seed: int) -> Split:
    """Set documents aside for testing, and halve the tokens of each of those at random.

    Words that the training documents do not have are dropped, so that all systems have the same
    vocabulary.
    """
    rng = np.random.default_rng([seed, 2])
    is_test = np.zeros(bag.num_docs, bool)
    is_test[rng.permutation(bag.num_docs)[: round(TEST_SHARE * bag.num_docs)]] = True
    number = np.where(is_test, np.cumsum(is_test), np.cumsum(~is_test)) - 1
    of_test = is_test[bag.doc]
    known = np.bincount(bag.word[~of_test], minlength=bag.num_words) > 0
    new_word = np.cumsum(known) - 1

    def part(mask: np.ndarray) -> Bag:
        doc, word = number[bag.doc[mask]], new_word[bag.word[mask]]
        num_docs = int((is_test == of_test[mask][0]).sum())
        return Bag(doc.astype(np.int32), word.astype(np.int32), num_docs, int(known.sum()))

    tokens = np.flatnonzero(of_test & known[bag.word])
    order = tokens[np.lexsort((rng.random(len(tokens)), bag.doc[tokens]))]
    start = np.searchsorted(bag.doc[order], bag.doc[order])
    second = (np.arange(len(order)) - start) % 2 == 1
    return Split(part(~of_test), *(part(np.sort(order[second == x])) for x in (False, True)))


def to_corpus(bag: Bag, **of_documents: Any) -> Any:
    """Hand the arrays to the library, and `group` or `label` of each document."""
    import bnp_models as bnp

    return bnp.Corpus.from_arrays(
        bag.doc, bag.word, num_docs=bag.num_docs, num_words=bag.num_words,
        author_ptr=bag.author_ptr, author_idx=bag.author_idx,
        **of_documents,
    )  # fmt: skip
