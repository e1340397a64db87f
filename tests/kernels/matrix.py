"""Which check sees which planted mistake: run each mistake against every check of its schedule.

    python tests/kernels/matrix.py                # go on with `matrix.json`, some hours
    python tests/kernels/matrix.py --models LDA   # only these models
    python tests/kernels/matrix.py --report       # what each check is worth, which are spare

The file has, for each model and each mistake, the largest z-score of every check that compares
means, with a quarter of the sweeps, as a multiple of the threshold: above one the check sees the
mistake. For other checks it has 1000 where they see it and 0 where they do not. Where a sampler
with the mistake did not end within `SECONDS`, it has null.

A mistake that is made once for all schedules (in a density, say) is run against the check that it
names alone. So is every mistake that `batch/...` must see: that check compares the sweep that has a
switch for the mistake with one that has none, and would see any other mistake without being right.

From the file follows which checks are `spare`: those without which every mistake is still seen with
room. They run if `BNP_EVERY_CHECK` is set.
"""

import argparse
import json
import multiprocessing
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from bnp_models import MODELS, testing
from bnp_models.testing import cases

HERE = Path(__file__).parent
FILE = HERE / "matrix.json"
SEEN, UNSEEN = 1000.0, 0.0
ALONE = ("growth/", "batch/")  # mistakes that other checks are not run against
ROOM = 2.0  # times the threshold
SECONDS = 300  # for one check, with compiling


def main(argv=None):
    """Run what is missing, or report."""
    parser = argparse.ArgumentParser(description="Run mistakes against checks.")
    parser.add_argument("--models", default=",".join(MODELS), help="names of models, with commas")
    parser.add_argument("--output", type=Path, default=FILE)
    parser.add_argument("--report", action="store_true", help="print what the file says")
    given = parser.parse_args(argv)
    if given.report:
        print("\n".join(report(read(given.output))))
        return
    for model in given.models.split(","):
        fill(model, given.output)


def fill(model, file):
    """Run what is missing of a model, in processes that are stopped where a sampler never ends."""
    while True:
        process = multiprocessing.get_context("spawn").Process(target=run, args=(model, file))
        process.start()
        begun = time.time()
        while process.is_alive():
            process.join(5)
            last = file.stat().st_mtime if file.exists() else begun
            if time.time() - max(begun, last) > SECONDS:
                process.kill()
                process.join()
                mistake, name = json.loads(running(file).read_text())
                note(file, model, mistake, name, None)
                break
        else:
            if process.exitcode:
                sys.exit(process.exitcode)
            return


def run(model, file):
    """Run what is missing of a model in this process."""
    [case] = testing.find(HERE, {model: MODELS[model]}, "CASE").values()
    for mistake in case.mistakes:
        known = read(file).get(model, {}).get(mistake.name, {})
        for name in checks_of(case, mistake):
            if name not in known:
                running(file).write_text(json.dumps([mistake.name, name]))
                note(file, model, mistake.name, name, strength(case, mistake, name))
        print(model, mistake.name, read(file)[model][mistake.name], flush=True)


def read(file):
    """Return what the file says, by model, mistake and check."""
    return json.loads(file.read_text()) if file.exists() else {}


def running(file):
    """Return the file that says what runs."""
    return file.with_suffix(".running")


def note(file, model, mistake, name, value):
    """Write one number."""
    known = read(file)
    known.setdefault(model, {}).setdefault(mistake, {})[name] = value
    file.write_text(json.dumps(known, indent=1) + "\n")


def checks_of(case, mistake):
    """Return the names of the checks that a mistake is run against."""
    _, slash, schedule = mistake.caught_by.rpartition("/")
    if not slash or mistake.caught_by.startswith(ALONE):
        return [mistake.caught_by]
    names = [name for name in case.checks() if name.rpartition("/")[2] == schedule]
    return [x for x in names if not x.startswith(("shipped/", "ranks/", "batch/", "growth/"))]


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


def spare(case, of_model):
    """Return the names of checks without which every mistake is still seen with room.

    Among the checks that compare means, the smallest set is looked for, step by step, that sees
    each mistake with twice the threshold, or with most of what any check has for it. Of every
    schedule and of every target one enumeration stays, and Geweke's check where enumeration
    reaches little: if sweeps are made in lanes or topics are added.
    """
    means = [x for x in case.checks() if x.startswith(("enumeration/", "geweke/"))]
    chosen = {x for x in means if x.startswith("geweke/") and reaches_little(case, x)}
    open_ = []  # for each mistake the checks that see it with room
    for numbers in of_model.values():
        best = max((x or 0.0 for x in numbers.values()), default=0.0)
        enough = {x for x in numbers if sees(numbers, x, min(ROOM, 0.8 * best))}
        if enough and enough <= set(means):  # else a check that always runs sees it
            open_.append(enough)
    while open_ := [enough for enough in open_ if not enough & chosen]:
        # of equally good ones the last: it samples the most hyperparameters
        chosen.add(max(reversed(means), key=lambda x: sum(x in enough for enough in open_)))
    enumerations = [x for x in means if x.startswith("enumeration/")]
    for schedule in case.schedules:
        own = [x for x in enumerations if x.endswith(f"/{schedule}")]
        chosen |= set() if chosen & {*own} else {*own[-1:]}
    for number, target in enumerate(case.targets):  # in turn by another schedule
        own = [x for x in enumerations if x.startswith(f"enumeration/{target}/")]
        if own and not chosen & {*own}:
            chosen.add(own[number % len(own)])
    return [x for x in means if x not in chosen]


def reaches_little(case, name):
    """Say whether enumeration, whose corpora are tiny, reaches little of a schedule."""
    schedule = name.rpartition("/")[2]
    return schedule != "sequential" or case.schedules[schedule].growth is not None


def sees(of_mistake, name, times=1):
    """Say whether a check sees a mistake, given the numbers of the mistake."""
    return (of_mistake.get(name) or 0.0) > times


def report(known):
    """Return lines: what each check sees, which are spare, and what one check alone sees."""
    lines = [
        "| model | check | sees | with room | alone | |",
        "|---|---|---:|---:|---:|---|",
    ]
    alone = []
    for model, mistakes in known.items():
        [case] = testing.find(HERE, {model: MODELS[model]}, "CASE").values()
        not_needed = spare(case, mistakes)
        for name in sorted({name for of_mistake in mistakes.values() for name in of_mistake}):
            seen = {mistake: x for mistake, x in mistakes.items() if sees(x, name)}
            only = [m for m, x in seen.items() if sum(sees(x, other) for other in x) == 1]
            room = sum(sees(x, name, ROOM) for x in seen.values())
            said = "spare" if name in not_needed else ""
            lines.append(f"| {model} | {name} | {len(seen)} | {room} | {len(only)} | {said} |")
            alone += [f"- {model}, {name}: {m}" for m in only if len(mistakes[m]) > 1]
    return [*lines, "", "Seen by one check alone, of several that were tried:", "", *alone]


if __name__ == "__main__":
    sys.exit(main())
