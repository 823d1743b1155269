"""Clocks are held while something is measured, and let go however that ends."""

from typing import Any

import pynvml
import pytest

from orchestrator.errors import EngineUnavailable
from orchestrator.machine.gpu_clocks import hold_clocks
from tests.support.nvidia import MadeUpDriver


def card(uuid: str, *, lockable: bool = True) -> dict[str, Any]:
    return {"nvmlDeviceGetUUID": uuid, "lockable": lockable, "locked": ()}


def test_only_the_gpus_of_the_run_are_held_and_then_let_go():
    driver = MadeUpDriver(card("GPU-1"), card("GPU-2"))
    with hold_clocks(("GPU-2",), 1200, driver):
        assert [each["locked"] for each in driver.cards] == [(), (1200, 1200)]
    assert [each["locked"] for each in driver.cards] == [(), ()]


def test_they_are_let_go_after_an_error():
    driver = MadeUpDriver(card("GPU-1"))
    with pytest.raises(KeyboardInterrupt), hold_clocks((), 1200, driver):
        raise KeyboardInterrupt
    assert driver.cards[0]["locked"] == ()


def test_a_driver_that_refuses_is_told_and_holds_none():
    driver = MadeUpDriver(card("GPU-1"), card("GPU-2", lockable=False))
    refusal = pytest.raises(EngineUnavailable, match=r"--lock-clocks 1200: .*Insufficient Permissions")
    with refusal as told, hold_clocks((), 1200, driver):
        raise AssertionError("measured")
    assert "as root" in told.value.advice
    assert driver.cards[0]["locked"] == ()


def test_without_nvml_they_cannot_be_held():
    driver = MadeUpDriver(fails=pynvml.NVMLError_DriverNotLoaded())
    with pytest.raises(EngineUnavailable, match="NVML shows none"), hold_clocks((), 1200, driver):
        raise AssertionError("measured")


def test_nothing_is_asked_for_without_a_frequency():
    driver = MadeUpDriver(card("GPU-1", lockable=False))
    with hold_clocks((), None, driver):
        assert driver.started == 0
