"""Scores: held-out probability, coherence, retrieval."""

__all__: list[str] = []
