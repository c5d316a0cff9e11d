"""From vectors to scores. Anything that maps sentences to vectors can be scored: a model, a baseline, a function."""
