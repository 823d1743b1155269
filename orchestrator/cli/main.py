"""The command line: runs a command and returns an exit code.

This is the only place that exits, and the only place that catches TfCompareError.
"""

import errno
import signal
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from orchestrator.cli import (
    bisect,
    compare,
    crash,
    doctor,
    history,
    images,
    list,
    nightly,
    profile,
    report,
    reproduce,
    run,
)
from orchestrator.cli.talk import say
from orchestrator.errors import Interrupted, TfCompareError, UsageError
from orchestrator.terminal import std_streams

# Never a bug, whoever writes.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version
        from platform import python_version

        from orchestrator import contract

        print(f"tfcompare {version('tfcompare')} (contract {contract.FINGERPRINT}, Python {python_version()})")
        raise typer.Exit


@app.callback(help="Is my TensorFlow code faster or slower in another TensorFlow, by how much, and can I believe it?")
def tfcompare(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of tfcompare, of its contract and of Python.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Take the flags that come before a command."""


# Each module imports at its top what describes its flags, and in its functions what they need: whatever is called, even
# --help, imports all of them.
for commands, name in (
    (run.app, None),
    (reproduce.app, None),
    (profile.app, None),
    (bisect.app, None),
    (nightly.app, "nightly"),
    (history.app, "history"),
    (report.app, None),
    (compare.app, None),
    (images.app, "images"),
    (list.app, None),
    (doctor.app, None),
):
    app.add_typer(commands, name=name)


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
        return report_error(error)
    except (KeyboardInterrupt, typer.Abort):
        return Interrupted.exit_code
    except (Exception, SystemExit) as error:
        # typer carries its own copy of click; its usage errors know how to show themselves.
        if hasattr(error, "show"):
            error.show()
            return UsageError.exit_code
        if isinstance(error, OSError) and error.errno in FULL:
            where = error.filename or "a file"
            return report_error(
                UsageError(f"cannot write {where}: {error.strerror}; make room, or choose another place")
            )
        # A SystemExit is a library's: nothing here raises one.
        return report_error(crash.record(error))


def report_error(error: TfCompareError) -> int:
    say(f"tfcompare: {error}")
    return error.exit_code
