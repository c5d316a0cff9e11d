"""The embedded corpus: text from the docstrings of installed packages."""

from sentloom.corpus.docstrings import Corpus, Split, harvest

__all__ = ["Corpus", "Split", "harvest"]
