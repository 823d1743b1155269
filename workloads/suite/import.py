"""The start of a Python process that imports TensorFlow, to its end.

nothing     Python alone
tensorflow  import tensorflow
keras       the same, and one look at tensorflow.keras.layers, which newer versions import only then

It is the interpreter and the environment of this version, with all files in the page cache from the second call on.
Starting a process from one as large as this takes some milliseconds of every call.
"""

import subprocess
import sys

PARAMS = {
    "what": ("nothing", "tensorflow", "keras"),
}

COMPARISONS = {"what": "nothing"}

PROGRAMS = {
    "nothing": "",
    "tensorflow": "import tensorflow",
    "keras": "import tensorflow; tensorflow.keras.layers.Dense",
}


def build(tf, params):
    # Python would write bytecode without -B, but the files of a container must not be written.
    command = [sys.executable, "-B", "-c", PROGRAMS[params["what"]]]

    def step():
        code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if code:
            raise RuntimeError(f"{command[-1]!r} in a separate process ended with exit code {code}")

    step.no_result = "a separate process ends well, or the call fails"
    return step
