"""The statistics: pure functions of paired log times, scipy for every distribution."""
