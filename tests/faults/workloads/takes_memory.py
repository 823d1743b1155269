"""Takes more memory than a small group of processes may have."""


def build(tf, params):
    if tf.__version__.startswith("2."):
        kept = [bytearray(b"x") * (64 << 20) for _ in range(40)]
        return lambda: float(len(kept))
    return lambda: 40.0
