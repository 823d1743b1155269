"""Candidates for the word at the cursor of an unfinished command line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.bundled import WORKLOADS
from orchestrator.errors import TfCompareError

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Candidate:
    """A word that fits; if it is `whole`, a blank follows it."""

    word: str
    # Only some shells show this description.
    about: Callable[[], str] = str
    whole: bool = True


@dataclass(frozen=True)
class Place:
    """The place of an unfinished word: its command, and the flag or argument that it is a value of, if any."""

    command: Any
    param: Any
    # The words may name a folder with the user's own workloads.
    workload_folder: Path | None


def complete_words(root: Any, words: Sequence[str], unfinished: str) -> list[Candidate]:
    """Return what continues the words; nothing where only files fit."""
    place = find_unfinished(root, words)
    start, equals, value = unfinished.partition("=")
    if unfinished.startswith("-") and equals:
        flag = _flag(place.command, start)
        inner = _values(Place(place.command, flag, place.workload_folder), value) if flag else ()
        found: Iterable[Candidate] = (Candidate(f"{start}={each.word}", each.about, each.whole) for each in inner)
    elif unfinished.startswith("-"):
        found = _flags(place.command)
    elif place.param is None and hasattr(place.command, "commands"):
        found = _commands(place.command, unfinished)
    else:
        found = _values(place, unfinished)
    return [each for each in found if each.word.startswith(unfinished)]


def find_unfinished(root: Any, words: Sequence[str]) -> Place:
    command, waiting, folder = root, None, None
    given = 0
    for word in words:
        if waiting is not None:
            folder = Path(word) if waiting.name == "workload_folder" else folder
            waiting = None
        elif word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            flag = _flag(command, name)
            waiting = flag if not equals else None
            folder = Path(value) if equals and flag and flag.name == "workload_folder" else folder
        elif hasattr(command, "commands") and (inner := command.get_command(None, word)):
            command = inner
        else:
            given += 1
    if waiting is None and not hasattr(command, "commands"):
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        open_ones = [param for index, param in enumerate(arguments) if index >= given or param.nargs == -1]
        waiting = open_ones[0] if open_ones else None
    return Place(command, waiting, folder)


def _flag(command: Any, name: str) -> Any:
    """Return the flag of this name if it takes a value, or None."""
    takes = (param for param in command.params if param.param_type_name == "option" and not param.is_flag)
    return next((param for param in takes if name in param.opts), None)


def _flags(command: Any) -> Iterator[Candidate]:
    for param in command.params:
        if param.param_type_name == "option" and not param.hidden:
            yield Candidate(max(param.opts, key=len), partial(_sentence, param.help))


def _commands(group: Any, unfinished: str) -> Iterator[Candidate]:
    """Yield commands. The module of a command is imported only if the shell shows its description."""
    for name in group.list_commands(None):
        if name.startswith(unfinished):
            yield Candidate(name, partial(_help_of, group, name))


def _help_of(group: Any, name: str) -> str:
    return _sentence(group.get_command(None, name).help)


def _sentence(help: str | None) -> str:
    return (help or "").strip().partition("\n")[0].replace("\\[", "[")


def _values(place: Place, unfinished: str) -> Iterator[Candidate]:
    param = place.param
    if param is None:
        return
    try:
        if param.name in VALUES:
            yield from VALUES[param.name](place, unfinished)
        else:
            yield from map(Candidate, getattr(param.type_descriptor.parameter_info.parser, "values", ()))
    except (TfCompareError, OSError, ValueError):
        # The command itself reports a table or a folder that cannot be read.
        return


def _versions(place: Place, unfinished: str) -> Iterator[Candidate]:
    """Yield versions; in a list or a range, only those that it does not name yet."""
    several = place.param.name == "versions" and place.param.param_type_name == "option"
    before, comma, last = unfinished.rpartition(",") if several else ("", "", unfinished)
    first, dots, _ = last.partition("..")
    named = {*before.split(","), first if dots else ""}
    for name in _version_names(last.rpartition("..")[2], series=several and not dots):
        if name not in named:
            yield Candidate(f"{before}{comma}{first + dots if dots else ''}{name}", whole=not several)


def _version_names(start: str, *, series: bool) -> Iterator[str]:
    from orchestrator import catalog

    versions = catalog.version_names()
    yield from (aliases[0] if aliases else number for number, *aliases in versions)
    if start.count(".") > 1:
        yield from (number for number, *aliases in versions if aliases)
    yield from ("nightly", *((catalog.LATEST, catalog.ALL, "1.*", "2.*") if series else ()))


def _cases(place: Place, unfinished: str) -> Iterator[Candidate]:
    """Yield workloads, then a workload's parameters, then the values of one."""
    from orchestrator.catalog import workloads

    name, bracket, inside = unfinished.partition("[")
    paths = {path.stem: path for path in workloads.files_of(place.workload_folder)}
    names = [each for each in paths if each == name or (not bracket and each.startswith(name))]
    if not bracket:
        # A single match may be meant as a whole or with its parameters.
        yield from map(Candidate, names)
        yield from (Candidate(f"{each}[", whole=False) for each in names if len(names) == 1)
        return
    if not names:
        return
    params = workloads.read_workload(paths[name], builtin=False).params
    before, comma, last = inside.rpartition(",")
    chosen = {part.partition("=")[0] for part in before.split(",")}
    free = [param for param in params if param not in chosen]
    head = f"{name}[{before}{comma}"
    param, equals, value = last.partition("=")
    if not equals:
        yield from (Candidate(f"{head}{each}=", whole=False) for each in free)
    elif param in free:
        values, bar, _ = value.rpartition("|")
        for each in params[param]:
            yield Candidate(f"{head}{param}={values}{bar}{each}]")
            if len(free) > 1:
                yield Candidate(f"{head}{param}={values}{bar}{each},", whole=False)


def _suites(place: Place, unfinished: str) -> Iterator[Candidate]:
    if place.command.name == "reproduce":
        from orchestrator.cli.reproduce import SUITES

        yield from map(Candidate, SUITES)
        return
    from orchestrator.catalog import workloads

    for suite in workloads.all_suites().values():
        yield Candidate(suite.name, partial(str, suite.summary))


def _claims(place: Place, unfinished: str) -> Iterator[Candidate]:
    yield from (Candidate(path.stem) for path in sorted((WORKLOADS / "claims").glob("*.toml")))


def _runs(place: Place, unfinished: str) -> Iterator[Candidate]:
    """Yield run folders below the folder that was typed, the newest first; `last` and those of runs/ if none was.

    After `bisect`, these are the folders of searches.
    """
    from orchestrator.cli.runs import LAST
    from orchestrator.results.find_runs import PLAN, SEARCH, runs_in

    folder = unfinished.rpartition("/")[0]
    paths = runs_in(Path(folder or "runs"), SEARCH if place.command.name == "bisect" else PLAN)
    if paths and not folder:
        yield Candidate(LAST, partial(str, paths[0]))
    yield from (Candidate(f"{folder or 'runs'}/{path.name}") for path in paths)


def _listings(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.cli.list import LISTINGS

    yield from map(Candidate, LISTINGS)


def _several(names: Iterable[str], unfinished: str, signs: Sequence[str] = ("",)) -> Iterator[Candidate]:
    """Yield names for a list with commas, each of which may have a sign in front."""
    before, comma, _ = unfinished.rpartition(",")
    named = before.split(",")
    for name in names:
        for sign in signs:
            if name not in named:
                yield Candidate(f"{before}{comma}{sign}{name}", whole=False)


def _kinds(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.reports.filter_sort import KINDS

    yield from _several(KINDS, unfinished)


def _outcomes(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.metrics.gates import USUAL

    yield from _several(USUAL, unfinished)


def _metrics(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.metrics import NAMES

    yield from _several(NAMES, unfinished)


def _sorts(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.reports.filter_sort import SORTS

    yield from map(Candidate, SORTS)


def _columns(place: Place, unfinished: str) -> Iterator[Candidate]:
    from orchestrator.reports.columns import COLUMNS

    yield from _several(COLUMNS, unfinished, ("", "+") if "," not in unfinished else ("",))


def _shells(place: Place, unfinished: str) -> Iterator[Candidate]:
    yield from map(Candidate, SHELLS)


# The keys are names of flags and arguments. Any other flag with fixed values offers those values.
VALUES: dict[str, Callable[[Place, str], Iterator[Candidate]]] = {
    "versions": _versions, "version": _versions, "good": _versions, "bad": _versions,
    "targets": _versions, "target": _versions,
    "case": _cases, "suite": _suites, "claim": _claims,
    "run": _runs, "runs": _runs, "resume": _runs, "earlier": _runs, "later": _runs,
    "what": _listings, "only": _kinds, "sort": _sorts, "columns": _columns, "shell": _shells,
    "fail_on": _outcomes, "metric": _metrics,
}  # fmt: skip
