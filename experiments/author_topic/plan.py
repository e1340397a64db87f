"""The cells of the study of author-topic models; data are read when they are first needed."""

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, later
from study.splits import Halves, halves

from author_topic import measures
from author_topic.settings import (
    ALONE,
    ATM,
    GENSIM,
    INFERRED,
    LDA,
    PER_TOPIC,
    TOMOTOPY,
    Settings,
    start_name,
)

__all__ = ["Plan", "prepare"]

FINITE = (LDA, ATM)


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells."""
    return {}, list(Plan(settings, folder, output).cells())


class Plan:
    """The cells of a run, all of the first split first."""

    def __init__(self, settings: Settings, folder: str | None, output: Path):
        self.s, self.output = settings, output
        self.corpus = cache(partial(measures.load, settings, folder))
        self.split = cache(self._split)
        self.seeds = range(settings.seed, settings.seed + settings.splits)

    def _split(self, seed: int) -> Halves:
        return halves(self.corpus(), self.s.test_share, seed)

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        for part in (self._fits, self._long, self._peers, self._curves):
            for seed in self.seeds:
                yield from part(seed)

    def _cell(
        self, part: str, method: str, measure: Callable[..., Any], seed: int,
        start: str = "", detail: dict[str, Any] | None = None, **options: Any,
    ) -> Cell:  # fmt: skip
        """Return a cell that measures on the documents of a split."""
        options = {"settings": self.s, **options}
        call = later(measure, partial(self.split, seed), seed=seed, **options)
        return Cell(part, method, call, "", detail or {}, seed, seed, start)

    def _fit(
        self, part: str, settings: Settings, seed: int, name: str, topics: int | None,
        first: int = 0, *, per_topic: bool = False,
    ) -> Cell:  # fmt: skip
        """Return the cell of a fit; see `measures.fit`."""
        about: dict[str, Any] = {"topics_asked": topics or INFERRED}
        about |= {"alpha": PER_TOPIC} if per_topic else {}
        named = (self.output.stem, part, name, topics, first, per_topic, seed)
        return self._cell(
            part, name, measures.fit, seed, start_name(first) if first else "", about, name=name,
            topics=topics, first=first, per_topic=per_topic, settings=settings,
            folder=self.output.with_name("." + ".".join(map(str, named))),
        )  # fmt: skip

    def _fits(self, seed: int) -> Iterator[Cell]:
        s = self.s
        yield self._cell("fit", "unigram", measures.one_word_distribution, seed)

        fit = partial(self._fit, "fit", s, seed)
        yield from (fit(m, k) for k in s.topics for m in FINITE)
        yield from (fit(m, k, per_topic=True) for k in s.per_topic for m in FINITE)
        both = seed < s.seed + s.start_splits
        for first in s.starts if both else s.starts[:1]:
            yield from (fit(m, None, first) for m in s.infinite)

    def _long(self, seed: int) -> Iterator[Cell]:
        """Return the cells of longer chains, and of authors without topics beside them."""
        s = self.s
        if seed >= s.seed + s.long_splits:
            return
        longer = dataclasses.replace(
            s, num_warmup=s.long_warmup, num_samples=s.long_samples, keep_states=s.long_states,
            max_topics=s.long_max_topics,
        )  # fmt: skip
        finite, inferred = s.long_starts
        wanted = [(m, k, finite) for m, topics in s.long_topics for k in topics]
        wanted += [(m, None, inferred) for m in s.infinite]
        fit = partial(self._fit, "long", longer, seed)
        yield from (fit(m, k, first) for m, k, starts in wanted for first in starts)
        for start in ("", "from first authors"):
            yield self._cell(
                "long", ALONE, measures.authors_alone, seed, start, {"topics_asked": INFERRED},
                settings=longer, signed_first=bool(start),
            )  # fmt: skip

    def _peers(self, seed: int) -> Iterator[Cell]:
        """Return the cells of peers, those that are not installed left out."""
        for k in self.s.gensim_topics if importlib.util.find_spec("gensim") else ():
            about = {"topics_asked": k}
            yield self._cell("peers", GENSIM, measures.gensim, seed, detail=about, topics=k)
        about = {"topics_asked": INFERRED}
        for first in self.s.tomotopy_starts if importlib.util.find_spec("tomotopy") else ():
            start, measure = start_name(first), measures.tomotopy_hdp
            yield self._cell("peers", TOMOTOPY, measure, seed, start, about, first=first)

    def _curves(self, seed: int) -> Iterator[Cell]:
        for schedule, chains in self.s.curves:
            how = {"schedule": schedule, "chains": chains}
            about = {"topics_asked": self.s.curve_topics, **how}
            yield self._cell("curve", ATM, measures.curve, seed, detail=about, **how)
