"""The study of corpora on which chains mix: its small size, its corpora, its table."""

import json

import numpy as np
import pytest

from bnp_models.posterior.diagnostics import VERDICTS


@pytest.mark.slow
def test_quick(load, read_csv, in_this_process, tmp_path, capsys):
    output = tmp_path / "mixing.json"
    mixing = load("mixing")
    assert mixing.main(["--quick", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("20 of 20 measurements to make")
    found = json.loads(output.read_text())
    assert {cell["part"] for cell in found["cells"].values()} == set(mixing.FITS)
    rows = read_csv(tmp_path / "mixing_scalars.csv")
    corpora = [row["corpus"] for row in rows]  # no folder, no real corpus
    assert (corpora.count("sharp"), corpora.count("synthetic")) == (2, 18)
    assert {row["verdict"] for row in rows} <= set(VERDICTS)
    for row, cell in zip(rows, found["cells"].values(), strict=True):
        assert int(row["documents"]) == 30
        assert float(row["seconds"]) >= float(row["seconds_compiling"]) > 0
        draws = cell["num_samples"] // cell.get("thinning", 1)
        assert np.shape(cell["lp"]) == (2, min(draws, 200))
        assert cell["lp_sweeps"][-1] == draws * cell.get("thinning", 1)
    tempered = [row for row in rows if row["model"].endswith(", tempered")]
    replicas = [6, 14, 24, 24, 24, 15, 13]
    assert [row["sweeps"].partition("scans of ")[2] for row in tempered] == [
        f"{number} replicas" for number in replicas
    ]
    assert [len(row["barrier"].split(", ")) for row in tempered] == [2] * 7
    rows = read_csv(tmp_path / "mixing_functionals.csv")
    assert {int(row["kept_states"]) for row in rows} == {8, 9, 10}
    assert (tmp_path / "mixing.png").exists()
    assert mixing.main(["--quick", "--output", str(output)]) == 0
    assert capsys.readouterr().out.startswith("0 of 20 measurements to make")


def test_the_sample_has_its_most_frequent_words(load, tmp_path):
    mixing = load("mixing")
    rng = np.random.default_rng(0)
    doc, word = (x.ravel() for x in np.mgrid[:60, :40])
    count = rng.poisson(np.where(word < 12, 3, 1) * (rng.random(len(doc)) < 0.25))
    there = count > 0
    arrays = {"doc": doc[there], "word": word[there], "count": count[there]}
    path = tmp_path / "kos.npz"
    np.savez(
        path, n_docs=60, n_words=40, **{name: x.astype(np.int32) for name, x in arrays.items()}
    )
    settings = mixing.Settings("standard", documents=50, words=10)
    sample = mixing.sample_of(path, settings)
    assert (sample.num_docs, sample.num_words) == (50, 10)
    assert sample.digest == mixing.sample_of(path, settings).digest
    assert {int(name) for name in sample.vocabulary} <= set(range(12))
    others = mixing.others_of(path, settings, sample, 20)
    assert (others.num_docs, others.vocabulary) == (10, sample.vocabulary)  # those that are left


def test_authors_of_other_documents_are_left_out(load, tmp_path):
    mixing, path = load("mixing"), tmp_path / "mlabs.npz"
    doc, word = (x.ravel().astype(np.int32) for x in np.mgrid[:40, :3])
    np.savez(
        path, n_docs=40, n_words=3, doc=doc, word=word, count=np.ones_like(doc),
        author_ptr=np.arange(41), author_idx=np.arange(40),
        author_names=[f"author {i}" for i in range(40)],
    )  # fmt: skip
    chosen = mixing._documents_of(path, mixing.STANDARD, 0, 10)
    assert chosen.num_docs == chosen.num_authors == 10
    assert [f"author {name}" for name in chosen.doc_names] == list(
        name for d in range(10) for name in chosen.authors(d)
    )


def test_the_drawn_corpus_is_drawn_from_the_program(load):
    mixing = load("mixing")
    corpus = mixing.drawn_from_lda(mixing.QUICK)
    assert (corpus.num_docs, corpus.num_words) == (30, 20)
    assert set(corpus.doc_length.tolist()) == {8}
    assert len(np.unique(np.asarray(corpus.word))) > 5  # the template has one word


def test_rows_name_the_quantity_that_is_worst(load):
    record = {
        "data": "kos", "documents": 3, "tokens": 9, "words": 4, "method": "LDA", "num_topics": 3,
        "alpha": "prior", "beta": 1.0, "num_warmup": 1, "num_samples": 2, "seconds": 9.0,
        "compile_seconds": 1.0, "verdict": "converged", "kept_states": 2,
        "scalars": {
            "name": ["lp", "alpha"], "rhat": [1.002, 1.001], "ess_bulk": [900.0, 800.0],
            "ess_tail": [950.0, 420.0],
        },
        "functionals": {
            "name": ["a", "b", "c"], "rhat": [1.0, 1.02, 1.01], "ess": [9.0, 500.0, 400.0],
        },
    }  # fmt: skip
    mixing = load("mixing")
    row = mixing.row(record)
    assert row["model"] == "LDA, K 3, alpha prior, beta 1.0"
    assert (row["largest_Rhat"], row["of"]) == ("1.0020", "lp")
    assert (row["smallest_ESS"], row["ESS_of"]) == (420, "alpha")
    row = mixing.functional_row(record)
    assert (row["pass_both_limits"], row["functionals"]) == (1, 3)
    assert (row["of"], row["ESS_of"]) == ("b", "a")


def test_data_are_needed(load, monkeypatch, capsys):
    monkeypatch.delenv("BNP_DATA", raising=False)
    assert load("mixing").main([]) == 1
    assert "--data FOLDER is needed: the folder with kos.npz" in capsys.readouterr().err
