"""What token models share: labels, the layout of the corpus, draws made on request."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnp_models as bnp
from bnp_kernels.numerics.shards import ONE_PART, every_part
from bnp_kernels.tokens.documents import Documents
from bnp_kernels.tokens.lanes import Lanes
from bnp_models.base import token_model


class TestPrepare:
    def test_lays_out_every_token(self, tiny):
        data = token_model.prepare(tiny, ONE_PART, None)
        np.testing.assert_array_equal(data.doc_length, [8, 0, 5, 11, 7])
        np.testing.assert_array_equal(data.word, tiny.word)

    def test_devices_have_as_many_places_each(self, tiny):
        data = token_model.prepare(tiny, every_part(2), None)
        np.testing.assert_array_equal(data.doc_length, [8, 0, 5, 11, 7, 0])
        assert data.word.shape == (2 * 18,)
        assert data.lanes.position.shape[-1] % 2 == 0

    def test_groups(self, tiny):
        assert token_model.prepare(tiny, ONE_PART, None).group is None
        np.testing.assert_array_equal(
            token_model.prepare(tiny, ONE_PART, None, groups=True).group, [0, 1, 0, 1, 1]
        )
        with pytest.raises(ValueError, match="data has no groups: give every document one"):
            token_model.prepare(bnp.Corpus.from_ids([[0]], 1), ONE_PART, None, groups=True)

    def test_token_sweep(self, tiny, monkeypatch):
        monkeypatch.delenv("BNP_TOKEN_SWEEP", raising=False)
        assert isinstance(token_model.prepare(tiny, ONE_PART, None).lanes, Lanes)
        monkeypatch.setenv("BNP_TOKEN_SWEEP", "pallas")
        assert isinstance(token_model.prepare(tiny, ONE_PART, None).lanes, Documents)
        monkeypatch.setenv("BNP_TOKEN_SWEEP", "gpu")
        with pytest.raises(ValueError, match=r"BNP_TOKEN_SWEEP must be one of .*got 'gpu'"):
            token_model.prepare(tiny, ONE_PART, None)

    def test_refusals(self, tiny):
        with pytest.raises(ValueError, match=r"data must be a Corpus, got list .*from_texts"):
            token_model.prepare([[0, 1]], ONE_PART, None)
        with pytest.raises(ValueError, match="data must be concrete when a chain starts"):
            jax.jit(lambda corpus: token_model.prepare(corpus, ONE_PART, None))(tiny)


class TestLabels:
    def test_coords(self, tiny):
        coords = bnp.LDA(2).coords(tiny)
        assert coords["word"] == tuple("uvwxyz")
        assert coords["doc"] == tuple("klmno")
        assert coords["group"] == ("a", "b")
        assert "group" not in bnp.LDA(2).coords(bnp.Corpus.from_ids([[0]], 1))

    def test_data_groups(self, tiny):
        groups = bnp.LDA(2).data_groups(tiny)
        assert set(groups) == {"constant_data", "observed_data"}
        np.testing.assert_array_equal(groups["observed_data"]["w"], tiny.word)
        np.testing.assert_array_equal(groups["constant_data"]["token_doc"], tiny.doc)
        np.testing.assert_array_equal(groups["constant_data"]["doc_length"], [8, 0, 5, 11, 7])
        np.testing.assert_array_equal(groups["constant_data"]["doc_group"], [0, 1, 0, 1, 1])

    def test_data_can_be_loaded(self, tiny, tmp_path):
        tiny.save(tmp_path / "data.npz")
        assert bnp.LDA(2).load_data(tmp_path / "data.npz") == tiny


class TestDraws:
    """Means of 20,000 Dirichlet draws: off by more than 5 standard errors once in 1e6 entries."""

    def check_mean(self, draws, concentration):
        total = concentration.sum(-1, keepdims=True)
        mean = concentration / total
        error = np.sqrt(mean * (1 - mean) / (total + 1) / len(draws))
        assert (np.abs(draws.mean(0) - mean) <= 5 * error + 1e-6).all()

    def test_phi(self):
        counts = jnp.array([[3, 0], [1, 0], [0, 5]])
        draw = jax.jit(jax.vmap(lambda key: token_model.draw_phi(key, counts, 0.3)))
        phi = np.asarray(draw(jax.random.split(jax.random.key(0), 20_000)))
        assert phi.shape == (20_000, 2, 3)
        np.testing.assert_allclose(phi.sum(-1), 1, rtol=1e-5)
        self.check_mean(phi, np.asarray(counts).T + 0.3)

    def test_theta_with_topics_not_in_use(self):
        counts = jnp.array([[3, 0, 0], [1, 2, 0], [0, 0, 0]])
        weights = jnp.array([0.5, 0.2, 0.0])
        draw = jax.jit(jax.vmap(lambda key: token_model.draw_theta(key, counts, weights, 0.3)))
        theta = np.asarray(draw(jax.random.split(jax.random.key(1), 20_000)))
        assert (theta[..., 2] == 0).all()
        rest = 1 - theta.sum(-1, keepdims=True)
        full = np.concatenate([theta[..., :2], rest], -1)
        self.check_mean(full, np.append(counts[:, :2] + weights[:2], np.full((3, 1), 0.3), 1))

    @pytest.mark.slow
    def test_neither_depends_on_free_slots(self):
        counts = jnp.array([[3, 0], [1, 2]])
        padded = jnp.pad(counts, [(0, 0), (0, 5)])
        key = jax.random.key(2)
        np.testing.assert_array_equal(
            token_model.draw_phi(key, counts, 0.1), token_model.draw_phi(key, padded, 0.1)[:2]
        )
        weights = jnp.array([0.5, 0.2])
        np.testing.assert_array_equal(
            token_model.draw_theta(key, counts, weights, 0.1),
            token_model.draw_theta(key, padded, jnp.pad(weights, (0, 5)), 0.1)[:, :2],
        )
