"""A separate pass for warnings: each case runs once in one target, and nothing is timed meanwhile."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.engines.worker.client import Died, Refused, WorkerDied
from orchestrator.engines.worker.events import Warned
from orchestrator.measure.session import make_manifest, open_session, pin_workloads, prepare_environments
from orchestrator.measure.workers import employ
from orchestrator.model import Case
from orchestrator.plan.request import PlannedRun
from orchestrator.terminal.view import View


@dataclass(frozen=True)
class WarnedCase:
    """What the code of a case was warned of, or why that is not known."""

    case: Case
    warnings: tuple[Warned, ...] = ()
    reason: str = ""


def collect_warnings(planned: PlannedRun, view: View) -> list[WarnedCase]:
    """Run every case once in the first target of a planned run; all that this writes is removed."""
    found: list[WarnedCase] = []
    with (
        TemporaryDirectory(prefix="tfcompare-") as scratch,
        open_session(planned, Path(scratch) / "run", view) as opened,
    ):
        opened = pin_workloads(opened)
        session = prepare_environments(opened)
        session.folder.write_manifest(make_manifest(opened.planned, session.environments))
        plan, target = session.plan, session.plan.targets[0]
        with employ(session) as employed:
            employed.start()
            for number, case in enumerate(plan.cases, 1):
                view.preparing(str(target), f"collecting the warnings of {case.label}")
                worker = employed.workers.acquire(target)
                if worker is None:
                    found.append(WarnedCase(case, reason=employed.workers.describe_loss(target)))
                    continue
                try:
                    answer = worker.warn(
                        case, replicate=number, seed=plan.seed, timeout_s=plan.timeout_s, program=plan.program,
                        large=[file.name for file in plan.large],
                    )  # fmt: skip
                except WorkerDied as death:
                    employed.workers.restart(target)
                    found.append(WarnedCase(case, reason=f"its worker died: {death}"))
                    continue
                employed.workers.release(target)
                if isinstance(answer, Refused | Died):
                    found.append(WarnedCase(case, reason=answer.reason))
                else:
                    found.append(WarnedCase(case, answer))
        if employed.error:
            raise employed.error
    return found
