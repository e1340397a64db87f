"""Data of the study of supervised topic models: 20 Newsgroups, and made-up documents like them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool

import bnp_models as bnp
from bnp_models.data.readers import read_npz

__all__ = ["PAIR", "Task", "made_up", "predicted_classes", "read"]

FILE = "news20_bow.npz"
PAIR = ("alt.atheism", "talk.religion.misc")


class Task(NamedTuple):
    """Labelled documents, divided as published; every document has a word."""

    train: bnp.Corpus
    test: bnp.Corpus

    def validation(self, share: float, seed: int) -> tuple[Any, Any]:
        """Split the training documents, by class, into those to fit and those to choose by."""
        return self.train.train_test_split(share, seed=seed, stratify=True)


def read(
    folder: Path, *, groups: tuple[str, ...] | None = None, share: float = 1.0, seed: int = 0
) -> Task:
    """Read the documents of some groups (None: all), without stop words.

    Words that no training document has are left out, because nothing is known about them, and so
    are documents that have no word then. With `share` below 1 a part of both the training and the
    test documents is taken at random, the same share of every group.
    """
    corpus = read_npz(folder / FILE, label="group")
    with np.load(folder / FILE) as arrays:
        is_test, is_stop = arrays["split"] == 1, arrays["is_stop"]
    names = np.array(corpus.label_names)[np.asarray(corpus.label)]
    wanted = np.isin(names, groups) if groups else np.ones(corpus.num_docs, bool)
    train, test = (corpus.select(wanted & part) for part in (~is_test, is_test))
    if share < 1:
        train, test = (part.train_test_split(share, seed=seed, stratify=True)[1]
                       for part in (train, test))  # fmt: skip
    known = np.bincount(np.asarray(train.word), minlength=corpus.num_words) > 0
    words = [word for word, kept in zip(corpus.vocabulary, known & ~is_stop, strict=True) if kept]
    return Task(*(_with_words(part, words) for part in (train, test)))


def _with_words(corpus: bnp.Corpus, words: list[str]) -> Any:
    corpus = corpus.with_vocabulary(words)
    return corpus.select(np.asarray(corpus.doc_length) > 0)


def predicted_classes(corpus: bnp.Corpus, predicted: npt.ArrayLike) -> Bool[np.ndarray, " D"]:
    """Say of which documents the class was predicted, given as numbers or as names."""
    label = np.asarray(corpus.label)
    predicted = np.asarray(predicted)
    if predicted.dtype.kind in "UO":
        return np.array(corpus.label_names)[label] == predicted
    return label == predicted


def made_up(folder: Path, seed: int, per_group: int = 16, num_words: int = 40) -> None:
    """Write a small file in the form of 20 Newsgroups: four groups, each with words of its own."""
    rng = np.random.default_rng(seed)
    groups = np.array([PAIR[0], "rec.autos", "sci.space", PAIR[1]])
    group = np.repeat(np.arange(len(groups)), per_group)
    word_group = np.arange(num_words) % len(groups)
    rate = np.where(group[:, None] == word_group, 1.2, 0.2)
    is_stop = np.arange(num_words) < len(groups)
    rate[:, is_stop] = 1.0
    count = rng.poisson(rate)
    count[:, -1] += 1  # no document without words
    doc, word = np.nonzero(count)
    arrays = {
        "doc": doc.astype(np.int32), "word": word.astype(np.int32),
        "count": count[doc, word].astype(np.int32), "n_docs": len(group), "n_words": num_words,
        "vocab": np.array([f"w{v}" for v in range(num_words)]), "is_stop": is_stop,
        "group": group.astype(np.int32), "group_names": groups,
        "split": (np.arange(len(group)) % 2).astype(np.int8),
        "split_names": np.array(["train", "test"]),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / FILE, **arrays)
