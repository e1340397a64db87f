"""LDA, the author-topic model and their nonparametric forms: scores, and gensim beside them.

    python experiments/author_topic.py --data FOLDER

Bleier's article leaves open how well its model predicts. Which of the models predicts best, and
does inferring the number of topics cost anything? Test documents are split into halves; the first
halves are fitted together with all other documents, the second ones are predicted: by LDA and the
HDP from the words of the first half, by the author-topic models from the authors. What Rosen-Zvi,
Griffiths, Steyvers and Smyth (UAI 2004) found is tried as well: how many words of a document are
its authors worth? The speed of the models is part of `benchmarks/speed.py`.
"""

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import author_claims
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["STUDY", "Settings", "main"]

FINITE = ("LDA", "AuthorTopicModel")
PARTS = ("unigram", "fit", "gensim", "curve", "words")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    num_docs: int | None = 400  # those of the most prolific authors; None: all
    min_count: int = 10  # rarer words are dropped
    test_share: float = 0.2
    topics: tuple[int, ...] = (25, 50, 100, 200, 400)
    infinite: tuple[str, ...] = ("HDPLDA", "NonparametricAuthorTopicModel")
    beta: float = 0.01
    sampled: bool = True  # the other concentrations; else fixed
    starts: tuple[int, ...] = (100, 10)  # topics at the start of the infinite models
    num_chains: int = 4
    num_warmup: int = 250
    num_samples: int = 250
    schedule: str | None = None  # None: the default one of each model
    keep_states: int = 5  # per chain
    max_topics: int = 288  # room enough from the start: to grow is to compile again
    curve_topics: int = 50
    curves: tuple[tuple[str, int], ...] = (("parallel", 4), ("sequential", 4), ("parallel", 1))
    curve_seconds: float = 60.0  # of sweeps (ours) or passes (gensim)
    curve_points: int = 12
    chunks: tuple[int, ...] = (50, 2000)  # documents between two updates of gensim; 2000: default
    words_topics: int = 50
    words: tuple[int, ...] = (0, 1, 4, 16, 64, 256)  # seen of a document; (): not tried


STANDARD = Settings("standard")
FULL = Settings(
    "full", num_docs=None, starts=(400, 10), num_warmup=1500, num_samples=1500, keep_states=10,
    curve_topics=100, curve_seconds=600.0, curve_points=18, words_topics=100,
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, num_docs=40, topics=(4,), infinite=("NonparametricAuthorTopicModel",),
    beta=0.1, sampled=False, starts=(4,), num_chains=2, num_warmup=4, num_samples=6,
    schedule="sequential", keep_states=2, max_topics=32, curve_topics=4,
    curves=(("sequential", 2),), curve_seconds=0.05, curve_points=2, chunks=(2000,), words=(),
)  # fmt: skip
"""One program for each model serves everything, because compiling takes most of the time."""

# For the estimates, on 2 cores with 4 chains: nanoseconds of a token, more of them for each topic
# (100 where their number is inferred), and seconds of compiling
_COST = {"LDA": (50, 0.4, 8), "AuthorTopicModel": (55, 1.0, 10)}
_COST_INFERRED = (400, 5.0, 40)
_TOKENS = {"quick": 1e3, "standard": 4.6e5, "full": 2.1e6}  # of the documents fitted


def cells(s: Settings, data: Any, output: Path) -> Iterator[Cell]:
    """Return what is measured, in order; gensim's is left out where that is not installed."""
    import author_measures as measures
    from study.peers import gensim_authors

    def cell(part: str, method: str, call: Any, seconds: float, start: str = "", **about) -> Cell:
        seeds = {"split_seed": s.seed, "chain_seed": s.seed}
        return Cell(part, method, call, detail=about, start=start, seconds=seconds, **seeds)

    def checkpoint(*names: Any) -> Path:
        return output.with_name(f".{output.stem}.{'.'.join(map(str, names))}")

    def fit_seconds(method: str, topics: int = 100) -> float:
        first, more, compiling = _COST.get(method, _COST_INFERRED)
        work = s.num_chains * (s.num_warmup + s.num_samples) * _TOKENS[s.size]
        return work * (first + more * topics) * 1e-9 + compiling + 5

    unigram = partial(measures.one_word_distribution, settings=s, data=data)
    yield cell("unigram", "unigram", partial(unigram, data.together), 1)
    alone = "training documents alone"  # as in the part "words"
    yield cell("unigram", "unigram", partial(unigram, data.train), 1, fitted=alone)
    for k in s.topics:
        for m in FINITE:
            call = partial(measures.fit, m, k, 0, s, data, checkpoint("fit", m, k))
            yield cell("fit", m, call, fit_seconds(m, k), topics_asked=k)
    for first in s.starts:
        for m in s.infinite:
            call = partial(measures.fit, m, None, first, s, data, checkpoint("fit", m, first))
            start = f"from {first} topics"
            yield cell("fit", m, call, fit_seconds(m), start, topics_asked="inferred")
    for k in s.topics if importlib.util.find_spec("gensim") else ():
        for n in s.chunks:
            call = partial(
                gensim_authors, data.together, data.heldout, topics=k, chunk=n, beta=s.beta,
                seconds=s.curve_seconds, points=s.curve_points, seed=s.seed,
            )  # fmt: skip
            about = {"topics_asked": k, "documents_per_update": n}
            yield cell("gensim", "gensim's AuthorTopicModel", call, 1.1 * s.curve_seconds, **about)
    for schedule, chains in s.curves:
        call = partial(measures.curve, schedule, chains, s, data)
        about = {"topics_asked": s.curve_topics, "schedule": schedule, "chains": chains}
        yield cell("curve", "AuthorTopicModel", call, 10 + 1.1 * s.curve_seconds, **about)
    for m in FINITE if s.words else ():
        call = partial(measures.words, m, s, data, checkpoint("words", m))
        seconds = fit_seconds(m, s.words_topics)
        yield cell("words", m, call, seconds, topics_asked=s.words_topics)


def prepare(settings: Settings, folder: str | None, output: Path) -> Any:
    """Read and split the documents; return their description and the cells."""
    import author_measures
    from study.splits import halves

    corpus = author_measures.load(settings, folder)
    data = halves(corpus, settings.test_share, settings.seed)
    sizes = {
        "documents": data.together.num_docs,
        "tokens": data.together.num_tokens + data.heldout.num_tokens,
        "words": data.together.num_words,
        "authors": data.together.num_authors,
        "test documents": data.heldout.num_docs,
    }
    tokens = data.heldout.doc_length.tolist()
    head = {"data": data.together.digest, "sizes": sizes, "heldout_tokens": tokens}
    return head, list(cells(settings, data, output))


STUDY = Study(
    name="author_topic",
    title="LDA, the author-topic model and their nonparametric forms.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=prepare,
    report=author_claims.report,
    modules=[Path(__file__).with_name("author_measures.py")],
    data_files=dict.fromkeys(PARTS, "nips12.npz"),
    may_change=("cores", "topics", "starts", "chunks", "curves"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
