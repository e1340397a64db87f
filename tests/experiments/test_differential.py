"""The study of differential topic models: data, contestants, claims, and its small size."""

import dataclasses
import json
import os
from typing import Any

import numpy as np
import pytest

import bnp_models as bnp

DATA = os.environ.get("BNP_DATA", "")
TOKENS = "tokens"
TI, TII, CCLDA, PYP, LDA = (
    "TI", "TII", "ccLDA", "PYP, each group alone", "LDA, each group alone",
)  # fmt: skip


@pytest.fixture
def data(load):
    """The module of the data."""
    return load("differential_data")


@pytest.fixture
def claims(load):
    """The module of the claims."""
    return load("differential_claims")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StandIn(bnp.CrossCollectionLDA):
    """Stands for `DifferentialTopicModel`: its arguments, and the topics of another model."""

    transform: Any = None
    discount: Any = 0.7
    concentration: Any = 1.0
    max_tables: int = 16

    def __post_init__(self):
        assert self.transform is None or isinstance(self.transform, bnp.Transform)
        object.__setattr__(self, "transform", None)
        super().__post_init__()

    def gibbs(self, *, schedule="parallel", sampler="ti", record=(), init_topics=None):
        """Take the options that are looked for."""
        return super().gibbs(schedule=schedule, record=record, init_topics=init_topics)


@pytest.fixture
def with_model(load, monkeypatch):
    """Have a differential topic model, if only one that stands for it."""
    if not hasattr(bnp, "DifferentialTopicModel"):
        monkeypatch.setattr(bnp, "DifferentialTopicModel", StandIn, raising=False)
        chains = load("study.chains").OurChains
        monkeypatch.setattr(chains, "table_shape", lambda self: (30, 12))


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process", "with_model")
def test_quick_study_resumes(load, read_csv, capsys, tmp_path):
    study, output = load("differential"), tmp_path / "differential.json"
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert "FAILED" not in capsys.readouterr().err
    results = json.loads(output.read_text())
    cells = list(results["cells"].values())
    assert {cell["part"] for cell in cells} == {
        "perplexity-abstracts", "samplers", "discount", "classification", "planted", "digits",
        "speed",
    }  # fmt: skip
    scored = [cell for cell in cells if cell["part"] == "perplexity-abstracts"]
    assert {cell["method"] for cell in scored} == {*study.QUICK.methods, "unigram"}
    for cell in scored:
        for how, score in cell["scores"].items():
            # 24 words; and a mean of probabilities is no less than that of their logarithms
            assert 2 < score["perplexity"] < 100
            assert score.get("single_state_perplexity", np.inf) > score["perplexity"] - 1e-6
            assert ("doc_log_prob" in score) == (how == TOKENS)
    rows = read_csv(tmp_path / "differential_claims.csv")
    module = load("differential_claims")
    wanted = [c.claim for c in (*module.claims_by(TOKENS), *module.other_claims())]
    assert [row["claim"] for row in rows] == wanted
    assert (tmp_path / "differential_digits.png").stat().st_size > 2000
    text = output.with_suffix(".md").read_text()
    for head in ("Claims", "Perplexity", "Accuracy", "Samplers", "Fits", "Tokens per second"):
        assert f"## {head}" in text
    assert study.main(["--report", "--quick", "--output", str(output)]) == 0
    assert output.with_suffix(".md").read_text() == text
    capsys.readouterr()
    assert study.main(["--quick", "--output", str(output)]) == 0
    assert f"0 of {len(cells)} measurements" in capsys.readouterr().out
    assert json.loads(output.read_text()) == results
