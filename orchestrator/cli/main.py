"""The command line: runs a command and returns an exit code.

This is the only place that exits, and the only place that catches TfCompareError.
"""

import errno
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from orchestrator import interrupts
from orchestrator.cli import crash
from orchestrator.cli.talk import say
from orchestrator.errors import Interrupted, TfCompareError, UsageError
from orchestrator.terminal import std_streams

# A full or read-only file system is never a bug, whichever code was writing.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

# The keys are commands in the order of help, and the values are their modules.
COMMANDS = {
    "run": "run",
    "why": "why",
    "models": "models",
    "reproduce": "reproduce",
    "profile": "profile",
    "bisect": "bisect",
    "upgrade": "upgrade",
    "atlas": "atlas",
    "nightly": "nightly",
    "history": "history",
    "report": "report",
    "export": "report",
    "comment": "report",
    "compare": "compare",
    "merge": "report",
    "fleet": "fleet",
    "images": "images",
    "environments": "environments",
    "list": "list",
    "doctor": "doctor",
    "init": "check",
    "check": "check",
    "config": "config",
    "trust": "trust",
    "mcp": "mcp",
    "completion": "completion",
}


class Commands(TyperGroup):
    """A group that imports a command's module only when the command is needed; only help needs all of them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = {}
        _hide_type_of_switches(self)
        # Typer suggests these names for a mistyped one.
        self.commands = dict.fromkeys(COMMANDS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from orchestrator.cli.settings import META, find_defaults

        ctx.obj = None
        # The words after `--` are the command line of the user's program.
        if args[:1] in (["run"], ["why"], ["upgrade"]) and "--" in args:
            at = args.index("--")
            args, ctx.obj = args[:at], tuple(args[at + 1 :])
        ctx.meta[META] = found = find_defaults(self, args)
        ctx.default_map = found.by_command
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if self.commands[cmd_name] is None:
            group = get_group(import_module(f"orchestrator.cli.{COMMANDS[cmd_name]}").app)
            # A module holds commands by name, or is itself a group of commands, such as `images`.
            command = group.commands.get(cmd_name, group)
            command.name = cmd_name
            _hide_type_of_switches(command)
            _guard(command)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]


def _guard(command: Any) -> None:
    """Make a command fail if it would use settings of a folder that the user does not trust."""
    for inner in getattr(command, "commands", {}).values():
        _guard(inner)
    parse_args = command.parse_args

    def parse_and_check(context: Any, words: list[str]) -> list[str]:
        from orchestrator.cli.settings import refuse_untrusted

        left: list[str] = parse_args(context, words)
        refuse_untrusted(context)
        return left

    command.parse_args = parse_and_check


def _hide_type_of_switches(command: Any) -> None:
    """Leave out what typer's help shows next to a flag without a value."""
    for inner in getattr(command, "commands", {}).values():
        _hide_type_of_switches(inner)
    for param in command.params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    find_help = command.get_help_option

    def get_help_option(context: Any) -> Any:
        option = find_help(context)
        if option is not None:
            option.metavar = ""
        return option

    command.get_help_option = get_help_option


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from platform import python_version

        from orchestrator import contract
        from orchestrator.bundled import find_own_number

        print(f"tfcompare {find_own_number()} (contract {contract.FINGERPRINT}, Python {python_version()})")
        raise typer.Exit


@app.callback(
    help="Is my code faster or slower in another TensorFlow version, by how much, and can I trust the result?",
)
def tfcompare(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the versions of tfcompare, its contract with worker processes, and Python.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Take the flags that come before a command."""


def main() -> NoReturn:
    sys.exit(call())


def call() -> int:
    """Run the command that the arguments name, report any error, and return the exit code."""
    std_streams.guard()
    interrupts.catch_signals()
    code = _exit_code(_command)
    # Writing what is still in a buffer may also fail, which Python would notice only when it shuts down.
    flushed = _exit_code(lambda: sys.stdout.flush())
    return code or flushed


def _command() -> object:
    # Typer imports its validation to read a command line, and a Tab should not wait for it.
    if sys.argv[1:2] == ["completion"] and sys.argv[3:4] == ["--"]:
        from orchestrator.cli.completion import complete

        complete(get_command(app), sys.argv[2], sys.argv[4:])
        return 0
    return app(standalone_mode=False)


def _exit_code(step: Callable[[], object]) -> int:
    try:
        # Typer turns an interrupt, and its own Exit, into a code.
        code = step()
        return code if isinstance(code, int) else 0
    except TfCompareError as error:
        return report_error(error)
    except (KeyboardInterrupt, typer.Abort):
        return Interrupted.exit_code
    except (Exception, SystemExit) as error:
        # typer has its own copy of click, whose usage errors can show themselves.
        if hasattr(error, "show"):
            error.show()
            return UsageError.exit_code
        if isinstance(error, OSError) and error.errno in FULL:
            where = error.filename or "a file"
            remedy = "choose another place" if error.errno == errno.EROFS else "make room, or choose another place"
            return report_error(UsageError(f"cannot write {where}: {error.strerror}; {remedy}"))
        # A SystemExit comes from a library, because nothing here raises one.
        return report_error(crash.record(error))


def report_error(error: TfCompareError) -> int:
    say(f"tfcompare: {error}")
    return error.exit_code
