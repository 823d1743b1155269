"""Takes all room of the scratch folder of its container, which is memory, and leaves it taken."""


def build(tf, params):
    with open("/tmp/filler", "ab", buffering=0) as filler:
        while True:
            filler.write(b"x" * 2 ** 20)
