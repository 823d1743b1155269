"""A full disk, a kill, want of memory and a loss of power: what was measured is kept, and the run is continued."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.results.run_folder import RunFolder
from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare, parse
from tests.support.live_runs import kinds, mount, until

OWN = Path(__file__).parent / "workloads"
VENV = ("--engine", "venv", "--versions", "1.14,2.0", "--quiet", "--workload-folder", str(OWN))

pytestmark = pytest.mark.usefixtures("stubbed")


def arms(answer: Answer) -> dict[tuple[str, str], Answer]:
    return {(arm["workload"], arm["target"]): arm for arm in answer["arms"]}


def continued(tfcompare: str, run: Path, env: dict[str, str] | None = None, rounds: int = 2) -> Answer:
    """What a run that is continued comes to; nothing of it is lost, unknown or doubled."""
    done = run_command(
        tfcompare, "run", "--resume", run, "--rounds", str(rounds), "--format", "json", env=env, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    again = run_command(tfcompare, "report", run, "--format", "json")
    assert again.returncode == 0, again.stderr
    answer = parse(done)
    assert parse(again)["arms"] == answer["arms"]
    return answer


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a small file system of its own."""
    made = []

    def make(size: str) -> Path:
        (tmp_path / f"small-{size}").mkdir()
        made.append(mount(tmp_path / f"small-{size}", "-t", "tmpfs", "-o", f"size={size}", "tmpfs"))
        return made[-1]

    yield make
    for folder in made:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_scratch_folder_that_is_full_is_named_and_its_arms_are_tried_again(
    tfcompare: str, tmp_path: Path, small: Callable[[str], Path]
) -> None:
    run, scratch = tmp_path / "run", small("512k")
    flags = ("--case", "prints", "--case", "raises_in_build", "--rounds", "2", "--output", run)
    code, answer, stderr = compare(tfcompare, *VENV, *flags, env={"TMPDIR": str(scratch)})
    assert code == 6, stderr
    dead = arms(answer)
    assert (dead["prints", "2.0.0"]["failure"], dead["prints", "2.0.0"]["external"]) == ("disk", True)
    assert "No space left on device" in dead["prints", "2.0.0"]["reason"]
    assert dead["raises_in_build", "2.0.0"]["failure"] == "workload"
    table = " ".join(run_command(tfcompare, "report", run).stdout.split())
    assert "died (disk, --resume tries it again): 2.0.0 prints: OSError: [Errno 28]" in table
    assert "died (workload): 1.14.0 raises_in_build, 2.0.0 raises_in_build: ValueError" in table
    more = ("run", "--resume", run, "--rounds", "2", "--format", "json")
    again = run_command(tfcompare, *more)
    assert again.returncode == 6
    assert "tried again, because the cause was outside of their code: 2.0.0 prints (disk)" in again.stderr
    assert "not tried again" in again.stderr
    found = arms(parse(again))
    assert (found["prints", "2.0.0"]["outcome"], found["prints", "2.0.0"]["failure"]) == ("measured", None)
    assert found["raises_in_build", "2.0.0"] == dead["raises_in_build", "2.0.0"]


@pytest.mark.parametrize("size", ["1m", "3m"])
def test_a_run_folder_that_is_full_is_named_and_its_run_is_continued(
    tfcompare: str, small: Callable[[str], Path], size: str
) -> None:
    disk = small(size)
    (disk / "wanted").touch()
    run, env = disk / "run", {"TF_CPP_FILL": str(disk)}
    flags = ("--case", "fills", "--case", "naps[which=first]", "--rounds", "3", "--output", run)
    done = run_command(tfcompare, "run", *VENV, *flags, env=env)
    assert done.returncode in (2, 6), done.stderr
    assert "No space left on device" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    # What was written before is readable on the disk that is full.
    assert run_command(tfcompare, "report", run).returncode in (0, 6)
    (disk / "wanted").unlink()
    (disk / "filler").unlink()
    answer = continued(tfcompare, run, env)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert all(arm["rounds"] >= 2 for arm in answer["arms"])


def test_an_arm_whose_worker_was_killed_twice_is_tried_again_by_resume(tfcompare: str, tmp_path: Path) -> None:
    announce, run = tmp_path / "announce", tmp_path / "run"
    announce.touch()
    env = {"TF_CPP_ANNOUNCE": str(announce)}
    flags = ("--case", "announces", "--rounds", "2", "--format", "json", "--output", str(run))
    with subprocess.Popen(
        [tfcompare, "run", *VENV, *flags], env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        until(lambda: announce.read_text(), process)
        first = int(announce.read_text().splitlines()[0])
        os.kill(first, signal.SIGKILL)
        until(lambda: {int(pid) for pid in announce.read_text().split()} - {first}, process)
        [second] = {int(pid) for pid in announce.read_text().split()} - {first}
        os.kill(second, signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 6, stderr
    dead = arms(json.loads(stdout))["announces", "2.0.0"]
    assert (dead["failure"], dead["external"]) in [("signal", True), ("memory", True)]
    assert "--resume tries 1 of them again" in stderr
    found = arms(continued(tfcompare, run, env))
    assert {arm["outcome"] for arm in found.values()} == {"measured"}
    assert found["announces", "2.0.0"]["rounds"] >= 2


def planned(run: Path) -> bool:
    return (run / "begun.json").exists() and RunFolder(run).read_begun().plan is not None


MOMENTS: dict[str, Callable[[Path], object]] = {
    "planned": planned,
    "its plan is written": lambda run: (run / "plan.json").exists(),
    "its manifest is written": lambda run: (run / "manifest.json").exists(),
    "a worker is started": lambda run: (run / "results").is_dir() and list((run / "results").iterdir()),
    "a replicate has ended": lambda run: kinds(run, "ended"),
    "a round has ended": lambda run: kinds(run, "synced") > 1,
    "some replicates of the next": lambda run: kinds(run, "synced") > 1 and kinds(run, "ended") > 6,
}


# Those before anything was measured, and one after; `make soak` has all of them.
FEW = ("planned", "a worker is started", "some replicates of the next")


@pytest.mark.parametrize(
    "moment", [each if each in FEW else pytest.param(each, marks=pytest.mark.long) for each in MOMENTS]
)
def test_a_host_that_is_killed_at_any_moment_leaves_a_run_that_is_continued(
    tfcompare: str, tmp_path: Path, moment: str
) -> None:
    run = tmp_path / "run"
    flags = ("--case", "naps", "--rounds", "50", "--output", str(run))
    with subprocess.Popen(
        [tfcompare, "run", *VENV, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: MOMENTS[moment](run), process)
        process.kill()
        process.communicate(timeout=60)
    answer = continued(tfcompare, run)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    # A round that counts twice would be one more of an arm than of its ratio.
    across = {(c["workload"], str(c["params"])): c["rounds"] for c in answer["comparisons"] if c["kind"] == "target"}
    for arm in answer["arms"]:
        assert across[arm["workload"], str(arm["params"])] <= arm["rounds"] <= rounds_of(run, arm)


# Stops a run at the call of a function of its run folder, and says so. The rest of it is real.
STOP = """
import sys, time
from pathlib import Path
if sys.argv[:1] and Path(sys.argv[0]).name == "tfcompare":
    from orchestrator import files
    from orchestrator.results.run_folder import RunFolder
    def stop(*arguments, **options):
        Path({mark!r}).touch()
        time.sleep(600)
    {function} = stop
"""


@pytest.mark.slow
@pytest.mark.parametrize("function", ["files.replace", "RunFolder.write_begun"], ids=["before it begins", "begun"])
def test_a_host_that_is_killed_before_its_plan_leaves_its_folder_to_the_next_run(
    tfcompare: str, tmp_path: Path, function: str
) -> None:
    run, mark = tmp_path / "run", tmp_path / "mark"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(STOP.format(mark=str(mark), function=function))
    command = ["run", *VENV, "--case", "naps[which=first]", "--rounds", "2", "--output", str(run)]
    stopping = {**os.environ, "PYTHONPATH": str(tmp_path / "own")}
    with subprocess.Popen([tfcompare, *command], env=stopping, stderr=subprocess.PIPE, text=True) as process:
        until(mark.exists, process)
        # It lives, and keeps its folder.
        again = run_command(tfcompare, *command)
        more = run_command(tfcompare, "run", "--resume", run)
        process.kill()
        process.communicate(timeout=60)
    assert (again.returncode, more.returncode) == (2, 2)
    assert f"another tfcompare is measuring into {run}; wait for its end" in " ".join(again.stderr.split())
    assert "holds no run" in more.stderr
    more = run_command(tfcompare, "run", "--resume", run, env={"COLUMNS": "1000"})
    assert more.returncode == 2
    if function == "RunFolder.write_begun":
        assert f"then repeat `tfcompare {shlex.join(command)}`" in more.stderr
    done = run_command(tfcompare, *command, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert {arm["outcome"] for arm in parse(done)["arms"]} == {"measured"}
    continued(tfcompare, run)


def rounds_of(run: Path, arm: Answer) -> int:
    """The rounds in which the journal says that an arm was measured, its pilot among them."""
    entries = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return len(
        {
            entry["round"]
            for entry in entries
            if entry["kind"] == "ended" and entry["target"] == arm["target"] and entry["outcome"] == "measured"
        }
    )


def test_a_group_without_memory_is_named_and_its_arms_are_tried_again(tfcompare: str, tmp_path: Path) -> None:
    """As a job of a cluster is that asked for too little."""
    group = make_group(800 << 20)
    try:
        run = tmp_path / "run"
        flags = ("--case", "takes_memory", "--case", "fine[size=10]", "--rounds", "2", "--output", str(run))
        enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        done = run_command("sh", "-c", enter, "sh", tfcompare, "run", *VENV, *flags, "--format", "json")
    finally:
        until_gone(group)
    assert done.returncode == 6, done.stderr
    found = arms(parse(done))
    dead = found["takes_memory", "2.0.0"]
    assert (dead["failure"], dead["external"]) == ("memory", True)
    assert "killed by SIGKILL, out of memory" in dead["reason"]
    assert found["fine", "2.0.0"]["outcome"] == "measured"
    answer = continued(tfcompare, run)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}


def make_group(limit: int) -> Path:
    """A control group with a limit of memory, in either layout."""
    older = Path("/sys/fs/cgroup/memory")
    group = (older if older.is_dir() else Path("/sys/fs/cgroup")) / f"tfcompare-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if older.is_dir() else "memory.max")).write_text(str(limit))
    except OSError as error:
        pytest.skip(f"no right to make a control group: {error}")
    return group


def until_gone(group: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    """A disk in a file, which is mounted beside it."""
    if not all(map(shutil.which, ("mkfs.ext4", "losetup"))):
        pytest.skip("no mkfs.ext4 or losetup")
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(path)], check=True)
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        ["mount", "-o", "loop", str(path), str(tmp_path / "disk")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no right to mount: {done.stderr.strip()}")
    yield path
    for folder in ("disk", "after"):
        subprocess.run(["umount", "-l", str(tmp_path / folder)], capture_output=True, check=False)


def test_a_disk_as_it_is_when_the_power_goes_has_all_rounds_that_were_said_to_be_on_it(
    tfcompare: str, tmp_path: Path, image: Path
) -> None:
    """What the file of the disk holds is what has reached the disk; the rest is in memory, and lost."""
    run = tmp_path / "disk" / "run"
    flags = ("--case", "naps", "--rounds", "50", "--output", str(run))
    with subprocess.Popen(
        [tfcompare, "run", *VENV, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: kinds(run, "synced") > 2 and kinds(run, "ended") % 4 == 2, process)
        said = kinds(run, "synced")
        shutil.copyfile(image, tmp_path / "after.img")
        process.kill()
        process.communicate(timeout=60)
    (tmp_path / "after").mkdir()
    subprocess.run(["mount", "-o", "loop", str(tmp_path / "after.img"), str(tmp_path / "after")], check=True)
    after = tmp_path / "after" / "run"
    assert kinds(after, "synced") >= said
    report = run_command(tfcompare, "report", after, "--format", "json")
    assert report.returncode == 0, report.stderr
    # One line before the first round, then one after each; the pilot may have been the first round.
    assert all(arm["rounds"] >= said - 2 for arm in parse(report)["arms"])
    answer = continued(tfcompare, after)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
