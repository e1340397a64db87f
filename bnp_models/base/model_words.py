"""Words of topic models and of factor models, for messages and for names that users type."""

from typing import NamedTuple

__all__ = ["FACTORS", "TOPICS", "ModelWords"]


class ModelWords(NamedTuple):
    """Words for what a model updates and finds."""

    units: str  # what a sweep updates, in the plural
    parts: str  # what the model finds, in the plural
    dim: str  # dim of the draws over what is found: its labels differ between chains
    count_variable: str  # recorded variable: the number of those in use
    capacity: str  # hyperparameter: number of slots at the start of an infinite model
    start_option: str  # option of `gibbs`: number of topics or factors at the start
    data: tuple[str, ...]  # names of the data as an argument; the first is that of the programs


TOPICS = ModelWords(
    "tokens", "topics", "topic", "num_topics_used", "max_topics", "init_topics", ("corpus",)
)
"""Words of the models of a `Corpus`."""
FACTORS = ModelWords(
    "rows", "factors", "factor", "num_factors_used", "max_factors", "init_factors",
    ("data", "sources"),
)  # fmt: skip
"""Words of the models of `Sources`."""
