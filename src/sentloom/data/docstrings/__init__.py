"""The embedded corpus: what the docstrings of the installed packages say."""

from sentloom.data.docstrings.corpus import Corpus, Split, harvest

__all__ = ["Corpus", "Split", "harvest"]
