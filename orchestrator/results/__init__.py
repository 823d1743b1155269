"""From a run folder to its evaluation: streams, replicates, comparisons, tables."""
