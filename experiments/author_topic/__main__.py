"""LDA, the author-topic model and their nonparametric forms: scores, and peers beside them.

    python experiments/author_topic --data FOLDER

Bleier's article leaves open how well its model predicts. Does inferring the number of topics cost
anything, and what does it gain? Rosen-Zvi, Griffiths, Steyvers and Smyth (UAI 2004) ask how many
words of a document its authors are worth. The second halves of test documents are predicted in two
conditions: LDA and the HDP see some words of the first half, the author-topic models know the
authors. No part of a test document is ever fitted. gensim's author-topic model and tomotopy's HDP
stand beside ours.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import main_of, study_in

from author_topic import settings

__all__ = ["STUDY", "main"]


_HERE = Path(__file__).parent
STUDY = study_in(
    _HERE,
    "LDA, the author-topic model and their nonparametric forms.",
    modules=[_HERE, *(_HERE.with_name("benchmarks") / f"{name}.py"
                      for name in ("bags", "measures", "systems"))],
    data_files=dict.fromkeys(settings.PARTS, "nips12.npz"),
    may_change=("cores", "splits", "topics", "per_topic", "infinite", "start_splits",
                "gensim_topics", "tomotopy_starts", "curves", "long_splits", "long_topics"),
    options={"splits": "how many divisions into training and test"},
)  # fmt: skip
main = main_of(STUDY)


if __name__ == "__main__":
    sys.exit(main())
