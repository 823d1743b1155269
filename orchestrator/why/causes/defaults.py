"""Settings of TensorFlow whose default changed from one release to the next, with the variable that restores it."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End
from orchestrator.why.causes.variables import set_variable


@dataclass(frozen=True)
class ChangedDefault:
    """A setting, the release that changed its default, and the variable that gives what was usual before."""

    title: str
    since: tuple[int, int]
    variable: str
    value: str
    device: FlavourName
    # From this release on, the variable has no effect, or is refused.
    until: tuple[int, int] = (99, 0)


DEFAULTS = (
    ChangedDefault("oneDNN off -> on", (2, 9), "TF_ENABLE_ONEDNN_OPTS", "0", "cpu"),
    ChangedDefault(
        "XLA's thunk runtime off -> on", (2, 18), "XLA_FLAGS", "--xla_cpu_use_thunk_runtime=false", "cpu", (2, 21)
    ),
    ChangedDefault("TF32 off -> on", (2, 4), "NVIDIA_TF32_OVERRIDE", "0", "gpu"),
)


def find_changed_defaults(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    if not (old.changed.version and new.changed.version) or old.changed.version == new.changed.version:
        return
    before, after = (read_number_pair(end.changed.version) for end in (old, new))
    set_by_user = {name for end in (old, new) for name, _ in end.changed.variables}
    for each in DEFAULTS:
        if each.device == device and before < each.since <= after < each.until and each.variable not in set_by_user:
            yield Cause(title=each.title, undo=set_variable(each.variable, each.value))
