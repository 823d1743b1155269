"""Benchmarks of tfcompare itself; `make bench` writes docs/benchmarks.md."""
