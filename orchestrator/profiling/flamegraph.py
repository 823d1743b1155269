"""A profile's stacks in the formats that flame graph tools read."""

from collections.abc import Iterator
from typing import Any

from orchestrator.profiling.model import Frame, ProfiledArm, Stacks

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"


def collapsed(stacks: Stacks) -> str:
    """A line a stack, outermost function first: `one;two;three NANOSECONDS`, as flamegraph.pl and its kin read it."""
    names = [_named(frame) for frame in stacks.frames]
    return "".join(f"{';'.join(names[frame] for frame in path)} {own_ns}\n" for path, own_ns in _paths(stacks))


def speedscope(arm: ProfiledArm, stacks: Stacks) -> dict[str, Any]:
    """A file for https://www.speedscope.app: one sample a stack, side by side as in the tree."""
    paths = list(_paths(stacks))
    name = f"{arm.version} {arm.case.label}"
    return {
        "$schema": SPEEDSCOPE,
        "exporter": "tfcompare",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_shared(frame) for frame in stacks.frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{name}: {stacks.calls} calls under a tracer",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(own_ns for _, own_ns in paths),
                "samples": [list(path) for path, _ in paths],
                "weights": [own_ns for _, own_ns in paths],
            }
        ],
    }


def _paths(stacks: Stacks) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every stack that took time of its own: its frames, and the time."""
    paths: list[tuple[int, ...]] = []
    for node in stacks.nodes:
        above = paths[node.parent] if node.parent >= 0 else ()
        paths.append((*above, node.frame))
        if node.own_ns > 0:
            yield paths[-1], node.own_ns


def _named(frame: Frame) -> str:
    """Semicolons and line ends are the format's own."""
    name = f"{frame.name} ({frame.file}:{frame.line})" if frame.file else frame.name
    return "".join(character if character.isprintable() and character != ";" else "?" for character in name)


def _shared(frame: Frame) -> dict[str, str | int]:
    return {"name": frame.name, "file": frame.file, "line": frame.line} if frame.file else {"name": frame.name}
