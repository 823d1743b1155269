"""Finds the version that changed a ratio: search.py decides, story.py measures, state.py stores, report.py shows."""
