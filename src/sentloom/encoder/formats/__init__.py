"""The formats of model folders: a file for each, which recognises, loads and writes it, and their registry."""
