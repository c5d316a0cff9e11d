"""Routes against each other under one budget, judged on held-out text."""
