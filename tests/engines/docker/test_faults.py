"""What goes wrong around a run on Docker costs what it must: disks, folders, images, workloads that take too much."""

import io
import json
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from orchestrator.engines.docker import image, limits
from orchestrator.engines.docker.engine import DockerEnvironment
from tests.conftest import run_command
from tests.engines.docker.conftest import (
    STUB_PYTHON,
    Start,
    containers,
    containers_of,
    recipe_of,
    run_here,
    stand_in,
    until,
    with_memory,
)
from tests.support.disks import fill, make_read_only, mounted, unmount
from tests.support.end_to_end import Answer, parse

ENDLESS = ("--rounds", "1000", "--case", "naps")
DOOMED = "tfcompare-doomed:{python}"

Small = Callable[[str], Path]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    """Makes small file systems."""
    made: list[Path] = []

    def make(size: str) -> Path:
        made.append(mounted(tmp_path / f"small-{size}", size))
        return made[-1]

    yield make
    for folder in made:
        while unmount(folder):
            pass


def continued(tfcompare: str, run: Path, base: str) -> Answer:
    """What a run that is continued comes to: every arm is measured, and nothing of it is lost, unknown or doubled."""
    done = run_command(
        tfcompare, "run", "--resume", run, "--rounds", "2", "--base", base, "--format", "json", timeout=120
    )
    assert done.returncode == 0, done.stderr
    answer = parse(done)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert all(arm["rounds"] >= 2 for arm in answer["arms"])
    again = run_command(tfcompare, "report", run, "--format", "json")
    assert (again.returncode, parse(again)["arms"]) == (0, answer["arms"]), again.stderr
    return answer


def test_a_disk_that_fills_up_is_named_and_its_run_is_continued(
    client: docker.DockerClient, tfcompare: str, stub_base: str, start: Start, small: Small
) -> None:
    going = start(*ENDLESS, out=small("4m") / "run")
    going.until_measuring()
    filler = fill(going.out.parent)
    code, stdout, stderr = going.end()
    # Either a worker could not write its rows, or the host its journal.
    assert code in (2, 6), stderr
    assert "No space left on device" in stdout + stderr
    assert "Traceback" not in stderr
    assert containers(client, going.out) == []
    # What was written before is readable on the disk that is full.
    assert run_command(tfcompare, "report", going.out).returncode in (0, 6)
    filler.unlink()
    continued(tfcompare, going.out, stub_base)


@pytest.mark.long
def test_a_run_folder_that_becomes_read_only_is_named_and_its_run_is_continued(
    client: docker.DockerClient, tfcompare: str, stub_base: str, start: Start, small: Small
) -> None:
    """With temporary files nowhere: a run on Docker needs none."""
    disk, scratch = small("8m"), small("64k")
    make_read_only(scratch)
    going = start(*ENDLESS, out=disk / "run", env={"TMPDIR": str(scratch)})
    going.until_measuring()
    make_read_only(disk)
    code, _, stderr = going.end()
    assert code == 2, stderr
    assert stderr.count("Read-only file system") == 1
    assert f"`tfcompare run --resume {going.out}` continues the run" in stderr
    assert "Traceback" not in stderr
    assert containers(client, going.out) == []
    assert run_command(tfcompare, "report", going.out).returncode == 0
    unmount(disk)
    continued(tfcompare, going.out, stub_base)


def test_a_run_folder_that_is_removed_ends_its_run_in_one_line(client: docker.DockerClient, start: Start) -> None:
    going = start(*ENDLESS)
    going.until_measuring()
    number = json.loads((going.out / "plan.json").read_text())["run"]
    assert len(containers_of(client, number)) == 2
    # At once, whatever is being written meanwhile.
    removed = going.out.rename(going.out.with_name("removed"))
    shutil.rmtree(removed, ignore_errors=True)
    code, stdout, stderr = going.end()
    assert (code, stdout) == (2, ""), stderr
    [error] = [line for line in stderr.splitlines() if line.startswith("tfcompare: ")]
    assert str(going.out) in error
    assert "Traceback" not in stderr
    assert not going.out.exists()
    assert containers_of(client, number) == []


@pytest.fixture
def doomed(client: docker.DockerClient, stubs: dict[str, DockerEnvironment], stub_base: str) -> Iterator[str]:
    """A base whose images are a test's own, to be removed."""
    name = DOOMED.replace("{python}", STUB_PYTHON)
    dockerfile = f"FROM {stub_base.replace('{python}', STUB_PYTHON)}\nLABEL doomed={uuid.uuid4()}\n"
    client.images.build(fileobj=io.BytesIO(dockerfile.encode()), tag=name, rm=True)
    for number, environment in stubs.items():
        stand_in(client, environment.facts.identity, number, "cpu", DOOMED)
    yield DOOMED
    for found in client.images.list(filters={"label": f"{image.BASE_NAME}={name}"}):
        client.api.remove_image(found.id, force=True)
    client.api.remove_image(name, force=True)


def rounds_of(run: Path, number: str) -> int:
    """In how many rounds a version was measured, while the run is going on."""
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    entries = [json.loads(line) for line in lines if line.endswith("\n")]
    return len({entry["round"] for entry in entries if entry["kind"] == "ended" and entry["target"] == number})


def test_a_version_whose_image_is_removed_is_lost_and_says_so(
    client: docker.DockerClient, tfcompare: str, doomed: str, start: Start
) -> None:
    going = start("--base", doomed, "--rounds", "1000", "--case", "naps[which=first]")
    identity = client.images.get(recipe_of(client, "2.0.0", "cpu", doomed).tag).id
    going.until_measuring()

    def removed() -> bool:
        """Between two rounds: no engine removes the image of a container that runs."""
        assert going.process.poll() is None, going.process.communicate()
        try:
            client.api.remove_image(identity, force=True)
        except docker.errors.ImageNotFound:
            return True
        except docker.errors.APIError:
            return False
        return True

    until(lambda: any(removed() for _ in range(100)), "a moment in which no container uses the image")
    until(lambda: '"kind":"lost"' in (going.out / "journal.jsonl").read_text(), "the loss of 2.0.0")
    rounds = rounds_of(going.out, "1.14.0")
    until(lambda: rounds_of(going.out, "1.14.0") > rounds, "a round without 2.0.0")
    going.process.send_signal(signal.SIGINT)
    code, _, stderr = going.end()
    assert code == 130, stderr
    assert len([line for line in stderr.splitlines() if line.startswith("2.0.0 is lost")]) == 1
    assert "its image was removed; start a new run" in stderr
    assert "Traceback" not in stderr
    assert containers(client, going.out) == []
    found = parse(run_command(tfcompare, "report", going.out, "--format", "json"))
    assert all(arm["rounds"] >= 1 for arm in found["arms"])


def test_a_workload_that_forks_without_end_dies_at_the_limit_of_its_container(
    client: docker.DockerClient, stub_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "share_processes", lambda workers: 200)
    done = run_here(stub_base, tmp_path / "run", "forks", "naps[which=first]")
    arms = {(arm.case.workload, arm.target): arm for arm in done.evaluation.arms}
    for number in ("1.14.0", "2.0.0"):
        bomb = arms["forks", number]
        assert (bomb.outcome, bomb.failure, bomb.external) == ("died", "workload", False)
        assert bomb.reason.startswith(
            "BlockingIOError: [Errno 11] Resource temporarily unavailable (raised in a call, "
        )
        assert (arms["naps", number].outcome, arms["naps", number].rounds) == ("measured", 2)
    journal = [json.loads(line) for line in (done.path / "journal.jsonl").read_text().splitlines()]
    assert {entry["target"] for entry in journal if entry["kind"] == "strays"} == {"1.14.0", "2.0.0"}
    assert done.error is not None
    assert done.error.exit_code == 6
    assert containers(client, done.path) == []


def test_a_workload_that_fills_its_containers_scratch_folder_has_itself_to_blame(
    client: docker.DockerClient, tfcompare: str, stub_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a full disk, after which `--resume` would try it again."""
    with_memory(client, 1 << 28, monkeypatch)
    done = run_here(stub_base, tmp_path / "run", "fills_scratch", "naps[which=first]")
    arms = {(arm.case.workload, arm.target): arm for arm in done.evaluation.arms}
    for number in ("1.14.0", "2.0.0"):
        full = arms["fills_scratch", number]
        assert (full.outcome, full.failure, full.external) == ("died", "workload", False)
        assert full.reason.startswith("OSError: [Errno 28] No space left on device (raised in build, ")
        assert full.reason.endswith("; the disk of the run has room: it was the /tmp of its container, which is memory")
        assert (arms["naps", number].outcome, arms["naps", number].rounds) == ("measured", 2)
    again = run_command(tfcompare, "run", "--resume", done.path, "--rounds", "2", "--base", stub_base, "--dry-run")
    assert "the cause is in their code" in again.stderr
    assert "the cause was outside of their code" not in again.stderr
