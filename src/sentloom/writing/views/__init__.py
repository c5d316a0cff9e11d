"""Positive pairs: back-translation, synonyms, mask-fill, ready pairs, entailment, passages of documents."""
