import numpy as np
import pytest

import bnp_models as bnp


@pytest.fixture
def splits(load):
    return load("study.splits")


@pytest.fixture
def corpus():
    rng = np.random.default_rng(0)
    docs = [rng.integers(0, 9, 12).tolist() for _ in range(20)]
    authors = [[f"a{d % 4}", f"b{d % 3}"] for d in range(20)]
    return bnp.Corpus.from_ids(docs, num_words=9, authors=authors)


def test_halves(splits, corpus):
    data = splits.halves(corpus, 0.2, seed=1)
    assert data.observed.num_docs == data.heldout.num_docs == 4
    assert data.train.num_docs + data.heldout.num_docs == corpus.num_docs
    assert data.observed.num_tokens == data.heldout.num_tokens
    assert not set(data.train.doc_names) & set(data.heldout.doc_names)
    assert data.train.author_names == data.heldout.author_names
    assert splits.halves(corpus, 0.2, seed=1).train == data.train
    assert splits.halves(corpus, 0.2, seed=2).train != data.train


def test_first_words(splits, corpus):
    first = splits.first_words(corpus, 5, seed=0)
    assert first.doc_length.tolist() == [5] * 20
    assert splits.first_words(corpus, 50, seed=0).num_tokens == corpus.num_tokens


def test_authors_of_no_document_are_forgotten(splits, corpus):
    part = splits.present_authors(corpus.select(np.array([0, 4])))
    assert sorted(part.author_names) == ["a0", "b0", "b1"]
    assert part.num_tokens == 24


def test_smaller_training_sets_are_parts_of_larger_ones(splits):
    small, large = (splits.chosen(14, n, (3, 1), "n") for n in (4, 14))
    assert set(small) < set(large) == set(range(14))
    assert splits.chosen(14, 4, (4, 1), "n").tolist() != small.tolist()
    with pytest.raises(ValueError, match="wanted=15 is more than the 14 papers"):
        splits.chosen(14, 15, (3, 1), "wanted")


def test_columns_are_standardised_on_the_training_part(splits):
    train = np.array([[1.0, 5, 1e6], [3, 5, 1e6 + 2]])
    ours, theirs = splits.standardised(train, np.array([[5.0, 7, 1e6]]))
    np.testing.assert_allclose(ours, [[-1, 0, -1], [1, 0, 1]])
    np.testing.assert_allclose(theirs, [[3, 0, -1]])
    assert ours.dtype == np.float32
