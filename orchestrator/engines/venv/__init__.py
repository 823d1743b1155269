"""Versions as cached virtual environments, workers as processes."""
