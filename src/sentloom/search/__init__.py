"""From vectors to neighbours: exact and approximate search, cached vectors, hard negatives."""
