"""Pictures, with matplotlib only."""

__all__: list[str] = []
