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
    return load("factor_data")


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("factor_claims")


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


def planted(**changed):
    """What was measured of two planted factors, in agreement with the claims but for changes."""
    row = {"similarity": 0.95, "weights": 0.92}
    found = {
        "part": "planted", "a_phi": 1.0, "births": "exact", "schedule": "default",
        "start": "from 1 factor", "sweeps_to_all": [40, 30], "seconds_to_all": [1.25, 1.0],
        "posterior": {"1": 0.4, "2": 0.6}, "recovery": [row, row], "convergence": [{"rhat": 1.0}],
        "convergence_from_sweep": 10,
        "shared": [
            {"source": "a", "other": "a", "shared": 2.0},
            {"source": "a", "other": "b", "shared": 3.6},
        ],
    }  # fmt: skip
    return found | changed


def of_cells(*cells, **settings):
    return {"settings": {"max_words": None, **settings}, "cells": dict(enumerate(cells))}


class TestClaimsOfPlantedFactors:
    def ask(self, claims, *cells):
        asked = (claims._soon, claims._mode, claims._shared)
        return [claims._planted(of_cells(*cells), 1.0, one) for one in asked]

    def test_two_starts_that_agree(self, claims):
        found = self.ask(claims, planted(), planted(start="from 20 factors"))
        assert [f.verdict for f in found] == ["holds"] * 3
        assert found[0].found == "sweeps 40, 30; seconds 1.2, 1.0"
        assert found[1].found == "; ".join(["most probable: 2, p(2) = 0.60"] * 2)
        assert found[2].found == "3.60, 3.60"

    def test_one_start_decides_nothing_of_a_posterior(self, claims):
        assert [f.verdict for f in self.ask(claims, planted())] == [
            "holds", "not decided", "not decided",
        ]  # fmt: skip

    def test_chains_that_did_not_come_together(self, claims):
        apart = planted(convergence=[{"rhat": 1.9}], sweeps_to_all=[40, None])
        found = self.ask(claims, apart, apart)
        assert [f.verdict for f in found] == ["does not hold", "not converged", "not converged"]

    def test_recovery(self, claims):
        bad = [planted()["recovery"][0], {"similarity": 0.5, "weights": 0.95}]
        both = [planted(recovery=bad), planted(recovery=bad)]
        found = claims._recovered(both, "similarity")
        assert (found.verdict, found.found[:24]) == ("does not hold", "1 of 2, lowest 0.50; 1 o")
        assert claims._recovered(both, "weights").verdict == "holds"

    def test_nothing_measured(self, claims):
        assert {f.verdict for f in self.ask(claims)} == {"not run"}
        assert claims._births(of_cells(planted())).verdict == "not run"

    def test_times_with_different_schedules_decide_nothing(self, claims):
        slow = planted(births="approximate", schedule="sequential", seconds_to_all=[None, None])
        found = claims._births(of_cells(planted(), slow))
        assert found.verdict == "not decided"
        assert "1.0 s against never" in found.found
        assert "The schedules differ" in found.why

    def test_chains_that_pass_by_have_not_settled(self, load):
        settled = load("factor_measures").settled
        assert settled([0, 12, 17, 17, 17, 12, 13, 12, 12, 12], 12, span=4) == 5
        assert settled([0, 12, 17, 17, 17, 12], 12, span=4) is None
        assert settled([12, 12], 12) is None


def sections_found(scores, rhat=1.0, name="nats_per_paper_together"):
    """What was measured, from {(auxiliary, size, method): values of the splits}."""
    return of_cells(*(
        {
            "part": "sections", "method": method, "auxiliary_section": other,
            "training_papers_of_target": size, "split_seed": split, name: value,
            "convergence": [{"rhat": rhat}],
        }
        for (other, size, method), values in scores.items()
        for split, value in enumerate(values)
    ))  # fmt: skip


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
    def test_the_worst_training_size_decides(self, claims):
        found = claims._compare("hierarchical", "alone")(sections_found(NATS, rhat=2.0))
        assert found.verdict == "not converged"
        assert "would say 'holds'" in found.why
        assert (
            found.found == "nats per paper better: 10 papers: +22.5 ± 2.5, 80 papers: +19.0 ± 0.4"
        )
        found = claims._compare("hierarchical", "pooled")(sections_found(NATS))
        assert found.verdict == "not decided"  # with 10 papers

    def test_pooling_helps_and_harms(self, claims):
        run = sections_found(NATS, rhat=2.0)
        for sizes, harms in ((lambda n: n < 50, False), (lambda n: n > 50, True)):
            found = claims._compare("pooled", "alone", sizes, harms=harms)(run)
            assert "would say 'holds'" in found.why
            found = claims._compare("pooled", "alone", sizes, harms=not harms)(run)
            assert "would say 'does not hold'" in found.why

    def test_splits_that_are_missing_are_left_out(self, claims):
        pairs = claims.gaps(sections_found(NATS), "hierarchical", "pooled")
        assert {size: len(found) for size, found in pairs.items()} == {10: 4, 80: 3}
        assert claims.gaps(sections_found({}), "pooled", "alone") == {}

    def test_the_order_needs_all_sections(self, claims):
        assert claims._order(sections_found(NATS)).verdict == "not run"
        more = {("SSP", 10, "hierarchical"): [79.5, 84.0], ("SSP", 80, "hierarchical"): [71, 71.0]}
        found = claims._order(sections_found(NATS | more, rhat=2.0))
        assert found.found == "AP, SSP, IM"
        assert "would say 'does not hold'" in found.why

    def test_topics(self, claims):
        words = {
            ("IM", 10, "hierarchical"): [40.0, 44.0],
            ("IM", 10, "HDP pooled"): [20.0, 22.0],
            ("IM", 80, "HDP pooled"): [20.0],
        }
        run = sections_found(words, rhat=2.0, name="word_perplexity")
        found = claims._hdp_words(run, "hierarchical")
        assert found.verdict == "not converged"
        assert found.found.startswith("perplexity 42, HDP 21; log ratio -0.693")
        assert claims._hdp_bag(run, "hierarchical").verdict == "not run"


def test_claims_of_digits(claims):
    def cell(method, value, rhat=1.0, **more):
        return {
            "part": "digits", "method": method, "mean_average_precision": value,
            "error_over_queries": 0.02, "convergence": [{"rhat": rhat}], **more,
        }  # fmt: skip

    others = [cell("features", 0.5), cell("2 principal components", 0.6)]
    ours = cell("GaussianFactorAnalysis", 0.7)
    found = claims._retrieval(of_cells(*others, ours, ours), "digits")
    assert found.verdict == "holds"
    assert found.found.startswith("0.700 against 0.600 (2 principal components); difference +0.100")
    close = cell("GaussianFactorAnalysis", 0.65)
    assert claims._retrieval(of_cells(*others, close, close), "digits").verdict == "not decided"
    name = "average_precision_of_each_query"
    kept = [{**others[1], name: [0.5, 0.6, 0.7]}, {**close, name: [0.55, 0.65, 0.75]}]
    paired = claims._retrieval(of_cells(others[0], *kept, kept[1]), "digits")
    assert paired.verdict == "holds"  # each query is better by as much
    assert claims._retrieval(of_cells(*others), "digits").verdict == "not run"


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
    assert output.with_suffix(".png").stat().st_size > 2500
    capsys.readouterr()
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("0 of")
    assert json.loads(output.read_text())["cells"] == found


@pytest.mark.slow
def test_quick_study_resumes(load, in_this_process, tmp_path, capsys):
    check_study(load("factors").main, "planted", tmp_path / "study.json", capsys)
    assert (tmp_path / "study_planted_factors.png").stat().st_size > 5000


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

    monkeypatch.setattr(load("factor_measures"), "fit", fit)
    check_study(load("factors").main, "sections,digits,bundled", tmp_path / "study.json", capsys)
