"""Which version made a contrast change: search.py decides, story.py measures, state.py keeps, report.py shows."""
