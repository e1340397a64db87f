"""New documents as a corpus or as texts, over the words of a fit."""

import numpy as np
import pytest

from bnp_models.data.corpus import Corpus
from bnp_models.results.new_documents import as_documents, over_words


@pytest.fixture(scope="module")
def corpus():
    return Corpus.from_texts(["The Cat saw the dog", "a dog and Birds", "", "Cat cat"])


def test_documents_as_corpus_or_texts(corpus):
    assert as_documents("corpus", corpus, corpus.read_texts) is corpus
    assert as_documents("corpus", "a cat", corpus.read_texts).words(0) == ["cat"]
    for texts in (("cat", "dog"), np.array(["cat", "dog"]), iter(["cat", "dog"])):
        assert as_documents("corpus", texts, corpus.read_texts).num_docs == 2
    for wrong in (3, None, b"cat", [], [b"cat"], {"cat": 1}, [["cat"]]):
        with pytest.raises(ValueError, match=r"corpus must be a Corpus, or texts .* got"):
            as_documents("corpus", wrong, corpus.read_texts)


def test_over_words(corpus):
    same, notes = over_words(corpus, corpus.vocabulary, corpus.digest)
    assert same is corpus
    assert notes == ["this is the corpus that was fitted: scores of new documents would be lower"]
    fewer, notes = over_words(corpus, ("cat", "emu"), corpus.digest)
    assert fewer.vocabulary == ("cat", "emu")
    assert notes == [
        f"{corpus.num_tokens - 3} tokens ({1 - 3 / corpus.num_tokens:.1%}) are left out: words "
        "that the fit has not seen"
    ]
