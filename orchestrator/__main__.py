"""The entry point of `tfcompare`. Whatever happens around a command, the exit code is one of those in `errors`."""

import os
import sys
import threading
from typing import NoReturn

from orchestrator.errors import EngineUnavailable
from orchestrator.machine.supported import find_system_obstacle


def main() -> NoReturn:
    # This must come before any import of a module that exists only on Linux.
    if obstacle := find_system_obstacle():
        print(f"tfcompare: {obstacle}", file=sys.stderr)
        sys.exit(EngineUnavailable.exit_code)
    from orchestrator import interrupts

    try:
        code = _call()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        # Not even an error could be reported, most likely because a package that tfcompare needs is missing.
        if sys.stderr:
            told = f"{type(error).__name__}: {error}"
            print(f"tfcompare: {told}; install tfcompare again, and report it if that does not help", file=sys.stderr)
        code = 70
    # The result is final. Only clean-up is left, which a Ctrl-C ends without a traceback.
    interrupts.act_on(lambda number, frame: os._exit(130))
    sys.exit(code)


def _call() -> int:
    from orchestrator.cli import crash
    from orchestrator.cli import main as cli

    codes: list[int] = []

    def record(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_value and not isinstance(failure.exc_value, SystemExit):
            codes.append(cli.report_error(crash.record(failure.exc_value)))

    threading.excepthook = record
    return cli.call() or max(codes, default=0)


if __name__ == "__main__":
    main()
