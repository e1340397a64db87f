"""LDA, the author-topic model and their nonparametric forms: scores, speed, and gensim beside them.

    python experiments/author_topic.py --data FOLDER

What Bleier's note leaves open: which of them predicts best, and does inferring the number of topics
cost anything? Test documents are split into halves; the first halves are fitted together with all
other documents, the second ones are predicted, by LDA and the HDP from the words of the first half,
by the author-topic models from the authors. What the paper of Rosen-Zvi, Griffiths, Steyvers and
Smyth (UAI 2004) found is tried as well: how many words of a document are its authors worth? Every
measurement is written to the JSON file as soon as it is done, and the same command goes on where an
interrupted one stopped.
"""

import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from author_study.settings import FULL, QUICK, STANDARD, Measurement, Settings, plan
from benchmarks.measure.machine import machine, pin, versions

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet, then report."""
    arguments = _parse(argv)
    settings = QUICK if arguments.quick else FULL if arguments.full else STANDARD
    output = Path(arguments.output or RESULTS / f"author_topic_{settings.size}.json")
    if arguments.report:
        from author_study.report import report

        print(report(json.loads(output.read_text()), output))
        return 0
    cores = pin(settings.cores)
    if cores < settings.cores:
        sys.exit(f"{settings.cores} cores are needed, {cores} are available")
    # both are read when JAX is imported
    os.environ["JAX_NUM_CPU_DEVICES"] = str(settings.cores)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(arguments.quick)
    from author_study import corpora

    corpus = corpora.load(settings, None if arguments.quick else arguments.data)
    data = corpora.split(corpus, settings)
    run = _open(output, settings, data)
    everything = list(plan(settings))
    missing = [m for m in everything if m.key not in run["measurements"]]
    minutes = sum(m.seconds for m in missing) / 60
    print(
        f"{data.together!r} to fit, {data.heldout.num_tokens} tokens of "
        f"{data.heldout.num_docs} of these to predict\n{len(missing)} of {len(everything)} "
        f"measurements to make on {cores} cores, about {minutes:.0f} minutes; results go to "
        f"{output}",
        flush=True,
    )
    if arguments.plan:
        for m in everything:
            state = "done" if m.key in run["measurements"] else f"{m.seconds:.0f} s"
            print(f"  {m.key}: {state}")
        return 0
    done = _measure(missing, run, settings, data, output)
    if run["measurements"]:
        from author_study.report import report

        print(f"\n{report(run, output)}")
    return 0 if done else 130


def _measure(
    missing: Sequence[Measurement], run: dict[str, Any], settings: Settings, data: Any, output: Path
) -> bool:
    """Make measurements and write each as soon as it is there; say whether all were made."""
    for i, m in enumerate(missing):
        left = sum(other.seconds for other in missing[i:]) / 60
        print(f"[{i + 1}/{len(missing)}, {left:.0f} min] {m.key}", flush=True)
        load, clock = os.getloadavg()[0], time.perf_counter()
        try:
            found = measure(m, settings, data, output)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return False
        took = time.perf_counter() - clock
        run["measurements"][m.key] = {**found, "took": took, "load_before": load}
        _write(output, run)
        print(f"    took {took:.0f} s{_brief(found)}", flush=True)
    return True


def measure(m: Measurement, settings: Settings, data: Any, output: Path) -> dict[str, Any]:
    """Make one measurement."""
    from author_study import fits, peer, speed

    part, what, *detail = m.key.split("/")
    scratch = output.with_name(f".{output.stem}.{m.key.replace('/', '.')}")  # for checkpoints

    def say(line: str) -> None:
        print(f"    {line}", flush=True)

    if part == "fit":
        topics = None if detail[0] == "inferred" else int(detail[0])
        return fits.fit(what, topics, settings, data, scratch)
    if part == "words":
        return fits.words(what, int(detail[0]), settings, data, scratch)
    if part == "gensim":
        return peer.gensim_curve(int(what), int(detail[0]), settings, data, say)
    if part == "curve":
        return fits.curve(detail[0], int(detail[1]), settings, data, say)
    return {"systems": speed.speed(int(what), settings, data.together, say)}


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    data = os.environ.get("BNP_DATA") or None
    parser.add_argument("--data", default=data, help="folder with nips12.npz; default: $BNP_DATA")
    parser.add_argument("--output", help="the JSON file; tables and pictures go beside it")
    parser.add_argument("--plan", action="store_true", help="only say what, and how long it takes")
    parser.add_argument("--report", action="store_true", help="only draw the tables anew")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="a small simulated corpus, in seconds, to see that it works",
    )
    size.add_argument("--full", action="store_true", help="all documents, for many hours")
    arguments = parser.parse_args(argv)
    if not (arguments.quick or arguments.report or arguments.data):
        parser.error("--data FOLDER is needed: the folder with nips12.npz")
    return arguments


def _open(output: Path, settings: Settings, data: Any) -> dict[str, Any]:
    """Read what is there of the same run, or begin one."""
    head = {
        "settings": json.loads(json.dumps(dataclasses.asdict(settings))),
        "data": data.together.digest,
        "versions": {**versions(), "study": _code()},
    }
    if not output.exists():
        corpus = data.together
        sizes = {
            "documents": corpus.num_docs,
            "tokens": corpus.num_tokens + data.heldout.num_tokens,
            "words": corpus.num_words,
            "authors": corpus.num_authors,
            "test documents": data.heldout.num_docs,
        }
        begun = datetime.date.today().isoformat()
        tokens = data.heldout.doc_length.tolist()
        about = {"sizes": sizes, "heldout_tokens": tokens, "machine": machine(), "begun": begun}
        return {**head, **about, "measurements": {}}
    run = json.loads(output.read_text())
    if other := [name for name, value in head.items() if run.get(name) != value]:
        sys.exit(f"{output} holds a run of other {' and '.join(other)}: give another --output")
    return run


def _code() -> str:
    """Identify the source of what measures: results of two do not mix."""
    folder = Path(__file__).parent / "author_study"
    names = "chains", "corpora", "fits", "peer", "speed"
    source = b"".join((folder / f"{name}.py").read_bytes() for name in names)
    return hashlib.sha256(source).hexdigest()[:16]


def _write(path: Path, run: dict[str, Any]) -> None:
    from bnp_models._files import replacing

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(f"{_dump(run)}\n".encode())


def _dump(run: dict[str, Any]) -> str:
    """Indent, but keep lists of numbers on one line."""
    return re.sub(
        r"\[[^][{}\"]*\]", lambda m: re.sub(r"\s+", " ", m.group()), json.dumps(run, indent=1)
    )


def _brief(found: dict[str, Any]) -> str:
    if "perplexity" not in found:
        return ""
    return f", perplexity {found['perplexity']:.1f}, {found['topics']:.1f} topics"


if __name__ == "__main__":
    sys.exit(main())
