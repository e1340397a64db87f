"""Supervised topic models on 20 Newsgroups: logistic and max-margin, and what came before them.

    python experiments/supervised --data FOLDER --parts binary

Zhu, Zheng and Zhang (ACL 2013) say that supervised LDA classifies well once the likelihood of the
labels is taken to a power c, and that Gibbs sampling is faster than variational inference. Two
newsgroups are told apart, and twenty, one against the rest. The paper trains for 100 sweeps (40
with twenty classes) from a random start, and predicts with the last state. So do its rows here.
Parameters called "tuned" were chosen on validation documents, a fifth of the training documents.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import main_of, study_in

from supervised import settings

__all__ = ["STUDY", "main"]


STUDY = study_in(
    Path(__file__).parent,
    "Supervised topic models on 20 Newsgroups.",
    data_files=dict.fromkeys(settings.PARTS, "news20_bow.npz"),
    may_change=(
        "cores",
        "methods",
        "class_methods",
        "class_margins",
        "seeds",
        "class_seeds",
        "variational_seeds",
    ),
)
main = main_of(STUDY)


if __name__ == "__main__":
    sys.exit(main())
