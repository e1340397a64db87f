"""`SavedModel`: the topics of a fit in one light file, to infer the topics of new documents.

The file has what new documents need: topics and prior weights of the kept states, the vocabulary,
and how texts are cut into words. It has no tokens of the documents that were fitted, no names of
them, and no draws. `fit.save_model(path)` writes it and `bnp_models.load(path)` reads it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from bnp_models.base.model import from_description
from bnp_models.base.token_model import TokenModel
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus
from bnp_models.data.new_texts import read_texts
from bnp_models.data.storage import read_sealed, write_sealed
from bnp_models.data.texts import read_tokenizer
from bnp_models.posterior.alignment import Alignment, InChains, TopicStates, stability
from bnp_models.posterior.intervals import tail_quantiles
from bnp_models.posterior.mixtures import Mixtures
from bnp_models.results.new_documents import over_words, shares_of_new

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SavedModel", "load_model", "save_model"]

SCHEMA = "bnp-model-1"
MAX_WORDS = 100  # of each topic, for its description
FIX = "write it again with fit.save_model"
_ALIGNMENT = ("number", "similarity", "sizes")  # arrays of an `Alignment`
_IN_CHAINS = ("in_chains", "own_place", "similarity_in_chains", "share_in_chains")
_OPTIONAL = ("weights_if_absent", "chain_weight")  # of `Mixtures`
_ARRAYS = (
    "phi", "weights", "chain", "draw", *_ALIGNMENT, "reference", "shown", "top_words", "vocabulary",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SavedModel:
    """Topics of a fit without its documents, as `bnp_models.load` reads them from one file.

    Attributes
    ----------
    model
        The model that was fitted.
    vocabulary
        The words.
    tokenizer
        How texts were cut into words, see `Corpus.tokenizer`.
    mixtures
        Topics and prior weights of the kept states of all chains. The functions of
        `bnp_models.scores.held_out` score new documents with them.
    alignment
        Numbers of the topics in the states of the chain that the tables of the fit show.
    top_words
        The most probable words of each topic [R, N], as positions in the vocabulary.
    reading
        How the data of the run were read from a file; None if the run does not say.
    data
        Digest of the corpus that was fitted.
    versions
        Versions of the software that drew the states.
    labels
        Labels that the user gave to topics, by their numbers.

    Examples
    --------
    >>> path = fit.save_model("topics.npz")  # doctest: +SKIP
    >>> bnp_models.load(path).transform(["a new text"])  # doctest: +SKIP
    """

    model: TokenModel
    vocabulary: tuple[str, ...]
    tokenizer: dict[str, Any] | None
    mixtures: Mixtures
    alignment: Alignment
    top_words: Int[np.ndarray, "R N"]
    reading: dict[str, Any] | None
    data: str
    versions: dict[str, Any]
    labels: dict[int, str]

    def read_texts(self, texts: Any, **options: Any) -> Corpus:
        """Read texts as those of the fit were read, over the same vocabulary.

        `options` are `groups`, `authors`, `doc_names` and so on, as for `Corpus.from_texts`. Groups
        are found by name.

        Raises
        ------
        ValueError
            If the file does not say how its texts were read, or an option is wrong.
        """
        return read_texts(Corpus.from_texts, texts, self.vocabulary, self.tokenizer, **options)

    def match(self, data: Corpus) -> tuple[Corpus, list[str]]:
        """Return new documents over the words of the model, and notes about them for the user."""
        return over_words(as_corpus("data", data), self.vocabulary, self.data)

    def transform(
        self,
        corpus: Corpus | str | Sequence[str],
        *,
        num_sweeps: int = 50,
        num_kept: int = 25,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Infer the topic shares of new documents, averaged over the kept states.

        The table is the one that `transform` of the fit returns, to the last bit on the same
        machine.

        Parameters
        ----------
        corpus
            Texts (one string per document, or a single string), or a `Corpus` over the same
            vocabulary. Where topics differ by group it must be a corpus with groups:
            `saved.read_texts(texts, groups=groups)`.
        num_sweeps, num_kept
            Fold-in sweeps per state, and how many of the last ones are averaged.
        seed
            Seed of the fold-in.

        Returns
        -------
        Table of documents by topics, numbered as in `topics`. Rows sum to at most one; the rest
        belongs to topics without a number.
        """
        return shares_of_new(
            corpus, self.read_texts, self._shown, self._states, self.alignment,
            row_names=self.mixtures.row_names,
            num_sweeps=num_sweeps, num_kept=num_kept, seed=seed,
        )  # fmt: skip

    def topics(self, *, num_words: int = 10, interval: float = 0.9) -> pd.DataFrame:
        """Describe each topic in one row, with the numbers that the table of the fit has.

        Parameters
        ----------
        num_words
            Words per topic, at most 100.
        interval
            Probability that `lower` and `upper` enclose.

        Returns
        -------
        Index: topic. Columns: `label`, if topics have labels; `words`; `prevalence`, `lower`,
        `upper`, the share of the tokens that were fitted; `found`, `other_chains`, `similarity`,
        `lowest_share`, `highest_share`, see `alignment.stability`.
        """
        import pandas as pd

        from bnp_models.results.topic_tables import bounds

        num_words = arguments.integer("num_words", num_words, 1, MAX_WORDS)
        tails, shares = tail_quantiles(interval), self.alignment.shares()
        lower, upper = bounds(self._states, shares, tails)
        words = [", ".join(self.vocabulary[v] for v in row[:num_words]) for row in self.top_words]
        table = stability(self.alignment)
        own = [self.labels.get(k, "") for k in table.index] if self.labels else None
        return pd.DataFrame(
            ({} if own is None else {"label": own})
            | {
                "words": words,
                "prevalence": np.average(shares, axis=0, weights=self._shown.chain_weight),
                "lower": lower,
                "upper": upper,
                **table.drop(columns="share"),
            },
            index=table.index,
        )

    @functools.cached_property
    def _shown(self) -> Mixtures:
        """The states of the chain, or the chains, that the numbers of the topics come from."""
        every = self.mixtures
        kept = np.isin(every.chain, self.alignment.chain)
        if kept.all():
            return every
        absent = every.weights_if_absent
        return every._replace(
            phi=every.phi[kept], weights=every.weights[kept], chain=every.chain[kept],
            draw=every.draw[kept], chain_weight=None,  # a chain alone has no weight
            weights_if_absent=None if absent is None else absent[kept],
        )  # fmt: skip

    @property
    def _states(self) -> TopicStates:
        """The states that tables read; they have no tokens."""
        shown = self._shown
        z, lp = np.zeros((len(shown.chain), 0), np.int32), np.full(len(shown.chain), np.nan)
        return TopicStates(shown, z, shown.chain, shown.draw, lp, weight=shown.chain_weight)

    def __repr__(self) -> str:
        return (
            f"SavedModel({type(self.model).__name__}: {self.alignment.num_topics} topics, "
            f"{len(self.vocabulary)} words, {len(self.mixtures.chain)} states)"
        )


def save_model(fit: Any, path: str | os.PathLike[str]) -> Path:
    """Write what new documents need of a `TopicFit` to a `.npz` file, completely or not at all."""
    path = arguments.path("path", path)
    write_sealed(path, _content(fit), compressed=True)
    return path


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what `save_model` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, or was written by something else.
    """
    path = arguments.path("path", path)
    content = read_sealed(path, FIX, required=False)
    schema = str(content.get("schema"))
    if schema.startswith("bnp-corpus"):
        raise ValueError(f"{path} is a saved corpus; read it with bnp_models.Corpus.load")
    if schema != SCHEMA:
        raise ValueError(
            f"{path} was not written by fit.save_model of this version (schema "
            f"{content.get('schema')}, not {SCHEMA}); {FIX}"
        )
    content = read_sealed(path, FIX, required=True)
    if missing := sorted({*_ARRAYS, "about"} - set(content)):
        raise ValueError(f"{path} lacks {', '.join(missing)}; {FIX}")
    try:
        about = json.loads(str(content["about"]))
        model = from_description(about["model"])
        rows, tokenizer = about["row_names"], about["tokenizer"]
        more = {name: about[name] for name in ("reading", "data", "versions")}
        more["labels"] = {int(number): label for number, label in about["labels"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} can't be read by this version: {error}; {FIX}") from None
    if tokenizer is not None:
        tokenizer = read_tokenizer(str(path), json.dumps(tokenizer))
    chain, draw = content["chain"], content["draw"]
    vocabulary = tuple(content["vocabulary"].tolist())
    mixtures = Mixtures(
        content["phi"], content["weights"], chain, draw, vocabulary,
        None if rows is None else tuple(rows),
        content.get("chain_weight"), content.get("weights_if_absent"),
    )  # fmt: skip
    tables = (content[name] for name in _ALIGNMENT)
    shown, found = np.isin(chain, content["shown"]), None
    if "in_chains" in content:
        found = InChains(*(content[name] for name in _IN_CHAINS))
        found = found._replace(own=int(found.own))
    alignment = Alignment(int(content["reference"]), *tables, chain[shown], draw[shown], found)
    return SavedModel(
        model, vocabulary, tokenizer, mixtures, alignment, content["top_words"], **more
    )


def _content(fit: Any) -> dict[str, np.ndarray]:
    """Return the arrays of the file."""
    shown = fit.shown
    mixtures, alignment = fit.mixtures.stack(), shown.alignment
    attrs, names = fit.data.attrs, mixtures.row_names
    about = {
        "model": fit.model.describe(),
        "row_names": None if names is None else list(names),
        "tokenizer": fit.dataset.tokenizer,
        "reading": json.loads(attrs.get("reading", "null")),
        "data": fit.dataset.digest,
        "versions": json.loads(attrs.get("versions", "{}")),
        "labels": shown._own_labels,
    }
    content = {name: np.asarray(getattr(mixtures, name)) for name in _ARRAYS[:4]}
    for name in _OPTIONAL:
        if (array := getattr(mixtures, name)) is not None:
            content[name] = np.asarray(array)
    content |= {name: np.asarray(getattr(alignment, name)) for name in (*_ALIGNMENT, "reference")}
    if alignment.in_chains is not None:
        content |= dict(zip(_IN_CHAINS, map(np.asarray, alignment.in_chains), strict=True))
    return content | {
        "shown": np.unique(alignment.chain),
        "schema": np.array(SCHEMA),
        "about": np.array(json.dumps(about)),
        "top_words": _top_words(shown),
        "vocabulary": np.array(fit.dataset.vocabulary, np.str_),
    }


def _top_words(fit: Any) -> Int[np.ndarray, "R N"]:
    """Return the most probable words of each topic, out of those that occur."""
    from bnp_models.results.topic_tables import mean_topics

    phi: Float[np.ndarray, "V R"] = mean_topics(fit.topic_states, fit.alignment)
    occurring = np.flatnonzero(np.bincount(np.asarray(fit.dataset.word), minlength=len(phi)))
    order = np.argsort(-phi[occurring], axis=0, kind="stable")[:MAX_WORDS]
    return occurring[order].T
