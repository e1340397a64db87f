"""The checks that scikit-learn has for all estimators.

Nearly all of them give fractions to `fit`, which we refuse. So they run with subclasses that round
the numbers first.
"""

import contextlib

import jaxtyping
import pytest
import scipy.sparse
from sklearn.utils import estimator_checks

import bnp_models as bnp
from bnp_models.estimators import GroupClassifier, TopicClassifier, TopicEstimator


class Rounded:
    """Take any numbers as counts; negative ones stay negative."""

    def _counts(self, X):
        return super()._counts(scipy.sparse.csr_array(X * 4).rint())


class RoundedEstimator(Rounded, TopicEstimator):
    pass


class RoundedClassifier(Rounded, TopicClassifier):
    pass


class RoundedGroups(Rounded, GroupClassifier):
    """Without the bound on the score of `check_classifiers_train`; the rest of the check runs.

    Its three classes of documents over two words differ also in length, which no model of words
    sees: multinomial naive Bayes, which scikit-learn exempts too, and this classifier are both
    right on 0.797 of them, below the bound of 0.83.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


CHEAP = {  # compiling dominates, so sweeps are cheap
    "num_warmup": 100, "num_samples": 10, "num_chains": 1, "num_sweeps": 30, "num_kept": 15,
    "fit_options": {"schedule": "sequential", "keep_states": 5},
}  # fmt: skip
CLASSIFIER = {"model": bnp.SupervisedLDA(2, alpha=0.5, c=25.0), "empty_documents": "class_prior"}
OF_GROUPS = bnp.CrossCollectionLDA(2, alpha=0.5, switch_common=1.0, switch_own=1.0)
GROUPS = {"model": OF_GROUPS, "empty_documents": "class_prior"}

SIMULATED = dict.fromkeys(
    ["check_methods_sample_order_invariance", "check_methods_subset_invariance"],
    "new documents are folded in by simulation: their random numbers depend on their rows",
)

OF_SCORES = ("check_classifiers_train", "check_classifiers_classes")
"""Checks for which the chains must have found something."""


OF_CLASSIFIERS = ("check_classif", "check_transformer", "check_supervised")
"""How the names of checks begin that say something about one classifier more than about another."""


def name_of(check):
    while hasattr(check, "func"):  # partial
        check = check.func
    return check.__name__


def checks_of(estimator, some=("check_",), *, slow=()):
    """Make one test for each check whose name begins so."""
    for each, check in estimator_checks.estimator_checks_generator(estimator):
        name = name_of(check)
        marks = [pytest.mark.slow] if name.startswith((*OF_SCORES, *slow)) else []
        if name in SIMULATED:
            marks.append(pytest.mark.xfail(reason=SIMULATED[name], run=False))
        if name.startswith(some):
            yield pytest.param(each, check, marks=marks, id=f"{type(each).__name__}-{name}")


CHECKS = [
    *checks_of(RoundedEstimator(bnp.LDA(2), **CHEAP)),
    *checks_of(RoundedClassifier(**CLASSIFIER, **CHEAP), slow=["check_"]),
    *checks_of(RoundedGroups(**GROUPS, **CHEAP), OF_CLASSIFIERS),
]


@pytest.fixture(scope="module", autouse=True)
def no_checks_of_annotations():
    """Parameters are checked by `fit`, as scikit-learn asks: users have no checks before."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.filterwarnings("ignore")  # those of the checks
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_check_of_scikit_learn(estimator, check, no_sweeps):
    with contextlib.nullcontext() if name_of(check) in OF_SCORES else no_sweeps():
        check(estimator)


def test_the_tables_name_checks():
    """A name that is wrong, or gone, is noticed."""
    known = {name_of(check.values[1]) for check in CHECKS}
    assert {*SIMULATED, *OF_SCORES} <= known
    assert len(CHECKS) > 80
