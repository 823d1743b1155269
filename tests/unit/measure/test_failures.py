"""What a replicate died of follows from its own words and from what the machine shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.machine.evidence import Evidence, MemoryMark
from orchestrator.measure.failures import Death, Scene, classify, classify_environment, classify_start

FULL = "the file system of /runs is full (0 KB left)"
QUIET = Evidence(memory="none")
KILLED = "killed by SIGKILL; often the kernel, out of memory"
DIED = f"its worker died: {KILLED.replace('; often the kernel, out of memory', ' (often the kernel, out of memory)')}"

CASES: dict[str, tuple[Death, Evidence, tuple[str, bool]]] = {
    "a full disk says so": (
        Death(how="raised", reason="OSError: [Errno 28] No space left on device (raised in a call)"),
        Evidence(full=(FULL,), memory="none"),
        ("disk", True),
    ),
    "a container whose own memory is full": (
        Death(how="raised", reason="OSError: [Errno 28] No space left on device (raised in a call)", limited=True),
        QUIET,
        ("workload", False),
    ),
    "a container whose own memory another case has filled": (
        Death(how="raised", reason="OSError: [Errno 28] No space left on device", limited=True, filler="greedy"),
        QUIET,
        ("disk", True),
    ),
    "a place in a container that is read-only": (
        Death(how="raised", reason="OSError: [Errno 30] Read-only file system: '/data'", limited=True),
        QUIET,
        ("workload", False),
    ),
    "a container and a full disk": (
        Death(how="raised", reason="OSError: [Errno 28] No space left on device", limited=True),
        Evidence(full=(FULL,)),
        ("disk", True),
    ),
    "a disk of a container that breaks": (
        Death(how="raised", reason="OSError: [Errno 5] Input/output error", limited=True), QUIET, ("disk", True),
    ),
    "rows of a container that a full disk did not take": (
        Death(how="results", reason="its rows could not be written: OSError: [Errno 28] x", limited=True),
        QUIET,
        ("disk", True),
    ),
    "rows that a full disk did not take": (
        Death(how="results", reason="its rows could not be written: OSError: [Errno 122] Disk quota exceeded"),
        QUIET,
        ("disk", True),
    ),
    "rows that are odd": (Death(how="results", reason="its rows could not be written: x"), QUIET, ("contract", False)),
    "an exit while the disk is full": (
        Death(how="exit", reason="ended with exit code 1"), Evidence(full=(FULL,)), ("disk", True),
    ),
    "an exit": (Death(how="exit", reason="ended with exit code 1"), QUIET, ("workload", False)),
    "an exception while the disk is full": (
        Death(how="raised", reason="ValueError: x"), Evidence(full=(FULL,)), ("workload", False),
    ),
    "an exception": (Death(how="raised", reason="ValueError: x"), QUIET, ("workload", False)),
    "an assertion": (Death(how="asserted", reason="AssertionError: MemoryError"), QUIET, ("workload", False)),
    "memory that Python did not get": (Death(how="raised", reason="MemoryError: x"), QUIET, ("memory", False)),
    "memory that TensorFlow did not get": (
        Death(how="raised", reason="ResourceExhaustedError: OOM when allocating tensor"), QUIET, ("memory", False),
    ),
    "memory that C++ did not get": (
        Death(how="signal", reason="killed by SIGABRT", log="what():  std::bad_alloc"), QUIET, ("memory", False),
    ),
    "a machine without memory": (Death(how="signal", reason=KILLED), Evidence(memory="machine"), ("memory", True)),
    "a job without memory": (Death(how="signal", reason=KILLED), Evidence(memory="group"), ("memory", True)),
    "a container without memory": (
        Death(how="signal", reason=KILLED, limited=True), Evidence(memory="group"), ("memory", False),
    ),
    "a container that ended without memory": (
        Death(how="worker", reason="its worker died: out of memory: the container's limit was reached", innocent=True),
        Evidence(),
        ("memory", False),
    ),
    "a signal from outside": (Death(how="signal", reason=KILLED), QUIET, ("signal", True)),
    "a signal of unknown origin": (Death(how="signal", reason=KILLED), Evidence(), ("signal", True)),
    "a request to end": (Death(how="signal", reason="killed by SIGTERM"), QUIET, ("signal", True)),
    "a crash": (Death(how="signal", reason="killed by SIGSEGV"), QUIET, ("signal", False)),
    "a worker that was killed": (Death(how="worker", reason=DIED, innocent=True), QUIET, ("signal", True)),
    "a worker that crashed": (
        Death(how="worker", reason="its worker died: killed by SIGSEGV", innocent=True), QUIET, ("signal", True),
    ),
    "a worker that is the replicate and crashed": (
        Death(how="worker", reason="its worker died: killed by SIGSEGV"), QUIET, ("signal", False),
    ),
    "a worker that left": (
        Death(how="worker", reason="its worker died: exit code 1", innocent=True), QUIET, ("worker", True),
    ),
    "a worker that is the replicate and left": (
        Death(how="worker", reason="its worker died: exit code 1"), QUIET, ("workload", False),
    ),
    "a container that was removed": (
        Death(how="worker", reason="its worker died: lost: its container was removed"), QUIET, ("worker", True),
    ),
    "a deadline": (Death(how="timeout", reason="no answer within 5 s; ended"), QUIET, ("deadline", False)),
    "a worker that hangs": (
        Death(how="worker", reason="its worker died: timeout: no answer to open within 5 s; ended", innocent=True),
        QUIET,
        ("deadline", True),
    ),
    "a lie": (Death(how="contract", reason="its answer is not JSON"), Evidence(full=(FULL,)), ("contract", False)),
    "a worker that lies": (
        Death(how="worker", reason="its worker died: broke the contract: x", innocent=True), QUIET, ("contract", False),
    ),
    "a process that could not be forked": (
        Death(how="fork", reason="it could not be forked: BlockingIOError: [Errno 11]"), QUIET, ("start", True),
    ),
    "a fork without memory": (
        Death(how="fork", reason="it could not be forked: OSError: [Errno 12] Cannot allocate memory"),
        QUIET,
        ("memory", True),
    ),
    "a GPU that is gone": (
        Death(how="raised", reason="InternalError: x"), Evidence(gone_gpus=("GPU-1",)), ("gpu", True),
    ),
    "a GPU that TensorFlow has lost": (
        Death(how="raised", reason="InternalError: CUDA_ERROR_ECC_UNCORRECTABLE: x"), QUIET, ("gpu", True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("death", "evidence", "expected"), CASES.values(), ids=CASES)
def test_a_death_has_a_kind_and_a_side(death: Death, evidence: Evidence, expected: tuple[str, bool]):
    failure = classify(death, evidence)
    assert (failure.kind, failure.external) == expected


def test_the_reason_names_the_cause():
    machine = classify(Death(how="signal", reason=KILLED), Evidence(memory="machine"))
    assert machine.reason == "killed by SIGKILL, out of memory: this machine had no more"
    outside = classify(Death(how="worker", reason=DIED, innocent=True), QUIET)
    assert outside.reason == (
        "its worker died: killed by SIGKILL, sent by another process: this machine did not run out of memory"
    )
    unknown = classify(Death(how="signal", reason=KILLED), Evidence())
    assert unknown.reason == KILLED
    disk = classify(Death(how="exit", reason="ended with exit code 1"), Evidence(full=(FULL,)))
    assert disk.reason == f"ended with exit code 1; {FULL}"
    scratch = Death(how="raised", reason="OSError: [Errno 28] x", limited=True)
    assert classify(scratch, QUIET).reason == (
        "OSError: [Errno 28] x; the disk of the run has room: it was the /tmp of its container, which is memory"
    )
    placed = classify(Death(how="raised", reason="OSError: [Errno 30] x", limited=True), QUIET)
    assert placed.reason == "OSError: [Errno 30] x; only /tmp can be written in a container"
    beside = classify(replace(scratch, filler="greedy[size=10]"), QUIET)
    assert beside.reason == "OSError: [Errno 28] x; greedy[size=10] had filled the /tmp of their container"
    card = classify(Death(how="raised", reason="InternalError: x"), Evidence(gone_gpus=("GPU-1", "GPU-2")))
    assert card.reason == "InternalError: x; this machine no longer shows GPU-1, GPU-2"


STARTS: dict[str, tuple[str, Evidence, tuple[str, bool]]] = {
    "a full disk": ("results failed: OSError: [Errno 28] No space left on device", QUIET, ("disk", True)),
    "a full scratch folder": ("exit code 1", Evidence(full=(FULL,)), ("disk", True)),
    "a kill": ("killed by SIGKILL (often the kernel, out of memory)", QUIET, ("signal", True)),
    "a kill without memory": ("killed by SIGKILL", Evidence(memory="machine"), ("memory", True)),
    "a read-only folder": ("results failed: OSError: [Errno 30] x", QUIET, ("disk", True)),
    "a folder that was removed": ("2.0.0: cannot write /a/b: /a was removed", QUIET, ("start", True)),
    "a host without processes": ("no process could be started for it: x", QUIET, ("start", True)),
    "a program that is none": ("/a/bin/python does not start (Exec format error)", QUIET, ("start", False)),
    "an import": ("import failed: ImportError: x", QUIET, ("import", False)),
    "an import without room": ("import failed: OSError: [Errno 28] x", QUIET, ("disk", True)),
    "a container that is too small": (
        "out of memory: the container's limit was reached (x); see y", QUIET, ("memory", False),
    ),
    "a lost GPU": ("import failed: x", Evidence(gone_gpus=("GPU-1",)), ("gpu", True)),
    "a deadline": ("timeout: no answer to hello within 180 s; ended", QUIET, ("start", False)),
}  # fmt: skip


@pytest.mark.parametrize(("reason", "evidence", "expected"), STARTS.values(), ids=STARTS)
def test_a_failed_start_has_a_kind_and_a_side(reason: str, evidence: Evidence, expected: tuple[str, bool]):
    failure = classify_start(reason, evidence)
    assert (failure.kind, failure.external) == expected


def test_an_environment_that_was_not_made_fails_at_the_start_or_for_the_disk():
    assert classify_environment("pip ended with 1").kind == "start"
    for words in ("No space left on device", "Read-only file system"):
        disk = classify_environment(f"cannot write /a: {words}")
        assert (disk.kind, disk.external) == ("disk", True)


def test_a_scene_looks_at_all_of_its_folders_and_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("orchestrator.machine.evidence.find_gpus", lambda: ())
    evidence = Scene((tmp_path, tmp_path / "absent"), ("GPU-1",)).examine(MemoryMark.now())
    assert (evidence.full, evidence.gone_gpus) == ((), ("GPU-1",))
