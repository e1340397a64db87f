"""What every topic model with an HDP root refuses, for the lists of its `Contract`."""

from typing import Any

import numpy as np
import numpyro.distributions as dist

__all__ = ["ROOTED_ARGUMENTS", "ROOTED_NO_UPDATE", "ROOTED_OPTIONS"]

ROOTED_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"max_topics": 0}, "max_topics must be an integer of at least 1, got 0"),
    ({"alpha": -1.0}, "alpha must be positive"),
    ({"gamma": 0.0}, "gamma must be positive"),
    ({"beta": np.nan}, "beta must be positive"),
    ({"gamma": dist.Gamma(np.ones(2), 1.0)}, "gamma must have a scalar prior"),
]
"""Arguments of the class, each with a pattern of the message."""

ROOTED_OPTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"schedule": "fast"},
        r"schedule must be one of \['auto', 'mixed', 'parallel', 'sequential'\], got 'fast'",
    ),
    ({"init_topics": 0}, "init_topics must be an integer of at least 1"),
    ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
]
"""Options of `gibbs`, each with a pattern of the message."""

ROOTED_NO_UPDATE = {"gamma": dist.LogNormal(0.0, 1.0)}
"""A prior that the kernels have no update for."""
