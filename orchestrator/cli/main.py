"""The command line: runs a command and returns an exit code.

This is the only place that exits, and the only place that catches TfCompareError.
"""

import errno
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn, cast

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_group

from orchestrator.cli import crash
from orchestrator.errors import Interrupted, TfCompareError, UsageError
from orchestrator.terminal import std_streams
from orchestrator.terminal.text import lines

# Which module has which command, in the order of the help.
COMMANDS = {
    "run": "run",
    "reproduce": "reproduce",
    "profile": "profile",
    "bisect": "bisect",
    "nightly": "nightly",
    "history": "history",
    "report": "report",
    "compare": "compare",
    "export": "report",
    "images": "images",
    "list": "list",
    "doctor": "doctor",
}

# Never a bug, whoever writes.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class Commands(TyperGroup):
    """A group that imports a command only when it is called.

    Importing what measures and draws takes a second, and other commands need none of it.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Their names are known before they are, so that a mistyped one can be told the nearest.
        self.commands = cast(Any, dict.fromkeys(COMMANDS))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        group = get_group(import_module(f"orchestrator.cli.{COMMANDS[cmd_name]}").app)
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
    """Provide the function without which Typer does not turn an app into a program."""


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    sys.exit(call())


def call() -> int:
    """Run the command that the arguments name, report any error, and return the exit code."""
    std_streams.guard()
    # A polite end from outside must free containers and keep results just as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    code = _exit_code(lambda: app(standalone_mode=False))
    # What is still in a buffer may not be writable either, and Python would only find out when it shuts down.
    flushed = _exit_code(lambda: sys.stdout.flush())
    return code or flushed


def _exit_code(step: Callable[[], object]) -> int:
    try:
        # Typer turns an interrupt, and its own Exit, into a code.
        code = step()
        return code if isinstance(code, int) else 0
    except TfCompareError as error:
        return report(error)
    except (KeyboardInterrupt, typer.Abort):
        return Interrupted.exit_code
    except (Exception, SystemExit) as error:
        # typer carries its own copy of click; its usage errors know how to show themselves.
        if hasattr(error, "show"):
            error.show()
            return UsageError.exit_code
        if isinstance(error, OSError) and error.errno in FULL:
            where = error.filename or "a file"
            return report(UsageError(f"cannot write {where}: {error.strerror}; make room, or choose another place"))
        # A SystemExit is a library's: nothing here raises one.
        return report(crash.record(error))


def report(error: TfCompareError) -> int:
    Console(stderr=True).print(lines(f"tfcompare: {error}"), soft_wrap=True)
    return error.exit_code
