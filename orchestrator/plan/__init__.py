"""What was asked of a run, checked, and what will be measured for it."""
