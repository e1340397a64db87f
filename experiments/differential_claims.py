"""Claims of the study of differential topic models; none is left out.

The blogs stand for the paper's sets "Blog" and "BD", the abstracts for "MLJ".
"""

from functools import partial
from typing import Any

from differential_findings import (
    ALIGNED,
    CLEAR,
    EQUAL,
    RANK,
    SPEED,
    TABLE_MEGABYTES,
    accuracy,
    against_all,
    alignment,
    converged,
    likeness_ranks,
    never,
    of_digits,
    of_samplers,
    pair,
    planted_ranks,
    speed,
    steadier,
    tables,
    transformed,
    with_discount,
)
from differential_settings import (
    CCLDA,
    CORRECTED,
    LDA,
    PLUG_IN,
    POOLED,
    PRINTED,
    PYP,
    PYP_POOLED,
    SAMPLERS,
    SETS,
    TI,
    TII,
)
from study.claims import Claim, judge

__all__ = ["claims_by", "judged", "other_claims"]

PAPER = "Chen et al., TPAMI 2015"
NAMED = {"blogs": "Blogs", "abstracts": "Abstracts"}
Run = dict[str, Any]


def claims_by(how: str) -> tuple[Claim, ...]:
    """Return the claims about perplexity, decided by one way to divide test documents."""
    above = "difference > 0 by 2 standard errors"

    def one_pair(data, where, text, one, other):
        return Claim(PAPER, where, f"{NAMED[data]}: {text}", above,
                     lambda run: pair(run, data, one, other, how))  # fmt: skip

    def all_of(data, where, text, one, others):
        return Claim(PAPER, where, f"{NAMED[data]}: {text}", f"all of: {above}",
                     lambda run: against_all(run, data, one, others, how))  # fmt: skip

    return (
        all_of("blogs", "figure 6", "TI predicts better than TII, PYP, ccLDA and LDA", TI,
               (TII, PYP, CCLDA, LDA)),
        one_pair("abstracts", "figure 6", "TII predicts a little better than TI", TII, TI),
        one_pair("abstracts", "figure 6", "ccLDA predicts a little better than TI", CCLDA, TI),
        one_pair("blogs", "figure 6", "TII predicts better than ccLDA", TII, CCLDA),
        one_pair("abstracts", "figure 6", "TII predicts better than ccLDA", TII, CCLDA),
        all_of("abstracts", "figure 6", "ccLDA predicts better than PYP and LDA of each group",
               CCLDA, (PYP, LDA)),
        one_pair("blogs", "figure 6", "ccLDA performs poorly: PYP of each group is better (BD)",
                 PYP, CCLDA),
        one_pair("blogs", "figure 6", "ccLDA performs poorly: LDA of each group is better (BD)",
                 LDA, CCLDA),
        *(Claim(PAPER, "figure 7a", f"{NAMED[data]}: {name}: a discount of 0.7 predicts better "
                "than none (Pitman-Yor against Dirichlet)", above,
                partial(with_discount, data=data, method=name, how=how))
          for data, name in (("blogs", TII), ("abstracts", TII), ("abstracts", PYP_POOLED))),
        *(Claim(PAPER, "figure 7c", f"{NAMED[data]}: TI predicts better than TII at every discount",
                above, partial(transformed, data=data, how=how)) for data in SETS),
        *(Claim("own question", "-", f"{NAMED[data]}: TII predicts better than one LDA of all "
                "groups", above,
                lambda run, data=data: pair(run, data, TII, POOLED, how))
          for data in SETS),
    )  # fmt: skip


TABLE_2 = {
    "blogs": {TI: 0.7354, TII: 0.7152, "linear SVM": 0.6959, "RBF SVM": 0.7040,
              "LDA + SVM": 0.7063},
    "abstracts": {TI: 0.8098, TII: 0.4240, "linear SVM": 0.7192, "RBF SVM": 0.7191,
                  "LDA + SVM": 0.6927},
}  # fmt: skip
"""Accuracies of the paper on its sets Blog and MLJ."""


def _table_2(data: str, one: str, other: str, score: str) -> Claim:
    """Return a claim of table 2, in the order of the paper's accuracies."""
    mine, theirs = (TABLE_2[data][name] for name in (one, other))
    scores = [score if name in (TI, TII) else CORRECTED for name in (one, other)]
    what = f", {score} score" if {one, other} & {TI, TII} else ""
    return Claim(
        PAPER if score == PRINTED else "own question", "table 2",
        f"{NAMED[data]}: {one} is {'more' if mine > theirs else 'less'} accurate than {other}"
        f"{what}", f"{mine:.3f} against {theirs:.3f}",
        lambda run: accuracy(run, data, (one, scores[0]), (other, scores[1]),
                              1 if mine > theirs else -1),
    )  # fmt: skip


def other_claims() -> tuple[Claim, ...]:
    """Return the claims that no perplexity decides."""
    pairs = ((TI, TII), (TI, "linear SVM"), (TI, "RBF SVM"), (TI, "LDA + SVM"),
             (TII, "linear SVM"), ("LDA + SVM", "linear SVM"))  # fmt: skip
    two = "by 2 standard errors"
    return (
        *(Claim(PAPER, "figures 6, 7b", f"Table indicators predict better than {name}",
                f"> 0 {two}, after as many sweeps", partial(of_samplers, other=other))
          for other, name in SAMPLERS.items() if other != "ti"),
        *(Claim("own question", "-", f"Table indicators and {name} have one posterior",
                f"difference < {EQUAL} {two}", partial(of_samplers, other=other, equal=True))
          for other, name in SAMPLERS.items() if other != "ti"),
        Claim(PAPER, "table 1", "Made-up groups: b_k ranks topics by how alike their versions are",
              f"rank correlation above {RANK}", planted_ranks),
        *(Claim(PAPER, "table 1", f"{NAMED[data]}: topics of large b_k have versions that are "
                "alike", "rank correlation > 0", partial(likeness_ranks, data=data))
          for data in SETS),
        *(Claim(PAPER, "appendix C", f"{NAMED[data]}: versions of topics are aligned as well as "
                "by ccLDA", f"TII less ccLDA > -{ALIGNED} {two}",
                partial(alignment, data=data)) for data in SETS),
        Claim(PAPER, "figure 5", "Words associated with a global word differ between groups",
              "for example 'computing'", partial(never, "the library has them, and the notebook "
                                                 "shows some; the paper gives no number")),
        Claim(PAPER, "figure 8", "Images: the localisation ratio of TII is above that of LDA",
              "most for the first topics", partial(never, "the ImageNet pairs cannot be had")),
        Claim(PAPER, "figure 9", "Digits: one topic carries the shape of the class, all classes "
              "share the others", "exactly one topic names most classes",
              partial(of_digits, ask="one")),
        Claim("own question", "-", f"Digits: the versions of one topic are {CLEAR:g} times as far "
              "apart as those of the others", f"ratio above {CLEAR:g}",
              partial(of_digits, ask="distance")),
        *(_table_2(data, one, other, PRINTED) for data in SETS for one, other in pairs),
        *(_table_2(data, one, other, CORRECTED) for data in SETS for one, other in pairs[:-1]),
        *(Claim("own question", "table 2", f"{NAMED[data]}: {method}: the {name} score is more "
                "accurate than the printed one", f"> 0 {two}",
                lambda run, data=data, method=method, name=name: accuracy(
                    run, data, (method, name), (method, PRINTED)))
          for data in SETS for method in (TI, TII) for name in (CORRECTED, PLUG_IN)),
        *(Claim(PAPER, "section 6.5", f"{NAMED[data]}: accuracies of TI are steadier than those "
                "of TII", "smaller sd", partial(steadier, data=data)) for data in SETS),
        Claim(PAPER, "section 6.5", "TI is more accurate than SAGE", "0.735 against 0.696",
              partial(never, "SAGE is not in the library, its division of the blogs not at hand")),
        Claim(PAPER, "section 6.5", "Accuracy converges within 50 iterations", "50 iterations",
              partial(never, "accuracies are averages over the states of sweeps 50 to 200")),
        *(Claim("own target", "-", f"{name} makes {SPEED} of LDA's tokens per second or more, "
                "parallel", f"mean log ratio > log {SPEED} {two} over turns",
                partial(speed, one=name, schedule="parallel")) for name in (TI, TII)),
        Claim("own target", "-", f"The table of Stirling ratios has less than "
              f"{TABLE_MEGABYTES:g} MB at two million tokens", f"< {TABLE_MEGABYTES:g} MB",
              tables),
        Claim("own question", "-", "The chains of all fits agree", "R-hat below 1.05", converged),
    )  # fmt: skip


def judged(run: Run, how: str, others: bool) -> list[dict[str, str]]:
    """Return the table of claims by one division, with those that need none, if asked for."""
    return judge((*claims_by(how), *(other_claims() if others else ())), run)
