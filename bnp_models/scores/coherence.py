r"""Topic coherence: whether the top words of a topic occur together in a reference corpus.

Normalised pointwise mutual information of a pair of words,

$$\mathrm{NPMI}(i, j) = \frac{\log(p_{ij} / (p_i p_j))}{-\log p_{ij}} \in [-1, 1],$$

averaged over the pairs of a topic's top words. Bouma, Normalized (pointwise) mutual information in
collocation extraction, GSCL 2009. `coherence` computes it, or one of gensim's measures. A number
without its reference corpus, its unit of co-occurrence and its number of words means nothing:
report all three. NPMI describes topics; it does not decide between models (held-out scores do
that).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int

from bnp_models.data import arguments
from bnp_models.data.checks import shape_of
from bnp_models.data.corpus import Corpus, as_corpus

__all__ = ["MEASURES", "coherence", "npmi"]

MEASURES = ("npmi", "c_v", "u_mass", "c_uci")
"""Measures of coherence; all but "npmi" are those of gensim."""

_BLOCK = 1 << 21  # tokens of a block of windows: bounds the memory to some tens of megabytes


def npmi(
    topics: Sequence[Sequence[int | str]] | Int[np.ndarray, "K N"],
    reference: Corpus,
    *,
    top: int = 10,
    window: int | None = None,
) -> Float[np.ndarray, " K"]:
    r"""Return the coherence of each topic: mean NPMI over the pairs of its first `top` words.

    $p_i$ is the share of units (documents, or windows) that contain word i, $p_{ij}$ the share
    that contains both. A pair that never occurs together has NPMI -1, its limit (also if one of
    the words never occurs); a pair in which both words are in every unit has 0, since it tells
    nothing. Natural logarithms, no smoothing constant.

    Parameters
    ----------
    topics
        Top words of each topic, best first, as ids or as words of the reference's vocabulary.
    reference
        The corpus that probabilities are taken from: the training corpus or, better, another
        large one. Empty documents do not count as units.
    top
        Words per topic that are used, at least 2.
    window
        `None`: a unit is a document. Otherwise a unit is a run of `window` consecutive tokens. A
        document of N tokens has N - window + 1 units, or one if it is shorter. This needs a corpus
        whose tokens are in their order in the text (not one made from counts).

    Returns
    -------
    Values in [-1, 1], one per topic.

    Raises
    ------
    ValueError
        If the reference is empty, `top` < 2, `window` < 1, or a topic has fewer than `top` words,
        repeats a word, or has a word which the reference's vocabulary lacks.
    """
    ids = _word_ids(topics, reference, top, window)
    if reference.num_tokens == 0:
        raise ValueError("reference has no tokens; pass a corpus with text")
    top = ids.shape[1]
    words, columns = np.unique(ids, return_inverse=True)
    columns = columns.reshape(ids.shape)
    together = np.zeros((len(ids), top, top), np.int64)
    num_units = 0
    for units in _occurrence(reference, words, window):
        num_units += shape_of(units)[0]
        for k, column in enumerate(columns):
            part = units[:, column]
            together[k] += (part.T @ part).toarray()
    joint = together / num_units
    single = np.diagonal(joint, axis1=1, axis2=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        mutual = np.log(joint) - np.log(single[:, :, None] * single[:, None, :])
        value = mutual / -np.log(joint)
    value = np.where(joint == 0, -1.0, np.where(joint == 1, 0.0, value))
    first, second = np.triu_indices(top, 1)
    return value[:, first, second].mean(-1)


def coherence(
    topics: Sequence[Sequence[int | str]] | Int[np.ndarray, "K N"],
    reference: Corpus,
    *,
    measure: str = "npmi",
    top: int = 10,
    window: int | None = None,
) -> Float[np.ndarray, " K"]:
    """Return the coherence of each topic by one of `MEASURES`.

    "npmi" is `npmi` of this library. "c_v", "u_mass" and "c_uci" are those of gensim's
    `CoherenceModel`, with its own rules for pairs that never occur together; with words that never
    occur, they may be NaN or infinite. They are there to
    compare with published numbers. The author of C_v could not reproduce its published numbers and
    advises against it. Röder, Both and Hinneburg, Exploring the space of topic coherence measures,
    WSDM 2015.

    Parameters
    ----------
    topics, reference, top
        See `npmi`.
    measure
        One of "npmi", "c_v", "u_mass", "c_uci".
    window
        Consecutive tokens that count as together. For "npmi" None is a whole document. For "c_v"
        and "c_uci" None is gensim's default, 110 and 10; they need the order of the text. "u_mass"
        counts documents and takes none.

    Raises
    ------
    ValueError
        As `npmi`, and if the measure is not known or takes no window.
    ImportError
        If the measure is gensim's and gensim is not installed.
    """
    arguments.one_of("measure", measure, MEASURES)
    if measure == "npmi":
        return npmi(topics, reference, top=top, window=window)
    ids = _word_ids(topics, reference, top, window)
    if measure == "u_mass" and window is not None:
        raise ValueError(f"window must be None for measure='u_mass', got {window}")
    try:
        from gensim.corpora import Dictionary  # pyright: ignore[reportMissingImports]
        from gensim.models import CoherenceModel  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"measure={measure!r} needs gensim: pip install gensim, or use measure='npmi'"
        ) from None
    names = reference.vocabulary
    texts = [reference.words(d) for d in range(reference.num_docs)]
    dictionary = Dictionary([list(names)])  # all words, so that each topic has its own in it
    model = CoherenceModel(
        topics=[[names[v] for v in row] for row in ids], texts=texts, dictionary=dictionary,
        coherence=measure, topn=ids.shape[1], window_size=window, processes=1,
    )  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):  # of words that never occur
        return np.asarray(model.get_coherence_per_topic(), np.float64)


def _word_ids(
    topics: Sequence[Sequence[int | str]] | Int[np.ndarray, "K N"],
    reference: Corpus,
    top: int,
    window: int | None,
) -> Int[np.ndarray, "K top"]:
    """Check the arguments of a coherence, and look up the first `top` words of each topic."""
    top = arguments.integer("top", top, 2)  # to have a pair
    arguments.optional(arguments.integer, "window", window, 1)
    as_corpus("reference", reference)
    topics = arguments.sequence("topics", topics, "topics, each a sequence of words", some=True)
    lookup = {word: index for index, word in enumerate(reference.vocabulary)}
    rows = []
    for k, topic in enumerate(topics):
        topic = arguments.sequence(f"topics[{k}]", topic, "words")
        if len(topic) < top:
            raise ValueError(
                f"topics[{k}] has {len(topic)} words, fewer than top={top}; give more words, or "
                "make top smaller"
            )
        row = []
        for word in topic[:top]:
            if isinstance(word, str):
                if word not in lookup:
                    raise ValueError(
                        f"topics[{k}] has the word {word!r}, which is not in the vocabulary of "
                        "reference; leave it out or take a corpus built with the same vocabulary"
                    )
                row.append(lookup[word])
            elif isinstance(word, int | np.integer) and 0 <= word < reference.num_words:
                row.append(int(word))
            else:
                raise ValueError(
                    f"topics[{k}] has the word id {word}, which is not in "
                    f"[0, {reference.num_words}); give numbers of the words of reference"
                )
        if len(set(row)) < top:
            raise ValueError(
                f"topics[{k}] names a word twice in its first {top}, give each one once: {row}"
            )
        rows.append(row)
    return np.array(rows)


def _occurrence(
    reference: Corpus, words: Int[np.ndarray, " U"], window: int | None
) -> Iterator[scipy.sparse.csc_array]:
    """Yield sparse 0/1 matrices, units by `words`, over blocks of units."""
    word, length = (np.asarray(x) for x in (reference.word, reference.doc_length))
    longest = int(length.max())
    width = longest if window is None else min(window, longest)
    num_units = np.where(length > 0, np.maximum(length - width + 1, 1), 0)  # of each document
    start = np.repeat(np.cumsum(length) - length, num_units) + _ranges(num_units)
    stop = start + np.repeat(np.minimum(length, width), num_units)
    kept = np.isin(word, words)
    columns = np.searchsorted(words, word[kept])
    before = np.append(0, np.cumsum(kept))  # tokens among `words` before each token
    first, count = before[start], before[stop] - before[start]  # of each unit, among these tokens
    step = max(_BLOCK // width, 1)
    for begin in range(0, len(start), step):
        block = slice(begin, begin + step)
        token = np.repeat(first[block], count[block]) + _ranges(count[block])
        ends = np.append(0, np.cumsum(count[block]))
        entries = (np.ones(len(token), np.int64), columns[token], ends)
        units = scipy.sparse.csr_array(entries, shape=(len(ends) - 1, len(words)))
        units.sum_duplicates()
        units.data[:] = 1  # a word that comes twice in a unit still counts once
        yield units.tocsc()


def _ranges(count: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
    """Return 0..c-1 for each c of `count`, one after the other."""
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
