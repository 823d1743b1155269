"""Lock the clocks of GPUs while something is measured, and unlock them afterwards."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from orchestrator.errors import EngineUnavailable
from orchestrator.machine.gpu import find_handles, find_package

REMEDY = "run it as root, or lock the clocks first: `sudo nvidia-smi --lock-gpu-clocks=1200,1200`"


@contextmanager
def hold_clocks(keys: Collection[str], mhz: int | None, nvml: Any = None) -> Iterator[None]:
    """Lock the clocks of the GPUs with these keys, or of all GPUs; without a frequency, do nothing.

    Raises EngineUnavailable if a driver refuses. A process that is killed leaves the clocks locked.
    """
    nvml = nvml or find_package()
    held: list[Any] = []
    try:
        for handle in find_handles(nvml, keys) if mhz is not None else ():
            try:
                nvml.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
            except (AttributeError, nvml.NVMLError) as error:
                raise EngineUnavailable(f"--lock-clocks {mhz}: NVIDIA's driver refuses ({error})", REMEDY) from error
            held.append(handle)
        if mhz is not None and not held:
            advice = "pip install 'tfcompare[gpu]'"
            raise EngineUnavailable("--lock-clocks: NVML shows none of the GPUs of this run", advice)
        yield
    finally:
        for handle in held:
            with suppress(nvml.NVMLError):
                nvml.nvmlDeviceResetGpuLockedClocks(handle)
