"""`Fit`: files it reads again, and the rows of its heat maps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data import arguments


@pytest.fixture(scope="module")
def fitted(no_sweeps):
    docs = [[0, 1, 2, 0], [3, 4, 5, 3, 4], [0, 2, 5], [1, 1, 4]]
    corpus = bnp.Corpus.from_ids(docs, vocabulary=list("uvwxyz"), groups=list("abab"))
    model = bnp.LDA(3, alpha=0.5, beta=0.2)
    options = {"schedule": "sequential", "progress": False, "keep_states": 2}
    with no_sweeps():
        return bnp.fit(model, corpus, num_warmup=2, num_samples=4, num_chains=2, **options)


def test_load_reads_what_save_wrote(fitted, tmp_path):
    path = fitted.save(tmp_path / "draws.nc")
    again = bnp.Fit.load(path, fitted.dataset)
    assert again.model == fitted.model
    assert again.posterior.identical(fitted.posterior)
    assert again.topics().equals(fitted.topics())


def test_load_refuses_other_data_and_files(fitted, tmp_path):
    path = fitted.save(tmp_path / "draws.nc")
    other = bnp.Corpus.from_ids([[0, 1]], num_words=6)
    with pytest.raises(ValueError, match=r"data are not those of .*draws\.nc"):
        bnp.Fit.load(path, other)
    fitted.posterior.to_netcdf(tmp_path / "bare.nc")
    with pytest.raises(ValueError, match=r"bare\.nc is damaged: its checksum is missing"):
        bnp.Fit.load(tmp_path / "bare.nc", fitted.dataset)


def test_coherence_by_name(fitted):
    found = fitted.coherence(top=3)
    assert found.name == "npmi"
    assert found.index.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found, fitted.npmi(top=3))
    other = bnp.Corpus.from_ids([[0, 1, 2, 3], [4, 5]], vocabulary=list("uvwxyz"))
    for options in ({"reference": other}, {"window": 2}):
        found = fitted.coherence("npmi", top=3, **options)
        np.testing.assert_array_equal(found, fitted.npmi(top=3, **options))
    with pytest.raises(ValueError, match="measure must be one of"):
        fitted.coherence("pmi")
    with pytest.raises(ValueError, match="top must be an integer of at least 2"):
        fitted.coherence(top=1)


def test_words_of_a_reference_are_matched_by_name(fitted):
    """The numbers of words differ between corpora."""
    docs = ["uvwx", "yz", "vwz", "ab"]

    def over(words):
        ids = [[words.index(word) for word in doc] for doc in docs]
        return bnp.Corpus.from_ids(ids, vocabulary=list(words))

    for top in (2, 3):
        expected = fitted.npmi(over("uvwxyzab"), top=top)
        for words in ("abzyxwvu", "zabuvwxy"):
            np.testing.assert_array_equal(fitted.npmi(over(words), top=top), expected)
            found = fitted.coherence(reference=over(words), top=top)
            np.testing.assert_array_equal(found, expected)
    lacking = bnp.Corpus.from_ids([[0, 1], [2]], vocabulary=list("uab"))
    with pytest.raises(ValueError, match=r"has the word '[v-z]', which is not in the vocabulary"):
        fitted.coherence(reference=lacking, top=3)


@pytest.mark.parametrize("name", ["plot_topic_similarity", "plot_prevalence_by_group"])
def test_heat_maps_show_the_topics_asked_for(fitted, name):
    draw = getattr(fitted, name)
    assert len(draw().get_yticklabels()) == 3
    labels = [label.get_text() for label in draw(topics=[2, 0]).get_yticklabels()]
    words = fitted.topics()["words"]
    assert len(labels) == 2
    assert labels[0].split()[-1].strip(",") in words[0] or words[0].split(",")[0] in labels[0]
    for wrong in ([], [3], [-1]):
        with pytest.raises(ValueError, match="topics must be a list of numbers from 0 to 2"):
            draw(topics=wrong)
    plt.close("all")


def test_the_page_of_a_fit_escapes_names(fitted):
    page = fitted._repr_html_()
    assert "<b>TopicFit</b>" in page
    assert "LDA(num_topics=3" in page
    assert "4 of each of 2 chains" in page
    named = bnp.TopicFit(fitted.model, "<script>", fitted.data)._repr_html_()
    assert "&lt;script&gt;" in named
    assert "<script>" not in named


def test_one_number_in_place_of_a_list():
    with pytest.raises(ValueError, match=r"topics must be a list .* from 0 to 2, got 0: write \[0"):
        arguments.indices("topics", 0, 3)
