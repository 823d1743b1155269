"""Suggests a comparison when versions lack their Pythons: one message, and a command that works on this machine."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from orchestrator import catalog
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.engines.venv.engine import has_python
from orchestrator.errors import EnvironmentFailed
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.exit_error import join_failures

# The run folder of the command that failed exists already, and the index was recorded without its login.
REMOVED_OPTIONS = ("--versions", "--output", "--index-url")


def can_compare(planned: PlannedRun, ready: Collection[str]) -> bool:
    """Return whether the versions with these numbers can answer anything that was asked.

    Two versions can, or a version and its control, or all versions of a claim's statement, or one version whose cases
    the user's own workloads compare with each other.
    """
    if claims := planned.options.claims:
        device = planned.options.environments.device
        asked = [arms for claim in claims if device in claim.devices for arms in claim.linked]
    elif sum(version.name in ready for version in planned.selection.targets) >= 2:
        return True
    else:
        own = {name for name, workload in planned.workloads.items() if not workload.builtin}
        labels = {case.label for case in planned.selection.cases if case.workload in own}
        asked = [pair.arms for pair in planned.selection.pairs if not pair.across and pair.arms[0].case in labels]
    return any(all(version.name in ready for _, version in arms) for arms in asked)


def make_error(
    options: RunOptions, versions: Sequence[Version], failures: Mapping[str, EnvironmentFailed]
) -> EnvironmentFailed:
    """Return the error for a run that cannot continue.

    If Pythons are missing, its last line is a command that works on this machine.
    """
    message = "\n".join(join_failures(failures.values()))
    if not any(failure.lacks_python for failure in failures.values()):
        count = "no version" if len(failures) == len(versions) else "too few versions for a comparison"
        return EnvironmentFailed(f"{count} could be made ready:\n{message}")
    wanted = [version for version in versions if version.name not in failures and not version.changes]
    names = suggest(wanted, options.environments.device)
    if not options.command or len(names) < 2:
        return EnvironmentFailed(message)
    command = write_command(options.command, names)
    return EnvironmentFailed(f"{message}; the Pythons on this machine can run:\n{command}")


def suggest(wanted: Sequence[Version], device: FlavourName) -> tuple[str, ...]:
    """Return the names of versions to compare with the Pythons on this machine.

    Wanted versions come first. If fewer than two of them are usable, the newest and oldest releases fill the list.
    """
    usable = [version for version in wanted if has_python(version, device)]
    releases = [version for version in catalog.releases() if has_python(version, device)]
    ends = [*releases[-1:], *releases[:1]] if usable else [*releases[:1], *releases[-1:]]
    suggestions = list(dict.fromkeys([*usable, *ends]))
    return tuple(_name(version) for version in suggestions[: max(2, len(usable))])


def _name(version: Version) -> str:
    short = catalog.minor(version.number)
    return short if short in version.aliases else version.number


def write_command(command: Sequence[str], names: Sequence[str]) -> str:
    """Return the user's command with other versions; a command that names no versions becomes a plain run."""
    if not any(option.partition("=")[0] == "--versions" for option in command):
        return f"tfcompare run --versions {','.join(names)}"
    words: list[str] = []
    for before, option in pairwise(("", *command)):
        if option.partition("=")[0] not in REMOVED_OPTIONS and before not in REMOVED_OPTIONS:
            words.append(option)
    return shlex.join(["tfcompare", words[0], "--versions", ",".join(names), *words[1:]])
