"""Baselines without training of an encoder, for comparison: word vectors, TF-IDF, whitening, BERT-flow, SBERT-WK."""
