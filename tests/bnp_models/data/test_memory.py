"""Calls whose arrays can't fit into memory are refused before they allocate."""

import inspect

import numpy as np
import pytest
import scipy.sparse

import bnp_models as bnp
from bnp_models.data import arguments
from bnp_models.data.readers import from_gensim, read_uci

Corpus, Sources = bnp.Corpus, bnp.Sources
LARGE = 10**9
REFUSED = {
    "from_ids": (lambda: Corpus.from_ids([[0]], num_words=LARGE), f"num_words is {LARGE}, which"),
    "from_arrays": (
        lambda: Corpus.from_arrays([LARGE], [0], num_words=1),
        "num_docs is 1000000001",
    ),
    "listed": (lambda: Corpus.from_ids(range(10**12), 3), "docs has 1000000000000 entries"),
    "listed beyond": (
        lambda: Corpus.from_ids(range(10**30), 3),
        r"docs must be a sequence .*, got range\(0, 10",
    ),
    "sparse shape": (lambda: Corpus.from_counts(sparse((LARGE, 3))), r"counts has shape \(1000000"),
    "too many words": (lambda: Corpus.from_counts(sparse((1, 2**31))), "fewer than 2..31 rows and"),
    "counts": (lambda: Corpus.from_counts([[2**30]]), "counts has 1073741824 tokens, which"),
    "all counts": (lambda: Corpus.from_counts([[2**30, 2**30]]), r"2147483648 tokens; split the "),
    "select": (
        lambda: Corpus.from_counts([[10**5]]).select(np.zeros(10**4, int)),
        "docs has 10000 documents with 1000000000 tokens, which",
    ),
    "sources": (lambda: Sources.from_arrays([sparse((10**5, 10**5))]), r"arrays\[0\] has shape"),
    "corpus": (
        lambda: Sources.from_corpus(Corpus.from_counts(sparse((10**4, 10**5))), by=None),
        r"corpus is Corpus\(10000 documents, 1 tokens, 100000 words\), which",
    ),
    "rows": (
        lambda: Sources.from_arrays([np.ones((1, 10**4))]).select_rows(np.zeros(10**5, int)),
        "rows has 100000 entries, which",
    ),
    "gensim": (lambda: from_gensim([[(10**12, 1)]]), "bow has word 1000000000000, which"),
}


def sparse(shape):
    return scipy.sparse.coo_array(([1], ([0], [0])), shape=shape)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A machine of 8 GiB."""
    monkeypatch.setattr(arguments, "total_memory", lambda: 2**33)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("unchecked")
def test_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_the_header_of_a_file(tmp_path):
    (tmp_path / "docword.txt").write_text("1\n1000000000\n1\n1 1 1\n")
    with pytest.raises(ValueError, match=r"docword\.txt: num_words is 1000000000, which t"):
        read_uci(tmp_path / "docword.txt")


def test_the_message():
    message = (
        r"^x is 1, which takes 9\.0 GiB of memory or more; this machine has 8\.0 GiB: give less$"
    )
    with pytest.raises(ValueError, match=message):
        arguments.check_memory("x is 1", 9 * 2**30, "give less")
    arguments.check_memory("x is 1", 2**33, "give less")
    arguments.check_memory("x is 1", 2**40, "give less", limit=2**41)


def test_the_memory_of_this_machine(monkeypatch):
    size = inspect.unwrap(inspect.getattr_static(arguments, "total_memory"))
    assert size() is None or size() > 2**20


FITS = {
    "state": (
        {"num_chains": 10**9},
        r"num_chains is 1000000000: the states of all",
    ),
    "draws": (
        {"num_samples": 2 * 10**9},
        "num_samples is 2000000000: 2000000000 draws are",
    ),
    "record": (
        {"num_samples": 10**8, "record": ("z",), "num_chains": 1},
        "num_samples is 100000000: .* which takes .* a larger thinning, or record= less$",
    ),
    "states": (
        {"num_samples": 10**9, "keep_states": 10**9, "num_chains": 1, "thinning": 2},
        "keep_states is 1000000000: 500000000 states are kept in each of 1 chains",
    ),
    "sweeps": ({"num_samples": 2**31 - 500}, "num_samples must be an integer of at most"),
}


@pytest.mark.parametrize("name", FITS)
def test_runs_are_refused(toy, tiny, name):
    options, message = FITS[name]
    with pytest.raises(ValueError, match=message):
        bnp.fit(toy(), tiny, progress=False, **options)


@pytest.mark.filterwarnings("ignore")  # JAX says first that indices do not fit
def test_arrays_that_int32_can_not_count():
    corpus = Corpus.from_ids([[0, 1]], num_words=200000)
    with pytest.raises(ValueError, match=r"model LDA\(num_topics=15000, .* has arrays with more c"):
        bnp.fit(bnp.LDA(15000), corpus, progress=False)
