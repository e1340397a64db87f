"""The data of the topic models: tokens sorted by document, with groups, labels and authors."""

import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack

import jax
import numpy as np
import scipy.sparse
from jaxtyping import Bool, Int

from bnp_models.data import arguments
from bnp_models.data.checks import (
    NoTokens,
    check_num_tokens,
    check_vocabulary,
    column_names,
    count_matrix,
    distinct,
    integers,
    order_by_name,
    positions,
    unknown_column,
)
from bnp_models.data.covariates import no_covariates
from bnp_models.data.documents import (
    CATEGORIES,
    COLUMNS,
    LEAVES,
    ArrayColumns,
    Columns,
    ComparedByDigest,
    CorpusArrays,
    Documents,
    Names,
    check_documents,
    checked,
    draw_test,
    encode_documents,
    frozen,
    html_table,
    is_mapped,
    number_of_tests,
    ranges,
    shuffle_tokens,
    takes,
)
from bnp_models.data.storage import (
    bounds,
    content_digest,
    load_mapped,
    load_parts,
    number_words,
    open_store,
    save_mapped,
    save_parts,
)
from bnp_models.data.texts import (
    OPTIONS,
    READING_OPTIONS,
    TOKEN_PATTERN,
    check_texts,
    composed,
    joined,
    make_cutter,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Corpus", "as_corpus", "make_corpus", "read_texts"]

Leaf = Any  # an array; any object inside a JAX tree transformation, so not checked by type


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Corpus(ComparedByDigest):
    """Tokens of documents with their vocabulary, groups, labels and authors; immutable.

    Build a corpus with `from_texts`, `from_ids`, `from_counts`, `from_arrays`, `load`, a
    `CorpusWriter` or the functions of `bnp_models.data.readers`, which check their input. The class
    itself checks nothing, because JAX calls it in every tree transformation of a corpus. A corpus
    is a pytree: its arrays are leaves, its sizes and names are static. Two corpora are equal when
    they have the same `digest`.

    Sizes: T tokens, D documents, V words, L links between documents and authors.

    Attributes
    ----------
    doc : Int[" T"]
        Document of each token, in non-decreasing order.
    word : Int[" T"]
        Word of each token, in the order of the text where the source has one.
    doc_length : Int[" D"]
        Number of tokens of each document; zero for an empty document.
    group : Int[" D"] or None
        Group (class, collection, venue) of each document, a position in `group_names`.
    label : Int[" D"] or Float[" D"] or None
        Response of each document: a number, or a position in `label_names`.
    author_ptr, author_idx : Int[" D+1"], Int[" L"], or None
        Document d has the authors `author_idx[author_ptr[d]:author_ptr[d + 1]]`, one or more.
    names : Names
        `vocabulary`, `doc_names` and, where they apply, `group_names`, `author_names` and
        `label_names`; each of these is also a property of the corpus. Words and documents without
        names are called "0", "1", .... Also `texts`, `tokenizer` and `covariates`, which are not
        compared: they change neither the digest nor any draw, and the corpus of a checkpoint or a
        saved fit may be given with other ones.

    Notes
    -----
    Integers are int32, fractional labels float32. The constructors make read-only NumPy arrays,
    so no device is needed to build a corpus; `jax.device_put(corpus)` moves it to one.

    All constructors but `from_arrays` take, for each document: `groups` and `authors` (a list for
    every document) as strings or integers, `labels` as strings or numbers, `doc_names` as distinct
    strings. Groups, authors and string labels are sorted and numbered. `group_names`,
    `author_names` and `label_names` fix the numbering instead: integers are then positions in them.
    They may hold names that do not occur, so that training and test corpora can share one
    numbering.

    All constructors take `covariates`: what else is known of each document, such as its year or its
    party. They are columns by name, as a dictionary or a pandas frame, with one entry for each
    document in the order of the corpus; an index is not used. A column holds numbers, booleans,
    strings, categories or dates; None, NaN or NaT is missing. A time zone is left out, and the time
    stays that of its clocks: convert times of several zones to one before. No model reads them.
    Selections of documents keep their rows, and `save` keeps them in the file.

    Numbers are floats beside fractions and missing entries. Integers whose digits would be lost
    then, those above 2**53, are refused. So are strings that are no dates where at least nine of
    ten are dates ("2024-12-31"); pandas categories may hold them.

    Raises
    ------
    ValueError
        From every constructor, before it does anything else, if an argument is invalid. The message
        names the argument, its value and how to fix it.
    """

    doc: Leaf
    word: Leaf
    doc_length: Leaf
    group: Leaf = None
    label: Leaf = None
    author_ptr: Leaf = None
    author_idx: Leaf = None
    num_docs: int = dataclasses.field(metadata={"static": True})
    num_words: int = dataclasses.field(metadata={"static": True})
    names: Names = dataclasses.field(metadata={"static": True})

    @classmethod
    @takes(Columns)
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        vocabulary: Iterable[str] | None = None,
        vectorizer: object = None,
        stop_words: str | Iterable[str] | None = "english",
        lowercase: bool = True,
        token_pattern: str = TOKEN_PATTERN,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        keep_texts: bool = False,
        store: str | os.PathLike[str] | None = None,
        **columns: Unpack[Columns],
    ) -> "Corpus":
        r"""Cut texts into words and number them; the order of the words is kept.

        Texts and vocabulary are put into Unicode's composed form (NFC), so that it does not matter
        how letters with accents are written. The corpus remembers how the texts were cut
        (`tokenizer`), so that `read_texts` can read new texts in the same way.

        Parameters
        ----------
        texts
            One string per document. A document of which no word remains is kept, as an empty
            document.
        groups, authors, labels, doc_names, group_names, author_names, label_names, covariates
            See the class.
        vocabulary
            Words to keep, numbered as in this sequence; all others are dropped.
        vectorizer
            A `CountVectorizer` that splits the texts into words, instead of the options below. It
            is fitted to `texts` unless it has been fitted before. `binary=True` is refused.
        stop_words, lowercase, token_pattern, min_df, max_df, max_features
            Options of scikit-learn's `CountVectorizer`. By default a word is two or more letters,
            digits or combining marks of any alphabet, in lower case, and no English stop word.
            Underscores inside belong to it. A number alone is no word; `token_pattern=r"\w+"` takes
            numbers too. In brackets, `\p{M}` stands for all combining marks.
        keep_texts
            Keep the texts themselves too, as `texts`. They change neither the digest nor any draw.
        store
            A new folder for the corpus, which is then mapped into memory (`is_mapped`) and equal to
            one without `store`. The texts are read once, so they may also be a generator, and only
            words and what is known of documents are held in memory. A vectorizer must be fitted.

        Examples
        --------
        >>> corpus = Corpus.from_texts(["The cat saw the dog.", "Dogs and cats"])
        >>> corpus.words(0)
        ['cat', 'saw', 'dog']
        >>> corpus.read_texts(["A dog, a CAT and a bird"]).words(0)
        ['dog', 'cat']
        """
        arguments.flag("keep_texts", keep_texts)
        folder = arguments.optional(arguments.path, "store", store)
        if folder is not None and keep_texts:
            raise ValueError("keep_texts is True but store keeps no texts; leave one of them out")
        texts = check_texts(texts, streamed=folder is not None)

        encoded = functools.partial(encode_documents, **columns)
        known = encoded(len(texts)) if isinstance(texts, list) else None
        cutter = make_cutter(
            vectorizer,
            vocabulary,
            None if folder is not None else texts,
            stop_words=stop_words,
            lowercase=lowercase,
            token_pattern=token_pattern,
            min_df=min_df,
            max_df=max_df,
            max_features=max_features,
        )
        with open_store(folder) as tokens:
            documents = map(cutter.analyze, texts)
            words = number_words(documents, tokens, cutter.vocabulary, cutter.limits)
            known = known or encoded(tokens.num_docs)
            if keep_texts:
                known = dataclasses.replace(known, texts=tuple(texts))
            return make_corpus(tokens.finish(words, known, json.dumps(cutter.tokenizer)))

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        text: str | Sequence[str] = "text",
        *,
        labels: str | None = None,
        groups: str | None = None,
        authors: str | None = None,
        doc_names: str | None = None,
        covariates: str | Sequence[str] | None = None,
        **options: Any,
    ) -> "Corpus":
        """Take the texts in a pandas frame, and what else its columns say of them.

        Parameters
        ----------
        frame
            A pandas frame with one row for each document, in this order; its index is not used.
        text
            Column with the texts; several are joined.
        labels, groups, authors, doc_names
            Columns with the label, the group, the list of authors and the name of each document.
        covariates
            Columns to keep as `covariates`, see the class: one or several.
        options
            Options of `from_texts`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"body": ["The cat", "A dog"], "year": [1999, 2004]})
        >>> corpus = Corpus.from_dataframe(frame, "body", covariates="year")
        >>> corpus.covariates
           year
        0  1999
        1  2004
        """
        import pandas as pd

        arguments.instance("frame", frame, pd.DataFrame, "a pandas DataFrame, see to_pandas()")
        one = {"labels": labels, "groups": groups, "authors": authors, "doc_names": doc_names}
        arguments.options(cls.from_texts, options, but=(*one, "covariates"))
        one = {argument: name for argument, name in one.items() if name is not None}
        parts = [text] if isinstance(text, str) else arguments.texts("text", text, some=True)
        beside = column_names("covariates", covariates)
        asked = [("text", name) for name in parts] + [("covariates", name) for name in beside]
        for argument, name in [*asked, *one.items()]:
            count = frame.columns.tolist().count(arguments.text(argument, name))
            if not count:
                raise unknown_column("frame", name, argument, frame.columns)
            if count > 1:
                raise ValueError(f"frame has {count} columns {name!r}; give each a name of its own")
        given: dict[str, Any] = {argument: frame[name].tolist() for argument, name in one.items()}
        if doc_names is not None:
            given["doc_names"] = [str(x) if isinstance(x, int) else x for x in given["doc_names"]]
        rows = zip(*(frame[name].tolist() for name in parts), strict=True)
        texts = [joined(d, parts, row) for d, row in enumerate(rows)]
        return cls.from_texts(texts, covariates=frame[beside], **given, **options)

    @classmethod
    @takes(Columns)
    def from_ids(
        cls,
        docs: Iterable[Iterable[Any]],
        num_words: SupportsIndex | None = None,
        *,
        vocabulary: Iterable[str] | None = None,
        **columns: Unpack[Columns],
    ) -> "Corpus":
        """Take documents as sequences of word ids.

        Parameters
        ----------
        docs
            One sequence of integers in [0, V) per document, in the order of the text.
        num_words
            V; may be left out if `vocabulary` is given.
        vocabulary
            The V words.
        groups, authors, labels, doc_names, group_names, author_names, label_names, covariates
            See the class.

        Examples
        --------
        >>> Corpus.from_ids([[0, 1, 0], [2, 1]], num_words=3)
        Corpus(2 documents, 5 tokens, 3 words)
        """
        docs = arguments.sequence("docs", docs, "documents, each a sequence of word ids")
        if not docs:
            raise ValueError("docs is empty; give at least one document")
        words = [integers(f"docs[{d}]", ids) for d, ids in enumerate(docs)]
        vocabulary = check_vocabulary(vocabulary, num_words)
        documents = encode_documents(len(docs), **columns)
        doc = np.repeat(np.arange(len(docs)), [len(ids) for ids in words])
        return make_corpus(checked(doc, np.concatenate(words), vocabulary, documents))

    @classmethod
    @takes(Columns)
    def from_counts(
        cls,
        counts: Iterable[Any] | scipy.sparse.sparray | scipy.sparse.spmatrix,
        *,
        vocabulary: Iterable[str] | None = None,
        **columns: Unpack[Columns],
    ) -> "Corpus":
        """Take a document-by-word matrix of counts, [D, V].

        Parameters
        ----------
        counts
            A SciPy sparse matrix or array, such as `CountVectorizer` makes, or anything that NumPy
            reads as a matrix. Entries are whole numbers that are not negative. Counts hold no word
            order, so the tokens of a document are put in the order of the vocabulary.
        vocabulary
            The V words, for example `vectorizer.get_feature_names_out()`. By default those of the
            columns, if `counts` is a pandas frame whose columns are strings; with both, columns are
            found by name.
        groups, authors, labels, doc_names, group_names, author_names, label_names, covariates
            See the class.
        """
        counts, vocabulary = _by_word(counts, vocabulary)
        doc, word, count, (num_docs, num_words) = count_matrix(counts)
        vocabulary = check_vocabulary(vocabulary, num_words)
        documents = encode_documents(num_docs, **columns)
        tokens = np.repeat(doc, count), np.repeat(word, count)
        return make_corpus(checked(*tokens, vocabulary, documents))

    @classmethod
    @takes(ArrayColumns)
    def from_arrays(
        cls,
        doc: Iterable[Any],
        word: Iterable[Any],
        *,
        num_docs: SupportsIndex | None = None,
        num_words: SupportsIndex | None = None,
        vocabulary: Iterable[str] | None = None,
        **columns: Unpack[ArrayColumns],
    ) -> "Corpus":
        """Take the arrays of a corpus as they are stored; nothing is renumbered.

        Parameters
        ----------
        doc, word
            Document and word of each token, sorted by document.
        num_docs, num_words
            D and V. By default D is the number of `doc_names`, or follows from the last document if
            there are none. By default V is the number of words in `vocabulary`.
        vocabulary, doc_names, group_names, author_names, label_names
            Strings. Missing names of words, documents, groups and authors are "0", "1", ....
        group, label, author_ptr, author_idx
            As the attributes of the same names; ids count from 0.
        covariates
            See the class.
        """
        doc = integers("doc", doc)
        if num_docs is None and columns.get("doc_names") is None and len(doc):
            num_docs = int(doc[-1]) + 1
        documents = check_documents(num_docs, **columns)
        return make_corpus(checked(doc, word, check_vocabulary(vocabulary, num_words), documents))

    @property
    def num_tokens(self) -> int:
        """T, the number of tokens."""
        return self.word.shape[-1]

    @property
    def num_groups(self) -> int:
        """Number of groups, empty ones included; 0 where documents have none."""
        return len(self.names.group_names)

    @property
    def num_authors(self) -> int:
        """Number of authors, those of no document included; 0 where documents have none."""
        return len(self.names.author_names)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The V words."""
        return self.names.vocabulary

    @property
    def doc_names(self) -> tuple[str, ...]:
        """Distinct names of the D documents; a selection of documents keeps them."""
        return self.names.doc_names

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups; empty where documents have none."""
        return self.names.group_names

    @property
    def author_names(self) -> tuple[str, ...]:
        """Names of the authors; empty where documents have none."""
        return self.names.author_names

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels; empty where labels are numbers, or absent."""
        return self.names.label_names

    @property
    def covariates(self) -> "pd.DataFrame":
        """What else is known of the documents: a copy, one row for each in order, see the class.

        The index is 0, ..., D - 1. Strings are categories with sorted levels, dates are datetime64
        without time zones (see the class), and booleans of which some are missing have pandas'
        dtype "boolean". Without covariates the frame has no columns.
        """
        frame = self.names.covariates
        return no_covariates(self.num_docs) if frame is None else frame.copy()

    @property
    def texts(self) -> tuple[str, ...] | None:
        """Raw texts of the documents; None unless they were kept (`keep_texts=True`)."""
        return self.names.texts

    @property
    def tokenizer(self) -> dict[str, Any] | None:
        """How the texts were cut into words; None where the corpus was not made from texts.

        The options `stop_words` (as a list), `lowercase` and `token_pattern` of `from_texts`; or
        only `vectorizer`, a description, where these options do not say what a vectorizer does.
        """
        return None if self.names.tokenizer is None else json.loads(self.names.tokenizer)

    @property
    def is_mapped(self) -> bool:
        """Whether the tokens are in files that are mapped into memory (see `load`), not read."""
        return is_mapped(self.doc) and is_mapped(self.word)

    @functools.cached_property
    def doc_ptr(self) -> Int[np.ndarray, " D_plus_1"]:
        """Bounds: the tokens of document d run from doc_ptr[d] to doc_ptr[d + 1]."""
        return bounds(np.asarray(self.doc_length))

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of arrays, sizes and names, in hex; the same in every process."""
        return content_digest(self._arrays(), self.num_words, self.names)

    def _sizes(self) -> dict[str, str]:
        """Return how many documents, tokens and so on there are, in the order of the `repr`."""
        found: dict[str, object] = {"documents": self.num_docs}
        if hasattr(self.word, "shape"):
            found["tokens"] = self.num_tokens
        found["words"] = self.num_words
        if self.group is not None:
            found["groups"] = self.num_groups
        if self.author_idx is not None:
            found["authors"] = self.num_authors
        if self.label is not None:
            found["labels"] = len(self.label_names) or getattr(self.label, "dtype", "")
        return {name: str(size) for name, size in found.items()}

    def __repr__(self) -> str:
        return f"Corpus({', '.join(f'{size} {name}' for name, size in self._sizes().items())})"

    def _repr_html_(self) -> str:
        return html_table("Corpus", self._sizes())

    def document(self, d: SupportsIndex) -> Int[np.ndarray, " N"]:
        """Word ids of document `d`, in order."""
        d = arguments.integer("d", d, 0, self.num_docs - 1)
        return np.asarray(self.word)[self.doc_ptr[d] : self.doc_ptr[d + 1]]

    def words(self, d: SupportsIndex) -> list[str]:
        """Words of document `d`, in order."""
        return [self.vocabulary[v] for v in self.document(d)]

    def authors(self, d: SupportsIndex) -> list[str]:
        """Names of the authors of document `d`; none where the corpus has no authors."""
        d = arguments.integer("d", d, 0, self.num_docs - 1)
        if self.author_ptr is None:
            return []
        links = np.asarray(self.author_idx)[self.author_ptr[d] : self.author_ptr[d + 1]]
        return [self.author_names[a] for a in links]

    def to_counts(self) -> scipy.sparse.csr_array:
        """Make the [D, V] matrix of counts, int32, as `CountVectorizer` would."""
        shape = self.num_docs, self.num_words
        ones = np.ones(self.num_tokens, np.int32)
        indices = np.array(self.word), self.doc_ptr.astype(np.int32)
        counts = scipy.sparse.csr_array((ones, *indices), shape=shape)
        counts.sum_duplicates()
        return counts

    def read_texts(self, texts: Iterable[str], **options: Any) -> "Corpus":
        """Read new texts as those of this corpus were read, over the same vocabulary.

        Words that this corpus does not have are dropped. Groups, authors and string labels that it
        has keep their numbers; others are numbered after them.

        Parameters
        ----------
        texts
            One string per document.
        options
            `groups`, `authors`, `labels`, `doc_names`, `covariates` and so on, and `keep_texts`, as
            for `from_texts`.

        Raises
        ------
        ValueError
            If the corpus does not know how its texts were read, or an option is wrong.
        """
        corpus = read_texts(texts, self.vocabulary, self.tokenizer, **options)
        names = {kind: getattr(self.names, kind) for kind in CATEGORIES}
        names = {kind: old for kind, old in names.items() if options.get(kind) is None}
        return corpus._with(corpus._tokens(), corpus._documents().numbered_as(names))

    def select(self, docs: Iterable[Any]) -> "Corpus":
        """Take some documents, in the order given; words, groups and authors keep their ids.

        Parameters
        ----------
        docs
            Numbers of documents, in any order and also repeatedly, or a mask of D booleans. A
            document that is repeated is called "name (2)", "name (3)" and so on from then on.
        """
        docs = positions("docs", docs, self.num_docs, "document")
        if not len(docs):
            raise ValueError("docs is empty; give at least one document")
        length = np.asarray(self.doc_length)[docs]
        check_num_tokens(f"docs has {len(docs)} documents with", int(length.sum(dtype=np.int64)))
        tokens = {
            "doc": np.repeat(np.arange(len(docs)), length),
            "word": np.asarray(self.word)[ranges(self.doc_ptr[docs], length)],
            "doc_length": length,
        }
        return self._with(tokens, self._documents().take(docs))

    def train_test_split(
        self, test_size: float | SupportsIndex = 0.2, *, seed: int = 0, stratify: bool = False
    ) -> tuple["Corpus", "Corpus"]:
        """Split the documents at random into a training and a test corpus.

        Parameters
        ----------
        test_size
            Number of test documents, or their share as a float.
        seed
            Seed of the split.
        stratify
            Give both parts the same share of every group.
        """
        seed = arguments.seed("seed", seed)
        num_test = number_of_tests(test_size, self.num_docs, "document")
        if arguments.flag("stratify", stratify) and self.group is None:
            raise ValueError("stratify is True but the corpus has no groups; make it False")
        group = np.asarray(self.group) if stratify else np.zeros(self.num_docs, np.int32)
        is_test = draw_test(group, num_test, seed)
        return self.select(~is_test), self.select(is_test)

    def halves(self, seed: int = 0) -> tuple["Corpus", "Corpus"]:
        """Split the tokens of every document at random into two halves of the same documents.

        The first half is observed and the second is held out, to score document completion. If a
        document has an odd number of tokens, the observed half has one more. Both halves keep the
        order of the text, but not the raw texts.
        """
        seed = arguments.seed("seed", seed)
        length = np.asarray(self.doc_length)
        place = ranges(np.zeros_like(length), length)
        observed = np.empty(self.num_tokens, bool)
        observed[shuffle_tokens(np.asarray(self.doc), seed)] = place < np.repeat(
            (length + 1) // 2, length
        )
        if observed.all():
            raise ValueError("no document has two tokens; halves needs longer documents")
        return self._retain(observed), self._retain(~observed)

    def prune(
        self,
        *,
        min_count: int = 1,
        max_count: int | None = None,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_words: int | None = None,
        stop_words: Iterable[str] = (),
    ) -> "Corpus":
        """Drop words from the vocabulary and renumber the rest; all documents are kept.

        Parameters
        ----------
        min_count, max_count
            Least and largest number of tokens of a word that stays.
        min_df, max_df
            Least and largest number of documents with the word, or their share as a float.
        max_words
            Of the words that pass, keep the most frequent ones.
        stop_words
            Words to drop; those not in the vocabulary are ignored.
        """
        arguments.integer("min_count", min_count)
        arguments.optional(arguments.integer, "max_count", max_count)
        arguments.optional(arguments.integer, "max_words", max_words, 1)
        arguments.count_or_share("min_df", min_df)
        arguments.count_or_share("max_df", max_df)
        stop = arguments.sequence("stop_words", stop_words, "words", ordered=False)
        stop = set(map(composed, arguments.texts("stop_words", stop)))
        counts = self.to_counts()
        count = np.asarray(counts.sum(axis=0)).astype(np.int64)
        doc_count = np.bincount(counts.indices, minlength=self.num_words)
        low, high = (df * self.num_docs if isinstance(df, float) else df for df in (min_df, max_df))
        keep = (count >= min_count) & (doc_count >= low) & (doc_count <= high)
        keep &= np.array([composed(word) not in stop for word in self.vocabulary])
        if max_count is not None:
            keep &= count <= max_count
        if max_words is not None:
            by_count = np.argsort(np.where(keep, -count, 1), kind="stable")
            keep[by_count[max_words:]] = False
        if not keep.any():
            raise ValueError(
                f"no word is left by min_count={min_count}, max_count={max_count}, "
                f"min_df={min_df}, max_df={max_df} and stop_words; make them less strict"
            )
        return self.with_vocabulary([self.vocabulary[v] for v in np.flatnonzero(keep)])

    def with_vocabulary(self, vocabulary: Iterable[str]) -> "Corpus":
        """Rewrite the corpus in another vocabulary; tokens whose word is not there are dropped."""
        vocabulary = distinct("vocabulary", vocabulary)
        index = {name: v for v, name in enumerate(vocabulary)}
        new_id = np.array([index.get(name, -1) for name in self.vocabulary])
        word = new_id[np.asarray(self.word)]
        if not (word >= 0).any():
            raise NoTokens(
                self.num_docs,
                f"vocabulary has no word of the corpus; give words out of corpus.vocabulary, got "
                f"{arguments.short_repr(vocabulary)}",
            )
        return self._retain(word >= 0, word, vocabulary)

    def with_labels(
        self, labels: Iterable[Any], label_names: Iterable[str] | None = None
    ) -> "Corpus":
        """Return the corpus with other labels; `labels` and `label_names` as for `from_ids`."""
        if labels is None:
            raise ValueError("labels must have one label for each document, got None")
        columns = encode_documents(
            self.num_docs, doc_names=self.doc_names, labels=labels, label_names=label_names
        )
        return self._with(self._tokens(), self._documents().replace(columns))

    def save(self, path: str | os.PathLike[str], *, mapped: bool = False) -> None:
        """Write the corpus, completely or not at all; `load` reads it.

        Parameters
        ----------
        path
            A file, by convention `.npz`; an old one is replaced. With `mapped`, a new folder.
        mapped
            Write a folder of `.npy` files, which `load` maps into memory instead of reading them.
            Such a corpus can be larger than the memory. Raw texts (`keep_texts`) are refused.
        """
        path = arguments.path("path", path)
        write = save_mapped if arguments.flag("mapped", mapped) else save_parts
        write(path, CorpusArrays(self._arrays(), self.names), self.digest)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Corpus":
        """Read a corpus that `save` wrote, and check it by its digest.

        The arrays of a folder (`mapped=True`) are not read but mapped: its files must not change
        while the corpus is used.
        """
        path = arguments.path("path", path)
        if path.is_dir():
            return make_corpus(load_mapped(path))
        arrays, about, digest = load_parts(path)
        corpus = cls.from_arrays(**arrays)
        corpus = dataclasses.replace(corpus, names=dataclasses.replace(corpus.names, **about))
        if corpus.digest != digest:
            raise ValueError(f"{path} is damaged: its content has another digest; save it again")
        return corpus

    def _arrays(self, names: tuple[str, ...] = LEAVES) -> dict[str, np.ndarray]:
        leaves = {name: getattr(self, name) for name in names}
        return {name: np.asarray(leaf) for name, leaf in leaves.items() if leaf is not None}

    def _tokens(self) -> dict[str, np.ndarray]:
        return self._arrays(("doc", "word", "doc_length"))

    def _documents(self) -> Documents:
        """Return the table of documents."""
        categories = {kind: getattr(self.names, kind) for kind in CATEGORIES}
        columns = self._arrays(COLUMNS)
        return Documents(self.doc_names, columns, categories, self.texts, self.names.covariates)

    def _with(
        self,
        tokens: dict[str, np.ndarray],
        documents: Documents,
        vocabulary: tuple[str, ...] | None = None,
    ) -> "Corpus":
        """Return a corpus with these tokens and documents, checked already."""
        vocabulary = self.vocabulary if vocabulary is None else vocabulary
        return make_corpus(frozen(tokens, vocabulary, documents, self.names.tokenizer))

    def _retain(
        self,
        keep: Bool[np.ndarray, " T"],
        word: Int[np.ndarray, " T"] | None = None,
        vocabulary: tuple[str, ...] | None = None,
    ) -> "Corpus":
        """Keep some tokens of all documents; with a vocabulary, `word` are the ids in it."""
        doc = np.asarray(self.doc)[keep]
        tokens = {
            "doc": doc,
            "word": (np.asarray(self.word) if word is None else word)[keep],
            "doc_length": np.bincount(doc, minlength=self.num_docs),
        }
        documents = self._documents()
        if vocabulary is None:  # the texts have more than these tokens
            documents = dataclasses.replace(documents, texts=None)
        return self._with(tokens, documents, vocabulary)


def make_corpus(parts: CorpusArrays) -> Corpus:
    """Make a corpus of its parts, which are checked."""
    sizes = {"num_docs": len(parts.names.doc_names), "num_words": len(parts.names.vocabulary)}
    corpus = Corpus(**parts.arrays, **sizes, names=parts.names)
    if parts.digest is not None:
        vars(corpus)["digest"] = parts.digest  # where the cached property keeps it
    return corpus


def as_corpus(name: str, value: object) -> Corpus:
    """Return a `Corpus`, given as the argument `name`, or raise `ValueError`."""
    return arguments.instance(
        name,
        value,
        Corpus,
        "a Corpus",
        "build one with Corpus.from_texts, Corpus.from_ids or Corpus.from_counts",
    )


def read_texts(
    texts: Iterable[str],
    vocabulary: tuple[str, ...],
    tokenizer: Mapping[str, Any] | None,
    /,
    **options: Any,
) -> Corpus:
    """Read texts with a tokenizer over a vocabulary; words that are not in it are dropped.

    Parameters
    ----------
    texts
        One string per document.
    vocabulary, tokenizer
        Those of the earlier corpus.
    options
        Options of `Corpus.from_texts` beside those that the tokenizer decides.

    Raises
    ------
    ValueError
        If there is no tokenizer, it can't be used again, or an option is wrong.
    """
    arguments.options(
        Corpus.from_texts, options, but=("vocabulary", "vectorizer", *OPTIONS, "store")
    )
    advice = "pass a Corpus, made with vocabulary= of the corpus that was fitted"
    if tokenizer is None:
        raise ValueError(
            "texts can't be read: the corpus that was fitted was not made from texts, so it does "
            f"not say how to cut them into words; {advice}"
        )
    if "vectorizer" in tokenizer:
        raise ValueError(
            "texts can't be read: the corpus that was fitted was made with a vectorizer of your "
            f"own, {tokenizer['vectorizer']}, which is not kept; cut them with that vectorizer and "
            f"{advice}"
        )
    how = {name: tokenizer[name] for name in READING_OPTIONS}
    return Corpus.from_texts(texts, vocabulary=vocabulary, **how, **options)


def _by_word(counts: Any, vocabulary: Any) -> tuple[Any, Any]:
    """Return counts with the columns of a frame in the order of the vocabulary, and this."""
    import pandas as pd

    if not isinstance(counts, pd.DataFrame) or not all(isinstance(x, str) for x in counts.columns):
        return counts, vocabulary
    names = distinct("columns of counts", list(counts.columns))
    if vocabulary is None:
        return counts, names
    vocabulary = distinct("vocabulary", vocabulary)
    order = order_by_name("columns of counts", names, "vocabulary", vocabulary)
    return counts.iloc[:, order], vocabulary
