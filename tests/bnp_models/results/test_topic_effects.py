"""Effects of covariates against simulations whose truth is known; shares by period."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import bnp_models as bnp
from bnp_models.data.design import make_design
from bnp_models.posterior.alignment import align
from bnp_models.results import topic_effects
from bnp_models.results.document_tables import document_theta
from bnp_models.results.topic_effects import effects, topics_over_time
from bnp_models.results.topic_tables import topic_prevalence_by_group


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def simulated(states_of, seed, slope, num_docs=100, length=60, num_states=6):
    """Return a corpus, states and a covariate on which the share of the first topic depends.

    The share of topic 0 has the mean 0.4 + slope x. In every state the topics of a document are
    drawn anew, given its true shares: the posterior that a sampler would have if it knew the words.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.5, 0.5, num_docs)
    mean = np.stack([0.4 + slope * x, 0.35 - slope * x / 2, 0.25 - slope * x / 2], axis=1)
    theta = np.array([rng.dirichlet(12 * row) for row in mean])
    z = np.array([[rng.choice(3, length, p=row) for row in theta]]).reshape(1, 1, -1)
    corpus = bnp.Corpus.from_ids((z + 0).reshape(num_docs, length).tolist(), num_words=3)
    z = np.tile(z, (1, num_states, 1))
    for row in z[0]:  # a few tokens change their topics between states
        some = rng.random(row.size) < 0.02
        row[some] = rng.permutation(row[some])
    return states_of(z.astype(np.uint8), corpus), corpus, x


class TestEffects:
    @pytest.mark.slow
    @pytest.mark.parametrize("slope", [0.0, 0.4])
    def test_intervals_cover_the_truth(self, states_of, slope, fit_of):
        """Of 60 intervals of 90%, on average 54 cover; fewer than 45 have probability 2e-4.

        So have more than 15 that exclude the truth. Draws of the shares make intervals wider.
        """
        count, covered, excludes = 60, 0, 0
        for seed in range(count):
            states, corpus, x = simulated(states_of, seed, slope)
            table = effects(fit_of(states, corpus), {"x": x}, num_draws=3, seed=seed)
            alignment = align(states)
            first = alignment.number[0, 0]
            row = table[(table["topic"] == first) & (table["term"] == "x")].iloc[0]
            covered += row["lower"] < slope < row["upper"]
            excludes += not row["lower"] < 0 < row["upper"]
        assert covered >= 45
        if slope == 0:
            assert excludes <= 15
        else:
            assert excludes == count  # the effect is seven standard errors

    def test_one_state_against_regressions(self, states_of, fit_of):
        """The mixture over many draws has the mean and the variance of composed draws."""
        states, corpus, x = simulated(states_of, 0, 0.3, num_states=1)
        alignment = align(states)
        table = effects(fit_of(states, corpus, alignment), {"x": x}, num_draws=400, interval=0.8)
        rng = np.random.default_rng(1)
        ((share, total),) = document_theta(states, corpus, alignment)
        weighed = share * total[:, None]
        design = np.column_stack([np.ones_like(x), x - x.mean()])
        inverse = np.linalg.inv(design.T @ design)
        free = 1 - np.einsum("dp,pq,dq->d", design, inverse, design)[:, None]
        draws = []
        for _ in range(400):
            theta = np.array([rng.dirichlet(np.maximum(row, 1e-9)) for row in weighed])
            mean = inverse @ design.T @ theta
            left = ((theta - design @ mean) / free) ** 2  # HC3
            sd = np.sqrt(((inverse @ design.T) ** 2) @ left)
            draws.append(mean + sd * rng.standard_normal((20, *sd.shape)))
        draws = np.concatenate(draws)[:, :, np.argsort(alignment.number[0, :3])]
        shape = (3, 2)
        error = draws.std(axis=0).T / np.sqrt(400)  # of either mean
        found = {name: table[name].to_numpy().reshape(shape) for name in table.columns[3:]}
        assert (abs(found["effect"] - draws.mean(axis=0).T) < 6 * error).all()
        assert (abs(found["lower"] - np.quantile(draws, 0.1, axis=0).T) < 8 * error).all()
        assert (abs(found["upper"] - np.quantile(draws, 0.9, axis=0).T) < 8 * error).all()
        np.testing.assert_allclose(found["probability"], (draws > 0).mean(axis=0).T, atol=0.05)
        rest = 0.3 / (60 + 4 * 0.3)  # the share of the fourth slot, which has no tokens
        np.testing.assert_allclose(found["effect"][:, 0].sum(), 1 - rest, atol=1e-3)
        np.testing.assert_allclose(found["effect"][:, 1].sum(), 0, atol=1e-3)

    def test_levels_have_the_differences_of_groups(self, states, corpus, numbered, plain, fit_of):
        """Without other covariates an indicator's effect is a difference of means."""
        part = np.array(["b", "c", "a"] * 8)
        table = effects(fit_of(states, corpus, numbered), {"part": part}, num_draws=50)
        assert table["term"][:3].tolist() == ["intercept", "part[b]", "part[c]"]
        shares = table.attrs.pop("prevalence")
        np.testing.assert_allclose(shares, numbered.shares().mean(axis=0))
        left_out = {"empty": 1, "missing": 0}
        expected = {"reference": {"part": "a"}, "centre": {}, "left_out": left_out, "chains": [0]}
        assert table.attrs == expected
        kept = plain["length"][0, :, 0] > 0  # document 5 is empty
        theta = plain["theta"].mean(axis=0)
        means = {level: theta[kept & (part == level)].mean(axis=0) for level in "abc"}
        effect = table["effect"].to_numpy().reshape(3, 3)
        np.testing.assert_allclose(effect[:, 0], means["a"], atol=0.02)
        np.testing.assert_allclose(effect[:, 1], means["b"] - means["a"], atol=0.02)
        np.testing.assert_allclose(effect[:, 2], means["c"] - means["a"], atol=0.02)

    def test_kinds_of_covariates_and_seeds(self, states, corpus, fit_of):
        rows = corpus.num_docs
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "year": rng.integers(1990, 2020, rows),
                "late": rng.random(rows) < 0.5,
                "size": pd.Categorical(
                    rng.choice(["big", "small"], rows), categories=["small", "none", "big"]
                ),
            },
            index=pd.Index(range(7, rows + 7)),
        )
        table = effects(fit_of(states, corpus), frame, topics=[2, 0, 2], num_draws=2, seed=3)
        assert table["topic"].unique().tolist() == [2, 0]
        assert table["term"][:4].tolist() == ["intercept", "year", "late[True]", "size[big]"]
        assert table.attrs["reference"] == {"late": False, "size": "small"}
        kept = np.arange(rows) != 5
        assert table.attrs["centre"] == {"year": pytest.approx(frame["year"][kept].mean())}
        again = effects(fit_of(states, corpus), dict(frame), topics=[2, 0], num_draws=2, seed=3)
        pd.testing.assert_frame_equal(table, again)
        other = effects(fit_of(states, corpus), frame, topics=[2, 0], num_draws=2, seed=4)
        assert not other.equals(table)

    def test_weights_of_states(self, states, corpus, numbered, fit_of):
        """With all weight on some states, the others do not count."""
        x = np.random.default_rng(0).normal(size=corpus.num_docs)
        weight = np.where(np.arange(len(states.z)) == 0, 1.0, 0.0)
        found = effects(
            fit_of(states._replace(weight=weight), corpus, numbered), {"x": x}, num_draws=200
        )
        alone = states._replace(
            mixtures=[next(iter(states.mixtures))], z=states.z[:1], chain=states.chain[:1],
            draw=states.draw[:1], lp=states.lp[:1],
        )  # fmt: skip
        one = numbered._replace(
            reference=0, number=numbered.number[:1], similarity=numbered.similarity[:1],
            sizes=numbered.sizes[:1], chain=numbered.chain[:1], draw=numbered.draw[:1],
        )  # fmt: skip
        expected = effects(fit_of(alone, corpus, one), {"x": x}, num_draws=200)
        width = (expected["upper"] - expected["lower"]).to_numpy()
        for name in ("effect", "lower", "upper"):
            assert (abs(found[name] - expected[name]) < 0.1 * width).all()

    @pytest.mark.parametrize(
        ("covariates", "message"),
        [
            ({"x": np.arange(3.0)}, "one row for each of the 24 documents, got 3"),
            ({"x": 1.0}, "covariates must be columns by name, each with one entry per"),
            ({"intercept": np.arange(24.0)}, "'intercept' is that of two terms"),
            (
                pd.DataFrame({1: np.arange(24.0), "1": np.arange(24.0) ** 2}),
                "'1' is that of two terms",
            ),
            ({"x": np.arange(24) * 1j}, r"covariates\['x'\] holds 23j; give numbers"),
            ({}, "covariates must have one row for each|columns of different names"),
            ({"x": [np.nan] * 24}, r"have values for some of the documents, \['x'\] are missing"),
            ({"x": [None] * 24, "y": range(24)}, r"\['x', 'y'\] are missing in all 23 that are"),
            ({"x": [np.inf, *range(23)]}, r"covariates\['x'\] of document 0 is inf"),
            ({"x": np.ones(24)}, "must differ between documents, 'x' is 1 in all"),
            ({"x": ["a"] * 24}, r"must differ between documents, 'x' is \['a'\] in all"),
            ({"x": [str(d) for d in range(24)]}, "23 terms, the intercept included, for 23"),
            ({"x": [1, *"abc"] * 6}, r"covariates\['x'\] holds 1 and 'c'; give"),
            ({"x": ["2020-02-30"] * 24}, "must differ between documents, 'x' is .*2020-02-30"),
            (
                {"x": np.arange(24.0), "y": 2010 + 3 * np.arange(24.0)},
                r"'y' is a combination of \['intercept', 'x'\]: leave it out",
            ),
            (
                {"x": list("aabb") * 6, "y": [False, False, True, True] * 6},
                r"'y\[True\]' is a combination of \['intercept', 'x\[b\]'\]",
            ),
        ],
    )
    def test_bad_covariates(self, states, corpus, covariates, message, fit_of):
        with pytest.raises(ValueError, match=message):
            effects(fit_of(states, corpus), covariates)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"topics": [3]}, "topics must be a list of numbers from 0 to 2"),
            ({"interval": 1.0}, "interval must be a finite number above 0 and below 1"),
            ({"num_draws": 0}, "num_draws must be an integer of at least 1, got 0"),
            ({"seed": -1}, "seed must be an integer of at least 0"),
        ],
    )
    def test_bad_options(self, states, corpus, options, message, fit_of):
        with pytest.raises(ValueError, match=message):
            effects(fit_of(states, corpus), {"x": np.arange(24.0)}, **options)

    def test_a_topic_of_some_states_only(self, states_of, z, corpus, fit_of):
        """States without the topic count as no effect, with a share of zero."""
        merged = z.copy()
        merged[1:][merged[1:] == 2] = 3
        states = states_of(merged, corpus)
        alignment = align(states)
        lost = int(np.isnan(alignment.similarity).any(axis=0).argmax())
        x = np.random.default_rng(0).normal(size=corpus.num_docs)
        table = effects(fit_of(states, corpus, alignment), {"x": x}, topics=[lost])
        assert np.isfinite(table[["effect", "lower", "upper", "probability"]].to_numpy()).all()

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_no_effect_is_no_clear_one(self, states_of, z, corpus, fit_of, sign):
        """An interval that ends where states have no effect ends at zero, and encloses it."""
        merged = z.copy()
        merged[1:][merged[1:] == 2] = 3
        fit = fit_of(states_of(merged, corpus), corpus)
        shares = fit.document_topics()
        lost = int(np.isnan(fit.alignment.similarity).any(axis=0).argmax())
        x = sign * shares[lost].to_numpy()
        table = fit.effects({"x": x})
        row = table[(table["topic"] == lost) & (table["term"] == "x")].iloc[0]
        assert sign * row["effect"] > 0.1
        assert row["lower" if sign > 0 else "upper"] == 0
        assert table["probability"].between(0, 1).all()
        _, dots = fit.plot_effects(table, topics=[lost]).collections
        assert to_hex(dots.get_facecolors()[0]) == to_hex("0.55")

    def test_probabilities_are_at_most_one(self, states, corpus, plain, fit_of):
        """Weights of the states may sum to a little more than one."""
        fit, x = fit_of(states, corpus), plain["theta"].mean(axis=0)
        for num_draws in range(1, 8):
            table = effects(fit, {"x": -x[:, 0]}, topics=[0, 1], num_draws=num_draws)
            assert table["probability"].between(0, 1).all()


DAYS = pd.date_range("2020-01-01", periods=24, freq="30D")


class TestFormulas:
    """Designs against matrices that are written out here."""

    @pytest.fixture
    def columns(self):
        rng = np.random.default_rng(0)
        return {
            "x": rng.normal(size=24),
            "part": np.array(["b", "c", "a"] * 8),
            "log length": rng.normal(size=24),
            "day": DAYS,
        }

    def matrix(self, formula, columns, corpus):
        design = make_design(formula, columns, corpus)
        return design, dict(zip(design.terms, design.matrix.T, strict=True))

    def test_terms(self, columns, corpus):
        formula = "~ part * x + np.log(x ** 2) + `log length`"
        design, found = self.matrix(formula, columns, corpus)
        kept = np.arange(24) != 5
        x, part = columns["x"][kept], columns["part"][kept]
        assert list(found) == [
            *("intercept", "part[b]", "part[c]", "x", "np.log(x ** 2)", "log length"),
            *("part[b]:x", "part[c]:x"),
        ]
        np.testing.assert_array_equal(found["part[b]"], part == "b")
        np.testing.assert_allclose(found["x"], x - x.mean())
        np.testing.assert_allclose(found["part[c]:x"], (part == "c") * x)
        log = np.log(x**2)
        np.testing.assert_allclose(found["np.log(x ** 2)"], log - log.mean())
        length = columns["log length"][kept]
        np.testing.assert_allclose(found["log length"], length - length.mean())
        assert design.reference == {"part": "a"}
        assert design.centre == pytest.approx({"x": x.mean(), "log length": length.mean()})
        np.testing.assert_array_equal(design.kept, kept)

    def test_a_table_is_the_sum_of_its_columns(self, columns, states, corpus, fit_of):
        fit = fit_of(states, corpus)
        formula = "~ x + part + `log length` + day"
        expected = fit.effects(formula, columns, num_draws=1)
        found = fit.effects(columns, num_draws=1)
        assert sorted(found["term"].unique()) == sorted(expected["term"].unique())
        index = ["topic", "term"]
        pd.testing.assert_frame_equal(
            found.set_index(index).sort_index(), expected.set_index(index).sort_index()
        )

    @pytest.mark.parametrize(
        "day",
        [DAYS, DAYS.tz_localize("UTC"), DAYS.strftime("%Y-%m-%d"), [d.date() for d in DAYS]],
        ids=["datetime64", "with a zone", "text", "date"],
    )
    def test_dates_are_years_since_the_first(self, corpus, day):
        for column in (pd.Series(day), pd.Series(day).astype("category")):
            design, found = self.matrix("~ day", {"day": column}, corpus)
            years = np.delete(np.arange(24), 5) * 30 / 365.25
            np.testing.assert_allclose(found["day"], years - years.mean())
            mean = DAYS[0] + pd.Timedelta(days=years.mean() * 365.25)
            assert abs(design.centre["day"] - mean) < pd.Timedelta(seconds=1)

    def test_references(self, columns, corpus):
        formula = "~ C(part, contr.treatment('c'))"
        design, found = self.matrix(formula, columns, corpus)
        name = "C(part, contr.treatment('c'))"
        assert list(found) == ["intercept", f"{name}[a]", f"{name}[b]"]
        assert design.reference == {name: "c"}

    def test_without_an_intercept(self, columns, corpus):
        design, found = self.matrix("~ 0 + part + x", columns, corpus)
        assert list(found) == ["part[a]", "part[b]", "part[c]", "x"]
        np.testing.assert_array_equal(found["x"], np.delete(columns["x"], 5))  # not centred
        assert design.centre == design.reference == {}

    def test_missing_values_of_used_columns(self, columns, states, corpus, fit_of):
        """Documents without a value of a column that the formula does not use stay."""
        columns["x"][[0, 7, 5]] = np.nan  # document 5 is empty
        fit = fit_of(states, corpus)
        table = fit.effects("~ x", columns, num_draws=2)
        assert table.attrs["left_out"] == {"empty": 1, "missing": 2}
        assert fit.effects("~ day", columns, num_draws=1).attrs["left_out"]["missing"] == 0
        columns["part"] = [None, "a", *["a", "b"] * 11]
        design, found = self.matrix("~ x + part", columns, corpus)
        assert np.flatnonzero(~design.kept).tolist() == [0, 5, 7]
        assert columns["x"][1] == pytest.approx(found["x"][0] + design.centre["x"])

    def test_levels_of_documents_that_are_left_out(self, columns, corpus):
        columns["x"][columns["part"] == "a"] = np.nan
        design, found = self.matrix("~ x + part", columns, corpus)
        assert sorted(found) == ["intercept", "part[c]", "x"]
        assert design.reference == {"part": "b"}

    @pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 11, 12, 23])
    def test_splines(self, corpus, count):
        """They have full rank where values are few, and reproduce cubic curves."""
        values = np.sort(np.random.default_rng(count).gamma(1.0, size=count))
        x = np.resize(values, 24)
        design, found = self.matrix("~ s(x)", {"x": x}, corpus)
        df = min(10, len(np.unique(np.delete(x, 5))) - 1)
        assert len(found) == df + 1
        curve = np.delete(x, 5) ** min(3, df)
        curve = curve - 0.5 * np.delete(x, 5)
        left = np.linalg.lstsq(design.matrix, curve, rcond=None)[1]
        assert np.sqrt(left.sum()) < 1e-8 * np.linalg.norm(curve)
        few = self.matrix("~ s(x, df=1)", {"x": x}, corpus)[1]
        assert list(few) == ["intercept", "s(x, df=1)[1]"]

    def test_rows_of_other_values(self, columns, corpus):
        """Transforms keep what they learned from the documents."""
        design = make_design("~ part * s(x, df=5) + center(np.exp(x))", columns, corpus)
        values = pd.DataFrame({name: c.values for name, c in design.columns.items()})
        np.testing.assert_allclose(design.rows(values), design.matrix, atol=1e-12)
        np.testing.assert_allclose(design.rows(values[3:6]), design.matrix[3:6], atol=1e-12)

    def test_names_of_any_kind(self, corpus):
        columns = {"1": np.arange(24.0), "a`b": np.arange(24) % 5, "c:d + e": list("ab") * 12}
        _, found = self.matrix(None, columns, corpus)
        assert list(found) == ["intercept", "1", "a`b", "c:d + e[b]"]
        _, found = self.matrix("~ `1` : `c:d + e`", columns, corpus)
        assert list(found) == ["intercept", "1:c:d + e[a]", "1:c:d + e[b]"]

    def test_nothing_else_is_seen(self, columns, corpus):
        outside = np.arange(24.0)  # noqa: F841
        with pytest.raises(ValueError, match=r"formula must be of the columns .* 'outside'"):
            make_design("~ x + np.log(1 + outside)", columns, corpus)

    @pytest.mark.parametrize(
        ("formula", "message"),
        [
            ("~ parts", "it has 'parts': did you mean 'part'?"),
            ("~ `log lenght`", "it has 'log lenght': did you mean 'log length'?"),
            ("~ centre(x)", "it has 'centre': did you mean 'center'?"),
            ("x ~ part", "nothing to the left of ~, where the topic shares are, got 'x ~ part'"),
            ("~ x | part", "a single sum of terms, without |"),
            ("~ x +", "formula must be one such as .*, got '~ x .': Operator `.` has"),
            ("~ np.log(x", "formula must be one such as"),
            ("~ x part", "formula must be one such as"),
            ("~ x + s(x, df=`", "formula must be one such as"),
            ("~ np.log(x, 'a'}", "formula must be one such as"),
            ("", "formula must be a string that is not empty"),
            ("~ 0", "formula must have a term"),
            ("~ np.log(x)", r"finite numbers, 'np.log\(x\)' is nan in \d+ rows"),
            ("~ s(x, df=99)", "can't be computed .*df must be an integer of at most 22, got 99"),
            ("~ s(part)", "can't be computed from the covariates"),
            ("~ x + center(x)", r"'center\(x\)' is a combination of \['intercept', 'x'\]"),
            ("~ part + C(part)", r"'C\(part\)\[b\]' is a combination of"),
            ("~ x.nonsense()", "can't be computed from the covariates, got '~ x.nonsense"),
        ],
    )
    def test_bad_formulas(self, columns, corpus, formula, message):
        with pytest.raises(ValueError, match=message):
            make_design(formula, columns, corpus)

    def test_covariates_of_the_corpus(self, states, corpus, columns, fit_of):
        fit = fit_of(states, corpus)
        with pytest.raises(ValueError, match="covariates must be given, for the corpus has none"):
            fit.effects("~ x")
        with pytest.raises(ValueError, match="covariates must be left out where"):
            fit.effects({"x": columns["x"]}, columns)
        own = bnp.Corpus.from_ids(
            [corpus.document(d) for d in range(24)],
            vocabulary=corpus.vocabulary,
            covariates=columns,
        )
        fit_with = fit_of(states, own)
        expected = fit.effects("~ x + part", columns, num_draws=1)
        pd.testing.assert_frame_equal(fit_with.effects("~ x + part", num_draws=1), expected)
        assert "day" in set(fit_with.effects(num_draws=1)["term"])


class TestExpectedShares:
    def test_levels(self, states, corpus, numbered, plain, fit_of):
        """With a factor alone they are the means of its groups."""
        part = np.array(["b", "c", "a"] * 8)
        fit = fit_of(states, corpus, numbered).with_labels({1: "politics"})
        table = fit.expected_shares("~ part", {"part": part}, by="part", num_draws=50)
        assert table["topic"].tolist() == np.repeat([0, 1, 2], 3).tolist()
        assert table["part"].tolist() == list("abc") * 3
        assert table["label"].tolist()[3] == "politics"
        assert len(table["label"][0].split(", ")) == 3
        kept = plain["length"][0, :, 0] > 0
        theta = plain["theta"].mean(axis=0)
        means = np.stack([theta[kept & (part == level)].mean(axis=0) for level in "abc"])
        share = table["share"].to_numpy().reshape(3, 3)
        np.testing.assert_allclose(share, means.T, atol=0.02)
        difference = table["difference"].to_numpy().reshape(3, 3)
        assert np.isnan(difference[:, 0]).all()
        np.testing.assert_allclose(difference[:, 1:], share[:, 1:] - share[:, :1], atol=1e-9)
        assert table["probability"][[1, 2]].between(0, 1).all()
        assert (table["lower"] < table["share"]).all()
        assert (table["share"] < table["upper"]).all()
        # a difference of levels is the coefficient of the level, with its interval
        effects = fit.effects("~ part", {"part": part}, num_draws=50)
        effects = effects[effects["term"] == "part[c]"]
        names = ["difference", "difference_lower", "difference_upper", "probability"]
        found = table[table["part"] == "c"][names].to_numpy()
        expected = effects[["effect", "lower", "upper", "probability"]].to_numpy()
        np.testing.assert_allclose(found, expected, atol=1e-9)

    def test_other_covariates_are_averaged_over_the_documents(self, states, corpus, fit_of):
        rng = np.random.default_rng(0)
        columns = {"x": rng.normal(size=24), "part": np.array(["b", "a", "a"] * 8)}
        fit, formula = fit_of(states, corpus), "~ part * x"
        table = fit.expected_shares(formula, columns, by="x", at={"x": [0.0, 1.0]}, topics=[1])
        effect = fit.effects(formula, columns, topics=[1]).set_index("term")["effect"]
        share_b = (np.delete(columns["part"], 5) == "b").mean()
        expected = effect["x"] + share_b * effect["part[b]:x"]
        assert table["difference"][1] == pytest.approx(expected, rel=1e-6)
        table = fit.expected_shares(
            formula, columns, by="x", at={"x": [0.0, 1.0], "part": "b"}, topics=[1]
        )
        assert table["difference"][1] == pytest.approx(effect["x"] + effect["part[b]:x"], rel=1e-6)
        table = fit.expected_shares(formula, columns, by=["x", "part"], topics=[1], num_points=3)
        assert table[["x", "part"]].to_numpy()[:, 1].tolist() == ["a", "b"] * 3
        x = np.delete(columns["x"], 5)
        middle = (x.min() + x.max()) / 2
        np.testing.assert_allclose(table["x"][::2].astype(float), [x.min(), middle, x.max()])
        expected = effect["part[b]"] + effect["part[b]:x"] * middle
        assert table["difference"][3] == pytest.approx(expected, rel=1e-6)

    def test_curves_of_levels_end_where_their_documents_do(self, states, corpus, fit_of):
        columns = {"x": np.arange(24.0), "part": np.repeat(["a", "b"], 12)}
        options = {"by": ["x", "part"], "topics": [0], "num_points": 24}
        table = fit_of(states, corpus).expected_shares("~ x * part", columns, **options)
        assert table["x"][table["part"] == "a"].tolist() == [0, 1, 2, 3, 4, *range(6, 12)]
        assert table["x"][table["part"] == "b"].tolist() == list(range(12, 24))
        assert table["difference"].isna().all()  # there is no x with documents of both
        at = {"x": [0, 23]}
        table = fit_of(states, corpus).expected_shares("~ x * part", columns, at=at, **options)
        assert table["part"].tolist() == ["a", "b"] * 2  # as asked

    @pytest.mark.parametrize(
        ("x", "second", "values"),
        [
            (2000 + np.arange(24) // 4, False, range(2000, 2006)),
            (2000 + np.arange(24) // 4, True, [2001, 2003, 2004]),
            (np.arange(24) % 3, True, [0, 1, 2]),
            (np.arange(24) > 3, False, [False, True]),
            (DAYS, False, pd.date_range(DAYS[0], DAYS[-1], periods=50)),
        ],
    )
    def test_points(self, states, corpus, x, second, values, fit_of):
        rng = np.random.default_rng(0)
        columns = {"x": x, "z": rng.normal(size=24) > 0}
        by = ["z", "x"] if second else "x"
        table = fit_of(states, corpus).expected_shares(columns, by=by, topics=[0], num_draws=1)
        found = table["x"].unique().tolist()
        if isinstance(values, pd.DatetimeIndex):
            assert pd.api.types.is_datetime64_dtype(table["x"])
            assert max(abs(pd.DatetimeIndex(found) - values)) < pd.Timedelta(seconds=1)
        else:
            assert found == list(values)

    def test_documents_that_are_alike_count_all(self, states, corpus, fit_of):
        """The mean is that over the documents, not over their different values."""
        z = np.array([0] * 20 + [4] * 4)
        x = np.arange(24.0) % 7
        fit = fit_of(states, corpus)
        table = fit.expected_shares("~ x * z", {"x": x, "z": z}, by="x", topics=[0], num_draws=1)
        effect = fit.effects("~ x * z", {"x": x, "z": z}, topics=[0], num_draws=1)
        effect = effect.set_index("term")["effect"]
        slope = effect["x"] + np.delete(z, 5).mean() * effect["x:z"]
        assert table["difference"].iloc[-1] == pytest.approx(6 * slope, rel=1e-6)

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            (
                {"by": "y"},
                r"names of columns in the formula, \['x', 'part'\], got 'y'",
            ),
            ({"by": ["x", "x"]}, "by must be one column or two different ones"),
            ({"by": []}, "by must have at least one entry"),
            ({"by": "x", "at": {"pary": "a"}}, "at must have .* got 'pary': did you mean 'part'"),
            (
                {"by": "x", "at": {"part": "z"}},
                r"at\['part'\] must be among the levels \['a'",
            ),
            ({"by": "x", "at": {"x": ["b"]}}, r"at\['x'\] has 'b', which is no date"),
            ({"by": "x", "at": {"x": ["2020-01-01"]}}, r"at\['x'\] must be numbers, as 'x' has"),
            ({"by": "x", "at": {"x": []}}, r"at\['x'\] must have at least one entry"),
            (
                {"by": "x", "at": {"x": [99.0]}},
                r"can't be computed .* s\(\) is a curve from 0 to 23",
            ),
            ({"by": "x", "num_points": 1}, "num_points must be an integer of at least 2, got 1"),
        ],
    )
    def test_bad_arguments(self, states, corpus, how, message, fit_of):
        columns = {"x": np.arange(24.0), "part": list("ab") * 12, "y": np.arange(24.0)}
        with pytest.raises(ValueError, match=message):
            fit_of(states, corpus).expected_shares("~ s(x, df=3) + part", columns, **how)

    def test_names_of_columns_of_the_table(self, states, corpus, fit_of):
        with pytest.raises(ValueError, match=r"by must be columns of other names than .*'share'"):
            fit_of(states, corpus).expected_shares({"share": np.arange(24.0)}, by="share")

    def test_a_document_with_a_level_of_its_own(self, states, corpus, fit_of):
        """Its residual is zero, and does not make its level certain."""
        part = ["b", *["a"] * 23]
        table = fit_of(states, corpus).effects({"part": part}, num_draws=3)
        width = (table["upper"] - table["lower"])[table["term"] == "part[b]"]
        assert (width > 0.2).all()


def test_quantiles_of_mixtures():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(5, 2, 3)), rng.gamma(2.0, size=(5, 2, 3))
    weight = rng.dirichlet(np.ones(5))
    sd[0], mean[0] = 0, 0.1  # a point mass
    for tail in (0.05, 0.5, 0.95):
        found = topic_effects._mixture_quantile(mean, sd, weight, tail)
        below = np.tensordot(weight, topic_effects._normal_cdf(found - 1e-6, mean, sd), 1)
        above = np.tensordot(weight, topic_effects._normal_cdf(found + 1e-6, mean, sd), 1)
        assert (below <= tail + 1e-9).all()
        assert (above >= tail - 1e-9).all()


class TestOverTime:
    def test_against_groups(self, states, corpus, numbered, fit_of):
        time = 0.5 + 2000 + np.arange(corpus.num_docs) // 2.0  # 2000.5 to 2011.5
        table = topics_over_time(fit_of(states, corpus, numbered), time, bins=4)
        assert table.columns.tolist() == [
            *("bin", "start", "end", "middle", "topic", "label"),
            *("prevalence", "lower", "upper", "num_tokens"),
        ]
        assert table["bin"].tolist() == np.repeat(np.arange(4), 3).tolist()
        np.testing.assert_allclose(table["start"][::3], [2000.5, 2003.25, 2006, 2008.75])
        np.testing.assert_allclose(table["end"][::3], [2003.25, 2006, 2008.75, 2011.5])
        np.testing.assert_allclose(table["middle"], (table["start"] + table["end"]) / 2)
        by = np.digitize(time, [2003.25, 2006, 2008.75])
        expected = topic_prevalence_by_group(fit_of(states, corpus, numbered), by=by)
        for name in ("topic", "prevalence", "lower", "upper", "num_tokens"):
            np.testing.assert_array_equal(table[name], expected[name])
        np.testing.assert_allclose(table.groupby("bin")["prevalence"].sum(), 1)

    @pytest.mark.parametrize(
        ("bins", "periods"),
        [
            (None, [(year, year) for year in range(2006, 2018)]),
            (5, [(2006, 2008), (2009, 2011), (2012, 2014), (2015, 2017)]),  # of three years each
            (3, [(2006, 2009), (2010, 2013), (2014, 2017)]),
            (100, [(year, year) for year in range(2006, 2018)]),
            ([2006, 2010, 2017], [(2006, 2009), (2010, 2016), (2017, 2017)]),
            ([2005, 2010, 2020], [(2005, 2009), (2010, 2019)]),
        ],
    )
    def test_whole_numbers_are_years(self, states, corpus, numbered, fit_of, bins, periods):
        year = 2006 + np.arange(corpus.num_docs) // 2  # 2006 to 2017
        table = topics_over_time(fit_of(states, corpus, numbered), year, bins=bins)
        each = table[table["topic"] == 0]
        assert list(zip(each["start"], each["end"], strict=True)) == periods
        assert each["middle"].tolist() == [(a + b) / 2 for a, b in periods]
        length = np.asarray(corpus.doc_length)
        tokens = [length[(year >= a) & (year <= b)].sum() for a, b in periods]
        assert each["num_tokens"].tolist() == tokens
        assert sum(tokens) == corpus.num_tokens

    def test_years_far_apart(self, states, corpus, numbered, fit_of):
        year = 1500 + 20 * np.arange(corpus.num_docs)  # 1500 to 1960
        table = topics_over_time(fit_of(states, corpus, numbered), year)
        each = table[table["topic"] == 0]
        assert each["start"].tolist() == list(range(1500, 1961, 47))
        assert each["end"].tolist()[-1] == 1960
        assert each["num_tokens"].sum() == corpus.num_tokens

    @pytest.mark.parametrize(
        ("bins", "starts"),
        [
            ("week", pd.date_range("2020-11-30", "2021-01-25", freq="7D").astype(str).tolist()),
            ("month", ["2020-11-01", "2020-12-01", "2021-01-01"]),
            ("quarter", ["2020-10-01", "2021-01-01"]),
            ("year", ["2020-01-01", "2021-01-01"]),
        ],
    )
    def test_periods_of_the_calendar(self, states, corpus, numbered, fit_of, bins, starts):
        days = pd.date_range("2020-11-30", "2021-01-31", periods=corpus.num_docs)
        table = topics_over_time(fit_of(states, corpus, numbered), days, bins=bins)
        each = table[table["topic"] == 0]
        assert each["start"].tolist() == [pd.Timestamp(day) for day in starts]
        assert each["end"].tolist()[:-1] == each["start"].tolist()[1:]
        assert each["num_tokens"].sum() == corpus.num_tokens

    def test_documents_without_a_time_are_left_out(self, states, corpus, numbered, fit_of):
        fit = fit_of(states, corpus, numbered)
        year = 2000.0 + np.arange(24) % 2
        days = pd.Series(np.where(year == 2000, "2020-01-01", "2021-01-01")).astype(
            "datetime64[us]"
        )
        gone = np.arange(24) < 5
        expected = topics_over_time(fit, np.where(gone, 1990, year), bins=[2000, 2001])
        for when in (np.where(gone, np.nan, year), days.mask(pd.Series(gone))):
            table = topics_over_time(fit, when, bins=2)
            for name in ("prevalence", "num_tokens"):
                np.testing.assert_array_equal(table[name], expected[name])
            assert table.attrs["left_out"] == {"missing": 5}
        assert expected.attrs["left_out"] == {"missing": 0}

    def test_bounds_of_ones_own(self, states, corpus, numbered, fit_of):
        """Documents outside are left out; the last period includes its end; one has no tokens."""
        year = np.arange(corpus.num_docs)
        bins = [2, 5, 5.5, 6.5, 9]
        table = topics_over_time(fit_of(states, corpus, numbered), year, bins=bins)
        length = np.asarray(corpus.doc_length)
        expected = [length[2:5].sum(), 0, length[6], length[7:10].sum()]
        assert length[5] == 0
        assert table["num_tokens"][::3].tolist() == expected
        assert np.isnan(table["prevalence"].to_numpy()[3:6]).all()

    def test_dates(self, states, corpus, numbered, fit_of):
        days = pd.date_range("2021-01-01", periods=corpus.num_docs)
        table = topics_over_time(fit_of(states, corpus, numbered), days, bins=2)
        assert table["start"].tolist()[0] == pd.Timestamp("2021-01-01")
        assert table["middle"].tolist()[0] == pd.Timestamp("2021-01-06 18:00")
        assert table["end"].tolist()[5] == days[-1]
        for same in (days.to_numpy(), list(days), [str(d.date()) for d in days], pd.Series(days)):
            found = topics_over_time(fit_of(states, corpus, numbered), same, bins=2)
            np.testing.assert_array_equal(found["prevalence"], table["prevalence"])
        bins = ["2020-12-01", "2021-01-10", "2021-03-01"]
        found = topics_over_time(fit_of(states, corpus, numbered), days, bins=bins)
        assert found["num_tokens"].sum() == 3 * corpus.num_tokens

    @pytest.mark.parametrize(
        ("time", "options", "message"),
        [
            (np.arange(3), {}, "time must have one entry for each of the 24 documents, got 3"),
            (np.ones(24), {}, "time must have two values or more, got only 1; give bins"),
            ([np.inf] * 24, {}, "time must be finite numbers"),
            ([None] * 24, {}, "time must be there for some of the documents"),
            (["then"] * 24, {}, "time has 'then', which is no date: write dates as '2024-12-31'"),
            (["January"] * 24, {}, "time has 'January', which is no date"),
            (["2001"] * 24, {}, "time has '2001', which is no date: .* make years numbers"),
            ([2001, *["2002-01-01"] * 23], {}, "time must be numbers for all or dates for all"),
            ([10**400] * 24, {}, "time must be finite numbers, 1 are not"),
            ("2020", {}, "time must be a sequence of numbers or dates"),
            (np.arange(24), {"bins": 0}, "bins must be an integer of at least 1, got 0"),
            (np.arange(24), {"bins": "year"}, "bins is 'year', which needs dates"),
            (np.arange(24), {"bins": "weak"}, "bins must be one of .*: did you mean 'week'?"),
            (np.arange(24), {"bins": [1]}, "bins must be two bounds or more that increase"),
            (np.arange(24), {"bins": [2, 1]}, "bins must be two bounds or more that increase"),
            (np.arange(24), {"bins": ["2020-01-01", "2021-01-01"]}, "of the kind of time, got"),
        ],
    )
    def test_bad_arguments(self, states, corpus, time, options, message, fit_of):
        with pytest.raises(ValueError, match=message):
            topics_over_time(fit_of(states, corpus), time, **options)
