"""What a user sees while a command runs: text, durations, progress, the standard streams, files by name."""
