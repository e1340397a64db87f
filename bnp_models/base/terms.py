"""What the two kinds of models call their things: in messages, and in names that users type."""

from typing import NamedTuple

__all__ = ["FACTORS", "TOPICS", "Terms"]


class Terms(NamedTuple):
    """Words for what a model moves and finds."""

    items: str  # what a sweep moves, in the plural
    found: str  # what the model finds, in the plural
    dim: str  # of the draws, over what it finds: its labels mean nothing across chains
    used: str  # the recorded number of those in use
    capacity: str  # the hyperparameter that says how many slots an infinite model begins with
    start: str  # the option of `gibbs` that says how many there are at first


TOPICS = Terms("tokens", "topics", "topic", "num_topics_used", "max_topics", "init_topics")
"""Of the models of a `Corpus`."""
FACTORS = Terms("rows", "factors", "factor", "num_factors_used", "max_factors", "init_factors")
"""Of the models of `Sources`."""
