"""Pack `make gpu-check` for a machine with a GPU and no network: tfcompare, its environments, and their Pythons.

All packages come from locks. What no run needs is left out: headers, tests, symbols for debuggers, and code for other
GPUs. The bundle is a folder of parts and a program that installs them.
"""

import argparse
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog.version import FlavourName
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.donor import MARKER
from orchestrator.engines.venv.engine import VenvEngine, environments_folder
from orchestrator.engines.venv.interpreters import Interpreter
from orchestrator.errors import TfCompareError
from orchestrator.options import EngineOptions
from tools.gpu_bundle import device_code

ROOT = Path(__file__).resolve().parents[2]
# What a run of tfcompare from this checkout reads.
REPOSITORY = ("orchestrator", "tfcompare", "workloads", "images", "tools", "bench", "requirements")
# No run needs these parts of packages. The first are in site-packages, the others anywhere below it.
UNUSED = (
    "clang", "tensorboard_data_server", "tensorboard/webfiles.zip", "tensorflow/include",
    "nvidia/cuda_cupti/lib/libcheckpoint.so", "nvidia/cuda_cupti/lib/libnvperf_host.so",
    "nvidia/cuda_cupti/lib/libnvperf_target.so", "nvidia/cuda_cupti/lib/libpcsamplingutil.so",
    "nvidia/cuda_nvcc/bin/cicc", "nvidia/cuda_nvcc/bin/cudafe++", "nvidia/cuda_nvcc/bin/fatbinary",
    "nvidia/cuda_nvcc/bin/nvcc", "nvidia/cuda_nvcc/bin/nvlink", "nvidia/cuda_nvcc/nvvm/bin",
    "nvidia/cuda_nvcc/nvvm/lib64", "uv", "bin",
)  # fmt: skip
UNUSED_ANYWHERE = (
    "__pycache__", "include", "*.pyi", "*.h", "*.hpp", "*.cuh", "*.a", "*.pyx", "*.pxd", "*.proto",
)  # fmt: skip
TESTED = ("h5py", "pyarrow", "scipy")
# The large libraries of CUDA, in NVIDIA's packages.
CUDA = (
    "cublas", "cuda_nvrtc", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink",
)  # fmt: skip
PART_BYTES = 58_000_000
CHUNK_BYTES = 64 * 2**20
FILTERS = ({"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 9})
# A process that compresses takes about 700 MB of memory.
MOST_PROCESSES = 4


def make_bundle(
    versions: Sequence[str], output: Path, capability: int, with_cuda: bool, device: FlavourName = "gpu"
) -> None:
    """Write a bundle into a new folder."""
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        root = Path(scratch) / "bundle"
        os.environ["TFCOMPARE_CACHE"] = str(root / "cache")
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        _install(versions, device)
        environments = environments_folder()
        _copy_python(Path(sys.base_prefix), own, root / "pythons" / own)
        for marker in environments.glob(f"*/{MARKER}"):
            _take_python_out(marker.parent, root / "pythons")
        _install_own_packages(root / "site")
        _copy_repository(root / "repository")
        for unneeded in (*environments.glob("*.lock"), environments.parent / "builds", environments.parent / "layers"):
            _remove(unneeded)
        packages = [*root.glob(f"{environments.relative_to(root)}/*/lib/python*/site-packages"), root / "site"]
        for folder in packages:
            _remove_unused(folder)
        left_out = [] if with_cuda else list(_leave_out_cuda(environments))
        for library in environments.rglob("*.so*"):
            if library.is_file() and not library.is_symlink():
                device_code.slim(library, capability)
        _link_equal_files(root)
        parts = _write_parts(root, Path(scratch) / "bundle.tar", output)
    about = {
        "parts": parts,
        "environments": str(environments.relative_to(root)),
        "python": f"pythons/{own}/bin/python{own}",
        "left_out": left_out,
    }
    (output / "bundle.json").write_text(json.dumps(about, indent=1) + "\n")
    shutil.copy(Path(__file__).with_name("install.py"), output)


def _install(versions: Sequence[str], device: FlavourName) -> None:
    with closing(VenvEngine(EngineOptions(gpu=device == "gpu"))) as engine:
        for version in catalog.resolve_versions(versions, fewest=1):
            print(f"{version.name}: installing it", flush=True)
            engine.prepare(version, BuildLog(environments_folder().parent / "builds" / f"{version.name}.log"))


def _take_python_out(environment: Path, pythons: Path) -> None:
    """Copy the Python of an environment, and remove what ties the environment to it."""
    python = interpreters.probe(environment / "bin" / "python")
    assert isinstance(python, Interpreter)
    number = ".".join(python.version.split(".")[:2])
    _copy_python(Path(python.prefix), number, pythons / number)
    shutil.rmtree(environment / "bin")
    (environment / "pyvenv.cfg").unlink()


def _copy_python(prefix: Path, number: str, to: Path) -> None:
    """Copy what a Python needs in order to run: its program, its library and its modules."""
    if to.exists():
        return
    (to / "bin").mkdir(parents=True)
    shutil.copy(prefix / "bin" / f"python{number}", to / "bin")
    ignored = shutil.ignore_patterns(
        "site-packages", "__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", f"config-{number}*"
    )
    shutil.copytree(prefix / "lib" / f"python{number}", to / "lib" / f"python{number}", symlinks=True, ignore=ignored)
    for library in (prefix / "lib").glob(f"libpython{number}*.so*"):
        shutil.copy(library, to / "lib", follow_symlinks=False)


def _install_own_packages(folder: Path) -> None:
    print("tfcompare: installing what it needs", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    locks = [word for name in ("run", "gpu") for word in ("-r", str(ROOT / "requirements" / f"{name}.txt"))]
    wheels_only = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, "--target", str(folder), *wheels_only, *locks], check=True)


def _copy_repository(to: Path) -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", *REPOSITORY], capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def _remove_unused(packages: Path) -> None:
    unused = [packages / name for name in UNUSED]
    unused += [path for pattern in UNUSED_ANYWHERE for path in packages.rglob(pattern)]
    unused += [path for name in TESTED for path in (packages / name).rglob("tests")]
    for path in unused:
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _leave_out_cuda(environments: Path) -> Iterator[str]:
    """Remove the large libraries of CUDA, and yield where they were."""
    for name in CUDA:
        for library in sorted(environments.glob(f"*/lib/python*/site-packages/nvidia/{name}/lib/*.so*")):
            library.unlink()
            yield str(library.relative_to(environments))


def _link_equal_files(root: Path) -> None:
    """Make files with the same contents one file, which is packed once."""
    alike: defaultdict[tuple[int, int], list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and (status := path.stat()).st_size:
            alike[status.st_size, status.st_mode].append(path)
    for paths in alike.values():
        first: dict[str, Path] = {}
        for path in paths if len(paths) > 1 else ():
            with path.open("rb") as file:
                original = first.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), path)
            if original != path and not original.samefile(path):
                path.unlink()
                os.link(original, path)


def _write_parts(root: Path, archive: Path, output: Path) -> dict[str, str]:
    """Compress the tree below a folder into parts; return the hash of each."""
    print("compressing", flush=True)
    with tarfile.open(archive, "w") as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, path.name)
    places = range(0, archive.stat().st_size, CHUNK_BYTES)
    with ProcessPoolExecutor(min(os.cpu_count() or 1, MOST_PROCESSES)) as pool:
        for number, part in enumerate(_cut(pool.map(partial(_compress, archive), places))):
            (output / f"bundle.tar.xz.{number:02}").write_bytes(part)
    parts = sorted(output.glob("bundle.tar.xz.*"))
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}


def _compress(archive: Path, place: int) -> bytes:
    with archive.open("rb") as file:
        file.seek(place)
        return lzma.compress(file.read(CHUNK_BYTES), filters=FILTERS)


def _cut(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of all chunks in parts of PART_BYTES; the last may be smaller."""
    waiting = b""
    for chunk in chunks:
        waiting += chunk
        while len(waiting) > PART_BYTES:
            yield waiting[:PART_BYTES]
            waiting = waiting[PART_BYTES:]
    yield waiting


def main() -> None:
    parser = argparse.ArgumentParser(prog="gpu_bundle", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="new folder for the bundle")
    parser.add_argument("--versions", default="2.18,2.21", help="versions to pack, separated by commas")
    parser.add_argument(
        "--capability",
        default="9.0",
        help="compute capability of the GPU; `nvidia-smi --query-gpu=compute_cap` shows it",
    )
    parser.add_argument(
        "--without-cuda", action="store_true", help="leave out CUDA's large libraries; the other machine must have them"
    )
    given = parser.parse_args()
    if given.output.exists():
        sys.exit(f"{given.output} exists: name a new folder with --output")
    major, _, minor = given.capability.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        sys.exit(f"--capability {given.capability}: give a number such as 9.0")
    try:
        make_bundle(given.versions.split(","), given.output, int(major) * 10 + int(minor), not given.without_cuda)
    except BaseException as error:
        shutil.rmtree(given.output, ignore_errors=True)
        if isinstance(error, KeyboardInterrupt | TfCompareError | OSError):
            sys.exit(f"nothing was packed: {error or 'interrupted'}")
        if isinstance(error, subprocess.CalledProcessError):
            sys.exit(f"nothing was packed: {error.cmd[0]} ended with {error.returncode}; its message is above")
        raise
    parts = list(given.output.glob("bundle.tar.xz.*"))
    size = sum(part.stat().st_size for part in parts)
    print(f"written: {given.output} ({len(parts)} parts, {size / 1e6:.0f} MB); there: python3 install.py")


if __name__ == "__main__":
    main()
