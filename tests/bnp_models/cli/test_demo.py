"""The demo at its small size: what it prints and what it leaves behind."""

import numpy as np
import pytest

from bnp_models.cli import command as cli
from bnp_models.cli import demo
from bnp_models.data.corpus import Corpus
from bnp_models.results.folder import load_run


@pytest.mark.slow
def test_quick_demo(tmp_path, capsys):
    assert cli.main(["demo", "--quick", "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    size = demo.SIZES["quick"]
    num_sweeps = size["num_warmup"] + size["num_samples"]
    assert f"sweep {num_sweeps} of {num_sweeps}" in err
    for part in ("topic   share", "verdict", "nats per token", "standard errors: documents"):
        assert part in out
    assert "checked quantities fail. " in out  # so few sweeps can't have converged
    assert f"bnp-models fit HDPLDA {tmp_path / 'corpus.npz'} --beta 0.05" in out
    assert {path.name for path in tmp_path.iterdir()} == {
        "draws.nc", "corpus.npz", "test.npz", "convergence.csv", "report.txt", "topics.csv",
        "documents.csv", "traces.png", "ranks.png", "num_topics.png", "topic_words.png",
        "topic_similarity.png", "topics_by_group.png", "functionals.csv", "functionals.png",
        "history.png", "report.html",
    }  # fmt: skip
    fit, test = load_run(tmp_path), Corpus.load(tmp_path / "test.npz")
    assert fit.model == demo.MODEL
    assert not set(test.doc_names) & set(fit.dataset.doc_names)
    assert fit.posterior.sizes == {"chain": size["num_chains"], "draw": size["num_samples"]}


def test_unigram_perplexity():
    train = Corpus.from_ids([[0, 0, 1], [0]], num_words=3)
    test = Corpus.from_ids([[0, 2]], num_words=3)
    expected = np.exp(-(np.log(4 / 7) + np.log(1 / 7)) / 2)
    np.testing.assert_allclose(demo.unigram_perplexity(train, test), expected)


def test_long_demo_is_larger():
    assert set(demo.PACKAGES["quick"]) < set(demo.PACKAGES["long"])
    assert demo.SIZES["long"]["num_samples"] >= 10 * demo.SIZES["quick"]["num_samples"]
