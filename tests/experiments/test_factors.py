"""The factor studies: their data, how they are divided, claims, and all of it when small."""

import csv
import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from bnp_models.data.sources import Sources

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
DATA = os.environ.get("BNP_DATA", "")


@pytest.fixture
def data(monkeypatch):
    """The module of the data, imported as a script beside it does."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("factor_data")


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
        made = data.planted(2000, background=0.1, seed=0)
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
        sizes = {"target": "VP", "num_test": 6, "num_auxiliary": 9} | options
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
        found = data.section_rows(sources, "CS", 80, 0)
        assert found.hierarchical.rows_per_source == (80, 80)
        assert found.test.rows_per_source == (44,)


class TestImages:
    def test_columns_are_standardised_on_the_training_part(self, data):
        train = np.array([[1.0, 5, 1e6], [3, 5, 1e6 + 2]])
        ours, theirs = data.standardised(train, np.array([[5.0, 7, 1e6]]))
        np.testing.assert_allclose(ours, [[-1, 0, -1], [1, 0, 1]])
        np.testing.assert_allclose(theirs, [[3, 0, -1]])
        assert ours.dtype == np.float32

    def test_classes_are_sources(self, data):
        x = np.arange(12.0).reshape(6, 2)
        group, is_test = np.array([2, 0, 2, 0, 1, 2]), np.array([0, 0, 0, 0, 1, 1], bool)
        found = data.class_images(x, group, is_test, ("a", "b", "c"))
        assert found.train.source_names == ("a", "c")  # no training row is of class b
        assert found.row_class == ("a", "a", "c", "c")
        assert found.query_class == ("b", "c")
        scaled, queries = data.standardised(x[:4], x[4:])
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
        assert data.digits(DATA, view="pix").train.num_features == 240


def test_tiny_data_are_of_the_kinds_wanted(data):
    assert data.tiny_sections().kind == "counts"
    assert data.tiny_images().train.kind == "reals"
    assert isinstance(data.tiny_images().train, Sources)


def sections_found(ppd):
    """What was measured, from {(auxiliary, size, method): values of the runs}."""
    return {
        f"sections/{other}/{size}/{run}/{method}": {"log_ppd": value}
        for (other, size, method), values in ppd.items()
        for run, value in enumerate(values)
    }


class TestClaims:
    @pytest.fixture
    def answers(self, monkeypatch):
        """Texts and answers of the claims."""
        monkeypatch.syspath_prepend(str(EXPERIMENTS))
        claims = importlib.import_module("factor_claims").claims
        return lambda found: [(claim.answer, claim.number) for claim in claims(found)]

    def test_of_planted_factors(self, answers):
        row = {"similarity": 0.95, "weights": 0.8}
        found = {
            "sweeps_to_all": [40, None],
            "seconds_to_all": [1.25, None],
            "posterior": {"1": 0.4, "2": 0.6},
            "recovery": [row, row | {"similarity": 0.5}],
            "shared": [
                {"source": "a", "other": "a", "shared": 2.0},
                {"source": "a", "other": "b", "shared": 3.6},
            ],
        }
        wanted = [
            ("no", "sweeps 40, never"),
            ("number", "1.2, never"),
            ("yes", "p(2) = 0.60, most probable: 2"),
            ("no", "1 of 2, lowest 0.50"),
            ("no", "0 of 2, lowest 0.80"),
            ("yes", "3.60"),
        ]
        assert answers({"planted/a_phi=1/exact": found}) == wanted
        slower = found | {"seconds_to_all": [None, 9.0]}
        both = {"planted/a_phi=1/exact": found, "planted/a_phi=1/approximate": slower}
        faster = ("yes", "median chain 1.2 s and 9.0 s; in the paper 400 s and 3138 s")
        assert answers(both)[-1] == faster

    def test_of_sections(self, answers):
        ppd = {
            ("none", 10, "alone"): [100, 110],
            ("none", 80, "alone"): [90, 90],
            ("IM", 10, "hierarchical"): [80, 90],
            ("IM", 80, "hierarchical"): [70, 72],
            ("IM", 10, "pooled"): [90, 94],
            ("IM", 80, "pooled"): [95, 97],
            ("AP", 10, "hierarchical"): [80, 80],
            ("AP", 80, "hierarchical"): [71, 71],
            ("AP", 10, "pooled"): [75, 76],
            ("AP", 80, "pooled"): [95],  # a run is missing
        }
        assert answers(sections_found(ppd)) == [
            ("yes", "+20.8 nats per paper (standard error over cells 1.3), better in 8 of 8"),
            ("yes", "+11.3 nats per paper (standard error over cells 5.1), better in 5 of 7"),
            ("yes", "10: +21.2 nats, 80: -5.7 nats"),
            ("number", "71.0"),
        ]

    def test_of_topics(self, answers):
        found = {
            "sections/IM/10/0/hierarchical": {"log_bag": 90.0, "word_perplexity": 40.0},
            "sections/IM/10/0/HDP pooled": {"log_bag": 80.0, "word_perplexity": 20.0},
            "sections/IM/80/0/HDP pooled": {"log_bag": 80.0, "word_perplexity": 20.0},
        }
        assert answers(found) == [
            ("number", "-10.0 nats per paper (standard error over cells nan), better in 0 of 1"),
            ("no", "40, HDP 20"),
        ]

    def test_chains_that_pass_by_have_not_settled(self, monkeypatch):
        monkeypatch.syspath_prepend(str(EXPERIMENTS))
        settled = importlib.import_module("factor_measures").settled
        assert settled([0, 12, 17, 17, 17, 12, 13, 12, 12, 12], 12, span=4) == 5
        assert settled([0, 12, 17, 17, 17, 12], 12, span=4) is None
        assert settled([12, 12], 12) is None

    def test_wait_for_what_is_not_measured(self, answers):
        assert answers({}) == []
        assert answers(sections_found({("IM", 10, "pooled"): [1.0]})) == []
        assert answers({"digits/features": {"map": 0.5}}) == []

    def test_of_digits(self, answers):
        found = {
            "digits/features": {"map": 0.5, "error": 0.02},
            "digits/2 principal components": {"map": 0.6, "error": 0.02},
            "digits/GaussianFactorAnalysis": {"map": 0.55, "error": 0.01, "factors": 9.25},
        }
        assert answers(found) == [
            ("no", "0.550, 2 principal components: 0.600 (standard errors 0.010 and 0.020)"),
            ("number", "9.2"),
            ("number", "0.5500"),
        ]
        found["digits/GaussianFactorAnalysis"]["map"] = 0.61
        assert answers(found)[0][0] == "not decided"


def check_study(main, parts, output, capsys):
    """Make the quick study twice: the second time nothing is left to do."""
    command = ["--quick", "--parts", parts, "--output", str(output)]
    assert main([*command, "--plan"]) == 0
    planned = capsys.readouterr().out.split("\n")[:-1]
    assert not output.exists()
    assert main(command) == 0
    found = json.loads(output.read_text())["found"]
    assert list(found) == planned
    assert {name.split("/")[0] for name in found} == set(parts.split(","))
    rows = list(csv.reader(output.with_suffix(".csv").read_text().splitlines()))
    assert len(rows) > 1 + len(found)
    assert all(
        row[1] in ("yes", "no", "not decided", "number")
        for row in rows
        if row[0].startswith("claim")
    )
    assert output.with_suffix(".png").stat().st_size > 5000
    capsys.readouterr()
    assert main(command) == 0
    assert "..." not in capsys.readouterr().out
    assert json.loads(output.read_text())["found"] == found


@pytest.mark.slow
def test_quick_study_resumes(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    main = importlib.import_module("factors").main
    check_study(main, "planted", tmp_path / "study.json", capsys)
    assert (tmp_path / "study_planted.png").stat().st_size > 5000


def test_quick_study_of_made_up_fits(monkeypatch, tmp_path, capsys, made_up_factors):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    main = importlib.import_module("factors").main
    measures = importlib.import_module("factor_measures")

    def fit(model, sources, settings, **options):
        rng = np.random.default_rng(0)
        phi = rng.gamma(0.5, size=(2, sources.num_features))
        weights = rng.gamma(1.0, size=(sources.num_rows, 2)) * (rng.random((1, 2)) < 0.9)
        noise = {"sigma2_w": 1.0, "sigma2_n": 0.5}
        counts = {"background": 0.1, "b_w": 1.0}
        of_source = counts if sources.kind == "counts" else noise
        return made_up_factors(model, sources, phi, weights, **of_source)

    monkeypatch.setattr(measures, "fit", fit)
    check_study(main, "sections,digits,bundled", tmp_path / "study.json", capsys)


def test_other_settings_and_parts_are_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    main = importlib.import_module("factors").main
    output = tmp_path / "study.json"
    output.write_text(json.dumps({"settings": {}, "found": {}}))
    with pytest.raises(SystemExit, match="holds a run of other settings"):
        main(["--quick", "--output", str(output)])
    with pytest.raises(SystemExit):
        main(["--quick", "--parts", "planted,nothing"])
    assert "--parts has 'nothing'" in capsys.readouterr().err
