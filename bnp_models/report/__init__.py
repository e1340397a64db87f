"""The report of a fit as one HTML page, and the tables that the terminal shows as text."""

__all__: list[str] = []
