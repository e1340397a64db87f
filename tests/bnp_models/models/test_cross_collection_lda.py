"""Cross-collection LDA as users meet it."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_models import testing
from bnp_models.base import topic_model
from bnp_models.models import cross_collection_lda
from bnp_models.posterior import arviz_data
from bnp_models.scores import held_out

CORPUS = bnp.Corpus.from_ids(
    [[0, 1, 0, 3], [], [2, 1, 1]], num_words=5, groups=["a", "b", "b"]
)  # fmt: skip
PRIOR = dist.Gamma(2.0, 4.0)


def alone(groups):
    return bnp.Corpus.from_ids([[0, 1], [2]], num_words=3, groups=groups)


CONTRACT = testing.Contract(
    model=bnp.CrossCollectionLDA,
    configurations=(
        bnp.CrossCollectionLDA(
            3, alpha=dist.Gamma(np.ones(3), 2.0), beta=PRIOR, group_beta=PRIOR,
            switch_common=dist.Gamma(1.0, 1.0), switch_own=dist.Exponential(2.0),
        ),
        bnp.CrossCollectionLDA(3),
        bnp.CrossCollectionLDA(4),
        bnp.CrossCollectionLDA(3, group_beta=0.1),
        bnp.CrossCollectionLDA(3, switch_common=2.0),
        bnp.CrossCollectionLDA(3, switch_own=2.0),
        bnp.CrossCollectionLDA(3, alpha=PRIOR, switch_own=dist.Exponential(1.0)),
    ),
    data=CORPUS,
    sites={
        "alpha": (3,), "beta": (), "group_beta": (), "switch_common": (), "switch_own": (),
        "phi": (3, 5), "group_phi": (2, 3, 5), "psi": (2, 3), "theta": (3, 3), "z": (7,),
        "switch": (7,), "w": (7,),
    },
    dims={
        "alpha": ("topic",), "z": ("token",), "switch": ("token",), "phi": ("topic", "word"),
        "group_phi": ("group", "topic", "word"), "psi": ("group", "topic"),
        "theta": ("doc", "topic"), "topic_tokens": ("topic",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": (1.0,)}, "alpha must be a number or 2 numbers"),
        ({"num_topics": 2, "beta": 0}, "beta must be positive"),
        ({"num_topics": 2, "group_beta": -1.0}, "group_beta must be positive"),
        ({"num_topics": 2, "group_beta": (1.0, 1.0)}, "group_beta must be a positive number or"),
        ({"num_topics": 2, "switch_common": 0.0}, "switch_common must be positive"),
        ({"num_topics": 2, "switch_own": np.inf}, "switch_own must be positive"),
        ({"num_topics": 2, "switch_own": dist.Gamma(np.ones(2), 1.0)}, "switch_own must have a"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3"),
        ({"num_parallel": 0}, "num_parallel must be an integer of at least 1"),
        ({"record": ("phi_mean",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Corpus.from_ids([[0, 1]], num_words=2), "data has no groups: give every document one"),
        (alone(["a", "a"]), "data has one group, 'a': topics are shared between two groups"),
        (
            bnp.Corpus.from_ids([[0, 1], [], [1]], num_words=2, groups=["a", "b", "c"]),
            "data has no tokens in group 'b': leave the group out",
        ),
    ],
    no_update={"num_topics": 2, "switch_own": dist.LogNormal(0.0, 1.0)},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


# a state that is small enough for hand computation, with document d in group d
SEEN = bnp.Corpus.from_ids([[0, 1, 0], [2, 1]], num_words=3, groups=["a", "b"])
STATE = {
    "z": np.array([0, 1, 0, 0, 1], np.uint8), "switch": np.array([0, 0, 1, 1, 0], np.uint8),
    "alpha": np.float32(0.5), "beta": np.float32(0.5), "group_beta": np.float32(0.25),
    "switch_common": np.float32(2.0), "switch_own": np.float32(1.0),
}  # fmt: skip
COMMON = np.array([[1.5, 0.5, 0.5], [0.5, 2.5, 0.5]]) / [[2.5], [3.5]]
OWN = np.array([[[5, 1, 1], [1, 1, 1]], [[1, 1, 5], [1, 1, 1]]]) / [[[7], [3]], [[7], [3]]]
PSI = np.array([[2 / 5, 1 / 4], [2 / 4, 1 / 4]])[..., None]
PHI = (1 - PSI) * COMMON + PSI * OWN  # [group, topic, word]
THETA = np.array([[2.5, 1.5], [1.5, 1.5]]) / [[4.0], [3.0]]
OF_WORDS = np.einsum("dk,dkv->dv", THETA, PHI)


def test_topics_of_a_kept_state():
    model = bnp.CrossCollectionLDA(2)
    topics = model.topics_of(STATE, SEEN)
    np.testing.assert_allclose(topics.phi, PHI.swapaxes(1, 2), rtol=1e-6)
    np.testing.assert_allclose(topics.weights, [[0.5, 0.5]])
    assert model.row_names(SEEN) == ("a", "b")


def test_law_of_the_words(monkeypatch):
    """At the means of all that is drawn; a word is drawn from the topics of its group."""
    for module in (cross_collection_lda, topic_model):
        mean = lambda rng, x: x / x.sum(1, keepdims=True)  # noqa: E731
        monkeypatch.setattr(module, "draw_dirichlet", mean)
    rng = np.random.default_rng(0)
    law = bnp.CrossCollectionLDA(2).likelihood_given_state(rng, STATE, SEEN)
    log_p = np.log(OF_WORDS[np.asarray(SEEN.doc), np.asarray(SEEN.word)])
    np.testing.assert_allclose(law.log_likelihood(), [log_p[:3].sum(), log_p[3:].sum()])


@pytest.mark.slow
def test_replicated_words():
    """Topics, mixtures and switches are independent given a state, so their means multiply."""
    rng, size = np.random.default_rng(0), 4000
    laws = (bnp.CrossCollectionLDA(2).likelihood_given_state(rng, STATE, SEEN) for _ in range(size))
    words = np.array([law.replicate(rng) for law in laws])
    share = (words[..., None] == np.arange(3)).mean(axis=0)
    expected = OF_WORDS[np.asarray(SEEN.doc)]
    error = np.sqrt(expected * (1 - expected) / size)
    assert (abs(share - expected) < 4.5 * error).all()


def planted():
    """Return documents of two groups with two common topics, to which each group adds words.

    Topic k has the common words 5 k to 5 k + 4. Group g adds the words 10 + 4 g + 2 k and the next.
    """
    rng = np.random.default_rng(0)
    docs = []
    for d in range(40):
        g, k = d % 2, d // 2 % 2
        common, own = 5 * k + rng.integers(0, 5, 40), 10 + 4 * g + 2 * k + rng.integers(0, 2, 40)
        docs.append(np.where(rng.random(40) < 0.4, own, common))
    return bnp.Corpus.from_ids(docs, num_words=18, groups=["left", "right"] * 20)


NEW = bnp.Corpus.from_ids(
    [[0, 1, 10, 11], [0, 1, 10, 11], [0, 1, 14, 15]], num_words=18,
    groups=["left", "right", "right"],
)  # fmt: skip


@pytest.fixture(scope="module")
def found():
    model = bnp.CrossCollectionLDA(
        2, alpha=0.5, beta=dist.Gamma(2.0, 20.0), group_beta=0.1,
        switch_common=1.0, switch_own=dist.Gamma(2.0, 2.0),
    )  # fmt: skip
    return bnp.fit(
        model, planted(), num_warmup=100, num_samples=30, num_chains=2, seed=0, progress=False,
        record=model.recordable,
    )  # fmt: skip


@pytest.mark.optimised
@pytest.mark.slow
class TestFit:
    def test_draws(self, found):
        posterior = arviz_data.group(found.data, "posterior")
        x = {name: posterior[name].to_numpy() for name in posterior.data_vars}
        assert set(x) == {
            "z", "switch", "phi", "group_phi", "psi", "theta", "topic_tokens", "beta",
            "switch_own", "num_topics_used",
        }  # fmt: skip
        assert posterior["group_phi"].dims == ("chain", "draw", "group", "topic", "word")
        assert list(posterior["group"].values) == ["left", "right"]
        for name in ("phi", "group_phi", "theta"):
            np.testing.assert_allclose(x[name].sum(axis=-1), 1.0, rtol=1e-4)
        assert ((x["psi"] > 0) & (x["psi"] < 1)).all()
        assert np.isin(x["switch"], [0, 1]).all()
        assert x["switch"].dtype == found.states["switch"].dtype == np.uint8
        counts = (x["z"][..., None] == np.arange(2)).sum(axis=2)
        np.testing.assert_array_equal(x["topic_tokens"], counts)
        mean = arviz_data.group(found.data, "posterior_mean")
        np.testing.assert_allclose(mean["theta_mean"].to_numpy().sum(-1), 1.0, rtol=1e-5)

    def test_finds_the_topics_of_each_group(self, found):
        """Which topic of one group has a number with which topic of the other is not certain.

        A common word may count as one of the group's own. So its share is between that in the group
        and that in both groups, on average.
        """
        group, doc = np.asarray(found.dataset.group), np.asarray(found.dataset.doc)
        word, topic = np.asarray(found.dataset.word), doc // 2 % 2  # a document has one topic
        common = np.arange(18) < 10
        for g, k in np.ndindex(2, 2):
            of_states = [state.phi[0, g] for state in found.mixtures]  # [word, topic]
            found_as = [phi[5 * k : 5 * k + 5].sum(axis=0).argmax() for phi in of_states]
            mean = np.mean([phi[:, j] for phi, j in zip(of_states, found_as, strict=True)], axis=0)
            written = [np.bincount(word[(topic == k) & (group[doc] == h)], minlength=18)
                       for h in range(2)]  # fmt: skip
            share, both = written[g] / written[g].sum(), sum(written) * common
            pooled = np.where(common, both / both.sum() * share[common].sum(), share)
            assert (mean > np.minimum(share, pooled) - 0.005).all()
            assert (mean < np.maximum(share, pooled) + 0.005).all()

    def test_tables(self, found):
        words = found.topics()["words"]
        assert len(words) == 2
        assert set(found.shared_topics()["kind"]) == {"common"}
        assert "perplexity" in found.evaluate("document_completion", NEW)
        assert np.isfinite(found.empirical_likelihood(NEW, num_draws=100).log_prob)
        assert np.isfinite(found.left_to_right(NEW, num_particles=5).log_prob)
        likelihood = arviz_data.group(found.log_likelihood(10), "log_likelihood")
        assert np.isfinite(likelihood["w"].to_numpy()).all()

    def test_documents_read_the_words_of_their_group(self, found):
        """With nothing observed, the shares of the topics are those of the prior."""
        observed, heldout = (
            bnp.Corpus.from_ids(docs, num_words=18, groups=["left", "right", "left"])
            for docs in ([[], [], [0]], [[10], [10], []])
        )
        score = held_out.document_completion(found.mixtures, observed, heldout)
        expected = np.mean([state.phi[0, :, 10].mean(axis=-1) for state in found.mixtures], axis=0)
        np.testing.assert_allclose(score.doc_log_prob[:2], np.log(expected), rtol=1e-5)
        assert expected[0] > 10 * expected[1]

    def test_document_completion(self, found):
        score = held_out.document_completion(found.mixtures, NEW, NEW)
        left, swapped, right = score.doc_log_prob
        assert left > swapped + 4
        assert right > swapped + 4
        other = bnp.Corpus.from_ids([[0, 1, 2]], num_words=18, groups=["middle"])
        with pytest.raises(ValueError, match="middle"):
            found.document_completion(other)
        none = bnp.Corpus.from_ids([[0, 1, 2]], num_words=18)
        with pytest.raises(ValueError, match="groups"):
            found.document_completion(none)

    def test_alone(self, found):
        assert found.model.alone() == bnp.LDA(2, alpha=0.5, beta=found.model.beta)

    @pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
    def test_on_two_devices(self):
        fits = [
            bnp.fit(
                bnp.CrossCollectionLDA(3, beta=PRIOR, switch_common=PRIOR, switch_own=1.0),
                planted(),
                record=("z", "switch", "psi"), devices=devices, num_warmup=2, num_samples=4,
                num_chains=1, progress=False,
            )
            for devices in (jax.local_devices()[:1], jax.local_devices()[:2])
        ]  # fmt: skip
        one, two = (arviz_data.group(fit.data, "posterior") for fit in fits)
        for name in ("z", "switch", "psi", "beta", "switch_common"):
            np.testing.assert_array_equal(one[name].values, two[name].values, err_msg=name)


@pytest.mark.parametrize("own", [0.5, PRIOR], ids=["fixed", "sampled"])
def test_collapsed_density_is_that_of_the_kernel(own):
    model = bnp.CrossCollectionLDA(
        3, alpha=(0.5, 1.2, 0.1), beta=PRIOR, group_beta=0.7, switch_common=2.0, switch_own=own
    )
    sampler = model.gibbs().sampler()
    data = sampler.prepare(CORPUS)
    state = jax.jit(lambda key: sampler.init(key, data, CORPUS))(jax.random.key(0))
    assert 0 < state.switch.sum() < len(state.switch)
    values = {"z": state.z, "switch": state.switch, "beta": state.beta}
    if own is PRIOR:
        values["switch_own"] = state.switch_own
    found = jax.jit(lambda values: log_density(model.collapsed, (CORPUS,), {}, values)[0])(values)
    np.testing.assert_allclose(found, jax.jit(sampler.log_density)(state, data), rtol=1e-5)


def test_collapsed_program_draws_words_of_all_kinds():
    model = bnp.CrossCollectionLDA(3, beta=0.1, group_beta=2.0)
    seeded = handlers.seed(model.collapsed, jax.random.key(0))
    drawn = handlers.trace(seeded).get_trace(CORPUS, observed=False)
    assert drawn["z"]["value"].shape == drawn["w"]["value"].shape == (7,)
    assert set(np.unique(drawn["switch"]["value"])) <= {0, 1}
    assert 0 <= drawn["w"]["value"].min() <= drawn["w"]["value"].max() < 5
