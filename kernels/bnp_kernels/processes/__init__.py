"""Random processes: the HDP's root, splits and merges, the beta process and its factors."""

__all__: list[str] = []
