"""The variables that tell CUDA where its libraries are, and the driver and XLA where to keep the code they compile."""

import os
from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version as Number

from orchestrator.model import EnvironmentFacts

# TensorFlow of this version and newer finds XLA's compiler in the packages next to it. It should also find all
# libraries there, but 2.16.1 misses most of them and 2.21.0 misses one, and then uses no GPU. So all get the paths.
FINDS_COMPILER = Number("2.14")
NAMES = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu")
RUNTIME, COMPILER = "nvidia-cuda-runtime", "nvidia-cuda-nvcc"
# NVIDIA's packages hold libraries in these folders, and XLA's compiler and its library in COMPILER_FOLDER.
FOLDERS = (
    "cublas", "cuda_cupti", "cuda_nvrtc", "cuda_runtime", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl",
    "nvjitlink",
)  # fmt: skip
COMPILER_FOLDER = "cuda_nvcc"
# The default limit is 1 GiB on new drivers and 256 MiB on old ones, and TensorFlow's kernels take more.
CACHE_BYTES = 4 * 2**30
DRIVER = "libcuda.so.1"
# XLA keeps its code from this version of TensorFlow on; with the flag, 2.9 to 2.14 die on a CPU.
KEEPS_XLA_CODE = Number("2.16")
XLA_CODE_FLAG = "--tf_xla_persistent_cache_directory="


def code_variables(folder: str) -> dict[str, str]:
    """Return the variables that keep compiled code in a folder."""
    return {"CUDA_CACHE_PATH": folder, "CUDA_CACHE_MAXSIZE": str(CACHE_BYTES)}


def find_variables(facts: EnvironmentFacts, prefix: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name CUDA's libraries in the environment at `prefix`; `own` are those of its target.

    An image may have the libraries and lack the compiler.
    """
    packages = _strip_suffixes(facts.packages)
    tensorflow = _find_tensorflow(packages)
    if tensorflow is None:
        return {}
    python = ".".join(facts.python.split(".")[:2])
    root = f"{prefix}/lib/python{python}/site-packages/nvidia"
    found = {}
    if RUNTIME in packages:
        paths = [f"{root}/{folder}/lib" for folder in FOLDERS]
        found["LD_LIBRARY_PATH"] = _join(":", *paths, own.get("LD_LIBRARY_PATH"))
    if COMPILER in packages and tensorflow < FINDS_COMPILER:
        compiler = f"--xla_gpu_cuda_data_dir={root}/{COMPILER_FOLDER}"
        found["XLA_FLAGS"] = _join(" ", compiler, own.get("XLA_FLAGS"))
    return found


def keeps_xla_code(facts: EnvironmentFacts, own: Mapping[str, str]) -> bool:
    """Return whether the TensorFlow of an environment can keep XLA's code; `own` are the variables of its target.

    Flags that do not begin with a dash are the name of a file with flags, to which none can be added.
    """
    tensorflow = _find_tensorflow(_strip_suffixes(facts.packages))
    flags = own.get("TF_XLA_FLAGS", "")
    return tensorflow is not None and tensorflow >= KEEPS_XLA_CODE and (not flags or flags.startswith("-"))


def keep_xla_code(facts: EnvironmentFacts, folder: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that keeps XLA's code in a folder, if the TensorFlow can."""
    if not keeps_xla_code(facts, own):
        return {}
    quoted = folder.replace("\\", "\\\\").replace('"', '\\"')
    return {"TF_XLA_FLAGS": _join(" ", own.get("TF_XLA_FLAGS"), f'{XLA_CODE_FLAG}"{quoted}"')}


def _strip_suffixes(packages: Mapping[str, str]) -> dict[str, str]:
    """Return packages by names without the version of CUDA, such as -cu11, at their end."""
    return {name.rpartition("-cu")[0] or name: number for name, number in packages.items()}


def _find_tensorflow(packages: Mapping[str, str]) -> Number | None:
    return next((Number(packages[name]) for name in NAMES if name in packages), None)


def add_driver(variables: Mapping[str, str]) -> dict[str, str]:
    """Return these variables with the folders of the caller's LD_LIBRARY_PATH that hold the driver's library.

    Some clusters name the driver nowhere else. The other folders are left out, because they may hold another CUDA.
    """
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    of_driver = [folder for folder in folders if folder and (Path(folder) / DRIVER).exists()]
    libraries = _join(":", variables.get("LD_LIBRARY_PATH"), *of_driver)
    return {**variables, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}


def _join(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))
