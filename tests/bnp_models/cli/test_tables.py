"""The commands for tables, pictures and new documents, on a small run of a model with authors."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bnp_models as bnp
from bnp_models.cli import command as cli
from bnp_models.results.folder import load_run

TEXTS = ["Cat dog cat mouse", "mars moon sun", "dog Mouse dog", "sun moon mars mars", "cat moon"]
FIT = (
    "--num-warmup 4 --num-samples 6 --num-chains 2 --keep-states 3 --no-progress --num-topics 2 "
    "--schedule sequential --read text=body --read lowercase=off --read stop_words=moon,sun"
).split()


@pytest.fixture(scope="module")
def run(tmp_path_factory, no_sweeps):
    folder = tmp_path_factory.mktemp("run")
    authors = [["Ann"], ["Bob"], ["Ann", "Bob"], ["Bob"], ["Ann"]]
    with (folder / "texts.jsonl").open("w") as file:
        for text, names in zip(TEXTS, authors, strict=True):
            file.write(json.dumps({"body": text, "authors": names}) + "\n")
    argv = ["fit", "AuthorTopicModel", str(folder / "texts.jsonl"), "--output", str(folder / "run")]
    with no_sweeps():
        assert cli.main([*argv, *FIT]) == 0
    return folder / "run"


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("body,name\nCat mars MARS,first\ndog cat,second\n")
    return str(path)


class TestTransform:
    def test_prints_what_the_method_returns(self, run, new, capsys):
        fit = load_run(run)
        argv = ["transform", str(run), new, "--read", "text=body", "--num-sweeps", "9"]
        assert cli.main([*argv, "--num-kept", "4", "--seed", "2"]) == 0
        out, err = capsys.readouterr()
        assert "lowercase=False" in err
        assert "1 tokens (20.0%) are left out" in err
        lines = out.splitlines()
        assert [line.split(",")[0] for line in lines] == ["document", "first", "second"]
        assert len(lines[0].split(",")) == 3
        corpus = fit.dataset.read_texts(["Cat mars MARS", "dog cat"], doc_names=["first", "second"])
        expected = fit.transform(corpus, num_sweeps=9, num_kept=4, seed=2)
        found = [[float(x) for x in line.split(",")[1:]] for line in lines[1:]]
        np.testing.assert_array_equal(found, expected)
        assert cli.main([*argv, "--num-kept", "4", "--seed", "2", "--chain", "1"]) == 0
        assert capsys.readouterr().out != out

    def test_light_files(self, run, new, tmp_path, capsys):
        load_run(run).save_model(tmp_path / "model.npz")
        argv = [new, "--read", "text=body", "--output"]
        assert cli.main(["transform", str(run), *argv, str(tmp_path / "1.csv")]) == 0
        assert cli.main(["transform", str(tmp_path / "model.npz"), *argv, str(tmp_path / "2")]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert f"2 rows written to {tmp_path / '2'}\n" in err
        assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2").read_bytes()

    def test_documents_without_a_known_word_are_counted(self, run, new, tmp_path, capsys):
        """As texts are in Python; also if there are no others."""
        load_run(run).save_model(tmp_path / "model.npz")
        for texts, count in (("zebra,first\nmars,last", 1), ("zebra,first\nquark,last", 2)):
            Path(new).write_text(f"body,name\n{texts}\n")
            with pytest.warns(UserWarning, match=f"{count} of 2 texts have no word"):
                expected = load_run(run).transform([x.split(",")[0] for x in texts.split("\n")])
            for source in (run, tmp_path / "model.npz"):
                assert cli.main(["transform", str(source), new, "--read", "text=body"]) == 0
                out, err = capsys.readouterr()
                assert f"{count} of 2 texts have no word that the fit knows: their shares" in err
                rows = [line.split(",") for line in out.splitlines()[1:]]
                assert [row[0] for row in rows] == ["first", "last"]
                found = [[float(x) for x in row[1:]] for row in rows]
                np.testing.assert_array_equal(found, expected)

    def test_what_it_can_not_do(self, run, new, tmp_path, capsys):
        load_run(run).save_model(tmp_path / "model.npz")
        light = ["transform", str(tmp_path / "model.npz"), new, "--read", "text=body"]
        for argv, message in (
            ([*light, "--chain", "1"], "--chain is no option for"),
            (["transform", str(run), new, "--read", "text=body", "--known", "no"], "--known is no"),
            (["transform", str(run), new, "--known", "maybe"], "must be yes or no, got 'maybe'"),
            ([*light, "--num-sweeps", "2"], "num_kept must be in [1, num_sweeps=2], got 25"),
            (["transform", str(run / "draws.nc"), new], "draws.nc has the draws of a fit, but not"),
            (["documents", str(tmp_path / "model.npz")], "without the documents that were fitted"),
        ):
            assert cli.main(argv) == 2
            out, err = capsys.readouterr()
            assert message in err
            assert out == ""


class TestTables:
    def test_documents(self, run, tmp_path, capsys):
        assert cli.main(["documents", str(run), "--num-topics", "1", "--limit", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == [
            "name", "num_tokens", "topic", "share", "lower", "upper", "certainty", "topics",
        ]  # fmt: skip
        assert len(lines) == 4  # the second line names the index
        assert cli.main(["documents", str(run), "--csv"]) == 0
        printed = capsys.readouterr().out
        path = tmp_path / "documents.csv"
        assert cli.main(["documents", str(run), "--output", str(path), "--chain", "0"]) == 0
        fit = load_run(run)
        pd.testing.assert_frame_equal(
            pd.read_csv(path, index_col=0, dtype={"name": str}),
            fit.of_chain(0).documents(),
            check_dtype=False,
        )
        assert printed == fit.documents().to_csv()

    def test_authors(self, run, capsys):
        assert cli.main(["authors", str(run), "--author", "Bob", "--top", "1"]) == 0
        lines = capsys.readouterr().out.splitlines()
        columns = ["author", "documents", "topic", "words", "share", "lower", "upper"]
        assert lines[0].split() == columns
        assert len(lines) == 2
        assert cli.main(["authors", str(run), "--csv"]) == 0
        expected = load_run(run).author_topics().to_csv(index=False)
        assert capsys.readouterr().out == expected
        assert cli.main(["authors", str(run), "--author", "Eve"]) == 2
        assert "Eve" in capsys.readouterr().err

    def test_models_without_authors(self, tmp_path, monkeypatch, capsys):
        corpus = bnp.Corpus.from_ids([[0, 1]], num_words=2)
        fit = bnp.TopicFit(bnp.LDA(2), corpus, None)
        monkeypatch.setattr(bnp, "load", lambda folder: fit)
        assert cli.main(["authors", str(tmp_path)]) == 2
        assert (
            "is a run of LDA, whose fit has no author_topics(); it has" in capsys.readouterr().err
        )


class TestEffects:
    @pytest.fixture
    def columns(self, tmp_path):
        path = tmp_path / "columns.csv"
        days = ["2020-01-05", "2020-02-01", "2021-01-01", "2021-03-01", "2021-12-24"]
        length = [1.0, 2.5, np.nan, 1.0, 7.0]
        pd.DataFrame({"day": days, "length": length}).to_csv(path, index=False)
        return path

    def test_effects(self, run, columns, capsys):
        argv = ["effects", str(run), "--covariates", str(columns), "--csv", "--num-draws", "2"]
        assert cli.main([*argv, "--formula", "~ length"]) == 0
        out, err = capsys.readouterr()
        table = pd.read_csv(columns)
        expected = load_run(run).effects("~ length", table, num_draws=2)
        assert out == expected.to_csv(index=False)
        assert "1 documents are left out: missing" in err
        assert "empty" not in err
        shares = [*argv, "--formula", "~ s(day, df=1)", "--by", "day", "--num-points", "2"]
        assert cli.main([*shares, "--topics", "1"]) == 0
        how = {"by": "day", "num_points": 2, "topics": [1], "num_draws": 2}
        expected = load_run(run).expected_shares("~ s(day, df=1)", table, **how)
        assert capsys.readouterr().out == expected.to_csv(index=False)

    def test_columns_are_read_as_those_of_a_corpus(self, run, tmp_path, capsys):
        rows = ["a,007,NA,2020-01-05 10:00", "b,007,EU,", "c,7,NA,2020-02-01 10:00",
                "d,7,EU,2020-01-07 09:00", "e,007,NA,2021-01-05 10:00"]  # fmt: skip
        path = tmp_path / "columns.csv"
        path.write_text("\n".join([",code,region,day", *rows]))
        texts = tmp_path / "texts.csv"
        texts.write_text(path.read_text().replace(",code", "text,code", 1))
        names = ["code", "region", "day"]
        table = bnp.read_corpus(texts, token_pattern=r"\w+", covariates=names, stop_words=None)
        for formula in ("~ code + region", "~ day"):
            argv = ["effects", str(run), "--covariates", str(path), "--csv", "--num-draws", "2"]
            assert cli.main([*argv, "--formula", formula]) == 0
            expected = load_run(run).effects(formula, table.covariates, num_draws=2)
            assert capsys.readouterr().out == expected.to_csv(index=False)
            if formula != "~ day":
                assert {"code[7]", "region[NA]"} <= set(expected["term"])
        assert cli.main(["time", str(run), "--covariates", str(path), "--column", "code"]) == 2
        assert "'007', which is no date" in capsys.readouterr().err

    def test_time(self, run, columns, capsys):
        argv = ["time", str(run), "--covariates", str(columns), "--csv", "--column"]
        fit, table = load_run(run), pd.read_csv(columns)
        for bins in ("year", "2"):
            assert cli.main([*argv, "day", "--bins", bins]) == 0
            periods = fit.topics_over_time(table["day"], bins=int(bins) if bins == "2" else bins)
            assert capsys.readouterr().out == periods.to_csv(index=False)

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (["effects", "--formula", "~ x"], "covariates must be given, for the corpus has none"),
            (["effects"], "required: --formula"),
            (
                ["effects", "--formula", "~ 1", "--num-points", "3"],
                "is for expected shares: give --by COLUMN, got 3",
            ),
            (["time", "--column", "x"], "has a corpus without covariates: give --covariates FILE"),
        ],
    )
    def test_what_is_refused(self, run, argv, message, columns, capsys):
        given = ["--covariates", str(columns)] if "--num-points" in argv else []
        assert cli.main([argv[0], str(run), *argv[1:], *given]) == 2
        assert message in capsys.readouterr().err

    def test_whole_numbers_have_no_decimals(self, run, tmp_path, capsys):
        count = load_run(run).dataset.num_docs
        columns = pd.DataFrame({"year": 1991.0 + np.arange(count) % 3})
        columns.to_csv(tmp_path / "years.csv", index=False)
        argv = ["time", str(run), "--covariates", str(tmp_path / "years.csv"), "--column", "year"]
        assert cli.main(argv) == 0
        names, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
        assert {row[names.index("middle")] for row in rows} == {"1991", "1992", "1993"}
        assert all(re.fullmatch(r"0\.\d{3}|1\.000", row[-2]) for row in rows)  # shares

    def test_missing_numbers_are_not_written_as_whole(self, capsys):
        table = pd.DataFrame({"a": [1991.0, np.nan], "b": [0.5, 1], "c": [np.nan, np.nan]})
        cli._print_table(table)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split() for line in lines] == [
            ["a", "b", "c"], ["1991", "0.500", "NaN"], ["NaN", "1.000", "NaN"]
        ]  # fmt: skip

    def test_other_columns(self, run, columns, capsys):
        argv = ["time", str(run), "--column", "days", "--covariates"]
        assert cli.main([*argv, str(columns)]) == 2
        assert "--column must be one of ['day', 'length'], got 'days'" in capsys.readouterr().err
        columns.write_text("a;b\n1;2,3\n")
        assert cli.main([*argv, str(columns)]) == 2
        assert "quote fields that hold ','; divide columns by ','" in capsys.readouterr().err
        columns.write_text(",\n1,2\n")
        assert cli.main([*argv, str(columns)]) == 2
        assert "has no names of columns in its first line" in capsys.readouterr().err
        columns.write_text("")
        assert cli.main([*argv, str(columns)]) == 2
        assert "--covariates must be a CSV file with a row of names" in capsys.readouterr().err


class TestPlot:
    def test_some(self, run, tmp_path, capsys):
        argv = ["plot", str(run), "--output", str(tmp_path / "new"), "--what", "topic_words"]
        assert cli.main([*argv, "--what", "traces", "--what", "author_topics"]) == 2
        out, err = capsys.readouterr()
        names = ["topic_words.png", "traces.png"]
        assert out.splitlines() == [str(tmp_path / "new" / name) for name in names]
        assert "author_topics is not drawn: give --author NAME" in err
        for name in names:
            assert (tmp_path / "new" / name).read_bytes().startswith(b"\x89PNG")
        assert cli.main([*argv, "--what", "author_topics", "--author", "Ann"]) == 0
        assert (tmp_path / "new" / "author_topics.png").exists()

    def test_all_that_the_run_has(self, run, tmp_path, capsys):
        assert cli.main(["plot", str(run), "--output", str(tmp_path), "--author", "Bob"]) == 0
        out, err = capsys.readouterr()
        assert "prevalence_by_group is not drawn: " in err
        drawn = {path.stem for path in tmp_path.iterdir()}
        assert {str(tmp_path / f"{name}.png") for name in drawn} == set(out.splitlines())
        assert {"traces", "history", "ranks", "topic_words", "author_topics"} <= drawn
        assert drawn < set(cli.pictures(bnp.AuthorFit))

    def test_others(self, run, capsys):
        assert cli.main(["plot", str(run), "--what", "factors"]) == 2
        assert "--what 'factors' is none of a AuthorFit: choose among" in capsys.readouterr().err
        assert cli.main(["plot", str(run), "--what", "x"]) == 2
        assert "--what 'x' is none of a AuthorFit" in capsys.readouterr().err

    def test_names(self):
        assert "calibration" not in cli.pictures(bnp.SupervisedFit)
        assert {"traces", "factors"} <= set(cli.pictures(bnp.FactorFit))


class TestEvaluate:
    def test_scores_that_can_be_computed(self, run, tmp_path, capsys):
        new = tmp_path / "new.txt"
        new.write_text("Cat\nmars\n")  # no document has two halves
        argv = ["evaluate", str(run), str(new), "--num-words", "2"]
        assert cli.main(argv) == 0
        out, err = capsys.readouterr()
        assert [line.split(":")[0] for line in out.splitlines()] == ["npmi"]
        assert "document_completion is not computed: no document has two tokens" in err
        asked = [*argv, "--score", "document_completion", "--score", "left_to_right"]
        assert cli.main(asked) == 2
        assert capsys.readouterr().out.startswith("left to right: -")
        assert cli.main([*argv, "--score", "score"]) == 2
        out, err = capsys.readouterr()
        assert (out, "score must be one of ['document_completion'," in err) == ("", True)


def test_factors_of_new_rows(made_up_factors, tmp_path, monkeypatch, capsys):
    phi = np.array([[3.0, 0, 1], [0, 4, 0]])
    weights = np.ones((4, 2))
    sources = bnp.Sources.from_arrays([weights @ phi], feature_names=["x", "y", "z"])
    model = bnp.GaussianFactorAnalysis()
    fit = made_up_factors(model, sources, phi, weights, sigma2_w=1.0, sigma2_n=0.01)
    (tmp_path / "new.csv").write_text("x,y,z\n3,4,1\n0,4,0\n")
    monkeypatch.setattr(bnp, "load", lambda folder: fit)
    argv = ["transform", str(tmp_path), str(tmp_path / "new.csv"), "--known", "no"]
    assert cli.main([*argv, "--num-warmup", "2", "--num-kept", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert cli.main([*argv, "--num-sweeps", "2"]) == 2
    assert "--num-sweeps is no option for" in capsys.readouterr().err


class TestReport:
    def test_of_a_run(self, run, tmp_path, capsys):
        assert (run / "report.html").is_file()  # `fit` has written it
        path = tmp_path / "page.html"
        argv = ["report", str(run), "--output", str(path), "--num-rows", "2", "--chain", "1"]
        assert cli.main(argv) == 0
        assert capsys.readouterr().out == f"{path}\n"
        text = path.read_text("utf-8")
        assert "This list has 2 of the 5 documents" in text
        assert "Chain 1, " in text
        assert f"fit = bnp.load({str(run)!r})" in html.unescape(text)

    def test_what_is_refused(self, run, tmp_path, capsys):
        load_run(run).save_model(tmp_path / "model.npz")
        for argv, message in (
            ([str(run), "--output", str(tmp_path)], "path must be a file, got the folder"),
            ([str(run), "--output", str(tmp_path / "no" / "a.html")], "make"),
            ([str(run), "--num-rows", "0"], "num_rows must be an integer of at least 1, got 0"),
            ([str(tmp_path / "model.npz")], "without the documents that were fitted"),
        ):
            assert cli.main(["report", *argv]) == 2
            assert message in capsys.readouterr().err
