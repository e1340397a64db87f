"""Light files of topics: the same tables as the fit, for every kind of topic model."""

import json

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.data.storage import read_sealed, write_sealed

pytestmark = pytest.mark.filterwarnings("ignore:.* texts have no word that the fit knows")

TEXTS = ["cat dog cat mouse", "mars moon sun", "dog mouse dog", "sun moon mars mars", "cat moon"]
NEW = ["a dog and the sun", "MARS, mars!", "nothing known"]
OPTIONS = {"num_warmup": 2, "num_samples": 4, "keep_states": 2, "progress": False, "seed": 1}
MODELS = {
    "LDA": bnp.LDA(3, alpha=0.5, beta=0.2),
    "HDPLDA": bnp.HDPLDA(beta=0.1, max_topics=8),
    "PitmanYorLDA": bnp.PitmanYorLDA(3),
    "IBPCompoundDirichlet": bnp.IBPCompoundDirichlet(max_topics=8),
    "AuthorTopicModel": bnp.AuthorTopicModel(3),
    "SupervisedLDA": bnp.SupervisedLDA(3),
    "MultiTaskHDPLDA": bnp.MultiTaskHDPLDA(max_topics=8),
    "CrossCollectionLDA": bnp.CrossCollectionLDA(3),
    "DirichletMultinomialRegression": bnp.DirichletMultinomialRegression(3, "~ year"),
    "DifferentialTopicModel": bnp.DifferentialTopicModel(3),
}
YEARS = {"year": [1, 2, 3, 5, 8]}
WITH_COVARIATES = ("DirichletMultinomialRegression",)
BY_GROUP = ("MultiTaskHDPLDA", "CrossCollectionLDA", "DifferentialTopicModel")


@pytest.fixture(scope="module")
def corpus():
    authors = [["A"], ["B"], ["A", "B"], ["B"], ["A"]]
    return bnp.Corpus.from_texts(
        TEXTS, groups=list("ababb"), authors=authors, labels=list("xyxyx"), covariates=YEARS
    )


@pytest.fixture(scope="module")
def fitted(corpus, no_sweeps):
    with no_sweeps():
        return bnp.fit(MODELS["LDA"], corpus, num_chains=2, **OPTIONS)


@pytest.fixture
def saved(fitted, tmp_path):
    return bnp.load(fitted.save_model(tmp_path / "model.npz"))


FEW = ("LDA", "HDPLDA")
EACH = [pytest.param(x, marks=() if x in FEW else pytest.mark.slow) for x in MODELS]


@pytest.mark.parametrize("name", EACH)
def test_transform_has_the_same_bits(name, corpus, tmp_path, no_sweeps):
    with no_sweeps():
        fit = bnp.fit(MODELS[name], corpus, num_chains=2, **OPTIONS)
    saved = bnp.load(fit.save_model(tmp_path / "model.npz"))
    assert saved.model == fit.model
    new = corpus.read_texts(
        NEW, groups=["b", "a", "b"], authors=[["A"], ["C"], ["B", "C"]],
        covariates={"year": [3, 1, 9]},
    )  # fmt: skip
    how = {"num_sweeps": 6, "num_kept": 3, "seed": 2}
    pd.testing.assert_frame_equal(saved.transform(new, **how), fit.transform(new, **how), rtol=0,
                                  atol=0)  # fmt: skip
    ours, theirs = saved.topics(num_words=3), fit.topics(num_words=3)
    columns = [name for name in ours if name != "words"]
    pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    if name in BY_GROUP:
        for one in (saved, fit):
            with pytest.raises(ValueError, match=r"corpus must be a Corpus with groups.*a, b"):
                one.transform(NEW)
        grouped = saved.read_texts(NEW, groups=["b", "a", "b"])
        assert saved.transform(grouped, **how).equals(saved.transform(new, **how))
    else:

        def shares(one, texts):
            """Return shares of texts that all have the same covariates."""
            count = 1 if isinstance(texts, str) else len(texts)
            own = {"covariates": {"year": [4] * count}} if name in WITH_COVARIATES else {}
            return one.transform(texts, **own, **how)

        assert shares(saved, NEW).equals(shares(fit, NEW))
        many = shares(fit, [NEW[0], "zzzz", ""])[1:]  # these have the shares of the prior
        for one in (saved, fit):
            for alone in ("zzzz", ["zzzz"], [""]):
                found = shares(one, alone)
                assert found.index.tolist() == ["0"]
                np.testing.assert_array_equal(found, many[:1])
            np.testing.assert_array_equal(shares(one, ["zzzz", ""]), many)


def test_raw_texts_are_read_as_those_of_the_fit(fitted, corpus):
    table = fitted.transform(NEW)
    assert table.index.tolist() == ["0", "1", "2"]
    assert table.equals(fitted.transform(corpus.read_texts(NEW)))
    assert fitted.transform(NEW[0]).equals(fitted.transform(NEW[:1]))
    with pytest.raises(ValueError, match=r"corpus must be a Corpus, or texts .* got list \[\]"):
        fitted.transform([])


def test_what_is_in_it(fitted, corpus, saved, tmp_path):
    assert saved.vocabulary == corpus.vocabulary
    assert saved.tokenizer == corpus.tokenizer
    assert saved.topics(num_words=2)["words"].equals(fitted.topics(num_words=2)["words"])
    assert repr(saved) == f"SavedModel(LDA: {len(saved.topics())} topics, 6 words, 4 states)"
    content = read_sealed(tmp_path / "model.npz", "", required=True)
    assert not {"z", "doc", "word"} & set(content)
    assert content["mixtures/phi"].dtype == np.float32
    num_tokens = corpus.num_tokens
    assert all(num_tokens not in array.shape for array in content.values())
    matched, notes = saved.match(bnp.Corpus.from_texts(["cat emu"]))
    assert matched.words(0) == ["cat"]
    assert notes == ["1 tokens (50.0%) are left out: words that the fit has not seen"]
    assert len(saved.match(corpus)[1]) == 1


def test_chains_and_weights(fitted, corpus, tmp_path):
    alone = bnp.load(fitted.of_chain(1).save_model(tmp_path / "one.npz"))
    assert alone.transform(NEW).equals(fitted.of_chain(1).transform(NEW))
    test = corpus.read_texts(["cat mouse dog dog", "moon sun mars"])
    stacked = fitted.stacked(test)
    saved = bnp.load(stacked.save_model(tmp_path / "stacked.npz"))
    assert saved.transform(NEW).equals(stacked.transform(NEW))
    pd.testing.assert_series_equal(saved.topics()["prevalence"], stacked.topics()["prevalence"])


@pytest.mark.slow
def test_a_corpus_without_texts(tmp_path):
    corpus = bnp.Corpus.from_ids([[0, 1, 0], [2, 1]], num_words=3)
    fit = bnp.fit(bnp.LDA(2), corpus, num_chains=1, **OPTIONS)
    saved = bnp.load(fit.save_model(tmp_path / "model.npz"))
    assert saved.tokenizer is None
    assert saved.transform(corpus).equals(fit.transform(corpus))
    for one in (fit, saved):
        with pytest.raises(ValueError, match=r"was not made from texts.*pass a Corpus"):
            one.transform(["cat"])


class TestRefusals:
    @pytest.mark.slow
    def test_fits_that_can_not_be_saved(self, made_up_factors, corpus, tmp_path):
        ones = np.ones((4, 2))
        sources = bnp.Sources.from_arrays([ones @ ones.T])
        factors = made_up_factors(
            bnp.GaussianFactorAnalysis(), sources, ones.T[:, :1] @ np.ones((1, 4)), ones,
            sigma2_w=1.0, sigma2_n=0.01,
        )  # fmt: skip
        with pytest.raises(AttributeError, match=r"has no 'save_model'; it has .* save\(path\)"):
            factors.save_model(tmp_path / "x.npz")
        model = bnp.SupervisedLDA(2, response="one-vs-rest")
        labelled = corpus.with_labels(list("xyzxy"))
        each = bnp.fit(model, labelled, num_chains=1, **OPTIONS)
        with pytest.raises(AttributeError, match=r"'save_model'; it has .* of_class\(label\)"):
            each.save_model(tmp_path / "x.npz")
        one = each.of_class("x")
        saved = bnp.load(one.save_model(tmp_path / "x.npz"))
        assert saved.transform(NEW).equals(one.transform(NEW))

    @pytest.mark.slow
    def test_fits_without_states(self, corpus, tmp_path):
        fit = bnp.fit(MODELS["LDA"], corpus, num_chains=1, **OPTIONS | {"keep_states": 0})
        with pytest.raises(ValueError, match="keep_states must be positive"):
            fit.save_model(tmp_path / "x.npz")
        assert not list(tmp_path.iterdir())

    def test_damaged_files(self, saved, tmp_path):
        path = tmp_path / "model.npz"
        content = path.read_bytes()
        for i in np.linspace(0, len(content) - 80, 10).astype(int):
            path.write_bytes(content[:i] + bytes([content[i] ^ 255]) + content[i + 1 :])
            with pytest.raises(ValueError, match=r"model\.npz is damaged"):
                bnp.load(path)
        path.write_bytes(content[:-80])
        with pytest.raises(ValueError, match=r"model\.npz .*fit\.save_model"):
            bnp.load(path)

    def test_files_of_others(self, saved, corpus, fitted, tmp_path):
        path = tmp_path / "model.npz"
        content = read_sealed(path, "", required=True)

        def about(**change):
            return {"about": np.array(json.dumps(json.loads(str(content["about"])) | change))}

        for change, message in (
            ({"schema": np.array("bnp-model-1")}, "not written by fit.save_model of this version"),
            (about(model={"model": "Mine"}), "can't be read by this version: model must be one"),
            (about(tokenizer={"x": 1}), "a tokenizer that can't be read"),
            ({"about": np.array("[")}, "can't be read by this version"),
        ):
            write_sealed(path, content | change)
            with pytest.raises(ValueError, match=message):
                bnp.load(path)
        write_sealed(path, {name: x for name, x in content.items() if name != "mixtures/phi"})
        with pytest.raises(ValueError, match="lacks mixtures/phi"):
            bnp.load(path)
        np.savez(path, **content)
        with pytest.raises(ValueError, match="its checksum is missing"):
            bnp.load(path)

    @pytest.mark.parametrize("number", [0, 101])
    def test_numbers_of_words(self, saved, number):
        with pytest.raises(ValueError, match="num_words must be an integer of at"):
            saved.topics(num_words=number)
