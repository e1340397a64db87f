"""Documents of a chain divided over two devices: every model draws as on one device."""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import bnp_models as bnp
from bnp_models import testing
from bnp_models.base.token_model import TokenModel
from bnp_models.base.topic_model import RootedTopics
from bnp_models.run.runner import Runner, make_mesh

pytestmark = pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
PRIOR = dist.Gamma(2.0, 2.0)


def make_corpus():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 15, 17)
    docs = [rng.integers(0, 12, n).tolist() for n in lengths]
    number = np.arange(17)
    return bnp.Corpus.from_ids(
        docs, num_words=12, groups=[list("abc")[i % 3] for i in number],
        authors=[[list("wxyz")[(i + j) % 4] for j in range(1 + i % 3)] for i in number],
        labels=[["no", "yes"][i % 2] for i in number], covariates={"year": number % 5},
    )  # fmt: skip


def make_counts():
    corpus = make_corpus()
    docs = np.split(np.asarray(corpus.word), np.cumsum(corpus.doc_length)[:-1])
    return bnp.Corpus.from_ids([d.tolist() for d in docs], num_words=12, labels=list(range(17)))


CONTRACTS = testing.find(Path(__file__).parents[1] / "models", bnp.MODELS, "CONTRACT")
DIVIDED = [n for n, x in bnp.MODELS.items() if issubclass(x, TokenModel) and x.can_divide_documents]


def of_contract(name):
    model = CONTRACTS[name].configurations[0]  # has a prior for every hyperparameter
    capacity = model.terms.capacity
    roomy = {capacity: 80} if hasattr(model, capacity) else {}
    return dataclasses.replace(model, **roomy)


def schedule_of(name):
    """Return "mixed" where it has sweeps in parallel, among others."""
    return "mixed" if "parallel" in bnp.MODELS[name].schedules.get("mixed", ()) else "parallel"


CASES = {name: (of_contract(name), {"schedule": schedule_of(name)}) for name in DIVIDED} | {
    "DifferentialTopicModel, optimised": (
        bnp.DifferentialTopicModel(4), {"optimise": ("alpha", "beta")},
    ),
    "SupervisedLDA, binary": (bnp.SupervisedLDA(4, alpha=PRIOR, beta=PRIOR), {}),
    "SupervisedLDA, elliptical": (bnp.SupervisedLDA(4), {"sampler": "elliptical"}),
    "SupervisedLDA, augmented": (bnp.SupervisedLDA(4), {"sampler": "augmented"}),
    "SupervisedLDA, one class against the rest": (bnp.SupervisedLDA(4, response="one-vs-rest"), {}),
    "MedLDA, elliptical": (bnp.MedLDA(4), {"sampler": "elliptical"}),
    "MedLDA, expected": (bnp.MedLDA(4), {"approximation": "expected"}),
}  # fmt: skip


def test_every_model_that_divides_its_documents_is_here():
    assert {name.partition(",")[0] for name in CASES} == set(DIVIDED)


def fit(name, num_devices, **options):
    model, own = CASES[name]
    is_count = getattr(model, "response", None) == "count"
    corpus = make_counts() if is_count else make_corpus()
    return bnp.fit(
        model, corpus, devices=jax.local_devices()[:num_devices], num_chains=1, num_warmup=2,
        num_samples=22 if isinstance(model, RootedTopics) else 6,  # until splits and merges
        keep_states=2, seed=3, progress=False, record=("z", "theta"),
        **{"schedule": "parallel", **own, **options},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [x if x == "LDA" else pytest.param(x, marks=pytest.mark.slow) for x in CASES]
)
def test_draws_do_not_depend_on_the_number_of_devices(name):
    one, two = fit(name, 1), fit(name, 2)
    np.testing.assert_array_equal(one.data.posterior["z"], two.data.posterior["z"])
    for group in ("posterior", "sample_stats", "states"):
        for variable, x in one.data[group].data_vars.items():
            np.testing.assert_allclose(
                two.data[group][variable], x, rtol=2e-3, atol=1e-4, err_msg=variable
            )


def runner(model, num_devices, schedule="parallel"):
    mesh = make_mesh(jax.local_devices()[:num_devices], 1, num_devices)
    kernel = model.gibbs(schedule=schedule, record=("topic_tokens",))
    return Runner(kernel, make_corpus(), 2, 4, 1, mesh)


def test_a_device_has_its_documents_alone():
    two = runner(bnp.LDA(4), 2)
    state = two.init(jax.random.split(jax.random.key(0), 1))
    num_places = int(np.diff(two.data.shards.token_bounds).max())
    corpus = make_corpus()
    for x, whole in (
        (state.chain.z, corpus.num_tokens), (state.chain.doc_topic, corpus.num_docs),
        (two.data.word, corpus.num_tokens), (two.data.lanes.word, 2 * corpus.num_tokens),
    ):  # fmt: skip
        (share,) = {shard.data.size for shard in x.addressable_shards}
        assert share < 0.7 * whole * (x.shape[-1] if x is state.chain.doc_topic else 1)
    assert {shard.data.shape[-1] for shard in state.chain.z.addressable_shards} == {num_places}
    assert all(s.data.shape == (1, 12, 4) for s in state.chain.word_topic.addressable_shards)


@pytest.mark.slow
@pytest.mark.parametrize("model", [bnp.LDA(4), bnp.HDPLDA(max_topics=1)], ids=["finite", "growing"])
def test_a_run_goes_on_with_another_number_of_devices(model):
    keys = jax.random.split(jax.random.key(1), 1)
    one, two = runner(model, 1), runner(model, 2)
    expected = one.stretch(one.init(keys), 5).state
    halfway = two.stretch(two.init(keys), 2).state
    whole = jax.tree.map(np.asarray, two.whole(halfway)._replace(rng_key=None))
    kept = whole._replace(rng_key=halfway.rng_key)
    assert kept.chain.z.shape == (1, make_corpus().num_tokens)
    for other in (one, two):
        end = other.whole(other.stretch(other.place(kept), 3).state)
        np.testing.assert_array_equal(end.chain.z, expected.chain.z)
    shapes = jax.tree.map(np.shape, two.template(keys).chain)
    equal = functools.partial(jax.tree.map, lambda a, b: a == b)
    if isinstance(model, bnp.LDA):
        assert all(jax.tree.leaves(equal(shapes, jax.tree.map(np.shape, kept.chain))))
