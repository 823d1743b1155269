"""What came of each claim."""
