"""The checked request for a run, and the plan of what is measured for it."""
