"""PitmanYorLDA as users meet it: the contract of all models, kept states, a full buffer."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_models import testing
from bnp_models.base import pitman_yor
from oracles.pitman_yor_topics import pitman_yor_topics

CORPUS = bnp.Corpus.from_ids([[0, 1, 0, 3], [], [2, 1, 1]], num_words=5)
PRIOR = dist.Gamma(2.0, 4.0)
CONTRACT = testing.Contract(
    model=bnp.PitmanYorLDA,
    configurations=(
        bnp.PitmanYorLDA(
            3, alpha=PRIOR, base="dirichlet", beta=PRIOR, discount=dist.Uniform(0.0, 1.0),
            max_tables=2,
        ),
        bnp.PitmanYorLDA(3),
        bnp.PitmanYorLDA(4),
        bnp.PitmanYorLDA(3, base="dirichlet"),
        bnp.PitmanYorLDA(3, alpha=(0.1, 0.2, 0.3)),
        bnp.PitmanYorLDA(3, discount=0.0),
        bnp.PitmanYorLDA(3, discount=dist.Beta(2.0, 3.0)),
        bnp.PitmanYorLDA(3, concentration=2.0),
        bnp.PitmanYorLDA(3, max_tables=5),
    ),
    data=CORPUS,
    sites={
        "alpha": (), "beta": (), "discount": (), "concentration": (3,), "base": (3, 5),
        "phi": (3, 5), "theta": (3, 3), "z": (7,), "w": (7,),
    },
    dims={
        "z": ("token",), "phi": ("topic", "word"), "theta": ("doc", "topic"),
        "topic_tokens": ("topic",), "topic_tables": ("topic",), "concentration": ("topic",),
        "opens": ("token",),
    },
    refused=[
        ({"num_topics": 0}, "num_topics must be an integer of at least 1, got 0"),
        ({"num_topics": 2, "alpha": -1.0}, "alpha must be positive"),
        ({"num_topics": 2, "base": "flat"}, r"base must be one of \['dirichlet', 'uniform'\]"),
        ({"num_topics": 2, "beta": 0.5}, "beta must be left out with base='uniform', got 0.5"),
        ({"num_topics": 2, "beta": PRIOR}, "beta must be left out with base='uniform'"),
        ({"num_topics": 2, "base": "dirichlet", "beta": 0.0}, "beta must be positive"),
        ({"num_topics": 2, "discount": 1.0}, "discount must be below 1, got 1.0"),
        ({"num_topics": 2, "discount": -0.1}, "discount must be .* at least 0, got -0.1"),
        ({"num_topics": 2, "discount": PRIOR}, r"discount must be a number in \[0, 1\), Uniform"),
        ({"num_topics": 2, "discount": dist.Uniform(0.0, 0.5)}, "discount must be .* got Uniform"),
        ({"num_topics": 2, "concentration": 0.0}, "concentration must be positive"),
        ({"num_topics": 2, "max_tables": 0}, "max_tables must be an integer of at least 1"),
    ],
    options_refused=[
        ({"schedule": "mixed"}, r"schedule must be one of \['parallel', 'sequential'\]"),
        ({"schedule": "sequential", "sampler": "crp"}, "sampler must be one of .* got 'crp'"),
        ({"sampler": "ss"}, "sampler='ss' needs schedule='sequential', got schedule='parallel'"),
        ({"init_topics": 4}, "init_topics must be at most num_topics=3, got 4"),
        ({"record": ("tables",)}, "record must be one of"),
    ],
    data_refused=[
        ([[0, 1]], "data must be a Corpus, got list"),
        (bnp.Sources.from_arrays([np.ones((2, 2))]), "data must be a Corpus, got Sources"),
    ],
    no_update={"num_topics": 2, "concentration": dist.LogNormal(0.0, 1.0)},
)  # fmt: skip


@pytest.mark.slow
@testing.each_duty(CONTRACT)
def test_contract(duty):
    duty()


# ---- kept states

KEPT = {
    "z": np.array([0, 0, 0, 1, 1, 0, 0]),
    "opens": np.array([True, True, True, True, True, True, False]),
    "alpha": np.array([0.5, 1.2], np.float32),
    "beta": np.float32(0.5),
    "discount": np.float32(0.25),
    "concentration": np.array([2.0, 3.0], np.float32),
}
TWO = bnp.PitmanYorLDA(2, base="dirichlet", beta=PRIOR)


@pytest.mark.parametrize("base", ["uniform", "dirichlet"])
def test_topics_of_a_kept_state(base):
    """Topic 0 has words 0 0 1 1 1 at tables 0 0 1 1; topic 1 has words 3 and 2."""
    model = bnp.PitmanYorLDA(2) if base == "uniform" else TWO
    topics = model.topics_of(KEPT, CORPUS)
    customers = np.array([[2, 3, 0, 0, 0], [0, 0, 1, 1, 0]])
    tables = np.array([[2, 2, 0, 0, 0], [0, 0, 1, 1, 0]])
    h = np.full((2, 5), 0.2)
    if base == "dirichlet":
        h = np.array([[2.5, 2.5, 0.5, 0.5, 0.5], [0.5, 0.5, 1.5, 1.5, 0.5]])
        h = h / np.array([[6.5], [4.5]])
    rest = np.array([[2.0 + 4 * 0.25], [3.0 + 2 * 0.25]])
    total = np.array([[2.0 + 5], [3.0 + 2]])
    expected = (customers - 0.25 * tables + rest * h) / total
    np.testing.assert_allclose(topics.phi[0], expected.T, rtol=1e-6)
    np.testing.assert_allclose(topics.phi.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(topics.weights, KEPT["alpha"][None])


def test_states_keep_who_opened_tables(tiny):
    """`opens` has as many tokens of each cell as there are tables, whoever opened them."""
    model = bnp.PitmanYorLDA(2, discount=0.5, max_tables=11)
    sampler = model.gibbs(schedule="sequential").sampler()
    data = sampler.prepare(tiny)

    @testing.quick_jit
    def run(key):
        state = sampler.init(key, data, tiny)
        state = state._replace(tables=(state.word_topic + 1) // 2)
        return state, sampler.snapshot(state, data)

    state, kept = run(jax.random.key(0))
    tables = np.zeros(state.tables.shape, int)
    opens = np.asarray(kept["opens"])
    assert opens.dtype == bool
    np.add.at(tables, (np.asarray(tiny.word)[opens], np.asarray(kept["z"])[opens]), 1)
    np.testing.assert_array_equal(tables, state.tables)
    assert 0 < opens.sum() < len(opens)


@pytest.mark.parametrize("discount", [0.0, 0.25])
def test_topics_drawn_given_a_kept_state(discount):
    """Predictive draws have the mean of the kept state, and vary as the process does."""
    model, size = bnp.PitmanYorLDA(2), 3000
    rng = np.random.default_rng(0)
    customers = np.array([[2, 3, 0, 0, 0], [0, 0, 1, 1, 0]])
    tables = np.array([[2, 2, 0, 0, 0], [0, 0, 1, 1, 0]])
    drawn = pitman_yor.draw_posterior(
        rng, np.tile(customers, (size, 1)), np.tile(tables, (size, 1)),
        np.full((2 * size, 5), 0.2), discount=discount,
        concentration=np.tile(KEPT["concentration"].astype(float), size),
    ).reshape(size, 2, 5)  # fmt: skip
    np.testing.assert_allclose(drawn.sum(axis=2), 1, rtol=1e-5)
    state = KEPT | {"discount": np.float32(discount)}
    mean = model.topics_of(state, CORPUS).phi[0].T
    error = drawn.std(axis=0) / np.sqrt(size)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5.5 * error).all()
    rest = KEPT["concentration"] + discount * tables.sum(axis=1)
    total = KEPT["concentration"] + customers.sum(axis=1)
    unused = np.array([4, 0])  # a word that the topic does not have
    h = 0.2
    of_rest = h**2 + (1 - discount) / (rest + 1) * h * (1 - h)
    square = rest * (rest + 1) * of_rest / (total * (total + 1))
    found = drawn[:, [0, 1], unused] ** 2
    error = found.std(axis=0) / np.sqrt(size)
    assert (np.abs(found.mean(axis=0) - square) < 5.5 * error).all()


# ---- the program


@pytest.mark.slow
def test_a_process_takes_keys_of_both_kinds():
    law = pitman_yor.PitmanYor(0.5, np.ones(2), np.full((2, 3), 1 / 3))
    draw = testing.quick_jit(lambda key: law.sample(key, (2,)))
    drawn = draw(jax.random.key(3))
    assert drawn.shape == (2, 2, 3)
    np.testing.assert_array_equal(drawn, draw(jax.random.PRNGKey(3)))


def test_a_process_has_no_density():
    law = pitman_yor.PitmanYor(0.5, np.ones(2), np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match=r"use the program `model\.augmented`"):
        law.log_prob(np.full((2, 3), 1 / 3))


# ---- the buffer

MANY = bnp.Corpus.from_ids([[0] * 20 + [1] * 4, [0] * 15], num_words=3)


@pytest.mark.slow
def test_fit_enlarges_the_buffer():
    """The discount is large, so almost every token has a table of its own; draws do not change."""

    def fitted(max_tables):
        model = bnp.PitmanYorLDA(2, discount=0.9, concentration=50.0, max_tables=max_tables)
        return bnp.fit(
            model, MANY, num_warmup=3, num_samples=5, num_chains=2, seed=1, progress=False,
            schedule="sequential", record=("z", "topic_tables"),
        )  # fmt: skip

    small, large = fitted(1), fitted(35)
    for name in ("z", "topic_tables"):
        one, two = (np.asarray(fit.data.posterior[name]) for fit in (small, large))
        np.testing.assert_array_equal(one, two)
    assert np.asarray(large.data.posterior["topic_tables"]).max() > 8


@pytest.mark.slow
def test_plain_mcmc_refuses_to_be_short_of_tables():
    model = bnp.PitmanYorLDA(2, discount=0.9, concentration=50.0, max_tables=1)
    mcmc = MCMC(
        model.gibbs(schedule="sequential", record=("z",)), num_warmup=2, num_samples=2,
        num_chains=1, progress_bar=False,
    )  # fmt: skip

    def run():
        mcmc.run(jax.random.key(0), MANY)
        return np.asarray(mcmc.get_samples()["z"])

    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="max_tables="):
        run()


def test_words_that_are_missing_have_the_share_of_the_base():
    """The exact next word of a tiny corpus is the mean over kept states."""
    exact = pitman_yor_topics([[0, 0], [1]], 3, 1, alpha=1.0, discount=0.5, concentration=2.0)
    docs = bnp.Corpus.from_ids([[0, 0], [1]], num_words=3)
    state = {
        "alpha": np.ones(1, np.float32), "discount": np.float32(0.5),
        "concentration": np.float32(2.0), "z": np.zeros(3, int),
    }  # fmt: skip
    model = bnp.PitmanYorLDA(1)
    one, two = (
        model.topics_of(state | {"opens": np.array(opens)}, docs).phi[0, :, 0]
        for opens in ([True, False, True], [True, True, True])
    )
    share = exact.mean("word_tables")[0] - 1  # probability of a second table of word 0
    expected = (1 - share) * one + share * two
    np.testing.assert_allclose(expected, exact.mean("next_word"), rtol=1e-5)
