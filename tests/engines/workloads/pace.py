"""Takes the time and the memory, and returns what a file beside it says for this release of TensorFlow.

The file may also say how long a first call takes.

No source shows a change of it.
"""
import json
import os
import time


def build(tf, params):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pace.json")) as paces:
        of_versions = json.load(paces)
    # Nightlies go by their whole number.
    minor = ".".join(tf.__version__.split(".")[:2])
    milliseconds, mib, result, *first = of_versions.get(tf.__version__) or of_versions[minor]
    first_ms = first[0] if first else milliseconds
    held, calls = bytearray(mib << 20), []

    def step():
        time.sleep((milliseconds if calls else first_ms) / 1000.0)
        calls[:] = [True]
        return result + held[-1]

    return step
