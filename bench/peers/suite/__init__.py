"""The benchmark suite that asv reads, and that pyperf runs as a script."""
