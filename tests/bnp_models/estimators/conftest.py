"""Count matrices of planted topics, with labels, and settings that cost little."""

import numpy as np
import pytest

NUM_WORDS, LENGTH = 8, 12

CHEAP = {
    "num_warmup": 10, "num_samples": 4, "num_chains": 1, "num_sweeps": 6, "num_kept": 3,
    "fit_options": {"schedule": "sequential", "keep_states": 2}, "random_state": 3,
}  # fmt: skip


def make_counts(num_docs, seed):
    """Draw documents of one length; those of class 1 have more words of the second half.

    All documents have the same number of words, so that all folds are one program.
    """
    rng = np.random.default_rng(seed)
    label = np.arange(num_docs) % 2
    second = rng.random((num_docs, LENGTH)) < np.where(label == 1, 0.9, 0.1)[:, None]
    word = rng.integers(0, NUM_WORDS // 2, (num_docs, LENGTH)) + NUM_WORDS // 2 * second
    return np.stack([np.bincount(row, minlength=NUM_WORDS) for row in word]), label


@pytest.fixture(scope="session")
def cheap():
    """Return parameters of estimators that cost little."""
    return CHEAP


@pytest.fixture(scope="session")
def counts():
    """Return counts of 24 documents by 8 words, and their classes 0 and 1."""
    return make_counts(24, 0)


@pytest.fixture(scope="session")
def new_counts():
    """Return counts and classes of 12 other documents."""
    return make_counts(12, 1)
