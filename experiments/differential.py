"""Differential topic models: groups of documents share topics, and word them differently.

    python experiments/differential.py --data FOLDER --parts perplexity-abstracts

Chen, Buntine, Ding, Xie and Du (IEEE TPAMI 2015) say that a Pitman-Yor process over the words of
each topic and group (TII), and more so one with a transformation matrix (TI), predicts documents
better than other models of groups, classifies them better than an SVM, and that its sampler by
table indicators is better than others. Blogs, abstracts, digits and made-up groups are tried.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import differential_report
from differential_settings import (
    CCLDA,
    FULL,
    LDA,
    PARTS,
    POOLED,
    PYP,
    PYP_POOLED,
    QUICK,
    SAMPLERS,
    SETS,
    STANDARD,
    TI,
    TII,
    Settings,
    Sizes,
)
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["FULL", "PARTS", "QUICK", "STANDARD", "STUDY", "main"]


class Plan:
    """The cells of a run; data are read or drawn when they are first needed."""

    def __init__(self, settings: Settings, folder: str | None):
        import differential_methods

        self.s, self.folder = settings, folder
        self.missing = differential_methods.left_out()
        self.corpus, self.split = cache(self._corpus), cache(self._split)

    def _corpus(self, data: str, number: int | None = None) -> tuple[Any, bool]:
        """Return documents, and whether they have the order of the text."""
        import differential_data as made

        if self.folder is None:
            return made.made_up(self.s.seed), True
        if data == "blogs":
            return made.blogs(self.folder, number, self.s.seed), False
        return made.abstracts(self.folder), True

    def _split(
        self, data: str, seed: int, number: int | None = None, num_train: int | None = None
    ) -> Any:
        from differential_data import split_of

        corpus, ordered = self.corpus(data, number)
        return split_of(corpus, seed, ordered=ordered, num_train=num_train)

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in the order in which they are measured."""
        for data in self.s.sets:
            yield from self._perplexity(data)
        yield from self._samplers()
        for data in self.s.sets:
            yield from self._discount(data)
        for data in self.s.sets:
            yield from self._classification(data)
        yield from self._planted()
        yield from self._digits()
        yield from self._speed()

    def _seeds(self) -> range:
        return range(self.s.seed, self.s.seed + self.s.seeds)

    def _starts(self, seed: int) -> tuple[int | None, ...]:
        """Return the starts of a split: the usual one, and for the first splits another one."""
        other = seed < self.s.seed + self.s.start_seeds
        return (None, self.s.start) if other else (None,)

    def _cell(
        self, part: str, method: str, call: Any, data: str, seed: int, start: int | None,
        seconds: float, **detail: Any,
    ) -> Cell:  # fmt: skip
        named = f"from {start} topic{'s' if start and start > 1 else ''}" if start else ""
        seconds = 1.0 if self.s.size == "quick" else seconds
        return Cell(part, method, call, data, detail, seed, seed, named, seconds)

    def _perplexity(self, data: str) -> Iterator[Cell]:
        import differential_measures as measures

        s, part, sizes = self.s, SETS[data], self.s.perplexity
        number = s.blogs if data == "blogs" else None
        tokens = _tokens(data, number, None)
        for seed in self._seeds():

            def unigram(seed: int = seed) -> Any:
                return measures.unigram_scores(self.split(data, seed, number), seed)

            yield self._cell(part, "unigram", unigram, data, seed, None, 2)
            for topics in s.topics:
                for method in s.methods:
                    alone = method in (PYP, LDA)
                    if method in self.missing or (alone and topics not in s.alone_topics):
                        continue
                    again = not alone and topics in s.start_topics
                    for start in self._starts(seed) if again else (None,):

                        def call(
                            seed: int = seed, topics: int = topics, method: str = method,
                            start: int | None = start,
                        ) -> Any:  # fmt: skip
                            return measures.fit_and_score(
                                method, self.split(data, seed, number), topics=topics,
                                discount=0.7, sizes=sizes, seed=seed, start=start,
                                about_topics=topics == s.topics[0],
                            )  # fmt: skip

                        seconds = _seconds(method, data, tokens, topics, sizes) + 10
                        yield self._cell(
                            part, method, call, data, seed, start, seconds, topics=topics
                        )

    def _samplers(self) -> Iterator[Cell]:
        import differential_measures as measures

        s = self.s
        if TII in self.missing:
            return
        for seed in self._seeds():
            for discount in s.sampler_discounts:
                for name in s.sampler_names:
                    for start in self._starts(seed):

                        def call(
                            name: str = name, discount: float = discount, seed: int = seed,
                            start: int | None = start,
                        ) -> Any:  # fmt: skip
                            split = self.split("abstracts", seed, None, s.sampler_train)
                            return measures.of_samplers(
                                name, split, topics=s.sampler_topics, discount=discount,
                                sizes=s.samplers, seed=seed, start=start, marks=s.sampler_marks,
                            )  # fmt: skip

                        tokens = _tokens("abstracts", None, s.sampler_train)
                        seconds = 50 + 2 * max(s.sampler_marks) * tokens / 5e5
                        yield self._cell(
                            "samplers", SAMPLERS[name], call, "abstracts", seed, start, seconds,
                            discount=discount, topics=s.sampler_topics,
                        )  # fmt: skip

    def _discount(self, data: str) -> Iterator[Cell]:
        import differential_measures as measures

        s, sizes = self.s, self.s.discount
        number = s.blogs if data == "blogs" else None
        plans = [(TII, s.discounts, True), (TI, s.transformed_discounts, False)]
        plans += [(PYP_POOLED, s.discounts, True)] if data in s.pooled_sets else []
        tokens = _tokens(data, number, s.discount_train)
        for seed in self._seeds():
            for method, discounts, again in plans:
                for discount in discounts if method not in self.missing else ():
                    wanted = again and discount in (0.0, 0.7)
                    for start in self._starts(seed) if wanted else (None,):

                        def call(
                            method: str = method, discount: float = discount, seed: int = seed,
                            start: int | None = start,
                        ) -> Any:  # fmt: skip
                            split = self.split(data, seed, number, s.discount_train)
                            return measures.fit_and_score(
                                method, split, topics=s.discount_topics, discount=discount,
                                sizes=sizes, seed=seed, start=start,
                            )  # fmt: skip

                        seconds = _seconds(method, data, tokens, s.discount_topics, sizes) + 6
                        yield self._cell(
                            "discount", method, call, data, seed, start, seconds,
                            discount=discount, topics=s.discount_topics,
                        )  # fmt: skip

    def _classification(self, data: str) -> Iterator[Cell]:
        import differential_classify as classify

        s, sizes = self.s, self.s.classification
        number = s.classified_blogs if data == "blogs" else None
        grid = {"C": s.svm_c, "gamma": s.svm_gamma}
        tokens = _tokens(data, number, None)
        for seed in self._seeds():
            for method in (TI, TII, CCLDA):
                starts = self._starts(seed) if method not in self.missing else ()
                for start in starts:

                    def call(
                        method: str = method, seed: int = seed, start: int | None = start
                    ) -> Any:
                        return classify.by_topics(
                            method, self.split(data, seed, number), topics=s.classified_topics,
                            sizes=sizes, seed=seed, start=start, particles=s.particles,
                            resample=s.resample,
                        )  # fmt: skip

                    seconds = _seconds(method, data, tokens, s.classified_topics, sizes)
                    seconds += 40 if data == "blogs" else 20
                    yield self._cell(
                        "classification", method, call, data, seed, start, seconds,
                        topics=s.classified_topics,
                    )  # fmt: skip
            for name in classify.SVMS:

                def svm(name: str = name, seed: int = seed) -> Any:
                    split = self.split(data, seed, number)
                    return classify.by_svm(name, split, seed=seed, grid=grid)

                yield self._cell("classification", name, svm, data, seed, None, 15)

            def two_steps(seed: int = seed) -> Any:
                return classify.by_topics_and_svm(
                    self.split(data, seed, number), topics=s.lda_topics, sizes=sizes, seed=seed,
                    grid=grid,
                )  # fmt: skip

            seconds = _seconds(POOLED, data, tokens, s.lda_topics, sizes) + 10
            yield self._cell(
                "classification", "LDA + SVM", two_steps, data, seed, None, seconds,
                topics=s.lda_topics,
            )  # fmt: skip

    def _planted(self) -> Iterator[Cell]:
        import differential_measures as measures
        from differential_data import planted

        s = self.s
        for seed in self._seeds() if TII not in self.missing else ():
            for start in self._starts(seed):

                def call(seed: int = seed, start: int | None = start) -> Any:
                    made = planted(
                        seed, s.concentrations, discount=s.planted_discount,
                        docs_per_group=s.planted_docs,
                    )  # fmt: skip
                    return measures.planted_fit(
                        made, discount=s.planted_discount, sizes=s.planted, seed=seed, start=start
                    )

                seconds = _seconds(TII, "abstracts", 320 * s.planted_docs, 6, s.planted) + 5
                yield self._cell("planted", TII, call, "made-up groups", seed, start, seconds)

    def _digits(self) -> Iterator[Cell]:
        import differential_data as made
        import differential_digits as digits

        s = self.s
        how = {"topics": s.digit_topics, "sizes": s.digits, "seed": s.seed, "shown": s.shown}

        def pictures() -> Any:
            return made.digits(self.folder) if self.folder else made.made_up_digits(s.seed)

        for start in self._starts(s.seed) if TII not in self.missing else ():

            def call(start: int | None = start) -> Any:
                return digits.by_class(*pictures(), start=start, **how)

            seconds = _seconds(TII, "abstracts", 185e3, s.digit_topics, s.digits) + 10
            yield self._cell("digits", TII, call, "digits", s.seed, start, seconds)

        def alone() -> Any:
            return digits.by_class_alone(*pictures(), **how)

        yield self._cell("digits", LDA, alone, "digits", s.seed, None, 90)

    def _speed(self) -> Iterator[Cell]:
        import differential_measures as measures

        s = self.s
        methods = [name for name in s.speed_methods if name not in self.missing]

        def rates() -> Any:
            corpora = {"parallel": "blogs", "sequential": "abstracts"}
            corpora = {name: self.corpus(corpora[name])[0] for name in s.speed_schedules}
            return measures.speeds(corpora, methods, s=s)

        systems = len(methods) * (len(s.speed_chains) + 1) + len(s.speed_samplers) - 1
        yield self._cell("speed", "rates", rates, "blogs, abstracts", s.seed, None, 60 * systems)
        for name in (PYP_POOLED, TI, TII):
            if name in methods:

                def table(name: str = name) -> Any:
                    return measures.table_megabytes(self._largest(), name, s=s)

                yield self._cell("speed", f"table, {name}", table, "nips12", s.seed, None, 90)

    def _largest(self) -> Any:
        """Return a corpus of more than two million tokens with groups, if there is a folder."""
        from bnp_models.data.readers import read_npz

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


def prepare(settings: Settings, folder: str | None, output: Path) -> Any:
    """Return the head of the run, and its cells; say which methods are not there."""
    plan = Plan(settings, folder)
    for method, lacks in plan.missing.items():
        print(f"{method!r} is left out: {lacks}", flush=True)
    return {}, list(plan.cells())


_HERE = Path(__file__)
STUDY = Study(
    name="differential",
    title="Differential topic models: groups that word topics differently.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=prepare,
    report=differential_report.report,
    modules=[*(_HERE.with_name(f"differential_{name}.py")
               for name in ("classify", "data", "digits", "measures", "methods", "settings")),
             _HERE.with_name("supervised_scores.py")],
    data_files={
        "perplexity-blogs": "poliblog5k.npz", "perplexity-abstracts": "mlabs.npz",
        "samplers": "mlabs.npz", "discount": "mlabs.npz", "classification": "mlabs.npz",
        "digits": "alphadigs.npz", "speed": "nips12.npz",
    },
    may_change=("cores", "seeds", "topics", "alone_topics", "methods", "sampler_discounts",
                "discounts", "transformed_discounts", "start_topics", "start_seeds"),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
