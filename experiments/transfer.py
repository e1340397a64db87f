"""Transfer of topics between tasks: a sparse model, an HDP of several tasks, an HDP of one task.

    python experiments/transfer.py --data FOLDER --parts continuum

Faisal, Gillberg, Leen and Peltonen (Neurocomputing 2013) say that a model in which tasks share
weak topics predicts new documents of a small task better than the HDP of several tasks, unless
there are many tasks. Made-up problems, newsgroups and sections of NIPS are tried, as in the paper.
All methods of a part make as many sweeps, from as many starts.
"""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import transfer_report
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["STUDY", "Settings", "main"]

PARTS = ("continuum", "tasks", "newsgroups", "nips", "speed")
TEXT = ("newsgroups", "nips")
ALL = ("sparse transfer", "sparse transfer, Taylor", "multi-task HDP", "HDP alone")
NO_TAYLOR = (ALL[0], *ALL[2:])
TWO = (ALL[0], ALL[2])  # one task does not change when others are added
TIMED = ("HDP alone", "multi-task HDP", "sparse transfer")  # the first here of all tasks as one


@dataclasses.dataclass(frozen=True)
class Fits:
    """How the methods of a part are fitted. The paper's has one chain from a random start."""

    methods: tuple[str, ...]
    num_warmup: int
    num_samples: int
    max_topics: int  # enough from the start: to grow is to compile again
    hdp_topics: int  # the same of the multi-task HDP: its priors ask for many free slots
    num_chains: int = 2
    keep_states: int = 25  # per chain, evenly spaced over the samples


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. With `FULL` they are the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    empirical_draws: int = 200  # pseudo-documents of each kept state
    # continuum: mixing coefficients and problems
    continuum: Fits = Fits(ALL, 500, 500, 96, 1024)
    mixings: tuple[float, ...] = tuple(u / 8 for u in range(9))
    num_tasks: int = 10
    problems: int = 10
    num_interest: int = 24
    num_test: int = 100
    # numbers of tasks; those of `num_tasks` are in "continuum"
    tasks: Fits = Fits(TWO, 500, 500, 64, 1024)
    numbers_of_tasks: tuple[int, ...] = (2, 5, 20, 30)  # one task has nothing to share
    task_mixings: tuple[float, ...] = (0.25, 0.5, 1.0)
    # text: documents of the task of interest, and of each other task
    newsgroups: Fits = Fits(ALL, 200, 200, 64, 640, keep_states=10)
    newsgroups_sizes: tuple[int, ...] = (5, 10, 40)
    newsgroups_folds: int = 5
    nips: Fits = Fits(NO_TAYLOR, 100, 50, 224, 1024, keep_states=10)
    nips_sizes: tuple[int, ...] = (5, 10, 40)
    nips_folds: int = 3  # of five
    num_others: int = 50
    # other starts: topics at the start, splits that are fitted again, and where
    start: int = 1
    start_splits: int = 3
    start_mixing: float = 0.5
    table_size: int = 10  # documents of interest, here and in the paper's table 2
    # speed
    speed_schedules: tuple[str, ...] = ("parallel", "sequential")
    speed_chains: tuple[int, ...] = (1, 4)
    speed_topics: int = 100  # at the start
    speed_slots: int = 384  # as many for all: the multi-task HDP keeps more of them free
    speed_beta: float = 0.05
    speed_words: int | None = None  # None: all
    speed_warmup: int = 5
    speed_seconds: float = 5.0  # of a turn
    speed_turns: int = 7


STANDARD = Settings("standard")
FULL = Settings(
    "full", empirical_draws=1000,
    continuum=Fits(ALL, 1500, 1500, 96, 1024, num_chains=1, keep_states=100),
    tasks=Fits(TWO, 1500, 1500, 64, 1024, num_chains=1, keep_states=100),
    numbers_of_tasks=(2, 3, 5, 7, 15, 20, 25, 30),
    newsgroups=Fits(ALL, 1000, 500, 64, 640, num_chains=1, keep_states=10),
    newsgroups_sizes=(5, 10, 15, 20, 25, 30, 35, 40),
    nips=Fits(ALL, 1000, 500, 224, 1024, num_chains=1, keep_states=10),
    nips_sizes=(5, 10, 15, 20, 25, 30, 35, 40), nips_folds=5,
)  # fmt: skip
TINY = Fits(NO_TAYLOR, 3, 4, 64, 640, keep_states=2)
QUICK = Settings(
    "quick", cores=1, empirical_draws=20, continuum=TINY, mixings=(0.25, 0.5), num_tasks=2,
    problems=2, num_interest=5, num_test=6, tasks=dataclasses.replace(TINY, methods=TWO),
    numbers_of_tasks=(3,), task_mixings=(0.25,), newsgroups=TINY, newsgroups_sizes=(5,),
    newsgroups_folds=1, nips=TINY, nips_sizes=(5,), nips_folds=1, num_others=8, start_splits=1,
    table_size=5, speed_schedules=("sequential",), speed_chains=(1,), speed_topics=4,
    speed_slots=64, speed_warmup=1, speed_seconds=0.01, speed_turns=2,
)  # fmt: skip


class Plan:
    """The cells of a run; data are drawn or read when they are first needed."""

    def __init__(self, settings: Settings, folder: str | None):
        import transfer_methods

        self.s, self.folder = settings, folder
        self.missing = transfer_methods.left_out(ALL)
        self.problem = cache(self._problem)
        self.text = cache(self._text)

    def _problem(self, mixing: float, num_tasks: int, number: int) -> tuple[Any, Any]:
        from transfer_data import continuum

        s = self.s
        made = continuum(
            mixing, s.seed + number, num_tasks=num_tasks, num_interest=s.num_interest,
            num_test=s.num_test,
        )  # fmt: skip
        return made.train, made.test

    def _text(self, part: str) -> Any:
        import transfer_data as data

        if self.folder is None:
            return data.made_up(part, self.s.seed)
        return (data.newsgroups if part == "newsgroups" else data.nips)(self.folder)

    def _fold(self, part: str, size: int, fold: int) -> tuple[Any, Any]:
        from transfer_data import INTEREST, of_interest

        return of_interest(
            self.text(part), INTEREST[part], num_interest=size, num_others=self.s.num_others,
            fold=fold, seed=self.s.seed,
        )  # fmt: skip

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        s = self.s
        for number in range(s.problems):
            for u in s.mixings:
                yield from self._made_up("continuum", u, s.num_tasks, number)
                if u == s.start_mixing and number < s.start_splits:
                    yield from self._made_up("continuum", u, s.num_tasks, number, s.start)
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
                    if size == s.table_size and fold < s.start_splits:
                        yield from self._of_text(part, size, fold, s.start)
        yield Cell(
            "speed", "rates", self._speeds, "nips12", chain_seed=s.seed,
            seconds=1 if s.size == "quick" else 1200,
        )  # fmt: skip

    def _made_up(
        self, part: str, u: float, tasks: int, number: int, start: int | None = None
    ) -> Iterator[Cell]:
        about = {"mixing": u, "tasks": tasks}
        docs = self.s.num_interest + 8 * (tasks - 1)
        data = partial(self.problem, u, tasks, number)
        # all problems of this size have the same shapes, so the first of them compiles
        first = number == 0 and u == (self.s.mixings if part == "continuum" else (u,))[0]
        yield from self._fits(part, about, data, number, docs, 8, start, first)

    def _of_text(self, part: str, size: int, fold: int, start: int | None = None) -> Iterator[Cell]:
        about = {"documents_of_interest": size}
        docs, length = size + 4 * self.s.num_others, {"newsgroups": 89, "nips": 932}[part]
        data = partial(self._fold, part, size, fold)
        yield from self._fits(part, about, data, fold, docs, length, start, True)

    def _fits(
        self, part: str, about: dict[str, Any], data: Any, split: int, docs: int, length: int,
        start: int | None, compiles: bool,
    ) -> Iterator[Cell]:  # fmt: skip
        """Return the cells of all methods on the same documents, which `data` makes."""
        import transfer_measures as measures
        from transfer_data import INTEREST

        s, fits = self.s, getattr(self.s, part)
        for method in fits.methods:
            alone = method == "HDP alone"
            if method in self.missing or (start is not None and alone):
                continue

            fitted = docs - self._others(about) if alone else docs

            def call(method: str = method) -> Any:
                train, test = data()
                return measures.fit_and_score(
                    method, train, test, part=part, interest=INTEREST[part], fits=fits,
                    seed=s.seed + split, empirical_draws=s.empirical_draws, start=start,
                )  # fmt: skip

            yield Cell(
                part, method, call, detail=about, split_seed=s.seed + split,
                chain_seed=s.seed + split,
                start="" if start is None else f"from {start} topic{'s' if start > 1 else ''}",
                seconds=_seconds(method, part, length * fitted, fitted, compiles, s),
            )  # fmt: skip

    def _others(self, about: dict[str, Any]) -> int:
        """Return the number of fitted documents that are not of the task of interest."""
        return 8 * (about["tasks"] - 1) if "tasks" in about else 4 * self.s.num_others

    def _speeds(self) -> Any:
        import transfer_data as data
        import transfer_measures as measures

        s = self.s
        if self.folder is None:
            corpus = data.made_up("nips", s.seed)
        else:
            corpus = data.nips(self.folder, s.speed_words)
        methods = [name for name in TIMED if name not in self.missing]
        return measures.speeds(corpus, methods, s=s)


def _seconds(
    method: str, part: str, tokens: float, docs: float, compiles: bool, s: Settings
) -> float:
    """Estimate the seconds of a cell, on 2 cores that have nothing else to do.

    Made of a few timed fits of the HDPs; that the sparse models take twice as long is a guess.
    """
    if s.size == "quick":
        return 1.0
    fits, sparse = getattr(s, part), method.startswith("sparse")
    slots = fits.hdp_topics if method == "multi-task HDP" else fits.max_topics
    chains = max(fits.num_chains, 2) / 2  # two run side by side
    sweep = 0.002 + chains * (2 if sparse else 1) * (2e-6 * tokens + 6e-8 * docs * slots)
    compiling = 0.0 if not compiles else 25.0 if part in TEXT else 15.0
    scoring = 15.0 if part == "nips" else 5.0 if part == "newsgroups" else 1.5
    return (fits.num_warmup + fits.num_samples) * sweep + compiling + scoring


def prepare(settings: Settings, folder: str | None, output: Path) -> Any:
    """Return the head of the run, and its cells; say which methods are not there."""
    plan = Plan(settings, folder)
    for method, lacks in plan.missing.items():
        print(f"{method!r} is left out: {lacks}", flush=True)
    return {}, list(plan.cells())


STUDY = Study(
    name="transfer",
    title="Transfer of topics between tasks.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=prepare,
    report=transfer_report.report,
    modules=[Path(__file__).with_name(f"transfer_{name}.py")
             for name in ("data", "measures", "methods")],
    data_files={"newsgroups": "news20_comp.npz", "nips": "nips12.npz", "speed": "nips12.npz"},
    may_change=(
        "cores", "mixings", "problems", "numbers_of_tasks", "task_mixings", "newsgroups_sizes",
        "newsgroups_folds", "nips_sizes", "nips_folds", "start_splits", "table_size",
    ),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    parser = parser_of(STUDY)
    parser.add_argument(
        "--size",
        choices=("standard", "paper"),
        default="standard",
        help="paper: the same as --full",
    )
    arguments = parser.parse_args(argv)
    arguments.full |= arguments.size == "paper" and not arguments.quick
    return run_study(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(main())
