"""Takes the time and the memory, and returns what a file beside it says for this release of TensorFlow.

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
    milliseconds, mib, result = of_versions.get(tf.__version__) or of_versions[minor]
    held = bytearray(mib << 20)

    def step():
        time.sleep(milliseconds / 1000.0)
        return result + held[-1]

    return step
