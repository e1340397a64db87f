"""The speed table of the README, made by `make readme`.

    python docs/readme_speed.py   # from `experiments/results/speed_standard.json`

The lines say when the table was measured, and whether the kernels have changed since then: a table
grows old visibly. A test compares the README with the file and with the present kernels.
"""

import json
import runpy
from pathlib import Path
from statistics import median
from typing import Any

import readme_demo

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "experiments" / "results" / "speed_standard.json"
BEGIN, END = "<!-- speed, written by `make readme` -->\n", "<!-- end of speed -->\n"
ROWS = {
    f"{model}, {chains}": (group, f"parallel, {chains}", f"tomotopy {model}, 2 workers")
    for model, group in {"LDA": "LDA parallel", "HDP": "HDP"}.items()
    for chains in ("1 chain", "4 chains")
}


def lines(run: dict[str, Any], kernels: str) -> str:
    """Return the lines of the README.

    Parameters
    ----------
    run
        Content of `speed_standard.json`.
    kernels
        Digest of the present kernels.
    """
    cells = {(c["data"], c["method"]): c for c in run["cells"].values() if c["part"] == "tokens"}
    corpora = list(dict.fromkeys(data for data, _ in cells))
    sessions = {cell["session"] for cell in cells.values()}
    session = run["sessions"][max(sessions)]
    rows = []
    for name, (group, ours, theirs) in ROWS.items():
        systems = [cells[data, group]["systems"] for data in corpora]
        ratios = " | ".join(f"{_ratio(found[ours], found[theirs]):.2f}" for found in systems)
        rows.append(f"| {name} | {ratios} |\n")
    same = session["versions"].get("kernels") == kernels
    return (
        f"| | {' | '.join(f'`{name}`' for name in corpora)} |\n|---|{len(corpora) * '---:|'}\n"
        + "".join(rows)
        + f"\nMeasured on {session['begun']} on {session['cores']} cores of "
        f"{_an(session['machine']['cpu'])}, with "
        + ("the present kernels.\n" if same else "kernels that have changed since then.\n")
    )


def _ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    turns = zip(ours["tokens_per_second"], theirs["tokens_per_second"], strict=True)
    return median(a / b for a, b in turns)


def _an(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def kernels() -> str:
    """Return the digest of the present kernels, as results have it."""
    study = ROOT / "experiments" / "study" / "machine.py"
    return runpy.run_path(str(study))["kernels"](ROOT / "kernels" / "bnp_kernels")


def main() -> None:
    """Write the lines of the README."""
    new = lines(json.loads(FILE.read_text(encoding="utf-8")), kernels())
    readme_demo.write(new, BEGIN, END)


if __name__ == "__main__":
    main()
