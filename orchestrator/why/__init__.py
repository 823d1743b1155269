"""The causes of a difference between two targets, tested by targets in which only one of them is undone."""
