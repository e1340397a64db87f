"""The models: a file for each, with the name of its kernel's file."""

__all__: list[str] = []
