"""Profiles made by hand: a function by its name and what it spends, in milliseconds."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.model import Case
from orchestrator.model.profile import CallTimes, Frame, Function, Node, Profile, ProfiledArm, Stacks
from orchestrator.profiling.model import Heading, ProfileResult
from tests.support.builders import MS, NEW, OLD, RUN, target, targets

CALLS = 10
STACKS = Stacks(
    calls=5,
    fold_below=0.001,
    frames=(
        Frame("predict.py", 41, "build.<locals>.<lambda>"),
        Frame("keras/a;b.py", 7, "Model.predict"),
        Frame("", 0, "f"),
    ),
    nodes=(Node(-1, 0, 0), Node(0, 1, 300), Node(1, 2, 200), Node(0, 2, 100)),
)


def function(
    name: str, calls: int = CALLS, own: float = 0.0, cumulative: float | None = None, *, file: str = "a.py",
    line: int = 1, start: float = 0.0,
) -> Function:  # fmt: skip
    """`own` and `cumulative` are of all calls together, as a profiler has them."""
    whole = own if cumulative is None else cumulative
    return Function(
        file=file,
        line=line,
        name=name,
        start=CallTimes(calls=2 if start else 0, own_ns=int(start * MS), cumulative_ns=int(start * MS)),
        later=CallTimes(calls=calls, own_ns=int(own * MS), cumulative_ns=int(whole * MS)),
    )


def profile(*functions: Function, steps: int = 1, **changes: Any) -> Profile:
    return Profile(
        **{
            "profiler": "cProfile",
            "calls": CALLS,
            "steps": steps,
            "plain_ns": (MS, MS, 2 * MS),
            "profiled_ns": (3 * MS,) * CALLS,
            "functions": functions,
            "stacks": STACKS,
            **changes,
        }
    )


def arm(case: Case, version: str, of: Profile | None, outcome: str = "profiled", reason: str = "") -> ProfiledArm:
    return ProfiledArm(case=case, target=target(version), outcome=outcome, reason=reason, profile=of)  # type: ignore[arg-type]


def profiled(arms: Iterable[ProfiledArm], *, top: int = 15) -> ProfileResult:
    listed = tuple(arms)
    heading = Heading(
        run=RUN,
        created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        engine="venv",
        device="cpu",
        host={"cpu": "A CPU", "usable_cores": 2},
        targets=tuple(dict.fromkeys(one.target for one in listed)) or targets((OLD, NEW)),
        cases=tuple(dict.fromkeys(one.case for one in listed)),
        calls=CALLS,
        seed=1,
        top=top,
        pythons={target(OLD): "3.7.16", target(NEW): "3.12.1"},
    )
    return ProfileResult(heading=heading, arms=listed, path=Path("runs/p"))
