"""sentloom."""
