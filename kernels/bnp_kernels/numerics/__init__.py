"""Numerics: sums in a fixed order, log densities, linear algebra, chains together or in turn."""

__all__: list[str] = []
