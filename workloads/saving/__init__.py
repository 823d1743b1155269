"""Models that one version saves and another one loads; `tfcompare models` runs this inside each of them."""
