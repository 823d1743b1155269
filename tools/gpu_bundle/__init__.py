"""Take `make gpu-check` to a machine that has a GPU and no network: pack it here, install it there."""
