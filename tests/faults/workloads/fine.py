"""Adds two numbers with TensorFlow's constants folded by hand: measured everywhere."""
import numpy

PARAMS = {"size": ("10", "100")}


def build(tf, params):
    values = numpy.arange(float(params["size"]))
    return lambda: float(values.sum())
