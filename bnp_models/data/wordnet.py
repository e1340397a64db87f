r"""Path similarity of words in WordNet, read through NLTK, which is an optional dependency.

The similarity of two synsets is $1 / (1 + d)$, where d is the least number of steps from one up to
a common hypernym and down to the other. Nouns and verbs have hypernyms; adjectives and adverbs have
none, so d is 0 or there is no path. Of two words, take the best over their synsets.
"""

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from bnp_models.data.word_relations import Block, rows_of_block

__all__ = ["FOLDER", "open_wordnet", "path_similarities"]

FOLDER = Path("/usr/share/wordnet")
"""Where Debian's package `wordnet-base` puts the dictionary files."""
_HOW = (
    "install the dictionary files with `apt install wordnet-base` or "
    "`python -c \"import nltk; nltk.download('wordnet')\"`, or give the folder that has them"
)


@contextlib.contextmanager
def open_wordnet(folder: Path | None) -> Iterator[Any]:
    """Open the dictionary files of a folder; by default those of the system, else NLTK's own.

    Raises
    ------
    ValueError
        If NLTK or the files are missing.
    """
    try:
        import nltk  # pyright: ignore[reportMissingImports]
        from nltk.corpus.reader import wordnet  # pyright: ignore[reportMissingImports]
    except (ImportError, LookupError):  # LookupError: NLTK 3.9.0 can't be imported without its data
        raise ValueError(
            "from_wordnet needs NLTK 3.9.1 or newer, which is missing: pip install "
            "'bnp-models[wordnet]'"
        ) from None
    if folder is None and not (FOLDER / "data.noun").is_file():
        try:
            nltk.corpus.wordnet.ensure_loaded()
        except LookupError:
            raise ValueError(
                f"folder is None, and there is no WordNet in {FOLDER}: {_HOW}"
            ) from None
        yield nltk.corpus.wordnet
        return
    folder = (FOLDER if folder is None else folder).resolve()
    if not (folder / "data.noun").is_file():
        raise ValueError(f"folder {str(folder)!r} has no file data.noun of WordNet: {_HOW}")

    opened: list[Any] = []

    class Reader(wordnet.WordNetCorpusReader):
        """WordNet in a folder as Debian has it: without `lexnames`, and without NLTK's own copy."""

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (folder / file).exists():
                # NLTK numbers the 45 files of the lexicographers; no similarity needs their names
                return io.StringIO("".join(f"{i:02d} unknown 0\n" for i in range(45)))
            opened.append(super().open(file))
            return opened[-1]

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the map to NLTK's own copy, which may be missing; other languages need it."""

    # NLTK 3.10 reads files only in folders that are registered like this
    nltk.data.path.append(str(folder))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions are not available")
            try:
                reader = Reader(str(folder), None)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"folder {str(folder)!r} is incomplete ({error}): {_HOW}"
                ) from None
        yield reader
    finally:
        nltk.data.path.remove(str(folder))
        for file in opened:  # NLTK leaves them open
            file.close()


def path_similarities(
    reader: Any, vocabulary: Sequence[str], top: int, threshold: float
) -> Iterator[Block]:
    """Compute the similarities of each word that can be among its `top` largest, its own included.

    The others, and those below `threshold`, become zero. Words are looked up in lower case and by
    their base form ("dogs" as "dog"). A word that WordNet lacks is related with itself only, by 1.
    """
    levels = _levels(reader, vocabulary)
    farthest = 2 * (len(levels) - 1)
    if threshold > 0:
        farthest = min(farthest, int(1 / threshold - 1 + 1e-9))
    num_words = len(vocabulary)
    rows = rows_of_block(num_words)
    for first in range(0, num_words, rows):
        scores = np.zeros((min(rows, num_words - first), num_words))
        row = np.arange(len(scores))
        scores[row, first + row] = 1.0
        for distance in range(farthest + 1):
            # words with many relations are done early; the rest of them costs the most time
            row = np.flatnonzero((scores > 0).sum(axis=1) < top)
            near = np.zeros((len(row), num_words), bool)
            for up in range(max(0, distance + 1 - len(levels)), min(distance + 1, len(levels))):
                near[(levels[up][first + row] @ levels[distance - up].T).nonzero()] = True
            scores[row] = np.where(near & (scores[row] == 0), 1 / (1 + distance), scores[row])
        yield first, scores


def _levels(reader: Any, vocabulary: Sequence[str]) -> list[scipy.sparse.csr_array]:
    """Return matrices [V, synsets], one per n: 1 where a hypernym is n steps above a word."""
    parents: dict[Any, list[Any]] = {}
    number: dict[Any, int] = {}
    found: list[tuple[list[int], list[int]]] = []
    for v, word in enumerate(vocabulary):
        reached: set[Any] = set()
        front = set(reader.synsets(word.lower().replace(" ", "_")))
        steps = 0
        while front:
            if steps == len(found):
                found.append(([], []))
            found[steps][0].extend([v] * len(front))
            found[steps][1].extend(number.setdefault(synset, len(number)) for synset in front)
            reached |= front
            for synset in [synset for synset in front if synset not in parents]:
                parents[synset] = [*synset.hypernyms(), *synset.instance_hypernyms()]
            front = {parent for synset in front for parent in parents[synset]} - reached
            steps += 1
    shape = len(vocabulary), max(len(number), 1)
    return [
        scipy.sparse.csr_array((np.ones(len(row), np.int32), (row, column)), shape=shape)
        for row, column in found or [([], [])]
    ]
