"""Which version made a contrast change: search.py decides, run.py measures, state.py keeps, report.py shows."""
