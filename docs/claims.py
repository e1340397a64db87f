"""Put the tables of claims of the studies into a page: `% claims: NAME`, or `% claims: summary`."""

import re
from collections import Counter
from pathlib import Path

__all__ = ["fill_in", "sections"]

STUDIES = {
    "author_topic": "Author-topic models",
    "transfer": "Topics of several collections: sharing",
    "differential": "Topics of several collections: versions of a topic",
    "supervised": "Documents with labels",
    "factors": "Factors of several sources",
}
"""Studies with claims, and their titles in the page."""

VERDICTS = (
    "holds", "does not hold", "not decided", "other baseline", "not converged", "not run",
)  # fmt: skip
WIDE = "paper where claim expected found verdict why".split()


def fill_in(page: str, results: Path) -> str:
    """Replace the marks of a page by tables from the reports in a folder."""
    found = {name: sections((results / f"{name}_standard.md").read_text()) for name in STUDIES}

    def replace(mark: re.Match) -> str:
        return _summary(found) if mark[1] == "summary" else "\n\n".join(found[mark[1]])

    return re.sub(r"^% claims: (\w+)$", replace, page, flags=re.MULTILINE)


def sections(report: str) -> list[str]:
    """Return the sections of a report whose titles begin with "Claims", without links.

    Raises
    ------
    ValueError
        If there is none, or a table has other columns.
    """
    parts = re.split(r"^## ", report, flags=re.MULTILINE)[1:]
    chosen = [part.strip() for part in parts if part.startswith("Claims")]
    if not chosen or any([*map(str.lower, _cells(part)[0])] != WIDE for part in chosen):
        raise ValueError(f"the report must have claims with the columns {', '.join(WIDE)}")
    plain = [re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", part) for part in chosen]
    several = len(plain) > 1
    return [f"### {part}" if several else part.partition("\n")[2].strip() for part in plain]


def _cells(section: str) -> list[list[str]]:
    """Return the rows of the table of a section, without the line below the head."""
    rows = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    return [row for row in cells if not set("".join(row)) <= {"-", ":"}]


def _summary(found: dict[str, list[str]]) -> str:
    """Count the verdicts of each study."""
    lines = [
        f"| study | claims | {' | '.join(VERDICTS)} |",
        f"|---|{'---:|' * (len(VERDICTS) + 1)}",
    ]
    for name, title in STUDIES.items():
        count = Counter(row[5] for part in found[name] for row in _cells(part)[1:])
        if other := set(count) - set(VERDICTS):
            raise ValueError(f"verdicts must be some of {VERDICTS}, got {other} in {name}")
        numbers = [count.total(), *(count[verdict] for verdict in VERDICTS)]
        lines.append(f"| {title} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)
