"""Runs for the tests of exports: one with everything in it, as a folder; one whose names fight back; and scenes."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from orchestrator.model import Case, Disturbed, Ended, Evaluation
from orchestrator.results.run import Run
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import MS, case, ended, finished, plan, rows, run_folder, target, write_stream

VERSIONS = OLD, MID, NEW = ("1.14.0", "2.0.0", "2.13.0")
ROUNDS = range(1, 9)
REDONE = 3

EAGER, FUNCTION, JIT = (case("power", style=style) for style in ("eager", "function", "jit"))
FIT = case("train_loop", loop="fit", model="small")
BATCH = case("train_loop", loop="train_on_batch", model="small")
CASES = (EAGER, FUNCTION, JIT, FIT, BATCH)

# By case: milliseconds a call in each version, None where nothing was measured.
TIMES: dict[Case, tuple[float | None, float | None, float | None]] = {
    EAGER: (10.0, 40.0, 5.0),
    FUNCTION: (2.0, 2.0, 2.0),
    JIT: (None, 1.0, 1.0),
    FIT: (30.0, 31.0, 45.0),
    BATCH: (8.0, None, None),
}
# A call of this case holds so many steps; all others hold one.
STEPS = {FIT: 10}
NOISY = {(FIT, MID): 0.4}

HOST = {
    "id": "0123456789ab", "system": "Linux", "kernel": "6.1", "cpu": "A CPU", "cores": 4, "usable_cores": 2,
    "memory_mb": 8192, "gpus": None,
}  # fmt: skip


def everything(path: Path) -> RunFolder:
    """Every verdict; an arm that refused, two that died; a pilot, and a round that was redone."""
    asked = plan(CASES, VERSIONS, metrics=("first", "memory"), outputs=True)
    run = run_folder(path, asked, host=HOST, command=("run", "--versions", ",".join(VERSIONS)))
    numbers = count(1)
    for place, version in enumerate(VERSIONS):
        batches = []
        for one in CASES:
            ms = TIMES[one][place]
            for number in (0, *ROUNDS, REDONE) if ms is not None else ():
                replicate = next(numbers)
                disturbed = number == REDONE and not _has(batches, one, REDONE)
                batches.append(
                    rows(
                        one, version, round=number, replicate=replicate, steps=STEPS.get(one, 1), resident_kb=2048,
                        bursts=calls(ms * (7 if disturbed else 1), number, NOISY.get((one, version), 0.004), place),
                    )
                )  # fmt: skip
                if disturbed:
                    run.record(
                        Disturbed(case=one.label, round=REDONE, replicates=(replicate,), cause="others", redone=True)
                    )
        stream = run.worker_output.stream(target(version), 1)
        write_stream(stream, batches)
        run.worker_output.settle(stream)
    run.record(last(JIT, OLD, "refused", "no jit switch before TensorFlow 2.1"))
    run.record(last(BATCH, MID, "died", "killed by SIGKILL; often the kernel, out of memory"))
    run.record(last(BATCH, NEW, "died", "ended with exit code 3"))
    run.record(finished(how="", seconds=1.0))
    return run


def _has(batches: Sequence[list[dict]], one: Case, number: int) -> bool:
    return any(batch[0]["case"] == one.label and batch[0]["round"] == number for batch in batches)


def calls(ms: float, number: int, scatter: float, place: int = 0) -> tuple[int, ...]:
    """Three calls of a round; rounds scatter, in another order in each version, and in none a drift would show in."""
    lift = 1 + scatter * ((number * (5, 3, 2)[place]) % 7 - 3) / 3
    return tuple(int(ms * MS * lift) + extra for extra in (5, 0, 9))


def last(of: Case, version: str, outcome: str, reason: str) -> Ended:
    return ended(of, version, outcome, replicate=10_000, reason=reason)


def of_scene(evaluation: Evaluation) -> Run:
    """A run of which there is only the comparison."""
    return Run(Path("nowhere"), evaluation, (), ())


def hostile_folder(path: Path, text: str) -> RunFolder:
    """This text in the names of workload, parameter, value, run and machine, and in a reason."""
    named = case(f"{text}w", **{f"p{text}": f"{text}v", "shared": "x"})
    other = case(f"{text}w", **{f"p{text}": "b", "shared": "x"})
    asked = plan([named, other], (OLD, NEW), run=f"run{text}", device=f"cpu{text}")
    run = run_folder(path, asked, host={**HOST, "cpu": f"CPU{text}", "id": text}, command=("run", text))
    numbers = count(1)
    for version, ms in ((OLD, 10.0), (NEW, 30.0)):
        batches = [
            rows(named, version, round=number, replicate=next(numbers), run=asked.run, bursts=calls(ms, number, 0.004))
            for number in ROUNDS
        ]
        write_stream(run.settled / f"{version}-1.arrow", batches)
        run.record(last(other, version, "died", f"{text} was the reason"))
    run.record(finished(how="", seconds=1.0))
    return run


POISONS: dict[str, str] = {
    "escapes": "\x1b[2J\x07\x00",
    "turned": "\u202eevil\u2066\u200b",
    "lines": "a\nb\r\n\x85\u2028# EOF\n| x |\n</details>",
    "markup": "<script>alert(1)</script> [x](http://example.org) ![y](z) **b** `c` ``d`` \\| | ~~e~~ &amp; <!-- -->",
    "mentions": "@octocat #123 org/repo#4 http://example.org www.example.org :smile:",
    "cdata": "]]> <![CDATA[ &lt; \ufffe",
    "formula": '=HYPERLINK("http://example.org","x")',
    "labels": 'a="b",c="d"} 1\\" # {x="y"} 2',
    "long": "é" * 10_000,
    "paths": "../../../evil/\\..\\",
}
