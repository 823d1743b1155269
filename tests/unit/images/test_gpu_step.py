"""What GPU images did on the GPU becomes checks; real TensorFlows take the steps in tests/engines."""

import pytest

from orchestrator.images import gpu_step
from orchestrator.machine.gpu import Gpu
from orchestrator.measure.trial import TriedArm
from orchestrator.model import Case
from orchestrator.options import EngineOptions
from orchestrator.plan.request import PlannedRun
from orchestrator.terminal.view import View
from tests.support.builders import target

PLAIN, XLA = (Case(gpu_step.WORKLOAD, (("compiler", compiler),)) for compiler in ("none", "xla"))


def test_each_version_gets_a_check_of_both_steps(monkeypatch: pytest.MonkeyPatch):
    planned: list[PlannedRun] = []

    def try_workloads(plan: PlannedRun, view: View) -> list[TriedArm]:
        planned.append(plan)
        return [
            TriedArm(case=PLAIN, target=target("2.0.0"), outcome="ran", first_ns=1_200_000_000, second_ns=10),
            TriedArm(case=XLA, target=target("2.0.0"), outcome="refused", reason="it has no switch."),
            TriedArm(case=PLAIN, target=target("2.13.0"), outcome="ran", first_ns=900_000_000, second_ns=10),
            TriedArm(case=XLA, target=target("2.13.0"), outcome="died", reason="libdevice not found"),
        ]

    monkeypatch.setattr(gpu_step, "try_workloads", try_workloads)
    monkeypatch.setattr(gpu_step, "find_gpus", lambda: ())
    found = gpu_step.check_steps(["2.0.0", "2.13.0", "2.13.0"], EngineOptions(), View())
    assert list(planned[0].selection.cases) == [PLAIN, XLA]
    assert [(check.subject, check.ok, check.found) for check in found["2.0.0"]] == [
        ("step on the GPU", True, "trained; the first call took 1.20 s"),
        ("step on the GPU, by XLA", True, "refused: it has no switch."),
    ]
    assert [check.ok for check in found["2.13.0"]] == [True, False]
    assert found["2.13.0"][1].found == "died: libdevice not found"


def test_what_is_known_to_fail_on_the_card_is_not_tried(monkeypatch: pytest.MonkeyPatch):
    a100 = Gpu(0, "GPU-1", "NVIDIA A100", "8.0", "550.54", 81_920, 400, True, False)
    monkeypatch.setattr(gpu_step, "find_gpus", lambda: (a100,))
    monkeypatch.setattr(gpu_step, "try_workloads", lambda plan, view: pytest.fail("tried"))
    [check] = gpu_step.check_steps(["1.14.0"], EngineOptions(), View())["1.14.0"]
    assert check.ok
    assert check.found.startswith("not tried: compute capability 8.0 is known to fail with CUDA 10.0")
