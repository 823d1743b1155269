"""Finds the version that changed a ratio: search.py decides, run.py measures, state.py stores, report.py shows."""
