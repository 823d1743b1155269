"""The command that continues an undecided run, with the budget that takes it to a look that can decide more."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from orchestrator.contract import PILOT_ROUND
from orchestrator.errors import UsageError
from orchestrator.machine.host import is_here
from orchestrator.model import ArmKey, Ended, Entry, Evaluation, Extended, Finished, Lost, Manifest, Plan, Target
from orchestrator.options import LONGEST_S
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.results.more_rounds import RESERVE, ResumeOptions, check_sources, plan_extension
from orchestrator.results.past import is_closed, open_cases, read_past
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.terminal.durations import format_budget

# A few more rounds decide little, so the command takes half as many again.
WORTHWHILE = 1.5
# These flags of the first command line decide which environments the versions get.
OF_ENVIRONMENTS = ("--base", "--ca-bundle", "--wheelhouse", "--gpu-request")


def next_line(path: Path, evaluation: Evaluation) -> str:
    """Return the last line of a report: the command that continues the run. Return '' if no command can."""
    command = next_command(path, evaluation)
    return f"Next:  {shlex.join(command)}" if command else ""


def next_command(path: Path, evaluation: Evaluation) -> tuple[str, ...]:
    plan, manifest = evaluation.plan, evaluation.manifest
    entries = tuple(RunFolder.open(path).entries())
    past = read_past(plan, entries)
    cases = open_cases(evaluation, past)
    lost = targets_lost_last(entries)
    labels = {case.label for case in cases}
    arms = [
        arm.key
        for arm in plan.arms()
        if arm.case.label in labels and arm.target not in lost and not is_closed(arm.key, evaluation, past)
    ]
    # One arm gives no ratio.
    if len(arms) < 2 or not _continues_here(plan, manifest, path):
        return ()
    carried = [word for pair in flag_values(manifest.command, OF_ENVIRONMENTS) for word in pair]
    # A run that ended in its pilot has no calibration, so the length of a round is unknown.
    if not past.progress.efforts:
        return "tfcompare", "run", "--resume", str(path), *carried
    looks = plan_extension(ResumeOptions(run=path), plan, past).looks
    rounds = next((look for look in looks if look >= past.rounds * WORTHWHILE), looks[-1]) - past.rounds
    # A postponed case needs all of its first rounds.
    rounds = max(rounds, FEWEST_ROUNDS - min(past.progress.rounds[case.label] for case in cases))
    budget = format_budget(min(rounds * round_s(evaluation, entries, arms) * RESERVE, LONGEST_S))
    return "tfcompare", "run", "--resume", str(path), "--budget", budget, *carried


def flag_values(command: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield these flags of a recorded command line, each with its value."""
    for word, following in pairwise((*command, "")):
        flag, equals, value = word.partition("=")
        if flag in names:
            yield flag, value if equals else following


def round_s(evaluation: Evaluation, entries: Sequence[Entry], arms: Sequence[ArmKey]) -> float:
    """Estimate the time of a round of these arms.

    It consists of the start of its workers, the calls of each arm, and the overhead of each replicate.
    """
    timed = [(arm, arm.figures.get("build", 0.0) / 1e3) for arm in evaluation.arms if arm.train_s is not None]
    calls_s = {arm.key: build_s + (arm.train_s or 0.0) for arm, build_s in timed}
    usual_s = sum(calls_s.values()) / max(len(calls_s), 1)
    replicates = [entry for entry in entries if isinstance(entry, Ended) and entry.outcome == "measured"]
    stretches = [entry for entry in entries if isinstance(entry, Finished)]
    start_s = max((entry.start_s for entry in stretches), default=0.0)
    # The first workers of each stretch start before its time begins; the pilot and the first round share theirs.
    renewals = len({entry.round for entry in replicates} - {PILOT_ROUND, FIRST_ROUND}) - len(stretches[1:])
    measured_s = sum(entry.seconds for entry in stretches) - max(renewals, 0) * start_s
    first_s = {arm.key: build_s + arm.figures.get("first", 0.0) / 1e3 for arm, build_s in timed}
    inside_s = sum((first_s if entry.once else calls_s).get(entry.arm, usual_s) for entry in replicates)
    besides_s = max(0.0, measured_s - inside_s) / max(len(replicates), 1)
    return start_s + sum(calls_s.get(arm, usual_s) + besides_s for arm in arms)


def targets_lost_last(entries: Sequence[Entry]) -> set[Target]:
    """Return the versions that the last rounds lost without an outside cause; more rounds would lose them again."""
    lost: set[Target] = set()
    for entry in entries:
        if isinstance(entry, Extended):
            lost = set()
        elif isinstance(entry, Lost) and not entry.external:
            lost.add(entry.target)
    return lost


def _continues_here(plan: Plan, manifest: Manifest, path: Path) -> bool:
    folder = RunFolder(path)
    if folder.fleet.is_file() or folder.parts:
        return False
    try:
        check_sources(plan, manifest, folder, None)
    except UsageError:
        return False
    return is_here(manifest.host) and not folder.is_held
