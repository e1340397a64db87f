"""Bayesian-nonparametric topic and factor models on JAX: NumPyro programs, exact Gibbs kernels."""

from bnp_models.author_topic import AuthorTopicModel
from bnp_models.data.corpus import Corpus
from bnp_models.data.package_docs import load_package_docs
from bnp_models.data.sources import Sources
from bnp_models.gaussian_factors import GaussianFactorAnalysis
from bnp_models.hdp_lda import HDPLDA
from bnp_models.lda import LDA
from bnp_models.np_author_topic import NonparametricAuthorTopicModel
from bnp_models.poisson_factors import PoissonGammaFactorAnalysis
from bnp_models.registry import MODELS
from bnp_models.results.factor_fit import FactorFit
from bnp_models.results.topic_fit import Fit
from bnp_models.run.draws import to_arviz
from bnp_models.run.fit import fit, resume

__version__ = "0.1.0"

__all__ = [
    "HDPLDA",
    "LDA",
    "MODELS",
    "AuthorTopicModel",
    "Corpus",
    "FactorFit",
    "Fit",
    "GaussianFactorAnalysis",
    "NonparametricAuthorTopicModel",
    "PoissonGammaFactorAnalysis",
    "Sources",
    "fit",
    "load_package_docs",
    "resume",
    "to_arviz",
]
