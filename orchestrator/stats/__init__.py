"""The statistics: pure functions of paired log times, with scipy for every distribution."""
