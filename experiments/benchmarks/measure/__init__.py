"""What `speed.py` measures: one module per question, and the systems that are compared."""
