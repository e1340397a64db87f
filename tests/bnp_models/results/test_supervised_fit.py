"""Predictions of a fit of labelled documents, as users meet them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp

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
