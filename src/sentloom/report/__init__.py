"""Scores and findings to what people read."""
