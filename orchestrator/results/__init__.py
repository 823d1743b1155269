"""From a run directory to a comparison: streams, replicates, comparisons, tables."""
