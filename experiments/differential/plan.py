"""The cells of the study of differential models; data are read when they are first needed."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from study.cells import Cell, later

from bnp_models.data.readers import read_npz
from differential import classify, data, digits, measures, methods
from differential.settings import (
    CCLDA,
    LDA,
    POOLED,
    PYP,
    PYP_POOLED,
    SAMPLERS,
    SETS,
    TI,
    TII,
    Settings,
    Sizes,
)

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
        self.missing = methods.left_out()
        self.corpus, self.split = cache(self._corpus), cache(self._split)
        self.seeds = range(settings.seed, settings.seed + settings.seeds)

    def _corpus(self, name: str, number: int | None = None) -> tuple[Any, bool]:
        """Return documents, and whether they have the order of the text."""
        if self.folder is None:
            return data.made_up(self.s.seed), True
        if name == "blogs":
            return data.blogs(self.folder, number, self.s.seed), False
        return data.abstracts(self.folder), True

    def _split(
        self, name: str, seed: int, number: int | None = None, num_train: int | None = None
    ) -> data.Split:
        corpus, ordered = self.corpus(name, number)
        return data.split_of(corpus, seed, ordered=ordered, num_train=num_train)

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        for name in self.s.sets:
            yield from self._perplexity(name)
        yield from self._samplers()
        for name in self.s.sets:
            yield from self._discount(name)
        for name in self.s.sets:
            yield from self._classification(name)
        yield from self._planted()
        yield from self._digits()
        yield from self._speed()

    def _starts(self, seed: int, wanted: bool = True) -> tuple[int | None, ...]:
        """Return the starts of a split: the usual one, and for the first splits another one."""
        other = wanted and seed < self.s.seed + self.s.start_seeds
        return (None, self.s.start) if other else (None,)

    def _cell(
        self, part: str, method: str, call: Callable[[], Any], name: str, seed: int,
        seconds: float, start: int | None = None, **detail: Any,
    ) -> Cell:  # fmt: skip
        named = f"from {start} topic{'s' if start and start > 1 else ''}" if start else ""
        seconds = 1.0 if self.s.size == "quick" else seconds
        return Cell(part, method, call, name, detail, seed, seed, named, seconds)

    def _perplexity(self, name: str) -> Iterator[Cell]:
        s, part, sizes = self.s, SETS[name], self.s.perplexity
        number = s.blogs if name == "blogs" else None
        tokens = _tokens(name, number, None)
        for seed in self.seeds:
            split = partial(self.split, name, seed, number)
            call = later(measures.unigram_scores, split, seed)
            yield self._cell(part, "unigram", call, name, seed, 2)
            for topics in s.topics:
                for method in s.methods:
                    alone = method in (PYP, LDA)
                    if method in self.missing or (alone and topics not in s.alone_topics):
                        continue
                    for start in self._starts(seed, not alone and topics in s.start_topics):
                        call = later(
                            measures.fit_and_score, split, method, topics=topics, discount=0.7,
                            sizes=sizes, seed=seed, start=start, about_topics=topics == s.topics[0],
                        )  # fmt: skip
                        seconds = _seconds(method, name, tokens, topics, sizes) + 10
                        yield self._cell(
                            part, method, call, name, seed, seconds, start, topics=topics
                        )

    def _samplers(self) -> Iterator[Cell]:
        s = self.s
        tokens = _tokens("abstracts", None, s.sampler_train)
        for seed in self.seeds if TII not in self.missing else ():
            split = partial(self.split, "abstracts", seed, None, s.sampler_train)
            for discount in s.sampler_discounts:
                for sampler in s.sampler_names:
                    for start in self._starts(seed):
                        call = later(
                            measures.of_samplers, split, sampler, topics=s.sampler_topics,
                            discount=discount, sizes=s.samplers, seed=seed, start=start,
                            marks=s.sampler_marks,
                        )  # fmt: skip
                        seconds = 50 + 2 * max(s.sampler_marks) * tokens / 5e5
                        yield self._cell(
                            "samplers", SAMPLERS[sampler], call, "abstracts", seed, seconds, start,
                            discount=discount, topics=s.sampler_topics,
                        )  # fmt: skip

    def _discount(self, name: str) -> Iterator[Cell]:
        s, sizes = self.s, self.s.discount
        number = s.blogs if name == "blogs" else None
        plans = [(TII, s.discounts, True), (TI, s.transformed_discounts, False)]
        plans += [(PYP_POOLED, s.discounts, True)] if name in s.pooled_sets else []
        tokens = _tokens(name, number, s.discount_train)
        for seed in self.seeds:
            split = partial(self.split, name, seed, number, s.discount_train)
            for method, discounts, again in plans:
                for discount in discounts if method not in self.missing else ():
                    for start in self._starts(seed, again and discount in (0.0, 0.7)):
                        call = later(
                            measures.fit_and_score, split, method, topics=s.discount_topics,
                            discount=discount, sizes=sizes, seed=seed, start=start,
                        )  # fmt: skip
                        seconds = _seconds(method, name, tokens, s.discount_topics, sizes) + 6
                        yield self._cell(
                            "discount", method, call, name, seed, seconds, start,
                            discount=discount, topics=s.discount_topics,
                        )  # fmt: skip

    def _classification(self, name: str) -> Iterator[Cell]:
        s, sizes = self.s, self.s.classification
        number = s.classified_blogs if name == "blogs" else None
        grid = {"C": s.svm_c, "gamma": s.svm_gamma}
        tokens = _tokens(name, number, None)
        for seed in self.seeds:
            split = partial(self.split, name, seed, number)
            for method in (TI, TII, CCLDA):
                for start in self._starts(seed) if method not in self.missing else ():
                    call = later(
                        classify.by_topics, split, method, topics=s.classified_topics,
                        sizes=sizes, seed=seed, start=start, particles=s.particles,
                        resample=s.resample,
                    )  # fmt: skip
                    seconds = _seconds(method, name, tokens, s.classified_topics, sizes)
                    seconds += 40 if name == "blogs" else 20
                    yield self._cell(
                        "classification", method, call, name, seed, seconds, start,
                        topics=s.classified_topics,
                    )  # fmt: skip
            for svm in classify.SVMS:
                call = later(classify.by_svm, split, svm, seed=seed, grid=grid)
                yield self._cell("classification", svm, call, name, seed, 15)
            call = later(
                classify.by_topics_and_svm, split, topics=s.lda_topics, sizes=sizes, seed=seed,
                grid=grid,
            )  # fmt: skip
            seconds = _seconds(POOLED, name, tokens, s.lda_topics, sizes) + 10
            yield self._cell(
                "classification", "LDA + SVM", call, name, seed, seconds, topics=s.lda_topics
            )

    def _planted(self) -> Iterator[Cell]:
        s = self.s
        seconds = _seconds(TII, "abstracts", 320 * s.planted_docs, 6, s.planted) + 5
        for seed in self.seeds if TII not in self.missing else ():
            for start in self._starts(seed):
                made = partial(
                    data.planted, seed, s.concentrations, discount=s.planted_discount,
                    docs_per_group=s.planted_docs,
                )  # fmt: skip
                call = later(
                    measures.planted_fit, made, discount=s.planted_discount, sizes=s.planted,
                    seed=seed, start=start,
                )  # fmt: skip
                yield self._cell("planted", TII, call, "made-up groups", seed, seconds, start)

    def _digits(self) -> Iterator[Cell]:
        s, folder = self.s, self.folder
        pictures = partial(data.digits, folder) if folder else partial(data.made_up_digits, s.seed)
        how = {"topics": s.digit_topics, "sizes": s.digits, "seed": s.seed, "shown": s.shown}
        seconds = _seconds(TII, "abstracts", 185e3, s.digit_topics, s.digits) + 10
        for start in self._starts(s.seed) if TII not in self.missing else ():
            call = later(digits.by_class, pictures, start=start, **how)
            yield self._cell("digits", TII, call, "digits", s.seed, seconds, start)
        call = later(digits.by_class_alone, pictures, **how)
        yield self._cell("digits", LDA, call, "digits", s.seed, 90)

    def _speed(self) -> Iterator[Cell]:
        s = self.s
        timed = [name for name in s.speed_methods if name not in self.missing]

        def corpora() -> dict[str, Any]:
            names = {"parallel": "blogs", "sequential": "abstracts"}
            return {schedule: self.corpus(names[schedule])[0] for schedule in s.speed_schedules}

        systems = len(timed) * (len(s.speed_chains) + 1) + len(s.speed_samplers) - 1
        call = later(measures.speeds, corpora, timed, s=s)
        yield self._cell("speed", "rates", call, "blogs, abstracts", s.seed, 60 * systems)
        for name in (PYP_POOLED, TI, TII):
            if name in timed:
                call = later(measures.table_megabytes, self._largest, name, s=s)
                yield self._cell("speed", f"table, {name}", call, "nips12", s.seed, 90)

    def _largest(self) -> Any:
        """Return a corpus of more than two million tokens with groups, if there is a folder."""
        if self.folder is None:
            return self.corpus("abstracts")[0]
        return read_npz(Path(self.folder) / "nips12.npz")


def _tokens(data: str, number: int | None, num_train: int | None) -> float:
    """Return about how many tokens are fitted."""
    docs, length = {"blogs": (5000, 201), "abstracts": (1920, 73)}[data]
    return length * min(0.8 * (number or docs), num_train or docs)


def _seconds(method: str, data: str, tokens: float, topics: int, sizes: Sizes) -> float:
    """Estimate the seconds of a fit, on 2 cores that have nothing else to do.

    Rates (tokens a second, of all chains) and seconds of compiling of LDA, PYP and ccLDA are
    rounded from timed fits; those of TI and TII are guesses.
    """
    kind = method.split(",")[0]
    rate = {"LDA": 6e6, "ccLDA": 4e6, "PYP": 1.8e6, "TII": 0.9e6, "TI": 0.8e6}[kind]
    compiling = {"LDA": 18, "ccLDA": 22, "PYP": 28, "TII": 35, "TI": 40}[kind]
    if method.endswith("alone"):
        compiling *= 6 if data == "blogs" else 3
    rate *= (10 / topics) ** 0.25 if topics > 10 else 1.0
    sweeps = sizes.num_warmup + sizes.num_samples
    return compiling + sweeps * sizes.num_chains * tokens / rate
