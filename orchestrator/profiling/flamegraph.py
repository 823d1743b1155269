"""A profile's stacks in the formats that flame graph tools read."""

from collections.abc import Iterator
from typing import Any

from orchestrator.model.profile import Frame, ProfiledArm, Stacks

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"


def collapse(stacks: Stacks) -> str:
    """Return one line per stack, outermost function first: `one;two;three NANOSECONDS`.

    This is the format of flamegraph.pl and similar tools.
    """
    names = [_format_frame_name(frame) for frame in stacks.frames]
    return "".join(f"{';'.join(names[frame] for frame in path)} {own_ns}\n" for path, own_ns in _paths(stacks))


def speedscope(arm: ProfiledArm, stacks: Stacks) -> dict[str, Any]:
    """Return a file for https://www.speedscope.app: one sample per stack, side by side as in the tree."""
    paths = list(_paths(stacks))
    name = f"{arm.target} {arm.case.label}"
    frames = [
        {"name": frame.name, **({"file": frame.file, "line": frame.line} if frame.file else {})}
        for frame in stacks.frames
    ]
    return {
        "$schema": SPEEDSCOPE,
        "exporter": "tfcompare",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
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
    """Yield the frames and the own time of every stack that has own time."""
    paths: list[tuple[int, ...]] = []
    for node in stacks.nodes:
        above = paths[node.parent] if node.parent >= 0 else ()
        paths.append((*above, node.frame))
        if node.own_ns > 0:
            yield paths[-1], node.own_ns


def _format_frame_name(frame: Frame) -> str:
    """Return a frame's name without semicolons and line ends, which belong to the format."""
    name = f"{frame.name} ({frame.file}:{frame.line})" if frame.file else frame.name
    return "".join(character if character.isprintable() and character != ";" else "?" for character in name)
