"""Linear maps from global to local words, against dense matrices and the law of the labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bnp_kernels.processes import word_transforms
from bnp_kernels.tokens.layout import WordTransform

P_VALUE = 1e-6  # false-alarm rate of each statistical assertion; keys are fixed
NUM_TOPICS = 2
MATRIX = np.array(  # two groups of three local words, by four global words
    [
        [0.6, 0.0, 0.5, 0.1],
        [0.4, 0.7, 0.0, 0.2],
        [0.0, 0.3, 0.5, 0.7],
        [0.2, 0.9, 0.0, 0.0],
        [0.8, 0.0, 0.3, 1.0],
        [0.0, 0.1, 0.7, 0.0],
    ]
)
PHI = np.array([[0.1, 0.45], [0.4, 0.05], [0.3, 0.2], [0.2, 0.3]])
BASE = MATRIX @ PHI


def sparse(matrix):
    """Return rows padded with entries of weight zero."""
    most = (matrix > 0).sum(axis=1).max()
    alternative, weight = np.zeros((len(matrix), most), np.int32), np.zeros((len(matrix), most))
    for i, row in enumerate(matrix):
        some = np.flatnonzero(row)
        alternative[i, : len(some)], weight[i, : len(some)] = some, row[some]
    return WordTransform(jnp.asarray(alternative), jnp.asarray(weight, jnp.float32))


TRANSFORM = sparse(MATRIX)
draw_labels = jax.jit(word_transforms.draw_labels, static_argnames="most")


def log_phi():
    return jnp.asarray(np.log(PHI), jnp.float32)


def some_tables(seed, most=9):
    return jnp.asarray(np.random.default_rng(seed).integers(0, most, BASE.shape), jnp.int32)


def test_apply():
    found = word_transforms.apply(TRANSFORM, jnp.asarray(PHI, jnp.float32))
    np.testing.assert_allclose(found, BASE, rtol=1e-6)


def test_expected_tables():
    tables = some_tables(0)
    phi, base = jnp.asarray(PHI, jnp.float32), jnp.asarray(BASE, jnp.float32)
    found = word_transforms.expected_tables(TRANSFORM, tables, phi, base)
    share = MATRIX[:, :, None] * PHI[None] / BASE[:, None]  # [R, V0, K]
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    expected = (np.asarray(tables)[:, None] * share).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("row", range(len(MATRIX)))
def test_labels_of_one_row_are_multinomial(row):
    """Many tables of one row: several blocks of them, and all the tables of a block in one row."""
    number = 15_000
    tables = np.zeros(BASE.shape, np.int32)
    tables[row] = number
    most = 2 * number
    found, log_labels = draw_labels(jax.random.key(row), TRANSFORM, tables, log_phi(), most=most)
    found = np.asarray(found)
    assert (found.sum(axis=0) == number).all()
    some = MATRIX[row] > 0
    assert (found[~some] == 0).all()
    for k in range(NUM_TOPICS):
        expected = number * MATRIX[row, some] * PHI[some, k] / BASE[row, k]
        assert stats.chisquare(found[some, k], expected).pvalue > P_VALUE
    logs = (found[some] * np.log(MATRIX[row, some])[:, None]).sum()
    np.testing.assert_allclose(log_labels, logs, rtol=1e-4)


def test_tables_of_a_cell_are_independent():
    """Two tables of one cell, many times: pairs of labels have the product law."""
    tables = jnp.zeros(BASE.shape, jnp.int32).at[0].set(2)
    keys = jax.random.split(jax.random.key(1), 10_000)
    draw = jax.jit(
        jax.vmap(lambda key: word_transforms.draw_labels(key, TRANSFORM, tables, log_phi(), 4)[0])
    )
    found = np.asarray(draw(keys))  # [draws, V0, K]
    for k in range(NUM_TOPICS):
        p = MATRIX[0] * PHI[:, k] / BASE[0, k]
        pairs = [(u, v) for u in range(4) for v in range(u, 4) if p[u] * p[v] > 0]
        expected = [p[u] * p[v] * (1 if u == v else 2) for u, v in pairs]
        counts = [
            (found[:, u, k] == 2).sum() if u == v else (found[:, [u, v], k] == 1).all(axis=1).sum()
            for u, v in pairs
        ]
        assert stats.chisquare(counts, len(keys) * np.array(expected)).pvalue > P_VALUE
    both = np.corrcoef(found[:, 0, 0], found[:, 0, 1])[0, 1]  # of two topics
    assert 2 * stats.norm.sf(abs(both) * np.sqrt(len(keys))) > P_VALUE


def test_tables_stay_in_their_topics():
    tables = some_tables(1)
    found, log_labels = draw_labels(jax.random.key(2), TRANSFORM, tables, log_phi(), most=200)
    np.testing.assert_array_equal(found.sum(axis=0), tables.sum(axis=0))
    assert (np.asarray(found) >= 0).all()
    assert np.isfinite(log_labels)
    assert log_labels < 0


def test_draws_do_not_depend_on_room_or_on_other_cells():
    tables, key = some_tables(3), jax.random.key(4)
    total = int(tables.sum())
    found, log_labels = draw_labels(key, TRANSFORM, tables, log_phi(), most=total)
    for most in (total + 1, 3 * total, 10_000):
        again, logs = draw_labels(key, TRANSFORM, tables, log_phi(), most=most)
        np.testing.assert_array_equal(again, found)
        np.testing.assert_allclose(logs, log_labels, rtol=1e-5)
    chosen = np.random.default_rng(5).random(tables.shape) < 0.5
    parts = [
        draw_labels(key, TRANSFORM, jnp.where(of, tables, 0), log_phi(), most=total)
        for of in (chosen, ~chosen)
    ]
    np.testing.assert_array_equal(parts[0][0] + parts[1][0], found)
    np.testing.assert_allclose(parts[0][1] + parts[1][1], log_labels, rtol=1e-5)


def test_no_tables():
    none = jnp.zeros(BASE.shape, jnp.int32)
    found, log_labels = draw_labels(jax.random.key(0), TRANSFORM, none, log_phi(), most=5)
    assert not found.any()
    assert log_labels == 0


def test_a_root_that_underflows_leaves_the_weights():
    """Where the root has underflowed at all global words of a row, the weights decide."""
    tables = np.zeros(BASE.shape, np.int32)
    tables[0] = 5_000
    gone = jnp.full(PHI.shape, -200.0)
    found, _ = draw_labels(jax.random.key(6), TRANSFORM, tables, gone, most=10_000)
    some = MATRIX[0] > 0
    expected = 5_000 * MATRIX[0, some] / MATRIX[0].sum()
    for of_topic in np.asarray(found).T:
        assert (of_topic[~some] == 0).all()
        assert stats.chisquare(of_topic[some], expected).pvalue > P_VALUE
