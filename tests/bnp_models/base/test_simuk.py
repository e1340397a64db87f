"""Simulation-based calibration of a kernel by `simuk`, of the developers of ArviZ.

In each simulation, hyperparameters are drawn from their priors and data given them; the kernel runs
on the data, and the hyperparameter has a rank among the draws. If the kernel is right, ranks are
uniform.
"""

import logging

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import bnp_models as bnp
from bnp_kernels import lda
from bnp_models.testing.mistakes import Mistake, made

simuk = pytest.importorskip("simuk", reason="simuk needs Python 3.12 and ArviZ 1.x")

NUM_BINS = 4
FALSE_ALARM = 1e-4  # of a test, divided by its two ranks
MISTAKES = [
    Mistake("words per topic", lda, "conditional", "/ (n_k + num_words * beta)", "* 1.0", "simuk"),
    Mistake("alpha of one", lda, "conditional", "(n_dk + alpha)", "(n_dk + 1.0)", "simuk"),
]


@pytest.fixture(scope="module")
def corpus():
    """Give the sizes: five documents of eight tokens, four words."""
    return bnp.Corpus.from_ids([[0] * 8] * 5, num_words=4)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """Leave out that simuk sees observed words beside the simulator."""
    caplog.set_level(logging.ERROR)


def ranks(corpus, num_simulations, *, thinning, num_draws, num_warmup, **options):
    """Return the ranks of alpha and beta, from 0 to `num_draws`."""
    model = bnp.LDA(2, alpha=dist.Gamma(2.0, 2.0), beta=dist.Gamma(2.0, 2.0))
    kernel = model.gibbs(schedule="sequential", **options)
    sizes = {"num_warmup": num_warmup, "num_samples": thinning * num_draws, "thinning": thinning}
    calibration = simuk.SBC(
        kernel,
        num_simulations=num_simulations,
        seed=1,
        data_dir={"corpus": corpus},
        simulator=kernel.simulator(corpus),
        sample_kwargs=sizes,
    )
    calibration.run_simulations()
    found = calibration.simulations["prior_sbc"]
    assert set(found.data_vars) == {"alpha", "beta"}
    return {name: np.asarray(x)[0] for name, x in found.data_vars.items()}


def non_uniform(found):
    """Return the ranks that fail a chi-square test of uniformity."""
    statistic = {}
    for name, rank in found.items():
        counts = np.bincount(rank * NUM_BINS // 16, minlength=NUM_BINS)
        expected = len(rank) / NUM_BINS
        statistic[name] = ((counts - expected) ** 2 / expected).sum()
    limit = stats.chi2.isf(FALSE_ALARM / len(found), NUM_BINS - 1)
    return [name for name, value in statistic.items() if value > limit]


def test_it_runs(corpus):
    found = ranks(corpus, 3, thinning=1, num_draws=4, num_warmup=2)
    for rank in found.values():
        assert rank.shape == (3,)
        assert ((rank >= 0) & (rank <= 4)).all()


@pytest.mark.slow
def test_ranks_are_uniform(corpus):
    """15 draws, 20 sweeps apart: neighbours are correlated by 0.02 (measured)."""
    assert non_uniform(ranks(corpus, 64, thinning=20, num_draws=15, num_warmup=100)) == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_wrong_kernel_is_seen(corpus, mistake):
    """In half as many simulations; `init_topics`, the default, keeps compiled kernels apart."""
    with made(mistake):
        options = {"init_topics": 1 + MISTAKES.index(mistake)}
        found = ranks(corpus, 32, thinning=20, num_draws=15, num_warmup=100, **options)
    assert "alpha" in non_uniform(found)
