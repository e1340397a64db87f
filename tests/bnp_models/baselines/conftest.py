"""Documents of planted topics, one per class, for the classifiers."""

import numpy as np
import pytest

from bnp_models.data.corpus import Corpus


@pytest.fixture(scope="session")
def planted():
    """Make corpora: a document of class l has about 60% of its 25 tokens in topic l of four."""

    def make(seed, *, num_classes, num_docs=60):
        rng = np.random.default_rng(seed)
        topics = np.kron(np.eye(4), np.ones(5)) / 5 * 0.9 + 0.1 / 20
        label = np.arange(num_docs) % num_classes
        own = np.eye(4)[label]
        shares = 0.6 * own + 0.4 * rng.dirichlet(np.ones(4), num_docs)
        docs = [rng.choice(20, 25, p=share @ topics).tolist() for share in shares]
        names = ["eggs", "milk", "rice"][:num_classes]
        return Corpus.from_ids(
            docs, num_words=20, labels=[names[i] for i in label], label_names=names
        )

    return make


@pytest.fixture(scope="session")
def tiny():
    """Return the corpus whose optima and evidence are known, with its labels y = (1, 0, 1)."""
    return Corpus.from_ids([[0, 0, 1], [1, 2], [2]], num_words=3, labels=[1, 0, 1])
