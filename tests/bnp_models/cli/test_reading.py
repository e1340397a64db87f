"""Later data are read as those of a run were: which options hold, and what is said."""

import gzip

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.cli.reading import read_again, read_data, reader_help

MODEL = bnp.LDA(2)
FACTORS = bnp.GaussianFactorAnalysis()


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        opener = gzip.open if name.endswith(".gz") else open
        with opener(tmp_path / name, "wt") as file:
            file.write(text)
        return str(tmp_path / name)

    return write


@pytest.fixture
def texts(write):
    return write("train.jsonl", '{"body": "Cat cat DOG"}\n{"body": "dog Cat"}\n')


def again(path, reading, *pairs, model=MODEL, format=None, tokenizer=None):
    return read_again(model, path, "run", reading, tokenizer, format=format, read=pairs)


def reading_of(path, *pairs, model=MODEL, format=None):
    return read_data(model, path, format=format, read=pairs)[1]


def test_what_is_kept(texts, write):
    corpus, reading = read_data(MODEL, texts, read=["text=body", "lowercase=False", "min_df=1"])
    assert corpus.vocabulary == ("Cat", "DOG", "cat", "dog")
    options = {"text": "body", "lowercase": False, "min_df": 1}
    assert reading == {"format": "jsonl", "options": options, "ending": ".jsonl"}
    pairs = ["text=body", "stop_words={'dog', 'bird'}", "encoding=utf-8"]
    assert reading_of(texts, *pairs)["options"]["stop_words"] == ["bird", "dog"]


def test_files_of_the_same_format(texts, write, capsys):
    reading = reading_of(texts, "text=body", "lowercase=False", "min_df=2")
    corpus = again(write("test.jsonl.gz", '{"body": "Cat cat Bird"}\n'), reading)
    assert corpus.vocabulary == ("Bird", "Cat", "cat")  # also words in one document
    assert "test.jsonl.gz as the data of run were read: text='body', lowercase=False" in (
        capsys.readouterr().err
    )


def test_new_documents_need_no_names_and_no_labels(write, capsys):
    train = write("train.csv", "body,title,good,venue\ncat,a,yes,x\ndog,b,no,y\n")
    reading = reading_of(train, "text=body", "name=title", "label=good")
    new = write("new.csv", "body\ncat\ndog\n")
    corpus = again(new, reading)
    assert corpus.doc_names == ("0", "1")
    assert corpus.label is None
    err = capsys.readouterr().err
    assert f"{new} has no 'title', which name= names in run: it is read without\n" in err
    assert f"{new} has no 'good', which label= names in run" in err
    with pytest.raises(ValueError, match="has no 'title' for name=; give some of 'body'"):
        again(new, reading, "name=title")  # asked for here
    with pytest.raises(ValueError, match="has no 'venue' for group="):
        again(new, reading_of(train, "text=body", "group=venue"))


def test_files_of_another_format(texts, write, capsys):
    reading = reading_of(texts, "text=body", "lowercase=False", "encoding=latin-1")
    corpus = again(write("test.txt", "Cat cat\n"), reading)
    assert corpus.vocabulary == ("Cat", "cat")
    assert "were read: lowercase=False\n" in capsys.readouterr().err


def test_what_is_given_again_is_taken_and_said(texts, write, capsys):
    reading = reading_of(texts, "text=body", "lowercase=False")
    new = write("test.jsonl", '{"body": "Cat cat", "title": "DOG"}\n')
    assert again(new, reading, "lowercase=True", "text=title").vocabulary == ("dog",)
    err = capsys.readouterr().err
    assert "with lowercase=True; the data of run had lowercase=False\n" in err
    assert "with text='title'; the data of run had text='body'\n" in err
    assert again(new, reading, "lowercase=False").vocabulary == ("Cat", "cat")
    assert "the data of run had" not in capsys.readouterr().err
    plain = reading_of(texts, "text=body")
    assert again(new, plain, "lowercase=False").vocabulary == ("Cat", "cat")
    assert "with lowercase=False; the data of run had lowercase=True\n" in capsys.readouterr().err


def test_documents_that_are_words_already(texts, write):
    reading = reading_of(texts, "text=body", "lowercase=False")
    new = write("test.jsonl", '{"words": ["Cat", "dog"]}\n')
    assert again(new, reading, "tokens=words").vocabulary == ("Cat", "dog")


def test_the_format_that_was_given_holds_for_files_with_the_same_ending(write):
    reading = reading_of(write("train.data", "Cat\ndog\n"), format="lines")
    assert again(write("test.data", "bird\n"), reading).vocabulary == ("bird",)
    assert again(write("test.csv", "text\nbird\n"), reading).vocabulary == ("bird",)
    with pytest.raises(ValueError, match=r"no format goes by \.other; give --format"):
        again(write("test.other", "bird\n"), reading)


def test_splits_belong_to_one_file(write, tmp_path):
    train = {"doc": [0, 1], "word": [0, 1], "count": [1, 2], "vocab": ["a", "b"]}
    np.savez(tmp_path / "data.npz", **train, split=[0, 1], split_names=["train", "test"])
    reading = reading_of(str(tmp_path / "data.npz"), "split=train")
    assert again(str(tmp_path / "data.npz"), reading).num_docs == 2


def test_words_of_bags(write, tmp_path, monkeypatch, capsys):
    write("words.txt", "cat\ndog\n")
    monkeypatch.chdir(tmp_path)
    reading = reading_of(write("train.ldac", "2 0:1 1:2\n"), "vocabulary=words.txt")
    monkeypatch.chdir("/")
    assert again(write("test.ldac", "1 1:1\n"), reading).vocabulary == ("cat", "dog")
    capsys.readouterr()
    assert again(write("test.txt", "cat\n"), reading).vocabulary == ("cat",)
    assert "format ldac, which does not say how texts become words" in capsys.readouterr().err
    with pytest.raises(ValueError, match="give name=value with a name that the format ldac has"):
        again(write("test.ldac", "1 1:1\n"), reading, "lowercase=False")


@pytest.mark.parametrize("reading", [None, {"by": "hand"}])
def test_runs_that_do_not_say(texts, capsys, reading):
    assert again(texts, reading, "text=body").vocabulary == ("cat", "dog")
    assert "run does not say how its data were read" in capsys.readouterr().err


def test_tables(write, capsys):
    pairs = ["source=kind", "kind=reals"]
    train = write("train.csv", "a,b,kind\n1,2,x\n3,4,y\n")
    reading = reading_of(train, *pairs, model=FACTORS)
    assert reading["format"] == "table"
    sources = again(write("test.csv", "a,b,kind\n1,2,x\n"), reading, model=FACTORS)
    assert (sources.source_names, sources.kind) == (("x",), "reals")
    assert "were read: source='kind', kind='reals'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("Yes", True), ("on", True), ("1", True), ("False", False), ("no", False),
     ("OFF", False), ("0", False)],
)  # fmt: skip
def test_flags_as_people_write_them(texts, text, expected):
    corpus, reading = read_data(MODEL, texts, read=["text=body", f"lowercase={text}"])
    assert reading["options"]["lowercase"] is expected
    assert ("DOG" in corpus.vocabulary) is not expected


def test_other_flags_are_refused(texts):
    with pytest.raises(ValueError, match="--read lowercase=maybe: give true or false"):
        reading_of(texts, "text=body", "lowercase=maybe")
    with pytest.raises(ValueError, match="--read lowercase=None: give true or false"):
        reading_of(texts, "text=body", "lowercase=None")


def test_flags_that_may_be_missing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("cat dog")
    assert read_data(MODEL, str(tmp_path), read=["groups=no"])[0].group is None
    assert read_data(MODEL, str(tmp_path), read=["groups=none"])[0].group_names == ("a",)


def test_stop_words(write, capsys):
    texts = write("train.txt", "the cat and a dog\n")
    words = write("stop.txt", "# ours\ndog\n\n the\n")

    def found(given):
        return read_data(MODEL, texts, read=[f"stop_words={given}"])[0].vocabulary

    assert found("english") == ("cat", "dog")
    assert found("none") == found("None") == ("and", "cat", "dog", "the")
    assert found("cat, dog") == ("and", "the")
    assert found("cat") == found("['cat']") == ("and", "dog", "the")
    capsys.readouterr()
    assert found(words) == ("and", "cat")
    assert capsys.readouterr().err == f"2 stop words from {words}\n"
    assert reading_of(texts, f"stop_words={words}")["options"]["stop_words"] == ["dog", "the"]
    for missing in ("missing.txt", "no/such"):
        with pytest.raises(ValueError, match=f"stop_words={missing}: there is no such file"):
            found(missing)


def test_corpora_that_remember_how_they_were_read(texts, write, capsys):
    corpus = bnp.Corpus.from_texts(["Cat DOG"], lowercase=False, stop_words=["dog"])
    new = write("new.txt", "dog Cat cat\n")
    for reading in (None, {"format": "npz", "options": {}, "ending": ".npz"}):
        assert again(new, reading, tokenizer=corpus.tokenizer).vocabulary == ("Cat", "cat")
        err = capsys.readouterr().err
        assert "were read: stop_words=['dog'], lowercase=False" in err
        assert "does not say" not in err
    own = {"vectorizer": "Mine()"}
    assert again(new, None, tokenizer=own).vocabulary == ("cat", "dog")
    assert "run does not say how its data were read" in capsys.readouterr().err


def test_help_lists_the_options_with_their_defaults():
    text = " ".join(reader_help().split())
    for part in ("csv: text, group, authors", "author_separator=;", "table: source, row, kind",
                 "called text, group, authors, label or name are read without being asked for",
                 "stop_words=english", "texts (jsonl, csv, lines, folder)"):  # fmt: skip
        assert part in text


def test_columns_that_are_read_without_being_asked_for(write):
    assert "without being asked for" in " ".join(str(bnp.read_corpus.__doc__).split())
    table = write("a.csv", "text,group,authors,label,name\ncat,g,ann;bob,x,one\ndog,h,ann,y,two\n")
    found, _ = read_data(MODEL, table)
    assert found.author_names == ("ann", "bob")
    assert (found.group_names, found.label_names, found.doc_names) == (
        ("g", "h"), ("x", "y"), ("one", "two"),
    )  # fmt: skip
    none = [f"{role}=" for role in ("group", "authors", "label", "name")]
    found, _ = read_data(MODEL, table, read=none)
    assert (found.num_authors, found.num_groups, found.label) == (0, 0, None)
    assert found.doc_names == ("0", "1")


def test_covariates_belong_to_the_run(write, capsys):
    table = write("train.csv", "text,year,the party\ncat dog,2001,b\ndog,2004,a\n")
    for given in ("year,the party", "year, the party", "['year', 'the party']"):
        corpus, reading = read_data(MODEL, table, read=[f"covariates={given}"])
        assert corpus.covariates["year"].tolist() == [2001, 2004]
        assert corpus.covariates["the party"].tolist() == ["b", "a"]
    new = write("test.csv", "text\ncat\n")
    assert again(new, reading).covariates.shape == (1, 0)
    other = write("other.csv", "text,year\ncat,7\n")
    assert again(other, reading, "covariates=year").covariates["year"].tolist() == [7]
    with pytest.raises(ValueError, match=r"no 'yeer' for covariates=; .*: did you mean 'year'?"):
        read_data(MODEL, table, read=["covariates=yeer"])
    for name in ("train.txt", "train.ldac"):  # no columns
        with pytest.raises(ValueError, match="give name=value with a name that the format"):
            read_data(MODEL, write(name, "1 0:1\n"), read=["covariates=year"])
