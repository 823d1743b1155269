"""The flags that several commands share, in groups; a command names the groups that it takes.

Each flag is declared once, in the module of its topic. A command that takes a group offers all of its flags, and has to
honour all of them: where a command needs only some of them, the group is split, and the larger one inherits from the
smaller.
"""

from orchestrator.cli.options.convert import engine_options, gpu_options, run_options, say_ignored
from orchestrator.cli.options.declare import (
    Group,
    choice,
    find_given_flags,
    names_of,
    number,
    refuse_others,
    with_options,
)
from orchestrator.cli.options.fleet import FleetFlags, PlaceFlags
from orchestrator.cli.options.installation import (
    INDEX_VARIABLE,
    BaseFlags,
    DownloadsFlags,
    IndexFlags,
    InstallationFlags,
    SourcesFlags,
)
from orchestrator.cli.options.machine import GpuFlags, MachineFlags, MeasuringGpuFlags, OnGpuFlags
from orchestrator.cli.options.measuring import (
    BudgetFlags,
    JudgeFlags,
    MarginFlags,
    MeasuringFlags,
    MetricFlags,
    SeedFlags,
)
from orchestrator.cli.options.output import (
    FORMATS,
    REPORT_FORMATS,
    ArrangementFlags,
    FailOnFlags,
    FormatFlags,
    HistoryFlags,
    NotifyFlags,
    QuietFlags,
    ReportFormatFlags,
    RunFolderFlags,
    VerbosityFlags,
)
from orchestrator.cli.options.selection import DataFlags, OwnWorkloadsFlags, SelectionFlags, TargetFlags

__all__ = [
    "FORMATS",
    "INDEX_VARIABLE",
    "REPORT_FORMATS",
    "ArrangementFlags",
    "BaseFlags",
    "BudgetFlags",
    "DataFlags",
    "DownloadsFlags",
    "FailOnFlags",
    "FleetFlags",
    "FormatFlags",
    "GpuFlags",
    "Group",
    "HistoryFlags",
    "IndexFlags",
    "InstallationFlags",
    "JudgeFlags",
    "MachineFlags",
    "MarginFlags",
    "MeasuringFlags",
    "MeasuringGpuFlags",
    "MetricFlags",
    "NotifyFlags",
    "OnGpuFlags",
    "OwnWorkloadsFlags",
    "PlaceFlags",
    "QuietFlags",
    "ReportFormatFlags",
    "RunFolderFlags",
    "SeedFlags",
    "SelectionFlags",
    "SourcesFlags",
    "TargetFlags",
    "VerbosityFlags",
    "choice",
    "engine_options",
    "find_given_flags",
    "gpu_options",
    "names_of",
    "number",
    "refuse_others",
    "run_options",
    "say_ignored",
    "with_options",
]
