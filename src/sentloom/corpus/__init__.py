"""The embedded corpus: what the docstrings of the installed packages say."""

from sentloom.corpus.docstrings import Corpus, Split, harvest

__all__ = ["Corpus", "Split", "harvest"]
