"""docs/commands.md: every command with its flags, and the exit codes, as the code declares them."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from typer.main import get_command

from orchestrator import errors
from orchestrator.cli import main
from tools.docs import WRITTEN

HEAD = """
Every command has `--help`. `tfcompare completion SHELL` prints a script that completes commands, flags, versions,
cases, runs and claims in bash, zsh and fish. Flags that read an environment variable name it;
[all variables](environment.md).
"""


def commands_page() -> str:
    named = list(_commands(get_command(main.app), "tfcompare"))
    lines = ["# Commands", WRITTEN, HEAD, "| command | what it does |", "|---|---|"]
    for name, command in named:
        lines.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(_summary(command))} |")
    for name, command in named:
        lines += ["", f"## {name}", "", _summary(command), *_arguments(command), *_flags(command)]
    return "\n".join([*lines, "", *_exit_codes()]) + "\n"


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for inner in command.list_commands(None):
        found = command.get_command(None, inner)
        if not found.hidden:
            yield from _commands(found, f"{name} {inner}")


def _summary(command: Any) -> str:
    return _plain((command.help or "").strip().partition("\n\n")[0].replace("\n", " "))


def _arguments(command: Any) -> Iterator[str]:
    shown = [param for param in command.params if param.param_type_name == "argument" and not param.hidden]
    if shown:
        yield from ("", "| argument | what it is |", "|---|---|")
    for param in shown:
        name = param.metavar or param.name.upper()
        yield f"| `{name if param.required else f'[{name}]'}` | {_cell(_plain(param.help or ''))} |"


def _flags(command: Any) -> Iterator[str]:
    by_panel: dict[str, list[Any]] = {}
    for param in command.params:
        if param.param_type_name == "option" and not param.hidden:
            by_panel.setdefault(param.rich_help_panel or "Options", []).append(param)
    if by_panel:
        yield from ("", "| flag | what it does | default |", "|---|---|---|")
    for panel, params in sorted(by_panel.items(), key=lambda each: each[0] != "Options"):
        if len(by_panel) > 1:
            yield f"| **{panel}** | | |"
        for param in params:
            yield f"| {_names(param)} | {_cell(_plain(param.help or ''))}{_variable(param)} | {_default(param)} |"


def _names(param: Any) -> str:
    value = "" if param.is_flag else f" {param.metavar or 'VALUE'}"
    *short, longest = (*param.secondary_opts, *sorted(param.opts, key=len))
    return ", ".join([f"`{_cell(longest + value)}`", *(f"`{name}`" for name in short)])


def _variable(param: Any) -> str:
    names = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    return f" `{names[0]}`" if names else ""


def _default(param: Any) -> str:
    if param.is_flag or param.default in (None, "", ()) or callable(param.default):
        return ""
    return f"`{param.default}`"


def _plain(text: str) -> str:
    """Return help without the markup of a terminal."""
    return re.sub(r"\[/?bold\]", "", text).replace("\\[", "[").strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _exit_codes() -> Iterable[str]:
    """Return the table in the docstring of orchestrator/errors.py."""
    docstring = ast.get_docstring(ast.parse(errors_source())) or ""
    yield from ("## Exit codes", "", "| code | when |", "|---|---|", "| 0 | the command did what it was asked |")
    for code, when in re.findall(r"^\s+[|`]- \w+\s+(\d+)\s+(.+)$", docstring, re.MULTILINE):
        yield f"| {code} | {_cell(when)} |"


def errors_source() -> str:
    with open(errors.__file__, encoding="utf-8") as source:
        return source.read()
