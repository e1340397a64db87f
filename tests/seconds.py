"""A table of where the seconds of tests go, from a folder that `BNP_SECONDS` named.

    BNP_SECONDS=build/seconds make test-all
    python tests/seconds.py build/seconds

Seconds are those of all processes together. `running` is what is left: sweeps, and Python.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

EVENTS = {
    "tracing": "jaxpr_trace_duration",
    "lowering": "jaxpr_to_mlir_module_duration",
    "compiling": "backend_compile_duration",  # with loading
    "loading": "cache_retrieval_time_sec",
}
KINDS = ("enumeration", "geweke", "growth", "batch", "invariants", "ranks", "shipped", "program")


def table(folder):
    """Return lines of Markdown: by kind of test, by folder, and of the slowest files."""
    rows = [json.loads(line) for path in Path(folder).glob("*.jsonl") for line in path.open()]
    lines = []
    for what, key in (("kind", kind), ("folder", place), ("file", file)):
        sums = defaultdict(lambda: defaultdict(float))
        for row in rows:
            one = sums[key(row)]
            one["tests"] += row["when"] == "call"
            one["seconds"] += row["seconds"]
            for name, event in EVENTS.items():
                one[name] += row.get(event, 0.0)
        for one in sums.values():
            one["compiling"] -= one["loading"]
            one["running"] = one["seconds"] - sum(one[name] for name in EVENTS)
        heads = ["tests", "seconds", *EVENTS, "running"]
        lines += [f"| {what} | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
        for name, one in sorted(sums.items(), key=lambda x: -x[1]["seconds"])[:25]:
            lines.append(f"| {name} | {' | '.join(f'{one[head]:.0f}' for head in heads)} |")
        lines.append("")
    return lines


def kind(row):
    """Return what kind of test a row is about."""
    if not row["test"]:
        return row["when"]
    found = re.search(r"\[(\w+)", row["test"])
    if "test_mistake" in row["test"]:
        return "planted mistakes"
    return found[1] if found and found[1] in KINDS else "other tests"


def place(row):
    """Return the folder of the test of a row."""
    return "/".join(file(row).split("/")[:3]).rpartition("/")[0] or "all"


def file(row):
    """Return the file of the test of a row."""
    return row["test"].partition("::")[0] or row["when"]


if __name__ == "__main__":
    print("\n".join(table(sys.argv[1])))
