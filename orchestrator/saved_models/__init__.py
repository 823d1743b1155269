"""Models that one target saves and another one loads: what loads, what it returns, and why the rest does not."""
