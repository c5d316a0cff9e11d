"""The embedded corpus: text from the docstrings of installed packages."""
