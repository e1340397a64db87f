"""The command `bnp-models`: what it reads and prints, and the demo."""

__all__: list[str] = []
