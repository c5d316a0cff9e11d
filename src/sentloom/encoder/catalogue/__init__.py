"""Models by name: what they are, where their files come from, and how these become folders that sentloom loads."""
