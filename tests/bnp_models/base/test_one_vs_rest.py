"""One model for each class: each is updated as the model of two classes, whatever the devices."""

from functools import partial
from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

import bnp_models as bnp
from bnp_kernels.random.bits import split
from bnp_models.base.labelled_model import LP_OF_CLASS, against_rest

NUM_WORDS, NUM_CLASSES = 6, 3
RNG = np.random.default_rng(0)
CORPUS = bnp.Corpus.from_ids(
    [RNG.integers(0, NUM_WORDS, 3 + d % 4).tolist() for d in range(9)],
    num_words=NUM_WORDS, labels=[["art", "law", "sport"][d % 3] for d in range(9)],
)  # fmt: skip
PRIOR = dist.Gamma(2.0, 4.0)
MODELS = {
    "logistic": bnp.SupervisedLDA(2, c=4.0, alpha=PRIOR, beta=PRIOR, response="one-vs-rest"),
    "hinge": bnp.MedLDA(2, c=2.0, alpha=PRIOR, beta=PRIOR, response="one-vs-rest"),
}


def compiled_step(sampler):
    """Return a function of key, state and data: one sweep, and what is recorded after it."""

    @jax.jit
    def step(rng_key, state, data):
        after, _ = sampler.step(rng_key, state, data, 0, None)
        return after, sampler.draws(rng_key, after, data)

    return step


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("name", MODELS)
def test_each_class_is_updated_as_in_a_model_of_two_classes(name, schedule):
    """The law of the model of two classes is tested elsewhere, so here its draws are compared."""
    model = MODELS[name]
    sampler = model.gibbs(schedule=schedule).sampler()
    alone = model.for_class().gibbs(schedule=schedule).sampler()
    data = sampler.prepare(CORPUS)
    step, step_alone = (compiled_step(of) for of in (sampler, alone))
    log_density_alone = jax.jit(alone.log_density)
    key = jax.random.key(1)
    first = jax.jit(lambda key, data: sampler.init(key, data, CORPUS))(jax.random.key(0), data)
    after, draws = step(key, first, data)
    lp = draws[LP_OF_CLASS]
    np.testing.assert_allclose(jax.jit(sampler.log_density)(after, data), lp.sum(), rtol=1e-6)
    for i, own_key in enumerate(split(key, NUM_CLASSES)):
        own_data = alone.prepare(against_rest(CORPUS, i))
        np.testing.assert_array_equal(own_data.label, data.label[i])
        begun, ended = (jax.tree.map(itemgetter(i), state) for state in (first, after))
        own, _ = step_alone(own_key, begun, own_data)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), own, ended)
        np.testing.assert_allclose(lp[i], log_density_alone(own, own_data), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_program_is_that_of_each_class(name):
    model = MODELS[name]
    values = {
        "alpha": 0.3, "beta": 0.2, "phi": jnp.full((2, NUM_WORDS), 1 / NUM_WORDS),
        "theta": jnp.full((9, 2), 0.5), "z": jnp.arange(CORPUS.num_tokens) % 2,
    }  # fmt: skip
    etas = jax.random.normal(jax.random.key(0), (NUM_CLASSES, 2))
    scoped, total = {}, 0.0
    for i, label in enumerate(CORPUS.label_names):
        own = values | {"eta": etas[i]}
        total += log_density(model.for_class(), (against_rest(CORPUS, i),), {}, own)[0]
        scoped |= {f"{label}/{site}": value for site, value in own.items()}
    np.testing.assert_allclose(log_density(model, (CORPUS,), {}, scoped)[0], total, rtol=1e-6)


def test_the_program_refuses_a_traced_corpus():
    with pytest.raises(ValueError, match="must not be traced by JAX with response='one-vs-rest'"):
        jax.jit(lambda corpus: log_density(MODELS["logistic"], (corpus,), {}, {})[0])(CORPUS)


@pytest.mark.slow
@pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_classes_are_shared_between_devices(schedule):
    """Three classes on two devices: one of the devices repeats a class."""
    options = {"num_warmup": 2, "num_samples": 4, "num_chains": 1, "progress": False}
    one, two = (
        bnp.fit(
            MODELS["logistic"], CORPUS, schedule=schedule, record=("z",),
            devices=jax.local_devices()[:n], **options,
        )
        for n in (1, 2)
    )  # fmt: skip
    np.testing.assert_array_equal(one.posterior["z"], two.posterior["z"])
    for variable in ("eta", "alpha", LP_OF_CLASS):
        np.testing.assert_allclose(one.posterior[variable], two.posterior[variable], rtol=1e-5)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1, 2], "labels must be names or whole numbers .* got 0.5 for document '0'"),
        (["a", "a", "a"], "two classes or more .* got one class only, 'a'"),
        (None, "data has no labels"),
    ],
)
def test_labels_that_are_no_classes(labels, message):
    corpus = bnp.Corpus.from_ids([[0], [1], [0]], num_words=2, labels=labels)
    with pytest.raises(ValueError, match=message):
        MODELS["logistic"].gibbs().init(jax.random.key(0), 0, None, (corpus,), {})


def test_numbers_are_classes():
    corpus = bnp.Corpus.from_ids([[0], [1], [0]], num_words=2, labels=[7, 3, 7])
    model = MODELS["logistic"]
    assert model.classes(corpus) == ("3", "7")
    assert model.responses(corpus).tolist() == [1, 0, 1]
