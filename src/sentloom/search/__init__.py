"""Search by vectors: exact and approximate nearest neighbours, cached vectors, hard negatives."""
