"""`load`: folders of runs, and what it refuses."""

import pytest

import bnp_models as bnp
from bnp_models.results.folder import load_run, save_run

OPTIONS = {"num_warmup": 2, "num_samples": 4, "num_chains": 1, "progress": False}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    corpus = bnp.Corpus.from_texts(["cat dog cat", "mars moon"], keep_texts=True)
    folder = tmp_path_factory.mktemp("run") / "checkpoint"
    return bnp.fit(bnp.LDA(2), corpus, checkpoint=folder, **OPTIONS), folder


@pytest.mark.slow
def test_load_reads_the_folder_of_a_run(fitted, tmp_path):
    fit, _ = fitted
    save_run(fit, tmp_path)
    for again in (bnp.load(tmp_path), bnp.load(str(tmp_path)), load_run(tmp_path)):
        assert again.model == fit.model
        assert again.posterior.identical(fit.posterior)
        assert again.dataset.texts == fit.dataset.texts
    assert again.transform(["a moon"]).equals(fit.transform(["a moon"]))


def test_load_refuses_other_files(fitted, tmp_path):
    fit, checkpoint = fitted
    fit.save(tmp_path / "draws.nc")
    fit.dataset.save(tmp_path / "corpus.npz")
    (tmp_path / "text.txt").write_text("cat")
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("draws.nc", r"draws\.nc has the draws of a fit, but not its data: .*Fit\.load\(path, d"),
        ("corpus.npz", r"corpus\.npz is a saved corpus; read it with bnp_models\.Corpus\.load"),
        ("text.txt", r"text\.txt is no fit: give the folder that `bnp-models fit"),
        ("missing", "there is no .*missing"),
        ("empty", "empty holds no finished run"),
    ):
        with pytest.raises(ValueError, match=message):
            bnp.load(tmp_path / name)
    with pytest.raises(ValueError, match=r"is the checkpoint of a run: bnp_models\.resume"):
        bnp.load(checkpoint)
    with pytest.raises(ValueError, match="path must be the path of a file or a folder, got ''"):
        bnp.load("")
