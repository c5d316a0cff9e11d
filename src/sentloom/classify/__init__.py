"""Classifiers on the vectors of an encoder: chosen on held-out rows, calibrated, proven, and saved beside the encoder.

heads       what gives every label a score: a linear function of the vector, or the labels of its nearest rows
learning    which head, with which settings, by rows that it has not learned from; probabilities, and when to abstain
proving     what the classifier does on test rows: scores with intervals, every label, reliability, unknown labels
suspects    rows whose label is probably wrong
classifier  what `predict` runs, its files, and labels that are added later
"""
