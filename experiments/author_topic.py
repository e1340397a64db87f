"""LDA, the author-topic model and their nonparametric forms: scores, speed, and gensim beside them.

    python experiments/author_topic.py --data FOLDER

What Bleier's note leaves open: which of them predicts best, and does inferring the number of topics
cost anything? Test documents are split into halves; the first halves are fitted together with all
other documents, the second ones are predicted, by LDA and the HDP from the words of the first half,
by the author-topic models from the authors. What the paper of Rosen-Zvi, Griffiths, Steyvers and
Smyth (UAI 2004) found is tried as well: how many words of a document are its authors worth? Every
measurement is written to the JSON file as soon as it is done, and the same command goes on where an
interrupted one stopped, or where `Settings.topics` has got more values.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

from author_study.settings import CHOOSING, FULL, QUICK, STANDARD, Measurement, Settings, plan
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
    wanted = arguments.cores or settings.cores
    cores = pin(wanted)
    if cores < wanted:
        sys.exit(f"{wanted} cores are needed, {cores} are available: give --cores {cores}")
    # read when JAX is imported
    os.environ["JAX_NUM_CPU_DEVICES"] = str(cores)
    if arguments.quick:
        _compile_quickly()
    from author_study import corpora

    corpus = corpora.load(settings, None if arguments.quick else arguments.data)
    data = corpora.split(corpus, settings)
    run = _open(output, settings, data, cores, arguments.mix)
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
    done = _measure(everything, run, settings, data, output)
    if run["measurements"]:
        from author_study.report import report

        print(f"\n{report(run, output)}")
    return 0 if done else 130


def _measure(
    everything: list[Measurement], run: dict[str, Any], settings: Settings, data: Any, output: Path
) -> bool:
    """Make what is missing and write each as soon as it is there; say whether all were made."""
    missing = [m for m in everything if m.key not in run["measurements"]]
    place = {m.key: i for i, m in enumerate(everything)}
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
        session = len(run["sessions"]) - 1
        about = {"took": took, "load_before": load, "session": session}
        found_so_far = {**run["measurements"], m.key: {**found, **about}}
        run["measurements"] = dict(
            sorted(found_so_far.items(), key=lambda item: place.get(item[0], len(place)))
        )
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
    parser.add_argument("--cores", type=int, help="how many to use, where it is not 2")
    parser.add_argument(
        "--mix",
        action="store_true",
        help="go on with a file of other versions of the code; the report says what is whose",
    )
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


def _compile_quickly() -> None:
    """Have programs compiled with less care, because here that takes most of the time."""
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "True"
    # XLA's newer way to emit fusions takes twice as long; it ends a process that sets a flag which
    # it does not know, as jaxlib 0.12 does not know this one
    if version("jaxlib").startswith("0.10."):
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"--xla_cpu_use_fusion_emitters=false {flags}"


def _open(output: Path, settings: Settings, data: Any, cores: int, mix: bool) -> dict[str, Any]:
    """Read what is there of the same study, or begin one; its last session is the present one.

    A session is what one machine, some cores of it and one state of the code have measured.
    """
    head = {"settings": json.loads(json.dumps(dataclasses.asdict(settings)))}
    head["data"] = data.together.digest
    session = {
        "begun": datetime.date.today().isoformat(),
        "cores": cores,
        "machine": machine(),
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
        tokens = data.heldout.doc_length.tolist()
        about = {"sizes": sizes, "heldout_tokens": tokens, "sessions": [session]}
        return {**head, **about, "measurements": {}}
    run = json.loads(output.read_text())
    last = run["sessions"][-1]
    other = [name for name in head if _fixed(run[name]) != _fixed(head[name])]
    if last["versions"] != session["versions"] and not mix:
        other.append("versions (--mix goes on all the same)")
    if other:
        sys.exit(f"{output} holds a run of other {' and '.join(other)}: give another --output")
    if any(last[name] != session[name] for name in ("cores", "machine", "versions")):
        run["sessions"].append(session)
    return {**run, **head}


def _fixed(head: Any) -> Any:
    """Leave out the settings that may change."""
    if not isinstance(head, dict):
        return head
    return {name: value for name, value in head.items() if name not in CHOOSING}


def _code() -> str:
    """Identify the source of what measures: results of two do not mix."""
    folder = Path(__file__).parent / "author_study"
    names = "chains", "corpora", "fits", "peer", "speed"
    source = b"".join((folder / f"{name}.py").read_bytes() for name in names)
    return hashlib.sha256(source).hexdigest()[:16]


def _write(path: Path, run: dict[str, Any]) -> None:
    from bnp_models.data.files import replacing

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
