"""Prints a megabyte, which goes to a temporary file of its worker."""


def build(tf, params):
    if tf.__version__.startswith("2."):
        for _ in range(16):
            print("x" * 65536, flush=True)
    return lambda: float(sum(range(1000)))
