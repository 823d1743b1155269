"""A nightly run, from its schedule to those who are told."""
