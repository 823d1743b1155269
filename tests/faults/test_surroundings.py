"""What a run needs is missing, taken away or read-only: it says which, keeps what it has, and leaves nothing behind.

Real commands on real environments, whose TensorFlow is a stub.
"""

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model import Finished
from orchestrator.results.run_folder import RunFolder
from tests.conftest import run_command
from tests.soak import kills
from tests.soak.kills import marked
from tests.support.end_to_end import Answer, parse
from tests.support.live_runs import PATIENCE_S, kinds, mount_read_only, until

OWN = Path(__file__).parent / "workloads"
VERSIONS = ("--engine", "venv", "--versions", "2.0,2.1")
NAPS = ("--workload-folder", str(OWN), "--case", "naps", "--quiet")


class Scene:
    """Commands with their own temporary folder, and a mark by which the processes of all of them are found."""

    def __init__(self, tfcompare: str, stubs: dict[str, str], folder: Path) -> None:
        self.tfcompare = tfcompare
        self.folder = folder
        self.out = folder / "run"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.mark = f"TF_CPP_MARK=surroundings-{os.getpid()}-{folder.name}"
        self.env = {**stubs, "TMPDIR": str(self.scratch), "TF_CPP_MARK": self.mark.partition("=")[2], "COLUMNS": "100"}

    def start(self, *argv: str, before: tuple[str, ...] = (), **env: str) -> "subprocess.Popen[str]":
        """Start a command of tfcompare; `before` is a program that starts it."""
        return subprocess.Popen(
            [*before, self.tfcompare, *argv], env={**os.environ, **self.env, **env}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def measure(self, *flags: str, before: tuple[str, ...] = (), **env: str) -> "subprocess.Popen[str]":
        argv = ("run", *VERSIONS, *NAPS, "--format", "json", "--output", str(self.out), *flags)
        return self.start(*argv, before=before, **env)

    def end(self, process: "subprocess.Popen[str]") -> tuple[int, str, str]:
        """The exit code and the two streams of a command that ends; nothing of it is left."""
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            # Or whoever holds it would wait for its end.
            process.kill()
            raise
        assert "Traceback" not in stderr
        assert marked(self.mark) == [], stderr
        return process.returncode, stdout, stderr

    def resume(self, run: Path) -> Answer:
        """What a run that is continued comes to; nothing of it is lost, unknown or doubled."""
        process = self.start("run", "--resume", str(run), "--rounds", "2", "--quiet")
        code, _, stderr = self.end(process)
        # Nothing is measured where every comparison has a verdict.
        assert code in (0, 3), stderr
        report = run_command(self.tfcompare, "report", run, "--format", "json", env=self.env)
        assert report.returncode == 0, report.stderr
        answer = parse(report)
        assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
        return answer


@pytest.fixture
def scene(tfcompare: str, stubs: dict[str, str], tmp_path: Path) -> Scene:
    return Scene(tfcompare, stubs, tmp_path)


def errors(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("tfcompare: ")]


def has_rounds(run: Path, count: int = 1) -> bool:
    """Whether this many rounds are on the disk; a line was written before the first."""
    return kinds(run, "synced") > count


@pytest.mark.parametrize("gone", ["renamed", "removed"])
def test_a_run_folder_that_is_gone_ends_the_run_in_one_line(scene: Scene, gone: str) -> None:
    elsewhere = scene.folder / "elsewhere"
    with scene.measure("--rounds", "500") as process:
        until(lambda: has_rounds(scene.out), process)
        scene.out.rename(elsewhere)
        if gone == "removed":
            shutil.rmtree(elsewhere)
        code, stdout, stderr = scene.end(process)
    assert (code, stdout) == (2, ""), stderr
    (line,) = errors(stderr)
    assert line.startswith(f"tfcompare: {scene.out} was removed or renamed while the run was in progress; ")
    assert not scene.out.exists()
    assert list(scene.scratch.iterdir()) == []
    if gone == "renamed":
        assert all(arm["rounds"] >= 3 for arm in scene.resume(elsewhere)["arms"])


def test_results_that_are_removed_cost_their_round_and_no_other(scene: Scene) -> None:
    with scene.measure("--rounds", "6") as process:
        until(lambda: has_rounds(scene.out, 2) and kinds(scene.out, "ended") % 4 == 2, process)
        shutil.rmtree(scene.out / "results")
        code, stdout, stderr = scene.end(process)
    assert code == 7, stderr
    answer = json.loads(stdout)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert all(arm["rounds"] >= 4 for arm in answer["arms"])
    assert "lost: measured, and in no file" in stderr
    assert list(scene.scratch.iterdir()) == []


def test_logs_that_are_removed_come_back(scene: Scene) -> None:
    with scene.measure("--rounds", "4") as process:
        until(lambda: has_rounds(scene.out), process)
        shutil.rmtree(scene.out / "logs")
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    assert {arm["outcome"] for arm in json.loads(stdout)["arms"]} == {"measured"}
    assert (scene.out / "logs").is_dir()


def failures(run: Path) -> list[dict[str, Any]]:
    """What the journal says of arms that died and of versions that were lost."""
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "lost" or line.get("outcome") == "died"]


def test_a_temporary_folder_that_is_removed_is_named_and_its_arms_are_tried_again(scene: Scene) -> None:
    """No environment is blamed for it."""
    with scene.measure("--rounds", "8") as process:
        until(lambda: has_rounds(scene.out), process)
        scene.scratch.rename(scene.folder / "elsewhere")
        # An arm that was measured before is measured.
        code, _, stderr = scene.end(process)
    assert code in (0, 6), stderr
    found = failures(scene.out)
    assert found
    for failure in found:
        assert (failure["failure"], failure["external"]) == ("start", True)
        assert str(scene.scratch) in failure["reason"]
        assert "environments" not in failure["reason"]
    scene.scratch.mkdir()
    scene.resume(scene.out)


def test_an_environment_that_is_removed_is_named_and_its_version_is_tried_again(scene: Scene) -> None:
    (made,) = (Path(scene.env["TFCOMPARE_CACHE"]) / "tfcompare" / "environments").glob("2.1.4-*[!k]")
    with scene.measure("--rounds", "8") as process:
        until(lambda: has_rounds(scene.out), process)
        made.rename(scene.folder / "elsewhere")
        try:
            code, _, stderr = scene.end(process)
        finally:
            (scene.folder / "elsewhere").rename(made)
    assert code in (0, 6), stderr
    (lost,) = failures(scene.out)
    assert (lost["kind"], lost["target"]) == ("lost", "2.1.4")
    assert f"{made} was removed; run again to install it again" in lost["reason"]
    scene.resume(scene.out)


@pytest.fixture
def read_only(scene: Scene) -> Iterator[list[Path]]:
    """Folders that are read-only until the test ends; the first shows that this user may make them so."""
    folders = [scene.folder / "probe"]
    folders[0].mkdir()
    mount_read_only(folders[0])
    yield folders
    for folder in folders:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_run_folder_that_becomes_read_only_is_named_and_its_run_is_continued(
    scene: Scene, read_only: list[Path]
) -> None:
    with scene.measure("--rounds", "500") as process:
        until(lambda: has_rounds(scene.out), process)
        mount_read_only(scene.out)
        read_only.append(scene.out)
        code, stdout, stderr = scene.end(process)
    assert (code, stdout) == (2, ""), stderr
    (line,) = errors(stderr)
    assert ": Read-only file system; what was written before is kept. Once it can be written, " in line
    # It is read like any other; its reports cannot be kept in it.
    assert run_command(scene.tfcompare, "report", scene.out, env=scene.env).returncode == 0
    again = run_command(scene.tfcompare, "run", "--resume", scene.out, env=scene.env)
    assert (again.returncode, errors(again.stderr)) == (
        2, [f"tfcompare: cannot write into {scene.out}: Read-only file system"],
    )  # fmt: skip
    subprocess.run(["umount", "-l", str(read_only.pop())], check=True)
    scene.resume(scene.out)


def test_a_place_that_is_read_only_from_the_start_is_one_line(scene: Scene, read_only: list[Path]) -> None:
    (scene.folder / "place").mkdir()
    mount_read_only(scene.folder / "place")
    read_only.append(scene.folder / "place")
    for flags in ((), ("--dry-run",)):
        with scene.measure("--rounds", "2", "--output", str(scene.folder / "place" / "run"), *flags) as process:
            code, stdout, stderr = scene.end(process)
        assert (code, stdout) == (2, ""), stderr
        (line,) = errors(stderr)
        assert line.endswith(": Read-only file system; choose another --output")


def test_a_temporary_folder_that_becomes_read_only_is_named_and_its_arms_are_tried_again(
    scene: Scene, read_only: list[Path]
) -> None:
    with scene.measure("--rounds", "8") as process:
        until(lambda: has_rounds(scene.out), process)
        mount_read_only(scene.scratch)
        read_only.append(scene.scratch)
        code, _, stderr = scene.end(process)
    assert code in (0, 6), stderr
    found = failures(scene.out)
    assert found
    for failure in found:
        assert (failure["failure"], failure["external"]) == ("disk", True)
        assert "Read-only file system" in failure["reason"]
        assert f"the file system of {scene.scratch} is read-only" in failure["reason"]
        assert "environments" not in failure["reason"]
    subprocess.run(["umount", "-l", str(read_only.pop())], check=True)
    scene.resume(scene.out)


def test_a_temporary_folder_that_does_not_exist_is_replaced_by_the_usual_one(scene: Scene) -> None:
    with scene.measure("--rounds", "2", TMPDIR=str(scene.folder / "nowhere")) as process:
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    assert {arm["outcome"] for arm in json.loads(stdout)["arms"]} == {"measured"}
    assert list(Path("/tmp").glob(f"tfcompare-{process.pid}-*")) == []


def test_a_user_without_the_variable_home_has_the_home_of_the_system(scene: Scene) -> None:
    unset = ("env", "-u", "HOME")
    with scene.measure("--rounds", "2", before=unset) as process:
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    assert {arm["outcome"] for arm in json.loads(stdout)["arms"]} == {"measured"}
    home = pwd.getpwuid(os.getuid()).pw_dir
    done = run_command(*unset, "-u", "XDG_CACHE_HOME", "-u", "TFCOMPARE_CACHE", scene.tfcompare, "run", *VERSIONS,
                       "--dry-run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"virtual environments, kept in {home}/.cache/tfcompare/environments" in done.stdout + done.stderr


def test_a_run_whose_standard_streams_are_closed_measures_all(scene: Scene) -> None:
    """No file of the run gets the number of a standard stream, into which libraries print."""
    closed = ("bash", "-c", 'exec "$@" <&- >&- 2>&-', "closed")
    with scene.measure("--rounds", "2", before=closed) as process:
        code, stdout, stderr = scene.end(process)
    assert (code, stdout, stderr) == (0, "", "")
    (finished,) = (entry for entry in RunFolder.open(scene.out).entries() if isinstance(entry, Finished))
    assert finished.how == ""
    report = run_command(scene.tfcompare, "report", scene.out, "--format", "json", env=scene.env)
    assert (report.returncode, {arm["outcome"] for arm in parse(report)["arms"]}) == (0, {"measured"}), report.stderr
    assert list(scene.scratch.iterdir()) == []


def test_a_run_with_few_descriptors_measures_all(scene: Scene) -> None:
    limited = ("bash", "-c", 'ulimit -n 26 && exec "$@"', "limited")
    with scene.measure("--rounds", "2", before=limited) as process:
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    assert {arm["outcome"] for arm in json.loads(stdout)["arms"]} == {"measured"}


def test_of_two_runs_into_one_folder_one_wins(scene: Scene) -> None:
    with scene.measure("--rounds", "2") as first, scene.measure("--rounds", "2") as second:
        ended = [(process.communicate(timeout=PATIENCE_S), process.returncode) for process in (first, second)]
    (won, lost) = sorted(ended, key=lambda each: each[1])
    assert (won[1], lost[1]) == (0, 2), ended
    assert {arm["outcome"] for arm in json.loads(won[0][0])["arms"]} == {"measured"}
    (line,) = errors(lost[0][1])
    assert "choose another --output" in line
    report = run_command(scene.tfcompare, "report", scene.out, env=scene.env)
    assert report.returncode == 0, report.stderr


# In the place of a clock that is set back by a second at each look, once a file says so.
CLOCK = """
import os, time
real, back = time.time, [0.0]
def slow():
    back[0] += os.path.exists({mark!r})
    return real() - back[0]
time.time = slow
"""


def test_a_clock_that_is_set_back_disturbs_rounds_and_nothing_else(scene: Scene) -> None:
    mark, own = scene.folder / "mark", scene.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(CLOCK.format(mark=str(mark)))
    with scene.measure("--rounds", "4", PYTHONPATH=str(own)) as process:
        until(lambda: has_rounds(scene.out), process)
        mark.touch()
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    answer = json.loads(stdout)
    assert {(arm["outcome"], arm["rounds"]) for arm in answer["arms"]} == {("measured", 4)}
    lines = [json.loads(line) for line in (scene.out / "journal.jsonl").read_text().splitlines()]
    causes = {line["cause"].rpartition(" by ")[0] for line in lines if line["kind"] == "disturbed"}
    assert "the clock jumped" in causes
    (finished,) = (line for line in lines if line["kind"] == "finished")
    assert 0 < finished["seconds"] < 600
    scene.resume(scene.out)


def test_a_search_that_is_killed_is_continued_where_it_was(scene: Scene) -> None:
    """In its second step: the first is not measured again."""
    hunt = scene.folder / "hunt"
    case = ("--workload-folder", str(OWN), "--case", "paced", "--rounds", "4")
    ends = ("--engine", "venv", "--good", "2.0", "--bad", "2.2")

    def steps() -> list[Answer]:
        path = hunt / "bisect.json"
        found: list[Answer] = json.loads(path.read_text())["steps"] if path.exists() else []
        return found

    with scene.start("bisect", *ends, *case, "--output", str(hunt), "--quiet") as process:
        until(lambda: steps() and any(kinds(run, "ended") for run in (hunt / "steps").glob("02*")), process)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    kills.until(lambda: not marked(scene.mark), "the end of its workers")
    first = steps()
    assert len(first) == 1
    with scene.start("bisect", "--resume", str(hunt), "--format", "json") as process:
        code, stdout, stderr = scene.end(process)
    assert code == 0, stderr
    assert "removed what runs that were killed had left behind: " in stderr
    assert list(scene.scratch.iterdir()) == []
    answer = json.loads(stdout)
    assert [(part["earlier"], part["later"]) for part in answer["changes"] if part["kind"] == "change"] == [
        ("2.1.4", "2.2.3")
    ]
    assert steps()[0] == first[0]
    assert steps()[1]["run"] != "steps/02", "the run that was killed stays as it was"
    for path in sorted((hunt / "steps").iterdir()):
        assert run_command(scene.tfcompare, "report", path, env=scene.env).returncode == 0, path


def test_a_profile_that_is_killed_can_be_read_as_far_as_it_went(scene: Scene) -> None:
    out = scene.folder / "profile"
    flags = (*VERSIONS, *NAPS, "--output", str(out))
    with scene.start("profile", *flags, "--calls", "100") as process:
        until(lambda: len(list((out / "profiles").glob("*.speedscope.json"))) >= 2, process)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    kills.until(lambda: not marked(scene.mark), "the end of its workers")
    done = run_command(scene.tfcompare, "report", out, "--format", "json", env=scene.env)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "tfcompare.profile/1"
    assert [path.name for path in (out / "profiles").iterdir() if path.name.startswith(".")] == []
    again = run_command(scene.tfcompare, "profile", *flags, env=scene.env)
    assert (again.returncode, errors(again.stderr)) == (2, [
        f"tfcompare: {out} is not empty; choose another --output, or `tfcompare report {out}` if it holds a run"
    ])  # fmt: skip
    with scene.start("profile", *VERSIONS, *NAPS, "--output", str(scene.folder / "next"), "--calls", "3") as process:
        code, _, stderr = scene.end(process)
    assert code == 0, stderr
    assert list(scene.scratch.iterdir()) == []
