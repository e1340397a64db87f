"""The cells of the study of differential models; data are read when they are first needed."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, from_topics, later

import bnp_models as bnp
from bnp_models.data.readers import read_npz
from differential import classify, data, digits, measures
from differential.settings import (
    CCLDA,
    HYBRIDS,
    LDA,
    MINKA,
    PYP_POOLED,
    SAMPLERS,
    SETS,
    TI,
    TII,
    Settings,
)

__all__ = ["prepare"]


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells."""
    return {}, list(Plan(settings, folder).cells())


class Plan:
    """The cells of a run."""

    def __init__(self, settings: Settings, folder: str | None):
        self.s, self.folder = settings, folder
        self.corpus, self.split = cache(self._corpus), cache(self._split)
        self.seeds = range(settings.seed, settings.seed + settings.seeds)

    def _corpus(self, name: str) -> tuple[bnp.Corpus, bool]:
        """Return documents, and whether they have the order of the text."""
        if self.folder is None:
            return data.made_up(self.s.seed), True
        if name == "blogs":
            return data.blogs(self.folder, self.s.blogs, self.s.seed), False
        return data.abstracts(self.folder), True

    def _split(
        self, name: str, seed: int, num_train: int | None = None, num_test: int | None = None
    ) -> data.Split:
        corpus, ordered = self.corpus(name)
        return data.split_of(corpus, seed, ordered=ordered, num_train=num_train, num_test=num_test)

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        for name in self.s.sets:
            yield from self._perplexity(name)
        yield from self._samplers()
        for name in self.s.sets:
            yield from self._discount(name)
        yield from self._hybrids()
        for name in self.s.sets:
            yield from self._classification(name)
        for name in self.s.sets:
            yield from self._sweeps(name)
        yield from self._planted()
        yield from self._digits()
        yield from self._speed()

    def _cells(
        self, part: str, method: str, measure: Callable[..., Any], read: Callable[[], Any],
        name: str, seed: int, /, *, about: Sequence[str] = (), chains: bool = True, **given: Any,
    ) -> Iterator[Cell]:  # fmt: skip
        """Return a cell, and if a method has chains, one from the other start.

        `given` are the arguments of `measure`, of which `about` are in the name of the cell.
        """
        for start in dict.fromkeys((None, self.s.start)) if chains else (None,):
            options = {**given, "start": start} if chains else given
            detail = {option: given[option] for option in about}
            call = later(measure, read, **options)
            yield Cell(part, method, call, name, detail, seed, seed, from_topics(start))

    def _perplexity(self, name: str) -> Iterator[Cell]:
        s, part = self.s, SETS[name]
        others = [method for data_set, method in s.other_transforms if data_set == name]
        for seed in self.seeds:
            split = partial(self.split, name, seed, None, s.tests)
            yield from self._cells(
                part, "unigram", measures.unigram_scores, split, name, seed, chains=False, seed=seed
            )
            for topics, method in itertools.product(s.topics, (*s.methods, *others)):
                yield from self._cells(
                    part, method, measures.fit_and_score, split, name, seed, about=["topics"],
                    method=method, topics=topics, discount=0.7, sizes=s.perplexity, seed=seed,
                    about_topics=topics == s.topics[0], arcs=s.arcs,
                )  # fmt: skip

    def _samplers(self) -> Iterator[Cell]:
        s = self.s
        for seed in self.seeds:
            split = partial(self.split, "abstracts", seed, s.sampler_train)
            for discount, sampler in itertools.product(s.sampler_discounts, s.sampler_names):
                yield from self._cells(
                    "samplers", SAMPLERS[sampler], measures.of_samplers, split, "abstracts", seed,
                    about=["discount", "topics"], sampler=sampler, discount=discount,
                    topics=s.sampler_topics, sizes=s.samplers, seed=seed, marks=s.sampler_marks,
                )  # fmt: skip

    def _discount(self, name: str) -> Iterator[Cell]:
        s = self.s
        plans = [(TII, s.discounts), (TI, s.transformed_discounts)]
        plans += [(PYP_POOLED, s.discounts)] if name in s.pooled_sets else []
        for seed in self.seeds:
            split = partial(self.split, name, seed, s.discount_train, s.tests)
            for method, discounts in plans:
                for discount in discounts:
                    yield from self._cells(
                        "discount", method, measures.fit_and_score, split, name, seed,
                        about=["discount", "topics"], method=method, discount=discount,
                        topics=s.discount_topics, sizes=s.discount, seed=seed,
                    )  # fmt: skip

    def _hybrids(self) -> Iterator[Cell]:
        s, name = self.s, "abstracts"
        options = {TII: {}, MINKA: {"optimise": ("alpha", "beta")}}
        options |= {method: {"approximation": how} for how, method in HYBRIDS.items()}
        for seed in range(s.seed, s.seed + s.hybrid_seeds):
            split = partial(self.split, name, seed, s.discount_train, s.tests)
            for method, changed in options.items():
                yield from self._cells(
                    "hybrids", method, measures.fit_hybrid, split, name, seed, about=["topics"],
                    topics=s.discount_topics, sizes=s.hybrids, seed=seed, options=changed,
                )  # fmt: skip

    def _classification(self, name: str) -> Iterator[Cell]:
        s, part = self.s, "classification"
        grid = {"C": s.svm_c, "gamma": s.svm_gamma}
        for seed in self.seeds:
            split = partial(self.split, name, seed, None, s.tests)
            for method in (TI, TII, CCLDA):
                yield from self._cells(
                    part, method, classify.by_topics, split, name, seed, about=["topics"],
                    method=method, topics=s.classified_topics, sizes=s.classification,
                    seed=seed, particles=s.particles, resample=s.resample,
                )  # fmt: skip
            for svm in classify.SVMS:
                yield from self._cells(
                    part, svm, classify.by_svm, split, name, seed, chains=False, svm=svm, seed=seed,
                    grid=grid,
                )  # fmt: skip
            yield from self._cells(
                part, "LDA + SVM", classify.by_topics_and_svm, split, name, seed, about=["topics"],
                topics=s.lda_topics, sizes=s.classification, seed=seed, grid=grid,
            )  # fmt: skip

    def _sweeps(self, name: str) -> Iterator[Cell]:
        s = self.s
        for seed in range(s.seed, s.seed + s.sweeps_seeds):
            split = partial(self.split, name, seed, s.discount_train, s.tests)
            for method in (TI, TII):
                yield from self._cells(
                    "sweeps", method, classify.by_sweep, split, name, seed, about=["topics"],
                    method=method, topics=s.classified_topics, sizes=s.sweeps, seed=seed,
                    particles=s.particles, resample=s.resample,
                )  # fmt: skip

    def _planted(self) -> Iterator[Cell]:
        s = self.s
        for seed in self.seeds:
            made = partial(
                data.planted, seed, s.concentrations, discount=s.planted_discount,
                docs_per_group=s.planted_docs,
            )  # fmt: skip
            yield from self._cells(
                "planted", TII, measures.planted_fit, made, "made-up groups", seed,
                discount=s.planted_discount, sizes=s.planted, seed=seed,
            )  # fmt: skip

    def _digits(self) -> Iterator[Cell]:
        s, folder = self.s, self.folder
        pictures = partial(data.digits, folder) if folder else partial(data.made_up_digits, s.seed)
        how = {"topics": s.digit_topics, "sizes": s.digits, "seed": s.seed, "shown": s.shown}
        at = (pictures, "digits", s.seed)
        yield from self._cells("digits", TII, digits.by_class, *at, **how)
        yield from self._cells("digits", LDA, digits.by_class_alone, *at, chains=False, **how)

    def _speed(self) -> Iterator[Cell]:
        s = self.s

        def corpora() -> dict[str, bnp.Corpus]:
            names = {"parallel": "blogs", "sequential": "abstracts"}
            return {schedule: self.corpus(names[schedule])[0] for schedule in s.speed_schedules}

        yield from self._cells(
            "speed", "rates", measures.speeds, corpora, "blogs, abstracts", s.seed,
            chains=False, methods=s.speed_methods, s=s,
        )  # fmt: skip
        for name in (PYP_POOLED, TI, TII):
            if name in s.speed_methods:
                yield from self._cells(
                    "speed", f"table, {name}", measures.table_megabytes, self._largest, "nips12",
                    s.seed, chains=False, method=name, s=s,
                )  # fmt: skip

    def _largest(self) -> bnp.Corpus:
        """Return a corpus of more than two million tokens with groups, if there is a folder."""
        if self.folder is None:
            return self.corpus("abstracts")[0]
        return read_npz(Path(self.folder) / "nips12.npz")
