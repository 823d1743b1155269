"""The command line: flags in, options out, an exit code."""
