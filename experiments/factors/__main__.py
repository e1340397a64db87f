"""Factor models of several sources: planted factors, sections of NIPS, digits by class.

    python experiments/factors --data FOLDER --parts planted,samplers,simulated   # needs no data

Questions of Gupta, Phung and Venkatesh, UAI 2012, section 5. Does the sampler find the number of
planted factors, the factors, and who shares them, from wherever it starts ("planted")? How soon
does each of three samplers find them ("samplers")? Do papers of one section help to predict those
of another, when sources are told apart, more than when they are pooled, or left out ("sections";
with counts drawn from the model: "simulated")? Do factors of digits, each class a source, retrieve
digits of the same class ("digits" from the data folder, "bundled" those that come with
scikit-learn)?
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study.command import main_of, study_in

__all__ = ["STUDY", "main"]


STUDY = study_in(
    Path(__file__).parent,
    "Factor models of several sources: planted factors, sections of NIPS, digits by class.",
    data_files={"sections": "nips12.npz", "digits": "mfeat.npz"},
    may_change=(
        "cores", "data_seeds", "a_phi", "starts", "sampler_seeds", "auxiliaries", "target_sizes",
        "runs", "sparse_auxiliaries", "sparse_sizes", "sparser_a_phi", "topic_runs",
        "topic_auxiliaries", "three_level_sizes", "more_runs", "more_sizes", "gaussian_sizes",
        "simulated_sizes", "simulated_runs", "simulated_starts", "image_starts",
    ),
)  # fmt: skip
main = main_of(STUDY)


if __name__ == "__main__":
    sys.exit(main())
