"""The report of a fit as one HTML page."""

__all__: list[str] = []
