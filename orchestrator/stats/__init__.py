"""Statistics: pure functions of paired log times, which take every distribution from scipy."""
