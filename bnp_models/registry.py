"""The models of the library. One import here exports a new model and makes the tests cover it."""

from bnp_models.base import model as _base
from bnp_models.models.author_topic import AuthorTopicModel as AuthorTopicModel
from bnp_models.models.cross_collection_lda import CrossCollectionLDA as CrossCollectionLDA
from bnp_models.models.differential import DifferentialTopicModel as DifferentialTopicModel
from bnp_models.models.dirichlet_multinomial_regression import (
    DirichletMultinomialRegression as DirichletMultinomialRegression,
)
from bnp_models.models.gaussian_factors import GaussianFactorAnalysis as GaussianFactorAnalysis
from bnp_models.models.hdp_lda import HDPLDA as HDPLDA
from bnp_models.models.ibp_compound_dirichlet import IBPCompoundDirichlet as IBPCompoundDirichlet
from bnp_models.models.lda import LDA as LDA
from bnp_models.models.med_lda import MedLDA as MedLDA
from bnp_models.models.multi_task_hdp_lda import MultiTaskHDPLDA as MultiTaskHDPLDA
from bnp_models.models.np_author_topic import (
    NonparametricAuthorTopicModel as NonparametricAuthorTopicModel,
)
from bnp_models.models.pitman_yor_lda import PitmanYorLDA as PitmanYorLDA
from bnp_models.models.poisson_factors import (
    PoissonGammaFactorAnalysis as PoissonGammaFactorAnalysis,
)
from bnp_models.models.sparse_transfer import SparseTransferTopicModel as SparseTransferTopicModel
from bnp_models.models.supervised_lda import SupervisedLDA as SupervisedLDA

MODELS: dict[str, type[_base.Model]] = {
    name: x for name, x in globals().items() if isinstance(x, type)
}
"""Class name to class."""

__all__ = ["MODELS", *MODELS]  # pyright: ignore[reportUnsupportedDunderAll]
