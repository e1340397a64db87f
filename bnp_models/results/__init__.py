"""What `fit` returns: draws with tables, scores and pictures one call away."""

__all__: list[str] = []
