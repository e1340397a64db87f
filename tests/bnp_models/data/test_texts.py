"""How texts are cut into words, and the description of that."""

import json

import pytest

from bnp_models.data.texts import OPTIONS, make_cutter, read_tokenizer

PLAIN = {"stop_words": None, "lowercase": True, "token_pattern": r"\w+"}


def test_words_and_how_they_were_cut():
    options = OPTIONS | {"stop_words": {"dog", "emu"}, "token_pattern": r"\w+"}
    found = make_cutter(None, None, None, **options)
    assert [list(found.analyze(text)) for text in ("Cat dog", "a cat")] == [["cat"], ["a", "cat"]]
    assert found.vocabulary is None
    assert found.tokenizer == PLAIN | {"stop_words": ["dog", "emu"]}
    assert read_tokenizer("x", json.dumps(found.tokenizer)) == found.tokenizer


@pytest.mark.parametrize("tokenizer", [PLAIN, PLAIN | {"stop_words": []}, {"vectorizer": "Mine()"}])
def test_tokenizers_are_read(tokenizer):
    assert read_tokenizer("x", json.dumps(tokenizer)) == tokenizer


@pytest.mark.parametrize(
    "text",
    ["", "3", "{}", "[1]", json.dumps(PLAIN | {"lowercase": 1}), json.dumps({"vectorizer": 1}),
     json.dumps(PLAIN | {"token_pattern": "("}), json.dumps(PLAIN | {"stop_words": "english"}),
     json.dumps(PLAIN | {"more": 1})],
)  # fmt: skip
def test_others_are_refused(text):
    with pytest.raises(ValueError, match="file has a tokenizer that can't be read"):
        read_tokenizer("file", text)
