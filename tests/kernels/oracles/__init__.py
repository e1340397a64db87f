"""Exact posteriors and exact draws of single models, for the tests of their kernels."""
