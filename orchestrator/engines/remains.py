"""The removal of what killed runs have left on this machine."""

from orchestrator.engines import Engine, scratch
from orchestrator.engines.worker import cgroup, marked
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View


def sweep(engine: Engine, view: View) -> None:
    """Remove what killed runs have left, and report it in one line."""
    found = list(engine.sweep())
    ended = cgroup.reap_cgroups()
    removed = scratch.reap_folders()
    ended += sum(map(marked.end_escaped, removed))
    if ended:
        found.append(f"{ended} process{'' if ended == 1 else 'es'}")
    if removed:
        found.append(f"{format_count(len(removed), 'temporary folder')} in {removed[0].parent}")
    if found:
        view.say(f"removed what runs that were killed had left behind: {', '.join(found)}")
