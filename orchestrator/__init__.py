"""The host side: plans, engines, statistics and reports. Programs use `from tfcompare import load_run`."""
