import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse


@pytest.fixture
def scores(load):
    return load("study.scores")


def test_errors_over_documents_are_those_of_a_ratio(scores):
    tokens = [10, 20, 0, 10]
    # each token a tenth of a nat better: the documents leave no doubt
    assert scores.documents_error([1.0, 2.0, 0.0, 1.0], 0.1, tokens) == pytest.approx(0, abs=1e-9)
    rest = [3.0, -2.0, -1.0]  # 4, 0, 0 less 0.1 for each token
    found = scores.documents_error([4.0, 0.0, 0.0, 0.0], 0.1, tokens)
    assert found == pytest.approx(math.sqrt(3 / 2 * sum(x**2 for x in rest)) / 40)
    assert scores.Difference(-0.1, 0.0).ratio == "0.905 (0.905 to 0.905)"


def test_a_mean_of_one_number_has_no_error(scores):
    gap = scores.mean_of([1.0, 3.0, 2.0])
    assert gap == pytest.approx((2.0, 1 / math.sqrt(3)))
    assert math.isinf(scores.mean_of([1.0]).error)
    assert scores.standard_error([1.0], of_one=0.0) == 0


def test_packing_loses_nothing(scores):
    correct = np.random.default_rng(0).random(21) < 0.5
    np.testing.assert_array_equal(scores.unpack(scores.pack(correct), 21), correct)


def test_errors_of_accuracies_are_those_of_documents_and_starts(scores):
    one, other = np.ones((2, 4)), np.zeros((2, 4))
    other[:, 0] = 1.0  # all starts agree: the error is that of documents
    gap = scores.compared(one, other)
    assert gap == pytest.approx((0.75, np.sqrt(0.75 * 0.25 / 3)))
    other = np.stack([np.zeros(4), np.ones(4)])  # all documents agree: that of starts
    assert scores.compared(one, other) == pytest.approx((0.5, 0.5))


def test_averages_over_splits(scores):
    """Two variances are added: over splits 0.02, and of documents within them 0.01."""
    gaps = [scores.Difference(x, 0.1) for x in (0.1, 0.3)]
    found = scores.over_splits(gaps)
    assert found.value == pytest.approx(0.2)
    assert found.error == pytest.approx(math.sqrt(0.02 / 2 + 0.01 / 2))
    assert math.isinf(scores.over_splits(gaps[:1]).error)


def test_scores_are_kept_by_document_and_by_state(scores):
    score = SimpleNamespace(
        perplexity=4.0, log_prob=-math.log(4), error_docs=0.1, error_chains=math.nan,
        error_states=0.2, num_tokens=2, doc_log_prob=np.array([-1.0, -2.0]),
        state_log_prob=np.array([[-1.0, -1.0], [-2.0, -2.0], [-3.0, -1.00001], [0.0, 0.0]]),
    )  # fmt: skip
    found = scores.kept(score, num_chains=2)
    single = (math.exp(1) + 2 * math.exp(2) + 1) / 4
    assert found["single_state_perplexity"] == pytest.approx(single, rel=1e-5)
    assert found["error_chains"] is None
    assert found["single_doc_log_prob"] == [-1.5, -1.0]
    assert found["chains_of_states"] == 2
    assert found["draws"] == [[-1.0, -2.0], [-2.0, 0.0]]  # nats per token; states chain by chain
    assert np.shape(scores.kept(score, num_chains=1)["draws"]) == (1, 4)


def test_worst_rhat(scores):
    fits = [{"convergence": [{"rhat": 1.2}, {"rhat": None}]}, {}, {"convergence": [{"rhat": 3.0}]}]
    assert scores.worst_rhat(fits) == 3.0
    assert scores.worst_rhat([{}]) is None


def test_unigram(scores):
    heldout = scipy.sparse.csr_array(np.array([[2, 0], [1, 1]]))
    found = scores.unigram(np.array([2, 0]), heldout, beta=1.0)
    assert found["doc_log_prob"] == pytest.approx(
        [2 * math.log(3 / 4), math.log(3 / 16)], abs=0.006
    )
    expected = (2 * math.log(3 / 4) + math.log(3 / 16)) / 4
    assert found["perplexity"] == pytest.approx(math.exp(-expected))
