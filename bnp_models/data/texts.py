"""Turn texts into word ids with scikit-learn's `CountVectorizer`, in the order of the text.

A *tokenizer* is a dictionary that says how texts were cut into words, in a form that JSON can hold.
It has the options `stop_words` (None, or all stop words as a sorted list), `lowercase` and
`token_pattern` of `Corpus.from_texts`; or else `vectorizer`, the description of a vectorizer that
these options do not describe. Texts can be read again only with the first kind.

A letter with accents may be written as one character or as a letter and combining marks. Texts are
put into the first form (NFC) before they are cut, and words and vocabularies after.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from bnp_models.data import arguments
from bnp_models.data.checks import distinct, strings

__all__ = [
    "READING_OPTIONS",
    "TOKEN_PATTERN",
    "Cutter",
    "Limits",
    "check_texts",
    "composed",
    "joined",
    "make_cutter",
    "read_tokenizer",
]

TOKEN_PATTERN = (
    r"(?<![^\W_])(?![\d_\xb2\xb3\xb9\xbc-\xbe\u2070-\u2089\u2150-\u2189]+(?!\w))"  # no number alone
    r"[^\W_][\w\p{M}\u200c\u200d]+(?<![_\u200c\u200d])"
)
r"""Two or more letters, combining marks or digits, of any alphabet, with at least one letter.

Underscores and joiners (U+200C, U+200D) belong to a word only between these characters. `\p{M}` are
the combining marks, see `arguments.pattern`.
"""

OPTIONS = {
    "stop_words": "english",
    "lowercase": True,
    "token_pattern": TOKEN_PATTERN,
    "min_df": 1,
    "max_df": 1.0,
    "max_features": None,
}
"""Options, with their defaults, of the vectorizer that is made if none is given."""

READING_OPTIONS = ("stop_words", "lowercase", "token_pattern")
"""Options that say how texts are cut into words; the others choose words for a vocabulary."""

# parameters of CountVectorizer that do not change how it cuts strings into words, or are described
_DESCRIBED = {
    *OPTIONS, "vocabulary", "dtype", "encoding", "decode_error",
}  # fmt: skip


class Limits(NamedTuple):
    """Which words of the documents are kept, as scikit-learn's `CountVectorizer` says it."""

    min_df: int | float = 1
    """Least number of documents with the word, or their share as a float."""
    max_df: int | float = 1.0
    """Largest number of documents with the word, or their share as a float."""
    max_features: int | None = None
    """Number of words at most, those with most tokens; None keeps all."""


class Cutter(NamedTuple):
    """How texts are cut into words, and which of these are kept."""

    analyze: Callable[[str], Iterable[str]]
    """Returns the words of a text, in order."""
    vocabulary: tuple[str, ...] | None
    """Words to keep; None for those of the texts, within the limits."""
    limits: Limits
    tokenizer: dict[str, Any]
    """Description of `analyze`, see the module."""


def check_texts(texts: object, *, streamed: bool = False) -> Iterable[str]:
    """Check that texts are strings, at least one; return them as a list.

    If they are `streamed` and their number is not known beforehand, return an iterator that checks
    them one by one.
    """
    if streamed and isinstance(texts, Iterable) and not hasattr(texts, "__len__"):
        return _each_text(texts)
    return list(_each_text(arguments.sequence("texts", texts, "strings, one per document")))


def _each_text(texts: Iterable[Any]) -> Iterator[str]:
    d = -1
    for d, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"texts[{d}] is {text!r} ({type(text).__name__}); give a string, or '' for a "
                "document without words"
            )
        yield text
    if d < 0:
        raise ValueError("texts is empty; give at least one document")


def joined(d: int, names: Iterable[str], parts: Iterable[Any]) -> str:
    """Return the text of document `d`: what its columns `names` have, each on its own lines."""
    return "\n".join(
        arguments.text(f"{name} of document {d}", part, empty=True)
        for name, part in zip(names, parts, strict=True)
    )


def make_cutter(
    vectorizer: Any, vocabulary: Any, texts: Iterable[str] | None, **options: Any
) -> Cutter:
    """Say how texts are cut into words and numbered.

    Parameters
    ----------
    vectorizer
        Anything with the interface of `CountVectorizer`; fitted to the texts unless it has a
        vocabulary already. None makes one from `vocabulary` and `options`.
    texts
        What a vectorizer is fitted to; None if they can be read only once.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    arguments.flag("lowercase", options["lowercase"])
    regex = arguments.pattern("token_pattern", options["token_pattern"])
    limits = Limits(
        arguments.count_or_share("min_df", options["min_df"]),
        arguments.count_or_share("max_df", options["max_df"]),
        arguments.optional(arguments.integer, "max_features", options["max_features"], 1),
    )
    if vectorizer is None:
        stop_words = options["stop_words"]
        if stop_words is not None and not (isinstance(stop_words, str) and stop_words == "english"):
            words = arguments.sequence(
                "stop_words", stop_words, "words, or 'english'", ordered=False
            )
            stop_words = _sorted(map(composed, strings("stop_words", words)))
        if vocabulary is not None:
            words = strings("vocabulary", vocabulary)
            vocabulary = distinct("vocabulary", list(map(composed, words)))
            if not vocabulary:
                raise ValueError("vocabulary is empty; give the words to keep, or leave it out")
        vectorizer = CountVectorizer(
            vocabulary=vocabulary,
            stop_words=stop_words,
            lowercase=options["lowercase"],
            token_pattern=regex,
        )
        if vocabulary is not None:
            vectorizer.fit([""])  # warns of words that can't occur
        tokenizer = _tokenizer(vectorizer) | {"token_pattern": options["token_pattern"]}
        return Cutter(_analyzer(vectorizer), vocabulary, limits, tokenizer)
    if not callable(getattr(vectorizer, "build_analyzer", None)):
        raise ValueError(
            f"vectorizer is {vectorizer!r}; give a CountVectorizer, or any object with its "
            "build_analyzer, fit and vocabulary_"
        )
    if getattr(vectorizer, "binary", False):
        raise ValueError(
            f"vectorizer is {arguments.short_repr(vectorizer)} with binary=True, but a corpus has "
            "every occurrence of a word; give it binary=False"
        )
    changed = [name for name, default in OPTIONS.items() if not _equal(options[name], default)]
    if vocabulary is not None or changed:
        raise ValueError(
            f"{(changed or ['vocabulary'])[0]} is given beside vectorizer, which decides "
            "alone; give it to the vectorizer, or leave vectorizer out"
        )
    if not hasattr(vectorizer, "vocabulary_"):
        _fit(vectorizer, texts)
    words = _words(vectorizer)
    return Cutter(_analyzer(vectorizer), words, limits, _tokenizer(vectorizer))


def composed(text: str) -> str:
    """Write letters with accents as one character, where Unicode has it (NFC).

    The dot that `str.lower` leaves on the i of "İ" goes, so that "İyi" and "iyi" are one word.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.replace("i\u0307", "i"))


def _analyzer(vectorizer: Any) -> Callable[[str], list[str]]:
    """Return a function that cuts a text into composed words."""
    analyze = vectorizer.build_analyzer()
    return lambda text: list(map(composed, analyze(composed(text))))


def _fit(vectorizer: Any, texts: Iterable[str] | None) -> None:
    if texts is None:
        raise ValueError(
            f"vectorizer {arguments.short_repr(vectorizer)} has no vocabulary yet, and with store "
            "the "
            "texts are read only once: fit it before, or leave vectorizer out and give its options"
        )
    try:
        vectorizer.fit(list(map(composed, texts)))
    except ValueError as error:
        raise ValueError(
            f"texts leave no vocabulary ({error}); give more text, fewer stop_words, a lower "
            "min_df or a higher max_df"
        ) from error


def _words(vectorizer: Any) -> tuple[str, ...]:
    """Return the vocabulary of a fitted vectorizer."""
    word_id = getattr(vectorizer, "vocabulary_", None)
    if word_id is None:
        raise ValueError(
            f"vectorizer {vectorizer!r} has no vocabulary; give a CountVectorizer instead"
        )
    words = tuple(sorted(word_id, key=word_id.__getitem__))
    if [int(word_id[word]) for word in words] != list(range(len(words))):
        raise ValueError(
            "vectorizer has a vocabulary_ whose values are not 0, 1, ...; fit it again"
        )
    return distinct("the vocabulary_ of vectorizer", [composed(str(word)) for word in words])


def read_tokenizer(name: str, text: Any) -> dict[str, Any]:
    """Read a tokenizer from JSON and check it; `name` is that of the file or argument."""
    try:
        found = json.loads(text)
        if set(found) == {"vectorizer"}:
            arguments.text("vectorizer", found["vectorizer"])
            return found
        if set(found) != set(READING_OPTIONS):
            raise ValueError(f"its entries are {arguments.short_repr(list(found))}")
        arguments.flag("lowercase", found["lowercase"])
        arguments.pattern("token_pattern", found["token_pattern"])
        arguments.optional(arguments.texts, "stop_words", found["stop_words"])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} has a tokenizer that can't be read: {error}") from None
    return found


def _tokenizer(vectorizer: Any) -> dict[str, Any]:
    """Describe how a vectorizer cuts texts into words."""
    from sklearn.feature_extraction.text import CountVectorizer

    if type(vectorizer) is CountVectorizer:
        options, own = vectorizer.get_params(), CountVectorizer().get_params()
        others = [name for name in own if name not in _DESCRIBED]
        if all(_equal(options[name], own[name]) for name in others):
            stop_words = vectorizer.get_stop_words()
            return {
                "stop_words": None if stop_words is None else _sorted(stop_words),
                "lowercase": bool(options["lowercase"]),
                "token_pattern": options["token_pattern"],
            }
    return {"vectorizer": arguments.short_repr(vectorizer)}


def _sorted(words: Iterable[Any]) -> list[str]:
    """Return the distinct words in order: that of a set differs from process to process."""
    return sorted({str(word) for word in words})


def _equal(value: object, default: object) -> bool:
    """Tell whether an option is its default; arrays and other sequences are not."""
    kinds = str | int | float | tuple
    return value is default or (isinstance(value, kinds) and value == default)
