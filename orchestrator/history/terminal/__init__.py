"""A history drawn for a terminal."""
