"""LDA, the author-topic model and their nonparametric forms: scores, and peers beside them.

    python experiments/author_topic --data FOLDER

Bleier's article leaves open how well its model predicts. Does inferring the number of topics cost
anything, and what does it gain? Rosen-Zvi, Griffiths, Steyvers and Smyth (UAI 2004) ask how many
words of a document its authors are worth. The second halves of test documents are predicted in two
conditions: LDA and the HDP see some words of the first half, the author-topic models know the
authors. No part of a test document is ever fitted. gensim's author-topic model and tomotopy's HDP
stand beside ours.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import Study, parser_of, planned_by, run_study

from author_topic.report import report
from author_topic.settings import FULL, PARTS, QUICK, STANDARD

__all__ = ["STUDY", "main"]


_HERE = Path(__file__).parent
STUDY = Study(
    name="author_topic",
    title="LDA, the author-topic model and their nonparametric forms.",
    settings={"standard": STANDARD, "full": FULL, "quick": QUICK},
    parts=PARTS,
    prepare=planned_by("author_topic.plan"),
    report=report,
    modules=[_HERE, *(_HERE.with_name("benchmarks") / f"{name}.py"
                      for name in ("bags", "completion", "systems"))],
    data_files=dict.fromkeys(PARTS, "nips12.npz"),
    may_change=("cores", "splits", "topics", "per_topic", "infinite", "start_splits",
                "gensim_topics", "tomotopy_starts", "curves"),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    parser = parser_of(STUDY)
    parser.add_argument("--splits", type=int, help="how many divisions into training and test")
    arguments = parser.parse_args(argv)
    study = STUDY
    if arguments.splits is not None:
        number = {"splits": arguments.splits}
        sizes = {name: dataclasses.replace(s, **number) for name, s in STUDY.settings.items()}
        study = STUDY._replace(settings=sizes)
    return run_study(study, arguments)


if __name__ == "__main__":
    sys.exit(main())
