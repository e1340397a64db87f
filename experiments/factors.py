"""Factor models of several sources: planted factors, sections of NIPS, digits by class.

    python experiments/factors.py --data FOLDER

Three questions of Gupta, Phung and Venkatesh, UAI 2012, section 5. Does the sampler find the number
of planted factors, the factors, and who shares them? Do papers of one section help to predict those
of another, when sources are told apart, more than when they are pooled, or left out? Do factors of
digits, each class a source, retrieve digits of the same class ("digits" from the data folder,
"bundled" those that come with scikit-learn)?
"""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import factor_claims
from study.cells import Cell
from study.command import Study, parser_of, run_study

__all__ = ["STUDY", "Settings", "main"]

METHODS = (
    "unigram", "hierarchical", "hierarchical sparse", "pooled", "alone", "HDP pooled", "HDP alone",
)  # fmt: skip
VARIANTS = (("exact", "default"), ("approximate", "sequential"), ("exact", "sequential"))


@dataclasses.dataclass(frozen=True)
class Settings:
    """Size of a run; `FULL` is as large as the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    rows_per_source: int = 100
    sweeps: int = 2000  # of the planted study; the second half is the posterior
    approximate_sweeps: int = 150  # with approximate births, which take longer
    planted_chains: int = 4
    a_phi: tuple[float, ...] = (1.0, 0.2)  # shape of planted factors: the paper's, and a sparse one
    variants: tuple[tuple[str, str], ...] = VARIANTS  # births and schedule, of planted factors
    starts: tuple[int, ...] = (1, 20)  # factors at the start: of planted factors and digits
    auxiliaries: tuple[str, ...] = ("IM", "NS")
    target_sizes: tuple[int, ...] = (10, 40, 80)
    num_auxiliary: int = 80
    num_test: int = 44
    runs: int = 2
    topic_runs: int = 1  # of the HDP, which takes longer
    methods: tuple[str, ...] = METHODS
    sparse_a_phi: float = 0.1  # of the method "hierarchical sparse"; the paper's is 1
    hdp_beta: float = 0.05
    max_words: int | None = 1000
    num_warmup: int = 300
    num_samples: int = 300
    num_chains: int = 2
    keep_states: int = 10  # per chain
    digit_sweeps: int = 1000  # the second half is the posterior
    components: tuple[int, ...] = (10, 20, 40)  # of the baseline by principal components


STANDARD = Settings("standard")
FULL = Settings(
    "full", sweeps=10_000, approximate_sweeps=5000,
    auxiliaries=("IM", "SSP", "AP", "AA", "CNP", "CS", "LT", "NS"),
    target_sizes=tuple(range(10, 90, 10)), runs=10, topic_runs=10, max_words=None,
    num_warmup=1000, num_samples=1000, num_chains=4, digit_sweeps=10_000,
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, rows_per_source=10, sweeps=20, planted_chains=2, a_phi=(1.0,),
    variants=VARIANTS[:1], starts=(1,), auxiliaries=("near",), target_sizes=(5,), num_auxiliary=9,
    num_test=6, runs=1, topic_runs=0, methods=("hierarchical",), num_warmup=3, num_samples=4,
    keep_states=4, digit_sweeps=8, components=(2,),
)  # fmt: skip


def cells(s: Settings, folder: str | None) -> Iterator[Cell]:
    """Return what is measured; data are read when they are first needed."""
    import factor_measures as measures

    data = cache(partial(read, s, folder))
    seeds = {"split_seed": s.seed, "chain_seed": s.seed}
    starts = {first: f"from {first} factor{'' if first == 1 else 's'}" for first in s.starts}
    for first, start in starts.items():
        for births, schedule in s.variants:
            for a_phi in s.a_phi:
                call = partial(measures.measure_planted, a_phi, births, schedule, first, s)
                about = {"a_phi": a_phi, "births": births, "schedule": schedule}
                yield Cell(
                    "planted", "PoissonGammaFactorAnalysis", call, detail=about, start=start,
                    seconds=400, **seeds,
                )  # fmt: skip
    for run, method, size, other in section_cells(s):
        auxiliary = "none" if "alone" in method else other
        yield Cell(
            "sections", method,
            lambda o=other, n=size, r=run, m=method: measures.measure_section(
                data("sections"), o, n, r, m, s
            ),
            "nips12", {"auxiliary_section": auxiliary, "training_papers_of_target": size},
            split_seed=run, chain_seed=s.seed + run,
            seconds={"unigram": 1, "HDP pooled": 400}.get(method, 120),
        )  # fmt: skip
    for part in ("digits", "bundled"):
        for k in (None, *s.components):
            method = "features" if k is None else f"{k} principal components"
            yield Cell(
                part, method, lambda p=part, k=k: measures.measure_features(data(p), k), **seeds
            )
        for first, start in starts.items():
            yield Cell(
                part, "GaussianFactorAnalysis",
                lambda p=part, n=first: measures.measure_gaussian(data(p), n, s),
                start=start, seconds=100, **seeds,
            )  # fmt: skip


def section_cells(s: Settings) -> Iterator[tuple[int, str, int, str]]:
    """Return run, method, training size and auxiliary section; the slow methods come last."""
    fast = [method for method in s.methods if not method.startswith("HDP")]
    slow = [method for method in s.methods if method.startswith("HDP")]
    for run in range(s.runs):
        for method in fast + slow if run < s.topic_runs else fast:
            for size in s.target_sizes:
                # alone there is no auxiliary section
                for other in s.auxiliaries[: 1 if "alone" in method else None]:
                    yield run, method, size, other


def read(settings: Settings, folder: str | None, part: str) -> Any:
    """Read the data of a part, or simulate some for a quick look."""
    import factor_data

    if settings.size == "quick":
        small = factor_data.tiny_sections if part == "sections" else factor_data.tiny_images
        return small(settings.seed)
    if part == "bundled":
        return factor_data.bundled(settings.seed)
    assert folder is not None  # the command line has asked for it
    if part == "sections":
        return factor_data.sections(folder, settings.max_words)
    return factor_data.digits(folder)


STUDY = Study(
    name="factors",
    title="Factor models of several sources: planted factors, sections of NIPS, digits by class.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=("planted", "sections", "digits", "bundled"),
    prepare=lambda settings, folder, output: ({}, list(cells(settings, folder))),
    report=factor_claims.report,
    modules=[Path(__file__).with_name(f"factor_{name}.py") for name in ("data", "measures")],
    data_files={"sections": "nips12.npz", "digits": "mfeat.npz"},
    may_change=("cores", "methods", "variants", "starts"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    return run_study(STUDY, parser_of(STUDY).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
