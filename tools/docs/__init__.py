"""Writes the pages of docs/ that repeat what other files state."""

WRITTEN = "<!-- Written by `python -m tools.docs`; change the files that it reads. -->"
