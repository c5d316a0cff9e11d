"""Evaluation of anything that maps sentences to vectors: a model, a baseline, a function."""
