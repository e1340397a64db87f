"""The comparison with other libraries: how topics are matched, and the page's file."""

import gzip
import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def test_topics_that_are_found_again(load):
    found_again = load("comparison").found_again
    a, b, c = ([f"{name}{i}" for i in range(10)] for name in "abc")
    near = a[:5] + [f"new{i}" for i in range(5)]
    far = a[:4] + [f"new{i}" for i in range(6)]
    assert found_again([[a, b], [b, a], [near, b]]) == 1
    assert found_again([[a, b], [far, b]]) == 0.5
    assert found_again([[a, a], [a, b]]) == 0.5  # a topic stands for one other topic at most
    assert found_again([[a, b], [a, b], [c, b]]) == 0.5  # all others have to have it


def test_what_is_kept_gives_the_tables_to_the_letter(load):
    run = json.loads((RESULTS / "comparison.json").read_text())
    assert load("comparison").report(run) == (RESULTS / "comparison.md").read_text()


@pytest.mark.slow
def test_one_library(load, tmp_path, capsys):
    words = {
        f"g{i}": [f"{kind}{'abcdef'[i]}" for kind in ("moon", "orbit", "rocket")] for i in range(6)
    }
    with gzip.open(tmp_path / "news20_text.jsonl.gz", "wt") as lines:
        for group, own in words.items():
            one = {"split": "train", "group": group, "body": f"the {' '.join(own)}"}
            lines.write(10 * (json.dumps(one) + "\n"))
    output = tmp_path / "comparison.json"
    options = ["--data", str(tmp_path), "--groups", ",".join(words), "--seeds", "2"]
    options += ["--libraries", "scikit-learn, LDA", "--output", str(output)]
    load("comparison").main(options)
    run = json.loads(output.read_text())
    assert (run["documents"], run["tokens"], run["words"]) == (60, 180, 18)  # no "the"
    topics = run["measured"]["scikit-learn, LDA"]["topics"]
    assert [len(of_seed) for of_seed in topics] == [10, 10]
    assert {*words["g0"]} <= {word for topic in topics[0] for word in topic}
    assert str(tmp_path) not in output.read_text()
    assert "| tomotopy, LDA | not run |" in capsys.readouterr().out
