"""Scores by number of topics, with a stand-in for `fit` that draws nothing, and one real run."""

import types

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.run import choose_topics
from bnp_models.run.choose_topics import fold_of_documents


@pytest.fixture
def corpus():
    rng = np.random.default_rng(0)
    docs = [(3 * (d % 2) + rng.integers(0, 3, 8)).tolist() for d in range(20)]
    return bnp.Corpus.from_ids(docs, num_words=6, groups=["a" if d < 8 else "b" for d in range(20)])


def test_folds_are_equal_and_of_each_group_alike(corpus):
    fold = fold_of_documents(corpus, 4, seed=1)
    group = np.asarray(corpus.group)
    assert np.bincount(fold).tolist() == [5] * 4
    assert np.bincount(fold[group == 0]).tolist() == [2] * 4
    np.testing.assert_array_equal(fold, fold_of_documents(corpus, 4, seed=1))
    assert (fold != fold_of_documents(corpus, 4, seed=2)).any()
    for folds, message in (
        (1, "folds must be an integer of at least 2"),
        (21, "at most 20, got"),
    ):
        with pytest.raises(ValueError, match=message):
            fold_of_documents(corpus, folds)


class Recorder:
    """Stands in for `fit`: scores are made up from the number of topics and the split."""

    def __init__(self):
        self.calls = []

    def __call__(self, model, corpus, **options):
        self.calls.append((model, corpus, options))
        number, count = model.num_topics, len(self.calls)

        def document_completion(test, **how):
            assert not set(test.doc_names) & set(corpus.doc_names)
            assert len(test.doc_names) + len(corpus.doc_names) == 20
            assert how == {"split_seed": 5, "seed": 5}
            return types.SimpleNamespace(log_prob=-2.0 + 0.1 * number + 0.01 * count)

        def npmi(reference, *, top):
            assert reference is corpus
            assert top == 2
            return np.array([0.1 * number, 0.3 * number])

        return types.SimpleNamespace(document_completion=document_completion, npmi=npmi)


def test_table(corpus, monkeypatch):
    fit = Recorder()
    monkeypatch.setattr(choose_topics, "fit", fit)
    model = bnp.LDA(7, alpha=0.2, beta=0.3)
    found = bnp.choose_num_topics(model, corpus, [3, 2, 3], folds=2, top=2, seed=5, num_warmup=1)
    assert [call[0] for call in fit.calls] == [
        bnp.LDA(k, alpha=0.2, beta=0.3) for k in (3, 3, 2, 2)
    ]
    assert all(call[2] == {"seed": 5, "num_warmup": 1} for call in fit.calls)
    table = found.table
    assert table.columns.tolist() == [
        *("num_topics", "log_prob", "log_prob_error", "perplexity", "npmi", "npmi_error")
    ]
    assert table["num_topics"].tolist() == [3, 2]
    np.testing.assert_allclose(table["log_prob"], [-1.7 + 0.015, -1.8 + 0.035])
    np.testing.assert_allclose(table["log_prob_error"], [0.005, 0.005])  # 0.01 apart
    np.testing.assert_allclose(table["perplexity"], np.exp([1.685, 1.765]))
    np.testing.assert_allclose(table["npmi"], [0.6, 0.4])
    np.testing.assert_allclose(table["npmi_error"], 0, atol=1e-12)
    assert found.splits["split"].tolist() == [0, 1, 0, 1]
    axes = found.plot()
    np.testing.assert_allclose(axes[0].get_lines()[0].get_ydata().astype(float), table["log_prob"])
    given = plt.subplots(1, 2)[1]
    assert found.plot(axes=given)[1] is given[1]
    with pytest.raises(ValueError, match=r"axes must have shape \(2,\)"):
        found.plot(axes=given[:1])
    plt.close("all")


@pytest.mark.parametrize(
    ("model", "numbers", "options", "message"),
    [
        (bnp.HDPLDA(), [2], {}, "model must have a num_topics to choose.*HDPLDA infers how many"),
        (bnp.LDA(2), [], {}, "num_topics must have at least one entry"),
        (bnp.LDA(2), [2, 0], {}, r"num_topics\[1\] must be an integer of at least 1, got 0"),
        (bnp.LDA(2, alpha=(0.1, 0.2)), [2, 3], {}, "alpha"),
        (bnp.LDA(2), [2], {"folds": 1}, "folds must be an integer of at least 2, got 1"),
        (bnp.LDA(2), [2], {"top": 7}, "top must be an integer of at most 6, got 7"),
        (bnp.LDA(2), [2], {"top": 2, "checkpoint": "x"}, "checkpoint='x' is not an option of many"),
        (bnp.LDA(2), [2], {"top": 2, "keep_states": 0}, "keep_states must be an integer of at"),
        (bnp.LDA(2), [2], {"top": 2, "nonsense": 1}, "nonsense=1 is not an option of fit"),
    ],
)
def test_bad_arguments(corpus, model, numbers, options, message):
    with pytest.raises(ValueError, match=message):
        bnp.choose_num_topics(model, corpus, numbers, **options)


@pytest.mark.slow
def test_two_topics_predict_better_than_one(corpus):
    """Documents of either of two kinds of words."""
    options = {"num_warmup": 10, "num_samples": 10, "num_chains": 1, "keep_states": 2}
    options |= {"schedule": "sequential", "progress": False}
    found = bnp.choose_num_topics(
        bnp.LDA(9, alpha=0.1, beta=0.1), corpus, [1, 2], folds=2, top=3, **options
    )
    one, two = found.table["log_prob"]
    assert two > one + 0.3  # log 6 - log 3 is 0.69
    assert found.table["npmi"].tolist()[1] > found.table["npmi"].tolist()[0]
