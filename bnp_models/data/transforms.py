"""Transformation matrices: which words of a group stand for a global word, and how often."""

import base64
import dataclasses
import functools
import json
import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import scipy.sparse
from jaxtyping import Float32, Int32

from bnp_models.data import arguments, word_relations
from bnp_models.data.arguments import check_memory
from bnp_models.data.checks import as_sparse, check_vocabulary, distinct, shape_of
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.documents import ComparedByDigest
from bnp_models.data.storage import array_digest
from bnp_models.data.word_relations import open_wordnet, path_similarities

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Transform"]

ASSOCIATIONS = ("count", "log-likelihood")
SPREAD = 0.25  # share of the words that one global word may be connected with, without a warning


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Transform(ComparedByDigest):
    r"""Sparse matrices $P^i$ that turn global word distributions into those of groups; immutable.

    $P^i_{wv} = p(\text{local word } w \mid \text{global word } v)$ in group i: no entry is
    negative, and each column sums to one. The words of a group have the distribution $P^i \phi^0$
    where the global ones have $\phi^0$. It is for differential topic models.

    Build one with `from_matrix`, `from_cooccurrence`, `from_vectors`, `from_wordnet` or `identity`,
    which check their input; the class itself checks nothing. Two transforms are equal when they
    have the same `digest`.

    Sizes: F matrices, V local words, V0 global words, S the most entries of a row.

    Attributes
    ----------
    alternative : Int32["F V S"]
        Global words of the entries of each row, in rising order, then zeros.
    weight : Float32["F V S"]
        Values of these entries, then zeros.
    num_global : int
        V0.
    group_names : tuple of str
        Groups of the F matrices, sorted. Empty if there is one matrix, for all groups.
    vocabulary, global_vocabulary : tuple of str, or None
        The local and the global words, if they have names.
    """

    alternative: Int32[np.ndarray, "F V S"]
    weight: Float32[np.ndarray, "F V S"]
    num_global: int
    group_names: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] | None = None
    global_vocabulary: tuple[str, ...] | None = None

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        vocabulary: Any = None,
        global_vocabulary: Any = None,
        normalise: bool = False,
    ) -> "Transform":
        """Take a matrix [V, V0] for all groups, or a dictionary with one for each group.

        Parameters
        ----------
        matrix
            Finite numbers that are not negative: a SciPy sparse matrix, or anything that NumPy
            reads as a matrix. A dictionary has groups as keys, and matrices of one shape.
        vocabulary, global_vocabulary
            The V local and the V0 global words. If only the local words are given and V0 = V, the
            global ones are the same.
        normalise
            Divide each column by its sum. If V0 = V, a column v without entries gets the entry
            (v, v). Otherwise columns must sum to one, up to 1e-4.
        """
        normalise = arguments.flag("normalise", normalise)
        group_names: tuple[str, ...] = ()
        if isinstance(matrix, Mapping):
            group_names = distinct("groups of matrix", list(matrix))
            if not group_names or not all(group_names):
                raise ValueError(
                    "matrix must have a matrix for each named group, got "
                    f"{arguments.short_repr(matrix)}"
                )
            group_names = tuple(sorted(group_names))
            found = {f"matrix[{name!r}]": matrix[name] for name in group_names}
        else:
            found = {"matrix": matrix}
        matrices = {name: _as_entries(name, values) for name, values in found.items()}
        shape = shape_of(next(iter(matrices.values())))
        for name, entries in matrices.items():
            if shape_of(entries) != shape:
                raise ValueError(
                    f"{name} has shape {shape_of(entries)} and another has {shape}; give matrices "
                    "of one shape, local by global words"
                )
        words = arguments.optional(distinct, "vocabulary", vocabulary, shape[0], "words")
        global_words = arguments.optional(
            distinct, "global_vocabulary", global_vocabulary, shape[1], "words"
        )
        if global_vocabulary is None and shape[0] == shape[1]:
            global_words = words
        checked = [
            _stochastic(name, entries, global_words, normalise)
            for name, entries in matrices.items()
        ]
        alternative, weight = _to_lists(checked)
        return cls(
            alternative=alternative,
            weight=weight,
            num_global=shape[1],
            group_names=group_names,
            vocabulary=words,
            global_vocabulary=global_words,
        )

    @classmethod
    def identity(
        cls, num_words: SupportsIndex | None = None, *, vocabulary: Any = None
    ) -> "Transform":
        """Let each global word stand for itself in all groups.

        Parameters
        ----------
        num_words
            V = V0; may be left out if `vocabulary` is given.
        vocabulary
            The V words.
        """
        words = check_vocabulary(vocabulary, num_words)
        matrix = scipy.sparse.eye_array(len(words), format="csr")
        return cls.from_matrix(matrix, vocabulary=None if vocabulary is None else words)

    @classmethod
    def from_cooccurrence(
        cls,
        corpus: Any,
        *,
        window: int | None = 20,
        top: int = 10,
        association: str = "count",
        weights: str = "uniform",
        include_self: bool = True,
    ) -> "Transform":
        r"""Connect words that occur near one another; one matrix for all groups.

        Two tokens of a document occur together if a window of `window` consecutive tokens can hold
        both. Each word is connected with the words that it is most associated with; ties go to the
        lower word id. Then columns are divided by their sums, and a column v without entries gets
        the entry (v, v). Chen et al., Differential Topic Models (IEEE TPAMI 37, 2015), section
        6.2.2.

        Parameters
        ----------
        corpus
            Any corpus over the vocabulary of the model, such as its training corpus. Its groups are
            not used: for a matrix per group, give `from_matrix` a dictionary of the `to_sparse` of
            transforms of parts.
        window
            Tokens. The order of the text counts: a corpus of counts has none, so give `None`, which
            takes a document for a window.
        top
            The most entries of a row, before empty columns are filled.
        association
            "count" takes the number of ordered pairs of tokens that occur together; a token makes
            a pair with itself. It connects most words with the few that are frequent everywhere; a
            word that stands for more than a quarter of all is warned of. "log-likelihood" takes G
            squared of these pairs, for words that occur together more often than by chance
            (Dunning, Computational Linguistics 19, 1993).
        weights
            Entries of a row before columns are divided by their sums: "uniform" makes them equal,
            "value" takes the association.
        include_self
            Connect each word with itself, as one of the `top`. The paper does not say whether it
            does. Without it a word that occurs near no other word is connected with none.

        Raises
        ------
        ValueError
            If an argument is invalid, or if a corpus whose documents are all sorted by word has
            documents longer than the window.
        """
        corpus = as_corpus("corpus", corpus)
        window = arguments.optional(arguments.integer, "window", window, 2)
        top = arguments.integer("top", top, 1)
        association = arguments.one_of("association", association, ASSOCIATIONS)
        weights = arguments.one_of("weights", weights, ("uniform", "value"))
        include_self = arguments.flag("include_self", include_self)
        if window is not None and window < np.max(corpus.doc_length):
            doc, word = np.asarray(corpus.doc), np.asarray(corpus.word)
            if ((doc[1:] > doc[:-1]) | (word[1:] >= word[:-1])).all():
                raise ValueError(
                    f"window is {window}, but corpus has no order of the text: the tokens of every "
                    "document are sorted by word, as Corpus.from_counts sorts them; give "
                    "window=None, or a corpus made with Corpus.from_texts or Corpus.from_ids"
                )
        blocks = word_relations.cooccurrences(corpus, window)
        if association == "log-likelihood":
            pairs = word_relations.number_of_pairs(corpus, window)
            blocks = word_relations.log_likelihood_ratios(blocks, pairs)
        found = word_relations.top_relations(
            blocks, corpus.num_words, top, include_self=include_self
        )
        rows_of = np.bincount(found.indices, minlength=corpus.num_words)
        v, most = int(rows_of.argmax()), int(rows_of.max())
        if most > max(SPREAD * corpus.num_words, 10 * top):
            advice = 'association="log-likelihood"' if association == "count" else "more text"
            warnings.warn(
                f"the word {corpus.vocabulary[v]!r} stands for {most} of {corpus.num_words} words, "
                f"so the transform says little; give {advice}",
                stacklevel=2,
            )
        if weights == "uniform":
            found.data[:] = 1.0
        return cls.from_matrix(found, vocabulary=corpus.vocabulary, normalise=True)

    @classmethod
    def from_vectors(
        cls, vectors: Any, vocabulary: Any = None, *, top: int = 10, threshold: float = 0.2
    ) -> "Transform":
        """Connect words whose vectors have a large cosine; one matrix for all groups.

        The entries of a row are cosines, then columns are divided by their sums. A word is
        connected with itself in any case.

        Parameters
        ----------
        vectors
            A dictionary from words to vectors of one length, or an array [V, E].
        vocabulary
            The V words; needed for a dictionary. A word that the dictionary lacks is connected with
            itself only, and so is a word whose vector is zero.
        top
            The most entries of a row, the word itself included; ties go to the lower word id.
        threshold
            Least cosine, in [0, 1].
        """
        top = arguments.integer("top", top, 1)
        threshold = arguments.finite_number("threshold", threshold, at_least=0, at_most=1)
        if isinstance(vectors, Mapping):
            if vocabulary is None:
                raise ValueError("vocabulary is None but vectors is a dictionary; give its words")
            words = distinct("vocabulary", vocabulary)
            known = [word for word in words if word in vectors]
            if not known:
                raise ValueError(
                    f"vectors has no word of the vocabulary; give words out of "
                    f"{arguments.short_repr(words)}, got {arguments.short_repr(list(vectors))}"
                )
            length = np.size(vectors[known[0]])
            array = np.zeros((len(words), length))
            for v, word in enumerate(words):
                if word in vectors:
                    name = f"vectors[{word!r}]"
                    array[v] = arguments.array(name, vectors[word], (length,), finite=True)
        else:
            array = arguments.array("vectors", vectors, (None, None), finite=True)
            words = arguments.optional(distinct, "vocabulary", vocabulary, len(array), "words")
        if not array.size:
            raise ValueError(f"vectors is empty, of shape {array.shape}; give words and numbers")
        blocks = word_relations.cosines(array.astype(np.float64), threshold)
        found = word_relations.top_relations(blocks, len(array), top, include_self=True)
        return cls.from_matrix(found, vocabulary=words, normalise=True)

    @classmethod
    def from_wordnet(
        cls, vocabulary: Any, *, top: int = 10, threshold: float = 0.2, folder: Any = None
    ) -> "Transform":
        r"""Connect English words that are near in WordNet; one matrix for all groups.

        The similarity of two words is $1 / (1 + d)$, where d is the least number of steps up and
        down the hierarchy of hypernyms between a synset of one and a synset of the other: NLTK's
        `path_similarity` without a simulated root. The entries of a row are similarities, then
        columns are divided by their sums. A word is connected with itself in any case.

        The published matrices used the measure `vector` of WordNet::Similarity, which NLTK lacks.
        It compares the words of definitions, so its values are others, and it relates adjectives
        and adverbs, which have no hierarchy and are connected with their synonyms only here.

        Parameters
        ----------
        vocabulary
            The V words; inflected forms are looked up by their base form. A word that WordNet lacks
            is connected with itself only.
        top
            The most entries of a row, the word itself included; ties go to the lower word id.
        threshold
            Least similarity, in [0, 1]; 0.2 are four steps.
        folder
            Where the dictionary files are (`data.noun`, ...). By default /usr/share/wordnet, where
            Debian's package `wordnet-base` puts them, or else NLTK's own copy. While they are read,
            the folder is on `nltk.data.path`: NLTK reads no other.

        Raises
        ------
        ValueError
            If an argument is invalid, or if NLTK (`pip install nltk`) or the files are missing.
        """
        words = distinct("vocabulary", vocabulary)
        if not words:
            raise ValueError("vocabulary is empty; give words")
        top = arguments.integer("top", top, 1)
        threshold = arguments.finite_number("threshold", threshold, at_least=0, at_most=1)
        with open_wordnet(arguments.optional(arguments.path, "folder", folder)) as reader:
            blocks = path_similarities(reader, words, top, threshold)
            found = word_relations.top_relations(blocks, len(words), top, include_self=True)
        return cls.from_matrix(found, vocabulary=words, normalise=True)

    @property
    def num_words(self) -> int:
        """V, the number of local words."""
        return self.alternative.shape[1]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of arrays, sizes and names, in hex; the same in every process."""
        names = self.group_names, self.vocabulary, self.global_vocabulary
        header = json.dumps(["bnp-transform-1", self.num_global, *names])
        return array_digest(header, {"alternative": self.alternative, "weight": self.weight})

    def __repr__(self) -> str:
        groups = f"{len(self.group_names)} groups, " if self.group_names else ""
        num_entries = np.count_nonzero(self.weight)
        return (
            f"Transform({groups}{self.num_words} from {self.num_global} words, {num_entries} "
            f"entries, {self.digest[:8]})"
        )

    def to_sparse(self, group: str | None = None) -> scipy.sparse.csr_array:
        """Return the matrix [V, V0] of a group, or of all groups where there is one, as float32."""
        arguments.optional(arguments.text, "group", group)
        if group is not None and not self.group_names:
            raise ValueError(f"group is {group!r}, but one matrix is for all groups; leave it out")
        if self.group_names and group not in self.group_names:
            raise ValueError(
                f"group is {group!r}; give one of {arguments.short_repr(list(self.group_names))}"
            )
        f = self.group_names.index(group) if group is not None else 0
        row, slot = np.nonzero(self.weight[f])
        entries = self.weight[f][row, slot], (row, self.alternative[f][row, slot])
        return scipy.sparse.csr_array(entries, shape=(self.num_words, self.num_global))

    def neighbours(self, word: object, top: int = 10) -> "pd.DataFrame":
        """List the global words that a local word stands for, the largest weights first.

        Parameters
        ----------
        word
            One of `vocabulary`, or the number of a word.
        top
            The most rows, of each group.

        Returns
        -------
        DataFrame
            `group` (if the matrices are of groups), `word` (the global word; its number if it has
            no name) and `weight`, the probability of the local word given the global one.
        """
        import pandas as pd

        top = arguments.integer("top", top, 1)
        v = self._number_of(word)
        tables = []
        for f in range(len(self.weight)):
            weight = self.weight[f, v]
            order = np.argsort(-weight, kind="stable")[:top]
            order = order[weight[order] > 0]
            ids = self.alternative[f, v, order].tolist()
            names = self.global_vocabulary
            columns = {"word": [names[i] for i in ids] if names else ids, "weight": weight[order]}
            group = {"group": [self.group_names[f]] * len(ids)} if self.group_names else {}
            tables.append(pd.DataFrame(group | columns))
        return pd.concat(tables, ignore_index=True)

    def check(self, corpus: Any) -> None:
        """Check that the transform can explain every token of a corpus.

        Raises
        ------
        ValueError
            If the corpus has other words, if one of its groups has no matrix, or if a word that
            occurs in a group has a row of zeros there, so that its probability is zero.
        """
        corpus = as_corpus("corpus", corpus)
        if corpus.num_words != self.num_words:
            raise ValueError(
                f"corpus has {corpus.num_words} words and the transform {self.num_words}; build "
                "the transform with the vocabulary of the corpus"
            )
        if self.vocabulary is not None and corpus.vocabulary != self.vocabulary:
            pairs = enumerate(zip(corpus.vocabulary, self.vocabulary, strict=True))
            v, (word, own) = next((v, pair) for v, pair in pairs if pair[0] != pair[1])
            raise ValueError(
                f"corpus has the word {word!r} at {v}, where the transform has {own!r}; build the "
                "transform with the vocabulary of the corpus, or use corpus.with_vocabulary"
            )
        if self.group_names and corpus.group is None:
            raise ValueError(
                "corpus has no groups, but the transform has a matrix for each of "
                f"{arguments.short_repr(list(self.group_names))}; give the documents groups"
            )
        matrices = self._matrices_of(corpus)
        group = np.zeros(corpus.num_docs, np.int64) if corpus.group is None else corpus.group
        cell = np.asarray(group, np.int64)[np.asarray(corpus.doc)] * corpus.num_words
        count = np.bincount(
            cell + np.asarray(corpus.word), minlength=len(matrices) * corpus.num_words
        ).reshape(len(matrices), corpus.num_words)
        zero = ~np.any(self.weight > 0, axis=2)[matrices]
        wrong = np.argwhere(zero & (count > 0))
        if wrong.size:
            g, v = wrong[0]
            where = f" in group {corpus.group_names[g]!r}" if corpus.group is not None else ""
            raise ValueError(
                f"corpus has the word {corpus.vocabulary[v]!r}{where} {count[g, v]} times, but its "
                "row of the transform is zero there, so that its probability is zero; give the row "
                f"an entry, or drop the word ({len(wrong)} such words in all)"
            )

    def rows_for(
        self, corpus: Any
    ) -> tuple[Int32[np.ndarray, "G V S"], Float32[np.ndarray, "G V S"]]:
        """Return `alternative` and `weight` for each group of a corpus, after `check`.

        Groups are in the order of `corpus.group_names`; a corpus without groups has G = 1.
        """
        self.check(corpus)
        matrices = self._matrices_of(corpus)
        return self.alternative[matrices], self.weight[matrices]

    def describe(self) -> dict[str, Any]:
        """Return the transform as JSON-able data, which `from_description` reads.

        Arrays are base64 of their zlib-compressed little-endian bytes. Another version of zlib may
        compress to other bytes, so compare the `digest`, which is included.
        """
        names = {
            name: None if getattr(self, name) is None else list(getattr(self, name))
            for name in ("group_names", "vocabulary", "global_vocabulary")
        }
        arrays = {name: _encode_array(getattr(self, name)) for name in ("alternative", "weight")}
        return {"num_global": self.num_global, **names, **arrays, "digest": self.digest}

    @classmethod
    def from_description(cls, description: Any) -> "Transform":
        """Build the transform that `describe` described, and check it by its digest.

        Raises
        ------
        ValueError
            If the description lacks something, or its content has another digest.
        """
        found = arguments.mapping("description", description, "the content of a transform")
        try:
            names = {
                name: None if found[name] is None else tuple(found[name])
                for name in ("group_names", "vocabulary", "global_vocabulary")
            }
            arrays = {name: _decode_array(found[name]) for name in ("alternative", "weight")}
            parts: dict[str, Any] = names | arrays
            transform = cls(num_global=found["num_global"], **parts)
            digest = transform.digest
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise ValueError(
                f"description is none of a transform, or damaged ({error!r}); make it again with "
                f"describe, got {arguments.short_repr(found)}"
            ) from error
        if digest != found.get("digest"):
            raise ValueError(
                f"description is damaged: its content has the digest {digest}, got "
                f"{arguments.short_repr(found.get('digest'))}; make it again with describe"
            )
        return transform

    def _number_of(self, word: object) -> int:
        if isinstance(word, str) and self.vocabulary is not None:
            if word not in self.vocabulary:
                raise ValueError(f"word is {word!r}, which is not in vocabulary; give one that is")
            return self.vocabulary.index(word)
        try:
            return arguments.integer("word", word, 0, self.num_words - 1)
        except ValueError as error:
            known = "" if self.vocabulary is None else "; or give a word of vocabulary"
            raise ValueError(f"{error}{known}") from None

    def _matrices_of(self, corpus: Corpus) -> list[int]:
        """Return the place of the matrix of each group of a corpus."""
        if not self.group_names:
            return [0] * max(corpus.num_groups, 1)
        place = {name: f for f, name in enumerate(self.group_names)}
        lacking = [name for name in corpus.group_names if name not in place]
        if lacking:
            raise ValueError(
                f"corpus has the group {lacking[0]!r}, which the transform has no matrix for; it "
                f"has {arguments.short_repr(list(self.group_names))}: add one"
            )
        return [place[name] for name in corpus.group_names]


_TOLERANCE = 1e-4  # of the sum of a column


def _as_entries(name: str, values: object) -> scipy.sparse.csr_array:
    """Return the positive entries of a matrix in float64, or raise `ValueError`."""
    entries = scipy.sparse.csr_array(
        as_sparse(name, values, "local by global words"), dtype=np.float64
    )
    wrong = np.flatnonzero(~((entries.data >= 0) & (entries.data < np.inf)))
    if wrong.size:
        row = np.searchsorted(entries.indptr, wrong[0], side="right") - 1
        raise ValueError(
            f"{name} has {entries.data[wrong[0]]} at [{row}, {entries.indices[wrong[0]]}]; give "
            "finite numbers that are not negative"
        )
    entries.eliminate_zeros()
    return entries


def _stochastic(
    name: str,
    entries: scipy.sparse.csr_array,
    global_words: tuple[str, ...] | None,
    normalise: bool,
) -> scipy.sparse.csr_array:
    """Return a matrix whose columns sum to one, or raise `ValueError`."""
    num_words, num_global = shape_of(entries)
    total = np.asarray(entries.sum(axis=0))
    if normalise:
        empty = np.flatnonzero(total == 0)
        if empty.size and num_words == num_global:
            ones = np.ones(len(empty))
            entries = entries + scipy.sparse.csr_array((ones, (empty, empty)), entries.shape)
            total[empty] = 1.0
        if (total > 0).all() and np.isfinite(total).all():
            entries = scipy.sparse.csr_array(entries)
            entries.data = entries.data / total[entries.indices]
            return entries
    wrong = np.flatnonzero(~(np.abs(total - 1) <= _TOLERANCE))
    if wrong.size:
        v = int(wrong[0])
        called = f" ({global_words[v]!r})" if global_words else ""
        fix = "give every global word a local one" if total[v] == 0 else "give normalise=True"
        raise ValueError(
            f"{name} has a column {v}{called} that sums to {total[v]:.6g}, not to one; {fix}"
        )
    return entries


def _to_lists(
    matrices: Sequence[scipy.sparse.csr_array],
) -> tuple[Int32[np.ndarray, "F V S"], Float32[np.ndarray, "F V S"]]:
    """Return columns and values of the entries of each row, padded with zeros; both read-only."""
    num_words = shape_of(matrices[0])[0]
    stored = [scipy.sparse.csr_array(entries.astype(np.float32)) for entries in matrices]
    for entries in stored:
        entries.eliminate_zeros()  # those below float32
        entries.sort_indices()
    slots = max(1, *(int(np.diff(entries.indptr).max()) for entries in stored))
    shape = len(stored), num_words, slots
    fix = "give sparse matrices whose rows have few entries"
    check_memory(f"matrix has a row with {slots} entries", 16 * math.prod(shape), fix)
    column, value = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    for f, entries in enumerate(stored):
        row = np.repeat(np.arange(num_words), np.diff(entries.indptr))
        slot = np.arange(entries.nnz) - entries.indptr[row]
        column[f, row, slot] = entries.indices
        value[f, row, slot] = entries.data
    for array in (column, value):
        array.setflags(write=False)
    return column, value


def _encode_array(array: np.ndarray) -> dict[str, Any]:
    """Return dtype, shape and bytes of an array of numbers."""
    data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    text = base64.b64encode(zlib.compress(data)).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": text}


def _decode_array(value: Mapping[str, Any]) -> np.ndarray:
    """Return the array that `_encode_array` encoded."""
    data = zlib.decompress(base64.b64decode(value["data"], validate=True))
    stored = np.frombuffer(data, np.dtype(value["dtype"]).newbyteorder("<"))
    array = stored.astype(value["dtype"]).reshape(value["shape"])
    array.setflags(write=False)
    return array
