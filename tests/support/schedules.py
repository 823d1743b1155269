"""Schedules for tests."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.nightly.schedule.units import PlannedSchedule, Schedule

PLANNED = PlannedSchedule(
    at="02:30",
    missed="catch-up",
    flags=("--versions", "2.13,nightly", "--suite", "studies"),
    history="/srv/history",
    host="0123456789ab",
    since=datetime(2026, 11, 1, 12, tzinfo=UTC),
    zone="",
    device="cpu",
    nights="abcdef012345",
)


def planned(**fields: Any) -> PlannedSchedule:
    return replace(PLANNED, **fields)


def wanted(program: tuple[str, ...] = ("/usr/bin/tfcompare",), **fields: Any) -> Schedule:
    """Fields of the plan, or of the schedule around it."""
    own = {name: fields.pop(name) for name in ("environment", "folder", "env_file", "limit_s") if name in fields}
    given: dict[str, Any] = {
        "environment": {"PATH": "/usr/bin:/bin"}, "folder": Path("/"), "env_file": None, "limit_s": 3600.0, **own
    }  # fmt: skip
    return Schedule(planned=planned(**fields), program=program, **given)
