"""Transformation matrices: what they hold, how they are built, what they refuse."""

import itertools
import json
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

from bnp_models import Corpus, Transform
from bnp_models.data import word_relations
from bnp_models.data.word_relations import open_wordnet, path_similarities, top_relations

A = np.array([[0.7, 0.2, 0.0], [0.3, 0.6, 0.3], [0.0, 0.2, 0.7]])
B = np.array([[0.5, 0.0, 0.1], [0.5, 0.9, 0.0], [0.0, 0.1, 0.9]])


@pytest.fixture
def transform() -> Transform:
    return Transform.from_matrix({"b": B, "a": A}, vocabulary=list("xyz"))


def same_as(transform, matrix, group=None):
    np.testing.assert_allclose(transform.to_sparse(group).toarray(), matrix, rtol=1e-6)


class TestContent:
    def test_rows_are_padded_lists(self, transform):
        assert transform.group_names == ("a", "b")
        assert (transform.num_words, transform.num_global) == (3, 3)
        assert transform.vocabulary == transform.global_vocabulary == ("x", "y", "z")
        np.testing.assert_array_equal(transform.alternative[0], [[0, 1, 0], [0, 1, 2], [1, 2, 0]])
        np.testing.assert_array_equal(
            transform.weight[0], np.float32([[0.7, 0.2, 0], [0.3, 0.6, 0.3], [0.2, 0.7, 0]])
        )
        assert (transform.alternative.dtype, transform.weight.dtype) == (np.int32, np.float32)
        same_as(transform, A, "a")
        same_as(transform, B, "b")
        sums = [transform.to_sparse(group).sum(axis=0) for group in "ab"]
        np.testing.assert_allclose(sums, 1, rtol=1e-6)

    def test_is_immutable(self, transform):
        for array in (transform.alternative, transform.weight):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0, 0] = 1
        with pytest.raises(AttributeError):
            transform.num_global = 4

    def test_equal_by_content(self, transform):
        sparse = {"a": scipy.sparse.csc_matrix(A), "b": scipy.sparse.coo_array(B)}
        again = Transform.from_matrix(sparse, vocabulary=list("xyz"))
        assert again == transform
        assert hash(again) == hash(transform)
        others = [
            Transform.from_matrix({"a": A, "b": B}),
            Transform.from_matrix({"a": A, "c": B}, vocabulary=list("xyz")),
            Transform.from_matrix({"a": B, "b": A}, vocabulary=list("xyz")),
            Transform.from_matrix({"a": A, "b": B}, vocabulary=list("xyz"),
                                  global_vocabulary=list("uvw")),
            Transform.from_matrix(A, vocabulary=list("xyz")),
            "transform",
        ]  # fmt: skip
        assert all(other != transform for other in others)
        assert len({transform, again, *others}) == 1 + len(others)

    def test_repr_is_short(self, transform):
        assert repr(transform).startswith("Transform(2 groups, 3 from 3 words, 13 entries, ")
        assert len(repr(Transform.identity(5000))) < 80

    def test_more_global_than_local_words(self):
        wide = [[1, 0.5, 0, 1], [0, 0.5, 1, 0]]
        made = Transform.from_matrix(wide, vocabulary=["x", "y"], global_vocabulary=list("abcd"))
        assert (made.num_words, made.num_global) == (2, 4)
        same_as(made, wide)
        assert made.neighbours("x")["word"].tolist() == ["a", "d", "b"]
        assert Transform.from_matrix(wide, vocabulary=["x", "y"]).global_vocabulary is None

    def test_identity(self):
        made = Transform.identity(vocabulary=list("xyz"))
        same_as(made, np.eye(3))
        assert made.alternative.shape == (1, 3, 1)
        assert Transform.identity(3) != made
        assert Transform.identity(3).vocabulary is None

    def test_columns_are_normalised_and_filled(self):
        counts = [[2, 0, 0], [2, 0, 1], [0, 0, 3]]
        made = Transform.from_matrix(counts, normalise=True)
        same_as(made, [[0.5, 0, 0], [0.5, 1, 0.25], [0, 0, 0.75]])
        groups = Transform.from_matrix({"g": counts, "h": np.eye(3)}, normalise=True)
        same_as(groups, np.eye(3), "h")


class TestDescription:
    def test_comes_back(self, transform):
        wide = Transform.from_matrix(np.full((2, 3), 0.5), global_vocabulary=list("äöü"))
        for made in (transform, wide, Transform.identity(4)):
            text = json.dumps(made.describe())
            again = Transform.from_description(json.loads(text))
            assert again == made
            assert again.describe() == made.describe()
            assert not again.weight.flags.writeable

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"digest": "0"}, "damaged: its content has the digest"),
            ({"num_global": 0}, "damaged: its content has the digest"),
            ({"group_names": ["a"]}, "damaged: its content has the digest"),
            ({"vocabulary": ["x"]}, "damaged: its content has the digest"),
            ({"vocabulary": 3}, "none of a transform, or damaged"),
            ({"weight": 1}, "none of a transform, or damaged"),
            ({"weight": {"dtype": "float32", "shape": [2, 3, 3], "data": "%"}}, "or damaged"),
            ({"weight": {"dtype": "float32", "shape": [2, 3, 3], "data": "eA=="}}, "or damaged"),
        ],
    )
    def test_wrong_ones_are_refused(self, transform, change, message):
        with pytest.raises(ValueError, match=message):
            Transform.from_description(transform.describe() | change)

    def test_lacking_ones_are_refused(self, transform):
        lacking = {name: x for name, x in transform.describe().items() if name != "weight"}
        with pytest.raises(ValueError, match="description is none of a transform"):
            Transform.from_description(lacking)


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        ([[0.5, 0.5], [0.4, 0.5]], {}, "column 0 that sums to 0.9, not to one; give normalise"),
        ([[1, 0], [0, 0]], {}, "column 1 that sums to 0, not to one; give every global word"),
        ([[1, 0]], {"normalise": True}, "matrix has a column 1 that sums to 0"),
        ([[1, -0.1], [0, 1.1]], {}, r"matrix has -0.1 at \[0, 1\]; give finite numbers"),
        ([[1, np.nan], [0, 1]], {}, r"nan at \[0, 1\]"),
        ([[1, np.inf], [0, 1]], {"normalise": True}, r"inf at \[0, 1\]"),
        ([[1e308, 1], [1e308, 0]], {"normalise": True}, "column 0 that sums to inf"),
        ([1.0, 0.0], {}, r"matrix has dtype float64 and shape \(2,\)"),
        (np.zeros((0, 0)), {}, "matrix has .* give a matrix of numbers, local by global words"),
        (scipy.sparse.eye_array(2, dtype=complex), {}, "dtype complex128"),
        ({}, {}, "a matrix for each named group, got {}"),
        ({"": np.eye(2)}, {}, "a matrix for each named group"),
        ({1: np.eye(2)}, {}, "groups of matrix"),
        ({"a": np.eye(2), "b": np.eye(3)}, {}, r"matrix\['b'\] has shape \(3, 3\)"),
        (np.eye(2), {"vocabulary": ["x"]}, "vocabulary has 1 entries but there are 2 words"),
        (np.eye(2), {"vocabulary": ["x", "x"]}, "'x' at 0 and again at 1"),
        (np.eye(2), {"global_vocabulary": ["x"]}, "global_vocabulary has 1 entries"),
    ],
)
def test_matrices_that_are_refused(matrix, options, message):
    with pytest.raises(ValueError, match=message):
        Transform.from_matrix(matrix, **options)


def test_sums_have_a_tolerance():
    Transform.from_matrix(np.eye(2) * (1 + 0.9e-4))
    with pytest.raises(ValueError, match="sums to"):
        Transform.from_matrix(np.eye(2) * (1 + 1.2e-4))


def columns_divided(matrix):
    """Divide columns by their sums; an empty one gets its entry (v, v)."""
    matrix = np.array(matrix, float)
    empty = np.flatnonzero(matrix.sum(axis=0) == 0)
    matrix[empty, empty] = 1.0
    return matrix / matrix.sum(axis=0)


def kept(relations, top, include_self):
    """Keep the largest relations of each row, one row at a time."""
    found = np.zeros(np.shape(relations))
    for w, row in enumerate(relations):
        others = sorted((-x, v) for v, x in enumerate(row) if v != w and x > 0)
        chosen = [v for _, v in others[: top - include_self]] + [w] * include_self
        found[w, chosen] = np.asarray(row)[chosen]
    return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    docs = [rng.choice(12, size=n, p=rng.dirichlet([0.4] * 12)) for n in (1, 2, 7, 30, 0, 19, 40)]
    return Corpus.from_ids(docs, num_words=13)  # the last word does not occur


class TestCooccurrence:
    @pytest.mark.parametrize("window", [2, 5, 20, 39, 40, None])
    @pytest.mark.parametrize(
        ("top", "include_self"), [(1, True), (4, True), (4, False), (50, True)]
    )
    def test_counts_as_by_hand(self, corpus, window, top, include_self, monkeypatch):
        pairs = Counter()
        for d in range(corpus.num_docs):
            words = corpus.document(d).tolist()
            for (s, w), (t, v) in itertools.product(enumerate(words), repeat=2):
                pairs[w, v] += window is None or abs(s - t) < window
        relations = np.zeros((13, 13))
        for (w, v), count in pairs.items():
            relations[w, v] = count
        row_by_row = kept(relations, top, include_self)
        options = {"window": window, "top": top, "include_self": include_self}
        monkeypatch.setattr(word_relations, "_CELLS", 40)  # three rows in a block
        value = Transform.from_cooccurrence(corpus, weights="value", **options)
        same_as(value, columns_divided(row_by_row))
        uniform = Transform.from_cooccurrence(corpus, **options)
        same_as(uniform, columns_divided(row_by_row > 0))
        monkeypatch.undo()
        assert Transform.from_cooccurrence(corpus, **options) == uniform

    @pytest.mark.parametrize("window", [2, 5, 20, 40, None])
    def test_log_likelihood_as_by_hand(self, corpus, window, monkeypatch):
        pairs = np.zeros((13, 13))
        for d in range(corpus.num_docs):
            words = corpus.document(d).tolist()
            for (s, w), (t, v) in itertools.product(enumerate(words), repeat=2):
                pairs[w, v] += window is None or abs(s - t) < window
        relations = np.zeros((13, 13))
        total = pairs.sum()
        for w, v in itertools.product(range(12), repeat=2):
            both, one, other = pairs[w, v], pairs[w].sum(), pairs[v].sum()
            if both > one * other / total:
                table = [[both, one - both], [other - both, total - one - other + both]]
                relations[w, v] = scipy.stats.chi2_contingency(
                    table, correction=False, lambda_="log-likelihood"
                ).statistic
        monkeypatch.setattr(word_relations, "_CELLS", 40)  # three rows in a block
        made = Transform.from_cooccurrence(
            corpus, window=window, top=4, association="log-likelihood", weights="value",
            include_self=False,
        )  # fmt: skip
        same_as(made, columns_divided(kept(relations, 4, False)))

    def test_a_word_that_stands_for_many_is_said(self):
        rng = np.random.default_rng(0)
        docs = [[0, *rng.choice(np.arange(1, 300), 4).tolist()] for _ in range(600)]
        corpus = Corpus.from_ids(docs, num_words=300)
        with pytest.warns(UserWarning, match="the word '0' stands for 300 of 300 words"):
            Transform.from_cooccurrence(corpus, top=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Transform.from_cooccurrence(corpus, top=2, association="log-likelihood")

    def test_ties_go_to_the_lower_word(self):
        corpus = Corpus.from_ids([[3, 0], [3, 1], [3, 2], [3, 1]], num_words=4)
        made = Transform.from_cooccurrence(corpus, top=3)
        assert made.alternative[0, 3].tolist() == [0, 1, 3]

    def test_words_far_apart_or_in_two_documents_are_not_connected(self):
        corpus = Corpus.from_ids([[0, 2, 2, 1], [1, 0]], num_words=3)
        near = Transform.from_cooccurrence(Corpus.from_ids([[0, 2, 2, 1]], num_words=3), window=3)
        assert near.to_sparse()[[0], [1]] == 0
        assert Transform.from_cooccurrence(corpus, window=3).to_sparse()[[0], [1]] > 0
        apart = Corpus.from_ids([[2, 0], [1, 2]], num_words=3)
        assert Transform.from_cooccurrence(apart, window=3).to_sparse()[[0], [1]] == 0

    def test_a_corpus_without_order_needs_whole_documents(self):
        corpus = Corpus.from_counts([[3, 2, 1], [0, 2, 2]])
        with pytest.raises(ValueError, match="window is 5, but corpus has no order of the text"):
            Transform.from_cooccurrence(corpus, window=5)
        whole = Transform.from_cooccurrence(corpus, window=None)
        assert Transform.from_cooccurrence(corpus, window=6) == whole

    def test_explains_its_corpus(self, corpus):
        for include_self in (True, False):
            made = Transform.from_cooccurrence(corpus, include_self=include_self)
            made.check(corpus)
            assert made.vocabulary == corpus.vocabulary


class TestVectors:
    def test_cosines_as_by_hand(self, monkeypatch):
        rng = np.random.default_rng(1)
        vectors = rng.normal(size=(9, 3)) * np.geomspace(1e-200, 1e200, 9)[:, None]
        unit = vectors / np.abs(vectors).max(axis=1, keepdims=True)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        cosine = unit @ unit.T
        expected = columns_divided(kept(np.where(cosine >= 0.3, cosine, 0), 4, True))
        monkeypatch.setattr(word_relations, "_CELLS", 20)
        made = Transform.from_vectors(vectors, top=4, threshold=0.3)
        np.testing.assert_allclose(made.to_sparse().toarray(), expected, atol=1e-7)
        named = {name: vectors[v] for v, name in enumerate("abcdefghi")} | {"other": [0.0] * 3}
        again = Transform.from_vectors(named, list("abcdefghi"), top=4, threshold=0.3)
        np.testing.assert_array_equal(again.weight, made.weight)
        assert set(again.neighbours("c")["word"]) <= set("abcdefghi")

    def test_words_without_vectors_stand_for_themselves(self):
        made = Transform.from_vectors({"a": [1, 0], "b": [2, 0], "z": [0, 0]}, list("azbx"))
        same_as(made, [[0.5, 0, 0.5, 0], [0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1]])

    @pytest.mark.parametrize(
        ("vectors", "vocabulary", "message"),
        [
            ({"a": [1.0]}, None, "vocabulary is None but vectors is a dictionary"),
            ({"a": [1.0]}, ["b"], "vectors has no word of the vocabulary"),
            ({"a": [1.0], "b": [1.0, 2.0]}, ["a", "b"], r"vectors\['b'\] must be an array"),
            ({"a": [np.nan]}, ["a"], r"vectors\['a'\] must hold finite numbers"),
            ([[1.0, np.inf]], None, "vectors must hold finite numbers"),
            ([[1.0, 2.0]], ["a", "b"], "vocabulary has 2 entries"),
            (np.zeros((2, 0)), None, "vectors is empty"),
        ],
    )
    def test_wrong_ones_are_refused(self, vectors, vocabulary, message):
        with pytest.raises(ValueError, match=message):
            Transform.from_vectors(vectors, vocabulary)


NOUNS = {  # synset: words, hypernyms
    "thing": (["thing"], []),
    "animal": (["animal", "beast"], ["thing"]),
    "pet": (["pet"], ["animal"]),
    "canine": (["canine"], ["animal"]),
    "dog": (["dog", "hound"], ["pet", "canine"]),
    "cat": (["cat"], ["pet"]),
    "tool": (["tool"], ["thing"]),
    "catch": (["dog", "pawl"], ["tool"]),
}
ADJECTIVES = {"large": (["large", "big"], [])}
WORDS = ["big", "dog", "Cats", "beast", "large", "pawl", "tool", "zebu", "hound"]


class Synset:
    """A synset as NLTK has it, as far as it is read."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name

    def hypernyms(self):
        return [Synset(name) for name in (NOUNS | ADJECTIVES)[self.name][1][:1]]

    def instance_hypernyms(self):
        return [Synset(name) for name in (NOUNS | ADJECTIVES)[self.name][1][1:]]


class Reader:
    def synsets(self, word):
        found = (NOUNS | ADJECTIVES).items()
        return [Synset(name) for name, (words, _) in found if word.removesuffix("s") in words]


def similarity(one, other):
    """Return the best path similarity of two words by walking up from each synset."""

    def above(name, steps=0):
        yield name, steps
        for parent in (NOUNS | ADJECTIVES)[name][1]:
            yield from above(parent, steps + 1)

    if one == other:
        return 1.0
    pairs = itertools.product(*(Reader().synsets(word.lower()) for word in (one, other)))
    return max(
        (
            1 / (1 + i + j)
            for x, y in pairs
            for (s, i), (t, j) in itertools.product(above(x.name), above(y.name))
            if s == t
        ),
        default=0.0,
    )


class TestWordNet:
    @pytest.mark.parametrize("threshold", [0.0, 0.2, 0.25, 1 / 3, 1.0])
    @pytest.mark.parametrize("top", [1, 2, 3, 20])
    def test_similarities_as_by_hand(self, threshold, top, monkeypatch):
        relations = np.array([[similarity(one, other) for other in WORDS] for one in WORDS])
        relations[relations < threshold - 1e-9] = 0
        monkeypatch.setattr(word_relations, "_CELLS", 20)  # two rows in a block
        blocks = path_similarities(Reader(), WORDS, top, threshold)
        found = top_relations(blocks, len(WORDS), top, include_self=True)
        np.testing.assert_allclose(found.toarray(), kept(relations, top, True))
        everything = np.concatenate([x for _, x in path_similarities(Reader(), WORDS, 99, 0.0)])
        assert everything[1, 2] == similarity("dog", "Cats") == 1 / 3
        assert everything[0, 4] == 1  # large and big
        assert everything[1, 8] == everything[1, 5] == 1  # the best of two synsets

    def test_words_that_are_unknown_stand_for_themselves(self):
        blocks = path_similarities(Reader(), ["zebu", "gnu"], 10, 0.2)
        np.testing.assert_array_equal(next(iter(blocks))[1], np.eye(2))

    def test_nltk_is_optional(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "nltk", None)
        with pytest.raises(ValueError, match=r"needs NLTK .* pip install nltk"):
            Transform.from_wordnet(["dog"])


def write_wordnet(folder):
    """Write WordNet's files, with the nouns and adjectives above."""
    lines = {"noun": NOUNS, "verb": {}, "adj": ADJECTIVES, "adv": {}}
    for part, synsets in lines.items():
        kind = {"noun": "n", "adj": "a"}.get(part, "")
        texts = {  # the place of a synset is its offset in the file, of eight digits
            name: " 00 {} {:02x} {} {:03d} {}| gloss\n".format(
                kind, len(words), " ".join(f"{word} 0" for word in words), len(above),
                "".join(f"@ {{{parent}}} n 0000 " for parent in above),
            )
            for name, (words, above) in synsets.items()
        }  # fmt: skip
        offset, place = {}, len("  1 WordNet 3.0 Copyright\n")
        for name, text in texts.items():
            offset[name] = f"{place:08d}"
            place += 8 + len(text.format(**dict.fromkeys(synsets, "0" * 8)))
        data = "".join(offset[name] + text.format(**offset) for name, text in texts.items())
        (folder / f"data.{part}").write_text("  1 WordNet 3.0 Copyright\n" + data)
        senses = {}
        for name, (words, _) in synsets.items():
            for word in words:
                senses.setdefault(word, []).append(offset[name])
        index = "".join(
            f"{word} {kind} {len(at)} 0 {len(at)} 0 {' '.join(at)}\n"
            for word, at in sorted(senses.items())
        )
        (folder / f"index.{part}").write_text(index)
        (folder / f"{part}.exc").write_text("")


class TestNLTK:
    @pytest.fixture(autouse=True)
    def nltk(self):
        return pytest.importorskip("nltk", minversion="3.9.1", reason="NLTK is optional")

    def test_files_are_read_and_similarities_are_those_of_nltk(self, tmp_path, nltk):
        write_wordnet(tmp_path)
        allowed = list(nltk.data.path)
        with open_wordnet(tmp_path) as reader:
            everything = np.concatenate([x for _, x in path_similarities(reader, WORDS, 99, 0.0)])
            synsets = [reader.synsets(word.lower()) for word in WORDS]
            for (w, one), (v, other) in itertools.product(enumerate(synsets), repeat=2):
                found = [
                    x.path_similarity(y, simulate_root=False) or 0
                    for x, y in itertools.product(one, other)
                ]
                assert everything[w, v] == (1 if w == v else max(found, default=0))
        assert nltk.data.path == allowed
        expected = [[similarity(one, other) for other in WORDS] for one in WORDS]
        np.testing.assert_allclose(everything, expected)
        made = Transform.from_wordnet(WORDS, folder=tmp_path, top=4, threshold=0.3)
        relations = np.where(everything >= 0.3, everything, 0)
        same_as(made, columns_divided(kept(relations, 4, True)))
        assert made.vocabulary == tuple(WORDS)

    def test_missing_files_are_named(self, tmp_path, monkeypatch, nltk):
        with pytest.raises(ValueError, match=r"has no file data.noun .*apt install wordnet-base"):
            Transform.from_wordnet(["dog"], folder=tmp_path)
        write_wordnet(tmp_path)
        (tmp_path / "verb.exc").unlink()
        allowed = list(nltk.data.path)
        with pytest.raises(ValueError, match=r"is incomplete \(.*verb.exc"):
            Transform.from_wordnet(["dog"], folder=tmp_path)
        assert nltk.data.path == allowed
        (tmp_path / "verb.exc").write_text("")
        monkeypatch.setattr(word_relations, "FOLDER", tmp_path)
        assert Transform.from_wordnet(["dog", "hound"]) == Transform.from_wordnet(
            ["dog", "hound"], folder=tmp_path
        )


class TestOfCorpora:
    def make(self, docs=((0, 1), (2, 0), (1, 1)), groups=("b", "a", "b"), words="xyz"):
        return Corpus.from_ids(docs, vocabulary=list(words), groups=groups)

    def test_rows_in_the_order_of_the_groups(self, transform):
        corpus = Corpus.from_ids(
            [[0, 1], [2, 0], [1]], vocabulary=list("xyz"), groups=["b", "a", "b"],
            group_names=["b", "a"],
        )  # fmt: skip
        alternative, weight = transform.rows_for(corpus)
        np.testing.assert_array_equal(alternative, transform.alternative[::-1])
        np.testing.assert_array_equal(weight, transform.weight[::-1])
        one = Transform.identity(vocabulary=list("xyz"))
        assert one.rows_for(corpus)[1].tolist() == [[[1.0]] * 3] * 2
        plain = Corpus.from_ids([[0, 1], [2]], vocabulary=list("xyz"))
        assert one.rows_for(plain)[0].tolist() == [[[0], [1], [2]]]

    def test_only_some_groups_are_there(self, transform):
        corpus = self.make(groups=("b", "b", "b"))
        assert corpus.num_groups == 1
        np.testing.assert_array_equal(transform.rows_for(corpus)[1], transform.weight[1:])

    def test_words_and_groups_must_fit(self, transform):
        transform.check(self.make())
        with pytest.raises(ValueError, match="corpus has 4 words and the transform 3"):
            transform.check(self.make(words="wxyz"))
        with pytest.raises(ValueError, match="the word 'q' at 1, where the transform has 'y'"):
            transform.check(self.make(words="xqz"))
        with pytest.raises(ValueError, match="corpus has the group 'c'"):
            transform.rows_for(self.make(groups=("a", "b", "c")))
        with pytest.raises(ValueError, match="corpus has no groups"):
            transform.check(Corpus.from_ids([[0]], vocabulary=list("xyz")))
        Transform.from_matrix(A).check(self.make(words="xqz"))  # without names, by number

    def test_a_word_that_occurs_needs_an_entry(self):
        empty = np.array([[0, 0.5, 0.5], [1, 0.5, 0], [0, 0, 0.5]])
        lacks = np.array([[0, 0.5, 0.5], [1, 0.5, 0.5], [0, 0, 0]])
        made = Transform.from_matrix({"a": empty, "b": lacks}, vocabulary=list("xyz"))
        made.check(self.make())  # z is in group a only
        turned = {"vocabulary": list("xyz"), "groups": ["a", "b"], "group_names": ["b", "a"]}
        made.check(Corpus.from_ids([[2], [0]], **turned))
        with pytest.raises(ValueError, match="the word 'z' in group 'b' 2 times, but its row"):
            made.check(self.make(docs=((2, 2), (2, 0), (1, 1))))
        with pytest.raises(ValueError, match="the word 'z' 1 times"):
            Transform.from_matrix(lacks).check(Corpus.from_ids([[2, 0, 1]], vocabulary=list("xyz")))

    def test_neighbours(self, transform):
        table = transform.neighbours("y", top=2)
        assert table.columns.tolist() == ["group", "word", "weight"]
        assert table["group"].tolist() == ["a", "a", "b", "b"]
        assert table["word"].tolist() == ["y", "x", "y", "x"]  # ties in the order of the words
        np.testing.assert_allclose(table["weight"], [0.6, 0.3, 0.9, 0.5], rtol=1e-6)
        assert transform.neighbours(1, top=2).equals(table)
        plain = Transform.from_matrix(A).neighbours(2)
        assert plain.columns.tolist() == ["word", "weight"]
        assert plain["word"].tolist() == [2, 1]
        empty = Transform.from_matrix([[1, 1], [0, 0]]).neighbours(1)
        assert empty.columns.tolist() == ["word", "weight"]
        assert empty.empty
        with pytest.raises(ValueError, match="word is 'q', which is not in vocabulary"):
            transform.neighbours("q")
        with pytest.raises(ValueError, match="word must be an integer of at most 2"):
            transform.neighbours(3)

    def test_groups_of_matrices(self, transform):
        with pytest.raises(ValueError, match="group is None; give one of"):
            transform.to_sparse()
        with pytest.raises(ValueError, match="group is 'c'; give one of"):
            transform.to_sparse("c")
        with pytest.raises(ValueError, match="one matrix is for all groups"):
            Transform.identity(2).to_sparse("a")
