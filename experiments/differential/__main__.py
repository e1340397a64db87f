"""Differential topic models: groups of documents share topics, and word them differently.

    python experiments/differential --data FOLDER --parts perplexity-abstracts

Chen, Buntine, Ding, Xie and Du (IEEE TPAMI 2015) say that a Pitman-Yor process over the words of
each topic and group (TII), and more so one with a transformation matrix (TI), predicts documents
better than other models of groups, classifies them better than an SVM, and that its sampler by
table indicators is better than others. Blogs, abstracts, digits and made-up groups are tried.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import main_of, study_in

__all__ = ["STUDY", "main"]


STUDY = study_in(
    Path(__file__).parent,
    "Differential topic models: groups that word topics differently.",
    data_files={
        "perplexity-blogs": "poliblog5k.npz", "perplexity-abstracts": "mlabs.npz",
        "samplers": "mlabs.npz", "discount": "mlabs.npz", "hybrids": "mlabs.npz",
        "classification": "mlabs.npz", "sweeps": "mlabs.npz", "digits": "alphadigs.npz",
        "speed": "nips12.npz",
    },
    may_change=("cores", "seeds", "topics", "methods", "wordnet_sets", "sampler_discounts",
                "discounts", "transformed_discounts", "hybrid_seeds", "sweeps_seeds"),
)  # fmt: skip
main = main_of(STUDY)


if __name__ == "__main__":
    sys.exit(main())
