import jax
import numpy as np
import pytest

from bnp_kernels.tokens.start import random_start
from bnp_models.testing import token_corpora

DATA = token_corpora.lay_out([[0, 1, 2] * 100, [2] * 200, []])


@pytest.mark.parametrize(("init_topics", "first"), [(None, 5), (3, 3), (1, 1)])
def test_random_start(init_topics, first):
    z, doc_topic, word_topic, topic = random_start(jax.random.key(0), DATA, 4, 5, init_topics)
    expected = np.full(first, 500 / first)
    spread = (500 * (1 - 1 / first) / first) ** 0.5
    np.testing.assert_allclose(np.bincount(z), expected, atol=5 * spread)
    for table, row, rows in ((doc_topic, DATA.doc, 3), (word_topic, DATA.word, 4)):
        counts = np.zeros((rows, 5), int)
        np.add.at(counts, (row, z), 1)
        np.testing.assert_array_equal(table, counts)
    np.testing.assert_array_equal(topic, np.bincount(z, minlength=5))
