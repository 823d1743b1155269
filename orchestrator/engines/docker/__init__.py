"""The engine that keeps versions as Docker images and runs workers in hardened containers."""
