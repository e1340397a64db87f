"""Checks that a Gibbs kernel samples the posterior of its model: see `Case`.

Needs nothing but the library itself; `each_check` and `each_mistake` need pytest.
"""

from bnp_models.testing import author_corpora, enumeration, simulate, token_corpora
from bnp_models.testing.cases import Case
from bnp_models.testing.compiled_sweeps import Effort, Growth, SweepFailed
from bnp_models.testing.contract import Contract, each_duty
from bnp_models.testing.enumeration import enumerate_posterior
from bnp_models.testing.factor_family import FactorFamily
from bnp_models.testing.finite_topics_case import FiniteTopicsCase
from bnp_models.testing.hdp_case import HDPCase
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.mistakes import Mistake, Survived, made, switched
from bnp_models.testing.move_check import MoveCheck, each_move, each_wrong_move
from bnp_models.testing.registry import check_case, find
from bnp_models.testing.shipped import Shipped
from bnp_models.testing.statistics import Disagreement, Rejected, Report
from bnp_models.testing.suite import each_check, each_mistake
from bnp_models.testing.targets import Check, Conditional, Joint, Schedule, Target
from bnp_models.testing.topic_family import (
    TinyCorpus,
    TopicFamily,
    as_floats,
    gamma_prior,
    late,
    priors_in_program,
    sharp,
)

__all__ = [
    "Case",
    "Check",
    "Conditional",
    "Contract",
    "Disagreement",
    "Effort",
    "FactorFamily",
    "FiniteTopicsCase",
    "Growth",
    "HDPCase",
    "Joint",
    "Mistake",
    "MoveCheck",
    "Rejected",
    "Report",
    "Schedule",
    "Shipped",
    "Survived",
    "SweepFailed",
    "Target",
    "TinyCorpus",
    "TopicFamily",
    "as_floats",
    "author_corpora",
    "check_case",
    "each_check",
    "each_duty",
    "each_mistake",
    "each_move",
    "each_wrong_move",
    "enumerate_posterior",
    "enumeration",
    "find",
    "gamma_prior",
    "late",
    "made",
    "priors_in_program",
    "quick_jit",
    "sharp",
    "simulate",
    "switched",
    "token_corpora",
]
