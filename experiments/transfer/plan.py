"""The cells of the study of transfer; data are drawn or read when they are first needed."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, from_topics, later

import bnp_models as bnp
from transfer import data, measures
from transfer.settings import TIMED, TRUTH, Settings

__all__ = ["prepare"]


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells."""
    return {}, list(cells(settings, folder))


def cells(s: Settings, folder: str | None) -> Iterator[Cell]:
    """Return all cells, in the order in which they are measured."""

    @cache
    def problem(mixing: float, num_tasks: int, number: int) -> data.Problem:
        return data.continuum(
            mixing, s.seed + number, num_tasks=num_tasks, num_interest=s.num_interest,
            num_test=s.num_test,
        )  # fmt: skip

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

    made_up = [
        (number, part, u)
        for part, mixings, problems in (
            ("causes", s.cause_mixings, s.problems),
            ("denser", s.dense_mixings, s.dense_problems),
            ("continuum", s.mixings, s.problems),
        )
        for number, u in itertools.product(range(problems), mixings)
    ]
    for number, part, u in made_up:
        about, both = {"mixing": u, "tasks": s.num_tasks}, partial(problem, u, s.num_tasks, number)
        yield from _fits(s, part, about, both, number)
    for number, u in itertools.product(range(s.start_splits), s.dense_mixings):
        about, both = {"mixing": u, "tasks": s.num_tasks}, partial(problem, u, s.num_tasks, number)
        yield from _fits(s, "truth", about, both, number)
    for part, problems, numbers in (
        ("denser-tasks", s.dense_problems, s.numbers_of_denser_tasks),
        ("tasks", s.problems, s.numbers_of_tasks),
    ):
        for number, tasks, u in itertools.product(range(problems), numbers, s.task_mixings):
            both = partial(problem, u, tasks, number)
            yield from _fits(s, part, {"mixing": u, "tasks": tasks}, both, number)
    for part, sizes, folds in (
        ("newsgroups", s.newsgroups_sizes, s.newsgroups_folds),
        ("nips", s.nips_sizes, s.nips_folds),
    ):
        for fold, size in itertools.product(range(folds), sizes):
            about, both = {"documents_of_interest": size}, partial(fold_of, part, size, fold)
            yield from _fits(s, part, about, both, fold)
    speeds = later(measures.speeds, timed, TIMED, s=s)
    yield Cell("speed", "rates", speeds, "nips12", chain_seed=s.seed)


def _fits(
    s: Settings, part: str, about: Mapping[str, Any],
    both: Callable[[], data.Problem | tuple[bnp.Corpus, bnp.Corpus]], split: int,
) -> Iterator[Cell]:  # fmt: skip
    """Return the cells of all methods on the same documents; two starts in the first splits."""
    fits, seed = getattr(s, part.replace("-", "_")), s.seed + split
    starts = (None, s.start) if split < s.start_splits else (None,)
    for start in (TRUTH,) if part == "truth" else starts:
        for method in fits.methods:
            call = later(
                measures.fit_and_score, both, method, part=part, interest=data.INTEREST[part],
                fits=fits, seed=seed, empirical_draws=s.empirical_draws, start=start,
            )  # fmt: skip
            name = TRUTH if start == TRUTH else from_topics(start)
            yield Cell(part, method, call, "", about, seed, seed, name)
