"""The cost of a search, reported before its first step: steps, time, installs and disk."""

import math
from pathlib import Path

from orchestrator import catalog
from orchestrator.bisect.state import State
from orchestrator.engines import CPU_GB
from orchestrator.engines.choose import choose_engine
from orchestrator.machine.host import free_gb
from orchestrator.measure.outline import REPLICATE_S
from orchestrator.metrics.followed import SIZE
from orchestrator.plan.pairs import LOOKS
from orchestrator.terminal.view import View

# Three versions that start side by side take this many seconds to import TensorFlow.
START_S = 12.0
SIDE_BY_SIDE = 3


def describe_plan(state: State, view: View | None) -> list[str]:
    """Return the lines of a plan; the engine prints its lines before them.

    Without a view another machine measures, and what is ready there is not known here.
    """
    if view is None:
        return [_steps(state)]
    run = state.question.run
    _, engine = choose_engine(run.engine, run.isolation, run.environments, view)
    try:
        versions = {number: catalog.find_version(number) for number in state.candidates}
        outlooks = {number: engine.outlook(version) if version else None for number, version in versions.items()}
        storage = engine.storage()
    finally:
        engine.close()
    lacking = [number for number, outlook in outlooks.items() if outlook is None or outlook.state != "ready"]
    downloads = [outlook.download for outlook in outlooks.values() if outlook and outlook.download]
    return [_steps(state), *_installs(lacking, state, storage[1] if storage else Path()), *dict.fromkeys(downloads)]


def count_likely_steps(inside: int) -> int:
    """Return the number of steps to a single change among this many versions: one for the ends, one per halving."""
    return 1 + math.ceil(math.log2(inside + 1))


def _steps(state: State) -> str:
    inside = len(state.candidates) - 2
    if state.question.metric == SIZE:
        took = "a step makes its versions ready and measures no rounds"
    else:
        low, high = ((START_S + SIDE_BY_SIDE * (looks + 1) * REPLICATE_S) / 60 for looks in (LOOKS[0], LOOKS[-1]))
        took = f"a step takes {low:.1f} to {high:.1f} min if builds and calls are short"
    ends = f"{state.candidates[0]} to {state.candidates[-1]}"
    if state.question.every:
        return f"plan: every version from {ends}, {inside} between them: about {inside + 1} steps; {took}"
    return (
        f"plan: {ends}, {inside} versions between them: about {count_likely_steps(inside)} steps to a single change, "
        f"more if several changes add up; {took}"
    )


def _installs(lacking: list[str], state: State, folder: Path) -> list[str]:
    if not lacking:
        return ["every version is ready"]
    inside = len(state.candidates) - 2
    likely = len(lacking) if state.question.every else min(len(lacking), count_likely_steps(inside) + 1)
    if state.question.over:
        what, done = f"release of {state.question.over}", "locked"
        if state.question.is_over_commits:
            what, done = f"commit of {state.question.package}", "built, locked"
        return [
            f"each {what} is {done} and installed when it is needed, on top of the packages that it shares with "
            f"TensorFlow {state.question.version}"
        ]
    free = free_gb(folder)
    message = (
        f"{len(lacking)} of {len(state.candidates)} versions are not ready and will be prepared when they are needed: "
        f"each takes a minute or more and about {CPU_GB} GB ({free:.0f} GB are free)"
    )
    if likely * CPU_GB <= free:
        return [message]
    return [message, f"warning: {likely} of them may be needed, and there is no room for {likely * CPU_GB:.0f} GB"]
