"""The two ends of a question: they are installed, and what is in them is read."""

from pathlib import Path

from orchestrator.bisect.run import install_planned
from orchestrator.catalog.targets import Changed, is_plain, parse_target
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from orchestrator.why.cause import End


def install_ends(options: RunOptions, folder: Path, view: View) -> tuple[End, End]:
    """Install both targets of a question; raise the error of one that cannot be installed."""
    planned = plan_run(options, view)
    _, environments, failures = install_planned(planned, RunFolder(folder), view)
    if failures:
        raise next(iter(failures.values()))
    ends = []
    for version in planned.selection.versions:
        # The text of a target contains its full version number.
        text = version.changes.definition if version.changes else version.number
        facts = environments[version.name].facts
        ends.append(
            End(
                changed=read_target(text),
                name=version.name,
                python=facts.python,
                packages=facts.packages,
                is_image=bool(version.image),
            )
        )
    old, new = ends
    return old, new


def read_target(text: str) -> Changed:
    return Changed(version=text) if is_plain(text) else parse_target(text)


def write_target(changed: Changed) -> str:
    """Return the text of a target, which is only its version if nothing is changed."""
    return str(changed) if changed.changes or changed.name or not changed.version else changed.version


def name_rest(old: End, new: End) -> str:
    """Return what two ends differ in that cannot be undone: their TensorFlow, or '' if they have the same."""
    if old.tensorflow == new.tensorflow:
        return ""
    before, after = (_show_tensorflow(end) for end in (old, new))
    if before == after:
        return f"a different build of TensorFlow {before}"
    return f"{'' if old.changed.backend else 'TensorFlow '}{before} -> {after}"


def _show_tensorflow(end: End) -> str:
    changed = end.changed
    if changed.wheel or changed.image:
        return changed.name or str(changed.wheel or changed.image)
    return changed.version or changed.backend
