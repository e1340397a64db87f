"""The library's own chains, as studies and benchmarks advance them."""

import jax
import numpy as np
import pytest

import bnp_models as bnp


@pytest.mark.slow
@pytest.mark.skipif(jax.local_device_count() < 2, reason="needs two devices")
def test_states_of_a_chain_on_two_devices(load):
    tiny = bnp.Corpus.from_ids([[0, 1, 2, 0], [3, 4, 3], [], [1, 2, 4, 0, 1]], num_words=6)
    chains = load("study.chains").OurChains(
        bnp.LDA(3, alpha=0.5, beta=0.2), tiny, jax.random.key(0)[None], num_samples=5,
        schedule="parallel",
    )  # fmt: skip
    chains.advance(2)
    states = chains.states()
    assert states["z"].shape == (1, 1, tiny.num_tokens)
    ((phi, weights),) = chains.mixtures()
    assert phi.shape == (tiny.num_words, len(weights))
    np.testing.assert_allclose(phi.sum(axis=0), 1, rtol=1e-5)
