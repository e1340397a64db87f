"""The models of the library by name: a new model adds one line here."""

from bnp_models.author_topic import AuthorTopicModel
from bnp_models.gaussian_factors import GaussianFactorAnalysis
from bnp_models.hdp_lda import HDPLDA
from bnp_models.lda import LDA
from bnp_models.np_author_topic import NonparametricAuthorTopicModel
from bnp_models.poisson_factors import PoissonGammaFactorAnalysis

__all__ = ["MODELS"]

MODELS: dict[str, type] = {
    "LDA": LDA,
    "HDPLDA": HDPLDA,
    "AuthorTopicModel": AuthorTopicModel,
    "NonparametricAuthorTopicModel": NonparametricAuthorTopicModel,
    "PoissonGammaFactorAnalysis": PoissonGammaFactorAnalysis,
    "GaussianFactorAnalysis": GaussianFactorAnalysis,
}
"""Class name to class, in the order of the table in the README."""
