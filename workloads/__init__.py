"""The container side: what runs inside a TensorFlow version."""
