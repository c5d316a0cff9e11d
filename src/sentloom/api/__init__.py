"""The public functions: each runs what a command runs, with the same options, and renders what it writes.

Data is a path, a hub name, `embedded`, or rows in memory (see `sentloom.read`). Recipes and plans name files, so rows
in memory are written once to `inputs/` in the output folder, under a hash of their content: the same call resumes.
"""
