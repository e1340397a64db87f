"""`MedLDA` as users meet it: the contract of all models, labels, predictions, the command."""

import json

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive

import bnp_models as bnp
from bnp_models import testing
from bnp_models.cli import command as cli
from bnp_models.posterior import arviz_data
from bnp_models.results.folder import load_run

DOCS = [[0, 1, 0, 3], [2, 1, 1], [4, 4], [0, 3]]
CORPUS = bnp.Corpus.from_ids(DOCS, num_words=5, labels=[1, 0, 0, 1], doc_names=list("klmn"))
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.MedLDA,
    configurations=(
        bnp.MedLDA(3, alpha=dist.Gamma(np.ones(3), 2.0), beta=PRIOR),
        bnp.MedLDA(3),
        bnp.MedLDA(3, c=2.0),
        bnp.MedLDA(3, ell=2.0),
        bnp.MedLDA(3, response="one-vs-rest"),
        bnp.MedLDA(3, eta_variance=2.0),
        bnp.MedLDA(3, alpha=(0.1, 0.2, 0.3), beta=0.1),
        bnp.MedLDA(3, alpha=PRIOR),
    ),
    data=CORPUS,
    sites={
        "alpha": (3,), "beta": (), "phi": (3, 5), "eta": (3,), "theta": (4, 3),
        "z": (11,), "y": (4,), "w": (11,),
    },
    dims={
        "alpha": ("topic",), "eta": ("topic",), "z": ("token",), "phi": ("topic", "word"),
        "theta": ("doc", "topic"), "topic_tokens": ("topic",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": -1.0}, "alpha must be positive"),
        ({"num_topics": 2, "beta": 0.0}, "beta must be positive"),
        ({"num_topics": 2, "c": 0}, "c must be a finite number"),
        ({"num_topics": 2, "ell": 0}, "ell must be a finite number"),
        ({"num_topics": 2, "ell": np.inf}, "ell must be a finite number"),
        ({"num_topics": 2, "eta_variance": -1.0}, "eta_variance must be a finite number"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"sampler": "polya-gamma"}, r"sampler must be one of \['augmented', 'elliptical'\]"),
        ({"approximation": "mean"}, r"approximation must be one of \['expected', None\]"),
        (
            {"approximation": "expected", "sampler": "elliptical"},
            "sampler='elliptical' is of the exact weights, and approximation='expected' solves",
        ),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3"),
        ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
        ({"record": ("eta",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no labels"),
        (bnp.Corpus.from_ids([[0], []], num_words=1, labels=[0, 1]), "1 documents without words"),
    ],
    no_update={"num_topics": 2, "alpha": dist.LogNormal(0.0, 1.0)},
    labels=("y",),
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1, 1, 1], "must have two classes .* got one class only, '1'"),
        (["a", "b", "c", "a"], r"got 3: \['a', 'b', 'c'\]; give response='one-vs-rest', or"),
        ([1, -1, -1, 1], "numbers 0 and 1 or two names .* got -1 for document '1'"),
    ],
)
def test_labels_of_the_wrong_kind(labels, message):
    corpus = bnp.Corpus.from_ids(DOCS, num_words=5, labels=labels)
    with pytest.raises(ValueError, match=message):
        bnp.MedLDA(2).gibbs().init(jax.random.key(0), 0, None, (corpus,), {})


def test_labels_that_the_program_draws_follow_the_scores():
    unlabelled = bnp.Corpus.from_ids(DOCS, num_words=5)
    draw = Predictive(bnp.MedLDA(3, eta_variance=100.0), num_samples=400)
    draws = draw(jax.random.key(0), unlabelled, observed=False)
    omega, y = np.asarray(draws["omega"]), np.asarray(draws["y"])
    assert y[omega > 2].mean() > 0.95
    assert y[omega < -2].mean() < 0.05


# Words 0 and 1 in one class, 2 and 3 in the other
CLEAR = bnp.Corpus.from_ids(
    [[0, 1, 0, 1, 4], [2, 3, 3, 2, 4]] * 6, num_words=5, labels=["good", "bad"] * 6
)
NEW = bnp.Corpus.from_ids(
    [[0, 1, 1, 4], [3, 2, 2, 4], [1, 0], [3, 3]], num_words=5, labels=["good", "bad"] * 2
)


@pytest.fixture(scope="module")
def fitted():
    return bnp.fit(
        bnp.MedLDA(2, c=2.0, eta_variance=25.0), CLEAR, num_warmup=60, num_samples=20,
        num_chains=2, keep_states=10, progress=False,
    )  # fmt: skip


class TestFit:
    def test_names(self, fitted):
        assert fitted.posterior["eta"].dims == ("chain", "draw", "topic")
        constant = arviz_data.group(fitted.data, "constant_data")
        assert constant["doc_label"].values.tolist() == [1, 0] * 6

    def test_classes(self, fitted):
        assert fitted.predict(NEW).tolist() == ["good", "bad"] * 2
        assert fitted.score(NEW) == 1.0
        shares = fitted.predictions(NEW)
        assert ((shares.by_state >= 0) & (shares.by_state <= 1)).all()
        assert shares.mean[0] > 0.9 > 0.1 > shares.mean[1]
        plug_in = fitted.predict(NEW, approximation="plug-in")
        assert plug_in.tolist() == ["good", "bad"] * 2

    def test_there_are_no_probabilities(self, fitted):
        for method in (fitted.predict_proba, fitted.calibration, fitted.plot_calibration):
            with pytest.raises(ValueError, match=r"MedLDA has no probabilities of labels: predict"):
                method(NEW)

    def test_weights_of_topics(self, fitted):
        assert "weight" in fitted.topic_weights().columns


@pytest.fixture(scope="module")
def expected():
    return bnp.fit(
        bnp.MedLDA(2, c=2.0, eta_variance=25.0), CLEAR, num_warmup=40, num_samples=20, num_chains=2,
        keep_states=4, progress=False, approximation="expected",
    )  # fmt: skip


class TestApproximation:
    def test_the_fit_says_so(self, expected):
        assert json.loads(expected.data.attrs["options"])["approximation"] == "expected"

    def test_classes(self, expected):
        assert expected.predict(NEW).tolist() == ["good", "bad"] * 2

    def test_the_weights_change_every_ten_sweeps(self, expected):
        eta = expected.posterior["eta"].to_numpy()  # the first draw is that of sweep 41
        changed = (np.diff(eta, axis=1) != 0).any(axis=2)
        assert np.nonzero(changed.any(axis=0))[0].tolist() == [8, 18]
        gap = arviz_data.group(expected.data, "sample_stats")["duality_gap"]
        assert ((gap >= 0) & (gap < 1e-3)).all()


@pytest.mark.slow
def test_command(tmp_path):
    (tmp_path / "reviews.csv").write_text(
        "text,opinion\n" + "good fine nice day,p\nbad poor sad day,n\n" * 4
    )
    run = tmp_path / "run"
    assert cli.main([
        "fit", "MedLDA", str(tmp_path / "reviews.csv"), "--read", "label=opinion",
        "--num-topics", "2", "--ell", "4", "--sampler", "elliptical", "--num-warmup", "2",
        "--num-samples", "4", "--num-chains", "2", "--output", str(run), "--no-progress",
    ]) == 0  # fmt: skip
    assert load_run(run).model == bnp.MedLDA(2, ell=4.0)
