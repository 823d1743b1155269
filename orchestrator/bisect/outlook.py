"""The cost of a search, reported before its first step: steps, time, installs and disk."""

import math
import shutil
from pathlib import Path

from orchestrator import catalog
from orchestrator.bisect.state import State
from orchestrator.engines.venv import cache_folder
from orchestrator.model import EngineName
from orchestrator.plan import LOOKS
from orchestrator.progress import View
from orchestrator.run import REPLICATE_S, choose_engine

# Of a TensorFlow for the CPU with all that it needs, on the disk.
ENVIRONMENT_GB = 1.7
# Until three versions side by side have imported TensorFlow.
START_S = 12.0
SIDE_BY_SIDE = 3
IMAGES = Path("/var/lib/docker")


def lines(known: State, view: View) -> list[str]:
    """Return the lines of a plan; the engine prints its lines before them."""
    name, engine = choose_engine(known.question.run, view.say)
    try:
        versions = {number: catalog.find(number) for number in known.candidates}
        outlooks = {number: engine.outlook(version) if version else None for number, version in versions.items()}
    finally:
        engine.close()
    lacking = [number for number, outlook in outlooks.items() if outlook is None or outlook.state != "ready"]
    downloads = [outlook.download for outlook in outlooks.values() if outlook and outlook.download]
    return [_steps(known), *_installs(lacking, known, name), *dict.fromkeys(downloads)]


def most_likely(inside: int) -> int:
    """Return the number of steps to a single change among this many versions: one for the ends, and then halving."""
    return 1 + math.ceil(math.log2(inside + 1))


def _steps(known: State) -> str:
    inside = len(known.candidates) - 2
    low, high = ((START_S + SIDE_BY_SIDE * (looks + 1) * REPLICATE_S) / 60 for looks in (LOOKS[0], LOOKS[-1]))
    took = f"a step takes {low:.1f} to {high:.1f} min where building and calls are short"
    ends = f"{known.candidates[0]} to {known.candidates[-1]}"
    if known.question.every:
        return f"plan: every version from {ends}, {inside} between them: about {inside + 1} steps; {took}"
    return (
        f"plan: {ends}, {inside} versions between them: about {most_likely(inside)} steps to a single change, more if "
        f"several add up; {took}"
    )


def _installs(lacking: list[str], known: State, name: EngineName) -> list[str]:
    if not lacking:
        return ["every version is ready"]
    inside = len(known.candidates) - 2
    likely = len(lacking) if known.question.every else min(len(lacking), most_likely(inside) + 1)
    free_gb = _free_gb(name)
    told = (
        f"{len(lacking)} of {len(known.candidates)} versions are not ready, and made so when their turn comes: a "
        f"minute or more and about {ENVIRONMENT_GB} GB each ({free_gb:.0f} GB are free)"
    )
    if likely * ENVIRONMENT_GB <= free_gb:
        return [told]
    return [told, f"warning: {likely} of them may be needed, and there is no room for {likely * ENVIRONMENT_GB:.0f} GB"]


def _free_gb(name: EngineName) -> float:
    place = IMAGES if name == "docker" and IMAGES.is_dir() else cache_folder()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free / 1e9
