"""The story of a run: environments are prepared, workers started, rounds measured."""
