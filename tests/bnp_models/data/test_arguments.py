"""Checks of arguments: what they return, and that a refusal names argument, value and fix."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bnp_models.data import arguments
from bnp_models.data.arguments import optional

ANY = (None, None)


@pytest.mark.parametrize(
    ("check", "value", "wanted"),
    [
        (partial(arguments.integer, minimum=1), np.int64(3), 3),
        (partial(optional, arguments.integer), None, None),
        (partial(optional, arguments.integer), 3, 3),
        (arguments.seed, 2**32 - 1, 2**32 - 1),
        (arguments.finite_number, np.float32(0.5), 0.5),
        (partial(arguments.finite_number, at_least=0, infinite=True), np.inf, np.inf),
        (partial(arguments.finite_number, above=0, at_most=1), 1, 1.0),
        (arguments.flag, np.bool_(True), True),
        (partial(arguments.one_of, allowed=("a", None)), None, None),
        (partial(arguments.one_of, allowed={"a": 1}), "a", "a"),
        (partial(arguments.text, empty=True), "", ""),
        (partial(arguments.sequence, of="numbers"), range(2), [0, 1]),
        (arguments.texts, np.array(["a", "b"]), ["a", "b"]),
        (partial(arguments.indices, stop=3), np.array([2, 0]), [2, 0]),
        (partial(arguments.mapping, of="numbers"), {"a": 1}, {"a": 1}),
        (arguments.function, len, len),
        (arguments.path, "run", Path("run")),
        (arguments.path, Path("run"), Path("run")),
        (arguments.encoding, "latin-1", "latin-1"),
        (arguments.pattern, r"(\w+)", r"(\w+)"),
    ],
)
def test_what_is_in_the_domain_is_returned(check, value, wanted):
    found = check("name", value)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        *[
            (arguments.integer, value, "name must be an integer of at least 0, got")
            for value in (-1, 1.0, True, "1", None, np.float64(2), np.bool_(True), b"1", [1])
        ],
        (arguments.integer, 2**31, "name must be an integer of at most 2147483647, got 2147483648"),
        (arguments.seed, 2**32, "at most 4294967295"),
        *[
            (
                partial(arguments.finite_number, above=0, at_most=1),
                value,
                "number above 0 and at most 1, got",
            )
            for value in (0, 1.5, np.nan, np.inf, -np.inf, "0.5", True, None, 10**400, 1j, [0.5])
        ],
        (
            partial(arguments.finite_number, at_least=2, below=3),
            3,
            "finite number of at least 2 and below 3, got 3",
        ),
        (partial(arguments.finite_number, infinite=True), np.nan, "name must be a number, got nan"),
        *[
            (arguments.flag, value, "name must be True or False, got")
            for value in (0, 1, None, "True", np.ones(2))
        ],
        *[
            (
                partial(arguments.one_of, allowed=("b", None, "a")),
                value,
                r"one of \['a', 'b', None\]",
            )
            for value in ("c", 1, [], {}, np.array(["a"]), b"a")
        ],
        *[(arguments.text, value, "must be a string that is not empty") for value in ("", b"a", 1)],
        *[
            (partial(arguments.sequence, of="numbers"), value, "name must be a sequence of numbers")
            for value in ("ab", b"ab", {1: 2}, {1, 2}, 3, None, np.array(3))
        ],
        (partial(arguments.sequence, of="numbers", some=True), [], "at least one entry"),
        (partial(arguments.sequence, of="numbers", length=2), [1], "name must have 2 entries"),
        (arguments.texts, ["a", 1], r"name\[1\] must be a string, got 1"),
        *[
            (partial(arguments.indices, stop=3), value, "must be .*numbers from 0 to 2")
            for value in ([], [3], [-1], [0.0], ["0"], [True], "0")
        ],
        (partial(arguments.mapping, of="arrays"), [1], "name must be a dictionary of arrays"),
        (arguments.function, 1, "name must be a function, got 1"),
        *[(arguments.path, value, "must be the path of") for value in ("", b"a", 1, None, "a\0")],
        *[
            (arguments.encoding, value, "name must be an encoding such as 'utf-8'")
            for value in ("", "utf8x", "rot13", 8, None, "a\0")
        ],
        (arguments.pattern, "", "name must be a regular expression"),
        (arguments.pattern, b"a", "name must be a regular expression"),
        (arguments.pattern, "(", r"name must be a regular expression, got '\(': missing"),
        (arguments.pattern, "(a)(b)", "name must have at most one group"),
        *[
            (partial(arguments.array, shape=(2, None)), value, r"numbers of shape \[2, any\], got")
            for value in (np.ones(2), np.ones((3, 2)), [["a"], ["b"]], [[1], [1, 2]], None)
        ],
        (partial(arguments.array, shape=(None,), kind="integers"), [0.5], "array of integers"),
        (partial(arguments.array, shape=(None,), kind="booleans"), [0, 1], "array of booleans"),
        (partial(arguments.array, shape=(None,), finite=True), [np.nan], "hold finite numbers"),
        (
            partial(arguments.instance, kind=dict, what="a dict"),
            1,
            "name must be a dict, got int 1",
        ),
    ],
)
def test_what_is_not_is_refused(check, value, message):
    with pytest.raises(ValueError, match=message):
        check("name", value)


def test_long_values_are_shortened():
    assert arguments.short_repr("a" * 200) == "'" + "a" * 79 + "..."
    assert arguments.short_repr(np.zeros((40, 3))).count("\n") == 0

    class Broken:
        def __repr__(self):
            raise RuntimeError

    assert arguments.short_repr(Broken()) == "a Broken"


def test_options_are_those_of_the_function():
    def inner(a, *, top=1, window=None):
        pass

    arguments.options(inner, {"top": 2, "other": 1}, "other")
    with pytest.raises(ValueError, match=r"tops=2 is not an option of inner.*'top', 'window'"):
        arguments.options(inner, {"tops": 2})
    with pytest.raises(ValueError, match=r"give some of \['window', 'top'\]$"):  # each once
        arguments.options(inner, {"other": 2}, "window")


@pytest.mark.parametrize(
    ("value", "hint"),
    [("lda", ": did you mean 'LDA'?"), ("HDPLAD", ": did you mean 'HDPLDA'?"), ("zebra", ""),
     (3, ""), ("", ""), ("x" * 1000, "")],
)  # fmt: skip
def test_the_name_that_was_meant(value, hint):
    assert arguments.meant(value, ["LDA", "HDPLDA", None]) == hint
    with pytest.raises(ValueError, match=re.escape(f"got {arguments.short_repr(value)}{hint}")):
        arguments.one_of("model", value, ["LDA", "HDPLDA"])
