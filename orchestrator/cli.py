"""The command line: a command in, an exit code out. The sole place that exits, the sole catcher of TfCompareError."""

import signal
import sys
from importlib import import_module
from typing import Any, NoReturn, cast

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_group

from orchestrator.errors import TfCompareError
from orchestrator.plain import lines

# Which module has which command, in the order of the help.
COMMANDS = {
    "run": "cli_measure",
    "reproduce": "cli_measure",
    "profile": "cli_measure",
    "bisect": "cli_bisect",
    "nightly": "cli_nightly",
    "history": "cli_history",
    "report": "cli_runs",
    "compare": "cli_runs",
    "export": "cli_runs",
    "images": "cli_images",
    "list": "cli_runs",
    "doctor": "cli_runs",
}


class Commands(TyperGroup):
    """Imports a command when it is called: what measures and draws takes a second, and others need none of it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Their names are known before they are, so that a mistyped one can be told the nearest.
        self.commands = cast(Any, dict.fromkeys(COMMANDS))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        group = get_group(import_module(f"orchestrator.{COMMANDS[cmd_name]}").app)
        command = group.commands.get(cmd_name, group)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help="Is my TensorFlow code faster or slower in another TensorFlow, by how much, and can I believe it?")
def tfcompare() -> None:
    """Typer makes a program of an app only where it finds a function."""


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    # A polite end from outside must free containers and keep results just as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # What typer has caught itself, an interrupt among it, comes back as a code.
        sys.exit(app(standalone_mode=False) or 0)
    except TfCompareError as error:
        Console(stderr=True).print(lines(f"tfcompare: {error}"), soft_wrap=True)
        sys.exit(error.exit_code)
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # typer carries its own copy of click; its usage errors know how to show themselves.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(error.exit_code)
        raise
