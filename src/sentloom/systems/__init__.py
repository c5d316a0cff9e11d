"""Whole searches beside each other: what a name opens, the gate for CI, and the choice among several."""
