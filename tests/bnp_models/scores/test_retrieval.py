"""Retrieval scores: small cases by hand, scikit-learn's average precision, errors over draws."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from bnp_models.posterior.factor_states import cosine
from bnp_models.scores.retrieval import average_precision, precision_at, retrieve


def test_cosine_by_hand():
    found = cosine(np.array([[1, 0], [3, 4], [0, 0]]), np.array([[2.0, 0], [0, 5], [-6, -8]]))
    np.testing.assert_allclose(found, [[1, 0, -0.6], [0.6, 0.8, -1], [0, 0, 0]], atol=1e-15)


def test_cosine_of_tiny_and_huge_scores():
    found = cosine(np.array([[3e-200, 4e-200]]), np.array([[3e200, 4e200], [4e-300, -3e-300]]))
    np.testing.assert_allclose(found, [[1, 0]], atol=1e-15)
    assert cosine(np.zeros((2, 0)), np.zeros((3, 0))).tolist() == [[0] * 3] * 2


def test_precision_by_hand():
    similarity = np.array([[0.9, 0.1, 0.5, 0.7]])  # order 0, 3, 2, 1
    relevant = np.array([[True, True, False, False]])
    np.testing.assert_allclose(precision_at(similarity, relevant), [[1, 1 / 2, 1 / 3, 2 / 4]])
    np.testing.assert_allclose(average_precision(similarity, relevant), [(1 + 2 / 4) / 2])


def test_ties_are_broken_by_order():
    same = np.zeros((2, 3))
    relevant = np.array([[True, False, False], [False, False, True]])
    np.testing.assert_allclose(average_precision(same, relevant), [1, 1 / 3])
    np.testing.assert_allclose(precision_at(same, relevant)[1], [0, 0, 1 / 3])


def test_average_precision_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(20, 35))
    relevant = rng.random((20, 35)) < rng.uniform(0.05, 0.9, (20, 1))
    relevant[:, 3] = True
    wanted = [average_precision_score(r, s) for r, s in zip(relevant, similarity, strict=True)]
    np.testing.assert_allclose(average_precision(similarity, relevant), wanted, rtol=1e-12)


def test_perfect_and_worst_rankings():
    rows = np.array([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    labels = ["x", "x", "y", "y"]
    best = retrieve([(rows, rows)], labels, labels)
    assert best.mean_average_precision == 1
    np.testing.assert_allclose(best.precision, [[1, 1, 2 / 3, 1 / 2]] * 4)
    worst = retrieve([(rows, rows[::-1])], labels, labels)
    np.testing.assert_allclose(worst.average_precision, (1 / 3 + 2 / 4) / 2)


def test_similarities_are_averaged_and_scores_are_not():
    # The second draw has its factors in another order and one more: scores would not even add up.
    first = (np.array([[1.0, 0.0]]), np.array([[1.0, 0], [1, 1], [0, 1]]))
    second = (np.array([[0.0, 1, 1]]), np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]]))
    found = retrieve([first, second], ["x"], ["y", "x", "x"])
    root = np.sqrt(0.5)
    np.testing.assert_allclose(found.similarity, [[(1 + root) / 2, root, 0]], rtol=1e-6)
    np.testing.assert_allclose(found.average_precision, [(1 / 2 + 2 / 3) / 2])
    np.testing.assert_allclose(found.draw_mean_average_precision, [(1 / 2 + 2 / 3) / 2] * 2)
    swapped = (first[0][:, ::-1], first[1][:, ::-1])
    again = retrieve([swapped, second], ["x"], ["y", "x", "x"])
    np.testing.assert_array_equal(again.similarity, found.similarity)


def noisy_draws(rng, size, noise):
    """Scores of two classes around their own factor, with noise that differs between draws."""
    labels = rng.integers(0, 2, 30)
    centre = np.eye(2)[labels]
    draws = [
        (centre[:10] + noise * rng.normal(size=(10, 2)), centre + noise * rng.normal(size=(30, 2)))
        for _ in range(size)
    ]
    return draws, labels[:10], labels


def test_errors_over_queries_draws_and_chains():
    draws, query, row = noisy_draws(np.random.default_rng(1), 6, 0.8)
    found = retrieve(draws, query, row, chain=[0, 0, 0, 1, 1, 1])

    def score(kept):
        mean = np.mean([cosine(*draws[s]) for s in kept], axis=0)
        return average_precision(mean, query[:, None] == row).mean()

    np.testing.assert_allclose(found.mean_average_precision, score(range(6)), rtol=1e-6)
    without = [score([s for s in range(6) if s != left]) for left in range(6)]
    np.testing.assert_allclose(found.error_draws, np.sqrt(5 * np.var(without)), rtol=1e-4)
    halves = [score(range(3)), score(range(3, 6))]
    np.testing.assert_allclose(found.error_chains, np.std(halves), rtol=1e-4)
    spread = found.average_precision.std(ddof=1) / np.sqrt(10)
    np.testing.assert_allclose(found.error_queries, spread)
    assert str(found).startswith(f"MAP {found.mean_average_precision:.4f} over 10 queries; ")
    assert "chains" in str(found)


def test_errors_that_cannot_be_had_are_nan():
    found = retrieve([(np.ones((1, 1)), np.ones((2, 1)))], ["x"], ["x", "y"])
    errors = (found.error_queries, found.error_draws, found.error_chains)
    assert np.isnan(errors).all()
    assert str(found) == "MAP 1.0000 over 1 queries; standard errors: unknown"
    assert np.isnan(found.scope([1])["error"]).all()


def test_scope_is_the_mean_over_queries():
    draws, query, row = noisy_draws(np.random.default_rng(2), 3, 1.0)
    found = retrieve(draws, query, row)
    table = found.scope([1, 10, 30])
    np.testing.assert_allclose(table["precision"], found.precision[:, [0, 9, 29]].mean(0))
    assert table.index.tolist() == [1, 10, 30]
    # all rows together: the share of the class, whatever the ranking
    share = (query[:, None] == row).mean(1)
    np.testing.assert_allclose(table["precision"][30], share.mean())
    with pytest.raises(ValueError, match="sizes: each must be an integer of at most 30, got 31"):
        found.scope([31])


ONE = np.ones((1, 2)), np.ones((3, 2))


@pytest.mark.parametrize(
    ("draws", "query_class", "chain", "message"),
    [
        ([], [0], None, "draws is empty"),
        ([ONE], [2], None, r"query_class has .*2.*, which is the class of no row"),
        ([(np.ones((1, 3)), ONE[1])], [0], None, r"draws\[0\] must be .* of shape \[3, 3\]"),
        ([ONE, (ONE[0], ONE[0])], [0], None, r"draws\[1\] must be .* of shape \[3, 2\]"),
        ([ONE, (ONE[0] * np.nan, ONE[1])], [0], None, r"draws\[1\] must hold finite numbers"),
        ([ONE], [0], [0, 1], r"chain must be an array of integers of shape \[1\]"),
    ],
)
def test_bad_input_is_refused_by_name(draws, query_class, chain, message):
    with pytest.raises(ValueError, match=message):
        retrieve(draws, query_class, [0, 0, 1], chain=chain)


def test_a_query_without_a_relevant_row_is_refused():
    with pytest.raises(ValueError, match="relevant has no row for query 1"):
        average_precision(np.zeros((2, 1)), np.array([[True], [False]]))
