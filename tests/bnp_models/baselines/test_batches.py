"""Every token is in one batch, and a sum over a batch times their number is unbiased."""

import jax
import jax.numpy as jnp
import numpy as np

from bnp_models.baselines.batches import make_batches
from bnp_models.data.corpus import Corpus


def test_every_token_and_document_is_dealt_once():
    rng = np.random.default_rng(0)
    docs = [rng.integers(7, size=n).tolist() for n in (3, 0, 9, 1, 4, 4, 2)]
    corpus = Corpus.from_ids(docs, num_words=7)
    batches = make_batches(corpus, 3, rng)
    assert batches.place.shape == (3, 3)
    np.testing.assert_array_equal(batches.scale, 3)
    found = {}
    for i in range(3):
        batch = jax.tree.map(lambda x, i=i: np.asarray(x[i]), batches)
        assert (np.diff(batch.doc) >= 0).all()
        for b, d in enumerate(batch.place):
            mine = (batch.doc == b) & (batch.real == 1)
            if d == corpus.num_docs:  # padding
                assert not mine.any()
                continue
            assert d not in found
            found[int(d)] = batch.word[mine].tolist()
            assert batch.length[b] == max(mine.sum(), 1)
        one = jnp.ones((len(batch.doc), 1))
        expected = [len(found.get(int(d), [])) for d in batch.place]
        total = jax.tree.map(jnp.asarray, batch).total(one)
        np.testing.assert_array_equal(total[:, 0], expected)
    assert [found[d] for d in range(7)] == docs


def test_batches_have_about_the_same_number_of_tokens():
    rng = np.random.default_rng(1)
    docs = [[0] * int(n) for n in rng.integers(1, 60, 200)]
    real = make_batches(Corpus.from_ids(docs, num_words=1), 20, rng).real
    assert real.mean() > 0.9
