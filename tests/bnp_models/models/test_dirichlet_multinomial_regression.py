"""LDA with covariates as users meet it: the contract, columns, effects, new documents."""

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro.infer import Predictive
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing

DOCS = [[0, 1, 0, 3], [], [2, 1, 1]]
YEARS = [1990, 2000, 2010]
CORPUS = bnp.Corpus.from_ids(DOCS, num_words=5, covariates={"year": YEARS})
PRIOR = dist.Gamma(2.0, 4.0)
Model = bnp.DirichletMultinomialRegression
CONTRACT = testing.Contract(
    model=Model,
    configurations=(
        Model(3, "~ year", coefficient_variance=dist.InverseGamma(2.0, 1.0), beta=PRIOR),
        Model(3),
        Model(3, "~ year"),
        Model(4),
        Model(3, coefficient_variance=1.0),
        Model(3, coefficient_variance=1.0, intercept_variance=2.0),
        Model(3, beta=dist.Exponential(2.0)),
    ),
    data=CORPUS,
    sites={
        "coefficient_variance": (), "beta": (), "coefficients": (2, 3), "phi": (3, 5),
        "theta": (3, 3), "z": (7,), "w": (7,),
    },
    dims={
        "coefficient_variance": (), "beta": (), "coefficients": ("term", "topic"),
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "formula": ""}, "formula must be"),
        ({"num_topics": 2, "coefficient_variance": 0}, "coefficient_variance must be positive"),
        ({"num_topics": 2, "intercept_variance": -1.0}, "intercept_variance must be"),
        ({"num_topics": 2, "beta": (1.0, 1.0)}, "beta must be a positive number"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3, got 4"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids(DOCS, num_words=5), "data has no covariates"),
        (
            bnp.Corpus.from_ids(DOCS, num_words=5, covariates={"year": [1, None, 2]}),
            "covariates must have a value for every document, 1 documents miss one, such as '1'",
        ),
    ],
    no_update={"num_topics": 2, "coefficient_variance": PRIOR},
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


@pytest.mark.parametrize("given", [(), ("coefficients", "coefficient_variance")], ids=len)
def test_collapsed_density_is_that_of_the_kernel(given):
    """Also where another block samples the coefficients, without their prior."""
    model = Model(3, beta=PRIOR)
    sampler = model.gibbs().sampler(given)
    data = sampler.prepare(CORPUS)
    state = jax.jit(lambda key: sampler.init(key, data, CORPUS))(jax.random.key(0))
    noise = jax.random.normal(jax.random.key(1), state.coefficients.shape)
    state = state._replace(coefficients=state.coefficients + noise)
    fixed = {"coefficients": state.coefficients}
    values = {"z": state.z, "beta": state.beta}
    if not given:
        values |= fixed | {"coefficient_variance": state.coefficient_variance}
    density = jax.jit(
        lambda values: log_density(model.collapsed, (CORPUS,), fixed if given else {}, values)[0]
    )
    found = density(values)
    np.testing.assert_allclose(found, jax.jit(sampler.log_density)(state, data), rtol=1e-5)


# ---- documents whose topics depend on a number and on a level

EFFECT = 1.2


def planted(num_docs=150, seed=0):
    """Return documents of two topics; the log odds of the second one are `EFFECT` times x."""
    rng = np.random.default_rng(seed)
    x, side = rng.normal(size=num_docs), rng.choice(["left", "right"], num_docs)
    shift = EFFECT * x + np.where(side == "right", 1.0, 0.0)
    alpha = np.stack([np.ones(num_docs), np.exp(shift)], axis=1)
    theta = np.stack([rng.dirichlet(a) for a in alpha])
    second = [rng.random(30) < share for share in theta[:, 1]]
    words = [np.where(s, rng.integers(5, 10, 30), rng.integers(0, 5, 30)) for s in second]
    vocabulary = [f"word{v}" for v in range(10)]
    texts = [" ".join(vocabulary[v] for v in doc) for doc in words]
    return bnp.Corpus.from_texts(texts, covariates={"x": x, "side": side}, keep_texts=False)


@pytest.fixture(scope="module")
def fit():
    return bnp.fit(
        Model(2, "~ x + side"), planted(), num_warmup=100, num_samples=100, num_chains=2, seed=1,
        keep_states=20, progress=False,
    )  # fmt: skip


def second_topic(fit):
    """Return the number of the topic with words 5 to 9."""
    return int(np.argmax([" word7" in f" {words}" for words in fit.topics()["words"]]))


def rows_of(table, topic):
    return table[table["topic"] == topic].set_index("term")


@pytest.mark.slow
class TestFit:
    def test_effects_are_those_that_were_planted(self, fit):
        table = fit.effects()
        second = second_topic(fit)
        ours, theirs = rows_of(table, second), rows_of(table, 1 - second)
        for term, true in (("x", EFFECT), ("side[right]", 1.0)):
            assert abs(ours["coefficient"][term] - theirs["coefficient"][term] - true) < 0.45
            assert ours["predicted_lower"][term] > 0
            assert abs(ours["predicted"][term] - ours["effect"][term]) < 0.05
        shares = [rows["predicted"]["intercept"] for rows in (ours, theirs)]
        np.testing.assert_allclose(sum(shares), 1)

    def test_other_formulas_have_the_regression_alone(self, fit):
        assert "coefficient" not in fit.effects("~ x")
        other = {"x": np.arange(150.0), "side": ["left", "right"] * 75}
        assert "coefficient" not in fit.effects("~ x + side", other)

    def test_predicted_shares(self, fit):
        asked = {"x": [-2.0, 2.0], "side": ["left", "left"]}
        table = fit.predicted_shares(asked, topics=[second_topic(fit)])
        low, high = table["share"]
        expected = 1 / (1 + np.exp([2 * EFFECT, -2 * EFFECT]))
        np.testing.assert_allclose([low, high], expected, atol=0.1)
        assert list(table["x"]) == [-2.0, 2.0]
        whole = fit.predicted_shares(asked)
        np.testing.assert_allclose(whole.groupby("x")["share"].sum(), 1)
        with pytest.raises(ValueError, match="'side' is missing: give all of them"):
            fit.predicted_shares({"x": [0.0]})
        with pytest.raises(ValueError, match=r"'side' of covariates must be among the levels"):
            fit.predicted_shares({"x": [0.0], "side": ["middle"]})

    def test_new_documents_need_their_covariates(self, fit):
        second, texts = second_topic(fit), ["word1 word7", "word1 word7"]
        given = {"x": [-2.0, 2.0], "side": ["left", "right"]}
        found = fit.transform(texts, covariates=given)
        assert found[second].iloc[1] - found[second].iloc[0] > 0.4
        as_corpus = fit.dataset.read_texts(texts, covariates=given)
        pd.testing.assert_frame_equal(fit.transform(as_corpus), found)
        with pytest.raises(ValueError, match="but 'x' is missing: make it with covariates="):
            fit.transform(texts)
        with pytest.raises(ValueError, match="covariates must be left out"):
            fit.transform(as_corpus, covariates=given)
        with pytest.warns(UserWarning, match="2 of 2 texts have no word"):
            unread = fit.transform(["a", "b"], covariates=given)
        prior = fit.predicted_shares(given, topics=[second])["share"]
        np.testing.assert_allclose(unread[second], prior, atol=0.02)

    def test_scores_use_the_covariates_of_each_document(self, fit):
        new = planted(40, seed=5)
        new = new.with_vocabulary(fit.dataset.vocabulary)
        right = fit.document_completion(new)
        docs = np.split(np.asarray(new.word), np.cumsum(np.asarray(new.doc_length))[:-1])
        moved = new.covariates.assign(x=-new.covariates["x"])
        other = bnp.Corpus.from_ids(docs, vocabulary=new.vocabulary, covariates=moved)
        wrong = fit.document_completion(other.with_vocabulary(fit.dataset.vocabulary))
        assert right.log_prob > wrong.log_prob
        short = new.select(np.arange(3))
        exact, drawn = fit.left_to_right(short), fit.empirical_likelihood(short, num_draws=20_000)
        assert abs(exact.log_prob - drawn.log_prob) < 0.05

    def test_saved_model(self, fit, tmp_path):
        saved = bnp.load(fit.save_model(tmp_path / "topics.npz"))
        given = {"x": [-2.0, 2.0], "side": ["left", "right"]}
        ours, theirs = (f.transform(["word1", "word7"], covariates=given) for f in (fit, saved))
        pd.testing.assert_frame_equal(ours, theirs)

    def test_predictive_draws(self, fit):
        replicated = fit.posterior_predictive()["posterior_predictive"]["w"]
        assert replicated.shape[-1] == fit.dataset.num_tokens
        assert np.isfinite(fit.log_likelihood()["log_likelihood"]["w"].to_numpy()).all()


class TestColumns:
    def test_scaled_and_back(self):
        columns = Model(2).columns(CORPUS)
        assert columns.terms == ("intercept", "year")
        np.testing.assert_allclose(columns.matrix.mean(axis=0), [1, 0], atol=1e-6)
        np.testing.assert_allclose(columns.matrix[:, 1].std(), 1, rtol=1e-5)
        ours = columns.matrix @ np.array([0.5, 2.0])
        a, b = columns.to_units @ np.array([0.5, 2.0])
        np.testing.assert_allclose(a + b * (np.array(YEARS) - 2000), ours, rtol=1e-5)

    def test_new_documents_are_placed_among_those_that_were_fitted(self):
        model = Model(2)
        columns = model.columns(CORPUS)
        new = bnp.Corpus.from_ids([[0], [1]], num_words=5, covariates={"year": [2010, 2020]})
        found = model.columns_of(CORPUS)(new, "corpus")
        np.testing.assert_allclose(found[0], columns.matrix[2], rtol=1e-6)
        np.testing.assert_allclose(found[1, 1], 2 * columns.matrix[2, 1], rtol=1e-5)

    def test_without_an_intercept_columns_are_scaled_only(self):
        columns = Model(2, "~ 0 + year").columns(CORPUS)
        assert columns.terms == ("year",)
        np.testing.assert_allclose(columns.matrix[:, 0] * np.std(YEARS), YEARS, rtol=1e-6)

    def test_other_covariates_are_other_columns(self):
        """JAX must not reuse a program that has the covariates of another corpus."""
        model, key = Model(2, coefficient_variance=1.0, intercept_variance=1e-4), jax.random.key(0)
        other = bnp.Corpus.from_ids(DOCS, num_words=5, covariates={"year": [1, 0, 9]})
        assert CORPUS.names.digest == other.names.digest
        assert CORPUS.names != other.names
        draw = jax.jit(lambda corpus: Predictive(model, num_samples=1)(key, corpus)["theta"])
        ours, theirs = (np.asarray(draw(corpus)) for corpus in (CORPUS, other))
        assert not np.allclose(ours, theirs)
