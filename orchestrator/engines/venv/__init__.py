"""The engine that keeps versions as virtual environments and runs workers as processes."""
