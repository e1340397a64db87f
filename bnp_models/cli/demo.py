"""The demo: topics of the docstrings of installed Python packages, in about two minutes.

The demo shows the usual steps: a corpus without any download, four chains, the topics, convergence
diagnostics, a held-out score and pictures. Two minutes are enough to look at the topics, but too
short for convergence. The demo prints what the diagnostics say.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

import bnp_models as bnp
from bnp_models.data.package_docs import PLACES, load_package_docs
from bnp_models.results.folder import REPORT, save_run
from bnp_models.run.progress import Progress

__all__ = ["MODEL", "PACKAGES", "SIZES", "run", "unigram_perplexity"]

SIZES: dict[str, dict[str, Any]] = {
    "long": {
        "num_warmup": 100, "num_samples": 100, "thinning": 2, "num_chains": 4, "keep_states": 5,
    },
    "quick": {
        "num_warmup": 10, "num_samples": 10, "thinning": 1, "num_chains": 2, "keep_states": 5,
    },
}  # fmt: skip
"""Options of `fit`."""
PACKAGES = {"long": tuple(PLACES), "quick": ("numpyro", "optax")}
"""Whose docstrings are read."""
MODEL = bnp.HDPLDA(beta=0.05, max_topics=384)  # enough slots: adding some compiles again
TEST_SHARE = 0.1  # share of the documents that is held out
NUM_ROWS = 25  # topics that are printed; topics.csv has all


def run(output: Path, *, size: str = "long", progress: bool | Progress = True) -> None:
    """Run the demo: print the results and write them to a folder.

    Parameters
    ----------
    output
        Folder for draws, tables and pictures.
    size
        "long", or "quick" for a look at the form of the results.
    progress
        As in `fit`.
    """
    how = SIZES[size]
    num_warmup, num_samples, thinning = how["num_warmup"], how["num_samples"], how["thinning"]
    start = time.perf_counter()
    corpus = load_package_docs(PACKAGES[size])
    train, test = corpus.train_test_split(TEST_SHARE, stratify=True)
    print(
        f"{corpus.num_docs} functions and classes of {', '.join(corpus.group_names)}: "
        f"{corpus.num_tokens} words of their docstrings, {corpus.num_words} different ones.\n"
        f"{how['num_chains']} chains of an HDP topic model: {num_warmup} sweeps of warm-up, "
        f"{num_samples}, of which one in {thinning} is kept.\n",
        flush=True,
    )
    loaded = time.perf_counter()
    fit = bnp.fit(MODEL, train, **how, progress=progress)
    sampled = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    test.save(output / "test.npz")
    print(f"\n{save_run(fit, output, num_rows=NUM_ROWS)}\n", flush=True)
    score = fit.document_completion(test)
    heldout = test.halves()[1]  # the half that `document_completion` holds out
    print(
        f"Held out, one half of each of {test.num_docs} new documents given the other half:\n"
        f"{score}\nWithout topics, from the frequencies of the words alone: perplexity "
        f"{unigram_perplexity(train, heldout):.2f}.\n"
    )
    if not fit.convergence().passed:
        longer = f"--num-warmup {10 * num_warmup} --num-samples {10 * num_samples}"
        print(
            f"These chains ran for {sampled - loaded:.0f} seconds. For results to rely on, run "
            f"longer:\n    bnp-models fit HDPLDA {output / 'corpus.npz'} --beta {MODEL.beta:g} \\\n"
            f"        {longer} --thinning {10 * thinning} --output {output}-long\n"
        )
    done = time.perf_counter()
    print(
        f"{done - start:.0f} s: corpus {loaded - start:.0f}, chains {sampled - loaded:.0f} "
        f"(compiling: {fit.data.attrs['compile_seconds']:.0f}), tables, pictures and score "
        f"{done - sampled:.0f}.\nIn {output}: draws.nc (for ArviZ), report.txt, tables (.csv), "
        f"pictures (.png), corpora (.npz).\nOpen {output / REPORT} in a browser."
    )


def unigram_perplexity(train: bnp.Corpus, test: bnp.Corpus) -> float:
    """Return the perplexity under the training frequencies of words, with one added to each."""
    count = np.bincount(np.asarray(train.word), minlength=train.num_words) + 1.0
    log_share = np.log(count / count.sum())
    return float(np.exp(-log_share[np.asarray(test.word)].mean()))
