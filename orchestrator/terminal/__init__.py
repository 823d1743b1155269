"""What a user sees while a command runs: text, progress, the standard streams, files by name."""
