import numpy as np
import pandas as pd
import pytest

from bnp_models.base.model import FACTORS
from bnp_models.posterior import diagnostics
from bnp_models.posterior.arviz_data import make_data

SOURCES = ("left", "right")


def draws(*, chains=4, size=1000, shift=(0, 0, 0, 0), rho=0.0, seed=0):
    """AR(1) draws of unit variance around each chain's shift."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, size))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, size):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=chains)
    return x + np.asarray(shift[:chains])[:, None]


def of(posterior, dims=None, **stats):
    groups = {"posterior": posterior, **({"sample_stats": stats} if stats else {})}
    return make_data(groups, dims=dims)


def verdict(x, **options):
    return diagnostics.convergence(of({"x": x}), **options).table.loc["x", "verdict"]


class TestLabelFree:
    def test_collects_lp_scalars_and_sums_and_nothing_else(self):
        rng = np.random.default_rng(0)
        weights = rng.dirichlet(np.ones(3), (4, 50)).astype(np.float32)
        alpha = rng.gamma(2.0, size=(4, 50, 3))
        data = of(
            {
                "beta": rng.random((4, 50)),
                "num_topics_used": rng.integers(2, 4, (4, 50)),
                "alpha": alpha,
                "weights": weights,  # sum to one
                "topic_tokens": rng.multinomial(90, [0.2, 0.3, 0.5], (4, 50)),  # sum to 90
                "active": rng.random((4, 50, 3)) < 0.5,
                "phi": rng.random((4, 50, 3, 7)),
                "rate": rng.random((4, 50, 2)),
            },
            {
                **{key: ["topic"] for key in ("alpha", "weights", "topic_tokens", "active")},
                "phi": ["topic", "word"],
                "rate": ["group"],
            },
            lp=rng.normal(size=(4, 50)),
            num_moved=rng.normal(size=(4, 50)),
        )
        found = diagnostics.label_free(data, extra={"mine": np.ones((4, 50))})
        rates = ["rate[0]", "rate[1]"]
        assert list(found) == ["lp", "num_topics_used", "beta", "sum(alpha)", *rates, "mine"]
        np.testing.assert_allclose(found["sum(alpha)"], alpha.sum(-1))
        assert found["num_topics_used"].dtype.kind == "i"

    def test_every_source_has_a_row(self):
        """What belongs to a source has no labels to switch: one chain elsewhere must be shown."""
        rng = np.random.default_rng(0)
        variance, uses = rng.gamma(2.0, size=(4, 50, 2)), rng.random((4, 50, 2, 3))
        variance[1, :, 1] += 9
        data = make_data(
            {"posterior": {"sigma2_w": variance, "pi": uses, "weights": uses}},
            dims={"sigma2_w": ["source"], "pi": ["source", "factor"], "weights": ["row", "factor"]},
            coords={"source": SOURCES},
        )
        found = diagnostics.label_free(data, terms=FACTORS)
        assert list(found) == [f"{x}[{s}]" for x in ("sigma2_w", "sum(pi)") for s in SOURCES]
        np.testing.assert_array_equal(found["sigma2_w[right]"], variance[:, :, 1])
        np.testing.assert_allclose(found["sum(pi)[left]"], uses[:, :, 0].sum(-1))
        assert list(diagnostics.label_free(data, terms=FACTORS, var_names=["sigma2_w"])) == [
            "sigma2_w[left]", "sigma2_w[right]",
        ]  # fmt: skip
        result = diagnostics.convergence(data, terms=FACTORS)
        assert result.table.loc["sigma2_w[right]", "rhat"] > 1.5
        assert "sigma2_w[right]: R-hat" in result.summary

    def test_names_select_and_order(self):
        data = of({"b": draws(), "a": draws()}, lp=draws())
        assert list(diagnostics.label_free(data, var_names=["a", "lp"])) == ["a", "lp"]

    def test_unknown_names_and_shapes_are_refused(self):
        data = of({"a": draws(size=10)})
        with pytest.raises(ValueError, match=r"var_names must be among .*\['a'\], got 'tau'"):
            diagnostics.label_free(data, var_names=["tau"])
        with pytest.raises(
            ValueError, match=r"extra\['b'\] must be an array of .* of shape \[4, 10\], got"
        ):
            diagnostics.label_free(data, extra={"b": np.ones((4, 9))})


class TestConvergence:
    def test_independent_draws_pass(self):
        # R-hat of 4 x 1000 independent draws exceeds 1.01 about once in 1000 times
        result = diagnostics.convergence(of({"a": draws(), "b": draws(seed=1)}, lp=draws(seed=2)))
        assert result.passed
        assert list(result.table["verdict"]) == ["ok"] * 3
        assert list(result.table.index) == ["lp", "a", "b"]
        row = result.table.loc["a"]
        assert row["mean"] == pytest.approx(draws().mean())
        assert row["sd"] == pytest.approx(draws().std(ddof=1))
        assert row["mcse"] == pytest.approx(1 / np.sqrt(4000), rel=0.1)
        assert row["ess_bulk"] == pytest.approx(4000, rel=0.15)
        assert result.verdict == "converged"
        assert result.summary.startswith("Converged, as far as 3 label-free quantities show: larg")
        assert result.summary in str(result)
        assert "<table" in result._repr_html_()

    def test_a_chain_elsewhere_fails(self):
        result = diagnostics.convergence(of({"a": draws(shift=(0, 0, 3, 0))}, lp=draws()))
        assert not result.passed
        assert result.table.loc["a", "rhat"] > 1.3
        assert "verdict" in result.table
        assert result.verdict == "different modes"
        assert result.table.loc["a", "verdict"].startswith("different modes (R-hat ")
        assert result.summary.startswith("Different modes: a: R-hat")
        assert "1 of 2 checked quantities fails" in result.summary
        assert "fit.text() says whether their topics differ" in result.summary
        assert "average" not in result.summary  # chains may have the same topics
        assert "Other starts (init_topics=)" in result.summary
        factors = of({"num_factors_used": np.round(draws(shift=(0, 0, 9, 0)))}, lp=draws())
        summary = diagnostics.convergence(factors, terms=FACTORS).summary
        assert "whether their factors differ" in summary
        assert "(init_factors=)" in summary

    def test_one_chain_too_short_for_halves(self, recwarn):
        result = diagnostics.convergence(of({"a": draws(size=6)[:1]}))
        assert result.table.loc["a", "verdict"] == "too few draws (6 per chain)"
        assert not recwarn.list

    def test_rhat_just_above_the_limit_does_not_read_as_the_limit(self):
        x = draws(shift=(0, 0, 0.25, 0), seed=3)
        value = diagnostics.convergence(of({"x": x})).table.loc["x", "rhat"]
        text = verdict(x, max_rhat=value - 1e-4)
        assert float(text.split()[-1].rstrip(")")) > value - 1e-4

    def test_a_drift_asks_for_warmup(self):
        x = draws() + np.linspace(0, 8, 1000)
        result = diagnostics.convergence(of({"a": draws()}, lp=x))
        assert result.verdict == "still rising"
        assert result.table.loc["lp", "verdict"].startswith("still rising (R-hat")
        assert result.summary.startswith("Still rising: lp still rises in all chains; 1 of 2 che")
        assert "raise num_warmup" in result.summary
        result = diagnostics.convergence(of({"a": draws()}, lp=-x))
        assert result.verdict == "still rising"
        assert result.table.loc["lp", "verdict"].startswith("still falling (R-hat")
        assert "lp still falls in all chains" in result.summary

    def test_a_number_of_topics_that_grows_asks_for_warmup(self):
        used = np.floor(np.linspace(7, 12, 200) + draws(size=200) / 4).astype(int)
        result = diagnostics.convergence(of({"num_topics_used": used}, lp=draws(size=200)))
        assert result.verdict == "still rising"
        assert "the number of topics in use still grows in all chains" in result.summary

    def test_chains_that_rise_from_different_heights_still_rise(self):
        """Before they have settled, chains can't be said to be in different modes."""
        x = draws(shift=(0, 9, 50, 70), size=60) + np.linspace(0, 12, 60)
        assert diagnostics.convergence(of({"lp": x})).verdict == "still rising"
        flat = draws(shift=(0, 9, 50, 70), size=60)
        assert diagnostics.convergence(of({"lp": flat})).verdict == "different modes"

    @pytest.mark.parametrize("size", [8, 20, 60])
    def test_each_kind_is_told_from_the_others(self, size):
        kinds = {
            "still rising": draws(size=size) + np.linspace(0, 25, size),
            "different modes": draws(size=size, shift=(0, 12, -9, 25)),
            "too few draws": draws(size=size),
        }
        found = {kind: diagnostics.convergence(of({"lp": x})).verdict for kind, x in kinds.items()}
        assert found == {kind: kind for kind in kinds}

    def test_agreeing_chains_of_few_draws_are_seldom_called_anything_else(self):
        """The rate of false alarms is 1% for each of two reasons; the bound adds four errors."""
        number = 150
        verdicts = [
            diagnostics.convergence(of({"lp": draws(size=20, rho=0.5, seed=seed)})).verdict
            for seed in range(number)
        ]
        assert set(verdicts) <= set(diagnostics.VERDICTS)
        wrong = np.mean([found != "too few draws" for found in verdicts])
        assert wrong <= 0.02 + 4 * np.sqrt(0.02 * 0.98 / number)

    def test_a_rise_that_is_not_certain_asks_for_warm_up_first(self):
        x = draws(rho=0.97, size=200, seed=1) + np.linspace(0, 4, 200)
        assert 0.01 < diagnostics.trend(x).p_value < diagnostics.HINT
        result = diagnostics.convergence(of({"lp": x}))
        assert result.verdict == "too few draws"
        assert "may still be rising: raise num_warmup first, then draw" in result.summary

    def test_an_rhat_just_above_its_limit_asks_for_draws(self):
        x = draws(rho=0.97, size=700, seed=4)
        result = diagnostics.convergence(of({"lp": x}))
        assert 1.01 < result.table.loc["lp", "rhat"] < 1.05
        assert result.verdict == "too few draws"
        assert result.summary.startswith("Too few draws: lp: R-hat 1.0")
        assert "neither rise nor fall, and none is clearly apart: draw about" in result.summary

    def test_chains_that_are_apart_by_little_are_not_in_different_modes(self):
        x = draws(shift=(0, 0, 0.35, 0), size=2000)
        result = diagnostics.convergence(of({"lp": x}))
        assert 1.01 < result.table.loc["lp", "rhat"] < 1.05
        assert result.verdict == "too few draws"

    def test_few_effective_draws_say_how_many_more(self):
        result = diagnostics.convergence(of({"x": draws(rho=0.95, size=2000)}))
        row = result.table.loc["x"]
        # AR(1): 8000 (1 - rho) / (1 + rho) = 205 of the 400 wanted
        assert row["ess_bulk"] == pytest.approx(205, rel=0.4)
        if row["rhat"] <= 1.01:
            assert row["verdict"].startswith("too few draws (")
            assert row["verdict"].endswith(" effective of 400)")
        assert not result.passed
        relaxed = diagnostics.convergence(
            of({"x": draws(rho=0.95, size=2000)}), max_rhat=1.2, min_ess_per_chain=500
        )
        assert relaxed.table.loc["x", "verdict"].endswith(" effective of 2000)")
        times = np.ceil(2000 / row[["ess_bulk", "ess_tail"]].min())
        assert f"draw about {times:.0f} times as many" in relaxed.summary
        assert relaxed.summary.startswith("Too few draws: x: ")
        assert relaxed.verdict == "too few draws"

    def test_constants_are_not_judged(self):
        constant = np.full((4, 1000), 7)
        result = diagnostics.convergence(of({"k": constant, "x": draws()}))
        row = result.table.loc["k"]
        assert row["verdict"] == "constant"
        assert (row["mean"], row["sd"], row["mcse"]) == (7, 0, 0)
        assert row[["rhat", "ess_bulk", "ess_tail"]].isna().all()
        assert "1 label-free quantities" in result.summary
        alone = diagnostics.convergence(of({"k": constant}))
        assert not alone.passed
        assert alone.verdict == "too few draws"
        assert alone.summary.startswith("Not judged: every quantity is constant")

    @pytest.mark.parametrize("kind", [int, float])
    def test_chains_stuck_at_different_values_fail(self, kind):
        x = np.tile(np.array([7, 7, 8, 7], kind)[:, None], (1, 100))
        assert verdict(x[:, :5]) == "too few draws (each chain stuck, at 7, 8)"
        result = diagnostics.convergence(of({"x": x}))
        assert result.verdict == "different modes"
        assert result.table.loc["x", "verdict"] == "different modes (each chain stuck, at 7, 8)"
        assert result.table.loc["x", "rhat"] == np.inf
        assert not result.passed

    def test_one_stuck_chain_fails(self):
        x = draws()
        x[2] = 0.1
        for limit in (1.01, 100.0):  # whatever R-hat says
            assert verdict(x, max_rhat=limit) == "different modes (chain 2 stuck at 0.1)"

    def test_a_count_that_rarely_moves_is_not_called_stuck(self):
        x = np.full((4, 1000), 8)
        x[0, 500] = x[1, 300] = x[3, 700] = 9
        assert verdict(x) == "ok"
        x[2] = 9
        assert verdict(x) == "different modes (chain 2 stuck at 9)"

    def test_a_count_of_two_values_has_a_finite_rhat(self):
        x = np.tile([0, 1], (4, 500))  # the median is 0.5, equally far from every draw
        table = diagnostics.convergence(of({"x": x})).table
        assert table.loc["x", "rhat"] < 1.01
        assert table.loc["x", "verdict"] == "ok"

    def test_chains_of_different_spread_fail(self):
        x = draws() * np.array([1, 1, 1, 5])[:, None]
        assert verdict(x).startswith("different modes (R-hat")

    def test_draws_that_are_not_finite_fail(self):
        x = draws()
        x[0, :3] = np.nan
        x[1, 0] = -np.inf
        result = diagnostics.convergence(of({"a": draws()}, lp=x))
        assert result.table.loc["lp", "verdict"] == "not finite (4 of 4000 draws)"
        assert result.summary.startswith("Not judged: lp: not finite")
        assert result.verdict == "too few draws"

    @pytest.mark.parametrize("size", [1, 3])
    def test_a_handful_of_draws_is_not_judged(self, size):
        result = diagnostics.convergence(of({"x": draws(size=size)}))
        assert result.table.loc["x", "verdict"] == f"too few draws ({size} per chain)"
        assert not result.passed

    def test_one_chain_never_passes_but_its_halves_are_compared(self):
        result = diagnostics.convergence(of({"x": draws(chains=1)}))
        assert result.table.loc["x", "verdict"] == "ok"
        assert result.table.loc["x", "rhat"] == pytest.approx(1, abs=0.01)
        assert not result.passed
        assert result.verdict == "too few draws"
        assert "num_chains=4" in result.summary
        moving = diagnostics.convergence(of({"x": draws(chains=1) + np.linspace(0, 9, 1000)}))
        assert "x still rises in the chain" in moving.summary

    def test_relabelling_the_topics_changes_nothing(self):
        rng = np.random.default_rng(0)
        alpha = rng.gamma(2.0, size=(4, 200, 5))
        shuffled = rng.permuted(alpha, axis=-1)
        tables = [
            diagnostics.convergence(of({"alpha": x}, {"alpha": ["topic"]})).table
            for x in (alpha, shuffled)
        ]
        pd.testing.assert_frame_equal(*tables)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_rhat": 1.0}, "max_rhat must be a number above 1, got 1.0"),
            (
                {"min_ess_per_chain": -1.0},
                "min_ess_per_chain must be a finite number of at least 0",
            ),
            ({"var_names": []}, "var_names must have at least one entry"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            diagnostics.convergence(of({"x": draws(size=10)}), **options)
