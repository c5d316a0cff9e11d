"""Probes: classifiers on frozen vectors."""
