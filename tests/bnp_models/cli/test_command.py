"""The command line, end to end on a small corpus: files, results, messages and exit statuses."""

import functools
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpyro.distributions import Gamma

import bnp_models as bnp
from bnp_models.cli import command as cli
from bnp_models.cli import reading
from bnp_models.posterior import arviz_data
from bnp_models.results.folder import load_run
from bnp_models.results.topic_fit import TopicFit

PICTURES = (
    "traces.png", "ranks.png", "num_topics.png", "topic_words.png", "topic_similarity.png",
    "topics_by_group.png", "functionals.png", "history.png",
)  # fmt: skip
FIT = (
    "--num-warmup 4 --num-samples 12 --num-chains 2 --keep-states 3 --seed 5 --no-progress "
    "--schedule sequential --record topic_tokens --num-topics 2 --alpha Gamma(1,1) --beta 0.1 "
    "--read text=body"
).split()


def write_texts(path, seed, num_docs=30):
    """Write documents about pets or about planets."""
    rng = np.random.default_rng(seed)
    themes = {"pets": ["cat", "dog", "mouse", "bird"], "planets": ["mars", "venus", "moon", "sun"]}
    with path.open("w") as file:
        for d in range(num_docs):
            group = ("pets", "planets")[d % 2]
            text = " ".join(rng.choice(themes[group], 12))
            file.write(json.dumps({"body": text, "group": group}) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("data") / "texts.jsonl", seed=0)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "deep" / "run"
    assert cli.main(["fit", "LDA", data, "--output", str(folder), *FIT]) == 0
    return folder


def test_fit_writes_all_there_is(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        "checkpoint", "draws.nc", "corpus.npz", "convergence.csv", "report.txt", "topics.csv",
        "documents.csv", "functionals.csv", "report.html", *PICTURES,
    }  # fmt: skip
    data = arviz_data.load(run / "draws.nc")
    assert arviz_data.group(data, "posterior")["alpha"].shape == (2, 12)
    assert len(pd.read_csv(run / "topics.csv")) == 2
    assert len(pd.read_csv(run / "documents.csv")) == 30
    assert set(pd.read_csv(run / "convergence.csv")["quantity"]) >= {"lp", "alpha"}
    for picture in PICTURES:
        assert (run / picture).read_bytes().startswith(b"\x89PNG")


def test_fit_takes_its_options(run):
    header = json.loads((run / "checkpoint" / "header.json").read_text())
    prior = {"distribution": "Gamma", "concentration": 1.0, "rate": 1.0}
    assert header["model"] == {"model": "LDA", "num_topics": 2, "alpha": prior, "beta": 0.1}
    assert header["options"]["record"] == ["topic_tokens"]
    assert header["options"]["schedule"] == "sequential"
    sizes = {"num_warmup": 4, "num_samples": 12, "num_chains": 2, "keep_states": 3, "seed": 5}
    assert {name: header[name] for name in sizes} == sizes
    fit = load_run(run)
    assert fit.model == bnp.LDA(num_topics=2, alpha=Gamma(1.0, 1.0), beta=0.1)
    assert fit.posterior["topic_tokens"].shape == (2, 12, 2)


def test_seconds_are_said(run, data, capsys):
    report = (run / "report.txt").read_text()
    assert re.search(r"The chains ran for [\d.]+ s, of which compiling took [\d.]+ s\.", report)
    assert cli.main(["fit", "LDA", data, "--output", str(run), *FIT]) == 0  # it is finished
    assert re.search(r"\nchains: \d+ s, of which compiling: \d+ s\n", capsys.readouterr().err)


def test_choose(data, tmp_path, capsys):
    table = tmp_path / "scores.csv"
    options = [*FIT[:6], "--no-progress", "--read", "text=body", "--beta", "0.1", "--folds", "2"]
    options += ["--top", "3", "--num-topics", "1,2"]
    assert cli.main(["choose", "LDA", data, *options, "--output", str(table)]) == 0
    names, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [row[names.index("num_topics")] for row in rows] == ["1", "2"]
    found = pd.read_csv(table)
    assert found["num_topics"].tolist() == [1, 2]
    assert np.isfinite(found).all(axis=None)
    corpus = bnp.read_corpus(data, text="body")
    sizes = {"num_warmup": 4, "num_samples": 12, "num_chains": 2, "progress": False}
    same = bnp.choose_num_topics(bnp.LDA(5, beta=0.1), corpus, [1, 2], folds=2, top=3, **sizes)
    np.testing.assert_allclose(found, same.table, rtol=1e-5)
    assert cli.main(["choose", "HDPLDA", data, "--num-topics", "1,2"]) == 2
    err = capsys.readouterr().err
    assert "invalid choice: 'HDPLDA'" in err
    assert "HDPLDA finds the number of topics itself: `bnp-models fit HDPLDA`" in err


def test_help_of_options_that_several_functions_have(capsys):
    assert cli.main(["plot", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("Only this chain") == 1
    assert cli.main(["choose", "LDA", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "all fits and scores (0) --num-warmup" in out
    assert "--num-topics VALUE Numbers to try, such as 5,10,20" in out
    assert "--checkpoint" not in out
    assert cli.main(["transform", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Seed of the fold-in (0); of factors: Seed of the sweeps (0)" in out


class TestLabel:
    def test_names_are_in_all_files(self, run, tmp_path, capsys):
        folder = shutil.copytree(run, tmp_path / "run")
        labels = tmp_path / "labels.csv"
        labels.write_text("topic,label,checked\n,,NA\n1,first name,inf\n0,,\n")
        assert cli.main(["label", str(folder), str(labels)]) == 0
        assert ": 1\n" in capsys.readouterr().err
        assert load_run(folder).topic_labels()[1] == "first name"
        assert "first name" in (folder / "topics.csv").read_text()
        assert "first name" in (folder / "report.html").read_text()
        before, after = (arviz_data.load(x / "draws.nc") for x in (run, folder))
        same = (arviz_data.group(x, "posterior") for x in (before, after))
        assert next(same).identical(next(same))
        for label in ("NA", "007", "2019-01-01", "TRUE"):
            labels.write_text(f"topic,label\n1,{label}\n")
            assert cli.main(["label", str(folder), str(labels)]) == 0
            assert load_run(folder).topic_labels()[1] == label

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("number,label\n0,a\n", "has no column 'topic'"),
            ("topic,label\n0,a\n0,b\n", "has topic 0 twice"),
            ("topic,label\n7,a\n", "7"),
            ("topic,label\nx,a\n", "x"),
            ("", "must be a CSV file"),
        ],
    )
    def test_what_is_wrong(self, run, tmp_path, capsys, text, message):
        labels = tmp_path / "labels.csv"
        labels.write_text(text)
        before = (run / "draws.nc").read_bytes()
        assert cli.main(["label", str(run), str(labels)]) == 2
        assert message in capsys.readouterr().err
        assert (run / "draws.nc").read_bytes() == before


def test_topics(run, capsys):
    assert cli.main(["topics", str(run), "--num-words", "4"]) == 0
    head, table = capsys.readouterr().out.split("\n\n")
    assert head.startswith("Average over 2 chains. 100.0% of the tokens are in topics that every")
    lines = table.splitlines()
    assert lines[0].split() == "topic share 90% interval others alike there words".split()
    words = {frozenset(line.replace(",", "").split()[-4:]) for line in lines[1:3]}
    assert words == {
        frozenset({"cat", "dog", "mouse", "bird"}),
        frozenset({"mars", "venus", "moon", "sun"}),
    }
    assert cli.main(["topics", str(run), "--limit", "1", "--relevant"]) == 0
    assert "and 1 smaller topics, together" in capsys.readouterr().out
    assert cli.main(["topics", str(run), "--chain", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Chain 1, ")
    assert out.count(" 1/1 ") == 2


def test_evaluate(run, tmp_path, capsys):
    new = tmp_path / "new.txt"
    new.write_text("cat dog mouse comet\nmars moon sun venus mars\n")
    names = ("document_completion", "left_to_right", "empirical_likelihood", "npmi")
    scores = [f"--score={name}" for name in names]
    assert cli.main(["evaluate", str(run), str(new), "--num-words", "3", *scores]) == 0
    out, err = capsys.readouterr()
    first, second, third, fourth = out.splitlines()
    assert first.startswith("document completion: -")
    assert "standard errors: documents" in first
    assert second.startswith("left to right: -")
    assert third.startswith("empirical likelihood: -")
    assert "effective pseudo-documents: median" in third
    assert fourth.startswith("npmi: ")
    assert "1 tokens (11.1%) are left out" in err
    one = ["evaluate", str(run), str(new), "--score=document_completion", "--chain", "1"]
    assert cli.main(one) == 0
    alone = load_run(run).of_chain(1)
    texts = bnp.Corpus.from_texts(new.read_text().splitlines())
    line = alone.evaluate("document_completion", alone.match(texts)[0])
    assert capsys.readouterr().out.splitlines() == [line]


def test_evaluate_reads_as_the_run_was_read(run, tmp_path, capsys):
    new = write_texts(tmp_path / "new.jsonl", seed=1)  # the texts are in `body`
    assert cli.main(["evaluate", str(run), new, "--score", "document_completion"]) == 0
    assert f"{new} as the data of {run} were read: text='body'" in capsys.readouterr().err


def test_evaluate_warns_of_training_data(run, data, capsys):
    assert cli.main(["evaluate", str(run), str(run / "corpus.npz"), "--score", "npmi",
                     "--num-words", "3"]) == 0  # fmt: skip
    assert "the corpus that was fitted" in capsys.readouterr().err


def test_models(capsys):
    assert cli.main(["models"]) == 0
    out = capsys.readouterr().out
    for name in bnp.MODELS:
        assert f"{name}: " in out
    assert "gamma=Gamma(concentration=1, rate=1)" in out


@pytest.mark.slow
def test_interrupted_run_is_resumed(run, data, tmp_path, monkeypatch, capsys):
    argv = ["fit", "LDA", data, "--output", str(tmp_path), *FIT, "--checkpoint-seconds", "0"]

    class CtrlC(cli.Lines):
        def update(self, sweep, used, lp, note=""):
            if sweep >= 10:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cli, "Lines", CtrlC)
        argv.remove("--no-progress")
        assert cli.main(argv) == 130
    err = capsys.readouterr().err
    assert f"of 12 draws; to finish:\n    bnp-models resume {tmp_path}\n" in err
    assert load_run(tmp_path).posterior.sizes["draw"] < 12
    assert cli.main(["resume", str(tmp_path)]) == 0
    assert "sweep 16 of 16" in capsys.readouterr().err
    resumed, straight = load_run(tmp_path), load_run(run)
    np.testing.assert_array_equal(resumed.posterior["alpha"], straight.posterior["alpha"])
    reading = {"format": "jsonl", "options": {"text": "body"}, "ending": ".jsonl"}
    assert json.loads(resumed.data.attrs["reading"]) == reading


def test_interrupt_before_the_first_draw(run, data, tmp_path, monkeypatch, capsys):
    @functools.wraps(bnp.fit)  # whose defaults the parser reads
    def stop(*args, checkpoint, **kwargs):
        checkpoint.mkdir()
        (checkpoint / "header.json").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(bnp, "fit", stop)
    assert cli.main(["fit", "LDA", data, "--output", str(tmp_path), *FIT]) == 130
    assert f"bnp-models resume {tmp_path}\n" in capsys.readouterr().err


def test_folder_of_another_run_is_refused(run, data, capsys):
    assert cli.main(["fit", "LDA", data, "--output", str(run), *FIT, "--seed", "1"]) == 2
    assert "belongs to another run: seed was 5 and is now 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "COMMAND"),
        (["fit"], "MODEL"),
        (["fit", "NoModel", "x"], "invalid choice: 'NoModel'"),
        (["fit", "lda", "x"], "did you mean 'LDA'?"),
        (["fit", "LDA", "{data}", "--output", "{out}"], "--num-topics"),
        (["fit", "LDA", "{data}", "--output", "{out}", "--num-topics", "0"], "at least 1, got 0"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--alpha", "-1"], "alpha must be posit"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--alpha", "open('x')"], "--alpha must"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--beta", "Normal(0, 1)"], "positive"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--num-chains", "0"], "num_chains must"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--num-chains", "x"], "invalid int"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--schedule", "x"], "schedule must"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--record", "x"], "record must be one"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--init-topics", "0"], "init_topics"),
        (["fit", "HDPLDA", "no/such/file.csv", "--output", "{out}"], "no file or folder no/such"),
        (["fit", "HDPLDA", "{out}/odd.xyz", "--output", "{out}"], "give --format one of"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--read", "body"], "give name=value"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}", "--read", "txt=body"], "text, tokens"),
        (["fit", "HDPLDA", "{data}", "--output", "{out}"], "no text among"),
        (["resume", "{out}"], "holds no run"),
        (["topics", "{out}"], "draws.nc is missing"),
        (["topics", "{out}/alone"], "corpus.npz is missing"),
        (
            ["topics", "{run}", "--num-words", "0"],
            "num_words must be an integer of at least 1, got 0",
        ),
        (["topics", "{run}", "--chain", "2"], "chain must be one of [0, 1], got 2"),
        (["topics", "{run}", "--limit", "-3"], "limit must be an integer of at least 1, got -3"),
        (["documents", "{run}", "--limit", "-3"], "limit must be an integer of at least 0, got -3"),
        (["topics", "{run}", "--limit", "x"], "argument --limit: invalid int value: 'x'"),
        (["topics", ""], "argument RUN: must be the name of a file or folder, got ''"),
        (["fit", "LDA", "{data}", "--output", ""], "argument --output: must be the name of a"),
        (["fit", "LDA", "{data}", "--output", "x", "--checkpoint", " "], "--checkpoint: must be"),
        (["evaluate", "{run}", "{data}", "--seed", "-1"], "seed must be an integer of at least 0"),
        (["evaluate", "{run}", "{out}/other.txt"], "the fit knows no word of the 1 documents"),
        (["evaluate", "{run}", "{out}/other.txt", "--chain", "-1"], "chain must be one of [0, 1]"),
        (["evaluate", "{run}", "{data}", "--score", "bleu"], "score must be one of"),
        (["demo", "--size", "big"], "unrecognized arguments"),
    ],
)
def test_wrong_input_is_refused_in_words(argv, message, run, data, tmp_path, capsys):
    (tmp_path / "odd.xyz").write_text("")
    (tmp_path / "alone").mkdir()
    shutil.copy(run / "draws.nc", tmp_path / "alone")
    (tmp_path / "other.txt").write_text("etwas ganz anderes\n")
    named = [part.format(data=data, out=tmp_path, run=run) for part in argv]
    if data in named and "no text among" not in message and "--read" not in named:
        named += ["--read", "text=body"]
    assert cli.main(named) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_commands(command, capsys):
    """The example can be read by the parser, and all arguments are described."""
    assert cli.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    words = out.split("example:\n  bnp-models ")[1].replace("\\\n", "")
    parser = cli.make_parser()
    assert parser.parse_args(shlex.split(words)).function is cli.COMMANDS[command][0]
    if command not in ("fit", "choose"):
        inside = parser._subparsers._group_actions[0].choices[command]
        assert [action.dest for action in inside._actions if not action.help] == []
    assert ("stop_words=english" in out) is (command in ("transform", "evaluate"))


@pytest.mark.parametrize("name", bnp.MODELS)
def test_help_of_models(name, tmp_path, monkeypatch, capsys):
    """The example can be read by the parser and the reader; options are described."""
    assert cli.main(["fit", name, "--help"]) == 0
    out = capsys.readouterr().out
    words = out.split("example:\n  bnp-models ")[1].replace("\\\n", "").split()
    given = cli.make_parser().parse_args(words)
    assert given.model is bnp.MODELS[name]
    monkeypatch.chdir(tmp_path)
    given.data.touch()
    format = given.model.readers.guess(given.data)
    assert len(reading._given(given.model.readers, format, given.read)) == 1
    listed = " ".join(out.split())
    recordable = f"beside the scalars, of {', '.join(given.model.recordable)}; may be"
    for part in ("--keep-states N Number of full states", "(500)", "--schedule VALUE", recordable):
        assert part in listed


def test_help_names_all_scores():
    docs = cli.parameter_docs(cli.evaluate)["score"]
    assert {score for model in bnp.MODELS.values() for score in model.scores} <= set(
        re.findall(r"\w+", docs)
    )


@pytest.mark.slow
def test_help_is_quick():
    """Beside the package nothing is imported."""
    code = "import sys, bnp_models; before = set(sys.modules); from bnp_models.cli import command"
    code += "; command.main(['--help']); new = set(sys.modules) - before"
    code += "; assert not [x for x in new if 'bnp' in x and 'cli' not in x]"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == bnp.__version__


@pytest.mark.parametrize(
    ("error", "traceback"), [(OSError("disk full"), False), (RuntimeError("a bug"), True)]
)
def test_failures(error, traceback, monkeypatch, capsys):
    def fail(folder):
        raise error

    monkeypatch.setattr(bnp, "load", fail)
    assert cli.main(["topics", "x"]) == 1
    err = capsys.readouterr().err
    assert str(error) in err
    assert ("Traceback" in err) is traceback


def test_words_that_the_terminal_lacks(run, monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(TopicFit, "text", lambda fit, **options: "naïve \u0f40")
    assert cli.main(["topics", str(run)]) == 0
    assert screen.buffer.getvalue().startswith(b"na\\xefve \\u0f40\n")


@pytest.mark.slow
def test_process_uses_all_cores(data, tmp_path):
    environment = {key: x for key, x in os.environ.items() if key != "JAX_NUM_CPU_DEVICES"}
    command = [sys.executable, "-m", "bnp_models", "fit", "LDA", data]
    done = subprocess.run(
        [*command, "--output", str(tmp_path), *FIT],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "written to" in done.stderr
    header = json.loads((tmp_path / "checkpoint" / "header.json").read_text())
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if header["versions"]["backend"] == "cpu":
        assert header["num_devices"] >= min(num_cores, 2)


@pytest.mark.slow
def test_process_that_is_terminated(data, tmp_path):
    """A batch system sends SIGTERM: the last state is kept, and the command says how to go on."""
    sizes = "--num-warmup 4 --num-samples 1000000 --thinning 2 --checkpoint-seconds 1e9".split()
    command = [sys.executable, "-m", "bnp_models", "fit", "LDA", data, "--output", str(tmp_path)]
    process = subprocess.Popen(
        [*command, *(word for word in FIT if word != "--no-progress"), *sizes],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert any("sweep" in line for line in process.stderr)  # reads up to the first line of progress
    state = tmp_path / "checkpoint" / "state.npz"
    before = state.read_bytes()  # the one before the first sweep
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"bnp-models resume {tmp_path}\n" in err
    assert state.read_bytes() != before


@pytest.mark.slow
def test_process_whose_output_nobody_reads():
    process = subprocess.Popen(
        [sys.executable, "-m", "bnp_models", "models"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert (process.returncode, err) == (1, b"")
