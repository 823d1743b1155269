"""The course of `make gpu-check`, with a program in place of tfcompare: what passes, what fails, and what is left."""

import dataclasses
import json
import re
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.machine.gpu import Gpu
from tools import gpu_check
from tools.gpu_check import Check, Record, StepFailed, StepSkipped, bundle, run_steps


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """A check whose tfcompare prints the file `answer` and ends with the code in the file `code`."""
    program = tmp_path / "tfcompare"
    program.write_text(
        f"#!/bin/sh\necho \"$*\" >> {tmp_path}/asked\ncat {tmp_path}/answer\necho 'last words' >&2\n"
        f"exit $(cat {tmp_path}/code)\n"
    )
    program.chmod(0o755)
    (tmp_path / "code").write_text("0")
    (tmp_path / "answer").write_text("[]")
    folder = tmp_path / "check"
    folder.mkdir()
    return Check(folder, str(program))


def steps(outcomes: dict[str, str | Exception], taken: list[str]) -> dict[str, Callable[[Check], str]]:
    def step(name: str) -> Callable[[Check], str]:
        def take(check: Check) -> str:
            taken.append(name)
            if isinstance(outcome := outcomes[name], Exception):
                raise outcome
            return outcome

        return take

    return {name: step(name) for name in outcomes}


def test_what_has_passed_is_not_taken_again_unless_it_is_asked_for(check: Check, capsys: pytest.CaptureFixture[str]):
    taken: list[str] = []
    outcomes: dict[str, str | Exception] = {"a": "well", "b": StepFailed("a GPU is gone"), "c": StepSkipped("no root")}
    path = check.folder / "steps.json"
    assert not run_steps(check, Record.read(path, "GPU 0"), steps(outcomes, taken), ())
    outcomes["b"] = "repaired"
    assert run_steps(check, Record.read(path, "GPU 0"), steps(outcomes, taken), ())
    assert taken == ["a", "b", "c", "b", "c"]
    run_steps(check, Record.read(path, "GPU 0"), steps(outcomes, taken), ("a",))
    assert taken[5:] == ["a", "c"]
    seen = json.loads(path.read_text())["steps"]
    assert {name: (each["outcome"], each["seen"]) for name, each in seen.items()} == {
        "a": ("passed", "well"),
        "b": ("passed", "repaired"),
        "c": ("skipped", "no root"),
    }
    assert "a GPU is gone" in capsys.readouterr().out
    assert not Record.read(path, "GPU 1").has_passed("a"), "of another GPU, nothing has passed"


def test_what_nobody_has_seen_yet_fails_its_step_only(check: Check):
    taken: list[str] = []
    record = Record.read(check.folder / "steps.json", "GPU 0")
    assert not run_steps(check, record, steps({"a": ZeroDivisionError("by a GPU"), "b": "well"}, taken), ())
    assert (record.seen["a"]["outcome"], record.seen["a"]["seen"]) == ("failed", "ZeroDivisionError: by a GPU")
    assert taken == ["a", "b"]


def test_without_a_card_nothing_else_is_tried(check: Check, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_check, "find_gpus", lambda: ())
    record = Record.read(check.folder / "steps.json", "GPU 0")
    assert not run_steps(check, record, gpu_check.STEPS, ())
    assert list(record.seen) == ["look"]
    assert "neither NVML nor nvidia-smi shows a GPU" in record.seen["look"]["seen"]


def test_a_card_that_takes_not_every_version_is_looked_at(check: Check, monkeypatch: pytest.MonkeyPatch):
    card = Gpu(0, "GPU-1", "NVIDIA H200", "9.0", "570.86", 143_771, 700, True, False)
    monkeypatch.setattr(gpu_check, "find_gpus", lambda: (card,))
    (check.folder.parent / "code").write_text("5")
    assert "NVIDIA H200" in gpu_check.inspect_machine(check)
    assert (check.folder / "logs" / "doctor.out").read_text() == "[]"


def test_what_the_program_prints_is_kept_and_its_last_line_is_the_reason(check: Check):
    (check.folder.parent / "code").write_text("5")
    with pytest.raises(StepFailed, match="tfcompare images ended with exit code 5: last words"):
        gpu_check.build(check)
    assert (check.folder / "logs" / "build.err").read_text() == "last words\n"
    assert (check.folder.parent / "asked").read_text().startswith("images build 2.13 2.15 2.16 2.18 2.21 --gpu")


def verified(*found: tuple[str, bool, str]) -> str:
    return json.dumps(
        [
            {"version": version, "checks": [{"subject": "step on the GPU", "ok": ok, "found": text}]}
            for version, ok, text in found
        ]
    )


def test_a_step_that_died_in_one_image_fails_the_step(check: Check):
    (check.folder.parent / "answer").write_text(verified(("2.16.2", True, "trained"), ("2.21.0", False, "died: x")))
    with pytest.raises(StepFailed, match=r"^2.21.0, step on the GPU: died: x$"):
        gpu_check.train(check)
    (check.folder.parent / "answer").write_text(verified(("2.16.2", True, "trained; the first call took 3 s")))
    assert gpu_check.train(check) == "2.16.2, step on the GPU: trained; the first call took 3 s"
    (check.folder.parent / "answer").write_text("[]")
    with pytest.raises(StepFailed, match="no image ran the step on the GPU"):
        gpu_check.train(check)


def test_a_run_that_ends_before_its_first_round_is_no_run(check: Check):
    with pytest.raises(StepFailed, match="ended before its first round"):
        gpu_check.kill_worker(check)


def test_steps_share_the_minutes_and_one_without_enough_is_skipped(check: Check, monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr(gpu_check.time, "monotonic", lambda: now[0])
    given: dict[str, tuple[float, float]] = {}

    def step(name: str, seconds: float) -> Callable[[Check], str]:
        def take(limited: Check) -> str:
            given[name] = (round(min(limited.share_s, 1e9)), round(limited.left_s))
            now[0] += seconds
            return "well"

        return take

    taken = {
        "look": step("look", 60),
        "twins": step("twins", 290),
        "kill": step("kill", 100),
        "turns": step("turns", 1),
    }
    record = Record.read(check.folder / "steps.json", "GPU 0")
    assert run_steps(dataclasses.replace(check, ends=480.0), record, taken, ())
    # 420 s are left after `look`: three shares of six, and two of the three of what is left then.
    assert given["twins"] == (210, 315)
    assert given["kill"] == (87, 130)
    # 30 s are left for the last.
    assert record.seen["turns"]["outcome"] == "passed"
    record = Record.read(check.folder / "again.json", "GPU 0")
    assert run_steps(dataclasses.replace(check, ends=now[0] + 80), record, taken, ())
    assert record.seen["turns"]["outcome"] == "skipped"
    assert record.seen["turns"]["seen"] == "20 s are left for all steps: --minutes with more, or --again turns"


def test_a_step_that_does_not_end_is_ended_and_fails(check: Check):
    (check.folder.parent / "tfcompare").write_text("#!/bin/sh\necho begun\nexec sleep 600\n")
    limited = dataclasses.replace(check, ends=time.monotonic() + 0.3, share_s=0.2)
    with pytest.raises(StepFailed, match="tfcompare had not ended when the time was over"):
        limited.call("doctor", "doctor")
    assert (check.folder / "logs" / "doctor.out").read_text() == "begun\n"
    with pytest.raises(StepFailed, match="no round has begun"):
        gpu_check.kill_worker(dataclasses.replace(check, ends=time.monotonic() + 0.3, share_s=60.0))


def test_all_that_it_leaves_is_in_the_bundle(check: Check):
    (check.folder.parent / "code").write_text("0")
    check.call("doctor", "doctor")
    with tarfile.open(bundle(check.folder)) as archive:
        assert {"check/logs/doctor.out", "check/logs/doctor.err"} <= set(archive.getnames())


def test_every_step_of_the_page_is_taken(check: Check):
    page = (Path(gpu_check.__file__).parent.parent / "docs" / "gpu-check.md").read_text()
    assert re.findall(r"^\| `(\w+)`(?: \(Docker\))? \|", page, re.MULTILINE) == list(gpu_check.STEPS)
