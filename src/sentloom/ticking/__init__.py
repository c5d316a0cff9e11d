"""Ticks: people compare the first results of base and fitted model, blind, and a few dozen answers decide."""
