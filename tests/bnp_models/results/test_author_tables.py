"""Tables about authors: against a corpus whose authors write about different things."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.plots import small_topics
from bnp_models.posterior import arviz_data
from bnp_models.results import author_tables

VOCABULARY = ["cat", "dog", "mouse", "mars", "moon", "sun"]
ANIMALS, SPACE = [0, 1, 2], [3, 4, 5]


@pytest.fixture(scope="module")
def fitted():
    """Ann and Bob write about animals, Cleo about space, and once Ann did."""
    rng = np.random.default_rng(0)
    docs, authors = [], []
    for names, words, count in (
        (["ann"], ANIMALS, 6), (["bob"], ANIMALS, 6), (["cleo"], SPACE, 6),
        (["ann", "cleo"], ANIMALS + SPACE, 2), (["ann"], SPACE, 1),
    ):  # fmt: skip
        docs += [rng.choice(words, 20).tolist() for _ in range(count)]
        authors += [names] * count
    corpus = bnp.Corpus.from_ids(docs, vocabulary=VOCABULARY, authors=authors)
    model = bnp.AuthorTopicModel(2, alpha=0.3, beta=0.1)
    return bnp.fit(
        model, corpus, schedule="sequential", num_warmup=60, num_samples=40, num_chains=2,
        keep_states=5, seed=1, progress=False,
    )  # fmt: skip


def test_topics_of_authors(fitted):
    table = author_tables.author_topics(fitted, top=2)
    columns = ["author", "documents", "topic", "words", "share", "lower", "upper"]
    assert list(table.columns) == columns
    assert table.groupby("author")["share"].sum().to_numpy().min() > 0.95
    assert (np.diff(table[["lower", "share", "upper"]].to_numpy()) >= 0).all()
    largest = {row.author: row for row in table[::-1].itertuples()}
    assert set(str(largest["bob"].words).replace(",", "").split()[:3]) == set(VOCABULARY[:3])
    assert set(str(largest["cleo"].words).replace(",", "").split()[:3]) == set(VOCABULARY[3:])
    assert largest["bob"].share > 0.9


def test_authors_with_most_documents_come_first(fitted):
    table = author_tables.author_topics(fitted, top=1)
    assert list(zip(table["author"], table["documents"], strict=True)) == [
        ("ann", 9), ("cleo", 8), ("bob", 6)
    ]  # fmt: skip
    chosen = author_tables.author_topics(fitted, ["bob", "ann"], top=1)
    assert list(chosen["author"]) == ["bob", "ann"]


def test_shares_are_the_means_of_the_states(fitted):
    """By hand from the recorded assignments, for both topics of one author."""
    states = arviz_data.group(fitted.data, "states")
    z, x = (states[name].to_numpy().reshape(10, -1) for name in ("z", "x"))
    hand = np.zeros((10, 2))
    for s in range(10):
        n = np.bincount(z[s, x[s] == 0], minlength=2)
        number = fitted.alignment.number[s]
        hand[s, number] = (n + 0.3) / (n.sum() + 0.6)
    table = author_tables.author_topics(fitted, ["ann"], top=2).set_index("topic")
    np.testing.assert_allclose(table.loc[[0, 1], "share"], hand.mean(0), rtol=1e-5)
    np.testing.assert_allclose(table.loc[[0, 1], "lower"], np.quantile(hand, 0.05, 0), rtol=1e-5)


def test_similar_authors(fitted):
    table = author_tables.similar_authors(fitted, "bob")
    assert list(table["author"]) == ["ann", "cleo"]
    near, far = table["similarity"].to_numpy().tolist()
    assert 0 <= far < near - 0.2 < 0.8
    x = arviz_data.group(fitted.data, "states")["x"].to_numpy().reshape(10, -1)
    assert table["tokens"].to_numpy()[1] == (x == 2).sum(1).mean()


def test_author_of_an_anonymous_document(fitted):
    new = bnp.Corpus.from_ids([[3, 4, 5, 4, 3, 5], [0, 1, 2, 2], []], vocabulary=VOCABULARY)
    found = author_tables.infer_author(fitted, new)
    assert list(found.columns) == ["ann", "bob", "cleo"]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.iloc[0].idxmax() == "cleo"
    assert found.to_numpy()[1, 2] < 0.01
    np.testing.assert_allclose(found.iloc[2], 1 / 3)
    two = author_tables.infer_author(fitted, new, ["cleo", "ann"])
    np.testing.assert_allclose(two["cleo"] / two["ann"], found["cleo"] / found["ann"], rtol=1e-6)


def test_a_document_is_judged_by_the_mean_probability_of_its_words(fitted):
    """By hand: words are independent draws from the author's words, averaged over the states."""
    new = bnp.Corpus.from_ids([[3, 3, 0, 5]], vocabulary=VOCABULARY)
    words = np.mean([s.mixture.phi[0, 0] @ s.theta.T for s in fitted.author_mixtures()], axis=0)
    score = np.prod(words[[3, 3, 0, 5]].astype(np.float64), axis=0)
    found = author_tables.infer_author(fitted, new)
    np.testing.assert_allclose(found.iloc[0], score / score.sum(), rtol=1e-5)


@pytest.fixture(scope="module")
def with_strangers():
    """Dora signed nothing, Emil a document without tokens; texts are in lower case in the fit."""
    texts = ["cat dog cat", "mars moon sun", "dog cat dog", ""]
    signed = [["ann"], ["cleo"], ["ann", "cleo"], ["emil"]]
    corpus = bnp.Corpus.from_texts([*texts, "dog"], authors=[*signed, ["dora"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of authors without documents
        return bnp.fit(
            bnp.AuthorTopicModel(2), corpus.select(range(4)), schedule="sequential",
            num_warmup=2, num_samples=2, num_chains=1, keep_states=1, progress=False,
        )  # fmt: skip


def test_authors_without_documents_are_left_out(with_strangers):
    table = author_tables.author_topics(with_strangers, top=1)
    assert list(table["author"]) == ["ann", "cleo"]
    assert table.attrs == {"without_documents": 2}
    found = author_tables.infer_author(with_strangers, "the Cat")
    assert list(found.columns) == ["ann", "cleo"]
    assert found.attrs == {"without_documents": 2}
    asked = author_tables.author_topics(with_strangers, ["dora"], top=2)
    assert list(asked["share"]) == [0.5, 0.5]
    assert set(asked["documents"]) == {0}
    for name in ("dora", "emil"):
        with pytest.raises(ValueError, match=f"candidates has '{name}', who has no document"):
            author_tables.infer_author(with_strangers, "cat", ["ann", name])


def test_the_author_of_texts(with_strangers):
    texts = ["Cat, dog!", "Moon"]
    found = author_tables.infer_author(with_strangers, texts)
    corpus = with_strangers.dataset.read_texts(texts)
    pd.testing.assert_frame_equal(found, author_tables.infer_author(with_strangers, corpus))
    one = author_tables.infer_author(with_strangers, texts[0])
    np.testing.assert_allclose(one, found[:1])
    with pytest.warns(UserWarning, match="2 of 2 texts have no word .*: all candidates are equal"):
        unknown = author_tables.infer_author(with_strangers, ["zebra", ""])
    np.testing.assert_array_equal(unknown, np.full((2, 2), 0.5))
    assert unknown.attrs == {"without_documents": 2}
    with pytest.warns(UserWarning, match="1 of 2 texts have no word that the fit knows"):
        author_tables.infer_author(with_strangers, ["zebra", "moon"])


def test_a_method_that_is_not_there_names_those_of_authors(fitted):
    with pytest.raises(AttributeError, match=r"no 'authors'; it has author_topics.*infer_auth"):
        fitted.authors()


def test_a_misspelt_author(fitted):
    with pytest.raises(ValueError, match="did you mean 'cleo'"):
        author_tables.author_topics(fitted, ["Clea"])
    with pytest.raises(ValueError, match="did you mean 'cleo'"):
        author_tables.infer_author(fitted, "cat", ["cloe"])


def test_a_candidate_twice(fitted):
    with pytest.raises(ValueError, match="candidates has 'ann' at 0 and again at 2; give each one"):
        author_tables.infer_author(fitted, "cat", ["ann", "bob", "ann"])


def test_surprising_documents(fitted):
    table = author_tables.surprising_documents(fitted, "ann")
    assert len(table) == 9
    assert set(table["doc"][:3]) == {fitted.dataset.doc_names[d] for d in (18, 19, 20)}
    assert list(table["authors"][:3]).count(2) == 2
    assert table["perplexity"].is_monotonic_decreasing
    assert len(author_tables.surprising_documents(fitted, "ann", top=2)) == 2


def test_picture(fitted):
    ax = author_tables.plot_author_topics(fitted, "ann", top=2)
    assert len(ax.get_yticklabels()) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["chain 0", "chain 1"]
    plt.close("all")


def test_small_topics_of_an_author_are_not_drawn(fitted, monkeypatch):
    monkeypatch.setattr(small_topics, "MIN_SHARE", 0.2)
    (label,) = author_tables.plot_author_topics(fitted, "bob").get_yticklabels()
    (largest,) = author_tables.author_topics(fitted, ["bob"], top=1)["topic"]
    assert label.get_text().startswith(str(largest))
    plt.close("all")


def test_unknown_authors(fitted):
    topics = author_tables.author_topics(fitted, ["ann"], top=1)
    assert len(topics) == 1
    new = fitted.transform(bnp.Corpus.from_ids([[3, 4, 5, 4]], vocabulary=VOCABULARY))
    space = author_tables.author_topics(fitted, ["cleo"], top=1)["topic"][0]
    assert new.iloc[0].idxmax() == space


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: author_tables.similar_authors(f, "dan"), "'dan', no author of the corpus"),
        (lambda f: author_tables.author_topics(f, []), "authors must have at least one entry"),
        (lambda f: author_tables.author_topics(f, top=0), "top must be an integer .* got 0"),
        (lambda f: author_tables.author_topics(f, interval=1.0), "interval must be a finite"),
        (lambda f: author_tables.surprising_documents(f, "ann", top=0), "top must be an integer"),
        (
            lambda f: author_tables.infer_author(f, bnp.Corpus.from_ids([[0]], num_words=2)),
            "words",
        ),
    ],
)  # fmt: skip
def test_refusals(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted)


def test_other_models_know_no_authors(tiny, no_sweeps):
    with no_sweeps():
        found = bnp.fit(bnp.LDA(2), tiny, num_warmup=1, num_samples=1, progress=False)
    assert not isinstance(found, bnp.AuthorFit)
    with pytest.raises(AttributeError, match=r"a fit of LDA has no '.*'; it has topics\(\)"):
        found.known_authors(tiny)
    with pytest.raises(ValueError, match="fit must be of an author-topic model, got TopicFit"):
        author_tables.author_topics(found)


def test_tables_are_methods_of_the_fit(fitted):
    assert isinstance(fitted, bnp.AuthorFit)
    assert isinstance(fitted, bnp.TopicFit)
    new = bnp.Corpus.from_ids([[3, 4]], vocabulary=VOCABULARY)
    for name, arguments in (
        ("author_topics", (["ann"],)),
        ("similar_authors", ("ann",)),
        ("infer_author", (new, ["ann", "cleo"])),
        ("surprising_documents", ("ann",)),
    ):
        expected = getattr(author_tables, name)(fitted, *arguments)
        pd.testing.assert_frame_equal(getattr(fitted, name)(*arguments), expected)
    assert fitted.plot_author_topics("ann", top=1).get_title(loc="left") == "Topics of ann"
    plt.close("all")
