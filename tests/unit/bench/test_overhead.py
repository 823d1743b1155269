"""Where the time of a whole run goes: each step is timed, and what of it is inside TensorFlow is known."""

import time

import pytest

from bench.overhead import STEPS, Step, WholeRun, clocked


def test_the_rest_of_each_step_and_of_the_host_is_what_is_left():
    steps = {
        "start workers": Step(20.0, 10),
        "open": Step(30.0, 100),
        "bursts": Step(40.0, 2000),
        "close": Step(2.0, 100),
    }
    whole = WholeRun(100.0, steps, {"open": 25.0, "bursts": 38.0})
    assert whole.share == pytest.approx(0.63)
    assert list(whole.describe())[2:] == [
        "| start workers | 10 | 20.0% | 0.0% | 2000.0 ms |",
        "| open | 100 | 30.0% | 25.0% | 50.0 ms |",
        "| bursts | 2000 | 40.0% | 38.0% | 1.0 ms |",
        "| close | 100 | 2.0% | 0.0% | 20.0 ms |",
        "| all else on the host | | 8.0% | | |",
    ]


def test_steps_are_timed_as_long_as_a_run_is_made(monkeypatch: pytest.MonkeyPatch):
    """Also those that fail."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    class Stubborn:
        def renew(self) -> None:
            now[0] += 2.0
            raise RuntimeError

        def open(self) -> str:
            now[0] += 0.5
            return "opened"

    monkeypatch.setitem(STEPS, "start workers", (Stubborn, "renew"))
    monkeypatch.setitem(STEPS, "open", (Stubborn, "open"))
    plain = Stubborn.open
    with clocked() as took:
        assert [Stubborn().open() for _ in range(3)] == ["opened"] * 3
        with pytest.raises(RuntimeError):
            Stubborn().renew()
        now[0] += 9.0
    assert (took["open"], took["start workers"], took["bursts"]) == (Step(1.5, 3), Step(2.0, 1), Step())
    assert Stubborn.open is plain
