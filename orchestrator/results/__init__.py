"""The way from a run folder to its evaluation: streams, replicates, comparisons, and tables."""
