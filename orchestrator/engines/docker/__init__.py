"""Versions as images, workers in hardened containers."""
