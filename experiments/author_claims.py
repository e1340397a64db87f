"""Claims of the study of author-topic models; none is left out.

Models that see different things are two conditions and do not compete: between these the question
is how many words the authors are worth.
"""

from functools import partial
from typing import Any

import author_findings as findings
from author_findings import CLOSE, NEAR, SAME
from author_settings import ATM, HDP, LDA, NP
from study.claims import Claim, judge, not_run

__all__ = ["CLAIMS", "judged"]

ROSEN_ZVI = ("Rosen-Zvi et al., UAI 2004", "perplexity by words observed")
BLEIER, BLEIER_LDA = ("Bleier", "section 3"), ("Bleier", "section 3, for LDA")
OWN = ("own question", "-")
OPEN = "not given: section 3 leaves performance open"
PAIRS = ((BLEIER, NP, ATM), (BLEIER_LDA, HDP, LDA))
CLAIMS = (
    Claim(*ROSEN_ZVI, "Before a word is seen, the authors predict a document better than LDA does",
          "ratio below 1", partial(findings.words, after=False)),
    Claim(*ROSEN_ZVI, "After many words LDA predicts the rest better than the authors do",
          "ratio above 1", partial(findings.words, after=True)),
    Claim(*ROSEN_ZVI, "The author-topic model predicts better than a model of authors without "
          "topics", "lower perplexity",
          lambda run: not_run("The model of authors without topics is not in this library.")),
    Claim(*BLEIER, "The model estimates the number of topics that the data need",
          f"no number given; two starts within {SAME:.0%}", findings.number_of_topics),
    *(Claim(*source, f"{inferred} is at most {NEAR:.0%} worse than {fixed} with its best K", OPEN,
            partial(findings.near, inferred=inferred, fixed=fixed))
      for source, inferred, fixed in PAIRS),
    *(Claim(*source, f"{inferred} predicts better than {fixed} with as many topics", OPEN,
            partial(findings.same_size, inferred=inferred, fixed=fixed))
      for source, inferred, fixed in PAIRS),
    *(Claim(*OWN, f"An alpha for each topic brings {fixed} to the score of {inferred}",
            f"at most {CLOSE:.0%} worse",
            partial(findings.alpha_per_topic, inferred=inferred, fixed=fixed))
      for _, inferred, fixed in PAIRS),
    Claim(*OWN, "The authors are worth more than all words of a first half: with them "
          f"{ATM} predicts better than LDA does, each with its best K", "not known",
          findings.authors_or_half),
    Claim(*OWN, "Our author-topic model predicts better than gensim's, tuned on validation "
          "documents, with every K", "ratio below 1",
          partial(findings.gensim_with_every_k, single=False)),
    Claim(*OWN, "So does one state of ours, with every K", "ratio below 1",
          partial(findings.gensim_with_every_k, single=True)),
    Claim(*OWN, "So does the last state of one chain on the clock", "ratio below 1",
          findings.one_state_after_seconds),
    Claim(*OWN, "One chain of ours is at gensim's score sooner than gensim", "fewer seconds",
          findings.sooner),
    Claim(*OWN, f"One state of {HDP} predicts better than tomotopy's HDP with its hyperparameters "
          "optimised", "ratio below 1", findings.tomotopy),
    Claim(*OWN, "The chains of all fits agree", "R-hat below 1.05", findings.converged),
)  # fmt: skip


def judged(run: dict[str, Any]) -> list[dict[str, str]]:
    """Return the table of claims."""
    return judge(CLAIMS, run)
