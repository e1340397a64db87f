"""The study of author-topic models at its small size, twice: it fits nothing again."""

import csv
import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "author_topic.py"


@pytest.mark.slow
def test_quick_study_resumes(tmp_path, capsys):
    main = runpy.run_path(str(SCRIPT))["main"]
    output = tmp_path / "study.json"
    assert main(["--quick", "--output", str(output)]) == 0
    fits = json.loads(output.read_text())["fits"]
    ours = {"LDA/3", "AuthorTopicModel/3", "HDPLDA/inferred"}
    assert ours | {"NonparametricAuthorTopicModel/inferred"} <= set(fits)
    assert all(1 < found["perplexity"] < 30 for found in fits.values())
    rows = list(csv.reader(output.with_suffix(".csv").read_text().splitlines()))
    assert len(rows) == 1 + len(fits)
    assert output.with_suffix(".png").stat().st_size > 5000
    capsys.readouterr()
    assert main(["--quick", "--output", str(output)]) == 0
    assert "..." not in capsys.readouterr().out
    assert json.loads(output.read_text())["fits"] == fits


def test_other_settings_are_refused(tmp_path):
    main = runpy.run_path(str(SCRIPT))["main"]
    output = tmp_path / "study.json"
    output.write_text(json.dumps({"settings": {}, "data": "", "fits": {}}))
    with pytest.raises(SystemExit, match="holds a run of other settings or data"):
        main(["--quick", "--output", str(output)])
