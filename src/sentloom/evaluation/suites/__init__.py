"""The evaluation sets of the papers and of the user: where they come from, and how they are scored."""
