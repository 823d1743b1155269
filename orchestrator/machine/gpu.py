"""NVIDIA GPUs: the fixed facts of each GPU, and its readings at one moment. Without a driver, no GPU is found.

Facts come from NVML, or from nvidia-smi if NVML does not answer. Readings come only from NVML, because a program that
takes a tenth of a second to start would disturb what it observes.
"""

import importlib
from collections.abc import Collection, Iterable, Iterator
from ctypes import byref
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any, Literal

from orchestrator.machine import nvidia_smi
from orchestrator.model import GpuSpan

# The keys are the driver's bits. Idle, application clocks and display clocks are left out, because they are part of how
# the GPU is used and set up.
REASONS = {
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal slowdown",
    0x040: "thermal slowdown",
    0x080: "power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
# A power cap is not among them: every busy GPU works at its cap, so it slows all arms of a round equally.
DISTURBING = ("thermal slowdown", "power brake", "hardware slowdown")


# The mode says how many processes may use a GPU at once; `exclusive` allows one.
ComputeMode = Literal["shared", "exclusive", "prohibited"]
# Each mode is at the index of its number in NVML. Mode 1, for one thread, dates from before TensorFlow.
MODES: tuple[ComputeMode, ...] = ("shared", "exclusive", "prohibited", "exclusive")
SMI_MODES: dict[str, ComputeMode] = {
    "Default": "shared", "Exclusive_Thread": "exclusive", "Exclusive_Process": "exclusive", "Prohibited": "prohibited",
}  # fmt: skip
SHARE = "allow several processes with `sudo nvidia-smi --compute-mode=0`"
# Each value is at the index of NVML's state of the links: not supported, not started, in progress, and completed.
LINKS = (None, False, False, True)


@dataclass(frozen=True)
class Gpu:
    """A GPU; None means that the GPU does not report the value."""

    index: int
    uuid: str | None
    name: str | None
    capability: str | None
    driver: str | None
    memory_mb: int | None
    power_limit_w: int | None
    persistence: bool | None
    mig: bool | None
    free_mb: int | None = None
    mode: ComputeMode | None = None
    # If switches link the GPU to other GPUs, this is whether the links are ready.
    linked: bool | None = None
    # If the GPU is split (MIG), these are its slices; each is a GPU with the index of the whole.
    slices: tuple["Gpu", ...] = ()

    @property
    def key(self) -> str:
        """The GPU's permanent name; an index may belong to another GPU after the next start of the machine."""
        return self.uuid or str(self.index)

    @property
    def title(self) -> str:
        return f"GPU {self.index} ({self.name})" if self.name else f"GPU {self.index}"

    def __str__(self) -> str:
        facts = (
            self.uuid,
            self.driver and f"driver {self.driver}",
            self.power_limit_w and f"limit {self.power_limit_w} W",
            self.persistence is False and "no persistence mode",
            self.mig and "MIG",
        )
        return f"{self.name or 'GPU'} ({', '.join(fact for fact in facts if fact)})"


@dataclass(frozen=True)
class GpuReading:
    """A GPU's readings at one moment.

    None means that the GPU does not report the value. `throttled` lists the reasons why its clocks were held back.
    """

    index: int
    sm_mhz: int | None
    memory_mhz: int | None
    temperature_c: int | None
    power_w: int | None
    busy_percent: int | None
    throttled: tuple[str, ...] | None
    pids: tuple[int, ...] | None

    def __str__(self) -> str:
        values = (
            (self.sm_mhz, f"{self.sm_mhz} MHz"),
            (self.memory_mhz, f"memory {self.memory_mhz} MHz"),
            (self.temperature_c, f"{self.temperature_c} C"),
            (self.power_w, f"{self.power_w} W"),
            (self.busy_percent, f"{self.busy_percent}% busy"),
            (self.pids, f"processes: {len(self.pids or ())}"),
        )
        return ", ".join([words for value, words in values if value is not None] + list(self.throttled or ()))


def find_gpus(nvml: Any = None) -> tuple[Gpu, ...]:
    """Return all GPUs of this machine, including those that CUDA_VISIBLE_DEVICES hides."""
    nvml = nvml or find_package()
    if found := tuple(_gpu(nvml, index, handle) for index, handle in _handles(nvml)):
        return found
    return tuple(
        Gpu(
            index=int(row["index"] or 0),
            uuid=row["uuid"],
            name=row["name"],
            capability=row["compute_cap"],
            driver=row["driver_version"],
            memory_mb=_to_int(row["memory.total"]),
            power_limit_w=_to_int(row["power.limit"]),
            persistence=_to_bool(row["persistence_mode"]),
            mig=_to_bool(row["mig.mode.current"]),
            free_mb=_to_int(row["memory.free"]),
            mode=SMI_MODES.get(row["compute_mode"] or ""),
            linked=None if row["fabric.state"] is None else row["fabric.state"] == "Completed",
        )
        for row in nvidia_smi.query_gpus()
    )


def read_gpus(nvml: Any = None, only: Collection[str] = (), *, brief: bool = False) -> tuple[GpuReading, ...]:
    """Return readings of the GPUs with these keys, or of all GPUs.

    `brief` leaves out what the driver takes longest to report, such as the processes that use the GPU.
    """
    nvml = nvml or find_package()
    return tuple(_reading(nvml, *found, brief=brief) for found in _gpus_to_read(nvml, frozenset(only)))


def spans(readings: Iterable[GpuReading]) -> tuple[GpuSpan, ...]:
    """Summarise several readings, GPU by GPU."""
    found = []
    for index, group in groupby(sorted(readings, key=lambda reading: reading.index), lambda reading: reading.index):
        own = tuple(group)
        clocks = [reading.sm_mhz for reading in own if reading.sm_mhz is not None]
        temperatures = (reading.temperature_c for reading in own if reading.temperature_c is not None)
        span = GpuSpan(
            index=index,
            sm_mhz_min=min(clocks, default=None),
            sm_mhz_max=max(clocks, default=None),
            temperature_c=max(temperatures, default=None),
            power_w=max((reading.power_w for reading in own if reading.power_w is not None), default=None),
            throttled=tuple(dict.fromkeys(reason for reading in own for reason in reading.throttled or ())),
        )
        found.append(span)
    return tuple(found)


def disturbance(readings: Iterable[GpuReading]) -> str:
    """Return what held the GPUs back, in words, or '' if nothing did."""
    for reading in readings:
        for reason in DISTURBING:
            if reason in (reading.throttled or ()):
                return f"GPU {reading.index} was throttled ({reason})"
    return ""


def describe_processes(readings: Iterable[GpuReading]) -> str:
    """Describe which process is on a GPU, by its pid on the host, or return '' if none is known."""
    found = [(min(reading.pids), reading.index) for reading in readings if reading.pids]
    return f"another process (pid {found[0][0]}) was on GPU {found[0][1]}" if found else ""


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    capability = _ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    persistence = _ask(nvml, "nvmlDeviceGetPersistenceMode", handle)
    mig = _ask(nvml, "nvmlDeviceGetMigMode", handle)
    mode = _ask(nvml, "nvmlDeviceGetComputeMode", handle)
    gpu = Gpu(
        index=index,
        uuid=_ask(nvml, "nvmlDeviceGetUUID", handle),
        name=_ask(nvml, "nvmlDeviceGetName", handle),
        capability=capability and "{}.{}".format(*capability),
        driver=_ask(nvml, "nvmlSystemGetDriverVersion"),
        memory_mb=memory and memory.total // 2**20,
        power_limit_w=_watts(_ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        persistence=None if persistence is None else bool(persistence),
        mig=mig and bool(mig[0]),  # The first value holds now; the second holds after the next reset.
        free_mb=memory and memory.free // 2**20,
        mode=MODES[mode] if mode in range(len(MODES)) else None,
        linked=_is_linked(nvml, handle),
    )
    return replace(gpu, slices=tuple(_slices(nvml, handle, gpu))) if gpu.mig else gpu


def _is_linked(nvml: Any, handle: Any) -> bool | None:
    try:
        info = nvml.c_nvmlGpuFabricInfo_t()
        nvml.nvmlDeviceGetGpuFabricInfo(handle, byref(info))
        return LINKS[info.state] if info.state in range(len(LINKS)) else None
    except (AttributeError, TypeError, nvml.NVMLError):
        return None


def _slices(nvml: Any, handle: Any, whole: Gpu) -> Iterator[Gpu]:
    for place in range(_ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        part = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, place)
        if part is None:
            # The count includes places that hold no slice.
            continue
        memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", part)
        yield replace(
            whole,
            uuid=_ask(nvml, "nvmlDeviceGetUUID", part),
            name=_ask(nvml, "nvmlDeviceGetName", part) or whole.name,
            memory_mb=memory and memory.total // 2**20,
            free_mb=memory and memory.free // 2**20,
        )


def _to_int(text: str | None) -> int | None:
    return None if text is None else round(float(text))


def _to_bool(text: str | None) -> bool | None:
    return None if text is None else text == "Enabled"


def _reading(nvml: Any, index: int, handle: Any, of_processes: Any, *, brief: bool) -> GpuReading:
    busy = None if brief else _ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    mask = _ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    names = "nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2"
    processes = None if brief else _ask(nvml, names, of_processes)
    return GpuReading(
        index=index,
        sm_mhz=_ask(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM),
        memory_mhz=None if brief else _ask(nvml, "nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM),
        temperature_c=_ask(
            nvml, "nvmlDeviceGetTemperatureV nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU
        ),
        power_w=_watts(_ask(nvml, "nvmlDeviceGetPowerUsage", handle)),
        busy_percent=busy and busy.gpu,
        throttled=None if mask is None else tuple(dict.fromkeys(word for bit, word in REASONS.items() if mask & bit)),
        pids=None if processes is None else tuple(process.pid for process in processes),
    )


def _watts(milliwatts: int | None) -> int | None:
    return None if milliwatts is None else round(milliwatts / 1000)


def _ask(nvml: Any, functions: str, *arguments: Any) -> Any:
    """Call the newest available function among several names for the same question.

    Old drivers lack the new name, and new drivers drop the old one. Returns None if the GPU, the driver or the package
    has no answer.
    """
    for function in functions.split():
        try:
            return getattr(nvml, function)(*arguments)
        except (AttributeError, nvml.NVMLError):
            continue
    return None


def find_handles(nvml: Any, keys: Collection[str]) -> list[Any]:
    """Return NVML's handles of the GPUs with these keys, or of all GPUs; for a slice, the handle of the whole."""
    return [handle for _, handle, _ in _gpus_to_read(nvml, frozenset(keys))]


@cache
def find_package() -> Any:
    """Return the package that queries NVML, or None."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


@cache
def _handles(nvml: Any) -> tuple[tuple[int, Any], ...]:
    """Return all GPUs, found once per process, because starting NVML and finding them costs more than reading them."""
    if nvml is None:
        return ()
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError:
        return ()
    handles = ((index, _ask(nvml, "nvmlDeviceGetHandleByIndex", index)) for index in range(count))
    return tuple((index, handle) for index, handle in handles if handle is not None)


@cache
def _gpus_to_read(nvml: Any, only: frozenset[str]) -> tuple[tuple[int, Any, Any], ...]:
    """Return the index and handle of each GPU to read, and the handle on which to look for processes.

    They are found once per set of keys, because they are read after each of hundreds of bursts. A slice has its own
    processes and the clocks of its GPU.
    """
    if nvml is None:
        return ()
    by_uuid = {}
    for key in sorted(only):
        if key.startswith("MIG-") and (part := _ask(nvml, "nvmlDeviceGetHandleByUUID", key)) is not None:
            whole = _ask(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part)
            by_uuid[_ask(nvml, "nvmlDeviceGetUUID", whole)] = part
    found = []
    for index, handle in _handles(nvml):
        uuid = _ask(nvml, "nvmlDeviceGetUUID", handle)
        if not only or str(index) in only or uuid in only or uuid in by_uuid:
            found.append((index, handle, by_uuid.get(uuid, handle)))
    return tuple(found)
