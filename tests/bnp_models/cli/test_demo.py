"""The demo at its small size: what it prints and what it leaves behind; what the README says."""

import json
import runpy
from pathlib import Path

import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.cli import command as cli
from bnp_models.cli import demo
from bnp_models.posterior.diagnostics import Convergence
from bnp_models.posterior.functionals import Functionals
from bnp_models.results.folder import load_run

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_quick_demo(tmp_path, capsys):
    assert cli.main(["demo", "--quick", "--output", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    size = demo.SIZES["quick"]
    how = size.options
    num_sweeps = how["num_warmup"] + how["num_samples"]
    assert f"sweep {num_sweeps} of {num_sweeps}" in err
    for part in ("Loading", "Reading", "functions and classes of numpyro, optax", "topic   share"):
        assert part in out
    last = " ".join(out.split("browser.")[1].split())
    assert last == " ".join(demo.verdict(load_run(tmp_path)))
    assert "have not converged" in last  # so few sweeps can't have
    assert {path.name for path in tmp_path.iterdir()} == {
        "draws.nc", "corpus.npz", "convergence.csv", "report.txt", "topics.csv",
        "documents.csv", "traces.png", "ranks.png", "num_topics.png", "topic_words.png",
        "topic_similarity.png", "topics_by_group.png", "functionals.csv", "functionals.png",
        "history.png", "report.html",
    }  # fmt: skip
    fit = load_run(tmp_path)
    assert fit.model == size.model
    assert fit.posterior.sizes == {"chain": how["num_chains"], "draw": how["num_samples"]}


def test_words_of_the_subject_come_back():
    about = ["filter filter signal signal " * 4 + "respectively"] * 12  # "respectively": once
    texts = [*about, *["common common " * 8] * 88]  # "common": in too many documents
    texts[:9] = [f"{text} rare rare" for text in texts[:9]]
    found = demo.subject_words(bnp.Corpus.from_texts(texts))
    assert found.vocabulary == ("filter", "signal")
    assert found.num_docs == 12


def said(shares, other_chains, *, passed=False, pairs=True):
    """Return the sentences about four chains with topics of these shares."""
    table = pd.DataFrame(
        {
            "prevalence": shares,
            "other_chains": other_chains,
            "similarity": [0.9, *[0.8] * (len(shares) - 1)],
            "words": [f"word{k}" for k in range(len(shares))],
        }
    )
    judged = Convergence(pd.DataFrame(), passed, "", "converged" if passed else "still rising")
    summary = pd.DataFrame({"median_range": [0.03], "number": [50]}, index=["document pairs"])
    compared = Functionals(pd.DataFrame(), summary if pairs else summary.iloc[:0], 1.05, 10)
    return demo.agreement(table, judged, compared, 4)


def test_verdict():
    sure, unsure = said([0.5, 0.3, 0.15], [3, 2, 1])
    assert "2 of 3 topics, with 80% of the words, are in at least 3 of the 4 chains (1 in" in sure
    assert "differs between chains by 0.03 (the median of 50 pairs)" in sure
    assert "not converged (still rising), 1 topic with 15% of the words is in fewer" in unsure
    assert "topic 1 (word1)" in unsure
    sure, unsure = said([0.6, 0.4], [3, 3], passed=True, pairs=False)
    assert "2 of 2 topics, with 100% of the words" in sure
    assert "pairs" not in sure
    assert "not converged" not in unsure
    unsure = said([0.6, 0.4], [0, 1])[1]
    assert "2 topics with 100% of the words are in fewer chains" in unsure
    assert "most of all" not in unsure


def test_readme_says_what_the_demo_found():
    made = runpy.run_path(str(ROOT / "docs" / "readme_demo.py"))
    found = json.loads(made["FILE"].read_text(encoding="utf-8"))
    again = "run `make readme` and commit what it writes"
    assert found["settings"] == json.loads(json.dumps(demo.settings())), again
    readme = made["README"].read_text(encoding="utf-8")
    assert made["written"](readme) == made["lines"](found), again
