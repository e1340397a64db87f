"""Supervised topic models on 20 Newsgroups: logistic and max-margin, and what came before them.

    python experiments/supervised.py --data FOLDER --parts binary

Zhu, Zheng and Zhang (ACL 2013) say that supervised LDA classifies well once the likelihood of the
labels is taken to a power c, and that Gibbs sampling is faster than variational inference. Two
newsgroups are told apart, and twenty, one against the rest. The paper trains for 100 sweeps (40
with twenty classes) from a random start, and predicts with the last state. So do its rows here.
Parameters called "tuned" were chosen on validation documents, a fifth of the training documents.
"""

import dataclasses
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import supervised_report
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["STUDY", "Settings", "main"]

PARTS = ("binary", "variational", "classes", "burn_in", "c", "alpha", "tomotopy", "speed")
FILE = "news20_bow.npz"

# Methods of the two classes: how they are trained, and parameters; None: tuned
BINARY = {
    "gSLDA": ("logistic", {"c": 1.0}),
    "gSLDA+": ("logistic", {"c": 25.0}),
    "gSLDA tuned": ("logistic", None),
    "MedLDA": ("hinge", {"c": 1.0, "ell": 164.0}),
    "MedLDA tuned": ("hinge", None),
    "gMedLDA tuned": ("expected hinge", None),
    "gLDA+SVM": ("svm", {}),
    "gLDA+SVM tuned": ("svm", None),
}
VARIATIONAL = {
    "vSLDA": ("variational logistic", {"c": 1.0}),
    "vSLDA tuned": ("variational logistic", None),
    "vMedLDA tuned": ("variational hinge", None),
}
CLASSES = {
    "gSLDA": ("logistic", {"c": 1.0}),
    "gSLDA+": ("logistic", {"c": 256.0}),
    "MedLDA": ("hinge", {"c": 1.0, "ell": 64.0}),
    "gMedLDA": ("expected hinge", {"c": 1.0, "ell": 64.0}),
    "MedLDA tuned": ("hinge", None),
    "gMedLDA tuned": ("expected hinge", None),
    "gLDA+SVM": ("svm", {}),
    "gLDA+SVM, C=100": ("svm", {"svm_c": 100.0}),
    "vSLDA": ("variational logistic", {"c": 1.0}),
    "vMedLDA": ("variational hinge", {"c": 1.0, "ell": 4.0}),
}
CLASS_MARGINS = ((1.0, 64.0), (1.0, 1000.0), (16.0, 16.0), (64.0, 16.0))
MARGINS = ((1.0, 1.0), (1.0, 16.0), (1.0, 64.0), (1.0, 164.0), (16.0, 1.0), (16.0, 16.0))


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. The mass of alpha is its sum over topics, `a` in the paper."""

    size: str
    cores: int = 2
    seed: int = 0
    seeds: int = 5  # random starts
    mass: float = 1.0
    beta: float = 0.01
    sweeps: int = 100
    states: int = 10  # that predictions are averaged over, in the second half of the sweeps
    fold_in: int = 50  # sweeps over a new document
    fold_in_kept: int = 25
    methods: tuple[str, ...] = (*BINARY, *VARIATIONAL)
    # binary
    topics: tuple[int, ...] = (5, 10, 20, 30)
    validation: float = 0.2
    validation_splits: int = 3
    tuned_topics: int = 20
    tried_c: tuple[float, ...] = (1.0, 9.0, 25.0, 64.0, 100.0)
    tried_margins: tuple[tuple[float, float], ...] = MARGINS  # c and ell
    tried_svm_c: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    # variational
    variational_topics: tuple[int, ...] = (5, 20)
    variational_seeds: int = 5
    variational_splits: int = 1
    variational_c: tuple[float, ...] = (9.0, 25.0)
    variational_margins: tuple[tuple[float, float], ...] = ((4.0, 1.0), (16.0, 1.0), (16.0, 4.0))
    steps: int = 400
    batch_size: int = 32
    learning_rate: float = 0.1
    # twenty classes
    class_methods: tuple[str, ...] = tuple(CLASSES)
    class_topics: tuple[int, ...] = (20,)
    class_share: float = 0.25  # of the documents of each class, training and test
    class_seeds: int = 5
    class_variational_seeds: int = 1
    class_steps: int = 100  # of 32 documents: a pass over a quarter of them
    class_sweeps: int = 40
    class_mass: float = 5.6
    class_margins: tuple[tuple[float, float], ...] = CLASS_MARGINS
    class_states: int = 2
    class_fold_in: int = 20
    class_fold_in_kept: int = 10
    class_marks: tuple[int, ...] = (1, 5, 10, 20)  # other numbers of sweeps
    class_mark_seeds: int = 2
    piece_topics: tuple[int, ...] = (20, 30, 40, 50)
    piece_turns: int = 3
    # burn-in, c, alpha
    marks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200)
    mark_topics: tuple[int, ...] = (10, 20, 30)
    mark_schedules: tuple[str, ...] = ("parallel", "sequential")  # the second for the middle K
    roots_of_c: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    c_topics: tuple[int, ...] = (5, 10, 20)
    masses: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    mass_c: tuple[float, ...] = (1.0, 9.0)
    mass_topics: int = 10
    # tomotopy and speed
    peer_marks: tuple[int, ...] = (1, 5, 10, 20, 50, 100, 200, 500)
    peer_weights: tuple[float, ...] = (1.0, 25.0)
    our_marks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    our_schedules: tuple[str, ...] = ("parallel", "sequential")
    peer_sweeps: int = 500
    races: tuple[tuple[float, float], ...] = ((1.0, 1.0), (25.0, 1.0), (25.0, 25.0))  # ours, its
    race_schedule: str = "parallel"
    race_sweeps: int = 100
    race_seeds: int = 5
    speed_topics: int = 20
    speed_models: tuple[str, ...] = ("SupervisedLDA", "MedLDA")
    speed_schedules: tuple[str, ...] = ("sequential", "parallel")
    speed_chains: tuple[int, ...] = (1, 4)
    speed_warmup: int = 5
    speed_seconds: float = 2.0  # of a turn
    speed_turns: int = 7


STANDARD = Settings("standard")
FULL = Settings(
    "full", topics=(5, 10, 15, 20, 25, 30), validation_splits=5,
    variational_topics=(5, 10, 15, 20, 25, 30), variational_seeds=5, variational_splits=3,
    variational_c=(9.0, 25.0, 64.0), steps=2000, class_topics=(20, 30, 40, 50), class_share=1.0,
    class_variational_seeds=5, class_steps=1000, class_states=5, class_fold_in=50,
    class_fold_in_kept=25, class_marks=(1, 2, 5, 10, 20, 60, 100), class_mark_seeds=5,
    roots_of_c=tuple(map(float, range(1, 11))),
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, seeds=2, sweeps=4, states=2, fold_in=4, fold_in_kept=2,
    methods=("gSLDA", "gSLDA+", "gSLDA tuned", "MedLDA", "gLDA+SVM", "vSLDA"), topics=(3,),
    validation_splits=1, tuned_topics=3, tried_c=(25.0,), variational_topics=(3,),
    variational_seeds=1, steps=4, batch_size=16, class_methods=("gSLDA+", "gLDA+SVM"),
    class_topics=(3,), class_share=1.0, class_seeds=2, class_sweeps=4, class_fold_in=4,
    class_fold_in_kept=2, class_mass=1.0, class_marks=(), piece_topics=(3,), piece_turns=1,
    marks=(2, 4), mark_topics=(3,), mark_schedules=("parallel",), roots_of_c=(1.0, 5.0),
    c_topics=(3,), masses=(1.0,), mass_c=(25.0,), mass_topics=3, peer_marks=(1, 8),
    peer_weights=(25.0,), our_marks=(2, 4), our_schedules=("parallel",), peer_sweeps=8,
    races=((25.0, 25.0),), race_sweeps=4, race_seeds=1, speed_topics=3,
    speed_models=("SupervisedLDA",), speed_schedules=("parallel",), speed_chains=(1,),
    speed_warmup=1, speed_seconds=0.01, speed_turns=2,
)  # fmt: skip
"""Small documents and few sweeps; what is compiled is shared where it can be."""


class Plan:
    """The cells of a run; data are read when they are first needed."""

    def __init__(self, settings: Settings, folder: Path, output: Path):
        import supervised_data as data

        self.s, self.output = settings, output
        self.pair = cache(partial(data.read, folder, groups=data.PAIR))
        share = {"share": settings.class_share, "seed": settings.seed}
        self.classes = cache(partial(data.read, folder, **share))
        self.split = cache(self._split)

    def _split(self, number: int) -> Any:
        """Return training and validation documents in place of training and test documents."""
        task = self.pair()
        return type(task)(*task.validation(self.s.validation, self.s.seed + number))

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        yield from self._validation("binary")
        yield from self._methods("binary", BINARY, self.s.topics, self.s.seeds)
        yield from self._validation("variational")
        sizes = self.s.variational_topics, self.s.variational_seeds
        yield from self._methods("variational", VARIATIONAL, *sizes)
        yield from self._classes()
        yield from self._burn_in()
        yield from self._sensitivity()
        yield from self._peers()
        yield from self._speed()

    def _classify(
        self, part: str, method: str, kind: str, given: Any, task: Any, *, number: int = 0,
        settings: Any = None, **options: Any,
    ) -> Cell:  # fmt: skip
        """Return a cell of `supervised_measures.classify`; a dictionary gives its parameters."""
        import supervised_measures as measures

        s, detail = settings or self.s, options.pop("detail", {})
        split_seed = options.pop("split_seed", None)
        sweeps = s.steps if kind.startswith("variational") else s.sweeps
        options = {"sweeps": sweeps, "mass": s.mass} | options
        call = partial(
            measures.classify, kind, given if callable(given) else lambda: given, task,
            seed=s.seed + number, settings=s, **options,
        )  # fmt: skip
        detail = {"topics": options["topics"], **({} if callable(given) else given), **detail}
        seconds = _seconds(kind, part, options, s)
        return Cell(part, method, call, detail=detail, split_seed=split_seed,
                    chain_seed=s.seed + number, seconds=seconds)  # fmt: skip

    def _validation(self, part: str) -> Iterator[Cell]:
        """Try parameters on validation documents, for methods that are tuned."""
        s, variational = self.s, part == "variational"
        margins = [{"c": c, "ell": ell} for c, ell in s.tried_margins]
        tried = {
            "logistic": [{"c": c} for c in s.tried_c],
            "hinge": margins,
            "expected hinge": margins,
            "svm": [{"svm_c": c} for c in s.tried_svm_c],
        }
        if variational:
            tried = {
                "variational logistic": [{"c": c} for c in s.variational_c],
                "variational hinge": [{"c": c, "ell": ell} for c, ell in s.variational_margins],
            }
        methods = VARIATIONAL if variational else BINARY
        tuned = {kind for name, (kind, given) in methods.items()
                 if given is None and name in s.methods}  # fmt: skip
        for kind, every in tried.items():
            if kind not in tuned:
                continue
            for number in range(s.variational_splits if variational else s.validation_splits):
                for given in every:
                    yield self._classify(
                        part, f"validation of {kind}", kind, given, partial(self.split, number),
                        topics=s.tuned_topics, number=number, split_seed=s.seed + number,
                    )  # fmt: skip

    def _methods(self, part: str, methods: Any, topics: Any, seeds: int) -> Iterator[Cell]:
        import supervised_measures as measures

        names = {"logistic": ("c",), "hinge": ("c", "ell"), "svm": ("svm_c",)}
        for method, (kind, given) in methods.items():
            if method not in self.s.methods:
                continue
            if given is None:
                given = measures.chosen(self.output, part, kind, names[kind.split()[-1]])
            for k in topics:
                for number in range(seeds):
                    yield self._classify(
                        part, method, kind, given, self.pair, topics=k, number=number
                    )

    def _classes(self) -> Iterator[Cell]:
        s = self.s
        small = dataclasses.replace(
            s, states=s.class_states, fold_in=s.class_fold_in, fold_in_kept=s.class_fold_in_kept,
            mass=s.class_mass, sweeps=s.class_sweeps, steps=s.class_steps,
        )  # fmt: skip

        def tried(kind: str, number: int, margin: tuple[float, float]) -> Cell:
            given = {"c": margin[0], "ell": margin[1], "response": "one-vs-rest"}
            return self._classify(
                "classes", f"validation of {kind}", kind, given, partial(self._class_split, number),
                topics=s.class_topics[0], number=number, settings=small, averaged=False,
                split_seed=s.seed + number,
            )  # fmt: skip

        for method, (kind, given) in CLASSES.items():
            if method not in s.class_methods:
                continue
            if given is None:
                for margin in s.class_margins:
                    yield tried(kind, 0, margin)
                given = self._chosen_margin(kind)
            sampled = kind in ("logistic", "hinge", "expected hinge")
            if sampled and not callable(given):
                given = {**given, "response": "one-vs-rest"}
            variational = kind.startswith("variational")
            for k in s.class_topics:
                for number in range(s.class_variational_seeds if variational else s.class_seeds):
                    yield self._classify(
                        "classes", method, kind, given, self.classes, topics=k, number=number,
                        settings=small,
                    )  # fmt: skip
            for number in range(s.class_mark_seeds if method == "gSLDA+" else 0):
                for sweeps in s.class_marks:
                    yield self._classify(
                        "classes", "gSLDA+ on the way", kind, given, self.classes,
                        topics=s.class_topics[0], number=number, settings=small, sweeps=sweeps,
                        averaged=False, detail={"sweeps": sweeps},
                    )  # fmt: skip
        for k in s.piece_topics:
            detail = {"topics": k}
            call = partial(self._pieces, k)
            yield Cell("classes", "parts of a sweep", call, detail=detail, seconds=20)

    def _class_split(self, number: int) -> Any:
        task = self.classes()
        return type(task)(*task.validation(self.s.validation, self.s.seed + number))

    def _chosen_margin(self, kind: str) -> Any:
        import supervised_measures as measures

        names = ("c", "ell", "response")
        return measures.chosen(self.output, "classes", kind, names)

    def _pieces(self, topics: int) -> Any:
        import supervised_speed as speed

        s = self.s
        return speed.pieces(
            self.classes().train, topics=topics, c=256.0, mass=s.class_mass, s=s, seed=s.seed
        )

    def _burn_in(self) -> Iterator[Cell]:
        s = self.s
        first, *others = s.mark_schedules
        every = [(first, k) for k in s.mark_topics]
        every += [(schedule, s.mark_topics[len(s.mark_topics) // 2]) for schedule in others]
        for schedule, k in every:
            for number in range(s.seeds):
                about = {"c": 25.0, "schedule": schedule, "topics": k}
                call = partial(self._ours, None, number, s.marks, **about)
                seed = s.seed + number
                yield Cell("burn_in", "gSLDA+", call, detail=about, chain_seed=seed, seconds=14)

    def _ours(
        self, split: int | None, number: int, marks: Any, *, c: float, schedule: str, topics: int
    ) -> Any:
        """Look at a chain on the way; `split` None: trained on all training documents."""
        import supervised_measures as measures
        import supervised_speed as speed

        s = self.s
        train, others = self._documents(split)
        model = measures.model_of("logistic", topics, s.mass, s.beta, {"c": c})
        made = speed.Ours(model, train, schedule, s.seed + number, max(marks), s)
        return speed.on_the_way(made, others, marks)

    def _tomotopy(self, split: int, number: int, *, c: float, workers: int, topics: int) -> Any:
        import supervised_speed as speed

        s = self.s
        train, others = self._documents(split)
        made = speed.Tomotopy(
            train, topics=topics, mass=s.mass, beta=s.beta, weight=c, workers=workers,
            seed=s.seed + number,
        )  # fmt: skip
        return speed.on_the_way(made, others, s.peer_marks)

    def _documents(self, split: int | None) -> tuple[Any, dict[str, Any]]:
        """Return the documents to train on, and others by name."""
        task = self.pair()
        if split is None:
            return task.train, {"test": task.test}
        part = self.split(split)
        return part.train, {"validation": part.test, "test": task.test}

    def _sensitivity(self) -> Iterator[Cell]:
        s = self.s
        for k in s.c_topics:
            for root in s.roots_of_c:
                for number in range(s.seeds):
                    yield self._classify(
                        "c", "gSLDA", "logistic", {"c": root**2}, self.pair, topics=k,
                        number=number, averaged=False,
                    )  # fmt: skip
        for c in s.mass_c:
            for mass in s.masses:
                for number in range(s.seeds):
                    yield self._classify(
                        "alpha", "gSLDA", "logistic", {"c": c}, self.pair, topics=s.mass_topics,
                        mass=mass, number=number, averaged=False, detail={"mass": mass},
                    )  # fmt: skip

    def _peers(self) -> Iterator[Cell]:
        import supervised_speed as speed

        s = self.s
        for c in s.peer_weights:
            for number in range(s.seeds):
                split, seed = number % s.validation_splits, s.seed + number
                common = {"split_seed": s.seed + split, "chain_seed": seed}
                for workers in dict.fromkeys((1, s.cores)) if speed.has_tomotopy() else ():
                    about = {"c": c, "workers": workers, "topics": s.speed_topics}
                    call = partial(self._tomotopy, split, number, **about)
                    yield Cell("tomotopy", "tomotopy", call, detail=about, seconds=6, **common)
                for schedule in s.our_schedules:
                    about = {"c": c, "schedule": schedule, "topics": s.speed_topics}
                    call = partial(self._ours, split, number, s.our_marks, **about)
                    yield Cell("tomotopy", "ours", call, detail=about, seconds=15, **common)

    def _speed(self) -> Iterator[Cell]:
        import supervised_speed as speed

        s = self.s
        yield Cell("speed", "rates", self._rates, chain_seed=s.seed, seconds=300)
        for c, weight in s.races if speed.has_tomotopy() else ():
            for number in range(s.race_seeds):
                split = number % s.validation_splits
                yield Cell(
                    "speed", "race", partial(self._race, c, weight, split, number),
                    detail={"c": c, "c_of_tomotopy": weight}, split_seed=s.seed + split,
                    chain_seed=s.seed + number, seconds=35,
                )  # fmt: skip

    def _rates(self) -> Any:
        import supervised_speed as speed

        return speed.rates(self.pair().train, s=self.s, seed=self.s.seed)

    def _race(self, c: float, weight: float, split: int, number: int) -> Any:
        import supervised_speed as speed

        seed = self.s.seed + number
        return speed.race(*self.split(split), c=c, weight=weight, seed=seed, s=self.s)


def _seconds(kind: str, part: str, options: Any, s: Settings) -> float:
    """Estimate the seconds of a cell, on 2 cores."""
    if s.size == "quick":
        return 1.0
    tokens, problems = 1.13e5, 1
    if part == "classes":
        tokens, problems = 1.3e6 * s.class_share, 20
    if kind.startswith("variational"):
        return 10 + options["sweeps"] * 0.1 * problems
    if kind == "svm":
        return 8 + 2 * options["sweeps"] * tokens * 2e-7
    return 4 + problems * options["sweeps"] * tokens * 2.5e-7


def prepare(settings: Settings, folder: str | None, output: Path) -> Any:
    """Read the data, or make some up for a quick look; return what they are, and the cells."""
    import supervised_data as data

    if folder is None:
        with tempfile.TemporaryDirectory() as made_up:
            data.made_up(Path(made_up), settings.seed)
            plan = Plan(settings, Path(made_up), output)
            plan.pair()  # read while it is there
            plan.classes()
    else:
        plan = Plan(settings, Path(folder), output)
    pair = plan.pair()
    sizes = {
        "training documents": pair.train.num_docs, "test documents": pair.test.num_docs,
        "words": pair.train.num_words, "training tokens": pair.train.num_tokens,
    }  # fmt: skip
    return {"data": pair.train.digest, "sizes": sizes}, list(plan.cells())


STUDY = Study(
    name="supervised",
    title="Supervised topic models on 20 Newsgroups.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=prepare,
    report=supervised_report.report,
    modules=[Path(__file__).with_name(f"supervised_{name}.py")
             for name in ("data", "measures", "scores", "speed")],
    data_files=dict.fromkeys(PARTS, FILE),
    may_change=("cores", "methods", "class_methods", "class_margins", "seeds", "class_seeds"),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
