import numpy as np
import pytest

from bnp_models.posterior import coassignment


class TestCoassignment:
    def test_tokens_by_hand(self):
        z = np.array([[[0, 0, 1], [1, 1, 1]], [[2, 0, 0], [0, 1, 1]]], np.uint8)
        pairs = np.array([[0, 1], [0, 2], [1, 2]])
        result = coassignment.token_coassignment(z, pairs)
        np.testing.assert_allclose(result.by_chain, [[1, 0.5, 0.5], [0, 0, 1]])
        table = result.table()
        np.testing.assert_allclose(table["probability"], [0.5, 0.25, 0.75])
        np.testing.assert_allclose(table["lowest"], [0, 0, 0.5])
        np.testing.assert_allclose(table["highest"], [1, 0.5, 1])
        # variances (n - 1): within 0, .5, .5 | 0, 0, 0, mean summed .5; of means .5, .125, .125
        assert result.rhat == pytest.approx(np.sqrt(1 / 2 + 0.75 / 0.5))
        expected = np.sqrt((1 + 0.25 + 0.25) / 3)
        np.testing.assert_allclose(coassignment.agreement(result), [[0, expected], [expected, 0]])

    def test_documents_against_every_pair_of_tokens(self):
        rng = np.random.default_rng(0)
        doc = np.repeat([0, 1, 3, 4], [3, 5, 2, 4])  # document 2 is empty
        z = rng.integers(0, 4, (2, 3, len(doc)))
        pairs = np.array([[0, 1], [1, 4], [3, 0]])
        result = coassignment.document_coassignment(z, doc, pairs)
        for p, (i, j) in enumerate(pairs):
            same = z[..., doc == i][..., :, None] == z[..., doc == j][..., None, :]
            np.testing.assert_allclose(result.by_chain[:, p], same.mean(axis=(1, 2, 3)))
        with pytest.raises(ValueError, match=r"pairs must not name empty documents, got \[2\]"):
            coassignment.document_coassignment(z, doc, np.array([[0, 2]]))
        with pytest.raises(ValueError, match=r"doc must be an array of integers of shape \[14\]"):
            coassignment.document_coassignment(z, doc[1:], pairs)

    def test_labels_do_not_matter(self):
        rng = np.random.default_rng(1)
        z = rng.integers(0, 5, (3, 4, 40))
        relabelled = np.stack([[rng.permutation(5)[state] for state in chain] for chain in z])
        pairs = coassignment.random_pairs(40, 100)
        doc = np.repeat(np.arange(8), 5)
        documents = coassignment.random_pairs(8, 20)
        for compute in (
            lambda z: coassignment.token_coassignment(z, pairs),
            lambda z: coassignment.document_coassignment(z, doc, documents),
        ):
            ours, theirs = compute(z), compute(relabelled)
            np.testing.assert_allclose(ours.by_chain, theirs.by_chain)
            assert ours.rhat == pytest.approx(theirs.rhat)

    def test_rhat_is_one_for_like_chains_and_large_for_unlike_ones(self):
        rng = np.random.default_rng(2)
        pairs = coassignment.random_pairs(200, 500)
        like = rng.integers(0, 4, (4, 20, 200))
        assert coassignment.token_coassignment(like, pairs).rhat == pytest.approx(1, abs=0.02)
        homes = rng.integers(0, 4, (4, 1, 200))  # each chain has its own partition and stays near
        unlike = np.where(rng.random(like.shape) < 0.1, like, homes)
        assert coassignment.token_coassignment(unlike, pairs).rhat > 1.5
        frozen = np.broadcast_to(homes, like.shape)
        assert coassignment.token_coassignment(frozen, pairs).rhat == np.inf
        same = np.broadcast_to(homes[:1], like.shape)
        assert np.isnan(coassignment.token_coassignment(same, pairs).rhat)
        assert np.isnan(coassignment.token_coassignment(like[:1], pairs).rhat)

    def test_random_pairs_are_two_items_equally_often(self):
        pairs = coassignment.random_pairs(4, 60_000, seed=3)
        assert (pairs[:, 0] < pairs[:, 1]).all()
        _, counts = np.unique(pairs, axis=0, return_counts=True)
        # six pairs, binomial sd 91: 5 sd is a false alarm once in 300,000 runs
        np.testing.assert_allclose(counts, 10_000, atol=5 * 91.3)
        np.testing.assert_array_equal(pairs, coassignment.random_pairs(4, 60_000, seed=3))

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            (np.zeros((0, 2), int), r"pairs must have shape \[P, 2\] with P > 0"),
            (np.array([[0, 3]]), r"pairs must name tokens in \[0, 3\), got 0..3"),
            (np.array([[0, 1], [2, 2]]), "pairs must name two different tokens, got 2 twice"),
        ],
    )
    def test_bad_pairs(self, pairs, message):
        with pytest.raises(ValueError, match=message):
            coassignment.token_coassignment(np.zeros((1, 1, 3), int), pairs)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((1, 5), "num_items must be an integer of at least 2"),
            ((5, 0), "num_pairs must be an integer of at least 1"),
        ],
    )
    def test_bad_numbers_of_pairs(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            coassignment.random_pairs(*arguments)
