"""Demos that run on embedded data, without downloads."""
