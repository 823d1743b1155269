"""The settings of a folder: tfcompare.toml, or [tool.tfcompare] in pyproject.toml.

The settings of the working directory apply or, if it has none, those of the nearest folder above it that has some. A
setting has the name of a flag, and is its default in the commands that take settings. A typed flag takes precedence.
The folder may belong to a stranger, so a setting that is not known to be harmless counts only if the user trusts the
folder in which it was found.
"""

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from orchestrator.cli import parse
from orchestrator.cli.talk import say
from orchestrator.errors import UsageError
from orchestrator.files import RefusedEntry, read_text, read_text_in, read_toml
from orchestrator.options import DOCKER, VENV

# This variable names another file; if it is empty, there are no settings.
VARIABLE = "TFCOMPARE_CONFIG"
FILE, PROJECT = "tfcompare.toml", "pyproject.toml"
WHAT = "the settings"
NIGHTLY = "nightly"
# Settings that are lists have the plural of a flag's name.
PLURALS = {"targets": "target", "cases": "case"}
# The values of the first are paths, and those of the second may contain one, relative to the folder of the file.
PATHS = frozenset({"workload-folder", "ca-bundle", "wheelhouse", "history", "notify-file", "requirements"})
NAMED_PATHS = frozenset({"data", "target", "versions"})
# These words of a target name files.
FILES = ("wheel", "freeze")
# These belong to one call, and not to a folder.
OF_A_CALL = frozenset({"help", "resume", "dry-run", "output", "quiet", "verbose", "again", "if-due", "missed"})
# These commands take settings; the second group has its own cases, so it takes only what says where to run. The last of
# them also takes targets.
WHOLE, PLACED = ("run", "profile", "bisect", "upgrade"), ("reproduce", "check", "models")
# These values are checked here, because a command uses them only later.
CHECKS: Mapping[str, Callable[[str], object]] = {
    "budget": parse.budget,
    "margin": parse.margin,
    "threads": parse.threads,
    "cpuset": parse.cpus,
    "memory": parse.memory_mb,
    "timeout": lambda text: parse.seconds("--timeout", text),
    "limit": lambda text: parse.seconds("--limit", text),
}
# These choose neither code nor a place nor a recipient, so they count in every folder. Any other flag needs trust.
HARMLESS = frozenset({
    "backfill", "budget", "case", "columns", "control", "cpuset", "fail-on", "format", "hash-data", "isolation",
    "judge", "keep-xla-code", "limit", "margin", "metric", "only", "rounds", "saved-models", "seed", "shard", "sort",
    "suite", "threads", "timeout", "untuned-datasets",
})  # fmt: skip
# Such changes of versions also count. A path in a variable may name code, e.g. TF_PLUGGABLE_DEVICE_LIBRARY_PATH.
HARMLESS_CHANGE = re.compile(
    r"(?i:(?!.*(/|path|dir|file|home|librar|plug|dump)))(TF|XLA|KERAS|OMP)_\w+=.*|py=3\.\d+|keras=[23]"
)
TARGETS = ("target", "versions")
# A setting needs nothing, Docker or trust, or trust alone in order to count.
Needs = Literal["", "container", "trust"]
# A context keeps the defaults from the settings under this key.
META = "orchestrator.cli.settings"


@dataclass(frozen=True)
class Setting:
    """A setting as its flag takes it, and what it needs in order to count."""

    value: Any
    needs: Needs = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a file by the names of flags, and those for nightly runs."""

    path: Path
    # The trust of this folder decides; its path is relative to the working directory.
    folder: Path
    values: Mapping[str, Setting]
    nightly: Mapping[str, Setting]
    # The digest covers everything in the file.
    digest: str
    # A user who has named the file answers for what is in it.
    is_own: bool

    @property
    def is_trusted(self) -> bool:
        from orchestrator.catalog import trust

        return self.is_own or trust.is_everything_trusted() or trust.find_trust(self.folder).settings == self.digest

    def find_gated(self) -> dict[str, Setting]:
        """Return the settings that do not count in every folder, by their names in the file."""
        return {
            f"{table}{name_setting(flag)}": setting
            for table, values in (("", self.values), (f"{NIGHTLY}.", self.nightly))
            for flag, setting in values.items()
            if setting.needs
        }


@dataclass(frozen=True)
class Defaults:
    """The defaults of a command as click takes them, and which of them count only in a trusted folder."""

    settings: Settings | None = None
    by_command: dict[str, Any] = field(default_factory=dict)
    # The keys are names of parameters; the values are a setting's name, and what it needs in order to count.
    untrusted: Mapping[str, tuple[str, Needs]] = field(default_factory=dict)


def find_defaults(group: Any, words: Sequence[str]) -> Defaults:
    """Return the defaults of the command that these words call."""
    name = next((word for word in words if not word.startswith("-")), "")
    # A run that continues has all its settings in its plan.
    if name not in (*WHOLE, *PLACED, NIGHTLY) or any(word.partition("=")[0] == "--resume" for word in words):
        return Defaults()
    settings = read_settings(group)
    if settings is None:
        return Defaults()
    command = group.get_command(None, name)
    if name in WHOLE:
        return _make_defaults(settings, (name,), _for_command(command, settings.values))
    # This module is imported by now, because these commands take such flags.
    from orchestrator.cli.options import InstallationFlags, MachineFlags, MeasuringGpuFlags, SelectionFlags, names_of

    place = names_of(MachineFlags, MeasuringGpuFlags, InstallationFlags)
    if name in PLACED:
        targets = frozenset(TARGETS if name == PLACED[-1] else ())
        return _make_defaults(settings, (name,), _for_command(command, settings.values, place | targets))
    run = command.commands["run"]
    # A nightly run does not share the settings on how long to measure.
    shared = _for_command(run, settings.values, place | names_of(SelectionFlags))
    of_night = {**shared, **_for_command(run, settings.nightly)}
    # The other commands also check the flags of `run`.
    return _make_defaults(settings, ("run", "install", "serve"), of_night, name)


def _make_defaults(
    settings: Settings, commands: Sequence[str], chosen: Mapping[str, tuple[str, Setting]], group: str = ""
) -> Defaults:
    values = {name: each.value for name, (_, each) in chosen.items()}
    by_command: dict[str, Any] = {command: dict(values) for command in commands}
    gated = {name: (name_setting(flag), each.needs) for name, (flag, each) in chosen.items() if each.needs}
    untrusted = gated if gated and not settings.is_trusted else {}
    return Defaults(settings, {group: by_command} if group else by_command, untrusted)


def _for_command(
    command: Any, values: Mapping[str, Setting], params: frozenset[str] | None = None
) -> dict[str, tuple[str, Setting]]:
    """Return the settings whose flags the command has, with these flags, by the names of its parameters."""
    flags, chosen = flags_of(command), {}
    for name, setting in values.items():
        value = setting.value
        if name == "target" and name not in flags and not any(map(_is_changed, value)):
            # A command without targets takes versions without changes by another flag.
            name, value = "versions", ",".join(value)
        param = flags.get(name)
        if param is not None and param.multiple == isinstance(value, list) and (params is None or param.name in params):
            chosen[str(param.name)] = name, Setting(value, setting.needs)
    return chosen


def refuse_untrusted(context: Any) -> None:
    """Raise UsageError if a command is about to use settings that the user does not trust.

    Workloads in the folder need no trust if Docker runs them, so `auto` then means Docker.
    """
    defaults: Defaults = context.meta.get(META, Defaults())
    used = {param: each for param, each in defaults.untrusted.items() if is_setting(context, param)}
    # Typed targets replace those of the settings, and a program or a file has another folder.
    words = context.params.get("targets") or ()
    typed = [word for word in words if not parse.names_file(word)]
    if typed or any(context.params.get(name) and not is_setting(context, name) for name in ("versions", "target")):
        used = {param: each for param, each in used.items() if param not in ("target", "versions")}
    if context.find_root().obj or any(map(parse.names_file, words)):
        used.pop("workload_folder", None)
    engine = context.params.get("engine")
    keys = [key for key, needs in used.values() if needs == "trust" or engine == VENV]
    if keys:
        assert defaults.settings
        raise UsageError(
            f"{defaults.settings.path}: {', '.join(keys)} count{'s' * (len(keys) == 1)} only in a folder that you "
            "trust: `tfcompare trust` shows what is set and asks you; or type the flags yourself"
        )
    if used and engine == "auto":
        context.params["engine"] = DOCKER
        context.set_parameter_source("engine", context.get_parameter_source("workload_folder"))
        if not context.params.get("quiet"):
            say("note: --engine docker, since you have not trusted the workloads of this folder; see `tfcompare trust`")


def is_setting(context: Any, name: str) -> bool:
    """Return whether a parameter has its value from the settings."""
    return getattr(context.get_parameter_source(name), "name", "") == "DEFAULT_MAP"


def is_of_folder(context: Any, name: str) -> bool:
    """Return whether a parameter has its value from settings that the user has not named."""
    settings = context.meta.get(META, Defaults()).settings
    return is_setting(context, name) and not settings.is_own


def name_setting(flag: str) -> str:
    return next((many for many, one in PLURALS.items() if one == flag), flag)


def find_needs(flag: str, value: Any, folder: Path = Path()) -> Needs:
    """Return what a setting of a folder needs in order to count, if the user has not named the file."""
    if flag in TARGETS:
        texts = value if isinstance(value, list) else [value]
        return "" if all(map(_is_harmless_target, texts)) else "trust"
    if flag == "workload-folder":
        from orchestrator.catalog.workloads import is_inside

        path = Path(value)
        return "container" if ".." not in path.parts and is_inside((folder / path / "_").resolve(), folder) else "trust"
    return "" if flag in HARMLESS else "trust"


def _is_harmless_target(text: str) -> bool:
    """Return whether a target is a version, or versions, that change nothing but harmless variables."""
    from orchestrator.catalog import targets

    if all(map(targets.is_plain, targets.split_targets([text]))):
        return True
    try:
        changed = targets.parse_target(text)
    except UsageError:
        return False
    return not changed.is_foreign and all(map(HARMLESS_CHANGE.fullmatch, changed.changes))


def _is_changed(text: str) -> bool:
    return "=" in text or len(text.split()) > 1


def flags_of(command: Any) -> dict[str, Any]:
    """Return the parameters of a command by the long names of their flags, without those that belong to one call."""
    named = {max(param.opts, key=len).lstrip("-"): param for param in command.params if param.opts[0].startswith("-")}
    return {name: param for name, param in named.items() if name not in OF_A_CALL}


def find_folder() -> Path:
    """Return the nearest folder with settings, or the working directory if there are none."""
    found = _find(find_folders())
    return found.parent if found else Path()


def read_settings(group: Any, *, only_here: bool = False) -> Settings | None:
    """Return the settings in force, or only those of the working directory; raise UsageError if they are invalid."""
    named = None if only_here else os.environ.get(VARIABLE)
    if named == "":
        return None
    if named:
        path, folder, table = Path(named), Path(), read_toml(Path(named), WHAT)[0]
    elif found := _find([Path()] if only_here else find_folders()):
        path, folder, table = found, found.parent, _read_table(found) or {}
    else:
        return None
    digest = hashlib.sha256(json.dumps(table, sort_keys=True, default=repr).encode()).hexdigest()
    nightly = table.pop(NIGHTLY, {})
    if not isinstance(nightly, dict):
        raise UsageError(f"{path}: {NIGHTLY} must be a table: [{NIGHTLY}]")
    run, night = group.get_command(None, "run"), group.get_command(None, NIGHTLY).commands["run"]
    is_own = named is not None
    return Settings(
        path=path,
        folder=folder,
        values=_values(path, folder, "", table, flags_of(run), is_own=is_own),
        nightly=_values(path, folder, NIGHTLY, nightly, flags_of(night), is_own=is_own),
        digest=digest,
        is_own=is_own,
    )


def find_folders() -> Iterator[Path]:
    """Yield the working directory and the folders above it whose settings count, the nearest first.

    All of them belong to the user, no other user can write to them, and they are on one file system. The home folder
    and those above it are left out.
    """
    yield Path()
    try:
        here, home = Path.cwd(), Path.home().resolve()
        device = here.stat().st_dev
        for levels, folder in enumerate((here, *here.parents)):
            status = folder.stat()
            is_ours = status.st_uid == os.getuid() and not status.st_mode & stat.S_IWOTH
            if folder == home or status.st_dev != device or not is_ours:
                return
            if levels:
                yield Path(*[".."] * levels)
    except (OSError, RuntimeError):
        return


def _find(folders: Iterable[Path]) -> Path | None:
    """Return the file with the settings of the first folder that has some."""
    for folder in folders:
        own, project = folder / FILE, folder / PROJECT
        with suppress(PermissionError):
            has_own, is_ours = own.exists(), _mentions_tfcompare(project) and _read_table(project) is not None
            if has_own and is_ours:
                raise UsageError(f"there are settings in {own} and in [tool.tfcompare] of {project}: keep one of them")
            if has_own or is_ours:
                return own if has_own else project
    return None


def _read_table(path: Path) -> dict[str, Any] | None:
    """Return the table of settings in a file, or None if a project's file has none."""
    try:
        # A file above the working directory counts only if the user owns it, because other users may have put it there.
        table, _ = read_toml(path, WHAT, partial(read_text_in, owner=os.getuid() if path.parent != Path() else None))
    except UsageError as error:
        if isinstance(error.__cause__, RefusedEntry) and path.parent != Path():
            raise UsageError(f"{error}; with {VARIABLE}= in the environment, no settings are read") from error
        raise
    if path.name == FILE:
        return table
    tools = table.get("tool")
    if not isinstance(tools, dict) or "tfcompare" not in tools:
        return None
    if not isinstance(tools["tfcompare"], dict):
        raise UsageError(f"{path}: tool.tfcompare must be a table: [tool.tfcompare]")
    settings: dict[str, Any] = tools["tfcompare"]
    return settings


def _mentions_tfcompare(path: Path) -> bool:
    # The file belongs to other tools, which report what is wrong with it.
    try:
        return "tool.tfcompare" in read_text(path)
    except (OSError, UnicodeDecodeError):
        return False


def _values(
    path: Path, folder: Path, table: str, given: Mapping[str, Any], flags: Mapping[str, Any], *, is_own: bool
) -> dict[str, Setting]:
    where = f"{path}, [{table}]" if table else str(path)
    values = {}
    for key, value in given.items():
        name = PLURALS.get(key, key)
        if name not in flags or key in PLURALS.values():
            from orchestrator.catalog import did_you_mean

            known = list(map(name_setting, flags))
            raise UsageError(
                f"{where}: unknown setting {key!r}{did_you_mean(key, known)}; `tfcompare config` shows all"
            )
        try:
            converted = _convert(value, flags[name])
            check = CHECKS.get(name)
            if check:
                check(converted)
            if not is_own and name == "notify" and any("${" in url for url in converted):
                raise UsageError(
                    "notify: ${...} is filled in only where you write it yourself: pass --notify or --notify-file, or "
                    f"name a settings file of yours by {VARIABLE}"
                )
            needs = "" if is_own else find_needs(name, converted, folder)
            values[name] = Setting(_place(name, converted, folder), needs)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
        except TypeError as error:
            raise UsageError(f"{where}: {key}: {error}") from error
    return values


def _convert(value: Any, param: Any) -> Any:
    """Return a value as the flag takes it; for any other value raise TypeError, which says what the flag takes."""
    if param.is_flag:
        if not isinstance(value, bool):
            raise TypeError("it is true or false")
        return value
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, (str, int, float)) and not isinstance(part, bool) for part in parts):
        raise TypeError("it is a text or a number" + (", or a list of them" if param.multiple else ""))
    texts = list(map(str, parts))
    return texts if param.multiple else ",".join(texts)


def _place(flag: str, value: Any, folder: Path) -> Any:
    """Return a value with its paths relative to the working directory."""
    if folder == Path() or flag not in PATHS | NAMED_PATHS:
        return value
    if isinstance(value, list):
        return [_place(flag, text, folder) for text in value]
    if flag in PATHS:
        return _join(folder, value)
    if flag == "data":
        name, equals, path = value.partition("=")
        return f"{name}={_join(folder, path)}" if equals else _join(folder, value)
    with suppress(ValueError):
        words = [word.partition("=") for word in shlex.split(value)]
        if any(key in FILES for key, _, _ in words):
            return shlex.join(
                f"{key}={_join(folder, text)}" if key in FILES else f"{key}{equals}{text}"
                for key, equals, text in words
            )
    return value


def _join(folder: Path, path: str) -> str:
    return path if path.startswith("~") else str(folder / path)
