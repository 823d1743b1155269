"""Constructors that the unit tests share: each gives something valid, of which a test names only what it is about."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from orchestrator import contract
from orchestrator.metrics import METRICS
from orchestrator.model import (
    ArmResult,
    Case,
    CasePair,
    Claim,
    Comparison,
    Effect,
    Ended,
    EnvironmentFacts,
    Evaluation,
    Expectation,
    Finished,
    Manifest,
    MeanRatio,
    Outcome,
    Pair,
    Plan,
    Replicate,
    Target,
    TargetPair,
    VerdictName,
    Workload,
)
from orchestrator.plan.pairs import plan_pairs
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import Stream
from orchestrator.stats.paired import Estimate
from orchestrator.stats.verdict import seed_percent

RUN = "20260102-030405-abcd"
OLD, NEW = "1.0.0", "2.0.0"
MS = 10**6
WORKER = re.compile(r".+-(?P<part>\d+)")

Row = dict[str, Any]
# Of the constructors, which take a target also by its name.
Version = str | Target


def case(workload: str = "power", **params: str) -> Case:
    return Case(workload, tuple(params.items()))


def workload(name: str = "power", **changes: Any) -> Workload:
    known = Workload(
        name=name,
        summary="A workload.",
        path=Path(f"{name}.py"),
        params={"style": ("eager", "function")},
        comparisons={},
        exclude=(),
        builtin=True,
    )
    return replace(known, **changes)


def target(name: Version) -> Target:
    return Target.parse(str(name))


def targets(names: Iterable[Version]) -> tuple[Target, ...]:
    return tuple(map(target, names))


def version_pair(of: Case, baseline: Version = OLD, candidate: Version = NEW) -> TargetPair:
    return TargetPair(case=of, baseline=target(baseline), candidate=target(candidate))


def case_pair(baseline: Case, candidate: Case, version: Version = NEW) -> CasePair:
    return CasePair(target=target(version), baseline=baseline, candidate=candidate)


def claim(*expectations: Expectation, **changes: Any) -> Claim:
    made = Claim(
        name="a-claim",
        title="it is slower",
        source="https://example.org/1",
        statement="It was said.",
        suite="studies",
        devices=("cpu", "gpu"),
        withdrawn=False,
        quote="",
        said_of=("any machine",),
        cases=(),
        expectations=expectations,
        holds=(),
        sets=(),
        parts=(),
        bounds=(),
        shares=(),
        returns=(),
        definitions=(),
    )
    return replace(made, **changes)


def expectation(pair: Pair, effect: Effect, published: float | None = None, **changes: Any) -> Expectation:
    return replace(Expectation(pair=pair, effect=effect, published=published, read_as=None, ours=False), **changes)


def plan(cases: Sequence[Case] = (case(),), versions: Sequence[Version] = (OLD, NEW), **changes: Any) -> Plan:
    """A plan of these cases without pairs of cases, unless `pairs` says otherwise."""
    workloads = {one.workload: workload(one.workload, params=dict.fromkeys(dict(one.params), ())) for one in cases}
    made = Plan(
        run=RUN,
        created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        suite="quick",
        engine="venv",
        device="cpu",
        targets=targets(versions),
        cases=tuple(cases),
        pairs=plan_pairs(cases, targets(versions), workloads),
        looks=(6, 10, 15, 20),
        alpha=0.05,
        margin=0.05,
        budget_s=None,
        seed=1,
        threads=None,
        untuned_datasets=False,
        keeps_xla_code=False,
        timeout_s=600.0,
        isolation="fork",
        cpus=None,
        memory_mb=None,
        runtime="",
        claims=(),
        gpus=(),
        exclusive=False,
        lock_mhz=None,
        large=(),
        definitions=(),
        program=(),
        requirements=(),
        metrics=(),
        decides=(),
        outputs=False,
        margins={},
        judge="wall",
        most_rounds=0,
    )
    return replace(made, **changes)


def environment_facts(version: Version = NEW, **changes: Any) -> EnvironmentFacts:
    made = EnvironmentFacts(
        target=str(version), kind="venv", identity="x", lock="y", python="3.11.7", details={}, packages={},
        variables={}, size_bytes=None,
    )  # fmt: skip
    return replace(made, **changes)


def manifest(versions: Sequence[Version] = (OLD, NEW), **changes: Any) -> Manifest:
    environments = {version: environment_facts(version) for version in targets(versions)}
    made = Manifest(
        tool="0.1.0",
        contract=contract.FINGERPRINT,
        command=("run",),
        host={"cpu": "A CPU", "usable_cores": 2},
        sources={},
        environments=environments,
        workers={version: {"python": "3.11.7"} for version in targets(versions)},
        notes=(),
        variables={},
        hosts=(),
    )
    return replace(made, **changes)


def arm(of: Case, version: Version = OLD, **changes: Any) -> ArmResult:
    made = ArmResult(
        case=of,
        target=target(version),
        outcome="measured",
        rounds=6,
        figures={
            "time": 10.0, "first": 50.0, "build": 500.0, "import": 2000.0, "memory": 300 * 2.0**20, "traces": 1,
        },
        resident_bytes=300 * 2.0**20,
    )  # fmt: skip
    return change_arm(made, **changes)


def change_arm(made: ArmResult, **changes: Any) -> ArmResult:
    """Change figures, which are named by their metrics, and other fields; None takes a figure away."""
    figures = {**made.figures, **{name: changes.pop(name) for name in METRICS if name in changes}}
    return replace(made, figures={name: each for name, each in figures.items() if each is not None}, **changes)


def unmeasured(of: Case, version: Version, outcome: Outcome, reason: str, *, refuted: bool = False) -> ArmResult:
    return ArmResult(case=of, target=target(version), outcome=outcome, reason=reason, refuted=refuted)


def comparison(
    pair: Pair, ratio: float | None = 1.0, verdict: VerdictName = "same", reason: str = "", **changes: Any
) -> Comparison:
    made = Comparison(
        pair=pair,
        ratio=ratio,
        ci_low=ratio and ratio * 0.97,
        ci_high=ratio and ratio * 1.03,
        rounds=6 if ratio else 0,
        verdict=verdict,
        reason=reason,
        mde=ratio and 0.04,
        seed_percent=ratio and seed_percent(math.log(ratio)),
    )
    return replace(made, **changes)


def mean(candidate: Version, ratio: float, baseline: Version = OLD, **changes: Any) -> MeanRatio:
    """A mean of two cases with an interval as wide as that of a comparison."""
    made = MeanRatio(
        metric="time",
        baseline=target(baseline),
        candidate=target(candidate),
        ratio=ratio,
        ci_low=ratio * 0.97,
        ci_high=ratio * 1.03,
        cases=2,
        rounds=6,
    )
    return replace(made, **changes)


def evaluation(**changes: Any) -> Evaluation:
    only = case()
    made = Evaluation(
        plan=plan([only]),
        manifest=manifest(),
        arms=(arm(only, OLD), arm(only, NEW)),
        comparisons=(comparison(version_pair(only)),),
        warnings=(),
    )
    return replace(made, **changes)


def rows(
    of: Case | None = None, version: Version = NEW, *, round: int = 1, replicate: int = 1,
    bursts: Sequence[int] = (10 * MS,) * 3, steps: int = 1, run: str = RUN, first: int = 50 * MS, once: bool = False,
    **changes: Any,
) -> list[Row]:  # fmt: skip
    """One replicate's rows, as a worker writes them: `bursts` are of one call each, `changes` go to every row.

    With `once` it makes its first call and no other.
    """
    of = of or case()
    walls = [("build", 500 * MS), ("first", first)]
    if not once:
        walls += [("second", 20 * MS), ("warmup", 10 * MS), *(("burst", wall) for wall in bursts)]
    of_programs = dict.fromkeys(("items", "first_step_ns", "step_ns", "losses", "device", "gpu_memory_kb", "energy_uj"))
    of_programs |= dict.fromkeys(
        (
            "memory_kb",
            "growth_bytes",
            "growth_calls",
            "output",
            "fifth_output",
            "python_calls",
            "next_python_calls",
            "operations",
            "next_operations",
        )
    )
    facts = dict.fromkeys(contract.REPLICATE_FIELDS, 1) | of_programs
    return [
        {
            "run": run,
            "target": str(version),
            "case": of.label,
            "round": round,
            "position": 0,
            "replicate": replicate,
            "burst": ordinal - 3 if phase == "burst" else 0,
            "phase": phase,
            "ordinal": ordinal,
            "wall_ns": wall,
            "cpu_ns": wall,
            "steps": steps,
            **(facts if phase == "build" else dict.fromkeys(facts)),
            **changes,
        }
        for ordinal, (phase, wall) in enumerate(walls)
    ]


def replicate(**figures: Any) -> Replicate:
    """A replicate as its rows are summed up, with these figures."""
    plain = {
        "target": target(NEW), "case": case().label, "round": 1, "number": 1, "build_ns": 3_000, "first_ns": 100.0,
        "second_ns": 90.0, "calls_ns": 1.0, "time_ns": 80.0, "cpu_ns": 85.0, "rise": 0.0, "import_ns": None,
        "resident_kb": 900, "minor_faults": None, "major_faults": None, "involuntary_switches": None,
        "steal_ns": None, "psi_us": None, "traces": 7, "calls": 5, "bursts": (4.0, 4.1),
        "cpu_bursts": (4.2,), "position": 0, "first_call_ns": 5_000.0, "percentiles": (1.0, 2.0, 3.0),
    }  # fmt: skip
    plain |= dict.fromkeys(set(Replicate._fields) - plain.keys())
    return Replicate(**{**plain, **figures})


def write_stream(path: Path | Stream, batches: Iterable[list[Row]], schema: pa.Schema | None = None) -> Path:
    """A stream as `write_rows` writes it; in a run folder its replicates are journaled as measured, too."""
    batches = list(batches)
    if isinstance(path, Stream):
        assert path.target
        RunFolder(path.root).worker_output.create_results_folder(path.target, path.part)
        path = path.path
    for batch in batches:
        journal(path, batch)
    return write_rows(path, batches, schema)


def write_rows(path: Path, batches: Iterable[list[Row]], schema: pa.Schema | None = None) -> Path:
    """A closed stream with one batch per list of rows; nothing is checked, for that is what is tested."""
    schema = schema or contract.arrow_schema(pa)
    with path.open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for batch in batches:
            columns = [pa.array([row[field.name] for row in batch], field.type) for field in schema]
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return path


def journal(stream: Path, batch: Sequence[Row]) -> None:
    """The journal entries of a batch's replicates, if the stream is in a run folder."""
    counts = Counter(row["replicate"] for row in batch)
    for root in stream.parents[1:3]:
        if (root / "plan.json").exists():
            found = WORKER.fullmatch(stream.stem) or WORKER.fullmatch(stream.parent.name)
            part = int(found["part"]) if found else 0
            for row in {row["replicate"]: row for row in batch}.values():
                RunFolder(root).record(
                    Ended(
                        target=target(row["target"]), case=row["case"], round=row["round"],
                        replicate=row["replicate"], outcome="measured", part=part, rows=counts[row["replicate"]],
                    )
                )  # fmt: skip


def ended(of: Case | str, version: Version = NEW, outcome: str = "measured", **changes: Any) -> Ended:
    """The end of a replicate; one that was measured has one row, of the first worker."""
    label = of if isinstance(of, str) else of.label
    usual = {"round": 1, "replicate": 1}
    usual |= {"measured": {"part": 1, "rows": 1}, "died": {"failure": "workload"}}.get(outcome, {})
    return Ended(target=target(version), case=label, outcome=outcome, **{**usual, **changes})  # type: ignore[arg-type]


def finished(how: str = "", seconds: float = 1.0, **changes: Any) -> Finished:
    return replace(Finished(how=how, seconds=seconds, start_s=0.0, cut=False, at_budget=False), **changes)


def run_folder(path: Path, of: Plan, **changes: Any) -> RunFolder:
    """A run folder as it stands before the first round."""
    run = RunFolder.create(path)
    run.write_plan(of)
    run.write_manifest(manifest(of.targets, **changes))
    return run


def estimate_of(theta: float, spread: float, rounds: int) -> Estimate:
    """An estimate with exactly this mean and this spread."""
    shape = [1.0 if place % 2 else -1.0 for place in range(rounds - rounds % 2)] + [0.0] * (rounds % 2)
    unit = statistics.stdev(shape)
    return Estimate(tuple(theta + spread * value / unit for value in shape))
