"""LDA, the author-topic model and their nonparametric forms: scores, and peers beside them.

    python experiments/author_topic.py --data FOLDER

Bleier's article leaves open how well its model predicts. Does inferring the number of topics cost
anything, and what does it gain? Rosen-Zvi, Griffiths, Steyvers and Smyth (UAI 2004) ask how many
words of a document its authors are worth. The second halves of test documents are predicted in two
conditions: LDA and the HDP see some words of the first half, the author-topic models know the
authors. No part of a test document is ever fitted. gensim's author-topic model and tomotopy's HDP
stand beside ours.
"""

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import author_report
from author_settings import (
    ATM,
    FULL,
    GENSIM,
    INFERRED,
    LDA,
    PARTS,
    PER_TOPIC,
    QUICK,
    STANDARD,
    TOMOTOPY,
    Settings,
    start_name,
)
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["FULL", "PARTS", "QUICK", "STANDARD", "STUDY", "main"]

FINITE = (LDA, ATM)
# For the estimates, on 2 cores: nanoseconds of a token, more of them for each topic
_COST = {LDA: (12, 0.45), ATM: (12, 1.0)}
_COST_INFERRED = (1000, 0.0)
_TOKENS = {"quick": 1e3, "standard": 4.1e5, "full": 1.8e6}  # of the training documents


class Plan:
    """The cells of a run, all of the first split first; data are read when they are needed."""

    def __init__(self, settings: Settings, folder: str | None, output: Path):
        self.s, self.folder, self.output = settings, folder, output
        self.corpus, self.split = cache(self._corpus), cache(self._split)
        self.seeds = range(settings.seed, settings.seed + settings.splits)

    def _corpus(self) -> Any:
        import author_measures

        return author_measures.load(self.s, self.folder)

    def _split(self, seed: int) -> Any:
        from study.splits import halves

        return halves(self.corpus(), self.s.test_share, seed)

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        for seed in self.seeds:
            yield from self._fits(seed)
        for seed in self.seeds:
            yield from self._peers(seed)
        for seed in self.seeds:
            yield from self._curves(seed)

    def _cell(
        self, part: str, method: str, measure: str, seed: int, seconds: float, start: str = "",
        detail: dict[str, Any] | None = None, **options: Any,
    ) -> Cell:  # fmt: skip
        """Return a cell that calls the method `measure` of this plan."""
        call = partial(getattr(self, measure), seed=seed, **options)
        seconds = 1.0 if self.s.size == "quick" else seconds
        return Cell(part, method, call, "", detail or {}, seed, seed, start, seconds)

    def _fits(self, seed: int) -> Iterator[Cell]:
        s = self.s
        yield self._cell("fit", "unigram", "unigram", seed, 2)
        plans = [(k, m, False) for k in s.topics for m in FINITE]
        plans += [(k, m, True) for k in s.per_topic for m in FINITE]
        for k, m, per_topic in plans:
            about = {"topics_asked": k} | ({"alpha": PER_TOPIC} if per_topic else {})
            yield self._cell(
                "fit", m, "fit", seed, self._seconds(m, k), detail=about, name=m, topics=k,
                per_topic=per_topic,
            )  # fmt: skip
        both = seed < s.seed + s.start_splits
        for first in s.starts if both else s.starts[:1]:
            for m in s.infinite:
                yield self._cell(
                    "fit", m, "fit", seed, self._seconds(m), start_name(first),
                    {"topics_asked": INFERRED}, name=m, topics=None, first=first,
                )  # fmt: skip

    def _peers(self, seed: int) -> Iterator[Cell]:
        """Return the cells of peers, those that are not installed left out."""
        s = self.s
        for k in s.gensim_topics if importlib.util.find_spec("gensim") else ():
            seconds = 1.15 * s.tune_seconds * (len(s.etas) * len(s.chunks) + 1)
            about = {"topics_asked": k}
            yield self._cell("peers", GENSIM, "gensim", seed, seconds, detail=about, topics=k)
        for first in s.tomotopy_starts if importlib.util.find_spec("tomotopy") else ():
            tokens = _TOKENS[s.size] * (s.num_warmup + s.num_samples)
            yield self._cell(
                "peers", TOMOTOPY, "tomotopy", seed, tokens / 2e6, start_name(first),
                {"topics_asked": INFERRED}, first=first,
            )  # fmt: skip

    def _curves(self, seed: int) -> Iterator[Cell]:
        s = self.s
        for schedule, chains in s.curves:
            about = {"topics_asked": s.curve_topics, "schedule": schedule, "chains": chains}
            yield self._cell(
                "curve", ATM, "curve", seed, 15 + 1.1 * s.curve_seconds, detail=about,
                schedule=schedule, num_chains=chains,
            )  # fmt: skip

    def _seconds(self, method: str, topics: int = 0) -> float:
        """Estimate the seconds of a fit and its scores."""
        first, more = _COST.get(method, _COST_INFERRED)
        work = self.s.num_chains * (self.s.num_warmup + self.s.num_samples) * _TOKENS[self.s.size]
        return work * (first + more * topics) * 1e-9 + 20

    def unigram(self, seed: int) -> dict[str, Any]:
        """Score one word distribution for all documents."""
        import author_measures

        return author_measures.one_word_distribution(self.split(seed), self.s.beta)

    def fit(self, seed: int, name: str, topics: int | None, **options: Any) -> dict[str, Any]:
        """Fit one of our models."""
        import author_measures

        named = name, topics, *options.values(), seed
        folder = self.output.with_name(f".{self.output.stem}.{'.'.join(map(str, named))}")
        return author_measures.fit(
            self.split(seed), name, topics=topics, settings=self.s, seed=seed, folder=folder,
            **options,
        )  # fmt: skip

    def gensim(self, seed: int, topics: int) -> dict[str, Any]:
        """Tune and train gensim's author-topic model."""
        from study.peers import tuned_gensim

        s, data = self.s, self.split(seed)
        return tuned_gensim(
            data.train, data.heldout, topics=topics, etas=s.etas, chunks=s.chunks,
            validation_share=s.validation_share, seconds=s.tune_seconds, points=s.tune_points,
            seed=seed,
        )  # fmt: skip

    def tomotopy(self, seed: int, first: int) -> dict[str, Any]:
        """Train tomotopy's HDP."""
        import author_measures

        return author_measures.tomotopy_hdp(
            self.split(seed), first=first, settings=self.s, seed=seed
        )

    def curve(self, seed: int, schedule: str, num_chains: int) -> dict[str, Any]:
        """Follow our author-topic model."""
        import author_measures

        return author_measures.curve(self.split(seed), schedule, num_chains, self.s, seed)


def prepare(settings: Settings, folder: str | None, output: Path) -> Any:
    """Return the head of the run, and its cells."""
    return {}, list(Plan(settings, folder, output).cells())


_HERE = Path(__file__)
STUDY = Study(
    name="author_topic",
    title="LDA, the author-topic model and their nonparametric forms.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=prepare,
    report=author_report.report,
    modules=[_HERE.with_name("author_measures.py"),
             *(_HERE.parent / "benchmarks" / f"{name}.py"
               for name in ("bags", "completion", "systems"))],
    data_files=dict.fromkeys(PARTS, "nips12.npz"),
    may_change=("cores", "splits", "topics", "per_topic", "infinite", "start_splits",
                "gensim_topics", "tomotopy_starts", "curves"),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    parser = parser_of(STUDY)
    parser.add_argument("--splits", type=int, help="how many divisions into training and test")
    arguments = parser.parse_args(argv)
    study = STUDY
    if arguments.splits is not None:
        number = {"splits": arguments.splits}
        sizes = {name: dataclasses.replace(s, **number) for name, s in STUDY.settings.items()}
        study = STUDY._replace(settings=sizes)
    return run_study(study, arguments)


if __name__ == "__main__":
    sys.exit(main())
