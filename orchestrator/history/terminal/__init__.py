"""The history as text for a terminal."""
