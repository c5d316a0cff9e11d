"""The evaluation sets of the papers, and those a user brings: where they come from, and what is scored on them."""
