"""What models are made of: configurations, families, programs, and the adapter to NumPyro."""

__all__: list[str] = []
