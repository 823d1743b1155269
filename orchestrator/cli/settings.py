"""The settings of a folder: tfcompare.toml, or [tool.tfcompare] in pyproject.toml, of the working directory.

A setting has the name of a flag, and is its default in the commands that take settings. What is typed goes before it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli import parse
from orchestrator.errors import UsageError

# Names another file; if it is empty, there are no settings.
VARIABLE = "TFCOMPARE_CONFIG"
FILE, PROJECT = Path("tfcompare.toml"), Path("pyproject.toml")
WHAT = "the settings"
NIGHTLY = "nightly"
# Lists go by what they hold.
PLURALS = {"targets": "target", "cases": "case"}
# These belong to one call, and not to a folder.
OF_A_CALL = frozenset({"help", "resume", "dry-run", "output", "quiet", "verbose", "again", "due"})
# The commands that take settings; those of the second take only what says where to run, for they have their own cases.
WHOLE, PLACED = ("run", "profile", "bisect"), ("reproduce", "check")
# Values that a command looks at only later.
CHECKS: Mapping[str, Callable[[str], object]] = {
    "budget": parse.budget,
    "margin": parse.margin,
    "threads": parse.threads,
    "cpuset": parse.cpus,
    "memory": parse.memory_mb,
    "timeout": lambda text: parse.seconds("--timeout", text),
    "limit": lambda text: parse.seconds("--limit", text),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a file by the names of flags, and those for nights."""

    path: Path
    values: Mapping[str, Any]
    nightly: Mapping[str, Any]


def find_defaults(group: Any, words: Sequence[str]) -> dict[str, Any]:
    """Return the defaults of the command that these words call, as click takes them."""
    name = next((word for word in words if not word.startswith("-")), "")
    # A run that continues has all its settings in its plan.
    if name not in (*WHOLE, *PLACED, NIGHTLY) or any(word.partition("=")[0] == "--resume" for word in words):
        return {}
    settings = read_settings(group)
    if settings is None:
        return {}
    command = group.get_command(None, name)
    if name in WHOLE:
        return {name: _for_command(command, settings.values)}
    # It is imported by now: these commands take such flags.
    from orchestrator.cli.options import InstallationFlags, MachineFlags, MeasuringGpuFlags, SelectionFlags, names_of

    place = names_of(MachineFlags, MeasuringGpuFlags, InstallationFlags)
    if name in PLACED:
        return {name: _for_command(command, settings.values, place)}
    run = command.commands["run"]
    # How long it may take is a separate matter for a night.
    shared = _for_command(run, settings.values, place | names_of(SelectionFlags))
    of_night = {**shared, **_for_command(run, settings.nightly)}
    # The others check the flags of `run`, too.
    return {name: dict.fromkeys(("run", "install", "serve"), of_night)}


def _for_command(command: Any, values: Mapping[str, Any], params: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the values of those flags that the command has, by the names of its parameters."""
    flags, chosen = flags_of(command), {}
    for name, value in values.items():
        if name == "target" and name not in flags and not any(map(_is_changed, value)):
            # Versions without changes go by another flag where there are no targets.
            name, value = "versions", ",".join(value)
        param = flags.get(name)
        if param is not None and param.multiple == isinstance(value, list) and (params is None or param.name in params):
            chosen[str(param.name)] = value
    return chosen


def _is_changed(text: str) -> bool:
    return "=" in text or len(text.split()) > 1


def flags_of(command: Any) -> dict[str, Any]:
    """Return the parameters of a command by the long names of their flags, those of one call left out."""
    named = {max(param.opts, key=len).lstrip("-"): param for param in command.params if param.opts[0].startswith("-")}
    return {name: param for name, param in named.items() if name not in OF_A_CALL}


def read_settings(group: Any) -> Settings | None:
    """Read the settings of the working directory, if it has any; raise UsageError for what is none."""
    found = _find()
    if found is None:
        return None
    path, table = found
    nightly = table.pop(NIGHTLY, {})
    if not isinstance(nightly, dict):
        raise UsageError(f"{path}: {NIGHTLY} must be a table: [{NIGHTLY}]")
    run, night = group.get_command(None, "run"), group.get_command(None, NIGHTLY).commands["run"]
    return Settings(path, _values(path, "", table, flags_of(run)), _values(path, NIGHTLY, nightly, flags_of(night)))


def _find() -> tuple[Path, dict[str, Any]] | None:
    from orchestrator.files import read_toml

    named = os.environ.get(VARIABLE)
    if named is not None:
        return (Path(named), read_toml(Path(named), WHAT)[0]) if named else None
    own = (FILE, read_toml(FILE, WHAT)[0]) if FILE.is_file() else None
    tools = read_toml(PROJECT, WHAT)[0].get("tool") if _mentions_tfcompare(PROJECT) else None
    if not isinstance(tools, dict) or "tfcompare" not in tools:
        return own
    if own:
        raise UsageError(f"there are settings in {FILE} and in [tool.tfcompare] of {PROJECT}: keep one of them")
    if not isinstance(tools["tfcompare"], dict):
        raise UsageError(f"{PROJECT}: tool.tfcompare must be a table: [tool.tfcompare]")
    return PROJECT, tools["tfcompare"]


def _mentions_tfcompare(path: Path) -> bool:
    # The file belongs to other tools: what is wrong with it is for them to say.
    try:
        return "tool.tfcompare" in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _values(path: Path, table: str, given: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    where = f"{path}, [{table}]" if table else str(path)
    values = {}
    for key, value in given.items():
        name = PLURALS.get(key, key)
        if name not in flags or key in PLURALS.values():
            from orchestrator.catalog import did_you_mean

            known = [next((many for many, one in PLURALS.items() if one == flag), flag) for flag in flags]
            raise UsageError(
                f"{where}: unknown setting {key!r}{did_you_mean(key, known)}; `tfcompare config` shows all"
            )
        try:
            values[name] = _convert(value, flags[name])
            check = CHECKS.get(name)
            if check:
                check(values[name])
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
        except TypeError as error:
            raise UsageError(f"{where}: {key}: {error}") from error
    return values


def _convert(value: Any, param: Any) -> Any:
    """Return a value as the flag takes it; raise TypeError, with what it takes, for any other."""
    if param.is_flag:
        if not isinstance(value, bool):
            raise TypeError("it is true or false")
        return value
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, (str, int, float)) and not isinstance(part, bool) for part in parts):
        raise TypeError("it is a text or a number" + (", or a list of them" if param.multiple else ""))
    texts = list(map(str, parts))
    return texts if param.multiple else ",".join(texts)
