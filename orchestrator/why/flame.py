"""A flame graph of two profiles: the stacks of the new target, coloured by what grew since the old one."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from markupsafe import Markup

from orchestrator.model.profile import Frame, Profile
from orchestrator.profiling.align import module
from orchestrator.reports.html.svg import element
from orchestrator.terminal.durations import format_time

ROW_PX = 18
# Narrower frames are left out, and so are deeper ones.
LEAST_SHARE, MOST_DEPTH = 0.004, 40
# A narrower frame has its name in its title only.
LEAST_NAMED = 0.02
# A frame has grown if it takes this much more of a call of the new target.
GROWN_SHARE = 0.02


@dataclass
class FlameNode:
    """A function reached by one stack, with its time per call in both targets, and what it calls."""

    name: str
    old_ms: float = 0.0
    new_ms: float = 0.0
    inside: dict[tuple[str, str], "FlameNode"] = field(default_factory=dict)


def merge_stacks(old: Profile, new: Profile) -> FlameNode:
    """Return one tree of the stacks of two profiles; functions are the same if their name and their module are."""
    root = FlameNode("all")
    for profile, is_new in ((old, False), (new, True)):
        stacks = profile.stacks
        paths: list[list[FlameNode]] = []
        for node in stacks.nodes:
            above = paths[node.parent] if node.parent >= 0 else [root]
            frame = stacks.frames[node.frame]
            key = (module(frame.file), frame.name)
            here = above[-1].inside.setdefault(key, FlameNode(_show_frame(frame)))
            path = [*above, here]
            paths.append(path)
            took_ms = node.own_ns / 1e6 / max(stacks.calls, 1)
            for each in path:
                if is_new:
                    each.new_ms += took_ms
                else:
                    each.old_ms += took_ms
    return root


def _show_frame(frame: Frame) -> str:
    file = frame.file.rpartition("/")[2]
    return f"{frame.name} ({file}:{frame.line})" if file else frame.name


def draw_flames(root: FlameNode) -> Markup:
    """Draw the tree from the top down, each function as wide as its share of a call of the new target."""
    drawn = list(_draw(root, 0.0, 0, root.new_ms or 1.0))
    height = (1 + max((depth for depth, _ in drawn), default=0)) * ROW_PX
    return element("svg", *(markup for _, markup in drawn), height=height, width="100%", class_="flames")


def _draw(node: FlameNode, start: float, depth: int, whole_ms: float) -> Iterator[tuple[int, Markup]]:
    share = node.new_ms / whole_ms
    if share < LEAST_SHARE or depth > MOST_DEPTH:
        return
    grew = (node.new_ms - node.old_ms) / whole_ms > GROWN_SHARE
    kind = "new" if grew and not node.old_ms else "grown" if grew else ""
    told = f"{node.name}: {format_time(node.new_ms)} per call, {format_time(node.old_ms)} before"
    place = {"x": f"{100 * start:.3f}%", "y": depth * ROW_PX, "width": f"{100 * share:.3f}%", "height": ROW_PX - 1}
    yield (
        depth,
        element(
            "svg",
            element("title", told),
            element("rect", width="100%", height="100%", class_=f"flame {kind}".strip()),
            *([element("text", node.name, x=3, y=13)] if share >= LEAST_NAMED else []),
            **place,
        ),
    )
    for each in sorted(node.inside.values(), key=lambda each: -each.new_ms):
        yield from _draw(each, start, depth + 1, whole_ms)
        start += each.new_ms / whole_ms
