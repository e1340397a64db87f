"""Transfer of topics between tasks: a sparse model, an HDP of several tasks, an HDP of one task.

    python experiments/transfer --data FOLDER --parts continuum

Faisal, Gillberg, Leen and Peltonen (Neurocomputing 2013) say that a model in which tasks share
weak topics predicts new documents of a small task better than the HDP of several tasks, unless
there are many tasks. Made-up problems, newsgroups and sections of NIPS are tried, as in the paper.
All methods of a part make as many sweeps, from as many starts.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import main_of, study_in

__all__ = ["STUDY", "main"]


STUDY = study_in(
    Path(__file__).parent,
    "Transfer of topics between tasks.",
    data_files={"newsgroups": "news20_comp.npz", "nips": "nips12.npz", "speed": "nips12.npz"},
    may_change=(
        "cores", "dense_mixings", "dense_problems", "mixings", "problems", "numbers_of_tasks",
        "numbers_of_denser_tasks", "task_mixings", "newsgroups_sizes", "newsgroups_folds",
        "nips_sizes", "nips_folds", "start_splits", "table_size",
    ),
)  # fmt: skip
main = main_of(STUDY)


if __name__ == "__main__":
    sys.exit(main())
