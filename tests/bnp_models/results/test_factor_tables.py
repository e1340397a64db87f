"""Tables of factor models from made-up draws: relabelled, turned round, and without a fit."""

import numpy as np
import pytest
import xarray

import bnp_models as bnp
from bnp_models.posterior.factor_states import FactorStates, align_factors, factor_states, match
from bnp_models.results import factor_tables

SOURCE = np.array([0, 0, 0, 1, 1])
PHI = np.array([[2.0, 1, 0, 0], [0, 0, 3, 0], [0, 1, 0, 2]])
W = np.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 4], [0, 5, 6], [0, 0, 7]])  # rows by factors


def shuffled(*, seed=0, chains=2, draws=3, extra=2, turn=False, noise=0.0, **options):
    """Draws of PHI and W in changing slots of more than are needed, perhaps with other signs."""
    rng = np.random.default_rng(seed)
    slots = len(PHI) + extra
    phi, w = np.zeros((chains, draws, slots, 4)), np.zeros((chains, draws, len(W), slots))
    places = np.zeros((chains, draws, len(PHI)), int)
    for c, d in np.ndindex(chains, draws):
        phi[c, d] = rng.normal(size=(slots, 4))  # whatever is in the free slots
        place = rng.permutation(slots)[: len(PHI)]
        sign = rng.choice([-1, 1], len(PHI)) if turn else np.ones(len(PHI))
        phi[c, d, place] = (PHI + noise * rng.normal(size=PHI.shape)) * sign[:, None]
        w[c, d][:, place] = W * sign
        places[c, d] = place
    return factor_states(phi, w, source=SOURCE, **options), places.reshape(-1, len(PHI))


def fit_of(states, features=None, sources=("a", "b")):
    """Return a fit that shows these states."""
    counts = np.bincount(states.source, minlength=states.num_sources)
    data = bnp.Sources.from_arrays(
        [np.zeros((n, states.phi.shape[2])) for n in counts],
        names=sources[: len(counts)], feature_names=features,
    )  # fmt: skip
    fit = bnp.FactorFit(bnp.GaussianFactorAnalysis(), data, None)
    vars(fit).update(shown=fit, factor_states=states)
    return fit


class TestStates:
    def test_free_slots_are_no_factors(self):
        states, places = shuffled()
        assert isinstance(states, FactorStates)
        assert states.num_sources == 2
        np.testing.assert_array_equal((states.sizes() > 0).sum(1), 3)
        for s, place in enumerate(places):
            np.testing.assert_array_equal(states.sizes()[s, place], [3, 1, 3])
            np.testing.assert_array_equal(states.used_by()[s][:, place], [[3, 0, 1], [0, 1, 2]])

    def test_chains_and_draws_are_numbered(self):
        states, _ = shuffled(draw=[10, 20, 30], lp=[[1, 2, 3], [4, 5, 6]])
        np.testing.assert_array_equal(states.chain, [0, 0, 0, 1, 1, 1])
        np.testing.assert_array_equal(states.draw, [10, 20, 30] * 2)
        np.testing.assert_array_equal(states.lp, range(1, 7))

    def test_weights_without_use_are_zero(self):
        w = np.ones((1, 1, 2, 2))
        z = np.array([[[[True, False], [False, True]]]])
        states = factor_states(np.ones((1, 1, 2, 3)), w, z)
        np.testing.assert_array_equal(states.weights[0], np.eye(2))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"phi": np.ones((2, 3))},
                r"phi must be an array of numbers of shape \[any, any, any, any\].* \(2, 3\)",
            ),
            (
                {"weights": np.ones((1, 1, 2, 4))},
                r"phi must be an array of numbers of shape \[1, 1, 4, 3\]",
            ),
            ({"z": np.ones((1, 1, 1, 2))}, r"z must be .* of shape \[1, 1, 2, 2\]"),
            ({"source": [0]}, r"source must be an array of integers of shape \[2\]"),
            ({"source": [0.0, 1]}, "source must be an array of integers"),
            ({"source": [-1, 1]}, "source must hold numbers of sources from 0"),
            (
                {"source": [0, 1], "background": np.ones((1, 1, 1))},
                r"background must have one entry for each of 2 sources, got shape \(1, 1, 1\)",
            ),
            ({"lp": [1.0]}, r"lp must be an array of numbers of shape \[1, 1\]"),
            ({"phi": np.full((1, 1, 2, 3), np.nan)}, "phi must hold finite numbers"),
            ({"weights": np.full((1, 1, 2, 2), np.inf)}, "weights must hold finite numbers"),
            ({"chain": [0, 1]}, r"chain must be an array of numbers of shape \[1\]"),
            ({"draw": []}, r"draw must be an array of numbers of shape \[1\]"),
        ],
    )
    def test_bad_input_is_refused_by_name(self, change, message):
        given = {"phi": np.ones((1, 1, 2, 3)), "weights": np.ones((1, 1, 2, 2))} | change
        with pytest.raises(ValueError, match=message):
            factor_states(**given)


class TestNumFactors:
    def test_by_hand(self):
        fit = fit_of(shuffled()[0])
        used = (["chain", "draw"], [[2, 2, 4, 2], [4, 4, 4, 5]])
        draws = xarray.Dataset({"num_factors_used": used}, {"chain": [0, 3]})
        vars(fit)["data"] = xarray.DataTree.from_dict({"posterior": draws})
        table = fit.num_factors()
        assert table.index.tolist() == [2, 3, 4, 5]
        np.testing.assert_allclose(table["probability"], [3 / 8, 0, 4 / 8, 1 / 8])
        np.testing.assert_allclose(table["chain 0"], [3 / 4, 0, 1 / 4, 0])
        np.testing.assert_allclose(table["chain 3"], [0, 0, 3 / 4, 1 / 4])


class TestSharing:
    def test_by_hand(self):
        table = fit_of(shuffled()[0]).sharing()
        assert table[["source", "other"]].to_numpy().tolist() == [
            ["a", "a"],
            ["a", "b"],
            ["b", "a"],
            ["b", "b"],
        ]
        np.testing.assert_array_equal(table["shared"], [2, 1, 1, 2])
        np.testing.assert_array_equal(table["lower"], table["upper"])

    def test_is_averaged_over_states(self):
        z = np.zeros((1, 4, 2, 2), bool)
        z[0, :, 0, 0] = z[0, 0, 1, 0] = z[0, 1:3, 1, 1] = True  # rows are sources
        states = factor_states(np.ones((1, 4, 2, 1)), z.astype(float), source=[0, 1])
        table = fit_of(states).sharing(interval=0.5).set_index(["source", "other"])
        np.testing.assert_allclose(table["shared"], [1, 0.25, 0.25, 0.75])
        assert table.loc[("b", "b"), "lower"] == 0.75  # the quartile of 0, 1, 1, 1
        assert table.loc[("b", "b"), "upper"] == 1

    def test_bad_input(self):
        message = r"interval must be a finite number above 0 and below 1, got 1"
        with pytest.raises(ValueError, match=message):
            fit_of(shuffled()[0]).sharing(interval=1.0)


class TestAlignment:
    @pytest.mark.parametrize("turn", [False, True])
    def test_undoes_relabelling_and_turning(self, turn):
        states, places = shuffled(turn=turn, noise=0.02)
        found = align_factors(states)
        numbers = {tuple(number[place]) for number, place in zip(found.number, places, strict=True)}
        (order,) = numbers  # the same in every state
        assert sorted(order) == [0, 1, 2]
        assert order[1] == 2  # the factor of one row is the last
        assert (found.number >= 0).sum() == 3 * len(places)
        assert (found.similarity > 0.99).all()

    def test_the_reference_has_the_highest_finite_lp(self):
        lp = [[1, np.nan, 3], [9, np.inf, 2]]
        assert align_factors(shuffled(lp=lp)[0]).reference == 3
        assert align_factors(shuffled()[0]).reference == 2

    def test_unlike_factors_stay_apart(self):
        phi = np.array([[[[1.0, 0]], [[0, 1.0]], [[1.0, 1]]]])
        states = factor_states(phi, np.ones((1, 3, 2, 1)), lp=[[1, 0, 0]])
        found = align_factors(states)
        np.testing.assert_array_equal(found.number, [[0], [-1], [0]])
        np.testing.assert_allclose(found.similarity[:, 0], [1, np.nan, np.sqrt(0.5)])
        strict = align_factors(states, min_similarity=0.8)
        np.testing.assert_array_equal(strict.number, [[0], [-1], [-1]])
        assert found.unmatched()["draw"].tolist() == [1]

    def test_bad_input(self):
        states, _ = shuffled()
        with pytest.raises(
            ValueError, match=r"min_similarity must be a finite number above 0 and at most 1, got 0"
        ):
            align_factors(states, min_similarity=0)
        empty = factor_states(np.ones((1, 1, 2, 3)), np.zeros((1, 1, 4, 2)))
        with pytest.raises(ValueError, match=r"states have a reference, .* without any factor"):
            align_factors(empty)


class TestEffects:
    @pytest.mark.parametrize("turn", [False, True])
    def test_by_hand(self, turn):
        states, _ = shuffled(turn=turn)
        found = fit_of(states).effects()
        size = np.sqrt((W**2).sum(0) / (W > 0).sum(0))
        wanted = PHI * size[:, None]
        partner = match(found.mean, wanted)
        assert sorted(partner.position) == [0, 1, 2]
        for values in found:
            signed = values * partner.sign[:, None]
            np.testing.assert_allclose(signed, wanted[partner.position], atol=1e-12)

    def test_do_not_depend_on_the_scale(self):
        states, _ = shuffled()
        scale = np.random.default_rng(1).uniform(0.1, 10, states.phi.shape[:2])
        other = states._replace(
            phi=states.phi * scale[:, :, None], weights=states.weights / scale[:, None]
        )
        for ours, theirs in zip(fit_of(states).effects(), fit_of(other).effects(), strict=True):
            np.testing.assert_allclose(ours, theirs)

    def test_states_without_a_factor_do_not_count(self):
        phi = np.array([[[[1.0, 0], [0, 2.0]], [[1.0, 0], [0, 2.0]], [[3.0, 0], [0, 0]]]])
        w = np.ones((1, 3, 1, 2))
        w[0, 2, 0, 1] = 0
        states = factor_states(phi, w, lp=[[1, 0, 0]])
        found = fit_of(states).effects(interval=0.5)
        np.testing.assert_allclose(found.mean, [[5 / 3, 0], [0, 2]])
        np.testing.assert_allclose(found.lower, [[1, 0], [0, 2]])
        np.testing.assert_allclose(found.upper, [[2, 0], [0, 2]])


class TestTable:
    def test_by_hand(self):
        states, _ = shuffled(noise=1e-4)
        table = fit_of(states, list("pqrs")).factors(num_features=2)
        assert table.index.name == "factor"
        rows = table.set_index("features")
        assert set(rows.index) == {"p, q", "s, q", rows.index[2]}
        assert rows.index[2].startswith("r, ")
        assert rows["rows"].tolist() == rows["lower"].tolist() == [3, 3, 1]
        np.testing.assert_allclose(rows.loc["p, q", ["in a", "in b"]].astype(float), [1, 0])
        np.testing.assert_allclose(rows.loc["s, q", ["in a", "in b"]].astype(float), [1 / 3, 1])
        assert rows["other_chains"].tolist() == [1, 1, 1]
        assert rows["found"].tolist() == [1, 1, 1]

    def test_negative_effects_are_marked(self):
        states = factor_states(np.array([[[[1.0, -3, 2]]]]), np.ones((1, 1, 2, 1)))
        table = fit_of(states, list("pqr")).factors(num_features=3)
        assert table.loc[0, "features"] == "-q, r, p"
        assert table.loc[0, "in a"] == 1


class TestReconstruction:
    def test_by_hand(self):
        rng = np.random.default_rng(0)
        background = rng.normal(size=(2, 3, 2))
        states, _ = shuffled(turn=True, background=background)
        found = fit_of(states).reconstruct()
        fits = W @ PHI + background.reshape(6, 2)[:, SOURCE, None]
        np.testing.assert_allclose(found.mean, fits.mean(0))
        np.testing.assert_allclose(found.sd, fits.std(0))
        some = fit_of(states).reconstruct(rows=[4, 0])
        np.testing.assert_allclose(some.mean, found.mean[[4, 0]])

    def test_rows_are_numbers(self):
        for row in (0.5, -1, 10**6):
            with pytest.raises(
                ValueError, match=r"rows must be a list of numbers from 0 to \d+, .*got array"
            ):
                fit_of(shuffled()[0]).reconstruct(rows=np.array([0, row]))


class TestRecovery:
    def test_match_is_the_best_assignment(self):
        phi = np.array([[1.0, 0, 0], [0, 1, 0]])
        other = np.array([[0.0, 0, 1], [-3, 0, 0], [0, 0.2, 0]])
        found = match(phi, other)
        np.testing.assert_array_equal(found.position, [1, 2])
        np.testing.assert_array_equal(found.sign, [-1, 1])
        np.testing.assert_allclose(found.similarity, 1)
        alone = match(phi, other[:1])
        assert (alone.position.tolist(), alone.similarity.tolist()) == ([-1, -1], [0, 0])
        assert match(phi, other[:0]).position.tolist() == [-1, -1]

    @pytest.mark.parametrize("turn", [False, True])
    def test_of_the_truth_is_perfect(self, turn):
        states, _ = shuffled(turn=turn)
        table = factor_tables.recovery(states, PHI, W)
        np.testing.assert_allclose(table.to_numpy(), 1)
        assert table.index.name == "factor"

    def test_by_hand(self):
        # the first factor is missed by 45 degrees and one row, the second has no partner
        phi = np.array([[[[1.0, 1], [0, 0]]]])
        w = np.array([[[[2.0, 0], [0, 0]]]])
        table = factor_tables.recovery(
            factor_states(phi, w), np.eye(2), np.array([[2.0, 0], [1, 3]]), min_similarity=0.7
        )
        root = np.sqrt(0.5)
        np.testing.assert_allclose(sorted(table["similarity"]), [0, root])
        best = int(table["similarity"].argmax())
        assert table["found"].tolist() == [float(k == best) for k in range(2)]
        weights = {0: 2 / np.sqrt(5), 1: 0.0}[best]
        np.testing.assert_allclose(table.loc[best, "weights"], weights, atol=1e-12)
        assert table.loc[1 - best, "weights"] == 0
        np.testing.assert_allclose(table["agreement"][1 - best], {0: 0.5, 1: 0.0}[best])

    def test_bad_input(self):
        states, _ = shuffled()
        with pytest.raises(ValueError, match=r"weights must have shape \(5, 3\), got \(5, 2\)"):
            factor_tables.recovery(states, PHI, W[:, :2])
        with pytest.raises(ValueError, match=r"phi must have shape \[R, 4\], got \(3, 3\)"):
            factor_tables.recovery(states, PHI[:, :3], W)
