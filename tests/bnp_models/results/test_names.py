"""Names of topics from a function, and the data for topicwizard."""

import numpy as np
import pytest

import bnp_models as bnp

TEXTS = ["ball goal ball team", "vote law party vote", "ball team goal", "law party law"]


@pytest.fixture(scope="module")
def fitted(no_sweeps):
    corpus = bnp.Corpus.from_texts(TEXTS, doc_names=list("abcd"))
    options = {"schedule": "sequential", "progress": False, "keep_states": 2}
    with no_sweeps():
        return bnp.fit(
            bnp.LDA(2, alpha=0.5, beta=0.2), corpus,
            num_warmup=2, num_samples=4, num_chains=1, **options,
        )  # fmt: skip


def test_a_function_names_topics(fitted):
    asked = []

    def name(words, documents):
        asked.append((words, documents))
        return words[0].upper()

    named = fitted.with_labels(name)
    table = fitted.topics()
    assert named.topics()["label"].tolist() == [w.split(", ")[0].upper() for w in table["words"]]
    assert [", ".join(words) for words, _ in asked] == table["words"].tolist()
    for k, (_, documents) in enumerate(asked):
        found = fitted.representative_documents(k)
        assert documents == found["text" if "text" in found else "name"].tolist()


def test_errors_of_the_function_name_the_topic(fitted):
    with pytest.raises(ConnectionError, match="no answer") as failed:
        fitted.with_labels(lambda words, documents: exec("raise ConnectionError('no answer')"))
    assert failed.value.__notes__ == ["while the function gave a label to topic 0"]
    with pytest.raises(ValueError, match=r"labels\[0\] must be a string that is not empty, got 3"):
        fitted.with_labels(lambda words, documents: 3)


def test_data_for_topicwizard(fitted):
    found = fitted.to_topicwizard()
    assert found["document_term_matrix"].shape == (4, 6)
    assert found["document_term_matrix"].sum() == fitted.dataset.num_tokens
    np.testing.assert_array_equal(found["document_topic_matrix"], fitted.document_topics())
    np.testing.assert_allclose(found["topic_term_matrix"].sum(axis=1), 1, rtol=1e-5)
    assert found["vocab"].tolist() == list(fitted.dataset.vocabulary)
    assert found["topic_names"][0].startswith("0: ")
    first = found["topic_term_matrix"][0].argmax()
    assert fitted.topics()["words"][0].startswith(found["vocab"][first])
    assert len(found["corpus"]) == 4
    shares = found["transform"](["ball goal", "law"])
    np.testing.assert_array_equal(shares, fitted.transform(["ball goal", "law"]))


def test_texts_without_known_words_are_counted(fitted):
    with pytest.warns(UserWarning, match="1 of 2 texts have no word that the fit knows"):
        table = fitted.transform(["ball goal", "nothing"], num_sweeps=2, num_kept=1)
    assert len(table) == 2
    with pytest.warns(UserWarning, match="1 of 1 texts have no word that the fit knows"):
        fitted.transform("nothing", num_sweeps=2, num_kept=1)
