"""The cells of the study of transfer; data are drawn or read when they are first needed."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, from_topics, later

import bnp_models as bnp
from transfer import data, measures
from transfer.settings import ALONE, TIMED, Settings

__all__ = ["prepare"]


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells."""
    return {}, list(cells(settings, folder))


def cells(s: Settings, folder: str | None) -> Iterator[Cell]:
    """Return all cells, in the order in which they are measured."""

    @cache
    def problem(mixing: float, num_tasks: int, number: int) -> tuple[bnp.Corpus, bnp.Corpus]:
        made = data.continuum(
            mixing, s.seed + number, num_tasks=num_tasks, num_interest=s.num_interest,
            num_test=s.num_test,
        )  # fmt: skip
        return made.train, made.test

    @cache
    def text(part: str) -> bnp.Corpus:
        if folder is None:
            return data.made_up(part, s.seed)
        return (data.newsgroups if part == "newsgroups" else data.nips)(folder)

    def fold_of(part: str, size: int, fold: int) -> tuple[bnp.Corpus, bnp.Corpus]:
        return data.of_interest(
            text(part), data.INTEREST[part], num_interest=size, num_others=s.num_others, fold=fold,
            seed=s.seed,
        )  # fmt: skip

    def timed() -> bnp.Corpus:
        return data.nips(folder, s.speed_words) if folder else text("nips")

    for number, u in itertools.product(range(s.problems), s.mixings):
        again = u == s.start_mixing and number < s.start_splits
        about, both = {"mixing": u, "tasks": s.num_tasks}, partial(problem, u, s.num_tasks, number)
        yield from _fits(s, "continuum", about, both, number, again)
    for number, tasks, u in itertools.product(
        range(s.problems), s.numbers_of_tasks, s.task_mixings
    ):
        both = partial(problem, u, tasks, number)
        yield from _fits(s, "tasks", {"mixing": u, "tasks": tasks}, both, number, False)
    for part, sizes, folds in (
        ("newsgroups", s.newsgroups_sizes, s.newsgroups_folds),
        ("nips", s.nips_sizes, s.nips_folds),
    ):
        for fold, size in itertools.product(range(folds), sizes):
            again = size == s.table_size and fold < s.start_splits
            about, both = {"documents_of_interest": size}, partial(fold_of, part, size, fold)
            yield from _fits(s, part, about, both, fold, again)
    speeds = later(measures.speeds, timed, TIMED, s=s)
    yield Cell("speed", "rates", speeds, "nips12", chain_seed=s.seed)


def _fits(
    s: Settings, part: str, about: Mapping[str, Any],
    both: Callable[[], tuple[bnp.Corpus, bnp.Corpus]], split: int, again: bool,
) -> Iterator[Cell]:  # fmt: skip
    """Return the cells of all methods on the same documents, perhaps from two starts."""
    fits, seed = getattr(s, part), s.seed + split
    for start in (None, s.start) if again else (None,):
        for method in fits.methods:
            if start is not None and method == ALONE:
                continue
            call = later(
                measures.fit_and_score, both, method, part=part, interest=data.INTEREST[part],
                fits=fits, seed=seed, empirical_draws=s.empirical_draws, start=start,
            )  # fmt: skip
            yield Cell(part, method, call, "", about, seed, seed, from_topics(start))
