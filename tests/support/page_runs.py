"""Run folders that the page is drawn from in a browser: one of everything, and one that fights back."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.model import Case, Ended, Plan, Workload
from orchestrator.plan.pairs import plan_pairs
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import (
    MS,
    case,
    ended,
    finished,
    plan,
    rows,
    run_folder,
    targets,
    workload,
    write_stream,
)

VERSIONS = ("1.14.0", "2.0.0", "2.13.0")
ROUNDS = 10
LOOP = workload("train_loop", params={"loop": (), "mode": ()}, comparisons={"mode": "eager"})
POWER = workload("power", params={"style": ()})
LOOPS = tuple(
    case("train_loop", loop=loop, mode=mode) for loop in ("fit", "train_on_batch") for mode in ("eager", "graph")
)
POWERS = tuple(case("power", style=style) for style in ("eager", "function", "jit"))
NO_JIT = "tf.function has no jit switch before TensorFlow 2.1."
KILLED = "killed by SIGKILL; often the kernel, out of memory"

# Milliseconds of a call by case, and what each version makes of them.
TIMES = dict(zip((*LOOPS, *POWERS), (6.2, 5.4, 7.1, 5.9, 0.9, 0.3, 0.25), strict=True))
FACTORS = {
    "1.14.0": (1.0,) * 7,
    "2.0.0": (3.6, 1.0, 4.1, 1.12, 0.7, 1.01, 1.0),
    "2.13.0": (5.9, 1.7, 1.9, 1.0, 0.6, 1.0, 1.0),
}
DRIFTING = (LOOPS[1], "2.13.0")
DIED = (LOOPS[2], "2.0.0")
HOSTILE = '</script><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\'\u202e\x1b[31m&amp;{{7*7}}'

Times = Callable[[Case, str, int], Sequence[int] | None]


def everything(path: Path) -> Path:
    """Seven cases of two workloads in three versions: all verdicts, a refusal, a death, a drift."""
    asked = _plan((*LOOPS, *POWERS), VERSIONS, {"train_loop": LOOP, "power": POWER})
    run = run_folder(path, asked, host={"cpu": "A CPU", "usable_cores": 2, "kernel": "6.1", "memory_mb": 24000})
    _write(run, asked, _measured)
    for version in ("1.14.0", "2.0.0"):
        run.record(_ended(POWERS[2], version, "refused", NO_JIT))
    run.record(_ended(*DIED, "died", KILLED))
    run.record(finished(how="", seconds=90.0))
    return run.path


def hostile(path: Path, text: str = HOSTILE) -> Path:
    """This text wherever a workload, a version, a log or a machine may put one."""
    versions = (f"1.0.0{text}", f"2.0.0{text}")
    cases = (Case(f"w{text}", ((f"p{text}", f"a{text}"),)), Case(f"w{text}", ((f"p{text}", "b"),)))
    known = workload(f"w{text}", params={f"p{text}": ()}, comparisons={f"p{text}": "b"})
    asked = replace(_plan(cases, versions, {known.name: known}), device=f"cpu{text}", suite=f"suite{text}")
    run = run_folder(path, asked, host={f"fact{text}": f"value{text}", "cpu": text}, command=("run", text))
    _write(run, asked, lambda of, version, number: [MS + number * 1000] * 5)
    run.record(_ended(cases[1], versions[1], "died", f"died{text}"))
    run.record(finished(how=f"ended{text}", seconds=1.0))
    return run.path


def _plan(cases: Sequence[Case], versions: Sequence[str], workloads: dict[str, Workload]) -> Plan:
    return plan(cases, versions, pairs=plan_pairs(cases, targets(versions), workloads))


def _measured(of: Case, version: str, number: int) -> Sequence[int] | None:
    """Calls of a replicate; None where there is none."""
    if (of is POWERS[2] and version != "2.13.0") or ((of, version) == DIED and number > 3):
        return None
    draw = random.Random(f"{of.label} {version} {number}")
    # Of one case the processes differ so much that nothing can be said.
    spread = 0.25 if of is LOOPS[3] else 0.01
    base = TIMES[of] * FACTORS[version][list(TIMES).index(of)] * math.exp(draw.gauss(0, spread))
    rise = 0.3 if (of, version) == DRIFTING else 0.0
    return [int(MS * base * (1 + rise * call / 40) * math.exp(draw.gauss(0, 0.02))) for call in range(40)]


def _write(run: RunFolder, asked: Plan, times: Times) -> None:
    number = 0
    for place, version in enumerate(asked.targets):
        batches = []
        for round_number in range(1, ROUNDS + 1):
            for of in asked.cases:
                bursts = times(of, str(version), round_number)
                number += 1
                if bursts is not None:
                    batches.append(rows(of, version, round=round_number, replicate=number, bursts=bursts))
        write_stream(run.settled / f"stream{place}.arrow", batches)


def _ended(of: Case, version: str, outcome: str, reason: str) -> Ended:
    return ended(of, version, outcome, replicate=999, reason=reason)
