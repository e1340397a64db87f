"""Which check sees which planted mistake: run each mistake against every check of its schedule.

    python tests/kernels/matrix.py                # go on with `matrix.json`, some hours
    python tests/kernels/matrix.py --models LDA   # only these models
    python tests/kernels/matrix.py --report       # a table of what each check is worth

The file has, for each model and each mistake, the largest z-score of every check that compares
means, with a quarter of the sweeps, as a multiple of the threshold: above one the check sees the
mistake. For other checks it has 1000 where they see it and 0 where they do not. A mistake that is
made once for all schedules (in a density, say) is run against the check that it names alone.
"""

import argparse
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from bnp_models import MODELS, testing
from bnp_models.testing import cases

HERE = Path(__file__).parent
FILE = HERE / "matrix.json"
SEEN, UNSEEN = 1000.0, 0.0


def main(argv=None):
    """Run what is missing, or report."""
    parser = argparse.ArgumentParser(description="Run mistakes against checks.")
    parser.add_argument("--models", default=",".join(MODELS), help="names of models, with commas")
    parser.add_argument("--output", type=Path, default=FILE)
    parser.add_argument("--report", action="store_true", help="print what the file says")
    given = parser.parse_args(argv)
    known = json.loads(given.output.read_text()) if given.output.exists() else {}
    if given.report:
        print("\n".join(report(known)))
        return
    found = testing.find(HERE, {name: MODELS[name] for name in given.models.split(",")}, "CASE")
    for model, case in found.items():
        of_model = known.setdefault(model, {})
        for mistake in case.mistakes:
            if mistake.name in of_model:
                continue
            of_model[mistake.name] = row(case, mistake)
            print(model, mistake.name, of_model[mistake.name], flush=True)
            given.output.write_text(json.dumps(known, indent=1) + "\n")


def row(case, mistake):
    """Return what the checks of the schedule of a mistake make of it."""
    _, slash, schedule = mistake.caught_by.rpartition("/")
    names = [name for name in case.checks() if name.rpartition("/")[2] == schedule]
    names = [x for x in names if not x.startswith(("shipped/", "ranks/"))]
    if not slash or mistake.caught_by.startswith("growth/"):
        names = [mistake.caught_by]
    return {name: strength(case, mistake, name) for name in names}


def strength(case, mistake, name):
    """Return the largest z-score of a check over its threshold, with a mistake."""
    _, slash, schedule = mistake.caught_by.rpartition("/")
    with ExitStack() as stack:
        if slash:
            concerned = [cases._compiled(case, schedule, False)]
            if name.startswith("growth/"):
                concerned.append(cases._compiled(case, schedule, True))
            for sweeps in concerned:
                stack.enter_context(mock.patch.object(sweeps, "on", mistake.name))
        else:
            stack.enter_context(testing.made(mistake))
        try:
            passed = case.checks()[name].run()
        except testing.Rejected as error:
            z, threshold = re.search(r"max \|z\| (\S+) .* threshold (\S+)", str(error)).groups()
            return round(min(float(z) / float(threshold), SEEN), 2)
        except testing.Disagreement:
            return SEEN
        except testing.SweepFailed:
            return UNSEEN  # it ended for want of slots, and saw nothing
        return UNSEEN if passed is None else round(abs(passed.worst.z) / passed.threshold, 2)


def report(known):
    """Return lines: by check, how many mistakes it sees, and how many of them it alone sees."""
    lines = [
        "| model | check | sees | alone | at least twice the threshold |",
        "|---|---|---:|---:|---:|",
    ]
    for model, mistakes in known.items():
        names = sorted({name for of_mistake in mistakes.values() for name in of_mistake})
        for name in names:
            seen = [x for x in mistakes.values() if x.get(name, 0.0) > 1]
            alone = [x for x in seen if sum(z > 1 for z in x.values()) == 1]
            strong = [x for x in seen if x[name] > 2]
            lines.append(f"| {model} | {name} | {len(seen)} | {len(alone)} | {len(strong)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
