"""Factor models of several sources: planted factors, sections of NIPS, digits by class.

    python experiments/factors.py --data FOLDER --parts planted,births,simulated   # needs no data

Questions of Gupta, Phung and Venkatesh, UAI 2012, section 5. Does the sampler find the number of
planted factors, the factors, and who shares them, from wherever it starts ("planted")? Are its
births better than approximate ones ("births")? Do papers of one section help to predict those of
another, when sources are told apart, more than when they are pooled, or left out ("sections"; with
counts drawn from the model: "simulated")? Do factors of digits, each class a source, retrieve
digits of the same class ("digits" from the data folder, "bundled" those that come with
scikit-learn)?
"""

import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import factor_report
from factor_settings import FULL, PARTS, QUICK, STANDARD, Settings, from_factors
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["STUDY", "main"]

COUNTS, REALS = "PoissonGammaFactorAnalysis", "GaussianFactorAnalysis"
KINDS = ("hierarchical", "pooled", "alone")
BIRTHS = ("exact", "approximate")


def cells(s: Settings, folder: str | None) -> Iterator[Cell]:
    """Return what is measured; data are read when they are first needed."""
    import factor_measures as measures

    data = cache(partial(read, s, folder))
    for a_phi in s.a_phi:
        for seed in s.data_seeds:
            for first in s.starts:
                yield Cell(
                    "planted", COUNTS, partial(measures.measure_planted, a_phi, seed, first, s),
                    detail={"a_phi": a_phi}, split_seed=seed, chain_seed=s.seed,
                    start=from_factors(first), seconds=50,
                )  # fmt: skip
        for number, births in enumerate(BIRTHS):
            yield Cell(
                "births", f"{births} births",
                partial(measures.measure_births, a_phi, births, number, s),
                detail={"a_phi": a_phi}, split_seed=s.seed, chain_seed=s.seed,
                start=from_factors(1), seconds=260,
            )  # fmt: skip
    for fit in (*simulated_fits(s), *section_fits(s)):
        source = f"simulated {fit.run}" if fit.part == "simulated" else fit.part
        yield Cell(
            fit.part, fit.method,
            lambda f=fit, of=source: measures.measure_section(data(of), f, s),
            "nips12" if fit.part == "sections" else "",
            {"auxiliary_section": fit.auxiliary or "none", "training_papers_of_target": fit.size},
            split_seed=fit.run, chain_seed=s.seed + fit.run,
            start="" if fit.first is None else from_factors(fit.first),
            seconds={"unigram": 1, "HDP": 300}.get(fit.method.split()[0], 40),
        )  # fmt: skip
    for part in ("digits", "bundled"):
        yield from image_cells(s, part, partial(data, part))


class Fit(NamedTuple):
    """One fit that is scored by test rows of the target."""

    part: str
    run: int
    method: str
    size: int  # training rows of the target
    auxiliary: str | None  # the other source; None: there is none
    first: int | None = None  # factors at the start; None: as many as the library begins with


def simulated_fits(s: Settings) -> Iterator[Fit]:
    """Return the fits to counts drawn from the model."""
    for run in range(s.simulated_runs):
        for size in s.simulated_sizes:
            for kind in KINDS:
                other = None if kind == "alone" else "auxiliary"
                for first in (None, s.other_start)[: 2 if run < s.simulated_starts else 1]:
                    yield Fit("simulated", run, kind, size, other, first)


def section_fits(s: Settings) -> Iterator[Fit]:
    """Return the fits to sections of NIPS."""

    def fits(
        run: int, methods: Sequence[str], others: Sequence[str], sizes: Sequence[int],
        first: int | None = None,
    ) -> Iterator[Fit]:  # fmt: skip
        for method in methods:
            for size in sizes:
                for other in [None] if "alone" in method else others:
                    yield Fit("sections", run, method, size, other, first)

    sparse = [f"{kind} sparse" for kind in KINDS]
    for run in range(s.runs):
        yield from fits(run, ("unigram", *KINDS), s.auxiliaries, s.target_sizes)
        yield from fits(run, sparse, s.sparse_auxiliaries, s.sparse_sizes)
        gaussian = [f"Gaussian, {births} births" for births in BIRTHS]
        yield from fits(run, gaussian, s.auxiliaries[:1], s.gaussian_sizes)
        if run < s.topic_runs:
            yield from fits(run, ("HDP pooled", "HDP alone"), s.topic_auxiliaries, s.target_sizes)
        if run == 0 and s.size != "quick":
            yield from fits(run, KINDS, s.auxiliaries[:1], s.target_sizes, s.other_start)
            yield from fits(run, sparse, s.auxiliaries[:1], s.sparse_sizes, s.other_start)


def image_cells(s: Settings, part: str, data: Any) -> Iterator[Cell]:
    """Return features, principal components, and factors from each start and by both births."""
    import factor_measures as measures

    seeds = {"split_seed": s.seed, "chain_seed": s.seed}
    yield Cell(part, "features", lambda: measures.measure_features(data(), None, s), **seeds)
    yield Cell(
        part, "principal components",
        lambda: measures.measure_features(data(), s.components, s), **seeds,
    )  # fmt: skip
    for number, births in enumerate(BIRTHS):
        for first in s.image_starts:
            yield Cell(
                part, f"{REALS}, {births} births",
                lambda f=first, n=number: measures.measure_gaussian(data(), f, n, s),
                start=from_factors(first), seconds=900, **seeds,
            )  # fmt: skip


def read(settings: Settings, folder: str | None, what: str) -> Any:
    """Read data, or simulate some for a quick look."""
    import factor_data

    kind, _, run = what.partition(" ")
    if kind == "simulated":
        return factor_data.simulated(settings.seed + int(run))
    if settings.size == "quick":
        small = factor_data.tiny_sections if kind == "sections" else factor_data.tiny_images
        return small(settings.seed)
    if kind == "bundled":
        return factor_data.bundled(settings.seed)
    assert folder is not None  # the command line has asked for it
    if kind == "sections":
        return factor_data.sections(folder, settings.max_words)
    return factor_data.digits(folder)


STUDY = Study(
    name="factors",
    title="Factor models of several sources: planted factors, sections of NIPS, digits by class.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=lambda settings, folder, output: ({}, list(cells(settings, folder))),
    report=factor_report.report,
    modules=[Path(__file__).with_name(f"factor_{name}.py") for name in ("data", "measures")],
    data_files={"sections": "nips12.npz", "digits": "mfeat.npz"},
    may_change=(
        "cores", "data_seeds", "a_phi", "starts", "auxiliaries", "target_sizes", "runs",
        "sparse_auxiliaries", "sparse_sizes", "topic_runs", "topic_auxiliaries", "gaussian_sizes",
        "simulated_sizes", "simulated_runs", "simulated_starts", "image_starts",
    ),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
