"""Open data by the names that users give it, and build the embedded corpus from docstrings of installed packages."""
