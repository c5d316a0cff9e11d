"""Rows in memory for the public functions."""

from tests.fitting.small_base import other, sentences

PAIRS = [(one, other(one)) for one in sentences(300, 1)]
