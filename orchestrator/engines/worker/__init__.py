"""The communication between the host and a worker, wherever that runs."""
