"""The command `bnp-models`: what it reads and prints, and the demo."""

import sys

__all__ = ["say"]


def say(text: str) -> None:
    """Print a message to stderr at once; results go to stdout."""
    print(text, file=sys.stderr, flush=True)
