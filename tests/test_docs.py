"""The documentation: code of the how-to pages runs, and every public name has an entry.

A block of Python runs after those before it on the page. Some lines above a block say more:
`% not run: REASON`, and `% needs: MODULE.NAME` for what is not installed everywhere.
"""

import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bnp_models as bnp
from bnp_models import testing

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("howto/*.md"))
SMALL = {
    "num_warmup": 8,
    "num_samples": 12,
    "num_chains": 2,
    "num_draws": 3,
    "keep_states": 3,
    "thinning": 2,
    "num_simulations": 2,
    "folds": 2,
}
"""Numbers of the pages, made small."""
SMALL_TEXT = {
    r"\.select\(range\(\d+\)\)": ".select(range(60))",
    r"\]\[:300\]": "][:60]",
    r"\(\(\"numpy\", \"scipy\"\)\)": '(("numpy", "scipy")).select(range(0, 600, 10))',
    r"\[5, 10, 20, 40\]": "[2, 3]",
}
"""Other things on the pages, made small."""


def module_of_docs(name: str) -> Any:
    """Import a module of the documentation as its build does."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def public_names():
    return module_of_docs("public_names")


@pytest.fixture(scope="module")
def claims():
    return module_of_docs("claims")


@pytest.fixture(scope="module")
def api():
    return (DOCS / "api.md").read_text()


class Block(NamedTuple):
    code: str
    line: int
    reason: str | None  # not to run it
    needs: str | None


def blocks(page: str) -> list[Block]:
    found = []
    for block in re.finditer(
        r"((?:^% .*\n+)*)^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    ):
        said = dict(re.findall(r"^% ([\w ]+): (.*)$", block[1], re.MULTILINE))
        assert said.keys() <= {"not run", "needs"}, said
        line = page[: block.start(2)].count("\n")
        found.append(Block(block[2], line, said.get("not run"), said.get("needs")))
    return found


def is_there(name: str) -> bool:
    module, _, thing = name.rpartition(".")
    try:
        found = importlib.import_module(module or thing)
    except ImportError:
        return False
    return not module or hasattr(found, thing)


def small(code: str) -> str:
    """Make the numbers of a block small; the numbers may be keywords or entries of a dictionary."""
    for name, number in SMALL.items():
        pattern = rf"({name}=|\"{name}\": )(\d+)"
        code = re.sub(pattern, lambda found, n=number: f"{found[1]}{min(int(found[2]), n)}", code)
    for pattern, text in SMALL_TEXT.items():
        code = re.sub(pattern, text, code)
    return code


def run(page: str, name: str) -> None:
    space = {"__name__": "__main__"}
    for block in blocks(page):
        if block.reason is not None or (block.needs is not None and not is_there(block.needs)):
            continue
        code = "\n" * block.line + small(block.code)  # tracebacks name the line of the page
        exec(compile(code, str(DOCS / "howto" / f"{name}.md"), "exec"), space)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_code_of_how_to_pages_runs(name, tmp_path, monkeypatch, no_sweeps):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), no_sweeps():
        warnings.simplefilter("ignore")  # short chains make ArviZ and scores warn
        run((DOCS / "howto" / f"{name}.md").read_text(), name)
    plt.close("all")


@pytest.mark.parametrize("name", PAGES)
def test_how_to_pages_have_code_and_a_place(name):
    page = (DOCS / "howto" / f"{name}.md").read_text()
    assert blocks(page)
    assert len(page.splitlines()) < 200
    index = (DOCS / "index.md").read_text()
    assert f"\nhowto/{name}\n" in index  # in the toctree
    assert f"](howto/{name}.md)" in index


def test_every_public_name_has_an_entry(public_names, api):
    assert public_names.problems(api) == []


def test_every_option_is_described(public_names, api):
    assert public_names.undescribed(api) == []


class TestPublicNames:
    def test_what_is_missing_is_listed(self, public_names, api):
        wrong = public_names.problems(api.replace("   HDPLDA\n", "   HDP\n"))
        assert wrong == [
            "bnp_models.HDPLDA has no entry in docs/api.md",
            "bnp_models.HDP is in docs/api.md, but not in the library",
        ]

    def test_options_that_are_passed_on_are_described_as_where_they_go(self, public_names):
        found = public_names.described(bnp.TopicFit.topic_words, bnp.TopicFit)
        expected = public_names.described(
            importlib.import_module("bnp_models.results.topic_tables").topic_words
        )
        about = re.search(r"^frex_weight\n(    .*\n)+", expected, re.MULTILINE)
        assert about is not None
        assert about[0] in found
        assert "\nstates\n" not in found  # the method gives them
        assert found.count("Returns\n-------") == 1

    def test_a_docstring_that_says_all_is_left_as_it_is(self, public_names):
        text = inspect.getdoc(bnp.choose_num_topics)
        assert public_names.described(bnp.choose_num_topics) == text

    def test_names_with_a_page_become_links(self, public_names, api):
        listed = public_names.entries(api)
        text = "`topic_tables.topics`, `Fit.save`, `fit.topics`, `topic_tables.bounds`"
        assert public_names.linked(text, listed) == (
            ":obj:`topic_tables.topics <bnp_models.results.topic_tables.topics>`, "
            ":obj:`Fit.save <bnp_models.Fit.save>`, `fit.topics`, `topic_tables.bounds`"
        )

    def test_prose_about_what_is_returned_is_one_line(self, public_names):
        prose = "Do.\n\nReturns\n-------\nTwo\nlines.\n\nMore.\n\nRaises\n------\nE\n    If so."
        one = prose.replace("Two\nlines.", "Two lines.")
        assert public_names.joined(prose) == one
        table = "Do.\n\nReturns\n-------\ntable\n    Two\n    lines."
        assert public_names.joined(table) == table


class TestClaims:
    def test_every_study_with_claims_is_on_the_page(self, claims):
        reports = [
            p
            for p in (ROOT / "experiments" / "results").glob("*_standard.md")
            if "\n## Claims" in p.read_text()
        ]
        assert {path.name.removesuffix("_standard.md") for path in reports} == {*claims.STUDIES}
        marks = re.findall(r"^% claims: (\w+)$", (DOCS / "claims.md").read_text(), re.MULTILINE)
        assert sorted(marks) == sorted([*claims.STUDIES, "summary"])

    def test_no_claim_is_lost(self, claims):
        results = ROOT / "experiments" / "results"
        page = claims.fill_in((DOCS / "claims.md").read_text(), results)
        assert "% claims" not in page
        for name in claims.STUDIES:
            for part in claims.sections((results / f"{name}_standard.md").read_text()):
                assert part in page

    def test_links_are_taken_away(self, claims):
        head = "| Paper | where | claim | expected | found | verdict | why |\n"
        head += "|---|---|---|---|---|---|---|\n"
        row = "| a | b | c | d | [e](f.png) | holds | ![g](h.png) |"
        (found,) = claims.sections(f"# Study\n\n## Claims\n\n{head}{row}\n\n## Scores\n\n| x |\n")
        assert found == head + "| a | b | c | d | e | holds | g |"
        with pytest.raises(ValueError, match="must have claims"):
            claims.sections("# Study\n\n## Scores\n")


@pytest.mark.slow
def test_table_of_checks_is_that_of_the_harness():
    page = (DOCS / "how_it_is_tested.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|((?: \d+ \|){7})$", page, re.MULTILINE)
    shown = {name: [int(x) for x in re.findall(r"\d+", numbers)] for name, numbers in rows}
    cases = testing.find(ROOT / "tests" / "kernels", bnp.MODELS, "CASE")
    reports = 0
    for name, case in cases.items():
        count = Counter(check.partition("/")[0] for check in case.checks())
        random = [count.pop(kind, 0) for kind in ("enumeration", "geweke", "program", "shipped")]
        density = count.pop("log_joint", 0) + count.pop("conditional", 0)
        assert shown[name] == [*random, density, count.total(), len(case.mistakes)], name
        reports += sum(random)
    assert shown.keys() == cases.keys()
    assert f"the {reports} reports" in page


class TestMeasured:
    """What pages say of measurements is what the files say, and says how old it is."""

    made = module_of_docs("measured_tables")

    @pytest.fixture(params=made.PARTS, ids=lambda part: f"{part.page.name}-{part.name}")
    def part(self, request):
        return request.param

    def test_pages_say_what_the_files_say(self, part):
        page = part.page.read_text(encoding="utf-8")
        expected = part.lines(self.made.present_kernels(), *part.read())
        found = self.made.readme_demo.written(page, *part.marks())
        assert found == expected, "run `python docs/measured_tables.py` and commit the pages"

    def test_lines_say_if_the_kernels_have_changed(self, part):
        files = part.read()
        for file in files:
            for run in (file, *file.get("sessions", ()), *file.get("runs", ())):
                if "versions" in run:
                    run["versions"]["kernels"] = "same"
                    run["begun"] = "2000-01-01"
        lines = [" ".join(part.lines(digest, *files).split()) for digest in ("same", "other")]
        measured = ["Measured on 2000-01-01" in line for line in lines]
        assert measured == [True, True]
        assert ["and the present kernels." in line for line in lines] == [True, False]
        assert ["kernels that have changed since then." in line for line in lines] == [False, True]

    def test_tables_of_numbers_are_written_from_files(self):
        """A column that is aligned at the right has numbers that somebody measured."""
        for page in {self.made.README, *self.made.HOWTO.glob("*.md")}:
            text = page.read_text(encoding="utf-8")
            for part in self.made.PARTS:
                if part.page == page:
                    text = text.replace(self.made.readme_demo.written(text, *part.marks()), "")
            assert not re.search(r"^\|.*-:", text, re.MULTILINE), page
