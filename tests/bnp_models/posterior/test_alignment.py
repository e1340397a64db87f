import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import bnp_models as bnp
from bnp_kernels.tokens.mixture_law import DirichletLaw
from bnp_models.posterior import alignment
from bnp_models.posterior.arviz_data import make_data
from bnp_models.posterior.mixtures import Mixtures, mixture_states


def peaked(num_words, *peaks, mass=0.9):
    """Topics [V, K], each with most of its mass on its own words, the rest everywhere."""
    phi = np.full((num_words, len(peaks)), 0.0)
    for k, words in enumerate(peaks):
        phi[:, k] = (1 - mass) / num_words
        phi[list(words), k] += mass / len(words)
    return phi


def states_of(phis, zs, lp=None, chain=None):
    """States from topics [V, K] and assignments."""
    count = len(phis)
    phi = np.stack(phis).astype(np.float32)
    chain = np.arange(count) if chain is None else np.asarray(chain)
    draw = np.zeros(count, int)
    mixtures = Mixtures(phi, DirichletLaw(np.ones((count, phi.shape[2]), np.float32)), chain, draw)
    lp = np.arange(count, 0, -1) if lp is None else lp
    return alignment.TopicStates(mixtures, np.array(zs), chain, draw, np.array(lp, float))


A, B, C, D = (0, 1), (2, 3), (4, 5), (6, 7)


class TestSimilarity:
    @pytest.mark.parametrize("metric", ["hellinger", "jensen-shannon"])
    def test_is_one_for_equal_and_zero_for_disjoint_topics(self, metric):
        phi = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
        found = alignment.similarity(phi, phi, metric=metric)
        np.testing.assert_allclose(found, np.eye(2), atol=1e-12)

    def test_against_distances_written_elsewhere(self):
        rng = np.random.default_rng(0)
        phi, other = rng.dirichlet(np.ones(9), 4).T, rng.dirichlet(np.ones(9), 3).T
        bhattacharyya = alignment.similarity(phi, other)
        shannon = alignment.similarity(phi, other, metric="jensen-shannon")
        assert shannon.shape == bhattacharyya.shape == (4, 3)
        for k in range(4):
            for j in range(3):
                p, q = phi[:, k], other[:, j]
                squared_hellinger = ((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2
                assert bhattacharyya[k, j] == pytest.approx(1 - squared_hellinger)
                assert shannon[k, j] == pytest.approx(1 - jensenshannon(p, q, base=2) ** 2)

    def test_unknown_metric(self):
        with pytest.raises(
            ValueError, match=r"metric must be one of \['hellinger', 'jensen-shannon'\]"
        ):
            alignment.similarity(np.ones((1, 1)), np.ones((1, 1)), metric="cosine")


class TestAlign:
    @pytest.mark.parametrize("metric", ["hellinger", "jensen-shannon"])
    def test_undoes_relabelling(self, metric):
        rng = np.random.default_rng(0)
        phi = peaked(12, A, B, C, D, (8, 9, 10))
        z = rng.choice(5, 400, p=[0.1, 0.4, 0.25, 0.2, 0.05])
        orders = [rng.permutation(5) for _ in range(6)]  # slot s holds topic order[s]
        states = states_of(
            [phi[:, order] for order in orders], [np.argsort(order)[z] for order in orders]
        )
        found = alignment.align(states, metric=metric)
        ranks = np.argsort(np.argsort(-np.bincount(z)))  # numbers by size
        np.testing.assert_array_equal(found.number, [ranks[order] for order in orders])
        np.testing.assert_allclose(found.similarity, 1, atol=1e-6)
        np.testing.assert_allclose(found.shares(), np.tile(-np.sort(-np.bincount(z)) / 400, (6, 1)))

    def test_the_reference_has_the_highest_finite_lp(self):
        phi = peaked(8, A, B)
        states = states_of([phi] * 4, [[0, 0, 1]] * 4, lp=[-5, -3, -4, np.nan])
        assert alignment.align(states).reference == 1

    def test_different_numbers_of_topics(self):
        phi = peaked(8, A, B, C, D)
        states = states_of(
            [phi, phi, phi[:, [2, 0, 1, 3]]],
            [[0] * 5 + [1] * 3 + [2] * 2, [0] * 5 + [3] * 5, [1] * 10],
        )
        found = alignment.align(states)
        assert found.num_topics == 3
        np.testing.assert_array_equal(found.number[0], [0, 1, 2, -1])
        np.testing.assert_array_equal(found.number[1], [0, -1, -1, -1])  # 3 is used, but unknown
        np.testing.assert_array_equal(found.number[2], [-1, 0, -1, -1])
        np.testing.assert_allclose(found.shares()[1], [0.5, 0, 0])
        unmatched = found.unmatched()
        assert unmatched.to_dict("list") == {"chain": [1], "draw": [0], "slot": [3], "share": [0.5]}
        assert np.isnan(found.similarity[1, 1])

    def test_the_best_matching_is_not_the_greedy_one(self):
        # 0 resembles both, 1 only the first: giving the first to 0 would leave 1 alone
        phi = np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
        other = np.array([[0.6, 0.4], [0.2, 0.6], [0.2, 0.0]])
        alike = alignment.similarity(phi, other)
        assert alike[0].argmax() == 0 or alike[1].argmax() == 0
        best = max(alike[0, 0] + alike[1, 1], alike[0, 1] + alike[1, 0])
        found = alignment.align(states_of([phi, other], [[0, 0, 1], [0, 0, 1]]), min_similarity=0.1)
        assert np.nansum(found.similarity[1]) == pytest.approx(best, abs=1e-6)

    def test_unlike_topics_stay_apart(self):
        states = states_of([peaked(8, A), peaked(8, B)], [[0, 0], [0, 0]])
        found = alignment.align(states)
        np.testing.assert_array_equal(found.number, [[0], [-1]])
        loose = alignment.align(states, min_similarity=0.01)
        np.testing.assert_array_equal(loose.number, [[0], [0]])

    def test_states_made_one_at_a_time_give_the_same(self):
        rng = np.random.default_rng(3)
        z, word = rng.integers(0, 3, (2, 2, 60)), rng.integers(0, 9, 60)
        corpus = bnp.Corpus.from_ids([word], num_words=9)
        fixed = {"alpha": np.full((2, 2), 0.1), "beta": np.full((2, 2), 0.1), "draw": [0, 1]}
        lazy = mixture_states(bnp.LDA(4), {"z": z, **fixed}, corpus)
        chain, draw = np.repeat([0, 1], 2), np.tile([0, 1], 2)
        ours, theirs = (
            alignment.align(
                alignment.TopicStates(mixtures, z.reshape(4, 60), chain, draw, np.arange(4.0)),
                min_similarity=0.2,
            )
            for mixtures in (lazy, lazy.stack())
        )
        assert ours.in_chains is theirs.in_chains is None
        for left, right in zip(ours[:-1], theirs[:-1], strict=True):
            np.testing.assert_allclose(left, right)

    @pytest.mark.parametrize(
        ("change", "options", "message"),
        [
            (
                {},
                {"min_similarity": 0.0},
                r"min_similarity must be a finite number above 0 and at most 1, got 0.0",
            ),
            ({"z": np.zeros((2, 0), int)}, {}, r"states.z must hold states and tokens"),
            ({"lp": np.full(2, np.nan)}, {}, "states.lp must be finite in some state"),
            ({"z": np.array([[0], [1]])}, {}, "states.z must be below the 1 topics of"),
        ],
    )
    def test_bad_input(self, change, options, message):
        states = states_of([peaked(8, A)] * 2, [[0], [0]])._replace(**change)
        with pytest.raises(ValueError, match=message):
            alignment.align(states, **options)


def test_stability_counts_chains_and_averages_them():
    phi = peaked(8, A, B)
    blurred = peaked(8, A, B, mass=0.5)
    states = states_of(
        [phi, phi, blurred, blurred, phi, phi],
        [[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]],
        chain=[0, 0, 1, 1, 2, 2],
    )
    found = alignment.align(states)
    table = alignment.stability(found)
    less = alignment.similarity(phi, blurred)[0, 0]
    np.testing.assert_allclose(table["share"], [7 / 9, 2 / 9], rtol=0.3)
    np.testing.assert_allclose(table["share"], [14 / 18, 4 / 18])
    assert list(table["other_chains"]) == [2, 1]
    np.testing.assert_allclose(table["found"], [1, 4 / 6])
    np.testing.assert_allclose(table["similarity"], [(1 + less) / 2, less], rtol=1e-6)
    np.testing.assert_allclose(table["lowest_share"], [2 / 3, 1 / 3])
    np.testing.assert_allclose(table["highest_share"], [1, 1 / 3])
    means, share = found.by_chain()
    assert np.isnan(means[1, 2])
    assert share[1, 2] == 0


def test_a_chain_has_a_topic_if_half_of_its_states_have_it():
    phi = peaked(8, A, B)
    zs = [[0, 1], [0, 1], [0, 1], [0, 0], [0, 1], [0, 0], [0, 0]]
    found = alignment.align(states_of([phi] * 7, zs, chain=[0, 0, 1, 1, 2, 2, 2]))
    assert list(alignment.stability(found)["other_chains"]) == [2, 1]


class TestTopicStates:
    def data(self, **change):
        z = np.arange(2 * 2 * 5).reshape(2, 2, 5).astype(np.uint8)
        lp = np.arange(2 * 30.0).reshape(2, 30)
        groups = {
            "posterior": {"beta": lp},
            "sample_stats": {"lp": lp},
            "states": {"z": z},
            **change,
        }
        coords = {"states": {"draw": [9, 29]}} if "states" in groups else {}
        return make_data(groups, dims={"z": ["token"]}, group_coords=coords)

    def test_puts_states_in_chain_major_order_with_their_lp(self):
        states = alignment.topic_states(self.data(), iter(()))
        np.testing.assert_array_equal(states.z, np.arange(20).reshape(4, 5))
        assert states.z.dtype == np.uint8
        np.testing.assert_array_equal(states.chain, [0, 0, 1, 1])
        np.testing.assert_array_equal(states.draw, [9, 29, 9, 29])
        np.testing.assert_array_equal(states.lp, [9, 29, 39, 59])

    def test_data_without_states_are_refused(self):
        with pytest.raises(ValueError, match="data must have 'lp' in group 'sample_stats'"):
            alignment.topic_states(self.data(sample_stats={"other": np.zeros((2, 30))}), iter(()))
        with pytest.raises(ValueError, match="data must have 'z' in group 'states'"):
            alignment.topic_states(self.data(states={"beta": np.zeros((2, 2))}), iter(()))
        with pytest.raises(ValueError, match=r"data must have lp for the draws .* \[29\]"):
            alignment.topic_states(self.data(sample_stats={"lp": np.zeros((2, 20))}), iter(()))
