"""The main job and the papers, shown on embedded data."""
