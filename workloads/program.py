"""A replicate that runs a program of the user's: each call is a new process, in a new scratch folder.

The folder has copies of the project's files, and takes what the program writes. If the program calls Keras' `fit`,
`program_site/sitecustomize.py` writes down how long its steps take.
"""

import contextlib
import itertools
import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

from workloads import contract, cuda
from workloads.replicate import GpuLost, Replicate, find_layer

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCHER, SITE = os.path.join(HERE, "launch.py"), os.path.join(HERE, "program_site")
# A command that begins with such a word gets the Python of the environment, whatever its number.
PYTHON = re.compile(r"python(3(\.\d+)?)?")
# This many characters of a program's last line are kept, and this many bytes at its end are searched for a reason.
MOST_LINE, LOOKED_AT = 300, 4096
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# An abseil program whose flags are wrong ends with this line; the line before it says which.
HINT = re.compile(r"Pass --help")
WRAPPER = re.compile(r"^[\w.]+: (in (user|converted) code:$|Exception encountered when calling )")
ARGUMENTS = re.compile(r"(Call a|A)rguments received by ")
MOST_LOSSES, MOST_STEPS_BYTES = 1000, 2**16
MOST_WARNINGS_BYTES = 2**19


class ProgramFailed(Exception):
    def __init__(self, how, reason):
        Exception.__init__(self, reason)
        self.how = how


class ProgramReplicate(Replicate):
    def __init__(self, tf, order, folders, threads, gpus=0):
        Replicate.__init__(self, tf, order, folders, threads, gpus)
        # This is in the worker's own temporary folder, which is removed with the worker.
        self.scratch = tempfile.mkdtemp(prefix="program-")
        self.resident_kb = 0
        self.steps = 1
        self.fit = {}

    def clear(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _guarded(self, act):
        def act_or_fail():
            try:
                return act()
            except ProgramFailed as failure:
                return self._answer("died", how=failure.how, reason=str(failure), log="")

        return Replicate._guarded(self, act_or_fail)

    def _open(self):
        self.layer = find_layer(self.order["workload"])
        build_ns, _ = self.calls.time(lambda: None, 0, "build")
        return self._answer("opened", build_ns=build_ns, first_ns=0, second_ns=0, steps=1, items=0, output="", threads=[])

    def _burst(self, calls, least_s):
        self.bursts += 1
        self.usage.start()
        reports = [self._run() for _ in range(calls)]
        self.usage.stop()
        for report in reports:
            self.calls.add(self.bursts, "burst", report["wall_ns"], report["cpu_ns"])
        self.resident_kb = max([self.resident_kb] + [report["resident_kb"] for report in reports])
        return self._answer(
            "measured",
            walls_ns=[report["wall_ns"] for report in reports],
            cpu_ns=sum(report["cpu_ns"] for report in reports),
        )

    def _run(self):
        """Run the program once; return what it took."""
        steps, fresh = os.path.join(self.scratch, "steps.json"), tempfile.mkdtemp(dir=self.scratch)
        try:
            place, home = os.path.join(fresh, "work"), os.path.join(fresh, "home")
            os.mkdir(home)
            large = self.order["program"]["large"]
            show_project(self.folders[-1], large, place, home)
            before = read_stamps(self.folders[-1], large)
            report = self._launch(place, home, steps)
            after = read_stamps(self.folders[-1], large)
            changed = sorted(name for name in set(before).union(after) if before.get(name) != after.get(name))
            self.fit = read_steps(steps)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        if changed:
            # The next run would find what this one wrote.
            raise ProgramFailed(
                "raised",
                f"{changed[0]} was changed in place, for large files and data are not copied: write another file",
            )
        self._check_gpus()
        if report["code"] < 0:
            raise ProgramFailed("signal", "killed by {}".format(signal.Signals(-report["code"]).name))
        if report["code"]:
            said = last_words()
            raise ProgramFailed("raised", "it ended with exit code {}{}".format(report["code"], said and ": " + said))
        return report

    def _check_gpus(self):
        """Check the GPUs in a new process; if it has them, so had the program, which ended just now."""
        if self.gpus:
            found = cuda.ask_in_new_process()[0]["devices"]
            if len(found) < self.gpus:
                raise GpuLost(f"the driver shows {len(found)} of {self.gpus} GPUs after a run")
            self.device = cuda.describe(found)

    def _launch(self, place, home, steps):
        reading, writing = os.pipe()
        try:
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", LAUNCHER, str(writing)] + find_command(self.order["program"]["words"]),
                cwd=place,
                env=self._variables(home, steps),
                stdin=subprocess.DEVNULL,
                pass_fds=(writing,),
            )
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb") as told:
            text = told.read()
        launcher.wait()
        report = json.loads(text.decode("ascii")) if text else {"error": "what starts it was ended"}
        if "error" in report:
            raise ProgramFailed("raised", report["error"])
        return report

    def _variables(self, home, steps):
        paths = os.environ.get("PATH", "/usr/bin:/bin")
        return dict(
            os.environ,
            HOME=home,
            PATH=os.pathsep.join([os.path.dirname(sys.executable), paths]),
            PYTHONPATH=os.pathsep.join(filter(None, [SITE, os.environ.get("PYTHONPATH")])),
            **{contract.STEPS: steps, contract.PACKAGES: self.layer or ""},
        )

    def _close(self):
        # JSON has no NaN, which is the loss of a failed training, so the loss becomes a text.
        losses = [loss if math.isfinite(loss) else str(loss) for loss in self.fit.get("losses", ())]
        facts = dict(
            self.usage.totals,
            resident_kb=self.resident_kb,
            memory_kb=self.resident_kb,
            calls=self.calls.ordinal,
            first_step_ns=self.fit.get("first_step_ns"),
            step_ns=self.fit.get("step_ns"),
            losses=json.dumps(losses) if losses else None,
            device=self.device,
        )
        return self._answer("closed", columns=self.calls.columns, steps=1, facts=facts)


class WarnedProgram(ProgramReplicate):
    """A replicate with one answer: it runs its program once, and reports what the program was warned of."""

    def begin(self):
        return self._guarded(self._collect)

    def _collect(self):
        self.layer = find_layer(self.order["workload"])
        self._run()
        return self._answer("warned", warnings=read_warnings(self._written))

    @property
    def _written(self):
        return os.path.join(self.scratch, "warnings.json")

    def _variables(self, home, steps):
        return dict(ProgramReplicate._variables(self, home, steps), **{contract.WARNINGS: self._written})


def show_project(project, large, place, home):
    """Copy a project, so that a run changes nothing for the next one; `large` files and data are linked."""
    data = os.path.join(project, contract.DATA)
    copy(project, place, {os.path.join(project, name) for name in large}, data)
    start = contract.DATA + "/"
    show_data(data, [name[len(start) :] for name in large if name.startswith(start)], place, home)


def copy(source, place, linked, left_out):
    os.mkdir(place)
    # Nothing in a container's scratch folder can be executed, but its project is read-only and can be linked.
    fixed = os.statvfs(source).f_flag & os.ST_RDONLY
    for name in os.listdir(source):
        path, target = os.path.join(source, name), os.path.join(place, name)
        if path == left_out:
            continue
        if path in linked:
            show(path, target)
        elif os.path.isdir(path):
            copy(path, target, linked, left_out)
        elif fixed and os.access(path, os.X_OK):
            os.symlink(path, target)
        else:
            shutil.copy(path, target)


def read_stamps(project, names):
    """Return the size and last change of each linked file by its name, except where a container makes it read-only."""
    stamps = {}
    for name in names:
        place = os.path.join(project, name)
        with contextlib.suppress(OSError):
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                continue
        paths = [place]
        for folder, _, inner in os.walk(place):
            paths += [os.path.join(folder, each) for each in inner]
        for path in paths:
            # A file that is gone has no stamp.
            with contextlib.suppress(OSError):
                status = os.stat(path)
                if stat.S_ISREG(status.st_mode):
                    stamps[path[len(project) + 1 :]] = status.st_size, status.st_mtime_ns
    return {name_data(name): stamp for name, stamp in stamps.items()}


def name_data(name):
    """Return the name by which a program knows a file: data are in its folder or in its home."""
    start = contract.DATA + "/"
    if not name.startswith(start):
        return name
    root, inner = name[len(start) :].split("/", 1)
    return "~/" + inner if root == "home" else inner


def show(source, place):
    """Link a file, or what is in a folder, to another place, where files can be added."""
    if not os.path.isdir(source):
        os.symlink(source, place)
        return
    os.makedirs(place)
    for name in os.listdir(source):
        os.symlink(os.path.join(source, name), os.path.join(place, name))


def show_data(source, names, place, home):
    """Link data into a program's folder by their own names, and data of the user's home also into its home."""
    for name in names:
        root, inner = name.split("/", 1)
        shown = [os.path.join(place, os.path.basename(inner))]
        if root == "home":
            shown.append(os.path.join(home, inner))
            os.makedirs(os.path.dirname(shown[-1]), exist_ok=True)
        for target in shown:
            if not os.path.lexists(target):
                show(os.path.join(source, name), target)


def find_command(words):
    """Return the words of a command as they are run here: `python` is this environment's, and also runs a bare file."""
    if PYTHON.fullmatch(words[0]):
        return [sys.executable] + words[1:]
    return [sys.executable] + words if words[0].endswith(".py") else words


def read_steps(path):
    """Return what is valid of the record of a program's steps, where the program can have put anything."""
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(MOST_STEPS_BYTES).decode("utf-8"))
        os.unlink(path)
        whole = {name: int(told[name]) for name in ("first_step_ns", "step_ns") if 0 < told.get(name, 0) < 2**46}
        return dict(whole, losses=[float(loss) for loss in told["losses"][:MOST_LOSSES]])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}


def read_warnings(path):
    """Return the objects in the list of a program's warnings, where the program can have put anything."""
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(MOST_WARNINGS_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    kinds = {"kind": str, "text": str, "place": str, "line": int, "own": bool}
    listed = told if isinstance(told, list) else []
    return [
        each for each in listed if isinstance(each, dict) and {name: type(value) for name, value in each.items()} == kinds
    ]


def last_words():
    """Return why this replicate's program failed, from the end of its output, or '' if that cannot be read."""
    try:
        size = os.fstat(2).st_size
        return find_reason(os.pread(2, LOOKED_AT, max(0, size - LOOKED_AT)).decode("utf-8", "replace"))
    except OSError:
        return ""


def find_reason(text):
    """Return one line on why a program failed: its exception, or else its last line."""
    lines = [line for line in COLOUR.sub("", text).splitlines() if line.strip() and not HINT.match(line)]
    begins = max((place for place, line in enumerate(lines) if line.startswith("Traceback (")), default=None)
    if begins is not None:
        ends = next((place for place in range(begins + 1, len(lines)) if not lines[place][0].isspace()), begins)
        said = lines[ends]
        if WRAPPER.search(said):
            # Keras and AutoGraph only say where it happened; the reason is the last line of what they cite.
            cited = itertools.takewhile(lambda line: not ARGUMENTS.match(line), lines[ends:])
            said = " ".join(dict.fromkeys(line.strip() for line in (said, list(cited)[-1])))
        lines = [said]
    return lines[-1].strip()[:MOST_LINE] if lines else ""
