"""Data of the study of differential topic models: blogs, abstracts, digits, and made-up groups.

Chen, Buntine, Ding, Xie and Du, Differential topic models, IEEE TPAMI 37 (2015), section 6. The
blogs are a sample of 5,000 posts of the paper's set "Blog", and also stand for its set "BD", which
was not found. The abstracts (AISTATS, ICML, COLT) stand for its "MLJ" (JMLR, ICML, TPAMI). The
Reuters and ImageNet sets were not found.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Float

import bnp_models as bnp
from bnp_models.data.readers import read_npz

__all__ = [
    "ABSTRACTS", "BLOGS", "DIGITS", "Planted", "Split", "abstracts", "blogs",
    "dictionary_halves", "digits", "halves_of", "labelled", "made_up", "made_up_digits",
    "of_group", "planted", "split_of", "transform_of",
]  # fmt: skip

BLOGS, ABSTRACTS, DIGITS = "poliblog5k.npz", "mlabs.npz", "alphadigs.npz"
ABSTRACT_TEXTS = "mlabs.jsonl.gz"

_NOT_ALNUM = re.compile(r"[^a-z0-9]+")
_MATH = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]", re.S)
_MACRO = re.compile(r"\\[a-zA-Z]+")


class Split(NamedTuple):
    """Training documents and test documents, with the same share of every group."""

    train: bnp.Corpus
    test: bnp.Corpus
    text: bnp.Corpus  # all documents but those held out: of which words occur together
    ordered: bool  # whether tokens are in the order of the text


class Planted(NamedTuple):
    """Made-up groups whose topics differ between groups by known amounts."""

    corpus: bnp.Corpus
    concentration: Float[np.ndarray, " K"]
    topic: np.ndarray  # of each token, in corpus order


def blogs(folder: str | Path, number: int | None = None, seed: int = 0) -> Any:
    """Read posts of six political blogs; `number` of them, with the share of every blog.

    The file has stems and counts, without the order of the text.
    """
    corpus = _plain(read_npz(Path(folder) / BLOGS))
    if number is None or number >= corpus.num_docs:
        return corpus
    return corpus.train_test_split(number, seed=seed, stratify=True)[1]


def abstracts(folder: str | Path) -> Any:
    """Read abstracts of three conferences, with their words in the order of the text.

    Raises
    ------
    ValueError
        If the texts do not have the counts that are stored.
    """
    corpus = _plain(read_npz(Path(folder) / ABSTRACTS))
    number = {word: v for v, word in enumerate(corpus.vocabulary)}
    docs: list[list[int]] = [[] for _ in range(corpus.num_docs)]
    with gzip.open(Path(folder) / ABSTRACT_TEXTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            text = _MACRO.sub(" ", _MATH.sub(" ", record["abstract"])).lower()
            words = _NOT_ALNUM.split(text)
            docs[record["doc"]] = [number[word] for word in words if word in number]
    for d, words in enumerate(docs):
        if sorted(words) != np.asarray(corpus.document(d)).tolist():
            raise ValueError(f"{ABSTRACT_TEXTS}: document {d} has other words than in {ABSTRACTS}")
    group = np.array(corpus.group_names)[np.asarray(corpus.group)]
    return bnp.Corpus.from_ids(
        docs, vocabulary=corpus.vocabulary, groups=group, group_names=corpus.group_names
    )


def digits(folder: str | Path) -> tuple[Any, tuple[int, int]]:
    """Read binary pictures of digits and capitals as a corpus, and say how large a picture is.

    A picture is a document, and a pixel that is on is one token of the word of this place.
    """
    with np.load(Path(folder) / DIGITS) as arrays:
        pictures, group, names = arrays["x"], arrays["group"], arrays["group_names"].tolist()
    return _of_pictures(pictures, np.array(names)[group]), pictures.shape[1:]


def made_up_digits(seed: int, per_group: int = 6) -> tuple[Any, tuple[int, int]]:
    """Draw small pictures of three classes: strokes that all have, and a shape of the class."""
    rng = np.random.default_rng(seed)
    shape = {"V": (0, 2), "X": (1, 3), "Z": (2, 0)}
    pictures, names = [], []
    for name, (row, column) in shape.items():
        for _ in range(per_group):
            picture = rng.random((5, 4)) < 0.2
            picture[row], picture[:, column] = True, rng.random(5) < 0.8
            pictures.append(picture)
            names.append(name)
    return _of_pictures(np.array(pictures, np.uint8), np.array(names)), (5, 4)


def _of_pictures(pictures: np.ndarray, names: np.ndarray) -> Any:
    flat = pictures.reshape(len(pictures), -1)
    return bnp.Corpus.from_counts(flat.astype(np.int64), groups=names.tolist())


def made_up(seed: int, per_group: int = 16, num_words: int = 24, num_groups: int = 2) -> Any:
    """Draw a small corpus in place of blogs or abstracts.

    Groups have as many documents, and documents as many words, so that a quick run compiles less.
    """
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(num_words, 0.3), size=(num_groups, 2))
    group = np.repeat(np.arange(num_groups), per_group)
    docs = [rng.choice(num_words, size=12, p=rng.dirichlet([0.5, 0.5]) @ phi[g]) for g in group]
    names = [f"group {g}" for g in range(num_groups)]
    return bnp.Corpus.from_ids(docs, num_words, groups=[names[g] for g in group])


def planted(
    seed: int, concentration: tuple[float, ...], *, discount: float, num_words: int = 400,
    num_groups: int = 4, docs_per_group: int = 60, length: int = 80, gamma: float = 0.05,
    alpha: float = 0.2,
) -> Planted:  # fmt: skip
    """Draw groups of documents from the model itself, with the concentrations of the topics.

    A large concentration makes the groups' versions of a topic alike.
    """
    import jax

    from bnp_models.base.pitman_yor import PitmanYor

    rng = np.random.default_rng(seed)
    num_topics = len(concentration)
    root = np.maximum(rng.dirichlet(np.full(num_words, gamma), size=num_topics), 1e-12)
    root /= root.sum(axis=1, keepdims=True)
    law = PitmanYor(discount, np.array(concentration, np.float32), root.astype(np.float32))
    keys = jax.random.split(jax.random.key(seed), num_groups)
    phi = np.stack([np.asarray(law.sample(key), np.float64) for key in keys])
    phi /= phi.sum(axis=2, keepdims=True)
    docs, topics, groups = [], [], []
    for g in range(num_groups):
        for _ in range(docs_per_group):
            z = rng.choice(num_topics, size=length, p=rng.dirichlet(np.full(num_topics, alpha)))
            words = np.empty(length, int)
            for k in np.unique(z):
                words[z == k] = rng.choice(num_words, size=(z == k).sum(), p=phi[g, k])
            docs.append(words)
            topics.append(z)
            groups.append(f"group {g}")
    corpus = bnp.Corpus.from_ids(docs, num_words, groups=groups)
    return Planted(corpus, np.array(concentration), np.concatenate(topics))


def split_of(
    corpus: bnp.Corpus, seed: int, *, ordered: bool, num_train: int | None = None,
    num_test: int | None = None,
) -> Split:  # fmt: skip
    """Hold one fifth of the documents out; test on some of it, and train on some of the others.

    None: on all of them.
    """

    def some(of: bnp.Corpus, number: int | None) -> bnp.Corpus:
        if number is None or number >= of.num_docs:
            return of
        return of.train_test_split(number, seed=seed, stratify=True)[1]

    text, test = corpus.train_test_split(0.2, seed=seed, stratify=True)
    return Split(some(text, num_train), some(test, num_test), text, ordered)


def transform_of(
    split: Split, kind: str, *, window: int, top: int, association: str
) -> bnp.Transform:
    """Build the transformation matrix: of words that occur together ("co"), or by WordNet ("wn").

    Words occur together within a window of the texts that are not held out; without an order of the
    text, the document is the window. "half" is the mean of that matrix and of the identity.
    """
    if kind == "wn":
        return bnp.Transform.from_wordnet(split.train.vocabulary, top=top)
    found = bnp.Transform.from_cooccurrence(
        split.text, window=window if split.ordered else None, top=top,
        association=association,
    )  # fmt: skip
    if kind == "co":
        return found
    mean = (found.to_sparse() + scipy.sparse.eye_array(found.num_words)) / 2
    return bnp.Transform.from_matrix(mean, vocabulary=split.train.vocabulary)


def halves_of(test: bnp.Corpus, how: str, seed: int) -> tuple[Any, Any]:
    """Return what is seen and what is predicted of test documents: by tokens or by word types."""
    return dictionary_halves(test) if how == "dictionary" else test.halves(seed)


def dictionary_halves(test: bnp.Corpus) -> tuple[Any, Any]:
    """Hold out the word types of even number, as the option `-h dict` of the authors' tool does."""
    odd = np.asarray(test.word) % 2 == 1
    return _retained(test, odd), _retained(test, ~odd)


def of_group(corpus: bnp.Corpus, name: str) -> Any:
    """Return the documents of one group."""
    return corpus.select(np.asarray(corpus.group) == corpus.group_names.index(name))


def labelled(corpus: bnp.Corpus) -> np.ndarray:
    """Return the name of the group of each document."""
    return np.array(corpus.group_names)[np.asarray(corpus.group)]


def _retained(corpus: bnp.Corpus, mask: np.ndarray) -> Any:
    doc = np.asarray(corpus.doc)
    words = np.split(np.asarray(corpus.word)[mask], np.searchsorted(doc[mask], np.arange(
        1, corpus.num_docs)))  # fmt: skip
    return bnp.Corpus.from_ids(
        words, vocabulary=corpus.vocabulary, groups=labelled(corpus),
        group_names=corpus.group_names,
    )  # fmt: skip


def _plain(corpus: bnp.Corpus) -> Any:
    """Leave authors and names of documents out."""
    return bnp.Corpus.from_counts(
        corpus.to_counts(), vocabulary=corpus.vocabulary, groups=labelled(corpus),
        group_names=corpus.group_names,
    )  # fmt: skip
