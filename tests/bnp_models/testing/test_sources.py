"""The digest of sources changes with all that a test depends on, and with nothing else."""

import ast
import importlib
import itertools
import random
import sys
from pathlib import Path

import jax
import pytest

import bnp_kernels
from bnp_models import MODELS, testing
from bnp_models.testing import sources
from bnp_models.testing.sources import Place

KERNELS, TESTS = Path(bnp_kernels.__file__).parent, Path(__file__).parents[2]
CASES = testing.find(TESTS / "kernels", MODELS, "CASE")

NUMBERS = itertools.count()
DRAWS = '''
"""How numbers are drawn."""
import math
SCALE = 2

def base(x):
    """Return a base."""
    return SCALE * math.exp(x)  # always positive

def other(x):
    return -x
'''
KERNEL = """
from {package}.{draws} import base
from {package} import {draws}

def step(x):
    return base(x) + {draws}.other(x)

def again(x):
    return again(step(x)) if x else unused

def alone(x):
    return x
"""


@pytest.fixture
def digests(tmp_path, monkeypatch):
    """Write two modules, one that imports the other, and return the digests of a function."""

    def of(kernel=KERNEL, draws=DRAWS, name="draws", function="step"):
        package = f"made_up_{next(NUMBERS)}"  # another one each time
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / f"{name}.py").write_text(draws)
        file = folder / "kernel.py"
        file.write_text(kernel.format(package=package, draws=name))
        monkeypatch.setattr(sources, "ROOTS", (package,))
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        return sources.digest(Place(file, function))

    yield of
    for module in [x for x in sys.modules if x.startswith("made_up_")]:
        del sys.modules[module]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""How numbers are drawn."""', ""),
        ('    """Return a base."""\n', ""),
        ("  # always positive", ""),
        ("import math", "import math\nimport os"),
        ("def other", "def third(x):\n    return 3\n\ndef other"),
    ],
)
def test_what_does_nothing_is_left_out(digests, old, new):
    assert DRAWS.count(old) == 1
    assert digests(draws=DRAWS.replace(old, new)) == digests()


def test_names_of_modules_are_left_out(digests):
    assert digests(name="variates") == digests()


def test_code_that_nothing_uses_is_left_out(digests):
    assert digests(KERNEL.replace("return x\n", "return 2 * x\n")) == digests()


def test_code_may_move_to_another_module(digests):
    moved = DRAWS[DRAWS.index("SCALE") : DRAWS.index("def other")]
    kernel = KERNEL.replace("from {package}.{draws} import base\n", "import math\n" + moved)
    assert digests(kernel, DRAWS.replace(moved, "")) == digests()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("math.exp", "math.log"),
        ("import math", "import cmath as math"),
        ("SCALE = 2", "SCALE = 3"),
        ("return -x", "return +x"),
        ("SCALE = 2", "SCALE = 2\nSCALE += 1"),
        ("SCALE = 2", "SCALE = 2\nprint(SCALE)"),
        ("SCALE = 2", "if math.pi:\n    SCALE = 2"),
        ("def base(x)", "def base(x, y=1)"),
        ("def base", "@print\ndef base"),
        ("def other", "@base.__get__\ndef _(x):\n    return x\n\ndef other"),
    ],
)
def test_what_is_used_counts(digests, old, new):
    assert DRAWS.count(old) == 1
    assert digests(draws=DRAWS.replace(old, new)) != digests()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import base", "import other as base"),
        ("{draws}.other", "{draws}.base"),
        ("return base(x)", "from {package}.{draws} import other as base; return base(x)"),
    ],
)
def test_which_function_a_name_stands_for_counts(digests, old, new):
    assert KERNEL.count(old) == 1
    assert digests(KERNEL.replace(old, new)) != digests()


def test_a_module_that_is_passed_on_counts_as_a_whole(digests):
    kernel = KERNEL.replace("{draws}.other(x)", "getattr({draws}, 'base')(x)")
    assert digests(kernel, DRAWS.replace("return -x", "return x")) != digests(kernel)
    kernel = kernel.replace("{draws}, 'base'", "kernel, 'other'")
    kernel += "\nfrom {package} import kernel\nfrom {package}.{draws} import other\n"
    assert digests(kernel, DRAWS.replace("return -x", "return x")) != digests(kernel)


def test_functions_may_call_themselves(digests):
    assert digests(function="again") != digests(function="step")
    changed = KERNEL.replace("if x else", "if x > 1 else")
    assert digests(changed, function="again") != digests(function="again")
    assert digests(changed) == digests()


@pytest.mark.parametrize("line", ["import {package}.{draws}", "from . import {draws}"])
def test_imports_that_are_not_followed_are_refused(digests, line):
    with pytest.raises(ValueError, match="write"):
        digests(KERNEL + f"\n{line}\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_function_that_runs_counts(name, monkeypatch):
    """Tracing the sweeps and the density of a case calls no function that its digest leaves out."""
    case = CASES[name]
    file = f"test_{testing.registry.module_name(case.model)}.py"
    place = Place(TESTS / "kernels" / file, "test_check")
    counted = {
        (used.file, line)
        for used in sources.used(place)
        for statement in sources.statements(used)
        for line in range(first_line(statement), (statement.end_lineno or 0) + 1)
    }
    ran = functions_that_run(case)
    assert len({path for path, _ in ran}) > 8
    assert not ran - counted
    before = sources.digest(place)
    path, line = random.Random(name).choice(sorted(ran))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", with_a_change(path, line))
        forget()
        assert sources.digest(place) != before, f"{path}:{line}"
    forget()
    assert sources.digest(place) == before


def functions_that_run(case):
    here, ran = f"{KERNELS}/", set()

    def trace(frame, event, argument):  # of calls alone: a definition counts as a whole
        code = frame.f_code
        if code.co_filename.startswith(here):
            ran.add((code.co_filename, code.co_firstlineno))

    jax.clear_caches()  # what was traced before does not run again
    key, before = jax.random.key(0), sys.gettrace()
    sys.settrace(trace)
    try:
        for target in case.targets.values():
            state = jax.eval_shape(target.start, key)
            for schedule in case.schedules.values():
                jax.eval_shape(schedule.sweep(), key, state, target.data, target.priors)
            if case.log_joint is not None:
                jax.eval_shape(case.log_joint, state, target.data, target.priors)
    finally:
        sys.settrace(before)
    return {(Path(file), line) for file, line in ran}


def first_line(statement):
    decorators = getattr(statement, "decorator_list", ())
    return min(x.lineno for x in [statement, *decorators])


def with_a_change(path, line, read_text=Path.read_text):
    """Return a `Path.read_text` for which the function at a line has one more statement."""
    text = read_text(path).splitlines(keepends=True)
    inside = [
        x
        for x in ast.walk(ast.parse("".join(text)))
        if isinstance(x, ast.stmt) and first_line(x) <= line <= x.end_lineno
    ]
    innermost = max(inside, key=first_line)
    last = getattr(innermost, "body", [innermost])[-1]
    text.insert(first_line(last) - 1, " " * last.col_offset + "print()\n")
    return lambda self: "".join(text) if self == path else read_text(self)


def forget():
    for cached in (sources._own, sources._targets, sources._resolve, sources._read):
        cached.cache_clear()
