"""`SupervisedLDA` as users meet it: the contract of all models, labels, names, the command."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.cli import command as cli
from bnp_models.posterior import arviz_data, predictive
from bnp_models.results.folder import load_run

DOCS = [[0, 1, 0, 3], [2, 1, 1], [4, 4], [0, 3]]
CORPUS = bnp.Corpus.from_ids(DOCS, num_words=5, labels=[1, 0, 0, 1], doc_names=list("klmn"))
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.SupervisedLDA,
    configurations=(
        bnp.SupervisedLDA(
            3, alpha=dist.Gamma(np.ones(3), 2.0), beta=PRIOR, response="count", dispersion=PRIOR
        ),
        bnp.SupervisedLDA(3),
        bnp.SupervisedLDA(3, c=2.0),
        bnp.SupervisedLDA(3, eta_variance=2.0),
        bnp.SupervisedLDA(3, response="count"),
        bnp.SupervisedLDA(3, response="one-vs-rest"),
        bnp.SupervisedLDA(3, response="count", dispersion=2.0),
        bnp.SupervisedLDA(3, alpha=(0.1, 0.2, 0.3), beta=0.1),
        bnp.SupervisedLDA(3, alpha=PRIOR),
    ),
    data=CORPUS,
    sites={
        "alpha": (3,), "beta": (), "dispersion": (), "phi": (3, 5), "eta": (3,), "theta": (4, 3),
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
        ({"num_topics": 2, "c": 0}, "c must be a finite number of at least 1e-30 .* got 0"),
        ({"num_topics": 2, "c": PRIOR}, "c must be a finite number .* got .*Gamma"),
        ({"num_topics": 2, "eta_variance": np.inf}, "eta_variance must be a finite number"),
        ({"num_topics": 2, "response": "ordinal"}, "response must be one of"),
        ({"num_topics": 2, "response": "count", "dispersion": 0}, "dispersion must be positive"),
        ({"num_topics": 2, "dispersion": 2.0}, "dispersion must be left out"),
        ({"num_topics": 2, "dispersion": PRIOR}, "dispersion must be left out"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"sampler": "nuts"}, r"must be one of \['augmented', 'elliptical', 'polya-gamma'\]"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3"),
        ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
        ({"record": ("eta",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no labels"),
    ],
    no_update={"num_topics": 2, "alpha": dist.LogNormal(0.0, 1.0)},
    labels=("y",),
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


def corpus_with(labels, docs=DOCS, **options):
    return bnp.Corpus.from_ids(docs, num_words=5, labels=labels, **options)


def responses(labels, response="binary", **options):
    model = bnp.SupervisedLDA(2, response=response)
    return model.responses(corpus_with(labels, **options)).tolist()


def test_binary_labels():
    assert responses([1, 0, 0, 1]) == [1, 0, 0, 1]
    assert responses([1.0, 0.0, 0.0, 1.0]) == [1, 0, 0, 1]
    assert responses([True, False, False, True]) == [1, 0, 0, 1]
    assert responses(["pos", "neg", "neg", "pos"]) == [1, 0, 0, 1]
    assert responses(["neg", "pos", "pos", "neg"], label_names=["pos", "neg"]) == [1, 0, 0, 1]
    # two classes out of a numbering of three
    assert responses([2, 0, 0, 2], label_names=["art", "law", "sport"]) == [1, 0, 0, 1]


def test_counts():
    assert responses([3, 0, 1, 0], "count") == [3, 0, 1, 0]
    assert responses([3.0, 0.0, 1.0, 0.0], "count") == [3, 0, 1, 0]


@pytest.mark.parametrize(
    ("labels", "response", "message"),
    [
        ([1, 1, 1, 1], "binary", "got one class only, '1'"),
        (["a", "a", "a", "a"], "binary", "got one class only, 'a'"),
        (["a", "b", "c", "a"], "binary", r"got 3: \['a', 'b', 'c'\]; give response='one-vs-rest'"),
        ([1, 2, 2, 1], "binary", "numbers 0 and 1 or two names .* got 2 for document '1'"),
        ([0.5, 1, 0, 1], "binary", "numbers 0 and 1 or two names .* got 0.5 for document '0'"),
        (["a", "b", "a", "b"], "count", "whole numbers .* got names"),
        ([1, -2, 0, 1], "count", "got -2 for document '1'"),
        ([1, 2, 0.5, 1], "count", "got 0.5 for document '2'"),
        ([1, 2, 2**25, 1], "count", "from 0 to 16777216"),
    ],
)
def test_labels_of_the_wrong_kind(labels, response, message):
    model = bnp.SupervisedLDA(2, response=response)
    with pytest.raises(ValueError, match=message):
        model.gibbs().init(jax.random.key(0), 0, None, (corpus_with(labels),), {})
    with pytest.raises(ValueError, match=message):
        Predictive(model, num_samples=1)(jax.random.key(0), corpus_with(labels))


def test_documents_without_words():
    corpus = bnp.Corpus.from_ids([[0], []], num_words=1, labels=[0, 1], doc_names=["k", "l"])
    with pytest.raises(ValueError, match=r"1 documents without words, such as 'l'.*select"):
        bnp.SupervisedLDA(2).gibbs().init(jax.random.key(0), 0, None, (corpus,), {})


@pytest.mark.parametrize("response", ["binary", "count"])
def test_program_of_a_traced_corpus(response):
    """With a corpus as an argument of a compiled function, labels are read inside it."""
    names = ["pos", "neg"] if response == "binary" else None
    labels = ["neg", "pos", "pos", "neg"] if response == "binary" else [4, 0, 1, 2]
    corpus = corpus_with(labels, label_names=names)
    model = bnp.SupervisedLDA(2, c=3.0, response=response)
    values = {
        "phi": jnp.full((2, 5), 0.2), "theta": jnp.full((4, 2), 0.5), "eta": jnp.array([1.0, -2.0]),
        "z": jnp.array([0, 1] * 5 + [0]),
    }  # fmt: skip

    def density(corpus):
        return log_density(model, (corpus,), {}, values)[0]

    np.testing.assert_allclose(jax.jit(density)(corpus), density(corpus), rtol=1e-6)


def test_draws_from_the_prior_need_no_labels():
    unlabelled = bnp.Corpus.from_ids(DOCS, num_words=5)
    drawn = predictive.prior_predictive(bnp.SupervisedLDA(2), unlabelled, num_draws=3, record=["y"])
    assert set(np.unique(arviz_data.group(drawn, "prior")["y"])) <= {0, 1}


def test_labels_that_the_program_draws_follow_the_scores():
    unlabelled = bnp.Corpus.from_ids(DOCS, num_words=5)
    model = bnp.SupervisedLDA(3, eta_variance=100.0)
    draw = Predictive(model, num_samples=400, return_sites=["omega", "y"])
    draws = draw(jax.random.key(0), unlabelled, observed=False)
    omega, y = np.asarray(draws["omega"]), np.asarray(draws["y"])
    assert y[omega > 4].mean() > 0.95
    assert y[omega < -4].mean() < 0.05


SIZES = {"num_warmup": 3, "num_samples": 6, "num_chains": 2, "keep_states": 3, "progress": False}


@pytest.fixture(scope="module")
def fitted():
    model = bnp.SupervisedLDA(3, beta=0.1, response="count", dispersion=PRIOR)
    corpus = corpus_with([3, 0, 1, 5], doc_names=list("klmn"))
    return bnp.fit(model, corpus, record=model.recordable, **SIZES)


class TestFit:
    def test_names(self, fitted):
        assert fitted.posterior["eta"].dims == ("chain", "draw", "topic")
        assert fitted.posterior["dispersion"].dims == ("chain", "draw")
        assert (fitted.posterior["eta"].std("draw") > 0).all()
        constant = arviz_data.group(fitted.data, "constant_data")
        assert constant["doc_label"].values.tolist() == [3, 0, 1, 5]
        assert constant["doc_label"].dims == ("doc",)

    def test_kept_states_have_the_parameters(self, fitted):
        """All that a prediction of labels needs."""
        last = fitted.states.isel(draw=-1)
        for name in ("eta", "dispersion", "z", "alpha", "beta"):
            assert name in last
        recorded = fitted.posterior.isel(draw=-1)
        np.testing.assert_array_equal(last["eta"], recorded["eta"])
        np.testing.assert_array_equal(last["dispersion"], recorded["dispersion"])

    def test_results_of_topic_models(self, fitted):
        assert fitted.mixtures[0].phi.shape[-2:] == (5, 3)
        new = bnp.Corpus.from_ids([[0, 1, 3], [2, 4, 4, 0]], num_words=5)
        assert np.isfinite(fitted.document_completion(new).perplexity)
        assert len(fitted.topics()) == 3
        drawn = fitted.posterior_predictive()
        assert arviz_data.group(drawn, "posterior_predictive")["w"].sizes["token"] == 11


@pytest.mark.slow
def test_command(tmp_path):
    (tmp_path / "reviews.csv").write_text(
        "text,opinion\n" + "good fine nice day,p\nbad poor sad day,n\n" * 4
    )
    run = tmp_path / "run"
    assert cli.main([
        "fit", "SupervisedLDA", str(tmp_path / "reviews.csv"), "--read", "label=opinion",
        "--num-topics", "2", "--c", "4", "--sampler", "elliptical", "--num-warmup", "2",
        "--num-samples", "4", "--num-chains", "2", "--output", str(run), "--no-progress",
    ]) == 0  # fmt: skip
    found = load_run(run)
    assert found.posterior["eta"].dims == ("chain", "draw", "topic")
    assert found.model == bnp.SupervisedLDA(2, c=4.0)
