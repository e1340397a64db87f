"""A process that is forked after JAX has run says so, where it would wait for ever."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import jax
import numpy as np
import bnp_models as bnp
from bnp_models.baselines.sklearn_lda import sklearn_mixture
from bnp_models.base.other_packages import random_key
from sklearn.decomposition import LatentDirichletAllocation

corpus = bnp.Corpus.from_counts(np.eye(3, dtype=int))

def in_child(work):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except RuntimeError as error:
        os._exit(3 if "forked after JAX had run" in str(error) else 4)
    os._exit(0)

def fit():
    bnp.fit(bnp.LDA(2), corpus, num_warmup=1, num_samples=1, num_chains=1)

def transform():
    fold_in(corpus)

print(in_child(lambda: random_key(0)))
mixtures = sklearn_mixture(LatentDirichletAllocation(2).fit(np.eye(3)))
from bnp_models.scores.held_out import document_topics
fold_in = lambda corpus: list(document_topics(mixtures, corpus))
jax.numpy.zeros(1)
print(in_child(fit), in_child(transform), in_child(lambda: None))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_refuses_instead_of_waiting():
    script = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "3", "3", "0"], done.stderr
