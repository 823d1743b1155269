"""How the host speaks with a worker, wherever that runs."""
