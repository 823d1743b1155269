"""The commands of `tfcompare images`."""
