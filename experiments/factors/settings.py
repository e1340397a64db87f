"""Sizes of the factor studies, and the names of what is compared."""

import dataclasses

__all__ = [
    "FULL", "PARTS", "QUICK", "SAMPLERS", "SECTIONS", "STANDARD", "TRUE", "Settings",
    "from_factors",
]  # fmt: skip

PARTS = ("planted", "samplers", "estimates", "simulated", "sections", "digits", "bundled")
SECTIONS = ("IM", "SSP", "AP", "AA", "CNP", "CS", "LT", "NS")
TRUE = "from the true factors"
SAMPLERS: dict[str, dict[str, str]] = {
    "all moves": {},
    "slice sampler": {"moves": "slice"},
    "approximate births": {"approximation": "births"},
}
"""Options of `fit`: the usual sampler, the paper's, and the one that it is compared with."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Size of a run; `FULL` is as large as the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    # planted factors
    rows_per_source: int = 100
    data_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    a_phi: tuple[float, ...] = (1.0, 0.2)  # shape of planted factors: the paper's, and a sparse one
    starts: tuple[int | None, ...] = (1, 20, None)  # factors at the start; None: the true ones
    planted_chains: int = 4
    planted_sweeps: int = 1000  # the second half is the posterior
    planted_states: int = 200  # kept per chain
    # three samplers, one chain of each for each of these planted data sets
    sampler_seeds: tuple[int, ...] = tuple(range(10))
    sampler_sweeps: int = 1000
    sampler_states: int = 250  # so often a chain is looked at
    # estimates of the probability of a row: factors, mean counts of a row, and draws of each way
    estimate_factors: tuple[int, ...] = (2, 12, 48)
    estimate_counts: tuple[int, ...] = (100, 1000)
    estimate_rows: int = 40
    estimate_temperatures: tuple[int, ...] = (100, 200, 1000)
    reference_temperatures: int = 10_000  # for more than two factors
    # sections of NIPS, and counts drawn from the model
    simulated_sizes: tuple[int, ...] = (10, 40)  # rows of the target
    simulated_runs: int = 5
    simulated_starts: int = 2  # how many of these runs have the other start, too
    auxiliaries: tuple[str, ...] = SECTIONS
    target_sizes: tuple[int, ...] = (10, 20, 40, 80)
    num_auxiliary: int = 80
    num_test: int = 44
    runs: int = 3
    sparse_auxiliaries: tuple[str, ...] = ("IM", "SSP", "AP")
    sparse_sizes: tuple[int, ...] = (10, 80)
    sparse_a_phi: float = 0.1  # the paper's is 1
    sparser_a_phi: tuple[float, ...] = (0.03, 0.01)  # of the first auxiliary section
    topic_runs: int = 3  # of the HDP
    topic_auxiliaries: tuple[str, ...] = ("IM",)
    three_level_sizes: tuple[int, ...] = (10, 80)
    more_runs: int = 10  # of the first auxiliary section, at these sizes
    more_sizes: tuple[int, ...] = (10, 80)
    gaussian_sizes: tuple[int, ...] = (80,)
    gaussian_sweeps: tuple[int, int] = (600, 60)  # exact, approximate; a half is warm-up
    other_start: int = 1  # factors at the other start, in the first run
    hdp_beta: float = 0.05
    max_words: int | None = 1000
    num_warmup: int = 300
    num_samples: int = 300
    num_chains: int = 2
    keep_states: int = 10  # per chain
    num_temperatures: int = 200  # of the annealing that scores rows
    section_sweeps: tuple[int, int] = (150, 150)  # warm-up, draws; there are hundreds of these fits
    section_temperatures: int = 100
    num_particles: int = 20  # of the left-to-right estimate
    # digits
    image_starts: tuple[int, ...] = (1, 40)
    image_chains: int = 4
    image_sweeps: tuple[int, int] = (1000, 100)  # exact, approximate; the second half is used
    components: tuple[int, ...] = (5, 10, 15, 20, 30, 40, 60)  # among which training rows choose


STANDARD = Settings("standard")
FULL = Settings(
    "full", planted_sweeps=10_000, sampler_sweeps=10_000, sampler_states=1000,
    target_sizes=tuple(range(10, 90, 10)), runs=10, sparse_auxiliaries=SECTIONS,
    sparse_sizes=tuple(range(10, 90, 10)), topic_runs=10, topic_auxiliaries=SECTIONS,
    gaussian_sizes=tuple(range(10, 90, 10)), gaussian_sweeps=(2000, 2000), max_words=None,
    num_warmup=1000, num_samples=1000, section_sweeps=(1000, 1000), section_temperatures=200,
    num_chains=4, image_sweeps=(10_000, 2000),
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, rows_per_source=10, data_seeds=(0,), a_phi=(1.0,), starts=(1, None),
    planted_chains=2, planted_sweeps=20, planted_states=10, sampler_seeds=(0, 1), sampler_sweeps=4,
    sampler_states=2, estimate_factors=(2, 3), estimate_counts=(10,), estimate_rows=3,
    estimate_temperatures=(5,), reference_temperatures=8, simulated_sizes=(5,), simulated_runs=1,
    auxiliaries=("near",), target_sizes=(5,), num_auxiliary=9, num_test=6, runs=1, more_runs=1,
    sparse_auxiliaries=(), sparse_sizes=(), sparser_a_phi=(), topic_runs=0, gaussian_sizes=(),
    num_warmup=3, num_samples=4, keep_states=4, num_temperatures=5, section_sweeps=(3, 4),
    section_temperatures=5, num_particles=1, image_starts=(1,), image_chains=2,
    image_sweeps=(8, 4), components=(2, 3),
)  # fmt: skip


def from_factors(first: int | None) -> str:
    """Name a start."""
    if first is None:
        return TRUE
    return f"from {first} factor{'' if first == 1 else 's'}"
