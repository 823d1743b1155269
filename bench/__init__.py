"""What is measured about tfcompare itself; `make bench` writes docs/benchmarks.md."""
