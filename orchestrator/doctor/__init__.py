"""What this machine can run, and how noisy it is."""
