"""Factor models of several sources: planted factors, sections of NIPS, digits by class."""
