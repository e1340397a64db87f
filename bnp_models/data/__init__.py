"""Data of the models: corpora and sources, how they are checked, read and stored."""

__all__: list[str] = []
