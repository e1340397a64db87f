"""Raw texts: kept, and new ones read as those of the corpus were read."""

import jax
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from bnp_models.data.corpus import Corpus, read_texts
from bnp_models.data.readers import read_csv

TEXTS = ("The Cat saw the dog", "a dog\0 and\ud800 Birds\n", "", "Cat cat")


@pytest.fixture(scope="module")
def corpus():
    return Corpus.from_texts(
        TEXTS, groups=["x", "y", "x", "y"], authors=[["B"], ["A"], ["B"], ["A"]],
        labels=["no", "yes", "no", "no"], doc_names=list("klmn"), keep_texts=True,
    )  # fmt: skip


class TestKeptTexts:
    def test_they_follow_their_documents(self, corpus, tmp_path):
        assert corpus.texts == TEXTS
        corpus.save(tmp_path / "corpus.npz")
        assert Corpus.load(tmp_path / "corpus.npz").texts == TEXTS
        assert corpus.select([3, 0, 3]).texts == (TEXTS[3], TEXTS[0], TEXTS[3])
        assert corpus.prune(min_count=2).texts == TEXTS
        assert corpus.with_vocabulary(["cat"]).texts == TEXTS
        assert corpus.with_labels([1, 2, 3, 4]).texts == TEXTS
        train, test = corpus.train_test_split(0.5)
        assert {*train.texts, *test.texts} == {*TEXTS}
        for part, names in ((train, train.doc_names), (test, test.doc_names)):
            assert part.texts == tuple(TEXTS["klmn".index(name)] for name in names)

    def test_halves_have_none(self, corpus):
        assert [half.texts for half in corpus.halves()] == [None, None]
        assert corpus.halves()[0].tokenizer == corpus.tokenizer

    def test_they_are_not_compared(self, corpus):
        plain = Corpus.from_texts(
            TEXTS, groups=["x", "y", "x", "y"], authors=[["B"], ["A"], ["B"], ["A"]],
            labels=["no", "yes", "no", "no"], doc_names=list("klmn"),
        )  # fmt: skip
        assert plain.texts is None
        assert (plain, hash(plain), plain.digest) == (corpus, hash(corpus), corpus.digest)
        traced = []
        count = jax.jit(lambda c: traced.append(0) or c.word.sum())
        assert count(corpus) == count(plain)
        assert len(traced) == 1

    def test_trees_keep_them(self, corpus):
        assert jax.tree.map(lambda x: x, corpus).texts == TEXTS
        assert jax.device_put(corpus).texts == TEXTS

    def test_files_with_other_texts_are_refused(self, corpus, tmp_path):
        path = tmp_path / "corpus.npz"
        corpus.save(path)
        with np.load(path) as file:
            content = dict(file)
        for change, message in (
            ({"text_ptr": content["text_ptr"][1:]}, "texts that do not fit its documents"),
            ({"texts": content["texts"].astype(int)}, "texts that do not fit its documents"),
            ({"texts": np.full_like(content["texts"], 255)}, "texts that are no UTF-8"),
            ({"tokenizer": np.array("[")}, "a tokenizer that can't be read"),
        ):
            np.savez(path, **{**content, **change})
            with pytest.raises(ValueError, match=rf"corpus\.npz has {message}"):
                Corpus.load(path)

    def test_readers_keep_them(self, tmp_path):
        (tmp_path / "texts.csv").write_text("text\nCat dog\nBird\n")
        corpus = read_csv(tmp_path / "texts.csv", keep_texts=True, lowercase=False)
        assert corpus.texts == ("Cat dog", "Bird")
        assert (corpus.tokenizer or {})["lowercase"] is False
        assert read_csv(tmp_path / "texts.csv").texts is None


class TestTokenizer:
    def test_it_is_remembered(self, corpus, tmp_path):
        found = corpus.tokenizer
        assert "the" in found["stop_words"]
        assert found["stop_words"] == sorted(found["stop_words"])
        corpus.save(tmp_path / "corpus.npz")
        for other in (Corpus.load(tmp_path / "corpus.npz"), corpus.select([0]), corpus.prune()):
            assert other.tokenizer == found
        again = Corpus.from_texts(TEXTS, vocabulary=corpus.vocabulary, **found)
        np.testing.assert_array_equal(again.word, corpus.word)
        assert Corpus.from_ids([[0]], num_words=1).tokenizer is None

    def test_plain_vectorizers_are_described(self):
        vectorizer = CountVectorizer(stop_words=["dog"], lowercase=False, max_df=2)
        corpus = Corpus.from_texts(["Cat dog cat", "x cat"], vectorizer=vectorizer)
        assert corpus.tokenizer == {
            "stop_words": ["dog"], "lowercase": False, "token_pattern": r"(?u)\b\w\w+\b",
        }  # fmt: skip
        assert corpus.read_texts(["dog Cat b"]).words(0) == ["Cat"]

    @pytest.mark.parametrize(
        "vectorizer", [CountVectorizer(ngram_range=(1, 2)), CountVectorizer(tokenizer=str.split),
                       CountVectorizer(strip_accents="unicode")],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
    def test_others_can_not_be_used_again(self, vectorizer):
        corpus = Corpus.from_texts(["big cat"], vectorizer=vectorizer)
        assert list(corpus.tokenizer) == ["vectorizer"]
        with pytest.raises(ValueError, match=r"a vectorizer of your own, CountVectorizer.*pass a"):
            corpus.read_texts(["cat"])


class TestReadTexts:
    def test_words_have_the_numbers_of_the_corpus(self, corpus):
        new = corpus.read_texts(["DOGS and a dog", "the CAT"], keep_texts=True)
        assert new.vocabulary == corpus.vocabulary
        assert [new.words(0), new.words(1)] == [["dog"], ["cat"]]
        assert new.texts == ("DOGS and a dog", "the CAT")
        assert corpus.prune(min_count=2).read_texts(["bird cat"]).words(0) == ["cat"]

    def test_categories_have_the_numbers_of_the_corpus(self, corpus):
        new = corpus.read_texts(
            ["cat", "dog"], groups=["y", "a"], authors=[["B", "C"], ["A"]], labels=["yes", "yes"]
        )
        assert new.group_names == ("x", "y", "a")
        assert new.group.tolist() == [1, 2]
        assert new.author_names == ("A", "B", "C")
        assert [new.authors(0), new.authors(1)] == [["B", "C"], ["A"]]
        assert (new.label_names, new.label.tolist()) == (("no", "yes"), [1, 1])
        assert not new.group.flags.writeable
        assert corpus.read_texts(["cat"], authors=[["B"]]).author_names == corpus.author_names

    def test_given_names_decide(self, corpus):
        assert corpus.read_texts(["cat"], groups=["y"], group_names=["y"]).group_names == ("y",)
        assert corpus.read_texts(["cat"], labels=[2.5]).label.tolist() == [2.5]

    def test_years_are_found_by_name(self):
        corpus = Corpus.from_texts(["cat", "dog"], groups=[2019, 2020])
        new = corpus.read_texts(["cat"], groups=[2020])
        assert (new.group_names, new.group.tolist()) == (("2019", "2020"), [1])

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda c: c.read_texts("cat"), "texts must be a sequence"),
            (lambda c: c.read_texts([]), "texts is empty"),
            (lambda c: c.read_texts(["comet"]), "the corpus is empty: 1 documents without a singl"),
            (lambda c: c.read_texts(["cat"], lowercase=False), "lowercase=False is not an option"),
            (lambda c: c.read_texts(["cat"], vocabulary=["cat"]), "is not an option of from_texts"),
            (lambda c: c.read_texts(["cat"], names=["cat"]), "is not an option of from_texts"),
            (lambda c: c.read_texts(["cat"], groups=["x", "y"]), "groups has 2 entries but"),
            (lambda c: Corpus.from_counts([[1]]).read_texts(["cat"]), "was not made from texts"),
        ],
    )
    @pytest.mark.usefixtures("unchecked")
    def test_is_refused_by_name(self, corpus, call, message):
        with pytest.raises(ValueError, match=message):
            call(corpus)

    def test_without_names_of_categories(self, corpus):
        new = read_texts(["cat"], corpus.vocabulary, corpus.tokenizer, groups=["y"])
        assert new.group_names == ("y",)
