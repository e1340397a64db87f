"""`FactorFit` on made-up draws: two factors in changing slots, one of them turned round."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp

PHI = np.array([[3.0, 0, 0, 4], [0, 2, 0, 0]])
W = np.array([[2.0, 0], [1, 0], [1, 3], [0, 5], [0, 4]])


@pytest.fixture(scope="module")
def gaussian(made_up_factors):
    values = np.where(np.arange(20).reshape(5, 4) == 9, np.nan, W @ PHI)
    sources = bnp.Sources.from_arrays(
        [values[:3], values[3:]], names=["a", "b"], feature_names=list("pqrs"), allow_missing=True
    )
    model = bnp.GaussianFactorAnalysis(centre=False)
    return made_up_factors(
        model, sources, PHI, W, turned=True, sigma2_w=[4.0, 9], sigma2_n=[1e-4, 1e-4]
    )


@pytest.fixture(scope="module")
def poisson(made_up_factors):
    values = (W @ PHI).astype(int)
    sources = bnp.Sources.from_arrays([values[:3], values[3:]], names=["a", "b"])
    model = bnp.PoissonGammaFactorAnalysis()
    return made_up_factors(
        model, sources, PHI, W, turned=False, background=[0.01, 0.01], b_w=[0.1, 0.1]
    )


def test_tables(gaussian):
    assert isinstance(gaussian, bnp.FactorFit)
    table = gaussian.factors(num_features=2)
    assert table["features"].tolist() == ["s, p", "q, p"]
    np.testing.assert_allclose(table["rows"], 3)
    np.testing.assert_allclose(table[["in a", "in b"]], [[1, 0], [1 / 3, 1]])
    assert gaussian.num_factors()["probability"].to_dict() == {2: 0.75, 3: 0.25}
    shared = gaussian.sharing().set_index(["source", "other"])["shared"]
    assert shared.to_dict() == {("a", "a"): 2, ("a", "b"): 1, ("b", "a"): 1, ("b", "b"): 1}


def test_weights_are_lengths_of_what_factors_add(gaussian):
    found = gaussian.weights()
    np.testing.assert_allclose(found, W * [5, 2])
    assert found.index.tolist() == ["0", "1", "2", "3", "4"]


def test_reconstruction_fills_in_what_is_missing(gaussian):
    np.testing.assert_allclose(gaussian.reconstruct().mean, W @ PHI)
    table = gaussian.impute()
    assert table.drop(columns=["mean", "sd"]).to_dict("records") == [
        {"source": "a", "row": "2", "feature": "q"}
    ]
    np.testing.assert_allclose(table[["mean", "sd"]], [[6, 0]], atol=1e-12)


def test_nothing_missing_is_nothing_to_impute(poisson):
    with pytest.raises(ValueError, match="no missing entries"):
        poisson.impute()


def test_new_rows_are_transformed(gaussian):
    names = {"names": ["b"], "feature_names": list("pqrs"), "row_names": ["x", "y"]}
    rows = bnp.Sources.from_arrays([np.array([[-3.0, 0, 0, -4], [6, 8, 0, 8]])], **names)
    for known in (True, False):
        found = gaussian.transform(rows, known=known)
        assert found.index.tolist() == ["x", "y"]
        # noise of sd 0.01 leaves no doubt; a factor added to no avail would be as small
        np.testing.assert_allclose(found, [[-5, 0], [10, 8]], atol=0.05)


def test_new_rows_may_have_gaps(gaussian, poisson):
    """What is there says how much of a factor is in a row, as if the rest were as expected."""
    names = {"names": ["b"], "allow_missing": True}
    gaps = np.array([[-3.0, 0, 0, np.nan], [np.nan, 8, 0, 8]])
    rows = bnp.Sources.from_arrays([gaps], feature_names=list("pqrs"), **names)
    for known in (True, False):
        found = gaussian.transform(rows, known=known)
        np.testing.assert_allclose(found, [[-5, 0], [10, 8]], atol=0.05)
    full = np.array([[12.0, 0, 0, 16], [6, 30, 0, 8]])
    counts = [
        bnp.Sources.from_arrays([x], kind="counts", **names)
        for x in (full, np.where([[0, 0, 0, 1], [1, 0, 0, 0]], np.nan, full))
    ]
    scores = [poisson.predict(x, num_temperatures=50).row_log_prob for x in counts]
    assert (scores[1] > scores[0]).all()  # fewer counts are more probable
    found = poisson.transform(counts[1])
    assert (found.to_numpy().argmax(axis=1) == [0, 1]).all()
    with pytest.raises(ValueError, match="data has 2 missing entries"):
        poisson.predict(counts[1], totals=True)
    with pytest.raises(ValueError, match="data has 2 missing entries"):
        poisson.row_completion(counts[1])


def test_counts_are_transformed(poisson):
    rows = bnp.Sources.from_arrays([[[30, 0, 0, 40], [0, 40, 0, 0]]], names=["b"])
    found = poisson.transform(rows).to_numpy()
    # weights have posterior sd 10 / sqrt(70) and 20 / sqrt(40); means over 80 sweeps
    np.testing.assert_allclose(found, [[50, 0], [0, 40]], rtol=0.15, atol=2)


def test_retrieval(gaussian):
    names = {"feature_names": list("pqrs")}
    rows = bnp.Sources.from_arrays([np.array([[6.0, 0, 0, 8], [0, 8, 0, 0]])], **names)
    score = gaussian.retrieve(rows, ["a", "b"])
    # the third row has both factors: it is the last of its class, and before the other class
    assert score.mean_average_precision == 1
    cosines = [[1, 1, 0.316, 0, 0], [0, 0, 0.949, 1, 1]]
    np.testing.assert_allclose(score.similarity, cosines, atol=0.02)
    score = gaussian.retrieve(rows, ["a", "b"], by="features")
    made = gaussian.factor_states
    fitted = np.mean(made.weights @ made.phi, axis=0)  # one state is like another
    for query, found in zip(rows.values, score.similarity, strict=True):
        wanted = fitted @ query / np.linalg.norm(fitted, axis=1) / np.linalg.norm(query)
        np.testing.assert_allclose(found, wanted, atol=0.02)


def test_scores(gaussian, poisson):
    rows = bnp.Sources.from_arrays([[[30, 0, 0, 40]]], names=["b"])
    whole, total = (poisson.predict(rows, totals=t, num_temperatures=20) for t in (False, True))
    assert whole.log_prob < total.log_prob < 0
    assert 1 < poisson.row_completion(rows) < 4
    reals = bnp.Sources.from_arrays([[[3.0, 0, 0, 4]]], names=["b"], feature_names=list("pqrs"))
    assert np.isfinite(gaussian.predict(reals, num_temperatures=20).log_prob)
    for call in (gaussian.row_completion, lambda x: gaussian.predict(x, totals=True)):
        with pytest.raises(ValueError, match="data must hold counts"):
            call(reals)
    counts = bnp.Sources.from_arrays([[[3, 0, 0, 4]]], names=["b"], feature_names=list("pqrs"))
    with pytest.raises(ValueError, match="a Gaussian one has no such score"):
        gaussian.row_completion(counts)


def test_pictures(gaussian):
    assert len(gaussian.plot_factors()) == 2
    assert len(gaussian.plot_factors(factors=[1], shape=(2, 2))) == 1
    assert gaussian.plot_sharing().get_title(loc="left").startswith("Factors shared")
    assert gaussian.plot_num_factors()[0].get_ylabel() == "factors in use"
    plt.close("all")


def test_what_is_for_topics_names_the_alternatives(gaussian):
    with pytest.raises(
        AttributeError, match=r"a fit of Gaussian.* no 'topics'; it has factors\(\)"
    ):
        gaussian.topics()
    assert not hasattr(gaussian, "_private")


def test_load_reads_what_save_wrote(poisson, tmp_path):
    again = bnp.Fit.load(poisson.save(tmp_path / "draws.nc"), poisson.dataset)
    assert isinstance(again, bnp.FactorFit)
    assert again.factors().equals(poisson.factors())
