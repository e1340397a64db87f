"""Columns of regressions: what a formula makes of numbers, levels, dates and names."""

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.data.design import Column, make_design

DOCS = 40
CORPUS = bnp.Corpus.from_ids([[0]] * DOCS, num_words=1)
TABLE = {
    "year": 2000 + np.arange(DOCS) % 4 * 2,
    "x": np.arange(DOCS) % 7 - 2.0,
    "part": np.array(list("abcab") * 8),
    "large": 2**40 + 10**9 * np.arange(DOCS),
    "a b": np.arange(DOCS) % 3,
}


def design(formula, **more):
    return make_design(formula, TABLE | more, CORPUS)


def test_numbers_as_levels_keep_their_names():
    made = design("~ C(year) + C(`a b`)")
    assert made.terms[1:] == [
        "C(year)[2002]",
        "C(year)[2004]",
        "C(year)[2006]",
        "C(a b)[1]",
        "C(a b)[2]",
    ]
    assert made.reference == {"C(year)": 2000, "C(a b)": 0}
    assert [made.columns[name].grouped for name in ("year", "a b")] == [True, True]


@pytest.mark.parametrize("formula", ["~ C(year)", "~ C(year, contr.treatment) * x"])
def test_numbers_as_levels_take_only_these(formula):
    column = design(formula).columns["year"]
    assert column.enter("at", [2004, 2000]).tolist() == [2004, 2000]
    with pytest.raises(ValueError, match=r"at must be among the values of 'year', .* got 2003"):
        column.enter("at", [2004, 2003])


def test_a_level_that_no_document_has_is_refused():
    made = design("~ C(x + 1) + year")
    with pytest.raises(ValueError, match=r"formula can't be computed .*categories outside"):
        made.rows(pd.DataFrame({"x": [0.5], "year": [2000]}))


def test_large_numbers_do_not_overflow():
    made = design("~ np.square(large)")
    exact = np.array([float(int(n) ** 2) for n in TABLE["large"]])
    np.testing.assert_allclose(made.matrix[:, 1], exact - exact.mean(), atol=1e-6 * exact[0])


@pytest.mark.parametrize(
    ("formula", "reference", "centre"),
    [
        ("~ part:x", {}, {}),
        ("~ part + part:x", {"part": "a"}, {}),
        ("~ x + part:x", {"part": "a"}, {"x": np.mean(TABLE["x"])}),
        ("~ part * x", {"part": "a"}, {"x": np.mean(TABLE["x"])}),
        ("~ 0 + part + x", {}, {}),
    ],
)
def test_reference_and_centre_are_where_the_intercept_is(formula, reference, centre):
    made = design(formula)
    assert (made.reference, made.centre) == (reference, centre)


@pytest.mark.parametrize(
    ("formula", "more", "message"),
    [
        ("~ s(x)", {"s": np.arange(DOCS)}, "has a column 's', which hides s of formulas"),
        ("~ np.exp(x)", {"np": np.arange(DOCS)}, "has a column 'np', which hides np of formulas"),
        ("~ C(year)", {"C": np.arange(DOCS)}, "has a column 'C', which hides C of formulas"),
        ("~ Q('a b')", {}, "it has 'Q': a name with a space stands between backticks"),
        ("~ spline(x)", {}, r"it has 'spline': a spline is s\(\)"),
        ("~ C(part, contr.sum)", {"contr": np.arange(DOCS)}, "column 'contr', which hides contr"),
        ("~ Intercept", {"Intercept": np.arange(DOCS)}, "'Intercept', a name that formulas use"),
        ("~ x + x^2", {}, r"power of 'x', which is x alone there: write I\(x\*\*2\)"),
        ("~ `a b` ** 2", {}, "power of 'a b', which is a b alone"),
        ("~ np.sqrt(9)", {}, "must have a column of the covariates"),
        ("~ cr(x, df=4)", {}, r"give cr\(\) and cc\(\) constraints='center'"),
        (
            "~ part * s(only)",
            {"only": np.where(TABLE["part"] == "c", 0.0, np.arange(DOCS))},
            r"fewer degrees of freedom, as s\(x",
        ),
        ("~ C(huge)", {"huge": 2**53 + np.arange(DOCS)}, r"integers of at most 2\*\*53, 'huge'"),
        ("~ .", {}, "without a formula all columns enter"),
        (None, {"": np.arange(DOCS)}, "columns of different names that are not empty"),
    ],
)
def test_bad_formulas(formula, more, message):
    with pytest.raises(ValueError, match=message):
        design(formula, **more)


def test_columns_with_names_of_functions_are_columns():
    assert design("~ s + x", s=np.arange(DOCS)).terms == ["intercept", "s", "x"]


def test_splines_end_where_the_documents_do():
    made = design("~ s(x, df=3)")
    with pytest.raises(ValueError, match=r"s\(\) is a curve from -2 to 4, .* not at 5"):
        made.rows(pd.DataFrame({"x": [1.0, 5.0]}))


def test_values_equal_to_levels_are_levels():
    flags = Column("flag", pd.Series(pd.Categorical([False, True, False])))
    assert flags.enter("at['flag']", [0, 1]).tolist() == [False, True]


@pytest.mark.parametrize(
    "formula", ["~ I(x - x.mean())", "~ I(x / x.max())", "~ x.rank()", "~ x.sort_values()"]
)
def test_summaries_of_all_documents_are_refused(formula):
    numbers = {"x": np.random.default_rng(0).normal(size=DOCS)}
    for sign in (1, -1):  # the largest value is in another half
        for turned in (numbers["x"], numbers["x"][::-1]):
            with pytest.raises(ValueError, match="formula must give each document its own value"):
                make_design(formula, {"x": sign * turned}, CORPUS)
    made = make_design("~ center(x)", numbers, CORPUS)
    assert np.isfinite(made.rows(pd.DataFrame({"x": [3.0]}))).all()


def test_many_columns_keep_their_names():
    columns = {f"x{i}": np.random.default_rng(i).normal(size=DOCS) for i in range(1, 25)}
    made = make_design(None, columns, CORPUS)
    assert made.terms == ["intercept", *columns]
    for i, column in enumerate(columns.values(), 1):
        np.testing.assert_allclose(made.matrix[:, i], column - column.mean())


def test_strings_as_levels_are_as_they_are():
    made = make_design("~ C(v)", {"v": list("ab") * 18 + ["1.0", "1"] * 2}, CORPUS)
    assert made.terms == ["intercept", "C(v)[1.0]", "C(v)[a]", "C(v)[b]"]


def test_covariates_are_checked_as_those_of_a_corpus():
    days = ["2020-01-01", "2020-03-01 12:00"] * 20
    made = make_design("~ day", {"day": days}, CORPUS)
    assert made.terms == ["intercept", "day"]
    assert np.unique(made.matrix[:, 1]).size == 2
    with pytest.raises(ValueError, match="of document 7 is 'May', which is no date, but 39 others"):
        make_design("~ day", {"day": [*days[:7], "May", *days[8:]]}, CORPUS)
    flag = [True, False, None, None] * 10
    made = make_design("~ flag", {"flag": flag, "unused": [object()] * DOCS}, CORPUS)
    assert made.terms == ["intercept", "flag[True]"]
    assert made.left_out == {"empty": 0, "missing": 20}
