"""The command line on factor models: what is read and written, without sampling but for one run."""

import functools

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.cli import command as cli
from bnp_models.results.folder import load_run

PHI = np.array([[3.0, 0, 1], [0, 4, 0]])
FILES = {
    "draws.nc", "sources.npz", "convergence.csv", "report.txt", "num_factors.csv", "factors.csv",
    "weights.csv", "sharing.csv", "traces.png", "ranks.png", "num_factors.png", "factors.png",
    "sharing.png", "functionals.csv", "functionals.png", "report.html",
}  # fmt: skip


def write_table(path, num_rows=8):
    """Write rows of two kinds that use one factor each; the last one uses both."""
    weights = np.where(np.arange(num_rows)[:, None] % 2 == [0, 1], 2.0, 0.0)
    weights[-1] = 1.0
    return write_rows(path, weights @ PHI), weights


def write_rows(path, values):
    """Write rows of two kinds in turn."""
    num_rows = len(values)
    frame = pd.DataFrame(values.round(3), columns=["red", "green", "blue"])
    frame.assign(kind=np.where(np.arange(num_rows) % 2, "b", "a")).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def run(tmp_path, made_up_factors, monkeypatch):
    """A run of the command whose draws are made up."""
    data, weights = write_table(tmp_path / "flowers.csv")
    weights = np.concatenate([weights[::2], weights[1::2]])  # by source

    @functools.wraps(bnp.fit)  # whose defaults the parser reads
    def fit(model, sources, **how):
        return made_up_factors(model, sources, PHI, weights, sigma2_w=1.0, sigma2_n=0.01)

    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(bnp, "fit", fit)
        argv = f"fit GaussianFactorAnalysis {data} --read source=kind --output {folder}"
        more = "--scale yes --num-samples 2 --num-warmup 0"
        assert cli.main([*argv.split(), *more.split()]) == 0
    return folder


def test_fit_writes_tables_and_pictures(run, capsys):
    assert {path.name for path in run.iterdir()} == FILES
    fit = load_run(run)
    assert isinstance(fit, bnp.FactorFit)
    assert fit.dataset.source_names == ("a", "b")
    assert (fit.model.centre, fit.model.scale) == (True, True)
    assert pd.read_csv(run / "sharing.csv")["shared"].tolist() == [1, 1, 1, 2]
    assert pd.read_csv(run / "weights.csv").shape == (8, 3)
    assert (
        "number of factors, over all chains: 2 (75%), 3 (25%)" in (run / "report.txt").read_text()
    )


def test_factors(run, capsys):
    assert cli.main(["factors", str(run), "--num-features", "2"]) == 0
    head, *parts = capsys.readouterr().out.split("\n\n")
    assert head.startswith("Average over 2 chains. 100.0% of the weights that are not zero are in")
    lines = "\n\n".join(parts).splitlines()
    assert lines[0].startswith("number of factors, over all chains: 2 (75%)")
    words = "factor rows 90% interval a b others alike features"
    assert lines[2].split() == words.split()
    assert lines[3].split() == "0 5 5 - 5 100% 25% 1/1 1.00 red, blue".split()
    assert cli.main(["factors", str(run), "--limit", "1"]) == 0
    assert "and 1 factors that fewer rows use" in capsys.readouterr().out
    assert cli.main(["factors", str(run), "--chain", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Chain 1, ")
    assert "2 (50%), 3 (50%)" in out


def test_evaluate(run, tmp_path, capsys):
    argv = ["evaluate", str(run), str(tmp_path / "flowers.csv"), "--read", "source=kind"]
    assert cli.main(argv) == 0
    out, err = capsys.readouterr()
    assert out.startswith("predict: ")
    assert "nats per row over 8 rows" in out
    assert "these are the rows that were fitted" in err
    for score, message in (
        ("npmi", "score must be one of ['predict'], got 'npmi'"),
        ("row_completion", "score must be one of ['predict'], got 'row_completion'"),
    ):
        assert cli.main([*argv, "--score", score]) == 2
        assert message in capsys.readouterr().err


def test_wrong_input_is_refused_in_words(run, tmp_path, capsys):
    data = str(tmp_path / "flowers.csv")
    fit = ["fit", "GaussianFactorAnalysis", data, "--output", str(tmp_path / "other")]
    for argv, message in (
        (["topics", str(run)], f"use `bnp-models factors {run}`"),
        (fit, "has the column 'kind', which does not hold numbers"),
        ([*fit, "--read", "by=kind"], "with a name that the format table has: source, row, kind"),
        ([*fit, "--read", "source=kind", "--tau", "-1"], "tau must be positive"),
        ([*fit, "--centre", "maybe"], "argument --centre: must be yes or no, got 'maybe'"),
        (["fit", "HDPLDA", data, "--format", "table", "--output", "x"], "--format must be"),
    ):
        assert cli.main(argv) == 2
        out, err = capsys.readouterr()
        assert message in err
        assert out == ""


@pytest.mark.slow
def test_run(tmp_path, capsys):
    """The rows are far from zero: their mean is not taken for a factor."""
    rng = np.random.default_rng(0)
    weights = np.where(np.arange(20)[:, None] % 2 == [0, 1], rng.normal(0, 2, (20, 2)), 0.0)
    values = 1000 + weights @ PHI + rng.normal(0, 0.1, (20, 3))
    data = write_rows(tmp_path / "flowers.csv", values)
    folder = tmp_path / "run"
    argv = ["fit", "GaussianFactorAnalysis", data, "--read", "source=kind", "--output", str(folder)]
    sizes = "--num-warmup 400 --num-samples 40 --max-factors 8".split()
    assert cli.main([*argv, *sizes]) == 0
    out, err = capsys.readouterr()
    assert "number of factors, over all chains: 2" in out
    assert "factors, lp" in err
    fit = load_run(folder)
    assert fit.posterior.sizes["draw"] == 40
    # without centring it is above 1
    assert np.abs(fit.reconstruct().mean - fit.dataset.values).mean() < 0.5
