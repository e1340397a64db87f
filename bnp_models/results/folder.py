"""Files of fits: the folder of a run, and one light file of topics, the `SavedModel`.

The folder has draws, data, tables, pictures and a report. The light file has what new documents
need: topics and prior weights of the kept states, the vocabulary, and how texts are cut into words.
It has no tokens of the documents that were fitted, no names of them, and no draws. Of a model with
covariates it has those of the documents that were fitted, for they say how columns are made.
`fit.save_model(path)` writes it. `bnp_models.load(path)` reads either.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bnp_kernels.tokens.mixture_law import LAWS
from bnp_models.base.model import from_description
from bnp_models.base.token_model import TokenModel
from bnp_models.data import arguments
from bnp_models.data.corpus import Corpus, as_corpus, read_texts
from bnp_models.data.covariates import pack_covariates, unpack_covariates
from bnp_models.data.files import csv_text, replacing
from bnp_models.data.storage import (
    is_mapped_corpus,
    read_sealed,
    save_data,
    saved_data,
    write_sealed,
)
from bnp_models.data.texts import read_tokenizer
from bnp_models.posterior.alignment import Alignment, InChains, TopicStates, stability
from bnp_models.posterior.mixtures import Mixtures
from bnp_models.report.pictures import png, run_pictures
from bnp_models.results.document_tables import over_words, shares_of_new
from bnp_models.results.result import Fit, interval_columns, put_together, read_draws

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["REPORT", "SavedModel", "load", "load_run", "save_model", "save_picture", "save_run"]

DRAWS = "draws.nc"
REPORT = "report.html"
SCHEMA = "bnp-model-3"
MAX_WORDS = 100  # of each topic, for its description
FIX = "write it again with fit.save_model"


def save_run(fit: Fit, folder: Path, *, num_rows: int | None = None) -> str:
    """Write draws, data, tables and pictures, and return the report on the model and the chains.

    The files are `draws.nc`, the data (in a folder if they are mapped), `convergence.csv`,
    `report.txt`, `report.html`, and the tables and pictures of `fit.summaries()`. Each is written
    whole or not at all. In tables, text that a spreadsheet would take for a formula begins with an
    apostrophe.

    Parameters
    ----------
    fit
        What to write.
    folder
        An existing folder.
    num_rows
        How many topics or factors the returned report shows; the files have all.
    """
    from bnp_models.report.page import write_page

    arguments.instance("fit", fit, Fit, "what bnp_models.fit returns")
    folder = arguments.path("folder", folder)
    arguments.optional(arguments.integer, "num_rows", num_rows, 1)
    fit.save(folder / DRAWS)  # first, so that a failure below loses no draw
    save_data(fit.dataset, folder / fit.model.readers.file)
    judged = fit.convergence()
    _write(csv_text(judged.table).encode("utf-8"), folder / "convergence.csv")
    parts, whole = [str(judged)], [str(judged)]
    if "compile_seconds" in fit.data.attrs:  # not where `MCMC` drew
        whole.append(
            "The chains ran for {sampling_seconds:.1f} s, of which compiling took "
            "{compile_seconds:.1f} s.".format(**fit.data.attrs)
        )
    tables, text, drawn = fit.summaries()
    for name, table in tables.items():
        _write(csv_text(table).encode("utf-8"), folder / f"{name}.csv")
    if text is not None:
        parts.insert(0, text(num_rows))
        whole.insert(0, text(None))
    _write(("\n\n".join(whole) + "\n").encode("utf-8"), folder / "report.txt")
    pictures = {name: png(axes) for name, axes in run_pictures(fit, drawn).items()}
    for name, content in pictures.items():
        _write(content, folder / f"{name}.png")
    write_page(fit, folder / REPORT, pictures=pictures)
    return "\n\n".join(parts)


def save_picture(axes: Axes | np.ndarray, path: Path) -> None:
    """Write the figure of some axes as PNG, completely or not at all, and close it."""
    _write(png(axes), path)


def _write(content: bytes, path: Path) -> None:
    with replacing(path) as file:
        file.write(content)


def load_run(folder: Path) -> Any:
    """Read the fit that `save_run` wrote.

    Raises
    ------
    ValueError
        If the folder holds no such run, or its files do not belong together.
    """
    folder = arguments.path("folder", folder)
    _check_file(folder, DRAWS)
    model, draws = read_draws(folder / DRAWS)
    path = saved_data(folder / model.readers.file)
    _check_file(folder, path.name)
    data = model.load_data(path)
    return put_together(folder / DRAWS, model, draws, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fit from the folder of a run, or a `SavedModel` from one light file.

    Reading runs no code from the file.

    Parameters
    ----------
    path
        The --output folder of `bnp-models fit`, or what `fit.save_model` wrote.

    Returns
    -------
    What `fit` returned, such as a `TopicFit`; or a `SavedModel`, which has the topics and
    `transform` but no documents.

    Raises
    ------
    ValueError
        If there is no such folder or file, it is damaged, or something else is in it.

    Examples
    --------
    >>> bnp_models.load("run").topics()  # doctest: +SKIP
    >>> bnp_models.load("topics.npz").transform(["a new text"])  # doctest: +SKIP
    """
    path = arguments.path("path", path)
    if is_mapped_corpus(path):
        raise ValueError(f"{path} is a saved corpus; read it with bnp_models.Corpus.load")
    if path.is_dir():
        return load_run(path)
    if not path.is_file():
        raise ValueError(
            "path must be the folder of a run or a file that fit.save_model wrote, there is no "
            f"{path}"
        )
    with open(path, "rb") as file:
        start = file.read(4)
    if start in (b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05"):
        raise ValueError(
            f"{path} has the draws of a fit, but not its data: bnp_models.Fit.load(path, data) "
            "takes both, or give load the folder of the run"
        )
    if start[:2] != b"PK" and path.suffix != ".npz":  # a damaged file has that name
        raise ValueError(
            f"{path} is no fit: give the folder that `bnp-models fit DATA --output FOLDER` or a "
            "checkpoint wrote, or a file of fit.save_model"
        )
    return _load_model(path)


def _check_file(folder: Path, name: str) -> None:
    if (folder / "header.json").is_file() and not (folder / name).exists():
        raise ValueError(
            f"{folder} is the checkpoint of a run: bnp_models.resume({str(folder)!r}) finishes the "
            "run, or reads it if it is finished"
        )
    if not (folder / name).exists():
        raise ValueError(
            f"{folder} holds no finished run: {name} is missing. Give the --output folder of "
            "`bnp-models fit`; an interrupted run is finished by `bnp-models resume`"
        )


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
        return read_texts(texts, self.vocabulary, self.tokenizer, **options)

    def match(self, data: Corpus) -> tuple[Corpus, list[str]]:
        """Return new documents over the words of the model, and notes about them for the user."""
        return over_words(as_corpus("data", data), self.vocabulary, self.data)

    def transform(
        self,
        corpus: Corpus | str | Sequence[str],
        *,
        covariates: pd.DataFrame | Mapping[str, Any] | None = None,
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
        covariates
            Those of the texts, a row for each, for a model with covariates. A corpus has its own.
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
            row_names=self.mixtures.row_names, covariates=covariates,
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

        num_words = arguments.integer("num_words", num_words, 1, MAX_WORDS)
        words = [", ".join(self.vocabulary[v] for v in row[:num_words]) for row in self.top_words]
        table = stability(self.alignment)
        own = [self.labels.get(k, "") for k in table.index] if self.labels else None
        return pd.DataFrame(
            ({} if own is None else {"label": own})
            | {
                "words": words,
                **interval_columns(
                    "prevalence", self.alignment.shares(), interval, self._shown.chain_weight
                ),
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
        return every._select(kept)._replace(chain_weight=None)  # a chain alone has no weight

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


def save_model(fit: Fit, path: str | os.PathLike[str]) -> Path:
    """Write what new documents need of a `TopicFit` to a `.npz` file, completely or not at all."""
    path = arguments.path("path", path)
    shown, mixtures = fit.shown, fit.mixtures.stack()
    if shown._topic_parts:
        raise ValueError(
            "fit must have its topics as they were drawn, for a model keeps no merged topics and "
            "leaves none out: save the model of the fit before merge_topics or drop_topics, or "
            "this fit with save(path)"
        )
    about = {
        "model": fit.model.describe(),
        "tokenizer": fit.dataset.tokenizer,
        "reading": json.loads(fit.data.attrs.get("reading", "null")),
        "data": fit.dataset.digest,
        "versions": json.loads(fit.data.attrs.get("versions", "{}")),
        "labels": shown._own_labels,
    }
    columns_of: Any = mixtures.columns_of
    plain = mixtures._replace(vocabulary=fit.dataset.vocabulary, law=None, columns_of=None)
    content = {
        "schema": np.array(SCHEMA),
        "about": np.array(json.dumps(about)),
        "top_words": _top_words(shown),
        **_arrays("mixtures", plain),
        **_arrays(f"law/{type(mixtures.law).__name__}", mixtures.law),
        **_arrays("alignment", shown.alignment._replace(in_chains=None)),
        **_arrays("in_chains", shown.alignment.in_chains),
        **({} if columns_of is None else pack_covariates(columns_of.covariates)),
    }
    write_sealed(path, content, compressed=True)
    return path


def _load_model(path: Path) -> SavedModel:
    """Read what `save_model` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, or was written by something else.
    """
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
    law = next((key.split("/")[1] for key in content if key.startswith("law/")), "DirichletLaw")
    needed = {"about", "top_words", "mixtures/vocabulary", f"law/{law}/weights"}
    for name, kind in (("mixtures", Mixtures), ("alignment", Alignment)):
        needed |= {f"{name}/{n}" for n in kind._fields if n not in kind._field_defaults}
    needed.remove("mixtures/law")
    if missing := sorted(needed - set(content)):
        raise ValueError(f"{path} lacks {', '.join(missing)}; {FIX}")
    try:
        about = json.loads(str(content["about"]))
        about["model"] = from_description(about["model"])
        about["labels"] = {int(number): label for number, label in about["labels"].items()}
        if about["tokenizer"] is not None:
            about["tokenizer"] = read_tokenizer(str(path), json.dumps(about["tokenizer"]))
        made = LAWS[law](**_fields(content, f"law/{law}"))
        mixtures = Mixtures(law=made, **_fields(content, "mixtures"))
        if mixtures.coefficients is not None:
            frame = unpack_covariates(path, content, len(content["covariates_0"]))
            columns = about["model"].columns_of_covariates(frame)
            mixtures = mixtures._replace(columns_of=columns.of_docs)
        alignment = Alignment(**_fields(content, "alignment"))
        if in_chains := _fields(content, "in_chains"):
            alignment = alignment._replace(in_chains=InChains(**in_chains))
        return SavedModel(
            vocabulary=mixtures.vocabulary or (), mixtures=mixtures, alignment=alignment,
            top_words=content["top_words"], **about,
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} can't be read by this version: {error}; {FIX}") from None


def _arrays(prefix: str, value: NamedTuple | None) -> dict[str, np.ndarray]:
    """Return the fields of a named tuple that are not None, as arrays of a file."""
    fields = {} if value is None else value._asdict()
    return {f"{prefix}/{n}": np.asarray(x) for n, x in fields.items() if x is not None}


def _fields(content: dict[str, np.ndarray], prefix: str) -> dict[str, Any]:
    """Return what `_arrays` was given: arrays, integers, and tuples of texts."""
    found: dict[str, Any] = {}
    for name, array in content.items():
        if name.startswith(f"{prefix}/"):
            plain = array if array.ndim else int(array)
            texts = array.dtype.kind == "U"
            found[name.removeprefix(f"{prefix}/")] = tuple(array.tolist()) if texts else plain
    return found


def _top_words(fit: Fit) -> Int[np.ndarray, "R N"]:
    """Return the most probable words of each topic, out of those that occur."""
    from bnp_models.results.topic_draws import mean_topics

    phi: Float[np.ndarray, "V R"] = mean_topics(fit.topic_states, fit.alignment)
    occurring = np.flatnonzero(np.bincount(np.asarray(fit.dataset.word), minlength=len(phi)))
    order = np.argsort(-phi[occurring], axis=0, kind="stable")[:MAX_WORDS]
    return occurring[order].T
