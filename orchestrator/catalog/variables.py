"""The environment variables that change what TensorFlow does: a target gets those that it names, and no others."""

import os
import re

from orchestrator.redact import LOGIN

# Every target with a TensorFlow has this set to it.
BACKEND = "KERAS_BACKEND"
NAME = re.compile(r"[A-Z][A-Z0-9_]*")
OF_TENSORFLOW = re.compile(r"(TF|XLA|OMP|KMP|MKL|ONEDNN|DNNL|CUDA|CUDNN|NCCL)_\w+|NVIDIA_TF32_OVERRIDE")
# These change only what is printed, and neither times nor results.
LOGS = re.compile(r"TF_CPP_\w+")
# These are variables of Terraform, folders of this machine, which no environment has, and descriptions of NVIDIA's
# images.
OTHERS = re.compile(
    r"TF_(VAR|TOKEN|CLI|HTTP)_\w+|TF_ENCRYPTION|CUDA_(HOME|PATH|ROOT|TOOLKIT_ROOT_DIR)\w*|(CUDA|CUDNN|NCCL)_VERSION"
)
SECRET = re.compile(r"\w*(PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL)\w*|\w+_KEY")
GPUS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
# --threads sets these, if it is given.
OF_THREADS = frozenset({"TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"})
OURS = re.compile(r"PATH|HOME|LANG|PYTHON\w*|TFCOMPARE_\w*|TF_FORCE_GPU_ALLOW_GROWTH")


def why_not_settable(name: str, value: str) -> str:
    """Return why a target cannot set a variable, or ''."""
    if name in GPUS:
        return "is not for a target: --gpus names them"
    if name == BACKEND:
        return "is not for a target: another backend is written 'keras==3.15.1 backend=jax', without a TensorFlow"
    if OURS.fullmatch(name):
        return "is set by tfcompare itself, alike for all targets"
    is_secret = SECRET.fullmatch(name) or LOGIN.search(value)
    return "may hold a secret, and a run records the variables of its targets" if is_secret else ""


def find_of_tensorflow() -> dict[str, str]:
    """Return the caller's variables that would change TensorFlow in every target."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if OF_TENSORFLOW.fullmatch(name)
        and not (LOGS.fullmatch(name) or OTHERS.fullmatch(name))
        and not why_not_settable(name, value)
    }


def note_ignored(inherited: object) -> str:
    """Return a note on the caller's variables that change nothing unless they are passed on; '' if there are none."""
    notes = []
    if os.environ.get(BACKEND, "tensorflow") != "tensorflow":
        notes.append(f"note: {BACKEND} of your shell is not passed on: it {why_not_settable(BACKEND, '')}")
    if names := [] if inherited else list(find_of_tensorflow()):
        what, they = ("is not passed on", "it") if len(names) == 1 else ("are not passed on", "them")
        notes.append(
            f"note: {', '.join(names)} of your shell {what}: name {they} in a target, such as "
            f"'2.15 {names[0]}=...', or pass {they} to all with --inherit-env"
        )
    return "\n".join(notes)
