"""Each model starts as users start it: with its defaults, compiled without flags, in two minutes.

Most tests compile with fewer optimisations, which hid that with a newer JAX four models took hours
to compile. Compiling can't be interrupted from Python, so each model is fitted in a process of its
own, which the system kills after two minutes of computing. (A clock would also count what other
processes compute meanwhile.) `make test-newest` runs this file with the newest versions of all
dependencies.
"""

import os
import signal
import subprocess
import sys

import pytest

import bnp_models as bnp

SECONDS = 120  # of computing; without compiled programs in the cache a fit takes up to 30
LONGEST = 900  # by the clock, for a process that waits for ever
UNSET = {"XLA_FLAGS", "JAX_NUM_CPU_DEVICES"}  # what the tests set and users do not

# What users type. The data have 20 documents or rows.
FITS = {
    "AuthorTopicModel": "bnp.AuthorTopicModel(3), corpus(authors=[['u', 'v'], ['v']] * 10)",
    "CrossCollectionLDA": "bnp.CrossCollectionLDA(3), corpus(groups=['a', 'b'] * 10)",
    "DifferentialTopicModel": "bnp.DifferentialTopicModel(3), corpus(groups=['a', 'b'] * 10)",
    "DirichletMultinomialRegression": (
        "bnp.DirichletMultinomialRegression(3), corpus(covariates={'year': range(20)})"
    ),
    "GaussianFactorAnalysis": "bnp.GaussianFactorAnalysis(), rows(rng.normal(size=(20, 8)))",
    "HDPLDA": "bnp.HDPLDA(), corpus()",
    "IBPCompoundDirichlet": "bnp.IBPCompoundDirichlet(), corpus()",
    "LDA": "bnp.LDA(3), corpus()",
    "MedLDA": "bnp.MedLDA(3), corpus(labels=[0, 1] * 10)",
    "MultiTaskHDPLDA": "bnp.MultiTaskHDPLDA(), corpus(groups=['a', 'b'] * 10)",
    "NonparametricAuthorTopicModel": (
        "bnp.NonparametricAuthorTopicModel(), corpus(authors=[['u', 'v'], ['v']] * 10)"
    ),
    "PitmanYorLDA": "bnp.PitmanYorLDA(3), corpus()",
    "PoissonGammaFactorAnalysis": "bnp.PoissonGammaFactorAnalysis(), rows(rng.poisson(2, (20, 8)))",
    "SparseTransferTopicModel": "bnp.SparseTransferTopicModel(), corpus(groups=['a', 'b'] * 10)",
    "SupervisedLDA": "bnp.SupervisedLDA(3), corpus(labels=[0, 1] * 10)",
}

# The first two sweeps of the warm-up may be annealed, the 21st one may be a split-merge move.
FIT = """
import faulthandler, resource, signal
faulthandler.register(signal.SIGXCPU)  # prints the stack a second before the process is killed
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds} + 1))

import numpy as np
import bnp_models as bnp
from bnp_models.base.sampler import next_sweep

rng = np.random.default_rng(0)

def corpus(**of_documents):
    words = rng.choice(["cat", "dog", "bird", "fish", "sun", "moon", "star", "sky"], (20, 12))
    return bnp.Corpus.from_texts([" ".join(text) for text in words], **of_documents)

def rows(x):
    return bnp.Sources.from_arrays([x])

model, data = {model_and_data}
assert type(model).__name__ == {name!r}
fit = bnp.fit(model, data, num_warmup=4, num_samples=20, num_chains=2, progress=False)
assert fit.data["sample_stats"]["lp"].shape == (2, 20)
assert np.isfinite(fit.data["sample_stats"]["lp"]).all()

sampler = model.gibbs().sampler()
sweep_cycle, annealing = sampler.sweep_cycle, sampler.annealing
sweeps = getattr(sampler, "sweeps", (model.gibbs().options.schedule,))  # not of factor models
made = [int(next_sweep(sweep_cycle, annealing, sweep, np.int32(4))[0]) for sweep in np.arange(24)]
assert {{*made}} == {{*range(len(sweeps))}}, f"only {{made}} of {{sweeps}} were made"
print(*(sweeps[turn] for turn in made))
"""


def run(code):
    """Return the exit status of a new interpreter, and what it printed."""
    environment = {name: x for name, x in os.environ.items() if name not in UNSET}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environment, timeout=LONGEST,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return -signal.SIGKILL, (error.stdout or b"").decode()
    return done.returncode, done.stdout.decode()


def test_every_model_is_fitted():
    assert set(FITS) == set(bnp.MODELS)


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("name", FITS)
def test_first_fit(name):
    status, printed = run(FIT.format(name=name, model_and_data=FITS[name], seconds=SECONDS))
    if status == -signal.SIGKILL:
        pytest.fail(f"{name} did not start in {SECONDS} s of computing:\n{printed}", pytrace=False)
    if status != 0:
        pytest.fail(f"{name} can't be fitted:\n{printed}", pytrace=False)
