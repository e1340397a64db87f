"""Predictions of fits of labelled documents, as users meet them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.base.labelled_model import LP_OF_CLASS
from bnp_models.cli import command as cli
from bnp_models.posterior import arviz_data
from bnp_models.results.folder import load_run

NUM_WORDS, LENGTH = 12, 15


def documents(number, seed):
    """Draw documents of two kinds of words, mixed; the label says which kind has more."""
    rng = np.random.default_rng(seed)
    share = np.where(rng.random(number) < 0.5, 0.15, 0.85)
    of_kind = rng.random((number, LENGTH)) < share[:, None]
    words = rng.integers(0, NUM_WORDS // 2, (number, LENGTH)) + NUM_WORDS // 2 * of_kind
    return words.tolist(), share > 0.5


def corpus(number, seed, names=("bad", "good")):
    words, good = documents(number, seed)
    return bnp.Corpus.from_ids(words, num_words=NUM_WORDS, labels=[names[i] for i in good * 1])


TRAIN, TEST = corpus(60, 0), corpus(40, 1)


@pytest.fixture(scope="module")
def fit():
    model = bnp.SupervisedLDA(2, alpha=0.5, c=9.0)
    return bnp.fit(model, TRAIN, num_warmup=60, num_samples=40, num_chains=2, progress=False)


@pytest.fixture(scope="module")
def count_fit():
    words, good = documents(60, 0)
    label = np.where(good, 9, 1) + np.arange(60) % 2
    data = bnp.Corpus.from_ids(words, num_words=NUM_WORDS, labels=label.tolist())
    model = bnp.SupervisedLDA(2, alpha=0.5, response="count", dispersion=5.0)
    return bnp.fit(model, data, num_warmup=60, num_samples=40, num_chains=2, progress=False)


@pytest.mark.parametrize("approximation", [None, "plug-in"])
def test_classes_are_found(fit, approximation):
    probability = fit.predict_proba(TEST, approximation=approximation)
    assert list(probability.columns) == ["bad", "good"]
    assert tuple(probability.index) == TEST.doc_names
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    found = fit.predict(TEST, approximation=approximation)
    assert (found == np.where(probability["good"] > 0.5, "good", "bad")).all()
    assert fit.score(TEST, approximation=approximation) > 0.9


def test_chains_and_states_are_averaged(fit):
    both, first = fit.predictions(TEST), fit.of_chain(0).predictions(TEST)
    assert len(both.by_state) == 2 * len(first.by_state) > 2
    np.testing.assert_allclose(both.by_state[: len(first.by_state)], first.by_state)
    assert (both.sd > 0).all()


def test_labels_of_new_documents_are_found_by_name(fit):
    assert fit.score(TEST.select(np.asarray(TEST.label) == 1)) > 0.8  # one class only
    with pytest.raises(ValueError, match=r"corpus has labels \['fine'\], the fit has"):
        fit.score(corpus(5, 1, names=("bad", "fine")))
    with pytest.raises(ValueError, match="corpus has no labels to compare with"):
        fit.score(bnp.Corpus.from_ids([[0]], num_words=NUM_WORDS))


def test_calibration(fit):
    table = fit.calibration(TEST, bins=4)
    assert table["predicted"].is_monotonic_increasing
    assert table["observed"].iloc[-1] > 0.8 > 0.2 > table["observed"].iloc[0]
    first = fit.calibration(TEST, bins=4, label="bad")
    np.testing.assert_allclose(first["observed"], 1 - table["observed"][::-1])
    np.testing.assert_allclose(first["predicted"], 1 - table["predicted"][::-1])
    ax = fit.plot_calibration(TEST, bins=4)
    assert ax.get_xlabel() == "predicted probability of good"
    plt.close(ax.figure)


def test_weights_of_topics(fit):
    table = fit.topic_weights(num_words=3)
    assert len(table) == 2
    assert table["weight"].is_monotonic_decreasing
    assert (table["weight_lower"] <= table["weight"]).all()
    assert (table["weight"] <= table["weight_upper"]).all()
    best = [int(word) for word in table["words"].iloc[0].split(", ")]
    assert min(best) >= NUM_WORDS // 2  # the words of "good"


def test_weights_of_topics_in_the_other_chain(fit):
    one, other = (fit.of_chain(c).topic_weights() for c in (0, 1))
    partner = fit.matches.partners(0, 1)
    assert partner.min() >= 0
    for column in ("lowest_weight", "highest_weight"):
        assert one[column].tolist() == other.loc[partner[one.index], "weight"].tolist()
    assert "lowest_weight" not in fit.pooled().topic_weights()


@pytest.mark.slow
def test_counts(count_fit):
    words, good = documents(40, 1)
    label = np.where(good, 9, 1).tolist()
    test = bnp.Corpus.from_ids(words, num_words=NUM_WORDS, labels=label)
    found = count_fit.predict(test)
    assert found[good].mean() > 4 * found[~good].mean()
    assert 0.5 < count_fit.score(test) <= 1
    for method in (count_fit.predict_proba, count_fit.calibration):
        with pytest.raises(ValueError, match="response='count' has no classes"):
            method(test)
    alike = bnp.Corpus.from_ids(words[:3], num_words=NUM_WORDS, labels=[2, 2, 2])
    with pytest.raises(ValueError, match="different counts"):
        count_fit.score(alike)


def test_an_unknown_approximation_is_refused(fit):
    with pytest.raises(ValueError, match="approximation must be one of"):
        fit.predict(TEST, approximation="mean")


@pytest.mark.parametrize(
    "model",
    [
        bnp.SupervisedLDA(2),
        bnp.SupervisedLDA(2, response="one-vs-rest"),
        pytest.param(bnp.MedLDA(2), marks=pytest.mark.slow),
        pytest.param(bnp.MedLDA(2, response="one-vs-rest"), marks=pytest.mark.slow),
        pytest.param(
            bnp.SupervisedLDA(2, response="count", dispersion=5.0), marks=pytest.mark.slow
        ),
    ],
)
def test_labels_of_texts(model):
    """As those of a corpus; texts without a known word have the mean label of the fitted ones."""
    labels = [0, 3, 3, 3] if model.response == "count" else ["bad", "good", "good", "good"]
    data = bnp.Corpus.from_texts(["cat dog", "moon sun moon", "sun", "moon cat"], labels=labels)
    how = {"num_warmup": 2, "num_samples": 4, "num_chains": 1, "keep_states": 2}
    fit = bnp.fit(model, data, progress=False, **how)
    texts = ["Moon sun!", "zebra", "dog"]
    known = data.read_texts([texts[0], texts[2]])
    mean = 9 / 4 if model.response == "count" else [1 / 4, 3 / 4] if model.by_class else 3 / 4
    with pytest.warns(UserWarning, match="1 of 3 texts have no word .* the mean label of"):
        found = fit.predictions(texts)
    np.testing.assert_array_equal(found.by_state[:, [0, 2]], fit.predictions(known).by_state)
    np.testing.assert_array_equal(found.mean[1], mean)
    with pytest.warns(UserWarning, match="2 of 2 texts have no word"):
        guess = fit.predict(["zebra", ""])
    assert guess.tolist() == [9 / 4 if model.response == "count" else "good"] * 2
    assert fit.predict("moon").shape == (1,)
    if model.has_probabilities and model.response != "count":
        table = fit.predict_proba(["moon", "dog"])
        assert list(table.index) == ["0", "1"]
        np.testing.assert_array_equal(table, fit.predict_proba(data.read_texts(["moon", "dog"])))
    with pytest.raises(ValueError, match="corpus has 1 documents without words"):
        fit.predict(data.read_texts(texts))


NAMES = ("art", "law", "sport")


def classes_of_words(number, seed, names=NAMES):
    """Draw documents, most words of which belong to their class."""
    rng = np.random.default_rng(seed)
    label = np.arange(number) % len(names)
    of_class = rng.integers(0, 4, (number, LENGTH)) + 4 * label[:, None]
    words = np.where(rng.random((number, LENGTH)) < 0.8, of_class, rng.integers(0, 12, LENGTH))
    return bnp.Corpus.from_ids(
        words.tolist(), num_words=NUM_WORDS, labels=[names[i] for i in label],
        doc_names=[f"doc {d}" for d in range(number)],
    )  # fmt: skip


TRAIN_MANY, TEST_MANY = classes_of_words(60, 0), classes_of_words(30, 1)
OPTIONS = {"num_warmup": 60, "num_samples": 40, "num_chains": 2, "keep_states": 5}


@pytest.fixture(scope="module")
def many_fit():
    model = bnp.SupervisedLDA(3, alpha=0.3, c=9.0, response="one-vs-rest")
    return bnp.fit(model, TRAIN_MANY, progress=False, **OPTIONS)


@pytest.mark.slow
class TestManyClasses:
    @pytest.fixture
    def fit(self, many_fit):
        return many_fit

    @pytest.mark.parametrize("approximation", [None, "plug-in"])
    def test_classes_are_found(self, fit, approximation):
        probability = fit.predict_proba(TEST_MANY, approximation=approximation)
        assert tuple(probability.columns) == NAMES
        assert tuple(probability.index) == TEST_MANY.doc_names
        np.testing.assert_allclose(probability.sum(axis=1), 1)
        found = fit.predict(TEST_MANY, approximation=approximation)
        assert (found == probability.columns[probability.to_numpy().argmax(axis=1)]).all()
        assert fit.score(TEST_MANY, approximation=approximation) > 0.9

    def test_predictions_are_those_of_the_model_of_each_class(self, fit):
        found = fit.predictions(TEST_MANY, num_sweeps=30)
        assert found.by_state.shape == (10, 30, 3)
        for i, name in enumerate(NAMES):
            own = fit.of_class(name).predictions(TEST_MANY, num_sweeps=30)
            np.testing.assert_array_equal(found.by_state[:, :, i], own.by_state)
            np.testing.assert_allclose(found.mean[:, i], own.mean)
            np.testing.assert_allclose(found.sd[:, i], own.sd, atol=1e-12)

    def test_scores_decide_where_there_are_no_probabilities(self):
        model = bnp.MedLDA(3, alpha=0.3, ell=4.0, response="one-vs-rest")
        hinge_fit = bnp.fit(model, TRAIN_MANY, progress=False, **OPTIONS)
        found = hinge_fit.predictions(TEST_MANY)
        assert found.mean.min() < 0 < 1 < found.mean.max()  # scores, not shares
        assert hinge_fit.score(TEST_MANY) > 0.9
        with pytest.raises(ValueError, match="MedLDA has no probabilities of labels"):
            hinge_fit.predict_proba(TEST_MANY)

    def test_names(self, fit):
        assert fit.posterior["eta"].dims == ("chain", "draw", "class", "topic")
        assert fit.posterior["num_topics_used"].dims == ("chain", "draw", "class")
        assert fit.posterior["class"].values.tolist() == list(NAMES)
        lp = arviz_data.group(fit.data, "sample_stats")["lp"]
        np.testing.assert_allclose(fit.posterior[LP_OF_CLASS].sum("class"), lp, rtol=1e-5)
        assert fit.states["z"].dims == ("chain", "draw", "class", "token")
        constant = arviz_data.group(fit.data, "constant_data")
        assert constant["doc_label"].values.tolist() == [d % 3 for d in range(60)]

    def test_the_fit_of_one_class(self, fit):
        own = fit.of_class("law")
        assert isinstance(own, bnp.SupervisedFit)
        assert own is fit.of_class("law")
        assert own.dataset.label_names == ("not law", "law")
        assert own.posterior["eta"].dims == ("chain", "draw", "topic")
        of_law = fit.posterior.sel({"class": "law"})
        np.testing.assert_array_equal(own.posterior["eta"], of_law["eta"])
        lp = arviz_data.group(own.data, "sample_stats")["lp"]
        np.testing.assert_array_equal(lp, of_law[LP_OF_CLASS])
        assert own.predict_proba(TEST_MANY).columns.tolist() == ["not law", "law"]
        assert own.of_chain(1).posterior.sizes["chain"] == 1
        with pytest.raises(ValueError, match=r"label must be one of .*'art', 'law', 'sport'"):
            fit.of_class("music")

    def test_chains_of_a_class(self, fit):
        assert fit.of_chain(1).of_class("law") is fit.of_class("law").of_chain(1)
        of_chain = fit.of_chain(1).topic_weights()
        assert of_chain["other_chains"].max() == 1  # they are compared with the other chain
        assert "lowest_weight" in of_chain
        assert fit.pooled().of_class("law").shown is fit.pooled().of_class("law")
        assert fit.of_chain(1).text().startswith("art\nChain 1, ")

    def test_the_fit_of_one_class_is_stored(self, fit, tmp_path):
        own = fit.of_class("law")
        again = bnp.SupervisedFit.load(own.save(tmp_path / "law.nc"), own.dataset)
        assert again.model == own.model
        np.testing.assert_array_equal(again.posterior["eta"], own.posterior["eta"])
        whole = bnp.Fit.load(fit.save(tmp_path / "all.nc"), fit.dataset)
        assert isinstance(whole, bnp.OneVsRestFit)
        np.testing.assert_array_equal(whole.posterior["eta"], fit.posterior["eta"])

    def test_tables(self, fit):
        topics, weights = fit.topics(num_words=3), fit.topic_weights(num_words=3)
        assert set(topics.index.get_level_values("class")) == set(NAMES)
        for name in NAMES:
            own = weights.loc[name]
            assert own["weight"].is_monotonic_decreasing
            best = {int(word) // 4 for word in own["words"].iloc[0].split(", ")}
            assert best == {NAMES.index(name)}
        assert all(f"\n{name}\n" in f"\n{fit.text()}" for name in NAMES)
        assert set(fit.summaries().tables) == {"topics", "topic_weights"}

    def test_convergence_is_that_of_all_classes(self, fit):
        rows = fit.convergence().table.index
        assert {"lp", *(f"{LP_OF_CLASS}[{name}]" for name in NAMES)} <= set(rows)
        with pytest.raises(ValueError, match="label must be one of"):
            fit.functionals()
        assert len(fit.functionals(label="art").table)

    def test_calibration_of_a_class(self, fit):
        table = fit.calibration(TEST_MANY, label="sport", bins=3)
        assert table["observed"].iloc[-1] > 0.8 > 0.2 > table["observed"].iloc[0]
        ax = fit.plot_calibration(TEST_MANY, label="sport", bins=3)
        assert ax.get_xlabel() == "predicted probability of sport"
        plt.close(ax.figure)

    def test_labels_of_new_documents_are_found_by_name(self, fit):
        assert fit.score(TEST_MANY.select(np.asarray(TEST_MANY.label) == 2)) > 0.8

    @pytest.mark.parametrize(
        "method",
        ["posterior_predictive", "log_likelihood", "prior_predictive", "representative"],
    )
    def test_draws_of_data_are_those_of_one_class(self, fit, method):
        assert not hasattr(fit, method)
        with pytest.raises(AttributeError, match=rf"has no '{method}'.*of_class\(label\)"):
            getattr(fit, method)

    def test_command(self, tmp_path, capsys):
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
