"""Vectors over HTTP: an OpenAI-compatible server with dynamic batching, and a page to try models on. Extra `serve`."""
