"""Supervised topic models on 20 Newsgroups."""
