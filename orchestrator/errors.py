"""Every way in which tfcompare fails: one class per exit code, all caught in one place, `cli.main`.

    TfCompareError
    |- OutcomeFound        1  --fail-on matched, `upgrade` says not yet, or `nightly run` has a new alarm; nothing else
    |- UsageError          2  wrong usage or configuration, or an output that cannot be written
    |- NothingSelected     3  nothing to measure or judge, equal ends of a `bisect`, or `nightly status` found a problem
    |- EngineUnavailable   4  the engine does not answer, or no longer answers
    |- EnvironmentFailed   5  an image or a virtual environment could not be built or started
    |- ArmsDied            6  some arms died; the table was printed
    |- ContractBroken      7  a result file or a worker breaks the contract between tfcompare and its workers
    |- InternalError      70  a bug in tfcompare: one line, and a traceback in a file
    `- Interrupted       130  stopped by the user

Python itself exits with 1 after an uncaught error. A job that reads 1 as "slower" must never see that one, so every
unexpected error becomes 70. A closed pipe is not a failure: what is printed after it is dropped, and the exit code
stays the same.

An error says what happened, to which target, and what to do next; `detail` holds more for a closer look, such as the
end of a log.
"""


class TfCompareError(Exception):
    exit_code: int

    def __init__(self, what: str, advice: str = "", *, target: str = "", detail: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice
        self.target = target
        self.detail = detail

    @property
    def headline(self) -> str:
        """The message in one line, without its target and its detail."""
        return f"{self.what}; {self.advice}" if self.advice else self.what

    @property
    def reason(self) -> str:
        """The message without its target."""
        return f"{self.headline}\n{self.detail}" if self.detail else self.headline

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}" if self.target else self.reason


class OutcomeFound(TfCompareError):
    exit_code = 1


class UsageError(TfCompareError):
    exit_code = 2


class NothingSelected(TfCompareError):
    exit_code = 3


class EngineUnavailable(TfCompareError):
    exit_code = 4
    # If set, another run holds the machine.
    is_occupied = False


class EnvironmentFailed(TfCompareError):
    exit_code = 5

    def __init__(
        self,
        what: str,
        advice: str = "",
        *,
        target: str = "",
        detail: str = "",
        lacks_python: bool = False,
    ) -> None:
        super().__init__(what, advice, target=target, detail=detail)
        # If set, only a Python is missing. Other versions may have theirs, and a run can name those versions.
        self.lacks_python = lacks_python


class ArmsDied(TfCompareError):
    exit_code = 6


class ContractBroken(TfCompareError):
    exit_code = 7


class InternalError(TfCompareError):
    exit_code = 70


class Interrupted(TfCompareError):
    exit_code = 130
