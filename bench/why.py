"""Whether `tfcompare why` names the right cause: injected ones, runs without any, and some that people reported.

The real command asks, on virtual environments of real releases. What is injected is a wheel that was patched, a
variable, a default or a release of TensorFlow. Each question has other changes that do nothing. A question that names
one cause too many, or one too few, counts as wrong.
"""

import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.busy import BUSY_CORE, busy_core
from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.child_process import PROGRAM
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View

WORKLOADS = Path(__file__).parent / "workloads"
NUMPY, KERAS = "2.1.3", "3.8.0"
ROLL = """
import time as _time

_roll = roll


def roll(*args, **others):
    {}
    return {}
"""
DENSE = """
import time as _time

_call = Dense.call


def _call_slowly(self, inputs, training=None):
    _time.sleep(0.001)
    return _call(self, inputs, training)


Dense.call = _call_slowly
"""
# What is patched: a package, the member of its wheel, and the code that is put below it, by the number of the wheel.
WHEELS: Mapping[str, tuple[str, str, str]] = {
    f"{KERAS}.post1": ("keras", "keras/src/layers/core/dense.py", DENSE),
    f"{NUMPY}.post1": ("numpy", "numpy/__init__.py", ROLL.format("_time.sleep(0.002)", "_roll(*args, **others)")),
    f"{NUMPY}.post2": ("numpy", "numpy/__init__.py", "\n_HELD = bytearray(2**27)\n_HELD[::1024] = b'x' * 2**17\n"),
    f"{NUMPY}.post3": (
        "numpy", "numpy/__init__.py",
        ROLL.format("_WAITS and _time.sleep(_WAITS.pop())", "_roll(*args, **others)") + "_WAITS = [0.03]\n",
    ),
    f"{NUMPY}.post4": ("numpy", "numpy/__init__.py", ROLL.format("pass", "_roll(*args, **others) + 1.0")),
}  # fmt: skip
# Changes that do nothing here.
DECOYS = "wrapt==1.16.0 DECOY=1"
LAYER, PAUSE, LOOP = (f"caused[which={which}]" for which in ("layer", "pause", "loop"))
TRAIN = "train_tiny[model=mlp,loop=train_on_batch]"
EIGHT = "A=1 B=1 C=1 D=1 E=1 F=1 G=1 SLOW=1"
NAMED, BLAMED, LIMIT_S, COST = 11, 1, 600.0, 2.5


@dataclass(frozen=True)
class Asked:
    """A question, and the causes that are to be named. A cause that ends with ` ...` may have any end."""

    old: str
    new: str
    case: str
    causes: tuple[str, ...]
    flags: tuple[str, ...] = ()
    is_busy: bool = False


NOTHING = Asked("2.20 py=3.11", f"2.20 py=3.11 {DECOYS} OTHER=1", LAYER, ())
INJECTED: Mapping[str, Asked] = {
    "a layer of Keras that sleeps": Asked(
        f"2.20 py=3.11 keras=={KERAS}", f"2.20 py=3.11 keras=={KERAS}.post1 {DECOYS}", LAYER,
        (f"Keras {KERAS} -> {KERAS}.post1",),
    ),
    "a function of numpy that sleeps": Asked(
        f"2.20 py=3.11 numpy=={NUMPY}", f"2.20 py=3.11 numpy=={NUMPY}.post1 {DECOYS}", LAYER,
        (f"numpy {NUMPY} -> {NUMPY}.post1",),
    ),
    "a variable": Asked("2.20 py=3.11", f"2.20 py=3.11 {DECOYS} SLOW=1", LAYER, ("SLOW none -> 1",)),
    "oneDNN": Asked(
        "2.8 py=3.7 ONEDNN_IS_SLOW=1", f"2.10 py=3.7 ONEDNN_IS_SLOW=1 {DECOYS}", PAUSE, ("oneDNN off -> on",)
    ),
    "a TensorFlow that sleeps": Asked("2.14 py=3.11", f"2.15 py=3.11 {DECOYS}", PAUSE, ("TensorFlow ...",)),
    "two at once": Asked(
        f"2.20 py=3.11 numpy=={NUMPY}", f"2.20 py=3.11 numpy=={NUMPY}.post1 {DECOYS} SLOW=1 as both", LAYER,
        (f"numpy {NUMPY} -> {NUMPY}.post1", "SLOW none -> 1"),
    ),
    "two that cancel each other": Asked(
        "2.20 py=3.11", f"2.20 py=3.11 {DECOYS} SLOW=1 FAST=1", PAUSE, ("SLOW none -> 1", "FAST none -> 1")
    ),
    "memory": Asked(
        f"2.20 py=3.11 numpy=={NUMPY}", f"2.20 py=3.11 numpy=={NUMPY}.post2 {DECOYS}", LAYER,
        (f"numpy {NUMPY} -> {NUMPY}.post2",), ("--metric", "memory"),
    ),
    "a first call": Asked(
        f"2.20 py=3.11 numpy=={NUMPY}", f"2.20 py=3.11 numpy=={NUMPY}.post3 {DECOYS}", LAYER,
        (f"numpy {NUMPY} -> {NUMPY}.post3",), ("--metric", "first"),
    ),
    "a result": Asked(
        f"2.20 py=3.11 numpy=={NUMPY}", f"2.20 py=3.11 numpy=={NUMPY}.post4 {DECOYS}", LAYER,
        (f"numpy {NUMPY} -> {NUMPY}.post4",), ("--metric", "output"),
    ),
    "nothing": NOTHING,
    "nothing, on a busy core": Asked(NOTHING.old, NOTHING.new, NOTHING.case, (), is_busy=True),
}  # fmt: skip
REPORTED: Mapping[str, Asked] = {
    "Keras 3.5 after 3.8": Asked(
        f"2.20 keras=={KERAS}", "2.20 keras==3.5.0 TF_ENABLE_ONEDNN_OPTS=1", TRAIN, (f"Keras {KERAS} -> 3.5.0",),
        ("--judge", "cpu"),
    ),
    "onednn-one-thread": Asked("2.9 TF_ENABLE_ONEDNN_OPTS=0", "2.9", "one_thread", ()),
    "XLA's thunk runtime": Asked(
        "2.17 py=3.11", "2.18 py=3.11", LOOP, ("XLA's thunk runtime off -> on",), ("--threads", "1,1")
    ),
    "predict after compile": Asked(
        "1.15", "2.0", "predict[call=predict,state=compiled,model=tiny]", ("TensorFlow ...",)
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    injected: tuple[str, ...]
    equal_runs: int
    reported: tuple[str, ...]
    budget: str


FULL = Program(tuple(INJECTED), 20, tuple(REPORTED), "8m")
TINY = Program(("a variable",), 1, (), "90s")


def patch_wheels(folder: Path) -> None:
    """Download the wheels, and write a patched copy of each under its own number."""
    for number, (package, member, code) in WHEELS.items():
        usual = number.partition(".post")[0]
        words = ("pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder))
        if not (found := list(folder.glob(f"{package}-{usual}-*.whl"))):
            subprocess.run([sys.executable, "-m", *words, f"{package}=={usual}"], check=True)
            found = list(folder.glob(f"{package}-{usual}-*.whl"))
        target = folder / found[0].name.replace(f"-{usual}-", f"-{number}-")
        before, after = f"{package}-{usual}.dist-info", f"{package}-{number}.dist-info"
        with (
            zipfile.ZipFile(found[0]) as read,
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as patched,
        ):
            for item in read.infolist():
                data = read.read(item)
                if item.filename == member:
                    data += code.encode()
                if item.filename == f"{before}/METADATA":
                    data = data.replace(f"\nVersion: {usual}\n".encode(), f"\nVersion: {number}\n".encode(), 1)
                if item.filename == f"{before}/RECORD":
                    # What was changed has no hash there.
                    names = [line.partition(",")[0].replace(before, after) for line in data.decode().splitlines()]
                    data = "".join(f"{name},,\n" for name in names).encode()
                item.filename = item.filename.replace(before, after)
                patched.writestr(item, data)


def ask(path: Path, asked: Asked, budget: str, seed: int, folder: Path) -> dict[str, Any]:
    """Ask, and return what was named, and what it cost."""
    flags = ("--case", asked.case, "--engine", "venv", "--budget", budget, "--no-search", "--seed", str(seed))
    own = ("--workload-folder", str(WORKLOADS)) if asked.case.startswith("caused") else ()
    words = (*PROGRAM, "why", asked.old, asked.new, *flags, *own, *asked.flags, "--format", "json", "--output", path)
    # Locks are made by uv, and environments by pip.
    links = {"UV_FIND_LINKS": str(folder), "PIP_FIND_LINKS": f"{os.environ.get('PIP_FIND_LINKS', '')} {folder}"}
    begun = time.monotonic()
    with busy_core(BUSY_CORE) if asked.is_busy else nullcontext():
        done = subprocess.run(words, env={**os.environ, **links}, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"why: {asked}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    return {
        "named": [rung["changed"] or [rung["rest"]] for rung in answer["rungs"] if rung["matters"]],
        "died": answer["death"] is not None,
        "whole": _tell_whole(answer),
        "product": answer["product"],
        "helps": [remedy["target"] for remedy in answer["remedies"] if remedy["helps"]],
        "seconds": answer["seconds"],
        "wall_s": time.monotonic() - begun,
    }


def _tell_whole(answer: Mapping[str, Any]) -> str:
    whole = answer["whole"] or {"verdict": "not measured"}
    ratio = whole.get("ratio")
    return f"{whole['verdict']}{f', {ratio:.2f}x' if ratio else ''}"


def is_right(asked: Asked, kept: Mapping[str, Any]) -> bool:
    """Return whether exactly the causes are named, none of them together with another one, and nothing died."""
    named = [" and ".join(causes) for causes in kept["named"]]
    patterns = [re.escape(cause).replace(r"\ \.\.\.", "( [^;]*)?") for cause in asked.causes]
    are_named = all(any(re.fullmatch(pattern, each) for each in named) for pattern in patterns)
    return are_named and len(named) == len(patterns) and not kept["died"]


def compare_plainly(path: Path) -> None:
    """Measure what the question with eight changes is about, without asking why."""
    options = RunOptions(
        versions=("2.20 py=3.11", f"2.20 py=3.11 {EIGHT}"), selected=(PAUSE,), own_workloads=WORKLOADS, engine="venv",
        out=path, seed=7,
    )  # fmt: skip
    if error := measure_run(options, View()).error:
        raise error


def section(program: Program = FULL) -> Section:
    store = Store("why", tiny=program == TINY)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        patch_wheels(folder)

        def answer(name: str, asked: Asked, seed: int = 7) -> dict[str, Any]:
            kept: dict[str, Any] | None = store.read(name)
            if kept is None:
                kept = ask(store.folder / re.sub(r"\W+", "-", name), asked, program.budget, seed, folder)
                store.write(name, kept)
                print(f"why: {name}: {kept['named']}, {kept['whole']}, {kept['wall_s']:.0f} s", file=sys.stderr)
            return kept

        injected = {name: answer(name, INJECTED[name]) for name in program.injected}
        equal = [answer(f"equal {number}", NOTHING, number) for number in range(1, program.equal_runs + 1)]
        reported = {name: answer(name, REPORTED[name]) for name in program.reported}
        eight = Asked("2.20 py=3.11", f"2.20 py=3.11 {EIGHT}", PAUSE, ("SLOW none -> 1",))
        of_eight = answer("eight changes", eight)
    plain_s = store.read("plain")
    if plain_s is None:
        plain_s = seconds_of(store.run("plain-run", compare_plainly))
        store.write("plain", plain_s)
    rights, of_reported = (
        sum(is_right(asked[name], kept) for name, kept in answers.items())
        for asked, answers in ((INJECTED, injected), (REPORTED, reported))
    )
    blamed = sum(bool(kept["named"]) for kept in equal)
    longest = max(kept["wall_s"] for kept in (*injected.values(), *reported.values(), *equal))
    body = "\n".join(
        [
            f"`tfcompare why OLD NEW --case CASE --engine venv --budget {program.budget} --no-search`, on real",
            f"releases. All injected questions have `{DECOYS}` in the new target as well. Wheels are patched copies.",
            "",
            "| cause | old | new | named | whole | |",
            "|---|---|---|---|---|---|",
            *_rows(INJECTED, injected),
            *_rows(REPORTED, reported),
            "",
            f"Equal runs ask about `{NOTHING.new}` against `{NOTHING.old}` with {program.equal_runs} seeds.",
            "The cost is the measuring time of a question with eight changes, of which one makes the step slower, in",
            f"those of the plain comparison of its two ends: {of_eight['seconds']:.0f} s of {plain_s:.0f} s.",
            "Such a question measures a ladder that splits the changes into groups, another that splits the group that",
            "matters, and then what helps, each with three to five targets where the plain comparison has two.",
            "`onednn-one-thread` was reported of a Sapphire Rapids. Where its two ends are the same, nothing is to be",
            "named.",
            store.describe(),
        ]
    )
    of = len(injected)
    figures = [
        Figure("injected causes named", rights, "count", "most", NAMED if of == len(INJECTED) else None, f"of {of}"),
        Figure("runs without a cause that blame one", blamed, "count", "least", BLAMED, f"of {len(equal)}"),
        Figure("reported causes named", of_reported, "count", "most", len(reported), f"of {len(reported)}"),
        Figure("longest question", longest, "s", limit=LIMIT_S),
        Figure("cost of eight changes", of_eight["seconds"] / plain_s, "ratio", limit=COST),
    ]
    commits = store.commits
    store.retire()
    return Section(body, figures, commits)


def _rows(asked: Mapping[str, Asked], answers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, kept in answers.items():
        one = asked[name]
        named = "; ".join(" and ".join(each) for each in kept["named"]) or "nothing"
        told = "right" if is_right(one, kept) else f"**wrong**: {'; '.join(one.causes) or 'nothing'}"
        yield f"| {name} | `{one.old}` | `{one.new}` | {named} | {kept['whole']} | {told} |"
