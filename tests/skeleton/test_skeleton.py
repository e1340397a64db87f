"""A new model is four files of one name: this one is complete, short, and needs nothing else."""

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import bnp_models as bnp
from bnp_models import testing
from bnp_models.cli import command as cli
from bnp_models.models.group_lda import GroupLDA
from bnp_models.results.folder import load_run

HERE = Path(__file__).parent
FILES = (
    "bnp_models/models/group_lda.py",
    "kernels/bnp_kernels/group_lda.py",
    "tests/bnp_models/models/test_group_lda.py",
    "tests/kernels/test_group_lda.py",
)
FIT = (
    "--num-topics 2 --alpha 0.1,1.0 --beta Gamma(1,1) --num-warmup 4 --num-samples 12 "
    "--num-chains 2 --keep-states 3 --no-progress --schedule sequential"
).split()
READ = "--read text=body --read group=theme".split()


def test_files_are_few_and_short():
    written = {path.relative_to(HERE).as_posix() for path in HERE.rglob("*group_lda.py")}
    assert written == set(FILES)
    assert sum(len((HERE / path).read_text().splitlines()) for path in FILES) < 600


def test_page_quotes_the_files():
    page = (HERE.parents[1] / "docs" / "adding_a_model.md").read_text()
    files = [(HERE / path).read_text() for path in FILES]
    quotations = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(quotations) >= 5
    for text in quotations:
        indented = [textwrap.indent(text, " " * indent) for indent in (0, 4, 8)]
        assert any(lines in file for lines in indented for file in files), text


def test_case_leaves_nothing_out():
    models = {"GroupLDA": GroupLDA}
    found = testing.find(HERE / "tests" / "kernels", models, "CASE")
    assert found.keys() == models.keys()
    testing.check_case(found["GroupLDA"], GroupLDA)


@pytest.fixture
def registered(monkeypatch):
    """Register the model, as its line in `registry.py` would."""
    monkeypatch.setitem(bnp.MODELS, "GroupLDA", GroupLDA)


def write_texts(path, num_docs=20):
    rng = np.random.default_rng(0)
    words = ["cat", "dog", "mouse", "mars", "venus", "moon"]
    with path.open("w") as file:
        for d in range(num_docs):
            text = " ".join(rng.choice(words[:3] if d % 2 else words, 8))
            file.write(json.dumps({"body": text, "theme": ("pets", "mixed")[d % 2]}) + "\n")
    return str(path)


class Interrupted:
    """A progress display at which a run is interrupted."""

    def update(self, sweep, used, lp, note=""):
        raise KeyboardInterrupt

    def close(self):
        pass


def test_fit_save_load_resume(tmp_path):
    docs = [[0, 1, 2, 0], [3, 4, 5, 3, 4], [0, 2, 5], [1, 1, 4]]
    corpus = bnp.Corpus.from_ids(docs, vocabulary=list("uvwxyz"), groups=list("abab"))
    model = GroupLDA(3, alpha=(0.1, 1.0), beta=0.2)
    sizes = {"num_warmup": 1, "num_samples": 6, "num_chains": 2, "keep_states": 2}
    fit = bnp.fit(model, corpus, schedule="sequential", progress=False, **sizes)
    again = bnp.Fit.load(fit.save(tmp_path / "draws.nc"), corpus)
    assert isinstance(again, bnp.TopicFit)
    assert again.model == model
    assert again.topics().equals(fit.topics())
    assert len(fit.topics()) == 3
    assert len(fit.documents()) == 4
    assert np.isfinite(fit.document_completion(corpus).log_prob)

    run = {**sizes, "schedule": "sequential", "checkpoint": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):  # before the first draw is kept
        bnp.fit(model, corpus, progress=Interrupted(), checkpoint_seconds=0.0, **run)
    resumed = bnp.resume(tmp_path / "run", progress=False)
    assert resumed.posterior.equals(fit.posterior)


@pytest.mark.slow
def test_command_line(registered, tmp_path, capsys):
    data, run = write_texts(tmp_path / "texts.jsonl"), tmp_path / "run"
    assert cli.main(["fit", "GroupLDA", data, "--output", str(run), *FIT, *READ]) == 0
    assert {"draws.nc", "topics.csv", "report.txt"} <= {path.name for path in run.iterdir()}
    assert load_run(run).model.alpha == (0.1, 1.0)
    assert cli.main(["topics", str(run)]) == 0
    assert cli.main(["evaluate", str(run), data, *READ, "--num-words", "3"]) == 0
    assert cli.main(["models"]) == 0
    assert "GroupLDA" in capsys.readouterr().out
