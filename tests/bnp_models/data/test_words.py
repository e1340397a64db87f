# ruff: noqa: RUF001
"""What a word is, in several languages."""

import unicodedata

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from bnp_models import Corpus


def words(text, **options):
    return Corpus.from_texts([text], stop_words=None, **options).words(0)


WHOLE = {
    "Hindi": "किताब पानी विद्यालय मौसम माँ",
    "Bengali": "বাংলা ভাষা কিতাব বিদ্যালয়",
    "Tamil": "தமிழ் மொழி புத்தகம் தீ",
    "Thai": "ภาษาไทย ที่ น้ำ",
    "Hebrew": "שָׁלוֹם עוֹלָם",
    "Arabic": "مُحَمَّد كِتَاب اَلْعَرَبِيَّة",
    "Persian": "می\u200cخواهم کتاب",
    "Sinhala": "ශ්\u200dරී ලංකා",
    "Vietnamese": "tiếng việt đường phố",
    "German": "straße über größe",
    "Turkish": "ısı ışık çığ iğde",
    "Chinese": "自然语言 处理",
    "Japanese": "ガラス 葛\U000e0100飾",
    "Adlam": "𞤀𞤣𞤤𞤢𞤥\U0001e944".lower(),
    "English": "covid19 b2b mp3 machine_learning 3d",
}


@pytest.mark.parametrize("language", WHOLE)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_are_whole(language, form):
    text = unicodedata.normalize("NFC", WHOLE[language])
    assert words(unicodedata.normalize(form, WHOLE[language])) == text.split()


def test_numbers_and_underscores_alone_are_no_words():
    text = "2019 x 2019_01 12² ½ __init__ _emph_ a_ 1\ufe0f\u20e3 \u0301 end. 7-up, x_1"
    assert words(text) == ["init", "emph", "end", "up", "x_1"]
    assert words("in 2019", token_pattern=r"\w+") == ["in", "2019"]


def test_capitals_of_turkish():
    """Python turns İ into an i with one more dot."""
    assert words("İyi iyi IŞIK") == ["iyi", "iyi", "işik"]
    assert words("İyi", lowercase=False) == ["İyi"]


NFC, NFD = (unicodedata.normalize(form, "élève naïveté") for form in ("NFC", "NFD"))
assert NFC != NFD


@pytest.mark.parametrize(
    "options",
    [{}, {"token_pattern": r"\S+"}, {"vocabulary": NFD.split()}, {"vocabulary": NFC.split()},
     {"vectorizer": CountVectorizer()}, {"vectorizer": CountVectorizer().fit([NFC])},
     {"vectorizer": CountVectorizer(token_pattern=r"\S+").fit([NFD])}],
)  # fmt: skip
@pytest.mark.parametrize("first", [NFC, NFD])
def test_composed_and_decomposed_letters_are_the_same(options, first, tmp_path):
    corpus = Corpus.from_texts([first], keep_texts=True, **options)
    assert set(corpus.vocabulary) == set(NFC.split())
    assert corpus.texts == (first,)
    for text in (NFC, NFD):
        assert corpus.read_texts([text]).words(0) == NFC.split()
        again = Corpus.from_texts([text], vocabulary=corpus.vocabulary)
        assert again.words(0) == NFC.split()
    if getattr(options.get("vectorizer"), "vocabulary_", True):
        stored = Corpus.from_texts(iter([first]), store=tmp_path / "x", **options)
        assert stored.words(0) == NFC.split()


def test_binary_vectorizers_are_refused():
    for vectorizer in (CountVectorizer(binary=True), CountVectorizer(binary=True).fit(["cat"])):
        with pytest.raises(ValueError, match=r"vectorizer is .*binary=True.*; give it binary=Fal"):
            Corpus.from_texts(["cat cat"], vectorizer=vectorizer)


def test_stop_words_are_composed():
    for stop_words in (NFC.split()[:1], NFD.split()[:1]):
        assert Corpus.from_texts([NFD], stop_words=stop_words).vocabulary == ("naïveté",)
        for form in (NFC, NFD):
            corpus = Corpus.from_ids([[0, 1]], vocabulary=form.split())
            assert corpus.prune(stop_words=stop_words).num_words == 1


def test_marks_in_a_pattern_of_the_user():
    assert words("पानी 12", token_pattern=r"[\w\p{M}]+") == ["पानी", "12"]
    with pytest.raises(ValueError, match="token_pattern must be a regular expression"):
        words("पानी", token_pattern=r"\p{L}")


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
@pytest.mark.parametrize(
    ("text", "cut"),
    [("我喜欢自然语言", ["我", "喜", "欢", "自", "然", "语", "言"]),
     ("カ\u3099ラスか", ["ガ", "ラ", "ス", "か"])],
)  # fmt: skip
def test_a_tokenizer_of_the_user(text, cut):
    vectorizer = CountVectorizer(tokenizer=list, lowercase=False)
    assert Corpus.from_texts([text], vectorizer=vectorizer).words(0) == cut
