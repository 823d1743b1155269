"""A run as flat tables, for programs that read tables: arms, comparisons, replicates, and every call that counts."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator import contract
from orchestrator.errors import ContractBroken
from orchestrator.metrics import METRICS
from orchestrator.model import ArmResult, Comparison, Evaluation, Params, Plan, Replicate
from orchestrator.results.announced import read_journal_record
from orchestrator.results.parts import number_parts, shift_numbers
from orchestrator.results.replicates import admit_rows, read_replicates
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.strict_json import pick

TABLES = ("arms", "comparisons", "metrics", "replicates", "calls")

ARM_NAMES = (
    "workload=case.workload params=case.params target outcome reason? failure external rounds steps second_s=second_ms "
    "train_s wall_s=wall_ms resident_bytes items items_per_s first_step_s=first_step_ms losses?"
)
NUMBER, COUNT, TEXT = pa.float64(), pa.int64(), pa.string()

ARM = pa.schema(
    [
        ("target", TEXT), ("outcome", TEXT), ("reason", TEXT), ("failure", TEXT), ("external", pa.bool_()),
        ("rounds", COUNT), ("judge", TEXT),
        *((spec.column, NUMBER) for spec in METRICS.values()),
        ("steps", NUMBER), ("second_s", NUMBER), ("train_s", NUMBER), ("wall_s", NUMBER), ("resident_bytes", NUMBER),
        ("items", COUNT), ("items_per_s", NUMBER), ("first_step_s", NUMBER), ("loss", NUMBER), ("drift", NUMBER),
    ]
)  # fmt: skip
COMPARISON = pa.schema(
    [
        ("kind", TEXT), ("target", TEXT), ("baseline", TEXT), ("candidate", TEXT), ("metric", TEXT),
        ("ratio", NUMBER), ("ci_low", NUMBER), ("ci_high", NUMBER), ("rounds", COUNT), ("verdict", TEXT),
        ("reason", TEXT), ("mde", NUMBER), ("seed_percent", NUMBER), ("second_ratio", NUMBER),
        ("sign_flip_p", NUMBER), ("exploratory", pa.bool_()), ("size", TEXT), ("cpu_ratio", NUMBER),
        ("cpu_low", NUMBER), ("cpu_high", NUMBER), ("difference", NUMBER), ("difference_low", NUMBER),
        ("difference_high", NUMBER), ("spread", NUMBER), ("cpu_spread", NUMBER), ("cpu_verdict", TEXT),
        ("judge", TEXT), ("row_only", pa.bool_()),
    ]
)  # fmt: skip
REPLICATE = pa.schema(
    [
        ("target", TEXT), ("round", COUNT), ("replicate", COUNT), ("build_ns", COUNT), ("first_ns", NUMBER),
        ("second_ns", NUMBER), ("calls_ns", NUMBER), ("time_ns", NUMBER), ("rise", NUMBER), ("import_ns", COUNT),
        ("resident_kb", COUNT), ("minor_faults", COUNT), ("major_faults", COUNT), ("involuntary_switches", COUNT),
        ("steal_ns", COUNT), ("psi_us", COUNT), ("traces", COUNT), ("cpu_ns", NUMBER),
        ("calls", COUNT), ("first_call_ns", NUMBER), ("items", COUNT), ("first_step_ns", COUNT), ("step_ns", COUNT),
        ("losses", TEXT), ("device", TEXT), ("gpu_memory_kb", COUNT), ("energy_uj", COUNT), ("memory_kb", COUNT),
        ("growth_bytes", COUNT), ("growth_calls", COUNT), ("output", TEXT), ("fifth_output", TEXT),
        ("later_traces", COUNT), ("untimed_ns", COUNT), ("python_calls", COUNT), ("next_python_calls", COUNT),
        ("operations", COUNT), ("next_operations", COUNT), ("wall_ns", NUMBER),
    ]
)  # fmt: skip


def arms(evaluation: Evaluation) -> pa.Table:
    """Return one row per arm, measured or not."""
    rows = []
    for arm in evaluation.arms:
        told = describe_arm(arm)
        figures = {spec.column: told["figures"][metric] for metric, spec in METRICS.items()}
        rows.append({**told, **figures, "loss": arm.loss, "judge": evaluation.plan.judge})
    cases = [arm.case for arm in evaluation.arms]
    return _table([(case.workload, case.label, case.params) for case in cases], rows, ARM)


def comparisons(plan: Plan, comparisons: Sequence[Comparison]) -> pa.Table:
    """Return one row per comparison.

    Comparisons within a version have no case, only the parameters that both of their cases share.
    """
    pairs = [comparison.pair.flat for comparison in comparisons]
    rows = []
    for comparison, pair in zip(comparisons, pairs, strict=True):
        own = {
            "judge": plan.judge if pair.metric == "time" else None,
            "reason": comparison.reason or None,
            **{name: getattr(pair, name) for name in ("kind", "target", "baseline", "candidate", "metric")},
        }
        rows.append({name: own[name] if name in own else getattr(comparison, name) for name in COMPARISON.names})
    names = [(pair.workload, pair.case.label if pair.case else None, pair.params) for pair in pairs]
    return _table(names, rows, COMPARISON)


def replicates(plan: Plan, replicates: Sequence[Replicate]) -> pa.Table:
    """Return one row per valid replicate."""
    cases = {case.label: (case.workload, case.label, case.params) for case in plan.cases}
    rows = [
        {**replicate._asdict(), "replicate": replicate.number, "target": str(replicate.target)}
        for replicate in replicates
    ]
    # If there is no journal, streams may hold cases that the plan does not have.
    return _table([cases.get(replicate.case, (None, replicate.case, ())) for replicate in replicates], rows, REPLICATE)


def calls(run: RunFolder, replicates: Sequence[Replicate]) -> pa.Table:
    """Return one row per timed call of each valid replicate, with the columns of the contract."""
    schema = contract.arrow_schema(pa)
    return pa.concat_tables([schema.empty_table(), *streams_of_calls(run, replicates)]).unify_dictionaries()


def streams_of_calls(run: RunFolder, replicates: Iterable[Replicate]) -> Iterator[pa.Table]:
    """Yield the timed calls stream by stream, since together they may be too large to hold in memory."""
    numbers = pa.array(sorted({replicate.number for replicate in replicates}), pa.int32())
    for folder, first in number_parts(run):
        plan = folder.read_plan()
        admit = read_journal_record(plan, folder.read_journal())
        for stream in folder.worker_output.streams():
            try:
                table = admit_rows(read_replicates(stream, plan.run), admit)[0].table
            except ContractBroken:
                # This error was reported when the run was read.
                continue
            table = shift_numbers(table, first)
            yield table.filter(pc.is_in(table["replicate"], numbers))


def describe_arm(arm: ArmResult) -> dict[str, Any]:
    """Return an arm as the JSON report has it."""
    figures = {
        metric: spec.export(arm.figures[metric]) if metric in arm.figures else None for metric, spec in METRICS.items()
    }
    return {**pick(arm, ARM_NAMES), "figures": figures, "drift": math.expm1(arm.drift.rise) if arm.drift else None}


def _table(
    names: Sequence[tuple[str | None, str | None, Params]], rows: Sequence[dict[str, Any]], schema: pa.Schema
) -> pa.Table:
    """Build a table that begins with the workload, the case and one column per parameter.

    A parameter that a workload lacks is null.
    """
    parameters = list(dict.fromkeys(name for _, _, params in names for name, _ in params))
    columns = {
        "workload": pa.array([workload for workload, _, _ in names], TEXT),
        "case": pa.array([label for _, label, _ in names], TEXT),
        **{
            f"param_{parameter}": pa.array([dict(params).get(parameter) for _, _, params in names], TEXT)
            for parameter in parameters
        },
        **{field.name: pa.array([row[field.name] for row in rows], field.type) for field in schema},
    }
    return pa.table(columns)
