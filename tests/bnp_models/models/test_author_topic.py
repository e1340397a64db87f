"""The author-topic models as users meet them: contract, fits, names, bad data, new documents.

What both models share is tested on both here.
"""

import dataclasses

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.posterior import arviz_data
from bnp_models.scores.held_out import known_authors

# dan is in the list of authors, but wrote nothing
pytestmark = pytest.mark.filterwarnings("ignore:1 of 4 authors have no document:UserWarning")

SIZES = {"num_warmup": 2, "num_samples": 4, "num_chains": 2, "progress": False}
WRITERS = [["ann", "bob"], ["bob"], ["cat", "ann", "bob"], ["cat"]]
# with as many slots as `test_after_growth` ends with, so that these are compiled once
MODELS = [
    bnp.AuthorTopicModel(3, alpha=dist.Gamma(1.0, 1.0)),
    bnp.NonparametricAuthorTopicModel(beta=0.5, max_topics=48),
]


def make_corpus(seed=0, lengths=(8, 0, 5, 11)):
    rng = np.random.default_rng(seed)
    docs = [rng.integers(0, 5, n).tolist() for n in lengths]
    return bnp.Corpus.from_ids(
        docs, vocabulary=list("vwxyz"), doc_names=list("klmn"), authors=WRITERS,
        author_names=["ann", "bob", "cat", "dan"],
    )  # fmt: skip


CORPUS = make_corpus()


PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.AuthorTopicModel,
    configurations=(
        bnp.AuthorTopicModel(3, alpha=dist.Gamma(np.ones(3), 2.0), beta=PRIOR),
        bnp.AuthorTopicModel(3),
        bnp.AuthorTopicModel(4),
        bnp.AuthorTopicModel(3, alpha=(0.1, 0.2, 0.3), beta=0.1),
        bnp.AuthorTopicModel(3, alpha=PRIOR),
    ),
    data=CORPUS,
    sites={
        "alpha": (3,), "beta": (), "phi": (3, 5), "theta": (4, 3), "place": (24,), "z": (24,),
        "w": (24,),
    },
    dims={
        "alpha": ("topic",), "z": ("token",), "x": ("token",), "phi": ("topic", "word"),
        "theta": ("author", "topic"), "topic_tokens": ("topic",), "author_tokens": ("author",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": -1.0}, "alpha must be positive"),
        ({"num_topics": 2, "alpha": (1.0,)}, "alpha must be a number or 2 numbers"),
        ({"num_topics": 2, "beta": 0}, "beta must be positive"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3"),
        ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
        ({"record": ("tables",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no authors"),
    ],
    no_update={"num_topics": 2, "beta": dist.LogNormal(0.0, 1.0)},
)  # fmt: skip


@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def found(request):
    model = request.param
    options = {} if model.slots is None else {"init_topics": 3}
    return bnp.fit(model, CORPUS, record=model.recordable, **SIZES, **options)


@pytest.mark.optimised
@pytest.mark.slow
class TestFit:
    def test_names(self, found):
        posterior = arviz_data.group(found.data, "posterior")
        assert posterior["x"].dims == ("chain", "draw", "token")
        assert posterior["theta"].dims == ("chain", "draw", "author", "topic")
        assert posterior["author_tokens"].dims == ("chain", "draw", "author")
        assert list(posterior["author"].values) == ["ann", "bob", "cat", "dan"]
        assert list(posterior["word"].values) == list("vwxyz")
        constant = arviz_data.group(found.data, "constant_data")
        assert constant["link_author"].values.tolist() == [0, 1, 1, 2, 0, 1, 2]
        assert constant["link_doc"].values.tolist() == [0, 0, 1, 2, 2, 2, 3]

    def test_draws(self, found):
        posterior = arviz_data.group(found.data, "posterior")
        x, z = posterior["x"].values, posterior["z"].values
        doc = np.asarray(CORPUS.doc)
        for d, names in enumerate(WRITERS):
            ids = [CORPUS.author_names.index(name) for name in names]
            assert np.isin(x[..., doc == d], ids).all()
        assert x.dtype == found.states["x"].dtype == z.dtype == np.uint8
        for author in range(4):
            tokens = posterior["author_tokens"].values[..., author]
            np.testing.assert_array_equal(tokens, (x == author).sum(-1))
        topics = posterior["topic_tokens"].values
        for k in range(topics.shape[-1]):
            np.testing.assert_array_equal(topics[..., k], (z == k).sum(-1))
        total = posterior["theta"].values.sum(-1)
        assert (total <= 1 + 1e-5).all()
        if found.model.slots is None:
            np.testing.assert_allclose(total, 1.0, rtol=1e-5)
            mean = arviz_data.group(found.data, "posterior_mean")
            assert mean["theta_mean"].dims == ("chain", "draw", "author", "topic")
            np.testing.assert_allclose(mean["theta_mean"].values.sum(-1), 1.0, rtol=1e-5)

    def test_tables(self, found):
        assert len(found.topics()) >= 1
        assert len(found.documents()) == 4

    def test_known_authors(self, found):
        new = make_corpus(seed=1, lengths=(3, 2, 4, 1))
        score = found.known_authors(new)
        total = np.zeros(new.num_tokens)
        mixtures = list(found.author_mixtures())
        for state in mixtures:
            for t, (d, v) in enumerate(zip(new.doc, new.word, strict=True)):
                writers = [CORPUS.author_names.index(name) for name in WRITERS[d]]
                theta = state.theta[writers].mean(0)
                total[t] += theta @ state.mixture.phi[0, 0, v] / len(mixtures)
        np.testing.assert_allclose(score.log_prob, np.log(total).mean(), rtol=1e-5)
        # an author without documents has the prior's mixture
        weights = mixtures[0].mixture.weights[0, 0]
        np.testing.assert_allclose(mixtures[0].theta[3], weights / weights.sum(), rtol=1e-5)
        other = dataclasses.replace(new.names, author_names=("ann", "bob", "cat", "eve"))
        with pytest.raises(ValueError, match="corpus has other authors than the model"):
            known_authors(iter(mixtures), dataclasses.replace(new, names=other))


def through_mcmc(kernel):
    mcmc = MCMC(
        kernel, num_warmup=2, num_samples=4, num_chains=2, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip
    mcmc.run(jax.random.key(0), CORPUS)
    return {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}


@pytest.mark.optimised
@pytest.mark.slow
class TestSameDraws:
    def test_of_mcmc(self, found):
        options = {"record": ("z", "x")}
        if found.model.slots is not None:
            options["init_topics"] = 3
        expected = through_mcmc(found.model.gibbs(**options))
        posterior = arviz_data.group(found.data, "posterior")
        for name in ("z", "x", "alpha", "num_topics_used"):
            np.testing.assert_array_equal(posterior[name].values, expected[name], err_msg=name)

    def test_after_growth(self, found):
        if found.model.slots is None:
            pytest.skip("a finite model does not grow")
        model = dataclasses.replace(found.model, max_topics=3)
        options = {"init_topics": 3, "record": found.model.recordable}
        small = bnp.fit(model, CORPUS, **SIZES, **options)
        one, two = (arviz_data.group(fit.data, "posterior") for fit in (small, found))
        for name in ("z", "x", "alpha", "gamma"):
            np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=name)

    @pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
    def test_on_two_devices(self):
        sizes = {**SIZES, "num_chains": 1}
        fits = [
            bnp.fit(bnp.AuthorTopicModel(3), CORPUS, record=("z", "x"), devices=devices, **sizes)
            for devices in (jax.local_devices()[:1], jax.local_devices()[:2])
        ]
        one, two = (arviz_data.group(fit.data, "posterior") for fit in fits)
        for name in ("z", "x"):
            np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=name)


def test_author_without_documents():
    with pytest.warns(UserWarning, match="1 of 4 authors have no document, .* 'dan': their topic"):
        MODELS[0].gibbs().sampler().prepare(CORPUS)


class TestBadData:
    @pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
    def test_no_authors(self, tiny, model):
        with pytest.raises(ValueError, match="data has no authors: give every document"):
            bnp.fit(model, tiny, **SIZES)

    def test_nobody(self):
        ptr = np.array([0, 2, 3, 3, 4], np.int32)
        nobody = dataclasses.replace(
            CORPUS, author_ptr=ptr, author_idx=CORPUS.author_idx[[0, 1, 2, 6]]
        )
        with pytest.raises(ValueError, match="document 'm' has tokens, but no author"):
            bnp.fit(MODELS[0], nobody, **SIZES)


def test_collapsed_density_is_that_of_the_kernel():
    """On the corpus that is enumerated."""
    signed = bnp.Corpus.from_ids([[0, 0, 1], [1, 2, 2]], 3, authors=[["a", "b"], ["b"]])
    model = bnp.AuthorTopicModel(3, alpha=dist.Gamma(2.0, 2.0), beta=PRIOR)
    sampler = model.gibbs().sampler()
    data = sampler.prepare(signed)
    state = jax.jit(lambda key: sampler.init(key, data, signed))(jax.random.key(0))
    values = {"x": state.x, "z": state.z, "alpha": state.alpha[0], "beta": state.beta}
    found = jax.jit(lambda values: log_density(model.collapsed, (signed,), {}, values)[0])(values)
    np.testing.assert_allclose(found, jax.jit(sampler.log_density)(state, data), rtol=1e-5)
