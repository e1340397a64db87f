import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse


@pytest.fixture
def scores(load):
    return load("study.scores")


def test_documents_are_compared_in_pairs(scores):
    tokens = [10, 20, 0, 10]
    other = {"doc_log_prob": [-50.0, -110.0, 0.0, -47.0], "error_chains": None}
    # each token a tenth of a nat better: the documents leave no doubt
    one = {"doc_log_prob": [-49.0, -108.0, 0.0, -46.0], "error_chains": None}
    gap = scores.paired(one, other, tokens)
    assert gap.value == pytest.approx(-0.1)
    assert gap.error == pytest.approx(0, abs=1e-9)
    assert gap.ratio == "0.905 (0.905 to 0.905)"
    assert scores.paired({**one, "error_chains": 0.03}, other, tokens).error == pytest.approx(0.03)
    one["doc_log_prob"] = [-46.0, -110.0, 0.0, -47.0]
    gap = scores.paired(one, other, tokens)
    rest = [3.0, -2.0, -1.0]  # 4, 0, 0 less 0.1 for each token
    assert gap.value == pytest.approx(-0.1)
    assert gap.error == pytest.approx(math.sqrt(3 / 2 * sum(x**2 for x in rest)) / 40)


def test_cells_are_compared_in_pairs(scores):
    gap = scores.paired_cells([(5.0, 4.0), (7.0, 4.0), (9.0, 7.0)])
    assert gap.value == pytest.approx(2.0)
    assert gap.error == pytest.approx(1 / math.sqrt(3))
    assert math.isinf(scores.paired_cells([(5.0, 4.0)]).error)


def test_averages_over_splits(scores):
    """Two variances are added: over splits 0.02, and of documents within them 0.01."""
    gaps = [scores.Difference(x, 0.1) for x in (0.1, 0.3)]
    found = scores.over_splits(gaps)
    assert found.value == pytest.approx(0.2)
    assert found.error == pytest.approx(math.sqrt(0.02 / 2 + 0.01 / 2))
    assert math.isinf(scores.over_splits(gaps[:1]).error)


def test_scores_are_kept_by_document_and_state(scores):
    score = SimpleNamespace(
        perplexity=4.0, log_prob=-math.log(4), error_docs=0.1, error_chains=math.nan,
        error_states=0.2, num_tokens=2, doc_log_prob=np.array([-1.0, -2.0]),
        state_log_prob=np.array([[-1.0, -1.0], [-2.0, -2.0]]),
    )  # fmt: skip
    found = scores.kept(score, num_chains=2)
    assert found["single_state_perplexity"] == pytest.approx((math.exp(1) + math.exp(2)) / 2)
    assert found["error_chains"] is None
    assert found["state_log_prob"] == [[-1.0, -1.0], [-2.0, -2.0]]
    assert found["chains_of_states"] == 2
    short = scores.kept(score, num_chains=2, by_state=False)
    assert short["single_doc_log_prob"] == [-1.5, -1.5]
    assert "state_log_prob" not in short


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
