"""What a run has found so far."""

from typing import Any

__all__ = ["completion_threshold", "measured"]


def measured(run: dict[str, Any], part: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the finished measurements of a part, by the rest of their key."""
    found = {tuple(key.split("/")): value for key, value in run["measurements"].items()}
    return {key[1:]: value for key, value in found.items() if key[0] == part}


def completion_threshold(run: dict[str, Any], corpus: str) -> float | None:
    """Return the perplexity that counts as arrived: a little above the best final one of an LDA."""
    final = [
        value["perplexity"][-1]
        for key, value in measured(run, "completion").items()
        if key[:2] == (corpus, "LDA")
    ]
    return min(final) * (1 + run["settings"]["within"]) if final else None
