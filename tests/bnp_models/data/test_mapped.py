"""Mapped corpora: the same corpus as in memory, whole or not there, and damage is noticed."""

import dataclasses
import html
import json
import os
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import bnp_models as bnp
from bnp_models.data import storage
from bnp_models.data.corpus import Corpus
from bnp_models.data.documents import is_mapped
from bnp_models.data.files import checksum

TEXTS = ["The cat saw the dog.", "Dogs and cats", "", "A dog: saw!", "fish swim"]
LEAVES = ("doc", "word", "doc_length", "group", "label", "author_ptr", "author_idx")


@pytest.fixture
def corpus():
    return Corpus.from_texts(
        TEXTS,
        groups=["land", "land", "sea", "land", "sea"],
        authors=[["Ann"], ["Bob", "Ann"], ["Cid"], ["Ann"], ["Bob"]],
        labels=[0.5, -1.0, 2.0, 0.0, 3.5],
        doc_names=["p", "q", "r", "s", "ö"],
    )


@pytest.fixture
def folder(corpus, tmp_path):
    corpus.save(tmp_path / "saved", mapped=True)
    return tmp_path / "saved"


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(storage, "CHUNK", 3)


OTHERS = {
    "names": Corpus.from_ids([[1, 0], []], vocabulary=["ö", ""]),
    "labels": Corpus.from_ids([[0]], 2, labels=["x"], groups=["a"], group_names=["a", "empty"]),
    "numbers": Corpus.from_ids([[0], []], 1, labels=[3, 4]),
    "empty ends": Corpus.from_ids([[], [], [0, 1, 0, 1, 1, 0, 1], [], [1], []], 2),
}


class TestRoundTrip:
    def test_the_loaded_corpus_is_the_same(self, corpus, folder):
        loaded = Corpus.load(folder)
        assert loaded == corpus
        assert (loaded.digest, loaded.tokenizer) == (corpus.digest, corpus.tokenizer)
        assert dataclasses.replace(loaded).digest == corpus.digest  # computed anew
        for name in LEAVES:
            mine, theirs = getattr(loaded, name), getattr(corpus, name)
            assert type(mine) is np.ndarray
            assert (mine.dtype, mine.tolist()) == (theirs.dtype, theirs.tolist())
            assert is_mapped(mine)
            assert not mine.flags.writeable
        assert loaded.is_mapped
        assert not corpus.is_mapped
        assert not jax.device_put(loaded).is_mapped
        assert [path.name for path in folder.parent.iterdir()] == ["saved"]
        assert {path.name for path in folder.iterdir()} == {
            "corpus.json", *(f"{name}.npy" for name in LEAVES)
        }  # fmt: skip

    @pytest.mark.parametrize("name", OTHERS)
    def test_what_is_optional(self, name, tmp_path, small_chunks):
        OTHERS[name].save(str(tmp_path / "x"), mapped=True)
        assert Corpus.load(str(tmp_path / "x")) == OTHERS[name]

    def test_the_arrays_are_plain_files(self, corpus, folder):
        np.testing.assert_array_equal(np.load(folder / "word.npy", allow_pickle=False), corpus.word)

    def test_the_digest_is_not_computed_again(self, corpus, folder, tmp_path, monkeypatch):
        corpus.save(tmp_path / "x.npz")
        loaded = [Corpus.load(folder), Corpus.load(tmp_path / "x.npz")]
        monkeypatch.setattr(sys.modules["bnp_models.data.corpus"], "content_digest", None)
        assert [one.digest for one in loaded] == [corpus.digest] * 2
        loaded[0].save(tmp_path / "again", mapped=True)
        assert Corpus.load(tmp_path / "again") == corpus

    def test_mapped_and_in_memory_at_once(self, corpus, folder, tmp_path):
        """Operations that leave an array as it is keep it mapped."""
        loaded = Corpus.load(folder)
        assert loaded.with_labels(range(5)).is_mapped
        assert loaded.with_labels(range(5)) == corpus.with_labels(range(5))
        half = loaded.halves()[0]
        assert not half.is_mapped
        assert is_mapped(half.group)
        half.save(tmp_path / "half", mapped=True)
        assert Corpus.load(tmp_path / "half") == corpus.halves()[0]


OPERATIONS = {
    "select": lambda c: [c.select([3, 1, 3])],
    "split": lambda c: c.train_test_split(2, seed=1, stratify=True),
    "halves": lambda c: c.halves(1),
    "prune": lambda c: [c.prune(min_df=2)],
    "vocabulary": lambda c: [c.with_vocabulary(["saw", "dog"])],
    "labels": lambda c: [c.with_labels(["a", "b", "a", "b", "a"])],
    "texts": lambda c: [c.read_texts(["a dog", "a cat"], groups=["sea", "air"])],
    "pickle": lambda c: [pickle.loads(pickle.dumps(c))],
    "jit": lambda c: [jax.jit(lambda corpus: corpus)(c)],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_give_what_they_give_in_memory(name, corpus, folder):
    found, expected = (list(OPERATIONS[name](c)) for c in (Corpus.load(folder), corpus))
    assert found == expected


def test_documents_and_counts(corpus, folder):
    loaded = Corpus.load(folder)
    for d in range(5):
        assert loaded.words(d) == corpus.words(d)
        assert loaded.authors(d) == corpus.authors(d)
    assert (loaded.to_counts() != corpus.to_counts()).nnz == 0
    assert repr(loaded) == repr(corpus)


class TestRefused:
    def test_raw_texts(self, tmp_path):
        corpus = Corpus.from_texts(["cat"], keep_texts=True)
        with pytest.raises(ValueError, match=r"mapped is True but .* raw texts, .*keep_texts=Fal"):
            corpus.save(tmp_path / "x", mapped=True)
        assert not any(tmp_path.iterdir())

    @pytest.mark.parametrize("make", ["mkdir", "touch"])
    def test_a_path_that_exists(self, corpus, tmp_path, make):
        getattr(tmp_path / "x", make)()
        with pytest.raises(ValueError, match=r"path is '.*x', which exists already: give another"):
            corpus.save(tmp_path / "x", mapped=True)
        assert [path.name for path in tmp_path.iterdir()] == ["x"]

    def test_a_failed_save_leaves_nothing(self, corpus, tmp_path, monkeypatch):
        def fail(*args, **kwargs):
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(storage, "describe_folder", fail)
            with pytest.raises(OSError, match="disk full"):
                corpus.save(tmp_path / "x", mapped=True)
        assert not any(tmp_path.iterdir())

    def test_other_folders(self, tmp_path):
        with pytest.raises(ValueError, match=r"without corpus\.json, so it holds no mapped corpus"):
            Corpus.load(tmp_path)
        with pytest.raises(ValueError, match="is not a folder; give one that holds a mapped"):
            bnp.data.readers.read_mapped(tmp_path / "x")


def rewrite(folder, **change):
    """Change the description, with a checksum that fits."""
    content = json.loads((folder / "corpus.json").read_text())
    content.pop("checksum")
    content |= change
    content = {name: value for name, value in content.items() if value != "left out"}
    content["checksum"] = checksum(content)
    (folder / "corpus.json").write_text(json.dumps(content))


class TestDamage:
    @pytest.mark.parametrize("how", ["truncated", "longer", "flipped", "empty", "text", "missing"])
    @pytest.mark.parametrize("name", ["corpus.json", *(f"{name}.npy" for name in LEAVES)])
    def test_is_noticed(self, folder, name, how):
        path = folder / name
        content = bytearray(path.read_bytes())
        if how == "flipped":
            content[-5] ^= 1
        changed = {
            "truncated": content[: len(content) // 2], "longer": content + b"\0\0\0\0",
            "flipped": content, "empty": b"", "text": b"not this", "missing": None,
        }[how]  # fmt: skip
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
        with pytest.raises(ValueError, match=rf"{name}") as error:
            Corpus.load(folder)
        assert str(folder) in str(error.value)

    @pytest.mark.parametrize("bits", [1, 255])
    @pytest.mark.parametrize("name", ["corpus.json", "word.npy", "label.npy"])
    def test_every_flip_is_noticed(self, corpus, folder, name, bits):
        path = folder / name
        content = path.read_bytes()
        for i in range(0, len(content), 5 if name == "corpus.json" else 1):
            path.write_bytes(content[:i] + bytes([content[i] ^ bits]) + content[i + 1 :])
            try:
                found = Corpus.load(folder)
            except ValueError as error:
                assert str(folder) in str(error)  # noqa: PT017
            else:  # spaces in a header, or its version
                assert name != "corpus.json"
                assert found == corpus

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"schema": "other"}, r"corpus\.json has the schema 'other', this version reads"),
            ({"arrays": {}}, "another digest"),
            ({"digest": "0" * 64}, r"corpus\.json is damaged: its content has another digest"),
            ({"vocabulary": list("abcdefg")}, "another digest"),
            ({"doc_names": list("abcde")}, "another digest"),
        ],
    )
    def test_descriptions_that_do_not_fit(self, folder, change, message):
        rewrite(folder, **change)
        with pytest.raises(ValueError, match=message):
            Corpus.load(folder)

    def test_edited_descriptions(self, folder):
        text = (folder / "corpus.json").read_text()
        (folder / "corpus.json").write_text(text.replace('"land"', '"lake"'))
        with pytest.raises(
            ValueError, match=r"json is damaged: .* does not fit its checksum; make"
        ):
            Corpus.load(folder)


FIT = {"num_warmup": 2, "num_samples": 4, "num_chains": 1, "progress": False}


class TestCheckpoints:
    @pytest.fixture
    def stored(self, tmp_path):
        plain = Corpus.from_texts(TEXTS)
        plain.save(tmp_path / "store", mapped=True)
        return Corpus.load(tmp_path / "store")

    def test_have_mapped_data(self, toy, stored, tmp_path):
        model, plain = toy(gamma=6.0, max_topics=8), Corpus.from_texts(TEXTS)
        fit = bnp.fit(model, stored, checkpoint=tmp_path / "run", **FIT)
        assert bnp.fit(model, plain, **FIT).posterior.identical(fit.posterior)
        assert not (tmp_path / "run" / "data.npz").exists()
        found = bnp.resume(tmp_path / "run", progress=False)
        assert found.dataset.is_mapped
        assert found.dataset == plain
        assert found.posterior.identical(fit.posterior)

    def test_of_a_run_that_died_before_its_header(self, toy, stored, tmp_path):
        """Data that were written are found again; other data are not overwritten."""
        model = toy(gamma=6.0, max_topics=8)
        (tmp_path / "data.npz").write_text("of an older run")
        stored.save(tmp_path / "data", mapped=True)
        bnp.fit(model, stored, checkpoint=tmp_path, **FIT)
        assert not (tmp_path / "data.npz").exists()
        for path in (tmp_path / "header.json", *tmp_path.glob("*.npz")):
            path.unlink()  # a run writes its data first
        with pytest.raises(ValueError, match=r"path is '.*data', which exists already"):
            bnp.fit(model, stored.with_labels(range(5)), checkpoint=tmp_path, **FIT)
        # data in memory go to another file, which is found first
        plain = Corpus.from_texts(TEXTS[:2])
        bnp.fit(model, plain, checkpoint=tmp_path, **FIT)
        assert bnp.resume(tmp_path, progress=False).dataset == plain
        assert bnp.Corpus.load(tmp_path / "data") == stored


@pytest.mark.slow
def test_folders_of_runs_have_mapped_data(tmp_path):
    from bnp_models.results.folder import save_run

    plain = Corpus.from_texts(TEXTS)
    plain.save(tmp_path / "store", mapped=True)
    corpus = Corpus.load(tmp_path / "store")
    fit = bnp.fit(bnp.LDA(2), corpus, schedule="sequential", **FIT)
    run = tmp_path / "run"
    run.mkdir()
    Corpus.from_ids([[0]], 1).save(run / "corpus.npz")  # of an older run
    for _ in range(2):  # as after an interrupt
        save_run(fit, run)
        assert not (run / "corpus.npz").exists()
    loaded = bnp.load(run)
    assert loaded.dataset.is_mapped
    assert loaded.dataset == plain
    with pytest.raises(ValueError, match=r"corpus is a saved corpus; read it with bnp_models"):
        bnp.load(run / "corpus")
    fit.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'fit.dataset.save("corpus", mapped=True)' in html.unescape(page)


def test_views_of_maps_are_found(folder):
    word = np.load(folder / "word.npy", mmap_mode="r")
    assert is_mapped(word)
    assert is_mapped(np.asarray(word)[2:])
    assert not is_mapped(np.array(word))
    assert not is_mapped(3)


PEAK = """
import threading, time
import numpy as np
import bnp_models as bnp
from bnp_models.data import storage

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))

def watch():
    while not done:
        peaks.append(anonymous())
        time.sleep(0.002)

rng = np.random.default_rng(0)
ids = rng.integers(0, 1000, 2000).astype(np.int32)
with bnp.CorpusWriter("first") as writer:
    writer.add(ids)
    writer.finish(num_words=1000)  # whatever is imported late
done, before, peaks = False, anonymous(), []
watcher = threading.Thread(target=watch)
watcher.start()
with bnp.CorpusWriter("store") as writer:
    for _ in range(10_000):
        writer.add(ids)
    digest = writer.finish(num_words=1000).digest
corpus = bnp.Corpus.load("store")
assert storage.content_digest(corpus._arrays(), 1000, corpus.names) == digest
corpus.save("again", mapped=True)
done = True
watcher.join()
print(max(peaks) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux says what is anonymous")
def test_tokens_are_not_copied_into_memory(tmp_path):
    """Twenty million tokens, of 160 MB, take less than a quarter of that when written or read."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40
