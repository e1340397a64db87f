"""The factor studies: their data, how they are divided, claims, and all of it when small."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from bnp_models import Sources

DATA = os.environ.get("BNP_DATA", "")


@pytest.fixture
def data(load):
    """The module of the data."""
    return load("factors.data")


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("factors.claims")


class TestPlanted:
    def test_sources_may_use_eight_factors_each_and_share_four(self, data):
        made = data.planted(seed=1)
        assert made.sources.rows_per_source == (100, 100)
        assert made.sources.num_features == 100
        used = np.stack([(w > 0).any(axis=0) for w in np.split(made.weights, 2)])
        np.testing.assert_array_equal(used[0], [True] * 8 + [False] * 4)
        np.testing.assert_array_equal(used[1], [False] * 4 + [True] * 8)

    def test_factors_are_binary_and_none_of_them_is_a_sum_of_others(self, data):
        phi = data.planted(2).phi
        assert set(np.unique(phi)) == {0, 1}
        assert scipy.stats.binomtest(int(phi.sum()), phi.size, 0.2).pvalue > 1e-6
        assert np.linalg.matrix_rank(phi) == 12

    def test_uses_weights_and_counts_have_their_laws(self, data):
        made = data.planted(2000, seed=0)
        z = made.weights > 0
        uses = z[:2000, :8].sum()
        # Each test fails by chance once in a million times.
        assert scipy.stats.binomtest(int(uses), 16000, 0.5).pvalue > 1e-6
        gamma = scipy.stats.kstest(made.weights[z], scipy.stats.gamma(1.0, scale=2.0).cdf)
        assert gamma.pvalue > 1e-6
        outside = made.sources.values[:, made.phi.sum(axis=0) == 0]
        low, high = scipy.stats.poisson(0.1 * outside.size).interval(1 - 1e-6)
        assert low <= outside.sum() <= high
        rate = 0.1 + made.weights @ made.phi
        squares = ((made.sources.values - rate) ** 2 / rate).mean(axis=1)
        # a mean of n = 4000 * 100 with variance 2 + 1 / rate <= 12: sd 0.0055
        assert abs(squares.mean() - 1) < 5 * 0.0055

    def test_depends_on_the_seed_alone(self, data):
        assert data.planted(5, seed=3).sources == data.planted(5, seed=3).sources
        assert data.planted(5, seed=3).sources != data.planted(5, seed=4).sources


class TestSections:
    def divide(self, data, *args, **options):
        sizes = {"num_test": 6, "num_auxiliary": 9} | options
        return data.section_rows(data.tiny_sections(), *args, **sizes)

    def test_rows_are_divided(self, data):
        found = self.divide(data, "near", 5, 0)
        assert found.hierarchical.source_names == ("VP", "near")
        assert found.hierarchical.rows_per_source == (5, 9)
        assert found.alone == found.hierarchical.select(["VP"])
        assert found.pooled == found.hierarchical.pooled()
        assert found.test == data.tiny_sections().select(["VP"]).select_rows(range(6))
        assert not set(found.test.row_names) & set(found.hierarchical.row_names)

    def test_smaller_training_sets_are_parts_of_larger_ones(self, data):
        small, large = (self.divide(data, "far", size, 2) for size in (4, 14))
        assert set(small.alone.row_names) < set(large.alone.row_names)
        auxiliary = [part.hierarchical.select(["far"]) for part in (small, large)]
        assert auxiliary[0] == auxiliary[1]

    def test_runs_differ_in_training_rows_only(self, data):
        first, second = (self.divide(data, "near", 5, run) for run in (0, 1))
        assert first.test == second.test
        assert first.alone != second.alone
        assert first.hierarchical.select(["near"]) != second.hierarchical.select(["near"])
        assert self.divide(data, "far", 5, 0).alone == first.alone

    def test_without_an_auxiliary_section(self, data):
        found = self.divide(data, None, 5, 0)
        assert found.alone == self.divide(data, "near", 5, 0).alone
        assert found.hierarchical == found.pooled == found.alone

    def test_too_few_papers(self, data):
        with pytest.raises(ValueError, match="num_target=15 is more than the 14 papers"):
            self.divide(data, "near", 15, 0)
        with pytest.raises(ValueError, match="num_auxiliary=21 is more than the 20 papers"):
            self.divide(data, "near", 5, 0, num_auxiliary=21)

    @pytest.mark.skipif(not Path(DATA, "nips12.npz").exists(), reason="BNP_DATA has no nips12.npz")
    def test_of_the_collection(self, data):
        sources = data.sections(DATA)
        assert (sources.num_sources, sources.num_rows, sources.num_features) == (9, 1564, 5071)
        assert "MISC" not in sources.source_names
        assert 1000 < sources.values.sum() / 1564 < 1010
        found = data.section_rows(sources, "CS", 80, 0, num_auxiliary=80, num_test=44)
        assert found.hierarchical.rows_per_source == (80, 80)
        assert found.test.rows_per_source == (44,)


class TestImages:
    def test_classes_are_sources(self, data, load):
        x = np.arange(12.0).reshape(6, 2)
        group, is_test = np.array([2, 0, 2, 0, 1, 2]), np.array([0, 0, 0, 0, 1, 1], bool)
        found = data.class_images(x, group, is_test, ("a", "b", "c"))
        assert found.train.source_names == ("a", "c")  # no training row is of class b
        assert found.row_class == ("a", "a", "c", "c")
        assert found.query_class == ("b", "c")
        scaled, queries = load("study.splits").standardised(x[:4], x[4:])
        np.testing.assert_array_equal(found.train.values, scaled[[1, 3, 0, 2]])
        np.testing.assert_array_equal(found.queries, queries)

    def test_bundled_digits_need_no_folder(self, data):
        found = data.bundled()
        assert found.train.num_sources == 10
        assert len(found.row_class) + len(found.query_class) == 1797
        assert 0.35 < len(found.query_class) / 1797 < 0.45

    @pytest.mark.skipif(not Path(DATA, "mfeat.npz").exists(), reason="BNP_DATA has no mfeat.npz")
    def test_of_the_digits(self, data):
        found = data.digits(DATA)
        assert found.train.rows_per_source == (120,) * 10
        assert found.queries.shape == (800, 649)
        np.testing.assert_allclose(found.train.values.mean(axis=0), 0, atol=1e-4)


def test_tiny_data_are_of_the_kinds_wanted(data):
    assert data.tiny_sections().kind == "counts"
    assert data.tiny_images().train.kind == "reals"
    assert isinstance(data.tiny_images().train, Sources)


def test_counts_are_drawn_from_the_model(data):
    made = data.simulated(1)
    assert made.source_names == ("VP", "auxiliary")
    assert made.rows_per_source == (140, 80)
    assert data.simulated(1) == made != data.simulated(2)
    # The expected count is the background and 6 factors of mean weight 2 and mean entry 1. The mean
    # varies over data sets, because few sticks are large; its standard deviation is below 6.
    means = [data.simulated(n).values.mean() for n in range(100)]
    assert abs(np.mean(means) - 12.1) < 5 * 6 / np.sqrt(100)


class TestKnownRows:
    def test_probabilities_of_all_rows_have_the_sum_one(self, data):
        state, _ = data.known_rows(2, 1, 1)
        state = state._replace(phi=state.phi[:, :1] * 20)  # of one feature
        log_prob = data.exact_log_prob(np.arange(100)[:, None], state)
        assert np.exp(log_prob).sum() == pytest.approx(1, abs=1e-3)
        # no count: each factor is unused, or e^-(weight * factor) is averaged over its weight
        unseen = np.exp(-state.background[0]) * np.prod(0.5 + 0.5 * 0.5 / (0.5 + state.phi))
        assert np.exp(log_prob[0]) == pytest.approx(unseen, rel=1e-4)

    @pytest.mark.parametrize("factors", [2, 48])
    def test_rows_have_about_as_many_counts_as_are_asked_for(self, data, factors):
        state, values = data.known_rows(factors, 200, 4000)
        assert state.phi.shape == (factors, 100)
        # a row has 1 to 6 factors of weight 2 +- 2, used or not: its sd is below 1.3 means
        assert abs(values.sum(axis=1).mean() / 200 - 1) < 5 * 1.3 / np.sqrt(4000)


class TestClaimOfEstimates:
    def ask(self, claims, ais, paper, error=0.5):
        found = [
            {
                "part": "estimates", "factors": k, "mean_counts": 100.0,
                "gap": {"ais, 100": ais, "eq32, 100": gap},
                "error_of_gap": {"ais, 100": error, "eq32, 100": error},
            }
            for k, gap in zip((2, 12), paper, strict=True)
        ]  # fmt: skip
        run = of_cells(*found, section_temperatures=100, reference_temperatures=1000)
        return claims._estimates(run)

    def test_nearer_in_every_cell(self, claims):
        found = self.ask(claims, -1.0, (4.0, 15.0))
        assert (found.verdict, found.chains) == ("holds", None)
        assert found.found == (
            "2 factors, 100 counts: +4.0 and -1.0; 12 factors, 100 counts: +15.0 and -1.0"
        )
        assert self.ask(claims, -6.0, (4.0, 15.0)).verdict == "does not hold"
        assert self.ask(claims, -3.0, (4.0, 15.0)).verdict == "not decided"
        assert claims._estimates(of_cells()).verdict == "not run"


def of_cells(*cells, **settings):
    given = {"max_words": None, "num_particles": 20, **settings}
    return {"settings": given, "cells": dict(enumerate(cells))}


def planted(**changed):
    """What was measured of two planted factors, in agreement with the claims but for changes."""
    row = {"similarity": 0.95, "weights": 0.92}
    found = {
        "part": "planted", "a_phi": 1.0, "split_seed": 0, "start": "from 1 factor",
        "sweeps_to_all": [40, 30], "posterior": {"1": 0.4, "2": 0.6}, "recovery": [row, row],
        "factors_in_use_by_chain": np.hstack([np.ones((2, 50)), np.resize([2, 1, 2], (2, 50))]),
        "lp_of_second_half_by_chain": np.resize([1.0, 2.0, 1.5, 1.8], (2, 50)),
        "shared": [
            {"source": "a", "other": "a", "shared": 2.0},
            {"source": "a", "other": "b", "shared": 3.6},
        ],
    }  # fmt: skip
    return found | changed


def starts(**changed):
    """Fits to two data sets, from one factor (with the changes) and from the true ones."""
    both = {"from 1 factor": changed, "from the true factors": {}}
    return [
        planted(split_seed=seed, start=start, **of_start)
        for seed in (0, 1)
        for start, of_start in both.items()
    ]


class TestClaimsOfPlantedFactors:
    @pytest.fixture
    def ask(self, load, claims):
        def ask(cells):
            asked = (claims._soon, claims._mode, claims._shared, claims._together)
            return [load("study.claims").ruled(one(of_cells(*cells), 1.0)) for one in asked]

        return ask

    def test_starts_that_agree(self, ask):
        found = ask(starts())
        # draws of the number of shared factors are not kept
        assert [f.verdict for f in found] == ["holds", "holds", "not converged", "holds"]
        assert "would say 'holds'. R-hat of what the claim is about was not kept" in found[2].why
        assert found[0].found == "4 of 4 chains; sweeps 35 (30 to 40)"
        assert found[1].found == (
            "in 4 of 4 fits to 2 data sets; the mode is 2 to 2, p(12) 0.60 (0.60 to 0.60)"
        )
        assert found[3].found.startswith("from 1 factor: +0.0 ± 0.0 nats; R-hat over all starts up")

    def test_one_start_decides_nothing_of_a_posterior(self, ask):
        found = ask([planted()])
        assert [f.verdict for f in found] == ["not decided", "not converged", "not decided",
                                              "not run"]  # fmt: skip
        assert "not two chains from each of two starts" in found[1].why

    def test_starts_that_differ(self, ask):
        stuck = {"posterior": {"1": 0.9, "2": 0.1}, "sweeps_to_all": [None, 400]}
        stuck["factors_in_use_by_chain"] = np.ones((2, 100))
        stuck["lp_of_second_half_by_chain"] = np.resize([-499.0, -498.0], (2, 50))
        found = ask(starts(**stuck))
        assert [f.verdict for f in found] == ["does not hold", *["not converged"] * 3]
        for of_draws in (found[1], found[3]):
            assert "would say 'does not hold'. R-hat of what" in of_draws.why

    def test_recovery(self, load, claims):
        bad = [planted()["recovery"][0], {"similarity": 0.5, "weights": 0.95}]
        cells = starts()
        run = of_cells(*({**cell, "recovery": bad} for cell in cells))
        found = claims._recovered(run, 1.0, "similarity")
        assert (found.verdict, found.found[:22]) == ("does not hold", "in 0 of 4 fits to 2 da")
        found = claims._recovered(run, 1.0, "weights")
        assert found.verdict == "holds"
        assert load("study.claims").ruled(found).verdict == "not converged"  # not kept by draw

    def test_nothing_measured(self, ask):
        assert {f.verdict for f in ask([])} == {"not run"}


def chains(method, sweeps, end=1000, a_phi=1.0):
    """Chains of a sampler, one for each data set, that make ten sweeps a second."""
    return [
        {
            "part": "samplers", "method": method, "a_phi": a_phi, "split_seed": n, "sweeps": end,
            "sweeps_to_all": sweep, "seconds_to_all": None if sweep is None else sweep / 10,
            "seconds_of_sweeps": end / 10,
        }
        for n, sweep in enumerate(sweeps)
    ]  # fmt: skip


class TestClaimsOfSamplers:
    soon = chains("slice sampler", [20, 30, 40, 50, 60, 70])
    late = chains("approximate births", [80, 90, 100, None, None, None])

    def ask(self, claims, run, unit="sweeps", names=("slice sampler", "approximate births")):
        return claims._sooner(of_cells(*run), *names, unit)

    def test_sooner(self, load, claims):
        found = self.ask(claims, [*self.soon, *self.late])
        assert found.verdict == "holds"
        assert load("study.claims").ruled(found) == found  # not about a posterior
        assert found.found.startswith(
            "a_phi 1: 6 of 6 chains against 3 of 6, half of them after 45 against 550 sweeps, z = "
        )
        turned = self.ask(claims, [*self.soon, *self.late], "seconds",
                          ("approximate births", "slice sampler"))  # fmt: skip
        assert turned.verdict == "does not hold"

    def test_chains_that_end_early_say_less(self, claims):
        never = chains("approximate births", [None] * 6, end=10)
        found = self.ask(claims, [*self.soon, *never])
        assert found.verdict == "not decided"  # all were watched for ten sweeps only
        assert "6 of 6 chains against 0 of 6" in found.found

    def test_priors_that_differ_decide_nothing(self, claims):
        other = [c for name in ("slice sampler", "approximate births")
                 for c in chains(name, [5] * 6, a_phi=0.2)]  # fmt: skip
        found = self.ask(claims, [*self.soon, *self.late, *other])
        assert found.verdict == "not decided"
        assert "By prior: holds, not decided." in found.why
        assert self.ask(claims, self.soon).verdict == "not run"


def test_chains_arrive_when_all_planted_factors_are_there(load):
    factor_states = load("bnp_models.posterior.factor_states").factor_states
    phi = np.eye(2, 4)
    half, whole = np.array([phi[0], phi[0] * 0]), phi + 0.05
    states = factor_states(
        np.array([[half, whole, whole], [half, half, half]]), np.ones((2, 3, 3, 2)), draw=[4, 9, 14]
    )
    assert load("factors.measures").arrivals(states, phi) == [10, None]


def sections_found(scores, name="nats_per_paper_together", start=None):
    """What was measured, from {(auxiliary, size, method): values of the splits}."""
    more = {} if start is None else {"start": start}
    return [
        {
            "part": "sections", "method": method, "auxiliary_section": other,
            "training_papers_of_target": size, "split_seed": split, name: value,
            "row_log_prob": [-value - 20, -value + 20], **more,
        }
        for (other, size, method), values in scores.items()
        for split, value in enumerate(values)
    ]  # fmt: skip


NATS = {
    ("none", 10, "alone"): [100, 110],
    ("none", 80, "alone"): [90, 90],
    ("IM", 10, "hierarchical"): [80, 90],
    ("IM", 80, "hierarchical"): [70, 72],
    ("IM", 10, "pooled"): [90, 94],
    ("IM", 80, "pooled"): [95, 97],
    ("AP", 10, "hierarchical"): [80, 80],
    ("AP", 80, "hierarchical"): [71, 71],
    ("AP", 10, "pooled"): [75, 76],
    ("AP", 80, "pooled"): [95],  # a split is missing
}


class TestClaimsOfSections:
    def run(self, shift=0.0):
        """The fits above, and the first split from another start, `shift` nats better."""
        first = {at: values[:1] for at, values in NATS.items() if at[0] != "AP"}
        other = {at: [x - shift for x in values] for at, values in first.items()}
        more = sections_found(other, start="from 1 factor")
        return of_cells(*sections_found(NATS), *more)

    def ask(self, run, load, one, other, **options):
        gaps = load("factors.claims")
        return gaps.better(run, gaps.Pair("sections", one, other), **options)

    def test_the_worst_training_size_decides(self, load):
        found = self.ask(self.run(), load, "hierarchical", "alone")
        assert found.verdict == "holds"
        assert found.found == (
            "better by 10: +22.5 ± 2.5, 80: +19.0 ± 0.5 (nats per paper, by training papers; "
            "2 splits)"
        )
        found = self.ask(self.run(), load, "hierarchical", "pooled")
        assert found.verdict == "not decided"  # with 10 papers
        assert found.why.startswith("Open: about")

    def test_scores_are_about_draws_of_chains(self, load):
        found = self.ask(self.run(), load, "hierarchical", "alone")
        ruled = load("study.claims").ruled
        assert ruled(found).verdict == "not converged"
        agree = [{start: np.resize([1.0, 2.0, 1.5], (2, 30)) for start in ("", "from 1 factor")}]
        assert ruled(found._replace(chains=agree)).verdict == "holds"

    def test_the_usual_start_is_scored(self, load):
        pair = load("factors.claims").Pair("sections", "hierarchical", "alone")
        assert pair.gaps(self.run(50.0)) == pair.gaps(self.run())
        assert pair.start_gaps(self.run(50.0), "hierarchical") == [50.0, 50.0]

    def test_one_size_is_enough_against_a_claim(self, load):
        nats = {
            ("IM", 10, "hierarchical"): [90, 92],
            ("IM", 10, "pooled"): [80, 82],
            ("IM", 80, "hierarchical"): [70, 72],
            ("IM", 80, "pooled"): [71, 73],
        }
        found = self.ask(of_cells(*sections_found(nats)), load, "hierarchical", "pooled")
        assert found.verdict == "does not hold"

    def test_pooling_helps_and_harms(self, load):
        for sizes, harms in ((lambda n: n < 50, False), (lambda n: n > 50, True)):
            found = self.ask(self.run(), load, "pooled", "alone", sizes=sizes, harms=harms)
            assert found.verdict == "holds"
            found = self.ask(self.run(), load, "pooled", "alone", sizes=sizes, harms=not harms)
            assert found.verdict == "does not hold"

    def test_errors_are_over_splits_and_papers(self, load):
        gaps = load("factors.claims")
        found = sections_found({("IM", 10, "pooled"): [9.0], ("IM", 10, "hierarchical"): [5.0]})
        found[0]["row_log_prob"] = [-9.0, -7.0]
        found[1]["row_log_prob"] = [-6.0, -2.0]
        pair = gaps.Pair("sections", "hierarchical", "pooled")
        (gap,) = pair.gaps(of_cells(*found)).values()
        assert (gap.value, gap.error, gap.splits) == (4.0, pytest.approx(1.0), 1)

    def test_the_order_needs_all_sections(self, claims):
        run = self.run()
        assert claims._order(run).verdict == "not run"
        more = {
            ("SSP", 10, "hierarchical"): [79.5, 84.0],
            ("SSP", 80, "hierarchical"): [71, 71.0],
            ("NS", 10, "hierarchical"): [60, 66],
            ("NS", 80, "hierarchical"): [60, 62],
        }
        found = claims._order(of_cells(*run["cells"].values(), *sections_found(more)))
        assert found.found == "NS 62.0, AP 75.5, SSP 76.4, IM 78.0 nats"
        assert found.verdict == "does not hold"
        assert found.why.startswith("NS is better than IM by +16.0")

    def test_topics(self, claims):
        words = {
            ("IM", 10, "hierarchical"): [40.0, 44.0],
            ("IM", 10, "HDP, three levels"): [20.0, 22.0],
            ("IM", 80, "HDP, three levels"): [20.0],
        }
        name = "word_perplexity"
        other = sections_found({("IM", 10, "hierarchical"): [41.0]}, name, "from 1 factor")
        run = of_cells(*sections_found(words, name), *other)
        found = claims._hdp(run, "hierarchical", name)
        assert found.verdict == "does not hold"
        assert found.found.startswith("better by 10: -0.693 ± 0.000 (log ratio of perplexities")
        assert claims._hdp(run, "hierarchical", claims.BAG).verdict == "not run"


class TestClaimsOfDigits:
    def cell(self, method, values, first=(3, 3), **more):
        return {
            "part": "digits", "method": method, "average_precision_of_each_query": values,
            "mean_average_precision": float(np.mean(values)),
            "relevant_of_each_query_by_scope": {"1": list(first)}, **more,
        }  # fmt: skip

    def test_pairs_of_queries(self, claims):
        exact, approximate = (claims.FACTORS.format(b) for b in ("exact", "approximate"))
        others = [self.cell("features", [0.5, 0.5], (1, 1)),
                  self.cell("principal components", [0.5, 0.7], (0, 1), components=7)]  # fmt: skip
        ours = [self.cell(exact, [0.6, 0.81], (0, 0), start=start) for start in "ab"]
        run = of_cells(*others, *ours)
        found = claims._retrieval(run, "digits", None)
        assert found.verdict == "holds"
        assert found.found == "0.705 against 0.600 (7 principal components); +0.105 ± 0.005"
        assert claims._retrieval(run, "digits", 1).verdict == "does not hold"  # at scope 1
        assert claims._retrieval(of_cells(*others), "digits", None).verdict == "not run"
        assert claims._exact_births(run, "digits", None).verdict == "not run"
        worse = self.cell(approximate, [0.3, 0.5], start="from 1 factor")
        found = claims._exact_births(of_cells(*ours, worse), "digits", None)
        assert (found.verdict, found.found[:31]) == ("holds", "0.705 against 0.400 (approximat")

    def test_chains_of_two_starts_decide(self, load, claims):
        rng, ruled = np.random.default_rng(0), load("study.claims").ruled
        other = self.cell("features", [0.5, 0.5], (0, 1))
        made = {"average_precision_of_each_query": [0.4, 0.4], "mean_average_precision": 0.4}
        ours = [
            self.cell(claims.FACTORS.format("exact"), [0.7, 0.8], start=start,
                      draws=(0.7 + 0.01 * rng.normal(size=(4, 50))).tolist(),
                      rebuilt={**made, "draws": (place + 0.01 * rng.normal(size=(4, 50))).tolist()})
            for place, start in enumerate(("from 1 factor", "from 40 factors"))
        ]  # fmt: skip
        run = of_cells(other, *ours)
        assert ruled(claims._retrieval(run, "digits", None)).verdict == "holds"
        assert ruled(claims._retrieval(run, "digits", 1)).verdict == "not converged"  # no draws
        rebuilt = ruled(claims._retrieval(run, "digits", None, rebuilt=True))
        assert rebuilt.found.startswith("0.400 against 0.500")
        assert "R-hat of what the claim is about is up to" in rebuilt.why
        assert claims._retrieval(of_cells(other), "digits", None, rebuilt=True).verdict == "not run"

    def test_the_number_of_components_is_chosen_on_training_rows(self, load, data):
        measures, settings = load("factors.measures"), load("factors.settings").QUICK
        rng = np.random.default_rng(0)
        group = np.repeat(np.arange(4), 24)
        x = rng.normal(size=(4, 3))[group] * 4 + rng.normal(size=(96, 3))
        x = np.hstack([x, rng.normal(size=(96, 40))])
        images = data.class_images(x, group, np.arange(96) % 3 == 0, tuple("abcd"))
        found = measures.measure_features(images, (1, 3, 20), settings)
        assert found["components"] == max(
            (1, 3, 20), key=lambda k: found["score_on_training_rows"][str(k)]
        )
        wrong = images._replace(
            query_class=tuple("abcd"[(ord(c) + 1) % 4] for c in images.query_class)
        )
        again = measures.measure_features(wrong, (1, 3, 20), settings)
        assert again["score_on_training_rows"] == found["score_on_training_rows"]


def check_study(main, parts, output, capsys):
    """Make the quick study twice: the second time nothing is left to do."""
    command = ["--quick", "--parts", parts, "--output", str(output)]
    assert main([*command, "--plan"]) == 0
    planned = [line.split(": ")[0].strip() for line in capsys.readouterr().out.split("\n")[1:-1]]
    assert not output.exists()
    assert main(command) == 0, capsys.readouterr().err
    found = json.loads(output.read_text())["cells"]
    assert list(found) == planned
    assert {cell["part"] for cell in found.values()} == set(parts.split(","))
    assert output.with_name("study_claims.csv").exists()
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("0 of")
    assert json.loads(output.read_text())["cells"] == found


@pytest.mark.slow
def test_quick_study_resumes(load, in_no_time, tmp_path, capsys):
    parts = "planted,samplers,estimates"
    check_study(load("factors.__main__").main, parts, tmp_path / "study.json", capsys)
    for name in ("planted", "planted_factors"):
        assert (tmp_path / f"study_{name}.png").stat().st_size > 5000


@pytest.mark.slow
def test_quick_study_of_made_up_fits(
    load, in_this_process, monkeypatch, tmp_path, capsys, made_up_factors
):
    def fit(model, sources, settings, **options):
        rng = np.random.default_rng(0)
        phi = rng.gamma(0.5, size=(2, sources.num_features))
        weights = rng.gamma(1.0, size=(sources.num_rows, 2)) * (rng.random((1, 2)) < 0.9)
        noise = {"sigma2_w": 1.0, "sigma2_n": 0.5}
        counts = {"background": 0.1, "b_w": 1.0}
        of_source = counts if sources.kind == "counts" else noise
        return made_up_factors(model, sources, phi, weights, **of_source)

    monkeypatch.setattr(load("factors.measures"), "fit", fit)
    parts = "simulated,sections,digits,bundled"
    check_study(load("factors.__main__").main, parts, tmp_path / "study.json", capsys)
    for name in ("study.png", "study_retrieval.png"):
        assert (tmp_path / name).stat().st_size > 5000


def test_the_standard_plan_has_everything_that_was_asked_for(load):
    module = load("factors.plan")
    settings = load("factors.settings")
    plan = list(module.section_fits(settings.STANDARD))
    assert len(plan) == len(set(plan))
    fits = {(f.method, f.size, f.auxiliary) for f in plan if f.first is None}
    for method in ("hierarchical", "pooled"):
        for other in settings.STANDARD.auxiliaries:
            assert {(method, n, other) for n in (10, 20, 40, 80)} <= fits
    assert {("alone sparse", n, None) for n in (10, 80)} <= fits
    assert {f.method for f in plan if f.first == 1} == {
        *module.KINDS, *(f"{kind} sparse" for kind in module.KINDS)
    }  # fmt: skip
