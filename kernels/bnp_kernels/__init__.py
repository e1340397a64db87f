"""Exact Gibbs kernels of topic models on JAX, and the random-variate primitives they share."""

__all__: list[str] = []
