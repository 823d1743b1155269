"""`python -m bench.gpu_probe`: check what tfcompare relies on in NVIDIA's driver, on a real GPU and without TensorFlow.

A kernel that only counts keeps the GPU busy. The probe shows what NVML readings cost at rest and after a burst, how the
clock rises after a rest, whether a process is listed while it is on the GPU, which forks can start CUDA, and why the
driver holds clocks back. Nothing else should use the GPU meanwhile.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrator.machine.gpu import Gpu, find_gpus, read_gpus

LIBRARY = "libcuda.so.1"
KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry count(.param .u32 turns)
{
    .reg .u32 %left;
    .reg .pred %more;
    ld.param.u32 %left, [turns];
again:
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra again;
    ret;
}
"""
BLOCKS, THREADS = 2048, 256
FIRST_TURNS, MOST_TURNS = 10_000, 2**31
BURST_S, REST_S, RAMP_S = 0.05, 20.0, 3.0
READINGS = 50
# The clock is printed at these times, counted from the start of the first burst.
RAMP_AT_S = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# The parent is in one of these states when it forks; the child then tries to use CUDA.
FORKS = {
    "loaded": "the library loaded, nothing started, as in a worker that has imported TensorFlow",
    "started": "CUDA started by the parent",
}

_AGAIN = (sys.executable, "-m", "bench.gpu_probe")


class CudaError(Exception):
    """A function of the driver and the code that it returned."""


class Cuda:
    """A context on one GPU, and the kernel that keeps it busy."""

    def __init__(self, device: int = 0, library: str = LIBRARY) -> None:
        self._cuda = ctypes.CDLL(library)
        self._call("cuInit", 0)
        handle, self._context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._function = ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(handle), device)
        self._call("cuCtxCreate_v2", ctypes.byref(self._context), 0, handle)
        self._call("cuModuleLoadData", ctypes.byref(module), KERNEL)
        self._call("cuModuleGetFunction", ctypes.byref(self._function), module, b"count")
        self._turns = FIRST_TURNS

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._cuda, name)(*arguments):
            raise CudaError(f"{name} returned {code}")

    def burst(self, seconds: float = BURST_S) -> float:
        """Keep the GPU busy for about this long, and return how long it was."""
        turns = ctypes.c_uint32(self._turns)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(turns), ctypes.c_void_p))
        begun = time.perf_counter()
        self._call(
            "cuLaunchKernel", self._function, BLOCKS, 1, 1, THREADS, 1, 1, 0, ctypes.c_void_p(), arguments,
            ctypes.c_void_p(),
        )  # fmt: skip
        self._call("cuCtxSynchronize")
        took = time.perf_counter() - begun
        self._turns = max(1, min(MOST_TURNS, int(self._turns * min(10.0, seconds / max(took, 1e-6)))))
        return took

    def close(self) -> None:
        self._call("cuCtxDestroy_v2", self._context)


def cost_of_readings(cuda: Cuda, keys: Sequence[str], nvml: Any) -> Iterator[str]:
    """Yield how long a brief reading and a full one take, at rest and right after a burst."""
    for name, before in (("at rest", lambda: None), ("after a burst", cuda.burst)):
        for kind, brief in (("brief", True), ("full", False)):
            took = statistics.median(_time_reading(before, keys, nvml, brief=brief) for _ in range(READINGS))
            yield f"- a {kind} reading {name}: {took * 1e6:.0f} us (median of {READINGS})"


def _time_reading(before: Callable[[], object], keys: Sequence[str], nvml: Any, *, brief: bool) -> float:
    before()
    begun = time.perf_counter()
    read_gpus(nvml, keys, brief=brief)
    return time.perf_counter() - begun


def ramp_of_clock(cuda: Cuda, keys: Sequence[str], nvml: Any, rest_s: float, ramp_s: float) -> str:
    """Return the clock rates during bursts that follow a rest, by the time since the first burst."""
    time.sleep(rest_s)
    [idle] = read_gpus(nvml, keys, brief=True)
    begun, seen = time.perf_counter(), []
    while (since := time.perf_counter() - begun) < ramp_s:
        cuda.burst(0.01)
        seen.append((since, read_gpus(nvml, keys, brief=True)[0].sm_mhz))
    told = [next((mhz for since, mhz in seen if since >= at), seen[-1][1]) for at in RAMP_AT_S]
    steps = ", ".join(f"{at * 1000:.0f} ms: {mhz}" for at, mhz in zip(RAMP_AT_S, told, strict=True))
    return f"- MHz after {rest_s:.0f} s at rest ({idle.sm_mhz}), while busy: {steps}"


def listed_processes(cuda: Cuda, index: int, keys: Sequence[str], nvml: Any) -> Iterator[str]:
    """Yield whether this process is listed while it has a context, and another one while it runs and after it ends."""
    cuda.burst()
    yield f"- pids on the GPU while this process ({os.getpid()}) has a context: {_pids(keys, nvml)}"
    child = subprocess.Popen([*_AGAIN, "--gpu", str(index), "--hold"], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    ready = child.stdout.readline().strip()
    yield f"- with another process ({child.pid}: {ready or 'it did not start'}): {_pids(keys, nvml)}"
    child.kill()
    child.communicate()
    yield f"- right after it was killed: {_pids(keys, nvml)}"


def _pids(keys: Sequence[str], nvml: Any) -> str:
    return "; ".join(", ".join(map(str, reading.pids or ())) or "none" for reading in read_gpus(nvml, keys))


def reasons(cuda: Cuda, keys: Sequence[str], nvml: Any) -> Iterator[str]:
    """Yield why the driver holds the clock back, at rest and busy."""
    for name, before in (("at rest", lambda: None), ("busy", lambda: [cuda.burst() for _ in range(20)])):
        before()
        [reading] = read_gpus(nvml, keys, brief=True)
        yield f"- held back {name}: {', '.join(reading.throttled or ()) or 'by nothing'}; {reading}"


def describe_forks(index: int) -> Iterator[str]:
    for name, what in FORKS.items():
        command = [*_AGAIN, "--gpu", str(index), "--fork", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        yield f"- {what}: the child {done.stdout.strip() or f'ended with {done.returncode}'}"


def fork(state: str, index: int) -> None:
    """Bring the library into this state, fork, and print how the child fares with CUDA."""
    library = ctypes.CDLL(LIBRARY)
    parent = Cuda(index) if state == "started" else library
    child = os.fork()
    if child == 0:
        try:
            own = Cuda(index)
            own.burst()
            print("computes", flush=True)
        except CudaError as error:
            print(f"fails: {error}", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    del parent


def report(gpu: Gpu, cuda: Cuda, nvml: Any = None, rest_s: float = REST_S, ramp_s: float = RAMP_S) -> Iterator[str]:
    """Yield everything, line by line."""
    keys = (gpu.key,)
    yield f"`python -m bench.gpu_probe` on {datetime.now(UTC):%Y-%m-%d}: {gpu}"
    yield from ("", "Readings by NVML:", "", *cost_of_readings(cuda, keys, nvml))
    yield from ("", "The clock:", "", ramp_of_clock(cuda, keys, nvml, rest_s, ramp_s), *reasons(cuda, keys, nvml))
    yield from ("", "Processes:", "", *listed_processes(cuda, gpu.index, keys, nvml))
    yield from ("", "Forks:", "", *describe_forks(gpu.index))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.gpu_probe", description=__doc__)
    parser.add_argument("--gpu", type=int, default=0, help="index of the GPU among those that CUDA shows")
    parser.add_argument("--fork", choices=list(FORKS), help=argparse.SUPPRESS)
    parser.add_argument("--hold", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    # This makes the indices the same as those of nvidia-smi.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if given.fork:
        fork(given.fork, given.gpu)
        return
    if given.hold:
        Cuda(given.gpu).burst()
        print("on the GPU", flush=True)
        time.sleep(60)
        return
    found = [gpu for gpu in find_gpus() if gpu.index == given.gpu]
    if not found:
        sys.exit("gpu_probe: neither NVML nor nvidia-smi shows this GPU")
    if not read_gpus(only=(found[0].key,)):
        sys.exit("gpu_probe: NVML does not answer: pip install nvidia-ml-py")
    try:
        cuda = Cuda(given.gpu)
    except (OSError, CudaError) as error:
        sys.exit(f"gpu_probe: CUDA does not start: {error}")
    for line in report(found[0], cuda):
        print(line, flush=True)
    cuda.close()


if __name__ == "__main__":
    main()
