"""Numerics: sums in a fixed order, log densities, linear algebra, batching over chains."""

__all__: list[str] = []
