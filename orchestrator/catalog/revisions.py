"""Revisions of the user's own code: the commits that targets name as `@REF`.

A revision is the folder with the workloads, or the project of a program, as git has it at a commit. A run keeps each
next to its copy of the folder as it is.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.catalog import git, pinned, program, targets
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.targets import SHORT_COMMIT
from orchestrator.catalog.version import Version
from orchestrator.errors import UsageError
from orchestrator.files import remove_tree
from orchestrator.model import Case, Workload


def pin_revisions(texts: Sequence[str], own: Path | None) -> tuple[str, ...]:
    """Return targets whose revisions are commits, so that a branch that moves changes nothing."""
    return tuple(text if targets.is_plain(text) else _find_revision(text, own) for text in texts)


def _find_revision(text: str, own: Path | None) -> str:
    changed = targets.parse_target(text)
    if not changed.revision or changed.commit:
        return text
    if own is None:
        raise UsageError(
            f"target {text!r}: @{changed.revision} is a revision of your code, and no workload of yours is "
            "measured: name its folder with --workload-folder"
        )
    try:
        git.find_prefix(own)
    except git.GitFailed as error:
        raise UsageError(f"target {text!r}: {own} is in no repository that git can read: {error}") from error
    try:
        return str(replace(changed, commit=git.find_commit(own, changed.revision)))
    except git.GitFailed as error:
        why = "" if str(error) == git.NO_COMMIT else f" ({error})"
        raise UsageError(
            f"target {text!r}: the repository of {own} has no commit named {changed.revision}{why}; "
            f"`git -C {shlex.quote(str(own))} log --oneline --all` lists what there is"
        ) from error


def find_commits(definitions: Sequence[str]) -> dict[str, str]:
    """Return the commits of the targets that have a revision, by the names of the targets."""
    changed = map(targets.parse_target, definitions)
    return {each.build_name(each.version): each.commit for each in changed if each.revision}


def name_folder(commit: str) -> str:
    """Return where a run keeps a revision in its copy of the user's folder; no package has such a name."""
    return f"@{commit[:SHORT_COMMIT]}"


@contextmanager
def open_revision(own: Path, commit: str) -> Iterator[Path]:
    """Yield a folder with the user's code at a commit.

    The copy of a run is in no repository, and has the folder already.
    """
    kept = own / name_folder(commit)
    with TemporaryDirectory(prefix="tfcompare-revision-") as made:
        code = Path(made) / name_folder(commit)
        try:
            git.extract(own, commit, code, git.find_prefix(own))
        except git.GitFailed as error:
            if not kept.is_dir():
                raise UsageError(f"{own} at {commit[:SHORT_COMMIT]} cannot be used: {error}") from error
            code = kept
        yield code


def copy_revision(own: Path, commit: str, copy: Path) -> Path:
    """Copy the user's code at a commit into a run's copy of the folder, unless it is there already."""
    kept = copy / name_folder(commit)
    with open_revision(own, commit) as code:
        # The copy of a folder has what was in it under this name.
        if not code.is_relative_to(own):
            remove_tree(kept)
            if large := pinned.pin(code, kept):
                raise UsageError(
                    f"{own} at {commit[:SHORT_COMMIT]}: {large[0].name} is too large to be copied; keep such data out "
                    "of the repository, and name them with DATA"
                )
    return kept


def check_revisions(
    versions: Sequence[Version], own: Path | None, measured: Mapping[str, Workload], cases: Sequence[Case],
    words: Sequence[str],
) -> None:  # fmt: skip
    """Raise UsageError unless each revision has all that is measured; `words` are those of a program."""
    for version in versions:
        if not (version.changes and version.changes.commit):
            continue
        mine = [workload for workload in measured.values() if not workload.builtin]
        if own is None or not mine:
            raise UsageError(f"target {version.name}: no workload of yours is measured, and so no revision of it")
        with open_revision(own, version.changes.commit) as code:
            try:
                script = program.find_script(words) if words else None
                if script and not (code / script).is_file():
                    raise UsageError(f"{code}: there is no {script}")
                for workload in mine if not words else ():
                    _check_workload(code, workload, [case for case in cases if case.workload == workload.name], version)
            except UsageError as error:
                told = str(error).replace(str(code), f"{own} at {version.changes.commit[:SHORT_COMMIT]}")
                raise UsageError(f"target {version.name}: {told}") from error


def _check_workload(code: Path, workload: Workload, cases: Sequence[Case], version: Version) -> None:
    path = code / workload.path.name
    if not path.is_file():
        raise UsageError(f"{code}: there is no {path.name}")
    revised = suites.read_workload(path, builtin=False)
    for case in cases:
        params = dict(case.params)
        if params.keys() != revised.params.keys() or any(
            value not in revised.params[name] for name, value in params.items()
        ):
            raise UsageError(f"{path} has no case {case.label}: select those that both have with --case")
    if set(revised.requirements) != set(workload.requirements):
        raise UsageError(f"{path}: its REQUIREMENTS are others than now; give both the same")
    if not revised.data.keys() <= workload.data.keys():
        raise UsageError(f"{path}: its DATA names more than now; give both the same")
    suites.check_syntaxes(revised, [version])
