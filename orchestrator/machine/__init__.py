"""This host: its facts, its counters and its GPUs."""
