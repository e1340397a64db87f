"""Number of topics with which chains of infinite models start."""

import jax
import numpy as np
import pytest

import bnp_models as bnp

NUM_DOCS, LENGTH = 100, 40


def corpus(different):
    """Make documents of 40 tokens, each with so many different words."""
    words = np.resize(np.arange(different), LENGTH)
    return bnp.Corpus.from_ids(NUM_DOCS * [words], num_words=LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("different", "topics"),
    [
        (LENGTH, 15),  # no word repeats: 0.25 sqrt(4000)
        (20, 15),  # 2000 repeats: 2000**2 / (90 * 4000) = 11 are fewer
        (10, 25),  # 3000 repeats
        (1, 42),  # 3900 repeats
    ],
)
def test_corpora_that_repeat_words_start_with_more_topics(different, topics):
    sampler = bnp.HDPLDA().gibbs().sampler()
    data = corpus(different)
    chain = sampler.init(jax.random.key(0), sampler.prepare(data), data)
    assert len(np.unique(chain.z)) == topics


@pytest.mark.slow
def test_no_more_than_300():
    many = bnp.Corpus.from_ids(2000 * [LENGTH * [0]], num_words=1)
    sampler = bnp.HDPLDA().gibbs().sampler()
    chain = sampler.init(jax.random.key(0), sampler.prepare(many), many)
    assert len(np.unique(chain.z)) == 300
    assert sampler.capacity(chain) == 300


def test_a_number_of_the_user_counts():
    data = corpus(1)
    sampler = bnp.HDPLDA().gibbs(init_topics=3).sampler()
    chain = sampler.init(jax.random.key(0), sampler.prepare(data), data)
    assert len(np.unique(chain.z)) == 3
