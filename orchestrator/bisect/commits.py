"""Commits of a package as candidates of a search: which lie between two ends, and the wheel that each becomes."""

import hashlib
import os
import re
import shlex
import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from orchestrator import files
from orchestrator.bisect.state import Question, State
from orchestrator.catalog import git, targets
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.wheel import read_package
from orchestrator.engines import SOURCE, WHEELS, Environment
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.choose import choose_engine
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.measure.session import make_environments
from orchestrator.options import VENV
from orchestrator.plan.planning import plan_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.view import View

# These repositories are read if the user names no checkout.
REPOSITORIES = {"keras": "https://github.com/keras-team/keras.git"}
MOST_COMMITS, MOST_MB = 20_000, 500


def find_repository(question: Question, view: View) -> Path:
    """Return the checkout that the user named, or a copy of the package's public repository."""
    package = question.package
    if package in targets.TENSORFLOWS:
        raise UsageError(
            f"--over {question.over}: a build of TensorFlow takes hours; --nightlies searches the builds of each day"
        )
    if question.source:
        try:
            git.find_prefix(question.source)
        except git.GitFailed as error:
            raise UsageError(f"--source {question.source}: git cannot read it: {error}") from error
        return question.source
    if package not in REPOSITORIES:
        known = ", ".join(REPOSITORIES)
        raise UsageError(
            f"--over {question.over}: add --source with a checkout of its repository; without one, tfcompare knows "
            f"only the repository of {known}"
        )
    run = question.run
    name, engine = choose_engine(run.engine, run.isolation, run.environments, view)
    engine.close()
    _refuse_builds_here(question, name)
    folder = _locate_repository(question)
    view.say(f"reading the commits of {package} from {REPOSITORIES[package]}")
    try:
        git.mirror(REPOSITORIES[package], folder)
    except git.GitFailed as error:
        raise UsageError(
            f"--over {question.over}: {REPOSITORIES[package]} cannot be read: {error}; name a checkout with --source"
        ) from error
    return folder


def _refuse_builds_here(question: Question, engine: str) -> None:
    """Raise UsageError if a public repository would be built outside of a container."""
    if question.source is None and engine == VENV:
        raise UsageError(
            f"--over {question.over}: a build runs code of the repository, and there is no container here: take "
            "--engine docker, or name a checkout that you trust with --source"
        )


def find_end(question: Question, text: str, repository: Path) -> tuple[str, str]:
    """Return the commit that an end of a search names, and the target without the package."""
    package = question.package
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: a quotation mark is not closed") from error
    named = [word for word in words if canonicalize_name(word.partition("@")[0].partition("==")[0]) == package]
    refs: list[str] = []
    if len(named) == 1:
        _, is_commit, ref = named[0].partition("@")
        number = named[0].partition("==")[2]
        refs = [ref] if is_commit else [f"v{number}", number, f"{package}-{number}"] if number else []
    if not refs:
        raise UsageError(
            f"'{text}': --over {question.over} needs a target with one release or commit of it, such as "
            f"'2.20 {package}==3.7.0' or '2.20 {package}@COMMIT'"
        )
    for ref in refs:
        if not targets.REVISION.fullmatch(f"@{ref}"):
            raise UsageError(f"'{text}': {ref} names no commit")
        try:
            commit = git.find_commit(repository, ref)
        except git.GitFailed:
            continue
        return commit, shlex.join(word for word in words if word not in named)
    raise UsageError(f"'{text}': the repository {repository} has no {' and no '.join(refs)}")


def list_candidates(question: Question, repository: Path, good: str, bad: str) -> tuple[str, ...]:
    """Return the names of both commits and of those between them on the branch of the second one."""
    try:
        between = git.list_commits(repository, good, bad)
    except git.GitFailed as error:
        raise UsageError(f"the commits of {repository} cannot be listed: {error}") from error
    if not between:
        short = [commit[: targets.SHORT_COMMIT] for commit in (bad, good)]
        raise UsageError("--bad {} is not newer than --good {}: no commit leads from one to the other".format(*short))
    if len(between) > MOST_COMMITS:
        raise UsageError(f"{len(between)} commits lie between --good and --bad; name two that are closer together")
    return tuple(f"{question.package}-{commit[: targets.SHORT_COMMIT]}" for commit in (good, *between))


def build_wheels(folder: Path, state: State, names: tuple[str, ...], view: View) -> dict[str, Path]:
    """Return the wheel of each candidate, and build missing wheels with the engine that the search measures with.

    Raises EnvironmentFailed, with the name of the candidate, if one cannot be built.
    """
    question, run = state.question, state.question.run
    base = shlex.join([question.version, *question.changes])
    name, engine = choose_engine(state.engine or run.engine, run.isolation, run.environments, view)
    with closing(engine):
        kept = {each: _find_place(question, each, f"{name} {base}") for each in names}
        missing = [each for each in names if _find_wheel(kept[each]) is None]
        if missing:
            _refuse_builds_here(question, name)
            planned = plan_run(replace(run, versions=(base,)), view, fewest=1)
            made, failures = make_environments(planned.selection.versions, engine, RunFolder(folder), view)
            for failure in failures.values():
                raise failure
            [environment] = made.values()
            for each in missing:
                view.preparing(each, "building its wheel")
                _build(question, each, environment, kept[each], BuildLog(folder / "logs" / f"{each}.log", view, each))
    return {each: wheel for each in names if (wheel := _find_wheel(kept[each]))}


def show_commit(question: Question, name: str) -> str:
    """Return a command, or an address, that shows the change of a candidate."""
    commit = name.removeprefix(f"{question.package}-")
    if question.source:
        return f"git -C {shlex.quote(str(question.source))} show {commit}"
    return f"{REPOSITORIES[question.package].removesuffix('.git')}/commit/{commit}"


def _locate_repository(question: Question) -> Path:
    return question.source or cache() / "repositories" / f"{question.package}.git"


def _find_commit(question: Question, name: str) -> str:
    """Return the whole hash of a candidate's commit; raise EnvironmentFailed if the repository no longer has it."""
    try:
        return git.find_commit(_locate_repository(question), name.removeprefix(f"{question.package}-"))
    except git.GitFailed as error:
        raise EnvironmentFailed(f"its commit cannot be read: {error}", target=name) from error


def _find_place(question: Question, name: str, built_with: str) -> Path:
    """Return where a candidate's wheel is kept; the key tells apart commits whose short hashes are the same."""
    key = hashlib.sha256(f"{built_with} {_find_commit(question, name)}".encode()).hexdigest()[:12]
    return cache() / "commits" / f"{name}-{key}"


def _find_wheel(kept: Path) -> Path | None:
    return next(iter(sorted(kept.glob("*.whl"))), None)


def _build(question: Question, name: str, environment: Environment, kept: Path, log: BuildLog) -> None:
    """Build the wheel of a candidate in an environment; what the build leaves is not trusted."""
    repository, commit = _locate_repository(question), _find_commit(question, name)
    with files.writing(cache(), "set TFCOMPARE_CACHE to another folder", EnvironmentFailed):
        kept.parent.mkdir(parents=True, exist_ok=True)
        # The folder is in the cache, because an engine can also reach that from a container.
        work = Path(tempfile.mkdtemp(prefix=".build-", dir=kept.parent))
        try:
            git.extract(repository, commit, work / SOURCE, git.find_prefix(repository))
            (work / WHEELS).mkdir()
            environment.build(work, log)
            with files.make_folder_atomically(kept) as made:
                _keep_wheel(work, made, question.package)
        except git.GitFailed as error:
            raise EnvironmentFailed(f"its commit cannot be read: {error}", target=name) from error
        except (EnvironmentFailed, files.RefusedEntry, UsageError) as error:
            told = error.headline if isinstance(error, EnvironmentFailed) else error
            raise EnvironmentFailed(f"its wheel could not be built: {told}; see {log.path}", target=name) from error
        finally:
            files.remove_tree(work)


def _keep_wheel(work: Path, made: Path, package: str) -> None:
    """Copy the one wheel that a build has left; raise RefusedEntry or UsageError for anything else."""
    with files.open_folder(work, WHEELS) as handle:
        names = os.listdir(handle)
    if len(names) != 1 or not re.fullmatch(r"[\w.+-]+\.whl", names[0]):
        raise files.RefusedEntry(
            f"it left {name_some(list(map(ascii, names))) or 'nothing'} instead of one wheel", work / WHEELS
        )
    with files.read_inside(work, f"{WHEELS}/{names[0]}") as wheel, (made / names[0]).open("xb") as file:
        if os.fstat(wheel.fileno()).st_size > MOST_MB * 10**6:
            raise files.RefusedEntry(f"its wheel is larger than {MOST_MB} MB", work / WHEELS)
        shutil.copyfileobj(wheel, file)
    if (found := read_package(made / names[0]).name) != package:
        raise UsageError(f"it is the wheel of {found}")
