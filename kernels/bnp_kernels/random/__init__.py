"""Random variates from counters: bits, gamma, categorical, tables, concentrations, slices."""

__all__: list[str] = []
