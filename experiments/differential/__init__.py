"""Differential topic models: groups of documents share topics, and word them differently."""
