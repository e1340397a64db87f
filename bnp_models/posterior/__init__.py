"""Posterior draws: kept states as topics and weights, alignment, diagnostics, ArviZ."""

__all__: list[str] = []
