"""Fails before it can be built."""
raise RuntimeError("broken at import")


def build(tf, params):
    return None
