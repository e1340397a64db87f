"""Options of `model.gibbs`, and the annealed part of a warm-up."""

import dataclasses
import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnp_models as bnp
from bnp_kernels import lda
from bnp_models.base import topic_model
from bnp_models.base.sampler import Annealing, describe_fields, next_sweep, plan_sweeps

CORPUS = bnp.Corpus.from_ids(
    [[0, 1, 2, 0, 1], [2, 3, 3, 4], [0, 4, 4, 1, 5, 5], [5, 0, 3]], num_words=6
)
HDP = bnp.HDPLDA()


def turns(annealing, num_warmup, num_sweeps):
    """Return turns and powers of the first sweeps."""
    found = [
        next_sweep((0, 1, 2), annealing, jnp.asarray(i), jnp.asarray(num_warmup))
        for i in range(num_sweeps)
    ]
    return [int(turn) for turn, _ in found], np.array([float(power) for _, power in found])


class TestNextSweep:
    """`next_sweep`."""

    def test_half_of_the_warm_up_is_annealed(self):
        """Then the cycle goes on at its own place, with the plain power."""
        turn, power = turns(Annealing(3, 1.5), 10, 12)
        assert turn == [3, 3, 3, 3, 3, 2, 0, 1, 2, 0, 1, 2]
        np.testing.assert_allclose(1 / power[:5], [1.5, 1.4, 1.3, 1.2, 1.1], rtol=1e-6)
        assert (power[5:] == 1).all()

    def test_sweeps_that_stay_keep_their_places(self):
        turn, power = turns(Annealing(3, 1.5, plain=(1,)), 10, 6)
        assert turn == [3, 1, 3, 3, 1, 2]
        np.testing.assert_allclose(1 / power, [1.5, 1, 1.3, 1.2, 1, 1], rtol=1e-6)

    @pytest.mark.parametrize(("annealing", "num_warmup"), [(None, 10), (Annealing(3, 1.5), 0)])
    def test_nothing_is_annealed(self, annealing, num_warmup):
        """Without a temperature, and without a warm-up."""
        turn, power = turns(annealing, num_warmup, 7)
        assert turn == [0, 1, 2, 0, 1, 2, 0]
        assert (power == 1).all()


class TestOptions:
    """Options of `model.gibbs`."""

    def test_record_is_sorted_and_checked(self):
        assert HDP.gibbs(record=["z", "phi", "z"]).options.record == ("phi", "z")
        as_block = HDP.gibbs(program=HDP.collapsed).options
        assert as_block.record == ("root", "z")
        with pytest.raises(ValueError, match=r"record must be one of \['phi', .*\], got 'x'"):
            HDP.gibbs(record=["x"])
        with pytest.raises(ValueError, match="record must be a tuple of names, got the string 'z'"):
            HDP.gibbs(record="z")

    @pytest.mark.parametrize("model", bnp.MODELS.values(), ids=bnp.MODELS)
    def test_signature_and_docstring_list_all_options(self, model):
        known = inspect.signature(model.gibbs).parameters
        fields = [field.name for field in dataclasses.fields(model.options_type)]
        block = ["program", "ignore"] if hasattr(model, "collapsed") else []
        assert list(known) == ["self", *fields, *block]
        for name, text in describe_fields(model.options_type).items():
            assert text
            assert f"{name}\n{text}\n" in model.gibbs.__doc__

    def test_unknown_options_are_refused_with_the_list(self):
        model = bnp.MedLDA(2)
        for name in ("sweeps", "program"):
            with pytest.raises(ValueError, match=rf"{name}=3 is not an option of gibbs.*'record'"):
                model.gibbs(**{name: 3})


def test_what_auto_stands_for(monkeypatch):
    """With an HDP root it is "parallel". Other infinite models use sequential sweeps on a CPU."""
    sparse = bnp.IBPCompoundDirichlet()
    assert HDP.gibbs() == HDP.gibbs(schedule="parallel")
    assert sparse.gibbs() == sparse.gibbs(schedule="mixed")
    monkeypatch.setattr(topic_model, "current_device", lambda: SimpleNamespace(platform="gpu"))
    assert sparse.gibbs() == sparse.gibbs(schedule="parallel")
    for model in (HDP, sparse):
        assert "sequential" not in model.schedules[model.gibbs().options.schedule]
    with pytest.raises(ValueError, match=r"got 'auto'"):
        bnp.LDA(3).gibbs(schedule="auto")


def test_the_annealed_sweep_of_a_schedule():
    """It is the sequential one, where the schedule has it."""
    assert plan_sweeps(HDP.schedules["mixed"], 1.2) == (
        (0, 0, 0, 0, 0, 1),
        ("sequential", "split-merge", "annealed sequential"),
        Annealing(2, 1.2, plain=(1,)),
    )
    assert plan_sweeps(HDP.schedules["parallel"], 1.2) == (
        (*20 * (0,), 1),
        ("parallel", "split-merge", "annealed parallel"),
        Annealing(2, 1.2, plain=(1,)),
    )
    names = ("parallel",)
    assert plan_sweeps(names, 1.2)[1:] == (("parallel", "annealed parallel"), Annealing(1, 1.2))
    assert plan_sweeps(names, 1.0) == ((0,), names, None)


@pytest.fixture(scope="module")
def kernels():
    """Return a kernel whose warm-up is annealed, and one whose warm-up is not."""
    return [HDP.gibbs(schedule="sequential", start_temperature=t) for t in (2.0, 1.0)]


@pytest.fixture(scope="module")
def starts(kernels):
    """Return the start of both."""
    keys = jax.random.split(jax.random.key(0), 2)
    data = kernels[0].sampler().prepare(CORPUS)
    return [kernel.start(keys, 8, data, CORPUS) for kernel in kernels]


class TestChains:
    """Chains of the HDP topic model."""

    @pytest.mark.slow
    def test_the_same_sweeps_after_the_annealed_ones(self, kernels, starts):
        """From the middle of the warm-up on, every sweep is the plain one, bit for bit."""
        hot, cold = (
            kernel.advance(start._replace(sweep=jnp.asarray(4)))
            for kernel, start in zip(kernels, starts, strict=True)
        )
        jax.tree.map(np.testing.assert_array_equal, hot.chain, cold.chain)

    @pytest.mark.slow
    def test_annealed_sweeps_differ(self, kernels, starts):
        """Before, they are others."""
        hot, cold = (k.advance(s) for k, s in zip(kernels, starts, strict=True))
        assert (np.asarray(hot.chain.z) != np.asarray(cold.chain.z)).any()

    def test_no_program_without_warm_up(self, kernels):
        """A run without a warm-up compiles no annealed sweep."""
        assert kernels[0].for_fit(0).sampler().annealing is None
        assert kernels[0].for_fit(1).sampler().annealing is not None


@pytest.mark.slow
@pytest.mark.parametrize("sweep", ["sequential", "parallel"])
def test_weights_are_taken_to_the_power(sweep):
    """One token with one word in the vocabulary: topic k has probability alpha_k to the power.

    The powers of these numbers are exact. 20,000 chains; the threshold of the chi-squared statistic
    with two degrees of freedom has a false-alarm rate of 1e-5.
    """
    one = bnp.Corpus.from_ids([[0]], num_words=1)
    sampler = bnp.LDA(num_topics=3, alpha=(1.0, 4.0, 16.0)).gibbs().sampler()
    data = sampler.prepare(one)
    keys = jax.random.split(jax.random.key(1), 20_000)

    def draw(key):
        state = sampler.init(key, data, one)
        new = lda.step(
            jax.random.fold_in(key, 1), state, data, lda.LDAPriors(), power=jnp.float32(0.5),
            sweeps=(f"annealed {sweep}",),
        )  # fmt: skip
        return new[0].z[0]

    counts = np.bincount(np.asarray(jax.vmap(draw)(keys)), minlength=3)
    expected = 20_000 * np.array([1, 2, 4]) / 7
    assert ((counts - expected) ** 2 / expected).sum() < 23.03
