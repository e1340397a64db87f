"""The command `bnp-models`: its arguments, what it prints, and the demo."""

__all__: list[str] = []
