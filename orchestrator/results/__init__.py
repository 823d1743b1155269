"""From a run folder to a comparison: streams, replicates, comparisons, tables."""
