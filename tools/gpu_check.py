"""Check tfcompare on a real NVIDIA GPU in ten steps, or six without Docker: `make gpu-check`. Each prints its result.

The steps test the parts that tests replace with stubs. A step that has passed is not repeated, so an interrupted check
continues where it stopped. At the end everything is in one file, which can be attached to a report.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator import files
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.docker.container import RUN_LABEL
from orchestrator.machine.gpu import find_gpus
from orchestrator.machine.host import read_processes
from orchestrator.model import Ended
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import read_stream

# The driver makes code for OLD on GPUs that are newer than its wheel; the wheels of NEW hold code for an H100.
OLD, NEW = "2.13", ("2.16", "2.18")
BUILT = (OLD, "2.15", *NEW, "2.21")
STEP = ("--case", "conv_step[compiler=none]", "--rounds", "4")
USUAL = ("--case", "power", "--case", "train_loop[loop=train_on_batch,api=tf.keras,input=numpy,model=small,data=small]")
PATIENCE_S, LOOK_S, TERMINATED_S = 3600.0, 1.0, 60.0
# With --minutes, the steps that measure share what is left of the time. A step measures for this part of its share,
# because workers also have to start, and is ended after as many shares.
SHARES: Mapping[str, int] = {"train": 1, "twins": 3, "stranger": 2, "reload": 1, "code": 1, "kill": 2, "turns": 1}
MEASURED_SHARE, MOST_SHARES, LEAST_SHARE_S = 0.5, 1.5, 30.0
# Exit codes 0, success, and 6, for arms that died, both leave a run that can be read.
READABLE = (0, 6)
Interference = Callable[[Path, int], None]


class StepFailed(Exception):
    """A step failed; the message is what it saw instead of what it expects."""


class StepSkipped(Exception):
    """A step could not be tried; the message is the reason."""


@dataclass(frozen=True)
class Check:
    """The folder for all that the check writes, the command that it tests, and how it requests the GPU."""

    folder: Path
    program: str
    engine: str = "docker"
    request: str = "runtime"
    gpu: str = "0"
    base: str = ""
    versions: tuple[str, ...] = NEW
    # The time at which everything has to end, by the monotonic clock, and the seconds that a step is to take.
    ends: float = math.inf
    share_s: float = math.inf

    @property
    def is_limited(self) -> bool:
        return self.ends < math.inf

    @property
    def left_s(self) -> float:
        return max(0.0, self.ends - time.monotonic())

    @property
    def version_flags(self) -> tuple[str, str]:
        return "--versions", ",".join(self.versions)

    @property
    def setup(self) -> str:
        """The setup; if it changes, steps that have passed have to be repeated."""
        way = self.request if self.engine == "docker" else self.engine
        return f"GPU {self.gpu} by {way}, {', '.join(self.versions)}"

    @property
    def gpu_flags(self) -> tuple[str, ...]:
        return ("--gpus", self.gpu, *(("--gpu-request", self.request) if self.engine == "docker" else ()))

    @property
    def installation(self) -> tuple[str, ...]:
        return ("--base", self.base) if self.base and self.engine == "docker" else ()

    def call(self, name: str, *argv: str, expected: Sequence[int] = (0,), env: Mapping[str, str] | None = None) -> str:
        """Run tfcompare, keep what it prints under this name, and return its standard output."""
        with self._start(name, argv, env) as process:
            self._expect(name, argv[0], self._wait(process), expected)
        return (self.folder / "logs" / f"{name}.out").read_text()

    @contextmanager
    def _start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start tfcompare, keep what it prints under this name, and end it unless it has ended."""
        logs = self.folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        variables = {**os.environ, **(env or {})}
        with open(logs / f"{name}.out", "w") as printed, open(logs / f"{name}.err", "w") as errors:
            process = subprocess.Popen([self.program, *argv], env=variables, stdout=printed, stderr=errors)
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(TERMINATED_S)
                    process.kill()
                    process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit code of tfcompare; raise StepFailed if it does not end in the time of its step."""
        try:
            return process.wait(self.left_s if self.is_limited else None)
        except subprocess.TimeoutExpired:
            raise StepFailed("tfcompare had not ended when the time was over; logs has what it printed") from None

    def _expect(self, name: str, command: str, code: int, expected: Sequence[int]) -> None:
        if code not in expected:
            printed = (self.folder / "logs" / f"{name}.err").read_text().strip()
            error_lines = printed.splitlines() or ["it printed nothing"]
            raise StepFailed(f"tfcompare {command} ended with exit code {code}: {error_lines[-1]}")

    @contextmanager
    def running(self, name: str, *flags: str) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
        """Start a run on the GPU, and end it unless it has ended."""
        out = self.folder / "runs" / name
        shutil.rmtree(out, ignore_errors=True)
        command = ("run", "--engine", self.engine, *self.gpu_flags, *self.installation, *flags, "--output", str(out))
        with self._start(name, command) as process:
            yield out, process

    def measure(self, name: str, *flags: str, meanwhile: Interference | None = None) -> Run:
        """Measure a run on the GPU, and do something to it, or to its process, once its first round has begun."""
        budget = ("--budget", f"{self.share_s * MEASURED_SHARE:.0f}s") if self.is_limited else ()
        with self.running(name, *flags, *budget) as (out, process):
            if meanwhile:
                _await_round(out, process, self)
                meanwhile(out, process.pid)
            code = self._wait(process)
        self._expect(name, "run", code, READABLE)
        return load_run(out)


def _await_round(out: Path, process: subprocess.Popen[bytes], check: Check) -> None:
    end = min(time.monotonic() + PATIENCE_S, check.ends)
    while time.monotonic() < end and process.poll() is None:
        if (out / "plan.json").exists() and any(_find_measured(out)):
            return
        time.sleep(LOOK_S)
    raise StepFailed("the run ended before its first round" if process.poll() is not None else "no round has begun")


def _find_measured(out: Path) -> Iterator[Ended]:
    entries = RunFolder.open(out).entries()
    return (entry for entry in entries if isinstance(entry, Ended) and entry.round >= 1 and entry.outcome == "measured")


def find_devices(run: Path) -> set[str | None]:
    """Return the devices of all replicates that were built in a run; None is a CPU."""
    streams = RunFolder.open(run).worker_output.streams()
    rows = [row for stream in streams for row in read_stream(stream.path)[0].to_pylist()]
    return {row["device"] for row in rows if row["phase"] == "build"}


def _require_gpus(run: Run) -> str:
    devices = find_devices(run.path)
    if not devices or None in devices:
        raise StepFailed("replicates were measured without a GPU")
    return f"all replicates on {', '.join(sorted(map(str, devices)))}"


def _require_measured(run: Run) -> str:
    if died := [f"{arm.target}: {arm.reason}" for arm in run.arms if arm.outcome == "died"]:
        raise StepFailed(f"arms died: {'; '.join(died)}")
    return _require_gpus(run)


def inspect_machine(check: Check) -> str:
    """Record the GPUs, the driver and the Docker setup of this machine."""
    found = find_gpus()
    if not found:
        raise StepFailed("neither NVML nor nvidia-smi shows a GPU: nothing else can be tried")
    # Not every version can run on every GPU; doctor says which cannot, and then exits with 5.
    check.call("doctor", "doctor", "--gpu", "--versions", "all", "--no-probe", "--format", "json", expected=(0, 5))
    for name, command in (
        ("nvidia-smi", ("nvidia-smi", "-q")),
        ("docker-info", ("docker", "info")),
        ("toolkit", ("nvidia-ctk", "--version")),
    ):
        with suppress(OSError):
            done = subprocess.run(command, capture_output=True, text=True)
            (check.folder / "logs" / f"{name}.out").write_text(done.stdout + done.stderr)
    return "; ".join(map(str, found))


def build(check: Check) -> str:
    """Build the images that the other steps use."""
    wanted = dict.fromkeys((*BUILT, *check.versions))
    built = check.call("build", "images", "build", *wanted, "--gpu", *check.installation, "--format", "json")
    return ", ".join(f"{image['version']} {image['outcome']}" for image in json.loads(built))


def train(check: Check) -> str:
    """Train one step of a convolution in each image, plain and compiled by XLA."""
    return "; ".join(_verify(check, "verify", BUILT))


def _verify(check: Check, name: str, versions: Sequence[str], **env: str) -> list[str]:
    flags = (*check.gpu_flags, *check.installation, "--format", "json")
    printed = check.call(name, "images", "verify", *versions, *flags, expected=(0, 5), env=env)
    steps = [
        (image["version"], step)
        for image in json.loads(printed)
        for step in image["checks"]
        if step["subject"].startswith("step on the GPU")
    ]
    if wrong := [f"{version}, {step['subject']}: {step['found']}" for version, step in steps if not step["ok"]]:
        raise StepFailed("; ".join(wrong))
    if not steps:
        raise StepFailed("no image ran the step on the GPU")
    return [f"{version}, {step['subject']}: {step['found']}" for version, step in steps]


def compare_twins(check: Check) -> str:
    """Measure the baseline twice: nothing may come out as slower or faster than itself."""
    run = check.measure("twins", *check.version_flags, "--control", *USUAL)
    where = _require_measured(run)
    verdicts = [
        comparison.verdict for comparison in run.comparisons if any(arm.target.control for arm in comparison.pair.arms)
    ]
    if not verdicts or {"slower", "faster"} & set(verdicts):
        raise StepFailed(f"the control arm against its twin: {', '.join(verdicts) or 'no comparison'}")
    return f"the control arm against its twin: {', '.join(verdicts)}; {where}"


def share_gpu(check: Check) -> str:
    """Measure on the same GPU as another run: the report has to say so."""
    with check.running("load", *check.version_flags, *STEP, "--rounds", "1000") as (out, process):
        _await_round(out, process, check)
        run = check.measure("stranger", *check.version_flags, *STEP)
    warnings = [warning for warning in run.warnings if "another process" in warning]
    if not warnings:
        raise StepFailed("a process that kept the GPU busy was not noticed")
    return warnings[0]


def reload_daemons(check: Check) -> str:
    """Run `systemctl daemon-reload` during a run; if containers lose their GPUs, nothing may be measured on a CPU."""
    command = ["systemctl", "daemon-reload"] if os.geteuid() == 0 else ["sudo", "-n", "systemctl", "daemon-reload"]
    if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True).returncode:
        raise StepSkipped(f"`{' '.join(command)}` does not work here: run the check as root")

    def reload(out: Path, host: int) -> None:
        subprocess.run(command, check=True)

    run = check.measure("reload", *check.version_flags, *STEP, "--gpu-exclusive", meanwhile=reload)
    lost = sum(entry.how == "gpu lost" for entry in RunFolder.open(run.path).entries() if isinstance(entry, Ended))
    return f"{_require_gpus(run)}; {lost} replicates lost their GPU"


def compile_code(check: Check) -> str:
    """Let the driver compile the code of an older version, then load it from the cache."""
    # The user's own cache is left alone, because its code took hours to compile.
    own = check.folder / "code"
    shutil.rmtree(own, ignore_errors=True)
    cold, warm = (_verify(check, name, (OLD,), TFCOMPARE_CACHE=str(own))[0] for name in ("cold", "warm"))
    return f"without cached code: {cold}; with it: {warm}"


def kill_worker(check: Check) -> str:
    """Kill a worker, with its container, during a run: another worker has to replace it."""

    def kill(out: Path, host: int) -> None:
        if check.engine != "docker":
            os.kill(_find_worker(host), signal.SIGKILL)
            return
        client = connect_engine()
        running = client.containers.list(filters={"label": f"{RUN_LABEL}={RunFolder.open(out).read_plan().run}"})
        if not running:
            raise StepFailed("no container of the run could be found")
        running[0].kill()

    run = check.measure("killed", *check.version_flags, *STEP, meanwhile=kill)
    return _require_gpus(run)


def _find_worker(host: int) -> int:
    """Return a worker of the run that this process measures: a child that leads a process group."""
    for process in read_processes():
        if process.parent == host and process.group == process.pid:
            return process.pid
    raise StepFailed("no worker of the run could be found")


def take_turns(check: Check) -> str:
    """Give the GPU to one process at a time."""
    run = check.measure("exclusive", *check.version_flags, *STEP, "--gpu-exclusive")
    return _require_measured(run)


def draw(check: Check) -> str:
    """Draw the report of the first run from its folder alone."""
    check.call("report", "report", str(check.folder / "runs" / "twins"), "--format", "json")
    return "the run of step twins can be read; it is in the bundle"


STEPS: Mapping[str, Callable[[Check], str]] = {
    "look": inspect_machine,
    "build": build,
    "train": train,
    "twins": compare_twins,
    "stranger": share_gpu,
    "reload": reload_daemons,
    "code": compile_code,
    "kill": kill_worker,
    "turns": take_turns,
    "draw": draw,
}
# These steps are about images and containers.
DOCKER_STEPS = ("build", "train", "reload", "code")


def steps_on(engine: str) -> dict[str, Callable[[Check], str]]:
    return {name: step for name, step in STEPS.items() if engine == "docker" or name not in DOCKER_STEPS}


@dataclass
class Record:
    """The results of the steps, in a file that the next call reads."""

    path: Path
    setup: str
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, setup: str) -> "Record":
        """Read the results of steps that were taken in the same way; all other results are dropped."""
        kept = json.loads(path.read_text()) if path.exists() else {}
        return cls(path, setup, kept["steps"] if kept.get("how") == setup else {})

    def write(self, name: str, outcome: str, seen: str, seconds: float) -> None:
        self.seen[name] = {"outcome": outcome, "seen": seen, "seconds": round(seconds)}
        kept = {"how": self.setup, "steps": self.seen}
        files.write_atomically(self.path, (json.dumps(kept, indent=2) + "\n").encode())

    def has_passed(self, name: str) -> bool:
        return self.seen.get(name, {}).get("outcome") == "passed"


def run_steps(check: Check, record: Record, steps: Mapping[str, Callable[[Check], str]], again: Sequence[str]) -> bool:
    """Run the steps that have not passed yet; return whether no step has failed, in this call or before."""
    for number, (name, step) in enumerate(steps.items(), 1):
        title = f"{number} of {len(steps)}, {name}"
        if record.has_passed(name) and name not in again:
            print(f"{title}: passed before: {record.seen[name]['seen']}")
            continue
        print(f"{title}: {(step.__doc__ or '').strip()}", flush=True)
        begun = time.monotonic()
        try:
            waiting = [each for each in list(steps)[number - 1 :] if each in again or not record.has_passed(each)]
            outcome, seen = "passed", step(_share(check, name, waiting))
        except StepSkipped as reason:
            outcome, seen = "skipped", str(reason)
        except Exception as error:
            # A GPU may do what no test has foreseen, and the other steps are still worth their time.
            kind = "" if isinstance(error, StepFailed) else f"{type(error).__name__}: "
            outcome, seen = "failed", f"{kind}{error}"
        record.write(name, outcome, seen, time.monotonic() - begun)
        print(f"  {outcome}: {seen}", flush=True)
        if name == "look" and outcome == "failed":
            return False
    return all(each["outcome"] != "failed" for each in record.seen.values())


def _share(check: Check, name: str, waiting: Sequence[str]) -> Check:
    """Give a step its share of the time that is left for all that wait; raise StepSkipped if that is too little."""
    if not check.is_limited or name not in SHARES:
        return check
    share_s = check.left_s * SHARES[name] / sum(SHARES.get(each, 0) for each in waiting)
    if share_s < LEAST_SHARE_S:
        raise StepSkipped(f"{check.left_s:.0f} s are left for all steps: --minutes with more, or --again {name}")
    return replace(check, share_s=share_s, ends=min(check.ends, time.monotonic() + MOST_SHARES * share_s))


def bundle(folder: Path) -> Path:
    """Pack all that the check has left into one file next to it."""
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, folder.name)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("runs/gpu-check"), help="folder for all results")
    parser.add_argument("--gpu", default="0", help="index of the GPU")
    parser.add_argument(
        "--engine", default="docker", choices=("docker", "venv"), help="venv runs the six steps that need no Docker"
    )
    parser.add_argument("--gpu-request", default="runtime", choices=("runtime", "device", "cdi"))
    parser.add_argument("--versions", default=",".join(NEW), help="versions to compare, separated by commas")
    parser.add_argument("--base", default=os.environ.get("TFCOMPARE_BASE", ""), help="base of images, as for `run`")
    parser.add_argument("--again", action="append", default=[], choices=list(STEPS), help="repeat this step")
    parser.add_argument("--minutes", type=float, help="end after this time: steps are shortened or left out")
    given = parser.parse_args()
    program = Path(sys.executable).with_name("tfcompare")
    versions = tuple(given.versions.split(","))
    check = Check(given.output, str(program), given.engine, given.gpu_request, given.gpu, given.base, versions)
    if given.minutes:
        check = replace(check, ends=time.monotonic() + 60 * given.minutes)
    check.folder.mkdir(parents=True, exist_ok=True)
    record = Record.read(check.folder / "steps.json", check.setup)
    passed = run_steps(check, record, steps_on(check.engine), given.again)
    print(f"\nAll results are in {bundle(check.folder)}: attach this file to a report.")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
