"""What `author_topic.py` measures, and how."""
