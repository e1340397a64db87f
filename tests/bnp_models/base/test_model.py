"""Model configurations: what they accept, equality by content, the serialised form."""

import dataclasses
import json
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import bnp_models as bnp
from bnp_models.base.model import (
    Model,
    concentration,
    from_description,
    gamma_prior,
    is_prior,
    known_models,
)


class TestConcentration:
    @pytest.mark.parametrize("value", [1, 0.5, np.float64(0.5), jnp.asarray(0.5), np.array(2)])
    def test_numbers_become_floats(self, value):
        stored = concentration("alpha", value)
        assert type(stored) is float
        assert stored == value

    @pytest.mark.parametrize(
        "value", [0, -1.0, np.nan, np.inf, 1e-60, 1e60, "0.1", True, None, [0.1, 0.2], object()]
    )
    def test_other_values_are_refused(self, value):
        with pytest.raises(ValueError, match=r"^beta must be .*got "):
            concentration("beta", value)

    def test_vectors_where_a_length_is_given(self):
        assert concentration("alpha", [1, 2.5], length=2) == (1.0, 2.5)
        assert concentration("alpha", jnp.ones(2), length=2) == (1.0, 1.0)
        with pytest.raises(ValueError, match="alpha must be a number or 3 numbers, got 2"):
            concentration("alpha", [1, 2], length=3)
        with pytest.raises(ValueError, match=r"alpha\[1\] must be positive .*got -2"):
            concentration("alpha", [1, -2, 3], length=3)
        with pytest.raises(
            ValueError, match=r"alpha must be numbers or a prior, .*expand\(\[2\]\)"
        ):
            concentration("alpha", [1, dist.Gamma(1.0, 1.0)], length=2)

    @pytest.mark.parametrize(
        "prior",
        [
            dist.Normal(0.0, 1.0),  # not positive
            dist.Beta(1.0, 1.0),
            dist.Gamma(jnp.ones(2), 1.0),  # two of them
            dist.Gamma(-1.0, 1.0, validate_args=False),
            dist.Gamma(1.0, np.nan, validate_args=False),
            dist.Exponential(0.0, validate_args=False),
            dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.ExpTransform()),
            dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)),
        ],
        ids=lambda prior: type(prior).__name__,
    )
    def test_priors_that_are_refused(self, prior):
        with pytest.raises(ValueError, match=r"^beta must have .*got "):
            concentration("beta", prior)

    def test_subclass_of_a_distribution_is_refused(self):
        class Mine(dist.Gamma):
            pass

        with pytest.raises(ValueError, match=r"plain prior of numpyro\.distributions.*got Mine"):
            concentration("beta", Mine(1.0, 1.0))

    def test_expand_is_a_prior_of_each(self):
        stored = concentration("alpha", dist.Gamma(1.0, 2.0).expand([3]), length=3)
        assert type(stored) is dist.Gamma
        assert stored.batch_shape == (3,)
        np.testing.assert_array_equal(gamma_prior("alpha", stored).rate, [2.0, 2.0, 2.0])
        with pytest.raises(
            ValueError, match=r"a scalar prior or 4 of them, got batch shape \(3,\)"
        ):
            concentration("alpha", stored, length=4)


class TestGammaPrior:
    def test_conjugate_priors(self):
        assert gamma_prior("a", 0.1) is None
        assert tuple(gamma_prior("a", dist.Gamma(2.0, 3.0))) == (2.0, 3.0)
        assert tuple(gamma_prior("a", dist.Exponential(3.0))) == (1.0, 3.0)
        assert tuple(gamma_prior("a", dist.Chi2(3.0))) == (1.5, 0.5)

    def test_others_are_refused_with_the_list(self):
        with pytest.raises(
            ValueError, match=r"gamma has the prior LogNormal.*Gamma\(concentration, rate\), Expon"
        ):
            gamma_prior("gamma", dist.LogNormal(0.0, 1.0))


class TestStartValues:
    def test_follow_their_priors(self):
        """Gamma laws are drawn together; the threshold of each comparison is a p-value of 1e-6."""
        model = bnp.GaussianFactorAnalysis(
            tau=dist.LogNormal(0.0, 1.0), alpha=dist.Exponential(3.0),
            sigma2_phi=dist.InverseGamma(2.0, 5.0), sigma2_w=0.5,
            sigma2_n=dist.Gamma(np.array([0.3, 4.0]), 2.0),
        )  # fmt: skip
        shapes = {"alpha": (3,)}
        draw = jax.jit(jax.vmap(lambda key: model.start_values(key, shapes)))
        drawn = draw(jax.random.split(jax.random.key(0), 4000))
        assert set(drawn) == set(model.hyperparameters)
        np.testing.assert_array_equal(drawn["sigma2_w"], 0.5)
        assert drawn["alpha"].shape == (4000, 3)
        assert drawn["sigma2_n"].shape == (4000, 2)
        for x, law in (
            (drawn["tau"], stats.lognorm(1.0)),
            (drawn["alpha"], stats.expon(scale=1 / 3)),
            (drawn["sigma2_phi"], stats.invgamma(2.0, scale=5.0)),
            (drawn["sigma2_n"][:, 0], stats.gamma(0.3, scale=0.5)),
            (drawn["sigma2_n"][:, 1], stats.gamma(4.0, scale=0.5)),
        ):
            assert stats.kstest(np.asarray(x, np.float64).ravel(), law.cdf).pvalue > 1e-6
        columns = np.column_stack([np.log(drawn["sigma2_phi"]), drawn["sigma2_n"], drawn["alpha"]])
        r = np.corrcoef(columns.T)[np.triu_indices(6, 1)]
        assert (2 * stats.norm.sf(np.abs(r) * np.sqrt(4000)) > 1e-6 / 15).all()

    def test_of_fixed_values(self):
        values = bnp.HDPLDA(alpha=2.0, gamma=1.5).start_values(jax.random.key(0))
        assert values == {"alpha": 2.0, "gamma": 1.5, "beta": 0.01}


class TestIdentity:
    def test_another_class_is_not_equal(self):
        assert bnp.LDA(3) != "LDA(3)"
        assert bnp.LDA(3, beta=dist.Gamma(1.0, 1.0)) != bnp.LDA(3, beta=dist.Gamma(1.0, 1.5))

    def test_repr_can_be_typed(self):
        assert repr(bnp.HDPLDA(gamma=dist.Gamma(1, 2.5))) == (
            "HDPLDA(alpha=Gamma(1.0, 1.0), gamma=Gamma(1.0, 2.5), beta=0.01, max_topics=128)"
        )

    def test_an_equal_model_is_not_traced_again(self):
        traced = []

        def total(model, x):
            traced.append(model)
            return x + len(model.describe())

        jitted = jax.jit(total, static_argnums=0)
        jitted(bnp.HDPLDA(alpha=dist.Gamma(1.0, 1.0)), 1.0)
        jitted(bnp.HDPLDA(alpha=dist.Gamma(1, 1)), 2.0)
        jitted(pickle.loads(pickle.dumps(bnp.HDPLDA())), 3.0)
        assert len(traced) == 1

    def test_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            bnp.LDA(3).num_topics = 4


class TestDescription:
    def test_unknown_models_and_fields(self):
        with pytest.raises(ValueError, match=r"model must be one of \[.*'LDA'.*\], got 'X'"):
            from_description({"model": "X"})
        with pytest.raises(ValueError, match=r"model is not described as LDA is: .*num_colors"):
            from_description({"model": "LDA", "num_topics": 2, "num_colors": 3})
        with pytest.raises(ValueError, match=r"distribution must be one of .*got 'os'"):
            from_description({"model": "LDA", "num_topics": 3, "beta": {"distribution": "os"}})

    def test_a_model_of_the_user_is_found_and_the_families_are_not(self):
        @dataclasses.dataclass(frozen=True, eq=False, repr=False)
        class MyLDA(bnp.LDA):
            """As a user may write one."""

        assert from_description(MyLDA(3).describe()) == MyLDA(3)
        assert {*bnp.MODELS, "MyLDA"} <= set(known_models())
        assert not {"Model", "TokenModel", "FiniteTopics", "FactorModel"} & set(known_models())

    def test_parameters_of_priors_survive_exactly(self):
        third = np.float32(1) / np.float32(3)
        model = bnp.LDA(2, alpha=dist.Gamma(np.array([third, 0.1], np.float32), 1.0))
        again = from_description(json.loads(json.dumps(model.describe())))
        np.testing.assert_array_equal(again.alpha.concentration, model.alpha.concentration)


def test_is_prior():
    assert is_prior(dist.Gamma(1, 1))
    assert not is_prior(1.0)


def test_model_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Model()


@pytest.mark.slow
def test_what_only_results_need_is_not_imported():
    """It would take half a second of every start, and fifty megabytes."""
    slow = "{'pandas', 'matplotlib', 'arviz'}"
    code = f"import sys, bnp_models; sys.exit(bool({slow} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bnp.LDA(2, alpha=1e-50), "alpha must be within float32"),
        (
            lambda: bnp.SparseTransferTopicModel(strength_shape=1e300),
            "strength_shape must be w",
        ),
        (lambda: bnp.SparseTransferTopicModel(epsilon=1e-300), "epsilon must be within float32"),
        (lambda: bnp.PitmanYorLDA(2, discount=1e-300), "discount must be within float32"),
        (lambda: bnp.LDA(2, alpha=dist.Gamma(1e-300, 1.0)), "concentration of the prior of alpha"),
        (lambda: bnp.LDA(2, alpha=dist.Uniform(0, 10)), "alpha must have a prior over positive n"),
        (lambda: bnp.LDA(2, beta=dist.Normal(0, 1)), "beta must have a prior over positive number"),
    ],
)
def test_what_float32_or_a_kernel_cannot_hold_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_more_topics_at_the_start_than_tokens():
    corpus = bnp.Corpus.from_counts([[1, 2], [3, 0]])
    with pytest.raises(ValueError, match=r"init_topics must be at most the number of tokens, 6"):
        bnp.fit(bnp.HDPLDA(), corpus, init_topics=7, num_warmup=1, num_samples=1, progress=False)
