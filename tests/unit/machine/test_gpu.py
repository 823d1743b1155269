"""What NVML says of a GPU, from the package's own names and constants; only the driver is made up."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from orchestrator.errors import EngineUnavailable
from orchestrator.machine.gpu import (
    REASONS,
    GpuReading,
    describe_processes,
    disturbance,
    find_gpus,
    find_package,
    read_gpus,
    spans,
)
from orchestrator.machine.gpu_clocks import hold_clocks
from orchestrator.model import GpuSpan
from tests.support.nvidia import MadeUpDriver

HAS_DRIVER = Path("/proc/driver/nvidia/version").exists()
ALL_FACTS = {
    "nvmlDeviceGetUUID": "GPU-4d6a",
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143771 * 2**20, free=140000 * 2**20),
    "nvmlDeviceGetComputeMode": pynvml.NVML_COMPUTEMODE_DEFAULT,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPersistenceMode": pynvml.NVML_FEATURE_ENABLED,
    "nvmlDeviceGetMigMode": [pynvml.NVML_DEVICE_MIG_DISABLE, pynvml.NVML_DEVICE_MIG_ENABLE],
    "nvmlDeviceGetClockInfo": {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201},
    "nvmlDeviceGetTemperatureV": 41,
    "nvmlDeviceGetPowerUsage": 121_700,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=35, memory=4),
    "nvmlDeviceGetCurrentClocksEventReasons": pynvml.nvmlClocksEventReasonSwPowerCap,
    "nvmlDeviceGetComputeRunningProcesses_v3": [SimpleNamespace(pid=4711, usedGpuMemory=None)],
}
QUIET = GpuReading(
    index=0,
    sm_mhz=1980,
    memory_mhz=3201,
    temperature_c=41,
    power_w=122,
    busy_percent=35,
    throttled=(),
    pids=(4711,),
)


class Counted(MadeUpDriver):
    """Keeps what its GPUs were asked."""

    def __init__(self, *cards: dict[str, Any]) -> None:
        super().__init__(*cards)
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvmlDeviceGet"):
            self.asked.append(name)
        return super().__getattr__(name)


def throttled(mask: int) -> tuple[str, ...] | None:
    (reading,) = read_gpus(MadeUpDriver({"nvmlDeviceGetCurrentClocksEventReasons": mask}))
    return reading.throttled


def test_a_card_tells_its_facts() -> None:
    (card,) = find_gpus(MadeUpDriver(ALL_FACTS))
    assert (card.uuid, card.name, card.driver, card.capability) == ("GPU-4d6a", "NVIDIA H200", "570.1", "9.0")
    assert (card.memory_mb, card.free_mb, card.power_limit_w, card.persistence) == (143771, 140000, 700, True)
    assert (card.mode, card.linked, card.slices) == ("shared", None, ())
    assert card.mig is False, "what the next reset brings does not hold yet"
    assert str(card) == "NVIDIA H200 (GPU-4d6a, driver 570.1, limit 700 W)"


def test_a_card_goes_by_its_uuid_and_is_shown_by_its_number() -> None:
    (card,) = find_gpus(MadeUpDriver(ALL_FACTS))
    assert (card.key, card.title) == ("GPU-4d6a", "GPU 0 (NVIDIA H200)")
    assert (replace(card, uuid=None).key, replace(card, name=None).title) == ("0", "GPU 0")


def test_a_card_that_is_split_or_sleeps_between_runs_says_so() -> None:
    (card,) = find_gpus(MadeUpDriver(ALL_FACTS))
    odd = replace(card, power_limit_w=None, persistence=False, mig=True)
    assert str(odd) == "NVIDIA H200 (GPU-4d6a, driver 570.1, no persistence mode, MIG)"


def test_a_card_tells_what_it_does_now() -> None:
    (reading,) = read_gpus(MadeUpDriver(ALL_FACTS))
    assert reading == replace(QUIET, throttled=("power cap",))
    assert str(reading) == "1980 MHz, memory 3201 MHz, 41 C, 122 W, 35% busy, processes: 1, power cap"


@pytest.mark.parametrize(
    ("number", "mode"), [(0, "shared"), (1, "exclusive"), (2, "prohibited"), (3, "exclusive"), (9, None)]
)
def test_a_card_tells_how_many_processes_it_takes(number: int, mode: str | None) -> None:
    (card,) = find_gpus(MadeUpDriver({**ALL_FACTS, "nvmlDeviceGetComputeMode": number}))
    assert card.mode == mode


@pytest.mark.parametrize(("state", "linked"), [(0, None), (1, False), (2, False), (3, True), (9, None)])
def test_a_card_tells_whether_its_links_are_ready(state: int, linked: bool | None) -> None:
    (card,) = find_gpus(MadeUpDriver({**ALL_FACTS, "nvmlDeviceGetGpuFabricInfo": state}))
    assert card.linked is linked


SLICE = {
    "nvmlDeviceGetUUID": "MIG-77aa",
    "nvmlDeviceGetName": "NVIDIA H200 MIG 1g.18gb",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=16000 * 2**20, free=15000 * 2**20),
    "nvmlDeviceGetComputeRunningProcesses_v3": [],
}
SPLIT = {
    **ALL_FACTS,
    "nvmlDeviceGetMigMode": [pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE],
    "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetMigDeviceHandleByIndex": {2: SLICE},
}


def test_a_card_that_is_split_lists_its_slices() -> None:
    (card,) = find_gpus(MadeUpDriver(SPLIT))
    (part,) = card.slices
    assert (part.index, part.key, part.name) == (0, "MIG-77aa", "NVIDIA H200 MIG 1g.18gb")
    assert (part.memory_mb, part.free_mb, part.capability) == (16000, 15000, "9.0")


def test_a_slice_has_processes_of_its_own_and_its_cards_clock() -> None:
    (reading,) = read_gpus(MadeUpDriver({**ALL_FACTS, "nvmlDeviceGetUUID": "GPU-other"}, SPLIT), ("MIG-77aa",))
    assert (reading.index, reading.sm_mhz, reading.pids) == (1, 1980, ())


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    find_package.cache_clear()
    yield
    find_package.cache_clear()


@pytest.mark.parametrize("key", ["GPU-4d6a", "MIG-77aa"])
@pytest.mark.usefixtures("no_package")
def test_without_the_package_of_nvml_nothing_is_read_and_no_clock_is_held(key: str) -> None:
    assert read_gpus(only=(key,)) == ()
    with pytest.raises(EngineUnavailable, match="NVML shows none of the GPUs"), hold_clocks((key,), 1200):
        raise AssertionError("measured")


def test_only_the_cards_that_are_watched_are_read() -> None:
    driver = MadeUpDriver(ALL_FACTS, {**ALL_FACTS, "nvmlDeviceGetUUID": "GPU-77aa"}, {"nvmlDeviceGetTemperatureV": 30})
    assert [card.index for card in read_gpus(driver)] == [0, 1, 2]
    assert [card.index for card in read_gpus(driver, ("GPU-77aa",))] == [1]
    assert [card.index for card in read_gpus(driver, ("GPU-4d6a", "2"))] == [0, 2]


def test_a_look_after_a_burst_asks_four_things_of_one_card() -> None:
    """Finding the GPUs, and who else is on them, takes longest."""
    driver = Counted(ALL_FACTS, ALL_FACTS)
    read_gpus(driver, ("0",), brief=True)
    driver.asked.clear()
    (reading,) = read_gpus(driver, ("0",), brief=True)
    assert driver.asked == [
        "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetPowerUsage",
    ]  # fmt: skip
    assert reading == replace(QUIET, memory_mhz=None, busy_percent=None, pids=None, throttled=("power cap",))


def test_readings_of_a_visit_come_to_a_span_a_card() -> None:
    hot = replace(QUIET, sm_mhz=1410, temperature_c=83, power_w=700, throttled=("power cap", "thermal slowdown"))
    other = replace(QUIET, index=1, sm_mhz=None, temperature_c=None, power_w=None, throttled=None)
    assert spans([QUIET, other, hot, replace(QUIET, sm_mhz=1755, throttled=("power cap",)), other]) == (
        GpuSpan(
            index=0, sm_mhz_min=1410, sm_mhz_max=1980, temperature_c=83, power_w=700,
            throttled=("power cap", "thermal slowdown"),
        ),
        GpuSpan(index=1, sm_mhz_min=None, sm_mhz_max=None, temperature_c=None, power_w=None, throttled=()),
    )  # fmt: skip
    assert spans([]) == ()


def test_what_a_card_does_not_support_is_none() -> None:
    driver = MadeUpDriver({"nvmlDeviceGetName": "Tesla K80"})
    (card,), (reading,) = find_gpus(driver), read_gpus(driver)
    assert str(card) == "Tesla K80 (driver 570.1)"
    assert (card.uuid, card.capability, card.memory_mb, card.power_limit_w) == (None, None, None, None)
    assert (card.persistence, card.mig) == (None, None)
    assert reading == GpuReading(0, None, None, None, None, None, None, None)
    assert str(reading) == ""


def test_an_old_driver_is_asked_by_the_old_names() -> None:
    new_names = {
        "nvmlDeviceGetTemperatureV": "nvmlDeviceGetTemperature",
        "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3": "nvmlDeviceGetComputeRunningProcesses_v2",
    }
    old = {new_names.get(name, name): answer for name, answer in ALL_FACTS.items()}
    assert read_gpus(MadeUpDriver(old)) == read_gpus(MadeUpDriver(ALL_FACTS))


def test_a_card_that_may_not_be_opened_keeps_the_others_and_their_numbers() -> None:
    assert [card.index for card in find_gpus(MadeUpDriver({}, ALL_FACTS))] == [1]


def test_a_driver_that_does_not_start_is_asked_once_and_has_no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    driver = MadeUpDriver(ALL_FACTS, fails=pynvml.NVMLError_DriverNotLoaded())
    assert (find_gpus(driver), read_gpus(driver)) == ((), ())
    assert driver.started == 1


def test_nvml_is_started_once_for_all_readings() -> None:
    driver = MadeUpDriver(ALL_FACTS)
    find_gpus(driver)
    for _ in range(3):
        read_gpus(driver)
    assert driver.started == 1


def test_the_bits_are_those_of_the_package() -> None:
    words = {
        "SwPowerCap": "power cap",
        "HwSlowdown": "hardware slowdown",
        "SyncBoost": "sync boost",
        "SwThermalSlowdown": "thermal slowdown",
        "HwThermalSlowdown": "thermal slowdown",
        "HwPowerBrakeSlowdown": "power brake",
        "BoardLimit": "board limit",
        "Reliability": "reliability limit",
    }
    assert {getattr(pynvml, f"nvmlClocksThrottleReason{name}"): word for name, word in words.items()} == REASONS


def test_several_reasons_are_told_once_each() -> None:
    both = pynvml.nvmlClocksEventReasonSwThermalSlowdown | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    assert throttled(both | pynvml.nvmlClocksEventReasonHwSlowdown) == ("hardware slowdown", "thermal slowdown")


@pytest.mark.parametrize("setting", ["GpuIdle", "ApplicationsClocksSetting", "DisplayClockSetting", "None"])
def test_an_idle_card_and_a_setting_are_no_throttling(setting: str) -> None:
    assert throttled(getattr(pynvml, f"nvmlClocksEventReason{setting}")) == ()


@pytest.mark.parametrize("reason", ["thermal slowdown", "power brake", "hardware slowdown"])
def test_throttling_before_or_after_is_a_disturbance(reason: str) -> None:
    hot = replace(QUIET, index=1, throttled=("power cap", reason))
    for readings in ((QUIET, hot, QUIET, QUIET), (QUIET, QUIET, QUIET, hot)):
        assert disturbance(readings) == f"GPU 1 was throttled ({reason})"


def test_the_cause_is_told_rather_than_the_slowdown_that_it_brings() -> None:
    hot = replace(QUIET, throttled=("hardware slowdown", "thermal slowdown"))
    assert disturbance((QUIET, hot)) == "GPU 0 was throttled (thermal slowdown)"


def test_a_busy_card_at_its_power_cap_is_no_disturbance() -> None:
    capped = replace(QUIET, throttled=("power cap",))
    assert disturbance((capped, capped)) == ""


def test_a_process_on_a_card_is_named_by_its_number() -> None:
    shared = replace(QUIET, index=1, pids=(4711, 815))
    assert describe_processes((replace(QUIET, pids=()), shared)) == "another process (pid 815) was on GPU 1"


def test_nothing_known_and_no_cards_disturb_nobody() -> None:
    silent = replace(QUIET, throttled=None, pids=None)
    for readings in ((silent, silent), ()):
        assert disturbance(readings) == ""
        assert describe_processes(readings) == ""


def asked_elsewhere(first: str) -> str:
    """A process of its own, so that what NVML or the package would print is seen."""
    code = f"{first}; from orchestrator.machine.gpu import find_gpus, read_gpus; print(find_gpus(), read_gpus())"
    asked = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stderr == ""
    return asked.stdout


@pytest.mark.skipif(HAS_DRIVER, reason="this machine has an NVIDIA driver")
def test_without_a_driver_there_are_no_cards_and_no_complaint() -> None:
    assert asked_elsewhere("import pynvml") == "() ()\n"


def test_without_the_package_there_are_no_cards_and_no_complaint() -> None:
    assert asked_elsewhere("import sys; sys.modules['pynvml'] = None") == "() ()\n"


@pytest.mark.skipif(not HAS_DRIVER, reason="no NVIDIA driver: no real GPU can be asked")
def test_a_real_card_tells_what_it_is_and_what_it_does() -> None:
    for card, reading in zip(find_gpus(), read_gpus(), strict=True):
        assert card.uuid
        assert card.uuid.startswith("GPU-")
        assert card.name in str(card)
        assert reading.index == card.index
        assert reading.throttled is not None
