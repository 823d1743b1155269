"""Nightly runs: the history that they leave, how it is judged, who is notified, and when they run."""
