"""Ensembles of replicas against exact joint laws, with planted mistakes."""

import dataclasses
import functools
import inspect
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import lax
from numpyro.infer import MCMC

import bnp_models as bnp
from bnp_kernels.numerics import densities
from bnp_models.base.tempering import TemperedSampler, Tempering
from bnp_models.posterior import arviz_data, exchanges
from bnp_models.run.progress import Progress
from bnp_models.testing import enumeration, registry
from bnp_models.testing.mistakes import Mistake, made
from bnp_models.testing.shipped import run_shipped
from bnp_models.testing.statistics import Rejected, one_sample

DOCS = [[0, 1, 0], [2, 1, 1]]
CORPUS = bnp.Corpus.from_ids(DOCS, num_words=3)
END = {"alpha": 4.0, "beta": 6.0}
PLACES = (0.0, 0.45, 1.0)
LENGTH = 150  # scans of a chain that count, after as many that don't


def quantities(z):
    """Return quantities of assignments [..., T], and one number for products of them."""
    together = enumeration.coassignment(z)
    return {"together": together, "one": together.sum(-1)}


def averages(kernel, seed, num_chains):
    """Return averages over the scans of each chain, by name and rung, and of products."""
    keys = jax.random.split(jax.random.key(seed), num_chains)

    @jax.jit
    def run(keys):
        data = kernel.sampler().prepare(CORPUS)
        state = kernel.start(keys, 0, data, CORPUS)
        ladder = jnp.broadcast_to(jnp.float32(PLACES), (num_chains, len(PLACES)))
        chain = state.chain._replace(ladder=ladder)
        free = [n for n, prior in kernel.sampler().updated.items() if prior is not None]
        ones = {name: jnp.ones_like(chain.centre[name]) for name in free}
        chain = chain._replace(centre=chain.centre | ones)
        chain = jax.vmap(kernel.sampler()._placed)(chain)

        def scan(state, _):
            state = kernel.advance(state)
            chain = state.chain
            order = jnp.argsort(chain.rung, axis=1)
            z = jnp.take_along_axis(chain.replicas.z, order[:, :, None], axis=1)
            found = quantities(z)
            one = found["one"]
            found["products"] = jnp.stack([one[:, 0] * one[:, 1], one[:, 1] * one[:, 2]], 1)
            found["acceptance"] = chain.acceptance
            found |= chain.cold
            return state, found

        state, _ = lax.scan(scan, state._replace(chain=chain), length=LENGTH)
        _, found = lax.scan(scan, state, length=LENGTH)
        return jax.tree.map(lambda x: x.mean(0), found)

    return {name: np.asarray(values) for name, values in run(keys).items()}


@functools.cache
def expected(alpha, beta):
    """Return exact means; a value that is None has the prior Gamma(2, 1) at the cold end."""
    rule = enumeration.gamma_rule(2.0, 1.0)
    laws = []
    for place in PLACES:
        own = {}
        for name, value in {"alpha": alpha, "beta": beta}.items():
            start = 1.0 if value is None else value
            own[name] = rule if place == 0 and value is None else start * END[name] ** place
        a = own["alpha"] if isinstance(own["alpha"], enumeration.Rule) else [own["alpha"]] * 2
        laws.append(enumeration.finite_topics(DOCS, 3, 2, a, own["beta"]))
    found = [{n: law.mean(x) for n, x in quantities(law.states[0]).items()} for law in laws]
    one = [x["one"] for x in found]
    means = {name: np.stack([x[name] for x in found]) for name in ("together", "one")}
    means["products"] = np.array([one[0] * one[1], one[1] * one[2]])
    free = {"alpha": alpha, "beta": beta}
    if None in free.values():
        return means | {n: laws[0].mean(n) for n, value in free.items() if value is None}
    return means | {"acceptance": np.array([acceptance(*laws[:2]), acceptance(*laws[1:])])}


def acceptance(one, other):
    """Return the mean probability that two independent states are exchanged."""
    gain = other.log_joint - one.log_joint
    odds = np.exp(np.minimum(gain[:, None] - gain[None, :], 0))
    return one.probabilities @ odds @ other.probabilities


def check(alpha, beta, schedule="parallel", num_sweeps=1, seed=0, num_chains=4000):
    prior = dist.Gamma(2.0, 1.0)
    model = bnp.LDA(
        2, alpha=prior if alpha is None else alpha, beta=prior if beta is None else beta
    )
    tempering = Tempering(end=END, num_replicas=3, sweeps_per_swap=num_sweeps)
    kernel = model.gibbs(schedule=schedule, tempering=tempering)
    found = averages(kernel, seed, num_chains)
    one_sample(f"{model!r}", found, expected(alpha, beta)).check()


CASES = [(0.3, 0.2, "parallel", 1), (0.3, 0.2, "sequential", 2), (None, None, "parallel", 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta", "schedule", "num_sweeps"), CASES)
def test_joint_law_of_replicas(alpha, beta, schedule, num_sweeps):
    check(alpha, beta, schedule, num_sweeps)


def mistake(name, function, right, wrong, case):
    return Mistake(name, TemperedSampler, function, right, wrong, "joint law"), case


FIXED, FREE = CASES[1], CASES[2]
MISTAKES = [
    mistake(
        "slope here alone",
        "_gain",
        "jnp.exp({place} * x)",
        "0",
        FIXED,
    ),
    mistake("ratio of one of the two", "_exchanged", "gains[:-1] + {gains[1:]}", "0", FIXED),
    mistake("values stay behind", "_exchanged", "return {self._placed(new)}", "new", FIXED),
    mistake("all held at the cold end", "_swept", "{state.rung > 0}", "state.rung >= 0", FREE),
    mistake(
        "cold value of another", "step", "_cold(replicas, {swapped.rung})", "-swapped.rung", FREE
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "case"), MISTAKES, ids=lambda x: getattr(x, "name", ""))
def test_mistakes_are_seen(planted, case):
    with made(planted):
        jax.clear_caches()
        with pytest.raises(Rejected):
            check(*case, seed=1)
    jax.clear_caches()


# ---- through fit and MCMC

SIZES = {"num_warmup": 40, "num_samples": 12, "num_chains": 2, "progress": False}
FEW = Tempering(end=END, num_replicas=3)


@pytest.fixture(scope="module")
def found():
    return bnp.fit(bnp.LDA(2), CORPUS, tempering=FEW, **SIZES)


def stats(fit):
    group = arviz_data.group(fit.data, "sample_stats")
    return {name: x.to_numpy() for name, x in group.data_vars.items()}


def test_exchanges_are_recorded(found):
    group = arviz_data.group(found.data, "sample_stats")
    assert dict(group.sizes) == {"chain": 2, "draw": 12, "replica": 3, "pair": 2}
    of = stats(found)
    assert (np.sort(of["rung"], axis=-1) == np.arange(3)).all()
    assert (of["cold_replica"] == of["rung"].argmin(axis=-1)).all()
    assert ((of["swap_acceptance"] > 0) & (of["swap_acceptance"] <= 1)).all()
    assert (np.diff(of["round_trips"], axis=1) >= 0).all()
    said = {
        name: json.loads(found.data.attrs[name]) for name in ("barrier", "ladder", "round_trips")
    }
    assert said["round_trips"] == of["round_trips"][:, -1].tolist()
    assert np.allclose(said["barrier"], (1 - of["swap_acceptance"]).mean(axis=1).sum(-1), atol=0.01)
    for places in said["ladder"]:
        assert places[0] == 0
        assert places[-1] == 1
        assert np.all(np.diff(places) > 0)


def test_large_tables_are_taken_one_by_one(found, monkeypatch):
    monkeypatch.setattr(densities, "LARGE_TABLE", 0)
    jax.clear_caches()
    again = bnp.fit(bnp.LDA(2), CORPUS, tempering=FEW, **SIZES)
    jax.clear_caches()
    assert stats(again)["lp"] == pytest.approx(stats(found)["lp"], abs=1e-4)


def test_a_replica_moves_by_one_place_at_most(found):
    assert np.abs(np.diff(stats(found)["rung"].astype(int), axis=1)).max() == 1


def test_same_draws_through_mcmc(found):
    mcmc = MCMC(
        bnp.LDA(2).gibbs(tempering=FEW), num_warmup=40, num_samples=12, num_chains=2,
        chain_method="vectorized", progress_bar=False,
    )  # fmt: skip
    fields = ("lp", "info.rung", "info.swap_acceptance", "info.round_trips", "info.ladder")
    mcmc.run(jax.random.key(0), CORPUS, extra_fields=fields)
    made = bnp.to_fit(mcmc, keep_states=1)
    assert exchanges.was_tempered(made.data)
    other = stats(made)
    assert other["lp"] == pytest.approx(stats(found)["lp"], abs=1e-4)
    for name in ("rung", "round_trips"):
        assert (other[name] == stats(found)[name]).all(), name


def test_one_replica_is_a_plain_chain():
    one = bnp.fit(bnp.LDA(2), CORPUS, tempering=Tempering(end=END, num_replicas=1), **SIZES)
    plain = bnp.fit(bnp.LDA(2), CORPUS, **SIZES)
    assert stats(one)["lp"] == pytest.approx(stats(plain)["lp"], abs=1e-4)
    assert exchanges.round_trips(one.data) is None
    assert not exchanges.was_tempered(one.data)


def test_annealing_is_left_out_of_what_is_recorded():
    kernel = bnp.HDPLDA().gibbs(tempering=Tempering())
    assert kernel.options.start_temperature == 1.0


def test_nothing_adapts_after_the_warm_up():
    kernel = bnp.LDA(2, alpha=dist.Gamma(1.0, 1.0)).gibbs(tempering=FEW)
    data = kernel.sampler().prepare(CORPUS)
    state = kernel.start(jax.random.split(jax.random.key(0), 2), 32, data, CORPUS)
    advance = jax.jit(kernel.advance)
    seen = []
    for _ in range(48):
        state = advance(state)
        seen.append(jax.tree.map(np.asarray, (state.chain.ladder, state.chain.centre["alpha"])))
    ladders, centres = (np.stack(x) for x in zip(*seen, strict=True))
    assert (ladders[31:] == ladders[31]).all()
    assert (centres[31:] == centres[31]).all()
    assert (ladders[30] != ladders[31]).any()
    assert (ladders[14] != ladders[15]).any()
    assert (ladders[15:31] == ladders[15]).all()


def test_goes_on_to_the_bit(found, tmp_path):
    class Stop(Progress):
        def update(self, sweep, *_):
            if sweep >= 30:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bnp.fit(
            bnp.LDA(2), CORPUS, tempering=FEW, checkpoint=tmp_path / "run",
            **{**SIZES, "progress": Stop()},
        )  # fmt: skip
    again = bnp.resume(tmp_path / "run", progress=False)
    for name, x in stats(found).items():
        assert (stats(again)[name] == x).all(), name


def test_infinite_models_grow(tiny):
    tempering = Tempering(num_replicas=4)
    sizes = {**SIZES, "init_topics": 1}
    small, large = (
        bnp.fit(bnp.HDPLDA(max_topics=slots), tiny, tempering=tempering, **sizes)
        for slots in (2, 96)
    )
    assert stats(small)["lp"] == pytest.approx(stats(large)["lp"], abs=1e-4)


@pytest.mark.parametrize(("num_tokens", "wanted"), [(4, 3), (400, 4), (9_900, 20)])
def test_number_of_replicas_follows_from_the_tokens(num_tokens, wanted):
    corpus = bnp.Corpus.from_ids([[0] * num_tokens], num_words=1)
    sampler = bnp.LDA(2).gibbs(tempering=Tempering()).sampler()
    start = jax.eval_shape(
        lambda key: sampler.init(key, sampler.prepare(corpus), corpus), jax.random.key(0)
    )
    assert start.rung.shape == (wanted,)


WRONG = [
    ({"tempering": {"replicas": 3}}, r"a name in tempering must be one of .*, got 'replicas'"),
    (
        {"tempering": Tempering(end={"gamma": 2.0})},
        r"a name in end of tempering must be one of \['alpha', 'beta'\], got 'gamma'",
    ),
    (
        {"tempering": Tempering(), "start_temperature": 1.3},
        "start_temperature is 1.3, but tempering takes the place of annealing",
    ),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(bnp.fit)(bnp.LDA(2), CORPUS, **{**SIZES, **options})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"end": {"alpha": 0.5}}, r"end\['alpha'\] must be a finite number of at least 1 and at"),
        ({"end": {}}, "end must have a factor above 1, or all replicas are alike, got {}"),
        ({"end": {"alpha": 1.0}}, "end must have a factor above 1"),
        ({"end": [("alpha", 2.0), ("alpha", 3.0)]}, "end must be"),
        ({"num_replicas": 0}, "num_replicas must be an integer of at least 1, got 0"),
        ({"sweeps_per_swap": 0}, "sweeps_per_swap must be an integer of at least 1, got 0"),
    ],
)
def test_refused_values(given, message):
    with pytest.raises(ValueError, match=message):
        Tempering(**given)


def test_refused_models(tiny):
    with pytest.raises(ValueError, match="tempering is not for a block"):
        bnp.LDA(2).gibbs(tempering=FEW, program=lambda corpus: None)
    labelled = bnp.SupervisedLDA(2, response="one-vs-rest")
    corpus = bnp.Corpus.from_ids(DOCS * 2, num_words=3, labels=["a", "b", "c", "a"])
    with pytest.raises(ValueError, match="tempering is not for response='one-vs-rest'"):
        bnp.fit(labelled, corpus, tempering=FEW, **SIZES)


# ---- the recorded end of every topic model, by the exact laws of their own tests

CASES_OF_MODELS = registry.find(Path(__file__).parents[2] / "kernels", bnp.MODELS, "CASE")
TEMPERED = sorted(name for name, model in bnp.MODELS.items() if getattr(model, "far_end", {}))


def of_model(name):
    """Return the shipped check of a model with options for three replicas on a long path."""
    shipped = CASES_OF_MODELS[name].shipped
    far = {n: 5.0 for n in shipped.model.far_end}
    options = {**shipped.options, "tempering": Tempering(end=far, num_replicas=3)}
    return dataclasses.replace(shipped, options=options)


@pytest.mark.parametrize("name", TEMPERED)
def test_gains_are_differences_of_log_joint_densities(name):
    tempered = of_model(name)
    sampler = tempered.model.gibbs(**tempered.options).sampler()
    data = sampler.prepare(tempered.data)

    @jax.jit
    def both():
        state = sampler.init(jax.random.key(0), data, tempered.data)
        there = sampler._values_at(state, jnp.array([1, 2, 1]))
        moved = jax.vmap(sampler.plain.condition_on)(state.replicas, there)
        density = jax.vmap(sampler.plain.log_joint, (0, None))
        gains = jax.vmap(sampler._gain, (0, None))((state.replicas, there), data)
        return gains, density(moved, data), density(state.replicas, data)

    gains, after, before = map(np.asarray, both())
    assert gains == pytest.approx(after - before, abs=1e-4)
    assert (abs(gains) > 0.01).all()


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("name", TEMPERED)
def test_recorded_end_is_exact(name):
    tempered = of_model(name)
    run_shipped(f"{name}, tempered", tempered, "parallel")
