"""Sizes of the study of author-topic models, and the names of its contestants."""

import dataclasses

__all__ = [
    "ALL", "ALONE", "ATM", "AUTHORS", "FULL", "GENSIM", "HDP", "INFERRED", "LDA", "NP", "PARTS",
    "PER_TOPIC", "QUICK", "SEEN_BY", "STANDARD", "TOMOTOPY", "Settings", "start_name",
]  # fmt: skip

PARTS = ("fit", "long", "peers", "curve")
LDA, ATM = "LDA", "AuthorTopicModel"
HDP, NP = "HDPLDA", "NonparametricAuthorTopicModel"
ALONE = "authors without topics"
GENSIM, TOMOTOPY = "gensim's AuthorTopicModel", "tomotopy's HDP"
INFERRED = "inferred"
"""Stands where a number of topics would."""

PER_TOPIC = "for each topic"
"""One alpha for each topic, with a prior of its own; otherwise there is one for all."""

AUTHORS, ALL = "authors", "all"
"""What is known of a test document: its authors, or all words of its first half."""

SEEN_BY = {
    LDA: ALL, HDP: ALL, ATM: AUTHORS, NP: AUTHORS, ALONE: AUTHORS, GENSIM: AUTHORS, TOMOTOPY: ALL,
}  # fmt: skip
"""Two conditions: models that see different things do not compete."""


def start_name(topics: int) -> str:
    """Name the start of chains of a model that infers the number of topics."""
    return f"from {topics} topics"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    size: str
    cores: int = 2
    seed: int = 0
    # documents
    splits: int = 3  # each with chains of its own
    num_docs: int | None = 400  # those of the most prolific authors; None: all
    min_count: int = 10  # rarer words are dropped
    test_share: float = 0.2
    words: tuple[int, ...] = (0, 1, 4, 16, 64, 256)  # seen of a first half, and all of it
    # fits
    topics: tuple[int, ...] = (25, 50, 100, 200, 400, 800)
    per_topic: tuple[int, ...] = (100, 400)  # topics of fits with an alpha for each
    infinite: tuple[str, ...] = (HDP, NP)
    beta: float = 0.01
    sampled: bool = True  # the other concentrations; else fixed
    starts: tuple[int, ...] = (100, 10)  # topics at the usual and at another start, where inferred
    start_splits: int = 2  # the first ones: there the other start is tried as well
    num_chains: int = 2
    num_warmup: int = 250
    num_samples: int = 250
    schedule: str | None = None  # None: the default one of each model
    keep_states: int = 5  # per chain
    max_topics: int = 288  # room enough from the start: to grow is to compile again
    # longer chains, all from two starts; 0: the usual start of a finite model
    long_splits: int = 1
    long_topics: tuple[tuple[str, tuple[int, ...]], ...] = ((LDA, (800, 1600)), (ATM, (100, 200)))
    long_starts: tuple[tuple[int, int], ...] = ((0, 10), (800, 10))  # finite, inferred
    long_warmup: int = 1000
    long_samples: int = 1000
    long_states: int = 25
    long_max_topics: int = 1024
    # peers
    gensim_topics: tuple[int, ...] = (50, 100, 200)
    etas: tuple[float | str, ...] = (0.01, 0.1, 0.5, "auto")
    chunks: tuple[int, ...] = (50, 2000)  # documents between two updates; gensim's default is 2000
    validation_share: float = 0.15  # of the training documents
    tune_seconds: float = 20.0  # of training, for each choice
    tune_points: int = 14  # at which the score is taken meanwhile
    tomotopy_starts: tuple[int, ...] = (100, 2)
    # curves
    curve_topics: int = 50
    curves: tuple[tuple[str, int], ...] = (("parallel", 2), ("sequential", 2), ("parallel", 1))
    curve_seconds: float = 60.0
    curve_points: int = 12


STANDARD = Settings("standard")
FULL = Settings(
    "full", splits=5, num_docs=None, starts=(400, 10), num_chains=4, num_warmup=1500,
    num_samples=1500, keep_states=10, long_splits=3, long_warmup=5000, long_samples=5000,
    tune_seconds=600.0, tune_points=20, curve_topics=100,
    curve_seconds=600.0, curve_points=18,
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, splits=1, num_docs=40, words=(0, 4), topics=(4,), per_topic=(),
    infinite=(NP,), beta=0.1, sampled=False, starts=(4,), start_splits=0, num_warmup=4,
    num_samples=6, schedule="sequential", keep_states=2, max_topics=32,
    long_topics=((ATM, (4,)),), long_starts=((0, 1), (4, 1)), long_warmup=4, long_samples=6,
    long_states=2, long_max_topics=32, gensim_topics=(4,),
    etas=(0.1, "auto"), chunks=(2000,), tune_seconds=0.2, tune_points=3, tomotopy_starts=(4,),
    curve_topics=4, curves=(("sequential", 2),), curve_seconds=0.05, curve_points=2,
)  # fmt: skip
"""One program for each model serves everything, because compiling takes most of the time."""
