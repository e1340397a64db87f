"""Collapsed distributions: against the kernels' densities, as blocks of numpyro.infer.Gibbs."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density
from scipy.special import gammaln

import bnp_models as bnp
from bnp_kernels import lda as lda_kernel
from bnp_kernels.numerics.densities import log_dirichlet_multinomial
from bnp_models.base import collapsed
from bnp_models.testing import enumeration

try:
    from numpyro.infer import Gibbs
except ImportError:  # NumPyro 0.21
    Gibbs = None

needs_blocks = pytest.mark.skipif(Gibbs is None, reason="NumPyro has no composable Gibbs")
DOCS = [[0, 0, 1], [1, 2, 2]]  # small enough to enumerate


@pytest.fixture(scope="module")
def public():
    return bnp.Corpus.from_ids(DOCS, num_words=3)


@pytest.fixture(scope="module")
def signed():
    """The public case of the author-topic models."""
    return bnp.Corpus.from_ids(DOCS, num_words=3, authors=[["a", "b"], ["b"]])


def draw(model, corpus, **options):
    """Draw all sites of the collapsed program."""

    @jax.jit
    def run(rng_key):
        seeded = numpyro.handlers.seed(model.collapsed, rng_key)
        found = numpyro.handlers.trace(seeded).get_trace(corpus, **options)
        return {name: site["value"] for name, site in found.items()}

    return run(jax.random.key(0))


class TestDensities:
    """That a program's density is the kernel's is tested with each model."""

    def test_probabilities_sum_to_one(self):
        doc = jnp.array([0, 0, 1, 1])
        z = jnp.array(list(itertools.product(range(2), repeat=4)))
        topics = collapsed.Assignments(jnp.array([0.5, 1.2]), doc, 3)
        assert np.exp(jax.jit(jax.vmap(topics.log_prob))(z)).sum() == pytest.approx(1, abs=1e-5)
        words = collapsed.Words(jnp.array([0, 1, 1, 0]), 0.4, 2, 3)
        assert np.exp(jax.jit(jax.vmap(words.log_prob))(z)).sum() == pytest.approx(1, abs=1e-5)

    def test_gradients_are_finite_at_empty_slots(self, public):
        def total(alpha, gamma, beta):
            model = bnp.HDPLDA(alpha=1.0, gamma=1.0, beta=1.0, max_topics=4)
            values = {
                "root": jnp.array([0.6, 0.3, 0.0, 0.0, 0.1]),
                "z": jnp.array([0, 0, 1, 1, 1, 1]),
            }
            given = {"alpha": alpha, "gamma": gamma, "beta": beta}
            return log_density(model.collapsed, (public,), given, values)[0]

        gradient = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(1.0, 1.5, 0.5)
        assert np.isfinite(gradient).all()


class TestDraws:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", [bnp.LDA(3), bnp.HDPLDA(max_topics=9)], ids=["lda", "hdp"])
    def test_shapes_and_ranges(self, tiny, model):
        found = draw(model, tiny, observed=False)
        assert found["z"].shape == found["w"].shape == (31,)
        assert 0 <= found["z"].min() <= found["z"].max() < (3 if "root" not in found else 9)
        assert 0 <= found["w"].min() <= found["w"].max() < 6
        if "root" in found:
            assert found["root"].shape == (10,)
            np.testing.assert_allclose(found["root"].sum(), 1, rtol=1e-5)
        np.testing.assert_array_equal(draw(model, tiny)["w"], tiny.word)

    @pytest.mark.parametrize(
        "model",
        [bnp.AuthorTopicModel(3), bnp.NonparametricAuthorTopicModel(max_topics=9)],
        ids=["atm", "np_atm"],
    )
    def test_authors(self, signed, model):
        found = draw(model, signed, observed=False)
        assert found["x"].shape == found["z"].shape == found["w"].shape == (6,)
        assert set(found["x"][:3].tolist()) <= {0, 1}
        assert found["x"][3:].tolist() == [1, 1, 1]
        assert 0 <= found["w"].min() <= found["w"].max() < 3

    def test_supports(self):
        topics = collapsed.Assignments(jnp.ones(2), jnp.array([0, 1, 1]), 2)
        words = collapsed.Words(jnp.array([0, 1, 1]), 0.1, 3, 2)
        assert topics.support.is_discrete
        assert words.support.is_discrete
        assert topics.support(jnp.array([0, 1, 1]))
        assert not topics.support(jnp.array([0, 1, 2]))
        assert words.support(jnp.array([0, 1, 2]))
        assert not words.support(jnp.array([0, -1, 2]))

    @pytest.mark.slow
    def test_frequencies_are_the_densities(self):
        """20,000 draws of 16 outcomes each: a z-score beyond 5 happens once in 1e5 runs."""
        keys = jax.random.split(jax.random.key(0), 20_000)
        outcomes = np.array(list(itertools.product(range(2), repeat=4)))
        doc = jnp.array([0, 0, 1, 1])
        for law in (
            collapsed.Assignments(jnp.array([0.5, 1.2]), doc, 3),
            collapsed.Words(jnp.array([0, 1, 1, 0]), 0.4, 2, 3),
        ):
            draws = np.asarray(jax.jit(jax.vmap(law.sample))(keys))
            p = np.exp(jax.jit(jax.vmap(law.log_prob))(jnp.asarray(outcomes)))
            found = (draws[:, None] == outcomes).all(-1).mean(0)
            assert (np.abs(found - p) < 5 * np.sqrt(p * (1 - p) / len(draws))).all()

    def test_sample_shape(self):
        def sample(law, shape):
            return jax.jit(lambda key: law.sample(key, shape))(jax.random.key(0))

        topics = collapsed.Assignments(jnp.ones(2), jnp.array([0, 1, 1]), 2)
        assert sample(topics, (4, 5)).shape == (4, 5, 3)
        words = collapsed.Words(jnp.array([0, 1]), 0.1, 3, 2)
        assert sample(words, (4,)).shape == (4, 2)
        root = sample(collapsed.RootWeightsDistribution(1.5, 3), (1000,))
        np.testing.assert_allclose(root.sum(-1), 1, rtol=1e-5)
        assert abs(root[:, 0].mean() - 1 / 2.5) < 5 * math.sqrt(0.0686 / 1000)  # Beta(1, 1.5)

    def test_authors_are_uniform(self):
        """20,000 draws: a z-score beyond 5 happens once in 1e6 runs."""
        law = collapsed.Authors(jnp.array([0, 0, 3]), jnp.array([3, 3, 2]), jnp.arange(5), 5)
        draws = np.asarray(law.sample(jax.random.key(0), (20_000,)))
        outcomes, counts = np.unique(draws, axis=0, return_counts=True)
        p = 1 / 18
        assert len(outcomes) == 18
        assert np.abs(counts / 20_000 - p).max() < 5 * math.sqrt(p * (1 - p) / 20_000)
        np.testing.assert_allclose(law.log_prob(jnp.asarray(outcomes[0])), math.log(p), rtol=1e-6)
        assert law.support.is_discrete
        assert not law.support(jnp.array([0, 1, 5]))

    def test_laws_are_pytrees(self):
        laws = (
            collapsed.Assignments(jnp.ones(2), jnp.array([0, 1]), 2),
            collapsed.Words(jnp.array([0, 1]), jnp.asarray(0.1), 3, 2),
            collapsed.RootWeightsDistribution(jnp.asarray(1.5), 3),
            collapsed.RootedAssignments(1.0, 1.5, jnp.array([0.5, 0.5]), jnp.array([0, 0]), 1),
            collapsed.Authors(jnp.array([0, 2]), jnp.array([2, 1]), jnp.array([0, 1, 1]), 2),
        )
        for law in laws:
            run = jax.jit(lambda law: (law, law.sample(jax.random.key(0))))
            again, value = run(law)
            assert type(again) is type(law)
            assert again.event_shape == law.event_shape == value.shape


def hyperprior_program(model):
    """Alpha = exp(a), a normal: a prior that our own kernel has no update for."""

    def program(corpus):
        log_alpha = numpyro.sample("log_alpha", dist.Normal(0.0, 0.7))
        alpha = numpyro.deterministic("alpha", jnp.exp(log_alpha))
        model.collapsed(corpus, alpha=alpha)

    return program


def blocks(model, program, sites, others, **options):
    return Gibbs([(model.gibbs(program=program, **options), sites), (NUTS(program), others)])


@needs_blocks
class TestBlocks:
    @pytest.mark.slow
    def test_any_other_site_is_refused(self, public):
        model = bnp.LDA(2, beta=0.5)
        key = jax.random.key(0)

        def uncollapsed(corpus):
            model(corpus)

        kernel = blocks(model, uncollapsed, ("z",), ("phi", "theta"))
        with pytest.raises(ValueError, match=r"sites \['phi', 'theta'\] are sampled by another"):
            kernel.init(key, 0, None, (public,), {})
        program = hyperprior_program(model)
        kernel = blocks(model, program, ("z",), ("log_alpha",))
        with pytest.raises(ValueError, match=r"sites \['log_alpha'\].*ignore="):
            kernel.init(key, 0, None, (public,), {})

    @pytest.mark.slow
    def test_a_site_without_influence_can_be_ignored(self, public):
        model = bnp.LDA(2, beta=0.5)

        def program(corpus):
            rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
            model.collapsed(corpus, alpha=numpyro.sample("alpha", dist.Gamma(2.0, rate)))

        kernel = blocks(model, program, ("z",), ("alpha", "rate"), ignore=("rate",))
        mcmc = MCMC(kernel, num_warmup=5, num_samples=5, progress_bar=False)
        mcmc.run(jax.random.key(0), public, extra_fields=("block_states.0.lp",))
        assert set(mcmc.get_samples()) == {"z", "alpha", "rate"}
        assert mcmc.get_samples()["z"].shape == (5, 6)
        # what the block reports is the density at the values that were collected
        last = {name: x[-1] for name, x in mcmc.get_samples().items()}
        data = kernel.blocks[0][0].sampler().prepare(public)
        state = mcmc.last_state.block_states[0].chain
        np.testing.assert_allclose(state.alpha, last["alpha"])
        expected = jax.jit(lda_kernel.log_joint)(state, data)
        found = mcmc.get_extra_fields()["block_states.0.lp"][-1]
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("schedule", ["sequential", "parallel"])
    def test_lda_beside_nuts_against_quadrature(self, public, schedule):
        """All 64 assignments on a grid of the hyperparameter; |z| < 4.5 of four means."""
        model = bnp.LDA(2, beta=0.5)

        def program(corpus):
            # log-normal, for which our own kernel has no update
            model.collapsed(corpus, alpha=numpyro.sample("alpha", dist.LogNormal(0.0, 0.7)))

        kernel = blocks(model, program, ("z",), ("alpha",), schedule=schedule)
        mcmc = MCMC(
            kernel, num_warmup=200, num_samples=6000, num_chains=4, chain_method=jax.vmap,
            progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(1), public)
        draws = mcmc.get_samples(group_by_chain=True)

        grid = np.linspace(-4.5, 4.5, 901)
        alpha = jnp.exp(jnp.asarray(grid, jnp.float32))
        z = jnp.array(list(itertools.product(range(2), repeat=6)))
        doc, word = jnp.asarray(public.doc), jnp.asarray(public.word)

        def joint(z, alpha):
            doc_topic = jnp.zeros((2, 2), jnp.int32).at[doc, z].add(1)
            word_topic = jnp.zeros((3, 2), jnp.int32).at[word, z].add(1)
            return log_dirichlet_multinomial(
                doc_topic, doc_topic.sum(1), jnp.full(2, alpha), 2 * alpha
            ) + log_dirichlet_multinomial(word_topic, word_topic.sum(0), 0.5, 1.5)

        logs = jax.jit(jax.vmap(lambda a: jax.vmap(lambda z: joint(z, a))(z)))(alpha)
        logs = np.asarray(logs, np.float64) - 0.5 * (grid[:, None] / 0.7) ** 2
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        pairs = np.asarray(z[:, 0] == z[:, 1]), np.asarray(z[:, 2] == z[:, 3])
        expected = [
            (weight.sum(1) * np.exp(grid)).sum(),
            (weight.sum(1) * grid).sum(),
            *((weight.sum(0) * pair).sum() for pair in pairs),
        ]
        found = [
            draws["alpha"],
            np.log(draws["alpha"]),
            draws["z"][..., 0] == draws["z"][..., 1],
            draws["z"][..., 2] == draws["z"][..., 3],
        ]
        assert np.abs(z_scores(found, expected)).max() < 4.5

    @pytest.mark.slow
    def test_hdp_beside_nuts_against_enumeration(self, public):
        """The exact posterior means under Gamma(1, 1) priors; |z| < 4.5 of five means."""
        model = bnp.HDPLDA(alpha=dist.Gamma(1, 1), gamma=dist.Gamma(1, 1), beta=0.5, max_topics=8)

        def program(corpus):
            model.collapsed(corpus)

        kernel = blocks(
            model, program, ("root", "z"), ("alpha", "gamma"), schedule="sequential", init_topics=2
        )
        mcmc = MCMC(
            kernel, num_warmup=200, num_samples=6000, num_chains=4, chain_method=jax.vmap,
            progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(2), public)
        draws = mcmc.get_samples(group_by_chain=True)
        z = np.asarray(draws["z"])
        used = np.array([[len(set(row)) for row in chain] for chain in z.tolist()])
        found = [
            draws["alpha"],
            draws["gamma"],
            used == 1,
            used == 2,
            z[..., 0] == z[..., 1],
            z[..., 2] == z[..., 3],
        ]
        rule = enumeration.gamma_rule(1.0, 1.0)
        exact = enumeration.exact_hdp_posterior(DOCS, 3, rule, rule, 0.5).means()
        expected = [
            exact["alpha"], exact["gamma"], *exact["topics"][:2], *exact["coassigned"][[0, 9]],
        ]  # fmt: skip
        assert np.abs(z_scores(found, expected)).max() < 4.5

    @pytest.mark.slow
    def test_authors_beside_nuts_against_enumeration(self, signed):
        """The exact posterior means of a finite model; |z| < 4.5 of six means."""
        model = bnp.AuthorTopicModel(2, alpha=dist.Gamma(2.0, 2.0), beta=dist.Gamma(2.0, 4.0))
        sites, others = ("x", "z"), ("alpha", "beta")
        rules = enumeration.gamma_rule(2.0, 2.0), enumeration.gamma_rule(2.0, 4.0)
        exact = enumeration.finite_topics(DOCS, 3, 2, *rules, authors=[[0, 1], [1]]).means()
        expected = [exact[name] for name in others]
        expected += [exact[name][0] for name in ("first_author", "coassigned", "same_pair")]
        expected += [exact["one_topic"]]

        def program(corpus):
            model.collapsed(corpus)

        kernel = blocks(model, program, sites, others, schedule="parallel")
        mcmc = MCMC(
            kernel, num_warmup=200, num_samples=2000, num_chains=4, chain_method=jax.vmap,
            progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(4), signed)
        draws = mcmc.get_samples(group_by_chain=True)
        x, z = np.asarray(draws["x"]), np.asarray(draws["z"])
        same = z[..., 0] == z[..., 1]
        found = [
            *(draws[name] for name in others),
            x[..., 0] == 0,
            same,
            same & (x[..., 0] == x[..., 1]),
            (z == z[..., :1]).all(-1),
        ]
        assert np.abs(z_scores(found, expected)).max() < 4.5

    @pytest.mark.slow
    @pytest.mark.parametrize("schedule", ["sequential", "parallel"])
    def test_coefficients_beside_nuts_against_quadrature(self, schedule):
        """All 64 assignments on a grid of four coefficients; |z| < 4.5 of eight means."""
        corpus = bnp.Corpus.from_ids(DOCS, num_words=3, covariates={"x": [-1.0, 1.0]})
        model = bnp.DirichletMultinomialRegression(
            2, coefficient_variance=0.8, intercept_variance=1.5, beta=0.5
        )
        kernel = blocks(model, model.collapsed, ("z",), ("coefficients",), schedule=schedule)
        mcmc = MCMC(
            kernel, num_warmup=200, num_samples=4000, num_chains=4, chain_method=jax.vmap,
            progress_bar=False,
        )  # fmt: skip
        mcmc.run(jax.random.key(5), corpus)
        draws = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}
        found = of_coefficients(draws["coefficients"], draws["z"])

        nodes, weights = np.polynomial.hermite_e.hermegauss(12)
        grid = np.array(list(itertools.product(range(12), repeat=4)))
        scale = np.sqrt([1.5, 0.8])[:, None]
        coefficients = nodes[grid].reshape(-1, 1, 2, 2) * scale  # [points, 1, term, topic]
        alpha = np.exp(np.einsum("df,qsfk->qsdk", [[1, -1], [1, 1]], coefficients))
        z = np.array(list(itertools.product(range(2), repeat=6)))  # [assignments, token]
        of_topic = np.stack([z == k for k in range(2)], -1)
        doc_topic = of_topic.reshape(-1, 2, 3, 2).sum(2)  # [assignments, document, topic]
        logs = dirichlet_multinomial(doc_topic, alpha).sum(-1)
        for k in range(2):
            words = np.stack([of_topic[:, np.ravel(DOCS) == v, k].sum(1) for v in range(3)], -1)
            logs = logs + dirichlet_multinomial(words, np.full(3, 0.5))
        logs += np.log(weights)[grid].sum(1)[:, None]
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        exact = of_coefficients(coefficients, z[None])
        expected = [(weight * np.broadcast_to(x, weight.shape)).sum() for x in exact]
        assert np.abs(z_scores(found, expected)).max() < 4.5

    @pytest.mark.slow
    def test_coefficients_with_a_prior_of_the_user(self):
        corpus = bnp.Corpus.from_ids(DOCS, num_words=3, covariates={"x": [-1.0, 1.0]})
        model = bnp.DirichletMultinomialRegression(2)

        def program(corpus):
            law = dist.Laplace(0.0, 0.5).expand([2, 2]).to_event(2)
            model.collapsed(corpus, coefficients=numpyro.sample("coefficients", law))

        kernel = blocks(model, program, ("z",), ("coefficients",))
        mcmc = MCMC(kernel, num_warmup=5, num_samples=5, progress_bar=False)
        mcmc.run(jax.random.key(0), corpus, extra_fields=("block_states.0.lp",))
        assert set(mcmc.get_samples()) == {"z", "coefficients"}
        fit = bnp.to_fit(mcmc)
        lp = mcmc.get_extra_fields()["block_states.0.lp"]
        np.testing.assert_allclose(fit.data["sample_stats"]["lp"][0], lp, rtol=1e-5)
        draws = fit.data["posterior"]["coefficients"]
        assert draws.dims == ("chain", "draw", "term", "topic")
        wrong = numpyro.handlers.seed(model.collapsed, 0)
        with pytest.raises(ValueError, match=r"shape \[term, topic\] = \[2, 2\], got \[2\]"):
            wrong(corpus, coefficients=jnp.zeros(2))


def of_coefficients(coefficients, z):
    """Return functions of coefficients [..., term, topic] and topics without regard to labels."""
    second = np.stack([(z[..., 3:] == k).sum(-1) for k in range(2)], -1)  # tokens of document 1
    return [
        *np.moveaxis(coefficients.sum(-1), -1, 0),
        *np.moveaxis((coefficients**2).sum(-1), -1, 0),
        (coefficients[..., 0, :] * coefficients[..., 1, :]).sum(-1),
        (coefficients[..., 1, :] * second).sum(-1),
        z[..., 0] == z[..., 1],
        z[..., 2] == z[..., 3],
    ]


def dirichlet_multinomial(counts, alpha):
    """Return the log probability of a sequence with these counts, which are on the last axis."""
    total = gammaln(alpha.sum(-1)) - gammaln(alpha.sum(-1) + counts.sum(-1))
    return total + (gammaln(alpha + counts) - gammaln(alpha)).sum(-1)


def z_scores(found, expected, num_batches=25):
    """Errors of means over their standard errors, from means of long batches of every chain."""
    scores = []
    for x, mean in zip(found, expected, strict=True):
        x = np.asarray(x, np.float64)
        batches = x.reshape(x.shape[0] * num_batches, -1).mean(1)
        scores.append((batches.mean() - mean) / (batches.std(ddof=1) / math.sqrt(len(batches))))
    return np.array(scores)
