"""Runs in TensorFlow 2 only."""


def refuse(tf, params):
    return "it needs TensorFlow 2" if tf.__version__.startswith("1.") else None


def build(tf, params):
    return lambda: 1.0
