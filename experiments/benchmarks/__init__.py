"""Comparisons with other libraries; a package, so that other experiments can use its parts."""
