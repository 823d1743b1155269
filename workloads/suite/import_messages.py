"""What a separate Python says when it imports TensorFlow next to another protobuf or tensorboard.

warnings     how many warnings of protobuf it prints
errors       how many lines name an AttributeError
tensorboard  0 if tensorboard reads what TensorFlow has written, or else how the process ended

Nothing of interest is timed here: a call lasts as long as the process.
"""

import os
import subprocess
import sys
import tempfile

PARAMS = {"what": ("warnings", "errors", "tensorboard")}

IMPORT = "import tensorflow"
READ = """
import sys
import tensorflow
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

with tensorflow.summary.create_file_writer(sys.argv[1]).as_default():
    tensorflow.summary.scalar("loss", 1.0, step=0)
read = EventAccumulator(sys.argv[1])
read.Reload()
assert read.Tags()["tensors"] == ["loss"]
"""


def build(tf, params):
    what = params["what"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}

    def step():
        program = READ if what == "tensorboard" else IMPORT
        command = [sys.executable, "-B", "-c", program, tempfile.mkdtemp()]
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        said = process.communicate()[1].decode("utf-8", "replace").splitlines()
        if what == "tensorboard":
            return float(process.returncode)
        if process.returncode:
            raise RuntimeError(f"{IMPORT!r} in a separate process ended with exit code {process.returncode}")
        word = "Protobuf gencode version" if what == "warnings" else "AttributeError"
        return float(sum(word in line for line in said))

    return step
