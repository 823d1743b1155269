"""What asv reads as its benchmark suite, and pyperf runs as a script."""
