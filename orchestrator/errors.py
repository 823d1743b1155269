"""Every way in which tfcompare ends other than well: one class an exit code, caught in one place, `cli.main`.

    TfCompareError
    |- FoundSlower         1  --fail-on asked, and something is slower
    |- UsageError          2  wrong usage or configuration
    |- NothingSelected     3  no case left to measure
    |- EngineUnavailable   4  the engine does not answer, or not any more
    |- EnvironmentFailed   5  an image or a virtual environment could not be built or started
    |- ArmsDied            6  some arms died; the table was printed
    |- ContractBroken      7  a result file or a worker does not keep the contract
    `- Interrupted       130  stopped by the user

A message says what happened, to which version or case, and what to do next.
"""


class TfCompareError(Exception):
    exit_code: int


class FoundSlower(TfCompareError):
    exit_code = 1


class UsageError(TfCompareError):
    exit_code = 2


class NothingSelected(TfCompareError):
    exit_code = 3


class EngineUnavailable(TfCompareError):
    exit_code = 4


class EnvironmentFailed(TfCompareError):
    exit_code = 5

    def __init__(self, message: str, *, lacks_python: bool = False) -> None:
        super().__init__(message)
        # Other versions may have their Pythons, and a run can name them.
        self.lacks_python = lacks_python


class ArmsDied(TfCompareError):
    exit_code = 6


class ContractBroken(TfCompareError):
    exit_code = 7


class Interrupted(TfCompareError):
    exit_code = 130
