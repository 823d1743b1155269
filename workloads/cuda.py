"""What NVIDIA's driver answers in a process, with and without TensorFlow; stdlib only, Python 3.6 syntax."""

import ctypes
import json
import os
import re
import subprocess
import sys

LIBRARY = "libcuda.so.1"
# These make TensorFlow in a new process name the libraries that it lacks, which newer versions do only for their own
# developers.
WORDY = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "dso_loader=1,cuda_dso_loader=1"}
ABSENT = re.compile(r"Could not load dynamic library '([\w.+-]{1,80})'")
MOST_ABSENT, MOST_DEVICES, LONGEST_NAME = 20, 64, 256
LEAST_S = 60.0
SILENT = {"library": "", "code": 0, "driver": 0, "devices": []}


def ask():
    """Return the answers of the driver: `library` says why it was not loaded, and `code` is what its start returned."""
    answer = dict(SILENT)
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return dict(answer, library=str(error)[:LONGEST_NAME])
    number = ctypes.c_int(0)
    answer["code"] = cuda.cuInit(0)
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        answer["driver"] = number.value
    if answer["code"] == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        answer["devices"] = [_device(cuda, index) for index in range(min(number.value, MOST_DEVICES))]
    return answer


def describe(found):
    """Return GPUs as one text, e.g. `NVIDIA H100 GPU-4d6a...`, or None if there are none."""
    return "; ".join(" ".join(filter(None, (gpu["name"], gpu["uuid"]))) for gpu in found) or None


def _device(cuda, index):
    name = ctypes.create_string_buffer(LONGEST_NAME)
    device = ctypes.c_int(0)
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, LONGEST_NAME, device)
    return {"name": name.value.decode("utf-8", "replace"), "uuid": _uuid(cuda, device)}


def _uuid(cuda, device):
    """Return the UUID as nvidia-smi writes it; only the second function, of newer drivers, gives that of a slice."""
    found = []
    for function in ("cuDeviceGetUuid", "cuDeviceGetUuid_v2"):
        raw = ctypes.create_string_buffer(16)
        if hasattr(cuda, function) and getattr(cuda, function)(raw, device) == 0:
            found.append(raw.raw.hex())
    if not found:
        return ""
    digits, kind = found[-1], "GPU" if found[-1] == found[0] else "MIG"
    return "-".join((kind, digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def ask_in_new_process(with_tensorflow=False, timeout_s=LEAST_S):
    """Return the answers of the driver in a new process, and what this and, if it is tried, TensorFlow print."""
    command = [sys.executable, "-I", os.path.abspath(__file__)] + ["tensorflow"] * with_tensorflow
    try:
        done = subprocess.run(
            command,
            env=dict(os.environ, **WORDY),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
        )
        answer = json.loads(done.stdout.decode("utf-8", "replace").splitlines()[0])
        return answer, done.stderr.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return dict(SILENT, code=-1), ""


def explain(timeout_s):
    """Return why TensorFlow sees no GPU: what the driver says in a new process, and which libraries are missing."""
    answer, told = ask_in_new_process(with_tensorflow=True, timeout_s=max(LEAST_S, timeout_s / 2))
    absent = list(dict.fromkeys(ABSENT.findall(told)))[:MOST_ABSENT]
    return {"library": answer["library"], "code": answer["code"], "driver": answer["driver"], "absent": absent}


def main():
    print(json.dumps(ask()), flush=True)
    if "tensorflow" in sys.argv[1:]:
        from tensorflow.python.client import device_lib

        device_lib.list_local_devices()


if __name__ == "__main__":
    main()
