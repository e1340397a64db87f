"""Checks that a Gibbs kernel samples the posterior of its model: see `Case`.

Needs nothing but the library itself; `each_check` and `each_mistake` need pytest.
"""

from bnp_models.testing import author_corpora, enumeration, factor_sites, simulate, token_corpora
from bnp_models.testing.cases import Case, Check, Conditional, Joint, Schedule, Target
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.mistakes import Mistake, Survived
from bnp_models.testing.statistics import Rejected, Report
from bnp_models.testing.suite import each_check, each_mistake
from bnp_models.testing.together import Effort, Growth, SweepFailed

__all__ = [
    "Case",
    "Check",
    "Conditional",
    "Effort",
    "Growth",
    "Joint",
    "Mistake",
    "Rejected",
    "Report",
    "Schedule",
    "Survived",
    "SweepFailed",
    "Target",
    "author_corpora",
    "each_check",
    "each_mistake",
    "enumeration",
    "factor_sites",
    "quick_jit",
    "simulate",
    "token_corpora",
]
