"""The cells of the study of transfer; data are drawn or read when they are first needed."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, later

from transfer import data, measures, methods
from transfer.settings import ALL, ALONE, MULTI_TASK, TEXT, TIMED, Settings

__all__ = ["prepare"]


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells; say which methods are missing."""
    plan = Plan(settings, folder)
    for method, lacks in plan.missing.items():
        print(f"{method!r} is left out: {lacks}", flush=True)
    return {}, list(plan.cells())


class Plan:
    """The cells of a run."""

    def __init__(self, settings: Settings, folder: str | None):
        self.s, self.folder = settings, folder
        self.missing = methods.left_out(ALL)
        self.problem, self.text = cache(self._problem), cache(self._text)

    def _problem(self, mixing: float, num_tasks: int, number: int) -> tuple[Any, Any]:
        s = self.s
        made = data.continuum(
            mixing, s.seed + number, num_tasks=num_tasks, num_interest=s.num_interest,
            num_test=s.num_test,
        )  # fmt: skip
        return made.train, made.test

    def _text(self, part: str) -> Any:
        if self.folder is None:
            return data.made_up(part, self.s.seed)
        return (data.newsgroups if part == "newsgroups" else data.nips)(self.folder)

    def _fold(self, part: str, size: int, fold: int) -> tuple[Any, Any]:
        return data.of_interest(
            self.text(part), data.INTEREST[part], num_interest=size,
            num_others=self.s.num_others, fold=fold, seed=self.s.seed,
        )  # fmt: skip

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        s = self.s
        for number in range(s.problems):
            for u in s.mixings:
                again = u == s.start_mixing and number < s.start_splits
                yield from self._made_up("continuum", u, s.num_tasks, number, again)
        for number in range(s.problems):
            for tasks in s.numbers_of_tasks:
                for u in s.task_mixings:
                    yield from self._made_up("tasks", u, tasks, number)
        for part, sizes, folds in (
            ("newsgroups", s.newsgroups_sizes, s.newsgroups_folds),
            ("nips", s.nips_sizes, s.nips_folds),
        ):
            for fold in range(folds):
                for size in sizes:
                    yield from self._of_text(part, size, fold)
        call = later(
            measures.speeds, self._timed, [name for name in TIMED if name not in self.missing], s=s
        )
        seconds = 1 if s.size == "quick" else 1200
        yield Cell("speed", "rates", call, "nips12", chain_seed=s.seed, seconds=seconds)

    def _made_up(
        self, part: str, u: float, tasks: int, number: int, again: bool = False
    ) -> Iterator[Cell]:
        others = 8 * (tasks - 1)
        # all problems of this size have the same shapes, so the first of them compiles
        first = number == 0 and u == (self.s.mixings if part == "continuum" else (u,))[0]
        yield from self._fits(
            part, {"mixing": u, "tasks": tasks}, partial(self.problem, u, tasks, number), number,
            (self.s.num_interest, others), 8, first, again,
        )  # fmt: skip

    def _of_text(self, part: str, size: int, fold: int) -> Iterator[Cell]:
        again = size == self.s.table_size and fold < self.s.start_splits
        yield from self._fits(
            part, {"documents_of_interest": size}, partial(self._fold, part, size, fold), fold,
            (size, 4 * self.s.num_others), {"newsgroups": 89, "nips": 932}[part], True, again,
        )  # fmt: skip

    def _fits(
        self, part: str, about: dict[str, Any], both: Callable[[], tuple[Any, Any]], split: int,
        docs: tuple[int, int], length: int, compiles: bool, again: bool,
    ) -> Iterator[Cell]:  # fmt: skip
        """Return the cells of all methods on the same documents, perhaps from two starts.

        `docs` counts those of the task of interest and the other ones, of so many tokens each.
        """
        s, fits = self.s, getattr(self.s, part)
        seeds = {"split_seed": s.seed + split, "chain_seed": s.seed + split}
        for start in (None, s.start) if again else (None,):
            named = "" if start is None else f"from {start} topic{'s' if start > 1 else ''}"
            for method in fits.methods:
                if method in self.missing or (start is not None and method == ALONE):
                    continue
                fitted = docs[0] if method == ALONE else sum(docs)
                call = later(
                    measures.fit_and_score, both, method, part=part,
                    interest=data.INTEREST[part], fits=fits, seed=s.seed + split,
                    empirical_draws=s.empirical_draws, start=start,
                )  # fmt: skip
                yield Cell(
                    part, method, call, detail=about, start=named, **seeds,
                    seconds=_seconds(method, part, length * fitted, fitted, compiles, s),
                )  # fmt: skip

    def _timed(self) -> Any:
        if self.folder is None:
            return data.made_up("nips", self.s.seed)
        return data.nips(self.folder, self.s.speed_words)


def _seconds(
    method: str, part: str, tokens: float, docs: float, compiles: bool, s: Settings
) -> float:
    """Estimate the seconds of a cell, on 2 cores that have nothing else to do.

    Made of a few timed fits of the HDPs; that the sparse models take twice as long is a guess.
    """
    if s.size == "quick":
        return 1.0
    fits, sparse = getattr(s, part), method.startswith("sparse")
    slots = fits.hdp_topics if method == MULTI_TASK else fits.max_topics
    chains = max(fits.num_chains, 2) / 2  # two run side by side
    sweep = 0.002 + chains * (2 if sparse else 1) * (2e-6 * tokens + 6e-8 * docs * slots)
    compiling = 0.0 if not compiles else 25.0 if part in TEXT else 15.0
    scoring = 15.0 if part == "nips" else 5.0 if part == "newsgroups" else 1.5
    return (fits.num_warmup + fits.num_samples) * sweep + compiling + scoring
