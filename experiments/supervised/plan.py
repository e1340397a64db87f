"""The cells of the study of supervised topic models; data are read when they are first needed."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, from_topics, later

from supervised import data, measures, speed
from supervised.settings import BINARY, CLASSES, VARIATIONAL, Settings

__all__ = ["Plan", "prepare"]

NAMES = {"logistic": ("c",), "hinge": ("c", "ell"), "svm": ("svm_c",), "words": ("svm_c",)}
"""Parameters that are tuned, by the last word of the kind of a method."""


class Plan:
    """The cells of a run."""

    def __init__(self, settings: Settings, folder: Path, output: Path):
        self.s, self.output = settings, output
        self.pair = cache(partial(data.read, folder, groups=data.PAIR))
        share = {"share": settings.class_share, "seed": settings.seed}
        self.classes = cache(partial(data.read, folder, **share))
        self.split = cache(self._split)

    def _split(self, task: Callable[[], data.Task], number: int) -> data.Task:
        """Return training and validation documents in place of training and test documents."""
        return data.Task(*task().validation(self.s.validation, self.s.seed + number))

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        s = self.s
        margins = [{"c": c, "ell": ell} for c, ell in s.tried_margins]
        tried = {
            "logistic": [{"c": c} for c in s.tried_c], "hinge": margins,
            "expected hinge": margins, "svm": [{"svm_c": c} for c in s.tried_svm_c],
            "words": [{"svm_c": c} for c in s.tried_svm_c],
        }  # fmt: skip
        yield from self._methods(
            "binary", _chosen(BINARY, s.methods), tried, s.topics, s.seeds, s.validation_splits
        )
        tried = {
            "variational logistic": [{"c": c} for c in s.variational_c],
            "variational hinge": [{"c": c, "ell": ell} for c, ell in s.variational_margins],
        }
        yield from self._methods(
            "variational", _chosen(VARIATIONAL, s.methods), tried, s.variational_topics,
            s.variational_seeds, s.variational_splits,
        )  # fmt: skip
        yield from self._classes()
        yield from self._burn_in()
        yield from self._sensitivity()
        yield from self._peers()
        yield from self._speed()

    def _classify(
        self, part: str, method: str, kind: str, given: Any, task: Any, *, number: int = 0,
        settings: Settings | None = None, split_seed: int | None = None,
        detail: Mapping[str, Any] = {}, start: int | None = None, **options: Any,
    ) -> Cell:  # fmt: skip
        """Return a cell of `measures.classify`; a dictionary gives its parameters."""
        s = settings or self.s
        sweeps = s.steps if kind.startswith("variational") else s.sweeps
        options = {"sweeps": sweeps, "mass": s.mass} | options
        chosen = given if callable(given) else lambda: given
        call = partial(
            measures.classify, kind, chosen, task, seed=s.seed + number, settings=s, start=start,
            **options,
        )  # fmt: skip
        about = {"topics": options["topics"], **({} if callable(given) else given), **detail}
        return Cell(
            part, method, call, detail=about, split_seed=split_seed, chain_seed=s.seed + number,
            start=from_topics(start),
        )  # fmt: skip

    def _methods(
        self, part: str, methods: Mapping[str, Any], tried: Mapping[str, Sequence[Any]],
        topics: Sequence[int], seeds: int, splits: int, **options: Any,
    ) -> Iterator[Cell]:  # fmt: skip
        """Train methods; those that are tuned try parameters on validation documents before."""
        s, task = self.s, self.classes if part == "classes" else self.pair
        validated = set()
        for method, (kind, given) in methods.items():
            if given is None and kind not in validated:
                validated.add(kind)
                for number in range(splits):
                    for parameters in tried[kind]:
                        yield self._classify(
                            part, f"validation of {kind}", kind, parameters,
                            partial(self.split, task, number), number=number,
                            topics=topics[0] if part == "classes" else s.tuned_topics,
                            split_seed=s.seed + number, averaged=part != "classes", **options,
                        )  # fmt: skip
            if given is None:
                own = ("response",) if part == "classes" and kind != "words" else ()
                names = NAMES[kind.split()[-1]] + own
                given = measures.chosen(self.output, part, kind, names)
            elif part == "classes" and kind in ("logistic", "hinge", "expected hinge"):
                given = {**given, "response": "one-vs-rest"}
            few = part == "classes" and kind.startswith("variational")
            sampled = not kind.startswith("variational") and kind != "words"
            for k in topics:
                for number in range(s.class_variational_seeds if few else seeds):
                    other = s.start if sampled and number < s.start_seeds else None
                    for start in dict.fromkeys((None, other)):
                        yield self._classify(
                            part, method, kind, given, task, topics=k, number=number, start=start,
                            **options,
                        )  # fmt: skip

    def _classes(self) -> Iterator[Cell]:
        s = self.s
        small = dataclasses.replace(
            s, states=s.class_states, fold_in=s.class_fold_in, fold_in_kept=s.class_fold_in_kept,
            mass=s.class_mass, sweeps=s.class_sweeps, steps=s.class_steps,
            most_steps=s.class_most_steps,
        )  # fmt: skip
        margins = [{"c": c, "ell": ell, "response": "one-vs-rest"} for c, ell in s.class_margins]
        methods = _chosen(CLASSES, s.class_methods)
        yield from self._methods(
            "classes", methods, {
                "hinge": margins, "expected hinge": margins,
                "words": [{"svm_c": c} for c in s.tried_svm_c],
            }, s.class_topics, s.class_seeds, 1, settings=small,
        )  # fmt: skip
        kind, given = CLASSES["gSLDA+"]
        for number in range(s.class_mark_seeds if "gSLDA+" in methods else 0):
            for sweeps in s.class_marks:
                yield self._classify(
                    "classes", "gSLDA+ on the way", kind, {**given, "response": "one-vs-rest"},
                    self.classes, topics=s.class_topics[0], number=number, settings=small,
                    sweeps=sweeps, averaged=False, detail={"sweeps": sweeps},
                )  # fmt: skip
        for k in s.piece_topics:
            call = later(
                speed.pieces, self.classes, topics=k, c=256.0, mass=s.class_mass, s=s, seed=s.seed
            )
            yield Cell("classes", "parts of a sweep", call, detail={"topics": k})

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
                yield Cell("burn_in", "gSLDA+", call, detail=about, chain_seed=seed)

    def _ours(
        self, split: int | None, number: int, marks: Sequence[int], *, c: float, schedule: str,
        topics: int,
    ) -> Any:  # fmt: skip
        """Look at a chain on the way; `split` None: trained on all training documents."""
        s, (train, others) = self.s, self._documents(split)
        model = measures.model_of("logistic", topics, s.mass, s.beta, {"c": c})
        made = speed.Ours(model, train, schedule, s.seed + number, max(marks), s)
        return speed.on_the_way(made, others, marks)

    def _tomotopy(self, split: int, number: int, *, c: float, workers: int, topics: int) -> Any:
        s, (train, others) = self.s, self._documents(split)
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
        part = self.split(self.pair, split)
        return part.train, {"validation": part.test, "test": task.test}

    def _sensitivity(self) -> Iterator[Cell]:
        s = self.s
        cases = [("c", root**2, s.mass, k) for k in s.c_topics for root in s.roots_of_c]
        cases += [("alpha", c, mass, s.mass_topics) for c in s.mass_c for mass in s.masses]
        for part, c, mass, k in cases:
            for number in range(s.seeds):
                yield self._classify(
                    part, "gSLDA", "logistic", {"c": c}, self.pair, topics=k, mass=mass,
                    number=number, averaged=False, detail={"mass": mass} if part == "alpha" else {},
                )  # fmt: skip

    def _peers(self) -> Iterator[Cell]:
        s = self.s
        for c in s.peer_weights:
            for number in range(s.seeds):
                split, seed = number % s.validation_splits, s.seed + number
                common: dict[str, Any] = {"split_seed": s.seed + split, "chain_seed": seed}
                for workers in dict.fromkeys((1, s.cores)) if speed.has_tomotopy() else ():
                    about = {"c": c, "workers": workers, "topics": s.speed_topics}
                    call = partial(self._tomotopy, split, number, **about)
                    yield Cell("tomotopy", "tomotopy", call, detail=about, **common)
                for schedule in s.our_schedules:
                    about = {"c": c, "schedule": schedule, "topics": s.speed_topics}
                    call = partial(self._ours, split, number, s.our_marks, **about)
                    yield Cell("tomotopy", "ours", call, detail=about, **common)

    def _speed(self) -> Iterator[Cell]:
        s = self.s
        rates = later(speed.rates, self.pair, s=s)
        yield Cell("speed", "rates", rates, chain_seed=s.seed)
        for c, weight in s.races if speed.has_tomotopy() else ():
            for number in range(s.race_seeds):
                split, seed = number % s.validation_splits, s.seed + number
                task = partial(self.split, self.pair, split)
                yield Cell(
                    "speed", "race", later(speed.race, task, c=c, weight=weight, seed=seed, s=s),
                    detail={"c": c, "c_of_tomotopy": weight}, split_seed=s.seed + split,
                    chain_seed=seed,
                )  # fmt: skip


def _chosen(methods: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: method for name, method in methods.items() if name in names}


def prepare(settings: Settings, folder: str | None, output: Path) -> tuple[dict, list[Cell]]:
    """Read the data, or make some up for a quick look; return what they are, and the cells."""
    with tempfile.TemporaryDirectory() as made_up:
        if folder is None:
            data.made_up(Path(made_up), settings.seed)
        plan = Plan(settings, Path(folder or made_up), output)
        pair = plan.pair()
        if folder is None:
            plan.classes()  # read while it is there
    sizes = {
        "training documents": pair.train.num_docs, "test documents": pair.test.num_docs,
        "words": pair.train.num_words, "training tokens": pair.train.num_tokens,
    }  # fmt: skip
    return {"data": pair.train.digest, "sizes": sizes}, list(plan.cells())
