"""Topic models as estimators of scikit-learn, for pipelines and searches over parameters."""

from bnp_models.estimators.group_classifier import GroupClassifier
from bnp_models.estimators.topic_classifier import TopicClassifier
from bnp_models.estimators.topic_estimator import TopicEstimator

__all__ = ["GroupClassifier", "TopicClassifier", "TopicEstimator"]
