"""Turn raw text into labelled data: a language model writes, judges score, and filters keep what is good."""
