"""Which functionals the chains agree on, by made-up numbers."""

import numpy as np
import pandas as pd
import pytest

from bnp_models.posterior import arviz_data
from bnp_models.posterior.functionals import Values, functionals, random_pairs, shared_topics


def draws(*, chains=4, states=20, number=5, apart=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(chains, states, number)) + apart * np.arange(chains)[:, None, None]


def named(x):
    return Values([f"no. {i}" for i in range(x.shape[2])], x)


@pytest.fixture(scope="module")
def found():
    """Agreement, disagreement, constants (one alike, one by chain), and too few draws to tell."""
    mixed = draws(number=3, seed=2)
    mixed[:, :, 1] = 0.5
    mixed[:, :, 2] = np.arange(4)[:, None]
    waves = np.tile([1.0, 1, -1, -1, -1, 1, 1, -1], (4, 1))[:, :, None]
    between = waves + 0.7 * np.arange(4)[:, None, None]
    kinds = {"scalars": draws(number=2, states=300, apart=3, seed=3), "like": draws(states=300)}
    kinds |= {"unlike": draws(apart=3), "mixed": mixed, "between": between}
    return functionals({kind: named(x) for kind, x in kinds.items()}, max_rhat=1.1)


def test_verdicts(found):
    table = found.table
    assert table.index.names == ["kind", "name"]
    assert set(table.loc["like", "verdict"]) == {"agree"}
    assert set(table.loc["unlike", "verdict"]) == {"differ"}
    assert table.loc["mixed", "verdict"].tolist()[1:] == ["constant", "differ"]
    assert table.loc["mixed", "rhat"].tolist()[2] == np.inf
    assert table.loc["mixed", ["rhat", "ess"]].iloc[1].isna().all()
    assert table.loc["between", "verdict"].tolist() == ["too few states"]
    assert table.loc["between", "rhat"].item() > 1.1


def test_numbers(found):
    x = draws(apart=3)
    row = found.table.loc[("unlike", "no. 2")]
    assert row["mean"] == pytest.approx(x[:, :, 2].mean())
    assert row["sd"] == pytest.approx(x[:, :, 2].std(ddof=1))
    assert (row["lowest"], row["highest"]) == pytest.approx((x[0, :, 2].mean(), x[3, :, 2].mean()))
    alone = arviz_data.group(arviz_data.make_data({"posterior": {"x": x[:, :, 2]}}), "posterior")
    assert row["rhat"] == pytest.approx(float(arviz_data.rhat(alone)["x"]))
    assert row["ess"] == pytest.approx(float(arviz_data.ess(alone)["x"]))


def test_summary_and_text(found):
    row = found.summary.loc["mixed"]
    assert row["number"] == 2  # without the constant
    assert row["differ"] + row["agree"] + row["too_few"] == 2
    assert found.summary.loc["like", ["agree", "number"]].tolist() == [5, 5]
    assert found.summary.loc["unlike", "median_range"] == pytest.approx(9, abs=1.5)
    lines = found.text().splitlines()
    assert lines[0].startswith(
        "Functionals that agree over chains (R-hat at most 1.1): like 5 of 5"
    )
    assert "The chains differ in: no. 0, no. 1, unlike 5, mixed 1" in lines[1]
    assert "8 kept states per chain are too few to tell" in lines[2]
    assert lines[0] in str(found)
    assert "<table" in found._repr_html_()


def test_a_handful_of_states_is_not_judged():
    for states in (1, 2, 4):
        table = functionals({"x": named(draws(states=states, apart=9))}).table
        assert set(table["verdict"]) == {"too few states"}


def test_nested_rhat_of_many_chains():
    few, many = (functionals({"x": named(draws(chains=c, states=10))}).table for c in (4, 16))
    assert "rhat_nested" not in few.columns
    assert ("rhat_nested" in many.columns) == hasattr(arviz_data._import_arviz(), "rhat_nested")
    if "rhat_nested" in many.columns:
        nested = many["rhat_nested"].to_numpy()
        assert nested.min() >= 1
        assert nested.max() < 1.1
        apart = functionals({"x": named(draws(chains=16, states=10, apart=1))}).table
        assert apart["rhat_nested"].to_numpy().min() > 1.5


def test_chains_that_agree_are_seldom_said_to_differ():
    number = 2000  # normal and independent: 1% and four standard errors
    table = functionals({"x": named(draws(states=10, number=number))}).table
    assert (table["verdict"] == "differ").mean() < 0.01 + 4 * np.sqrt(0.01 * 0.99 / number)
    assert isinstance(table, pd.DataFrame)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "values must have at least one functional, got none"),
        ({"x": named(draws(chains=1))}, "values must have two chains or more to compare, got 1"),
        ({"x": named(draws() * np.nan)}, r"values\['x'\].values must .*finite"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        functionals(values)


def test_shared_topics_against_every_pair_of_tokens():
    rng = np.random.default_rng(0)
    doc = np.repeat([0, 1, 3, 4], [3, 5, 2, 4])  # document 2 is empty
    z = rng.integers(0, 4, (2, 3, len(doc)))
    pairs = np.array([[0, 1], [1, 4], [3, 0]])
    found = shared_topics(z, doc, pairs)
    for p, (i, j) in enumerate(pairs):
        same = z[..., doc == i][..., :, None] == z[..., doc == j][..., None, :]
        np.testing.assert_allclose(found[:, :, p], same.mean(axis=(2, 3)))
    relabelled = np.stack([[rng.permutation(4)[state] for state in chain] for chain in z])
    np.testing.assert_allclose(shared_topics(relabelled, doc, pairs), found)
    with pytest.raises(ValueError, match=r"pairs must not name empty documents, got \[2\]"):
        shared_topics(z, doc, np.array([[0, 2]]))


def test_random_pairs_are_two_items_equally_often():
    pairs = random_pairs(4, 60_000, seed=3)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    _, counts = np.unique(pairs, axis=0, return_counts=True)
    # six pairs, binomial sd 91: 5 sd is a false alarm once in 300,000 runs
    np.testing.assert_allclose(counts, 10_000, atol=5 * 91.3)
    np.testing.assert_array_equal(pairs, random_pairs(4, 60_000, seed=3))
    for sizes, message in (
        ((1, 5), "num_items must be an integer of at least 2"),
        ((5, 0), "num_pairs must be an integer of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            random_pairs(*sizes)
