"""Sizes of the study of differential topic models, and the names of its contestants."""

import dataclasses

__all__ = [
    "CCLDA", "CORRECTED", "FULL", "HALF", "HYBRIDS", "LDA", "MINKA", "PARTS", "PLUG_IN", "POOLED",
    "PRINTED", "PYP", "PYP_POOLED", "QUICK", "SAMPLERS", "SETS", "STANDARD", "TI", "TII", "WORDNET",
    "Settings", "Sizes",
]  # fmt: skip

SETS = {"blogs": "perplexity-blogs", "abstracts": "perplexity-abstracts"}
PARTS = (
    *SETS.values(), "samplers", "discount", "hybrids", "classification", "sweeps", "planted",
    "digits", "speed",
)  # fmt: skip
TI, TII, CCLDA = "TI", "TII", "ccLDA"
WORDNET = "TI, WordNet"  # TI's transform is of words that occur together
HALF = "TI, half"  # of TI's transform and of none
PYP, LDA = "PYP, each group alone", "LDA, each group alone"
PYP_POOLED, POOLED = "PYP, groups pooled", "LDA, groups pooled"
HYBRIDS = {"variational": "TII, variational hybrid", "em": "TII, EM hybrid"}
MINKA = "TII, Minka's updates"
SAMPLERS = {"ti": "table indicators", "cs": "table counts (CS)", "ss": "seats (SS)"}
CORRECTED, PRINTED, PLUG_IN = "corrected", "printed", "plug_in"
"""Scores of a group: its likelihood, the paper's sum, the likelihood with the paper's shares."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How the fits of a part are made. The paper's chains are single ones from random starts."""

    num_warmup: int
    num_samples: int
    num_chains: int = 2
    keep_states: int = 50  # of each chain
    schedule: str = "parallel"
    window: int = 20  # tokens that occur together
    top: int = 10  # words that a word is connected with
    association: str = "log-likelihood"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. With `FULL` they are the paper's where that says how large it is."""

    size: str
    cores: int = 2
    seed: int = 0
    seeds: int = 2  # splits, each with chains of its own
    start: int | None = 1  # topics at the other start of all chains; None: there is none
    # perplexity: documents of the blogs before the split (None: all), new ones that are scored
    perplexity: Sizes = Sizes(300, 200)
    sets: tuple[str, ...] = ("abstracts", "blogs")
    methods: tuple[str, ...] = (TI, TII, CCLDA, POOLED, PYP, LDA)
    # the words of the blogs are stems, which WordNet does not have
    other_transforms: tuple[tuple[str, str], ...] = (
        ("abstracts", WORDNET), ("abstracts", HALF), ("blogs", HALF),
    )  # fmt: skip
    blogs: int | None = None
    tests: int = 200
    topics: tuple[int, ...] = (10,)
    arcs: tuple[str, ...] = ("Think Progress", "Hot Air")  # groups of the picture of figure 4
    # samplers: a few abstracts
    samplers: Sizes = Sizes(0, 300, schedule="sequential")
    sampler_names: tuple[str, ...] = ("ti", "cs", "ss")
    sampler_train: int = 200
    sampler_topics: int = 10
    sampler_discounts: tuple[float, ...] = (0.7,)
    sampler_marks: tuple[int, ...] = (1, 3, 10, 20, 50, 100, *range(110, 301, 10))
    # discount
    discount: Sizes = Sizes(200, 100)
    discounts: tuple[float, ...] = (0.0, 0.3, 0.5, 0.7, 0.9)
    transformed_discounts: tuple[float, ...] = (0.7,)
    pooled_sets: tuple[str, ...] = ("abstracts",)  # of Pitman-Yor topics without groups
    discount_train: int = 400
    discount_topics: int = 10
    # hybrids of Gibbs sampling and variational inference, at concentrations of 0.1
    hybrids: Sizes = Sizes(200, 100, schedule="sequential")
    hybrid_seeds: int = 1
    # classification, and its accuracy from the first sweep on
    classification: Sizes = Sizes(100, 150, keep_states=15)
    sweeps: Sizes = Sizes(0, 200, keep_states=40)
    sweeps_seeds: int = 1
    classified_topics: int = 5
    lda_topics: int = 50  # LDA followed by an SVM
    particles: int = 20
    resample: int = 5
    svm_c: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    svm_gamma: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    # made-up groups
    planted: Sizes = Sizes(400, 200)
    concentrations: tuple[float, ...] = (3.0, 10.0, 30.0, 100.0, 300.0, 3000.0)
    planted_discount: float = 0.3
    planted_docs: int = 60  # of each group
    # digits
    digits: Sizes = Sizes(300, 300, keep_states=20)
    digit_topics: int = 10
    shown: tuple[str, ...] = ("V", "X", "Z")
    # speed
    speed_methods: tuple[str, ...] = (POOLED, PYP_POOLED, CCLDA, TII, TI)
    speed_schedules: tuple[str, ...] = ("parallel", "sequential")
    speed_chains: tuple[int, ...] = (1, 4)  # by the parallel schedule
    speed_samplers: tuple[str, ...] = ("ti", "cs", "ss")
    speed_topics: int = 50
    speed_warmup: int = 5
    speed_seconds: float = 3.0  # of a turn
    speed_turns: int = 5
    table_sweeps: int = 5


STANDARD = Settings("standard")
PAPER = Sizes(2000, 100)
FULL = Settings(
    "full", seeds=6, perplexity=PAPER, tests=1000, topics=(10, 20, 50, 100),
    samplers=Sizes(0, 2000, schedule="sequential"), sampler_train=1000,
    sampler_discounts=(0.0, 0.3, 0.5, 0.7, 0.9),
    sampler_marks=(1, 3, 10, 30, 100, 200, 500, *range(1000, 2001, 50)), discount=PAPER,
    transformed_discounts=(0.0, 0.3, 0.5, 0.7, 0.9), discount_train=1500, discount_topics=50,
    hybrids=dataclasses.replace(PAPER, schedule="sequential"), hybrid_seeds=3,
    classification=Sizes(100, 150), sweeps_seeds=6, planted=Sizes(2000, 1000),
    digits=Sizes(2000, 1000, keep_states=20),
)  # fmt: skip
TINY = Sizes(2, 4, num_chains=1, keep_states=2, schedule="sequential")
TWO = dataclasses.replace(TINY, num_chains=2)
QUICK = Settings(
    "quick", cores=1, seeds=1, start=None, perplexity=TINY, sets=("abstracts",), topics=(3,),
    tests=6, methods=(TI, TII, CCLDA, POOLED, LDA), other_transforms=(),
    arcs=("group 0", "group 1"),
    samplers=TWO, sampler_names=("ti",), sampler_train=16, sampler_topics=3,
    sampler_marks=(1, 2, 4), discount=TINY, hybrids=TINY, sweeps=TINY, discounts=(0.7,),
    transformed_discounts=(0.7,), pooled_sets=(), discount_train=1000, discount_topics=3,
    classification=TINY, classified_topics=3, lda_topics=3, shown=("V",), particles=4,
    resample=1, svm_c=(1.0,), svm_gamma=(1.0,), planted=TINY, concentrations=(3.0, 100.0, 3000.0),
    planted_docs=4, digits=TINY, digit_topics=3, speed_methods=(TII, TI),
    speed_schedules=("sequential",), speed_chains=(1,), speed_samplers=("ti",), speed_topics=3,
    speed_warmup=1, speed_seconds=0.01, speed_turns=2, table_sweeps=1,
)  # fmt: skip
