"""What the README says of the demo, made by `make readme`: `topics.png`, `demo.json`, some lines.

    python docs/readme_demo.py

The command runs the demo. `demo.json` holds what it found, and the settings it ran with. A test
compares the README with this file, and the settings with those of today's demo.
"""

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
FILE, PICTURE, README = DOCS / "demo.json", DOCS / "topics.png", DOCS.parent / "README.md"
BEGIN, END = "<!-- written by `make readme` -->\n", "<!-- end -->\n"
NUM_WORDS = 6


def lines(found: dict[str, Any]) -> str:
    """Return the lines of the README about what the demo found.

    Parameters
    ----------
    found
        Content of `demo.json`.
    """
    topics = "\n".join(
        f"| {share:.0%} | {chains} of {found['chains']} | {words} |"
        for share, chains, words in found["topics"]
    )
    return (
        f"![The {len(found['topics'])} topics that the demo found, with 90% intervals]"
        f"(docs/{PICTURE.name})\n\n"
        f"The topics of {found['documents']:,} docstrings of "
        f"{', '.join(found['packages'])},\nas version {found['settings']['version']} found them "
        f"in {found['processor_seconds']} seconds of processor time, compiling included:\n\n"
        f"| share | chains | words |\n|---|---|---|\n{topics}\n\n"
        + "".join(f"> {sentence}\n" for sentence in found["said"])
    )


def written(text: str, begin: str = BEGIN, end: str = END) -> str:
    """Return what a page holds between two marks."""
    return text.partition(begin)[2].partition(end)[0]


def write(new: str, begin: str = BEGIN, end: str = END, page: Path = README) -> None:
    """Write lines of a page between two marks."""
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise SystemExit(f"{page} lacks the marks {begin!r} and {end!r}")
    text = text.replace(begin + written(text, begin, end) + end, f"{begin}{new}{end}")
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Run the demo, and write the picture, the file and the lines of the README."""
    start = time.perf_counter()
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"  # as after the installation
    from PIL import Image

    import bnp_models as bnp
    from bnp_models.cli import command, demo

    with tempfile.TemporaryDirectory() as folder:
        if status := command.main(["demo", "--output", folder]):
            raise SystemExit(status)
        seconds, of_processor = time.perf_counter() - start, time.process_time()
        fit = bnp.load(folder)
        picture = Image.open(Path(folder) / "topic_words.png").convert("RGB")
        picture.quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    corpus = fit.dataset
    table = fit.topics(num_words=NUM_WORDS)
    rows = zip(table["prevalence"], table["other_chains"] + 1, table["words"], strict=True)
    found = {
        "settings": demo.settings(),
        "packages": list(corpus.group_names),
        "documents": corpus.num_docs,
        "chains": fit.posterior.sizes["chain"],
        "topics": [[round(share, 4), int(chains), words] for share, chains, words in rows],
        "said": list(demo.verdict(fit)),
        "seconds": round(seconds),
        "processor_seconds": round(of_processor),
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write(lines(found))


if __name__ == "__main__":
    main()
