"""Reports of nights in which something happened, and of one in which nothing did."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from orchestrator.history.model import Alarm, Change, Key, Night, NightReport

NIGHT = Night(
    at=datetime(2026, 11, 22, 3, tzinfo=UTC),
    night=date(2026, 11, 22),
    started=datetime(2026, 11, 22, 2, tzinfo=UTC),
    host="9f8e7d6c5b4a",
    suite="quick",
    targets=("2.0", "nightly"),
    run="20261122-020000-ab12",
    outcome="measured",
    said=(),
    cells=24,
    screened=24,
    confirmed=3,
    exit_code=0,
    device="cpu",
    engine="auto",
    selected=(),
    flags=(),
)
QUIET = NightReport(night=NIGHT)
LONG_CASE = "train_loop[loop=train_on_batch,api=tf.keras,mode=eager,input=numpy,model=small,data=small]"


def alarm(ratio: float, case: str = "power[style=eager]", *, id: str = "3f2a1b", **others: Any) -> Alarm:
    made = Alarm(
        id=id,
        key=Key.parse(case, "nightly", "2.0.0", "cpu", "venv", NIGHT.host),
        found_by="night",
        change=Change(
            first=NIGHT.night,
            last=date(2026, 11, 20),
            before=1.02,
            after=1.02 * ratio,
            ratio=ratio,
            ci_low=ratio * 0.97,
            ci_high=ratio * 1.03,
            p=1e-6,
        ),
        surroundings=("nightly: 2.22.0.dev20261120 -> 2.22.0.dev20261122", "kernel: 6.1.0 -> 6.1.9"),
        run=NIGHT.run,
        reproduce=f"tfcompare run --versions 2.0.0,2.22.0.dev20261122 --case '{case}' --engine venv --control",
        bisect=f"tfcompare bisect --good nightly-20261120 --bad nightly-20261122 --case '{case}' --engine venv",
        opened=NIGHT.at,
        night=NIGHT.night,
        proven=abs(math.log(ratio)) > math.log(1.1),
    )
    return replace(made, **others)


def slower(count: int) -> tuple[Alarm, ...]:
    return tuple(alarm(1.1 + number / 100, f"power[style={number}]", id=f"a{number:05}") for number in range(count))


SOMETHING = NightReport(night=NIGHT, opened=(alarm(1.12),))
