"""Classifiers on frozen vectors."""
