"""Sizes of the study of supervised topic models, and its methods."""

import dataclasses

__all__ = ["BINARY", "CLASSES", "FULL", "PARTS", "QUICK", "STANDARD", "VARIATIONAL", "Settings"]

PARTS = ("binary", "variational", "classes", "burn_in", "c", "alpha", "tomotopy", "speed")

# Methods of the two classes: how they are trained, and parameters; None: tuned
BINARY = {
    "gSLDA": ("logistic", {"c": 1.0}),
    "gSLDA+": ("logistic", {"c": 25.0}),
    "gSLDA tuned": ("logistic", None),
    "MedLDA": ("hinge", {"c": 1.0, "ell": 164.0}),
    "MedLDA tuned": ("hinge", None),
    "gMedLDA tuned": ("expected hinge", None),
    "gLDA+SVM": ("svm", {}),
    "gLDA+SVM tuned": ("svm", None),
    "gSLDA, algorithm 1": ("augmented logistic", {"c": 1.0}),
    "gSLDA+, algorithm 1": ("augmented logistic", {"c": 25.0}),
    "SVM of words": ("words", None),
}
VARIATIONAL = {
    "vSLDA": ("variational logistic", {"c": 1.0}),
    "vSLDA tuned": ("variational logistic", None),
    "vMedLDA tuned": ("variational hinge", None),
}
CLASSES = {
    "gSLDA": ("logistic", {"c": 1.0}),
    "gSLDA+": ("logistic", {"c": 256.0}),
    "MedLDA": ("hinge", {"c": 1.0, "ell": 64.0}),
    "gMedLDA": ("expected hinge", {"c": 1.0, "ell": 64.0}),
    "MedLDA tuned": ("hinge", None),
    "gMedLDA tuned": ("expected hinge", None),
    "gLDA+SVM": ("svm", {}),
    "gLDA+SVM, C=100": ("svm", {"svm_c": 100.0}),
    "SVM of words": ("words", None),
    "vSLDA": ("variational logistic", {"c": 1.0}),
    "vMedLDA": ("variational hinge", {"c": 1.0, "ell": 4.0}),
}
CLASS_MARGINS = ((1.0, 64.0), (1.0, 1000.0), (16.0, 16.0), (64.0, 16.0))
MARGINS = ((1.0, 1.0), (1.0, 16.0), (1.0, 64.0), (1.0, 164.0), (16.0, 1.0), (16.0, 16.0))


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes of a run. The mass of alpha is its sum over topics, `a` in the paper."""

    size: str
    cores: int = 2
    seed: int = 0
    seeds: int = 5  # random starts
    mass: float = 1.0
    beta: float = 0.01
    sweeps: int = 100
    start: int | None = 1  # topics at the other start; None: there is none
    start_seeds: int = 2
    states: int = 25  # that predictions are averaged over, in the second half of the sweeps
    fold_in: int = 50  # sweeps over a new document
    fold_in_kept: int = 25
    methods: tuple[str, ...] = (*BINARY, *VARIATIONAL)
    # binary
    topics: tuple[int, ...] = (5, 10, 20, 30)
    validation: float = 0.2
    validation_splits: int = 3
    tuned_topics: int = 20
    tried_c: tuple[float, ...] = (1.0, 9.0, 25.0, 64.0, 100.0)
    tried_margins: tuple[tuple[float, float], ...] = MARGINS  # c and ell
    tried_svm_c: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    # variational
    variational_topics: tuple[int, ...] = (5, 20)
    variational_seeds: int = 3
    variational_splits: int = 1
    variational_c: tuple[float, ...] = (9.0, 25.0)
    variational_margins: tuple[tuple[float, float], ...] = ((4.0, 1.0), (16.0, 1.0), (16.0, 4.0))
    steps: int = 400  # twice as many, again and again, until the bound is flat
    most_steps: int = 6400
    batch_size: int = 32
    learning_rate: float = 0.1
    # twenty classes
    class_methods: tuple[str, ...] = tuple(CLASSES)
    class_topics: tuple[int, ...] = (20,)
    class_share: float = 0.25  # of the documents of each class, training and test
    class_seeds: int = 5
    class_variational_seeds: int = 1
    class_steps: int = 100  # of 32 documents: a pass over a quarter of them
    class_most_steps: int = 400
    class_sweeps: int = 40
    class_mass: float = 5.6
    class_margins: tuple[tuple[float, float], ...] = CLASS_MARGINS
    class_states: int = 2
    class_fold_in: int = 20
    class_fold_in_kept: int = 10
    class_marks: tuple[int, ...] = (1, 5, 10, 20)  # other numbers of sweeps
    class_mark_seeds: int = 2
    piece_topics: tuple[int, ...] = (20, 30, 40, 50)
    piece_turns: int = 3
    # burn-in, c, alpha
    marks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200)
    mark_topics: tuple[int, ...] = (10, 20, 30)
    mark_schedules: tuple[str, ...] = ("parallel", "sequential")  # the second for the middle K
    roots_of_c: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    c_topics: tuple[int, ...] = (5, 10, 20)
    masses: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    mass_c: tuple[float, ...] = (1.0, 9.0)
    mass_topics: int = 10
    # tomotopy and speed
    peer_marks: tuple[int, ...] = (1, 5, 10, 20, 50, 100, 200, 500)
    peer_weights: tuple[float, ...] = (1.0, 25.0)
    our_marks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    our_schedules: tuple[str, ...] = ("parallel", "sequential")
    peer_sweeps: int = 500
    races: tuple[tuple[float, float], ...] = ((1.0, 1.0), (25.0, 1.0), (25.0, 25.0))  # ours, its
    race_schedule: str = "parallel"
    race_sweeps: int = 100
    race_seeds: int = 5
    speed_topics: int = 20
    speed_models: tuple[str, ...] = ("SupervisedLDA", "SupervisedLDA by algorithm 1", "MedLDA")
    speed_schedules: tuple[str, ...] = ("sequential", "parallel")
    speed_chains: tuple[int, ...] = (1, 4)
    speed_warmup: int = 5
    speed_seconds: float = 2.0  # of a turn
    speed_turns: int = 7


STANDARD = Settings("standard")
FULL = Settings(
    "full", topics=(5, 10, 15, 20, 25, 30), validation_splits=5,
    variational_topics=(5, 10, 15, 20, 25, 30), variational_seeds=5, variational_splits=3,
    variational_c=(9.0, 25.0, 64.0), steps=2000, most_steps=64_000,
    class_topics=(20, 30, 40, 50), class_share=1.0, class_variational_seeds=5, class_steps=1000,
    class_most_steps=16_000, class_states=25, class_fold_in=50, class_fold_in_kept=25,
    class_marks=(1, 2, 5, 10, 20, 60, 100), class_mark_seeds=5,
    roots_of_c=tuple(map(float, range(1, 11))),
)  # fmt: skip
QUICK = Settings(
    "quick", cores=1, seeds=2, sweeps=4, start_seeds=1, states=2, fold_in=4, fold_in_kept=2,
    methods=(
        "gSLDA", "gSLDA+", "gSLDA tuned", "MedLDA", "gLDA+SVM", "gSLDA+, algorithm 1",
        "SVM of words", "vSLDA",
    ),
    topics=(3,), most_steps=8,
    validation_splits=1, tuned_topics=3, tried_c=(25.0,), variational_topics=(3,),
    variational_seeds=1, steps=4, batch_size=16, class_methods=("gSLDA+", "gLDA+SVM"),
    class_topics=(3,), class_share=1.0, class_seeds=2, class_sweeps=4, class_fold_in=4,
    class_fold_in_kept=2, class_mass=1.0, class_marks=(), piece_topics=(3,), piece_turns=1,
    marks=(2, 4), mark_topics=(3,), mark_schedules=("parallel",), roots_of_c=(1.0, 5.0),
    c_topics=(3,), masses=(1.0,), mass_c=(25.0,), mass_topics=3, peer_marks=(1, 8),
    peer_weights=(25.0,), our_marks=(2, 4), our_schedules=("parallel",), peer_sweeps=8,
    races=((25.0, 25.0),), race_sweeps=4, race_seeds=1, speed_topics=3,
    speed_models=("SupervisedLDA", "SupervisedLDA by algorithm 1"),
    speed_schedules=("parallel",), speed_chains=(1,), speed_warmup=1, speed_seconds=0.01,
    speed_turns=2,
)  # fmt: skip
"""Small documents and few sweeps; what is compiled is shared where it can be."""
