"""Checks that a Gibbs kernel samples the posterior of its model: see `Case`.

Needs nothing but the library itself; `each_check` and `each_mutant` need pytest.
"""

from bnp_models.testing import authors, enumeration, factors, simulate, tokens
from bnp_models.testing.cases import Case, Check, Conditional, Joint, Schedule, Target
from bnp_models.testing.chains import Effort, Growth
from bnp_models.testing.invariants import quick_jit
from bnp_models.testing.mutants import Mutant, edited
from bnp_models.testing.statistics import Rejected, Report
from bnp_models.testing.suite import each_check, each_mistake, each_mutant
from bnp_models.testing.together import Mistake

__all__ = [
    "Case",
    "Check",
    "Conditional",
    "Effort",
    "Growth",
    "Joint",
    "Mistake",
    "Mutant",
    "Rejected",
    "Report",
    "Schedule",
    "Target",
    "authors",
    "each_check",
    "each_mistake",
    "each_mutant",
    "edited",
    "enumeration",
    "factors",
    "quick_jit",
    "simulate",
    "tokens",
]
