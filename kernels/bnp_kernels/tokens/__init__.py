"""Tokens: the layout of a corpus, sweeps over its tokens, tallies, fold-in and left-to-right."""

__all__: list[str] = []
