"""A call of some fifty nanoseconds."""


def build(tf, params):
    return lambda: None
