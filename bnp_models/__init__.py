"""Bayesian-nonparametric topic and factor models on JAX: NumPyro programs, exact Gibbs kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bnp_models.base.other_packages import show_cores
from bnp_models.base.tempering import Tempering
from bnp_models.data.corpus import Corpus
from bnp_models.data.corpus_writer import CorpusWriter
from bnp_models.data.package_docs import load_package_docs
from bnp_models.data.readers import read_corpus
from bnp_models.data.sources import Sources
from bnp_models.data.transforms import Transform
from bnp_models.registry import *  # noqa: F403 - one export for each line of the registry
from bnp_models.registry import MODELS
from bnp_models.run.choose_topics import choose_num_topics
from bnp_models.run.fit import fit, resume
from bnp_models.run.from_numpyro import to_fit

if TYPE_CHECKING:
    from bnp_models.results.author_tables import AuthorFit
    from bnp_models.results.contrast_tables import ContrastFit
    from bnp_models.results.covariate_fit import CovariateFit
    from bnp_models.results.factor_tables import FactorFit
    from bnp_models.results.folder import SavedModel, load
    from bnp_models.results.group_tables import GroupFit
    from bnp_models.results.label_fit import OneVsRestFit, SupervisedFit
    from bnp_models.results.result import Fit
    from bnp_models.results.topic_fit import TopicFit

__version__ = "0.1.0"

show_cores()

_RESULTS = {
    "AuthorFit": "author_tables",
    "ContrastFit": "contrast_tables",
    "CovariateFit": "covariate_fit",
    "FactorFit": "factor_tables",
    "Fit": "result",
    "GroupFit": "group_tables",
    "OneVsRestFit": "label_fit",
    "SavedModel": "folder",
    "SupervisedFit": "label_fit",
    "TopicFit": "topic_fit",
    "load": "folder",
}
"""Modules of `bnp_models.results`, which are slow to import, by the names that they export here."""


def __getattr__(name: str) -> Any:
    """Import what belongs to results when it is first used."""
    if name not in _RESULTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.results.{_RESULTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List all names, those of results too."""
    return sorted({*globals(), *_RESULTS})


__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - the names of models come from the registry
    "MODELS",
    "AuthorFit",
    "ContrastFit",
    "Corpus",
    "CorpusWriter",
    "CovariateFit",
    "FactorFit",
    "Fit",
    "GroupFit",
    "SavedModel",
    "Sources",
    "OneVsRestFit",
    "SupervisedFit",
    "Tempering",
    "TopicFit",
    "Transform",
    "choose_num_topics",
    "fit",
    "load",
    "load_package_docs",
    "read_corpus",
    "resume",
    "to_fit",
    *MODELS,
]
