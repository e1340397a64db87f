"""The cells of the factor studies; data are read when they are first needed."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from study.cells import Cell, later

from factors import data, measures
from factors.settings import SAMPLERS, Settings, from_factors

__all__ = ["KINDS", "Fit", "prepare", "section_fits", "simulated_fits"]

COUNTS, REALS = "PoissonGammaFactorAnalysis", "GaussianFactorAnalysis"
KINDS = ("hierarchical", "pooled", "alone")
BIRTHS = ("exact", "approximate")


def prepare(
    settings: Settings, folder: str | None, output: Path
) -> tuple[dict[str, Any], list[Cell]]:
    """Return the head of the run, and its cells."""
    return {}, list(cells(settings, folder))


def cells(s: Settings, folder: str | None) -> Iterator[Cell]:
    """Return what is measured; data are read when they are first needed."""
    read_once = cache(partial(read, s, folder))
    for a_phi in s.a_phi:
        for seed in s.data_seeds:
            for first in s.starts:
                yield Cell(
                    "planted", COUNTS, partial(measures.measure_planted, a_phi, seed, first, s),
                    detail={"a_phi": a_phi}, split_seed=seed, chain_seed=s.seed,
                    start=from_factors(first),
                )  # fmt: skip
        for seed in s.sampler_seeds:
            for name, options in SAMPLERS.items():
                yield Cell(
                    "samplers", name, partial(measures.measure_sampler, a_phi, seed, options, s),
                    detail={"a_phi": a_phi}, split_seed=seed, chain_seed=s.seed + seed,
                    start=from_factors(1),
                )  # fmt: skip
    for factors in s.estimate_factors:
        for counts in s.estimate_counts:
            yield Cell(
                "estimates", COUNTS, partial(measures.measure_estimates, factors, counts, s),
                detail={"factors": factors, "counts": counts}, split_seed=s.seed,
            )  # fmt: skip
    for fit in (*simulated_fits(s), *section_fits(s)):
        source = f"simulated {fit.run}" if fit.part == "simulated" else fit.part
        yield Cell(
            fit.part, fit.method,
            later(measures.measure_section, partial(read_once, source), fit, s),
            "nips12" if fit.part == "sections" else "",
            {"auxiliary_section": fit.auxiliary or "none", "training_papers_of_target": fit.size},
            split_seed=fit.run, chain_seed=s.seed + fit.run,
            start="" if fit.first is None else from_factors(fit.first),
        )  # fmt: skip
    for part in ("digits", "bundled"):
        yield from image_cells(s, part, partial(read_once, part))


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
        sparser = [f"hierarchical a_phi {a_phi:g}" for a_phi in s.sparser_a_phi]
        yield from fits(run, sparser, s.auxiliaries[:1], s.sparse_sizes)
        gaussian = [f"Gaussian, {births} births" for births in BIRTHS]
        yield from fits(run, gaussian, s.auxiliaries[:1], s.gaussian_sizes)
        if run < s.topic_runs:
            yield from fits(run, ("HDP pooled", "HDP alone"), s.topic_auxiliaries, s.target_sizes)
            yield from fits(run, ["HDP, three levels"], s.topic_auxiliaries, s.three_level_sizes)
        if run == 0 and s.size != "quick":
            yield from fits(run, KINDS, s.auxiliaries[:1], s.target_sizes, s.other_start)
            yield from fits(run, sparse, s.auxiliaries[:1], s.sparse_sizes, s.other_start)
    for run in range(s.runs, s.more_runs):
        yield from fits(run, KINDS, s.auxiliaries[:1], s.more_sizes)


def image_cells(s: Settings, part: str, images: Callable[[], data.Images]) -> Iterator[Cell]:
    """Return features, principal components, and factors from each start and by both births."""
    seeds: dict[str, Any] = {"split_seed": s.seed, "chain_seed": s.seed}
    for name, components in (("features", None), ("principal components", s.components)):
        yield Cell(part, name, later(measures.measure_features, images, components, s), **seeds)
    for number, births in enumerate(BIRTHS):
        for first in s.image_starts:
            yield Cell(
                part, f"{REALS}, {births} births",
                later(measures.measure_gaussian, images, first, number, s),
                start=from_factors(first), **seeds,
            )  # fmt: skip


def read(settings: Settings, folder: str | None, what: str) -> Any:
    """Read data, or simulate some for a quick look."""
    kind, _, run = what.partition(" ")
    if kind == "simulated":
        return data.simulated(settings.seed + int(run))
    if settings.size == "quick":
        small = data.tiny_sections if kind == "sections" else data.tiny_images
        return small(settings.seed)
    if kind == "bundled":
        return data.bundled(settings.seed)
    assert folder is not None  # the command line has asked for it
    if kind == "sections":
        return data.sections(folder, settings.max_words)
    return data.digits(folder)
