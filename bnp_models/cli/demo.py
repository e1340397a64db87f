"""The demo: ten topics of the docstrings of installed Python packages, in about a minute.

The demo shows the usual steps: a corpus without any download, four chains, the topics, convergence
diagnostics and pictures. Its last two sentences say what the chains agree on, and what not.
"""

import contextlib
import dataclasses
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpyro.distributions as dist
import pandas as pd

import bnp_models as bnp
from bnp_models.base.model import Model
from bnp_models.data.package_docs import PLACES, load_package_docs
from bnp_models.posterior.diagnostics import Convergence
from bnp_models.posterior.functionals import Functionals
from bnp_models.report.text import topics_text
from bnp_models.results.folder import REPORT, save_run
from bnp_models.results.result import Fit
from bnp_models.run.progress import Clock, Lines, Progress

__all__ = ["SIZES", "Size", "agreement", "read", "run", "settings", "subject_words", "verdict"]


@dataclasses.dataclass(frozen=True)
class Size:
    """One form of the demo: a model, whose docstrings are read, and options of `fit`."""

    model: Model
    packages: tuple[str, ...]
    options: dict[str, Any]


_LDA = bnp.LDA(10, alpha=dist.Gamma(1.0, 1.0), beta=dist.Gamma(1.0, 10.0))
SIZES = {
    "usual": Size(
        _LDA,
        tuple(PLACES),
        {
            "num_warmup": 600, "num_samples": 200, "num_chains": 4, "keep_states": 10,
            "schedule": "parallel", "start_temperature": 1.5,
        },
    ),
    "hdp": Size(
        bnp.HDPLDA(beta=0.5, max_topics=64),  # enough slots: adding some compiles again
        tuple(PLACES),
        {
            "num_warmup": 150, "num_samples": 50, "num_chains": 4, "keep_states": 10,
            "schedule": "parallel", "init_topics": 10,
        },
    ),
    "quick": Size(
        _LDA,
        ("numpyro", "optax"),
        {"num_warmup": 10, "num_samples": 10, "num_chains": 2, "keep_states": 5},
    ),
}  # fmt: skip
"""The forms of the demo by name."""
LEAST_REPEATED = 1.7
"""Words that occur less often than this in a document that has them are not of its subject."""
WORDS = {"min_df": 10, "max_df": 0.12}
MIN_TOKENS = 15  # shorter documents are dropped
NUM_ROWS = 25  # topics that are printed; topics.csv has all
SILENCE = 3.0  # seconds between lines about the chains


def settings() -> dict[str, Any]:
    """Return all that decides what the demo finds, but for the installed packages, as JSON can."""
    usual = SIZES["usual"]
    return {
        "version": bnp.__version__,
        "model": usual.model.describe(),
        "packages": list(usual.packages),
        "options": usual.options,
        "words": {"least_repeated": LEAST_REPEATED, "min_tokens": MIN_TOKENS, **WORDS},
    }


def read(size: str = "usual") -> bnp.Corpus:
    """Read the docstrings of installed packages, reduced to words that tell subjects.

    Parameters
    ----------
    size
        Key of `SIZES`.
    """
    with _busy("Reading the docstrings of installed packages ..."):
        corpus = subject_words(load_package_docs(SIZES[size].packages))
    print(
        f"{corpus.num_docs:,} functions and classes of {', '.join(corpus.group_names)}: "
        f"{corpus.num_tokens:,} words, {corpus.num_words:,} different ones.",
        flush=True,
    )
    return corpus


@contextlib.contextmanager
def _busy(what: str) -> Iterator[None]:
    """Say what is being done, and from time to time for how long."""
    print(what, flush=True)
    clock = Clock(lambda seconds: print(f"{what} {seconds:.0f} s", flush=True), SILENCE)
    try:
        yield
    finally:
        clock.stop()


def subject_words(corpus: bnp.Corpus) -> bnp.Corpus:
    """Keep the words that come back where they occur, and documents that still have some.

    A document that is about filters repeats "filter". Words of any docstring, such as "resulting"
    or "respectively", occur in many documents, once in each.
    """
    counts = corpus.to_counts()
    num_docs = np.bincount(counts.indices, minlength=corpus.num_words)
    repeated = np.asarray(counts.sum(axis=0)).ravel() / np.maximum(num_docs, 1)
    kept = np.flatnonzero(repeated >= LEAST_REPEATED)
    corpus = corpus.with_vocabulary([corpus.vocabulary[v] for v in kept]).prune(**WORDS)
    return corpus.select(corpus.doc_length >= MIN_TOKENS)


def run(
    corpus: bnp.Corpus, output: Path, *, size: str = "usual", progress: bool | Progress = True
) -> None:
    """Fit, print the results and write them to a folder.

    Parameters
    ----------
    corpus
        What `read` returned.
    output
        Folder for draws, tables and pictures.
    size
        Key of `SIZES`.
    progress
        As in `fit`.
    """
    model, how = SIZES[size].model, SIZES[size].options
    start = time.perf_counter()
    print(
        f"{how['num_chains']} chains of {type(model).__name__}: {how['num_warmup']} sweeps of "
        f"warm-up, then {how['num_samples']}.\n",
        flush=True,
    )
    if isinstance(progress, Lines):
        progress.begin()
    fit = bnp.fit(model, corpus, **how, progress=progress)
    sampled = time.perf_counter()
    others = fit.shown.alignment.num_others
    print(f"\n{topics_text(fit.topics(), num_others=others, num_rows=NUM_ROWS)}\n", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    with _busy("Writing tables and pictures ..."):
        save_run(fit, output)
    done = time.perf_counter()
    print(
        f"Chains: {sampled - start:.0f} s, of which compiling: "
        f"{fit.data.attrs['compile_seconds']:.0f} s. Tables and pictures: {done - sampled:.0f} s.\n"
        f"In {output}: draws.nc (for ArviZ), corpus.npz, report.txt, tables (.csv), "
        f"pictures (.png).\nOpen {output / REPORT} in a browser.\n"
    )
    for sentence in verdict(fit):
        print(textwrap.fill(sentence, 100), flush=True)


def verdict(fit: Fit) -> tuple[str, str]:
    """Say in one sentence what the chains agree on, and in another one what not."""
    chains = fit.posterior.sizes["chain"]
    return agreement(fit.topics(num_words=3), fit.convergence(), fit.functionals(), chains)


def agreement(
    table: pd.DataFrame, judged: Convergence, compared: Functionals, chains: int
) -> tuple[str, str]:
    """Return the sentences of `verdict`, from `fit.topics()` and what was found of the chains."""
    share, others, alike = (
        table[name].to_numpy() for name in ("prevalence", "other_chains", "similarity")
    )
    most = chains // 2 + 1
    found = others + 1 >= most
    sure = (
        f"What is sure: {found.sum()} of {len(table)} topics, with {share[found].sum():.0%} of the "
        f"words, are in at least {most} of the {chains} chains ({(others + 1 == chains).sum()} in "
        f"all {chains})"
    )
    kinds = compared.summary
    if "document pairs" in kinds.index:
        apart, pairs = kinds.loc[["document pairs"], ["median_range", "number"]].to_numpy()[0]
        sure += (
            ", and the probability that words of two documents share a topic differs between "
            f"chains by {apart:.2f} (the median of {pairs:.0f} pairs)"
        )
    if judged.passed:
        return f"{sure}.", (
            "What is not: shares of topics and words are known up to their intervals in the tables."
        )
    unsure = f"What is not: the chains have not converged ({judged.verdict})"
    if not found.all():
        few, rest = int((~found).sum()), share[~found].sum()
        topics, are = ("topic", "is") if few == 1 else ("topics", "are")
        unsure += f", {few} {topics} with {rest:.0%} of the words {are} in fewer chains"
    unsure += ", and another seed gives other shares and other words further down the lists"
    if found.any():
        unlike = int(np.argmin(np.where(found, alike, np.inf)))
        words = table["words"].to_list()[unlike]
        unsure += f", most of all in topic {table.index[unlike]} ({words})"
    return f"{sure}.", f"{unsure}."
