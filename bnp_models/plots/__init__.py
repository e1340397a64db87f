"""Pictures, with matplotlib alone."""

__all__: list[str] = []
