"""Predictions of many classes, as users meet them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.one_vs_rest import LP_OF_CLASS
from bnp_models.cli import command as cli
from bnp_models.posterior import arviz_data
from bnp_models.results.folder import load_run

pytestmark = pytest.mark.slow

NAMES = ("art", "law", "sport")
NUM_WORDS, LENGTH = 12, 15


def corpus(number, seed, names=NAMES):
    """Draw documents, most words of which belong to their class."""
    rng = np.random.default_rng(seed)
    label = np.arange(number) % len(names)
    of_class = rng.integers(0, 4, (number, LENGTH)) + 4 * label[:, None]
    words = np.where(rng.random((number, LENGTH)) < 0.8, of_class, rng.integers(0, 12, LENGTH))
    return bnp.Corpus.from_ids(
        words.tolist(), num_words=NUM_WORDS, labels=[names[i] for i in label],
        doc_names=[f"doc {d}" for d in range(number)],
    )  # fmt: skip


TRAIN, TEST = corpus(60, 0), corpus(30, 1)
OPTIONS = {"num_warmup": 60, "num_samples": 40, "num_chains": 2, "keep_states": 5}


@pytest.fixture(scope="module")
def fit():
    model = bnp.SupervisedLDA(3, alpha=0.3, c=9.0, response="one-vs-rest")
    return bnp.fit(model, TRAIN, progress=False, **OPTIONS)


@pytest.fixture(scope="module")
def hinge_fit():
    model = bnp.MedLDA(3, alpha=0.3, ell=4.0, response="one-vs-rest")
    return bnp.fit(model, TRAIN, progress=False, **OPTIONS)


@pytest.mark.parametrize("approximation", [None, "plug-in"])
def test_classes_are_found(fit, approximation):
    probability = fit.predict_proba(TEST, approximation=approximation)
    assert tuple(probability.columns) == NAMES
    assert tuple(probability.index) == TEST.doc_names
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    found = fit.predict(TEST, approximation=approximation)
    assert (found == probability.columns[probability.to_numpy().argmax(axis=1)]).all()
    assert fit.score(TEST, approximation=approximation) > 0.9


def test_predictions_are_those_of_the_model_of_each_class(fit):
    found = fit.predictions(TEST, num_sweeps=30)
    assert found.by_state.shape == (10, 30, 3)
    for i, name in enumerate(NAMES):
        own = fit.of_class(name).predictions(TEST, num_sweeps=30)
        np.testing.assert_array_equal(found.by_state[:, :, i], own.by_state)
        np.testing.assert_allclose(found.mean[:, i], own.mean)
        np.testing.assert_allclose(found.sd[:, i], own.sd, atol=1e-12)


def test_scores_decide_where_there_are_no_probabilities(hinge_fit):
    found = hinge_fit.predictions(TEST)
    assert found.mean.min() < 0 < 1 < found.mean.max()  # scores, not shares
    assert hinge_fit.score(TEST) > 0.9
    with pytest.raises(ValueError, match="MedLDA has no probabilities of labels"):
        hinge_fit.predict_proba(TEST)


def test_names(fit):
    assert fit.posterior["eta"].dims == ("chain", "draw", "class", "topic")
    assert fit.posterior["num_topics_used"].dims == ("chain", "draw", "class")
    assert fit.posterior["class"].values.tolist() == list(NAMES)
    lp = arviz_data.group(fit.data, "sample_stats")["lp"]
    np.testing.assert_allclose(fit.posterior[LP_OF_CLASS].sum("class"), lp, rtol=1e-5)
    assert fit.states["z"].dims == ("chain", "draw", "class", "token")
    constant = arviz_data.group(fit.data, "constant_data")
    assert constant["doc_label"].values.tolist() == [d % 3 for d in range(60)]


def test_the_fit_of_one_class(fit):
    own = fit.of_class("law")
    assert isinstance(own, bnp.SupervisedFit)
    assert own is fit.of_class("law")
    assert own.dataset.label_names == ("not law", "law")
    assert own.posterior["eta"].dims == ("chain", "draw", "topic")
    np.testing.assert_array_equal(own.posterior["eta"], fit.posterior["eta"].sel({"class": "law"}))
    lp = arviz_data.group(own.data, "sample_stats")["lp"]
    np.testing.assert_array_equal(lp, fit.posterior[LP_OF_CLASS].sel({"class": "law"}))
    assert own.predict_proba(TEST).columns.tolist() == ["not law", "law"]
    assert own.of_chain(1).posterior.sizes["chain"] == 1
    with pytest.raises(ValueError, match=r"label must be one of .*'art', 'law', 'sport'"):
        fit.of_class("music")
    with pytest.raises(ValueError, match=r"use fit\.of_class\(label\)\.representative\(\)"):
        fit.representative()


def test_chains_of_a_class(fit):
    assert fit.of_chain(1).of_class("law") is fit.of_class("law").of_chain(1)
    of_chain = fit.of_chain(1).topic_weights()
    assert of_chain["other_chains"].max() == 1  # they are compared with the other chain
    assert "lowest_weight" in of_chain
    assert fit.pooled().of_class("law").shown is fit.pooled().of_class("law")
    assert fit.of_chain(1).text().startswith("art\nChain 1, ")


def test_the_fit_of_one_class_is_stored(fit, tmp_path):
    own = fit.of_class("law")
    again = bnp.SupervisedFit.load(own.save(tmp_path / "law.nc"), own.dataset)
    assert again.model == own.model
    np.testing.assert_array_equal(again.posterior["eta"], own.posterior["eta"])
    whole = bnp.Fit.load(fit.save(tmp_path / "all.nc"), fit.dataset)
    assert isinstance(whole, bnp.OneVsRestFit)
    np.testing.assert_array_equal(whole.posterior["eta"], fit.posterior["eta"])


def test_tables(fit):
    topics, weights = fit.topics(num_words=3), fit.topic_weights(num_words=3)
    assert set(topics.index.get_level_values("class")) == set(NAMES)
    for name in NAMES:
        own = weights.loc[name]
        assert own["weight"].is_monotonic_decreasing
        best = {int(word) // 4 for word in own["words"].iloc[0].split(", ")}
        assert best == {NAMES.index(name)}
    assert all(f"\n{name}\n" in f"\n{fit.text()}" for name in NAMES)
    assert set(fit.summaries().tables) == {"topics", "topic_weights"}


def test_convergence_is_that_of_all_classes(fit):
    rows = fit.convergence().table.index
    assert {"lp", *(f"{LP_OF_CLASS}[{name}]" for name in NAMES)} <= set(rows)
    with pytest.raises(ValueError, match="label must be one of"):
        fit.functionals()
    assert len(fit.functionals(label="art").table)


def test_calibration_of_a_class(fit):
    table = fit.calibration(TEST, label="sport", bins=3)
    assert table["observed"].iloc[-1] > 0.8 > 0.2 > table["observed"].iloc[0]
    ax = fit.plot_calibration(TEST, label="sport", bins=3)
    assert ax.get_xlabel() == "predicted probability of sport"
    plt.close(ax.figure)


def test_labels_of_new_documents(fit):
    with pytest.raises(ValueError, match=r"corpus has labels \['music'\], the fit has"):
        fit.score(corpus(6, 1, names=("art", "music")))
    with pytest.raises(ValueError, match="corpus has no labels to compare with"):
        fit.score(bnp.Corpus.from_ids([[0]], num_words=NUM_WORDS))
    only = TEST.select(np.asarray(TEST.label) == 2)
    assert fit.score(only) > 0.8


@pytest.mark.parametrize("method", ["posterior_predictive", "log_likelihood", "prior_predictive"])
def test_draws_of_data_are_those_of_one_class(fit, method):
    with pytest.raises(ValueError, match=rf"use fit.of_class\(label\).{method}\(\)"):
        getattr(fit, method)()


@pytest.mark.slow
def test_command(tmp_path, capsys):
    lines = [
        f"{words},{name}\n"
        for words, name in zip(
            ("paint colour brush", "court judge trial", "ball goal team"), NAMES, strict=True
        )
        for _ in range(4)
    ]
    file, run = tmp_path / "news.csv", tmp_path / "run"
    file.write_text("text,section\n" + "".join(lines))
    assert cli.main([
        "fit", "SupervisedLDA", str(file), "--read", "label=section", "--num-topics", "2",
        "--c", "9", "--response", "one-vs-rest", "--num-warmup", "20", "--num-samples", "4",
        "--num-chains", "2", "--output", str(run), "--no-progress",
    ]) == 0  # fmt: skip
    assert isinstance(load_run(run), bnp.OneVsRestFit)
    assert cli.main(["topics", str(run), "--limit", "1"]) == 0
    assert "sport\n" in capsys.readouterr().out
    assert cli.main(["evaluate", str(run), str(file), "--read", "label=section"]) == 0
    assert "score: 1.0000 (share of labels predicted, 12 documents)" in capsys.readouterr().out
    assert cli.main(["evaluate", str(run), str(file), "--score", "npmi"]) != 0
    assert "score must be 'score'" in capsys.readouterr().err
