"""`tfcompare config`: the settings in force, and where each comes from."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from orchestrator import redact
from orchestrator.cli.options import FormatFlags, with_options
from orchestrator.cli.settings import (
    NIGHTLY,
    Needs,
    Setting,
    Settings,
    find_folders,
    flags_of,
    name_setting,
    read_settings,
)
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import safe_text

app = typer.Typer()
DEFAULT = "default"
NEEDS: Mapping[Needs, str] = {"trust": "needs trust", "container": "needs trust without Docker"}


@dataclass(frozen=True)
class SettingInForce:
    """A setting of a command, its value, and the file or the variable that sets it."""

    command: str
    setting: str
    value: str | list[str] | bool | None
    source: str
    # The setting needs this in order to count: nothing, trust, or either Docker or trust.
    needs: Needs = ""

    @property
    def where(self) -> str:
        """Where it comes from, and whether it counts."""
        return f"{self.source}, {NEEDS[self.needs]}" if self.needs else self.source

    @property
    def text(self) -> str:
        if isinstance(self.value, list):
            return "\n".join(self.value)
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        return self.value or ""


@app.command("config")
@with_options
def config(context: typer.Context, output: FormatFlags) -> None:
    r"""Print the settings that are in force in this folder, and where each comes from.

    tfcompare reads tfcompare.toml, or \[tool.tfcompare] in pyproject.toml, in
    this folder or in the nearest one above that has either; see
    docs/settings.md. Settings that need trust count only after
    `tfcompare trust`.

    [bold]Examples[/bold]

      tfcompare config

      tfcompare config --format json
    """
    assert context.parent is not None
    group: Any = context.parent.command
    settings = read_settings(group)
    run, night = group.get_command(None, "run"), group.get_command(None, NIGHTLY).commands["run"]
    found = list(_of_command("run", run, settings.values if settings else {}, settings))
    if settings and settings.nightly:
        found += _of_command("nightly run", night, settings.nightly, settings, usual=False)
    if output.format == "json":
        print(strict_json.dump([asdict(each) for each in found], indent=2))
        return
    table = Table("command", "setting", "value", "from")
    for each in found:
        table.add_row(*map(safe_text, (each.command, each.setting, each.text, each.where)))
    console = Console()
    console.print(table)
    if settings is None:
        *_, last = find_folders()
        where = "in this folder" if last == Path() else f"from this folder up to {last.resolve()}"
        nothing = f"no tfcompare.toml, and no [tool.tfcompare] in a pyproject.toml, {where}"
        console.print(safe_text(f"{nothing}: all settings have their defaults"), soft_wrap=True)


def _of_command(
    name: str, command: Any, values: Mapping[str, Setting], settings: Settings | None, *, usual: bool = True
) -> Iterator[SettingInForce]:
    is_trusted = settings is None or not settings.find_gated() or settings.is_trusted
    for flag, param in flags_of(command).items():
        setting, variable = name_setting(flag), param.envvar if isinstance(param.envvar, str) else ""
        if variable and os.environ.get(variable):
            # A variable takes precedence over a file, as for every flag.
            masked = "****" if redact.may_be_secret(variable, os.environ[variable]) else os.environ[variable]
            yield SettingInForce(name, setting, masked, variable)
        elif settings and flag in values:
            needs: Needs = "" if is_trusted else values[flag].needs
            yield SettingInForce(name, setting, values[flag].value, str(settings.path), needs)
        elif usual:
            default = param.default if isinstance(param.default, (str, bool)) else None
            yield SettingInForce(name, setting, default, DEFAULT)
