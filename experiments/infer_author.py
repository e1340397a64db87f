"""How well `infer_author` ranks the authors of held-out abstracts.

    python experiments/infer_author.py --data FOLDER
    python experiments/infer_author.py --data FOLDER --num-topics 50 --alpha 1 --output FILE

Some abstracts of authors who have two or more are held out. Whoever signed such an abstract and has
another one among the rest counts as its author; the best placed of them is ranked. The same states
are read in several ways:

- `infer_author`: the probability of each word is averaged over the states, then multiplied;
- with one chain alone, or times the number of documents of each author;
- `average of documents`: the probability of the whole document is averaged over the states, as
  `infer_author` did before.

Beside them: the cosine of tf-idf centroids of the authors, the number of documents alone, chance.
"""

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from study.files import write_csv

if TYPE_CHECKING:
    from bnp_models import Corpus, Fit

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    num_topics: tuple[int, ...] = (20, 50)
    alpha: float = 0.1  # concentration of authors, per topic
    num_heldout: int = 200
    min_tokens: int = 20  # of a held-out document
    num_chains: int = 4
    sweeps: tuple[int, int] = (150, 150)  # warm-up and sampling
    keep_states: int = 10  # per chain


STANDARD = Settings("standard")
QUICK = Settings(
    "quick", (3,), num_heldout=10, min_tokens=2, num_chains=2, sweeps=(4, 4), keep_states=2
)


def read(settings: Settings, folder: str | None, seed: int) -> "Corpus":
    """Return the abstracts; with `--quick` simulated documents."""
    import bnp_models as bnp
    from bnp_models.data.text_files import read_jsonl

    if settings.size == "quick":
        rng = np.random.default_rng(seed)
        topics, shares = rng.dirichlet(np.full(20, 0.2), 3), rng.dirichlet(np.full(3, 0.3), 12)
        signed = [rng.choice(12, 1 + d % 2, replace=False) for d in range(40)]
        docs = [rng.choice(20, 12, p=shares[who].mean(axis=0) @ topics) for who in signed]
        names = [[f"author {j}" for j in who] for who in signed]
        return bnp.Corpus.from_ids(docs, num_words=20, authors=names)
    if folder is None:
        raise SystemExit("give the folder of the data: --data FOLDER, or BNP_DATA=FOLDER")
    path = Path(folder) / "nips12_abstracts.jsonl.gz"
    corpus = read_jsonl(path, text="abstract", authors="authors", stop_words="english")
    return corpus.prune(min_count=5)


def split(corpus: "Corpus", settings: Settings, seed: int) -> tuple["Corpus", "Corpus"]:
    """Hold out documents of authors who have another one.

    Later ones may take this other document for the sake of another author; `ranks` leaves out
    documents whose authors have no document left.
    """
    ptr, author = np.asarray(corpus.author_ptr), np.asarray(corpus.author_idx)
    left = np.bincount(author, minlength=corpus.num_authors)
    heldout = np.zeros(corpus.num_docs, bool)
    for d in np.random.default_rng(seed).permutation(corpus.num_docs):
        of_doc = author[ptr[d] : ptr[d + 1]]
        enough = corpus.doc_length[d] >= settings.min_tokens and (left[of_doc] >= 2).any()
        if enough and heldout.sum() < settings.num_heldout:
            heldout[d] = True
            left[of_doc] -= 1
    return corpus.select(~heldout), corpus.select(heldout)


def by_documents(fit: "Fit", test: "Corpus", candidates: list[int]) -> np.ndarray:
    """Average the probability of each whole document over the states; return its logarithm."""
    counts, log_prob = test.to_counts(), []
    for state in fit.author_mixtures():
        words = state.mixture.phi[0, 0] @ state.theta[candidates].T
        log_prob.append(counts @ np.log(words, dtype=np.float64))
    return np.logaddexp.reduce(log_prob, axis=0)


def centroids(train: "Corpus", test: "Corpus", candidates: list[int]) -> np.ndarray:
    """Return the cosine of each document with the mean tf-idf vector of each author."""
    counts = train.to_counts().toarray()
    idf = 1 + np.log(train.num_docs / np.maximum((counts > 0).sum(axis=0), 1))
    vectors, new = (_unit(x * idf) for x in (counts, test.to_counts().toarray()))
    ptr = np.asarray(train.author_ptr)
    doc = np.repeat(np.arange(train.num_docs), np.diff(ptr))
    of_author = np.zeros((train.num_authors, train.num_words))
    np.add.at(of_author, np.asarray(train.author_idx), vectors[doc])
    return new @ _unit(of_author[candidates]).T


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def ranks(score: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Rank the best placed true author of each document; ties count half."""
    best = np.where(truth, score, -np.inf).max(axis=1, keepdims=True)
    found = (score > best).sum(axis=1) + ((score == best).sum(axis=1) + 1) / 2
    return found[truth.any(axis=1)]


def measure(corpus: "Corpus", settings: Settings, seed: int) -> Iterator[dict[str, Any]]:
    """Fit the model with each number of topics; yield a row for each way to rank."""
    import bnp_models as bnp

    train, test = split(corpus, settings, seed)
    num_docs = np.bincount(np.asarray(train.author_idx), minlength=train.num_authors)
    candidates = np.flatnonzero(num_docs)
    column = {train.author_names[j]: c for c, j in enumerate(candidates)}
    truth = np.zeros((test.num_docs, len(candidates)), bool)
    for d in range(test.num_docs):
        truth[d, [column[name] for name in test.authors(d) if name in column]] = True

    def row(num_topics: int | None, how: str, score: np.ndarray) -> dict[str, Any]:
        times = len(score) // len(truth)
        rank = ranks(score, np.tile(truth, (times, 1)))
        return {
            "num_topics": num_topics,
            "alpha": None if num_topics is None else settings.alpha,
            "ranked_by": how,
            "top_1": float((rank <= 1).mean()),
            "top_10": float((rank <= 10).mean()),
            "median_rank": float(np.median(rank)),
            "documents": len(rank) // times,
            "candidates": len(candidates),
        }

    random = np.random.default_rng(seed).random((20 * test.num_docs, len(candidates)))
    yield row(None, "chance", random)
    yield row(None, "number of documents", np.tile(num_docs[candidates], (test.num_docs, 1)))
    yield row(None, "tf-idf centroids", centroids(train, test, candidates.tolist()))
    for num_topics in settings.num_topics:
        begun = time.perf_counter()
        model = bnp.AuthorTopicModel(num_topics, alpha=settings.alpha)
        fit = bnp.fit(
            model, train, num_warmup=settings.sweeps[0], num_samples=settings.sweeps[1],
            num_chains=settings.num_chains, keep_states=settings.keep_states, seed=seed,
            progress=False,
        )  # fmt: skip
        print(f"{num_topics} topics: fitted in {time.perf_counter() - begun:.0f} s", flush=True)
        yield row(num_topics, "average of documents", by_documents(fit, test, candidates.tolist()))
        alone = fit.of_chain(0).infer_author(test, list(column)).to_numpy()
        yield row(num_topics, "infer_author, one chain", alone)
        found = fit.infer_author(test, list(column)).to_numpy()
        weighed = found * num_docs[candidates]
        yield row(num_topics, "infer_author, times number of documents", weighed)
        largest = {"largest_probability": float(found.max(axis=1).mean())}
        yield row(num_topics, "infer_author", found) | largest


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description="How well infer_author ranks authors.")
    parser.add_argument("--data", default=os.environ.get("BNP_DATA"), help="default: $BNP_DATA")
    parser.add_argument("--output", type=Path, help="the CSV file")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--seed", type=int, default=0, help="of the split and the chains")
    parser.add_argument("--num-topics", type=int, nargs="+", help="default: 20 50")
    parser.add_argument("--alpha", type=float, help="of the model (default: 0.1)")
    options = parser.parse_args(argv)
    settings = QUICK if options.quick else STANDARD
    if options.num_topics:
        settings = dataclasses.replace(settings, num_topics=tuple(options.num_topics))
    if options.alpha:
        settings = dataclasses.replace(settings, alpha=options.alpha)
    quick = "_quick" if options.quick else ""
    output = options.output or RESULTS / f"infer_author{quick}.csv"
    print(settings)
    corpus = read(settings, options.data, options.seed)
    print(f"{corpus.num_docs} documents, {corpus.num_tokens} tokens, {corpus.num_authors} authors")
    rows = []
    for row in measure(corpus, settings, options.seed):
        print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
        rows.append(row)
        write_csv(output, rows)
    print(f"written: {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
